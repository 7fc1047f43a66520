//! Pages that are compressed or shared, on their way into the write buffer and back.
//!
//! ```text
//!   write   prepared (compressed, fingerprint) ─▶ zeros: forgotten
//!                                              ─▶ stored already: shared, after a comparison if that is asked for
//!                                              ─▶ no space: the write is refused
//!                                              ─▶ slots of the open superpage
//!   read    each flash page that the stored page is on ─▶ decompressed ─▶ link
//!   quiet   pages that were not looked up when they were written are read and looked up, one after the other
//! ```
//!
//! What the engines take is added to a request's time; they do not keep pages from their places. A stored page is read
//! whole: it cannot be decompressed from its middle.

use flashwise_block::ByteSize;

use crate::config::DataTransfer;
use crate::device::SimulatedSsd;
use crate::event::Event;
use crate::flash::Owner;
use crate::ftl::{Location, Placement};
use crate::pages::PageSpan;
use crate::reduction::{ContentModel, Lookup, Prepared, ReductionCounters, SpaceUse};

impl SimulatedSsd {
    /// Says what the pages of writes without bytes are like. Does nothing on a drive that stores everything as it
    /// comes.
    pub fn set_content_model(&mut self, model: ContentModel) {
        if let Some(reduction) = &mut self.ftl.reduction {
            reduction.set_content(model);
        }
    }

    /// How much was written since the drive is new, and what became of it; `None` for a drive that stores everything as
    /// it comes.
    pub fn reduction_counters(&self) -> Option<ReductionCounters> {
        self.ftl.reduction.as_ref().map(|reduction| reduction.counters)
    }

    /// Logical bytes on the drive and the physical ones that they take; `None` for a drive that stores everything as it
    /// comes.
    pub fn space_use(&self) -> Option<SpaceUse> {
        self.ftl.reduction.as_ref().map(|reduction| reduction.space_use(&self.ftl.pages))
    }

    /// Whether what the drive stores depends on the bytes that it is given.
    pub fn depends_on_content(&self) -> bool {
        self.ftl.reduction.is_some()
    }

    /// Gives a drive that [depends on them](Self::depends_on_content) and was restored the bytes of its pages again,
    /// which are no part of its state; nothing happens on the drive's clock. `read` fills a page, from a place on the
    /// drive on; pages come in their order. Gives the places of pages for which these bytes would not be stored as they
    /// are: they were changed since. Does nothing on other drives.
    ///
    /// # Errors
    /// What `read` fails with.
    pub fn bring_content<E>(
        &mut self,
        mut read: impl FnMut(ByteSize, &mut [u8]) -> Result<(), E>,
    ) -> Result<Vec<ByteSize>, E> {
        let mut changed = Vec::new();
        let Some(reduction) = &mut self.ftl.reduction else { return Ok(changed) };
        let mut bytes = vec![0; self.page.bytes() as usize];
        for logical_page in 0..self.config.logical_pages() as u32 {
            let stored = reduction.stored(logical_page);
            let Some((stored, slot)) = stored.and_then(|stored| Some((stored, self.ftl.pages.slot_of(stored)?))) else {
                continue;
            };
            let at = ByteSize(u64::from(logical_page) * self.page.bytes());
            read(at, &mut bytes)?;
            // A slot without bytes reads as zeros.
            if bytes.iter().all(|&byte| byte == 0) {
                continue;
            }
            let page = reduction.prepare(&bytes);
            let is_alike = reduction.is_alike(&page, &self.ftl.pages, stored);
            let is_shared = reduction.sharing.as_ref().is_some_and(|sharing| sharing.references(stored) > 1);
            if is_alike || !is_shared {
                self.flash.payload.put_copy(slot, reduction.image(&page));
            }
            if !is_alike {
                changed.push(at);
            }
        }
        Ok(changed)
    }

    /// Timers of rests that have ended are forgotten: nothing comes of them.
    pub(crate) fn forget_ended_rests(&mut self) {
        if let Some(sharing) = self.ftl.reduction.as_ref().and_then(|reduction| reduction.sharing.as_ref()) {
            self.clock.events.retain_timers(|event| !matches!(event, Event::Quiet { rest } if !sharing.is_rest(rest)));
        }
    }

