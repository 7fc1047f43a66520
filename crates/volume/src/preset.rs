//! The volumes that come with flashwise, from `devices/cloud/*.toml`.
//!
//! # Adding a preset
//!
//! `devices/cloud/NAME.toml`, each figure with its source, and a line in [`PRESETS`].

use flashwise_ssd::{Preset, SsdError, presets};

use crate::config::Volume;

presets! {
    /// All presets, in the order in which they are listed.
    PRESETS in "devices":
    "gp2"                  2014 Cloud DataSheet "EBS, 100 GiB: 300 IOPS, 3,000 while 5.4 million credits last",
    "gp3"                  2020 Cloud Fitted    "EBS, 100 GiB: 3,000 IOPS, 125 MiB/s, no burst",
    "io2"                  2020 Cloud DataSheet "EBS Block Express, 500 GiB: 20,000 IOPS",
    "i3en"                 2019 Cloud Fitted    "AWS instance storage, 7.5 TB: 257,000 reads, 174,000 writes a second",
    "i4i"                  2022 Cloud Fitted    "AWS instance storage, 3.75 TB: random writes at 858 MB/s, then 426",
    "m7gd"                 2023 Cloud Fitted    "AWS instance storage, 950 GB: writes above a rate are held for 5.8 ms",
    "azure-premium-ssd-v2" 2022 Cloud DataSheet "Azure, 128 GiB: 3,000 IOPS, 125 MB/s, no burst",
    "azure-local-nvme"     2023 Cloud Fitted    "Azure L series, 894 GB: reads and writes share a budget; held for 3 ms",
    "gcp-pd-balanced"      2020 Cloud DataSheet "Google Persistent Disk, 500 GiB: 6,000 IOPS behind an instance's 15,000",
    "gcp-hyperdisk"        2022 Cloud DataSheet "Google Hyperdisk Balanced, 100 GiB: 3,000 IOPS, 140 MiB/s",
    "sas-15k"              2011 Disk  DataSheet "rotating disk, 15,000 rpm, SAS, 300 GB",
    "sata-7k2"             2014 Disk  DataSheet "rotating disk, 7,200 rpm, SATA, 4 TB, write cache on",
}

impl Volume {
    /// One of the presets.
    ///
    /// # Errors
    /// When there is no preset of that name.
    pub fn preset(name: &str) -> Result<Self, SsdError> {
        let found = find(name).ok_or_else(|| SsdError::UnknownPreset {
            name: name.to_owned(),
            known: flashwise_block::names::choices(name, PRESETS.map(|preset| preset.name)),
        })?;
        Self::from_toml(found.toml, &format!("preset {name}"))
    }
}

/// The preset of that name, if there is one.
pub fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_a_possible_volume_with_a_name_that_no_drive_has() {
        for preset in &PRESETS {
            let volume = Volume::preset(preset.name).unwrap_or_else(|e| panic!("{e}"));
            assert!(crate::is_of_volume(preset.toml), "{}", preset.name);
            assert!(flashwise_ssd::Preset::find(preset.name).is_err(), "{}", preset.name);
            assert!(volume.config.capacity_bytes >= 100 << 30);
        }
        let unknown = Volume::preset("gp4").unwrap_err().to_string();
        assert!(unknown.contains("gp3"), "{unknown}");
    }
}
