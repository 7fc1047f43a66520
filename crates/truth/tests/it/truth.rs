//! The truth about drives: the published table, each rule on a drive that is built for it, and closed forms.

use flashwise_block::{BlockDevice, ByteSize, Request};
use flashwise_profile::{Figure, HotLocation, Parameters, Verdict, published_drives};
use flashwise_ssd::config::{
    CacheFlush, CachePolicy, CellType, CommandScope, CompressionConfig, DeduplicationConfig, Mapping, Placement,
    ReadAheadConfig, ReadCacheConfig, ReductionConfig, SlcCacheConfig, SlcCacheFull, SlcModeConfig, StaticOrder,
    WriteCacheConfig, WritePolicy,
};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use flashwise_truth::random::random_device;
use flashwise_truth::{structure, truth};

/// 64 MiB: 4 channels of 2 dies of 2 planes, superpages of 32 KiB, stripes of 64 KiB; no jitter, nothing but the flash
/// takes long.
fn small(change: impl FnOnce(&mut DeviceConfig)) -> DeviceConfig {
    let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
    let flash = &mut config.flash;
    (flash.channels, flash.chips_per_channel, flash.dies_per_chip) = (4, 1, 2);
    (flash.blocks_per_plane, flash.pages_per_block, flash.array_time_jitter) = (64, 64, 0.0);
    config.ftl.gc.free_superblocks = Some(3);
    config.capacity_bytes = 700 << 20;
    change(&mut config);
    config.check("small").unwrap();
    config
}

fn built(change: impl FnOnce(&mut DeviceConfig)) -> Parameters {
    structure(&small(change)).unwrap().parameters
}

#[test]
fn the_published_table_is_the_truth_about_its_presets() {
    for published in published_drives() {
        let config = DeviceConfig::preset(published.preset).unwrap();
        let p = structure(&config).unwrap().parameters;
        let name = published.preset;
        assert_eq!(p.write_unit_bytes.known(), Some(published.write_unit_bytes), "{name}");
        assert_eq!(p.chunk_bytes.known(), Some(published.chunk_bytes), "{name}");
        let hot = published.hot_location;
        let hot = HotLocation { period_bytes: hot.period_bytes, offset_bytes: hot.offset_bytes };
        assert_eq!(p.hot_location.known(), Some(hot), "{name}");
        for (figure, bytes) in [(p.stripe_bytes, published.stripe_bytes), (p.page_bytes, published.page_bytes)] {
            let expected = bytes.map_or(Figure::absent(), |bytes| Figure::certain(bytes, bytes, bytes));
            assert_eq!(figure, expected, "{name}");
        }
    }
}

#[test]
fn a_write_unit_is_a_superpage_and_behind_a_protected_buffer_a_logical_page() {
    assert_eq!(built(|_| {}).write_unit_bytes.known(), Some(32 << 10));
    let wide = |c: &mut DeviceConfig| (c.ftl.superpage_channels, c.ftl.stripe_bytes) = (2, 64 << 10);
    assert_eq!(built(wide).write_unit_bytes.known(), Some(64 << 10));
    let protected = |c: &mut DeviceConfig| c.controller.power_loss_protection = true;
    assert_eq!(built(protected).write_unit_bytes.known(), Some(4 << 10));
    let whole_pages =
        |c: &mut DeviceConfig| (c.controller.power_loss_protection, c.host.logical_block_bytes) = (true, 4096);
    assert_eq!(built(whole_pages).write_unit_bytes.verdict, Verdict::Absent, "nothing shorter can be written");
    let through = |c: &mut DeviceConfig| {
        (c.controller.power_loss_protection, c.controller.write_policy) = (true, WritePolicy::Through);
    };
    assert_eq!(built(through).write_unit_bytes.known(), Some(32 << 10), "forced all the same");
}

#[test]
fn a_chunk_is_what_lies_on_one_channel_in_every_placement() {
    let chunk = |change: fn(&mut DeviceConfig)| built(change).chunk_bytes;
    assert_eq!(chunk(|_| {}).known(), Some(64 << 10), "a stripe on a group of one channel");
    assert_eq!(chunk(|c| c.ftl.placement = Placement::RoundRobin).known(), Some(32 << 10), "a superpage");
    let ways_first = |c: &mut DeviceConfig| {
        (c.ftl.placement, c.ftl.static_order) = (Placement::Static, StaticOrder::try_from("DCWP".to_owned()).unwrap());
    };
    assert_eq!(chunk(ways_first).known(), Some(64 << 10), "a superpage on each of two dies");
    let together = |c: &mut DeviceConfig| (c.ftl.superpage_channels, c.ftl.stripe_bytes) = (4, 128 << 10);
    assert_eq!(chunk(together).known(), Some(16 << 10), "a flash page");
    let alone = |c: &mut DeviceConfig| (c.flash.channels, c.capacity_bytes) = (1, 170 << 20);
    assert_eq!(chunk(alone).verdict, Verdict::Absent);
}

