//! Going on from a profile: what is finished stays and is not done again, the rest is added, and the profile of another
//! drive is refused.

use crate::support;
use std::ops::ControlFlow;
use std::sync::OnceLock;

use flashwise_block::{BlockError, ByteSize, Nanos, Silent};
use flashwise_learn::{LearnError, LearnOptions, Learned, learn, learn_step_by_step};
use flashwise_profile::DeviceProfile;
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use support::{
    Counting, Notes, complete, entry, is_told, layout, learn_with_checkpoints, reason, small_config, small_drive,
    through_toml,
};

/// A drive learned in one go, with every figure.
fn in_one_go() -> &'static DeviceProfile {
    static PROFILE: OnceLock<DeviceProfile> = OnceLock::new();
    PROFILE.get_or_init(|| learn(&mut small_drive(), &complete(), &mut Silent).unwrap())
}

/// The profile of a run that a user stops as the probe of this name starts.
fn stopped_at(probe: &str, options: &LearnOptions, drive: &mut Counting<SimulatedSsd>) -> DeviceProfile {
    let (learned, checkpoints) = learn_with_checkpoints(drive, options, &mut Notes::stopping_at(probe));
    let learned = learned.unwrap();
    assert_eq!(learned.stopped, Some(LearnError::Device(BlockError::Interrupted)));
    let last = checkpoints.last().map(|last| &last.parameters);
    assert!(last.is_none_or(|last| *last == learned.profile.parameters), "the file has what was known");
    // What continues has been a file in between.
    through_toml(&learned.profile)
}

fn going_on(from: &DeviceProfile, options: &LearnOptions) -> LearnOptions {
    LearnOptions { resume: Some(Box::new(from.clone())), ..options.clone() }
}

/// A run that was stopped as a probe started, and the run that continued from its profile on the same drive.
struct Resumed {
    probe: &'static str,
    partial: DeviceProfile,
    partial_written: u64,
    learned: Learned,
    /// What the second run started.
    stages: Vec<String>,
    /// By both.
    written: u64,
}

/// One for each probe.
fn resumed() -> &'static [Resumed] {
    static RUNS: OnceLock<Vec<Resumed>> = OnceLock::new();
    RUNS.get_or_init(|| {
        let run = |probe: &'static String| {
            let options = complete();
            let mut drive = Counting::new(small_drive());
            let partial = stopped_at(probe, &options, &mut drive);
            let partial_written = drive.bytes_written;
            let mut notes = Notes::default();
            let (learned, _) = learn_with_checkpoints(&mut drive, &going_on(&partial, &options), &mut notes);
            let (learned, stages, written) = (learned.unwrap(), notes.stages, drive.bytes_written);
            Resumed { probe, partial, partial_written, learned, stages, written }
        };
        in_one_go().recipe.probes.iter().map(run).collect()
    })
}

/// Whatever has a curve has one of each kind.
fn assert_each_curve_once(profile: &DeviceProfile) {
    let curves = &profile.curves;
    let mut names: Vec<String> = curves.probes.iter().map(|curve| curve.name.clone()).collect();
    names.extend(curves.throughput.iter().map(|curve| format!("{:?} {}", curve.operation, curve.request_bytes)));
    let location = |curve: &flashwise_profile::LocationCurve| format!("{} by {}", curve.read_bytes, curve.step_bytes);
    names.extend(curves.location.iter().map(location));
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all, "a curve is there twice: {names:?}");
}

#[test]
fn stopped_at_any_probe_the_rest_is_done_and_what_was_finished_is_not_done_again() {
    let whole = in_one_go();
    for (n, Resumed { probe, partial, partial_written, learned, stages, written }) in resumed().iter().enumerate() {
        assert_eq!(partial.recipe.probes, whole.recipe.probes[..n]);
        assert_eq!(partial.recipe.bytes_written, *partial_written);

        assert_eq!(learned.stopped, None);
        let profile = &learned.profile;
        assert_eq!(profile.recipe.probes, whole.recipe.probes, "from {probe} on");
        assert_eq!(profile.recipe.bytes_written, *written, "what both runs wrote is said");
        for done in &partial.recipe.probes {
            assert!(!stages.contains(done), "from {probe} on: {done} was done again");
        }
        for figure in partial.parameters.entries().into_iter().filter(is_told) {
            let then = entry(profile, figure.key);
            assert_eq!((then.figure.value, then.key), (figure.figure.value, figure.key), "from {probe} on");
        }
        assert_each_curve_once(profile);
    }
}

