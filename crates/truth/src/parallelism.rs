//! What works side by side: the places that sense, the parts of the drive that an address chooses between, and what is
//! erased at once.

use flashwise_profile::{Figure, Parameters};

use super::{Reasons, exactly};
use flashwise_ssd::DeviceConfig;
use flashwise_ssd::config::{CommandScope, Mapping, Placement, StaticUnits};

/// Logical pages over which an address bit is tried.
const PAGES_TRIED: u64 = 1 << 18;

/// Bytes of the reads that wait for each other.
const BLOCK: u64 = 4096;

pub(super) fn fill_in(config: &DeviceConfig, parameters: &mut Parameters, reasons: &mut Reasons) {
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
    let transfer_ns = BLOCK as f64 * 1e9 / config.flash.channel_bytes_per_s as f64;
    if places > 1 && transfer_ns > config.flash.read_ns as f64 {
        const WHY: &str =
            "a channel is busy for longer than a die, so the dies of one channel wait for each other as one die does";
        parameters.parallel_units = reasons.unknown("parallel_units", WHY);
        parameters.internal_volumes = reasons.unknown("internal_volumes", WHY);
        parameters.internal_volume_bits = reasons.unknown("internal_volume_bits", WHY);
    }
    parameters.superblock_bytes = match config.ftl.mapping {
        Mapping::InPlace => Figure::absent(),
        _ => exactly(config.superpage_bytes() * u64::from(config.flash.pages_per_block)),
    };
}

/// The first of the dies that a logical page may be written to, in whatever group of channels it comes to lie; `None`
/// where it may be any. Two pages whose first dies differ share none.
fn first_die(config: &DeviceConfig) -> Option<Box<dyn Fn(u64) -> u64>> {
    let (channels, ways) = (u64::from(config.flash.channels), u64::from(config.ways()));
    if config.ftl.mapping == Mapping::InPlace {
        return Some(Box::new(move |page| page % channels * ways + page / channels % ways));
    }
    let first = config.first_dies_of_units();
    let die_of = move |unit: u32| u64::from(first[unit as usize]);
    let slots = config.superpage_bytes() / config.ftl.logical_page_bytes;
    match config.ftl.placement {
        Placement::Stripe => {
            let in_group = u64::from(config.units_per_group());
            Some(Box::new(move |page| die_of((page / slots % in_group) as u32)))
        }
        Placement::Static => {
            let units = StaticUnits::new(config);
            Some(Box::new(move |page| die_of(units.unit_of(page as u32))))
        }
        _ => None,
    }
}

/// The address bits that by themselves part the dies: with one value of the bit, none is written that is written with
/// the other.
fn volume_bits(config: &DeviceConfig) -> u64 {
    let Some(die_of) = first_die(config) else { return 0 };
    // Dies that take one command together are one place.
    let together = match config.flash.command_scope {
        CommandScope::Die => 1,
        CommandScope::Chip => u64::from(config.flash.dies_per_chip),
    };
    let set_of = |page| die_of(page) / together;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Four dies on a channel, two of them a chip, superpages over two dies.
    fn two_dies_a_superpage() -> DeviceConfig {
        let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
        (config.flash.chips_per_channel, config.flash.dies_per_chip) = (2, 2);
        (config.ftl.placement, config.ftl.superpage_ways) = (Placement::Stripe, 2);
        config.ftl.slc_cache = None;
        config
    }

    #[test]
    fn superpages_over_the_dies_of_a_chip_leave_the_chips_apart() {
        let mut config = two_dies_a_superpage();
        let by_die = volume_bits(&config);
        assert_eq!(by_die.count_ones(), 1, "{by_die:x}");
        config.flash.command_scope = CommandScope::Chip;
        assert_eq!(volume_bits(&config), by_die);
    }
}