#[test]
fn a_hot_location_outlives_random_writes_only_where_the_address_says_where_data_goes() {
    let survives = |change: fn(&mut DeviceConfig)| built(change).hot_location_survives_writes.known();
    assert_eq!(survives(|_| {}), Some(false));
    assert_eq!(survives(|c| c.ftl.placement = Placement::Static), Some(true));
}

#[test]
fn a_page_shows_where_a_read_moves_more_than_a_block() {
    let page = |bytes: u64, block: u64| {
        let p = built(|c| (c.flash.transfer_unit_bytes, c.host.logical_block_bytes) = (bytes, block));
        p.page_bytes
    };
    assert_eq!(page(2048, 512).known(), Some(2048));
    assert_eq!(page(512, 512).verdict, Verdict::Absent);
    assert_eq!(page(4096, 4096).verdict, Verdict::Absent);
}

#[test]
fn volumes_are_what_address_bits_choose_between() {
    let of = |change: fn(&mut DeviceConfig)| {
        let p = built(change);
        (p.internal_volumes.known(), p.internal_volume_bits.known())
    };
    assert_eq!(of(|_| {}), (Some(2), Some(32 << 10)), "the die of a channel");
    assert_eq!(of(|c| c.ftl.placement = Placement::Static), (Some(8), Some(7 * (32 << 10))));
    assert_eq!(of(|c| c.ftl.placement = Placement::RoundRobin), (None, None));
    let planes = |c: &mut DeviceConfig| {
        (c.ftl.placement, c.ftl.superpage_planes) = (Placement::Static, Some(1));
        c.ftl.static_order = StaticOrder::try_from("PCWD".to_owned()).unwrap();
    };
    assert_eq!(of(planes), (Some(8), Some(7 * (32 << 10))), "planes of a die are no volumes");
    let three = |c: &mut DeviceConfig| {
        (c.ftl.placement, c.flash.channels, c.capacity_bytes) = (Placement::Static, 3, 500 << 20);
        c.ftl.static_order = StaticOrder::try_from("DCWP".to_owned()).unwrap();
    };
    assert_eq!(of(three), (Some(2), Some(32 << 10)), "no bit chooses one of three channels");
}

#[test]
fn places_that_take_commands_by_themselves_are_the_parallel_units() {
    assert_eq!(built(|_| {}).parallel_units.known(), Some(8));
    assert_eq!(built(|c| c.flash.command_scope = CommandScope::Chip).parallel_units.known(), Some(4));
}

#[test]
fn buffers_and_caches_are_as_long_as_they_are() {
    let cache = |flush| {
        let (policy, hot_window_ns) = (CachePolicy::Lru, None);
        Some(WriteCacheConfig { bytes: 2 << 20, policy, flush, high_watermark: 0.8, low_watermark: 0.5, hot_window_ns })
    };
    assert_eq!(built(|_| {}).write_buffer_bytes.known(), Some(4 << 20));
    let full = built(|c| c.controller.write_cache = cache(CacheFlush::WhenFull));
    assert_eq!(full.write_buffer_bytes.known(), Some(6 << 20));
    let at_once = built(|c| c.controller.write_cache = cache(CacheFlush::Immediate));
    assert_eq!(at_once.write_buffer_bytes.known(), Some(4 << 20), "it keeps nothing");
    let through = built(|c| c.controller.write_policy = WritePolicy::Through);
    assert_eq!(through.write_buffer_bytes.verdict, Verdict::Absent);
    assert_eq!(through.power_loss_protected.known(), Some(true), "what is acknowledged is on flash");
    let reads = built(|c| {
        c.controller.read_cache = Some(ReadCacheConfig { bytes: 1 << 20, policy: CachePolicy::Lru });
        c.controller.read_ahead = Some(ReadAheadConfig { pages: 32, streams: 1, trigger: 2 });
    });
    assert_eq!((reads.read_cache_bytes.known(), reads.read_ahead_bytes.known()), (Some(1 << 20), Some(128 << 10)));
}

#[test]
fn what_a_drive_acknowledges_ahead_of_its_flash_is_its_write_buffer() {
    assert_buffers_are_full(0..12);
}

#[test]
#[ignore = "half a minute: make test-full runs it"]
fn so_it_is_of_more_drives() {
    assert_buffers_are_full(12..60);
}

