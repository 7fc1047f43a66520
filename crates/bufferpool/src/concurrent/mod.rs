//! A buffer pool that threads share: bytes in frames, latches, write-back in batches, checkpoints.
//!
//! ```text
//!   read · write · pin ─▶ word of the page ─held─▶ guard            the hit is noted, without a lock (hits)
//!                                  └absent─▶ decide: one lock, no I/O (miss): victim, batch, frames
//!                                              └─▶ PageStore: batch written, page and prefetched pages read, together
//!                                                    └─▶ word: resident; frames of what was written are free
//! ```
//!
//! | file | what it is |
//! |---|---|
//! | `word.rs` | the state of each page in one word, and where threads wait for it |
//! | `readers.rs` | readers of pages that nobody writes, who leave no trace in the words |
//! | `hits.rs` | how the policy hears of hits |
//! | `miss.rs` | a page without a frame: what is evicted, what is written, what is read |
//! | `write_back.rs` | ends of writes, and checkpoints |
//! | `store.rs` | [`PageStore`]: a file with direct I/O and io_uring, or any block device |
//! | `frames.rs`, `guard.rs` | memory, and who may use it |
//!
//! Policies, ACE and prefetchers are those of the simulator, by the steps of [`Steps`](crate::pool::Steps): with one
//! thread, the pool decides and counts as a simulation of the same accesses does.
//!
//! # Rules
//!
//! - **Nothing acknowledged is lost.** When [`BufferPool::checkpoint`] returns, every change whose guard was dropped
//!   before the call is durable. Other changes may be on the store or not, page by page. A pool is no log: who needs
//!   changes of several pages to be there together writes a log ahead, and keeps pages back until their log is durable
//!   ([`BufferPoolOptions::before_write`]).
//! - **A write that fails loses nothing.** Its pages stay in memory and dirty, the caller whose miss or checkpoint it
//!   was is told, and the next checkpoint tries again. A flush that fails is final: the system may forget what it could
//!   not write and say the next time that all is well.
//! - **A pinned page is never evicted.** When every frame is pinned, a miss is refused ([`PoolError::AllPinned`]).
//! - **Latches** are for short: who holds some and wants more has to take them in an order, as with locks. Readers go
//!   before a writer that waits. A thread must not call [`BufferPool::checkpoint`] while it holds a page for writing.
//!
//! **Memory**: 12 to 20 bytes for each page of the store, the frames, and [`BufferPoolOptions::spare_frames`] more for
//! images on their way.

mod frames;
pub mod governed;
mod guard;
mod hits;
mod miss;
mod readers;
pub mod store;
mod word;
mod write_back;

use serde::Serialize;

use crate::ace::Ace;
use crate::directory::Page;
use crate::error::PoolError;
use crate::policy::{PolicySpec, Shape};
use crate::pool::{Access, AnyPool, Counts, EvictionPlan, PoolOptions};
use crate::prefetch::Prefetch;
use crate::sync::{Condvar, Mutex, MutexGuard, own_number};
use frames::Frames;
pub use governed::{GovernedStore, rate_limits};
use guard::Held;
pub use guard::{PinnedPage, ReadPage, WritePage};
use hits::{Hits, RingPositions};
use miss::Asked;
use readers::ReaderSlot;
pub use store::{DeviceStore, FileStore, PageImage, PageStore};
use word::{FRAMES_MAX, Fix, Hold, PageWord, Waiters};

/// Asked before pages are written; an error keeps them back, and they stay dirty.
pub type BeforeWrite = Box<dyn Fn(&[PageImage]) -> Result<(), String> + Send + Sync>;

/// How a pool is made.
pub struct BufferPoolOptions {
    /// Frames that the policy manages.
    pub frames: usize,
    /// Which page is evicted.
    pub policy: PolicySpec,
    /// How dirty pages are written back; n_w should be the drive's k_w.
    pub ace: Ace,
    /// What is read along with a page that missed when a dirty one is evicted.
    pub prefetch: Prefetch,
    /// Frames beside, for pages on their way to the store; `None` for 32 misses at a time.
    pub spare_frames: Option<usize>,
    /// Asked before pages are written, with their images: where a log has to be durable before its pages. It must not
    /// use the pool, and must not panic: who waits for these pages would wait for ever.
    pub before_write: Option<BeforeWrite>,
}

