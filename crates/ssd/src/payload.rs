//! The bytes that a drive carries, stored where the FTL put them.
//!
//! Content is keyed by *physical* position, so that reading data back goes through the mapping as on a real drive: a
//! mistake in the FTL shows as wrong bytes. Requests without payload store nothing and cost nothing here.
//!
//! A drive that compresses has contents of unequal length ([`Payload::put_copy`]). Where memory was taken for them
//! beforehand each of them has as much as the longest takes; the others have what they take.

use flashwise_block::{Operation, Request};
use rustc_hash::FxHashMap;

use crate::pages::PageSpan;
use crate::state::AtRest;

/// Contents of physical slots; a slot without an entry holds zeros.
pub(crate) struct Payload {
    /// The most bytes of a content; those of all where nothing is compressed.
    page_bytes: usize,
    /// Looked up by key only, never iterated: a hash map's order cannot reach a result.
    pages: FxHashMap<u32, Box<[u8]>>,
    /// Memory of pages that are needed no longer, for the next ones: a page that is written again takes none.
    spare: Vec<Box<[u8]>>,
    /// The most pages that were ever there at once, or that memory was taken for: there are never more, spare ones
    /// included.
    most: usize,
}

impl Payload {
    /// Nothing but zeros, in slots of `page_bytes` at most.
    pub(crate) fn new(page_bytes: u64) -> Self {
        Self { page_bytes: page_bytes as usize, pages: FxHashMap::default(), spare: Vec::new(), most: 0 }
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
        let (spare, page_bytes) = (&mut self.spare, self.page_bytes);
        let page = self.pages.entry(slot).or_insert_with(|| match spare.pop() {
            Some(mut page) => {
                if bytes.len() < page_bytes {
                    page.fill(0);
                }
                page
            }
            None => vec![0; page_bytes].into(),
        });
        page[from..from + bytes.len()].copy_from_slice(bytes);
        self.most = self.most.max(self.pages.len());
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
                let replaced = self.pages.insert(slot, content);
                self.keep_memory(replaced);
                self.most = self.most.max(self.pages.len());
                // Its memory came from elsewhere: who brings some each time would leave ever more here.
                self.spare.truncate(self.most - self.pages.len());
            }
            None => self.discard(slot),
        }
    }

    /// Puts a copy of a whole content into a slot, with whatever behind it; none means zeros.
    pub(crate) fn put_copy(&mut self, slot: u32, content: Option<&[u8]>) {
        let Some(content) = content else { return self.discard(slot) };
        let old = self.pages.get_mut(&slot).filter(|old| old.len() >= content.len());
        if let Some(old) = old {
            return old[..content.len()].copy_from_slice(content);
        }
        let new = match self.spare.pop() {
            Some(mut room) => {
                room[..content.len()].copy_from_slice(content);
                room
            }
            None => content.into(),
        };
        // What it replaces is shorter.
        self.pages.insert(slot, new);
        self.most = self.most.max(self.pages.len());
    }

    /// Keeps the memory of a content that is needed no longer, if any content has room there.
    #[inline]
    fn keep_memory(&mut self, content: Option<Box<[u8]>>) {
        self.spare.extend(content.filter(|content| content.len() == self.page_bytes));
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
        let replaced = match self.pages.remove(&old) {
            Some(page) => self.pages.insert(new, page),
            None => self.pages.remove(&new),
        };
        self.keep_memory(replaced);
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
        let removed = self.pages.remove(&slot);
        self.keep_memory(removed);
    }

    /// Has memory for so many pages, touched, and for finding them, beside those that there are.
    pub(crate) fn reserve(&mut self, pages: usize) {
        let missing = pages.saturating_sub(self.spare.len());
        self.spare.extend((0..missing).map(|_| std::hint::black_box(vec![1; self.page_bytes]).into()));
        // All pages may be spare again, at once; and a table that is half empty is cleaned up where it is.
        let all = self.pages.len() + self.spare.len();
        self.most = self.most.max(all);
        self.spare.reserve(all - self.spare.len());
        self.pages.reserve(2 * all - self.pages.len());
    }
}

/// Bytes are not part of a drive's state: who saves it keeps them elsewhere.
impl AtRest for Payload {
    fn is_at_rest(&self) -> bool {
        self.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_are_brought_from_elsewhere_leave_no_more_memory_than_there_ever_were_pages() {
        let mut payload = Payload::new(512);
        for n in 0..1000 {
            payload.put(n, Some(vec![1; 512].into()));
            payload.put(n, Some(vec![2; 512].into()));
            if n >= 10 {
                payload.discard(n - 10);
            }
        }
        assert_eq!((payload.pages.len(), payload.pages.len() + payload.spare.len()), (10, 11));
        payload.reserve(50);
        payload.put(0, Some(vec![3; 512].into()));
        assert_eq!(payload.pages.len() + payload.spare.len(), 60, "what was taken before stays");
    }

    #[test]
    fn contents_of_unequal_length_go_where_there_is_room_for_the_longest() {
        let mut payload = Payload::new(512);
        payload.put_copy(0, Some(&[1; 100]));
        assert_eq!(payload.image(0), Some(&[1; 100][..]), "no more than it takes");
        payload.reserve(2);
        payload.put_copy(1, Some(&[2; 100]));
        payload.put_copy(0, Some(&[3; 200]));
        assert_eq!((payload.spare.len(), payload.image(1).map(<[u8]>::len)), (0, Some(512)));
        payload.put_copy(1, Some(&[4; 300]));
        assert_eq!(payload.image(1).map(|content| &content[..300]), Some(&[4; 300][..]));
        payload.put_copy(1, None);
        payload.discard(0);
        assert_eq!((payload.spare.len(), payload.image(1)), (2, None), "both had room for all");
        payload.put_copy(2, Some(&[5; 512]));
        assert_eq!((payload.spare.len(), payload.most), (1, 3));
    }

    #[test]
    fn memory_that_held_another_page_shows_nothing_of_it() {
        let mut payload = Payload::new(512);
        payload.reserve(2);
        for slot in 0..4 {
            payload.write(slot, 0, &[7; 512]);
        }
        payload.relocate(0, 1);
        payload.discard(2);
        payload.put(3, Some(vec![8; 512].into()));
        assert_eq!(payload.spare.len(), 2);
        payload.write(9, 100, &[5; 12]);
        let mut page = [1; 512];
        payload.read(9, 0, &mut page);
        assert!(page[..100] == [0; 100] && page[100..112] == [5; 12] && page[112..] == [0; 400]);
        payload.read(1, 0, &mut page);
        assert_eq!((page, payload.spare.len()), ([7; 512], 1));
    }
}
