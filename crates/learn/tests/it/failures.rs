//! A drive that fails in the middle: learning ends and says what happened, what was finished before is kept to the bit,
//! and nothing is left in flight.
//!
//! The same request of the same seed meets the same place in the work each time, so what must be kept is known: it is
//! what a drive without faults had shown after the same probes.

use crate::support;
use std::sync::OnceLock;

use flashwise_block::{BlockDevice, BlockError, ByteSize, Fault, FaultyDevice, Nanos, Operation, Silent};
use flashwise_learn::{LearnError, LearnOptions, Learned};
use flashwise_profile::{DeviceProfile, Figure, Quantity, Verdict};
use flashwise_ssd::SimulatedSsd;
use support::{Counting, Notes, complete, entry, is_told, layout, learn_with_checkpoints, small_drive, through_toml};

/// Numbers of errors on Linux.
const EIO: i32 = 5;
const EOPNOTSUPP: i32 = 95;

/// What the drive without faults shows.
struct Clean {
    options: LearnOptions,
    profile: DeviceProfile,
    checkpoints: Vec<DeviceProfile>,
    /// Requests of all operations, and of each by its number.
    requests: u64,
    requests_of: [u64; 5],
}

impl Clean {
    fn of(options: LearnOptions) -> Self {
        let mut drive = Counting::new(small_drive());
        let (learned, checkpoints) = learn_with_checkpoints(&mut drive, &options, &mut Silent);
        let learned = learned.unwrap();
        assert_eq!(learned.stopped, None);
        let (requests, requests_of) = (drive.all(), drive.requests);
        Self { options, profile: learned.profile, checkpoints, requests, requests_of }
    }

    fn layout() -> &'static Self {
        static CLEAN: OnceLock<Clean> = OnceLock::new();
        CLEAN.get_or_init(|| Self::of(layout()))
    }

    fn complete() -> &'static Self {
        static CLEAN: OnceLock<Clean> = OnceLock::new();
        CLEAN.get_or_init(|| Self::of(complete()))
    }

    /// So many of the requests, early and late ones.
    fn some(requests: u64, count: u64) -> impl Iterator<Item = u64> {
        // Four times as many where the random tests have more cases too.
        let count = if std::env::var_os("PROPTEST_CASES").is_some() { count } else { count.div_ceil(4) };
        // The golden ratio spreads any number of points evenly.
        (1..=count).map(move |n| 1 + ((n as f64 * 0.618_034).fract() * requests as f64) as u64)
    }

    fn some_of(&self, operation: Operation, count: u64) -> impl Iterator<Item = u64> {
        Self::some(self.requests_of[operation as usize], count)
    }

    /// Learns a drive with a fault in it, which must end it.
    fn ends(&self, drive: FaultyDevice<SimulatedSsd>) -> (LearnError, Counting<FaultyDevice<SimulatedSsd>>) {
        let mut drive = Counting::new(drive);
        let (learned, checkpoints) = learn_with_checkpoints(&mut drive, &self.options, &mut Silent);
        let learned = learned.unwrap();
        self.assert_keeps_what_was_finished(&learned, &checkpoints);
        assert!(drive.outstanding() == 0 || drive.lost, "{} requests were not waited for", drive.outstanding());
        (learned.stopped.expect("learning ended as if nothing had happened"), drive)
    }

    fn assert_keeps_what_was_finished(&self, learned: &Learned, checkpoints: &[DeviceProfile]) {
        let kept = &learned.profile;
        let same = |then: &&DeviceProfile| then.recipe.probes == kept.recipe.probes;
        let at_last = checkpoints.last().map_or(&[][..], |last| &last.recipe.probes[..]);
        assert_eq!(kept.recipe.probes, at_last, "the last checkpoint has the same probes");
        match self.checkpoints.iter().find(same) {
            Some(then) => assert_same_knowledge(kept, then),
            None => {
                assert!(kept.recipe.probes.is_empty(), "{:?}", kept.recipe.probes);
                assert!(!kept.parameters.entries().iter().any(is_told), "{:?}", kept.parameters);
            }
        }
        for (ours, clean) in std::iter::zip(checkpoints, &self.checkpoints) {
            assert_same_knowledge(ours, clean);
        }
        assert_eq!(&through_toml(kept), kept);
    }
}

