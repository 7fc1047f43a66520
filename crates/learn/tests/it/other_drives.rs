//! The learner compared with the truth of drives that were not drawn by the generator of random ones: files of
//! `tests/drives`, each with something that the generator does not make.

use std::ops::ControlFlow;

use flashwise_block::{ByteSize, Silent};
use flashwise_learn::score::score;
use flashwise_learn::{Effort, LearnOptions, learn, learn_step_by_step};
use flashwise_profile::Verdict;
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use flashwise_truth::truth;

/// Nothing that is told for certain is wrong, and nine in ten of all figures are right.
fn assert_is_learned(file: &str) {
    let path = format!("{}/tests/drives/{file}.toml", env!("CARGO_MANIFEST_DIR"));
    let config = DeviceConfig::from_toml(&std::fs::read_to_string(&path).unwrap(), &path).unwrap();
    let mut drive = SimulatedSsd::new(config.clone(), 1).unwrap();
    let profile = learn(&mut drive, &LearnOptions::complete(file), &mut Silent).unwrap();
    let score = score(&profile, &truth(&config).unwrap().parameters);
    let wrong: Vec<String> = score
        .figures
        .iter()
        .filter(|figure| !figure.correct)
        .map(|f| format!("{}: {:?} {:?} instead of {:?}", f.figure, f.verdict, f.value, f.truth))
        .collect();
    let is_settled_wrong = score.figures.iter().any(|f| !f.correct && f.verdict != Verdict::Inconclusive);
    assert!(!is_settled_wrong && score.false_features == 0, "{file}: {wrong:#?}");
    assert!(score.correct * 10 >= score.scored * 9, "{file}: {} of {}: {wrong:#?}", score.correct, score.scored);
}

#[test]
fn a_superpage_of_three_channels_is_not_taken_for_a_chunk() {
    assert_is_learned("superpages-over-three-channels");
}

#[test]
fn slow_firmware_hides_volumes_and_nobody_says_that_there_are_none() {
    assert_is_learned("slow-firmware");
}

#[test]
fn units_that_only_the_other_half_of_the_drive_has_are_found() {
    assert_is_learned("two-sets-of-channels");
}

#[test]
fn a_drive_behind_a_slow_link_is_learned() {
    assert_is_learned("slow-link");
}

#[test]
fn a_drive_that_maps_long_pages_is_learned() {
    assert_is_learned("logical-pages-of-16-kib");
}

#[test]
fn a_drive_whose_addresses_are_bound_to_twelve_channels_is_learned() {
    assert_is_learned("static-over-twelve-channels");
}

/// The P4510, cut to a size that is filled in a moment.
fn small_p4510() -> DeviceConfig {
    let mut config = DeviceConfig::preset("intel-p4510").unwrap();
    (config.flash.pages_per_block, config.flash.blocks_per_plane) = (64, 32);
    config.capacity_bytes = ByteSize::mib(800).bytes();
    config
}

/// What the flash programs within a durable write is not that write's own behind a protected buffer.
#[test]
fn the_write_unit_behind_a_protected_buffer_is_the_same_for_each_seed() {
    let config = small_p4510();
    let truth = truth(&config).unwrap().parameters.write_unit_bytes;
    for seed in 1..=2 {
        let mut drive = SimulatedSsd::new(config.clone(), seed).unwrap();
        let options =
            LearnOptions { seed, region: ByteSize::mib(64), effort: Effort::Quick, ..LearnOptions::new("sim:small") };
        let learned = learn_step_by_step(&mut drive, &options, &mut Silent, &mut |profile| match profile
            .recipe
            .probes
            .iter()
            .any(|probe| probe == "durable writes")
        {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        let write_unit = learned.unwrap().profile.parameters.write_unit_bytes;
        assert_eq!(write_unit.known(), truth.known(), "seed {seed}: {write_unit:?}");
    }
}
