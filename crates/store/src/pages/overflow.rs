//! Values that are too long for a page of keys: a chain of pages, written once and freed as a whole.
//!
//! A reference has the value's length, its first page and a stamp that no other value has. A reader that comes too late
//! finds pages without the stamp, and looks the key up again.

use std::sync::Arc;

use super::Pages;
use super::frame::Frame;
use super::image::PageId;
use super::page::{Chunk, REFERENCE, overflow_space};
use crate::bytes::{get_u64, put};
use crate::error::Result;
use crate::value::Value;

/// Where a long value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    pub length: u64,
    pub first: PageId,
    pub stamp: u64,
}

impl Reference {
    pub(crate) fn decode(bytes: &[u8]) -> Self {
        Self { length: get_u64(bytes, 0), first: get_u64(bytes, 8), stamp: get_u64(bytes, 16) }
    }

    pub(crate) fn encode(&self) -> [u8; REFERENCE] {
        let mut bytes = [0; REFERENCE];
        put(&mut bytes, 0, &self.length.to_le_bytes());
        put(&mut bytes, 8, &self.first.to_le_bytes());
        put(&mut bytes, 16, &self.stamp.to_le_bytes());
        bytes
    }

    /// How many pages the value takes.
    pub(crate) fn pages(&self, page_bytes: usize) -> u64 {
        self.length.div_ceil(overflow_space(page_bytes) as u64)
    }
}

impl Pages {
    /// Reads a long value; `None` where its pages have another one by now.
    pub(crate) fn read_chain(&self, owner: u32, reference: Reference) -> Result<Option<Value>> {
        let mut value = Vec::new();
        let is_whole = self.walk_chain(owner, reference, |_, data| value.extend_from_slice(data))?;
        Ok(is_whole.then(|| value.into()))
    }

    /// Visits the pages of a long value in order; whether all of them are the value's.
    pub(crate) fn walk_chain(
        &self,
        owner: u32,
        reference: Reference,
        mut visit: impl FnMut(&Arc<Frame>, &[u8]),
    ) -> Result<bool> {
        let page_bytes = self.cache.layout.page_bytes;
        let pages = reference.pages(page_bytes);
        let (mut next, mut length) = (reference.first, 0);
        for index in 0..pages {
            if index % 64 == 0 {
                // The pages of a chain are mostly neighbours.
                let ahead: Vec<PageId> = (next..next.saturating_add((pages - index).min(64))).collect();
                self.cache.prefetch(&ahead);
            }
            let frame = self.cache.get(next)?;
            let found = frame.read(|page| {
                let chunk = Chunk::of(page.view())?;
                let is_own = chunk.stamp == reference.stamp
                    && chunk.tree == owner
                    && u64::from(chunk.index) == index
                    && !chunk.data.is_empty();
                is_own.then(|| {
                    visit(&frame, chunk.data);
                    (chunk.next, chunk.data.len() as u64)
                })
            })?;
            let Some((behind, read)) = found else { return Ok(false) };
            (next, length) = (behind, length + read);
        }
        Ok(length == reference.length)
    }
}
