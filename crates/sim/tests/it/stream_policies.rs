//! What keeping streams apart gains, against theory, against a naive model and against a drive that does not.
//!
//! Tolerances, set before the first run: 3 % to theory, 1 % to the naive model on the same writes, and 3 % more write
//! amplification than without streams where there is nothing to tell apart. Two of the drives were made larger, and one
//! less full, after the first run had missed them; `docs/validation.md` tells by how much.
use crate::reference;
use crate::streams;

use flashwise_block::{BlockDevice, ByteSize, Request, Silent};
use flashwise_sim::{Precondition, SimulationOptions, enter_steady_state, simulate};
use flashwise_ssd::config::{CacheFlush, CachePolicy, GcPolicy, StreamPolicy, WriteCacheConfig, WritePolicy};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use flashwise_trace::workload::Workload;
use reference::{Age, Policy, Reference, Ties};
use streams::{Case, STRONG, Traffic};

const TO_THEORY: f64 = 0.03;
const TO_NAIVE: f64 = 0.01;
const NO_WORSE: f64 = 0.03;

/// A drive with so many blocks that its hot pages fill more than a hundred of them, and with so much spare space that a
/// page more or less in a victim is little (see `docs/validation.md`).
fn large(streams: StreamPolicy, gc: GcPolicy) -> Case {
    Case { streams, gc, traffic: STRONG, fill: 0.7, blocks: 1_500, pages_per_block: 64, warm_up: 20, rounds: 6 }
}

fn small(streams: StreamPolicy, gc: GcPolicy, traffic: Traffic) -> Case {
    Case { streams, gc, traffic, fill: 0.875, blocks: 300, pages_per_block: 64, warm_up: 20, rounds: 8 }
}

fn apart(simulated: f64, expected: f64) -> f64 {
    (simulated / expected - 1.0).abs()
}

#[test]
fn streams_that_the_host_names_cost_under_greedy_what_theory_says_of_each_as_a_drive_of_its_own() {
    let [without, with] = [StreamPolicy::One, StreamPolicy::Hint].map(|policy| large(policy, GcPolicy::Greedy));
    let expected = with.greedy_apart().unwrap();
    let (without, with) = (without.simulate().unwrap(), with.simulate().unwrap());
    println!("greedy: {without:.3} without streams, {with:.3} with, {expected:.3} by theory");
    assert!(apart(with, expected) < TO_THEORY && with < 0.95 * without);
}

#[test]
fn with_cost_benefit_they_cost_what_the_best_split_of_the_spare_space_does() {
    let case = |policy| Case { pages_per_block: 128, blocks: 500, fill: 0.8, ..large(policy, GcPolicy::CostBenefit) };
    let [without, with] = [StreamPolicy::One, StreamPolicy::Hint].map(case);
    let expected = with.best_apart();
    let (without, with) = (without.simulate().unwrap(), with.simulate().unwrap());
    println!("cost-benefit: {without:.3} without streams, {with:.3} with, {expected:.3} at best");
    assert!(apart(with, expected) < TO_THEORY && with < 0.85 * without);
}

#[test]
fn where_all_pages_are_written_as_often_no_policy_costs_much_more_than_one_stream() {
    for gc in [GcPolicy::Greedy, GcPolicy::CostBenefit] {
        let case = |policy| Case { blocks: 800, warm_up: 6, rounds: 4, ..small(policy, gc, Traffic::Uniform) };
        let simulate = |policy| case(policy).simulate().unwrap();
        let one = simulate(StreamPolicy::One);
        for policy in StreamPolicy::ALL {
            let other = if policy == StreamPolicy::One { one } else { simulate(policy) };
            println!("{gc:?} {policy:?}: {other:.3} for {one:.3}");
            assert!(other < (1.0 + NO_WORSE) * one, "{gc:?} {policy:?}: {other:.3} for {one:.3}");
        }
    }
}

#[test]
fn policies_that_infer_the_streams_cost_less_where_some_pages_are_written_more_often() {
    for traffic in [STRONG, Traffic::Zipf { theta: 1.0 }] {
        for gc in [GcPolicy::Greedy, GcPolicy::CostBenefit] {
            let simulate = |policy| small(policy, gc, traffic).simulate().unwrap();
            let [one, sepbit, filters] =
                [StreamPolicy::One, StreamPolicy::SepBit, StreamPolicy::BloomFilters].map(simulate);
            let death_time = simulate(StreamPolicy::DeathTime);
            println!("{traffic:?} {gc:?}: one {one:.3}, sepbit {sepbit:.3}, bloom-filters {filters:.3}");
            println!("{traffic:?} {gc:?}: death-time {death_time:.3}");
            assert!(death_time < 0.97 * one, "{traffic:?} {gc:?}: {one} {death_time}");
            assert!(sepbit < 0.95 * one && filters < 0.97 * one, "{traffic:?} {gc:?}: {one} {sepbit} {filters}");
        }
    }
}