/// The same figures, from the same curves, for the same reasons.
fn assert_same_knowledge(ours: &DeviceProfile, theirs: &DeviceProfile) {
    let probes = &ours.recipe.probes;
    for (ours, theirs) in std::iter::zip(ours.parameters.entries(), theirs.parameters.entries()) {
        assert_eq!(ours, theirs, "after {probes:?}");
    }
    let about = |profile: &DeviceProfile| -> Vec<String> {
        profile.evidence.iter().map(|evidence| format!("{}: {}", evidence.figure, evidence.reason)).collect()
    };
    assert_eq!(about(ours), about(theirs), "after {probes:?}");
    assert!(ours.curves == theirs.curves, "curves are not the same after {probes:?}");
}

fn failing(n: u64, fault: Fault) -> FaultyDevice<SimulatedSsd> {
    FaultyDevice::new(small_drive()).with_nth(n, fault)
}

fn failing_of(operation: Operation, n: u64, fault: Fault) -> FaultyDevice<SimulatedSsd> {
    FaultyDevice::new(small_drive()).with_nth_of(operation, n, fault)
}

#[test]
fn an_error_of_any_request_ends_learning_with_the_drive_s_own_words() {
    let clean = Clean::layout();
    for n in Clean::some(clean.requests, 40).chain([1, 2, clean.requests]) {
        let (why, drive) = clean.ends(failing(n, Fault::Fail(EIO)));
        let words = why.to_string();
        assert!(words.contains("injected fault") && words.contains("at byte"), "request {n}: {words}");
        assert!(matches!(why, LearnError::Device(BlockError::Os { errno: EIO, .. })), "request {n}: {why:?}");
        assert_eq!(drive.outstanding(), 0);
    }
}

#[test]
fn a_read_a_write_and_a_flush_that_fail_are_each_told_as_what_they_are() {
    let clean = Clean::complete();
    for operation in [Operation::Read, Operation::Write, Operation::Flush] {
        for n in clean.some_of(operation, 5).chain([1]) {
            let (why, _) = clean.ends(failing_of(operation, n, Fault::Fail(EIO)));
            let words = why.to_string();
            assert!(words.starts_with(&format!("{operation:?} of ")), "{operation:?} {n}: {words}");
        }
    }
}

#[test]
fn a_drive_that_takes_no_trims_is_learned_all_the_same() {
    let clean = Clean::complete();
    let trims = clean.requests_of[Operation::Trim as usize];
    assert!(trims > 0, "the probes trim");
    for n in Clean::some(trims, 12) {
        let mut drive = Counting::new(failing_of(Operation::Trim, n, Fault::Fail(EOPNOTSUPP)));
        let (learned, _) = learn_with_checkpoints(&mut drive, &clean.options, &mut Silent);
        let learned = learned.unwrap();
        assert_eq!((drive.outstanding(), learned.stopped), (0, None), "trim {n}");
        assert_eq!(learned.profile.recipe.probes, clean.profile.recipe.probes, "trim {n}");
    }
}

#[test]
fn a_trim_that_fails_ends_learning_as_any_request_does() {
    let clean = Clean::complete();
    let (why, _) = clean.ends(failing_of(Operation::Trim, 1, Fault::Fail(EIO)));
    assert!(why.to_string().starts_with("Trim of "), "{why}");
}

#[test]
fn a_request_that_never_comes_back_ends_learning_after_the_time_limit() {
    let clean = Clean::layout();
    for n in Clean::some(clean.requests, 15).chain([1]) {
        let (why, mut drive) = clean.ends(failing(n, Fault::Hang));
        let words = why.to_string();
        assert!(matches!(why, LearnError::Device(BlockError::TimedOut { .. })), "request {n}: {why:?}");
        assert!(words.contains("did not complete") && words.contains("small"), "request {n}: {words}");
        assert!(drive.wait().is_err(), "the drive is given up");
    }
}

#[test]
fn a_drive_that_is_gone_is_told_as_gone() {
    let clean = Clean::layout();
    for n in Clean::some(clean.requests, 15).chain([1, clean.requests]) {
        let (why, mut drive) = clean.ends(failing(n, Fault::Disconnect));
        assert!(why.to_string().contains("the drive is gone"), "request {n}: {why}");
        assert!(drive.wait().is_err());
    }
}

