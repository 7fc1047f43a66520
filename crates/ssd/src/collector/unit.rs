//! Garbage collection: read what is valid in a superblock, program it elsewhere, erase.
//!
//! ```text
//!   victim ─▶ some rows at a time: read valid pages ─▶ fill a superpage of the unit ─▶ program when full
//!          └─▶ emptied: waits until the last of its data is on flash ─▶ erase ─▶ free
//! ```
//!
//! Each parallel unit collects by itself; a die's reads go before its programs and erases. *In the background* a unit
//! collects as soon as it is low on free superblocks, while the host's commands continue; a *preemptible* collection
//! lets them go first. *In the foreground* it collects when the host's next command comes to its dies, and that one
//! waits ([`hold`](super::hold)).
//!
//! A victim is erased only when all that was valid in it is on flash elsewhere, so that a power cut loses nothing, also
//! where the program of what was moved fails ([`mod@super::retirement`]). Where superblocks have few rows, an emptied
//! victim whose last data is in a superpage that is not full yet waits for the next victim to fill it; the superpage is
//! padded when `EMPTIED_MAX` victims wait or no other victim is left. Where they have many, padding one row costs less
//! than holding a superblock back. When no superblock is free for moved data, moving waits for the next erase.
//!
//! What a page map that is cached ([`super::translate`]) writes of itself, because what it maps was moved, may fill
//! what a victim frees, and collection would continue for ever on a drive that nobody asks for anything. It stops when
//! it has emptied as many superblocks as there are, and restarts with the host's next request.
//!
//! Wear levelling, retirement ([`mod@super::retirement`]) and the SLC cache ([`super::slc_cache`]) empty superblocks in
//! the same way.

use super::pace::Pace;
use super::unprogrammed::Unprogrammed;
use super::unsaved::Unsaved;
use crate::ftl::streams::{ByStream, StreamSet};
use crate::ftl::{Cause, Stream};

/// A row of a victim that is being read or moved.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Row {
    pub(crate) row: u32,
    /// The slot that is moved next.
    pub(crate) slot: u32,
    /// Reads that have not ended; without any, the row waits for a free superblock.
    pub(crate) reads_left: u32,
}

/// A victim that is being emptied.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collection {
    pub(crate) victim: u32,
    pub(crate) cause: Option<Cause>,
    /// The row that is read next.
    pub(crate) next_row: u32,
    /// Rows being read or moved.
    pub(crate) rows: Vec<Row>,
    /// Where what is moved of it goes.
    pub(crate) streams: StreamSet,
    /// What it frees is more than a row: padding one at its end is no loss.
    pub(crate) frees_a_row: bool,
    /// How fast it is emptied, where GC has a pace and the drive has not come to rest since.
    pub(crate) pace: Option<Pace>,
}

impl Collection {
    pub(crate) fn cause(&self) -> Cause {
        self.cause.unwrap_or(Cause::Gc)
    }
}

/// A victim without valid pages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Emptied {
    pub(crate) block: u32,
    /// Where its data went.
    pub(crate) streams: StreamSet,
    /// The generation of the superpage that the last data of each of these streams is in.
    pub(crate) generation: ByStream<u64>,
    pub(crate) is_retired: bool,
}

/// A superblock that is being erased.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Erasing {
    pub(crate) block: u32,
    pub(crate) ops_left: u32,
    pub(crate) has_failed: bool,
}

/// Garbage collection of one unit.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnitCollector {
    /// Victims in progress, in the order in which they were taken.
    pub(crate) present: Vec<Collection>,
    /// A row has found no space since all of them could continue.
    pub(crate) has_stalled: bool,
    /// Lists of rows that former victims have left.
    pub(crate) spare_rows: Vec<Vec<Row>>,
    pub(crate) emptied: Vec<Emptied>,
    pub(crate) erasing: Vec<Erasing>,
    /// Generation of the last superpage that moved data went to, by [`Stream`].
    pub(crate) filled_generation: ByStream<u64>,
    /// Those of such superpages that are not on flash yet; they need not get there in order.
    pub(crate) not_programmed: Unprogrammed,
    /// Superblocks that are retired and wait for being emptied.
    pub(crate) failing: Vec<u32>,
    /// Superpages in them whose content is in the write buffer only.
    pub(crate) unsaved: Vec<Unsaved>,
    /// The same when all of it is on its way to other ones.
    pub(crate) rescued: Vec<Unsaved>,
    /// A retired superblock was emptied: the host may take a free one more.
    pub(crate) has_retired: bool,
}

impl UnitCollector {
    /// Whether every superblock in progress is at one stage, and a victim reads ahead of what it moves; cheap, for
    /// assertions.
    pub(crate) fn is_consistent(&self) -> bool {
        let victims = self.present.iter().map(|collection| collection.victim);
        let others =
            self.emptied.iter().map(|emptied| emptied.block).chain(self.erasing.iter().map(|erasing| erasing.block));
        let all = victims.chain(others);
        let is_once = |block: u32| all.clone().filter(|&other| other == block).count() == 1;
        all.clone().all(is_once)
            && self.present.iter().all(|victim| victim.rows.iter().all(|row| row.row < victim.next_row))
    }

    /// Superblocks that are emptied and not erased yet.
    pub(crate) fn emptied_blocks(&self) -> impl Iterator<Item = u32> {
        self.emptied.iter().map(|emptied| emptied.block)
    }

    /// Whether no victim is being emptied.
    pub(crate) fn has_no_victim(&self) -> bool {
        self.present.is_empty()
    }

    /// Whether nothing is in progress that could free a superblock.
    pub(crate) fn is_idle(&self) -> bool {
        self.present.is_empty() && self.erasing.is_empty() && self.emptied.is_empty()
    }

    /// Whether no victim can continue, and none is being erased.
    #[inline]
    pub(crate) fn is_stalled(&self) -> bool {
        let is_stalled = |victim: &Collection| victim.rows.iter().any(|row| row.reads_left == 0);
        let may_be_stalled = self.has_stalled || self.present.is_empty();
        debug_assert!(may_be_stalled || !self.present.iter().all(is_stalled), "a stall was not noted");
        may_be_stalled && self.erasing.is_empty() && self.present.iter().all(is_stalled)
    }

    /// Whether a victim waits for data on its way to flash; `lost` are superpages that will not get there.
    pub(crate) fn awaits_others_than(&self, lost: &[(Stream, u64)]) -> bool {
        !self.emptied.is_empty() && self.not_programmed.iter().any(|superpage| !lost.contains(&superpage))
    }
}

crate::state::state! { Row { saved { row, slot, reads_left } } }

crate::state::state! {
    Collection {
        saved { victim, cause, next_row, streams, frees_a_row }
        lists { rows }
        built { pace }
    }
}

crate::state::state! { Emptied { saved { block, streams, generation, is_retired } } }

crate::state::state! {
    UnitCollector {
        saved { filled_generation, not_programmed, has_retired, has_stalled }
        lists { present, emptied, failing, unsaved, rescued }
        empty { erasing }
        built { spare_rows }
    }
}

impl UnitCollector {
    /// The victims that are being emptied, and the superblocks that are emptied, retired or about to be.
    pub(crate) fn superblocks(&self) -> (Vec<u32>, Vec<u32>) {
        let victims = self.present.iter().map(|collection| collection.victim).collect();
        (victims, self.emptied_blocks().chain(self.failing.iter().copied()).collect())
    }
}
