//! Garbage collection: which superblock is emptied and erased next.
//!
//! The policy sees superblocks being sealed, losing valid pages and being taken; it names the next victim of a unit
//! without a scan. The collection itself, reading valid pages, programming them elsewhere and erasing, is in
//! [`crate::controller::collection`].

mod greedy;

pub(crate) use greedy::Greedy;

/// Chooses victims.
pub(crate) trait VictimPolicy {
    /// A superblock was fully written.
    fn sealed(&mut self, block: u32, valid: u32);

    /// A sealed superblock lost one valid page and has `valid` left.
    fn invalidated(&mut self, block: u32, valid: u32);

    /// The next victim of a unit; it is no longer a candidate.
    fn take_victim(&mut self, unit: u32) -> Option<u32>;
}
