//! What works side by side: the places that sense, the parts of the drive that an address chooses between, and what is
//! erased at once.

use flashwise_profile::{Figure, Parameters};

use super::exactly;
use crate::DeviceConfig;
use crate::config::{CommandScope, Mapping, Placement};
use crate::ftl::geometry::Geometry;

/// Logical pages over which an address bit is tried.
const PAGES_TRIED: u64 = 1 << 18;

pub(super) fn fill_in(config: &DeviceConfig, parameters: &mut Parameters) {
    let places = match config.flash.command_scope {
        CommandScope::Die => config.ways(),
        CommandScope::Chip => config.flash.chips_per_channel,
    };
    parameters.parallel_units = exactly(u64::from(config.flash.channels * places));
    let mask = volume_bits(config);
    (parameters.internal_volumes, parameters.internal_volume_bits) = match mask {
        0 => (Figure::absent(), Figure::absent()),
        _ => (exactly(1 << mask.count_ones()), exactly(mask)),
    };
    parameters.superblock_bytes = match config.ftl.mapping {
        Mapping::InPlace => Figure::absent(),
        _ => exactly(config.superpage_bytes() * u64::from(config.flash.pages_per_block)),
    };
}

/// The dies that a logical page may be written to, as numbers of sets that do not overlap; `None` where it may be any.
fn die_sets(config: &DeviceConfig) -> Option<Box<dyn Fn(u64) -> u64>> {
    let (channels, ways) = (u64::from(config.flash.channels), u64::from(config.ways()));
    if config.ftl.mapping == Mapping::InPlace {
        return Some(Box::new(move |page| page % channels * ways + page / channels % ways));
    }
    let planes = u64::from(config.flash.planes_per_die / config.superpage_planes());
    let slots = config.superpage_bytes() / config.ftl.logical_page_bytes;
    match config.ftl.placement {
        Placement::Stripe => {
            let in_group = u64::from(Geometry::new(config).units_per_group);
            Some(Box::new(move |page| page / slots % in_group / planes))
        }
        Placement::Static => {
            let unit_of = crate::ftl::placement::static_units(config);
            Some(Box::new(move |page| u64::from(unit_of(page as u32)) / planes))
        }
        Placement::RoundRobin | Placement::LeastLoaded => None,
    }
}

/// The address bits that by themselves part the dies: with one value of the bit, none is written that is written with the
/// other.
fn volume_bits(config: &DeviceConfig) -> u64 {
    let Some(die_set_of) = die_sets(config) else { return 0 };
    // Dies that take one command together are one place.
    let together = match config.flash.command_scope {
        CommandScope::Die => 1,
        CommandScope::Chip => u64::from(config.flash.dies_per_chip),
    };
    let set_of = |page| die_set_of(page) / together;
    let page = config.ftl.logical_page_bytes;
    let pages = PAGES_TRIED.min(config.logical_pages());
    let sets: Vec<u64> = (0..pages).map(set_of).collect();
    let highest = sets.iter().copied().max().unwrap_or(0) as usize;
    let parts = |bit: u32| {
        let mut seen = vec![0_u8; highest + 1];
        sets.iter().enumerate().for_each(|(n, &set)| seen[set as usize] |= 1 << (n >> bit & 1));
        seen.iter().all(|&values| values != 3)
    };
    (0..pages.ilog2()).filter(|&bit| parts(bit)).map(|bit| page << bit).sum()
}
