//! S3-FIFO: a small FIFO that most pages leave unasked for, a main one that reinserts, and a FIFO of ghosts.
//!
//! ```text
//!   new page ─▶ small (a tenth) ─requested less than twice─▶ ghost ─requested again─▶ main
//!                               └─at least twice──────────────────────────────────▶ main ─not requested─▶ out
//! ```
//!
//! A hit adds 1 to the page's count, up to 3. If small has its tenth of the frames or more, its oldest pages leave it
//! until one of them is evicted; else the oldest of main is evicted, or, where its count is not 0, loses 1 of it and
//! goes to the front. The count is 0 at load and on the way from small to main.
//! Source: J. Yang, Y. Zhang, Z. Qiu, Y. Yue, K. V. Rashmi, *FIFO Queues are All You Need for Cache Eviction*, SOSP
//! 2023, Algorithm 1.
//!
//! An eviction that starts in small ends there: the paper's `EvictS` and libCacheSim's `S3FIFO_evict_fifo` both loop
//! until a page of small is evicted, also when pages that move to main leave small with less than its share.
//!
//! Parameters: `small`, its share of the frames, default 0.1 and at least one frame; `ghost`, ghosts as a share of the
//! frames, default 0.9; `threshold`, hits on the way to main, default 2 (libCacheSim's); `fill`, where new pages go
//! while frames are empty and small has its share: `small` (default: Algorithm 1 puts every new page there;
//! libCacheSim's until aa0fc40 and its `S3FIFOv0` now), which then is longer than its share until the first pages have
//! been evicted, or `main` (its `S3FIFO` now).

use std::ops::ControlFlow;

use super::parameters::share_of;
use super::{Parameters, Policy, PolicyError, Shape, Taker};
use crate::directory::{Directory, Entry};
use crate::lists::Lists;
use crate::marked::Marked;

const SMALL: usize = 0;
const MAIN: usize = 1;
const GHOST: usize = 2;
const NOWHERE: u8 = 3;
/// Most that is counted.
const MOST: u8 = 3;

/// See the module.
pub(crate) struct S3Fifo {
    lists: Lists,
    /// By entry: its list.
    list: Vec<u8>,
    /// By entry: hits, up to three.
    count: Vec<u8>,
    /// Of small the pages that are dirty or go to main, of main those that were not requested: what decides in which
    /// order dirty pages are evicted. The others, which earlier batches may have cleaned, are not passed again for each
    /// batch.
    deciding: [Marked; 2],
    small_frames: usize,
    ghosts: usize,
    threshold: u8,
    /// New pages go to main while small has its share and nothing has been evicted.
    fills_main: bool,
    was_ghost: bool,
    /// Pages that the imagined future has put into main.
    reinserted: Vec<(Entry, u8)>,
}

impl S3Fifo {
    fn oldest(&self, list: usize, pages: &Directory) -> Option<Entry> {
        self.lists.oldest(list, pages)
    }

    fn put(&mut self, list: usize, entry: Entry, is_deciding: bool) {
        if list != GHOST {
            self.deciding[list].push_front(&self.lists, list, entry, is_deciding);
        }
        self.lists.push_front(list, entry);
        self.list[entry.at()] = list as u8;
    }
}

