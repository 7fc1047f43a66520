//! The store: what all handles share, and what each of its parts does.
//!
//! ```text
//!   open.rs       creation, recovery             commits.rs    batch ─▶ log, failures taken back
//!   keyspaces.rs  handles, creation, removal     growth.rs     splits behind a commit, compaction
//!   check.rs      all pages read                 log_space.rs  write-back that keeps the log short
//! ```

mod check;
mod commits;
mod growth;
mod keyspaces;
mod log_space;
mod open;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use flashwise_block::ByteSize;
use rustc_hash::FxHashMap;

pub use self::check::Check;
use crate::batch::Batch;
use crate::commit::CommitQueue;
use crate::engine::Index;
use crate::error::{Result, StoreError};
use crate::keyspace::KeyspaceInner;
use crate::log::Log;
use crate::medium::{BLOCK, Disk};
use crate::options::{Durability, Engine, StoreOptions};
use crate::pages::cache::lock;
use crate::pages::{GroupUndo, Pages, Writer};
use crate::snapshot::{Snapshot, SnapshotInner};
use crate::stats::Stats;
use crate::superblock::{Geometry, Superblock};
use crate::transaction::Transaction;
use crate::value::Value;
use crate::versions::Versions;

/// What the writer's lock protects.
pub(crate) struct WriterState {
    pub pages: Writer,
    superblock: Superblock,
    /// The superblock's copy that is known to be good.
    copy: usize,
}

/// Keyspaces that have handles, by name.
type OpenKeyspaces = FxHashMap<String, Arc<KeyspaceInner>>;

/// What all handles share.
pub(crate) struct Shared {
    pub pages: Pages,
    pub queue: Arc<CommitQueue<GroupUndo>>,
    pub versions: Versions,
    /// No other opening in this process has this number.
    pub opening: u64,
    disk: Arc<Disk>,
    log: Arc<Log>,
    writer: Mutex<WriterState>,
    keyspaces: Mutex<OpenKeyspaces>,
    /// Dropped keyspaces that still have pages: each commit frees some of them.
    dropping: Mutex<Vec<Index>>,
    geometry: Geometry,
    options: StoreOptions,
    user_bytes: AtomicU64,
    commits: AtomicU64,
    conflicts: AtomicU64,
    /// Blocks of the log that were used at the last commit.
    used_before: AtomicU64,
    is_closed: AtomicBool,
}

/// An open store; its handles are used by many threads. Dropping the last of them, keyspaces and snapshots included,
/// closes it, as [`Store::close`] does but for the errors.
///
/// ```
/// use flashwise_store::{Store, StoreOptions};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let store = Store::open(folder.path().join("app.store"), &StoreOptions::default())?;
/// let pages = store.keyspace("pages")?;
/// pages.put("index.html", "<p>Hello")?;
/// let before = store.snapshot();
/// pages.put("index.html", "<p>Goodbye")?;
/// assert_eq!(before.get(&pages, "index.html")?.as_deref(), Some(b"<p>Hello".as_slice()));
/// println!("{} bytes written per user byte", store.stats().host_write_amplification().unwrap_or_default());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Store {
    pub(crate) shared: Arc<Shared>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.shared.disk.name()).finish()
    }
}

impl Store {
    /// How the store finds keys.
    pub fn engine(&self) -> Engine {
        self.shared.geometry.engine
    }

    /// Commits a batch: all of it or nothing.
    ///
    /// # Errors
    /// [`StoreError::KeyTooLong`], [`StoreError::BatchTooLarge`], [`StoreError::Full`]; when the medium fails. After
    /// any of these the store is as before, and goes on. [`StoreError::Poisoned`] after a failed flush: what is durable
    /// is unknown until the store is opened again.
    pub fn commit(&self, batch: Batch, until: Durability) -> Result<()> {
        self.shared.commit(batch, until, None)
    }

    /// Makes all earlier commits durable.
    ///
    /// # Errors
    /// When the medium fails.
    pub fn sync(&self) -> Result<()> {
        self.shared.sync()
    }

