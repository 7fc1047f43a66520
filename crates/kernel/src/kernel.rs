//! The kernel: its parts, what happens when a request completes, and what happens beside the task.

use std::collections::{BTreeMap, HashMap};

use flashwise_block::{
    BlockDevice, BlockError, ByteSize, DeviceCounters, Extent, ExtentMap, Nanos, Operation, PlacementUnknown,
};
use rustc_hash::FxBuildHasher;
use serde::{Deserialize, Serialize};

use crate::block::{Bio, Done, Purpose, Queue};
use crate::config::{FileSystemKind, KernelConfig, PAGE};
use crate::error::{KernelError, Result};
use crate::fs::buffer::Buffers;
use crate::fs::commit::{Durable, Journal};
use crate::fs::direct_io::ReadInto;
use crate::fs::ext4::Ext4;
use crate::fs::ext4::fast_commit::FastCommits;
use crate::fs::fs_writeback::Flusher;
use crate::fs::inode::{Ino, Inode};
use crate::fs::layout::Layout;
use crate::fs::open::{FileHandle, OpenFile};
use crate::fs::xfs::Xfs;
use crate::fs::xfs::inodegc::InodeGc;
use crate::mm::memory::Map;
use crate::mm::vmscan::{PageCache, flag};

/// How long a background task is left alone between two polls of the drive, where time is only let pass.
const POLL_INTERVAL: Nanos = Nanos::millis(1);

/// Requests that someone waits for.
#[derive(Debug, Default)]
pub(crate) struct Ticket {
    /// Requests under way; bytes for those that have any.
    pub(crate) pending: u64,
    pub(crate) error: Option<BlockError>,
    /// What direct reads brought: (byte of the caller's, bytes).
    pub(crate) read: Vec<(u64, Vec<u8>)>,
}

impl Ticket {
    /// Puts what was read into the first `length` bytes; what has no place on the drive is zeros.
    pub(crate) fn fill(mut self, length: usize, into: &mut ReadInto<'_>) {
        self.read.sort_unstable_by_key(|&(at, _)| at);
        let mut end = 0;
        for (at, bytes) in self.read {
            let at = (at as usize).min(length);
            let taken = bytes.len().min(length - at);
            into.fill(end, at.saturating_sub(end), None);
            into.fill(at, taken, Some(&bytes[..taken]));
            end = at + taken;
        }
        into.fill(end, length - end, None);
    }
}

/// What the kernel has counted since it came up; the drive's own counters are in [`Kernel::device_counters`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelCounters {
    /// Pages that a read or a fault found cached.
    pub hits: u64,
    /// Pages that it did not.
    pub misses: u64,
    /// Pages that were read from the drive, read-ahead included.
    pub pages_read: u64,
    /// Pages of files that were written back.
    pub pages_written: u64,
    /// Pages that were evicted.
    pub evicted: u64,
    /// Pages that came back soon after they were evicted.
    pub refaults: u64,
    /// Transactions that were committed (XFS: checkpoints of the log).
    pub commits: u64,
    /// Fast commits of ext4.
    #[serde(default)]
    pub fast_commits: u64,
    /// Metadata buffers that were read.
    pub buffers_read: u64,
    /// Time that writers were held back for having too many dirty pages.
    #[serde(rename = "throttled_ns")]
    pub throttled: Nanos,
}

impl KernelCounters {
    /// The difference since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            hits: self.hits - earlier.hits,
            misses: self.misses - earlier.misses,
            pages_read: self.pages_read - earlier.pages_read,
            pages_written: self.pages_written - earlier.pages_written,
            evicted: self.evicted - earlier.evicted,
            refaults: self.refaults - earlier.refaults,
            commits: self.commits - earlier.commits,
            fast_commits: self.fast_commits - earlier.fast_commits,
            buffers_read: self.buffers_read - earlier.buffers_read,
            throttled: self.throttled.since(earlier.throttled),
        }
    }
}

/// What `stat` says of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// Bytes.
    pub size: ByteSize,
    /// Bytes that are allocated on the drive.
    pub allocated: ByteSize,
    /// Where they are: first byte in the file, first byte on the drive, bytes; in the file's order.
    pub extents: Vec<(ByteSize, ByteSize, ByteSize)>,
    /// Bytes in dirty pages.
    pub dirty: ByteSize,
}

