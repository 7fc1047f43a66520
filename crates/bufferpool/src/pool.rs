//! A buffer pool without its bytes: hits, misses, victims, dirty bits, pins, batched write-backs, prefetching.
//!
//! ```text
//!   access ─▶ directory ─hit──▶ policy.hit
//!                       └miss─▶ policy.miss ─▶ policy.victim ─dirty─▶ policy.order ─▶ storage.write ─▶ policy.evict
//!                                                            └clean──────────────────────────────────▶ policy.evict
//!                               storage.read ─▶ policy.load, policy.prefetch
//! ```
//!
//! What a page is read from and written to is a [`Storage`]: nothing, for counting; a simulated drive; a test.

mod steps;

use std::ops::ControlFlow;

pub use steps::{EvictionPlan, Steps};

use crate::ace::{Ace, Reach};
use crate::directory::{Directory, Entry, Found, Page};
use crate::error::PoolError;
use crate::policy::{Policy, Shape};
use crate::prefetch::{Prefetch, Prefetcher};

/// One access of a trace: a page, and whether it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access(u32);

const WRITE: u32 = 1 << 31;

impl Access {
    /// Pages that can be numbered.
    pub const PAGES_MAX: u32 = WRITE - 1;

    /// Of a page below [`PAGES_MAX`](Self::PAGES_MAX).
    #[inline]
    pub const fn new(page: Page, is_write: bool) -> Self {
        Self(page.0 & !WRITE | if is_write { WRITE } else { 0 })
    }

    /// The page.
    #[inline]
    pub const fn page(self) -> Page {
        Page(self.0 & !WRITE)
    }

    /// Whether it changes the page.
    #[inline]
    pub const fn is_write(self) -> bool {
        self.0 & WRITE != 0
    }
}

/// Where pages are read from and written to.
pub trait Storage {
    /// Writes pages, all at once.
    ///
    /// # Errors
    /// Says why; none of the pages counts as written then.
    fn write(&mut self, _pages: &[Page]) -> Result<(), String> {
        Ok(())
    }

    /// Reads pages, all at once; the first is the one that is waited for.
    ///
    /// # Errors
    /// Says why.
    fn read(&mut self, _pages: &[Page]) -> Result<(), String> {
        Ok(())
    }

    /// Told when a page loses its frame.
    fn evicted(&mut self, _page: Page) {}
}

/// Nothing is read or written.
impl Storage for () {}

/// How a pool works, beside its policy.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// Write-backs and evictions.
    pub ace: Ace,
    /// What is prefetched, when a dirty page is evicted.
    pub prefetch: Prefetch,
    /// By page: the page behind it on the drive, or `u32::MAX`; empty where nobody asks for it.
    pub next_pages: std::sync::Arc<[u32]>,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self { ace: Ace::CLASSIC, prefetch: Prefetch::None, next_pages: [].into() }
    }
}

/// What happened so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Accesses that were served.
    pub accesses: u64,
    /// Accesses to pages without a frame.
    pub misses: u64,
    /// Victims that were dirty.
    pub dirty_evictions: u64,
    /// Pages that were evicted, clean or cleaned.
    pub evictions: u64,
    /// Batches of pages that were written together.
    pub write_back_operations: u64,
    /// Pages in them.
    pub pages_written: u64,
    /// By size of the batch, from 0: how many there were.
    pub batches: Vec<u64>,
    /// By pages that were read together, from 0: how many such reads there were.
    pub reads: Vec<u64>,
    /// Pages that were read before anybody asked.
    pub prefetched: u64,
    /// Those of them that somebody requested while they were there.
    pub prefetched_used: u64,
}

/// A pool with a policy.
pub struct Pool<P> {
    policy: P,
    pages: Directory,
    ace: Ace,
    prefetcher: Option<Prefetcher>,
    counts: Counts,
    /// Dirty pages that are written now, the victim first.
    batch: Vec<Entry>,
    /// Pages that are evicted now, the victim first.
    victims: Vec<Entry>,
    /// Pages that are read now, the one that missed first.
    reading: Vec<Page>,
    /// Pages of the batch.
    writing: Vec<Page>,
}