    /// Takes one page of a write into the buffer, as far as it has to be; `false` when it has to wait for room.
    pub(crate) fn take_reduced_page(&mut self, request: u32, span: PageSpan, nth: (u32, u32)) -> bool {
        let which = (request, nth.0);
        let Some(prepared) = self.ftl.reduction.as_mut().map(|reduction| reduction.take_prepared(which)) else {
            return true;
        };
        let mut page = match prepared {
            Some(page) => page,
            None => self.prepare_page(request, span),
        };
        match self.place_prepared(request, span.logical_page, &mut page, nth) {
            Taken::Placed(placement) => self.prepared_page_placed(request, page, placement),
            Taken::Settled => {}
            Taken::Refused => self.refuse_for_space(request),
            Taken::NoRoom => {
                if let Some(reduction) = &mut self.ftl.reduction {
                    reduction.keep_prepared(which, page);
                }
                return false;
            }
        }
        self.note(|counters, bytes| counters.written_bytes += bytes);
        true
    }

    /// Makes of what a write says of a page what is to be stored.
    fn prepare_page(&mut self, request: u32, span: PageSpan) -> Prepared {
        let old = if span.is_whole() { None } else { self.ftl.slot_of(span.logical_page) };
        let zeroes = self.host.writes_zeroes(request);
        let (Some(reduction), Some(r)) = (&mut self.ftl.reduction, &self.host.active[request].request) else {
            return Prepared::default();
        };
        let old = old.and_then(|old| self.flash.payload.image(old));
        if r.buffer.is_none() && old.is_none() {
            return reduction.prepare_modelled();
        }
        let bytes = r.buffer.as_deref().map(|buffer| &buffer[span.in_buffer..span.in_buffer + span.len()]);
        match bytes {
            Some(bytes) if span.is_whole() => reduction.prepare(bytes),
            _ => reduction.prepare_changed(old, |page| match bytes {
                _ if zeroes => page[span.from..span.to].fill(0),
                Some(bytes) => page[span.from..span.to].copy_from_slice(bytes),
                None => {}
            }),
        }
    }

    /// Finds a prepared page its place, if it needs any.
    fn place_prepared(&mut self, request: u32, logical_page: u32, page: &mut Prepared, nth: (u32, u32)) -> Taken {
        if page.is_zero {
            self.deallocate(logical_page);
            return self.note(|counters, bytes| counters.zero_bytes += bytes);
        }
        let is_looked_up = self.is_looked_up(nth.0);
        if is_looked_up && let Some(stored) = self.find_stored(request, page) {
            return self.share(request, logical_page, stored);
        }
        if !self.has_space_for(logical_page, page.slots) {
            return Taken::Refused;
        }
        let Some(reduction) = &mut self.ftl.reduction else { return Taken::Settled };
        let stored = reduction.sharing.as_mut().map_or(logical_page, |sharing| sharing.number_for(logical_page));
        let placement = match self.ftl.pages.overwrite_extent_in_buffer(stored, page.slots, nth) {
            Some(placement) => placement,
            None if self.cache.buffer.is_full() => return Taken::NoRoom,
            None => match self.place_stored(request, stored, page.slots, nth) {
                Some(placement) => placement,
                None => return Taken::NoRoom,
            },
        };
        if let Some(sharing) = self.ftl.reduction.as_mut().and_then(|reduction| reduction.sharing.as_mut()) {
            sharing.wrote(logical_page, stored, page.fingerprint, is_looked_up);
        }
        Taken::Placed(placement)
    }

    /// Finds a stored page its slots.
    fn place_stored(&mut self, request: u32, stored: u32, slots: u32, nth: (u32, u32)) -> Option<Placement> {
        self.clean_before_write(stored);
        let (old, hint) = (self.ftl.pages.slot_of(stored), self.host.active[request].stream);
        let placement = self.place_extent_written(stored, slots, nth, hint)?;
        if let Some(old) = old {
            self.flash.payload.discard(old);
        }
        self.cache.buffer.take_room(
            placement.superpage(),
            slots * self.config.slot_bytes() as u32,
            &mut self.ftl.pages,
        );
        Some(placement)
    }

