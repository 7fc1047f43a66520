//! Flash commands: what a die is told to do, for whom, and where.

use crate::list::{Linked, NONE};

/// What a die is told to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FlashOpKind {
    /// Sense a page, then move `transfer_bytes` out.
    #[default]
    Read,
    /// Move `transfer_bytes` in, then program a page.
    Program,
    /// Erase a block.
    Erase,
}

/// What a flash command is for; scheduling and statistics tell these classes apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpClass {
    /// A read for the host, also one that fills up a page before it is written.
    #[default]
    HostRead,
    /// A read of a part of the page map.
    MappingRead,
    /// A read of garbage collection.
    GcRead,
    /// A program of the host's data.
    HostProgram,
    /// A program of a part of the page map.
    MappingProgram,
    /// A program of data that garbage collection moves.
    GcProgram,
    /// An erase.
    Erase,
}

impl OpClass {
    /// All classes, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::HostRead,
        Self::MappingRead,
        Self::GcRead,
        Self::HostProgram,
        Self::MappingProgram,
        Self::GcProgram,
        Self::Erase,
    ];

    /// What a class is called in a report.
    pub fn name(self) -> &'static str {
        ["host read", "mapping read", "gc read", "host program", "mapping program", "gc program", "erase"]
            [self as usize]
    }
}

/// Who waits for a flash command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Nobody.
    #[default]
    None,
    /// A host read.
    Read {
        /// Its request.
        request: u32,
    },
    /// The read that fills up a partial logical page before it is written.
    Fill {
        /// The writing request.
        request: u32,
    },
    /// A read of a stored page that is compared with one that is written.
    Compare {
        /// The writing request.
        request: u32,
    },
    /// A read of a stored page that is looked up after it was written.
    LookUp {
        /// The page.
        stored: u32,
    },
    /// The read that fills up a partial logical page on its way from the write cache.
    CacheFill {
        /// The page's entry there.
        entry: u32,
    },
    /// A page that left the write cache being programmed by an FTL of blocks.
    CachedPage {
        /// The page's entry there.
        entry: u32,
    },
    /// Reading ahead.
    ReadAhead {
        /// The command's record.
        load: u32,
    },
    /// A write in place.
    InPlace {
        /// The writing request.
        request: u32,
    },
    /// A superpage being programmed.
    Superpage {
        /// Its record.
        superpage: u32,
    },
    /// A translation page that requests wait for.
    MapLoad {
        /// The translation page.
        page: u32,
    },
    /// A translation page that is about to be changed.
    MapUpdate {
        /// The translation page.
        page: u32,
    },
    /// Garbage collection of a parallel unit, which reads a victim.
    Gc {
        /// The unit.
        unit: u32,
    },
    /// The erasure of a superblock.
    Erase {
        /// Its unit.
        unit: u32,
        /// The superblock.
        block: u32,
    },
}

impl Owner {
    /// The class of this owner's commands, where [`FlashOp::of_class`] names no other.
    fn class(self, kind: FlashOpKind) -> OpClass {
        match (kind, self) {
            (FlashOpKind::Read, Self::Gc { .. }) => OpClass::GcRead,
            (FlashOpKind::Read, Self::MapLoad { .. } | Self::MapUpdate { .. }) => OpClass::MappingRead,
            (FlashOpKind::Read, _) => OpClass::HostRead,
            (FlashOpKind::Program, Self::Gc { .. }) => OpClass::GcProgram,
            (FlashOpKind::Program, _) => OpClass::HostProgram,
            (FlashOpKind::Erase, _) => OpClass::Erase,
        }
    }
}

/// The planes of one die that a command names, and the page or block in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlashAddress {
    /// The die, counted over the drive; die `d` is on channel `d / ways`.
    pub(crate) die: u32,
    /// The first plane.
    pub(crate) plane: u8,
    /// How many planes, from the first one on.
    pub(crate) planes: u8,
    /// The page in its block.
    pub(crate) row: u16,
    /// The superblock, counted over the drive.
    pub(crate) block: u32,
}

impl FlashAddress {
    /// One bit a plane.
    pub(super) fn plane_mask(&self) -> u32 {
        ((1 << self.planes) - 1) << self.plane
    }
}

/// One command to one die: a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct FlashOp {
    pub(crate) owner: Owner,
    pub(crate) at: FlashAddress,
    /// Bytes over the channel.
    pub(crate) transfer_bytes: u32,
    /// Array operations one after the other: 1, or granules of a write in place.
    pub(crate) array_steps: u32,
    pub(super) issued_ns: u64,
    pub(super) started_ns: u64,
    /// Next in the list that this command waits in.
    next: u32,
    /// Next command that the die does at the same time in other planes.
    pub(super) beside: u32,
    pub(crate) kind: FlashOpKind,
    pub(crate) class: OpClass,
    /// Lets every other command that waits for its die or chip go first.
    pub(crate) yields: bool,
    /// The data cannot be corrected, or the page or block cannot be written or erased any more.
    pub(super) failed: bool,
}

impl Default for FlashOp {
    fn default() -> Self {
        Self::new(FlashOpKind::Read, Owner::None, FlashAddress::default(), 0)
    }
}

impl FlashOp {
    /// A command that nobody has issued yet.
    #[inline]
    pub(crate) fn new(kind: FlashOpKind, owner: Owner, at: FlashAddress, transfer_bytes: u32) -> Self {
        Self {
            owner,
            at,
            transfer_bytes,
            array_steps: 1,
            issued_ns: 0,
            started_ns: 0,
            next: NONE,
            beside: NONE,
            kind,
            class: owner.class(kind),
            yields: false,
            failed: false,
        }
    }

    /// The same command for another class than its owner's usual one.
    #[inline]
    pub(crate) fn of_class(self, class: OpClass) -> Self {
        Self { class, ..self }
    }
}

impl Linked for FlashOp {
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

/// A finished command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    pub(crate) owner: Owner,
    pub(crate) at: FlashAddress,
    /// Bytes over the channel.
    pub(crate) transfer_bytes: u32,
    /// How long its data was on the channel, ns.
    pub(crate) transfer_ns: u64,
    /// A read whose data error correction could not restore; a program or an erase that the flash reports as failed.
    pub(crate) failed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_fills_one_cache_line() {
        assert_eq!(std::mem::size_of::<FlashOp>(), 64);
    }

    #[test]
    fn a_class_follows_from_the_owner_unless_it_is_named() {
        let at = FlashAddress::default();
        let of = |kind, owner| FlashOp::new(kind, owner, at, 0).class;
        assert_eq!(of(FlashOpKind::Read, Owner::Gc { unit: 0 }), OpClass::GcRead);
        assert_eq!(of(FlashOpKind::Read, Owner::Fill { request: 0 }), OpClass::HostRead);
        assert_eq!(of(FlashOpKind::Program, Owner::Superpage { superpage: 0 }), OpClass::HostProgram);
        assert_eq!(of(FlashOpKind::Erase, Owner::Erase { unit: 0, block: 0 }), OpClass::Erase);
        let moved = FlashOp::new(FlashOpKind::Program, Owner::Superpage { superpage: 0 }, at, 0);
        assert_eq!(moved.of_class(OpClass::GcProgram).class, OpClass::GcProgram);
    }
}