/// What few samples tell in one run and not in the next.
const TOLD_BY_CHANCE: [&str; 2] = ["compression_gain", "deduplication_gain"];

#[test]
fn a_profile_that_was_gone_on_from_tells_every_figure_that_one_run_tells() {
    let whole = in_one_go();
    let told = || whole.parameters.entries().into_iter().filter(is_told);
    let mut missing = Vec::new();
    for Resumed { probe, learned, .. } in resumed() {
        let profile = &learned.profile;
        for told in told().filter(|told| !TOLD_BY_CHANCE.contains(&told.key)) {
            if !is_told(&entry(profile, told.key)) {
                missing.push(format!("from {probe} on: {}, {:?}", told.key, reason(profile, told.key)));
            }
        }
    }
    assert!(missing.is_empty(), "not told: {missing:#?}");
}

#[test]
fn a_finished_profile_has_nothing_left_to_do() {
    let whole = in_one_go();
    let mut drive = Counting::new(small_drive());
    let profile = learn(&mut drive, &going_on(whole, &complete()), &mut Silent).unwrap();
    assert_eq!(drive.all(), 0);
    assert_eq!(&profile, whole);
}

#[test]
fn what_a_write_budget_left_out_is_done_by_a_run_that_may_write_more() {
    let options = layout();
    let whole = learn(&mut small_drive(), &options, &mut Silent).unwrap();
    let mut drive = Counting::new(small_drive());
    let limited = LearnOptions { max_write: Some(ByteSize(whole.recipe.bytes_written / 2)), ..options.clone() };
    let partial = learn_with_checkpoints(&mut drive, &limited, &mut Silent).0.unwrap().profile;
    assert!(partial.recipe.probes.len() < whole.recipe.probes.len(), "{:?}", partial.recipe.probes);
    let profile = learn(&mut drive, &going_on(&through_toml(&partial), &options), &mut Silent).unwrap();
    let mut probes = profile.recipe.probes.clone();
    probes.sort();
    let mut all = whole.recipe.probes.clone();
    all.sort();
    assert_eq!(probes, all);
    for told in whole.parameters.entries().into_iter().filter(is_told) {
        let about = reason(&profile, told.key).unwrap_or_default();
        assert!(is_told(&entry(&profile, told.key)) && !about.contains("--max-write"), "{}: {about}", told.key);
    }
    assert_each_curve_once(&profile);
}

#[test]
fn a_probe_that_lacks_what_another_was_to_show_is_not_taken_for_done() {
    let mut drive = Counting::new(small_drive());
    let limited = LearnOptions { max_write: Some(ByteSize::mib(1)), ..complete() };
    let partial = learn_with_checkpoints(&mut drive, &limited, &mut Silent).0.unwrap().profile;
    assert!(partial.recipe.probes.is_empty(), "{:?}", partial.recipe.probes);
    let profile = learn(&mut drive, &going_on(&through_toml(&partial), &complete()), &mut Silent).unwrap();
    assert_eq!(profile.recipe.probes, in_one_go().recipe.probes);
    let about = reason(&profile, "hot_location_survives_writes").unwrap();
    assert!(!about.contains("skipped"), "{about}");
}