    /// A prepared page has its place: its content goes there, and superpages that it fills are programmed.
    fn prepared_page_placed(&mut self, request: u32, page: Prepared, placement: Placement) {
        let (page_bytes, slot_bytes) = (self.page.bytes(), self.config.slot_bytes());
        if let Some(reduction) = &mut self.ftl.reduction {
            self.flash.payload.put_copy(placement.slot(), reduction.image(&page));
            reduction.counters.unique_bytes += page_bytes;
            reduction.counters.stored_bytes += u64::from(page.slots) * slot_bytes;
            let done_ns = reduction.compressing.run(self.clock.now_ns, page_bytes);
            self.host.active[request].finish_ns = self.host.active[request].finish_ns.max(done_ns);
        }
        if !placement.new_slot() {
            self.flash.counters.absorbed_bytes.0 += u64::from(page.slots) * slot_bytes;
        }
        if placement.full() {
            self.program_superpage(placement.superpage());
        }
    }

    /// Whether the `n`th page of a write is looked up before it is written.
    fn is_looked_up(&mut self, n: u32) -> bool {
        let sharing = self.ftl.reduction.as_mut().and_then(|reduction| reduction.sharing.as_mut());
        sharing.is_some_and(|sharing| sharing.looks_up(n))
    }

    /// The stored page that is equal to a prepared one, as far as fingerprints in memory tell.
    fn find_stored(&mut self, request: u32, page: &mut Prepared) -> Option<u32> {
        if !std::mem::replace(&mut page.is_hashed, true) {
            self.hash(request, page.fingerprint);
        }
        let sharing = self.ftl.reduction.as_mut()?.sharing.as_mut()?;
        match sharing.look_up(page.fingerprint) {
            Lookup::Stored(stored) => {
                sharing.sample_was_found = true;
                Some(stored)
            }
            Lookup::Unknown => None,
        }
    }

    /// Takes the time of a page's hashes. Of a page whose short hash is new, the fingerprint is computed when nobody
    /// waits for it.
    fn hash(&mut self, request: u32, fingerprint: u128) {
        let Some(reduction) = &mut self.ftl.reduction else { return };
        let Some(sharing) = &reduction.sharing else { return };
        reduction.counters.lookups += 1;
        let mut done_ns = self.clock.now_ns;
        if sharing.config.pre_hash {
            done_ns = reduction.pre_hashing.run(done_ns, 0);
        }
        if !sharing.config.pre_hash || sharing.knows_pre_hash(fingerprint) {
            done_ns = reduction.fingerprinting.run(done_ns, 0);
        }
        self.host.active[request].finish_ns = self.host.active[request].finish_ns.max(done_ns);
    }

    /// A logical page shares what is stored already.
    fn share(&mut self, request: u32, logical_page: u32, stored: u32) -> Taken {
        self.compare(request, stored);
        let Some(sharing) = self.ftl.reduction.as_mut().and_then(|reduction| reduction.sharing.as_mut()) else {
            return Taken::Settled;
        };
        if let Some(released) = sharing.share(logical_page, stored) {
            self.release_stored(released);
        }
        self.note(|counters, bytes| counters.duplicate_bytes += bytes)
    }

    /// Reads a stored page to compare it with one that is written, where that is asked for and the page is on flash.
    fn compare(&mut self, request: u32, stored: u32) {
        let compares = self.config.deduplication().is_some_and(|deduplication| deduplication.compare_on_hit);
        if let (true, Location::Flash(slot)) = (compares, self.ftl.pages.locate(stored)) {
            self.host.active[request].flash_begins(self.clock.now_ns);
            self.host.active[request].pending += self.read_stored(stored, slot, Owner::Compare { request });
        }
    }

    /// One flash page of a stored page that is compared has come.
    pub(crate) fn page_compared(&mut self, request: u32) {
        self.host.active[request].pending -= 1;
        let taken = self.host.active[request].taken;
        if self.host.active[request].pending == 0
            && self.host.range_of(request).is_some_and(|range| range.pages() == taken)
        {
            self.write_placed(request);
        }
    }