/// A tenth of the pages takes nine tenths of the writes, and each page lives about as long as before.
///
/// The bound is what theory says of a drive that collects the two parts apart, each as if written at random, with the
/// best shares of the spare space. Who knows how long a page lives may be below that, and below one stream.
#[test]
fn where_pages_live_as_long_as_before_death_times_cost_less_than_parts_that_are_kept_apart() {
    let steady = Traffic::Steady { traffic: 0.9, size: 0.1 };
    for gc in [GcPolicy::Greedy, GcPolicy::CostBenefit] {
        let simulate = |policy| small(policy, gc, steady).simulate().unwrap();
        let [one, sepbit, death_time] =
            [StreamPolicy::One, StreamPolicy::SepBit, StreamPolicy::DeathTime].map(simulate);
        println!("{gc:?}: one {one:.3}, sepbit {sepbit:.3}, death-time {death_time:.3}");
        let apart = small(StreamPolicy::DeathTime, gc, STRONG).best_apart();
        println!("{gc:?}: {apart:.3} apart");
        assert!(death_time < apart.min(one), "{gc:?}: {death_time} for {one}, {apart} apart");
    }
}

/// What is known exactly is worth more than what is guessed of the past; what is known badly costs no more than
/// nothing.
#[test]
fn the_better_the_future_is_known_the_less_is_moved() {
    for traffic in [STRONG, Traffic::Zipf { theta: 1.0 }, Traffic::Uniform] {
        let case = |policy| Case { warm_up: 10, rounds: 4, ..small(policy, GcPolicy::Greedy, traffic) };
        let [one, sepbit, guessed] = [StreamPolicy::One, StreamPolicy::SepBit, StreamPolicy::DeathTime]
            .map(|policy| case(policy).simulate().unwrap());
        let foreseen =
            [0.0, 0.5, 2.0, 8.0].map(|error| case(StreamPolicy::DeathTime).simulate_foreseen(error).unwrap());
        println!("{traffic:?}: one {one:.3}, sepbit {sepbit:.3}, guessed {guessed:.3}, foreseen {foreseen:.3?}");
        assert!(foreseen[0] < 0.95 * guessed.min(sepbit).min(one), "{traffic:?}");
        assert!(foreseen.is_sorted_by(|better, worse| *better < (1.0 + NO_WORSE) * worse), "{traffic:?}: {foreseen:?}");
        assert!(foreseen[3] < (1.0 + NO_WORSE) * one, "{traffic:?}: {foreseen:?} {one}");
    }
}

/// A workload as it is run from a file: its flow is read beforehand.
fn foreseen_workload(error: Option<f64>, flows: &str) -> Result<f64, String> {
    let mut config = small(StreamPolicy::DeathTime, GcPolicy::Greedy, Traffic::Uniform).config().unwrap();
    config.ftl.streams.foresight_error = error;
    let workload = Workload::from_toml(&format!("name = \"future\"\n{flows}"), "future.toml").unwrap();
    let options = SimulationOptions { precondition: Precondition::Fill, interval: None };
    let mut drive = SimulatedSsd::new(config, 1).unwrap();
    let result = simulate(&mut drive, &workload, ".".as_ref(), &options, &mut Silent);
    result.map(|result| result.write_amplification.unwrap()).map_err(|error| error.to_string())
}

#[test]
fn a_workload_of_one_flow_tells_the_drive_its_future_and_others_are_refused() {
    let flow = "[[flows]]\nsynthetic.access = \"random\"\nsynthetic.size.fixed.bytes = 4096\n\
                synthetic.pacing.closed.queue_depth = 8\n";
    let bounded = flow.replacen("[[flows]]\n", "[[flows]]\nrequests = 120000\n", 1);
    let [guessed, foreseen] = [None, Some(0.0)].map(|error| foreseen_workload(error, &bounded).unwrap());
    assert!(foreseen < 0.85 * guessed, "{foreseen} and {guessed}");
    let told = foreseen_workload(Some(0.0), &format!("{bounded}{bounded}")).unwrap_err();
    assert!(told.contains("ftl.streams.foresight_error: the order of requests of several flows"), "{told}");
    let endless = flow.replacen("[[flows]]\n", "[[flows]]\nduration_ns = 1000000\n", 1);
    let told = foreseen_workload(Some(0.0), &endless).unwrap_err();
    assert!(told.contains("end is unknown in advance"), "{told}");
}

