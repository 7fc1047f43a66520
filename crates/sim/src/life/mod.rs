//! How long a drive lives: what it has used of its cells, and how much a host can write until it takes no more.
//!
//! ```text
//!   run ─▶ History: counters and P/E cycles, noted now and then ─▶ steady part: write amplification, wear by superblock
//!                                                                        │
//!   limit, spread, spares ──────────────────────────────▶ Projection ◀──┘   bytes, drive writes a day, years, factors
//! ```
//!
//! The bytes that a host can write to a new drive, at the pace and with the pattern of the run, are
//!
//! ```text
//!   capacity × P/E cycles × over-provisioning × evenness ÷ write amplification
//! ```
//!
//! each as a factor of its own ([`LifeFactors`]). *Evenness* is what the mean superblock has been through when the
//! drive dies, as a share of the P/E cycles of a mean superblock ([`projection`]).
//!
//! **Limits.** The projection extrapolates the steady part of one run ([`history`]). It is not made where write
//! amplification still changes, where too little was erased to tell how even wear is, where nothing was written, or
//! where nothing wears out. It leaves out that fewer superblocks, once some are lost, wear faster and leave less
//! over-provisioning: where they die one after the other (`flash.endurance.spread`) it is too long, the more so the
//! smaller the over-provisioning is. It knows nothing of retention, temperature or errors, and of workloads that
//! change.
//!
//! Source of the terms: JEDEC JESD218B, "Solid-State Drive (SSD) Requirements and Endurance Test Method", for bytes
//! written until the end of life (TBW) and drive writes a day; SNIA's definition of the latter divides by the warranty.

pub(crate) mod history;
pub(crate) mod projection;
mod reduction;

use serde::{Deserialize, Serialize};

pub use flashwise_ssd::EndOfLife;
pub(crate) use history::History;
pub use history::life_used;
pub use reduction::DataReduction;

/// What is known of a drive's life after a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Life {
    /// P/E cycles that a block endures, in the mean; with mapping in place, writes to a page; `null` without a limit.
    pub pe_cycles_limit: Option<u32>,
    /// P/E cycles of the most worn superblock ÷ that limit, over the whole life of the drive.
    pub used_share_max: Option<f64>,
    /// The same of the mean superblock.
    pub used_share_mean: Option<f64>,
    /// When the drive became read-only; `null` while it takes writes.
    pub end_of_life: Option<EndOfLife>,
    /// What the run promises; `null` where it promises nothing.
    pub projection: Option<Projection>,
    /// Why it does not.
    pub not_projected: Option<String>,
}

/// What a new drive lives through when the run continues for ever.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Projection {
    /// Bytes that the host can write until the drive is read-only (TBW, in bytes).
    pub host_bytes: f64,
    /// Years for which drive writes a day are told.
    pub warranty_years: f64,
    /// So often a day can the whole capacity be written over those years (DWPD).
    pub drive_writes_per_day: f64,
    /// Years until then at the pace of the run.
    pub years: f64,
    /// Bytes that the host wrote in the steady part, from which all this is extrapolated.
    pub steady_host_bytes: u64,
    /// Write amplification in it.
    pub steady_write_amplification: f64,
    /// Where the bytes come from: their product is `host_bytes`.
    pub factors: LifeFactors,
}

/// The factors of [`Projection::host_bytes`]. Those of write amplification are split in the order in which they stand
/// here: each is what is lost when its cause joins those before it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LifeFactors {
    /// Bytes that the host can address.
    pub capacity_bytes: u64,
    /// P/E cycles of a mean block.
    pub pe_cycles: f64,
    /// Bytes of all superblocks that are not bad from the factory, nor only ever written in SLC mode, ÷ capacity: what
    /// is spare wears, too.
    pub over_provisioning: f64,
    /// What uneven wear leaves: the mean superblock's P/E cycles ÷ those of the most worn one, at the end.
    pub wear_levelling: f64,
    /// What is left when blocks endure differently and the first that dies ends the drive's life.
    pub endurance_spread: f64,
    /// What it gains by spare superblocks that are in for those which die first.
    pub spare_superblocks: f64,
    /// Data that the host writes twice is stored once.
    pub deduplication: f64,
    /// Data takes less room than the host thinks.
    pub compression: f64,
    /// Host data programmed: above 1 where the buffer absorbed some of it.
    pub absorption: f64,
    /// Padding.
    pub padding: f64,
    /// Moves of garbage collection.
    pub garbage_collection: f64,
    /// Moves of wear levelling.
    pub wear_levelling_moves: f64,
    /// Moves out of retired superblocks.
    pub retirement: f64,
    /// Mapping tables.
    pub mapping: f64,
    /// Moves out of an SLC cache.
    #[serde(default = "nothing")]
    pub folding: f64,
    /// What is programmed with one bit a cell wears less, or where no data rests.
    #[serde(default = "nothing")]
    pub slc_mode: f64,
    /// Blocks of an FTL that maps blocks that are erased before all their pages are programmed.
    #[serde(default = "nothing")]
    pub unfilled_blocks: f64,
}

/// A factor that changes nothing.
fn nothing() -> f64 {
    1.0
}

impl LifeFactors {
    /// Everything behind the capacity: name and factor.
    pub fn named(&self) -> [(&'static str, f64); 16] {
        [
            ("P/E cycles", self.pe_cycles),
            ("over-provisioning", self.over_provisioning),
            ("uneven wear", self.wear_levelling),
            ("variation of blocks", self.endurance_spread),
            ("spare superblocks", self.spare_superblocks),
            ("deduplication", self.deduplication),
            ("compression", self.compression),
            ("write buffer", self.absorption),
            ("padding", self.padding),
            ("garbage collection", self.garbage_collection),
            ("wear levelling", self.wear_levelling_moves),
            ("retired blocks", self.retirement),
            ("mapping tables", self.mapping),
            ("SLC cache", self.folding),
            ("SLC mode", self.slc_mode),
            ("unfilled blocks", self.unfilled_blocks),
        ]
    }

    /// Bytes that the host can write.
    pub fn product(&self) -> f64 {
        self.named().into_iter().fold(self.capacity_bytes as f64, |product, (_, factor)| product * factor)
    }
}