    /// Nobody shares a stored page any more.
    fn release_stored(&mut self, stored: u32) {
        if let Some(slot) = self.ftl.pages.trim(stored) {
            self.flash.payload.discard(slot);
        }
    }

    /// Whether there is room for so many slots of a logical page, those that it has now given back.
    fn has_space_for(&self, logical_page: u32, slots: u32) -> bool {
        let Some(reduction) = &self.ftl.reduction else { return true };
        let is_only = |&stored: &u32| match &reduction.sharing {
            Some(sharing) => sharing.references(stored) == 1,
            None => self.ftl.pages.slot_of(stored).is_some(),
        };
        let own = reduction.stored(logical_page).filter(is_only).map_or(0, |stored| self.ftl.pages.slots_of(stored));
        self.ftl.pages.stored_slots() + u64::from(slots) <= reduction.slots_max + u64::from(own)
    }

    /// A page of a write finds no space on the drive, and will not by waiting.
    fn refuse_for_space(&mut self, request: u32) {
        (self.host.active[request].is_refused, self.host.active[request].has_no_space) = (true, true);
        if let Some(reduction) = &mut self.ftl.reduction {
            reduction.counters.refused_pages += 1;
        }
    }

    /// Counts a page.
    fn note(&mut self, of: impl FnOnce(&mut ReductionCounters, u64)) -> Taken {
        let bytes = self.page.bytes();
        if let Some(reduction) = &mut self.ftl.reduction {
            of(&mut reduction.counters, bytes);
        }
        Taken::Settled
    }
}

/// What became of a page of a write.
enum Taken {
    /// It is in these slots.
    Placed(Placement),
    /// It needs none.
    Settled,
    /// It has to wait for a superblock or for room in the buffer.
    NoRoom,
    /// The drive has no space for it.
    Refused,
}

impl SimulatedSsd {
    /// Adds the reading of a page that takes some slots to the commands of a read.
    pub(crate) fn read_extent(&mut self, request: u32, slot: u32, span: PageSpan) {
        let Some(stored) = self.ftl.pages.page_in(slot) else { return };
        self.host.active[request].compressed_bytes += span.len() as u32;
        let (slots, slot_bytes) = (self.ftl.pages.slots_of(stored), self.config.slot_bytes() as u32);
        for (run, n) in self.ftl.pages.geometry.runs(slot, slots) {
            let at = self.ftl.address_of(run);
            self.flash.read_bytes_at(request, at, self.whole_units(run, n * slot_bytes));
        }
    }

    /// Bytes of a run of slots on a flash page, in whole transfer units of that.
    fn whole_units(&self, first: u32, bytes: u32) -> u32 {
        let unit = self.config.flash.transfer_unit_bytes;
        let from = self.ftl.pages.geometry.slot_in_page(first) as u64 * self.config.slot_bytes();
        let to = from + u64::from(bytes);
        ((to.div_ceil(unit) - from / unit) * unit) as u32
    }

    /// Reads a page that is to be written in part.
    pub(crate) fn read_extent_for_fill(&mut self, request: u32, logical_page: u32, slot: u32) {
        self.host.active[request].flash_begins(self.clock.now_ns);
        self.host.active[request].pending += self.read_stored(logical_page, slot, Owner::Fill { request });
    }

    /// Reads a stored page for somebody; gives the number of flash commands.
    fn read_stored(&mut self, stored: u32, slot: u32, owner: Owner) -> u32 {
        let (slots, slot_bytes) = (self.ftl.pages.slots_of(stored), self.config.slot_bytes() as u32);
        let mut reads = 0;
        for (run, n) in self.ftl.pages.geometry.runs(slot, slots) {
            reads += 1;
            let (at, bytes) = (self.ftl.address_of(run), self.whole_units(run, n * slot_bytes));
            let op = self.flash.prepare_read(owner, at, bytes);
            self.issue_host_read(op);
        }
        reads
    }