impl FileStatus {
    /// Where its bytes are on a drive of that name.
    ///
    /// # Errors
    /// [`PlacementUnknown`] where the extents do not make a map.
    pub fn map(self, drive: &str) -> std::result::Result<ExtentMap, PlacementUnknown> {
        let extents = self.extents.into_iter();
        let extents = extents.map(|(offset, drive_offset, length)| Extent { offset, drive_offset, length });
        ExtentMap::new(drive, extents.collect(), self.size)
    }
}

/// A kernel with one file system on one drive.
///
/// Every call is one task's, which stays on its processor: it sleeps whenever it waits, and Linux wakes it where it
/// slept (`kernel/sched/fair.c` `select_idle_sibling`). Sizes and offsets are bytes, times those of the drive's clock.
#[derive(Debug)]
pub struct Kernel<D> {
    pub(crate) config: KernelConfig,
    pub(crate) queue: Queue<D>,
    pub(crate) cache: PageCache,
    pub(crate) inodes: BTreeMap<Ino, Inode>,
    pub(crate) names: BTreeMap<String, Ino>,
    pub(crate) handles: Vec<Option<OpenFile>>,
    pub(crate) free_handles: Vec<u32>,
    pub(crate) maps: Vec<Option<Map>>,
    pub(crate) layout: Box<dyn Layout>,
    pub(crate) journal: Journal,
    pub(crate) fast_commits: FastCommits,
    pub(crate) buffers: Buffers,
    pub(crate) flusher: Flusher,
    pub(crate) inodegc: InodeGc,
    pub(crate) tickets: HashMap<u64, Ticket, FxBuildHasher>,
    pub(crate) next_ticket: u64,
    /// Blocks that dirty pages will need.
    pub(crate) delayed: u64,
    /// Discards under way.
    pub(crate) discards: u32,
    /// What a power cut would leave.
    pub(crate) durable: Option<Durable>,
    pub(crate) counters: KernelCounters,
}

impl<D: BlockDevice> Kernel<D> {
    /// Makes a file system on a drive and mounts it. Nothing is written: what `mkfs` writes is not part of any
    /// workload.
    ///
    /// # Errors
    /// [`KernelError::Config`] where the configuration or the drive is not fit for it.
    pub fn new(device: D, config: KernelConfig) -> Result<Self> {
        config.check()?;
        let info = device.info();
        if !PAGE.is_multiple_of(info.logical_block.0.max(1)) {
            let text = format!("a drive with sectors of {} cannot hold blocks of 4 KiB", info.logical_block);
            return Err(KernelError::Config(text));
        }
        let capacity = info.capacity.0.min(device.writable().0);
        let layout: Box<dyn Layout> = match config.file_system {
            FileSystemKind::Ext4 => Box::new(Ext4::new(capacity, config.fast_commit)?),
            FileSystemKind::Xfs => {
                if info.logical_block.0 > 512 {
                    let text =
                        format!("XFS writes its log in sectors of 512 bytes; this drive's have {}", info.logical_block);
                    return Err(KernelError::Config(text));
                }
                Box::new(Xfs::new(capacity)?)
            }
        };
        let queue = Queue::new(device, config.queue, config.data);
        let now = queue.now();
        Ok(Self {
            cache: PageCache::new(config.memory.0 / PAGE, config.data),
            inodes: BTreeMap::new(),
            names: BTreeMap::new(),
            handles: Vec::new(),
            free_handles: Vec::new(),
            maps: Vec::new(),
            fast_commits: FastCommits::new(layout.fast_commit_area()),
            layout,
            journal: Journal::default(),
            buffers: Buffers::default(),
            flusher: Flusher::new(now, &config),
            inodegc: InodeGc::default(),
            tickets: HashMap::default(),
            next_ticket: 0,
            delayed: 0,
            discards: 0,
            durable: config.power_cuts.then(Durable::default),
            counters: KernelCounters::default(),
            config,
            queue,
        })
    }

    /// What mounting finds on `device` after the power went: the files of the last transaction that was in the log.
    /// Their bytes are what the drive kept. [`KernelConfig::power_cuts`] must be set.
    ///
    /// # Errors
    /// [`KernelError::Config`] where it is not, or where the drive is not the same size.
    pub fn remount_after_power_cut(self, device: D) -> Result<Self> {
        if device.info().capacity != self.queue.device().info().capacity {
            return Err(KernelError::Config("this is not the drive that the file system was on".to_owned()));
        }
        Self::recover(self.durable, device, self.config)
    }

