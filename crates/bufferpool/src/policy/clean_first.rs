//! What CFLRU and its relatives share: an LRU list whose last w pages are the window, and in it the clean pages first.
//!
//! The clean pages of the window are in a list of their own in the same order; the dirty ones are ranked
//! ([`super::ranked`]) if something else than their age decides. So nothing is searched for on a miss.

use super::ranked::{Ranked, Scratch};
use super::window::Window;
use super::{Parameters, PolicyError, Shape, Taker, hand_out};
use crate::directory::{Directory, Entry};
use crate::heap::Key;
use crate::lists::Lists;

/// What decides between the dirty pages of the window.
pub(super) trait Rank {
    /// The page with the smallest rank falls.
    fn rank(&self, entry: Entry, pages: &Directory) -> u64;

    /// A number for all pages that have this one's rank as long as they have theirs, below that which [`CleanFirst::new`] was told.
    fn group(&self, entry: Entry) -> usize;

    /// The rank that a page has when it is new.
    fn new_rank(&self) -> u64;
}

/// The lists.
pub(super) struct CleanFirst {
    pub(super) window: Window,
    /// Clean pages of the window.
    clean: Lists,
    /// Dirty pages of the window, where they are ranked.
    dirty: Option<Ranked>,
    entering: Vec<(Key, Entry)>,
    scratch: Scratch,
    /// Whether batches are taken by rank too.
    by_rank: bool,
}

impl CleanFirst {
    /// For dirty pages in so many groups of ranks; 0 where only their age decides.
    pub(super) fn new(shape: &Shape, parameters: &mut Parameters, groups: usize) -> Result<Self, PolicyError> {
        let share = parameters.share("window", 0.5, 1.0)?;
        let is_ranked = groups > 0;
        let by_rank = is_ranked && parameters.choice("order", &["age", "rank"])? == 1;
        let (entries, size) = (shape.frames + 1, super::parameters::share_of(shape.frames, share));
        Ok(Self {
            window: Window::new(entries, size),
            clean: Lists::new(entries, 1),
            dirty: is_ranked.then(|| Ranked::new(entries, groups)),
            entering: Vec::new(),
            scratch: Scratch::default(),
            by_rank,
        })
    }

    /// Says that a page is going to be asked for.
    #[inline]
    pub(super) fn expect(&self, entry: Entry) {
        self.window.expect(entry);
        self.clean.expect(entry);
    }

    /// Moves a page to the front if that is all there is to do; false where it is in the window.
    #[inline]
    pub(super) fn move_outside(&mut self, entry: Entry) -> bool {
        let is_outside = !self.window.contains(entry);
        if is_outside {
            self.window.move_to_front(entry);
        }
        is_outside
    }

    fn enter(&mut self, entry: Option<Entry>, is_dirty: bool, rank: &impl Rank, pages: &Directory) {
        let Some(entry) = entry else { return };
        if !is_dirty {
            self.clean.push_front(0, entry);
        } else if let Some(ranked) = &mut self.dirty {
            ranked.add(rank.group(entry), entry, (rank.rank(entry, pages), self.window.age_key(entry)));
        }
    }

    fn leave(&mut self, entry: Entry, is_dirty: bool, rank: &impl Rank) {
        match &mut self.dirty {
            _ if !is_dirty => self.clean.remove(0, entry),
            Some(ranked) => ranked.remove(rank.group(entry), entry, &self.window),
            None => {}
        }
    }

    /// Takes a page out; it is dirty or not as the directory says.
    pub(super) fn remove(&mut self, entry: Entry, rank: &impl Rank, pages: &Directory) {
        if self.window.contains(entry) {
            self.leave(entry, pages.is_dirty(entry), rank);
        }
        let entering = self.window.remove(entry);
        self.enter(entering, entering.is_some_and(|entry| pages.is_dirty(entry)), rank, pages);
    }

    /// Puts a page at the front; it is going to be dirty or not as is said here.
    pub(super) fn push_front(&mut self, entry: Entry, will_be_dirty: bool, rank: &impl Rank, pages: &Directory) {
        let entering = self.window.push_front(entry);
        let is_dirty = entering.is_some_and(|new| if new == entry { will_be_dirty } else { pages.is_dirty(new) });
        self.enter(entering, is_dirty, rank, pages);
    }

