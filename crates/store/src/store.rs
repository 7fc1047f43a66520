//! The store: opening and recovery, commits, and what keeps the log short.

use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use flashwise_block::output::{Access, OutputFile};
use flashwise_block::{BlockDevice, BlockError, ByteSize, IoBuffer};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::batch::Batch;
use crate::catalog;
use crate::commit::{CommitQueue, Pending, Ticket};
use crate::engine::Index;
use crate::error::{Result, StoreError};
use crate::faults::{Planted, is_planted};
use crate::hash::{Counted, Table};
use crate::keyspace::{Keyspace, KeyspaceInner};
use crate::log::{Log, scan};
use crate::medium::{BLOCK, Cause, DeviceMedium, Disk, FileMedium, Medium};
use crate::options::{Durability, Engine, StoreOptions};
use crate::pages::cache::{Cache, lock};
use crate::pages::{Group, GroupUndo, PageLayout, Pages, Writer, take_back};
use crate::snapshot::{Snapshot, SnapshotInner};
use crate::stats::Stats;
use crate::superblock::{Geometry, Superblock};
use crate::transaction::{ReadSet, Transaction};
use crate::tree::{CATALOG, Checker, Target, TreeId};
use crate::value::Value;
use crate::versions::Versions;

/// Shares of the log, in sixteenths. From the first on, each commit writes back some pages that hold the log's tail;
/// beyond the second it waits until there is space. A group takes up to four sixteenths, so the log never overflows.
const PACED_FROM: u64 = 9;
const FORCED_FROM: u64 = 11;
/// What forced write-back leaves of the log.
const FORCED_TO: u64 = 7;
/// The tail moves, with two writes of the superblock, when it frees this much.
const TAIL_STEP: u64 = 1;
const SIXTEENTHS: u64 = 16;
/// Log blocks for which a paced commit writes back one batch of pages.
const BLOCKS_PER_BATCH: u64 = 4;

/// Keys that one commit of a drop removes, and buckets.
const DROPPED_TOGETHER: usize = 256;
const BUCKETS_DROPPED_TOGETHER: usize = 16;

/// Buckets that one group splits or merges, and the share of a group's records at which it ends before that.
const SPLITS_TOGETHER: u64 = 16;
const SPLITS_LOG_SHARE: u64 = 8;
/// Splits for each that the bytes of a commit make necessary: a table that has fallen behind catches up.
const SPLITS_CATCH_UP: u64 = 2;
/// Bytes of split buckets that wait for the log: until they are written, their pages stay in the cache.
const SPLITS_WAITING: usize = 64 << 10;

/// What the writer's lock protects.
pub(crate) struct WriterState {
    pub pages: Writer,
    superblock: Superblock,
    /// The superblock's copy that is known to be good.
    copy: usize,
    /// Blocks of the log that were used at the last commit.
    used_before: u64,
}

/// Keyspaces that have handles, by name.
type OpenKeyspaces = FxHashMap<String, Arc<KeyspaceInner>>;

/// What all handles share.
pub(crate) struct Shared {
    pub pages: Pages,
    pub queue: Arc<CommitQueue<GroupUndo>>,
    pub versions: Versions,
    disk: Arc<Disk>,
    log: Arc<Log>,
    writer: Mutex<WriterState>,
    keyspaces: Mutex<OpenKeyspaces>,
    geometry: Geometry,
    options: StoreOptions,
    user_bytes: AtomicU64,
    commits: AtomicU64,
    conflicts: AtomicU64,
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

/// What [`Store::check`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Keyspaces.
    pub keyspaces: u64,
    /// Keys in them.
    pub keys: u64,
    /// Pages that are in use.
    pub pages: u64,
    /// Damage, each with its place; at most a hundred.
    pub damage: Vec<String>,
    /// Damage beyond those.
    pub unlisted: u64,
}

impl Check {
    /// Whether nothing is damaged.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty()
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.shared.disk.name()).finish()
    }
}

impl Store {
    /// Opens the store in a file; creates it if it is missing and [`StoreOptions::create`] allows it. An existing file
    /// that is not a store is refused and left as it is.
    ///
    /// # Errors
    /// [`StoreError::NotAStore`], [`StoreError::InUse`]; when the medium fails or what recovery needs is damaged.
    pub fn open(path: impl AsRef<Path>, options: &StoreOptions) -> Result<Self> {
        let path = path.as_ref();
        if options.create && !path.exists() {
            create_file(path, &new_geometry(options)?)?;
        }
        Self::on(Box::new(FileMedium::open(path)?), options)
    }

