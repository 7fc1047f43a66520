//! A drive whose bytes are in a file: it can be detached and attached again, and is the same drive then.

use crate::support;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flashwise_attach::{AttachError, Continuation, DataFile, Engine, HostCompletion, HostRequest, Pace};
use flashwise_block::{BlockDevice, BlockError, ByteSize, IoBuffer, Operation};
use flashwise_ssd::config::{CompressionConfig, DeduplicationConfig, Placement, ReductionConfig};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use proptest::prelude::*;
use support::{Client, FLUSH, FUA, Served, TRIM, WRITE, WRITE_ZEROES};
use tempfile::TempDir;

/// A drive that is small enough to collect garbage in a test.
fn config() -> DeviceConfig {
    let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
    (config.flash.blocks_per_plane, config.flash.pages_per_block) = (13, 8);
    config.ftl.gc.free_superblocks = Some(2);
    config.host.max_transfer_bytes = 256 << 10;
    (config.controller.write_buffer_bytes, config.capacity_bytes) = (2 << 20, 14 << 20);
    config.check("a small drive").unwrap();
    config
}

/// The same, and it compresses.
fn compressing() -> DeviceConfig {
    let mut config = config();
    (config.flash.blocks_per_plane, config.ftl.gc.free_superblocks) = (16, Some(4));
    config.controller.power_loss_protection = true;
    config.reduction =
        Some(ReductionConfig { compression: Some(CompressionConfig::default()), ..ReductionConfig::default() });
    config.check("a small drive that compresses").unwrap();
    config
}

/// The same, and it stores equal pages once.
fn sharing() -> DeviceConfig {
    let mut config = compressing();
    config.host.logical_block_bytes = 4096;
    let reduction = config.reduction.as_mut().unwrap();
    reduction.deduplication = Some(DeduplicationConfig { out_of_line: true, ..DeduplicationConfig::default() });
    config.check("a small drive that shares").unwrap();
    config
}

/// Bytes that cannot be compressed (SplitMix64).
fn noise(n: u64) -> u8 {
    let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 56) as u8
}

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn image(&self) -> PathBuf {
        self.0.path().join("drive.img")
    }

    fn beside(&self, ending: &str) -> PathBuf {
        self.0.path().join(format!("drive.img{ending}"))
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn open(&self, config: &DeviceConfig) -> Result<(SimulatedSsd, DataFile, Continuation), AttachError> {
        let mut data = DataFile::open(&self.image(), ByteSize(config.capacity_bytes))?;
        let new = || Ok::<_, AttachError>(SimulatedSsd::new(config.clone(), 1).unwrap());
        let (drive, continuation) = data.drive(config, new)?;
        Ok((drive, data, continuation))
    }

    fn attach(&self, pace: Pace) -> (Engine, Continuation) {
        self.attach_one(&config(), pace)
    }

    fn attach_one(&self, config: &DeviceConfig, pace: Pace) -> (Engine, Continuation) {
        let (drive, data, continuation) = self.open(config).unwrap();
        let mut engine = Engine::new(drive, pace, Duration::ZERO, None, Instant::now()).unwrap();
        engine.store_content_in(data, false);
        (engine, continuation)
    }

    fn refused(&self, config: &DeviceConfig) -> String {
        self.open(config).map(|_| ()).unwrap_err().to_string()
    }
}

/// Does a command on a drive that has all the time of the world.
fn execute(
    engine: &mut Engine,
    operation: Operation,
    offset: u64,
    length: u64,
    bytes: Option<&[u8]>,
) -> HostCompletion {
    let payload = bytes.map(IoBuffer::copy_of);
    let (offset, length) = (ByteSize(offset), ByteSize(length));
    let command = HostRequest { client: 1, cookie: 0, process: None, operation, offset, length, fua: false, payload };
    let (now, mut answers) = (Instant::now(), Vec::new());
    engine.submit(command, now).unwrap();
    engine.poll(now, &mut answers).unwrap();
    answers.pop().unwrap()
}

