//! Any configuration is either refused in words or a drive that works: no panic, no overflow, no hang.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should panic where it fails")]

mod support;

use flashwise_block::{BlockDevice, BlockError, ByteSize, Completion, Nanos, Operation, Request};
use flashwise_ssd::config::{
    AllocationPool, BadBlocksConfig, BlockOrder, CacheFlush, CachePolicy, CellType, CleaningMode, CleaningPolicy,
    Codec, CompressionConfig, DeduplicationConfig, DynamicWearLevelling, ElementConfig, EnduranceConfig, GcConfig,
    GcMode, GcPolicy, GcTrigger, Interface, Mapping, MappingCacheConfig, PartialPages, Placement, ReadAheadConfig,
    ReadCacheConfig, ReductionConfig, SlcCacheConfig, SlcCacheFull, SlcModeConfig, StaticOrder, StaticWearLevelling,
    StreamPolicy, StreamsConfig, UnwrittenReads, WearLevellingConfig, WriteCacheConfig, WritePolicy,
};
use flashwise_ssd::{ContentModel, DeviceConfig, Preset, SimulatedSsd};
use proptest::prelude::*;

/// Every way to collect garbage.
fn gc() -> impl Strategy<Value = GcConfig> {
    let start = (2_u32..=5, any::<bool>(), any::<bool>(), 0_u32..=2);
    let pace = (1_u32..=4, 1_u32..=6, any::<bool>(), any::<bool>(), any::<bool>(), prop::option::of(0_u32..5));
    let policy =
        (prop::sample::select(GcPolicy::ALL.to_vec()), 1_u32..12, 0.0_f64..1.0, prop::option::of(0.0_f64..1.0));
    (start, pace, policy).prop_map(|(start, pace, policy)| GcConfig {
        policy: policy.0,
        free_superblocks: Some(start.0),
        trigger: if pace.4 && !start.1 { GcTrigger::SuperblockFilled } else { GcTrigger::Low },
        host_reserve_superblocks: pace.5.map(|n| n.min(start.0 - 1)),
        mode: if start.1 { GcMode::Foreground } else { GcMode::Background },
        preemptible: start.2,
        hard_free_superblocks: start.3.min(start.0 - 1),
        concurrent_victims: pace.0,
        reads_in_flight: pace.1,
        copy_back: pace.2,
        separate_open_block: pace.3 || pace.4,
        choices: policy.1,
        window_share: policy.2,
        lifetime_erasures: 8,
        migration_ratio: policy.3,
        ..GcConfig::default()
    })
}

/// Every way to level wear, superblocks that are bad or retired, and blocks whose erases fail when they are worn out.
fn wear() -> impl Strategy<Value = (WearLevellingConfig, BadBlocksConfig, Option<EnduranceConfig>)> {
    let bad = (0.0_f64..0.2, prop::option::of(2_u32..40));
    let endures = prop::option::of((2_u32..30, 0.0_f64..0.5));
    (any::<bool>(), any::<bool>(), 0_u32..4, bad, endures).prop_map(|(least, moves, threshold, bad, endures)| {
        let dynamic = if least { DynamicWearLevelling::LeastErased } else { DynamicWearLevelling::Fifo };
        let static_ = if moves { StaticWearLevelling::Threshold } else { StaticWearLevelling::None };
        let bad = BadBlocksConfig { initial_share: (bad.0 - 0.1).max(0.0), erasures_max: bad.1 };
        let endurance = endures.map(|(cycles, spread)| EnduranceConfig {
            pe_cycles: Some(cycles),
            spread,
            ..EnduranceConfig::default()
        });
        (WearLevellingConfig { dynamic, static_, threshold }, bad, endurance)
    })
}

/// Every way to tell streams apart; every second drive has one.
fn streams() -> impl Strategy<Value = StreamsConfig> {
    let policy = prop::sample::select([StreamPolicy::ALL, [StreamPolicy::One; 5]].concat());
    (policy, 2_u32..=5, 0.01_f64..0.5).prop_map(|(policy, streams, decay_share)| StreamsConfig {
        policy,
        streams,
        decay_share,
        ..StreamsConfig::default()
    })
}