impl BufferPoolOptions {
    /// So many frames, Clock Sweep, one write for one read, no prefetching.
    ///
    /// # Panics
    /// Never: the policy is one of the registry.
    pub fn new(frames: usize) -> Self {
        #[allow(clippy::expect_used, reason = "a test asks for every policy of the registry by its name")]
        let policy = PolicySpec::parse("clock-sweep").expect("a policy of the registry");
        Self { frames, policy, ace: Ace::CLASSIC, prefetch: Prefetch::None, spare_frames: None, before_write: None }
    }

    /// With another policy.
    pub fn with_policy(self, policy: PolicySpec) -> Self {
        Self { policy, ..self }
    }

    /// With another way to write back.
    pub fn with_ace(self, ace: Ace) -> Self {
        Self { ace, ..self }
    }

    /// With prefetching.
    pub fn with_prefetch(self, prefetch: Prefetch) -> Self {
        Self { prefetch, ..self }
    }

    /// Pages that one miss evicts at most.
    fn evictions(&self) -> usize {
        let evict =
            self.ace.evict.unwrap_or(if self.prefetch == Prefetch::None { 1 } else { self.ace.write_back_batch });
        evict.clamp(1, self.frames.max(1))
    }

    /// Frames for images on their way: enough for one miss at least.
    fn spares(&self) -> usize {
        self.spare_frames.unwrap_or(32 * self.evictions()).max(self.evictions())
    }
}

/// What happened so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PoolStatistics {
    /// Pages that were requested.
    pub accesses: u64,
    /// Those of them that had no frame.
    pub misses: u64,
    /// Pages that were evicted.
    pub evictions: u64,
    /// Victims that were dirty.
    pub dirty_evictions: u64,
    /// Batches that were written when a dirty page was evicted.
    pub write_back_operations: u64,
    /// Pages in them.
    pub pages_written: u64,
    /// Pages that checkpoints wrote.
    pub checkpoint_pages: u64,
    /// Pages that were read before anybody asked.
    pub pages_prefetched: u64,
    /// Those of them that somebody requested while they were there.
    pub prefetched_used: u64,
    /// Writes that failed.
    pub failed_writes: u64,
    /// Dirty pages that could not be written when they were evicted and wait for the next attempt.
    pub waiting_pages: u64,
}

/// What is decided under the one lock.
struct Core {
    policy: Box<dyn AnyPool>,
    heard: RingPositions,
    /// Frames without a page.
    free: Vec<u32>,
    /// By frame: the page that was put there last.
    frame_pages: Vec<Page>,
    /// Dirty pages that were evicted and could not be written.
    orphans: Vec<Page>,
    /// Writes so far, and those that have not ended.
    writes_begun: u64,
    under_way: Vec<u64>,
    failed_writes: u64,
    checkpoint_pages: u64,
    /// Scratch space of a miss.
    plan: EvictionPlan,
    passed_over: Vec<Page>,
}

/// A buffer pool that threads share.
///
/// ```
/// use flashwise_block::ByteSize;
/// use flashwise_bufferpool::concurrent::DeviceStore;
/// use flashwise_bufferpool::{Ace, BufferPool, BufferPoolOptions, Page};
/// use flashwise_ssd::{DeviceConfig, SimulatedSsd};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let drive = SimulatedSsd::new(DeviceConfig::preset("samsung-960-evo")?, 1)?;
/// let options = BufferPoolOptions::new(1000).with_ace(Ace::of(8));
/// let pool = BufferPool::new(DeviceStore::new(drive, 4096)?, options)?;
/// pool.write(Page(7))?[..5].copy_from_slice(b"hello");
/// pool.checkpoint()?;
/// assert_eq!(&pool.read(Page(7))?[..5], b"hello");
/// # Ok(())
/// # }
/// ```
pub struct BufferPool<S> {
    store: S,
    words: Box<[PageWord]>,
    waiters: Waiters,
    frames: Frames,
    hits: Hits,
    core: Mutex<Core>,
    /// A write has ended, or a frame has become free.
    changed: Condvar,
    options: BufferPoolOptions,
    /// Why no flush counts any more.
    failed_flush: Mutex<Option<String>>,
}

