//! The published hidden parameters of four drives, as the yardstick for `learn`.
//!
//! Source: Kakaraparthy, Patel, Park, Kroth, "Optimizing Databases by Learning Hidden Parameters of Solid State
//! Drives", PVLDB 13(4), 2019. `None` is the paper's "-": not determinable.

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
