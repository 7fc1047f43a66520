//! Budgets: no byte is written beyond the one, nothing is started after the other, and each figure that was left out
//! says for which.

use crate::support;
use std::sync::OnceLock;

use flashwise_block::{BlockDevice, ByteSize, Clock, DeviceInfo, Nanos, Silent};
use flashwise_learn::{Effort, LearnError, LearnOptions, Learned, QuickLimits, Scope, learn};
use flashwise_profile::{DeviceProfile, Verdict};
use support::{Counting, complete, is_told, layout, learn_with_checkpoints, reason, small_drive, through_toml};

/// Every figure, without any budget.
fn without_budget() -> &'static DeviceProfile {
    static PROFILE: OnceLock<DeviceProfile> = OnceLock::new();
    PROFILE.get_or_init(|| learn(&mut small_drive(), &complete(), &mut Silent).unwrap())
}

/// Learns within a budget; gives what came of it, what the drive was given to write, and its time.
fn within(options: &LearnOptions) -> (Learned, u64, Nanos) {
    let mut drive = Counting::new(small_drive());
    let (learned, _) = learn_with_checkpoints(&mut drive, options, &mut Silent);
    let learned = learned.unwrap();
    assert_eq!(drive.outstanding(), 0);
    assert_eq!(learned.profile.recipe.bytes_written, drive.bytes_written, "the profile says what was written");
    assert_eq!(through_toml(&learned.profile), learned.profile);
    (learned, drive.bytes_written, drive.now())
}

/// Each figure of a run without budget is told, or its evidence names the budget.
fn assert_left_out_for(profile: &DeviceProfile, budget: &str) {
    for entry in without_budget().probed_entries() {
        let ours = support::entry(profile, entry.key);
        let about = reason(profile, entry.key).unwrap_or_default();
        let says_why = about.contains(budget) || about.contains("the limit is");
        let was_done = !about.is_empty() && !about.contains("--");
        assert!(is_told(&ours) || says_why || was_done, "{}: {about:?}", entry.key);
    }
    for entry in profile.parameters.entries() {
        let about = reason(profile, entry.key).unwrap_or_default();
        let left_out = about.contains(budget);
        assert!(!left_out || entry.figure.verdict == Verdict::Inconclusive, "{}: {about}", entry.key);
    }
}

#[test]
fn no_byte_is_written_beyond_the_limit() {
    let needed = without_budget().recipe.bytes_written;
    let mib = 1 << 20;
    let limits = (1..16).step_by(5).map(|n| needed * n / 16).chain([64 * mib, needed - 1]);
    for limit in limits {
        let (learned, written, _) = within(&LearnOptions { max_write: Some(ByteSize(limit)), ..complete() });
        assert!(written <= limit, "{written} of {limit} bytes");
        assert_eq!(learned.stopped, None, "{limit}");
        assert!(learned.profile.recipe.probes.len() < without_budget().recipe.probes.len(), "{limit}");
        assert_left_out_for(&learned.profile, "--max-write");
    }
}

#[test]
fn a_limit_that_suffices_changes_nothing_of_what_decides_the_layout() {
    let free = learn(&mut small_drive(), &layout(), &mut Silent).unwrap();
    let limit = Some(ByteSize(free.recipe.bytes_written));
    let (learned, ..) = within(&LearnOptions { max_write: limit, ..layout() });
    assert_eq!(learned.profile, free);
}

#[test]
fn a_limit_that_allows_nothing_is_an_error_that_names_it() {
    for limit in [ByteSize(0), ByteSize(4095), ByteSize::kib(16), ByteSize::mib(1), ByteSize::mib(8)] {
        let options = LearnOptions { max_write: Some(limit), ..layout() };
        let (learned, on_drive, _) = within(&options);
        assert!(on_drive <= limit.bytes(), "{on_drive} of {limit}");
        let Some(why @ LearnError::WriteLimit { written, .. }) = learned.stopped else {
            panic!("{:?}", learned.stopped)
        };
        assert_eq!(
            written,
            ByteSize(on_drive),
            "what the probes wrote that came after the one that was stopped counts"
        );
        assert!(why.to_string().contains(&format!("--max-write {limit}")), "{why}");
        assert_eq!(learn(&mut small_drive(), &options, &mut Silent).unwrap_err(), why);
    }
}

