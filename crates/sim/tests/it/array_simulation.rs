//! Workloads on arrays: what their controllers send to the members, compared with the arithmetic of RAID exactly;
//! drives that fail in the middle; and an array of one drive against that drive.

use crate::support;

use flashwise_array::{
    Accesses, ArrayActivity, ArrayCacheConfig, ArrayConfig, ControllerLimit, FailureConfig, Level, MemberFailure,
    PlaceState, RebuildEnd, SimulatedArray,
};
use flashwise_block::{BlockDevice, ByteSize, Nanos, Request, Silent, execute};
use flashwise_sim::{
    FlowResult, Precondition, Simulation, SimulationError, SimulationOptions, simulate, simulate_array,
};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use flashwise_trace::workload::Workload;

const CHUNK: u64 = 16 << 10;
const SMALL: u64 = 4096;
const MS: u64 = 1_000_000;

/// A drive of 24 MiB, a third more of which is set aside.
fn member() -> DeviceConfig {
    support::tiny("micron-m500", ByteSize::mib(24), 32, 16)
}

fn array(level: Level, members: u32) -> ArrayConfig {
    ArrayConfig::new(level, members, CHUNK)
}

/// Writes, of which so many are in flight; more of a flow's keys behind.
fn writes(access: &str, bytes: u64, requests: u64, depth: u32, more: &str) -> Workload {
    let text = format!(
        "name = \"writes\"\n[[flows]]\nrequests = {requests}\nsynthetic.access = \"{access}\"\n\
         synthetic.size.fixed.bytes = {bytes}\nsynthetic.pacing.closed.queue_depth = {depth}\n{more}"
    );
    Workload::from_toml(&text, "writes.toml").unwrap()
}

fn run(config: &ArrayConfig, workload: &Workload, precondition: Precondition) -> Result<Simulation, SimulationError> {
    let mut array = SimulatedArray::new(config.clone(), member(), 1).unwrap();
    let options = SimulationOptions { precondition, interval: None };
    simulate_array(&mut array, workload, ".".as_ref(), &options, &mut Silent)
}

fn activity(config: &ArrayConfig, workload: &Workload) -> ArrayActivity {
    run(config, workload, Precondition::Fill).unwrap().array.unwrap()
}

fn accesses(count: u64, bytes: u64) -> Accesses {
    Accesses { count, bytes }
}

/// Level, members, and how many accesses a small write makes: reads and writes of data, reads and writes of parity.
const SMALL_WRITES: [(Level, u32, [u64; 4]); 6] = [
    (Level::Raid0, 4, [0, 1, 0, 0]),
    (Level::Raid1, 3, [0, 3, 0, 0]),
    (Level::Raid10, 4, [0, 2, 0, 0]),
    (Level::Raid5, 4, [1, 1, 1, 1]),
    (Level::Raid5, 9, [1, 1, 1, 1]),
    (Level::Raid6, 7, [1, 1, 2, 2]),
];

#[test]
fn a_small_write_costs_four_accesses_on_raid_5_six_on_raid_6_and_its_copies_elsewhere() {
    const REQUESTS: u64 = 500;
    for (level, members, each) in SMALL_WRITES {
        let found = activity(&array(level, members), &writes("random", SMALL, REQUESTS, 8, ""));
        let [data_reads, data_writes, parity_reads, parity_writes] =
            each.map(|each| accesses(each * REQUESTS, each * REQUESTS * SMALL));
        let it = found.accesses;
        assert_eq!((it.data_reads, it.data_writes), (data_reads, data_writes), "{level:?} of {members}");
        assert_eq!((it.parity_reads, it.parity_writes), (parity_reads, parity_writes), "{level:?} of {members}");
        let commands = (data_reads.count + parity_reads.count, data_writes.count + parity_writes.count);
        assert_eq!((it.read_commands, it.write_commands), commands, "{level:?} of {members}");
        let has_parity = u64::from(parity_writes.count > 0);
        assert_eq!(found.row_writes.read_modify_write, has_parity * REQUESTS, "{level:?} of {members}");
        assert_eq!((found.row_writes.full_stripe, found.row_writes.reconstruct_write), (0, 0), "{level:?}");
        let factor = (each[1] + each[3]) as f64;
        assert_eq!(found.member_bytes_per_host_byte, Some(factor), "{level:?} of {members}");
    }
}

