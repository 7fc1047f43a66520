//! A superpage on its way to flash: from its first slot, over the write point that fills it, to the end of its program
//! commands.

use crate::ftl::streams::Stream;
use crate::list::NONE;

/// Why a page is moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Cause {
    /// To gain space.
    #[default]
    Gc,
    /// So that a superblock that is hardly worn is used again.
    WearLevelling,
    /// Because its superblock is retired.
    Retirement,
    /// Out of the SLC cache, to where cells hold all their bits.
    Folding,
}

impl Cause {
    /// How many there are.
    pub(crate) const COUNT: usize = 4;
}

/// A superpage between its first slot and the end of its program command.
#[derive(Debug, Default)]
pub(crate) struct Superpage {
    pub(crate) live: bool,
    pub(crate) stream: Stream,
    pub(crate) unit: u32,
    pub(crate) block: u32,
    pub(crate) row: u32,
    /// Slots in use.
    pub(crate) filled: u32,
    /// Room that its pages take in the write buffer, bytes.
    pub(crate) held_bytes: u32,
    /// Of those, slots filled by moving, by [`Cause`].
    pub(crate) moved: [u32; Cause::COUNT],
    /// The host has written to it.
    pub(crate) has_host_data: bool,
    /// Why its last page was moved, if it was; kept where pages span superpages.
    pub(super) last_moved: Option<Cause>,
    /// One of its program commands failed.
    pub(crate) has_failed: bool,
    /// Program commands that have not ended; zero also before they are issued.
    pub(crate) programs_left: u32,
    /// Handed to the flash: nothing may change in it any more.
    pub(crate) issued: bool,
    /// Distinguishes this use of the record from later ones.
    pub(crate) generation: u64,
    /// Where it is in the list of the host's superpages.
    pub(super) position: u32,
    /// Requests that complete only when this is on flash.
    pub(crate) waiters: Vec<u32>,
}

impl Superpage {
    /// Whether it holds something of the host's that a flush has to wait for.
    pub(crate) fn holds_host_data(&self) -> bool {
        self.stream.is_host() && self.has_host_data
    }

    /// Slots that were filled by moving.
    pub(crate) fn moved_pages(&self) -> u32 {
        self.moved.iter().sum()
    }
}

/// Where one stream of a unit writes.
#[derive(Clone, Copy)]
pub(crate) struct WritePoint {
    pub(super) block: u32,
    pub(super) superpage: u32,
}

impl WritePoint {
    /// Whether there is room without a free superblock.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.superpage != NONE || self.block != NONE
    }
}

/// The write point of a stream that has nothing open.
pub(super) const CLOSED: WritePoint = WritePoint { block: NONE, superpage: NONE };
