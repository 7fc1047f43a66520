//! The real device as its users see it. Where the machine cannot have one, a test says so and passes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use flashwise_block::{
    BlockDevice, BlockError, ByteSize, Clock, FileDevice, IoBuffer, Nanos, Operation, Request, ScratchFile, execute,
};

use crate::support;
use support::LoopDevice;

const MIB: ByteSize = ByteSize::mib(1);
const BLOCK: ByteSize = ByteSize::kib(4);

/// An empty directory below the build's own, on whatever disk that is.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn device_in(directory: &Path) -> Option<FileDevice> {
    match FileDevice::scratch(directory, ByteSize::mib(64)) {
        Ok(device) => Some(device),
        Err(BlockError::Refused(why)) => {
            eprintln!("SKIPPED, set CARGO_TARGET_DIR to a directory that works: {why}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn device() -> Option<(FileDevice, tempfile::TempDir)> {
    let directory = directory();
    Some((device_in(directory.path())?, directory))
}

fn refused(path: &Path) -> String {
    match ScratchFile::create(path, ByteSize::mib(64)) {
        Err(BlockError::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// 4 KiB that tell which block they belong to.
fn stamped(block: u64) -> IoBuffer {
    IoBuffer::copy_of(&(0..512u64).flat_map(|word| (block << 16 | word).to_le_bytes()).collect::<Vec<_>>())
}

#[test]
fn many_writes_in_flight_at_scattered_places_are_read_back_with_tags_and_buffers() {
    let Some((mut device, _directory)) = device() else { return };
    // 7919 is prime, so the places are scattered and all different.
    let place = |n: u64| n * 7919 % (device.info().capacity / BLOCK);
    let places: Vec<_> = (0..500).map(place).collect();
    for &block in &places {
        device.submit(Request::write(BLOCK * block, BLOCK).with_buffer(stamped(block)).tagged(block)).unwrap();
    }
    assert_eq!(device.outstanding(), 500);
    while let Some(completion) = device.wait().unwrap() {
        completion.result.unwrap();
        assert_eq!(completion.operation, Operation::Write);
        assert!(*completion.buffer.unwrap() == *stamped(completion.tag));
    }
    for &block in places.iter().rev() {
        let read = Request::read(BLOCK * block, BLOCK).with_buffer(IoBuffer::zeroed(4096));
        device.submit(read.tagged(block)).unwrap();
    }
    let mut left = 500;
    while let Some(completion) = device.wait().unwrap() {
        left -= 1;
        assert_eq!(device.outstanding(), left);
        completion.result.unwrap();
        assert!(*completion.buffer.unwrap() == *stamped(completion.tag), "block {}", completion.tag);
    }
    assert_eq!(left, 0);
}

#[test]
fn times_are_the_devices_own_and_in_order() {
    let Some((mut device, _directory)) = device() else { return };
    let before = device.now();
    let completion = execute(&mut device, Request::write(ByteSize(0), MIB)).unwrap();
    let after = device.now();
    assert!(before <= completion.submitted_at && completion.completed_at <= after);
    assert!(completion.latency() > Nanos(0));
    assert!(after < Nanos::secs(3600), "the clock starts when the device is opened");
}

#[test]
fn the_device_describes_itself() {
    let Some((device, directory)) = device() else { return };
    let info = device.info();
    assert_eq!((info.capacity, info.clock), (ByteSize::mib(64), Clock::Wall));
    assert!(info.name.starts_with(&*fs::canonicalize(directory.path()).unwrap().to_string_lossy()), "{}", info.name);
    assert!(info.name.ends_with(')') && !info.name.contains("unknown"), "{}", info.name);
    assert!(info.queue_depth >= 64);
    assert!([512, 4096].contains(&info.logical_block.0), "{}", info.logical_block);
}

#[test]
fn the_smallest_and_the_largest_request_work() {
    let Some((mut device, _directory)) = device() else { return };
    let (smallest, largest) = (device.info().logical_block, device.info().max_transfer);
    for length in [smallest, largest] {
        let end = ByteSize(device.info().capacity.0 - length.0);
        let data: Vec<u8> = (0..length.0).map(|i| (i % 251) as u8).collect();
        execute(&mut device, Request::write(end, length).with_buffer(IoBuffer::copy_of(&data))).unwrap();
        let read = Request::read(end, length).with_buffer(IoBuffer::zeroed(length.0 as usize));
        assert!(*execute(&mut device, read).unwrap().buffer.unwrap() == *data);
    }
}

#[test]
fn a_write_without_a_payload_does_not_compress() {
    let Some((mut device, _directory)) = device() else { return };
    execute(&mut device, Request::write(ByteSize(0), MIB)).unwrap();
    let read = Request::read(ByteSize(0), MIB).with_buffer(IoBuffer::zeroed(1 << 20));
    let data = execute(&mut device, read).unwrap().buffer.unwrap();
    let ones: u32 = data.iter().map(|byte| byte.count_ones()).sum();
    assert!((4_180_000..4_209_000).contains(&ones), "{ones} of 8388608 bits are ones");
    let words: std::collections::HashSet<_> = data.chunks(8).collect();
    assert_eq!(words.len(), 1 << 17);
}

#[test]
fn a_write_of_zeros_leaves_zeros_and_nothing_else_changed() {
    let Some((mut device, _directory)) = device() else { return };
    for block in 0..3 {
        execute(&mut device, Request::write(BLOCK * block, BLOCK).with_buffer(stamped(block))).unwrap();
    }
    execute(&mut device, Request::write_zeroes(BLOCK, BLOCK).with_fua()).unwrap();
    let read = Request::read(ByteSize(0), BLOCK * 3).with_buffer(IoBuffer::zeroed(3 * 4096));
    let bytes = execute(&mut device, read).unwrap().buffer.unwrap();
    assert!(bytes[..4096] == *stamped(0) && bytes[4096..8192].iter().all(|&b| b == 0) && bytes[8192..] == *stamped(2));
    assert_eq!((device.counters().zero_writes, device.counters().bytes_zeroed), (1, BLOCK));
}

#[test]
fn fua_writes_flushes_and_trims_complete_and_trimmed_bytes_are_zeros() {
    let Some((mut device, _directory)) = device() else { return };
    execute(&mut device, Request::write(ByteSize(0), BLOCK).with_buffer(stamped(7)).with_fua()).unwrap();
    execute(&mut device, Request::write(BLOCK, BLOCK).with_buffer(stamped(8))).unwrap();
    execute(&mut device, Request::flush()).unwrap();
    execute(&mut device, Request::trim(ByteSize(0), BLOCK)).unwrap();
    let mut contents = |offset| {
        let read = Request::read(offset, BLOCK).with_buffer(stamped(9));
        execute(&mut device, read).unwrap().buffer.unwrap()
    };
    assert!(*contents(ByteSize(0)) == [0; 4096]);
    assert!(*contents(BLOCK) == *stamped(8));
    // A trim may be larger than any transfer.
    let everything = device.info().capacity;
    execute(&mut device, Request::trim(ByteSize(0), everything)).unwrap();
    assert_eq!(device.info().capacity, everything);
}

#[test]
fn what_reaches_behind_the_end_or_is_misaligned_is_refused_before_it_starts() {
    let Some((mut device, _directory)) = device() else { return };
    let end = device.info().capacity;
    for request in [
        Request::read(end, BLOCK),
        Request::write(ByteSize(end.0 - 4096), BLOCK * 2),
        Request::trim(ByteSize(u64::MAX - 4095), BLOCK),
        Request::read(ByteSize(100), BLOCK),
        Request::write(ByteSize(0), ByteSize(100)),
        Request::write(ByteSize(0), ByteSize(0)),
        Request::read(ByteSize(0), ByteSize(device.info().max_transfer.0 + 4096)),
    ] {
        let described = format!("{request:?}");
        let error = device.submit(request).unwrap_err();
        assert!(matches!(error, BlockError::InvalidRequest { .. }), "{described}: {error:?}");
    }
    assert_eq!(device.outstanding(), 0);
    assert!(device.wait().unwrap().is_none());
}

#[test]
fn counters_tell_what_completed_and_nothing_of_the_flash() {
    let Some((mut device, _directory)) = device() else { return };
    for request in [
        Request::write(ByteSize(0), MIB),
        Request::write(MIB, BLOCK),
        Request::read(ByteSize(0), BLOCK),
        Request::flush(),
        Request::flush(),
        Request::trim(ByteSize(0), MIB),
    ] {
        execute(&mut device, request).unwrap();
    }
    let counters = device.counters();
    assert_eq!((counters.host_writes, counters.host_bytes_written), (2, MIB + BLOCK));
    assert_eq!((counters.host_reads, counters.host_bytes_read), (1, BLOCK));
    assert_eq!((counters.flushes, counters.trims, counters.flash), (2, 1, None));
}

#[test]
fn the_scratch_file_is_allocated_in_full_has_no_name_and_leaves_nothing_behind() {
    let directory = directory();
    let entries = || fs::read_dir(directory.path()).unwrap().count();
    let Some(mut device) = device_in(directory.path()) else { return };
    assert_eq!(entries(), 0, "nothing for a SIGKILL to leave behind");
    execute(&mut device, Request::write(ByteSize(0), MIB)).unwrap();
    drop(device);
    assert_eq!(entries(), 0);

    let Ok(scratch) = ScratchFile::create(directory.path(), ByteSize(ByteSize::mib(65).0 + 5)) else { return };
    assert_eq!(scratch.size(), ByteSize::mib(65));
    let blocks =
        open_files_in(scratch.directory()).into_iter().map(|(length, blocks)| (length, blocks >= length / 512));
    assert_eq!(blocks.collect::<Vec<_>>(), [(65 << 20, true)]);
}

/// Length and 512-byte blocks of the unlinked files that this process has open in `directory`.
fn open_files_in(directory: &Path) -> Vec<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let handles = fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
    let is_here = |path: &PathBuf| fs::read_link(path).is_ok_and(|target| target.starts_with(directory));
    let sizes = handles.filter(is_here).filter_map(|path| fs::metadata(path).ok());
    sizes.filter(|metadata| metadata.is_file()).map(|metadata| (metadata.len(), metadata.blocks())).collect()
}

#[test]
fn a_scratch_file_never_takes_more_than_a_tenth_of_the_free_space() {
    let directory = directory();
    let free = rustix::fs::statvfs(directory.path()).map(|space| space.f_bavail * space.f_frsize).unwrap();
    if free > 64 << 30 {
        eprintln!("SKIPPED: {} are free, a tenth would be too much for a test", ByteSize(free));
        return;
    }
    match ScratchFile::create(directory.path(), ByteSize(u64::MAX)) {
        // Others use the disk at the same time.
        Ok(scratch) => assert!(scratch.size().0 <= free / 10 + (64 << 20)),
        Err(error) => eprintln!("SKIPPED: {error}"),
    }
}

#[test]
fn an_existing_file_is_refused_and_stays_as_it_is() {
    let directory = directory();
    let path = directory.path().join("precious.db");
    fs::write(&path, "data").unwrap();
    let link = directory.path().join("link");
    symlink(&path, &link).unwrap();
    for path in [&path, &link] {
        let why = refused(path);
        assert!(why.starts_with(&*path.to_string_lossy()), "{why}");
        assert!(why.contains("existing files are never written to; give a directory"), "{why}");
    }
    assert_eq!(fs::read(&path).unwrap(), b"data");
    assert!(refused(Path::new("/dev/null")).contains("neither a directory nor a disk"));
}

#[test]
fn a_missing_directory_is_told_with_its_path() {
    match ScratchFile::create(Path::new("/nowhere/at/all"), ByteSize::mib(64)) {
        Err(error @ BlockError::Os { errno: libc::ENOENT, .. }) => {
            assert!(error.to_string().starts_with("/nowhere/at/all: "), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_block_device_is_refused_and_stays_as_it_is() {
    let directory = directory();
    let file = directory.path().join("image");
    fs::write(&file, vec![0x5a; 1 << 20]).unwrap();
    if let Some(device) = LoopDevice::over(&file) {
        let why = refused(device.path());
        assert!(why.contains("is a block device, and a scratch file needs a directory; give a directory"), "{why}");
    }
    assert!(fs::read(&file).unwrap().iter().all(|&byte| byte == 0x5a));
}

#[test]
fn a_device_may_move_to_another_thread_with_requests_in_flight() {
    let Some((mut device, _directory)) = device() else { return };
    for block in 0..64 {
        device.submit(Request::write(BLOCK * block, BLOCK)).unwrap();
    }
    let reaped = std::thread::spawn(move || {
        let mut reaped = 0;
        while let Some(completion) = device.wait().unwrap() {
            completion.result.unwrap();
            reaped += 1;
        }
        reaped
    });
    assert_eq!(reaped.join().unwrap(), 64);
}