fn assert_buffers_are_full(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let config = random_device(seed).unwrap();
        let expected = structure(&config).unwrap().parameters.write_buffer_bytes.known();
        let Some(expected) = expected else { continue };
        let mut drive = SimulatedSsd::new(config.clone(), 1).unwrap();
        let (mut most, length) = (0, 64 << 10);
        // An engine slows the host: flash may take two thirds of what comes, and the buffer is full after three
        // lengths.
        let lengths = if config.reduction.is_some() { 4 } else { 2 };
        for n in 0..lengths * expected / length + 64 {
            let at = n * length % (config.capacity_bytes / length * length);
            drive.submit(Request::write(ByteSize(at), ByteSize(length))).unwrap();
            most = most.max(drive.buffered_bytes());
            while drive.outstanding() > 24 {
                drive.wait().unwrap();
                most = most.max(drive.buffered_bytes());
            }
        }
        let share = most as f64 / expected as f64;
        // Flash in SLC mode may take nearly all that comes meanwhile.
        let keeps_up = most < expected / 2 || config.ftl.slc_cache.is_some();
        assert!(share <= 1.05 && (share >= 0.9 || keeps_up), "seed {seed}: {most} of {expected}");
    }
}

#[test]
fn over_provisioning_is_what_collection_neither_keeps_free_nor_finds_bad() {
    let config = small(|c| c.ftl.bad_blocks.initial_share = 0.02);
    let superblocks = 64 - 3 - 2;
    let expected = f64::from(superblocks * 8) * 2.0 / 700.0 - 1.0;
    let found = structure(&config).unwrap().parameters.over_provisioning.known().unwrap();
    assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    let p = built(|_| {});
    assert_eq!(p.superblock_bytes.known(), Some(2 << 20));
}

#[test]
fn media_in_place_have_no_collection_and_no_buffer() {
    let config = (0..).map(|seed| random_device(seed).unwrap()).find(|c| c.ftl.mapping == Mapping::InPlace).unwrap();
    let p = truth(&config).unwrap().parameters;
    // Nothing shorter than a logical block can be written.
    let granule = config.flash.write_granule_bytes;
    assert_eq!(p.write_unit_bytes.known(), (granule > config.host.logical_block_bytes).then_some(granule));
    assert_eq!(p.write_amplification_uniform.known(), Some(1.0));
    for verdict in [
        p.superblock_bytes.verdict,
        p.over_provisioning.verdict,
        p.collection_cost.verdict,
        p.asymmetry_4k_collecting.verdict,
        p.trim_gain.verdict,
        p.flush_ns.verdict,
        p.write_buffer_bytes.verdict,
        p.stripe_bytes.verdict,
    ] {
        assert_eq!(verdict, Verdict::Absent);
    }
    assert!(p.asymmetry_4k.known().unwrap() > 0.5);
}

fn near(found: f64, expected: f64, share: f64, what: &str) {
    assert!((found / expected - 1.0).abs() < share, "{what}: {found}, by formula {expected}");
}

#[test]
fn what_is_measured_agrees_with_closed_forms() {
    // Slow flash behind a host and channels that cost nearly nothing: dies alone bound the drive.
    let config = small(|c| {
        (c.flash.read_ns, c.flash.program_ns, c.flash.channel_bytes_per_s) = (100_000, 1_000_000, 12_000_000_000);
        (c.host.link_bytes_per_s, c.host.command_issue_ns, c.host.command_latency_ns) =
            (Some(12_000_000_000), 50, 1_000);
        c.controller.dispatch_ns = 50;
    });
    let p = truth(&config).unwrap().parameters;
    let (dies, pages) = (8.0, 8.0);
    let reads = dies / 100e-6;
    // In the long run each page of a superblock pays its share of the erase.
    let erase = config.flash.erase_ns as f64 / 1e9 / f64::from(config.flash.pages_per_block);
    let writes = dies * pages / (1e-3 + erase);
    near(p.asymmetry_4k.known().unwrap(), reads / writes, 0.05, "α at 4 KiB");
    near(p.durable_write_ns.known().unwrap() as f64, 1e6, 0.02, "a durable write");
    near(p.flush_ns.known().unwrap() as f64, 1e6, 0.02, "a flush");
    near(p.sustained_write_bytes_per_s.known().unwrap() as f64, dies * 32_768.0 / 1e-3, 0.1, "sustained");
    let room = (64 - 3) as f64 * 16.0 * 1024.0 * 1024.0 - (700 << 20) as f64;
    near(p.collection_onset_bytes.known().unwrap() as f64, room, 0.1, "the onset");
    // Of 64 superblocks a unit, two are free in the steady state and two half full.
    let fill = flashwise_theory::fill_of_sealed(700 << 8, 64 * 8, 512, 2.0 * 8.0, 2.0 * 8.0);
    let greedy = flashwise_theory::write_amplification_greedy(fill);
    near(p.write_amplification_uniform.known().unwrap(), greedy, 0.05, "write amplification");
    assert!(p.trim_gain.known().unwrap() > 1.5, "{:?}", p.trim_gain);
    assert!(p.collection_cost.known().unwrap() > 1.5, "{:?}", p.collection_cost);
    let k = p.read_concurrency_4k.known().unwrap();
    assert!((6..=16).contains(&k), "{k} reads on eight dies");
}