#[test]
fn the_members_answer_what_the_controller_counts() {
    for (level, members, _) in SMALL_WRITES {
        let found = activity(&array(level, members), &writes("random", SMALL, 500, 8, "synthetic.read_share = 0.3"));
        let sum = |of: fn(&flashwise_array::MemberActivity) -> u64| found.members.iter().map(of).sum::<u64>();
        let it = found.accesses;
        assert_eq!(sum(|member| member.bytes_written), it.bytes_written(), "{level:?}");
        assert_eq!(sum(|member| member.bytes_read), it.data_reads.bytes + it.parity_reads.bytes, "{level:?}");
        assert_eq!((sum(|m| m.reads), sum(|m| m.writes)), (it.read_commands, it.write_commands), "{level:?}");
    }
}

#[test]
fn whole_rows_are_written_without_reads_and_cost_their_parity_and_no_more() {
    const ROWS: u64 = 64;
    for (level, members, parities) in [(Level::Raid5, 3, 1), (Level::Raid5, 5, 1), (Level::Raid6, 6, 2)] {
        let mut config = array(level, members);
        config.controller.max_transfer_bytes = Some(1 << 20);
        let row = u64::from(members - parities) * CHUNK;
        let found = activity(&config, &writes("sequential", row, ROWS, 2, ""));
        let it = found.accesses;
        assert_eq!((it.data_reads, it.parity_reads), (accesses(0, 0), accesses(0, 0)), "{level:?} of {members}");
        assert_eq!(it.data_writes, accesses(ROWS * u64::from(members - parities), ROWS * row), "{level:?}");
        let parity = ROWS * u64::from(parities);
        assert_eq!(it.parity_writes, accesses(parity, parity * CHUNK), "{level:?}");
        assert_eq!((found.row_writes.full_stripe, found.row_writes.read_modify_write), (ROWS, 0), "{level:?}");
        // 1 + 1/(n - 1) with one parity, 1 + 2/(n - 2) with two.
        let factor = f64::from(members) / f64::from(members - parities);
        assert_eq!(found.member_bytes_per_host_byte, Some(factor), "{level:?} of {members}");
    }
}

#[test]
fn small_writes_one_behind_the_other_become_whole_rows_in_a_write_cache() {
    let mut config = array(Level::Raid5, 5);
    config.controller.write_cache = Some(ArrayCacheConfig { bytes: 4 << 20, destage_from_bytes: None });
    let row = 4 * CHUNK;
    let found = activity(&config, &writes("sequential", SMALL, 32 * row / SMALL, 4, ""));
    assert_eq!((found.row_writes.full_stripe, found.row_writes.read_modify_write), (32, 0));
    assert_eq!(found.accesses.read_commands, 0);
    assert_eq!((found.controller.cached_bytes.is_some(), found.controller.cache_waits), (true, 0));
}

#[test]
fn reads_find_their_data_in_one_access_and_through_all_others_where_a_drive_is_missing() {
    const REQUESTS: u64 = 400;
    let reads = writes("random", SMALL, REQUESTS, 8, "synthetic.read_share = 1.0");
    let config = array(Level::Raid5, 5);
    assert_eq!(activity(&config, &reads).accesses.read_commands, REQUESTS);
    let mut degraded = config;
    degraded.failures = vec![FailureConfig { member: 2, at_ns: 0 }];
    let found = activity(&degraded, &reads);
    // A read of what was on the missing drive takes one of each other drive; a fifth of all would be 80.
    let extra = found.accesses.read_commands - REQUESTS;
    assert_eq!(extra % 3, 0, "four in place of one");
    assert!((50..=110).contains(&(extra / 3)), "{extra}");
    assert_eq!((found.members[2].reads, found.members[2].state), (0, PlaceState::Failed));
}

