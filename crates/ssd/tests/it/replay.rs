//! What `flashwise_trace::replay` promises on a simulated drive: every request exactly when it was meant to be issued.

use std::path::Path;

use flashwise_block::{BlockDevice, BlockError, Progress, Silent};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use flashwise_trace::replay::{ReplayReport, replay};
use flashwise_trace::workload::{FlowSource, Workload};

fn drive() -> SimulatedSsd {
    SimulatedSsd::new(DeviceConfig::preset("samsung-960-evo").unwrap(), 1).unwrap()
}

fn source(drive: &SimulatedSsd, flow: &str, base: &Path) -> FlowSource {
    let workload = Workload::from_toml(&format!("name = 'w'\n[[flows]]\n{flow}"), "w.toml").unwrap();
    let info = drive.info();
    FlowSource::open(&workload.flows[0], 0, 1, info.capacity, info.logical_block, base).unwrap()
}

fn replayed(flow: &str) -> ReplayReport {
    let mut drive = drive();
    let mut source = source(&drive, flow, Path::new(""));
    replay(&mut source, &mut drive, &mut |_| None, &mut Silent).unwrap()
}

const READS: &str =
    "requests = 2000\nsynthetic.read_share = 1.0\nsynthetic.access = 'random'\nsynthetic.size.fixed.bytes = 4096\n";

#[test]
fn an_open_loop_has_no_error_even_where_the_drive_cannot_keep_up() {
    for interarrival_ns in [1_000_000, 100] {
        let pacing =
            format!("synthetic.pacing.open = {{ interarrival_ns = {interarrival_ns}, arrivals = 'poisson' }}\n");
        let told = replayed(&format!("{READS}{pacing}"));
        assert_eq!((told.requests, told.failed, told.bytes), (2000, 0, 2000 * 4096));
        let error = told.issue_error.unwrap();
        assert_eq!((error.count, error.max_ns), (2000, 0), "at {interarrival_ns} ns between arrivals");
    }
}

#[test]
fn a_trace_that_is_played_twice_as_fast_takes_half_the_time() {
    let folder = tempfile::tempdir().unwrap();
    let lines: String = (0..500).map(|n| format!("{} 0 {} 8 1\n", n * 1_000_000, n * 8)).collect();
    std::fs::write(folder.path().join("t"), lines).unwrap();
    let elapsed = |scale: &str| {
        let mut drive = drive();
        let mut source = source(&drive, &format!("trace = {{ path = 't', time_scale = {scale} }}"), folder.path());
        let told = replay(&mut source, &mut drive, &mut |_| None, &mut Silent).unwrap();
        assert_eq!(told.issue_error.unwrap().max_ns, 0);
        told.elapsed_ns - told.latency.p50_ns
    };
    let (normal, fast) = (elapsed("1.0"), elapsed("0.5"));
    assert!(normal.abs_diff(499_000_000) < 100_000, "{normal}");
    assert!(fast.abs_diff(249_500_000) < 100_000, "{fast}");
}

#[test]
fn a_closed_loop_keeps_its_depth_and_its_think_time_and_intends_no_times() {
    let closed = |depth: u32, think_ns: u64| {
        replayed(&format!("{READS}synthetic.pacing.closed = {{ queue_depth = {depth}, think_ns = {think_ns} }}\n"))
    };
    let (one, many, slow) = (closed(1, 0), closed(16, 0), closed(1, 500_000));
    assert_eq!(one.issue_error, None);
    assert!(many.elapsed_ns * 3 < one.elapsed_ns, "{} and {}", many.elapsed_ns, one.elapsed_ns);
    let thought = slow.elapsed_ns - one.elapsed_ns;
    assert!(thought.abs_diff(1999 * 500_000) < 30_000_000, "{thought}");
}

#[test]
fn a_replay_is_stopped_by_its_listener() {
    struct Stop;
    impl Progress for Stop {
        fn advance(&mut self, _: &str, _: f64) -> Result<(), BlockError> {
            Err(BlockError::Interrupted)
        }
    }
    let mut drive = drive();
    let mut source = source(&drive, &format!("{READS}synthetic.pacing.closed.queue_depth = 1\n"), Path::new(""));
    let error = replay(&mut source, &mut drive, &mut |_| None, &mut Stop).unwrap_err().to_string();
    assert!(error.contains("interrupted"), "{error}");
}
