//! Power cuts: what was synced is there, whatever the drive kept of what was not flushed.

use std::collections::BTreeMap;

use flashwise_block::ByteSize;
use flashwise_kernel::{Kernel, KernelError, OpenOptions};
use proptest::prelude::*;

use crate::naive::{Call, KINDS, Kind, Pair, any_kind, calls, config, name};
use crate::support::{Dice, TestDrive};

/// What a file may be after a power cut: its bytes when it was last synced, and every value since, by byte.
#[derive(Clone, Debug, Default)]
struct Promise {
    synced: Vec<u8>,
    later: Vec<Vec<u8>>,
}

/// A file after each call since the last sync, as the naive reference has it.
#[derive(Debug, Default)]
struct Ledger {
    files: BTreeMap<u8, Promise>,
    /// Files that were unlinked since something was committed: they may be there or not.
    doubtful: Vec<u8>,
}

impl Ledger {
    fn note(&mut self, pair: &Pair, call: &Call) {
        let synced = match *call {
            Call::Sync { file, .. } => vec![file],
            Call::SyncAll => pair.files.keys().copied().collect(),
            _ => Vec::new(),
        };
        for file in synced {
            if let Some(bytes) = pair.files.get(&file) {
                self.files.insert(file, Promise { synced: bytes.clone(), later: Vec::new() });
                self.doubtful.retain(|other| *other != file);
            }
        }
        if let Call::Unlink { file } = *call {
            self.doubtful.push(file);
        }
        for (file, bytes) in &pair.files {
            if let Some(promise) = self.files.get_mut(file)
                && promise.later.last().unwrap_or(&promise.synced) != bytes
            {
                promise.later.push(bytes.clone());
            }
        }
    }

    fn check(&self, kernel: &mut Kernel<TestDrive>) -> Result<(), TestCaseError> {
        for (&file, promise) in &self.files {
            if self.doubtful.contains(&file) {
                continue;
            }
            let status = kernel.status(&name(file));
            prop_assert!(status.is_ok(), "{} was synced and is gone", name(file));
            let size = status.unwrap().size.0 as usize;
            let versions = || std::iter::once(&promise.synced).chain(&promise.later);
            let least = versions().map(Vec::len).min().unwrap();
            prop_assert!(size >= least, "{} has {size} bytes, {least} at least", name(file));
            let handle = kernel.open(&name(file), OpenOptions::read()).unwrap();
            let mut bytes = vec![0; size];
            kernel.pread(handle, ByteSize(0), bytes.as_mut_slice()).unwrap();
            let all: Vec<&Vec<u8>> = versions().collect();
            for (at, byte) in bytes.iter().enumerate().step_by(7) {
                let may_be = all.iter().any(|version| version.get(at).copied().unwrap_or(0) == *byte);
                prop_assert!(may_be, "{}: byte {at} of {size} is {byte}", name(file));
            }
        }
        Ok(())
    }
}

fn cut_after(calls: &[Call], kind: Kind, pages: u64, requests: u64, seed: u64) -> Result<(), TestCaseError> {
    let mut drive = TestDrive::new(ByteSize::mib(400));
    drive.power_for = requests;
    let mut pair = Pair::new(drive, config(kind, pages, 40));
    let mut ledger = Ledger::default();
    for call in calls {
        // Errors from the moment on when the power is off; what the call may have done counts as done later.
        let outcome = pair.make(call);
        match outcome {
            Ok(()) => ledger.note(&pair, call),
            Err(_) => {
                ledger.note(&pair, &Call::DropCaches);
                if let Call::Unlink { file } = *call {
                    ledger.doubtful.push(file);
                }
                break;
            }
        }
    }
    let next = pair.kernel.device().again();
    let mut dice = Dice(seed);
    next.medium.borrow_mut().cut(|| dice.below(2) == 0);
    let mut kernel = pair.kernel.remount_after_power_cut(next).unwrap();
    let outcome = kernel.check_invariants();
    prop_assert!(outcome.is_ok(), "{outcome:?}");
    ledger.check(&mut kernel)?;
    // It goes on.
    let file = kernel.open("more", OpenOptions::read_write().create(true)).unwrap();
    kernel.pwrite(file, ByteSize(0), [7u8; 9000].as_slice()).unwrap();
    kernel.fsync(file).unwrap();
    let outcome = kernel.check_invariants();
    prop_assert!(outcome.is_ok(), "{outcome:?}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 375, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_was_synced_is_there_after_a_power_cut(
        calls in calls(40),
        kind in any_kind(),
        pages in prop_oneof![2u64..40, Just(10_000)],
        requests in prop_oneof![0u64..60, 0u64..600],
        seed in any::<u64>(),
    ) {
        cut_after(&calls, kind, pages, requests, seed)?;
    }
}