#[test]
fn the_same_drive_has_the_same_truth() {
    let config = small(|c| c.flash.array_time_jitter = 0.05);
    assert_eq!(truth(&config).unwrap(), truth(&config).unwrap());
}

/// The small drive with cells of three bits, written with one first.
fn caching(when_full: SlcCacheFull, program_ns: u64) -> DeviceConfig {
    small(|c| {
        c.flash.cell = Some(CellType::Tlc);
        (c.flash.pages_per_block, c.flash.blocks_per_plane) = (63, 75);
        let slc_mode =
            SlcModeConfig { read_ns: 25_000, program_ns, erase_ns: None, pe_cycles: None, rber_factor: None };
        c.flash.slc_mode = Some(slc_mode);
        c.ftl.slc_cache = Some(SlcCacheConfig { dedicated_superblocks: 9, when_full, ..SlcCacheConfig::default() });
    })
}

#[test]
fn a_cache_of_fast_cells_holds_its_superblocks_where_a_host_can_tell() {
    let cache = |config: &DeviceConfig| truth(config).unwrap().parameters.slc_cache_bytes;
    // 8 dies, 9 superblocks of each, of 21 rows of 32 KiB.
    let superblock = 8 * 21 * (32 << 10);
    let fast = caching(SlcCacheFull::Bypass, 100_000);
    assert_eq!(cache(&fast).known(), Some(9 * superblock));
    let waits = caching(SlcCacheFull::Fold, 100_000);
    assert_eq!(cache(&waits).known(), Some(8 * superblock), "with the last one it begins to empty the cache");
    let as_slow = caching(SlcCacheFull::Bypass, fast.flash.program_ns);
    assert_eq!(cache(&as_slow).verdict, Verdict::Absent, "its cells are no faster");
    let told = truth(&fast).unwrap();
    for key in ["asymmetry_4k", "superblock_bytes", "flush_ns"] {
        assert!(told.reasons[key].contains("SLC cache"), "{key}: {:?}", told.reasons.get(key));
    }
}

/// The small drive, protected, with what it does to store less.
fn reducing(compression: bool, deduplication: Option<DeduplicationConfig>) -> DeviceConfig {
    small(|c| {
        c.capacity_bytes = 600 << 20;
        (c.controller.power_loss_protection, c.host.logical_block_bytes) = (true, 4096);
        c.reduction = Some(ReductionConfig {
            physical_bytes: None,
            compression: compression.then(CompressionConfig::default),
            deduplication,
        });
    })
}

#[test]
fn content_gains_what_the_flash_need_not_program() {
    let gains = |config: &DeviceConfig| {
        let p = truth(config).unwrap().parameters;
        (p.compression_gain, p.deduplication_gain)
    };
    let (compression, deduplication) = gains(&reducing(true, None));
    assert!(compression.known().is_some_and(|gain| gain > 1.5), "{compression:?}");
    assert_eq!(deduplication.verdict, Verdict::Absent);
    let (compression, deduplication) = gains(&reducing(false, Some(DeduplicationConfig::default())));
    assert_eq!(compression.verdict, Verdict::Absent);
    assert!(deduplication.known().is_some_and(|gain| gain > 1.5), "{deduplication:?}");
    let later = DeduplicationConfig { in_line: false, out_of_line: true, ..DeduplicationConfig::default() };
    assert_eq!(gains(&reducing(false, Some(later))).1.verdict, Verdict::Absent, "all of it is written first");
}

#[test]
fn a_drive_that_offers_more_than_it_has_room_for_has_no_truth() {
    let mut thin = reducing(true, None);
    thin.ftl.placement = Placement::RoundRobin;
    thin.reduction.as_mut().unwrap().physical_bytes = Some(300 << 20);
    thin.check("thin").unwrap();
    let told = truth(&thin).unwrap();
    assert_eq!(told.parameters, Parameters::default());
    assert!(told.reasons["chunk_bytes"].contains("thin-provisioned"));
}
