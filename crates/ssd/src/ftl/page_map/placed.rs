//! Where a page was put: its slot, the superpage that this is in, and what became of that.
//!
//! In one word, which is handed on in a register. Fields that are written one after the other and copied as one let a
//! processor wait for all that it has stored before, most of which is on its way to memory: that was an eighth of the
//! time of a drive that compresses.

use std::fmt;
use std::num::NonZeroU64;

/// Where a written logical page was put.
#[derive(Clone, Copy)]
pub(crate) struct Placement(NonZeroU64);

impl Placement {
    /// There is a placement: so that none is a zero.
    const IS_ONE: u64 = 1 << 63;
    const NEW_SLOT: u64 = 1 << 62;
    const FULL: u64 = 1 << 61;
    const SPANS_ROWS: u64 = 1 << 60;
    /// The record of the superpage is above the slot.
    const SUPERPAGE: u32 = u32::BITS;
    /// Records of superpages that there may be: far more than a drive has open or in progress.
    const SUPERPAGES_MAX: u32 = 1 << 28;

    /// A page that was still in the open superpage is overwritten there.
    #[inline(always)]
    pub(super) fn over(slot: u32, superpage: u32) -> Self {
        Self::of(slot, superpage, 0)
    }

    /// A page in a new slot, with which the superpage may be full, and may end in the next one.
    #[inline(always)]
    pub(super) fn new(slot: u32, superpage: u32, full: bool, spans_rows: bool) -> Self {
        let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
        Self::of(slot, superpage, Self::NEW_SLOT | flag(full, Self::FULL) | flag(spans_rows, Self::SPANS_ROWS))
    }

    #[inline(always)]
    fn of(slot: u32, superpage: u32, flags: u64) -> Self {
        assert!(superpage < Self::SUPERPAGES_MAX, "superpage record {superpage}");
        let bits = u64::from(slot) | u64::from(superpage) << Self::SUPERPAGE | flags;
        Self(NonZeroU64::new(bits | Self::IS_ONE).unwrap_or(NonZeroU64::MIN))
    }

    /// Its slot.
    #[inline(always)]
    pub(crate) fn slot(self) -> u32 {
        self.0.get() as u32
    }

    /// The superpage record that the slot is in.
    #[inline(always)]
    pub(crate) fn superpage(self) -> u32 {
        (self.0.get() >> Self::SUPERPAGE) as u32 & (Self::SUPERPAGES_MAX - 1)
    }

    /// The slot is new; otherwise a page that was still in the open superpage is overwritten there.
    #[inline(always)]
    pub(crate) fn new_slot(self) -> bool {
        self.0.get() & Self::NEW_SLOT != 0
    }

    /// The superpage is full now.
    #[inline(always)]
    pub(crate) fn full(self) -> bool {
        self.0.get() & Self::FULL != 0
    }

    /// The page ends in the next superpage of the stream, which is opened when this one is closed.
    #[inline(always)]
    pub(crate) fn spans_rows(self) -> bool {
        self.0.get() & Self::SPANS_ROWS != 0
    }
}

impl fmt::Debug for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Placement")
            .field("slot", &self.slot())
            .field("superpage", &self.superpage())
            .field("new_slot", &self.new_slot())
            .field("full", &self.full())
            .field("spans_rows", &self.spans_rows())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_gives_back_what_it_was_made_of() {
        for slot in [0, 1, u32::MAX - 1, u32::MAX] {
            for superpage in [0, 1, Placement::SUPERPAGES_MAX - 1] {
                let told = |placed: Placement| {
                    ((placed.slot(), placed.superpage()), placed.new_slot(), placed.full(), placed.spans_rows())
                };
                assert_eq!(told(Placement::over(slot, superpage)), ((slot, superpage), false, false, false));
                for (full, spans_rows) in [(false, false), (false, true), (true, false), (true, true)] {
                    let placed = Placement::new(slot, superpage, full, spans_rows);
                    assert_eq!(told(placed), ((slot, superpage), true, full, spans_rows));
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "superpage record 268435456")]
    fn a_record_that_it_has_no_room_for_is_refused() {
        Placement::over(0, Placement::SUPERPAGES_MAX);
    }
}
