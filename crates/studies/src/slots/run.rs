//! Plays writes to an algorithm and counts what it costs.

use flashwise_block::interrupt;

use super::{Counts, DeathTimeError, Drive, Shape};

/// Writes between two checks for an interrupt: some milliseconds.
const WRITES_BETWEEN_CHECKS: u32 = 1 << 14;

/// An algorithm: where a written page goes, which block is emptied, where its pages go.
///
/// It does so by the steps of [`Drive`], which hold it to the model. What it knows of the future it was given when it
/// was made.
pub trait Algorithm {
    /// Lists of sealed blocks that it needs.
    fn lists(&self) -> u32 {
        1
    }

    /// The host's `time`-th write, from 0, is of `page`: makes room as needed and writes it, once.
    fn write(&mut self, drive: &mut Drive, time: u32, page: u32);
}

/// What a run cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// From the empty drive on.
    pub all: Counts,
    /// Of the writes that were to be measured.
    pub measured: Counts,
}

/// Plays `pages` to an algorithm on an empty drive; measured is what comes from write `from` on.
///
/// # Errors
/// When there are 2³² − 1 writes or more, a page is not on the drive, the algorithm has not written each page once, or
/// the user interrupts.
pub fn run(shape: Shape, algorithm: &mut impl Algorithm, pages: &[u32], from: usize) -> Result<Run, DeathTimeError> {
    run_part(shape, algorithm, pages, from..pages.len())
}

/// The same, where the measured writes end before the last one.
///
/// # Errors
/// As [`run`].
pub fn run_part(
    shape: Shape,
    algorithm: &mut impl Algorithm,
    pages: &[u32],
    measured: std::ops::Range<usize>,
) -> Result<Run, DeathTimeError> {
    if let Some(&page) = pages.iter().find(|&&page| page >= shape.pages()) {
        return Err(DeathTimeError::Page { page, pages: shape.pages() });
    }
    let last = u32::try_from(pages.len()).ok().filter(|&writes| writes < u32::MAX);
    let writes = last.ok_or(DeathTimeError::Writes(pages.len()))?;
    let mut drive = Drive::new(shape, algorithm.lists());
    let (mut before, mut after) = (Counts::default(), None);
    for (time, &page) in (0..writes).zip(pages) {
        if time.is_multiple_of(WRITES_BETWEEN_CHECKS) && interrupt::is_requested() {
            return Err(DeathTimeError::Interrupted);
        }
        if time as usize == measured.start {
            before = drive.counts();
        }
        if time as usize == measured.end {
            after = Some(drive.counts());
        }
        algorithm.write(&mut drive, time, page);
        debug_assert_eq!(drive.counts().writes, u64::from(time) + 1, "each write is written once");
    }
    drive.check().map_err(DeathTimeError::Broken)?;
    let all = drive.counts();
    if all.writes != u64::from(writes) {
        return Err(DeathTimeError::Broken(format!("{} pages written in {writes} writes", all.writes)));
    }
    Ok(Run { all, measured: after.unwrap_or(all).since(&before) })
}