impl<S: PageStore> BufferPool<S> {
    /// An empty pool over a store.
    ///
    /// # Errors
    /// When there is no frame, the store or the pool is too large, or the policy refuses a parameter.
    pub fn new(store: S, options: BufferPoolOptions) -> Result<Self, PoolError> {
        let (pages, page_bytes, frames) = (store.pages(), store.page_bytes(), options.frames);
        if frames == 0 {
            return Err(PoolError::NoFrames);
        }
        let too_large = |why| PoolError::TooManyPages { frames: frames as u64, pages, page_bytes, why };
        if pages == 0 || pages > u64::from(Access::PAGES_MAX) {
            return Err(too_large("a store has 1 to 2,147,483,646 pages"));
        }
        let all = frames.saturating_add(options.spares());
        if all as u64 > FRAMES_MAX {
            return Err(too_large("a pool has at most 268,435,456 frames, the spare ones included"));
        }
        let memory = Frames::new(all, page_bytes).ok_or_else(|| too_large("it does not fit into the address space"))?;
        let shape = Shape { frames, pages: pages as usize, blocks: [].into() };
        let next = |page: u64| if page + 1 < pages { page as u32 + 1 } else { u32::MAX };
        let next_pages: Vec<u32> = match options.prefetch.follows_streams() {
            true => (0..pages).map(next).collect(),
            false => Vec::new(),
        };
        let pool_options = PoolOptions { ace: options.ace, prefetch: options.prefetch, next_pages: next_pages.into() };
        let core = Core {
            policy: options.policy.pool(&shape, &pool_options)?,
            heard: RingPositions::START,
            free: (0..all as u32).rev().collect(),
            frame_pages: vec![Page(0); all],
            orphans: Vec::new(),
            writes_begun: 0,
            under_way: Vec::new(),
            failed_writes: 0,
            checkpoint_pages: 0,
            plan: EvictionPlan::default(),
            passed_over: Vec::new(),
        };
        Ok(Self {
            store,
            words: (0..pages).map(|_| PageWord::absent()).collect(),
            waiters: Waiters::new(),
            frames: memory,
            hits: Hits::new(),
            core: Mutex::new(core),
            changed: Condvar::new(),
            options,
            failed_flush: Mutex::new(None),
        })
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The store back. Dirty pages are lost: [`checkpoint`](Self::checkpoint) before.
    pub fn into_store(self) -> S {
        self.store
    }

    /// A page for reading: from its frame, or from the store.
    ///
    /// # Errors
    /// When there is no such page, every frame is pinned, the read fails, or the write of what had to be evicted for it
    /// fails.
    #[inline]
    pub fn read(&self, page: Page) -> Result<ReadPage<'_>, PoolError> {
        self.hold(page, Hold::Shared, Asked::Read).map(ReadPage)
    }

