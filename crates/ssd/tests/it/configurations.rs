//! Any configuration is either refused in words or a drive that works: no panic, no overflow, no hang.

use crate::every_shape;

use every_shape::{
    small_config_in_domains, small_config_that_reduces, small_config_with_caches, small_config_with_slc_cache,
};
use flashwise_block::{BlockDevice, BlockError, ByteSize, Completion, Nanos, Operation, Request};
use flashwise_ssd::config::{GcMode, GcTrigger, Placement, StaticWearLevelling};
use flashwise_ssd::{ContentModel, DeviceConfig, Preset, SimulatedSsd};
use proptest::prelude::*;

#[test]
fn a_drive_that_promises_atomic_writes_reports_their_unit_and_others_report_none() {
    let text = Preset::find("samsung-960-evo").unwrap().toml;
    let reported = |text: &str| {
        let config = DeviceConfig::from_toml(text, "mine.toml").unwrap();
        SimulatedSsd::new(config, 1).unwrap().info().atomic_write
    };
    assert_eq!(reported(text), None);
    let promising = text.replace("[host]\n", "[host]\natomic_write_bytes = 16_384\n");
    assert_eq!(reported(&promising), Some(ByteSize::kib(16)));
}

/// A small drive, and a sequential order that its stripes would bring to some of its units alone.
fn small_config_filled_unevenly() -> impl Strategy<Value = (DeviceConfig, Order)> {
    (small_config_with_caches(), 1_u64..=4, any::<bool>()).prop_map(|(mut config, superpages, foreground)| {
        config.ftl.placement = Placement::Stripe;
        if foreground {
            (config.ftl.gc.mode, config.ftl.gc.trigger) = (GcMode::Foreground, GcTrigger::Low);
        }
        let order = Order::Sequential(superpages * config.superpage_bytes());
        (config, order)
    })
}

/// In which order a drive is written.
#[derive(Clone, Copy, Debug)]
enum Order {
    /// One that no layout likes, with reads between.
    Scattered,
    /// From its start to its end in writes of one length, in bytes, then its last quarter in the same way again and
    /// again: stripes may put all of it into some of the units, beside others that fill with garbage.
    Sequential(u64),
}

impl Order {
    /// The `n`th write, as offset and length, where the one before was at `at`.
    fn nth(self, n: u64, at: u64, capacity: u64, transfer: u64) -> (u64, u64) {
        match self {
            Self::Scattered => {
                let length = (4096 << (n % 6)).min(transfer).min(capacity);
                ((at + 7 * 4096 * n) % (capacity - length + 4096) / 4096 * 4096, length)
            }
            Self::Sequential(length) => {
                let length = length.min(transfer).min(capacity);
                let writes = capacity / length;
                let again = writes.div_ceil(4);
                let write = if n < writes { n } else { writes - again + (n - writes) % again };
                (write * length, length)
            }
        }
    }
}

/// Writes a drive twice over, with flushes, forced writes and reads between; every `retire_every` requests, if not 0, a
/// superblock is retired.
fn overwrite(drive: &mut SimulatedSsd, order: Order, retire_every: u64) -> u64 {
    let (capacity, transfer) = (drive.info().capacity.bytes(), drive.info().max_transfer.bytes());
    let superblocks = drive.erase_histogram().values().sum::<u64>();
    let (mut written, mut at, mut completed) = (0, 0, 0);
    let mut n = 0;
    while written < 2 * capacity {
        let length;
        (at, length) = order.nth(n, at, capacity, transfer);
        let request = Request::write(ByteSize(at), ByteSize(length));
        let reads = n.is_multiple_of(7) && matches!(order, Order::Scattered);
        let request = if reads { Request::read(ByteSize(at), ByteSize(length)) } else { request };
        let request = if n.is_multiple_of(5) { request.with_fua() } else { request };
        drive.submit(request.on_queue(n as u16).in_stream((at / 65536 % 7) as u16)).unwrap();
        if retire_every > 0 && n % retire_every == retire_every - 1 {
            drive.retire_block((n * 2_654_435_761 % superblocks) as u32);
        }
        if n.is_multiple_of(11) {
            drive.submit(Request::flush()).unwrap();
        }
        while drive.outstanding() > 24 {
            completed += u64::from(answer(drive).is_some());
        }
        written += length;
        n += 1;
    }
    while answer(drive).is_some() {
        completed += 1;
    }
    completed
}

/// The next completion; only a drive that has run out of spares may refuse, or one that offers more than it has room
/// for, and reads not even then.
fn answer(drive: &mut SimulatedSsd) -> Option<Completion> {
    let completion = drive.wait().unwrap()?;
    if let Err(error) = &completion.result {
        match error {
            BlockError::NoSpace => assert!(drive.config().physical_bytes() < drive.config().capacity_bytes),
            error => assert_eq!((error, drive.is_read_only()), (&BlockError::ReadOnly, true)),
        }
        assert_ne!(completion.operation, Operation::Read);
    }
    Some(completion)
}

/// Holds what a configuration promises against what its drive does.
fn is_refused_or_works(config: DeviceConfig, order: Order, retire_every: u64) -> Result<(), TestCaseError> {
    is_refused_or_works_with(config, ContentModel::default(), order, retire_every)
}