#[test]
fn what_a_time_budget_left_out_is_done_by_a_run_with_more_time() {
    let options = layout();
    let whole = learn(&mut small_drive(), &options, &mut Silent).unwrap();
    for share in [4, 2] {
        let mut drive = Counting::new(small_drive());
        let budget = Nanos(whole.recipe.device_time_ns / share);
        let limited = LearnOptions { time_budget: Some(budget), ..options.clone() };
        let partial = learn_with_checkpoints(&mut drive, &limited, &mut Silent).0.unwrap().profile;
        assert!(partial.recipe.probes.len() < whole.recipe.probes.len(), "{:?}", partial.recipe.probes);
        let profile = learn(&mut drive, &going_on(&through_toml(&partial), &options), &mut Silent).unwrap();
        assert_eq!(profile.recipe.probes, whole.recipe.probes);
        assert!(!profile.evidence.iter().any(|evidence| evidence.reason.contains("--time-budget")));
        assert_each_curve_once(&profile);
    }
}

#[test]
fn a_run_that_is_stopped_many_times_gets_to_the_end() {
    let options = layout();
    let whole = learn(&mut small_drive(), &options, &mut Silent).unwrap();
    let mut drive = Counting::new(small_drive());
    let mut profile: Option<DeviceProfile> = None;
    for probe in &whole.recipe.probes {
        let on = profile.as_ref().map_or_else(|| options.clone(), |from| going_on(from, &options));
        profile = Some(stopped_at(probe, &on, &mut drive));
    }
    let end = learn(&mut drive, &going_on(profile.as_ref().unwrap(), &options), &mut Silent).unwrap();
    assert_eq!(end.recipe.probes, whole.recipe.probes);
    assert_eq!(end.recipe.bytes_written, drive.bytes_written);
    assert_eq!(end.recipe.bytes_read, drive.bytes_read);
    assert_each_curve_once(&end);
}

#[test]
fn the_profile_of_another_drive_is_refused_before_anything_is_done() {
    let ours = learn(&mut small_drive(), &layout(), &mut Silent).unwrap();
    let mut of_another_name = ours.clone();
    of_another_name.device.name = "another".to_owned();
    let mut of_another_size = ours;
    of_another_size.device.capacity_bytes += 1 << 20;
    for theirs in [of_another_name, of_another_size] {
        let mut drive = Counting::new(small_drive());
        let error = learn(&mut drive, &going_on(&theirs, &layout()), &mut Silent).unwrap_err();
        let LearnError::OtherDrive { .. } = error else { panic!("{error:?}") };
        let words = error.to_string();
        assert!(words.contains(&theirs.device.name) && words.contains(&small_config().name), "{words}");
        assert_eq!(drive.all(), 0);
    }
}

#[test]
fn a_user_who_stops_at_any_moment_has_a_profile_that_can_be_read_and_gone_on_from() {
    let mut notes = Notes::default();
    let options = layout();
    learn_with_checkpoints(&mut small_drive(), &options, &mut notes).0.unwrap();
    for tenth in 0..10 {
        let call = 1 + notes.calls() * tenth / 10;
        let mut drive = Counting::new(small_drive());
        let (learned, _) = learn_with_checkpoints(&mut drive, &options, &mut Notes::stopping_at_call(call));
        let profile = learned.unwrap().profile;
        assert_eq!(through_toml(&profile), profile);
        assert_eq!(profile.recipe.bytes_written, drive.bytes_written);
        let end = learn(&mut drive, &going_on(&profile, &options), &mut Silent).unwrap();
        assert_eq!(end.recipe.probes.len(), 6, "{:?}", end.recipe.probes);
        assert_each_curve_once(&end);
    }
}

#[test]
fn what_the_drive_promises_is_kept_as_it_reports_it_now() {
    let promising = |unit: Option<u64>, resume: Option<&DeviceProfile>| {
        // The small drive is SATA, which has no such promise.
        let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
        config.host.atomic_write_bytes = unit;
        let options = LearnOptions { resume: resume.cloned().map(Box::new), ..layout() };
        let mut drive = SimulatedSsd::new(config, 1).unwrap();
        let stop = &mut |_: &DeviceProfile| ControlFlow::Break(());
        learn_step_by_step(&mut drive, &options, &mut Silent, stop).unwrap().profile
    };
    let none = promising(None, None);
    assert_eq!(none.device.promised_atomic_write_bytes, None);
    let kept = promising(Some(16 << 10), Some(&none));
    assert_eq!(through_toml(&kept).device.promised_atomic_write_bytes, Some(16 << 10));
}
