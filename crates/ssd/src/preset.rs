//! The drives that come with flashwise, from `devices/*.toml`.
//!
//! # Adding a preset
//!
//! `devices/NAME.toml`, or `devices/cards/NAME.toml` of a memory card, each figure with its source, and a line in
//! [`PRESETS`] or [`CARDS`] with its year, [`Class`] and [`Evidence`]. If its parameters are published: a row in
//! `crates/profile/src/published.rs` and a test in `crates/learn/tests/`, which learns it blind and compares.

use crate::error::SsdError;

/// What a drive is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Servers: flat latencies, power loss protection.
    DataCentre,
    /// Laptops and desktops.
    Client,
    /// SD cards, eMMC, USB sticks: few units open, each mapped as one.
    Card,
    /// No product: a drive as another simulator or a paper describes it.
    Model,
    /// A volume of a cloud provider.
    Cloud,
    /// A rotating disk.
    Disk,
}

impl Class {
    /// In the order in which they are listed.
    pub const ALL: [Self; 6] = [Self::DataCentre, Self::Client, Self::Card, Self::Model, Self::Cloud, Self::Disk];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::DataCentre => "data centre",
            Self::Client => "client",
            Self::Card => "memory card",
            Self::Model => "model",
            Self::Cloud => "cloud volume",
            Self::Disk => "rotating disk",
        }
    }
}

/// What a preset was compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Measurements of the real drive to which nothing was fitted come out.
    Validated,
    /// It was built to show what was measured of the real drive; other measurements are missing, or do not come out.
    Fitted,
    /// The simulator that it describes.
    Simulator,
    /// Nothing: it has the maker's figures, or what a specification demands.
    DataSheet,
}

impl Evidence {
    /// The strongest first.
    pub const ALL: [Self; 4] = [Self::Validated, Self::Fitted, Self::Simulator, Self::DataSheet];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Validated => "validated",
            Self::Fitted => "fitted",
            Self::Simulator => "simulator",
            Self::DataSheet => "data sheet",
        }
    }

    /// One line that explains the words.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Validated => "measurements of the real drive to which nothing was fitted come out",
            Self::Fitted => "built to show what was measured; other measurements are missing, or do not come out",
            Self::Simulator => "compared with the simulator that it describes",
            Self::DataSheet => "the maker's figures, or what a specification demands; compared with nothing",
        }
    }
}

/// A drive that comes with flashwise.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Its name on the command line.
    pub name: &'static str,
    /// When it came on the market, or a model's text appeared.
    pub year: u16,
    /// What it is made for.
    pub class: Class,
    /// What it was compared with.
    pub evidence: Evidence,
    /// One line for a list.
    pub summary: &'static str,
    /// Its configuration, with the source of each documented figure.
    pub toml: &'static str,
}

