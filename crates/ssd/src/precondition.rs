//! States that a drive can be put into at once, before anything is measured on it.

use flashwise_block::{BlockDevice, DeviceCounters};

use crate::SimulatedSsd;
use crate::config::Mapping;
use crate::error::SsdError;
use crate::ftl::KeptAs;

impl SimulatedSsd {
    /// Fills the drive as one sequential write of all logical pages would, in no time and without counting it. Pages
    /// carry no payload: they read as zeros. On a drive of more than 16 GiB it takes no memory for pages, either: an
    /// entry of the map comes to life when its page is written or moved.
    ///
    /// # Errors
    /// When something was written before.
    pub fn fill_at_once(&mut self) -> Result<(), SsdError> {
        self.fill_kept_as(KeptAs::BySize)
    }

    /// The same, for tests that hold the two ways of keeping what a fill has left against each other.
    #[doc(hidden)]
    pub fn fill_kept_as(&mut self, kept: KeptAs) -> Result<(), SsdError> {
        self.require_empty("fill")?;
        let pages = self.config().logical_pages() as u32 + self.config().translation_pages();
        self.ftl.fill_in_order(pages, kept);
        Ok(())
    }

    /// Lays out a state of random logical pages at once, in no time and without counting it: `counts_of` gives the
    /// valid pages of each of so many superblocks that hold so many pages together, ascending, and `seed` draws which
    /// logical pages are where. `false` where `counts_of` finds no space, and on a drive that is not
    /// [empty](Self::require_empty) or maps other than pages.
    pub fn lay_out(&mut self, seed: u64, counts_of: &mut dyn FnMut(u32, u64) -> Option<Vec<u32>>) -> bool {
        if self.require_empty("layout").is_err() || self.config().ftl.mapping != Mapping::Page {
            return false;
        }
        let pages = self.config().logical_pages() as u32 + self.config().translation_pages();
        if !self.ftl.pages.lay_out(pages, seed, counts_of) {
            return false;
        }
        if let Some(translator) = &mut self.ftl.translator {
            translator.all_stored();
        }
        true
    }

    /// Refuses a drive that something was written to, and one that reduces what it stores: neither can be put into a
    /// `state` at once.
    ///
    /// # Errors
    /// Says which of the two it is.
    pub fn require_empty(&self, state: &'static str) -> Result<(), SsdError> {
        if self.config().reduction.is_some() {
            let reason =
                "with data reduction the space of pages depends on their content: use --precondition steady".to_owned();
            return Err(SsdError::Precondition { state, reason });
        }
        let untouched = self.counters() == DeviceCounters { flash: self.counters().flash, ..DeviceCounters::default() };
        if untouched && self.outstanding() == 0 && self.ftl.is_empty() {
            return Ok(());
        }
        Err(SsdError::Precondition { state, reason: "the drive has already been written".into() })
    }
}
