//! The bytes that a drive carries, stored where the FTL put them.
//!
//! Content is keyed by *physical* position, so that reading data back goes through the mapping as on a real drive: a
//! mistake in the FTL shows as wrong bytes. Requests without payload store nothing and cost nothing here.

use flashwise_block::{Operation, Request};
use rustc_hash::FxHashMap;

use crate::controller::PageSpan;
use crate::state::AtRest;

/// Contents of physical slots; a slot without an entry holds zeros.
pub(crate) struct Payload {
    page_bytes: usize,
    /// Looked up by key only, never iterated: a hash map's order cannot reach a result.
    pages: FxHashMap<u32, Box<[u8]>>,
}

impl Payload {
    /// Nothing but zeros, in slots of `page_bytes`.
    pub(crate) fn new(page_bytes: u64) -> Self {
        Self { page_bytes: page_bytes as usize, pages: FxHashMap::default() }
    }

    /// Whether there are zeros everywhere.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Copies `from..` of a slot into `into`.
    pub(crate) fn read(&self, slot: u32, from: usize, into: &mut [u8]) {
        match self.pages.get(&slot) {
            Some(page) => into.copy_from_slice(&page[from..from + into.len()]),
            None => into.fill(0),
        }
    }

    /// Stores `bytes` at `from` in a slot.
    pub(crate) fn write(&mut self, slot: u32, from: usize, bytes: &[u8]) {
        let page = self.pages.entry(slot).or_insert_with(|| vec![0; self.page_bytes].into());
        page[from..from + bytes.len()].copy_from_slice(bytes);
    }

    /// Brings what a write says of a page to a slot.
    #[inline(always)]
    pub(crate) fn store(&mut self, slot: u32, span: PageSpan, request: &Request) {
        if request.buffer.is_some() || !self.pages.is_empty() {
            self.store_bytes(slot, span, request);
        }
    }

    #[inline(never)]
    fn store_bytes(&mut self, slot: u32, span: PageSpan, request: &Request) {
        match (&request.buffer, request.operation) {
            (_, Operation::WriteZeroes) => self.zero(slot, span.from, span.to),
            (Some(buffer), _) => {
                self.write(slot, span.from, &buffer[span.in_buffer..span.in_buffer + span.len()]);
            }
            (None, _) if span.is_whole() => self.discard(slot),
            (None, _) => {}
        }
    }

    /// A slot's whole content where it is, if it has any.
    pub(crate) fn image(&self, slot: u32) -> Option<&[u8]> {
        self.pages.get(&slot).map(|content| &**content)
    }

    /// A copy of it.
    pub(crate) fn copy_of(&self, slot: u32) -> Option<Box<[u8]>> {
        self.pages.get(&slot).cloned()
    }

    /// Takes a slot's whole content out.
    pub(crate) fn take(&mut self, slot: u32) -> Option<Box<[u8]>> {
        if self.pages.is_empty() { None } else { self.pages.remove(&slot) }
    }

    /// Puts a whole content into a slot; none means zeros.
    pub(crate) fn put(&mut self, slot: u32, content: Option<Box<[u8]>>) {
        match content {
            Some(content) => {
                self.pages.insert(slot, content);
            }
            None => self.discard(slot),
        }
    }

    /// Fills `from..to` of a slot with zeros.
    pub(crate) fn zero(&mut self, slot: u32, from: usize, to: usize) {
        if let Some(page) = self.pages.get_mut(&slot) {
            page[from..to].fill(0);
        }
    }

    /// What `old` held is in `new` from now on.
    #[inline(always)]
    pub(crate) fn relocate(&mut self, old: u32, new: u32) {
        if !self.pages.is_empty() {
            self.relocate_bytes(old, new);
        }
    }

    #[inline(never)]
    fn relocate_bytes(&mut self, old: u32, new: u32) {
        match self.pages.remove(&old) {
            Some(page) => self.pages.insert(new, page),
            None => self.pages.remove(&new),
        };
    }

    /// A slot's content is no longer needed.
    #[inline(always)]
    pub(crate) fn discard(&mut self, slot: u32) {
        if !self.pages.is_empty() {
            self.remove(slot);
        }
    }

    #[inline(never)]
    fn remove(&mut self, slot: u32) {
        self.pages.remove(&slot);
    }
}

/// Bytes are not part of a drive's state: who saves it keeps them elsewhere.
impl AtRest for Payload {
    fn is_at_rest(&self) -> bool {
        self.is_empty()
    }
}