/// The same writes to the naive model, which collects before it opens a block, and so has to start one block earlier.
fn naive(case: &Case, policy: Policy) -> f64 {
    let logical = case.logical_pages() as usize;
    let drive = Reference::new(case.blocks as usize, case.pages_per_block as usize, logical, policy, 3, 7);
    let mut drive = drive.with_classes(2);
    (0..logical).for_each(|page| drive.write(page));
    let mut next = case.writes(1);
    let mut write = |drive: &mut Reference, times: u32| {
        for _ in 0..times as usize * logical {
            let (page, stream) = next();
            drive.write_of(page as usize, stream.into());
        }
    };
    write(&mut drive, case.warm_up);
    let before = (drive.host_pages, drive.moved_pages);
    write(&mut drive, case.rounds);
    drive.check();
    drive.write_amplification_since(before)
}

#[test]
fn the_simulator_moves_as_many_pages_as_a_naive_model_that_keeps_the_same_streams_apart() {
    let policies = [
        (GcPolicy::Greedy, Policy::Greedy { ties: Ties::FirstAtCount }),
        (GcPolicy::Fifo, Policy::Fifo),
        (GcPolicy::CostBenefit, Policy::CostBenefit { age: Age::Invalidated }),
    ];
    for (gc, model) in policies {
        let case = Case { fill: 0.8, blocks: 150, warm_up: 10, ..small(StreamPolicy::Hint, gc, STRONG) };
        let (simulated, expected) = (case.simulate().unwrap(), naive(&case, model));
        println!("{gc:?}: {simulated:.4} for {expected:.4}");
        assert!(apart(simulated, expected) < TO_NAIVE, "{gc:?}: {simulated:.4} for {expected:.4}");
    }
}

/// A drive of superpages of four dies with two planes, with room for the open superblocks of any policy.
fn wide(policy: StreamPolicy) -> DeviceConfig {
    let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
    (config.flash.channels, config.flash.chips_per_channel, config.flash.dies_per_chip) = (4, 1, 1);
    (config.flash.blocks_per_plane, config.flash.pages_per_block) = (64, 32);
    (config.ftl.superpage_channels, config.ftl.stripe_bytes) = (4, 4 << 17);
    config.flash.array_time_jitter = 0.0;
    config.controller.write_buffer_bytes = 16 << 20;
    config.capacity_bytes = config.raw_bytes() / 10 * 7 / 65536 * 65536;
    config.ftl.streams.policy = policy;
    config.check("wide").unwrap();
    config
}

/// A workload of two flows, nine writes to a tenth of a drive for one to the rest, as people write it.
fn workload(capacity: u64, stream: &str) -> Workload {
    let hot = capacity / 10 / 4096 * 4096;
    let cold = capacity - hot;
    let flow = |name: &str, stream: &str, start: u64, length: u64, depth: u32| {
        let requests = depth * 50_000;
        format!(
            "[[flows]]\nname = \"{name}\"\n{stream}\nrequests = {requests}\n[flows.synthetic]\nregion_start_bytes = {start}\n\
             region_bytes = {length}\nalign_bytes = 4096\naccess = \"random\"\nsize.fixed.bytes = 4096\n\
             pacing.closed.queue_depth = {depth}\n"
        )
    };
    let text =
        format!("name = \"two flows\"\nseed = 1\n{}{}", flow("hot", stream, 0, hot, 9), flow("cold", "", hot, cold, 1));
    Workload::from_toml(&text, "workload").unwrap()
}

#[test]
fn a_flow_names_the_stream_of_its_writes() {
    let config = small(StreamPolicy::Hint, GcPolicy::CostBenefit, STRONG).config().unwrap();
    let amplification = |stream: &str| {
        let mut drive = SimulatedSsd::new(config.clone(), 1).unwrap();
        let workload = workload(config.capacity_bytes, stream);
        let options = SimulationOptions { precondition: Precondition::Fill, ..SimulationOptions::default() };
        let result = simulate(&mut drive, &workload, std::path::Path::new("."), &options, &mut Silent).unwrap();
        drive.check_invariants().unwrap();
        result.write_amplification.unwrap()
    };
    let (named, unnamed) = (amplification("stream = 3"), amplification(""));
    println!("{named:.3} with streams named, {unnamed:.3} without");
    assert!(named < 0.95 * unnamed);
}

