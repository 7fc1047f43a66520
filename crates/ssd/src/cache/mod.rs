//! The controller's memory: DRAM and what is kept in it.
//!
//! ```text
//!   write ─▶ write cache (write_cache.rs) ─▶ write buffer (write_buffer.rs) ─▶ placed by the FTL
//!   read  ◀─ write cache, write buffer, read cache (read_cache.rs) ◀─ read-ahead (read_ahead.rs) ◀─ flash
//!                              all of it moves through the DRAM (dram.rs)
//! ```

mod cached_pages;
mod dram;
mod read_ahead;
mod read_cache;
mod write_buffer;
mod write_cache;

pub(crate) use dram::Dram;
pub(crate) use read_ahead::ReadAhead;
pub use read_cache::ReadCacheCounters;
pub(crate) use read_cache::{Found, ReadCache};
pub(crate) use write_buffer::{Parked, WriteBuffer};
pub use write_cache::WriteCacheCounters;
pub(crate) use write_cache::{Entry, State, WriteCache};

use crate::config::{DeviceConfig, Mapping};
use crate::ftl::geometry::Geometry;

/// The controller's memory.
pub(crate) struct Cache {
    pub(crate) dram: Dram,
    pub(crate) write: Option<Box<WriteCache>>,
    pub(crate) read: Option<Box<ReadCache>>,
    pub(crate) ahead: Option<Box<ReadAhead>>,
    pub(crate) buffer: WriteBuffer,
    /// Pages are mapped one by one, and nothing but the write buffer stands before the flash of a read.
    pub(crate) is_passed_by_reads: bool,
}

impl Cache {
    /// The empty caches that a configuration has, before flash of this geometry.
    pub(crate) fn new(config: &DeviceConfig, geometry: &Geometry) -> Self {
        let (write, read, ahead) = (WriteCache::new(config), ReadCache::new(config), ReadAhead::new(config));
        let has_caches = write.is_some() || read.is_some() || ahead.is_some();
        Self {
            dram: Dram::new(&config.controller),
            write,
            read,
            ahead,
            buffer: WriteBuffer::new(config, geometry.units),
            is_passed_by_reads: config.ftl.mapping == Mapping::Page && !has_caches && config.reduction.is_none(),
        }
    }
}
