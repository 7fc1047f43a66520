//! Pages: what the engines share. A page has two fixed slots and two delta blocks, a log, and a place in the cache.
//!
//! ```text
//!   batch ─▶ Group: change(page) = log record + the same change in the frame ─▶ log ─▶ commit queue
//!                                                                        └─▶ write-back: delta or image ─▶ Disk
//!   get, scan ─▶ Cache ─▶ frame (loaded with what the log still has of it)
//! ```
//!
//! | file | content |
//! |---|---|
//! | `group.rs` | a batch that is being applied: change, allocate, free; long values |
//! | `overflow.rs` | values in chains of pages |
//! | `record.rs` | log records |
//! | `page.rs`, `table.rs`, `image.rs` | a page in memory (of trees, of tables), and on the medium |
//! | `frame.rs`, `cache.rs`, `ledger.rs`, `write_back.rs` | frames, loading and redo, what the log is needed for, writing |
//! | `undo.rs` | a batch that failed is taken back |

pub(crate) mod cache;
mod frame;
pub(crate) mod group;
mod image;
mod ledger;
mod overflow;
pub(crate) mod page;
pub(crate) mod record;
pub(crate) mod table;
mod undo;
mod write_back;

use std::sync::atomic::{AtomicU64, Ordering};

use self::cache::Cache;
pub(crate) use self::frame::Frame;
pub(crate) use self::group::{Group, Writer, take_back};
#[cfg(test)]
pub(crate) use self::image::Valid;
pub(crate) use self::image::{PageId, PageLayout};
pub(crate) use self::overflow::Reference;
pub(crate) use self::page::key_max;
use self::page::{Stored, map_bits};
pub(crate) use self::undo::{GroupUndo, Step};
use crate::error::Result;
use crate::value::Value;

/// The pages of a store.
pub(crate) struct Pages {
    pub cache: Cache,
    /// Odd while the writer changes several pages that belong together.
    structure: AtomicU64,
    /// Changes that are nested: the writer's own.
    depth: AtomicU64,
    /// Distinguishes values in overflow pages.
    stamp: AtomicU64,
}

/// A value that was copied from a page.
#[derive(Clone)]
pub(crate) enum Item {
    Value(Value),
    Reference(Reference),
}

impl Pages {
    /// `epoch` makes the stamps of this opening different from those of all others.
    pub(crate) fn new(cache: Cache, epoch: u64) -> Self {
        Self { cache, structure: AtomicU64::new(0), depth: AtomicU64::new(0), stamp: AtomicU64::new(epoch << 40) }
    }

    /// Changes several pages that belong together. The caller has the writer's lock; changes may be nested.
    pub(crate) fn restructure<R>(&self, change: impl FnOnce() -> R) -> R {
        if self.depth.fetch_add(1, Ordering::Relaxed) == 0 {
            self.structure.fetch_add(1, Ordering::AcqRel);
        }
        let done = change();
        if self.depth.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.structure.fetch_add(1, Ordering::AcqRel);
        }
        done
    }

    /// Before a read of several pages: what [`Pages::rested`] compares.
    pub(crate) fn structure(&self) -> u64 {
        self.structure.load(Ordering::Acquire)
    }

    /// Whether nobody has changed several pages together since.
    pub(crate) fn rested(&self, since: u64) -> bool {
        since.is_multiple_of(2) && self.structure() == since
    }

    /// Counts the pages in use.
    pub(crate) fn count_pages(&self, maps: u64) -> Result<u64> {
        let bits = map_bits(self.cache.layout.page_bytes);
        let ids: Vec<PageId> = (0..maps).map(|map| map * bits).collect();
        self.cache.prefetch(&ids);
        let mut pages = 0;
        for id in ids {
            pages += self.cache.get(id)?.read(|page| page.view().set_bits())?;
        }
        Ok(pages)
    }
}

impl Item {
    pub(crate) fn of(stored: Stored<'_>) -> Self {
        match stored {
            Stored::Inline(bytes) => Self::Value(Value::copy_of(bytes)),
            Stored::Overflow(bytes) => Self::Reference(Reference::decode(bytes)),
        }
    }
}
