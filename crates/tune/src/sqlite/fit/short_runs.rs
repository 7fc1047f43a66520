//! How well short runs rank configurations: what [`SHORT_SHARE`] rests on.

use flashwise_block::Silent;

use super::*;
use crate::search::FINALISTS;
use crate::sqlite::KeyValueWorkload;
use crate::{DEFAULT_TARGET, ProgramTime};

fn profile() -> DeviceProfile {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../sqlite/tests/samsung-960-evo.toml");
    DeviceProfile::from_toml(&std::fs::read_to_string(path).unwrap(), path).unwrap()
}

/// Places of values, the least first.
fn ranks(values: &[f64]) -> Vec<f64> {
    values.iter().map(|own| values.iter().filter(|other| *other < own).count() as f64).collect()
}

/// Spearman's rank correlation: Pearson's of the ranks.
fn rank_correlation(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (ranks(a), ranks(b));
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    let (mean_a, mean_b) = (mean(&a), mean(&b));
    let covariance = |x: &[f64], mean_x: f64, y: &[f64], mean_y: f64| {
        x.iter().zip(y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>()
    };
    covariance(&a, mean_a, &b, mean_b)
        / (covariance(&a, mean_a, &a, mean_a) * covariance(&b, mean_b, &b, mean_b)).sqrt()
}

/// Runs every combination that screening starts from, short and in full: the correlation of the ranks of their times,
/// and the place that the best of the full runs has among the short ones.
fn compared(workload: KeyValueWorkload) -> (f64, usize) {
    let host = Host::named("ext4", ByteSize::gib(4), ProgramTime::Modelled).unwrap();
    let target = Target::parse(DEFAULT_TARGET).unwrap().with_host(host);
    let options = FitOptions::new(target, Workload::KeyValue(workload));
    let budget = Budget { started: Instant::now(), time: Duration::from_secs(3600) };
    let Captured { space, full, is_cut, .. } = Captured::run(&options, &profile(), budget, &mut Silent).unwrap();
    assert!(!is_cut);
    let short = short_place(&options, &space, &full);
    let jobs: Vec<(Settings, u64)> = space.first().into_iter().map(|settings| (settings, options.seed)).collect();
    let mut silent = Silent;
    let mut bench = SqliteBench::new(space, [short, full], [Objective::Throughput; 2], budget, &mut silent);
    let mut times = |stage| -> Vec<f64> { bench.run_all(stage, &jobs).unwrap().iter().map(Run::time_ns).collect() };
    let [short, full] = [Stage::Screen, Stage::Race].map(&mut times);
    let best = (0..full.len()).min_by(|&a, &b| full[a].total_cmp(&full[b])).unwrap();
    (rank_correlation(&short, &full), ranks(&short)[best] as usize)
}

/// A fiftieth of the default workload, with as much of its page cache.
const SMALL: KeyValueWorkload = KeyValueWorkload {
    rows: KeyValueWorkload::QUICK.rows / 50,
    inserts_per_round: KeyValueWorkload::QUICK.inserts_per_round / 50,
    selects_per_round: KeyValueWorkload::QUICK.selects_per_round / 50,
    inserts_per_transaction: KeyValueWorkload::QUICK.inserts_per_transaction / 50,
    page_cache: ByteSize(KeyValueWorkload::QUICK.page_cache.0 / 50),
    ..KeyValueWorkload::QUICK
};

#[test]
fn short_runs_rank_configurations_as_full_ones_do() {
    let (correlation, place) = compared(SMALL);
    println!("rank correlation {correlation:.3}; the best in full runs has place {place} in short ones");
    assert!(correlation > 0.8 && place < FINALISTS, "{correlation}, place {place}");
}

#[test]
#[ignore = "minutes: loads the default workload for every combination, twice"]
fn short_runs_of_the_default_workload_rank_configurations_nearly_as_full_ones_do() {
    let (correlation, place) = compared(KeyValueWorkload::QUICK);
    println!("rank correlation {correlation:.3}; the best in full runs has place {place} in short ones");
    // Measured: 0.82, and the best is just beyond the finalists.
    assert!(correlation > 0.7 && place <= FINALISTS + 2, "{correlation}, place {place}");
}
