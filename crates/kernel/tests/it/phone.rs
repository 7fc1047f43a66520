//! SQLite on ext4 on the eMMC of a phone of 2012, compared with what was published of such phones.
//!
//! The system calls are those of `calls.rs`: rows of 100 bytes, a transaction each. A phone's SQLite was compiled
//! without `fdatasync`, so each sync is an `fsync`.

use std::cell::RefCell;
use std::rc::Rc;

use flashwise_block::{
    BlockDevice, BlockError, ByteSize, Completion, DeviceCounters, DeviceInfo, Nanos, Operation, Request,
};
use flashwise_kernel::{Kernel, KernelConfig};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

use crate::calls::{self, DELETE, INDEXED_DELETE, INDEXED_LOG_100, INDEXED_LOG_1000, INDEXED_PERSIST, LOG, TRUNCATE};

/// A write that reached the drive.
#[derive(Clone, Copy, Debug)]
struct Write {
    offset: u64,
    bytes: u64,
    /// As the commit record of a journal is.
    fua: bool,
}

/// A drive whose writes are noted.
struct Noted {
    drive: SimulatedSsd,
    writes: Rc<RefCell<Vec<Write>>>,
}

impl BlockDevice for Noted {
    fn info(&self) -> &DeviceInfo {
        self.drive.info()
    }
    fn now(&self) -> Nanos {
        self.drive.now()
    }
    fn submit(&mut self, request: Request) -> Result<(), BlockError> {
        if request.operation == Operation::Write {
            let bytes = request.length.bytes();
            self.writes.borrow_mut().push(Write { offset: request.offset.bytes(), bytes, fua: request.fua });
        }
        self.drive.submit(request)
    }
    fn wait(&mut self) -> Result<Option<Completion>, BlockError> {
        self.drive.wait()
    }
    fn poll(&mut self) -> Result<Option<Completion>, BlockError> {
        self.drive.poll()
    }
    fn wait_until(&mut self, deadline: Nanos) -> Result<Option<Completion>, BlockError> {
        BlockDevice::wait_until(&mut self.drive, deadline)
    }
    fn outstanding(&self) -> usize {
        self.drive.outstanding()
    }
    fn pause(&mut self, duration: Nanos) -> Result<(), BlockError> {
        self.drive.pause(duration)
    }
    fn counters(&self) -> DeviceCounters {
        self.drive.counters()
    }
}

/// What transactions cost.
#[derive(Debug)]
struct Cost {
    per_s: f64,
    /// Requests, and bytes, of a transaction.
    writes: f64,
    bytes: f64,
    /// Share of the requests, and of the bytes, that are the journal of the file system.
    journal_writes: f64,
    journal_bytes: f64,
    /// Bytes programmed.
    flash_bytes: f64,
}

fn play(calls: &[u8], transactions: f64, uses_fdatasync: bool) -> Cost {
    let mut drive = SimulatedSsd::new(DeviceConfig::preset("emmc-phone-2012").unwrap(), 1).unwrap();
    drive.fill_at_once().unwrap();
    let writes = Rc::new(RefCell::new(Vec::new()));
    let noted = Noted { drive, writes: Rc::clone(&writes) };
    let config = KernelConfig { memory: ByteSize::mib(512), ..KernelConfig::default() };
    let mut kernel = Kernel::new(noted, config).unwrap();
    let start = |kernel: &mut Kernel<Noted>| {
        kernel.sync().unwrap();
        writes.borrow_mut().clear();
        (kernel.now(), kernel.device().counters())
    };
    let (mut started, mut before) = start(&mut kernel);
    calls::make_prepared(&mut kernel, calls, "", uses_fdatasync, |kernel| (started, before) = start(kernel));
    let seconds = kernel.now().since(started).as_secs_f64();
    let writes = writes.borrow();
    // The file system's journal is one area, in which the commit records are.
    let records = || writes.iter().filter(|write| write.fua).map(|write| write.offset);
    let around = 1 << 20;
    let area = records().min().unwrap() - around..records().max().unwrap() + around;
    let of_journal = || writes.iter().filter(|write| area.contains(&write.offset));
    let bytes: u64 = writes.iter().map(|write| write.bytes).sum();
    let after = kernel.device().counters();
    let programmed = |counters: DeviceCounters| counters.flash.unwrap().bytes_programmed.bytes();
    Cost {
        per_s: transactions / seconds,
        writes: writes.len() as f64 / transactions,
        bytes: bytes as f64 / transactions,
        journal_writes: of_journal().count() as f64 / writes.len() as f64,
        journal_bytes: of_journal().map(|write| write.bytes).sum::<u64>() as f64 / bytes as f64,
        flash_bytes: (programmed(after) - programmed(before)) as f64 / transactions,
    }
}