/// The same for pages of this content.
fn is_refused_or_works_with(
    config: DeviceConfig,
    content: ContentModel,
    order: Order,
    retire_every: u64,
) -> Result<(), TestCaseError> {
    if let Err(error) = config.check("random.toml") {
        let text = error.to_string();
        prop_assert!(text.starts_with("random.toml: ") && text.contains(" = "), "{}", text);
        return Ok(());
    }
    let mut drive = SimulatedSsd::new(config, 1).unwrap();
    drive.set_content_model(content);
    let completed = overwrite(&mut drive, order, retire_every);
    prop_assert!(completed > 0);
    prop_assert_eq!(drive.check_invariants(), Ok(()));
    let flash = drive.counters().flash.unwrap();
    let moved = flash.gc_bytes_moved + flash.wear_levelling_bytes_moved + flash.retirement_bytes_moved;
    let moved = moved + flash.folding_bytes_moved;
    prop_assert!(flash.bytes_programmed >= flash.padding_bytes + moved);
    let superblocks = drive.erase_histogram().values().sum::<u64>();
    prop_assert_eq!(superblocks, drive.config().units() * u64::from(drive.config().flash.blocks_per_plane));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_drive_is_refused_in_words_or_works_until_it_has_collected_garbage(
        config in small_config_with_caches(), retire_every in prop::sample::select(vec![0_u64, 0, 5, 100, 1000]),
    ) {
        is_refused_or_works(config, Order::Scattered, retire_every)?;
    }

    #[test]
    fn so_does_one_that_reduces_what_it_stores(
        (config, content) in small_config_that_reduces(),
        retire_every in prop::sample::select(vec![0_u64, 0, 0, 100, 1000]),
        scattered: bool,
    ) {
        let order = if scattered { Order::Scattered } else { Order::Sequential(3 * config.ftl.logical_page_bytes) };
        is_refused_or_works_with(config, content, order, retire_every)?;
    }

    #[test]
    fn so_does_one_with_an_slc_cache_which_is_empty_after_a_rest(
        (config, content) in small_config_with_slc_cache(),
        retire_every in prop::sample::select(vec![0_u64, 0, 0, 100, 1000]),
        scattered: bool,
    ) {
        let order = if scattered { Order::Scattered } else { Order::Sequential(3 * config.ftl.logical_page_bytes) };
        is_refused_or_works_with(config.clone(), content, order, retire_every)?;
        if config.check("random.toml").is_err() {
            return Ok(());
        }
        let bad = &config.ftl.bad_blocks;
        let wears_out = config.flash.endurance.is_some() || bad.erasures_max.is_some() || retire_every > 0;
        // Cold data that moves changes the map, whose pages go through the cache, which is emptied, and wears the drive
        // again.
        let never_rests = config.ftl.mapping_cache.is_some()
            && config.ftl.wear_levelling.static_ == StaticWearLevelling::Threshold;
        let mut drive = SimulatedSsd::new(config, 1).unwrap();
        drive.set_content_model(content);
        for _ in 0..2 {
            overwrite(&mut drive, order, retire_every);
            prop_assert!(wears_out || !drive.is_read_only(), "nothing was worn out");
            drive.pause(Nanos::secs(10)).unwrap();
            prop_assert_eq!(drive.check_invariants(), Ok(()));
            let is_empty = drive.slc_cache_use().unwrap().valid_bytes == 0;
            prop_assert!(drive.is_read_only() || is_empty || never_rests);
            let (flash, cached) = (drive.counters().flash.unwrap(), drive.slc_cache_counters().unwrap());
            prop_assert_eq!(flash.slc_bytes_programmed.bytes(), cached.dedicated_bytes + cached.dynamic_bytes);
            prop_assert!(flash.folding_bytes_moved <= flash.slc_bytes_programmed);
        }
    }

    #[test]
    fn so_does_one_whose_addresses_are_divided_among_parts_of_the_flash(
        config in small_config_in_domains(),
        retire_every in prop::sample::select(vec![0_u64, 0, 100, 1000]),
        scattered: bool,
    ) {
        let order = if scattered { Order::Scattered } else { Order::Sequential(3 * config.ftl.logical_page_bytes) };
        is_refused_or_works(config, order, retire_every)?;
    }

    #[test]
    fn so_does_one_that_is_filled_unevenly((config, order) in small_config_filled_unevenly()) {
        is_refused_or_works(config, order, 0)?;
    }

    #[test]
    fn no_number_makes_the_check_overflow(values in prop::collection::vec(any::<u64>(), 12)) {
        let mut config = DeviceConfig::preset("toshiba-xg5").unwrap();
        let small = |i: usize| (values[i] >> (values[i] % 64)) as u32;
        let large = |i: usize| values[i] >> (values[i] % 64);
        let flash = &mut config.flash;
        (flash.channels, flash.chips_per_channel, flash.dies_per_chip) = (small(0), small(1), small(2));
        (flash.planes_per_die, flash.blocks_per_plane, flash.pages_per_block) = (small(3), small(4), small(5));
        (flash.page_bytes, config.capacity_bytes) = (large(6) / 4096 * 4096, large(7) / 4096 * 4096);
        (config.ftl.superpage_channels, config.ftl.superpage_ways) = (small(8), small(9));
        (config.ftl.stripe_bytes, config.controller.write_buffer_bytes) = (large(10) / 4096 * 4096, large(11));
        let _ = config.check("random.toml");
    }

    #[test]
    fn no_text_makes_the_parser_panic(cut in 0_usize..4000, junk in "\\PC{0,12}", at in 0_usize..4000) {
        let text = Preset::find("micron-m500").unwrap().toml;
        let boundary = |n: usize| (0..=n.min(text.len())).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
        let (at, cut) = (boundary(at), boundary(cut));
        let mangled = format!("{}{junk}{}", &text[..at], &text[at.max(cut)..]);
        if let Err(error) = DeviceConfig::from_toml(&mangled, "mangled.toml") {
            prop_assert!(error.to_string().starts_with("mangled.toml: ") && !error.to_string().contains('\n'));
        }
    }
}