    /// Opens the store on a block device.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_device(device: Box<dyn BlockDevice + Send>, options: &StoreOptions) -> Result<Self> {
        Self::on(Box::new(DeviceMedium::new(device)?), options)
    }

    /// Creates a store on a block device. Whatever the device holds is lost.
    ///
    /// # Errors
    /// When the options make no sense, the device is too small or fails.
    pub fn create_device(device: Box<dyn BlockDevice + Send>, options: &StoreOptions) -> Result<Self> {
        let medium: Box<dyn Medium> = Box::new(DeviceMedium::new(device)?);
        let geometry = new_geometry(options)?;
        let disk = Disk::new(medium);
        disk.ensure(PageLayout::new(&geometry).area(2))?;
        let reserve = crate::reserve::blocks(&geometry);
        let writes = reserve.into_iter().map(|(offset, block)| (offset, block, Cause::Superblock));
        disk.write(writes.collect(), 16, "the reserve")?;
        // The first copy last: until it is whole, the device is no store, or the one that it was.
        Superblock::new(geometry).write(&disk, 0)?;
        Self::start(disk, options)
    }

    fn on(medium: Box<dyn Medium>, options: &StoreOptions) -> Result<Self> {
        Self::start(Disk::new(medium), options)
    }

    /// Recovery: superblock, log, a new epoch. No page is read but the maps and the catalog.
    fn start(disk: Disk, options: &StoreOptions) -> Result<Self> {
        let disk = Arc::new(disk);
        let (mut superblock, mut copy) = Superblock::read(&disk)?;
        let geometry = superblock.geometry;
        let layout = PageLayout::new(&geometry);
        if layout.area_bytes() > disk.max_transfer() {
            let why = format!(
                "it takes requests of up to {}, and a page needs {}",
                ByteSize(disk.max_transfer()),
                ByteSize(layout.area_bytes())
            );
            return Err(StoreError::NotAStore { place: disk.name(), why });
        }
        let mut found = scan(&disk, &superblock)?;
        if let Some(block) = found.unfinished.take() {
            let offset = geometry.ring_offset(found.next - 1);
            disk.write(vec![(offset, IoBuffer::copy_of(&block), Cause::Log)], 1, "the log")?;
        }
        superblock.generation += 1;
        if !is_planted(Planted::EpochKept) {
            superblock.epoch += 1;
            superblock.epoch_start = found.next;
        }
        superblock.durable = superblock.durable.max(found.next);
        // Its flush also makes durable what the log's readers are about to see.
        superblock.write(&disk, copy)?;
        copy = 1 - copy;

        let log = Arc::new(Log::new(Arc::clone(&disk), &superblock, &found));
        let queue = Arc::new(CommitQueue::new(Arc::clone(&log)));
        let cache = Cache::new(Arc::clone(&disk), Arc::clone(&log), Arc::clone(&queue), &geometry, options.clone());
        let maps = cache.recover(std::mem::take(&mut found.groups), superblock.engine_word)?;
        let pages = Pages::new(cache, superblock.epoch);
        let writer = WriterState {
            pages: Writer { maps, pages: pages.count_pages(maps).unwrap_or_default(), ..Writer::default() },
            superblock,
            copy,
            used_before: 0,
        };
        let shared = Shared {
            pages,
            queue,
            versions: Versions::new(options.snapshot_memory),
            disk,
            log,
            writer: Mutex::new(writer),
            keyspaces: Mutex::default(),
            geometry,
            options: options.clone(),
            user_bytes: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            conflicts: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
        };
        let store = Self { shared: Arc::new(shared) };
        if maps == 0 {
            store.shared.run(Durability::Synced, |group, _| group.create_store())?;
        }
        for id in catalog::list_dropped(&SnapshotInner::open(&store.shared))? {
            let shared = &store.shared;
            shared.finish_drop(&Index::open(&shared.pages, geometry.engine, id)?)?;
        }
        Ok(store)
    }

    /// How the store finds keys.
    pub fn engine(&self) -> Engine {
        self.shared.geometry.engine
    }

    /// The keyspace of a name; created, durably, if it is missing. Names have 1 to 128 bytes.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        match self.find_keyspace(name)? {
            Some(found) => Ok(found),
            None => self.create_keyspace(name),
        }
    }

    /// The keyspace of a name, if it exists.
    ///
    /// # Errors
    /// When the medium fails or a page is damaged.
    pub fn find_keyspace(&self, name: &str) -> Result<Option<Keyspace>> {
        catalog::check_name(name)?;
        // Locked until the handle is there: a keyspace that is dropped meanwhile must not come back with it.
        let found = self.find_inner(&mut lock(&self.shared.keyspaces), name)?;
        Ok(found.map(|inner| Keyspace { shared: Arc::clone(&self.shared), inner }))
    }

    fn find_inner(&self, open: &mut OpenKeyspaces, name: &str) -> Result<Option<Arc<KeyspaceInner>>> {
        let shared = &self.shared;
        if let Some(inner) = open.get(name) {
            return Ok(Some(Arc::clone(inner)));
        }
        let entry = shared.get(&catalog::keyspace(shared.identity()), &catalog::key_of(name))?;
        let Some(entry) = entry else { return Ok(None) };
        let index = Index::open(&shared.pages, shared.geometry.engine, catalog::decode(&entry)?)?;
        let (name, is_dropped) = (name.to_owned(), AtomicBool::new(false));
        let inner = Arc::new(KeyspaceInner { name: name.clone(), index, store: shared.identity(), is_dropped });
        open.insert(name, Arc::clone(&inner));
        Ok(Some(inner))
    }

    fn create_keyspace(&self, name: &str) -> Result<Keyspace> {
        let shared = &self.shared;
        let key = catalog::key_of(name);
        loop {
            shared.run(Durability::Synced, |group, seq| {
                if shared.pages.get(CATALOG, &key)?.is_some() {
                    return Ok(());
                }
                let next =
                    shared.pages.get(CATALOG, catalog::NEXT)?.map_or(1, |entry| crate::bytes::get_u32(&entry, 0));
                let too_many =
                    || StoreError::Invalid("the store has had all keyspaces that can be numbered".to_owned());
                let behind = next.checked_add(2).filter(|_| next > 0).ok_or_else(too_many)?;
                let (created, behind) = match shared.geometry.engine {
                    Engine::BTree => (group.create_tree(next)?, behind - 1),
                    Engine::Hash => (group.create_table(next, next + 1)?, behind),
                };
                for (key, value) in [(catalog::NEXT, behind.to_le_bytes().to_vec()), (&key, catalog::encode(created))] {
                    group.put(CATALOG, key, &value, &mut |old| shared.note_old(seq, CATALOG.number, key, old))?;
                }
                Ok(())
            })?;
            // It may be dropped again by somebody else.
            if let Some(found) = self.find_keyspace(name)? {
                return Ok(found);
            }
        }
    }

    /// Names of all keyspaces, in order.
    ///
    /// # Errors
    /// When the medium fails or a page is damaged.
    pub fn keyspaces(&self) -> Result<Vec<String>> {
        self.snapshot().keyspaces()
    }

    /// Removes a keyspace with all its keys; whether it existed. It is gone, durably, when the name is; its pages are
    /// freed in parts, also after a crash. Its handles and scans fail from now on.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub fn drop_keyspace(&self, name: &str) -> Result<bool> {
        catalog::check_name(name)?;
        let shared = &self.shared;
        // Locked until the handle is gone: nobody else drops it too, or finds it when the name has a new keyspace.
        let mut open = lock(&shared.keyspaces);
        let Some(inner) = self.find_inner(&mut open, name)? else { return Ok(false) };
        let (key, id) = (catalog::key_of(name), inner.index.id());
        shared.run(Durability::Synced, |group, seq| {
            let note = |key: &[u8], old| shared.note_old(seq, CATALOG.number, key, old);
            group.remove(CATALOG, &key, &mut |old| note(&key, old))?;
            let dropped = catalog::dropped_key_of(id);
            group.put(CATALOG, &dropped, &catalog::encode(id), &mut |old| note(&dropped, old))
        })?;
        inner.is_dropped.store(true, Ordering::Release);
        open.remove(name);
        drop(open);
        shared.finish_drop(&inner.index)?;
        Ok(true)
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

    /// Merges pages that deletes have left half empty, and gives all unused space back to the medium. Reads and commits
    /// go on meanwhile.
    ///
    /// # Errors
    /// When the medium fails.
    pub fn compact(&self) -> Result<()> {
        for name in self.keyspaces()? {
            let Some(keyspace) = self.find_keyspace(&name)? else { continue };
            let done = match &keyspace.inner.index {
                Index::Tree(tree) => self.shared.compact(&keyspace.inner, *tree),
                Index::Table(table) => self.shared.compact_table(&keyspace.inner, table),
            };
            match done {
                // It was dropped meanwhile.
                Err(StoreError::NoKeyspace { .. }) => {}
                done => done?,
            }
        }
        self.checkpoint()
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

/// The geometry of a new store.
fn new_geometry(options: &StoreOptions) -> Result<Geometry> {
    let random = || std::hash::RandomState::new().build_hasher().finish();
    let identity = options.identity.unwrap_or_else(random);
    Geometry::new(identity, options)
}

/// Writes an empty store: superblocks, and a log whose blocks were written once. The file has its name when all of it
/// is on the medium.
fn create_file(path: &Path, geometry: &Geometry) -> Result<()> {
    let failed = |error: std::io::Error| StoreError::Io {
        what: "creating the store".to_owned(),
        source: BlockError::os(path.display().to_string(), &error),
    };
    let mut output = OutputFile::create(path, Access::Usual).map_err(failed)?;
    let superblock = Superblock::new(*geometry).encode();
    let file = output.file();
    let zeros = vec![0; 1 << 20];
    let mut left = geometry.area_start;
    while left > 0 {
        let length = left.min(zeros.len() as u64);
        file.write_all(&zeros[..length as usize]).map_err(failed)?;
        left -= length;
    }
    file.seek(SeekFrom::Start(geometry.reserve_offset())).map_err(failed)?;
    for (_, block) in crate::reserve::blocks(geometry) {
        file.write_all(&block).map_err(failed)?;
    }
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    file.write_all(&superblock).and_then(|()| file.write_all(&superblock)).map_err(failed)?;
    match output.publish() {
        Ok(_) => Ok(()),
        // Another process was faster; opening it shows whose it is.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(failed(error)),
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
        match keyspace.store == self.identity() {
            true => Ok(()),
            false => Err(StoreError::Invalid(format!("keyspace '{}' belongs to another store", keyspace.name))),
        }
    }

    pub(crate) fn get(&self, keyspace: &KeyspaceInner, sort_key: &[u8]) -> Result<Option<Value>> {
        keyspace.exists()?;
        let newest = keyspace.index.get(&self.pages, sort_key)?;
        // What is being dropped loses its keys one by one.
        keyspace.exists()?;
        let replaced = self.versions.newest(keyspace.index.number(), sort_key, || self.queue.visible());
        Ok(replaced.unwrap_or(newest))
    }

    fn note_old(&self, seq: u64, number: u32, sort_key: &[u8], old: Option<Value>) -> Result<()> {
        self.versions.replace(seq, (number, sort_key.to_vec()), old);
        Ok(())
    }

    /// The writer's lock; commits whose log write has failed are taken back first.
    fn lock_writer(&self) -> Result<MutexGuard<'_, WriterState>> {
        let mut writer = lock(&self.writer);
        if let Some((error, unwritten)) = self.queue.failed() {
            self.resolve(&mut writer, &error, unwritten);
        }
        if self.is_closed.load(Ordering::Acquire) {
            return Err(StoreError::Invalid("the store is closed; open it again".to_owned()));
        }
        self.disk.healthy()?;
        Ok(writer)
    }

    /// After a failed write of the log: takes its commits back, and goes on in a new epoch, so that no block of the
    /// failed write counts. Where that is impossible, the store is poisoned.
    fn resolve(&self, writer: &mut WriterState, error: &StoreError, unwritten: Vec<Pending<GroupUndo>>) {
        let is_lost = self.queue.visible() > self.log.written_seq();
        let is_hopeless = self.disk.healthy().is_err() || is_lost || self.geometry.is_packed;
        let mut tickets: Vec<Ticket> = Vec::new();
        for Pending { seq, ticket, undo, .. } in unwritten {
            if !is_hopeless {
                take_back(&self.pages, &mut writer.pages, undo);
                self.versions.take_back(seq);
            }
            tickets.push(ticket);
        }
        if !is_hopeless {
            self.log.forget_after(self.log.written_seq());
        }
        if error.is_full() {
            self.pages.cache.reserve.release();
        }
        let goes_on = !is_hopeless && self.start_epoch(writer).is_ok();
        if !goes_on {
            self.disk.poison(error);
        }
        for ticket in tickets {
            let _ = ticket.set(Err(error.clone()));
        }
        self.queue.resolved((!goes_on).then_some(error));
    }

    fn start_epoch(&self, writer: &mut WriterState) -> Result<()> {
        let mut superblock = writer.superblock;
        superblock.generation += 1;
        superblock.epoch += 1;
        superblock.epoch_start = self.log.next_block();
        superblock.write(&self.disk, writer.copy)?;
        (writer.superblock, writer.copy) = (superblock, 1 - writer.copy);
        self.log.start_epoch(superblock.epoch);
        Ok(())
    }

    /// Runs changes as one group. Without changes nothing is committed.
    fn run(&self, until: Durability, changes: impl FnOnce(&mut Group<'_>, u64) -> Result<()>) -> Result<()> {
        let mut writer = self.lock_writer()?;
        self.make_space(&mut writer)?;
        let ticket = self.apply(&mut writer, until, changes)?;
        drop(writer);
        self.wait(ticket, until)
    }

    /// Applies a group and appends it to the log. After an error the pages are as before.
    fn apply(
        &self,
        writer: &mut WriterState,
        until: Durability,
        changes: impl FnOnce(&mut Group<'_>, u64) -> Result<()>,
    ) -> Result<Option<Ticket>> {
        let seq = self.log.appended_seq() + 1;
        let mut group = Group::new(&self.pages, &mut writer.pages, seq);
        if let Err(error) = changes(&mut group, seq) {
            drop(group);
            self.versions.take_back(seq);
            return Err(error);
        }
        let (records, undo) = group.finish();
        if records.is_empty() {
            return Ok(None);
        }
        if let Err(error) = self.log.append(seq, &records) {
            take_back(&self.pages, &mut writer.pages, undo);
            self.versions.take_back(seq);
            return Err(error);
        }
        let ticket = Ticket::default();
        self.queue.push(Pending { seq, level: until, ticket: Arc::clone(&ticket), undo });
        Ok(Some(ticket))
    }

    /// Waits until a commit has reached its level; one that changes nothing, until all before it have.
    fn wait(&self, ticket: Option<Ticket>, until: Durability) -> Result<()> {
        let Some(ticket) = ticket else {
            return match until {
                Durability::Buffered => Ok(()),
                Durability::Flushed | Durability::Synced if self.log.synced_seq() == self.log.appended_seq() => Ok(()),
                Durability::Flushed | Durability::Synced => self.sync(),
            };
        };
        let done = loop {
            match self.queue.wait(&ticket) {
                Some(done) => break done,
                None => drop(self.lock_writer()),
            }
        };
        self.versions.purge(self.queue.visible());
        if done.is_ok() && self.log.waiting_bytes() as u64 > self.options.buffer.0 {
            // A failure ends a later commit, or poisons the store: this one was to be buffered only.
            let _ = self.queue.write_out();
        }
        done
    }

    /// Refuses what cannot be stored.
    fn check_batch(&self, batch: &Batch) -> Result<()> {
        for ((_, sort_key), operation) in &batch.operations {
            self.owns(&operation.keyspace)?;
            operation.keyspace.exists()?;
            let index = &operation.keyspace.index;
            let (length, max) =
                (sort_key.len() - index.prefix_bytes(), index.key_max(self.geometry.page_bytes as usize));
            if length > max {
                let page = ByteSize(self.geometry.page_bytes);
                return Err(StoreError::KeyTooLong { length, page, max });
            }
        }
        Ok(())
    }

    pub(crate) fn commit(&self, batch: Batch, until: Durability, reads: Option<&ReadSet>) -> Result<()> {
        self.check_batch(&batch)?;
        self.prefetch(&batch);
        let mut writer = self.lock_writer()?;
        if batch.operations.values().any(|operation| operation.value.is_some()) {
            self.restore_reserve(&mut writer)?;
        }
        self.make_space(&mut writer)?;
        if let Some(reads) = reads
            && reads.is_changed(self)?
        {
            self.conflicts.fetch_add(1, Ordering::Relaxed);
            return Err(StoreError::Conflict);
        }
        // A keyspace may have been dropped since the check; its root may belong to something else by now.
        self.check_batch(&batch)?;
        let (mut user_bytes, mut growing) = (0, Vec::new());
        let ticket = self.apply(&mut writer, until, |group, seq| {
            let mut counted: Vec<(&Arc<Table>, Counted)> = Vec::new();
            for ((number, sort_key), operation) in &batch.operations {
                let index = &operation.keyspace.index;
                let value = operation.value.as_deref();
                user_bytes += (sort_key.len() - index.prefix_bytes() + value.map_or(0, <[u8]>::len)) as u64;
                let note = &mut |old| self.note_old(seq, *number, sort_key, old);
                let added = index.change(group, sort_key, value, note)?;
                let Index::Table(table) = index else { continue };
                match counted.last_mut() {
                    Some((last, counted)) if last.id == table.id => *counted += added,
                    _ => counted.push((table, added)),
                }
            }
            for (table, added) in counted {
                group.count(table, added)?;
                if added.bytes > 0 {
                    growing.push((Arc::clone(table), added.bytes.unsigned_abs()));
                }
            }
            Ok(())
        })?;
        for (table, added) in growing {
            // The batch is committed whether its table grows or not; a later one tries again.
            if self.grow(&mut writer, &table, added, until).is_err() {
                table.stuck(table.counts(&self.pages).map_or(1, |counts| counts.bytes));
            }
        }
        drop(writer);
        self.wait(ticket, until)?;
        self.user_bytes.fetch_add(user_bytes, Ordering::Relaxed);
        self.commits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Loads what a batch changes, several pages at once.
    fn prefetch(&self, batch: &Batch) {
        let operations: Vec<_> = batch.operations.iter().collect();
        for own in operations.chunk_by(|a, b| a.0.0 == b.0.0) {
            if let Some((_, operation)) = own.first() {
                operation.keyspace.index.prefetch(&self.pages, own.iter().map(|((_, key), _)| key.as_slice()));
            }
        }
    }

    /// How many buckets a table must have to be filled as it should.
    fn buckets_for(&self, bytes: u64) -> u64 {
        let filled = self.geometry.page_bytes * u64::from(self.geometry.bucket_fill) / 100;
        bytes.div_ceil(filled.max(1))
    }

    /// Splits as many buckets as the bytes that a commit has added make necessary, and as many again if the table has
    /// fallen behind.
    fn grow(&self, writer: &mut WriterState, table: &Arc<Table>, added: u64, until: Durability) -> Result<()> {
        // Visible when they are in the log, so that they can be taken back with the commit; a buffered one cannot.
        let level = until.min(Durability::Flushed);
        let mut allowed = SPLITS_CATCH_UP * self.buckets_for(added);
        loop {
            let bytes = table.counts(&self.pages)?.bytes;
            let (buckets, wanted) = (table.buckets(), self.buckets_for(bytes));
            let together = wanted.saturating_sub(buckets).min(allowed).min(SPLITS_TOGETHER);
            if together == 0 || table.is_stuck(bytes) || self.pages.cache.reserve.is_released() {
                return Ok(());
            }
            self.make_space(writer)?;
            self.apply(writer, level, |group, _| {
                for _ in 0..together {
                    group.split_bucket(table)?;
                    let (used, most) = group.log_bytes();
                    if used > most / SPLITS_LOG_SHARE {
                        break;
                    }
                }
                Ok(())
            })?;
            allowed = allowed.saturating_sub(table.buckets() - buckets);
            if level == Durability::Flushed && self.log.waiting_bytes() > SPLITS_WAITING {
                self.queue.write_out()?;
            }
        }
    }

    /// After the medium was full: what deletes have freed becomes space, and the reserve is written again before
    /// anything else may take it.
    fn restore_reserve(&self, writer: &mut WriterState) -> Result<()> {
        let reserve = &self.pages.cache.reserve;
        if !reserve.is_released() || reserve.restore().is_ok() {
            return Ok(());
        }
        self.checkpoint(writer)?;
        reserve.restore()
    }

    fn sync(&self) -> Result<()> {
        self.disk.healthy()?;
        if let Err(error) = self.queue.sync_to(self.log.appended_seq()) {
            // Takes back what was not written.
            drop(self.lock_writer());
            return Err(error);
        }
        self.versions.purge(self.queue.visible());
        Ok(())
    }

    // The log's space.

    /// Keeps the log short: writes back pages that hold its tail.
    fn make_space(&self, writer: &mut WriterState) -> Result<()> {
        self.pages.cache.write_new_pages()?;
        let (ring, used) = (self.log.ring_blocks(), self.log.used_blocks());
        let share = |sixteenths: u64| ring * sixteenths / SIXTEENTHS;
        let grown = used.saturating_sub(writer.used_before);
        if used > share(FORCED_FROM) {
            self.queue.sync_to(self.log.appended_seq())?;
            if let Some(seq) = self.log.seq_behind(share(FORCED_TO)) {
                self.pages.cache.write_older_than(seq)?;
            }
            self.move_tail(writer, 1)?;
            if self.log.used_blocks() > share(FORCED_FROM) {
                let why = "the log has no space, and the pages that need it cannot be written; close the store and \
                           open it again";
                return Err(StoreError::Invalid(why.to_owned()));
            }
        } else if used > share(PACED_FROM) {
            if let Some(seq) = self.log.seq_behind(share(FORCED_TO)) {
                for _ in 0..1 + grown / BLOCKS_PER_BATCH {
                    match self.pages.cache.write_some_older_than(seq) {
                        Ok(0) => break,
                        // There is space in the log still: a delete may make some on the medium.
                        Err(error) if error.is_full() => break,
                        done => _ = done?,
                    }
                }
            }
            self.move_tail(writer, share(TAIL_STEP).max(1))?;
        }
        writer.used_before = self.log.used_blocks();
        Ok(())
    }

    /// Frees the log's blocks that no page needs, if there are at least `least`.
    fn move_tail(&self, writer: &mut WriterState, least: u64) -> Result<()> {
        let cache = &self.pages.cache;
        cache.settle(&mut lock(&cache.write_back));
        let oldest = lock(&cache.ledger).oldest();
        let tail = self.log.block_of(oldest);
        if tail < writer.superblock.tail + least {
            return Ok(());
        }
        // The number of maps and the last sequence number are those of what was appended: it has to be durable.
        self.queue.sync_to(self.log.appended_seq())?;
        let mut superblock = writer.superblock;
        superblock.generation += 1;
        superblock.engine_word = writer.pages.maps;
        self.log.describe(&mut superblock, tail);
        superblock.write(&self.disk, writer.copy)?;
        (writer.superblock, writer.copy) = (superblock, 1 - writer.copy);
        self.log.free_to(tail);
        Ok(())
    }

    /// Everything into the pages, and unused space back to the medium.
    fn checkpoint(&self, writer: &mut WriterState) -> Result<()> {
        let appended = self.log.appended_seq();
        self.queue.sync_to(appended)?;
        let cache = &self.pages.cache;
        cache.write_older_than(appended)?;
        self.move_tail(writer, 1)?;
        cache.give_back(&mut lock(&cache.write_back))
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

    // Keyspaces, compaction, check.

    /// Frees the pages of a dropped keyspace, a part at a time.
    fn finish_drop(&self, index: &Index) -> Result<()> {
        match index {
            Index::Tree(tree) => self.finish_drop_of_tree(*tree),
            Index::Table(table) => self.finish_drop_of_table(table),
        }
    }

    fn finish_drop_of_table(&self, table: &Arc<Table>) -> Result<()> {
        loop {
            let mut is_gone = false;
            self.run(Durability::Buffered, |group, seq| {
                for _ in 0..BUCKETS_DROPPED_TOGETHER {
                    let (used, most) = group.log_bytes();
                    if used > most / SPLITS_LOG_SHARE || !group.drop_bucket(table)? {
                        break;
                    }
                }
                if table.buckets() == 0 && group.log_bytes().0 == 0 && group.drop_table(table)? {
                    self.forget_dropped(group, seq, table.id)?;
                    is_gone = true;
                }
                Ok(())
            })?;
            if is_gone {
                return self.sync();
            }
        }
    }

    fn forget_dropped(&self, group: &mut Group<'_>, seq: u64, id: TreeId) -> Result<()> {
        let key = catalog::dropped_key_of(id);
        group.remove(CATALOG, &key, &mut |old| self.note_old(seq, CATALOG.number, &key, old)).map(drop)
    }

    fn finish_drop_of_tree(&self, tree: TreeId) -> Result<()> {
        loop {
            let keys = self.first_keys(tree)?;
            let mut is_gone = false;
            self.run(Durability::Buffered, |group, seq| {
                for key in keys.iter().take(DROPPED_TOGETHER) {
                    group.remove(tree, key, &mut |_| Ok(()))?;
                }
                // Leaves without keys merge, until the root is the only one.
                if keys.is_empty() && !group.compact_at(tree, b"")? {
                    group.drop_root(tree)?;
                    self.forget_dropped(group, seq, tree)?;
                    is_gone = true;
                }
                Ok(())
            })?;
            if is_gone {
                return self.sync();
            }
        }
    }

    /// The keys of the first leaf that has some.
    fn first_keys(&self, tree: TreeId) -> Result<Vec<Vec<u8>>> {
        let mut low = Vec::new();
        loop {
            let Some(leaf) = self.pages.copy_leaf(tree, Target::At(&low))? else { return Ok(Vec::new()) };
            match leaf.high {
                Some(high) if leaf.records.is_empty() => low = high,
                _ => return Ok(leaf.records.into_iter().map(|record| record.0).collect()),
            }
        }
    }

    /// Merges buckets until the table is filled as it should be, and takes exceptions back into their buckets.
    fn compact_table(&self, keyspace: &KeyspaceInner, table: &Arc<Table>) -> Result<()> {
        let mut is_done = false;
        while !is_done {
            self.run(Durability::Buffered, |group, _| {
                // Under the writer's lock: the keyspace is not being dropped.
                keyspace.exists()?;
                let wanted = self.buckets_for(table.counts(&self.pages)?.bytes).max(1);
                for _ in 0..SPLITS_TOGETHER {
                    let (used, most) = group.log_bytes();
                    is_done = table.buckets() <= wanted || !group.merge_bucket(table)?;
                    if is_done || used > most / SPLITS_LOG_SHARE {
                        break;
                    }
                }
                Ok(())
            })?;
        }
        table.stuck_at.store(0, Ordering::Relaxed);
        let mut from = Vec::new();
        loop {
            let exceptions = table.exceptions_from(&self.pages, &from, SPLITS_TOGETHER as usize)?;
            let Some(last) = exceptions.last() else { break };
            from = [last.as_slice(), &[0]].concat();
            self.run(Durability::Buffered, |group, _| {
                keyspace.exists()?;
                exceptions.iter().try_for_each(|sort_key| group.absorb(table, sort_key).map(drop))
            })?;
        }
        self.compact(keyspace, table.side)
    }

    /// Merges neighbours all along a tree, one commit a page.
    fn compact(&self, keyspace: &KeyspaceInner, tree: TreeId) -> Result<()> {
        let mut key = Vec::new();
        loop {
            let mut is_merged = false;
            self.run(Durability::Buffered, |group, _| {
                // Under the writer's lock: the keyspace is not being dropped.
                keyspace.exists()?;
                is_merged = group.compact_at(tree, &key)?;
                Ok(())
            })?;
            if is_merged {
                continue;
            }
            match self.pages.leaf_end(tree, &key)? {
                Some(end) => key = end,
                None => return self.sync(),
            }
        }
    }

    fn check(self: &Arc<Self>) -> Result<Check> {
        let writer = self.lock_writer()?;
        self.queue.sync_to(self.log.appended_seq())?;
        let mut checker = Checker::new(&self.pages);
        for copy in Superblock::damaged_copies(&self.disk)? {
            let place = format!("{}: superblock {copy}", self.disk.name());
            let what = "it is damaged; the other copy is good, and the next opening writes both";
            checker.findings.add(StoreError::corrupt(place, what).to_string());
        }
        checker.tree(CATALOG);
        let keys_before = checker.findings.keys;
        let snapshot = SnapshotInner::open(self);
        let mut keyspaces = 0;
        let listed = catalog::list(&snapshot).and_then(|found| Ok((found, catalog::list_dropped(&snapshot)?)));
        match listed {
            Ok((found, dropped)) => {
                keyspaces = found.len() as u64;
                let found = found.into_iter().map(|found| (found.1, true));
                for (id, is_whole) in found.chain(dropped.into_iter().map(|id| (id, false))) {
                    match Index::open(&self.pages, self.geometry.engine, id) {
                        Ok(Index::Tree(tree)) => checker.tree(tree),
                        Ok(Index::Table(table)) => checker.table(&table, is_whole),
                        Err(error) => checker.findings.add(error.to_string()),
                    }
                }
                checker.maps(writer.pages.maps);
            }
            Err(error) => checker.findings.add(error.to_string()),
        }
        let findings = checker.findings;
        let (keys, pages) = (findings.keys - keys_before, findings.pages);
        Ok(Check { keyspaces, keys, pages, damage: findings.damage, unlisted: findings.unlisted })
    }

    fn index_memory(&self) -> u64 {
        let tables: u64 = lock(&self.keyspaces).values().map(|keyspace| keyspace.index.memory()).sum();
        self.pages.cache.known_bytes() + tables
    }

    fn stats(&self) -> Stats {
        let cache = &self.pages.cache;
        let (cached, dirty) = cache.counts();
        let pages = lock(&self.writer).pages.pages;
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
            index_memory: ByteSize(self.index_memory()),
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