fn write(engine: &mut Engine, offset: u64, bytes: &[u8]) {
    execute(engine, Operation::Write, offset, bytes.len() as u64, Some(bytes)).result.unwrap();
}

#[test]
fn what_was_written_is_there_after_a_detach_for_clients_and_in_the_file() {
    let files = Files::new();
    let (engine, continuation) = files.attach(Pace::Free);
    assert_eq!(continuation, Continuation::New);
    let served = Served::of(engine);
    let mut client = Client::connect(&served.socket);
    client.write(0, &[1; 8192]);
    assert_eq!(client.execute(FUA, WRITE, 1 << 20, 4096, &[2; 4096]), 0);
    client.write(2 << 20, &[3; 64 << 10]);
    assert_eq!(client.execute(0, TRIM, 2 << 20, 32 << 10, &[]), 0);
    assert_eq!(client.execute(0, WRITE_ZEROES, 100 * 512, 512, &[]), 0);
    assert_eq!(client.execute(0, FLUSH, 0, 0, &[]), 0);
    assert_eq!(files.names(), ["drive.img", "drive.img.ftl", "drive.img.ftl.attached"]);
    served.end();
    assert_eq!(files.names(), ["drive.img", "drive.img.ftl"]);
    let image = File::open(files.image()).unwrap();
    let (length, blocks) = (image.metadata().unwrap().len(), image.metadata().unwrap().blocks());
    assert_eq!(length, config().capacity_bytes);
    assert!(blocks * 512 <= (8 + 4 + 32 + 64) << 10, "{blocks} blocks of 512 bytes: it is sparse, trimmed pages too");
    let mut bytes = [0; 4096];
    image.read_exact_at(&mut bytes, 1 << 20).unwrap();
    assert_eq!(bytes, [2; 4096], "a raw image");
    let (engine, continuation) = files.attach(Pace::Free);
    assert!(matches!(continuation, Continuation::Exact { at_ns } if at_ns > 0), "{continuation}");
    let served = Served::of(engine);
    let mut client = Client::connect(&served.socket);
    assert_eq!((client.read(0, 8192), client.read(1 << 20, 4096)), (vec![1; 8192], vec![2; 4096]));
    assert_eq!(client.read(2 << 20, 64 << 10), [[0; 32 << 10], [3; 32 << 10]].concat());
    served.end();
}

