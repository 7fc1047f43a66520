//! How a batch is taken back in memory: old bytes, in reverse.
//!
//! A batch that fails half-way (a page that cannot be read, a store that is full) and one whose log write fails leave
//! every page as it was. A page that was clean before stays dirty: its content is that of the medium, which costs one
//! write and nothing else.

use std::sync::Arc;

use super::cache::{Cache, lock};
use super::frame::{Frame, Page};
use super::image::PageId;
use super::page::{Kind, OldSegment};

/// One thing to be taken back.
pub(crate) enum Step {
    /// Old bytes of a page.
    Segments { frame: Arc<Frame>, old: Vec<OldSegment> },
    /// The page before its first change by the group.
    First { frame: Arc<Frame>, lsn: u64, dirty: bool },
    /// The whole page, which was created anew.
    Created { frame: Arc<Frame>, old: Box<Page> },
    /// The page was free.
    Allocated(PageId),
    /// The page was in use.
    Freed(PageId),
    /// What an engine has in memory besides pages.
    Memory(Box<dyn FnOnce() + Send>),
}

/// What a group has done, in order.
#[derive(Default)]
pub(crate) struct GroupUndo {
    pub seq: u64,
    pub steps: Vec<Step>,
    /// Pages in use, and map pages, before.
    pub pages: u64,
    pub maps: u64,
}

impl GroupUndo {
    /// Takes the group back. Groups are taken back newest first, under the writer's lock.
    pub(crate) fn take_back(self, cache: &Cache) {
        for step in self.steps.into_iter().rev() {
            match step {
                Step::Segments { frame, old } => {
                    let _ = frame.write(|page| {
                        for OldSegment { at, bytes } in old.into_iter().rev() {
                            page.bytes[at..at + bytes.len()].copy_from_slice(&bytes);
                        }
                    });
                }
                Step::First { frame, lsn, dirty } => {
                    let _ = frame.write(|page| {
                        page.lsn = lsn;
                        // A page that the ledger has must be written, or the log's tail would stay with it.
                        page.dirty = dirty || page.view().kind() != Kind::Free;
                    });
                }
                Step::Created { frame, old } => {
                    let _ = frame.write(|page| *page = *old);
                }
                Step::Memory(restore) => restore(),
                Step::Allocated(page) => {
                    cache.note_free(page, true);
                    lock(&cache.write_back).freed(page, self.seq.saturating_sub(1));
                }
                Step::Freed(page) => {
                    lock(&cache.write_back).not_freed(page);
                    cache.note_free(page, false);
                }
            }
        }
    }
}
