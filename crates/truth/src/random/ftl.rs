//! The flash translation layer of a random drive.
//!
//! Placement: mostly by stripe, which is what the drives of the published table show; by address alone in one of the 24
//! orders of Tavakkol et al. (ACM TOMPECS 1(2), 2016), whose drives have internal volumes; or dynamic. Superpages span
//! the planes of a die, or several dies or channels as on the Toshiba and the Micron, up to 256 KiB.
//!
//! Collection: greedy is what most drives are thought to do; every other policy of the simulator comes now and then.

use super::draw::Draws;
use flashwise_ssd::config::{
    BadBlocksConfig, DynamicWearLevelling, ElementConfig, FlashConfig, FtlConfig, GcConfig, GcMode, GcPolicy, Mapping,
    MappingCacheConfig, PartialPages, Placement, StaticOrder, StaticWearLevelling, StreamPolicy, StreamsConfig,
    WearLevellingConfig,
};

/// Longest superpage, and longest stripe.
pub(super) const LONGEST: u64 = 256 << 10;
/// Share of drives of flash with an address-bound placement.
pub(super) const STATIC: f64 = 0.20;
/// Share with a placement that goes by load or by turn.
pub(super) const DYNAMIC: f64 = 0.20;
/// Share of drives of flash whose page map is cached.
pub(super) const MAPPING_CACHE: f64 = 0.10;
/// Share of drives of flash that move cold data.
pub(super) const STATIC_WEAR_LEVELLING: f64 = 0.12;
/// Share that tells streams of data apart.
pub(super) const STREAMS: f64 = 0.10;
/// Share that collects in the foreground.
pub(super) const FOREGROUND: f64 = 0.15;
/// Share with blocks that were bad from the factory.
pub(super) const BAD_BLOCKS: f64 = 0.25;

/// The unit of the map: what nearly every drive has is 4 KiB.
pub(super) fn logical_page_bytes(draws: &Draws) -> u64 {
    draws.weighted("ftl.logical_page_bytes", &[(4 << 10, 85), (8 << 10, 10), (16 << 10, 5)])
}

/// A log-structured page map.
pub(super) fn page_mapped(draws: &Draws, flash: &FlashConfig, logical_page_bytes: u64) -> FtlConfig {
    let placement = placement(draws);
    let planes = superpage_planes(draws, flash);
    let (channels, ways) = superpage_dies(draws, flash, placement, u64::from(planes) * flash.page_bytes);
    let superpage = u64::from(channels * ways * planes) * flash.page_bytes;
    let dies = flash.chips_per_channel * flash.dies_per_chip;
    let has_groups = placement == Placement::Stripe && flash.channels > channels;
    let units_of_group = if has_groups { dies / ways * (flash.planes_per_die / planes) } else { 1 };
    let one_page = superpage == logical_page_bytes;
    let streams = streams(draws);
    FtlConfig {
        domains: Vec::new(),
        mapping: Mapping::Page,
        logical_page_bytes,
        placement,
        static_order: draws.any("ftl.static_order", &StaticOrder::all()),
        stripe_bytes: stripe_bytes(draws, superpage, units_of_group),
        superpage_channels: channels,
        superpage_ways: ways,
        superpage_planes: (planes != flash.planes_per_die).then_some(planes),
        parity_pages: 0,
        replaces_in_buffer: true,
        mapping_cache: None,
        replacement_blocks: 1,
        random_replacement_blocks: 0,
        random_log_pages: None,
        first_block_log: false,
        log_blocks: 1,
        partial_pages: draws.weighted("ftl.partial_pages", &[(PartialPages::Fill, 80), (PartialPages::Sectors, 20)]),
        element: ElementConfig::default(),
        gc: gc(draws, one_page, &streams),
        slc_cache: None,
        streams,
        wear_levelling: wear_levelling(draws),
        bad_blocks: BadBlocksConfig {
            initial_share: if draws.chance("ftl.bad_blocks", BAD_BLOCKS) {
                draws.share("ftl.bad_blocks.initial_share", 0.002, 0.02)
            } else {
                0.0
            },
            erasures_max: None,
        },
    }
}

