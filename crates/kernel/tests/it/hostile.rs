//! Requests that nobody should make end with errors.

use flashwise_block::{ByteSize, Fault, FaultyDevice, Nanos, Operation};
use flashwise_kernel::{
    Advice, Allocate, FileSystemKind, Kernel, KernelConfig, KernelError, OpenOptions, QueueLimits, SyncRange,
};

use crate::support::{Dice, TestDrive};

const KINDS: [FileSystemKind; 2] = [FileSystemKind::Ext4, FileSystemKind::Xfs];

fn config(file_system: FileSystemKind) -> KernelConfig {
    KernelConfig { file_system, ..KernelConfig::default() }
}

#[test]
fn a_cache_of_one_page_serves_every_call() {
    for kind in KINDS {
        let config = KernelConfig { memory: ByteSize::kib(4), ..config(kind) };
        let mut kernel = Kernel::new(TestDrive::new(ByteSize::gib(1)), config).unwrap();
        let file = kernel.open("f", OpenOptions::read_write().create(true)).unwrap();
        let mut dice = Dice(3);
        kernel.pwrite(file, ByteSize(0), ByteSize::mib(4)).unwrap();
        for _ in 0..500 {
            kernel.pread(file, ByteSize(dice.below(4 << 20)), ByteSize(dice.below(100_000))).unwrap();
            kernel.pwrite(file, ByteSize(dice.below(4 << 20)), ByteSize(dice.below(100_000))).unwrap();
        }
        let map = kernel.mmap(file, ByteSize::mib(4)).unwrap();
        for _ in 0..100 {
            kernel.map_read(map, ByteSize(dice.below(4 << 20)), ByteSize(1)).unwrap();
            kernel.map_write(map, ByteSize(dice.below(4 << 20)), ByteSize(1)).unwrap();
        }
        kernel.fsync(file).unwrap();
        kernel.check_invariants().unwrap();
        assert!(kernel.cached_pages().0 < 64, "{} pages", kernel.cached_pages().0);
    }
}

#[test]
fn a_full_file_system_says_so_and_takes_data_again_after_something_was_removed() {
    for kind in KINDS {
        let mut kernel = Kernel::new(TestDrive::new(ByteSize::mib(320)), config(kind)).unwrap();
        let mut files = 0;
        let error = loop {
            let file = kernel.open(&format!("f{files}"), OpenOptions::read_write().create(true)).unwrap();
            let outcome = (0..16)
                .try_for_each(|number| kernel.pwrite(file, ByteSize(number << 20), ByteSize::mib(1)).map(|_| ()));
            kernel.close(file).unwrap();
            files += 1;
            if let Err(error) = outcome {
                break error;
            }
            assert!(files < 100);
        };
        assert_eq!(error, KernelError::NoSpace);
        assert!(kernel.free_space() < ByteSize::mib(1));
        kernel.sync().unwrap();
        kernel.check_invariants().unwrap();
        kernel.unlink("f0").unwrap();
        let file = kernel.open("again", OpenOptions::read_write().create(true)).unwrap();
        kernel.pwrite(file, ByteSize(0), ByteSize::mib(2)).unwrap();
        kernel.fsync(file).unwrap();
        assert!(matches!(
            kernel.fallocate(file, ByteSize(0), ByteSize::gib(1), Allocate::Grow),
            Err(KernelError::NoSpace)
        ));
        kernel.check_invariants().unwrap();
    }
}

