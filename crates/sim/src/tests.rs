//! Whole simulations on small drives.

use flashwise_block::{BlockError, ByteSize, Silent};
use flashwise_trace::workload::Workload;

use super::*;
use flashwise_ssd::DeviceConfig;

/// A drive of 64 MiB with garbage collection within reach: eight dies, four blocks of 64 pages too many on each.
pub(crate) fn small_config() -> DeviceConfig {
    let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
    (config.flash.blocks_per_plane, config.flash.pages_per_block) = (20, 16);
    config.ftl.gc.free_superblocks = Some(2);
    config.capacity_bytes = ByteSize::mib(96).bytes();
    config
}

pub(crate) fn small_drive() -> SimulatedSsd {
    SimulatedSsd::new(small_config(), 1).unwrap()
}

fn workload(flows: &str) -> Workload {
    Workload::from_toml(&format!("name = \"test\"\n{flows}"), "test.toml").unwrap()
}

fn run_with(flows: &str, options: SimulationOptions) -> Result<Simulation, SimulationError> {
    simulate(&mut small_drive(), &workload(flows), ".".as_ref(), &options, &mut Silent)
}

fn run(flows: &str) -> Simulation {
    run_with(flows, SimulationOptions::default()).unwrap()
}

const READS: &str = r#"
    [[flows]]
    name = "reads"
    requests = 4000
    synthetic.read_share = 1.0
    synthetic.access = "random"
    synthetic.size.fixed.bytes = 4096
    synthetic.pacing.closed.queue_depth = 16
"#;

const MIX: &str = r#"
    [[flows]]
    name = "closed"
    requests = 5000
    synthetic.read_share = 0.5
    synthetic.access = "random"
    synthetic.size.fixed.bytes = 8192
    synthetic.flush_every = 100
    synthetic.trim_share = 0.02
    synthetic.pacing.closed.queue_depth = 8

    [[flows]]
    name = "pausing"
    start_ns = 1_000_000
    duration_ns = 50_000_000
    synthetic.access = "sequential"
    synthetic.size.fixed.bytes = 16384
    synthetic.pacing.closed = { queue_depth = 2, think_ns = 100_000 }

    [[flows]]
    name = "arriving"
    requests = 1000
    synthetic.read_share = 1.0
    synthetic.access = "random"
    synthetic.size.fixed.bytes = 4096
    synthetic.pacing.open = { interarrival_ns = 20_000, arrivals = "poisson" }
"#;

#[test]
fn every_request_of_every_flow_completes_and_counts() {
    let result = run(MIX);
    let [closed, pausing, arriving] = &result.flows[..] else { panic!("{:?}", result.flows) };
    assert_eq!((closed.all.requests, arriving.all.requests), (5000, 1000));
    assert_eq!(closed.reads + closed.writes + closed.trims + closed.flushes, 5000);
    assert_eq!(closed.flushes, closed.writes / 100);
    assert!(pausing.all.requests > 100 && pausing.start_ns == 1_000_000, "{}", pausing.all.requests);
    assert!(pausing.elapsed_ns >= 49_000_000, "{}", pausing.elapsed_ns);
    assert_eq!(result.total.requests, result.flows.iter().map(|flow| flow.all.requests).sum::<u64>());
    let in_series: u64 = result.time_series.intervals.iter().map(|interval| interval.requests).sum();
    assert_eq!(in_series, result.total.requests);
    assert_eq!(arriving.read.as_ref().map(|read| read.requests), Some(1000));
    assert_eq!(arriving.write, None);
}

#[test]
fn a_pause_lies_between_a_completion_and_the_request_that_takes_its_place() {
    let flow = |think: u64| {
        run(&format!(
            r#"
            [[flows]]
            requests = 101
            synthetic.read_share = 1.0
            synthetic.access = "random"
            synthetic.size.fixed.bytes = 4096
            synthetic.pacing.closed = {{ queue_depth = 1, think_ns = {think} }}
            "#
        ))
        .elapsed_ns
    };
    assert_eq!(flow(1_000_000) - flow(0), 100 * 1_000_000, "the drive is empty: each read takes the same time");
}

