//! How well short runs rank configurations: what [`SHORT_SHARE`] rests on.

use flashwise_block::Silent;

use super::*;
use crate::search::Stage;
use crate::sqlite::KeyValueWorkload;
use crate::{DEFAULT_TARGET, ProgramTime};

pub(super) fn profile() -> DeviceProfile {
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

/// What short runs say of full ones.
#[derive(Debug)]
struct Compared {
    /// Rank correlation of the times of all combinations.
    all: f64,
    /// The least of those of the combinations with one page size.
    page_size: f64,
    /// How many combinations with its page size are better in short runs than the best of the full runs.
    better: usize,
}

/// Runs every combination that screening starts from, short and in full.
fn compared(workload: KeyValueWorkload) -> Compared {
    let host = Host::named("ext4", ByteSize::gib(4), ProgramTime::Modelled).unwrap();
    let target = Target::parse(DEFAULT_TARGET).unwrap().with_host(host);
    let options = FitOptions::new(target, Workload::KeyValue(workload));
    let mut budget = Budget::wall(Duration::from_secs(3600), Duration::ZERO);
    let Captured { mut space, full, is_cut, .. } =
        Captured::run(&options, &profile(), &mut budget, &mut Silent).unwrap();
    assert!(!is_cut);
    let short = short_place(&options, &mut space, &full, &budget);
    let jobs: Vec<(Settings, u64)> =
        space.combinations().into_iter().map(|settings| (settings, options.seed)).collect();
    let (stock, mut silent) = (space.stock, Silent);
    let mut bench = SqliteBench::new(space, [short, full], [Objective::Throughput; 2], budget, &mut silent);
    let mut times = |stage| -> Vec<f64> { bench.run_all(stage, &jobs).unwrap().iter().map(Run::time_ns).collect() };
    let [short, full] = [Stage::Screen, Stage::Race].map(&mut times);
    for (n, (settings, _)) in jobs.iter().enumerate() {
        println!("{:>5.2} {:>5.2}  {}", short[0] / short[n], full[0] / full[n], label(&stock, settings));
    }
    let best = (0..full.len()).min_by(|&a, &b| full[a].total_cmp(&full[b])).unwrap();
    let alike = |n: usize| (0..jobs.len()).filter(|&m| jobs[m].0.page == jobs[n].0.page).collect::<Vec<_>>();
    let of = |times: &[f64], places: &[usize]| places.iter().map(|&n| times[n]).collect::<Vec<f64>>();
    let within = |n: usize| rank_correlation(&of(&short, &alike(n)), &of(&full, &alike(n)));
    Compared {
        all: rank_correlation(&short, &full),
        page_size: (0..jobs.len()).map(within).fold(1.0, f64::min),
        better: alike(best).into_iter().filter(|&n| short[n] < short[best]).count(),
    }
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
fn short_runs_rank_configurations_of_a_page_size_as_full_ones_do() {
    let compared = compared(SMALL);
    println!("{compared:?}");
    assert!(compared.all > 0.8 && compared.page_size > 0.8 && compared.better < 2, "{compared:?}");
}

#[test]
#[ignore = "minutes: runs the default workload with every combination"]
fn short_runs_of_the_default_workload_rank_configurations_of_a_page_size_as_full_ones_do() {
    let compared = compared(KeyValueWorkload::QUICK);
    println!("{compared:?}");
    assert!(compared.page_size > 0.9 && compared.better == 0, "{compared:?}");
}