#[test]
fn the_drive_goes_on_with_its_wear_its_counters_and_its_clock() {
    let files = Files::new();
    let mut before: Option<(u64, u64, u64)> = None;
    for round in 0..3_u64 {
        let (drive, data, _) = files.open(&config()).unwrap();
        let flash = drive.counters().flash.unwrap();
        let found = (flash.erases, flash.bytes_programmed.0, drive.now().0);
        if let Some(before) = before {
            assert!(before.0 > 0, "the first rounds have collected garbage");
            assert_eq!(found, before);
        }
        let mut engine = Engine::new(drive, Pace::Free, Duration::ZERO, None, Instant::now()).unwrap();
        engine.store_content_in(data, false);
        let random = |n: u64| (n * 2_654_435_761 + round) % 3500 * 4096;
        (0..12_000).for_each(|n| write(&mut engine, random(n), &[n as u8; 4096]));
        engine.detach().unwrap();
        let report = engine.finish().unwrap();
        let (drive, _data, _) = files.open(&config()).unwrap();
        let flash = drive.counters().flash.unwrap();
        let now = (flash.erases, flash.bytes_programmed.0, drive.now().0);
        let programmed = report.counters.flash.unwrap().bytes_programmed.0;
        assert_eq!(now.1, found.1 + programmed, "the report is of this round alone");
        before = Some(now);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Beside the same drive with its bytes in memory that is never detached.
    #[test]
    fn a_drive_in_a_file_is_as_fast_as_one_in_memory_and_reads_the_same(
        steps in prop::collection::vec((0_u8..12, 0_u64..3000, 1_u64..200, any::<u8>()), 1..80),
        config in prop::sample::select(vec![config(), compressing(), sharing()]),
    ) {
        let files = Files::new();
        let memory = |config: &DeviceConfig| {
            let mut drive = SimulatedSsd::new(config.clone(), 1).unwrap();
            drive.shut_down().unwrap();
            Engine::new(drive, Pace::Free, Duration::ZERO, None, Instant::now()).unwrap()
        };
        let (mut in_memory, (mut in_file, _)) = (memory(&config), files.attach_one(&config, Pace::Free));
        for (kind, block, blocks, byte) in steps {
            let block_bytes = config.host.logical_block_bytes;
            let (offset, length) = ((block << 9) / block_bytes * block_bytes, (blocks << 9).next_multiple_of(block_bytes));
            // Some of it can be compressed, some of it is zeros, some pages are alike.
            let byte_at = |n: u64| if n % 8 < byte.into() { byte ^ (n >> 9) as u8 } else { ((n * n) >> 7) as u8 };
            let bytes: Vec<u8> = (0..length).map(byte_at).collect();
            let (operation, bytes) = match kind {
                0 => (Operation::Trim, None),
                1 => (Operation::WriteZeroes, None),
                2 => (Operation::Flush, None),
                3 => {
                    // Detached and attached again; no time passes.
                    in_file.detach().unwrap();
                    in_file.finish().unwrap();
                    let (engine, continuation) = files.attach_one(&config, Pace::Free);
                    let is_exact = matches!(continuation, Continuation::Exact { .. });
                    prop_assert!(is_exact, "{}", continuation);
                    in_file = engine;
                    continue;
                }
                4..=7 => (Operation::Read, None),
                _ => (Operation::Write, Some(&*bytes)),
            };
            let (offset, length) = if operation == Operation::Flush { (0, 0) } else { (offset, length) };
            let expected = execute(&mut in_memory, operation, offset, length, bytes);
            let found = execute(&mut in_file, operation, offset, length, bytes);
            prop_assert_eq!(found.result.is_ok(), expected.result.is_ok());
            prop_assert!(found.payload.as_deref() == expected.payload.as_deref(), "{:?} at {}", operation, offset);
        }
        in_file.detach().unwrap();
        let image = std::fs::read(files.image()).unwrap();
        let read = execute(&mut in_memory, Operation::Read, 0, config.capacity_bytes, None).payload.unwrap();
        prop_assert!(image[..] == read[..], "the image is what the drive reads as");
    }
}

#[test]
fn answers_of_a_drive_in_a_file_come_when_those_of_one_in_memory_do() {
    for config in [config(), compressing(), sharing()] {
        let files = Files::new();
        let (mut in_file, _) = files.attach_one(&config, Pace::Free);
        let drive = SimulatedSsd::new(config, 1).unwrap();
        let mut in_memory = Engine::new(drive, Pace::Free, Duration::ZERO, None, Instant::now()).unwrap();
        for engine in [&mut in_file, &mut in_memory] {
            (0..2000_u64).for_each(|n| {
                write(engine, n * 7919 % 3500 * 4096, &[n as u8; 4096]);
                execute(engine, Operation::Read, n * 104_729 % 3500 * 4096, 4096, None).result.unwrap();
            });
        }
        let (file, memory) = (in_file.finish().unwrap(), in_memory.finish().unwrap());
        // The flush of the new drive's first shutdown takes no time of flash, and the draws of the jitter are the same.
        assert_eq!((file.latency, file.counters), (memory.latency, memory.counters));
        assert_eq!(file.space, memory.space);
    }
}

#[test]
fn a_drive_that_reduces_knows_after_a_detach_how_much_room_its_pages_take() {
    for config in [compressing(), sharing()] {
        let files = Files::new();
        let (mut engine, _) = files.attach_one(&config, Pace::Free);
        // Pages of which a quarter is noise, and every other one is there twice.
        let page =
            |n: u64| -> Vec<u8> { (0..4096).map(|at| if at < 1024 { noise(n * 1024 + at) } else { 0 }).collect() };
        (0..1000).for_each(|n| write(&mut engine, n * 4096, &page(n - n % 4 / 3)));
        engine.detach().unwrap();
        let before = engine.finish().unwrap().space.unwrap();
        assert!(before.physical_bytes < before.logical_bytes / 2, "{before:?}");
        let (drive, data, continuation) = files.open(&config).unwrap();
        assert!(matches!(continuation, Continuation::Exact { .. }), "{continuation}");
        assert_eq!(drive.space_use(), Some(before));
        let mut engine = Engine::new(drive, Pace::Free, Duration::ZERO, None, Instant::now()).unwrap();
        engine.store_content_in(data, false);
        // A page that is changed in part is stored as the whole of it can be.
        let block = config.host.logical_block_bytes;
        write(&mut engine, 0, &vec![0; block as usize]);
        let space = engine.finish().unwrap().space.unwrap();
        assert!(space.physical_bytes < before.physical_bytes, "{space:?} {before:?}");
    }
}

#[test]
fn a_drive_that_reduces_and_was_killed_stores_what_the_image_has() {
    for config in [compressing(), sharing()] {
        let files = Files::new();
        let (mut engine, _) = files.attach_one(&config, Pace::Free);
        write(&mut engine, 0, &[1; 64 << 10]);
        engine.detach().unwrap();
        drop(engine);
        let (mut engine, _) = files.attach_one(&config, Pace::Free);
        let noise: Vec<u8> = (0..64 << 10).map(noise).collect();
        write(&mut engine, 32 << 10, &noise);
        write(&mut engine, 4 << 20, &[3; 4096]);
        write(&mut engine, 5 << 20, &[0; 4096]);
        drop(engine);
        let (drive, data, continuation) = files.open(&config).unwrap();
        let Continuation::Approximate { unknown_bytes, .. } = continuation else { panic!("{continuation}") };
        assert_eq!(unknown_bytes, (64 << 10) + 4096, "what was not mapped, or not like that");
        assert_eq!(drive.check_invariants(), Ok(()));
        let space = drive.space_use().unwrap();
        assert_eq!(space.logical_bytes, (96 << 10) + 4096, "nothing is stored of zeros");
        assert!((64 << 10..70 << 10).contains(&space.physical_bytes), "noise takes all of its room: {space:?}");
        let mut engine = Engine::new(drive, Pace::Free, Duration::ZERO, None, Instant::now()).unwrap();
        engine.store_content_in(data, false);
        let read = execute(&mut engine, Operation::Read, 0, 96 << 10, None).payload.unwrap();
        assert!(read[..32 << 10] == [1; 32 << 10] && read[32 << 10..] == noise);
        engine.detach().unwrap();
        drop(engine);
        assert!(matches!(files.attach_one(&config, Pace::Free).1, Continuation::Exact { .. }), "a detach mends it");
    }
}

#[test]
fn an_image_for_which_a_drive_that_reduces_has_no_room_is_refused() {
    let mut config = compressing();
    config.reduction.as_mut().unwrap().physical_bytes = Some(1 << 20);
    config.ftl.placement = Placement::RoundRobin;
    config.check("a thin drive").unwrap();
    let files = Files::new();
    let image = File::create(files.image()).unwrap();
    image.set_len(config.capacity_bytes).unwrap();
    let noise: Vec<u8> = (0..2 << 20).map(noise).collect();
    image.write_all_at(&noise, 0).unwrap();
    drop(image);
    let words = files.refused(&config);
    assert!(words.ends_with("drive.img: the drive has no space for its content"), "{words}");
}

#[test]
fn a_drive_whose_state_leaves_no_room_for_what_the_image_holds_says_what_to_do() {
    let mut config = compressing();
    config.reduction.as_mut().unwrap().physical_bytes = Some(1 << 20);
    config.ftl.placement = Placement::RoundRobin;
    let files = Files::new();
    let (mut engine, _) = files.attach_one(&config, Pace::Free);
    let noise: Vec<u8> = (0..1 << 20).map(noise).collect();
    write(&mut engine, 0, &noise);
    engine.detach().unwrap();
    drop(engine);
    let (mut engine, _) = files.attach_one(&config, Pace::Free);
    execute(&mut engine, Operation::Trim, 0, 1 << 20, None).result.unwrap();
    write(&mut engine, 4 << 20, &noise);
    // Killed: the state knows nothing of the trim.
    drop(engine);
    let words = files.refused(&config);
    assert!(words.contains("drive.img.ftl: the drive has no space for the content of the image (move it"), "{words}");
    std::fs::remove_file(files.beside(".ftl")).unwrap();
    let (mut engine, continuation) = files.attach_one(&config, Pace::Free);
    assert!(matches!(continuation, Continuation::Approximate { unknown_bytes: 0x10_0000, .. }), "{continuation}");
    assert!(execute(&mut engine, Operation::Read, 4 << 20, 1 << 20, None).payload.unwrap()[..] == noise);
}

#[test]
fn a_drive_that_takes_no_more_writes_is_attached_with_what_its_image_holds() {
    let files = Files::new();
    let image = File::create(files.image()).unwrap();
    image.set_len(config().capacity_bytes).unwrap();
    image.write_all_at(&[7; 8192], 1 << 20).unwrap();
    drop(image);
    let mut data = DataFile::open(&files.image(), ByteSize(config().capacity_bytes)).unwrap();
    let worn = || {
        let mut drive = SimulatedSsd::new(config(), 1).unwrap();
        let superblocks = drive.erase_histogram().values().sum::<u64>() as u32;
        (0..superblocks).for_each(|block| drive.retire_block(block));
        assert!(drive.is_read_only());
        Ok::<_, AttachError>(drive)
    };
    let (drive, _) = data.drive(&config(), worn).unwrap();
    let mut engine = Engine::new(drive, Pace::Free, Duration::ZERO, None, Instant::now()).unwrap();
    engine.store_content_in(data, false);
    assert_eq!(execute(&mut engine, Operation::Read, 1 << 20, 512, None).payload.unwrap()[..], [7; 512]);
}

#[test]
fn memory_that_a_drive_that_reduces_has_for_its_content_counts_what_was_there_before() {
    let files = Files::new();
    let (mut engine, _) = files.attach_one(&compressing(), Pace::Free);
    write(&mut engine, 0, &[1; 8 * 4096]);
    engine.detach().unwrap();
    drop(engine);
    let (drive, data, _) = files.open(&compressing()).unwrap();
    let mut engine = Engine::new(drive, Pace::Free, Duration::ZERO, None, Instant::now()).unwrap();
    engine.limit_memory(ByteSize(10 * 4096), 1);
    engine.store_content_in(data, false);
    let mut result = |at: u64, pages: usize| {
        let bytes = vec![7; pages * 4096];
        execute(&mut engine, Operation::Write, at * 4096, bytes.len() as u64, Some(&bytes)).result
    };
    assert_eq!((result(4, 6), result(2, 2)), (Ok(()), Ok(())), "two more pages");
    assert_eq!(result(10, 1), Err(BlockError::NoSpace), "an eleventh");
}

/// Names and contents of all files.
fn everything(files: &Files) -> Vec<(String, Vec<u8>)> {
    let read = |name: String| (name.clone(), std::fs::read(files.0.path().join(name)).unwrap());
    files.names().into_iter().map(read).collect()
}

/// A drive that was written to and detached.
fn detached(config: &DeviceConfig) -> Files {
    let files = Files::new();
    let (mut engine, _) = files.attach_one(config, Pace::Free);
    write(&mut engine, 0, &[1; 64 << 10]);
    engine.detach().unwrap();
    files
}

#[test]
fn a_state_without_its_image_is_refused_by_name_and_stays_as_it_was() {
    for other in [config(), compressing()] {
        let files = detached(&config());
        std::fs::rename(files.image(), files.beside(".moved")).unwrap();
        let before = everything(&files);
        let words = files.refused(&other);
        assert!(words.contains("drive.img.ftl: the drive's state is here but its image is not"), "{words}");
        assert_eq!(everything(&files), before, "no new image, and nothing gone");
        std::fs::rename(files.beside(".moved"), files.image()).unwrap();
        assert!(matches!(files.attach_one(&config(), Pace::Free).1, Continuation::Exact { .. }));
    }
}

#[test]
fn an_image_with_the_state_of_another_drive_is_refused_and_both_stay_as_they_were() {
    let files = detached(&compressing());
    let before = everything(&files);
    let mut other = config();
    other.capacity_bytes = compressing().capacity_bytes;
    let words = files.refused(&other);
    assert!(words.contains("drive.img.ftl: "), "{words}");
    assert_eq!(everything(&files), before);
}

#[test]
fn an_image_that_goes_or_is_another_one_at_the_end_is_an_error_and_the_state_stays() {
    for becomes in [None, Some("another file")] {
        let files = detached(&config());
        let state = std::fs::read(files.beside(".ftl")).unwrap();
        let (mut engine, _) = files.attach(Pace::Free);
        write(&mut engine, 0, &[2; 4096]);
        std::fs::remove_file(files.image()).unwrap();
        if let Some(text) = becomes {
            std::fs::write(files.image(), text).unwrap();
        }
        let error = engine.detach().unwrap_err();
        assert!(matches!(error, AttachError::NotSaved { .. }), "{error:?}");
        assert!(error.to_string().contains("is gone or was replaced by another file"), "{error}");
        assert_eq!(std::fs::read(files.beside(".ftl")).unwrap(), state);
        assert!(files.beside(".ftl.attached").exists(), "the drive was not detached");
        assert_eq!(std::fs::read_to_string(files.image()).ok().as_deref(), becomes);
    }
}

#[test]
fn a_state_that_somebody_puts_in_the_place_of_ours_stays() {
    let files = detached(&config());
    let (mut engine, _) = files.attach(Pace::Free);
    std::fs::write(files.beside(".mine"), "mine").unwrap();
    std::fs::rename(files.beside(".mine"), files.beside(".ftl")).unwrap();
    let error = engine.detach().unwrap_err().to_string();
    assert!(error.contains("another file has its name now"), "{error}");
    assert_eq!(std::fs::read_to_string(files.beside(".ftl")).unwrap(), "mine");
}

#[test]
fn a_file_of_the_mark_s_name_that_is_no_mark_is_refused_and_stays() {
    let files = detached(&config());
    std::fs::write(files.beside(".ftl.attached"), "mine").unwrap();
    let before = everything(&files);
    let words = files.refused(&config());
    assert!(words.contains("it is not flashwise's mark of an attached drive"), "{words}");
    assert_eq!(everything(&files), before);
}

#[test]
fn the_state_of_a_private_image_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let files = Files::new();
    let image = File::create(files.image()).unwrap();
    image.set_len(config().capacity_bytes).unwrap();
    image.set_permissions(std::fs::Permissions::from_mode(0o600)).unwrap();
    let (mut engine, _) = files.attach(Pace::Free);
    for beside in [".ftl", ".ftl.attached"] {
        assert_eq!(std::fs::metadata(files.beside(beside)).unwrap().mode() & 0o777, 0o600, "{beside}");
    }
    engine.detach().unwrap();
    assert_eq!(std::fs::metadata(files.beside(".ftl")).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_drive_that_was_killed_has_its_bytes_and_says_that_its_ftl_is_older() {
    let files = Files::new();
    let (mut engine, _) = files.attach(Pace::Free);
    write(&mut engine, 0, &[1; 64 << 10]);
    engine.detach().unwrap();
    drop(engine);
    let (mut engine, _) = files.attach(Pace::Free);
    write(&mut engine, 32 << 10, &[2; 64 << 10]);
    write(&mut engine, 4 << 20, &[3; 4096]);
    drop(engine);
    assert!(files.beside(".ftl.attached").exists());
    let (drive, data, continuation) = files.open(&config()).unwrap();
    let Continuation::Approximate { reason, unknown_bytes } = continuation else { panic!("{continuation}") };
    assert_eq!(
        (reason, unknown_bytes),
        ("the drive was not detached", (32 << 10) + 4096),
        "what was not mapped before"
    );
    assert_eq!(drive.check_invariants(), Ok(()));
    assert!(
        [0, 64 << 10, 4 << 20].iter().all(|&at| drive.is_mapped(ByteSize(at))) && !drive.is_mapped(ByteSize(5 << 20))
    );
    let mut engine = Engine::new(drive, Pace::Free, Duration::ZERO, None, Instant::now()).unwrap();
    engine.store_content_in(data, false);
    let read = execute(&mut engine, Operation::Read, 0, 96 << 10, None).payload.unwrap();
    assert!(read[..32 << 10] == [1; 32 << 10] && read[32 << 10..] == [2; 64 << 10]);
    engine.detach().unwrap();
    drop(engine);
    assert!(matches!(files.attach(Pace::Free).1, Continuation::Exact { .. }), "a detach mends it");
}

#[test]
fn a_machine_that_went_down_is_told_from_a_drive_that_was_killed() {
    let files = Files::new();
    files.attach(Pace::Free).0.detach().unwrap();
    for synced in [false, true] {
        let (drive, mut data, _) = files.open(&config()).unwrap();
        drop(drive);
        if synced {
            drop(data);
            data = DataFile::open(&files.image(), ByteSize(config().capacity_bytes)).unwrap();
            data.sync_at_flush();
            data.drive(&config(), || Err::<SimulatedSsd, AttachError>(AttachError::NoPowerCuts)).unwrap();
        }
        let mark = std::fs::read_to_string(files.beside(".ftl.attached")).unwrap();
        drop(data);
        // The boot that it names is over.
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        assert!(mark.contains(boot.trim()), "{mark}");
        std::fs::write(files.beside(".ftl.attached"), mark.replace(boot.trim(), "another")).unwrap();
        let continuation = files.open(&config()).unwrap().2;
        assert_eq!(continuation, Continuation::AfterCrash { synced, unknown_bytes: 0 });
        let words =
            if synced { "flushed data is present" } else { "the image has the data that the machine had written back" };
        assert!(continuation.to_string().contains(words), "{continuation}");
        files.attach(Pace::Free).0.detach().unwrap();
    }
}

#[test]
fn an_image_that_was_changed_meanwhile_is_recognised() {
    let files = Files::new();
    files.attach(Pace::Free).0.detach().unwrap();
    let image = OpenOptions::new().write(true).open(files.image()).unwrap();
    image.write_all_at(&[7; 4096], 3 << 20).unwrap();
    drop(image);
    let (mut engine, continuation) = files.attach(Pace::Free);
    let changed = "the image was modified while the drive was detached";
    assert_eq!(continuation, Continuation::Approximate { reason: changed, unknown_bytes: 4096 });
    assert!(continuation.to_string().contains("4 KiB written since"), "{continuation}");
    assert_eq!(execute(&mut engine, Operation::Read, 3 << 20, 512, None).payload.unwrap()[..], [7; 512]);
}

#[test]
fn an_image_without_a_state_becomes_a_new_drive_that_holds_it() {
    let files = Files::new();
    let image = File::create(files.image()).unwrap();
    image.set_len(config().capacity_bytes).unwrap();
    image.write_all_at(&[7; 100_000], 1 << 20).unwrap();
    drop(image);
    let (mut engine, continuation) = files.attach(Pace::Free);
    let expected = 100_000_u64.next_multiple_of(4096);
    assert!(matches!(continuation, Continuation::Approximate { unknown_bytes, .. } if unknown_bytes == expected));
    assert_eq!(execute(&mut engine, Operation::Read, 1 << 20, 512, None).payload.unwrap()[..], [7; 512]);
}

#[test]
fn a_file_that_another_drive_has_is_refused() {
    let files = Files::new();
    let (_engine, _) = files.attach(Pace::Free);
    let words = files.refused(&config());
    assert!(words.ends_with("drive.img: another drive is attached to it; detach that one first"), "{words}");
}

#[test]
fn what_is_no_image_of_the_drive_is_refused_and_stays_as_it_is() {
    let files = Files::new();
    std::fs::write(files.image(), b"a letter").unwrap();
    let words = files.refused(&config());
    assert!(words.contains("it has 8 bytes, but the drive has 14680064"), "{words}");
    assert_eq!(
        (std::fs::read(files.image()).unwrap(), files.names()),
        (b"a letter".to_vec(), vec!["drive.img".to_owned()])
    );
    let directory = DataFile::open(Path::new("/"), ByteSize(1)).unwrap_err().to_string();
    assert!(directory.starts_with("/: it is not a regular file"), "{directory}");
}

#[test]
fn a_drive_of_another_description_is_refused_with_what_differs() {
    let files = Files::new();
    files.attach(Pace::Free).0.detach().unwrap();
    let mut other = config();
    other.flash.program_ns += 1;
    let words = files.refused(&other);
    assert!(words.contains("drive.img.ftl: the state is of a different drive: flash.program_ns = "), "{words}");
    assert!(!files.beside(".ftl.attached").exists(), "nothing was attached");
    assert!(matches!(files.attach(Pace::Free).1, Continuation::Exact { .. }));
}

#[test]
fn a_damaged_state_is_refused_and_a_drive_without_it_begins_with_what_the_image_holds() {
    let files = Files::new();
    let (mut engine, _) = files.attach(Pace::Free);
    write(&mut engine, 0, &[1; 8192]);
    engine.detach().unwrap();
    drop(engine);
    let state = std::fs::read(files.beside(".ftl")).unwrap();
    for (damaged, words) in
        [(&state[..state.len() - 100], "checksum"), (&state[..40], "truncated"), (b"x", "not a saved drive state")]
    {
        std::fs::write(files.beside(".ftl"), damaged).unwrap();
        let found = files.refused(&config());
        assert!(found.contains(words) && found.contains("move it away"), "{found}");
    }
    std::fs::remove_file(files.beside(".ftl")).unwrap();
    let (engine, continuation) = files.attach(Pace::Free);
    assert!(matches!(continuation, Continuation::Approximate { unknown_bytes: 8192, .. }), "{continuation}");
    drop(engine);
}

#[test]
fn a_drive_that_nobody_used_leaves_no_files_where_it_was_not_detached() {
    let files = Files::new();
    drop(files.attach(Pace::Free));
    assert!(files.names().is_empty(), "{:?}", files.names());
    files.attach(Pace::Free).0.detach().unwrap();
    drop(files.attach(Pace::Free));
    assert_eq!(files.names(), ["drive.img", "drive.img.ftl"]);
    assert!(matches!(files.attach(Pace::Free).1, Continuation::Exact { .. }), "it was as if nobody had come");
}

#[test]
fn what_the_file_refuses_is_the_client_s_error() {
    let files = Files::new();
    let (mut engine, _) = files.attach(Pace::Free);
    write(&mut engine, 0, &[1; 4096]);
    // As a file that somebody else has cut off.
    OpenOptions::new().write(true).open(files.image()).unwrap().set_len(1 << 20).unwrap();
    let answer = execute(&mut engine, Operation::Read, 2 << 20, 4096, None);
    assert!(matches!(answer.result, Err(BlockError::Os { .. })) && answer.payload.is_none(), "{answer:?}");
    assert_eq!(execute(&mut engine, Operation::Read, 0, 4096, None).payload.unwrap()[..], [1; 4096]);
}