#[test]
fn a_drive_that_shrinks_is_told_as_shrunk_with_its_new_size() {
    let clean = Clean::layout();
    for n in Clean::some(clean.requests * 9 / 10, 12) {
        let (why, drive) = clean.ends(failing(n, Fault::Shrink(ByteSize::mib(8))));
        let words = why.to_string();
        assert!(words.contains("shrunk to 8 MiB"), "request {n}: {words}");
        assert_eq!(drive.outstanding(), 0);
    }
}

#[test]
fn a_drive_that_shrinks_behind_what_is_probed_is_learned_as_if_nothing_had_happened() {
    let clean = Clean::layout();
    let mut drive = failing(clean.requests / 2, Fault::Shrink(clean.options.region));
    let (learned, _) = learn_with_checkpoints(&mut drive, &clean.options, &mut Silent);
    let learned = learned.unwrap();
    assert_eq!(learned.stopped, None);
    assert_same_knowledge(&learned.profile, &clean.profile);
}

/// Whether two figures contradict each other: both are certain, and neither's interval has the other's value.
fn contradict(one: &Figure<Quantity>, other: &Figure<Quantity>) -> bool {
    let certain = |figure: &Figure<Quantity>| figure.verdict == Verdict::Certain;
    let ends = |figure: &Figure<Quantity>| Some((number(figure.low?)?, number(figure.value?)?, number(figure.high?)?));
    match (ends(one), ends(other)) {
        _ if !certain(one) || !certain(other) => false,
        (Some((low, value, high)), Some((other_low, other_value, other_high))) => {
            !(low..=high).contains(&other_value) && !(other_low..=other_high).contains(&value)
        }
        _ => one.value != other.value,
    }
}

fn number(quantity: Quantity) -> Option<f64> {
    match quantity {
        Quantity::Bytes(n)
        | Quantity::Count(n)
        | Quantity::Nanos(n)
        | Quantity::BytesPerSecond(n)
        | Quantity::PerSecond(n) => Some(n as f64),
        Quantity::Ratio(x) | Quantity::Share(x) | Quantity::Years(x) => Some(x),
        Quantity::AddressBits(_) | Quantity::Flag(_) | Quantity::Location(_) => None,
    }
}

#[test]
fn one_late_request_changes_no_certain_figure() {
    let clean = Clean::complete();
    for n in Clean::some(clean.requests, 8) {
        let late = Fault::Delay(Nanos::millis(80));
        let (learned, _) = learn_with_checkpoints(&mut failing(n, late), &clean.options, &mut Silent);
        let learned = learned.unwrap();
        assert_eq!(learned.stopped, None);
        for ours in learned.profile.parameters.entries() {
            let theirs = entry(&clean.profile, ours.key);
            assert!(!contradict(&ours.figure, &theirs.figure), "request {n}: {ours:?} instead of {theirs:?}");
            let is_new = ours.figure.verdict == Verdict::Certain && theirs.figure.verdict == Verdict::Absent;
            assert!(!is_new, "request {n}: {ours:?}, which is not there");
        }
    }
}

#[test]
fn the_same_fault_gives_the_same_profile() {
    let clean = Clean::layout();
    let run = || {
        let mut drive = failing(clean.requests * 2 / 3, Fault::Fail(EIO));
        learn_with_checkpoints(&mut drive, &clean.options, &mut Silent).0.unwrap()
    };
    let (first, second) = (run(), run());
    assert_eq!((first.profile, first.stopped), (second.profile, second.stopped));
}

#[test]
fn work_that_is_stopped_leaves_nothing_in_flight() {
    let mut notes = Notes::default();
    let clean = Clean::layout();
    learn_with_checkpoints(&mut small_drive(), &clean.options, &mut notes).0.unwrap();
    for n in Clean::some(notes.calls(), 20).chain([1]) {
        let mut drive = Counting::new(small_drive());
        let (learned, checkpoints) =
            learn_with_checkpoints(&mut drive, &clean.options, &mut Notes::stopping_at_call(n));
        let learned = learned.unwrap();
        assert_eq!(learned.stopped, Some(LearnError::Device(BlockError::Interrupted)));
        clean.assert_keeps_what_was_finished(&learned, &checkpoints);
        assert_eq!(drive.outstanding(), 0);
    }
}
