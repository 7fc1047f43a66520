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

use crate::clock::Clock;
use crate::config::{CacheFlush, DeviceConfig, Mapping};
use crate::flash::{FlashOp, FlashOpKind, Medium, Owner};
use crate::ftl::Location;
use crate::ftl::geometry::Geometry;
use crate::host::Host;
use crate::pages::{ByteRange, PageSize, PageSpan};
use crate::translation::Translation;

/// What of a read needs no flash.
#[derive(Default)]
pub(crate) struct AtOnce {
    /// Bytes that are there at once.
    pub(crate) bytes: u64,
    /// Of those, bytes that are in DRAM; the others are zeros.
    pub(crate) dram_bytes: u64,
}

impl AtOnce {
    pub(crate) fn add_dram(&mut self, span: PageSpan) {
        self.bytes += span.len() as u64;
        self.dram_bytes += span.len() as u64;
    }
}

/// The controller's memory.
pub(crate) struct Cache {
    pub(crate) dram: Dram,
    pub(crate) write: Option<Box<WriteCache>>,
    pub(crate) read: Option<Box<ReadCache>>,
    pub(crate) ahead: Option<Box<ReadAhead>>,
    pub(crate) buffer: WriteBuffer,
    /// Pages are mapped one by one, and nothing but the write buffer is before the flash of a read.
    pub(crate) is_passed_by_reads: bool,
    /// Bytes in which reads come over a channel.
    pub(crate) transfer_unit: usize,
    /// Logical pages of the host.
    pub(crate) logical_pages: u32,
    pub(crate) page_bytes: u64,
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
            transfer_unit: config.flash.transfer_unit_bytes as usize,
            logical_pages: config.logical_pages() as u32,
            page_bytes: config.ftl.logical_page_bytes,
            is_passed_by_reads: config.ftl.mapping == Mapping::Page && !has_caches && config.reduction.is_none(),
        }
    }

    /// Bytes that are not on flash yet: in the write buffer, or in the write cache in front of it.
    pub(crate) fn held_bytes(&self) -> u64 {
        let cached = self.write.as_ref().map_or(0, |cache| cache.held_pages());
        self.buffer.used_bytes + u64::from(cached) * self.page_bytes
    }

    /// Whether there is a cache that hands every page on at once, so that it takes one only where the write buffer
    /// does.
    #[inline]
    pub(crate) fn hands_on(&self) -> bool {
        self.write.as_ref().is_some_and(|cache| cache.flush == CacheFlush::Immediate)
    }

    /// The pages of a write are in: a window of hot pages may end.
    pub(crate) fn end_admission(&mut self, now_ns: u64) {
        if let Some(hot) = self.write.as_mut().and_then(|cache| cache.hot.as_mut()) {
            hot.turn(now_ns);
        }
    }

    /// A page that was on its way from the cache takes no space in the write buffer any more; gives who waits for it.
    pub(crate) fn leave_buffer(&mut self, entry: u32, state: State) -> Vec<u32> {
        let Some(cache) = &mut self.write else { return Vec::new() };
        let record = &mut cache.entries[entry];
        let charge = u64::from(std::mem::take(&mut record.charge));
        record.state = state;
        cache.leaving_bytes -= charge;
        self.buffer.used_bytes -= charge;
        // A list without anybody in it stays, with its room, where it is.
        if record.waiters.is_empty() { Vec::new() } else { std::mem::take(&mut record.waiters) }
    }

    pub(crate) fn caches_reads(&self) -> bool {
        self.write.is_some() || self.read.is_some()
    }

    /// Whether a page is on flash and nowhere newer.
    pub(crate) fn is_on_flash(&self, logical_page: u32, ftl: &Translation) -> bool {
        let is_cached = self.write.as_ref().is_some_and(|cache| cache.covered(logical_page).is_some());
        !is_cached && matches!(ftl.locate(logical_page), Location::Flash(_))
    }

    /// A page changes: what was read of it is old.
    #[inline]
    pub(crate) fn forget_read(&mut self, logical_page: u32) {
        if let Some(cache) = &mut self.read {
            cache.forget(logical_page);
        }
    }

    pub(crate) fn keep_read_page(&mut self, span: PageSpan, ftl: &Translation) {
        if !self.is_on_flash(span.logical_page, ftl) {
            return;
        }
        let unit = self.transfer_unit;
        let (from, to) = (span.from / unit * unit, span.to.next_multiple_of(unit));
        let covered = ftl.sectors.covered(span.part(from, to));
        if let Some(cache) = self.read.as_mut().filter(|_| covered != 0) {
            cache.insert(span.logical_page, covered);
        }
    }

    /// Prepares the reading of one page, if it is on flash only.
    fn load_ahead(&mut self, logical_page: u32, page_bytes: u32, ftl: &Translation, flash: &mut Medium) {
        let Location::Flash(slot) = ftl.locate(logical_page) else { return };
        if !self.is_on_flash(logical_page, ftl) {
            return;
        }
        let at = ftl.address_of(slot);
        let covered = ftl.sectors.all();
        let (Some(ahead), Some(cache)) = (&mut self.ahead, &mut self.read) else { return };
        if cache.knows(logical_page) {
            return;
        }
        let known = ahead.commands.iter().rev().find(|&&(other, _, _)| other == at).copied();
        let load = known.map_or_else(|| ahead.loads.take(), |(_, _, load)| load);
        let Some(entry) = cache.load(logical_page, covered, load) else {
            if known.is_none() {
                ahead.loads.give_back(load);
            }
            return;
        };
        ahead.loads[load].entries.push(entry);
        flash.counters.bytes_read.0 += u64::from(page_bytes);
        match known {
            Some((_, op, _)) => flash.array.prepared()[op].transfer_bytes += page_bytes,
            None => {
                let owner = Owner::ReadAhead { load };
                let op = flash.array.prepare(FlashOp::new(FlashOpKind::Read, owner, at, page_bytes));
                ahead.commands.push((at, op, load));
            }
        }
    }

    /// A host read has come: reads ahead of the stream that it belongs to.
    pub(crate) fn read_ahead(
        &mut self,
        range: ByteRange,
        page: PageSize,
        ftl: &Translation,
        flash: &mut Medium,
        clock: &mut Clock,
    ) {
        let Some(ahead) = &mut self.ahead else { return };
        let behind = range.span(range.pages() - 1).logical_page + 1;
        let pages = ahead.note(range.start, range.end, behind);
        for logical_page in pages.start..pages.end.min(self.logical_pages) {
            self.load_ahead(logical_page, page.bytes() as u32, ftl, flash);
        }
        if let Some(ahead) = &mut self.ahead {
            ahead.commands.drain(..).for_each(|(_, op, _)| flash.issue(op, clock));
        }
    }

    /// A host read waits for a page that is on its way.
    pub(crate) fn wait_for_load(&mut self, request: u32, load: u32, bytes: u64, host: &mut Host) {
        if let Some(ahead) = &mut self.ahead {
            ahead.loads[load].waiting.push((request, bytes));
            host.active[request].pending += 1;
        }
    }

    /// Serves a page from the caches; gives what of it has to come from elsewhere.
    pub(crate) fn read_page(
        &mut self,
        request: u32,
        span: PageSpan,
        location: Location,
        at_once: &mut AtOnce,
        ftl: &Translation,
        host: &mut Host,
    ) -> Option<PageSpan> {
        let wanted = ftl.sectors.touched(span);
        if let Some(cache) = &mut self.write
            && let Some(covered) = cache.covered(span.logical_page)
        {
            let missing = if matches!(location, Location::Flash(_)) { wanted & !covered } else { 0 };
            let Some((from, to)) = ftl.sectors.extent(missing) else {
                cache.counters.read_hits += 1;
                at_once.add_dram(span);
                return None;
            };
            let rest = span.part(from.max(span.from), to.min(span.to));
            let dram_bytes = (span.len() - rest.len()) as u64;
            (at_once.bytes, at_once.dram_bytes) = (at_once.bytes + dram_bytes, at_once.dram_bytes + dram_bytes);
            return Some(rest);
        }
        let (Some(cache), Location::Flash(_)) = (&mut self.read, location) else { return Some(span) };
        match cache.look_up(span.logical_page, wanted) {
            Found::There => at_once.add_dram(span),
            Found::Loading(load) => self.wait_for_load(request, load, span.len() as u64, host),
            Found::Absent => return Some(span),
        }
        None
    }

    /// Whether a page is only ever filled up when it leaves the write cache.
    #[inline]
    pub(crate) fn fills_up(&self, ftl: &Translation) -> bool {
        self.write.is_some() && ftl.sectors.are_known()
    }

    /// What has to be read of a page, and where, before a part of it can be written.
    pub(crate) fn missing_on_flash(&self, span: PageSpan, ftl: &Translation) -> Option<(u32, u32)> {
        if let Some(cache) = &self.write
            && cache.covered(span.logical_page).is_some()
        {
            // A page in the cache is full.
            return None;
        }
        let Location::Flash(slot) = ftl.locate(span.logical_page) else { return None };
        if ftl.pages.has_extents() {
            return Some((slot, 0));
        }
        let missing = ftl.sectors.missing_bytes(span.logical_page, ftl.sectors.covered(span));
        (missing > 0).then_some((slot, missing))
    }

    /// Whether trying to take a page of a write changes nothing, because it would have to continue to a buffer that is
    /// full.
    #[inline]
    pub(crate) fn takes_no_page(&self, request: u32, host: &Host) -> bool {
        self.buffer.is_full() && self.hands_on() && self.read.is_none() && !host.writes_zeroes(request)
    }
}
