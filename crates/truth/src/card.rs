//! The figures that a learner should find of a memory card: read off the configuration, and the time of a merge
//! measured on the card.

use flashwise_block::{ByteSize, Request, execute};
use flashwise_profile::{Card, Figure};
use flashwise_ssd::config::Mapping;
use flashwise_ssd::{DeviceConfig, SimulatedSsd, SsdError};

use crate::exactly;

/// Bytes of a learner's write, or a page where that is longer.
const BLOCK: ByteSize = ByteSize::kib(16);
/// Rotations over units of which one more than stay open are written.
const ROTATIONS: u64 = 4;

/// The figures of a card; all are unknown of a drive that does not map blocks.
///
/// # Errors
/// When the configuration is impossible.
///
/// # Example
/// ```
/// let config = flashwise_ssd::DeviceConfig::preset("kingston-sa04g")?;
/// let card = flashwise_truth::card(&config)?;
/// assert_eq!((card.allocation_unit_bytes.known(), card.open_units_random.known()), (Some(4 << 20), Some(3)));
/// # Ok::<(), flashwise_ssd::SsdError>(())
/// ```
pub fn card(config: &DeviceConfig) -> Result<Card, SsdError> {
    if config.ftl.mapping != Mapping::Block {
        return Ok(Card::default());
    }
    let (linear, random) = (config.ftl.replacement_blocks, config.ftl.random_replacement_blocks);
    Ok(Card {
        allocation_unit_bytes: exactly(unit_bytes(config)),
        open_units_linear: exactly(u64::from(linear)),
        open_units_random: if random > 0 { exactly(u64::from(random)) } else { Figure::absent() },
        merge_ns: merge_ns(config)?,
        special_first_unit: exactly(config.ftl.first_block_log),
    })
}

/// Bytes of a logical block over all parallel units.
fn unit_bytes(config: &DeviceConfig) -> u64 {
    config.units() * u64::from(config.flash.pages_per_block) * config.ftl.logical_page_bytes
}

/// The median time of a durable write out of order to a unit that is not open.
fn merge_ns(config: &DeviceConfig) -> Result<Figure<u64>, SsdError> {
    let unit = unit_bytes(config);
    let block = BLOCK.max(ByteSize(config.ftl.logical_page_bytes * config.units()));
    let units = u64::from(config.ftl.replacement_blocks) + 1;
    if unit * (units + 1) > config.capacity_bytes || unit < block.0 * 2 * (ROTATIONS + 1) {
        return Ok(Figure::unknown());
    }
    let mut device = SimulatedSsd::new(config.clone(), 1)?;
    device.fill_at_once()?;
    let mut times = Vec::new();
    for rotation in 0..=ROTATIONS {
        for nth in 1..=units {
            let offset = ByteSize(unit * nth) + block * (1 + 2 * rotation);
            let written = execute(&mut device, Request::write(offset, block).with_fua());
            let Ok(completion) = written else { return Ok(Figure::unknown()) };
            times.extend((rotation > 0).then_some(completion.latency().0));
        }
    }
    times.sort_unstable();
    Ok(times.get(times.len() / 2).map_or(Figure::unknown(), |&middle| exactly(middle)))
}
