//! Held-back writes of one file: runs of adjacent bytes, laid over reads, and cut for the drive.
//!
//! [`Handle`](crate::handle::Handle) adds writes to it, lays it over reads, and submits all of its runs to the store at
//! once.

use std::collections::BTreeMap;

use crate::batch::Runs;
use crate::bytes::Span;

/// Most bytes that are held back: 2 MiB.
pub(crate) const RUN_LIMIT: usize = 2 << 20;

/// Writes that are held back, in bytes of the stored file: runs of adjacent ones.
#[derive(Debug, Default)]
pub(crate) struct HeldBack {
    pub(crate) runs: BTreeMap<u64, Vec<u8>>,
    bytes: usize,
    /// Whether the file was read since the first of them: pages that a full cache spills, and that may soon change
    /// again.
    pub(crate) is_spill: bool,
}

impl HeldBack {
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// From the start of the first run to the end of the last.
    pub(crate) fn whole(&self) -> Option<Span> {
        let ((&start, _), (&last, bytes)) = (self.runs.first_key_value()?, self.runs.last_key_value()?);
        Some(Span { start, length: last + bytes.len() as u64 - start })
    }

    /// The last run that starts at or before a byte, with its end.
    fn before(&self, at: u64) -> Option<(u64, u64)> {
        let (&start, bytes) = self.runs.range(..=at).next_back()?;
        Some((start, start + bytes.len() as u64))
    }

    pub(crate) fn overlaps(&self, start: u64, length: usize) -> bool {
        let end = start + length as u64;
        !self.is_empty() && self.before(end.saturating_sub(1)).is_some_and(|(_, run_end)| start < run_end)
    }

    /// Where the last run ends; 0 without any.
    pub(crate) fn end(&self) -> u64 {
        self.whole().map_or(0, |whole| whole.end())
    }

    /// Lays held-back data over a read at `at` that returned `there` bytes; returns the number of bytes with it. Bytes
    /// between the end of the stored file and a run are zero.
    pub(crate) fn lay_over(&self, at: u64, into: &mut [u8], there: usize) -> usize {
        let length = into.len() as u64;
        let ends = self.end().saturating_sub(at).min(length) as usize;
        if ends > there {
            into[there..ends].fill(0);
        }
        let first = self.before(at).map_or(at, |(run, _)| run);
        for (&run, bytes) in self.runs.range(first..at.saturating_add(length)) {
            let (from, to) = (run.max(at), (run + bytes.len() as u64).min(at + length));
            if from < to {
                into[(from - at) as usize..(to - at) as usize]
                    .copy_from_slice(&bytes[(from - run) as usize..(to - run) as usize]);
            }
        }
        there.max(ends)
    }

    /// Adds a write if it touches a run or starts a new one of at most `most`, and the total stays within `limit`
    /// bytes; `false` if the held-back data must be written first.
    pub(crate) fn take(&mut self, start: u64, data: &[u8], most: usize, limit: usize) -> bool {
        if self.bytes + data.len() > limit && !self.is_empty() {
            return false;
        }
        let end = start + data.len() as u64;
        let run = self.before(start).filter(|&(_, run_end)| run_end >= start).map(|(run, _)| run);
        let next = self.runs.range(start + 1..).next().map_or(u64::MAX, |(&next, _)| next);
        if next < end || (run.is_none() && self.runs.len() >= most) {
            return false;
        }
        let run = run.unwrap_or(start);
        let bytes = self.runs.entry(run).or_default();
        let at = (start - run) as usize;
        let grown = (at + data.len()).saturating_sub(bytes.len());
        bytes.resize(bytes.len() + grown, 0);
        bytes[at..at + data.len()].copy_from_slice(data);
        self.bytes += grown;
        true
    }
}

/// The parts of runs before a byte, and after it.
pub(crate) fn split_at(runs: &Runs, at: u64) -> (Runs, Runs) {
    let (mut before, mut behind) = (Runs::new(), Runs::new());
    for (start, bytes) in runs {
        let (first, last) = bytes.split_at(at.saturating_sub(*start).min(bytes.len() as u64) as usize);
        let parts = [(&mut before, *start, first), (&mut behind, start + first.len() as u64, last)];
        for (list, start, part) in parts.into_iter().filter(|(_, _, part)| !part.is_empty()) {
            list.push((start, part.to_vec()));
        }
    }
    (before, behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_split_where_the_file_ends() {
        let runs: Runs = vec![(0, vec![1; 4]), (10, vec![2; 4]), (20, vec![3; 4])];
        assert_eq!(
            split_at(&runs, 12),
            (vec![(0, vec![1; 4]), (10, vec![2; 2])], vec![(12, vec![2; 2]), (20, vec![3; 4])])
        );
        assert_eq!(split_at(&runs, 24), (runs.clone(), vec![]));
        assert_eq!(split_at(&runs, 0), (vec![], runs));
    }
}
