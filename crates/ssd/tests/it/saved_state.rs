//! A drive whose state is saved and gone on with later is the drive that was never switched off.
use crate::every_shape;
use crate::support;

use std::io::Cursor;

use every_shape::{
    small_config_in_domains, small_config_that_reduces, small_config_with_caches, small_config_with_slc_cache,
};
use flashwise_block::{BlockDevice, ByteSize, IoBuffer, Nanos, Operation, Request, execute};
use flashwise_ssd::config::{
    CompressionConfig, DeduplicationConfig, GcConfig, GcPolicy, Mapping, MappingCacheConfig, Placement,
    ReductionConfig, StaticWearLevelling,
};
use flashwise_ssd::saved::{SavedDrive, StateError};
use flashwise_ssd::{ContentModel, DeviceConfig, SimulatedSsd};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};
use support::{cases, tiny};

pub fn saved(drive: &mut SimulatedSsd) -> Vec<u8> {
    let mut bytes = Vec::new();
    drive.save(json!({"image": "of this drive"}), &mut bytes).unwrap();
    bytes
}

fn restored(config: &DeviceConfig, bytes: &[u8]) -> Result<SimulatedSsd, StateError> {
    SavedDrive::open(Cursor::new(bytes))?.restore(config.clone())
}

/// A request of any kind at any place.
fn request(random: &mut Pcg64Mcg, drive: &SimulatedSsd, hot: bool) -> Request {
    let info = drive.info();
    let block = info.logical_block.bytes();
    let blocks = info.capacity.bytes() / block;
    let most = (info.max_transfer.bytes() / block).min(blocks);
    let short = 1 << random.random_range(0..8);
    let length = random.random_range(1..=most.min(short));
    let end = if hot { (blocks / 8).max(length) } else { blocks };
    let (offset, length) = (random.random_range(0..=end - length) * block, length * block);
    let (offset, length) = if random.random::<bool>() {
        // Whole pages of 4 KiB, as far as there are.
        (offset / 4096 * 4096, length.next_multiple_of(4096).min(info.capacity.bytes() - offset / 4096 * 4096))
    } else {
        (offset, length)
    };
    let (offset, length) = (ByteSize(offset), ByteSize(length.min(info.max_transfer.bytes())));
    let request = match random.random_range(0..40) {
        0 => Request::trim(offset, length),
        1 => Request::write_zeroes(offset, length),
        2 => Request::flush(),
        3..12 => Request::read(offset, length),
        12..16 => Request::write(offset, length).with_fua(),
        _ => Request::write(offset, length),
    };
    request.on_queue(random.random_range(0..8)).in_stream(random.random_range(0..5))
}

/// Puts work of every kind on a drive until so many bytes were named; gives the completions.
pub fn work(drive: &mut SimulatedSsd, seed: u64, bytes: u64) -> Vec<String> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let (mut told, mut named) = (Vec::new(), 0);
    let superblocks = drive.erase_histogram().values().sum::<u64>();
    let retires = random.random_range(0..4) == 0 && drive.config().ftl.mapping == Mapping::Page;
    while named < bytes {
        let hot = random.random_range(0..4) > 0;
        let request = request(&mut random, drive, hot);
        named += request.length.bytes().max(4096);
        drive.submit(request).unwrap();
        while drive.outstanding() > 16 {
            told.extend(drive.wait().unwrap().map(|completion| format!("{completion:?}")));
        }
        if retires && random.random_range(0..60) == 0 {
            drive.retire_block(random.random_range(0..superblocks) as u32);
        }
        if random.random_range(0..30) == 0 {
            drive.pause(Nanos(random.random_range(0..3_000_000))).unwrap();
        }
    }
    while let Some(completion) = drive.wait().unwrap() {
        told.push(format!("{completion:?}"));
    }
    told
}

/// What a drive tells of itself.
pub fn reported(drive: &SimulatedSsd) -> String {
    let life = (drive.end_of_life(), drive.is_read_only(), drive.remaining_life());
    let caches = (drive.write_cache_counters(), drive.read_cache_counters(), drive.slc_cache_counters());
    let reduction = (drive.reduction_counters(), drive.space_use());
    format!(
        "{:?} {:?} {:?} {:?} {life:?} {caches:?} {reduction:?} {:?} {:?} {:?} {:?} {:?}",
        drive.now(),
        drive.counters(),
        drive.flash_statistics(),
        drive.erase_histogram(),
        drive.stage_times(),
        drive.mapping_cache_hits_and_misses(),
        drive.cleaning_statistics(),
        drive.next_event(),
        drive.mapped_and_valid_pages(),
    )
}

