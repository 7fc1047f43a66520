//! Single calls and what they send.

use flashwise_block::{BlockDevice, ByteSize, Nanos, Operation};
use flashwise_kernel::{
    Advice, Allocate, FileHandle, FileSystemKind, Kernel, KernelConfig, KernelError, OpenOptions, QueueLimits,
    SyncRange,
};

use crate::support::{Seen, TestDrive};

fn kernel(config: KernelConfig) -> Kernel<TestDrive> {
    Kernel::new(TestDrive::new(ByteSize::gib(8)), config).unwrap()
}

fn seen(kernel: &Kernel<TestDrive>) -> Vec<Seen> {
    std::mem::take(&mut *kernel.device().seen.borrow_mut())
}

fn kinds(kernel: &Kernel<TestDrive>) -> String {
    let letter = |seen: &Seen| match seen.operation {
        Operation::Read => 'r',
        Operation::Write => 'w',
        Operation::Flush => 'f',
        Operation::Trim => 't',
        Operation::WriteZeroes => 'z',
    };
    seen(kernel).iter().map(letter).collect()
}

/// A file of `pages` pages that is on the drive and not in memory.
fn cold(kernel: &mut Kernel<TestDrive>, pages: u64) -> FileHandle {
    let file = kernel.open("cold", OpenOptions::read_write().create(true)).unwrap();
    kernel.pwrite(file, ByteSize(0), ByteSize::kib(4 * pages)).unwrap();
    kernel.sync().unwrap();
    kernel.drop_caches().unwrap();
    seen(kernel);
    file
}

#[test]
fn a_file_that_is_laid_out_is_read_from_the_drive_and_overwritten_in_place() {
    for file_system in FileSystemKind::ALL.map(|(_, kind)| kind) {
        let mut kernel = kernel(KernelConfig { file_system, ..KernelConfig::default() });
        // Longer than an extent of ext4.
        kernel.lay_out("old", ByteSize::mib(200)).unwrap();
        kernel.sync().unwrap();
        kernel.drop_caches().unwrap();
        kernel.check_invariants().unwrap();
        assert_eq!(kernel.size_of("old"), Some(ByteSize::mib(200)));
        assert!(matches!(kernel.lay_out("old", ByteSize::mib(1)), Err(KernelError::Exists(_))));
        let file = kernel.open("old", OpenOptions::read_write()).unwrap();
        for at in [0, 150] {
            seen(&kernel);
            assert_eq!(kernel.pread(file, ByteSize::mib(at), ByteSize::kib(4)).unwrap(), 4096);
            let read: u64 =
                seen(&kernel).iter().filter(|seen| seen.operation == Operation::Read).map(|s| s.bytes).sum();
            assert!(read >= 4096, "{file_system:?} {at}");
            kernel.pwrite(file, ByteSize::mib(at), ByteSize::kib(4)).unwrap();
            kernel.fdatasync(file).unwrap();
            assert_eq!(kinds(&kernel), "wf", "{file_system:?} {at}: no extent is converted");
        }
    }
}

#[test]
fn an_append_costs_a_commit_and_an_overwrite_a_flush() {
    for (queue, append, over) in [
        (QueueLimits::loop_device(), "wwfwf", "wf"),
        (QueueLimits::default(), "wwfw", "wf"),
        (QueueLimits { volatile_cache: false, ..QueueLimits::default() }, "www", "w"),
    ] {
        let mut kernel = kernel(KernelConfig { queue, ..KernelConfig::default() });
        let file = kernel.open("f", OpenOptions::read_write().create(true)).unwrap();
        for (page, expected) in [(0, append), (1, append), (0, over), (1, over)] {
            kernel.pwrite(file, ByteSize::kib(4 * page), ByteSize::kib(4)).unwrap();
            kernel.fdatasync(file).unwrap();
            assert_eq!(kinds(&kernel), expected, "page {page}");
        }
    }
}