impl<P: Policy> Pool<P> {
    /// An empty pool.
    pub fn new(policy: P, shape: &Shape, options: &PoolOptions) -> Self {
        let ace = Ace { write_back_batch: options.ace.write_back_batch.max(1), ..options.ace };
        let prefetcher = Prefetcher::new(options.prefetch, shape.pages, &options.next_pages);
        let most_read = ace.evict.unwrap_or(ace.write_back_batch).max(1);
        let counts = Counts {
            batches: vec![0; ace.write_back_batch.min(shape.frames) + 1],
            reads: vec![0; most_read.min(shape.frames) + 1],
            ..Counts::default()
        };
        let pages = Directory::new(shape.frames, shape.pages, policy.ghosts());
        let (batch, victims, reading, writing) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { policy, pages, ace, prefetcher, counts, batch, victims, reading, writing }
    }

    /// Serves one access.
    ///
    /// # Errors
    /// When every frame is pinned, the page's number is beyond the shape, or the storage fails. The page is then not in
    /// the pool, and no other one has been lost.
    #[inline]
    pub fn access(&mut self, access: Access, storage: &mut impl Storage) -> Result<(), PoolError> {
        match self.pages.find(access.page()) {
            Found::Resident(entry) => self.hit(entry, access),
            _ => self.miss(access, storage)?,
        }
        self.counts.accesses += 1;
        Ok(())
    }

    #[inline]
    fn hit(&mut self, entry: Entry, access: Access) {
        if let Some(prefetcher) = &mut self.prefetcher {
            prefetcher.saw(access.page());
            self.counts.prefetched_used += u64::from(self.pages.take_prefetched(entry));
        }
        self.policy.hit(entry, access.is_write(), &self.pages);
        self.pages.mark_dirty_if(entry, access.is_write());
    }

    fn miss(&mut self, access: Access, storage: &mut impl Storage) -> Result<(), PoolError> {
        let page = access.page();
        self.check_number(page)?;
        if self.pages.is_full() && self.pages.is_all_pinned() {
            return Err(self.all_pinned());
        }
        let ghost = self.announce(page);
        let served = self.make_room(page, storage).and_then(|()| self.read(page, storage));
        if let Err(error) = served {
            self.cancel_load(page);
            return Err(error);
        }
        // Making room may have let the page's own ghost go.
        let known = if ghost.is_some() { self.pages.find(page) } else { Found::Unknown };
        self.place(access, known)?;
        for place in 1..self.reading.len() {
            self.place_prefetched(self.reading[place])?;
        }
        Ok(())
    }

    fn check_number(&self, page: Page) -> Result<(), PoolError> {
        let pages = self.pages.pages();
        match (page.0 as usize) < pages {
            true => Ok(()),
            false => Err(PoolError::NoSuchPage { page: page.0, last: pages.saturating_sub(1) }),
        }
    }

    #[cold]
    fn all_pinned(&self) -> PoolError {
        PoolError::AllPinned { frames: self.pages.frames() }
    }

    /// Tells prefetcher and policy that a page is missing; its ghost, which the policy has taken out of its list.
    #[inline]
    fn announce(&mut self, page: Page) -> Option<Entry> {
        if let Some(prefetcher) = &mut self.prefetcher {
            prefetcher.saw(page);
            prefetcher.missed(page);
        }
        let ghost = match self.pages.find(page) {
            Found::Ghost(entry) => Some(entry),
            _ => None,
        };
        self.policy.miss(ghost, &mut self.pages);
        ghost
    }

    /// Gives the page that missed a frame.
    #[inline]
    fn place(&mut self, access: Access, known: Found) -> Result<(), PoolError> {
        let entry = self.pages.admit(access.page(), known).ok_or_else(|| self.all_pinned())?;
        self.policy.load(entry, access.is_write(), &mut self.pages);
        self.pages.mark_dirty_if(entry, access.is_write());
        self.counts.misses += 1;
        Ok(())
    }

    /// Gives a page a frame that was read beside the one that missed.
    fn place_prefetched(&mut self, page: Page) -> Result<(), PoolError> {
        if let Found::Ghost(ghost) = self.pages.find(page) {
            self.policy.drop_ghost(ghost, &mut self.pages);
        }
        let entry = self.pages.admit(page, Found::Unknown).ok_or_else(|| self.all_pinned())?;
        self.policy.prefetch(entry, &mut self.pages);
        self.pages.mark_prefetched(entry);
        self.counts.prefetched += 1;
        Ok(())
    }