/// A list of presets, a line each: name, year, [`Class`], [`Evidence`], summary. Their files are in a folder beside the
/// one of the source file that has the list.
#[macro_export]
macro_rules! presets {
    ($(#[$about:meta])* $list:ident in $folder:literal:
     $($name:literal $year:literal $class:ident $evidence:ident $summary:literal,)*) => {
        $(#[$about])*
        pub static $list: [$crate::Preset; [$($name),*].len()] = [$($crate::Preset {
            name: $name,
            year: $year,
            class: $crate::Class::$class,
            evidence: $crate::Evidence::$evidence,
            summary: $summary,
            toml: include_str!(concat!("../", $folder, "/", $name, ".toml")),
        }),*];
    };
}

presets! {
    /// Drives, in the order in which they are listed.
    PRESETS in "devices":
    "samsung-960-evo"     2016 Client     Fitted    "NVMe, TLC flash, 500 GB: 64 KiB chunks, one channel each",
    "intel-optane-905p"   2018 Client     Fitted    "NVMe, 3D XPoint, 480 GB: written in place, no erase",
    "toshiba-xg5"         2017 Client     Fitted    "NVMe, TLC flash, 256 GB: 64 KiB superpages over all channels",
    "micron-m500"         2013 Client     Fitted    "SATA, MLC flash, 120 GB: 64 KiB superpages over all channels",
    "intel-optane-p4800x" 2017 DataCentre Fitted    "NVMe, 3D XPoint, 375 GB: written in place, 6 concurrent requests",
    "intel-p4510"         2018 DataCentre Fitted    "NVMe, TLC flash, 1 TB: reads three times as fast as writes, k_r 16",
    "intel-p4510-fs"      2018 DataCentre Fitted    "the same behind a file system: k_r 80",
    "intel-s4610"         2018 DataCentre Fitted    "SATA, TLC flash, 960 GB: k_r 25, k_w 9",
    "virtual-ssd"         2021 Model      Fitted    "a cloud volume, 100 GB: over a network, rate-limited",
    "disksim-msr"         2008 Model      Simulator "DiskSim 4.0's SSD model as shipped, 32 GB, 4 KiB pages",
    "machado-32g"         2015 Model      Simulator "DiskSim's SSD model, 32 GB, 64 KiB pages (Machado et al., 2015)",
    "machado-4g"          2015 Model      Simulator "DiskSim's SSD model, 4 GB, 64 KiB pages (Machado et al., 2015)",
    "micron-7450-max-800" 2021 DataCentre Validated "NVMe, TLC flash, 800 GB, mixed use: 47 % over-provisioning",
    "micron-7450-pro-960" 2021 DataCentre DataSheet "the same series, 960 GB, for reads",
    "solidigm-p5520-1920" 2021 DataCentre Validated "NVMe, TLC flash, 1.92 TB: a tenth of what is programmed is metadata",
    "skhynix-pe8110-960"  2021 DataCentre Fitted    "NVMe, TLC flash, 960 GB",
    "samsung-pm9a3-960"   2021 DataCentre DataSheet "NVMe, TLC flash, 960 GB; its firmware caps random writes",
    "samsung-pm9d3a-1920" 2024 DataCentre DataSheet "NVMe, PCIe 5, TLC flash, 1.92 TB; not measured in public",
    "kioxia-cm7r-3840"    2022 DataCentre Fitted    "NVMe, PCIe 5, TLC flash, 3.84 TB",
    "wd-dc-960"           2020 DataCentre Fitted    "NVMe, PCIe 3, TLC flash, 960 GB, model unknown",
    "samsung-980-pro-1tb" 2020 Client     Fitted    "NVMe, PCIe 4, TLC flash, 1 TB: SLC cache of 113 GB",
    "samsung-980-1tb"     2021 Client     Fitted    "NVMe, PCIe 3, TLC flash, 1 TB, no DRAM: its map is in the host's memory",
    "corsair-mp700-2tb"   2023 Client     Fitted    "NVMe, PCIe 5, TLC flash, 2 TB: all free flash is SLC cache",
    "hp-fx700-2tb"        2024 Client     Fitted    "NVMe, PCIe 4, QLC flash, 2 TB, no DRAM: 130 MB/s behind its SLC cache",
}

presets! {
    /// Memory cards and eMMC, in the order in which they are listed.
    CARDS in "devices/cards":
    "kingston-sa04g"  2013 Card Fitted    "SD card, 4 GB: three units of 4 MiB open at a time",
    "sd-a1"           2016 Card DataSheet "SD card, 32 GB, as class A1 demands: 1,500 reads, 500 writes a second",
    "sd-a2"           2017 Card DataSheet "SD card, 64 GB, as class A2 demands: 4,000 reads, 2,000 writes a second",
    "emmc-phone-2012" 2012 Card Fitted    "eMMC of a phone, 16 GB",
}

impl Preset {
    /// Every preset: the drives, then the cards.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        PRESETS.iter().chain(&CARDS)
    }

    /// The preset of that name.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(name: &str) -> Result<&'static Self, SsdError> {
        Self::all().find(|preset| preset.name == name).ok_or_else(|| SsdError::UnknownPreset {
            name: name.to_owned(),
            known: flashwise_block::names::choices(name, Self::all().map(|preset| preset.name)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceConfig;

    #[test]
    fn every_preset_is_a_possible_drive() {
        for preset in Preset::all() {
            let config = DeviceConfig::preset(preset.name).unwrap_or_else(|e| panic!("{e}"));
            assert!(config.raw_bytes() >= config.capacity_bytes, "{}", preset.name);
        }
    }
}