#[test]
fn fsync_of_an_overwrite_needs_a_commit_once_a_tick() {
    let mut kernel = kernel(KernelConfig::default());
    let file = cold(&mut kernel, 16);
    let mut commits = 0;
    let began = kernel.now();
    for page in 0..200 {
        kernel.pwrite(file, ByteSize::kib(4 * (page % 16)), ByteSize::kib(4)).unwrap();
        kernel.fsync(file).unwrap();
        commits += u64::from(kinds(&kernel).contains("wfw"));
    }
    let ticks = kernel.now().since(began).0 / 4_000_000;
    assert!(commits.abs_diff(ticks) <= 1, "{commits} commits in {ticks} ticks");
}

#[test]
fn preallocated_space_makes_an_append_need_a_commit_only_for_what_was_never_written() {
    let mut kernel = kernel(KernelConfig::default());
    let file = kernel.open("f", OpenOptions::read_write().create(true)).unwrap();
    kernel.fallocate(file, ByteSize(0), ByteSize::mib(1), Allocate::Grow).unwrap();
    kernel.fsync(file).unwrap();
    seen(&kernel);
    kernel.pwrite(file, ByteSize(0), ByteSize::kib(4)).unwrap();
    kernel.fdatasync(file).unwrap();
    assert_eq!(kinds(&kernel), "wwfw", "unwritten becomes written");
    kernel.pwrite(file, ByteSize(0), ByteSize::kib(4)).unwrap();
    kernel.fdatasync(file).unwrap();
    assert_eq!(kinds(&kernel), "wf");
    assert_eq!(kernel.status("f").unwrap().allocated, ByteSize::mib(1));
}

#[test]
fn direct_writes_go_around_the_cache_and_use_fua_where_they_can() {
    let mut kernel = kernel(KernelConfig::default());
    cold(&mut kernel, 64);
    let file = kernel.open("cold", OpenOptions::read_write().direct(true).dsync(true)).unwrap();
    seen(&kernel);
    kernel.pwrite(file, ByteSize::kib(16), ByteSize::kib(16)).unwrap();
    assert_eq!(kinds(&kernel), "w", "one write with FUA, no flush");
    kernel.pwrite(file, ByteSize::kib(256), ByteSize::kib(16)).unwrap();
    assert_eq!(kinds(&kernel), "rrwwfw", "bitmap and descriptor are read; an append is committed");
    kernel.pread(file, ByteSize(0), ByteSize::kib(64)).unwrap();
    kernel.pread(file, ByteSize(0), ByteSize::kib(64)).unwrap();
    assert_eq!(kinds(&kernel), "rr");
    assert_eq!(kernel.cached_pages().0, 0);
    assert!(kernel.pread(file, ByteSize(100), ByteSize(100)).is_err());
}

#[test]
fn the_flusher_writes_what_is_30_seconds_old() {
    let mut kernel = kernel(KernelConfig::default());
    let file = kernel.open("f", OpenOptions::read_write().create(true)).unwrap();
    kernel.pwrite(file, ByteSize(0), ByteSize::mib(1)).unwrap();
    kernel.pause(Nanos::secs(29)).unwrap();
    assert_eq!(kernel.status("f").unwrap().dirty, ByteSize::mib(1));
    let before = seen(&kernel);
    assert!(before.iter().all(|seen| seen.bytes < 1 << 16), "the journal alone, after 5 seconds");
    kernel.pause(Nanos::secs(10)).unwrap();
    assert_eq!(kernel.status("f").unwrap().dirty, ByteSize(0));
    let data: u64 = seen(&kernel).iter().filter(|seen| seen.bytes >= 1 << 16).map(|seen| seen.bytes).sum();
    assert_eq!(data, 1 << 20);
}