impl S3Fifo {
    /// The dirty pages in the order of [`order`](Policy::order), counted, until nothing more is wanted or there, or
    /// until the pages would matter that come back to main because they were requested: then `order` has to continue.
    fn hand_out_deciding(&self, pages: &Directory, handed: &mut usize, take: Taker<'_>) -> ControlFlow<()> {
        let of = |list: usize| self.deciding[list].iter(&self.lists, list).filter(|&entry| pages.is_free(entry));
        let (mut small, mut main) = (of(SMALL), of(MAIN));
        let mut length = self.lists.len(SMALL);
        if length >= self.small_frames && self.oldest(SMALL, pages).is_none() {
            return ControlFlow::Continue(());
        }
        // An eviction has started in small and not ended yet.
        let mut ends_in_small = false;
        loop {
            let from_main = !ends_in_small && length < self.small_frames;
            let candidate = if from_main { main.next() } else { small.next() };
            let Some(entry) = candidate else {
                return if from_main { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
            };
            if !from_main && self.count[entry.at()] >= self.threshold {
                length -= 1;
                // What comes next in small may be clean, and then it is not among those that decide.
                let mut next = std::iter::successors(self.lists.newer(entry), |&it| self.lists.newer(it));
                let Some(next) = next.find(|&it| pages.is_free(it)) else { return ControlFlow::Continue(()) };
                ends_in_small = pages.is_dirty(next) || self.count[next.at()] >= self.threshold;
                continue;
            }
            ends_in_small = false;
            length += usize::from(from_main);
            if pages.is_dirty(entry) {
                *handed += 1;
                take(entry)?;
            }
        }
    }
}

impl Policy for S3Fifo {
    fn new(shape: &Shape, parameters: &mut Parameters) -> Result<Self, PolicyError> {
        let small_frames = share_of(shape.frames, parameters.share("small", 0.1, 1.0)?).max(1);
        let ghosts = parameters.ghosts(shape.frames, "ghost", 0.9)?;
        let threshold = parameters.count("threshold", 2, 1..=u64::from(MOST))? as u8;
        let fills_main = parameters.choice("fill", &["small", "main"])? == 1;
        let entries = shape.frames + ghosts + 2;
        Ok(Self {
            lists: Lists::new(entries, 3),
            list: vec![NOWHERE; entries],
            count: vec![0; entries],
            deciding: [Marked::not_begun(), Marked::not_begun()],
            small_frames,
            ghosts,
            threshold,
            fills_main,
            was_ghost: false,
            reinserted: Vec::new(),
        })
    }

    fn ghosts(&self) -> usize {
        self.ghosts + 1
    }

    #[inline]
    fn hit(&mut self, entry: Entry, is_write: bool, _: &Directory) {
        let count = &mut self.count[entry.at()];
        *count = (*count + 1).min(MOST);
        if self.list[entry.at()] == MAIN as u8 {
            if *count == 1 {
                self.deciding[MAIN].mark(entry, false);
            }
        } else if is_write || *count >= self.threshold {
            self.deciding[SMALL].mark(entry, true);
        }
    }

    fn miss(&mut self, ghost: Option<Entry>, _: &mut Directory) {
        self.was_ghost = ghost.is_some();
        if let Some(ghost) = ghost {
            self.lists.remove(GHOST, ghost);
            self.list[ghost.at()] = NOWHERE;
        }
    }

    fn victim(&mut self, pages: &Directory) -> Option<Entry> {
        let prefers_main = self.lists.len(SMALL) < self.small_frames;
        loop {
            let (small, main) = (self.oldest(SMALL, pages), self.oldest(MAIN, pages));
            let entry = if prefers_main { main.or(small) } else { small.or(main) }?;
            let count = self.count[entry.at()];
            if self.list[entry.at()] == MAIN as u8 {
                if count == 0 {
                    return Some(entry);
                }
                self.count[entry.at()] = count - 1;
                self.lists.remove(MAIN, entry);
                self.put(MAIN, entry, count == 1);
            } else if count < self.threshold {
                return Some(entry);
            } else {
                self.count[entry.at()] = 0;
                self.deciding[SMALL].mark(entry, false);
                self.lists.remove(SMALL, entry);
                self.put(MAIN, entry, true);
            }
        }
    }