    /// A page for writing. It is dirty from now on.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[inline]
    pub fn write(&self, page: Page) -> Result<WritePage<'_>, PoolError> {
        self.hold(page, Hold::Exclusive, Asked::Write).map(WritePage)
    }

    /// A page for writing that is zeros, whatever is in the store: it is not read.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn write_new(&self, page: Page) -> Result<WritePage<'_>, PoolError> {
        let mut page = self.hold(page, Hold::Exclusive, Asked::New).map(WritePage)?;
        page.fill(0);
        Ok(page)
    }

    /// A page that stays in its frame and is latched later.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn pin(&self, page: Page) -> Result<PinnedPage<'_>, PoolError> {
        self.hold(page, Hold::Pinned, Asked::Read).map(PinnedPage)
    }

    fn word(&self, page: Page) -> Result<&PageWord, PoolError> {
        let no_such = || PoolError::NoSuchPage { page: page.0, last: self.words.len() - 1 };
        self.words.get(page.0 as usize).ok_or_else(no_such)
    }

    #[inline]
    fn hold(&self, page: Page, hold: Hold, asked: Asked) -> Result<Held<'_>, PoolError> {
        let word = self.word(page)?;
        // What holds a page waits for the reads before it, and the reads behind it wait for that: unless its bytes are
        // on their way by then, each hit takes as long as memory does.
        self.frames.expect(word.probable_frame());
        let own = own_number();
        if hold == Hold::Shared
            && let Some((frame, place)) = word.announce(own, &self.waiters)
        {
            self.note(own, Access::new(page, false));
            return Ok(self.held(page, word, frame, hold, Some(place)));
        }
        self.hold_counted(page, word, hold, asked, own)
    }

    /// Holds a page in a way that its word tells.
    fn hold_counted<'a>(
        &'a self,
        page: Page,
        word: &'a PageWord,
        hold: Hold,
        asked: Asked,
        own: usize,
    ) -> Result<Held<'a>, PoolError> {
        loop {
            let fixed = match word.try_hold(hold, &self.waiters) {
                Fix::Blocked(_) | Fix::Announced => word.hold(hold, &self.waiters),
                fixed => fixed,
            };
            match fixed {
                Fix::Held(frame) => {
                    let may_announce = self.note(own, Access::new(page, hold == Hold::Exclusive));
                    if may_announce && hold == Hold::Shared {
                        word.let_announce();
                    }
                    return Ok(self.held(page, word, frame, hold, None));
                }
                Fix::Absent if word.begin_load() => {
                    let frame = self.load(page, hold, asked)?;
                    return Ok(self.held(page, word, frame, hold, None));
                }
                Fix::Absent | Fix::Blocked(_) | Fix::Announced => {}
            }
        }
    }

    /// Notes a hit, and tells the policy when it is time; whether readers of the page may announce themselves.
    #[inline]
    fn note(&self, own: usize, access: Access) -> bool {
        let noted = self.hits.note(own, access);
        if noted.is_due {
            self.tell_policy(own);
        }
        noted.may_announce
    }

    #[inline]
    fn held<'a>(
        &'a self,
        page: Page,
        word: &'a PageWord,
        frame: u32,
        hold: Hold,
        place: Option<&'a ReaderSlot>,
    ) -> Held<'a> {
        Held { page, word, waiters: &self.waiters, frames: &self.frames, frame, hold, place }
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// Tells the policy of a ring's hits, if it is not busy.
    #[cold]
    fn tell_policy(&self, ring: usize) {
        if let Ok(mut core) = self.core.try_lock() {
            let Core { heard, policy, .. } = &mut *core;
            self.hits.drain(ring, heard, |access| policy.hit(access.page(), access.is_write()));
        }
    }

    /// What happened so far.
    pub fn statistics(&self) -> PoolStatistics {
        let mut core = self.lock();
        core.drain(&self.hits);
        let counts = core.policy.counts();
        PoolStatistics {
            accesses: self.hits.count() + counts.misses,
            misses: counts.misses,
            evictions: counts.evictions,
            dirty_evictions: counts.dirty_evictions,
            write_back_operations: counts.write_back_operations,
            pages_written: counts.pages_written,
            checkpoint_pages: core.checkpoint_pages,
            pages_prefetched: counts.prefetched,
            prefetched_used: counts.prefetched_used,
            failed_writes: core.failed_writes,
            waiting_pages: core.orphans.len() as u64,
        }
    }

    /// Counts of the policy's pool, with sizes of batches and reads.
    pub fn counts(&self) -> Counts {
        let mut core = self.lock();
        core.drain(&self.hits);
        let counts = core.policy.counts();
        Counts { accesses: self.hits.count() + counts.misses, ..counts.clone() }
    }
}

impl Core {
    fn drain(&mut self, hits: &Hits) {
        let Self { heard, policy, .. } = self;
        hits.drain_all(heard, |access| policy.hit(access.page(), access.is_write()));
    }
}
