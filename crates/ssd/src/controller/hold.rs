//! Garbage collection in the foreground: the host waits for units that are low on free superblocks.
//!
//! ```text
//!   a host's command comes to a die ─▶ is a unit on it low? ─ no ─▶ served
//!                                            │ yes
//!                                            ▼
//!                     all units on the die are held, those that are low collect until none is ─▶ served
//! ```
//!
//! A read waits here with its flash command, a written page waits in the write buffer for its place. Commands that were
//! issued before, and programs of pages that were placed before, continue. Nothing is collected while the host asks for
//! nothing. When none of the units that may take a written page has room, it asks them in turn until one has something
//! to collect.
//!
//! Source: Agrawal et al., "Design Tradeoffs for SSD Performance", USENIX ATC 2008, as the SSD add-on to DiskSim 4.0
//! does it with cleaning in the foreground: before each page operation of an element, a read or a write.

use crate::device::SimulatedSsd;
use crate::ftl::Placement;
use crate::list::Fifo;

impl SimulatedSsd {
    /// Issues the flash command of a host's read, now or when its die is clean.
    pub(crate) fn issue_host_read(&mut self, op: u32) {
        if self.collector.rules.in_foreground {
            let unit = self.flash.array.prepared()[op].at.block / self.ftl.pages.geometry.superblocks;
            if self.must_clean_first(unit) {
                self.collector.held[unit as usize].push(self.flash.array.prepared(), op);
                return;
            }
        }
        self.flash.issue(op, &mut self.clock);
    }

    /// The same for a read that is all its event has to issue.
    #[inline(always)]
    pub(crate) fn issue_only_host_read(&mut self, op: u32) {
        if self.collector.rules.in_foreground || self.cache.ahead.is_some() || self.ftl.pages.has_opened() {
            return self.issue_host_read(op);
        }
        self.flash.array.issue_alone(op, self.clock.now_ns, &mut self.clock.events);
    }

    /// Lets the unit that is due for a written page collect first, if it has to.
    pub(crate) fn clean_before_write(&mut self, logical_page: u32) {
        if !self.collector.rules.in_foreground {
            return;
        }
        // A page that finds room in a superpage that is being filled is an operation of its own none the less.
        if let Some(unit) = self.ftl.pages.candidate_unit(logical_page, 0, self.flash.array.commands_of_die()) {
            self.must_clean_first(unit);
        }
    }

    /// Finds a written page a slot, as [`Ftl::place`](crate::ftl::PageMap::place) does. Where no unit has room, one of
    /// those that may take the page collects.
    #[inline]
    pub(crate) fn place_written(&mut self, logical_page: u32, nth: (u32, u32), hint: u16) -> Option<Placement> {
        let placement = self.ftl.pages.place(logical_page, nth, hint, self.flash.array.commands_of_die());
        if placement.is_none() && self.collector.rules.in_foreground {
            self.clean_a_candidate(logical_page);
        }
        placement
    }

    /// The same for a page that takes so many slots.
    pub(crate) fn place_extent_written(
        &mut self,
        stored: u32,
        slots: u32,
        nth: (u32, u32),
        hint: u16,
    ) -> Option<Placement> {
        let placement = self.ftl.pages.place_extent(stored, slots, nth, hint, self.flash.array.commands_of_die());
        if placement.is_none() && self.collector.rules.in_foreground {
            self.clean_a_candidate(stored);
        }
        placement
    }

    /// Makes one of the units that may take a page collect. The one that is due may hold nothing but valid data; asked
    /// alone, it would let the page wait for units that nobody asks.
    #[cold]
    fn clean_a_candidate(&mut self, logical_page: u32) {
        let mut attempt = 0;
        while let Some(unit) = self.ftl.pages.candidate_unit(logical_page, attempt, self.flash.array.commands_of_die())
            && !self.must_clean_first(unit)
        {
            attempt += 1;
        }
    }

    /// A superblock may have been sealed: the pages that found neither room nor a victim in its unit try again.
    pub(crate) fn place_cleaned(&mut self, unit: u32) {
        if self.collector.rules.in_foreground {
            self.place_parked(unit);
            self.place_waiting_translation_pages();
        }
    }

    /// Whether the host has to wait for a unit; starts what it has to wait for.
    fn must_clean_first(&mut self, unit: u32) -> bool {
        if self.ftl.pages.is_held(unit) {
            return true;
        }
        let siblings = self.ftl.pages.geometry.siblings(unit);
        if self.is_read_only() || !siblings.clone().any(|s| self.ftl.pages.wants_collection(s, 0)) {
            return false;
        }
        siblings.clone().for_each(|s| self.ftl.pages.hold(s, true));
        siblings.clone().for_each(|s| self.collect_if_needed(s));
        if siblings.clone().all(|s| self.collector.is_clean(s, &self.ftl.pages)) {
            siblings.for_each(|s| self.ftl.pages.hold(s, false));
            return false;
        }
        true
    }

    /// Lets the host continue with the units on a unit's dies if all of them are clean.
    #[inline(always)]
    pub(super) fn release_if_clean(&mut self, unit: u32) {
        if self.ftl.pages.is_held(unit) {
            self.release_clean(unit);
        }
    }

    #[inline(never)]
    fn release_clean(&mut self, unit: u32) {
        let siblings = self.ftl.pages.geometry.siblings(unit);
        if !siblings.clone().all(|s| self.collector.is_clean(s, &self.ftl.pages)) {
            return;
        }
        siblings.clone().for_each(|s| self.ftl.pages.hold(s, false));
        for sibling in siblings {
            let mut held: Fifo = std::mem::take(&mut self.collector.held[sibling as usize]);
            while let Some(op) = held.pop(self.flash.array.prepared()) {
                self.flash.issue(op, &mut self.clock);
            }
            self.place_parked(sibling);
        }
        self.place_waiting_translation_pages();
        self.admit_writes();
    }
}