/// Small drives of every shape, nearly all of them possible.
fn small_config() -> impl Strategy<Value = DeviceConfig> {
    let groups = (1_u32..=4, 1_u32..=3, 1_u32..=3, 1_u32..=2);
    let shape = (1_u32..=3, 9_u32..=32, 1_u32..=12, prop::sample::select(vec![4096_u64, 8192, 16384]));
    let rest = (0.2_f64..1.01, any::<bool>(), any::<bool>(), 1_u32..=32, 0_u64..=4, 1_u64..=3);
    let placement =
        prop::sample::select(vec![Placement::Stripe, Placement::Static, Placement::RoundRobin, Placement::LeastLoaded]);
    let ftl = (placement, prop::sample::select(StaticOrder::all()), any::<bool>(), 0_u32..3);
    let mapping = (
        prop::sample::select(vec![Mapping::Page, Mapping::Page, Mapping::Block, Mapping::Fast, Mapping::Element]),
        0_u64..300,
    );
    let reclaiming = (gc(), wear(), streams(), mapping);
    (groups, shape, rest, ftl, reclaiming).prop_map(
        |(groups, shape, rest, ftl, (gc, (levelling, bad, endurance), streams, mapping))| {
            let (fill, plp, sata, depth, buffer, stripe) = rest;
            let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
            let flash = &mut config.flash;
            (flash.channels, flash.chips_per_channel, flash.dies_per_chip) = (groups.0 * groups.1, groups.2, groups.3);
            (flash.planes_per_die, flash.blocks_per_plane, flash.pages_per_block) = (shape.0, shape.1, shape.2);
            flash.page_bytes = shape.3;
            (config.ftl.superpage_channels, config.ftl.superpage_ways) = (groups.0, groups.2);
            (config.ftl.placement, config.ftl.static_order) = (ftl.0, ftl.1);
            config.ftl.superpage_planes = ftl.2.then_some(1);
            config.ftl.logical_page_bytes = (4096 << ftl.3).min(shape.3);
            (config.ftl.gc, config.ftl.wear_levelling, config.ftl.bad_blocks) = (gc, levelling, bad);
            config.ftl.gc.separate_open_block |= streams.policy != StreamPolicy::One;
            config.ftl.streams = streams;
            choose_mapping(&mut config, mapping);
            config.flash.endurance = endurance.filter(|_| mapping.0 == Mapping::Page);
            let page = config.ftl.logical_page_bytes;
            config.ftl.stripe_bytes = stripe * config.superpage_bytes();
            let one_page = config.superpage_bytes() == page;
            config.ftl.gc.copy_back &= one_page;
            if !config.ftl.gc.separate_open_block && !one_page {
                config.ftl.gc.free_superblocks = config.ftl.gc.free_superblocks.map(|n| n.max(3));
            }
            if !one_page || moves_cold_data(&config) {
                config.ftl.gc.trigger = GcTrigger::Low;
            }
            let keep = superblocks_kept(&config);
            config.host.max_transfer_bytes = 128 << 10;
            config.host.queue_depth = depth;
            config.host.interface = if sata { Interface::Sata } else { Interface::Nvme };
            config.controller.power_loss_protection = plp;
            let open = config.raw_bytes() / u64::from(shape.1 * shape.2);
            let written = u64::from(config.ftl.streams.host_classes());
            config.controller.write_buffer_bytes = (128 << 10) + (1 + written) * open + buffer * 65536;
            let usable = config.raw_bytes() as f64 * f64::from(shape.1.saturating_sub(keep)) / f64::from(shape.1);
            config.capacity_bytes = ((usable * fill) as u64 / page * page).max(page);
            if mapping.0 == Mapping::Element {
                (config.flash.channels, config.flash.array_time_jitter) = (groups.0 * groups.1, 0.0);
                (config.flash.chips_per_channel, config.flash.dies_per_chip) = (1, 1);
                config.ftl.element = element(keep, mapping.1);
                let row = config.ftl.element.row_bytes(&config).max(1);
                config.capacity_bytes = row * ((f64::from(shape.1) * fill) as u64).max(1);
            }
            config
        },
    )
}

