//! Small drives of every shape: everything that a configuration can say, in every combination that there is.
#![allow(dead_code, reason = "each test program uses its own part")]

use flashwise_ssd::config::{
    AllocationPool, BadBlocksConfig, BlockOrder, CacheFlush, CachePolicy, CellType, CleaningMode, CleaningPolicy,
    Codec, CommandScope, CompressionConfig, DeduplicationConfig, DomainConfig, DynamicWearLevelling, ElementConfig,
    EnduranceConfig, GcConfig, GcMode, GcPolicy, GcReads, GcTrigger, Interface, Mapping, MappingCacheConfig,
    PartialPages, Placement, ReadAheadConfig, ReadCacheConfig, ReductionConfig, SlcCacheConfig, SlcCacheFull,
    SlcModeConfig, StaticOrder, StaticWearLevelling, StreamPolicy, StreamsConfig, UnwrittenReads, WearLevellingConfig,
    WriteCacheConfig, WritePolicy,
};
use flashwise_ssd::{ContentModel, DeviceConfig};
use proptest::prelude::*;

/// Every way to collect garbage.
fn gc() -> impl Strategy<Value = GcConfig> {
    let start = (2_u32..=5, any::<bool>(), any::<bool>(), 0_u32..=2, prop::option::of(1.0_f64..4.0));
    let pace = (1_u32..=4, 1_u32..=6, any::<bool>(), any::<bool>(), any::<bool>(), prop::option::of(0_u32..5));
    let policy = (prop::sample::select(&GcPolicy::ALL[..]), 1_u32..12, 0.0_f64..1.0, prop::option::of(0.0_f64..1.0));
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
        pace: start.4,
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
    let policy = prop::sample::select([StreamPolicy::ALL, [StreamPolicy::One; StreamPolicy::ALL.len()]].concat());
    (policy, 2_u32..=5, 0.01_f64..0.5).prop_map(|(policy, streams, decay_share)| StreamsConfig {
        policy,
        streams,
        decay_share,
        ..StreamsConfig::default()
    })
}