    /// As [`Self::remount_after_power_cut`], on the drive that it was on, whose own power cut is over.
    ///
    /// # Errors
    /// As there.
    pub fn power_cut(self) -> Result<Self> {
        Self::recover(self.durable, self.queue.into_device(), self.config)
    }

    fn recover(durable: Option<Durable>, device: D, config: KernelConfig) -> Result<Self> {
        let Some(durable) = durable else {
            return Err(KernelError::Config("set power_cuts: what a power cut leaves was not kept".to_owned()));
        };
        let mut next = Self::new(device, config)?;
        let kept: BTreeMap<Ino, String> = durable.names.iter().map(|(name, &ino)| (ino, name.clone())).collect();
        for (ino, name) in &kept {
            let Some(found) = durable.inodes.get(ino) else { continue };
            let runs = found.extents.iter().map(|extent| (extent.physical, extent.blocks));
            let all = runs.chain(found.tree.iter().map(|&block| (block, 1)));
            for (first, blocks) in all {
                if !next.layout.claim(first, blocks) {
                    return Err(KernelError::Config(format!("two files have block {first} after a power cut")));
                }
            }
            let mut inode = Inode::new(0);
            (inode.size, inode.disk_size) = (found.size, found.size);
            (inode.extents, inode.tree) = (found.extents.clone(), found.tree.clone());
            inode.is_cached = false;
            next.inodes.insert(*ino, inode);
            next.names.insert(name.clone(), *ino);
        }
        // Last, so that blocks of the directory do not take a file's.
        kept.iter().for_each(|(ino, name)| next.layout.claim_inode(name, *ino));
        next.durable = Some(durable);
        Ok(next)
    }

    /// What it was configured with.
    pub fn config(&self) -> &KernelConfig {
        &self.config
    }

    /// The drive.
    pub fn device(&self) -> &D {
        self.queue.device()
    }

    /// The drive, for what a wrapper around it has noted. Requests that are made past the kernel break the file system.
    pub fn device_mut(&mut self) -> &mut D {
        self.queue.device_mut()
    }

    /// The drive, with what it has been given; what is only in memory is lost.
    pub fn into_device(self) -> D {
        self.queue.into_device()
    }

    /// The time on the drive's clock, the processor's work included.
    pub fn now(&self) -> Nanos {
        self.queue.now()
    }

    /// What the kernel has counted.
    pub fn counters(&self) -> KernelCounters {
        let (evicted, refaults) = (self.cache.evicted, self.cache.refaults);
        KernelCounters { evicted, refaults, ..self.counters }
    }

    /// What the drive has counted.
    pub fn device_counters(&self) -> DeviceCounters {
        self.queue.device().counters()
    }

    /// Pages in the page cache, and how many of them are dirty.
    pub fn cached_pages(&self) -> (u64, u64) {
        (self.cache.pages(), self.cache.dirty())
    }

    /// Bytes that files may still take.
    pub fn free_space(&self) -> ByteSize {
        ByteSize(self.layout.free_blocks().saturating_sub(self.delayed).saturating_mul(PAGE))
    }