/// On ext4, where the reserve for metadata is soon used up.
#[test]
fn a_full_directory_grows_into_the_space_of_a_file_that_was_removed() {
    const NAMES: u32 = 4000;
    let mut kernel = Kernel::new(TestDrive::new(ByteSize::mib(40)), config(FileSystemKind::Ext4)).unwrap();
    let mut create = |name: &str| kernel.open(name, OpenOptions::read_write().create(true)).unwrap();
    let (removed, large) = (create("removed"), create("large"));
    (0..NAMES).map(|number| create(&format!("n{number}"))).for_each(drop);
    kernel.fallocate(removed, ByteSize(0), ByteSize::mib(8), Allocate::Grow).unwrap();
    kernel.close(removed).unwrap();
    let mut piece = 16 << 20;
    while piece >= 4096 {
        let end = kernel.size(large).unwrap();
        if kernel.fallocate(large, end, ByteSize(piece), Allocate::Grow).is_err() {
            piece /= 2;
        }
    }
    kernel.sync().unwrap();
    assert_eq!(kernel.free_space(), ByteSize(0));
    kernel.unlink("removed").unwrap();
    // Some eight of these are in a block.
    let long = "a name that is as long as it may be: ".repeat(6);
    for number in 0..NAMES {
        kernel.rename(&format!("n{number}"), &format!("{long}{number}")).unwrap();
    }
    kernel.check_invariants().unwrap();
}

#[test]
fn sizes_that_overflow_are_refused() {
    for kind in KINDS {
        let mut kernel = Kernel::new(TestDrive::new(ByteSize::gib(1)), config(kind)).unwrap();
        let file = kernel.open("f", OpenOptions::read_write().create(true)).unwrap();
        let far = ByteSize(u64::MAX - 10);
        let is_too_large = |outcome: Result<(), KernelError>| matches!(outcome, Err(KernelError::TooLarge { .. }));
        assert!(is_too_large(kernel.pwrite(file, far, ByteSize(100)).map(|_| ())));
        assert!(is_too_large(kernel.ftruncate(file, far)));
        assert!(is_too_large(kernel.fallocate(file, far, ByteSize(100), Allocate::KeepSize)));
        assert!(is_too_large(kernel.fallocate(file, ByteSize(0), far, Allocate::Grow)));
        assert_eq!(kernel.pread(file, far, ByteSize(u64::MAX)), Ok(0));
        assert!(matches!(kernel.pwrite(file, ByteSize(0), ByteSize::gib(100)), Err(KernelError::Invalid(_))));
        kernel.fadvise(file, far, ByteSize(u64::MAX), Advice::WillNeed).unwrap();
        kernel.fadvise(file, far, ByteSize(u64::MAX), Advice::DontNeed).unwrap();
        let all = SyncRange { wait_before: true, write: true, wait_after: true };
        kernel.sync_file_range(file, far, ByteSize(u64::MAX), all).unwrap();
        kernel.ftruncate(file, ByteSize(8 << 40)).unwrap();
        assert_eq!(kernel.pread(file, ByteSize(4 << 40), ByteSize::mib(1)), Ok(1 << 20));
        kernel.pwrite(file, ByteSize((8 << 40) - 5), ByteSize(5)).unwrap();
        kernel.fsync(file).unwrap();
        let map = kernel.mmap(file, ByteSize(u64::MAX)).unwrap();
        assert!(matches!(kernel.map_read(map, far, ByteSize(100)), Err(KernelError::Invalid(_))));
        kernel.unlink("f").unwrap();
        kernel.close(file).unwrap();
        kernel.sync().unwrap();
        kernel.check_invariants().unwrap();
    }
}

#[test]
fn names_and_handles_that_are_none_are_refused() {
    let mut kernel =
        Kernel::new(TestDrive::new(ByteSize::gib(1)), KernelConfig { max_open: 2, ..config(KINDS[0]) }).unwrap();
    for name in ["", "a/b", "a\0b", &"x".repeat(256)] {
        assert!(matches!(kernel.open(name, OpenOptions::read_write().create(true)), Err(KernelError::BadName(_))));
    }
    assert!(matches!(kernel.open("none", OpenOptions::read()), Err(KernelError::NotFound(_))));
    let file = kernel.open("f", OpenOptions::read_write().create_new(true)).unwrap();
    assert!(matches!(kernel.open("f", OpenOptions::read_write().create_new(true)), Err(KernelError::Exists(_))));
    let reader = kernel.open("f", OpenOptions::read()).unwrap();
    assert!(matches!(kernel.open("f", OpenOptions::read()), Err(KernelError::TooManyOpen(2))));
    assert!(matches!(kernel.pwrite(reader, ByteSize(0), ByteSize(1)), Err(KernelError::NotOpenFor { .. })));
    kernel.close(file).unwrap();
    assert!(matches!(kernel.close(file), Err(KernelError::BadHandle(_))));
    assert!(matches!(kernel.fsync(file), Err(KernelError::BadHandle(_))));
    assert!(matches!(kernel.unlink("none"), Err(KernelError::NotFound(_))));
}

