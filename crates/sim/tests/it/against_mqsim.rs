//! The simulator agrees with MQSim on MQSim's own inputs.
//!
//! The reference results stand beside the workspace (`../shared/reference/mqsim`). Where they are not, these tests say
//! so and pass. `cargo run --release -p flashwise-sim --example mqsim_validation` prints the numbers; what remains
//! different and why is in `docs/validation.md`.
use crate::mqsim;

use std::path::{Path, PathBuf};

use mqsim::Outcome;

/// A number of an outcome.
type Count = fn(&Outcome) -> u64;

/// How far a result may be from MQSim's.
struct Tolerance {
    /// Of mean response times and requests.
    time: f64,
    /// Of flash operations.
    count: f64,
}

const EXACT: Tolerance = Tolerance { time: 0.05, count: 0.02 };
/// MQSim loses a part of its write budget for ever whenever a write meets a page that is being moved.
const WITH_COLLECTION: Tolerance = Tolerance { time: 0.15, count: 0.15 };

/// The folder of a case; `None`, with a message, where the reference results are not there.
fn reference(name: &str) -> Option<PathBuf> {
    let folder = mqsim::reference_folder();
    if folder.is_dir() {
        return Some(folder.join(name));
    }
    eprintln!("not compared with MQSim: its reference results are not in {}", folder.display());
    None
}

fn agrees(name: &str, tolerance: &Tolerance) {
    if let Some(case) = reference(name) {
        case_agrees(&case, tolerance);
    }
}

fn case_agrees(case: &Path, tolerance: &Tolerance) {
    let name = case.display();
    let (ours, theirs) = (mqsim::measured(case, &mqsim::traces_folder()), mqsim::expected(case));
    let check = |what: &str, ours: f64, theirs: f64, tolerance: f64| {
        let apart = if theirs == 0.0 { ours } else { (ours / theirs - 1.0).abs() };
        assert!(apart <= tolerance, "{name}: {what}: {ours} here, {theirs} in MQSim");
    };
    for (flow, (&requests, &response_us)) in theirs.requests.iter().zip(&theirs.response_us).enumerate() {
        check(&format!("requests of flow {flow}"), ours.requests[flow] as f64, requests as f64, tolerance.time);
        check(&format!("mean response of flow {flow}, µs"), ours.response_us[flow], response_us, tolerance.time);
    }
    let counts: [(&str, Count); 4] = [
        ("pages read", |it| it.pages_read),
        ("pages programmed", |it| it.pages_programmed),
        ("erases", |it| it.erases),
        ("reads of the map", |it| it.mapping_reads),
    ];
    for (what, of) in counts {
        check(what, of(&ours) as f64, of(&theirs) as f64, tolerance.count);
    }
}

/// Flows on different parts of the drive; runs of MQSim that were made for this, and stand beside the test.
#[test]
fn flows_on_different_channels_chips_and_planes_apart_and_overlapping() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mqsim-parts");
    let cases = mqsim::cases(&folder);
    assert_eq!(cases.len(), 5);
    cases.iter().for_each(|case| case_agrees(case, &EXACT));
}

#[test]
fn one_random_read_at_a_time() {
    agrees("a-randread-qd1-ideal", &EXACT);
}

#[test]
fn one_random_write_at_a_time_without_a_cache() {
    agrees("d-tiny-randwrite-qd1-nogc", &EXACT);
}

#[test]
fn a_trace_of_tpcc_with_the_map_on_flash() {
    agrees("c-tpcc-x20", &EXACT);
}

#[test]
fn a_mix_of_reads_and_cached_writes() {
    agrees("m-mixed70r-small-nogc", &EXACT);
}

#[test]
#[ignore = "long: half a million reads"]
fn sixteen_random_reads_at_a_time() {
    agrees("a-randread-qd16-ideal", &EXACT);
}

#[test]
#[ignore = "long: six hundred thousand flash reads"]
fn sixteen_random_reads_at_a_time_with_the_map_on_flash() {
    agrees("a-randread-qd16-cmt", &EXACT);
}

#[test]
#[ignore = "long: three quarters of a million reads"]
fn thirty_two_random_reads_at_a_time_on_few_chips() {
    agrees("d-tiny-randread-qd32", &EXACT);
}

#[test]
#[ignore = "long: two flows, 370,000 writes and as many entries of the map"]
fn two_flows_of_cached_writes_with_the_map_on_flash() {
    agrees("default-s1-randwrite", &EXACT);
}

#[test]
#[ignore = "long: 700,000 writes until garbage collection has come a thousand times"]
fn cached_writes_with_garbage_collection() {
    agrees("b-tiny-nopre-greedy", &WITH_COLLECTION);
}

/// Programs for each page that the host writes, from one million to two million random writes on a drive of 2 GiB with
/// 20 % over-provisioning, is what MQSim at commit 7ec40e3 has; see [`mqsim::simulated`].
#[test]
#[ignore = "long: three million writes for each policy"]
fn write_amplification_of_both_policies() {
    for (policy, expected) in [("GREEDY", 2.943), ("RGA", 3.100)] {
        let Some(case) = reference("b-tiny-nopre-greedy") else { return };
        let programs = [1_000_000, 2_000_000].map(|writes| {
            let [device, workload] = mqsim::inputs(&case);
            let device = device.replace(">GREEDY<", &format!(">{policy}<"));
            let workload = workload.replace("<Stop_Time>200000000000<", "<Stop_Time>0<");
            let total = format!("<Total_Requests_To_Generate>{writes}<");
            let workload = workload.replace("<Total_Requests_To_Generate>0<", &total);
            mqsim::simulated(&[device, workload], &mqsim::traces_folder()).pages_programmed as f64
        });
        let amplification = (programs[1] - programs[0]) / 1e6;
        assert!((amplification / expected - 1.0).abs() < 0.02, "{policy}: {amplification} here, {expected} in MQSim");
    }
}