#[test]
fn a_transaction_with_a_rollback_journal_takes_what_was_published_of_phones() {
    let rollback = play(DELETE, 300.0, false);
    assert!((rollback.per_s / 39.0 - 1.0).abs() <= 0.15, "{rollback:?}");
    for rollback in [rollback, play(TRUNCATE, 300.0, false)] {
        assert!(rollback.journal_writes > 0.5 && rollback.journal_bytes > 0.5, "{rollback:?}");
    }
}

#[test]
fn a_log_makes_about_four_times_as_many_updates_with_less_than_half_the_writes() {
    for (rollback, fdatasync) in [(DELETE, false), (TRUNCATE, false), (DELETE, true), (TRUNCATE, true)] {
        let (rollback, log) = (play(rollback, 300.0, fdatasync), play(LOG, 2500.0, fdatasync));
        let times = log.per_s / rollback.per_s;
        // The guide shows these numbers.
        println!("fdatasync {fdatasync}: {rollback:.2?} {log:.2?}, {times:.2} times");
        assert!((3.0..=5.0).contains(&times), "{times}: {rollback:?} {log:?}");
        // Half was published, of an unknown workload. These rows follow one another: their pages reach the database
        // once in a thousand frames, which leaves less than a third.
        let shares = [log.writes / rollback.writes, log.bytes / rollback.bytes, log.flash_bytes / rollback.flash_bytes];
        assert!(shares.iter().all(|share| (0.2..=0.5).contains(share)), "{shares:?}");
    }
}

/// Published of Android 9: on ext4, updates about four times as fast with a log, and about half the writes (AOSP
/// 5bd43ad2). Android's settings until then: `journal_mode = PERSIST` without a log, a checkpoint every 100 pages with
/// one, `synchronous = FULL` in both. Which updates were measured is not published.
///
/// Here the bytes come out, and the rate is a little lower than three times; with a checkpoint every 1,000 pages, which
/// writes a page back less often, it is the other way round.
#[test]
fn with_androids_settings_a_log_halves_the_bytes_and_with_sqlites_own_it_makes_four_times_as_many_updates() {
    for fdatasync in [true, false] {
        let play = |calls, transactions| play(calls, transactions, fdatasync);
        let [delete, persist] = [INDEXED_DELETE, INDEXED_PERSIST].map(|calls| play(calls, 300.0));
        let [log, longer] = [INDEXED_LOG_100, INDEXED_LOG_1000].map(|calls| play(calls, 1500.0));
        // The guide shows these numbers.
        println!("fdatasync {fdatasync}: {delete:.2?}\n{persist:.2?}\n{log:.2?}\n{longer:.2?}");
        let times = |log: &Cost| log.per_s / persist.per_s;
        assert!((2.6..=3.0).contains(&times(&log)) && (3.0..=5.0).contains(&times(&longer)), "{persist:?}, {log:?}");
        let share = |log: &Cost| log.bytes / persist.bytes;
        assert!(
            (0.375..=0.625).contains(&share(&log)) && (0.3..0.375).contains(&share(&longer)),
            "{persist:?}, {log:?}"
        );
    }
}
