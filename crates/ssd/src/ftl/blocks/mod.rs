//! FTLs that map whole blocks: block mapping with replacement blocks, and FAST's log blocks.
//!
//! They keep a small table (one entry a block) and pay with *merges*: a logical block whose pages lie in two places is
//! brought together again in a clean block. Logical pages go round the parallel units, so that successive pages work
//! side by side; inside a unit, [`space::Address`] says which logical block a page belongs to and where it stands in it.
//!
//! ```text
//!   logical page ─▶ unit = page mod units ─▶ logical block, offset
//!                                               │
//!            data block ◄── mapped ─────────────┤
//!            replacement / log blocks ◄─────────┘     newest copy wins
//! ```
//!
//! An FTL decides at once and hands the flash work out as [`Step`]s. All steps of a write concern one unit, hence one
//! die, which does them in the order in which they are given (reads may go first: what they give is in the controller's
//! memory before it is programmed elsewhere). So a merge takes the time of its reads, programs and erases, and the host's
//! page is programmed behind them.

mod fast;
mod replacement;
mod space;

pub(crate) use fast::Fast;
pub(crate) use replacement::Replacement;
pub(crate) use space::BlockSpace;

use crate::state::{Carried, Carrier, Layout, State};

/// Flash work that a write causes, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Read a slot and program its content into another.
    Copy {
        /// Where the page is.
        from: u32,
        /// Where it goes.
        to: u32,
    },
    /// Program the host's page.
    Program {
        /// Where it goes.
        slot: u32,
    },
    /// Erase a block, counted over the drive.
    Erase {
        /// The block.
        block: u32,
    },
}

/// An FTL that maps blocks.
pub(crate) trait BlockFtl: State {
    /// The maps and the blocks.
    fn space(&self) -> &BlockSpace;

    /// The same, for changing.
    fn space_mut(&mut self) -> &mut BlockSpace;

    /// Finds a place for a new version of a logical page and appends the flash work to `steps`; exactly one of them is
    /// a [`Step::Program`].
    fn write(&mut self, logical_page: u32, steps: &mut Vec<Step>);
}

/// Which one it is follows from the description.
impl State for Option<Box<dyn BlockFtl + Send>> {
    fn layout(layout: &mut Layout) {
        Replacement::layout(layout);
        Fast::layout(layout);
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        self.as_mut().map_or(Ok(()), |ftl| ftl.carry(carrier))
    }
}

/// A naive host that writes pages through an FTL and keeps what each slot holds.
#[cfg(test)]
pub(crate) mod model {
    use std::collections::BTreeMap;

    use super::*;

    /// Contents by slot, and what each page should hold.
    #[derive(Default)]
    pub(crate) struct Model {
        contents: BTreeMap<u32, u64>,
        expected: BTreeMap<u32, u64>,
        version: u64,
        pub(crate) copies: u64,
        pub(crate) erases: u64,
        pub(crate) writes: u64,
    }

    impl Model {
        /// Writes a page and does what the FTL asks for; every rule of the flash is checked on the way.
        pub(crate) fn write(&mut self, ftl: &mut dyn BlockFtl, logical_page: u32) {
            let pages = ftl.space().pages_per_block();
            let mut steps = Vec::new();
            ftl.write(logical_page, &mut steps);
            self.version += 1;
            self.writes += 1;
            let programs = steps.iter().filter(|step| matches!(step, Step::Program { .. })).count();
            assert_eq!(programs, 1, "one program for one page");
            for step in steps {
                match step {
                    Step::Copy { from, to } => {
                        let version = self.contents[&from];
                        self.program(to, version, pages);
                        self.copies += 1;
                    }
                    Step::Program { slot } => self.program(slot, self.version, pages),
                    Step::Erase { block } => {
                        self.contents.retain(|slot, _| slot / pages != block);
                        self.erases += 1;
                    }
                }
            }
            self.expected.insert(logical_page, self.version);
        }

        fn program(&mut self, slot: u32, version: u64, pages: u32) {
            let behind = (slot / pages + 1) * pages;
            let later = self.contents.range(slot..behind).next();
            assert!(later.is_none(), "slot {slot} is programmed behind {later:?}");
            self.contents.insert(slot, version);
        }

        /// Every page is where the FTL says, in its last version.
        pub(crate) fn check(&self, ftl: &dyn BlockFtl) {
            ftl.space().check().unwrap();
            for (&page, version) in &self.expected {
                let slot = ftl.space().slot_of(page).unwrap();
                assert_eq!(self.contents.get(&slot), Some(version), "page {page} in slot {slot}");
            }
        }
    }
}
