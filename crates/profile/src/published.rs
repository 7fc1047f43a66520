//! The published hidden parameters of nine drives, as the yardstick for `learn`.
//!
//! Sources: of four, lengths and places, Kakaraparthy, Patel, Park, Kroth, "Optimizing Databases by Learning Hidden
//! Parameters of Solid State Drives", PVLDB 13(4), 2019; `None` is the paper's "-": not determinable. Of five,
//! asymmetry and concurrency, Papon and Athanassoulis, "A Parametric I/O Model for Modern Storage Devices", DaMoN 2021.

/// `i · period + offset`, as published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishedHotLocation {
    /// Distance of two hot locations.
    pub period_bytes: u64,
    /// The first one.
    pub offset_bytes: u64,
}

/// One row of the published table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishedDrive {
    /// Name of the preset that models it.
    pub preset: &'static str,
    /// Desirable write length.
    pub write_unit_bytes: u64,
    /// Stripe, or not determinable.
    pub stripe_bytes: Option<u64>,
    /// Chunk.
    pub chunk_bytes: u64,
    /// Hot locations.
    pub hot_location: PublishedHotLocation,
    /// Flash page, or not determinable.
    pub page_bytes: Option<u64>,
}

const KIB: u64 = 1024;

const fn hot(period_kib: u64, offset_kib: u64) -> PublishedHotLocation {
    PublishedHotLocation { period_bytes: period_kib * KIB, offset_bytes: offset_kib * KIB }
}

static DRIVES: [PublishedDrive; 4] = [
    PublishedDrive {
        preset: "samsung-960-evo",
        write_unit_bytes: 32 * KIB,
        stripe_bytes: Some(64 * KIB),
        chunk_bytes: 64 * KIB,
        hot_location: hot(64, 32),
        page_bytes: None,
    },
    PublishedDrive {
        preset: "intel-optane-905p",
        write_unit_bytes: KIB,
        stripe_bytes: None,
        chunk_bytes: 4 * KIB,
        hot_location: hot(4, 0),
        page_bytes: Some(4 * KIB),
    },
    PublishedDrive {
        preset: "toshiba-xg5",
        write_unit_bytes: 64 * KIB,
        stripe_bytes: Some(64 * KIB),
        chunk_bytes: 4 * KIB,
        hot_location: hot(4, 0),
        page_bytes: Some(4 * KIB),
    },
    PublishedDrive {
        preset: "micron-m500",
        write_unit_bytes: 64 * KIB,
        stripe_bytes: Some(64 * KIB),
        chunk_bytes: 4 * KIB,
        hot_location: hot(4, 0),
        page_bytes: Some(4 * KIB),
    },
];

/// The four rows of the published table.
pub fn published_drives() -> &'static [PublishedDrive] {
    &DRIVES
}

/// How many requests a drive serves at once, as published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishedConcurrency {
    /// So many.
    About(u64),
    /// More than were tried: throughput still grew.
    MoreThan(u64),
}

impl PublishedConcurrency {
    /// Whether a number agrees with it: within 15 % or 1, whichever is more; above a lower bound.
    pub fn agrees(self, k: u64) -> bool {
        match self {
            Self::About(published) => k.abs_diff(published) as f64 <= (0.15 * published as f64).max(1.0),
            Self::MoreThan(bound) => k > bound,
        }
    }
}

/// What random requests of one length cost, as published.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedThroughput {
    /// α, saturated reads a second ÷ saturated writes a second.
    pub asymmetry: f64,
    /// `k_r`, reads at once.
    pub reads: PublishedConcurrency,
    /// `k_w`, writes at once.
    pub writes: PublishedConcurrency,
}

impl PublishedThroughput {
    /// Whether an asymmetry agrees with it: within 10 %.
    pub fn asymmetry_agrees(&self, alpha: f64) -> bool {
        (alpha / self.asymmetry - 1.0).abs() <= 0.1
    }
}

/// One row of the published table of asymmetry and concurrency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedAsymmetry {
    /// Name of the preset that models it.
    pub preset: &'static str,
    /// Its name in the table.
    pub name: &'static str,
    /// Requests of 4 KiB.
    pub at_4k: PublishedThroughput,
    /// Requests of 8 KiB.
    pub at_8k: PublishedThroughput,
}

const fn about(asymmetry: f64, reads: u64, writes: u64) -> PublishedThroughput {
    let (reads, writes) = (PublishedConcurrency::About(reads), PublishedConcurrency::About(writes));
    PublishedThroughput { asymmetry, reads, writes }
}

const fn more_than(asymmetry: f64, reads: u64, writes: u64) -> PublishedThroughput {
    let (reads, writes) = (PublishedConcurrency::MoreThan(reads), PublishedConcurrency::MoreThan(writes));
    PublishedThroughput { asymmetry, reads, writes }
}

const fn row(
    preset: &'static str,
    name: &'static str,
    at_4k: PublishedThroughput,
    at_8k: PublishedThroughput,
) -> PublishedAsymmetry {
    PublishedAsymmetry { preset, name, at_4k, at_8k }
}

static ASYMMETRIES: [PublishedAsymmetry; 5] = [
    row("intel-optane-p4800x", "Optane SSD", about(1.1, 6, 5), about(1.0, 4, 4)),
    row("intel-p4510-fs", "PCIe SSD, with FS", about(2.8, 80, 8), about(2.0, 40, 7)),
    row("intel-p4510", "PCIe SSD, w/o FS", about(3.0, 16, 6), about(3.0, 15, 4)),
    row("intel-s4610", "SATA SSD", about(1.5, 25, 9), about(1.3, 21, 5)),
    row("virtual-ssd", "Virtual SSD", more_than(2.0, 11, 19), more_than(1.9, 6, 10)),
];

/// The five rows of the published table of asymmetry and concurrency.
pub fn published_asymmetries() -> &'static [PublishedAsymmetry] {
    &ASYMMETRIES
}

#[cfg(test)]
mod tests {
    use super::PublishedConcurrency::{About, MoreThan};

    #[test]
    fn a_concurrency_agrees_within_15_percent_or_1_and_above_a_bound() {
        assert_eq!([68, 92, 67, 93].map(|k| About(80).agrees(k)), [true, true, false, false]);
        assert_eq!([3, 5, 2, 6].map(|k| About(4).agrees(k)), [true, true, false, false]);
        assert_eq!([11, 12, 200].map(|k| MoreThan(11).agrees(k)), [false, true, true]);
    }
}