    fn evict(&mut self, entry: Entry, pages: &mut Directory) {
        self.fills_main = false;
        let list = usize::from(self.list[entry.at()]);
        self.deciding[list].mark(entry, false);
        self.lists.remove(list, entry);
        self.list[entry.at()] = NOWHERE;
        if list != SMALL {
            pages.forget(entry);
            return;
        }
        self.put(GHOST, entry, false);
        pages.remember(entry);
        if self.lists.len(GHOST) > self.ghosts
            && let Some(oldest) = self.lists.back(GHOST)
        {
            self.drop_ghost(oldest, pages);
        }
    }

    fn load(&mut self, entry: Entry, is_write: bool, _: &mut Directory) {
        self.count[entry.at()] = 0;
        let to_main = self.was_ghost || (self.fills_main && self.lists.len(SMALL) >= self.small_frames);
        self.put(if to_main { MAIN } else { SMALL }, entry, to_main || is_write);
    }

    fn prefetch(&mut self, entry: Entry, _: &mut Directory) {
        self.count[entry.at()] = 0;
        self.deciding[SMALL].push_back(&self.lists, SMALL, entry);
        self.lists.push_back(SMALL, entry);
        self.list[entry.at()] = SMALL as u8;
    }

    fn order(&mut self, pages: &Directory, take: Taker<'_>) {
        let Self { lists, count, small_frames, threshold, reinserted, .. } = self;
        let free =
            |list| lists.iter(list).filter(|&entry| pages.is_free(entry)).map(|entry| (entry, count[entry.at()]));
        let (mut small, mut main) = (free(SMALL).peekable(), free(MAIN).peekable());
        reinserted.clear();
        // Every miss adds a new page to small.
        let (mut length, mut new, mut next) = (lists.len(SMALL), 0, 0);
        // An eviction has started in small and not ended yet.
        let mut ends_in_small = false;
        loop {
            let has_main = main.peek().is_some() || next < reinserted.len();
            let prefers_main = !ends_in_small && length < *small_frames;
            if ends_in_small && new > 0 && small.peek().is_none() {
                // A new page is evicted, and another one takes its place.
                ends_in_small = false;
                continue;
            }
            let from_main = if prefers_main { has_main } else { new == 0 && small.peek().is_none() };
            let candidate = match from_main {
                true => main.next().or_else(|| reinserted.get(next).copied().inspect(|_| next += 1)),
                false => small.next(),
            };
            let Some((entry, count)) = candidate else { return };
            if from_main && count > 0 {
                reinserted.push((entry, count - 1));
            } else if !from_main && count >= *threshold {
                reinserted.push((entry, 0));
                length -= 1;
                ends_in_small = !prefers_main;
            } else {
                ends_in_small = false;
                length += usize::from(from_main);
                new += 1;
                if take(entry).is_break() {
                    return;
                }
            }
        }
    }

    fn written(&mut self, entry: Entry, _: &Directory) {
        if self.list[entry.at()] == SMALL as u8 {
            self.deciding[SMALL].mark(entry, self.count[entry.at()] >= self.threshold);
        }
    }

    fn order_of_dirty(&mut self, pages: &Directory, take: Taker<'_>) {
        let Self { lists, list, count, deciding: [small, main], threshold, .. } = self;
        let decides = |entry: Entry| pages.is_dirty(entry) || count[entry.at()] >= *threshold;
        small.begin(lists, SMALL, list.len(), decides);
        main.begin(lists, MAIN, list.len(), |entry| count[entry.at()] == 0);
        let mut handed = 0;
        if self.hand_out_deciding(pages, &mut handed, take).is_break() {
            return;
        }
        self.order(pages, &mut |entry| {
            let is_known = handed > 0 && pages.is_dirty(entry);
            handed -= usize::from(is_known);
            if is_known { ControlFlow::Continue(()) } else { take(entry) }
        });
    }

    fn drop_ghost(&mut self, entry: Entry, pages: &mut Directory) {
        if std::mem::replace(&mut self.list[entry.at()], NOWHERE) == GHOST as u8 {
            self.lists.remove(GHOST, entry);
        }
        pages.forget(entry);
    }
}
