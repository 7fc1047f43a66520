//! Replacement policies: which page is evicted. One file a policy, one trait, one line in the registry.
//!
//! A policy sees entries of the [`Directory`], never pages, and does no I/O. It orders resident pages, remembers ghosts
//! if it wants to, and says
//!
//! - which page is evicted next ([`Policy::victim`]), never one that is pinned;
//! - who is evicted after it if every coming request missed on a new page and wrote it ([`Policy::order`]). The pages
//!   that are written back together are taken from this order. Taking them from the order of the lists instead writes
//!   pages that would have been written again: 35 to 69 % more of them with ARC, 2Q and LFU.
//!
//! # Adding a policy
//!
//! 1. A file here with a type behind [`Policy`], which starts with its source and its exact rule; `lru.rs` is the
//!    shortest.
//! 2. Its `mod` and its line in the list below. With that, `--policy`, the sweeps, the pool that threads share and the
//!    tests that go over all policies know it.
//! 3. Its naive model and its line in `tests/it/naive/models.rs`, with which every access is compared; a test fails
//!    without them.
//! 4. Its row in `docs/guide/pool.md`; a test fails without it, too.
//!
//! A policy need not be in this crate: [`PolicyInfo::of`] makes one of any type behind [`Policy`], for the simulator
//! and for the real pool. `examples/own-policy` does so.

mod arc;
mod ccf_lru;
mod cflru;
mod cflru_c;
mod cflru_e;
mod clean_first;
mod clock;
mod clock_sweep;
mod dl_cflru_e;
mod fifo;
mod lfu;
mod lru;
mod lru_k;
mod lru_wsr;
mod nru;
pub(crate) mod parameters;
mod ranked;
mod registry;
mod s3_fifo;
mod second_chance;
mod sieve;
mod two_q;
mod w_tinylfu;
mod wear;
mod window;

pub use parameters::{Parameters, PolicyError};
pub use registry::{PolicyInfo, PolicySpec, policies};
pub(crate) use wear::BLOCK_PAGES;

use std::ops::ControlFlow;

use crate::directory::{Directory, Entry, Page};

macro_rules! policies {
    ($($policy:ident $module:ident $name:literal $title:literal,)*) => {
        /// Every policy of this crate.
        const POLICIES: &[PolicyInfo] = &[$(PolicyInfo::of::<$module::$policy>($name, $title)),*];
    };
}

policies! {
    Lru          lru           "lru"           "least recently used",
    Fifo         fifo          "fifo"          "first in, first out",
    Nru          nru           "nru"           "not recently used, in four classes",
    SecondChance second_chance "second-chance" "FIFO with a reference bit (second chance)",
    Clock        clock         "clock"         "second chance with a clock hand",
    ClockSweep   clock_sweep   "clock-sweep"   "PostgreSQL's clock sweep, usage counts up to 5",
    Lfu          lfu           "lfu"           "least frequently used",
    TwoQ         two_q         "2q"            "2Q, the full version",
    Arc          arc           "arc"           "adaptive replacement cache",
    Cflru        cflru         "cflru"         "clean-first LRU",
    CflruC       cflru_c       "cflru-c"       "clean-first LRU, dirty pages by frequency",
    CflruE       cflru_e       "cflru-e"       "clean-first LRU, dirty pages by erase count",
    DlCflruE     dl_cflru_e    "dl-cflru-e"    "clean list first, dirty pages by erase count",
    LruWsr       lru_wsr       "lru-wsr"       "LRU with a second chance for dirty pages",
    CcfLru       ccf_lru       "ccf-lru"       "cold clean pages first",
    S3Fifo       s3_fifo       "s3-fifo"       "three FIFO queues",
    Sieve        sieve         "sieve"         "FIFO with a hand, hits do not move pages",
    WTinyLfu     w_tinylfu     "w-tinylfu"     "an LRU window, then admission by frequency",
    LruK         lru_k         "lru-k"         "by the K-th last reference",
}

/// What a policy is made for.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Frames of the pool.
    pub frames: usize,
    /// Pages that there are, numbered from 0.
    pub pages: usize,
    /// By page: its block of 64 neighbours, numbered from 0; empty where nobody asks for it.
    pub blocks: std::sync::Arc<[u32]>,
}

