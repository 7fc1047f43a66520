//! The writes that are worst for greedy: always a page of the fullest block.
//!
//! So all sealed blocks come to have about the same number of valid pages, their mean, and no block is ever much
//! emptier than that when one has to be emptied.

use super::{Algorithm, Drive, Shape};

/// Writes all pages once and then `writes` pages, each out of the block with the most valid pages; gives the trace that
/// this was and the drive.
pub fn play(shape: Shape, algorithm: &mut impl Algorithm, writes: u32) -> (Vec<u32>, Drive) {
    let mut drive = Drive::new(shape, algorithm.lists());
    let mut trace = Vec::with_capacity(shape.pages() as usize + writes as usize);
    for time in 0..shape.pages() + writes {
        let page = if time < shape.pages() { time } else { of_the_fullest(&drive) };
        algorithm.write(&mut drive, time, page);
        trace.push(page);
    }
    (trace, drive)
}

/// The first valid page of the block with the most valid pages, the first of these.
fn of_the_fullest(drive: &Drive) -> u32 {
    let blocks = 0..drive.shape().blocks();
    let fullest = blocks.rev().max_by_key(|&block| drive.valid(block)).unwrap_or(0);
    (0..drive.shape().slots_per_block()).find_map(|n| drive.page_at(fullest, n)).unwrap_or(0)
}