#[test]
fn background_write_back_starts_at_its_threshold() {
    let config = KernelConfig { memory: ByteSize::mib(100), ..KernelConfig::default() };
    let mut kernel = kernel(config);
    let file = kernel.open("f", OpenOptions::read_write().create(true)).unwrap();
    kernel.pwrite(file, ByteSize(0), ByteSize::mib(9)).unwrap();
    assert_eq!(kinds(&kernel), "");
    kernel.pwrite(file, ByteSize::mib(9), ByteSize::mib(2)).unwrap();
    kernel.pause(Nanos::secs(1)).unwrap();
    assert!(kinds(&kernel).contains('w'));
    assert!(kernel.cached_pages().1 <= 2560);
}

#[test]
fn advice_changes_what_is_read() {
    let mut kernel = kernel(KernelConfig::default());
    let file = cold(&mut kernel, 1024);
    kernel.pread(file, ByteSize(0), ByteSize::kib(4)).unwrap();
    assert_eq!(seen(&kernel)[0].bytes, 16 << 10, "a read at the start opens a window");
    kernel.fadvise(file, ByteSize::mib(1), ByteSize::mib(1), Advice::WillNeed).unwrap();
    let bytes: u64 = seen(&kernel).iter().map(|seen| seen.bytes).sum();
    assert_eq!(bytes, 1 << 20);
    kernel.pread(file, ByteSize::mib(1), ByteSize::mib(1)).unwrap();
    assert_eq!(kinds(&kernel), "", "all of it is there");
    kernel.fadvise(file, ByteSize(0), ByteSize(0), Advice::DontNeed).unwrap();
    assert_eq!(kernel.cached_pages().0, 0);
    kernel.fadvise(file, ByteSize(0), ByteSize(0), Advice::Random).unwrap();
    kernel.pread(file, ByteSize(0), ByteSize::kib(4)).unwrap();
    assert_eq!(seen(&kernel)[0].bytes, 4 << 10);
}

#[test]
fn sync_file_range_writes_and_flushes_nothing() {
    let mut kernel = kernel(KernelConfig::default());
    let file = cold(&mut kernel, 16);
    (0..16).for_each(|page| _ = kernel.pwrite(file, ByteSize::kib(4 * page), ByteSize::kib(4)).unwrap());
    let how = SyncRange { wait_before: true, write: true, wait_after: true };
    kernel.sync_file_range(file, ByteSize::kib(8), ByteSize::kib(8), how).unwrap();
    let all = seen(&kernel);
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].operation, all[0].bytes), (Operation::Write, 8 << 10));
}

/// Writes 64 KiB, and each half back by itself; the sizes of the requests, KiB.
fn written_in_halves(kernel: &mut Kernel<TestDrive>, file: FileHandle, at: u64) -> Vec<u64> {
    kernel.pwrite(file, ByteSize::kib(at), ByteSize::kib(64)).unwrap();
    seen(kernel);
    let how = SyncRange { wait_before: true, write: true, wait_after: true };
    for half in [at, at + 32] {
        kernel.sync_file_range(file, ByteSize::kib(half), ByteSize::kib(32), how).unwrap();
    }
    seen(kernel).iter().map(|seen| seen.bytes >> 10).collect()
}

#[test]
fn write_back_of_a_range_writes_its_folios_whole() {
    for file_system in [FileSystemKind::Ext4, FileSystemKind::Xfs] {
        let mut kernel = kernel(KernelConfig { file_system, ..KernelConfig::default() });
        let file = cold(&mut kernel, 1024);
        assert_eq!(written_in_halves(&mut kernel, file, 32), [32, 32], "a write makes folios as it is aligned");
        (0..512).for_each(|page| _ = kernel.pread(file, ByteSize::kib(1024 + 4 * page), ByteSize::kib(4)).unwrap());
        assert_eq!(written_in_halves(&mut kernel, file, 2080), [64], "read-ahead has put both into one folio");
    }
}

#[test]
fn a_file_that_is_removed_while_it_is_open_keeps_its_space() {
    let mut kernel = kernel(KernelConfig { discard: true, ..KernelConfig::default() });
    cold(&mut kernel, 256);
    kernel.unlink("cold").unwrap();
    kernel.pause(Nanos::secs(6)).unwrap();
    assert!(!kinds(&kernel).contains('t'), "it is open");
}

