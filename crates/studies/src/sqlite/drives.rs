//! The drive of the text, and others that differ from it in one thing.

use flashwise_block::ByteSize;
use flashwise_ssd::DeviceConfig;

use crate::StudyError;

/// The preset of SSD-T.
pub(super) const TOSHIBA: &str = "toshiba-xg5";

/// A drive, and what sets it apart.
pub(super) struct Variant {
    pub(super) name: &'static str,
    pub(super) config: DeviceConfig,
    /// Whether garbage is collected on it.
    pub(super) is_worn_in: bool,
}

/// The drive of the text.
pub(super) fn toshiba() -> Result<DeviceConfig, StudyError> {
    Ok(DeviceConfig::preset(TOSHIBA)?)
}

/// Its stripe.
pub(super) fn stripe(config: &DeviceConfig) -> ByteSize {
    ByteSize(config.ftl.stripe_bytes)
}

/// The drive of the text and, behind it, what else it could be. Raw flash stays as large but for the last, which has
/// little of it, so that garbage is collected.
pub(super) fn variants() -> Result<Vec<Variant>, StudyError> {
    let changed = |name: &'static str, is_worn_in, change: fn(&mut DeviceConfig)| {
        let mut config = toshiba()?;
        change(&mut config);
        config.check(name)?;
        Ok::<_, StudyError>(Variant { name, config, is_worn_in })
    };
    Ok(vec![
        changed("unmodified", false, |_| {})?,
        changed("buffer survives a power cut", false, survives)?,
        changed("programs single pages", false, one_page_a_program)?,
        changed("pages of 16 KiB", false, |drive| {
            let flash = &mut drive.flash;
            (flash.page_bytes, flash.pages_per_block) = (16_384, flash.pages_per_block / 4);
            (drive.ftl.superpage_channels, drive.ftl.superpage_ways) = (4, 1);
        })?,
        changed("maps 16 KiB", false, |drive| maps(drive, 16_384))?,
        changed("maps 16 KiB, buffer survives", false, |drive| {
            maps(drive, 16_384);
            survives(drive);
        })?,
        changed("small and worn in", true, |drive| {
            (drive.flash.blocks_per_plane, drive.flash.pages_per_block) = (40, 32);
            drive.capacity_bytes = 256 << 20;
        })?,
    ])
}

/// What is buffered outlives a power cut: a flush costs nothing, and no program is cut short.
pub(crate) fn survives(drive: &mut DeviceConfig) {
    drive.controller.power_loss_protection = true;
}

/// A flush leaves less than a flash page unfilled.
pub(crate) fn one_page_a_program(drive: &mut DeviceConfig) {
    (drive.ftl.superpage_channels, drive.ftl.superpage_ways) = (1, 1);
    drive.ftl.stripe_bytes = drive.flash.page_bytes;
}

/// Addresses are mapped in larger units, of flash pages as large: a write of a part of a unit programs all of it.
fn maps(drive: &mut DeviceConfig, unit: u64) {
    let more = unit / drive.flash.page_bytes;
    drive.ftl.logical_page_bytes = unit;
    drive.flash.page_bytes = unit;
    drive.flash.pages_per_block = (u64::from(drive.flash.pages_per_block) / more) as u32;
    (drive.ftl.superpage_channels, drive.ftl.superpage_ways) = ((16 / more) as u32, 1);
    drive.capacity_bytes = drive.capacity_bytes / unit * unit;
}