/// Sets a mapping with all that it needs; `entries` below 150 stand for a page map that is cached.
fn choose_mapping(config: &mut DeviceConfig, (mapping, entries): (Mapping, u64)) {
    config.ftl.mapping = mapping;
    if mapping != Mapping::Page {
        (config.ftl.wear_levelling, config.ftl.bad_blocks) = Default::default();
        config.ftl.streams = StreamsConfig::default();
        (config.ftl.superpage_channels, config.ftl.superpage_ways) = (1, 1);
        (config.ftl.superpage_planes, config.ftl.logical_page_bytes) = (Some(1), config.flash.page_bytes);
    } else if entries > 0 && entries < 150 {
        config.ftl.mapping_cache = Some(MappingCacheConfig {
            capacity_bytes: entries * 8,
            cached_entry_bytes: 8,
            stored_entry_bytes: 64,
            load_bytes: None,
            stored_at_start: entries % 2 == 0,
            deferred_write_back: entries % 3 == 0,
            partitions: 1 + (entries % 3) as u32,
            write_back_renews: entries % 5 < 2,
        });
    }
}

/// Whether wear levelling moves data.
fn moves_cold_data(config: &DeviceConfig) -> bool {
    let gc = &config.ftl.gc;
    let migrates = gc.policy == GcPolicy::WearAware && gc.migration_ratio.is_some();
    migrates || config.ftl.wear_levelling.static_ == StaticWearLevelling::Threshold
}

/// Superblocks of a unit that are not for the host's data: free, open or waiting, under way, and bad ones.
fn superblocks_kept(config: &DeviceConfig) -> u32 {
    let gc = &config.ftl.gc;
    let open_for_cold = u32::from(moves_cold_data(config));
    let open = config.ftl.streams.host_classes() + config.ftl.streams.gc_classes() + open_for_cold;
    config.gc_threshold() + 2 + open + gc.concurrent_victims - 1 + config.factory_bad_superblocks()
}

/// Elements of every kind, which do not wear out so soon.
fn element(keep: u32, kind: u64) -> ElementConfig {
    ElementConfig {
        stride_pages: 1 + keep % 2,
        allocation_pool: if kind.is_multiple_of(2) { AllocationPool::Element } else { AllocationPool::Plane },
        block_order: if kind.is_multiple_of(3) { BlockOrder::Concatenated } else { BlockOrder::Interleaved },
        summary_pages_per_block: keep % 3,
        min_free_share: f64::from(keep) / 20.0,
        cleaning_policy: if kind % 5 < 2 { CleaningPolicy::Greedy } else { CleaningPolicy::WearAware },
        cleaning_mode: if kind % 7 < 3 { CleaningMode::Foreground } else { CleaningMode::Background },
        cleanings_per_operation_max: (kind % 11 < 2).then_some(1),
        lifetime_erasures: 100_000,
        ..ElementConfig::default()
    }
}