#[test]
fn a_closed_file_that_is_removed_gives_its_space_back_when_the_commit_timer_fires() {
    let mut kernel = kernel(KernelConfig { discard: true, ..KernelConfig::default() });
    let file = cold(&mut kernel, 256);
    kernel.close(file).unwrap();
    let place = kernel.status("cold").unwrap().extents;
    let free = kernel.free_space();
    kernel.unlink("cold").unwrap();
    assert_eq!(kernel.free_space(), free);
    kernel.pause(Nanos::secs(6)).unwrap();
    let trims: Vec<Seen> = seen(&kernel).into_iter().filter(|seen| seen.operation == Operation::Trim).collect();
    assert_eq!(trims.len(), 1);
    assert_eq!((trims[0].offset, trims[0].bytes), (place[0].1.0, 1 << 20));
    assert_eq!(kernel.free_space().0, free.0 + (1 << 20));
}

#[test]
fn a_run_is_the_same_each_time() {
    let run = |file_system: FileSystemKind| {
        let config = KernelConfig { file_system, memory: ByteSize::mib(8), ..KernelConfig::default() };
        let mut kernel = kernel(config);
        let file = cold(&mut kernel, 2000);
        for number in 0..2000u64 {
            let place = ByteSize(number * 7919 % 2000 * 4096);
            kernel.pread(file, place, ByteSize::kib(8)).unwrap();
            kernel.pwrite(file, place, ByteSize(100)).unwrap();
        }
        kernel.fsync(file).unwrap();
        (kernel.now(), kernel.device().counters(), kernel.counters())
    };
    for kind in [FileSystemKind::Ext4, FileSystemKind::Xfs] {
        assert_eq!(run(kind), run(kind));
    }
}

#[test]
fn a_rename_replaces_a_file_and_is_durable_with_the_directory() {
    for file_system in [FileSystemKind::Ext4, FileSystemKind::Xfs] {
        let mut kernel = kernel(KernelConfig { file_system, ..KernelConfig::default() });
        let old = kernel.open("old", OpenOptions::read_write().create(true)).unwrap();
        kernel.pwrite(old, ByteSize(0), ByteSize::kib(64)).unwrap();
        kernel.close(old).unwrap();
        let new = kernel.open("new", OpenOptions::read_write().create(true)).unwrap();
        kernel.pwrite(new, ByteSize(0), ByteSize::kib(4)).unwrap();
        kernel.fsync(new).unwrap();
        kernel.rename("new", "old").unwrap();
        let before = kernel.device_counters().host_writes;
        kernel.sync_directory().unwrap();
        assert!(kernel.device_counters().host_writes > before);
        assert_eq!(kernel.list().collect::<Vec<_>>(), ["old"]);
        assert_eq!(kernel.status("old").unwrap().size, ByteSize::kib(4));
        assert!(matches!(kernel.rename("new", "other"), Err(KernelError::NotFound(_))));
        assert!(matches!(kernel.rename("old", "a/b"), Err(KernelError::BadName(_))));
        kernel.rename("old", "old").unwrap();
        kernel.check_invariants().unwrap();
    }
}

/// `msync` is a `fdatasync` of its range: one write and one flush, whatever the clock's tick does.
#[test]
fn msync_writes_its_range_and_flushes_once() {
    let mut kernel = kernel(KernelConfig::default());
    let file = cold(&mut kernel, 64);
    let map = kernel.mmap(file, ByteSize::kib(256)).unwrap();
    for page in [3, 40] {
        kernel.map_write(map, ByteSize::kib(4 * page), ByteSize(1)).unwrap();
    }
    seen(&kernel);
    kernel.msync(map, ByteSize::kib(12), ByteSize::kib(4)).unwrap();
    assert_eq!(kinds(&kernel), "wf");
    kernel.msync(map, ByteSize(0), ByteSize::kib(256)).unwrap();
    assert_eq!(kinds(&kernel), "wf");
    assert!(matches!(kernel.msync(map, ByteSize(1), ByteSize(1)), Err(KernelError::Invalid(_))));
    assert!(matches!(kernel.msync(map, ByteSize(0), ByteSize::mib(1)), Err(KernelError::Invalid(_))));
}