#[test]
fn arrivals_come_at_their_times_whether_or_not_the_drive_keeps_up() {
    let result = run(r#"
        [[flows]]
        requests = 11
        synthetic.read_share = 1.0
        synthetic.access = "random"
        synthetic.size.fixed.bytes = 4096
        synthetic.pacing.open = { interarrival_ns = 1_000_000, arrivals = "constant" }
        "#);
    let longest = result.total.max_response_ns.unwrap();
    assert_eq!(result.elapsed_ns, 10 * 1_000_000 + longest);
}

#[test]
fn two_runs_are_the_same_to_the_bit() {
    let options = SimulationOptions { precondition: Precondition::Fill, interval: None };
    let [a, b] = [(); 2].map(|()| run_with(MIX, options).unwrap().without_process());
    assert!(serde_json::to_string(&a).unwrap() == serde_json::to_string(&b).unwrap());
}

#[test]
fn a_result_survives_the_way_through_json() {
    let result = run(MIX);
    let text = serde_json::to_string(&result).unwrap();
    assert!(text.starts_with("{\"schema\":\"flashwise.simulation\",\"schema_version\":1,"), "{}", &text[..80]);
    assert!(serde_json::from_str::<Simulation>(&text).unwrap() == result);
}

#[test]
fn preconditioning_is_not_in_the_result() {
    let filled = SimulationOptions { precondition: Precondition::Fill, interval: None };
    let [empty, full] = [SimulationOptions::default(), filled].map(|options| run_with(READS, options).unwrap());
    assert_eq!((empty.total.requests, full.total.requests), (4000, 4000));
    assert_eq!((empty.unwritten_pages_read, full.unwritten_pages_read), (4000, 0));
    assert_eq!((full.host.bytes_written, full.write_amplification), (0, None));
    assert!(full.flash.reads >= 3900 && empty.flash.reads == 0, "{:?}", full.flash);
    assert!(full.precondition.bytes_laid_out > 0);
}

#[test]
fn write_amplification_is_the_sum_of_its_causes() {
    let steady = SimulationOptions { precondition: Precondition::Steady, interval: None };
    let writes = READS.replace("synthetic.read_share = 1.0", "synthetic.read_share = 0.0");
    let result = run_with(&writes.replace("4000", "40000"), steady).unwrap();
    let (whole, parts) = (result.write_amplification.unwrap(), result.write_amplification_by_cause.unwrap());
    let sum = parts.host + parts.gc + parts.wear_levelling + parts.retirement + parts.mapping + parts.padding;
    assert!((whole - sum).abs() < 1e-9 && parts.gc > 0.2, "{whole} {parts:?}");
    let erases = result.erase_counts.unwrap();
    assert!(erases.min <= erases.max && (f64::from(erases.min)..=f64::from(erases.max)).contains(&erases.mean));
    assert!(result.gc.executions > 0 && result.gc.pages_moved > 0);
}

#[test]
fn figures_are_consistent_with_each_other() {
    let result = run(READS);
    let seconds = result.elapsed_ns as f64 / 1e9;
    assert!((result.total.iops * seconds - 4000.0).abs() < 1e-6);
    assert!((result.total.iops * result.total.mean_response_ns.unwrap() / 1e9 - 16.0).abs() < 0.2);
    let percentiles = result.total.percentiles_ns.unwrap();
    assert!(result.total.min_response_ns.unwrap() <= percentiles.p50 && percentiles.p50 <= percentiles.p99_999);
    assert!(result.total.distribution.windows(2).all(|pair| pair[0].response_ns <= pair[1].response_ns));
}

#[test]
fn a_request_that_the_drive_refuses_is_told_with_its_flow() {
    let error = run_with(&READS.replace("4096", "4_194_304"), SimulationOptions::default()).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("flow 'reads': ") && text.contains("2 MiB at once"), "{text}");
}

#[test]
fn a_listener_can_stop_it() {
    struct Impatient;
    impl Progress for Impatient {
        fn advance(&mut self, _stage: &str, _fraction: f64) -> Result<(), BlockError> {
            Err(BlockError::Interrupted)
        }
    }
    let long = workload(&READS.replace("4000", "1_000_000_000"));
    let options = SimulationOptions::default();
    let error = simulate(&mut small_drive(), &long, ".".as_ref(), &options, &mut Impatient).unwrap_err();
    assert!(error.is_interrupt());
}

#[test]
fn flows_share_a_busy_drive_by_the_weights_of_their_priorities() {
    use flashwise_ssd::config::{Arbitration, ArbitrationWeights};
    let mut config = small_config();
    (config.host.submission_queues, config.host.queue_depth) = (4, 4);
    config.host.arbitration = Arbitration::WeightedRoundRobin;
    config.host.arbitration_weights = ArbitrationWeights { high: 8, medium: 3, low: 1 };
    let flow = |name: &str, priority: &str| {
        format!(
            r#"
            [[flows]]
            name = "{name}"
            priority = "{priority}"
            duration_ns = 50_000_000
            synthetic.read_share = 1.0
            synthetic.access = "random"
            synthetic.size.fixed.bytes = 4096
            synthetic.pacing.closed.queue_depth = 16
            "#
        )
    };
    let text = format!("name = \"shares\"\n{}{}{}", flow("l", "low"), flow("h", "high"), flow("m", "medium"));
    let run = |config: DeviceConfig| {
        let workload = Workload::from_toml(&text, "shares.toml").unwrap();
        let mut drive = SimulatedSsd::new(config, 1).unwrap();
        let options = SimulationOptions { precondition: Precondition::Fill, ..SimulationOptions::default() };
        let result = simulate(&mut drive, &workload, ".".as_ref(), &options, &mut Silent).unwrap();
        let total = result.total.requests as f64;
        result.flows.iter().map(|flow| flow.all.requests as f64 / total).collect::<Vec<_>>()
    };
    let shares = run(config.clone());
    let expected = [1.0 / 12.0, 8.0 / 12.0, 3.0 / 12.0];
    assert!(shares.iter().zip(expected).all(|(share, wanted)| (share - wanted).abs() < 0.02), "{shares:?}");
    config.host.arbitration = Arbitration::RoundRobin;
    let equal = run(config);
    assert!(equal.iter().all(|share| (share - 1.0 / 3.0).abs() < 0.01), "{equal:?}");
}