/// Small drives of every shape, nearly all of them possible.
pub fn small_config() -> impl Strategy<Value = DeviceConfig> {
    let groups = (1_u32..=4, 1_u32..=3, 1_u32..=3, 1_u32..=2);
    let shape = (1_u32..=3, 9_u32..=32, 1_u32..=12, prop::sample::select(vec![4096_u64, 8192, 16384]));
    let rest = (0.2_f64..1.01, any::<bool>(), any::<bool>(), 1_u32..=32, 0_u64..=4, 1_u64..=3);
    let ftl =
        (prop::sample::select(&Placement::ALL[..]), prop::sample::select(StaticOrder::all()), any::<bool>(), 0_u32..3);
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
            config.flash.endurance = match mapping.0 {
                Mapping::Page => endurance,
                Mapping::Element => None,
                _ => endurance.map(|endurance| EnduranceConfig { spread: 0.0, ..endurance }),
            };
            if mapping.0 == Mapping::Page {
                // Any drive may have each of these; the queue depth, which they have nothing to do with, chooses.
                let pages = config.flash_pages_per_superpage() as u32;
                config.ftl.parity_pages = if depth % 4 == 1 { (depth / 8).min(pages - 1) } else { 0 };
                config.ftl.replaces_in_buffer = depth % 5 != 2;
                config.ftl.gc.reads = if depth % 3 == 1 { GcReads::Page } else { GcReads::Die };
            }
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
            // A third of the drives, whatever else is drawn.
            let counts_writes = config.ftl.mapping == Mapping::Page && depth % 3 == 0;
            config.controller.waiting_writes = counts_writes.then_some(1 + depth / 3);
            let open = config.raw_bytes() / u64::from(shape.1 * shape.2);
            let written = u64::from(config.ftl.streams.host_classes());
            config.controller.write_buffer_bytes = (128 << 10) + (1 + written) * open + buffer * 65536;
            let usable =
                config.raw_bytes_for_data() as f64 * f64::from(shape.1.saturating_sub(keep)) / f64::from(shape.1);
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
        if mapping == Mapping::Block {
            // The same draw decides how many logical blocks may be open, and how.
            config.ftl.replacement_blocks = 1 + (entries % 3) as u32;
            config.ftl.random_replacement_blocks = ((entries / 3 % 4) as u32).min(config.ftl.replacement_blocks);
            config.ftl.first_block_log = entries % 2 == 1;
        }
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

/// Superblocks of a unit that are not for the host's data: free, open or waiting, in progress, and bad ones.
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
pub fn small_config_with_caches() -> impl Strategy<Value = DeviceConfig> {
    let flush = prop::sample::select(&CacheFlush::ALL[..]);
    let write = prop::option::of((1_u64..200, flush, 0.0_f64..=1.0, 0.0_f64..=1.0, any::<bool>()));
    let read = prop::option::of((1_u64..200, prop::option::of((1_u32..64, 1_u32..=8, 2_u32..5))));
    let rest = (any::<bool>(), any::<bool>(), any::<bool>(), 1_u32..6, prop::option::of(1_u32..16));
    (small_config(), write, read, rest).prop_map(|(mut config, write, read, rest)| {
        let page = config.ftl.logical_page_bytes;
        let lru = |is_lru| if is_lru { CachePolicy::Lru } else { CachePolicy::Fifo };
        let (sectors, through, dram, queues, each) = rest;
        if matches!(config.ftl.mapping, Mapping::Page | Mapping::Block | Mapping::Fast) {
            config.controller.write_cache = write.map(|(pages, flush, high, low, is_lru)| WriteCacheConfig {
                bytes: pages * page,
                policy: lru(is_lru),
                flush,
                high_watermark: high,
                low_watermark: low * high,
                hot_window_ns: (flush == CacheFlush::Immediate && is_lru).then_some(1_000_000),
            });
        }
        if config.ftl.mapping == Mapping::Page {
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
            config.flash.command_scope = if queues % 3 == 1 { CommandScope::Chip } else { CommandScope::Die };
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

/// A small drive of domains, on parts of the flash that may overlap.
pub fn small_config_in_domains() -> impl Strategy<Value = DeviceConfig> {
    let part = || (any::<[bool; 16]>(), any::<[bool; 4]>(), any::<[bool; 4]>(), any::<[bool; 4]>(), 1_u64..100);
    (small_config_with_caches(), prop::collection::vec(part(), 1..4), 0.1_f64..1.02).prop_map(
        |(mut config, parts, fill)| {
            choose_mapping(&mut config, (Mapping::Page, 300));
            (config.ftl.superpage_channels, config.ftl.superpage_ways) = (1, 1);
            config.ftl.parity_pages = config.ftl.parity_pages.min(config.flash_pages_per_superpage() as u32 - 1);
            config.ftl.placement = Placement::Static;
            let flash = &config.flash;
            let one_plane = config.superpage_planes() == 1;
            let some = |chosen: &[bool], count: u32| {
                let numbers: Vec<u32> = (0..count).filter(|&n| chosen[n as usize % chosen.len()]).collect();
                (!numbers.is_empty()).then_some(numbers)
            };
            let domains: Vec<DomainConfig> = parts
                .iter()
                .map(|(channels, chips, dies, planes, weight)| DomainConfig {
                    capacity_bytes: *weight,
                    channels: some(channels, flash.channels),
                    chips: some(chips, flash.chips_per_channel),
                    dies: some(dies, flash.dies_per_chip),
                    planes: some(planes, flash.planes_per_die).filter(|_| one_plane),
                })
                .collect();
            let (superpage, capacity) = (config.superpage_bytes(), config.capacity_bytes as f64 * fill);
            let weights: u64 = domains.iter().map(|domain| domain.capacity_bytes).sum();
            config.ftl.domains = domains;
            for domain in &mut config.ftl.domains {
                let bytes = capacity * domain.capacity_bytes as f64 / weights as f64;
                domain.capacity_bytes = (bytes as u64 / superpage).max(1) * superpage;
            }
            config.capacity_bytes = config.ftl.domains.iter().map(|domain| domain.capacity_bytes).sum();
            if let Some(cache) = &mut config.ftl.mapping_cache {
                cache.partitions = if cache.partitions == 1 { 1 } else { config.ftl.domains.len() as u32 };
            }
            config
        },
    )
}

/// A small drive that compresses or shares pages, or both, some of them thin, and what it is given.
pub fn small_config_that_reduces() -> impl Strategy<Value = (DeviceConfig, ContentModel)> {
    let compression = prop::option::weighted(0.8, (4_u32..=12, prop::sample::select(&Codec::ALL[..])));
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
            config.ftl.gc.reads = GcReads::Die;
            let compression = compression.filter(|_| config.superpage_bytes() >= 2 * config.ftl.logical_page_bytes);
            let page = config.ftl.logical_page_bytes;
            let physical_bytes = ((config.capacity_bytes as f64 * physical) as u64 / page * page).max(page);
            config.reduction = Some(ReductionConfig {
                physical_bytes: (physical_bytes < config.capacity_bytes).then_some(physical_bytes),
                compression: compression.map(|(shift, codec)| CompressionConfig {
                    codec,
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
pub fn small_config_with_slc_cache() -> impl Strategy<Value = (DeviceConfig, ContentModel)> {
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
