//! NoDaP: an oracle that keeps pages apart by how long they still live.
//!
//! ```text
//!   lives for at most  r1 ─▶ group 1       what is written and what is moved alike
//!                      r2 ─▶ group 2
//!                      …
//!                    more ─▶ group N
//! ```
//!
//! The next block to be emptied is one of groups 1 … N − 1 whose pages have all died; only when there is none, the
//! emptiest block of group N. Number and limits of the groups are found by trying them out: [`search`] tries every set
//! of limits out of a grid, for 2, 3, … groups, until one more group gains less than 5 %.
//!
//! # Expired, but since when?
//! The text calls a block expired, hence dead, once more time than its group's limit *r* has passed since its *first*
//! write. That does not follow. Take a block of two slots: a page that lives for 1 is written to it at time 0, one that
//! lives for *r* at time *r*. At time *r* + 1 the first write is more than *r* ago, and the second page lives until
//! 2*r*. It does follow from the *last* write: every page of the block is dead *r* writes after it. Here a block counts
//! as expired when it holds no valid page, which is then the case at the latest, and costs nothing to look up.
//!
//! Left open in the text is what to do while group N has nothing to gain: the emptiest block of the others is taken.
//!
//! Source: DOGI, FAST 2026, where it serves as the yardstick, with the remark that Lange, Naor and Yadgar's offline
//! algorithm comes nearer to a write amplification of 1.

use super::frontier::Frontier;
use super::run::run;
use super::{Algorithm, DeathTimeError, Drive, NEVER, Shape};

/// Lists of the drive: groups 1 … N − 1 together, and group N.
const LIMITED: u32 = 0;
const LAST: u32 = 1;

/// The NoDaP algorithm.
pub struct NoDaP<'a> {
    deaths: &'a [u32],
    /// Limits of groups 1 … N − 1, ascending.
    limits: Vec<u32>,
    death_of: Vec<u32>,
    frontier: Frontier,
    slots_per_block: u32,
}

impl<'a> NoDaP<'a> {
    /// For a drive, told when what each write writes dies ([`deaths`](super::deaths())), and the limits of all groups
    /// but the last, in writes, ascending.
    pub fn new(shape: Shape, deaths: &'a [u32], limits: &[u32]) -> Self {
        let mut lists = vec![LIMITED; limits.len()];
        lists.push(LAST);
        Self {
            deaths,
            limits: limits.to_vec(),
            death_of: vec![NEVER; shape.pages() as usize],
            frontier: Frontier::new(lists),
            slots_per_block: shape.slots_per_block(),
        }
    }

    fn victim(&self, drive: &mut Drive) -> Option<u32> {
        let gains = |&(_, valid): &(u32, u32)| valid < self.slots_per_block;
        let dead = drive.emptiest(LIMITED).filter(|&(_, valid)| valid == 0);
        let last = dead.or_else(|| drive.emptiest(LAST).filter(gains));
        last.or_else(|| drive.emptiest(LIMITED).filter(gains)).map(|(block, _)| block)
    }
}

/// The group of a page that lives for so many writes.
#[inline]
fn group(limits: &[u32], death: u32, time: u32) -> usize {
    match death {
        NEVER => limits.len(),
        _ => limits.partition_point(|&limit| limit < death - time),
    }
}

impl Algorithm for NoDaP<'_> {
    fn lists(&self) -> u32 {
        2
    }

    fn write(&mut self, drive: &mut Drive, time: u32, page: u32) {
        let death = self.deaths[time as usize];
        let mut wish = group(&self.limits, death, time);
        let block = loop {
            if let Some(block) = self.frontier.block(drive, wish, 1) {
                break block;
            }
            match (self.victim(drive), self.frontier.any()) {
                (Some(victim), _) => {
                    let (limits, death_of) = (&self.limits, &self.death_of);
                    let group_of = |page: u32| group(limits, death_of[page as usize], time);
                    self.frontier.empty(drive, victim, group_of, |_, _, _| {});
                }
                (None, Some(other)) => wish = other,
                (None, None) => unreachable!("a drive whose blocks but one are sealed has an invalid page"),
            }
        };
        self.death_of[page as usize] = death;
        drive.write(page, block);
        self.frontier.seal_full(drive, wish);
    }
}

/// The limits that [`NoDaP`] has the fewest rewrites with on a trace, from write `from` on: all subsets of `grid` of
/// one limit, of two, and so on, at most `limits_max`, until one more gains less than 5 % of the pages programmed.
///
/// # Errors
/// As [`run`].
pub fn search(
    shape: Shape,
    pages: &[u32],
    deaths: &[u32],
    from: usize,
    grid: &[u32],
    limits_max: usize,
) -> Result<Vec<u32>, DeathTimeError> {
    let mut best: Option<(u64, Vec<u32>)> = None;
    for count in 1..=limits_max.min(grid.len()) {
        let mut found: Option<(u64, Vec<u32>)> = None;
        for set in subsets(grid, count) {
            let counts = run(shape, &mut NoDaP::new(shape, deaths, &set), pages, from)?.measured;
            let programmed = counts.writes + counts.rewrites;
            if found.as_ref().is_none_or(|(least, _)| programmed < *least) {
                found = Some((programmed, set));
            }
        }
        let gains = match (&best, &found) {
            (Some((before, _)), Some((now, _))) => *now as f64 <= 0.95 * *before as f64,
            _ => true,
        };
        if !gains {
            break;
        }
        best = found;
    }
    Ok(best.map(|(_, set)| set).unwrap_or_default())
}

/// All ascending selections of `count` values.
fn subsets(values: &[u32], count: usize) -> Vec<Vec<u32>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let with_first =
        |n: usize| subsets(&values[n + 1..], count - 1).into_iter().map(move |rest| [vec![values[n]], rest].concat());
    (0..values.len()).flat_map(with_first).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_goes_to_the_first_group_that_it_does_not_outlive() {
        let limits = [10, 100];
        assert_eq!([1, 10, 11, 100, 101].map(|life| group(&limits, 50 + life, 50)), [0, 0, 1, 1, 2]);
        assert_eq!(group(&limits, NEVER, 50), 2);
    }

    #[test]
    fn every_selection_is_tried_once() {
        assert_eq!(subsets(&[1, 2, 3], 2), [[1, 2], [1, 3], [2, 3]]);
        assert_eq!((subsets(&[1, 2, 3, 4, 5], 3).len(), subsets(&[1], 2).len()), (10, 0));
    }
}
