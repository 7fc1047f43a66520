//! Power cuts: what a drive still knows when it comes up again.
//!
//! ```text
//!   write cache ─▶ write buffer ─▶ program ends ─▶ durable state: the content of each logical page, as programmed last
//!   power cut:  requests that wait are lost · what was under way ends unanswered · every page is as in the durable state
//! ```
//!
//! A page is durable when the program command of its superpage has ended, also where the host has replaced it meanwhile:
//! a flush has promised it, and the newer version is not on flash yet. A cut loses everything newer: the page is what
//! it was when it was programmed last, or zeros. Pages are never mixed: each is one version of itself as a whole. A trim
//! is durable when it is done. With power-loss protection what is in the cache and in the buffer is durable too, and so
//! are, without any protection, writes on media and mappings without a buffer or a cache.
//!
//! The durable state is kept beside the FTL, by logical page, and only for drives that ask for it. The older version of
//! a page survives there also when garbage collection has erased it since, while the newer one was still in the buffer:
//! a drive does not erase the last durable copy of a page, and what holding it back would cost is not simulated.
//!
//! What collection moves is another matter: there is no newer version, only a copy that is not on flash yet. That a victim
//! is erased only when its copies are ([`crate::controller::collection`]) is checked here: beside each durable page stands
//! the slot that holds it on flash, and the slot that its version, if nobody has written it anew, has been moved to.

use crate::payload::Payload;
use rustc_hash::FxHashMap;

/// What every logical page would be after a power cut.
pub(crate) struct DurableState {
    /// Whether the page is known at all.
    pub(crate) known: Vec<bool>,
    /// Contents, by logical page.
    pub(crate) contents: Payload,
    /// The power is off: nothing becomes durable.
    pub(crate) is_off: bool,
    pub(crate) copies: Copies,
    pub(crate) superseded: Superseded,
}

/// Versions of pages that the host has replaced while they were on their way to flash. They get there all the same, and a
/// flush that waited for them has promised them: until a newer version is durable, they are what a power cut leaves.
#[derive(Default)]
pub(crate) struct Superseded {
    pub(crate) page_of_slot: FxHashMap<u32, u32>,
    /// Slot and content of the versions of each page, the oldest first.
    pub(crate) of_page: FxHashMap<u32, Vec<Version>>,
}

pub(crate) struct Version {
    pub(crate) slot: u32,
    pub(crate) content: Option<Box<[u8]>>,
}

impl Superseded {
    pub(crate) fn add(&mut self, page: u32, slot: u32, content: Option<Box<[u8]>>) {
        self.page_of_slot.insert(slot, page);
        self.of_page.entry(page).or_default().push(Version { slot, content });
    }

    /// A slot is on flash: the page whose replaced version it holds, with that version. Older ones no longer matter.
    pub(crate) fn programmed(&mut self, slot: u32) -> Option<(u32, Option<Box<[u8]>>)> {
        let page = *self.page_of_slot.get(&slot)?;
        let versions = self.of_page.get_mut(&page)?;
        let at = versions.iter().position(|version| version.slot == slot)?;
        let mut content = None;
        for version in versions.drain(..=at) {
            self.page_of_slot.remove(&version.slot);
            content = version.content;
        }
        Some((page, content))
    }

    /// A page is durable as it is now.
    pub(crate) fn forget(&mut self, page: u32) {
        if self.page_of_slot.is_empty() {
            return;
        }
        for version in self.of_page.remove(&page).into_iter().flatten() {
            self.page_of_slot.remove(&version.slot);
        }
    }
}

/// Where the durable versions of logical pages are on flash.
#[derive(Default)]
pub(crate) struct Copies {
    pub(crate) of_page: FxHashMap<u32, Copy>,
    /// The logical page of each slot that holds such a version.
    pub(crate) page_in: FxHashMap<u32, u32>,
    /// The first page that was erased while what was moved of it was not on flash.
    pub(crate) lost: Option<u32>,
}

/// The durable version of a logical page.
#[derive(Clone, Copy)]
pub(crate) struct Copy {
    /// The slot that was programmed with it.
    pub(crate) on_flash: u32,
    /// Where it is, or is going, as long as no other version of the page has come.
    pub(crate) moved_to: u32,
}

impl Copies {
    /// A version of a page is on flash.
    pub(crate) fn programmed(&mut self, page: u32, slot: u32) {
        let copy = Copy { on_flash: slot, moved_to: slot };
        if let Some(before) = self.of_page.insert(page, copy)
            && self.page_in.get(&before.on_flash) == Some(&page)
        {
            self.page_in.remove(&before.on_flash);
        }
        self.page_in.insert(slot, page);
    }

    /// A page is moved from one slot to another.
    pub(crate) fn moved(&mut self, page: u32, from: u32, to: u32) {
        if let Some(copy) = self.of_page.get_mut(&page).filter(|copy| copy.moved_to == from) {
            copy.moved_to = to;
        }
    }

    /// A slot is erased; `present` says where a page is now.
    pub(crate) fn erased(&mut self, slot: u32, present: impl Fn(u32) -> Option<u32>) {
        let Some(page) = self.page_in.remove(&slot) else { return };
        // The page may have been trimmed and written again since: then its durable version is elsewhere.
        let Some(&copy) = self.of_page.get(&page).filter(|copy| copy.on_flash == slot) else { return };
        self.of_page.remove(&page);
        if copy.moved_to != slot && present(page) == Some(copy.moved_to) {
            self.lost.get_or_insert(page);
        }
    }
}
