//! Power cuts: what a drive still knows when it comes up again.
//!
//! ```text
//!   write cache ─▶ write buffer ─▶ program ends ─▶ durable state: the content of each logical page, as programmed last
//!   power cut:  requests that wait are lost · what was in progress ends unanswered · every page is as in the durable state
//! ```
//!
//! A page is durable when the program command of its superpage has ended, also where the host has replaced it
//! meanwhile: a flush has promised it, and the newer version is not on flash yet. A cut loses everything newer: the
//! page is what it was when it was programmed last, or zeros. Pages are never mixed: each is one version of itself as a
//! whole. A trim is durable when it is done. With power-loss protection what is in the cache and in the buffer is
//! durable too, and so are, without any protection, writes on media and mappings without a buffer or a cache.
//!
//! The durable state is kept beside the FTL, by logical page, and only for drives that ask for it. The older version of
//! a page survives there also when garbage collection has erased it since, while the newer one was still in the buffer:
//! a drive does not erase the last durable copy of a page, and what holding it back would cost is not simulated.
//!
//! What collection moves is another matter: there is no newer version, only a copy that is not on flash yet. That a
//! victim is erased only when its copies are ([`crate::controller::collection`]) is checked here: beside each durable
//! page stands the slot that holds it on flash, and the slot that its version, if nobody has written it anew, has been
//! moved to.

use rustc_hash::FxHashMap;

use crate::config::DeviceConfig;
use crate::ftl::PageMap;
use crate::payload::Payload;
use crate::translation::Translation;

/// What every logical page would be after a power cut.
struct DurableState {
    /// Whether the page is known at all.
    known: Vec<bool>,
    /// Contents, by logical page.
    contents: Payload,
    /// The power is off: nothing becomes durable.
    is_off: bool,
    copies: Copies,
    superseded: Superseded,
}

/// Versions of pages that the host has replaced while they were on their way to flash. They get there all the same, and
/// a flush that waited for them has promised them: until a newer version is durable, they are what a power cut leaves.
#[derive(Default)]
struct Superseded {
    page_of_slot: FxHashMap<u32, u32>,
    /// Slot and content of the versions of each page, the oldest first.
    of_page: FxHashMap<u32, Vec<Version>>,
}

struct Version {
    slot: u32,
    content: Option<Box<[u8]>>,
}

impl Superseded {
    fn add(&mut self, page: u32, slot: u32, content: Option<Box<[u8]>>) {
        self.page_of_slot.insert(slot, page);
        self.of_page.entry(page).or_default().push(Version { slot, content });
    }

