//! The drives of the text, smaller, and what else the Toshiba could be.

use flashwise_block::Silent;
use flashwise_profile::HotLocation;
use flashwise_ssd::DeviceConfig;
use flashwise_tune::sqlite::learn_target;
use flashwise_tune::{DEFAULT_TARGET, Target};

use crate::StudyError;

/// SSD-S and SSD-T of the text.
const SAMSUNG: &str = "samsung-960-evo";
const TOSHIBA: &str = "toshiba-xg5";
/// Of the capacity and of the blocks of the presets, this share is simulated: a mounted drive keeps its tables in
/// memory.
const SHARE: u64 = 12;

/// What a drive hides, as it was learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hidden {
    pub(super) chunk_bytes: u64,
    pub(super) hot: HotLocation,
}

/// Learns the Samsung from outside.
pub(super) fn learn(seed: u64) -> Result<Hidden, StudyError> {
    let profile = learn_target(&Target::parse(DEFAULT_TARGET)?, seed, None, &mut Silent)?;
    let parameters = profile.parameters;
    match (parameters.chunk_bytes.known(), parameters.hot_location.known()) {
        (Some(chunk_bytes), Some(hot)) => Ok(Hidden { chunk_bytes, hot }),
        _ => Err(StudyError::Attach(format!("chunk and hot locations of {SAMSUNG} were not learned with certainty"))),
    }
}

fn smaller(preset: &str) -> Result<DeviceConfig, StudyError> {
    let mut config = DeviceConfig::preset(preset)?;
    let unit = config.ftl.logical_page_bytes.max(1 << 20);
    config.capacity_bytes = config.capacity_bytes / SHARE / unit * unit;
    config.flash.blocks_per_plane = config.flash.blocks_per_plane.div_ceil(SHARE as u32);
    config.check(preset)?;
    Ok(config)
}

/// The drive of hot locations.
pub(super) fn samsung() -> Result<DeviceConfig, StudyError> {
    smaller(SAMSUNG)
}

/// The drive of the binary log.
pub(super) fn toshiba() -> Result<DeviceConfig, StudyError> {
    smaller(TOSHIBA)
}

/// The drive of the binary log, and others that differ from it in one thing.
pub(super) fn toshibas() -> Result<Vec<(&'static str, DeviceConfig)>, StudyError> {
    let changed = |name, change: fn(&mut DeviceConfig)| {
        let mut config = toshiba()?;
        change(&mut config);
        config.check(name)?;
        Ok::<_, StudyError>((name, config))
    };
    Ok(vec![
        changed("as it is", |_| {})?,
        changed("programs single pages", crate::sqlite::one_page_a_program)?,
        changed("buffer survives a power cut", crate::sqlite::survives)?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_drives_keep_what_is_hidden_and_what_they_have_in_reserve() {
        for (preset, small) in [(SAMSUNG, samsung().unwrap()), (TOSHIBA, toshiba().unwrap())] {
            let whole = DeviceConfig::preset(preset).unwrap();
            let reserve = |config: &DeviceConfig| {
                let flash = &config.flash;
                let planes = flash.channels * flash.chips_per_channel * flash.dies_per_chip * flash.planes_per_die;
                let blocks = u64::from(planes) * u64::from(flash.blocks_per_plane);
                (blocks * u64::from(flash.pages_per_block) * flash.page_bytes) as f64 / config.capacity_bytes as f64
            };
            assert!((reserve(&small) / reserve(&whole) - 1.0).abs() < 0.02, "{preset}");
            let same = DeviceConfig {
                capacity_bytes: whole.capacity_bytes,
                flash: flashwise_ssd::config::FlashConfig {
                    blocks_per_plane: whole.flash.blocks_per_plane,
                    ..small.flash.clone()
                },
                ..small
            };
            assert!(same == whole, "{preset}");
        }
        assert_eq!(toshibas().unwrap().len(), 3);
    }
}