/// Takes the pages that are evicted one after the other, until it has enough.
pub type Taker<'a> = &'a mut dyn FnMut(Entry) -> ControlFlow<()>;

/// A replacement policy.
pub trait Policy: Send + Sized {
    /// Makes one for an empty pool.
    ///
    /// # Errors
    /// When a parameter is out of its range.
    fn new(shape: &Shape, parameters: &mut Parameters) -> Result<Self, PolicyError>;

    /// Most pages that it remembers without a frame.
    fn ghosts(&self) -> usize {
        0
    }

    /// A page in a frame is requested. The directory's dirty bit is still as before.
    fn hit(&mut self, entry: Entry, is_write: bool, pages: &Directory);

    /// A page is going to be requested in a few accesses: what a hit looks at can be named to the processor. The entry
    /// may be none, and the page may have been evicted until then.
    #[inline]
    fn expect(&self, _page: Page, _entry: Entry) {}

    /// A page without a frame is requested, before a victim is looked for; `ghost` is its entry if it is remembered.
    fn miss(&mut self, _ghost: Option<Entry>, _pages: &mut Directory) {}

    /// The page that is evicted next; none only if every page in a frame is pinned. It stays until
    /// [`evict`](Self::evict).
    fn victim(&mut self, pages: &Directory) -> Option<Entry>;

    /// A page loses its frame: it is forgotten or remembered in the directory. It is clean by now.
    fn evict(&mut self, entry: Entry, pages: &mut Directory);

    /// The page that missed has a frame. The directory's dirty bit is set afterwards.
    fn load(&mut self, entry: Entry, is_write: bool, pages: &mut Directory);

    /// A page that was not requested has a frame: it goes where it is evicted next, as far as the policy has such a
    /// place.
    fn prefetch(&mut self, entry: Entry, pages: &mut Directory);

    /// A dirty page was written back and is clean; it stays in its frame.
    fn written(&mut self, _entry: Entry, _pages: &Directory) {}

    /// The pages in the order in which they would be evicted if every coming request missed on a new page and wrote it.
    /// Asked only right after [`victim`](Self::victim) gave a dirty page, which is the first of them. Pages that would
    /// never are evicted because new ones are evicted for ever come last or are left out: each policy says which.
    fn order(&mut self, pages: &Directory, take: Taker<'_>);

    /// The dirty ones of [`order`](Self::order), in that order; clean ones may be among them. For a policy whose order
    /// may lead past many pages that earlier batches have cleaned.
    fn order_of_dirty(&mut self, pages: &Directory, take: Taker<'_>) {
        self.order(pages, take);
    }

    /// A ghost stops being one without being requested.
    fn drop_ghost(&mut self, _entry: Entry, _pages: &mut Directory) {}
}

/// Hands out everything that an iterator gives, leaving out what is held; says whether more is wanted.
fn hand_out(entries: impl Iterator<Item = Entry>, pages: &Directory, take: Taker<'_>) -> ControlFlow<()> {
    for entry in entries.filter(|&entry| pages.is_free(entry)) {
        take(entry)?;
    }
    ControlFlow::Continue(())
}

/// The order of a policy of two lists whose new pages go to the first: that one is evicted where `is_large` says so of
/// its length and of whether nothing was evicted yet, else the second.
fn fall_of_two(
    mut first: impl Iterator<Item = Entry>,
    mut second: impl Iterator<Item = Entry>,
    mut length: usize,
    is_large: impl Fn(usize, bool) -> bool,
    take: Taker<'_>,
) -> ControlFlow<()> {
    let mut is_start = true;
    loop {
        let falls_from_first = is_large(length, is_start);
        let candidate = match (falls_from_first, is_start) {
            (true, true) => first.next().map(|entry| (entry, 0)).or_else(|| second.next().map(|entry| (entry, 1))),
            // A new page would be evicted, and new ones for ever: what is left follows as if there were none.
            (true, false) => first.next().map(|entry| (entry, 0)).or_else(|| second.next().map(|entry| (entry, 0))),
            (false, _) => second.next().map(|entry| (entry, 1)).or_else(|| first.next().map(|entry| (entry, 0))),
        };
        let Some((entry, grown)) = candidate else { return ControlFlow::Continue(()) };
        take(entry)?;
        length += grown;
        is_start = false;
    }
}
