//! How a store is opened, and how durable a commit is.

use std::fmt;

use flashwise_block::ByteSize;
use serde::{Deserialize, Serialize};

/// How a store finds keys. It is chosen when the store is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// A B⁻-tree: keys are in order, scans are cheap.
    #[default]
    BTree,
    /// A table-less hash: a key's page follows from its hash. Keys have no order; hardly any memory is needed besides
    /// the cache; pages are mostly empty, and need a drive that compresses.
    Hash,
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BTree => "B⁻-tree",
            Self::Hash => "table-less hash",
        })
    }
}

/// What a commit waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// The commit is in memory and is written with a later one, or when the store is closed. A crash of the process may
    /// lose it, together with all commits after it; so may a write of the log that fails: the store then takes no more
    /// commits until it is opened again.
    Buffered,
    /// The commit was written to the file or device. It survives the end of the process, but a power cut may lose it,
    /// together with all commits after it.
    Flushed,
    /// The commit was written and flushed. It survives a power cut.
    #[default]
    Synced,
}

/// How the log lays commits out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogForm {
    /// Each write of the log starts with a fresh block and pads its last one with zeros: for drives that compress.
    #[default]
    Sparse,
    /// Writes share blocks: for drives that store zeros as they store anything else.
    Packed,
}

/// The fill of buckets by default, in percent. Below it an update writes little less, and the address space doubles.
pub const BUCKET_FILL: u32 = 20;

/// Options of a store. Those of the first group count when the store is created; later the store itself knows them.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreOptions {
    /// How keys are found.
    pub engine: Engine,
    /// Size of a page: 4, 8, 16 or 32 KiB.
    pub page: ByteSize,
    /// Size of a segment (D_s): the unit of deltas; 64 bytes to an eighth of a page.
    pub segment: ByteSize,
    /// Size of the log: 32 pages to 64 GiB. A restart reads at most this much; a batch takes up to a quarter of it.
    pub log: ByteSize,
    /// How the log lays commits out.
    pub log_form: LogForm,
    /// For the hash: how many percent of its buckets are used, 5 to 90. An update costs as much flash as the records
    /// that share its bucket; the address space that the store takes grows as this falls.
    pub bucket_fill: u32,
    /// Identity of the new store; random if `None`.
    pub identity: Option<u64>,

    /// Whether a missing store is created.
    pub create: bool,
    /// Memory for pages.
    pub cache: ByteSize,
    /// The threshold T: changed segments of a page beyond it make the page be written whole. `None`: the store adapts
    /// it to its updates. Zero: no deltas.
    pub delta_threshold: Option<ByteSize>,
    /// Pages that are written back together (k_w of the drive's profile).
    pub write_concurrency: usize,
    /// Pages that are read together (k_r of the drive's profile).
    pub read_concurrency: usize,
    /// Pages whose unused slots are given back together. Through a file system a single give-back costs more than the
    /// page that it follows.
    pub give_back_pages: usize,
    /// Memory for values that were replaced while a snapshot that needs them is open.
    pub snapshot_memory: ByteSize,
    /// Bytes of buffered commits that make the log be written.
    pub buffer: ByteSize,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            engine: Engine::BTree,
            page: ByteSize::kib(8),
            segment: ByteSize(64),
            log: ByteSize::mib(64),
            log_form: LogForm::Sparse,
            bucket_fill: BUCKET_FILL,
            identity: None,
            create: true,
            cache: ByteSize::mib(64),
            delta_threshold: None,
            write_concurrency: 32,
            read_concurrency: 32,
            give_back_pages: 64,
            snapshot_memory: ByteSize::mib(64),
            buffer: ByteSize::mib(1),
        }
    }
}

impl StoreOptions {
    /// The options of a store with the table-less hash: pages of 4 KiB, which a drive that compresses writes by
    /// themselves.
    pub fn hash() -> Self {
        Self { engine: Engine::Hash, page: ByteSize::kib(4), ..Self::default() }
    }
}