#[test]
fn a_drive_fails_when_it_is_told_to_and_a_spare_is_filled_in_its_place() {
    let mut config = array(Level::Raid6, 6);
    (config.spares, config.failures) = (1, vec![FailureConfig { member: 3, at_ns: 20 * MS }]);
    let workload = writes("random", SMALL, 20_000, 4, "synthetic.read_share = 0.5");
    let simulation = run(&config, &workload, Precondition::Fill).unwrap();
    let found = simulation.array.clone().unwrap();
    assert_eq!(found.failures, [MemberFailure { member: 3, at_ns: 20 * MS }]);
    let [rebuild] = found.rebuilds[..] else { panic!("{:?}", found.rebuilds) };
    assert_eq!((rebuild.member, rebuild.began_ns, rebuild.end), (3, 20 * MS, Some(RebuildEnd::Whole)));
    assert_eq!((rebuild.rows_done, rebuild.rows), (found.rows, found.rows));
    assert!(rebuild.ended_ns.is_some_and(|ended_ns| (20 * MS..simulation.elapsed_ns).contains(&ended_ns)));
    assert!(found.members.iter().all(|member| member.state == PlaceState::Whole));
    assert_eq!(found.spares_left, 0);
    let it = found.accesses;
    assert_eq!(it.rebuild_writes, accesses(found.rows, found.rows * CHUNK), "every row once");
    assert_eq!(it.rebuild_reads, accesses(4 * found.rows, 4 * found.rows * CHUNK), "as many chunks as hold data");
    assert!(found.row_writes.restore_write + found.row_writes.reconstruct_write > 0);
    assert_eq!(simulation.total.requests, 20_000);
    let again = run(&config, &workload, Precondition::Fill).unwrap();
    assert_eq!(again.without_process(), simulation.without_process());
}

#[test]
fn rebuilding_that_is_not_done_at_the_end_is_told_as_far_as_it_came() {
    let mut config = array(Level::Raid5, 4);
    (config.spares, config.rebuild_bytes_per_s) = (1, 4 << 20);
    config.failures = vec![FailureConfig { member: 0, at_ns: 0 }];
    let more = "duration_ns = 500_000_000";
    let found = activity(&config, &writes("random", SMALL, 1_000_000, 1, more));
    let [rebuild] = found.rebuilds[..] else { panic!("{:?}", found.rebuilds) };
    assert_eq!((rebuild.end, rebuild.ended_ns, rebuild.rows), (None, None, 1_536));
    // 4 MiB a second are 256 rows a second.
    assert!((120..=129).contains(&rebuild.rows_done), "{rebuild:?}");
    assert_eq!(found.members[0].state, PlaceState::Rebuilding);
    assert_eq!(found.members[0].rebuilt_rows, Some(rebuild.rows_done));
}

#[test]
fn a_run_whose_data_is_lost_gives_no_figures() {
    let mut config = array(Level::Raid5, 4);
    config.failures = [0, 1].map(|member| FailureConfig { member, at_ns: 10 * MS }).to_vec();
    let error = run(&config, &writes("random", SMALL, 100_000, 4, ""), Precondition::Fill).unwrap_err().to_string();
    assert!(error.starts_with("flow 'flow-1': Write of 4 KiB at byte "), "{error}");
    assert!(error.contains("more drives of the array have failed than its level survives"), "{error}");
}

#[test]
fn the_controllers_limit_is_told_where_it_is_reached() {
    let mut config = array(Level::Raid0, 8);
    config.controller.iops_max = 5_000;
    let reads = writes("random", SMALL, 5_000, 32, "synthetic.read_share = 1.0");
    let limited = run(&config, &reads, Precondition::Fill).unwrap();
    assert!((limited.total.iops / 5_000.0 - 1.0).abs() < 0.01, "{}", limited.total.iops);
    let controller = limited.array.unwrap().controller;
    assert_eq!(controller.limit_reached, Some(ControllerLimit::Iops));
    assert!(controller.processor_busy.is_some_and(|busy| busy > 0.99) && controller.bus_busy.is_none());
    // Behind the first of each instant, every command waits: 32 are in flight, and the processor is the bottleneck.
    assert!(controller.processor_waits > 4_900, "{}", controller.processor_waits);
    config.controller.iops_max = 0;
    config.controller.bandwidth_bytes_per_s = 20_000_000;
    let controller = activity(&config, &reads).controller;
    assert_eq!((controller.limit_reached, controller.processor_busy), (Some(ControllerLimit::Bandwidth), None));
    config.controller.bandwidth_bytes_per_s = 0;
    assert_eq!(activity(&config, &reads).controller.limit_reached, None);
}

#[test]
fn preconditioning_reaches_every_member() {
    let workload = writes("random", SMALL, 10_000, 8, "");
    let config = array(Level::Raid5, 4);
    let filled = run(&config, &workload, Precondition::Fill).unwrap();
    assert_eq!(filled.precondition.bytes_laid_out, 4 * member().capacity_bytes);
    let steady = run(&config, &workload, Precondition::Steady).unwrap();
    assert!(steady.precondition.is_settled.is_some() && steady.precondition.host_bytes_written > 0);
    for member in steady.array.unwrap().members {
        assert!(member.gc_executions > 0 && member.write_amplification > Some(1.1), "{member:?}");
        assert!(member.pe_cycles_mean > Some(0.5), "{member:?}");
    }
    let empty = run(&config, &workload, Precondition::Empty).unwrap();
    assert!(empty.unwritten_pages_read > 0, "old data and old parity are read where nothing is");
}

