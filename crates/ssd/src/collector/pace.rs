//! The pace of garbage collection: how much of a victim is moved for what the host writes (`ftl.gc.pace`).
//!
//! ```text
//!   the host fills a superpage of a unit ─▶ credit of the unit's victim ─▶ rows are read and moved until it is used up
//! ```
//!
//! A victim with *v* valid and *i* invalid pages frees *i*. When *v* ÷ *i* of its pages move for each page that the
//! host writes, it is empty when the host has taken as many pages as it frees, so the number of free superblocks stays.
//! A pace of 1.25 is a quarter faster. Without a pace, a victim is emptied as fast as the flash allows: the commands of
//! garbage collection fill the queues of the dies, and the host's programs wait behind all of them.
//!
//! Source: none that names a maker's firmware. That data-centre drives do so is a hypothesis; their rates in the steady
//! state are constant to 1 %, second by second, and write latencies stay at a few µs up to most of the saturated rate
//! (SSD-iq, PVLDB 18(11), 2025), where an unpaced collection holds writes up for the time of a whole superblock.

/// The pace of one victim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Pages that may be moved for each page that the host writes to the unit.
    per_page: f64,
    /// Pages that may still be moved; less than zero when a row held more than was left.
    credit: f64,
    /// Its next row waits for credit.
    pub(crate) waits: bool,
}

impl Pace {
    /// The pace of a victim with so many valid and invalid pages, relative to the one that keeps the free superblocks.
    pub(crate) fn of_victim(relative: f64, valid: u32, invalid: u32) -> Self {
        Self { per_page: relative * f64::from(valid) / f64::from(invalid.max(1)), credit: 0.0, waits: false }
    }

    /// The host has written so many pages, shared among victims.
    pub(crate) fn earn(&mut self, pages: f64) {
        self.credit += self.per_page * pages;
    }

    /// So many pages are moved.
    pub(crate) fn spend(&mut self, pages: u32) {
        self.credit -= f64::from(pages);
    }

    /// So many pages may be moved, and nothing is owed any more.
    pub(crate) fn forgive(&mut self, pages: u32) {
        self.credit = f64::from(pages);
    }

    /// Whether nothing may be moved before the host has written more.
    pub(crate) fn is_used_up(&self) -> bool {
        self.credit <= 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_victim_is_empty_when_the_host_has_taken_what_it_frees() {
        let mut pace = Pace::of_victim(1.0, 600, 400);
        let mut moved = 0;
        for _ in 0..400 {
            pace.earn(1.0);
            while !pace.is_used_up() {
                pace.spend(1);
                moved += 1;
            }
        }
        assert_eq!(moved, 600);
    }
}
