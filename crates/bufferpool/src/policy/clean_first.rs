//! What CFLRU and its relatives share: an LRU list whose last w pages are the window, and in it the clean pages first.
//!
//! The clean pages of the window are marked in it; the dirty ones are ranked ([`super::ranked`]) if something else than
//! their age decides. So nothing is searched for on a miss.

pub(super) use super::ranked::Rank;
use super::ranked::{Ranked, Scratch};
use super::window::Window;
use super::{Parameters, PolicyError, Shape, Taker, hand_out};
use crate::directory::{Directory, Entry};
use crate::heap::Key;

/// The lists.
pub(super) struct CleanFirst {
    /// Its clean pages are marked.
    window: Window,
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
        let window = Window::new(entries, size);
        let dirty = is_ranked.then(|| Ranked::new(window.numbers(), groups));
        Ok(Self { window, dirty, entering: Vec::new(), scratch: Scratch::default(), by_rank })
    }

    /// Says that a page is going to be requested.
    #[inline]
    pub(super) fn expect(&self, entry: Entry) {
        self.window.expect(entry);
    }

    /// Makes room for one page more. Where the pages have other numbers then, they are ranked anew.
    #[inline]
    fn make_room(&mut self, rank: &impl Rank) {
        let Self { window, dirty, .. } = self;
        if window.make_room()
            && let Some(ranked) = dirty
        {
            ranked.rank_anew(window, rank);
        }
    }

    #[inline]
    fn enter(&mut self, entry: Option<Entry>, rank: &impl Rank) {
        if let (Some(ranked), Some(entry)) = (&mut self.dirty, entry)
            && self.window.is_dirty_inside(self.window.number(entry))
        {
            ranked.enter(entry, &self.window, rank);
        }
    }

    /// A page is requested.
    #[inline]
    pub(super) fn hit(&mut self, entry: Entry, is_write: bool, rank: &impl Rank) {
        self.make_room(rank);
        let entering = self.window.move_to_front(entry, is_write);
        self.enter(entering, rank);
    }

    /// Takes a page out.
    #[inline]
    pub(super) fn remove(&mut self, entry: Entry, rank: &impl Rank) {
        let entering = self.window.remove(entry);
        self.enter(entering, rank);
    }

    /// Puts a page at the front.
    #[inline]
    pub(super) fn push_front(&mut self, entry: Entry, is_dirty: bool, rank: &impl Rank) {
        self.make_room(rank);
        let entering = self.window.push_front(entry, is_dirty);
        self.enter(entering, rank);
    }

    /// Puts a clean page where it is evicted next.
    pub(super) fn push_back(&mut self, entry: Entry, rank: &impl Rank) {
        self.make_room(rank);
        self.window.push_back(entry);
    }

    /// A dirty page has become clean.
    #[inline]
    pub(super) fn written(&mut self, entry: Entry) {
        self.window.written(entry);
    }

    #[inline]
    pub(super) fn victim(&mut self, rank: &impl Rank, pages: &Directory) -> Option<Entry> {
        let Self { window, dirty, scratch, .. } = self;
        window
            .oldest_clean(pages)
            .or_else(|| dirty.as_mut()?.victim(pages, window, rank, scratch))
            .or_else(|| window.oldest(pages))
    }

    /// Each page that is evicted lets one more into the window: a clean one is evicted next, a dirty one waits for its
    /// turn.
    pub(super) fn order(&mut self, rank: &impl Rank, pages: &Directory, take: Taker<'_>) {
        // Where the list starts is only known once somebody has looked.
        let _ = self.window.oldest(pages);
        let Self { window, dirty, entering, scratch, by_rank, .. } = self;
        let free = |&entry: &Entry| pages.is_free(entry);
        let Some(ranked) = dirty.as_ref().filter(|_| *by_rank) else {
            // Dirty pages are evicted by their age; where clean ones come between them matters to nobody but the
            // evictor.
            return order_by_age(window, pages, take);
        };
        let mut inside = ranked.sorted(window, rank, scratch).filter(|(_, entry)| free(entry)).peekable();
        let mut beyond = window.beyond();
        entering.clear();
        let mut has_new = false;
        loop {
            let next = entering.iter().copied().min();
            let own = inside.peek().copied();
            let Some(candidate) = next.into_iter().chain(own).min() else { break };
            if has_new && candidate.0.0 > rank.new_rank() {
                // New pages are in the window and are evicted for ever.
                return;
            }
            if Some(candidate) == own {
                inside.next();
            }
            entering.retain(|&other| other != candidate);
            if take(candidate.1).is_break() {
                return;
            }
            // The window slides until a page enters that does not are evicted at once.
            loop {
                let Some(entry) = beyond.next() else {
                    has_new = true;
                    break;
                };
                if !pages.is_free(entry) {
                    break;
                }
                if pages.is_dirty(entry) {
                    entering.push(((rank.rank(entry), u64::from(window.number(entry))), entry));
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

/// Evictions from a window without a clean page: the oldest dirty page is evicted, one enters; a clean one that enters
/// is evicted next.
fn order_by_age(window: &Window, pages: &Directory, take: Taker<'_>) {
    let free = |&entry: &Entry| pages.is_free(entry);
    if window.is_empty() {
        let _ = hand_out(window.iter(), pages, take);
        return;
    }
    let dirty = window.iter().filter(free).filter(|&entry| pages.is_dirty(entry));
    let mut beyond = window.beyond();
    for candidate in dirty {
        if take(candidate).is_break() {
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
