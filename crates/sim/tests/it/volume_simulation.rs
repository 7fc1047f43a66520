//! Workloads on cloud volumes.

use std::path::Path;

use flashwise_block::Silent;
use flashwise_sim::{Machine, Precondition, Simulation, SimulationOptions};
use flashwise_trace::workload::Workload;

fn run(machine: &Machine, precondition: Precondition) -> Simulation {
    let text = "name = \"reads\"\n[[flows]]\nrequests = 9_000\nsynthetic.access = \"random\"\n\
                synthetic.read_share = 1.0\nsynthetic.size.fixed.bytes = 4096\n\
                synthetic.pacing.closed.queue_depth = 32\n";
    let workload = Workload::from_toml(text, "reads.toml").unwrap();
    let options = SimulationOptions { precondition, ..SimulationOptions::default() };
    machine.simulate(&workload, Path::new("."), &options, &mut Silent).unwrap()
}

#[test]
fn gp3_serves_its_iops_and_its_report_names_the_limit() {
    let found = run(&Machine::preset("gp3").unwrap(), Precondition::Empty);
    assert!((found.total.iops / 3_000.0 - 1.0).abs() < 0.01, "{}", found.total.iops);
    assert_eq!((found.target_name(), found.device.is_none()), ("EBS gp3, 3,000 IOPS, 125 MiB/s, 100 GiB", true));
    let volume = found.volume.unwrap();
    assert!(volume.limits[0].delayed > 8_000 && volume.limits[1].delayed == 0, "{:?}", volume.limits);
    let exceeded = volume.limits[0].exceeded.0 as f64 / found.elapsed_ns as f64;
    assert!((0.9..=1.0).contains(&exceeded), "{exceeded}");
}

#[test]
fn a_volume_on_a_simulated_drive_has_the_drives_state_and_counters() {
    let text = "name = \"v\"\ncapacity_bytes = 107_374_182_400\nmax_transfer_bytes = 131_072\n\
                medium.drive = \"toshiba-xg5\"\nlimits = [{ name = \"IOPS\", counts = \"requests\", rate_per_s = 5_000 }]";
    let machine = Machine::from_toml(text, "v.toml").unwrap();
    let found = run(&machine, Precondition::Fill);
    assert!((found.total.iops / 5_000.0 - 1.0).abs() < 0.01, "{}", found.total.iops);
    assert!(found.flash.reads >= 9_000 && found.device.is_some(), "{}", found.flash.reads);
}

#[test]
fn the_same_seed_gives_the_same_result() {
    let machine = Machine::preset("gcp-pd-balanced").unwrap();
    let [one, other] = [1, 2].map(|_| run(&machine, Precondition::Empty).without_process());
    assert!(one == other);
}
