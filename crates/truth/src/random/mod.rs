//! Random drives: a plausible one for each seed, to hold whatever learns drives against drives that nobody has seen.
//!
//! ```text
//!   seed ─▶ medium, host ─▶ geometry, times ─▶ placement, collection ─▶ over-provisioning ─▶ blocks, capacity ─▶ check
//! ```
//!
//! **What varies** is everything that a profile has a figure for, with each feature on some drives and not on others:
//!
//! | what | how often, or from where to where |
//! |---|---|
//! | medium | 8 % in place, the others NAND: SLC 12, MLC 30, TLC 43, QLC 15 % |
//! | interface | of NAND 25 % SATA at 1.5, 3 or 6 Gb/s, the others NVMe with queues of 32 to 1024 |
//! | capacity | 1 to 8 GiB, the smaller the likelier |
//! | logical block, logical page | 512 (75 %) or 4096 bytes; 4 (85 %), 8 or 16 KiB |
//! | flash page, planes, dies, channels | 4 to 16 KiB; 1 to 4; 1 to 16 a channel; 1 to 16, not always a power of two |
//! | jitter of array times | 15 % none, the others up to 8 % |
//! | placement | 60 % stripes of 4 to 256 KiB, 20 % by address, 20 % dynamic |
//! | buffer | once to eight times what it must hold; survives a power cut on 35 % of NVMe, 15 % of SATA drives |
//! | caches | 25 % write cache, else 8 % write through; 35 % read cache, of these 60 % read ahead |
//! | over-provisioning | 5 to 40 %, beside what collection keeps free and what is bad from the factory |
//! | collection | nine policies, 46 % greedy; 15 % in the foreground; starts at 2 to 8 free superblocks |
//! | map | 10 % cached (DFTL); 10 % tell streams apart; 12 % move cold data |
//! | commands | 6 % taken by chips; 30 % of those that can suspend programs or erases do |
//! | errors | modelled on 8 %, without noticeable retries |
//! | SLC cache | 35 % of TLC and QLC, 10 % of MLC drives that can have one; 3 to 35 % of the blocks |
//! | content | 10 % of flash compress, deduplicate, or both |
//!
//! **How plausible.** Ranges and kinds are those of the presets (`devices/*.toml`), of the configurations that MQSim
//! (Tavakkol et al., FAST 2018) and DiskSim's SSD model (Agrawal et al., USENIX ATC 2008) ship with, and of the drives
//! in Kakaraparthy et al., PVLDB 13(4), 2019; the shares are chosen so that 200 drives have each feature often enough
//! to be counted. Each is said where it is drawn.
//!
//! **Scaled down.** A drive has 1 to 8 GiB and blocks of 32 pages and more, so that some seconds of simulation fill it
//! and bring its garbage collection into a steady state; caches are scaled with it. Nothing that a figure speaks of
//! depends on the capacity alone.
//!
//! **Not drawn**: block-mapping FTLs and elements, whose figures are other ones; MQSim's peculiar triggers; several
//! queues with priorities; wear-out.
//!
//! A seed's drive never changes: each decision is drawn by its name ([`draw`]), and three of them are kept as files.

mod card;
mod cloud;
mod controller;
mod draw;
mod flash;
mod ftl;
mod host;
mod reduction;
mod slc_cache;

pub use card::{random_card, random_card_toml};
pub use cloud::{random_volume, random_volume_toml};
use draw::Draws;
use flashwise_ssd::{DeviceConfig, SsdError};

/// Share of media that are written in place.
const IN_PLACE: f64 = 0.08;
/// Over-provisioning, from and to.
const OVER_PROVISIONING: (f64, f64) = (0.05, 0.40);
/// Capacities that are aimed at, MiB, and how often.
const CAPACITIES_MIB: [(u64, u32); 7] =
    [(1 << 10, 30), (1536, 20), (2 << 10, 18), (3 << 10, 12), (4 << 10, 10), (6 << 10, 6), (8 << 10, 4)];
/// Smallest and largest capacity, bytes.
const CAPACITY: (u64, u64) = (1 << 30, 8 << 30);
/// Pages that a block may have; those of real drives are at the end.
const PAGES_PER_BLOCK: [u32; 12] = [32, 48, 64, 96, 128, 192, 256, 384, 512, 576, 768, 1152];

/// The random drive of a seed; the same for ever.
///
/// # Errors
/// When no configuration comes of the seed that [`DeviceConfig::check`] accepts, which its construction excludes.
///
/// # Example
/// ```
/// let drive = flashwise_truth::random::random_device(7)?;
/// assert_eq!(drive, flashwise_truth::random::random_device(7)?);
/// # Ok::<(), flashwise_ssd::SsdError>(())
/// ```
pub fn random_device(seed: u64) -> Result<DeviceConfig, SsdError> {
    let draws = Draws::new(seed);
    let in_place = draws.chance("medium", IN_PLACE);
    let page = if in_place { 4096 } else { ftl::logical_page_bytes(&draws) };
    let host = host::host(&draws, in_place);
    let flash = if in_place { flash::in_place(&draws) } else { flash::nand(&draws, host.interface, page) };
    let mut config = DeviceConfig {
        name: format!("random drive {seed}"),
        capacity_bytes: draws.weighted("capacity_bytes", &CAPACITIES_MIB) << 20,
        controller: controller::controller(&draws, host.interface, in_place, page),
        ftl: if in_place { ftl::in_place() } else { ftl::page_mapped(&draws, &flash, page) },
        host,
        flash,
        reduction: None,
    };
    if in_place {
        size_in_place(&mut config);
    } else {
        let has_cached_map = ftl::has_mapping_cache(&draws);
        if !has_cached_map {
            reduction::give(&draws, &mut config);
        }
        if !has_cached_map && config.reduction.is_none() {
            slc_cache::give(&draws, &mut config, wanted_superblocks(&draws));
        }
        size_flash(&draws, &mut config);
        slc_cache::size_dynamic(&draws, &mut config);
        config.ftl.mapping_cache = has_cached_map.then(|| ftl::mapping_cache(&draws, config.capacity_bytes, page));
        config.controller.write_buffer_bytes = controller::write_buffer_bytes(&draws, &config);
    }
    config.check(&config.name)?;
    Ok(config)
}