/// Saves a drive in the middle of random work, and holds what continues from there against the drive itself.
fn goes_on_exactly(config: &DeviceConfig, seed: u64) -> Result<(), TestCaseError> {
    goes_on_exactly_with(config, ContentModel::default(), seed)
}

/// The same, where what is written is like that.
fn goes_on_exactly_with(config: &DeviceConfig, content: ContentModel, seed: u64) -> Result<(), TestCaseError> {
    if config.check("random.toml").is_err() {
        return Ok(());
    }
    let bytes = config.capacity_bytes;
    let mut drive = SimulatedSsd::new(config.clone(), seed).unwrap();
    drive.set_content_model(content);
    for round in 0..3 {
        work(&mut drive, seed ^ round, bytes);
        drive.shut_down().unwrap();
        let state = saved(&mut drive);
        let mut other = restored(config, &state).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(reported(&other), reported(&drive));
        prop_assert!(saved(&mut other) == state, "what is restored is saved as another state");
        let (expected, found) =
            (work(&mut drive, !seed ^ round, bytes / 2), work(&mut other, !seed ^ round, bytes / 2));
        prop_assert_eq!(found, expected);
        prop_assert_eq!(reported(&other), reported(&drive));
        prop_assert_eq!(other.check_invariants(), Ok(()));
        // What only later work would tell.
        drive.shut_down().unwrap();
        other.shut_down().unwrap();
        prop_assert!(saved(&mut other) == saved(&mut drive), "they have come apart");
        if round == 1 {
            drive = other;
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn a_drive_of_any_shape_goes_on_exactly_where_it_was(config in small_config_with_caches(), seed: u64) {
        goes_on_exactly(&config, seed)?;
    }

    #[test]
    fn so_does_one_with_an_slc_cache((config, _) in small_config_with_slc_cache(), seed: u64) {
        let config = DeviceConfig { reduction: None, ..config };
        goes_on_exactly(&config, seed)?;
    }

    #[test]
    fn so_does_one_in_domains(config in small_config_in_domains(), seed: u64) {
        let config = DeviceConfig { reduction: None, ..config };
        goes_on_exactly(&config, seed)?;
    }

    #[test]
    fn so_does_one_that_stores_less_than_it_is_given((config, content) in small_config_that_reduces(), seed: u64) {
        goes_on_exactly_with(&config, content, seed)?;
    }

    #[test]
    fn one_that_stores_less_goes_on_exactly_once_it_has_its_bytes_again(
        (config, _) in small_config_that_reduces(),
        seed: u64,
    ) {
        goes_on_exactly_with_bytes(&config, seed)?;
    }

    #[test]
    fn a_state_that_was_changed_on_its_way_is_told_as_damaged(seed: u64, at: u64, bit in 0_u8..8, cut: bool) {
        let config = tiny("samsung-960-evo", ByteSize::mib(7), 13, 4);
        let mut drive = SimulatedSsd::new(config.clone(), seed).unwrap();
        work(&mut drive, seed, config.capacity_bytes);
        drive.shut_down().unwrap();
        let mut state = saved(&mut drive);
        let at = (at % state.len() as u64) as usize;
        if cut {
            state.truncate(at);
        } else {
            state[at] ^= 1 << bit;
        }
        let error = restored(&config, &state).map(|_| ()).unwrap_err();
        let is_told = matches!(error, StateError::Damaged { .. } | StateError::Foreign | StateError::Version { .. });
        prop_assert!(is_told, "{}", error);
    }
}

/// What is on a drive, for who looks at it from outside.
fn image(drive: &mut SimulatedSsd) -> Vec<u8> {
    let capacity = drive.info().capacity.bytes();
    let longest = drive.info().max_transfer.bytes();
    let mut image = Vec::new();
    while (image.len() as u64) < capacity {
        let at = image.len() as u64;
        let buffer = IoBuffer::zeroed(longest.min(capacity - at) as usize);
        let read = execute(drive, Request::read(ByteSize(at), ByteSize(buffer.len() as u64)).with_buffer(buffer));
        image.extend_from_slice(&read.unwrap().buffer.unwrap());
    }
    image
}

/// Bytes some pages of which are zeros, some like others, and some cannot be compressed.
fn some_bytes(random: &mut Pcg64Mcg, length: usize) -> IoBuffer {
    let mut bytes = IoBuffer::zeroed(length);
    for page in bytes.chunks_mut(512) {
        match random.random_range(0..5) {
            0 => {}
            1 => page.fill(random.random_range(0..3)),
            _ => {
                let noise = random.random_range(0..=page.len());
                page[..noise].iter_mut().for_each(|byte| *byte = random.random());
            }
        }
    }
    bytes
}

/// Writes, trims and zeroes with bytes, one request after the other; gives the completions.
fn work_with_bytes(drive: &mut SimulatedSsd, seed: u64, requests: u32) -> Vec<String> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut told = Vec::new();
    for _ in 0..requests {
        let mut request = request(&mut random, drive, true);
        if request.operation == Operation::Write {
            request.buffer = Some(some_bytes(&mut random, request.length.bytes() as usize));
        }
        drive.submit(request).unwrap();
        let mut completion = drive.wait().unwrap().unwrap();
        completion.buffer = None;
        told.push(format!("{completion:?}"));
    }
    told
}

fn goes_on_exactly_with_bytes(config: &DeviceConfig, seed: u64) -> Result<(), TestCaseError> {
    if config.check("random.toml").is_err() {
        return Ok(());
    }
    let mut drive = SimulatedSsd::new(config.clone(), seed).unwrap();
    for round in 0..2 {
        work_with_bytes(&mut drive, seed ^ round, 200);
        let image = image(&mut drive);
        drive.shut_down().unwrap();
        let state = saved(&mut drive);
        let mut other = restored(config, &state).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let read = |at: ByteSize, page: &mut [u8]| {
            let at = at.bytes() as usize;
            page.copy_from_slice(&image[at..at + page.len()]);
            Ok::<_, ()>(())
        };
        prop_assert!(other.bring_content(read).is_ok());
        prop_assert_eq!(reported(&other), reported(&drive));
        let (expected, found) =
            (work_with_bytes(&mut drive, !seed ^ round, 100), work_with_bytes(&mut other, !seed ^ round, 100));
        prop_assert_eq!(found, expected);
        prop_assert_eq!(reported(&other), reported(&drive));
        prop_assert_eq!(other.check_invariants(), Ok(()));
        prop_assert!(self::image(&mut other) == self::image(&mut drive), "other bytes");
    }
    Ok(())
}

/// A drive that compresses and deduplicates, and looks late at some of what is written.
fn drive_that_reduces() -> DeviceConfig {
    let mut config = tiny("samsung-960-evo", ByteSize::mib(7), 16, 4);
    config.controller.power_loss_protection = true;
    config.ftl.gc.free_superblocks = Some(4);
    config.host.logical_block_bytes = 4096;
    config.ftl.placement = Placement::RoundRobin;
    config.reduction = Some(ReductionConfig {
        compression: Some(CompressionConfig::default()),
        deduplication: Some(DeduplicationConfig {
            out_of_line: true,
            sampling: true,
            fingerprints: 300,
            ..DeduplicationConfig::default()
        }),
        ..ReductionConfig::default()
    });
    config.check("a drive that reduces").unwrap();
    config
}

#[test]
fn bytes_that_were_changed_while_a_drive_was_saved_are_told_page_by_page() {
    let mut config = drive_that_reduces();
    config.reduction.as_mut().unwrap().deduplication = None;
    let mut drive = SimulatedSsd::new(config.clone(), 1).unwrap();
    let pages = |n: u64| ByteSize(n * 4096);
    for n in [0, 1, 2, 5] {
        let bytes = some_bytes(&mut Pcg64Mcg::seed_from_u64(n), 4096);
        execute(&mut drive, Request::write(pages(n), pages(1)).with_buffer(bytes)).unwrap();
    }
    let mut image = image(&mut drive);
    // Page 2 cannot be compressed any more, and page 7 was never written.
    let noise = &mut image[2 * 4096..3 * 4096];
    noise.iter_mut().zip(0_u64..).for_each(|(byte, n)| *byte = (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as u8);
    image[7 * 4096] = 1;
    drive.shut_down().unwrap();
    let state = saved(&mut drive);
    let mut drive = restored(&config, &state).unwrap();
    let mut asked = Vec::new();
    let changed = drive.bring_content(|at, page| {
        asked.push(at);
        page.copy_from_slice(&image[at.bytes() as usize..][..4096]);
        Ok::<_, ()>(())
    });
    assert_eq!(changed, Ok(vec![pages(2)]));
    assert_eq!(asked, [0, 1, 2, 5].map(pages), "what is not mapped has no bytes");
    assert_eq!(drive.bring_content(|_, _| Err("no")), Err("no"));
}

/// Drives with each of the policies that say which superblock is collected, and each way to map.
fn one_of_each() -> Vec<DeviceConfig> {
    let base = tiny("samsung-960-evo", ByteSize::mib(7), 13, 4);
    let with_policy = |&policy: &GcPolicy| {
        let mut config = base.clone();
        config.ftl.gc.policy = policy;
        config
    };
    let mut drives: Vec<DeviceConfig> = GcPolicy::ALL.iter().map(with_policy).collect();
    drives.extend([DeviceConfig::preset("intel-optane-905p").unwrap()]);
    drives.iter().for_each(|config| config.check("one of each").unwrap());
    drives
}

/// A drive whose cached page map writes about as much of itself as collection and wear levelling move.
fn map_that_fills_what_is_freed() -> DeviceConfig {
    let mut config = tiny("samsung-960-evo", ByteSize::mib(7), 13, 4);
    let flash = &mut config.flash;
    (flash.channels, flash.chips_per_channel, flash.dies_per_chip, flash.planes_per_die) = (2, 1, 1, 1);
    (flash.blocks_per_plane, flash.pages_per_block, flash.page_bytes) = (32, 4, 4096);
    (config.ftl.superpage_channels, config.ftl.superpage_ways, config.ftl.logical_page_bytes) = (1, 1, 4096);
    config.ftl.gc = GcConfig {
        policy: GcPolicy::Greedy,
        free_superblocks: Some(3),
        separate_open_block: true,
        ..GcConfig::default()
    };
    (config.ftl.wear_levelling.static_, config.ftl.wear_levelling.threshold) = (StaticWearLevelling::Threshold, 0);
    config.ftl.mapping_cache = Some(MappingCacheConfig {
        capacity_bytes: 8 * 8,
        cached_entry_bytes: 8,
        stored_entry_bytes: 64,
        load_bytes: None,
        stored_at_start: true,
        deferred_write_back: false,
        partitions: 1,
        write_back_renews: false,
    });
    config.capacity_bytes = 179 * 4096;
    config
}

#[test]
fn a_drive_whose_page_map_fills_what_collection_frees_comes_to_rest_and_works_on() {
    let config = map_that_fills_what_is_freed();
    let mut drive = SimulatedSsd::new(config.clone(), 1).unwrap();
    let superblocks = drive.erase_histogram().values().sum::<u64>();
    let erases = |drive: &SimulatedSsd| drive.counters().flash.unwrap().erases;
    for round in 0..3 {
        work(&mut drive, round, 4 * config.capacity_bytes);
        let before = erases(&drive);
        drive.pause(Nanos::millis(10_000)).unwrap();
        let erased = erases(&drive) - before;
        // What was in progress when the last of them was chosen is erased as well.
        assert!(erased <= superblocks + 8, "{erased} superblocks were erased while nobody asked for anything");
    }
    goes_on_exactly(&config, 1).unwrap();
}

#[test]
fn each_policy_goes_on_exactly_where_it_was() {
    one_of_each().iter().for_each(|config| {
        let mut config = config.clone();
        config.capacity_bytes = config.capacity_bytes.min(64 << 20);
        goes_on_exactly(&config, 7).unwrap();
    });
}

#[test]
fn every_preset_can_be_saved_and_an_empty_drive_of_500_gb_takes_little() {
    for preset in flashwise_ssd::Preset::all() {
        let Ok(config) = DeviceConfig::from_toml(preset.toml, preset.name) else { continue };
        let mut drive = SimulatedSsd::new(config.clone(), 3).unwrap();
        (0..100).for_each(|n| {
            execute(&mut drive, Request::write(ByteSize(n << 20), ByteSize::kib(64))).unwrap();
        });
        drive.shut_down().unwrap();
        let state = saved(&mut drive);
        assert!(state.len() < 1 << 20, "{}: {} bytes", preset.name, state.len());
        assert_eq!(reported(&restored(&config, &state).unwrap()), reported(&drive), "{}", preset.name);
    }
}

#[test]
fn a_drive_that_has_something_to_do_or_carries_bytes_is_not_saved() {
    let config = tiny("samsung-960-evo", ByteSize::mib(7), 13, 4);
    let mut drive = SimulatedSsd::new(config.clone(), 1).unwrap();
    drive.submit(Request::write(ByteSize(0), ByteSize::kib(64))).unwrap();
    let busy = drive.save(Value::Null, &mut Vec::new()).unwrap_err().to_string();
    assert!(busy.contains("not at rest (") && busy.contains("shut it down"), "{busy}");
    assert!(matches!(drive.shut_down(), Err(StateError::Busy { .. })), "a request is not answered");
    drive.wait().unwrap();
    drive.shut_down().unwrap();
    saved(&mut drive);
    let buffer = IoBuffer::copy_of(&[7; 4096]);
    execute(&mut drive, Request::write(ByteSize(0), ByteSize(4096)).with_buffer(buffer)).unwrap();
    drive.shut_down().unwrap();
    let carries = drive.save(Value::Null, &mut Vec::new()).unwrap_err();
    assert!(matches!(carries, StateError::Unsupported { .. }), "{carries}");
}

#[test]
fn a_state_of_another_drive_is_refused_with_what_differs() {
    let config = tiny("samsung-960-evo", ByteSize::mib(7), 13, 4);
    let mut drive = SimulatedSsd::new(config.clone(), 1).unwrap();
    let state = saved(&mut drive);
    let mut other = config.clone();
    other.flash.read_ns += 1;
    other.ftl.gc.policy = GcPolicy::Fifo;
    let error = restored(&other, &state).map(|_| ()).unwrap_err().to_string();
    let read = format!("flash.read_ns = {} in the file, {} here", config.flash.read_ns, other.flash.read_ns);
    assert!(
        error.contains(&read) && error.contains("ftl.gc.policy = \"greedy\" in the file, \"fifo\" here"),
        "{error}"
    );
}

#[test]
fn what_is_no_state_or_was_saved_by_another_version_is_refused() {
    let config = tiny("samsung-960-evo", ByteSize::mib(7), 13, 4);
    let mut state = saved(&mut SimulatedSsd::new(config.clone(), 1).unwrap());
    assert!(matches!(restored(&config, b"").map(|_| ()), Err(StateError::Foreign)));
    assert!(matches!(restored(&config, &[0; 5000]).map(|_| ()), Err(StateError::Foreign)));
    // The layout that the parts were written in, in the header.
    let text = String::from_utf8_lossy(&state).into_owned();
    let at = text.find("\"layout\":\"").unwrap() + 10;
    state[at] = if state[at] == b'0' { b'1' } else { b'0' };
    let error = restored(&config, &summed(state)).map(|_| ()).unwrap_err();
    assert!(matches!(error, StateError::Version { .. }), "{error}");
    assert!(error.to_string().contains("by flashwise 0."), "{error}");
}

/// The same state with the checksum of its bytes.
fn summed(mut state: Vec<u8>) -> Vec<u8> {
    let last = state.len() - 8;
    let sum = xxhash_rust::xxh3::xxh3_64(&state[..last]);
    state[last..].copy_from_slice(&sum.to_le_bytes());
    state
}

/// A state whose parts are changed by somebody who knows the form.
fn crafted(state: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let header = u32::from_le_bytes(state[20..24].try_into().unwrap()) as usize;
    let (start, parts) = state[..state.len() - 8].split_at(24 + header);
    let mut plain = zstd::decode_all(parts).unwrap();
    change(&mut plain);
    let compressed = zstd::encode_all(&*plain, 1).unwrap();
    summed([start, &compressed, &[0; 8]].concat())
}

#[test]
fn a_crafted_state_is_an_error_or_a_drive_whose_invariants_hold() {
    let mut random = Pcg64Mcg::seed_from_u64(5);
    let (mut refused, mut accepted) = (0, 0);
    let by_page = one_of_each().into_iter().take(GcPolicy::ALL.len());
    for (nth, config) in by_page.chain([drive_that_reduces()]).enumerate() {
        let mut drive = SimulatedSsd::new(config.clone(), 1).unwrap();
        drive.set_content_model(ContentModel {
            compressed_share: 0.4,
            duplicate_share: 0.3,
            ..ContentModel::default()
        });
        work(&mut drive, nth as u64, 3 * config.capacity_bytes);
        drive.shut_down().unwrap();
        let state = saved(&mut drive);
        for _ in 0..400 {
            let crafted = crafted(&state, |plain| match random.random_range(0..4) {
                0 => {
                    let at = random.random_range(0..plain.len());
                    plain[at] = random.random();
                }
                1 => {
                    let at = random.random_range(0..plain.len());
                    plain[at] ^= 1 << random.random_range(0..8);
                }
                2 => plain.truncate(random.random_range(0..plain.len())),
                _ => {
                    // A number of the largest size.
                    let at = random.random_range(0..plain.len());
                    plain.splice(at..=at, [0xff, 0xff, 0xff, 0xff, 0x0f]);
                }
            });
            match restored(&config, &crafted) {
                Ok(drive) => {
                    assert_eq!(drive.check_invariants(), Ok(()));
                    accepted += 1;
                }
                Err(error) => {
                    assert!(matches!(error, StateError::Damaged { .. }), "{error}");
                    refused += 1;
                }
            }
        }
    }
    // A counter of the statistics may be any number.
    assert!(refused > accepted && accepted > 0, "{refused} refused, {accepted} accepted");
}