    /// Checks what must hold at every time; for tests.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check_invariants(&self) -> std::result::Result<(), String> {
        self.cache.check()?;
        self.layout.check()?;
        let delayed: u64 = self.inodes.values().map(|inode| inode.delayed.len() as u64).sum();
        if delayed != self.delayed {
            return Err(format!("{delayed} blocks are reserved by files, {} counted", self.delayed));
        }
        for (ino, inode) in &self.inodes {
            if let Some(block) = inode.delayed.iter().find(|&&block| inode.extents.at(block).is_some()) {
                return Err(format!("block {block} of file {ino} has a place and is reserved"));
            }
        }
        let mut used: Vec<(u64, u64)> = self.layout.free_extents();
        for inode in self.inodes.values() {
            used.extend(inode.extents.iter().map(|extent| (extent.physical, extent.blocks)));
            used.extend(inode.tree.iter().map(|&block| (block, 1)));
            used.extend(inode.preallocated.map(|held| (held.physical, held.blocks)));
        }
        used.sort_unstable();
        match used.windows(2).find(|pair| pair[0].0 + pair[0].1 > pair[1].0) {
            Some(pair) => Err(format!("block {} belongs to two, or is free and used", pair[1].0)),
            None => Ok(()),
        }
    }

    /// Enters the kernel: what happened meanwhile is noticed first.
    pub(crate) fn enter(&mut self, cost: Nanos) -> Result<()> {
        let call = self.config.costs.system_call;
        self.queue.charge(Nanos(call.0.saturating_add(cost.0)));
        self.background()
    }

    /// As [`Self::enter`], for calls that change something.
    pub(crate) fn enter_to_write(&mut self, cost: Nanos) -> Result<()> {
        self.enter(cost)?;
        match &self.journal.aborted {
            Some(error) => Err(KernelError::ReadOnly(error.clone())),
            None => Ok(()),
        }
    }

    /// Completions that are there already, and timers that are due.
    pub(crate) fn background(&mut self) -> Result<()> {
        while let Some(done) = self.queue.poll()? {
            self.complete(done)?;
        }
        self.inodegc_tick()?;
        self.flusher_tick()?;
        self.journal_tick()
    }

    /// The program works on the processor for so long, between its calls; what goes on beside it is noticed at the next
    /// one.
    pub fn compute(&mut self, time: Nanos) {
        self.queue.charge(time);
    }

    /// Lets time pass without a call: what goes on beside the task goes on.
    ///
    /// # Errors
    /// When the drive is lost.
    pub fn pause(&mut self, duration: Nanos) -> Result<()> {
        let end = Nanos(self.now().0.saturating_add(duration.0));
        loop {
            self.background()?;
            let left = end.since(self.now());
            if left.0 == 0 {
                return Ok(());
            }
            let busy = self.queue.outstanding() > 0 || self.journal.committing.is_some() || self.flusher.has_work();
            let until_timer = self.next_timer().since(self.now()).0.max(1);
            let step = if busy { POLL_INTERVAL.0 } else { until_timer };
            self.queue.pause(Nanos(step.min(left.0)))?;
        }
    }

    fn next_timer(&self) -> Nanos {
        let others = [self.journal.next_timer(&self.config), self.inodegc.due()];
        others.into_iter().flatten().fold(self.flusher.next_wake(), Nanos::min)
    }

    /// Waits until something holds. The task sleeps, so what it has plugged goes out.
    pub(crate) fn wait_until(&mut self, holds: impl Fn(&Self) -> bool) -> Result<()> {
        let mut slept = false;
        while !holds(self) {
            let Some(done) = self.queue.wait()? else {
                return Err(BlockError::Protocol("the kernel waits for a request that was never made").into());
            };
            slept = true;
            self.complete(done)?;
        }
        if slept {
            self.queue.charge(self.config.costs.wake_up);
        }
        Ok(())
    }

    /// Waits for one completion; whether there was any to wait for.
    pub(crate) fn wait_for_any(&mut self) -> Result<bool> {
        match self.queue.wait()? {
            Some(done) => {
                self.complete(done)?;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    pub(crate) fn new_ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.tickets.insert(self.next_ticket, Ticket::default());
        self.next_ticket
    }

    /// Submits a request that a ticket waits for.
    pub(crate) fn submit_for(&mut self, ticket: u64, bio: Bio) -> Result<()> {
        if let Some(waiting) = self.tickets.get_mut(&ticket) {
            waiting.pending += bio.bytes.max(1);
        }
        Ok(self.queue.submit(bio)?)
    }

    /// Whether all requests of a ticket have completed.
    pub(crate) fn is_redeemable(&self, ticket: u64) -> bool {
        self.tickets.get(&ticket).is_none_or(|waiting| waiting.pending == 0)
    }

    /// Waits for all requests of a ticket.
    pub(crate) fn redeem(&mut self, ticket: u64) -> Result<Ticket> {
        self.wait_until(|this| this.tickets.get(&ticket).is_none_or(|waiting| waiting.pending == 0))?;
        let ticket = self.tickets.remove(&ticket).unwrap_or_default();
        match ticket.error {
            Some(error) => Err(error.into()),
            None => Ok(ticket),
        }
    }

    /// A flush, waited for, where the drive has a volatile cache.
    pub(crate) fn flush_drive(&mut self) -> Result<()> {
        if !self.config.queue.volatile_cache {
            return Ok(());
        }
        let ticket = self.new_ticket();
        self.submit_for(ticket, Bio::flush(Purpose::Ticket(ticket)))?;
        self.redeem(ticket).map(|_| ())
    }

    /// A request has completed.
    fn complete(&mut self, done: Done) -> Result<()> {
        let Done { operation, parts, result, data } = done;
        let mut at = 0;
        for part in parts {
            let bytes = part.bytes as usize;
            let own = data.as_deref().and_then(|data| data.get(at..at + bytes));
            at += bytes;
            let units = part.bytes.max(1);
            match part.purpose {
                Purpose::ReadPages { ino, index, pages } => self.end_read(ino, index, pages, &result, own),
                Purpose::WritePages { ino, index, pages } => self.end_writeback(ino, index, pages, &result),
                Purpose::Ticket(ticket) => self.end_ticket(ticket, units, &result, None),
                Purpose::Direct { ticket, at } => {
                    let read = own.filter(|_| operation == Operation::Read).map(|own| (at, own.to_vec()));
                    self.end_ticket(ticket, units, &result, read);
                }
                Purpose::Discard { first, blocks } => {
                    // A discard that failed is no error: the blocks are free all the same.
                    self.layout.release(first, blocks);
                    self.discards -= 1;
                }
                Purpose::Commit => self.end_commit_request(units, &result)?,
                Purpose::Nothing => {}
            }
        }
        Ok(())
    }

    fn end_ticket(
        &mut self,
        ticket: u64,
        units: u64,
        result: &std::result::Result<(), BlockError>,
        read: Option<(u64, Vec<u8>)>,
    ) {
        let Some(waiting) = self.tickets.get_mut(&ticket) else { return };
        waiting.pending = waiting.pending.saturating_sub(units);
        waiting.read.extend(read);
        if let Err(error) = result {
            waiting.error.get_or_insert_with(|| error.clone());
        }
    }

    pub(crate) fn end_read(
        &mut self,
        ino: Ino,
        index: u64,
        pages: u32,
        result: &std::result::Result<(), BlockError>,
        data: Option<&[u8]>,
    ) {
        for (number, index) in (index..index + u64::from(pages)).enumerate() {
            let Some(id) = self.cache.find(ino, index) else { continue };
            let folio = self.cache.folio_mut(id);
            let from = (index - folio.index) as usize * PAGE as usize;
            let source = data.and_then(|data| data.get(number * PAGE as usize..(number + 1) * PAGE as usize));
            if let (Some(target), Some(source)) = (&mut folio.data, source) {
                target[from..from + PAGE as usize].copy_from_slice(source);
            }
            folio.pending = folio.pending.saturating_sub(1);
            if result.is_err() {
                folio.flags |= flag::ERROR;
            }
            if folio.pending == 0 {
                folio.flags &= !flag::LOCKED;
                if !folio.has(flag::ERROR) {
                    folio.flags |= flag::UPTODATE;
                }
            }
        }
    }

    /// The size of an open file, for whoever keeps track of it: no call of the program's, so it costs nothing.
    ///
    /// # Errors
    /// [`KernelError::BadHandle`]
    pub fn size(&self, file: FileHandle) -> Result<ByteSize> {
        let ino = self.handle(file)?.ino;
        Ok(ByteSize(self.inodes.get(&ino).map_or(0, |inode| inode.size)))
    }

    /// The size of the file of that name, or `None`; it costs nothing either.
    pub fn size_of(&self, name: &str) -> Option<ByteSize> {
        let inode = self.names.get(name).and_then(|ino| self.inodes.get(ino))?;
        Some(ByteSize(inode.size))
    }

    /// How often blocks of the file of that name were allocated or freed: while this stays, so do the extents of its
    /// [`Self::status`].
    pub fn extent_changes(&self, name: &str) -> Option<u64> {
        let inode = self.names.get(name).and_then(|ino| self.inodes.get(ino))?;
        Some(inode.extents.changes())
    }

    /// What `stat` says of a file.
    ///
    /// # Errors
    /// [`KernelError::NotFound`]
    pub fn status(&self, name: &str) -> Result<FileStatus> {
        let inode = self.names.get(name).and_then(|ino| Some((*ino, self.inodes.get(ino)?)));
        let (ino, inode) = inode.ok_or_else(|| KernelError::NotFound(name.to_owned()))?;
        let place = |block: u64| ByteSize(block * PAGE);
        let extents = inode.extents.iter();
        let dirty = self.cache.pages_of(ino).map_or(0, |pages| pages.marked(crate::mm::xarray::Mark::Dirty));
        Ok(FileStatus {
            size: ByteSize(inode.size),
            allocated: place(inode.extents.blocks()),
            extents: extents
                .map(|extent| (place(extent.logical), place(extent.physical), place(extent.blocks)))
                .collect(),
            dirty: place(dirty),
        })
    }

    /// The names of all files, in order.
    pub fn list(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }
}