/// The same as a file, which says its seed.
///
/// # Errors
/// As [`random_device`].
pub fn random_toml(seed: u64) -> Result<String, SsdError> {
    let config = random_device(seed)?;
    let body =
        toml::to_string(&config).map_err(|e| SsdError::Syntax { path: config.name.clone(), reason: e.to_string() })?;
    Ok(format!("# A random drive: flashwise device random --seed {seed}\n\n{body}"))
}

/// So many blocks that the medium holds the capacity and a sixteenth more.
fn size_in_place(config: &mut DeviceConfig) {
    let block_row = flash::row_bytes(&config.flash) * u64::from(config.flash.pages_per_block);
    config.flash.blocks_per_plane = (config.capacity_bytes * 17 / 16).div_ceil(block_row) as u32;
}

/// Blocks of a plane, pages of a block, and the capacity that the over-provisioning leaves of them.
///
/// With *D* superblocks a unit for data, `D ÷ (1 + OP)` of them hold what the host sees. The open ones and the victims
/// in progress have to find room in the rest, which bounds *D* from below where the over-provisioning is small.
fn size_flash(draws: &Draws, config: &mut DeviceConfig) {
    let share = draws.share("over_provisioning", OVER_PROVISIONING.0, OVER_PROVISIONING.1);
    let row = flash::row_bytes(&config.flash);
    let raw = (config.capacity_bytes as f64 * (1.0 + share)) as u64;
    config.flash.blocks_per_plane = 1;
    let beside_data = kept_beside_data(config);
    let least = ((beside_data + 2) as f64 * (1.0 + share) / share).ceil() as u64 + 1;
    let wanted = wanted_superblocks(draws).max(least);
    let pages = (raw / row / wanted).max(1) as u32;
    let pages = PAGES_PER_BLOCK.iter().rev().copied().find(|&n| n <= pages).unwrap_or(PAGES_PER_BLOCK[0]);
    config.flash.pages_per_block = pages;
    let superblocks = row * u64::from(pages);
    // Of each superblock, pages that are compressed may leave a little empty.
    let useful = superblocks - config.units() * config.superblock_waste_bytes();
    let data = (raw / useful).max(least).max(CAPACITY.0 * 11 / 10 / useful);
    let beside = u64::from(config.gc_threshold()) + u64::from(config.dedicated_superblocks());
    config.flash.blocks_per_plane = with_bad_blocks(data + beside, config);
    let capacity = (data * useful) as f64 / (1.0 + share);
    let page = config.ftl.logical_page_bytes;
    config.capacity_bytes = (capacity as u64).clamp(CAPACITY.0, CAPACITY.1) / page * page;
}

/// Superblocks that a unit should have, where over-provisioning allows so few.
fn wanted_superblocks(draws: &Draws) -> u64 {
    draws.between("flash.blocks_per_plane", 48, 256)
}

/// Superblocks of a unit that are neither for data nor free when collection starts, nor bad.
fn kept_beside_data(config: &DeviceConfig) -> u64 {
    let counted_apart = config.gc_threshold() + config.factory_bad_superblocks() + config.dedicated_superblocks();
    config.superblocks_kept() - u64::from(counted_apart)
}

/// So many blocks that `good` of them are not bad.
fn with_bad_blocks(good: u64, config: &mut DeviceConfig) -> u32 {
    let mut blocks = good as u32;
    loop {
        config.flash.blocks_per_plane = blocks;
        let missing = good as u32 + config.factory_bad_superblocks();
        if blocks >= missing {
            return blocks;
        }
        blocks = missing;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwise_ssd::config::Mapping;

    #[test]
    fn a_hundred_seeds_give_a_hundred_different_drives_that_can_be_read_back() {
        let mut files: Vec<String> = (0..100).map(|seed| random_toml(seed).unwrap()).collect();
        for (seed, file) in files.iter().enumerate() {
            assert!(file.starts_with(&format!("# A random drive: flashwise device random --seed {seed}\n")));
            assert_eq!(DeviceConfig::from_toml(file, "random").unwrap(), random_device(seed as u64).unwrap());
        }
        files.sort();
        files.dedup();
        assert_eq!(files.len(), 100);
    }

    #[test]
    fn over_provisioning_lies_between_its_ends_beside_what_collection_keeps() {
        for seed in 0..500 {
            let config = random_device(seed).unwrap();
            if config.ftl.mapping == Mapping::InPlace {
                continue;
            }
            let flash = &config.flash;
            let beside = config.gc_threshold() + config.factory_bad_superblocks() + config.dedicated_superblocks();
            let data = flash.blocks_per_plane - beside;
            let waste = config.units() * config.superblock_waste_bytes();
            let bytes = u64::from(data) * (flash::row_bytes(flash) * u64::from(flash.pages_per_block) - waste);
            let share = bytes as f64 / config.capacity_bytes as f64 - 1.0;
            assert!((0.049..0.41).contains(&share), "seed {seed}: {share}");
            assert!((CAPACITY.0..=CAPACITY.1).contains(&config.capacity_bytes), "seed {seed}");
        }
    }
}