#[test]
fn nothing_is_begun_after_the_end_of_the_time() {
    let needed = without_budget().recipe.device_time_ns;
    // What was started is ended: a batch of requests, or what becomes steady before one, which is half of the drive at
    // most.
    let slack = Nanos::millis(4000);
    for share in [2, 5, 30] {
        let budget = Nanos(needed / share);
        let (learned, _, took) = within(&LearnOptions { time_budget: Some(budget), ..complete() });
        assert!(took.0 <= budget.0 + slack.0, "{took} of {budget}");
        assert!(learned.profile.recipe.probes.len() < without_budget().recipe.probes.len());
        if learned.stopped.is_none() {
            assert_left_out_for(&learned.profile, "--time-budget");
        }
    }
}

#[test]
fn a_time_that_suffices_changes_nothing() {
    let free = learn(&mut small_drive(), &layout(), &mut Silent).unwrap();
    let budget = Some(Nanos(free.recipe.device_time_ns));
    let (learned, ..) = within(&LearnOptions { time_budget: budget, ..layout() });
    assert_eq!(learned.profile, free);
}

#[test]
fn a_time_that_allows_nothing_is_an_error_that_names_it() {
    for budget in [Nanos(0), Nanos(1), Nanos::micros(100)] {
        let (learned, ..) = within(&LearnOptions { time_budget: Some(budget), ..layout() });
        assert_eq!(learned.stopped, Some(LearnError::TimeBudget));
        assert!(LearnError::TimeBudget.to_string().contains("--time-budget"));
    }
}

/// A drive that counts as a real one.
struct Real<D> {
    drive: D,
    info: DeviceInfo,
}

impl<D: BlockDevice> Real<D> {
    fn new(drive: D) -> Self {
        let info = DeviceInfo { clock: Clock::Wall, ..drive.info().clone() };
        Self { drive, info }
    }
}

impl<D: BlockDevice> BlockDevice for Real<D> {
    flashwise_block::forward!(drive: now submit wait outstanding pause counters writable);

    fn info(&self) -> &DeviceInfo {
        &self.info
    }
}

#[test]
fn on_a_real_drive_the_flush_is_measured_first_and_what_a_quick_run_does_not_reach_was_not_tried() {
    let mut drive = Real::new(small_drive());
    let quick_limits = QuickLimits { write: true, time: true };
    let limit = Some(ByteSize::mib(70));
    let options =
        LearnOptions { max_write: limit, quick_limits, effort: Effort::Quick, whole_drive: false, ..complete() };
    let (learned, _) = learn_with_checkpoints(&mut drive, &options, &mut Silent);
    let profile = learned.unwrap().profile;
    assert_eq!(profile.recipe.probes.first().map(String::as_str), Some("durability"));
    assert_eq!(profile.parameters.flush_ns.verdict, Verdict::Certain, "{:?}", profile.parameters.flush_ns);
    let unit = profile.evidence.iter().find(|evidence| evidence.figure == "write_unit_bytes").unwrap();
    assert!(unit.not_tried && unit.reason.contains("the write limit of a quick run"), "{unit:?}");
    assert!(!unit.reason.contains("by --max-write"), "a limit that nobody gave: {unit:?}");
    let flush = profile.evidence.iter().find(|evidence| evidence.figure == "flush_ns").unwrap();
    assert!(!flush.not_tried);
    assert_eq!(through_toml(&profile), profile);
}

#[test]
fn the_cost_of_durability_alone_is_a_scope() {
    let options = LearnOptions { scope: Scope::Durability, ..complete() };
    let (learned, ..) = within(&options);
    assert_eq!(learned.profile.recipe.probes, ["durability"]);
    assert_eq!(learned.profile.parameters.flush_ns.verdict, Verdict::Certain);
}

#[test]
fn a_region_that_is_too_small_is_an_error_before_anything_is_done() {
    let mut drive = Counting::new(small_drive());
    let options = LearnOptions { region: ByteSize::mib(63), ..layout() };
    let error = learn(&mut drive, &options, &mut Silent).unwrap_err();
    assert!(matches!(error, LearnError::TooSmall { .. }), "{error:?}");
    assert_eq!(drive.all(), 0);
}
