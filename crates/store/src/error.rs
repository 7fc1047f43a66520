//! What can go wrong, in words that say what to do.

use flashwise_block::{BlockError, ByteSize};

use crate::options::Engine;

/// An error of a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The medium failed.
    #[error("{what}: {source}")]
    Io {
        /// The operation.
        what: String,
        /// The device's error.
        source: BlockError,
    },
    /// A sync failed, or a commit could not be taken back: what is durable is unknown.
    #[error("the store takes no more commits since an earlier failure ({why}); close it and open it again")]
    Poisoned {
        /// The first failure.
        why: String,
    },
    /// Stored bytes are not what was written.
    #[error("{place}: {what}; restore the store from a backup (`flashwise store check` lists all damage)")]
    Corrupt {
        /// Which structure of the file.
        place: String,
        /// What is wrong with it.
        what: String,
    },
    /// The file or device holds something else.
    #[error("{place}: {why}")]
    NotAStore {
        /// The file or device.
        place: String,
        /// What was found, and what to do.
        why: String,
    },
    /// Another process has the file open.
    #[error("{place}: another process has the store open; close it there first")]
    InUse {
        /// The file.
        place: String,
    },
    /// No free page is left.
    #[error("the store is full: {capacity} hold no more pages; delete keys, or use a larger file or device")]
    Full {
        /// Bytes of the file or device.
        capacity: ByteSize,
    },
    /// The drive or the file system behind the store has no space, and neither has what the store held for that day.
    #[error("{place} has no space: until it has, the store takes only deletes; delete keys, or make space there")]
    MediumFull {
        /// The file or device.
        place: String,
    },
    /// A key is too long.
    #[error("a key of {length} bytes: a store with pages of {page} takes keys of up to {max} bytes")]
    KeyTooLong {
        /// Its length.
        length: usize,
        /// The page size.
        page: ByteSize,
        /// The longest key.
        max: usize,
    },
    /// A batch does not fit into the log.
    #[error(
        "a batch of {length}: the log takes batches of up to {max}; commit it in parts, or create the store with a \
         larger log"
    )]
    BatchTooLarge {
        /// Bytes that it needs in the log.
        length: ByteSize,
        /// The limit.
        max: ByteSize,
    },
    /// A transaction read what another commit has changed since.
    #[error("a concurrent commit changed a key or a range that this transaction read; run the transaction again")]
    Conflict,
    /// The old values that a snapshot needs were given up.
    #[error(
        "the snapshot is too old: the values replaced since it was taken exceeded {limit}; take a new snapshot, or \
         raise the limit (StoreOptions::snapshot_memory)"
    )]
    SnapshotTooOld {
        /// Memory for old values.
        limit: ByteSize,
    },
    /// The keyspace was dropped.
    #[error("keyspace '{name}' was dropped; create it again with Store::keyspace")]
    NoKeyspace {
        /// Its name.
        name: String,
    },
    /// The engine has no order of keys.
    #[error(
        "keyspace '{name}': the store's engine is the {engine}, which has no order of keys; read all of them with \
         Keyspace::entries, or keep them in a store with the B⁻-tree"
    )]
    Unordered {
        /// The keyspace.
        name: String,
        /// The engine.
        engine: Engine,
    },
    /// An option or an argument makes no sense.
    #[error("{0}")]
    Invalid(String),
}

impl StoreError {
    /// Damage at a place.
    pub(crate) fn corrupt(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Corrupt { place: place.into(), what: what.into() }
    }

    /// Whether the medium has no space for a write: deleting keys may help.
    pub fn is_full(&self) -> bool {
        /// `ENOSPC` and `EDQUOT`.
        const NO_SPACE: [i32; 2] = [28, 122];
        match self {
            Self::Full { .. } | Self::MediumFull { .. } | Self::Io { source: BlockError::NoSpace, .. } => true,
            Self::Io { source: BlockError::Os { errno, .. }, .. } => NO_SPACE.contains(errno),
            _ => false,
        }
    }
}

/// A result of this crate.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Adds the operation to a device's error.
pub(crate) trait During<T> {
    /// The result, with what was being done.
    fn during(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T> During<T> for std::result::Result<T, BlockError> {
    fn during(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| StoreError::Io { what: what(), source })
    }
}
