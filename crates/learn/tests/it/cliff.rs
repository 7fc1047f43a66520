//! Where a budget does not allow the whole of garbage collection, a fill and random writes show the raw capacity.

use crate::support;
use flashwise_block::{ByteSize, Silent};
use flashwise_learn::{LearnOptions, learn};
use flashwise_profile::{DeviceProfile, Verdict};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use flashwise_truth::random::random_device;
use flashwise_truth::truth;
use support::{complete, reason, small_config};

/// Learns a drive that may be written so many times.
fn within(config: &DeviceConfig, times: u64) -> DeviceProfile {
    let limit = ByteSize(config.capacity_bytes * times);
    let mut drive = SimulatedSsd::new(config.clone(), 1).unwrap();
    learn(&mut drive, &LearnOptions { max_write: Some(limit), ..complete() }, &mut Silent).unwrap()
}

#[test]
fn over_provisioning_is_learned_within_a_few_writes_of_the_drive_and_without_counters() {
    // Large enough that other probes leave the budget of a fill.
    let mut config = small_config();
    config.capacity_bytes *= 5;
    config.flash.blocks_per_plane *= 5;
    let profile = within(&config, 10);
    assert!(profile.recipe.probes.contains(&"cliff".to_owned()), "{:?}", profile.recipe.probes);
    assert!(!profile.recipe.probes.contains(&"collection".to_owned()), "{:?}", profile.recipe.probes);
    let found = profile.parameters.over_provisioning;
    let there = truth(&config).unwrap().parameters.over_provisioning;
    let (low, high, real) = (found.low.unwrap(), found.high.unwrap(), there.value.unwrap());
    assert!(low <= real && real <= high, "{found:?} {there:?}, {:?}", reason(&profile, "over_provisioning"));
    // On a drive of few superblocks, those that are open and free are a part of it.
    let raw = |share: f64| 1.0 + share;
    assert!((raw(found.value.unwrap()) / raw(real) - 1.0).abs() < 0.02, "{found:?} {there:?}");
}

#[test]
#[ignore = "make test-full runs it: the same on drives from seeds, half a minute"]
fn the_cliff_is_right_on_random_drives_or_says_that_it_is_not_certain() {
    let (mut certain, mut right, mut wrong) = (0, 0, Vec::new());
    for seed in 0..40 {
        let Ok(mut config) = random_device(seed) else { continue };
        // A drive that is small enough to be filled.
        if config.capacity_bytes > 8 << 30 {
            continue;
        }
        config.name = format!("seed {seed}");
        let profile = within(&config, 10);
        let (found, there) =
            (profile.parameters.over_provisioning, truth(&config).unwrap().parameters.over_provisioning);
        if found.verdict != Verdict::Certain {
            continue;
        }
        certain += 1;
        let Some(real) = there.value else { continue };
        let raw_error = (1.0 + found.value.unwrap()) / (1.0 + real) - 1.0;
        println!("seed {seed}: {found:?}, truth {real:.4}, raw {:+.2} %", 100.0 * raw_error);
        if raw_error.abs() < 0.01 {
            right += 1;
        } else {
            wrong.push((seed, raw_error));
        }
    }
    assert!(certain > 0 && wrong.is_empty(), "{certain} certain, {right} within 1 %: {wrong:?}");
}