/// A transaction log that is grown, reused and cut at each of its requests: a commit that `fdatasync` reported stays.
#[test]
fn a_log_keeps_every_record_that_was_synced_wherever_the_power_goes() {
    for kind in KINDS {
        for requests in (0..150).step_by(2) {
            let mut drive = TestDrive::new(ByteSize::mib(400));
            drive.power_for = requests;
            let mut kernel = Kernel::new(drive, config(kind, 1000, 40)).unwrap();
            let mut reported = 0;
            let outcome = (|| -> Result<(), KernelError> {
                let log = kernel.open("log", OpenOptions::read_write().create(true))?;
                for record in 0..40u64 {
                    // Twenty records grow the log, twenty overwrite it.
                    let bytes = [record as u8 + 1; 1000];
                    kernel.pwrite(log, ByteSize(record % 20 * 1000), bytes.as_slice())?;
                    kernel.fdatasync(log)?;
                    reported = record + 1;
                }
                Ok(())
            })();
            assert_eq!(outcome.is_ok(), reported == 40);
            let next = kernel.device().again();
            let mut dice = Dice(requests);
            next.medium.borrow_mut().cut(|| dice.below(2) == 0);
            let mut kernel = kernel.remount_after_power_cut(next).unwrap();
            if reported == 0 {
                continue;
            }
            let log = kernel.open("log", OpenOptions::read()).unwrap();
            for slot in 0..20.min(reported) {
                let mut bytes = [0; 1000];
                assert_eq!(kernel.pread(log, ByteSize(slot * 1000), bytes.as_mut_slice()).unwrap(), 1000);
                let newest = if slot + 20 < reported { slot + 20 } else { slot };
                // The record that was under way may be there in part.
                let under_way = reported % 20 == slot;
                assert!(
                    under_way || bytes.iter().all(|byte| u64::from(*byte) == newest + 1),
                    "{kind:?} {requests} {slot}"
                );
            }
        }
    }
}

/// A file is written beside another one and takes its name, as editors and databases replace a file: once a sync has
/// returned, the name has the new bytes, and before that all of the old ones or all of the new ones.
#[test]
fn a_file_that_replaces_another_one_is_whole_wherever_the_power_goes() {
    const LENGTH: usize = 5000;
    for kind in KINDS {
        for requests in 0..120 {
            let mut drive = TestDrive::new(ByteSize::mib(400));
            drive.power_for = requests;
            let mut kernel = Kernel::new(drive, config(kind, 1000, 40)).unwrap();
            let mut reported = 0;
            let outcome = (|| -> Result<(), KernelError> {
                for round in 1..=10u8 {
                    let new = kernel.open("new", OpenOptions::read_write().create_new(true))?;
                    kernel.pwrite(new, ByteSize(0), [round; LENGTH].as_slice())?;
                    kernel.fsync(new)?;
                    kernel.rename("new", "it")?;
                    kernel.fsync(new)?;
                    kernel.close(new)?;
                    reported = round;
                }
                Ok(())
            })();
            assert_eq!(outcome.is_ok(), reported == 10);
            let next = kernel.device().again();
            let mut dice = Dice(requests);
            next.medium.borrow_mut().cut(|| dice.below(2) == 0);
            let mut kernel = kernel.remount_after_power_cut(next).unwrap();
            kernel.check_invariants().unwrap();
            let Ok(it) = kernel.open("it", OpenOptions::read()) else {
                assert_eq!(reported, 0, "{kind:?}: the file was replaced and is gone after {requests} requests");
                continue;
            };
            let mut bytes = [0; LENGTH];
            assert_eq!(kernel.pread(it, ByteSize(0), bytes.as_mut_slice()).unwrap(), LENGTH as u64);
            let round = bytes[0];
            assert!(bytes.iter().all(|&byte| byte == round), "{kind:?}: a mixture after {requests} requests");
            assert!(round == reported || round == reported + 1, "{kind:?}: {round}, {reported} were reported");
        }
    }
}
