//! History: the pages that followed a page before.
//!
//! For each page up to [`SUCCESSORS`] pages that were requested right after it, with how often. A new successor takes
//! the place of the one that followed least often. From the page that missed, the way goes to its most frequent
//! successor, from that to its own, and so on, over successors that followed at least twice.
//!
//! Chosen here, since the papers only say that there is one: the numbers above and below.

use crate::directory::Page;

/// Successors of a page that are remembered.
pub const SUCCESSORS: usize = 3;
/// A page that followed less often is not prefetched.
pub const LEAST: u32 = 2;

#[derive(Clone, Copy, Default)]
struct Successor {
    page: u32,
    count: u32,
}

/// See the module.
pub struct History {
    /// By page.
    successors: Vec<[Successor; SUCCESSORS]>,
    last: Option<Page>,
}

impl History {
    /// For pages below `pages`.
    pub fn new(pages: usize) -> Self {
        Self { successors: vec![[Successor::default(); SUCCESSORS]; pages], last: None }
    }

    /// A page was requested.
    pub fn saw(&mut self, page: Page) {
        let last = self.last.replace(page).and_then(|last| self.successors.get_mut(last.0 as usize));
        let Some(successors) = last else { return };
        let known = successors.iter().position(|successor| successor.count > 0 && successor.page == page.0);
        match known {
            Some(place) => successors[place].count = successors[place].count.saturating_add(1),
            None => {
                let rarest = successors.iter_mut().min_by_key(|successor| successor.count);
                rarest.into_iter().for_each(|rarest| *rarest = Successor { page: page.0, count: 1 });
            }
        }
    }

    /// Adds the pages on the way from one that has just missed.
    pub fn candidates(&self, page: Page, most: usize, is_wanted: impl Fn(Page) -> bool, into: &mut Vec<Page>) {
        let mut at = page;
        for _ in 0..most {
            let successors = self.successors.get(at.0 as usize);
            let best = successors.and_then(|all| all.iter().max_by_key(|successor| successor.count));
            let Some(best) = best.filter(|best| best.count >= LEAST) else { return };
            at = Page(best.page);
            if is_wanted(at) && at != page && !into.contains(&at) {
                into.push(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_followed_twice_is_on_the_way_and_what_followed_once_is_not() {
        let mut history = History::new(10);
        [1, 5, 9, 1, 5, 2, 1, 5, 9].into_iter().for_each(|page| history.saw(Page(page)));
        let mut into = Vec::new();
        history.candidates(Page(1), 4, |_| true, &mut into);
        // 1 → 5 three times, 5 → 9 twice, 9 → 1 once.
        assert_eq!(into, [Page(5), Page(9)]);
        into.clear();
        history.candidates(Page(1), 4, |page| page != Page(5), &mut into);
        assert_eq!(into, [Page(9)], "5 is in a frame already");
    }
}
