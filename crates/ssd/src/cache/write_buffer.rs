//! The write buffer: how full it is, who waits for room, and pages whose unit has no space for them.

use crate::config::DeviceConfig;
use crate::ftl::PageMap;
use crate::list::{Fifo, Linked, NONE, Slab};

/// A page in the write buffer whose unit has no space for it yet.
#[derive(Clone, Copy, Default)]
pub(crate) struct ParkedPage {
    pub(crate) what: Parked,
    next: u32,
}

/// Which page that is.
#[derive(Clone, Copy)]
pub(crate) enum Parked {
    /// The `n`th page of a write, which takes so many bytes of the buffer.
    Written { request: u32, n: u32, charge: u32 },
    /// A page that leaves the write cache, and counts its room itself.
    Cached { entry: u32 },
}

impl Default for Parked {
    fn default() -> Self {
        Self::Cached { entry: NONE }
    }
}

impl Linked for ParkedPage {
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

/// How full the write buffer is.
pub(crate) struct WriteBuffer {
    pub(crate) capacity_bytes: u64,
    pub(crate) used_bytes: u64,
    /// Of those, bytes of pages of writes that are parked.
    pub(crate) parked_bytes: u64,
    /// The least that it and the write cache have held since superblocks are emptied unasked: what the host has written
    /// leaves them once, while the pages of a map come and go.
    pub(crate) least_bytes: u64,
    /// Writes that wait for room.
    pub(crate) waiting: Fifo,
    /// Writes are being let in.
    pub(crate) is_admitting: bool,
    /// There may be more room than when the first waiting write was last tried.
    pub(crate) has_changed: bool,
    /// Pages that wait for room in their unit, unit by unit; in the last list, those that any unit may take.
    pub(crate) parked: Vec<Fifo>,
    pub(crate) parked_pages: Slab<ParkedPage>,
    /// Scratch space: the superpages that a flush programs.
    pub(crate) to_program: Vec<u32>,
}

impl WriteBuffer {
    /// The empty buffer of a drive with so many units.
    pub(crate) fn new(config: &DeviceConfig, units: u32) -> Self {
        let page_bytes = config.ftl.logical_page_bytes;
        Self {
            capacity_bytes: config.controller.write_buffer_bytes / page_bytes * page_bytes,
            used_bytes: 0,
            parked_bytes: 0,
            least_bytes: 0,
            waiting: Fifo::default(),
            is_admitting: false,
            has_changed: false,
            parked: vec![Fifo::default(); units as usize + 1],
            parked_pages: Slab::default(),
            to_program: Vec::new(),
        }
    }

    /// Whether it takes no further page.
    pub(crate) fn is_full(&self) -> bool {
        self.used_bytes >= self.capacity_bytes
    }

    /// Parks a page at the unit that it is bound to, or behind all units where any will do.
    pub(crate) fn park(&mut self, what: Parked, unit: Option<u32>) {
        let page = self.parked_pages.take();
        self.parked_pages[page].what = what;
        let list = unit.map_or(self.parked.len() - 1, |unit| unit as usize);
        self.parked[list].push(&mut self.parked_pages, page);
    }

    /// A page in a superpage takes space in the write buffer.
    pub(crate) fn take_room(&mut self, superpage: u32, bytes: u32, ftl: &mut PageMap) {
        self.used_bytes += u64::from(bytes);
        ftl.superpages[superpage].held_bytes += bytes;
    }
}

crate::state::state! {
    WriteBuffer {
        saved { used_bytes, parked_bytes, least_bytes, has_changed }
        at_rest { waiting, is_admitting, parked, parked_pages }
        built { capacity_bytes, to_program }
    }
}