/// A small drive with any of the caches, and several queues.
fn small_config_with_caches() -> impl Strategy<Value = DeviceConfig> {
    let flush = prop::sample::select(vec![CacheFlush::WhenFull, CacheFlush::Watermark, CacheFlush::Immediate]);
    let write = prop::option::of((1_u64..200, flush, 0.0_f64..=1.0, 0.0_f64..=1.0, any::<bool>()));
    let read = prop::option::of((1_u64..200, prop::option::of((1_u32..64, 1_u32..=8, 2_u32..5))));
    let rest = (any::<bool>(), any::<bool>(), any::<bool>(), 1_u32..6, prop::option::of(1_u32..16));
    (small_config(), write, read, rest).prop_map(|(mut config, write, read, rest)| {
        let page = config.ftl.logical_page_bytes;
        let lru = |is_lru| if is_lru { CachePolicy::Lru } else { CachePolicy::Fifo };
        let (sectors, through, dram, queues, each) = rest;
        if config.ftl.mapping == Mapping::Page {
            config.controller.write_cache = write.map(|(pages, flush, high, low, is_lru)| WriteCacheConfig {
                bytes: pages * page,
                policy: lru(is_lru),
                flush,
                high_watermark: high,
                low_watermark: low * high,
                hot_window_ns: (flush == CacheFlush::Immediate && is_lru).then_some(1_000_000),
            });
            config.ftl.partial_pages = if sectors { PartialPages::Sectors } else { PartialPages::Fill };
        }
        if through && config.controller.write_cache.is_none() {
            config.controller.write_policy = WritePolicy::Through;
        }
        if let Some((pages, ahead)) = read
            && config.ftl.mapping != Mapping::Element
        {
            config.controller.read_cache = Some(ReadCacheConfig { bytes: pages * page, policy: lru(dram) });
            config.controller.read_ahead = ahead
                .filter(|&(ahead, _, _)| 2 * u64::from(ahead) <= pages)
                .map(|(pages, streams, trigger)| ReadAheadConfig { pages, streams, trigger });
        }
        if config.ftl.mapping == Mapping::Page {
            let reads = [UnwrittenReads::Zeros, UnwrittenReads::Flash, UnwrittenReads::Allocate];
            let has_own_superpages = config.superpage_bytes() == page;
            config.controller.unwritten_reads = reads[queues as usize % if has_own_superpages { 3 } else { 2 }];
            config.flash.programs_in_order = queues % 2 == 0;
            config.flash.multi_plane = queues > 2;
        }
        if dram && (config.ftl.mapping == Mapping::Page || config.controller.read_cache.is_some()) {
            config.controller.dram_row_bytes = u64::from(queues) * 1024;
            (config.controller.dram_ns_per_access, config.controller.dram_bytes_per_s) = (26, 200_000_000);
        }
        if config.host.interface == Interface::Nvme {
            config.host.submission_queues = queues;
            config.host.commands_per_queue = each.filter(|&each| each <= config.host.queue_depth);
        }
        config
    })
}

/// A small drive that compresses or shares pages, or both, some of them thin, and what it is given.
fn small_config_that_reduces() -> impl Strategy<Value = (DeviceConfig, ContentModel)> {
    let compression = prop::option::weighted(0.8, (4_u32..=12, any::<bool>()));
    let deduplication = prop::option::of((1_u32..200, any::<[bool; 5]>()));
    let content = (0.01_f64..1.0, 0.0_f64..1.0, 0.0_f64..0.3, 0.0_f64..0.9);
    (small_config(), compression, deduplication, content, 0.2_f64..2.0).prop_map(
        |(mut config, compression, deduplication, content, physical)| {
            config.ftl.mapping_cache = None;
            config.ftl.gc.copy_back = false;
            config.ftl.gc.trigger = GcTrigger::Low;
            config.ftl.gc.free_superblocks = config.ftl.gc.free_superblocks.map(|n| n.max(4));
            config.controller.power_loss_protection = true;
            if config.ftl.mapping != Mapping::Page {
                let page = config.ftl.logical_page_bytes;
                config.ftl.mapping = Mapping::Page;
                config.capacity_bytes = (config.capacity_bytes / 2 / page * page).max(page);
            }
            // A logical block has at most 4 KiB, and is a page where pages are shared.
            let deduplication = deduplication.filter(|_| config.ftl.logical_page_bytes == 4096);
            if deduplication.is_some() {
                config.host.logical_block_bytes = 4096;
            }
            if physical < 1.0 || config.ftl.superpage_channels * config.ftl.superpage_ways > 1 {
                config.ftl.placement = Placement::RoundRobin;
            }
            let compression = compression.filter(|_| config.superpage_bytes() >= 2 * config.ftl.logical_page_bytes);
            let codec = |fast| if fast { Codec::Lz4 } else { Codec::Zlib };
            let page = config.ftl.logical_page_bytes;
            let physical_bytes = ((config.capacity_bytes as f64 * physical) as u64 / page * page).max(page);
            config.reduction = Some(ReductionConfig {
                physical_bytes: (physical_bytes < config.capacity_bytes).then_some(physical_bytes),
                compression: compression.map(|(shift, fast)| CompressionConfig {
                    codec: codec(fast),
                    granule_bytes: (1 << shift).clamp(page / 256, page),
                    compress_ns: 500,
                    decompress_bytes_per_s: 2_000_000_000,
                    ..CompressionConfig::default()
                }),
                deduplication: deduplication.map(|(fingerprints, [sampling, pre_hash, compares, late, both])| {
                    DeduplicationConfig {
                        in_line: !late || both,
                        out_of_line: late,
                        idle_ns: 10_000,
                        fingerprints,
                        sampling,
                        pre_hash,
                        compare_on_hit: compares,
                        fingerprint_ns: 700,
                        pre_hash_ns: 50,
                    }
                }),
            });
            let (compressed_share, compressed_spread, zero_share, duplicate_share) = content;
            let content = ContentModel {
                compressed_share,
                compressed_spread,
                zero_share,
                duplicate_share,
                duplicate_window: 500,
            };
            (config, content)
        },
    )
}

