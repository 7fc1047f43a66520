//! Blocks whose cells hold one bit each, although they can hold more.
//!
//! The command that programs a page says in which mode; the block stays in it until it is programmed again after an
//! erase, and is sensed and erased accordingly. Makers' data sheets call this SLC mode, or pSLC.

use super::FlashArray;
use super::command::{FlashOp, FlashOpKind};
use crate::config::DeviceConfig;

/// Which blocks are in SLC mode, and the times of that mode.
pub(super) struct SlcMode {
    read_ns: u64,
    program_ns: u64,
    erase_ns: u64,
    /// By superblock.
    is_slc: Box<[bool]>,
}

impl SlcMode {
    /// No block in that mode; `None` where the flash has none.
    pub(super) fn new(config: &DeviceConfig) -> Option<Box<Self>> {
        let mode = config.flash.slc_mode?;
        let blocks = config.units() as usize * config.flash.blocks_per_plane as usize;
        let erase_ns = mode.erase_ns.unwrap_or(config.flash.erase_ns);
        let (read_ns, program_ns) = (mode.read_ns, mode.program_ns);
        Some(Box::new(Self { read_ns, program_ns, erase_ns, is_slc: vec![false; blocks].into() }))
    }

    /// Whether a superblock is in that mode.
    pub(super) fn has(&self, block: u32) -> bool {
        self.is_slc[block as usize]
    }

    /// The time of a command without its jitter, and whether it has any; `None` in the mode that holds all bits.
    fn array_ns(&self, op: &FlashOp) -> Option<(u64, bool)> {
        self.is_slc[op.at.block as usize].then_some(match op.kind {
            FlashOpKind::Read => (self.read_ns, true),
            FlashOpKind::Program => (self.program_ns, true),
            FlashOpKind::Erase => (self.erase_ns, false),
        })
    }
}

impl FlashArray {
    /// A superblock is programmed in SLC mode from now on, or no longer.
    pub(crate) fn set_slc_mode(&mut self, block: u32, is_slc: bool) {
        if let Some(mode) = &mut self.slc_mode {
            mode.is_slc[block as usize] = is_slc;
        }
    }

    /// Whether a superblock is in SLC mode.
    #[inline]
    pub(super) fn is_slc(&self, block: u32) -> bool {
        self.slc_mode.as_ref().is_some_and(|mode| mode.has(block))
    }

    /// What the array takes for a command.
    #[inline(always)]
    pub(super) fn array_ns(&mut self, op: u32) -> u64 {
        let op = &self.ops[op];
        match self.slc_mode.as_ref().and_then(|mode| mode.array_ns(op)) {
            None => self.timing.array_ns(op),
            Some((time_ns, true)) => self.timing.jittered(time_ns),
            Some((time_ns, false)) => time_ns,
        }
    }
}

crate::state::state! {
    SlcMode {
        saved { is_slc }
        built { read_ns, program_ns, erase_ns }
    }
}