/// `sync` writes small files together, as the flusher does in one plug.
#[test]
fn sync_merges_what_lies_together_of_several_files() {
    let mut kernel = kernel(KernelConfig::default());
    for number in 0..100 {
        let file = kernel.open(&format!("n{number}"), OpenOptions::read_write().create(true)).unwrap();
        kernel.pwrite(file, ByteSize(0), ByteSize::kib(16)).unwrap();
        kernel.close(file).unwrap();
    }
    seen(&kernel);
    kernel.sync().unwrap();
    let writes = kinds(&kernel).chars().filter(|&kind| kind == 'w').count();
    assert!(writes < 25, "{writes} writes for 100 files");
}

/// With `lazytime` overwrites change no metadata, and `fsync` is one write and one flush; `sync` writes the time stamp.
#[test]
fn lazytime_keeps_time_stamps_out_of_the_journal() {
    for (lazytime, commits) in [(false, [3, 4, 4]), (true, [0, 0, 1])] {
        let mut kernel = kernel(KernelConfig { lazytime, ..KernelConfig::default() });
        let file = cold(&mut kernel, 16);
        // The next write meets another tick than the last one.
        kernel.pause(Nanos::millis(10)).unwrap();
        let before = kernel.counters().commits;
        let so_far = |kernel: &Kernel<TestDrive>| kernel.counters().commits - before;
        for page in 0..3 {
            kernel.pwrite(file, ByteSize::kib(4 * page), ByteSize::kib(4)).unwrap();
            kernel.pause(Nanos::secs(6)).unwrap();
        }
        let unsynced = so_far(&kernel);
        kernel.pwrite(file, ByteSize(0), ByteSize::kib(4)).unwrap();
        kernel.fsync(file).unwrap();
        let synced = so_far(&kernel);
        kernel.sync().unwrap();
        assert_eq!([unsynced, synced, so_far(&kernel)], commits, "lazytime {lazytime}");
        kernel.check_invariants().unwrap();
    }
}

/// ext4 with fast commits, mounted and with a full commit behind it, without which none is fast.
fn with_fast_commits() -> (Kernel<TestDrive>, FileHandle) {
    let mut kernel = kernel(KernelConfig { fast_commit: true, ..KernelConfig::default() });
    let file = kernel.open("a", OpenOptions::read_write().create(true)).unwrap();
    kernel.pwrite(file, ByteSize(0), ByteSize::kib(4)).unwrap();
    kernel.fsync(file).unwrap();
    assert_eq!((kernel.counters().commits, kernel.counters().fast_commits), (1, 0));
    seen(&kernel);
    (kernel, file)
}

#[test]
fn a_fast_commit_is_a_block_with_fua_behind_a_flush_and_the_full_one_is_left_to_the_timer() {
    let (mut kernel, file) = with_fast_commits();
    for page in 1..4 {
        kernel.pwrite(file, ByteSize::kib(4 * page), ByteSize::kib(4)).unwrap();
        kernel.fdatasync(file).unwrap();
    }
    let all = seen(&kernel);
    let requests: Vec<(Operation, u64, bool)> = all.iter().map(|seen| (seen.operation, seen.bytes, seen.fua)).collect();
    let (data, flush, block) =
        ((Operation::Write, 4096, false), (Operation::Flush, 0, false), (Operation::Write, 4096, true));
    assert_eq!(requests, [data, flush, block].repeat(3));
    assert_eq!([all[5].offset, all[8].offset], [all[2].offset + 4096, all[2].offset + 8192]);
    // Nothing has changed, but the transaction still runs.
    kernel.fsync(file).unwrap();
    assert_eq!(kinds(&kernel), "fw");
    assert_eq!((kernel.counters().commits, kernel.counters().fast_commits), (1, 4));
    kernel.pause(Nanos::secs(6)).unwrap();
    assert_eq!(kinds(&kernel), "wfw");
    assert_eq!((kernel.counters().commits, kernel.counters().fast_commits), (2, 4));
    // Now the log has it.
    kernel.fsync(file).unwrap();
    assert_eq!(kinds(&kernel), "f");
}