/// A small drive with an SLC cache, which may reduce what it stores, and have other caches.
fn small_config_with_slc_cache() -> impl Strategy<Value = (DeviceConfig, ContentModel)> {
    let plain = small_config_with_caches().prop_map(|config| (config, ContentModel::default()));
    let cells = prop::sample::select(vec![CellType::Mlc, CellType::Tlc, CellType::Qlc]);
    let cache = (0_u32..4, 0_u32..6, any::<bool>(), 0_u64..2_000_000, 5_u32..60);
    (prop_oneof![3 => plain, 1 => small_config_that_reduces()], cells, cache).prop_map(
        |((mut config, content), cell, (dedicated, dynamic, folds, idle_ns, pe_cycles))| {
            if config.ftl.mapping != Mapping::Page {
                let page = config.ftl.logical_page_bytes;
                config.ftl.mapping = Mapping::Page;
                config.capacity_bytes = (config.capacity_bytes / 2 / page * page).max(page);
            }
            (config.ftl.gc.mode, config.ftl.gc.trigger) = (GcMode::Background, GcTrigger::Low);
            config.ftl.gc.separate_open_block = true;
            if config.controller.unwritten_reads == UnwrittenReads::Allocate {
                config.controller.unwritten_reads = UnwrittenReads::Flash;
            }
            config.flash.cell = Some(cell);
            config.flash.pages_per_block = config.flash.pages_per_block.max(cell.bits());
            config.flash.blocks_per_plane += dedicated;
            config.flash.slc_mode = Some(SlcModeConfig {
                read_ns: config.flash.read_ns / 2,
                program_ns: config.flash.program_ns / 3,
                erase_ns: (pe_cycles % 2 == 0).then_some(config.flash.erase_ns / 2),
                pe_cycles: Some(pe_cycles),
                rber_factor: None,
            });
            config.ftl.slc_cache = Some(SlcCacheConfig {
                dedicated_superblocks: dedicated,
                dynamic_superblocks: dynamic.max(1 - dedicated.min(1)),
                when_full: if folds { SlcCacheFull::Fold } else { SlcCacheFull::Bypass },
                idle_ns,
            });
            (config, content)
        },
    )
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
    /// From its start to its end in writes of one length, in bytes, then its last quarter in the same way again and again:
    /// stripes may put all of it into some of the units, beside others that fill with garbage.
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

/// The next completion; only a drive that has run out of spares may refuse, or one that offers more than it has room for,
/// and reads not even then.
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
        let mut drive = SimulatedSsd::new(config, 1).unwrap();
        drive.set_content_model(content);
        for _ in 0..2 {
            overwrite(&mut drive, order, retire_every);
            prop_assert!(wears_out || !drive.is_read_only(), "nothing was worn out");
            drive.pause(Nanos::secs(10)).unwrap();
            prop_assert_eq!(drive.check_invariants(), Ok(()));
            prop_assert!(drive.is_read_only() || drive.slc_cache_use().unwrap().valid_bytes == 0);
            let (flash, cached) = (drive.counters().flash.unwrap(), drive.slc_cache_counters().unwrap());
            prop_assert_eq!(flash.slc_bytes_programmed.bytes(), cached.dedicated_bytes + cached.dynamic_bytes);
            prop_assert!(flash.folding_bytes_moved <= flash.slc_bytes_programmed);
        }
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