    /// The page that missed is not going to be loaded: its ghost, which the policy has taken out of its list, is gone.
    fn cancel_load(&mut self, page: Page) {
        if let Found::Ghost(entry) = self.pages.find(page) {
            self.policy.drop_ghost(entry, &mut self.pages);
        }
    }

    /// Evicts pages until one frame at least is empty, and decides what is read together with the page that missed.
    fn make_room(&mut self, missing: Page, storage: &mut impl Storage) -> Result<(), PoolError> {
        self.reading.clear();
        if !self.pages.is_full() {
            return Ok(());
        }
        let victim = self.policy.victim(&self.pages).ok_or_else(|| self.all_pinned())?;
        if !self.ace.is_batching() && self.prefetcher.is_none() {
            return self.replace(victim, storage);
        }
        if !self.pages.is_dirty(victim) {
            self.evict(victim, storage);
            return Ok(());
        }
        self.reading.push(missing);
        self.victims.clear();
        self.victims.push(victim);
        self.collect(victim, |_| true);
        self.write_back(storage)?;
        self.counts.dirty_evictions += 1;
        // Frames are used again from the last one that became free on. The page that missed is to have the victim's, so
        // that a hand that goes around the frames leaves it behind. Ghosts are remembered in the order of their are
        // evicted.
        if self.policy.ghosts() == 0 {
            self.victims.reverse();
        }
        for place in 0..self.victims.len() {
            self.evict(self.victims[place], storage);
        }
        Ok(())
    }

