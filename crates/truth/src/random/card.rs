//! Random memory cards: a plausible one for each seed, to test whatever learns cards on cards that nobody has seen.
//!
//! | what | how often, or from where to where |
//! |---|---|
//! | allocation unit | 512 KiB to 24 MiB, 4 MiB most often; 25 % are three times a power of two |
//! | page | 4 to 32 KiB |
//! | open units | 1 to 16, few most often |
//! | of these in any order | on 30 % none, on 35 % all, else some |
//! | log of a unit written in any order | on 60 % a whole unit, else from an eighth of one, at least 32 pages |
//! | first unit | 30 % keep it open beside the others |
//! | cache | 20 % have a volatile one of 128 KiB to 1 MiB |
//! | jitter of array times | 20 % none, the others up to 5 % |
//! | page program, sense | 0.3 to 2.5 ms, 25 to 120 µs |
//! | command, link | 0.1 to 2 ms, 8 to 80 MB/s |
//!
//! Units, pages and numbers are those of the cards that were measured with flashbench; the shares are chosen so that
//! 100 cards have each often enough to be counted. Cards have 4 GiB.

use flashwise_ssd::config::{ControllerConfig, Interface, Mapping, Scheduling, WriteCacheConfig};
use flashwise_ssd::{DeviceConfig, SsdError};

use super::draw::Draws;

/// Capacity: as much as a learner's region twice.
const CAPACITY: u64 = 4 << 30;
/// Sizes of units, KiB, and how often.
const UNITS_KIB: [(u64, u32); 11] = [
    (512, 4),
    (1 << 10, 8),
    (2 << 10, 12),
    (3 << 10, 8),
    (4 << 10, 34),
    (6 << 10, 8),
    (8 << 10, 12),
    (12 << 10, 6),
    (16 << 10, 4),
    (24 << 10, 3),
    (1536, 1),
];
/// Open units and how often.
const OPEN: [(u32, u32); 10] =
    [(1, 8), (2, 14), (3, 14), (4, 14), (5, 14), (6, 10), (8, 10), (10, 6), (13, 5), (16, 5)];
/// The shortest log of a unit, in pages.
const LOG_PAGES_MIN: u32 = 32;

/// The random card of a seed; the same for ever.
///
/// # Errors
/// When no configuration comes of the seed that [`DeviceConfig::check`] accepts, which its construction excludes.
///
/// # Example
/// ```
/// let card = flashwise_truth::random::random_card(7)?;
/// assert_eq!(card, flashwise_truth::random::random_card(7)?);
/// # Ok::<(), flashwise_ssd::SsdError>(())
/// ```
pub fn random_card(seed: u64) -> Result<DeviceConfig, SsdError> {
    let draws = Draws::new(seed);
    let mut config = DeviceConfig::preset("kingston-sa04g")?;
    config.name = format!("random card {seed}");
    let unit = draws.weighted("card.unit", &UNITS_KIB) << 10;
    let page = draws.weighted("card.page", &[(4 << 10, 3), (8 << 10, 4), (16 << 10, 5), (32 << 10, 2)]);
    let open = draws.weighted("card.open", &OPEN);
    let pages = (unit / page) as u32;
    config.ftl.mapping = Mapping::Block;
    (config.ftl.logical_page_bytes, config.ftl.stripe_bytes, config.flash.page_bytes) = (page, page, page);
    config.ftl.replacement_blocks = open;
    config.ftl.random_replacement_blocks = match draws.weighted("card.any_order", &[(0, 30), (1, 35), (2, 35)]) {
        0 => 0,
        1 => open,
        _ => draws.between("card.random", 1, u64::from(open)) as u32,
    };
    let shortest = LOG_PAGES_MIN.max(pages / 8).min(pages);
    config.ftl.random_log_pages = match draws.chance("card.whole_log", 0.6) {
        true => None,
        false => Some(draws.between("card.log", u64::from(shortest), u64::from(pages)) as u32),
    };
    config.ftl.first_block_log = draws.chance("card.first", 0.3);
    config.flash.pages_per_block = pages;
    config.flash.blocks_per_plane = (CAPACITY / unit) as u32 + open + 8;
    config.capacity_bytes = CAPACITY / unit * unit;
    config.flash.program_ns = draws.between("card.program_ns", 300_000, 2_500_000);
    config.flash.read_ns = draws.between("card.read_ns", 25_000, 120_000);
    config.flash.array_time_jitter =
        if draws.chance("card.jitters", 0.8) { draws.share("card.jitter", 0.005, 0.05) } else { 0.0 };
    config.host.interface = Interface::Sata;
    config.host.command_latency_ns = draws.between("card.command_ns", 100_000, 2_000_000);
    config.host.command_issue_ns = config.host.command_latency_ns;
    config.host.link_bytes_per_s = Some(draws.between("card.link", 8_000_000, 80_000_000));
    config.flash.scheduling = draws.weighted("card.scheduling", &[(Scheduling::Fcfs, 3), (Scheduling::ReadFirst, 1)]);
    config.controller = controller(&draws, config.controller.clone(), page);
    config.check(&config.name)?;
    Ok(config)
}

fn controller(draws: &Draws, plain: ControllerConfig, page: u64) -> ControllerConfig {
    if !draws.chance("card.cache", 0.2) {
        return plain;
    }
    let bytes = draws.any("card.cache_bytes", &[128 << 10, 256 << 10, 1 << 20]);
    let cache = WriteCacheConfig {
        bytes,
        policy: Default::default(),
        flush: Default::default(),
        high_watermark: 0.8,
        low_watermark: 0.5,
        hot_window_ns: None,
    };
    ControllerConfig { write_cache: Some(cache), write_buffer_bytes: 4 * page, ..plain }
}

/// The same as a file, which says its seed.
///
/// # Errors
/// As [`random_card`].
pub fn random_card_toml(seed: u64) -> Result<String, SsdError> {
    let config = random_card(seed)?;
    let body =
        toml::to_string(&config).map_err(|e| SsdError::Syntax { path: config.name.clone(), reason: e.to_string() })?;
    Ok(format!("# A random card: flashwise device random --card --seed {seed}\n\n{body}"))
}
