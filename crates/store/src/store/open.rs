//! Creation and opening.
//!
//! A new file gets its name when all of it is on the medium; a device's first superblock is written last. Opening is
//! recovery: superblock, log, a new epoch. It reads no page but the maps and the catalog, and applies nothing; a page
//! gets its records when it is loaded, and a keyspace whose removal a crash has interrupted loses its pages with the
//! next commits (`docs/formats/store.md`).

use std::hash::{BuildHasher, Hasher};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use flashwise_block::output::{Access, OutputFile};
use flashwise_block::{BlockDevice, BlockError, ByteSize, IoBuffer};

use super::{Shared, Store, WriterState};
use crate::commit::CommitQueue;
use crate::error::{Result, StoreError};
use crate::faults::{Planted, is_planted};
use crate::log::{Log, scan};
use crate::medium::{Cause, DeviceMedium, Disk, FileMedium, Medium};
use crate::options::{Durability, StoreOptions};
use crate::pages::cache::Cache;
use crate::pages::page::map_bits;
use crate::pages::{PageLayout, Pages, Writer};
use crate::superblock::{Geometry, Superblock};
use crate::versions::Versions;

/// How many stores this process has opened.
static OPENINGS: AtomicU64 = AtomicU64::new(0);

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
        Superblock::new(geometry).write(&disk, &mut 0)?;
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
        let maps_max = layout.pages_in(disk.capacity()).div_ceil(map_bits(layout.page_bytes));
        if superblock.engine_word > maps_max {
            let what = format!("it counts {} maps of pages, and there is space for {maps_max}", superblock.engine_word);
            return Err(StoreError::corrupt(format!("{}: superblock", disk.name()), what));
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
        // The blocks that were read may be in the drive's cache only, since a process that was killed. The superblock
        // says that they are durable, so they must be before it is written.
        disk.flush()?;
        superblock.durable = superblock.durable.max(found.next);
        superblock.write(&disk, &mut copy)?;

        let log = Arc::new(Log::new(Arc::clone(&disk), &superblock, &found));
        let queue = Arc::new(CommitQueue::new(Arc::clone(&log)));
        let cache = Cache::new(Arc::clone(&disk), Arc::clone(&log), Arc::clone(&queue), &geometry, options.clone());
        let maps = cache.recover(std::mem::take(&mut found.groups), superblock.engine_word)?;
        let pages = Pages::new(cache, superblock.epoch);
        let writer = WriterState {
            pages: Writer { maps, pages: pages.count_pages(maps).unwrap_or_default(), ..Writer::default() },
            superblock,
            copy,
        };
        let shared = Shared {
            pages,
            queue,
            versions: Versions::new(options.snapshot_memory),
            opening: OPENINGS.fetch_add(1, Ordering::Relaxed),
            disk,
            log,
            writer: Mutex::new(writer),
            keyspaces: Mutex::default(),
            dropping: Mutex::default(),
            geometry,
            options: options.clone(),
            user_bytes: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            conflicts: AtomicU64::new(0),
            used_before: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
        };
        let store = Self { shared: Arc::new(shared) };
        if maps == 0 {
            store.shared.run(Durability::Synced, |group, _| group.create_store())?;
        }
        store.shared.find_dropped()?;
        Ok(store)
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