#[test]
fn many_files_end_with_an_error_when_inodes_or_blocks_are_used_up() {
    for kind in KINDS {
        let mut kernel = Kernel::new(TestDrive::new(ByteSize::mib(310)), config(kind)).unwrap();
        let mut made = 0;
        let error = loop {
            match kernel
                .open(&format!("a file with a name that is long {made}"), OpenOptions::read_write().create(true))
            {
                Ok(file) => kernel.close(file).unwrap(),
                Err(error) => break error,
            }
            made += 1;
            if made == 60_000 {
                // XFS makes inodes while there is space: enough seen.
                break KernelError::NoInodes;
            }
        };
        assert!(matches!(error, KernelError::NoInodes | KernelError::NoSpace), "{error}");
        assert!(made > 20_000, "{made} files");
        (0..made).for_each(|number| kernel.unlink(&format!("a file with a name that is long {number}")).unwrap());
        kernel.sync().unwrap();
        kernel.check_invariants().unwrap();
        kernel.open("again", OpenOptions::read_write().create(true)).unwrap();
    }
}

#[test]
fn writers_are_held_back_at_the_dirty_limit_and_never_beyond_it() {
    for kind in KINDS {
        let config = KernelConfig { memory: ByteSize::mib(64), ..config(kind) };
        let drive = TestDrive::new(ByteSize::gib(2)).with_latencies(Nanos::millis(5), Nanos::millis(1));
        let mut kernel = Kernel::new(drive, config).unwrap();
        let file = kernel.open("f", OpenOptions::read_write().create(true)).unwrap();
        for number in 0..4000 {
            kernel.pwrite(file, ByteSize(number * 65536), ByteSize::kib(64)).unwrap();
            assert!(kernel.cached_pages().1 <= 16384 / 5 + 64, "{} dirty", kernel.cached_pages().1);
        }
        assert!(kernel.counters().throttled > Nanos(0));
        kernel.check_invariants().unwrap();
    }
}

#[test]
fn a_write_or_flush_that_fails_is_reported_and_nothing_panics() {
    for kind in KINDS {
        for (operation, nth) in [Operation::Read, Operation::Write, Operation::Flush]
            .into_iter()
            .flat_map(|operation| (1..30).map(move |nth| (operation, nth)))
        {
            let drive = FaultyDevice::new(TestDrive::new(ByteSize::gib(1)));
            let drive = drive.with_nth_of(operation, nth, Fault::Fail(5));
            let mut kernel = Kernel::new(drive, config(kind)).unwrap();
            let mut failed = false;
            for number in 0..6 {
                let name = format!("f{}", number % 3);
                let Ok(file) = kernel.open(&name, OpenOptions::read_write().create(true)) else {
                    failed = true;
                    continue;
                };
                failed |= kernel.pwrite(file, ByteSize(number * 10_000), ByteSize(10_000)).is_err();
                failed |= kernel.fsync(file).is_err();
                failed |= kernel.drop_caches().is_err();
                failed |= kernel.pread(file, ByteSize(0), ByteSize(100_000)).is_err();
                failed |= kernel.close(file).is_err();
            }
            kernel.check_invariants().unwrap();
            let counters = kernel.device_counters();
            let asked = if operation == Operation::Flush { counters.flushes } else { counters.host_writes };
            // A read that fails is made again.
            let is_read = operation == Operation::Read;
            assert!(failed || is_read || asked < nth, "{kind:?}: {operation:?} {nth} failed and nobody was told");
        }
    }
}