/// A journal of 8192 blocks has 127 for fast commits.
#[test]
fn a_full_area_makes_a_full_commit_and_starts_over() {
    let config = KernelConfig { fast_commit: true, ..KernelConfig::default() };
    let mut kernel = Kernel::new(TestDrive::new(ByteSize::gib(1)), config).unwrap();
    let file = kernel.open("a", OpenOptions::read_write().create(true)).unwrap();
    let mut page = 0;
    for (syncs, commits, fast_commits) in [(1 + 127, 1, 127), (1, 2, 127), (20, 2, 147)] {
        for _ in 0..syncs {
            kernel.pwrite(file, ByteSize::kib(4 * page), ByteSize::kib(4)).unwrap();
            kernel.fsync(file).unwrap();
            page += 1;
        }
        assert_eq!((kernel.counters().commits, kernel.counters().fast_commits), (commits, fast_commits));
    }
    kernel.check_invariants().unwrap();
}

#[test]
fn a_sync_of_the_directory_and_one_of_all_are_full_commits() {
    let (mut kernel, file) = with_fast_commits();
    for (number, sync) in [Kernel::sync_directory, Kernel::sync].iter().enumerate() {
        kernel.pwrite(file, ByteSize::mib(number as u64 + 1), ByteSize::kib(4)).unwrap();
        kernel.fdatasync(file).unwrap();
        sync(&mut kernel).unwrap();
    }
    assert_eq!((kernel.counters().commits, kernel.counters().fast_commits), (3, 2));
}

/// `ext4_inode_datasync_dirty`: what a fast commit has needs no sync behind a write with FUA.
#[test]
fn a_direct_write_with_o_dsync_is_one_request_behind_a_fast_commit() {
    let (mut kernel, file) = with_fast_commits();
    kernel.pwrite(file, ByteSize::kib(4), ByteSize::kib(4)).unwrap();
    kernel.fsync(file).unwrap();
    let direct = kernel.open("a", OpenOptions::read_write().direct(true).dsync(true)).unwrap();
    seen(&kernel);
    kernel.pwrite(direct, ByteSize::kib(4), ByteSize::kib(4)).unwrap();
    assert_eq!(kinds(&kernel), "w");
    // A change that none has yet.
    kernel.fallocate(file, ByteSize::kib(8), ByteSize::kib(4), Allocate::Grow).unwrap();
    kernel.pwrite(direct, ByteSize::kib(4), ByteSize::kib(4)).unwrap();
    assert_eq!(kinds(&kernel), "wfw");
}

/// `__ext4_iget`: ext4 cannot know whether the transaction that runs changed it.
#[test]
fn a_file_that_is_read_into_memory_again_is_committed_with_the_transaction_that_runs() {
    for (caches_are_dropped, requests) in [(false, "wf"), (true, "wfw")] {
        let (mut kernel, file) = with_fast_commits();
        kernel.close(file).unwrap();
        kernel.sync().unwrap();
        if caches_are_dropped {
            kernel.drop_caches().unwrap();
        }
        kernel.open("other", OpenOptions::read_write().create(true)).unwrap();
        let file = kernel.open("a", OpenOptions::read_write()).unwrap();
        seen(&kernel);
        kernel.pwrite(file, ByteSize(0), ByteSize::kib(4)).unwrap();
        kernel.fdatasync(file).unwrap();
        assert_eq!(kinds(&kernel), requests);
    }
}