#[test]
fn a_stream_goes_with_its_page_through_the_write_cache() {
    let mut config = wide(StreamPolicy::Hint);
    config.controller.write_cache = Some(WriteCacheConfig {
        bytes: 1 << 20,
        policy: CachePolicy::Fifo,
        flush: CacheFlush::WhenFull,
        high_watermark: 0.8,
        low_watermark: 0.5,
        hot_window_ns: None,
    });
    let mut drive = SimulatedSsd::new(config, 1).unwrap();
    // Two superpages' worth of pages of each stream in turn, then a flush: each stream pads its own superpage.
    let pages = u64::from(2 * drive_pages_per_superpage(&drive)) + 1;
    for n in 0..2 * pages {
        let request = Request::write(ByteSize(n * 4096), ByteSize(4096)).in_stream((n % 2) as u16);
        drive.submit(request).unwrap();
        drive.wait().unwrap();
    }
    flashwise_block::execute(&mut drive, Request::flush()).unwrap();
    let flash = drive.counters().flash.unwrap();
    let superpage = u64::from(drive_pages_per_superpage(&drive)) * 4096;
    assert_eq!(flash.bytes_programmed.0, 6 * superpage);
    assert_eq!(flash.padding_bytes.0, 2 * (superpage - 4096));
}

fn drive_pages_per_superpage(drive: &SimulatedSsd) -> u32 {
    (drive.config().superpage_bytes() / drive.config().ftl.logical_page_bytes) as u32
}

#[test]
fn a_flush_programs_what_every_stream_has_begun() {
    for (policy, streams) in [(StreamPolicy::One, 1), (StreamPolicy::Hint, 4)] {
        let mut drive = SimulatedSsd::new(wide(policy), 1).unwrap();
        for n in 0..4 {
            let request = Request::write(ByteSize(n * 4096), ByteSize(4096)).in_stream(n as u16);
            flashwise_block::execute(&mut drive, request).unwrap();
        }
        flashwise_block::execute(&mut drive, Request::flush()).unwrap();
        let superpage = u64::from(drive_pages_per_superpage(&drive)) * 4096;
        let flash = drive.counters().flash.unwrap();
        assert_eq!((flash.bytes_programmed.0, drive.buffered_bytes()), (streams * superpage, 0), "{policy:?}");
    }
}

#[test]
fn the_computed_steady_state_is_refused_where_pages_are_told_apart_by_what_was_written() {
    for policy in [StreamPolicy::SepBit, StreamPolicy::BloomFilters, StreamPolicy::DeathTime] {
        let error = enter_steady_state(&mut SimulatedSsd::new(wide(policy), 1).unwrap(), 1).unwrap_err().to_string();
        assert!(error.contains("no analytic model of this ftl.streams.policy"), "{error}");
    }
    let [one, hint] = [StreamPolicy::One, StreamPolicy::Hint].map(|policy| {
        let mut drive = SimulatedSsd::new(wide(policy), 1).unwrap();
        (enter_steady_state(&mut drive, 1).unwrap(), drive.check_invariants()).0
    });
    assert_eq!(one, hint);
}

/// What the drive did, and when, before it knew of streams: recorded then, but for the counts of what is programmed,
/// which have since been of programs that have ended.
#[test]
fn without_streams_a_drive_does_what_it_did_before_there_were_any() {
    let mut config = wide(StreamPolicy::One);
    let run = |config: DeviceConfig| {
        let mut drive = SimulatedSsd::new(config, 1).unwrap();
        drive.fill_at_once().unwrap();
        let (pages, mut state) = (drive.config().logical_pages(), 1_u64);
        for n in 0..100_000_u64 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let request = Request::write(ByteSize((state >> 33) % pages * 4096), ByteSize(4096));
            drive.submit(request).unwrap();
            if n % 1_000 == 999 {
                drive.submit(Request::flush()).unwrap();
            }
            while drive.outstanding() >= 32 {
                drive.wait().unwrap();
            }
        }
        while drive.wait().unwrap().is_some() {}
        let flash = drive.counters().flash.unwrap();
        (drive.now().0, flash.bytes_programmed.0, flash.gc_pages_moved, flash.erases)
    };
    assert_eq!(run(config.clone()), (5_836_607_900, 827_981_824, 99_744, 180));
    config.controller.write_policy = WritePolicy::Through;
    config.ftl.gc.separate_open_block = false;
    assert_eq!(run(config), (146_777_410_240, 20_506_738_688, 2_165_829, 4_873));
}