/// The file's first sync is a full commit of a write and two flushes; then each is a fast one.
#[test]
fn a_fast_commit_that_fails_is_followed_by_a_full_one() {
    for (operation, nth) in [(Operation::Flush, 2), (Operation::Write, 5)] {
        let drive = FaultyDevice::new(TestDrive::new(ByteSize::gib(1))).with_nth_of(operation, nth, Fault::Fail(5));
        let mut kernel = Kernel::new(drive, KernelConfig { fast_commit: true, ..KernelConfig::default() }).unwrap();
        let file = kernel.open("f", OpenOptions::read_write().create(true)).unwrap();
        for page in 0..3 {
            kernel.pwrite(file, ByteSize::kib(4 * page), ByteSize::kib(4)).unwrap();
            kernel.fsync(file).unwrap();
        }
        let counters = kernel.counters();
        assert_eq!((counters.commits, counters.fast_commits), (2, 1), "{operation:?} {nth}");
    }
}

#[test]
fn a_drive_that_is_gone_is_an_error_for_ever() {
    let drive = FaultyDevice::new(TestDrive::new(ByteSize::gib(1))).with_nth_of(Operation::Flush, 2, Fault::Disconnect);
    let mut kernel = Kernel::new(drive, config(KINDS[0])).unwrap();
    let file = kernel.open("f", OpenOptions::read_write().create(true)).unwrap();
    kernel.pwrite(file, ByteSize(0), ByteSize(4096)).unwrap();
    kernel.fsync(file).unwrap();
    for _ in 0..3 {
        let _ = kernel.pwrite(file, ByteSize(0), ByteSize(4096));
        assert!(kernel.fsync(file).is_err());
    }
}

#[test]
fn a_configuration_that_makes_no_sense_is_refused_with_its_key() {
    let text = |config: KernelConfig, capacity: ByteSize| match Kernel::new(TestDrive::new(capacity), config) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("accepted"),
    };
    let gib = ByteSize::gib(1);
    let base = KernelConfig::default;
    assert!(text(KernelConfig { memory: ByteSize(100), ..base() }, gib).starts_with("memory:"));
    let xfs = KernelConfig { file_system: FileSystemKind::Xfs, fast_commit: true, ..base() };
    assert!(text(xfs, gib).starts_with("fast_commit: ext4 has"));
    assert!(text(KernelConfig { read_ahead: ByteSize(5), ..base() }, gib).starts_with("read_ahead:"));
    assert!(text(KernelConfig { dirty_ratio: 101, ..base() }, gib).starts_with("dirty_ratio"));
    let queue = QueueLimits { max_segments: 0, ..QueueLimits::default() };
    assert!(text(KernelConfig { queue, ..base() }, gib).starts_with("queue:"));
    assert!(text(base(), ByteSize::mib(1)).contains("32 MiB"));
    assert!(text(config(KINDS[1]), ByteSize::mib(64)).contains("300 MiB"));
}

/// The short form is the test of 60,000 files above.
#[test]
#[ignore = "takes a minute"]
fn a_million_files_are_made_synced_and_removed() {
    const FILES: u32 = 1_000_000;
    for kind in KINDS {
        let drive = TestDrive::new(ByteSize::gib(512));
        let mut kernel = Kernel::new(drive, KernelConfig { memory: ByteSize::gib(1), ..config(kind) }).unwrap();
        for number in 0..FILES {
            let file = kernel.open(&format!("f{number}"), OpenOptions::read_write().create(true)).unwrap();
            if number % 64 == 0 {
                kernel.pwrite(file, ByteSize(0), ByteSize::kib(8)).unwrap();
            }
            kernel.close(file).unwrap();
        }
        kernel.sync().unwrap();
        assert_eq!(kernel.list().count(), FILES as usize);
        for number in 0..FILES {
            kernel.unlink(&format!("f{number}")).unwrap();
        }
        kernel.sync().unwrap();
        kernel.pause(Nanos::secs(1)).unwrap();
        kernel.check_invariants().unwrap();
        assert_eq!(kernel.list().count(), 0);
        kernel.open("again", OpenOptions::read_write().create(true)).unwrap();
    }
}