    /// Which pages are written, which are evicted, and which are read beside the one that missed; pages that nobody
    /// `may` take are left out.
    fn collect(&mut self, victim: Entry, mut may: impl FnMut(Page) -> bool) {
        let Self { policy, pages, ace, prefetcher, batch, victims, reading, .. } = self;
        batch.clear();
        batch.push(victim);
        let mut evictions = ace.evict.unwrap_or(1);
        if let Some(prefetcher) = prefetcher {
            // Only so many are evicted for prefetching as there is something to prefetch.
            let most = ace.evict.unwrap_or(ace.write_back_batch).saturating_sub(1);
            let missing = reading[0];
            prefetcher.candidates(missing, most, |page| !matches!(pages.find(page), Found::Resident(_)), reading);
            evictions = evictions.max(reading.len());
        }
        let (batch_most, dirty) = (ace.write_back_batch.min(pages.dirty()), ace.reach == Reach::Dirty);
        if batch_most <= 1 && evictions <= 1 {
            return;
        }
        let mut positions = 1;
        let mut take = |entry| {
            if entry == victim || !may(pages.page(entry)) {
                return ControlFlow::Continue(());
            }
            positions += 1;
            let in_reach = dirty || positions <= ace.write_back_batch;
            let is_written = pages.is_dirty(entry) && batch.len() < batch_most && in_reach;
            if is_written {
                batch.push(entry);
            }
            // A dirty page that is not written stays.
            if victims.len() < evictions && (is_written || !pages.is_dirty(entry)) {
                victims.push(entry);
            }
            let has_all = batch.len() >= batch_most || (!dirty && positions >= ace.write_back_batch);
            if has_all && victims.len() >= evictions { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        if dirty && evictions <= 1 {
            policy.order_of_dirty(pages, &mut take);
        } else {
            policy.order(pages, &mut take);
        }
        reading.truncate(victims.len());
    }

    fn write_back(&mut self, storage: &mut impl Storage) -> Result<(), PoolError> {
        self.writing.clear();
        self.writing.extend(self.batch.iter().map(|&entry| self.pages.page(entry)));
        let size = self.writing.len();
        storage.write(&self.writing).map_err(|reason| PoolError::WriteFailed { pages: size, reason })?;
        self.counts.write_back_operations += 1;
        self.counts.pages_written += size as u64;
        self.counts.batches[size] += 1;
        for &entry in &self.batch {
            self.pages.mark_clean(entry);
            self.policy.written(entry, &self.pages);
        }
        Ok(())
    }

    /// What the classic pool does with a victim. Nobody can guess whether it is dirty, so that is counted and not
    /// branched on, which leaves nothing to guess where policy and storage want nothing to do with it.
    #[inline]
    fn replace(&mut self, victim: Entry, storage: &mut impl Storage) -> Result<(), PoolError> {
        let is_dirty = self.pages.is_dirty(victim);
        if is_dirty {
            let written = storage.write(&[self.pages.page(victim)]);
            written.map_err(|reason| PoolError::WriteFailed { pages: 1, reason })?;
        }
        let written = u64::from(is_dirty);
        self.counts.write_back_operations += written;
        self.counts.pages_written += written;
        self.counts.batches[1] += written;
        self.counts.dirty_evictions += written;
        self.pages.mark_clean(victim);
        if is_dirty {
            self.policy.written(victim, &self.pages);
        }
        self.evict(victim, storage);
        Ok(())
    }

    #[inline]
    fn evict(&mut self, entry: Entry, storage: &mut impl Storage) {
        storage.evicted(self.pages.page(entry));
        self.policy.evict(entry, &mut self.pages);
        self.counts.evictions += 1;
    }

    fn read(&mut self, page: Page, storage: &mut impl Storage) -> Result<(), PoolError> {
        let alone = [page];
        let pages = if self.reading.len() > 1 { &self.reading[..] } else { &alone };
        storage.read(pages).map_err(|reason| PoolError::ReadFailed { page: page.0, reason })?;
        self.counts.reads[pages.len()] += 1;
        Ok(())
    }
}

/// How many accesses ahead a page's place in the table is named to the processor: by the time that the access is
/// [`ENTRY_AHEAD`] away it is there, and with it the entry.
const PAGE_AHEAD: usize = 24;
/// How many accesses ahead what belongs to the entry is named.
const ENTRY_AHEAD: usize = 12;

impl<P: Policy> Pool<P> {
    /// Looks ahead in a trace from the access at a place.
    #[inline]
    fn expect(&self, accesses: &[Access], at: usize) {
        if let Some(access) = accesses.get(at + PAGE_AHEAD) {
            self.pages.expect(access.page());
        }
        if let Some(access) = accesses.get(at + ENTRY_AHEAD) {
            self.policy.expect(access.page(), self.pages.probable_entry(access.page()));
        }
    }
}

/// A pool of any policy.
pub trait AnyPool: Steps + Send {
    /// Serves accesses one after the other, with nothing to read from or write to.
    ///
    /// # Errors
    /// As [`Pool::access`]; the accesses before were served.
    fn replay(&mut self, accesses: &[Access]) -> Result<(), PoolError>;

    /// Serves one access on a storage.
    ///
    /// # Errors
    /// As [`Pool::access`].
    fn access_on(&mut self, access: Access, storage: &mut dyn Storage) -> Result<(), PoolError>;

    /// Holds a page in its frame; false where it has none.
    fn pin(&mut self, page: Page) -> bool;

    /// Lets go of a page.
    ///
    /// # Errors
    /// When nobody holds it.
    fn unpin(&mut self, page: Page) -> Result<(), PoolError>;

    /// What happened so far.
    fn counts(&self) -> &Counts;

    /// What is in the frames.
    fn directory(&self) -> &Directory;
}

/// A storage behind a reference.
struct Behind<'a>(&'a mut dyn Storage);

impl Storage for Behind<'_> {
    fn write(&mut self, pages: &[Page]) -> Result<(), String> {
        self.0.write(pages)
    }

    fn read(&mut self, pages: &[Page]) -> Result<(), String> {
        self.0.read(pages)
    }

    fn evicted(&mut self, page: Page) {
        self.0.evicted(page);
    }
}

impl<P: Policy> AnyPool for Pool<P> {
    fn replay(&mut self, accesses: &[Access]) -> Result<(), PoolError> {
        for (at, &access) in accesses.iter().enumerate() {
            self.expect(accesses, at);
            self.access(access, &mut ())?;
        }
        Ok(())
    }

    fn access_on(&mut self, access: Access, storage: &mut dyn Storage) -> Result<(), PoolError> {
        self.access(access, &mut Behind(storage))
    }

    fn pin(&mut self, page: Page) -> bool {
        let found = self.pages.find(page);
        if let Found::Resident(entry) = found {
            self.pages.pin(entry);
        }
        matches!(found, Found::Resident(_))
    }

    fn unpin(&mut self, page: Page) -> Result<(), PoolError> {
        match self.pages.find(page) {
            Found::Resident(entry) if self.pages.unpin(entry) => Ok(()),
            _ => Err(PoolError::NotPinned { page: page.0 }),
        }
    }

    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn directory(&self) -> &Directory {
        &self.pages
    }
}