pub(super) fn placement(draws: &Draws) -> Placement {
    if draws.chance("ftl.placement.static", STATIC) {
        Placement::Static
    } else if draws.chance("ftl.placement.dynamic", DYNAMIC / (1.0 - STATIC)) {
        draws.any("ftl.placement", &[Placement::RoundRobin, Placement::LeastLoaded])
    } else {
        Placement::Stripe
    }
}

fn superpage_planes(draws: &Draws, flash: &FlashConfig) -> u32 {
    let planes = flash.planes_per_die;
    draws.weighted("ftl.superpage_planes", &[(planes, 75), (1, 20), (planes.div_ceil(2), 5)])
}

/// Channels, and ways on each of them, that program together: as many as were drawn and a superpage may have.
fn superpage_dies(draws: &Draws, flash: &FlashConfig, placement: Placement, die_bytes: u64) -> (u32, u32) {
    if placement == Placement::Static {
        return (1, 1);
    }
    let ways = flash.chips_per_channel * flash.dies_per_chip;
    let channels = flash.channels;
    // In stripes, all units of a group have to find room in one.
    let row = if placement == Placement::Stripe { planes_bytes(flash) * u64::from(ways) } else { die_bytes };
    let wanted = draws.weighted("ftl.superpage_channels", &[(1, 55), (2, 10), (channels, 35)]);
    let most = if wanted == channels { LONGEST / die_bytes } else { LONGEST / row };
    let all = largest_divisor(channels, wanted, most);
    let together = if all == channels { all } else { largest_divisor(channels, wanted, LONGEST / row) };
    let wanted = draws.weighted("ftl.superpage_ways", &[(1, 70), (2, 20), (ways, 10)]);
    (together, largest_divisor(ways, wanted, LONGEST / (die_bytes * u64::from(together))))
}

/// What all planes of a die hold of one row.
fn planes_bytes(flash: &FlashConfig) -> u64 {
    u64::from(flash.planes_per_die) * flash.page_bytes
}

/// The largest part of `whole` that divides it, and is neither above `wanted` nor `most`.
fn largest_divisor(whole: u32, wanted: u32, most: u64) -> u32 {
    let fits = |n: &u32| whole.is_multiple_of(*n) && u64::from(*n) <= most;
    (1..=wanted.min(whole)).rev().find(fits).unwrap_or(1)
}

/// One superpage of each unit of a channel group, or two, four … of them. A shorter stripe would let the pieces of a
/// sequential write, which go over the groups in turn, meet the same units of each again and again.
fn stripe_bytes(draws: &Draws, superpage: u64, units_of_group: u32) -> u64 {
    let least = superpage * u64::from(units_of_group);
    let doublings = draws.weighted("ftl.stripe_bytes", &[(0, 35), (1, 25), (2, 20), (3, 12), (4, 8)]);
    let fits = |n: &u32| least << n <= LONGEST;
    least << (0..=doublings).rev().find(fits).unwrap_or(0)
}

fn streams(draws: &Draws) -> StreamsConfig {
    let policy = match draws.chance("ftl.streams", STREAMS) {
        true => draws.any("ftl.streams.policy", &[StreamPolicy::SepBit, StreamPolicy::BloomFilters]),
        false => StreamPolicy::One,
    };
    StreamsConfig { policy, ..StreamsConfig::default() }
}