    /// A slot is on flash: the page whose replaced version it holds, with that version. Older ones no longer matter.
    fn programmed(&mut self, slot: u32) -> Option<(u32, Option<Box<[u8]>>)> {
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
    fn forget(&mut self, page: u32) {
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
struct Copies {
    of_page: FxHashMap<u32, Copy>,
    /// The logical page of each slot that holds such a version.
    page_in: FxHashMap<u32, u32>,
    /// The first page that was erased while what was moved of it was not on flash.
    lost: Option<u32>,
}

/// The durable version of a logical page.
#[derive(Clone, Copy)]
struct Copy {
    /// The slot that was programmed with it.
    on_flash: u32,
    /// Where it is, or is going, as long as no other version of the page has come.
    moved_to: u32,
}

impl Copies {
    /// A version of a page is on flash.
    fn programmed(&mut self, page: u32, slot: u32) {
        let copy = Copy { on_flash: slot, moved_to: slot };
        if let Some(before) = self.of_page.insert(page, copy)
            && self.page_in.get(&before.on_flash) == Some(&page)
        {
            self.page_in.remove(&before.on_flash);
        }
        self.page_in.insert(slot, page);
    }

    /// A page is moved from one slot to another.
    fn moved(&mut self, page: u32, from: u32, to: u32) {
        if let Some(copy) = self.of_page.get_mut(&page).filter(|copy| copy.moved_to == from) {
            copy.moved_to = to;
        }
    }

    /// A slot is erased; `present` says where a page is now.
    fn erased(&mut self, slot: u32, present: impl Fn(u32) -> Option<u32>) {
        let Some(page) = self.page_in.remove(&slot) else { return };
        // The page may have been trimmed and written again since: then its durable version is elsewhere.
        let Some(&copy) = self.of_page.get(&page).filter(|copy| copy.on_flash == slot) else { return };
        self.of_page.remove(&page);
        if copy.moved_to != slot && present(page) == Some(copy.moved_to) {
            self.lost.get_or_insert(page);
        }
    }
}

/// Power cuts of a drive, where they are possible.
#[derive(Default)]
pub(crate) struct Power {
    durable: Option<Box<DurableState>>,
}

impl Power {
    /// Whether power cuts are possible.
    #[inline(always)]
    pub(crate) fn may_be_cut(&self) -> bool {
        self.durable.is_some()
    }

    /// Makes power cuts possible from now on, when all that was written is on flash.
    pub(crate) fn allow(&mut self, config: &DeviceConfig, ftl: &Translation, payload: &Payload) {
        let pages = config.logical_pages() as u32;
        let known = vec![false; pages as usize];
        let contents = Payload::new(config.ftl.logical_page_bytes);
        let (copies, superseded) = (Copies::default(), Superseded::default());
        self.durable = Some(Box::new(DurableState { known, contents, is_off: false, copies, superseded }));
        (0..pages).for_each(|page| self.page_is_durable(page, ftl, payload));
        self.note_copies(ftl);
    }

    /// Whether a page would be there after a power cut.
    pub(crate) fn knows(&self, logical_page: u32) -> bool {
        self.durable.as_ref().is_some_and(|durable| durable.known[logical_page as usize])
    }

    /// What a page would hold after a power cut.
    pub(crate) fn content_of(&self, logical_page: u32) -> Option<Box<[u8]>> {
        self.durable.as_ref().and_then(|durable| durable.contents.copy_of(logical_page))
    }

    /// The drive is up again: what was on its way to flash before is forgotten.
    pub(crate) fn forget_superseded(&mut self, ftl: &Translation) {
        if let Some(durable) = &mut self.durable {
            durable.superseded = Superseded::default();
        }
        self.note_copies(ftl);
    }

    /// All that is durable is on flash where it is.
    fn note_copies(&mut self, ftl: &Translation) {
        let Some(durable) = &mut self.durable else { return };
        let lost = durable.copies.lost;
        durable.copies = Copies { lost, ..Copies::default() };
        if !ftl.is_page_map() {
            return;
        }
        let known = durable.known.iter().zip(0..).filter(|&(&known, _)| known);
        for (slot, page) in known.filter_map(|(_, page)| Some((ftl.pages.slot_of(page)?, page))) {
            durable.copies.programmed(page, slot);
        }
    }

    /// Collection has moved a page.
    #[inline]
    pub(crate) fn page_is_moved(&mut self, page: u32, from: u32, to: u32) {
        if let Some(durable) = &mut self.durable {
            durable.copies.moved(page, from, to);
        }
    }

    /// A superblock is erased.
    #[inline]
    pub(crate) fn superblock_is_erased(&mut self, block: u32, ftl: &PageMap) {
        // Without power nothing is erased: the simulation only comes to rest.
        let Some(durable) = self.durable.as_mut().filter(|durable| !durable.is_off) else { return };
        let first = ftl.geometry.first_slot(block, 0);
        let slots = first..first + ftl.geometry.slots_per_superblock();
        slots.for_each(|slot| durable.copies.erased(slot, |page| ftl.slot_of(page)));
    }

    /// Checks that nothing durable was erased while its only other copy was not on flash.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self.durable.as_ref().and_then(|durable| durable.copies.lost) {
            Some(page) => Err(format!("logical page {page} was erased before what was moved of it was on flash")),
            None => Ok(()),
        }
    }

    /// A logical page is durable as it is now.
    pub(crate) fn page_is_durable(&mut self, logical_page: u32, ftl: &Translation, payload: &Payload) {
        let slot = ftl.slot_of(logical_page);
        let Some(durable) = &mut self.durable else { return };
        let Some(known) = durable.known.get_mut(logical_page as usize) else { return };
        if durable.is_off {
            return;
        }
        *known = slot.is_some();
        durable.superseded.forget(logical_page);
        let content = slot.and_then(|slot| payload.copy_of(slot));
        durable.contents.put(logical_page, content);
    }

    /// This version of a logical page is on flash, whatever the host has written since.
    pub(crate) fn version_is_durable(&mut self, logical_page: u32, content: Option<Box<[u8]>>) {
        let Some(durable) = self.durable.as_mut().filter(|durable| !durable.is_off) else { return };
        if let Some(known) = durable.known.get_mut(logical_page as usize) {
            *known = true;
            durable.contents.put(logical_page, content);
        }
    }

    /// A superpage is on flash, and with it what is valid in it.
    pub(crate) fn row_is_durable(&mut self, block: u32, row: u32, ftl: &PageMap, payload: &Payload) {
        let first = ftl.geometry.first_slot(block, row);
        for slot in first..first + ftl.geometry.slots {
            self.superseded_is_durable(slot);
            let Some(logical_page) = ftl.page_in(slot) else { continue };
            let content = payload.copy_of(slot);
            let Some(durable) = self.durable.as_mut().filter(|durable| !durable.is_off) else { return };
            // Translation pages are behind the host's pages and carry nothing.
            if let Some(known) = durable.known.get_mut(logical_page as usize) {
                *known = true;
                durable.superseded.forget(logical_page);
                durable.copies.programmed(logical_page, slot);
                durable.contents.put(logical_page, content);
            }
        }
    }

    /// A slot is on flash; where its version of a page was replaced on the way, that one is durable nevertheless.
    fn superseded_is_durable(&mut self, slot: u32) {
        let Some(durable) = self.durable.as_mut().filter(|durable| !durable.is_off) else { return };
        let Some((page, content)) = durable.superseded.programmed(slot) else { return };
        if let Some(known) = durable.known.get_mut(page as usize) {
            *known = true;
            durable.contents.put(page, content);
        }
    }

    /// A version of a page that is in the write buffer is about to be replaced by another one.
    #[inline]
    pub(crate) fn page_is_superseded(&mut self, logical_page: u32, old: u32, ftl: &Translation, payload: &Payload) {
        if self.durable.is_some() {
            self.keep_superseded(logical_page, old, ftl, payload);
        }
    }

    #[cold]
    fn keep_superseded(&mut self, logical_page: u32, old: u32, ftl: &Translation, payload: &Payload) {
        if !ftl.is_page_map() || !ftl.pages.is_in_buffer(old) {
            return;
        }
        let content = payload.copy_of(old);
        if let Some(durable) = self.durable.as_mut().filter(|durable| !durable.is_off) {
            durable.superseded.add(logical_page, old, content);
        }
    }

    /// A logical page is forgotten for good.
    pub(crate) fn trim_is_durable(&mut self, logical_page: u32) {
        let Some(durable) = &mut self.durable else { return };
        durable.known[logical_page as usize] = false;
        durable.superseded.forget(logical_page);
        durable.contents.discard(logical_page);
        durable.copies.of_page.remove(&logical_page);
    }

    pub(crate) fn set_power(&mut self, on: bool) {
        if let Some(durable) = &mut self.durable {
            durable.is_off = !on;
        }
    }
}
