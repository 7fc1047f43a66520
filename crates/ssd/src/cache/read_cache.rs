//! The read cache: logical pages that were read from flash, or read ahead, in controller DRAM.
//!
//! ```text
//!   read ─▶ in the cache ─────────────▶ DRAM ─▶ link
//!        ├▶ being read ahead: waits ──▶ link
//!        └▶ flash ─▶ link;  its pages come into the cache, the oldest leave
//! ```
//!
//! The cache knows which granules ([`crate::ftl::sectors`]) of a page it has; a read that asks for others goes to flash
//! for all of the page that it asks for. Writes and trims drop the page. The cache holds no bytes: what it knows is
//! also on flash, and the bytes come from there; it decides over time alone.

use crate::config::{CachePolicy, DeviceConfig};
use crate::list::{NONE, Slab};
use crate::recency::{Links, Ranked, Recency};
use crate::sparse::SparseTable;

/// A page of the cache.
#[derive(Clone, Copy, Default)]
pub(crate) struct Entry {
    pub(crate) logical_page: u32,
    /// Granules that are there.
    pub(crate) covered: u16,
    /// The read-ahead that it comes with; [`NONE`] once it is there.
    pub(crate) load: u32,
    /// It was written or trimmed while it was being read ahead.
    pub(crate) stale: bool,
    /// It was read ahead, and nobody has asked for it yet.
    pub(crate) unused: bool,
    pub(crate) links: Links,
}

impl Ranked for Entry {
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

/// What the read cache did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCacheCounters {
    /// Page reads that found all they asked for, there or on its way.
    pub hits: u64,
    /// Page reads that went to flash.
    pub misses: u64,
    /// Pages read ahead.
    pub pages_read_ahead: u64,
    /// Of those, pages that the host asked for later.
    pub read_ahead_useful: u64,
}

/// Where a page is, as far as the read cache knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// In DRAM.
    There,
    /// On its way, with this read-ahead.
    Loading(u32),
    /// Elsewhere.
    Absent,
}

/// The read cache.
pub(crate) struct ReadCache {
    pub(crate) capacity: u32,
    pub(crate) policy: CachePolicy,
    /// Entry + 1 of each logical page.
    pub(crate) index: SparseTable,
    pub(crate) entries: Slab<Entry>,
    /// Pages that are there; those that are being read ahead cannot leave.
    pub(crate) there: Recency,
    pub(crate) counters: ReadCacheCounters,
}

impl ReadCache {
    /// The cache that a configuration has.
    pub(crate) fn new(config: &DeviceConfig) -> Option<Box<Self>> {
        let cache = config.controller.read_cache.as_ref()?;
        Some(Box::new(Self {
            capacity: (cache.bytes / config.ftl.logical_page_bytes) as u32,
            policy: cache.policy,
            index: SparseTable::new(config.logical_pages() as usize),
            entries: Slab::default(),
            there: Recency::default(),
            counters: ReadCacheCounters::default(),
        }))
    }

    pub(crate) fn entry_of(&self, logical_page: u32) -> Option<u32> {
        self.index.get(logical_page).checked_sub(1)
    }

    /// Whether a page is there or on its way.
    pub(crate) fn knows(&self, logical_page: u32) -> bool {
        self.index.get(logical_page) != 0
    }

    /// Looks up some granules of a page for the host.
    pub(crate) fn look_up(&mut self, logical_page: u32, wanted: u16) -> Found {
        let Some(entry) = self.entry_of(logical_page).filter(|&e| wanted & !self.entries[e].covered == 0) else {
            self.counters.misses += 1;
            return Found::Absent;
        };
        self.counters.hits += 1;
        if std::mem::take(&mut self.entries[entry].unused) {
            self.counters.read_ahead_useful += 1;
        }
        match self.entries[entry].load {
            NONE => {
                if self.policy == CachePolicy::Lru {
                    self.there.remove(&mut self.entries, entry);
                    self.there.push(&mut self.entries, entry);
                }
                Found::There
            }
            load => Found::Loading(load),
        }
    }

    /// Some granules of a page have come from flash.
    pub(crate) fn insert(&mut self, logical_page: u32, covered: u16) {
        if let Some(entry) = self.entry_of(logical_page) {
            self.entries[entry].covered |= covered;
        } else if let Some(entry) = self.take_slot() {
            self.index.set(logical_page, entry + 1);
            self.entries[entry] = Entry { logical_page, covered, load: NONE, ..Entry::default() };
            self.there.push(&mut self.entries, entry);
        }
    }

    /// A page is being read ahead; gives its entry, or `None` when the cache is full of such pages.
    pub(crate) fn load(&mut self, logical_page: u32, covered: u16, load: u32) -> Option<u32> {
        let entry = self.take_slot()?;
        self.index.set(logical_page, entry + 1);
        self.entries[entry] = Entry { logical_page, covered, load, unused: true, ..Entry::default() };
        self.counters.pages_read_ahead += 1;
        Some(entry)
    }

    /// A page that was read ahead has come.
    pub(crate) fn loaded(&mut self, entry: u32) {
        let record = &mut self.entries[entry];
        record.load = NONE;
        if record.stale {
            self.entries.give_back(entry);
        } else {
            self.there.push(&mut self.entries, entry);
        }
    }

    pub(crate) fn take_slot(&mut self) -> Option<u32> {
        if self.entries.taken() >= self.capacity as usize {
            let oldest = self.there.oldest()?;
            self.drop_entry(oldest);
        }
        Some(self.entries.take())
    }

    pub(crate) fn drop_entry(&mut self, entry: u32) {
        self.index.set(self.entries[entry].logical_page, 0);
        if self.entries[entry].load == NONE {
            self.there.remove(&mut self.entries, entry);
            self.entries.give_back(entry);
        } else {
            self.entries[entry].stale = true;
        }
    }

    /// A page is written or trimmed.
    pub(crate) fn forget(&mut self, logical_page: u32) {
        if let Some(entry) = self.entry_of(logical_page) {
            self.drop_entry(entry);
        }
    }

    /// Checks what must hold between any two events.
    pub(crate) fn check(&self) -> Result<(), String> {
        let indexed = self.index.iter().count();
        if indexed > self.entries.taken() || self.entries.taken() > self.capacity as usize {
            let (taken, room) = (self.entries.taken(), self.capacity);
            return Err(format!("the read cache finds {indexed} pages, has {taken}, and a capacity of {room}"));
        }
        Ok(())
    }
}

crate::state::state! { Entry { saved { logical_page, covered, load, stale, unused, links } } }

crate::state::state! { ReadCacheCounters { saved { hits, misses, pages_read_ahead, read_ahead_useful } } }

crate::state::state! {
    ReadCache {
        saved { entries, there, counters }
        built { capacity, policy, index }
    }
    checked find_pages
}

impl ReadCache {
    /// Builds the index of what was restored.
    fn find_pages(&mut self) -> Result<(), String> {
        let there = self.there;
        let there = there.members(&mut self.entries)?;
        if there.len() != self.entries.taken() || there.len() > self.capacity as usize {
            return Err("the read cache holds other pages than its order of use has".to_owned());
        }
        for entry in there {
            let Entry { logical_page, load, .. } = self.entries[entry];
            if !self.index.covers(logical_page) || self.index.replace(logical_page, entry + 1) != 0 || load != NONE {
                return Err(format!("the read cache holds logical page {logical_page} twice, or it does not exist"));
            }
        }
        Ok(())
    }
}
