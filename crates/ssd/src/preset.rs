//! The drives that come with flashwise, from `devices/*.toml`.
//!
//! # Adding a preset
//!
//! `devices/NAME.toml`, each figure with its source, and a line in [`PRESETS`]. If its parameters are published: a row
//! in `crates/profile/src/published.rs` and a test in `crates/learn/tests/`, which learns it blind and compares.

use crate::error::SsdError;

/// A drive that comes with flashwise.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line for a list.
    pub summary: &'static str,
    /// Its configuration, with the source of each documented figure.
    pub toml: &'static str,
}

macro_rules! preset {
    ($name:literal, $summary:literal) => {
        Preset { name: $name, summary: $summary, toml: include_str!(concat!("../devices/", $name, ".toml")) }
    };
}

/// All presets, in the order in which they are listed.
pub static PRESETS: [Preset; 12] = [
    preset!("samsung-960-evo", "NVMe, TLC flash, 500 GB: 64 KiB chunks, one channel each"),
    preset!("intel-optane-905p", "NVMe, 3D XPoint, 480 GB: written in place, no erase"),
    preset!("toshiba-xg5", "NVMe, TLC flash, 256 GB: 64 KiB superpages over all channels"),
    preset!("micron-m500", "SATA, MLC flash, 120 GB: 64 KiB superpages over all channels"),
    preset!("intel-optane-p4800x", "NVMe, 3D XPoint, 375 GB: written in place, 6 concurrent requests"),
    preset!("intel-p4510", "NVMe, TLC flash, 1 TB: reads three times as fast as writes, k_r 16"),
    preset!("intel-p4510-fs", "the same behind a file system: k_r 80"),
    preset!("intel-s4610", "SATA, TLC flash, 960 GB: k_r 25, k_w 9"),
    preset!("virtual-ssd", "a cloud volume, 100 GB: over a network, rate-limited"),
    preset!("disksim-msr", "DiskSim 4.0's SSD model as shipped, 32 GB, 4 KiB pages"),
    preset!("machado-32g", "the same, 32 GB, 64 KiB pages (Machado et al., 2015)"),
    preset!("machado-4g", "the same, 4 GB, 64 KiB pages (Machado et al., 2015)"),
];

impl Preset {
    /// The preset of that name.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(name: &str) -> Result<&'static Self, SsdError> {
        PRESETS.iter().find(|preset| preset.name == name).ok_or_else(|| SsdError::UnknownPreset {
            name: name.to_owned(),
            known: flashwise_block::names::choices(name, PRESETS.map(|preset| preset.name)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceConfig;

    #[test]
    fn every_preset_is_a_possible_drive() {
        for preset in &PRESETS {
            let config = DeviceConfig::preset(preset.name).unwrap_or_else(|e| panic!("{e}"));
            assert!(config.raw_bytes() >= config.capacity_bytes, "{}", preset.name);
        }
    }
}