#[test]
fn an_array_that_has_been_used_is_not_preconditioned() {
    let mut used = SimulatedArray::new(array(Level::Raid5, 4), member(), 1).unwrap();
    execute(&mut used, Request::write(ByteSize(0), ByteSize(SMALL))).unwrap();
    let options = SimulationOptions { precondition: Precondition::Steady, interval: None };
    let workload = writes("random", SMALL, 10, 1, "");
    let error = simulate_array(&mut used, &workload, ".".as_ref(), &options, &mut Silent).unwrap_err();
    assert!(error.to_string().starts_with("steady: the array has already been used"), "{error}");
    // What it has done before is in no figure.
    let options = SimulationOptions::default();
    let found = simulate_array(&mut used, &workload, ".".as_ref(), &options, &mut Silent).unwrap().array.unwrap();
    assert_eq!(found.row_writes.read_modify_write, 10);
    assert_eq!(found.members.iter().map(|member| member.writes).sum::<u64>(), 20);
}

#[test]
fn an_array_of_one_drive_gives_the_figures_of_the_drive() {
    let text = r#"
        name = "both"
        [[flows]]
        name = "closed"
        requests = 3_000
        synthetic.read_share = 0.5
        synthetic.access = "random"
        synthetic.size.fixed.bytes = 4096
        synthetic.pacing.closed.queue_depth = 8
        [[flows]]
        name = "open"
        requests = 500
        synthetic.access = "random"
        synthetic.size.fixed.bytes = 16384
        synthetic.pacing.open = { interarrival_ns = 700_000, arrivals = "poisson" }
        [[flows]]
        name = "thinking"
        requests = 200
        synthetic.access = "sequential"
        synthetic.size.fixed.bytes = 4096
        synthetic.pacing.closed = { queue_depth = 2, think_ns = 300_000 }
    "#;
    let workload = Workload::from_toml(text, "both.toml").unwrap();
    // With so much room that nothing is collected, several requests are often answered in one moment.
    let roomy = support::tiny("micron-m500", ByteSize::mib(8), 64, 64);
    let states = [Precondition::Fill, Precondition::Steady, Precondition::Analytic];
    let cases = states.map(|state| (member(), state)).into_iter().chain([(roomy, Precondition::Steady)]);
    for (member, precondition) in cases {
        let options = SimulationOptions { precondition, interval: Some(Nanos(10 * MS)) };
        let mut drive = SimulatedSsd::new(member.clone(), 1).unwrap();
        let of_drive = simulate(&mut drive, &workload, ".".as_ref(), &options, &mut Silent).unwrap();
        let mut one = SimulatedArray::new(array(Level::Raid0, 1), member, 1).unwrap();
        let of_array = simulate_array(&mut one, &workload, ".".as_ref(), &options, &mut Silent).unwrap();
        assert_eq!(one.info().capacity, drive.info().capacity);
        // Before a member, requests wait in the controller, and what is a drive's queueing is an array's service.
        let flow = |(array, drive): (&FlowResult, &FlowResult)| {
            let wait = |flow: &FlowResult| flow.mean_queueing_ns.unwrap() + flow.mean_service_ns.unwrap();
            assert!((wait(array) - wait(drive)).abs() < 1.0, "{precondition:?}");
            let (mean_queueing_ns, mean_service_ns) = (drive.mean_queueing_ns, drive.mean_service_ns);
            FlowResult { mean_queueing_ns, mean_service_ns, ..array.clone() }
        };
        let alike = Simulation {
            array: None,
            flows: of_array.flows.iter().zip(&of_drive.flows).map(flow).collect(),
            invariants: of_drive.invariants.clone(),
            time_series: of_drive.time_series.clone(),
            ..of_array.without_process()
        };
        assert_eq!(alike, of_drive.without_process(), "{precondition:?}");
        let requests = |s: &Simulation| s.time_series.intervals.iter().map(|i| i.requests).collect::<Vec<_>>();
        assert_eq!(requests(&of_array), requests(&of_drive), "{precondition:?}");
    }
}