    /// A part of what a read asks for has come from flash, compressed. With the last one all of it is decompressed, and
    /// goes over the link.
    pub(crate) fn compressed_part_arrived(&mut self, request: u32) {
        self.host.active[request].pending -= 1;
        if self.host.active[request].pending > 0 {
            return;
        }
        let bytes = u64::from(self.host.active[request].compressed_bytes);
        let pages = bytes.div_ceil(self.page.bytes());
        let mut done_ns = self.clock.now_ns;
        if let Some(reduction) = &mut self.ftl.reduction {
            (0..pages).for_each(|_| done_ns = reduction.decompressing.run(self.clock.now_ns, self.page.bytes()));
        }
        let sent_ns = match self.config.host.data_transfer {
            DataTransfer::WholeRequest => done_ns,
            _ => self.host.interface.send(done_ns, 0, bytes),
        };
        self.host.active[request].finish_ns = self.host.active[request].finish_ns.max(sent_ns);
        self.read_ends(request);
    }
}

impl SimulatedSsd {
    /// A request has ended: if it leaves the drive with nothing to do, stored pages are looked up after a while.
    pub(crate) fn request_left(&mut self, request: u32) {
        let is_resting = self.host.is_resting();
        let Some(reduction) = &mut self.ftl.reduction else { return };
        reduction.drop_prepared(request);
        let Some(sharing) = &mut reduction.sharing else { return };
        if sharing.config.out_of_line && sharing.has_unlooked() && is_resting {
            let (at_ns, rest) = (self.clock.now_ns + sharing.config.idle_ns, sharing.begin_rest());
            self.clock.schedule(at_ns, Event::Quiet { rest });
        }
    }

    /// A while has gone by since a rest of the drive started, which may have ended.
    pub(crate) fn drive_is_quiet(&mut self, rest: u32) {
        let sharing = self.ftl.reduction.as_ref().and_then(|reduction| reduction.sharing.as_ref());
        if self.host.is_resting() && sharing.is_some_and(|sharing| sharing.is_rest(rest)) {
            self.look_up_next();
        }
    }

    /// Looks stored pages up that were not, those in the buffer at once, as far as the first that has to be read.
    fn look_up_next(&mut self) {
        while let Some(sharing) = self.ftl.reduction.as_mut().and_then(|reduction| reduction.sharing.as_mut()) {
            if sharing.reads_left > 0 {
                return;
            }
            let Some(stored) = sharing.next_unlooked() else { return };
            if let Location::Flash(slot) = self.ftl.pages.locate(stored) {
                let reads = self.read_stored(stored, slot, Owner::LookUp { stored });
                return self.wait_for_stored(reads);
            }
            self.merge(stored);
        }
    }

    fn wait_for_stored(&mut self, reads: u32) {
        if let Some(sharing) = self.ftl.reduction.as_mut().and_then(|reduction| reduction.sharing.as_mut()) {
            sharing.reads_left = reads;
        }
    }

    /// One flash page of a stored page that is looked up has come. With the last one comes the next page, if the drive
    /// still has nothing else to do.
    pub(crate) fn stored_page_read(&mut self, stored: u32) {
        let Some(sharing) = self.ftl.reduction.as_mut().and_then(|reduction| reduction.sharing.as_mut()) else {
            return;
        };
        sharing.reads_left -= 1;
        if sharing.reads_left > 0 {
            return;
        }
        self.merge(stored);
        if self.host.is_resting() {
            self.look_up_next();
        }
    }

    /// A stored page is looked up: it is given up for an equal one, or its fingerprint is remembered.
    fn merge(&mut self, stored: u32) {
        let bytes = self.page.bytes();
        let Some(reduction) = &mut self.ftl.reduction else { return };
        let Some(sharing) = &mut reduction.sharing else { return };
        // It may have been written again, or trimmed, while it was read.
        let Some(logical_page) = sharing.only_logical_page(stored) else { return };
        reduction.counters.lookups += 1;
        match sharing.look_up(sharing.fingerprint(stored)) {
            Lookup::Stored(equal) if equal != stored => {
                reduction.counters.merged_bytes += bytes;
                if let Some(released) = sharing.share(logical_page, equal) {
                    self.release_stored(released);
                }
            }
            _ => sharing.remember(stored),
        }
    }
}