    /// The newest committed state, as it is now, whatever comes later.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(SnapshotInner::open(&self.shared))
    }

    /// Starts a transaction.
    pub fn transaction(&self) -> Transaction {
        Transaction::new(&self.shared)
    }

    /// Writes all dirty pages, so that a restart reads hardly any log, and gives unused space back to the medium.
    ///
    /// # Errors
    /// When the medium fails.
    pub fn checkpoint(&self) -> Result<()> {
        let mut writer = self.shared.lock_writer()?;
        self.shared.checkpoint(&mut writer)
    }

    /// Reads every page and compares all of them. Commits wait meanwhile.
    ///
    /// # Errors
    /// When it cannot start; damage is in the result.
    pub fn check(&self) -> Result<Check> {
        self.shared.check()
    }

    /// What the store has done, and its size.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// Writes all dirty pages and closes the store, for all its handles.
    ///
    /// # Errors
    /// When the medium fails. Commits that were synced are safe nevertheless.
    pub fn close(self) -> Result<()> {
        self.shared.close()
    }
}

impl Shared {
    /// The longest batch, in the log.
    pub(crate) fn batch_max(&self) -> u64 {
        self.log.group_max()
    }

    pub(crate) fn identity(&self) -> u64 {
        self.geometry.seed
    }

    /// Refuses a handle of another store.
    pub(crate) fn owns(&self, keyspace: &KeyspaceInner) -> Result<()> {
        match keyspace.opening == self.opening {
            true => Ok(()),
            false => Err(StoreError::Invalid(format!("keyspace '{}' belongs to another store", keyspace.name))),
        }
    }

    pub(crate) fn get(&self, keyspace: &KeyspaceInner, sort_key: &[u8]) -> Result<Option<Value>> {
        self.versions.settled(|| {
            keyspace.exists()?;
            let newest = keyspace.index.get(&self.pages, sort_key)?;
            // What is being dropped loses its keys one by one.
            keyspace.exists()?;
            let replaced = self.versions.newest(keyspace.index.number(), sort_key, || self.queue.visible());
            Ok(replaced.unwrap_or(newest))
        })
    }

    fn close(&self) -> Result<()> {
        let closed = self.lock_writer().and_then(|mut writer| {
            let done = self.checkpoint(&mut writer);
            self.is_closed.store(true, Ordering::Release);
            done
        });
        self.is_closed.store(true, Ordering::Release);
        closed
    }

    fn index_memory(&self) -> u64 {
        let tables: u64 = lock(&self.keyspaces).values().map(|keyspace| keyspace.index.memory()).sum();
        self.pages.cache.known_bytes() + tables
    }

    fn stats(&self) -> Stats {
        let cache = &self.pages.cache;
        let (cached, dirty) = cache.counts();
        let pages = lock(&self.writer).pages.pages;
        // Before the write-back's lock: whoever has that of the keyspaces takes the write-back's behind it.
        let index_memory = ByteSize(self.index_memory());
        let back = lock(&cache.write_back);
        Stats {
            user_bytes: ByteSize(self.user_bytes.load(Ordering::Relaxed)),
            commits: self.commits.load(Ordering::Relaxed),
            conflicts: self.conflicts.load(Ordering::Relaxed),
            io: self.disk.stats(),
            delta_writes: back.delta_writes,
            image_writes: back.image_writes,
            delta_threshold: back.threshold(),
            pages,
            page_bytes: ByteSize(self.geometry.page_bytes),
            cached_pages: cached as u64,
            dirty_pages: dirty as u64,
            index_memory,
            log_used: ByteSize(self.log.used_blocks() * BLOCK),
            snapshot_bytes: self.versions.bytes(),
            device: self.disk.counters(),
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !self.is_closed.load(Ordering::Acquire) {
            // Errors have nobody to go to; what was synced is in the log.
            let _ = self.close();
        }
    }
}