fn gc(draws: &Draws, one_page: bool, streams: &StreamsConfig) -> GcConfig {
    let separate = streams.policy != StreamPolicy::One || draws.chance("ftl.gc.separate_open_block", 0.85);
    let least = if separate { 2 } else { 3 };
    let background = !draws.chance("ftl.gc.mode", FOREGROUND);
    GcConfig {
        policy: draws.weighted(
            "ftl.gc.policy",
            &[
                (GcPolicy::Greedy, 46),
                (GcPolicy::CostBenefit, 10),
                (GcPolicy::RandomGreedy, 12),
                (GcPolicy::WindowedGreedy, 8),
                (GcPolicy::Fifo, 6),
                (GcPolicy::WearAware, 5),
                (GcPolicy::DisksimGreedy, 4),
                (GcPolicy::TwoR, 6),
                (GcPolicy::Random, 3),
            ],
        ),
        free_superblocks: Some(
            draws.weighted("ftl.gc.free_superblocks", &[(2, 15), (3, 25), (4, 35), (6, 15), (8, 10)]).max(least),
        ),
        mode: if background { GcMode::Background } else { GcMode::Foreground },
        preemptible: background && draws.chance("ftl.gc.preemptible", 0.2),
        concurrent_victims: draws.weighted("ftl.gc.concurrent_victims", &[(1, 80), (2, 20)]),
        reads_in_flight: draws.any("ftl.gc.reads_in_flight", &[1, 2, 4, 8]),
        copy_back: one_page && draws.chance("ftl.gc.copy_back", 0.3),
        separate_open_block: separate,
        choices: draws.any("ftl.gc.choices", &[4, 6, 8, 10]),
        window_share: draws.any("ftl.gc.window_share", &[0.25, 0.5, 0.75]),
        // Beyond what a run of a few capacities reaches: worn superblocks would be spared otherwise as never in use.
        lifetime_erasures: 3_000,
        ..GcConfig::default()
    }
}

fn wear_levelling(draws: &Draws) -> WearLevellingConfig {
    let moves = draws.chance("ftl.wear_levelling.static", STATIC_WEAR_LEVELLING);
    WearLevellingConfig {
        dynamic: draws.weighted(
            "ftl.wear_levelling.dynamic",
            &[(DynamicWearLevelling::Fifo, 65), (DynamicWearLevelling::LeastErased, 35)],
        ),
        static_: if moves { StaticWearLevelling::Threshold } else { StaticWearLevelling::None },
        threshold: draws.any("ftl.wear_levelling.threshold", &[20, 50, 100]),
    }
}

/// Whether the page map is cached.
pub(super) fn has_mapping_cache(draws: &Draws) -> bool {
    draws.chance("ftl.mapping_cache", MAPPING_CACHE)
}

/// A cached page map with room for a tenth to half of the entries.
pub(super) fn mapping_cache(draws: &Draws, capacity_bytes: u64, logical_page_bytes: u64) -> MappingCacheConfig {
    let entries = capacity_bytes / logical_page_bytes;
    let share = draws.share("ftl.mapping_cache.capacity_bytes", 0.1, 0.5);
    MappingCacheConfig {
        capacity_bytes: ((entries as f64 * share) as u64 * 8).next_multiple_of(4096),
        cached_entry_bytes: 8,
        stored_entry_bytes: 4,
        load_bytes: None,
        stored_at_start: false,
        deferred_write_back: false,
        write_back_renews: false,
        partitions: 1,
    }
}

/// No map at all.
pub(super) fn in_place() -> FtlConfig {
    FtlConfig {
        domains: Vec::new(),
        mapping: Mapping::InPlace,
        slc_cache: None,
        logical_page_bytes: 4096,
        placement: Placement::Stripe,
        static_order: StaticOrder::default(),
        stripe_bytes: 4096,
        superpage_channels: 1,
        superpage_ways: 1,
        superpage_planes: None,
        parity_pages: 0,
        replaces_in_buffer: true,
        mapping_cache: None,
        replacement_blocks: 1,
        random_replacement_blocks: 0,
        random_log_pages: None,
        first_block_log: false,
        log_blocks: 1,
        partial_pages: PartialPages::Fill,
        element: ElementConfig::default(),
        streams: StreamsConfig::default(),
        gc: GcConfig { free_superblocks: Some(2), ..GcConfig::default() },
        wear_levelling: WearLevellingConfig::default(),
        bad_blocks: BadBlocksConfig::default(),
    }
}
