//! How long it takes to learn a simulated drive, all probes included.
#![allow(clippy::expect_used, reason = "a benchmark has nobody to hand an error to")]

use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use flashwise_block::Silent;
use flashwise_learn::{LearnOptions, learn};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

const PRESET: &str = "samsung-960-evo";

fn new_drive() -> SimulatedSsd {
    let config = DeviceConfig::preset(PRESET).expect("the preset exists");
    SimulatedSsd::new(config, 1).expect("the preset is possible")
}

fn learn_a_drive(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("learn");
    group.sample_size(10).warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(20));
    let options = LearnOptions::new(format!("sim:{PRESET}"));
    group.bench_function(PRESET, |bencher| {
        bencher.iter_batched(
            new_drive,
            |mut drive| learn(&mut drive, &options, &mut Silent).expect("the drive can be learned"),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group!(benches, learn_a_drive);
criterion_main!(benches);