    /// Puts a clean page where it falls next.
    pub(super) fn push_back(&mut self, entry: Entry, rank: &impl Rank, pages: &Directory) {
        let (is_inside, leaving) = self.window.push_back(entry);
        if is_inside {
            self.clean.push_back(0, entry);
        }
        if let Some(leaving) = leaving {
            self.leave(leaving, pages.is_dirty(leaving), rank);
        }
    }

    /// A dirty page has become clean.
    pub(super) fn written(&mut self, entry: Entry, rank: &impl Rank) {
        if !self.window.contains(entry) {
            return;
        }
        self.leave(entry, true, rank);
        let age = self.window.age_key(entry);
        let mut newest_first = std::iter::successors(self.clean.front(0), |&other| self.clean.older(other));
        let older = newest_first.find(|&other| self.window.age_key(other) < age);
        self.clean.push_after(0, entry, older);
    }

    /// The rank of a group has changed.
    pub(super) fn rerank(&mut self, group: usize, rank: u64) {
        if let Some(ranked) = &mut self.dirty {
            ranked.rerank(group, rank);
        }
    }

    pub(super) fn victim(&mut self, pages: &Directory) -> Option<Entry> {
        let Self { window, clean, dirty, scratch, .. } = self;
        clean
            .oldest(0, pages)
            .or_else(|| dirty.as_ref().and_then(|ranked| ranked.victim(pages, window, scratch)))
            .or_else(|| window.iter().find(|&entry| pages.is_free(entry)))
    }

    /// Each page that falls lets one more into the window: a clean one falls next, a dirty one waits for its turn.
    pub(super) fn order(&mut self, rank: &impl Rank, pages: &Directory, take: Taker<'_>) {
        let Self { window, dirty, entering, scratch, by_rank, .. } = self;
        let free = |&entry: &Entry| pages.is_free(entry);
        let Some(ranked) = dirty.as_ref().filter(|_| *by_rank) else {
            // Dirty pages fall by their age; where clean ones come between them matters to nobody but the evictor.
            return order_by_age(window, pages, take);
        };
        let mut inside = ranked.sorted(window, scratch).filter(|(_, entry)| free(entry)).peekable();
        let mut beyond = window.beyond();
        entering.clear();
        let mut has_new = false;
        loop {
            let next = entering.iter().copied().min();
            let own = inside.peek().copied();
            let Some(falling) = next.into_iter().chain(own).min() else { break };
            if has_new && falling.0.0 > rank.new_rank() {
                // New pages are in the window and fall for ever.
                return;
            }
            if Some(falling) == own {
                inside.next();
            }
            entering.retain(|&other| other != falling);
            if take(falling.1).is_break() {
                return;
            }
            // The window slides until a page enters that does not fall at once.
            loop {
                let Some(entry) = beyond.next() else {
                    has_new = true;
                    break;
                };
                if !pages.is_free(entry) {
                    break;
                }
                if pages.is_dirty(entry) {
                    entering.push(((rank.rank(entry, pages), window.age_key(entry)), entry));
                    break;
                }
                if take(entry).is_break() {
                    return;
                }
            }
        }
        // Whatever is left in the window is held.
        let _ = hand_out(beyond, pages, take);
    }
}

/// Falls of a window without a clean page: the oldest dirty page falls, one enters; a clean one that enters falls next.
fn order_by_age(window: &Window, pages: &Directory, take: Taker<'_>) {
    let free = |&entry: &Entry| pages.is_free(entry);
    if window.is_empty() {
        let _ = hand_out(window.iter(), pages, take);
        return;
    }
    let dirty = window.iter().filter(free).filter(|&entry| pages.is_dirty(entry));
    let mut beyond = window.beyond();
    for falling in dirty {
        if take(falling).is_break() {
            return;
        }
        for entry in beyond.by_ref() {
            if pages.is_dirty(entry) || !pages.is_free(entry) {
                break;
            }
            if take(entry).is_break() {
                return;
            }
        }
    }
}
