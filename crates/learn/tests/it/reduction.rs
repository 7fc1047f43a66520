//! Simulated drives that store less than they are given, learned from outside.

use crate::support;
use flashwise_block::{ByteSize, Silent};
use flashwise_learn::{Effort, LearnOptions, learn};
use flashwise_profile::{DeviceProfile, Quantity, Verdict};
use flashwise_ssd::config::{CompressionConfig, DeduplicationConfig, Placement, ReductionConfig};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use support::{complete, entry, reason, small_config};

/// The gain is there, as far as its interval goes.
fn assert_gain(profile: &DeviceProfile, key: &str) {
    let figure = entry(profile, key).figure;
    let least = match figure.low {
        Some(Quantity::Ratio(least)) => least,
        other => panic!("{key}: {other:?}, {figure:?}, {:?}", reason(profile, key)),
    };
    assert!(least > 1.2, "{key}: {figure:?}, {:?}", reason(profile, key));
}

/// The small drive, bound by its flash, with what it does to store less.
fn reducing(compression: bool, deduplication: bool) -> DeviceConfig {
    let mut config = DeviceConfig { name: "reducing".to_owned(), ..small_config() };
    // A drive that compresses keeps a little more free.
    config.capacity_bytes = ByteSize::mib(92).bytes();
    config.controller.power_loss_protection = true;
    config.host.logical_block_bytes = 4096;
    config.ftl.placement = Placement::RoundRobin;
    config.reduction = Some(ReductionConfig {
        physical_bytes: None,
        compression: compression.then(CompressionConfig::default),
        deduplication: deduplication.then(DeduplicationConfig::default),
    });
    config
}

fn learned(compression: bool, deduplication: bool) -> DeviceProfile {
    learned_of(reducing(compression, deduplication))
}

fn learned_of(config: DeviceConfig) -> DeviceProfile {
    let mut drive = SimulatedSsd::new(config, 1).unwrap();
    let options = LearnOptions { effort: Effort::Thorough, ..complete() };
    learn(&mut drive, &options, &mut Silent).unwrap()
}

fn assert_absent(profile: &DeviceProfile, key: &str) {
    assert_eq!(entry(profile, key).figure.verdict, Verdict::Absent, "{key}: {:?}", reason(profile, key));
}

#[test]
fn a_drive_that_compresses_is_found_to_and_not_to_deduplicate() {
    let profile = learned(true, false);
    assert_gain(&profile, "compression_gain");
    assert_absent(&profile, "deduplication_gain");
}

#[test]
fn a_drive_that_deduplicates_is_found_to_and_not_to_compress() {
    let profile = learned(false, true);
    assert_gain(&profile, "deduplication_gain");
    assert_absent(&profile, "compression_gain");
}

#[test]
fn of_a_drive_that_cannot_be_filled_all_is_learned_that_does_not_need_it() {
    let mut config = reducing(true, false);
    // Room for the region that is probed, and not for the whole drive.
    config.reduction.as_mut().unwrap().physical_bytes = Some(ByteSize::mib(80).bytes());
    let profile = learned_of(config);
    assert_gain(&profile, "compression_gain");
    for key in ["collection_onset_bytes", "superblock_bytes", "slc_cache_bytes"] {
        assert_eq!(entry(&profile, key).figure.verdict, Verdict::Inconclusive, "{key}");
        assert!(reason(&profile, key).is_some_and(|why| why.contains("thin-provisioned")), "{key}");
    }
}
