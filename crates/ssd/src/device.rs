//! The drive as a [`BlockDevice`]: its parts, its clock, and the loop that runs its events.

use std::collections::VecDeque;

use flashwise_block::{
    BlockDevice, BlockError, ByteSize, Clock, Completion, DeviceCounters, DeviceInfo, FlashCounters, Nanos, Operation,
    Request,
};

use crate::config::{DeviceConfig, Mapping};
use crate::controller::collection::UnitCollector;
use crate::controller::read::RowRead;
use crate::controller::write::{ParkedPage, WriteBuffer};
use crate::controller::{Active, ByteRange, PageSize};
use crate::error::SsdError;
use crate::event::{Event, EventQueue};
use crate::flash::{Finished, FlashAddress, FlashArray, Owner, Statistics};
use crate::ftl::{Ftl, Location};
use crate::host::HostInterface;
use crate::list::{Fifo, Slab};
use crate::payload::Payload;

/// A simulated drive in virtual time.
///
/// Time moves only in [`BlockDevice::wait`] and [`BlockDevice::pause`]. Requests with a buffer carry their bytes, those
/// without take the same time and leave no bytes behind.
pub struct SimulatedSsd {
    pub(crate) config: DeviceConfig,
    pub(crate) page: PageSize,
    info: DeviceInfo,
    pub(crate) now_ns: u64,
    pub(crate) events: EventQueue,

    pub(crate) host: HostInterface,
    pub(crate) active: Slab<Active>,
    /// Requests that the drive has taken and not answered.
    in_drive: u32,
    /// Requests that wait for a place in the drive's queue.
    host_queue: VecDeque<u32>,
    /// First logical pages of the last requests that the drive has taken, for [`Ftl::expect`].
    expected: [u32; 2],
    completed: VecDeque<Completion>,
    outstanding: usize,

    pub(crate) buffer: WriteBuffer,
    /// Pages that wait for room in their unit, unit by unit.
    pub(crate) parked: Vec<Fifo>,
    pub(crate) parked_pages: Slab<ParkedPage>,
    pub(crate) collectors: Vec<UnitCollector>,
    pub(crate) ftl: Ftl,
    pub(crate) flash: FlashArray,
    pub(crate) payload: Payload,

    counters: DeviceCounters,
    pub(crate) flash_counters: FlashCounters,

    // Scratch space, kept so that no request allocates.
    pub(crate) row_reads: Vec<RowRead>,
    pub(crate) scratch_superpages: Vec<u32>,
    pub(crate) bytes_of_die: Vec<u32>,
}

impl SimulatedSsd {
    /// A new, empty drive; `seed` drives the jitter of the flash.
    ///
    /// # Errors
    /// When the configuration describes no possible drive.
    pub fn new(config: DeviceConfig, seed: u64) -> Result<Self, SsdError> {
        config.check(&config.name)?;
        let ftl = match config.ftl.mapping {
            Mapping::Page => Ftl::new(&config),
            Mapping::InPlace => Ftl::idle(&config),
        };
        let info = DeviceInfo {
            name: config.name.clone(),
            capacity: ByteSize(config.capacity_bytes),
            logical_block: ByteSize(config.host.logical_block_bytes),
            max_transfer: ByteSize(config.host.max_transfer_bytes),
            queue_depth: config.host.queue_depth,
            clock: Clock::Virtual,
        };
        let page = PageSize::new(config.ftl.logical_page_bytes);
        Ok(Self {
            page,
            info,
            now_ns: 0,
            events: EventQueue::default(),
            host: HostInterface::new(&config.host),
            active: Slab::default(),
            in_drive: 0,
            host_queue: VecDeque::new(),
            expected: [0; 2],
            completed: VecDeque::new(),
            outstanding: 0,
            buffer: WriteBuffer {
                capacity_pages: config.controller.write_buffer_bytes / page.bytes(),
                used_pages: 0,
                waiting: Fifo::default(),
            },
            parked: vec![Fifo::default(); ftl.geometry.units as usize],
            parked_pages: Slab::default(),
            collectors: vec![UnitCollector::default(); ftl.geometry.units as usize],
            flash: FlashArray::new(&config, seed),
            payload: Payload::new(page.bytes()),
            counters: DeviceCounters::default(),
            flash_counters: FlashCounters::default(),
            row_reads: Vec::new(),
            scratch_superpages: Vec::new(),
            bytes_of_die: vec![0; ftl.geometry.dies_per_unit as usize],
            ftl,
            config,
        })
    }

    /// What the drive is built of.
    pub fn config(&self) -> &DeviceConfig {
        &self.config
    }

    /// Smallest and largest number of P/E cycles of any superblock.
    pub fn erase_counts(&self) -> (u32, u32) {
        let counts = self.ftl.superblocks.blocks.iter().map(|block| block.erase_count);
        (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0))
    }

    /// What the flash has done since the drive is new: times of channels and dies, counts and waits by class of command,
    /// retries, suspensions, energy.
    pub fn flash_statistics(&self) -> &Statistics {
        self.flash.statistics()
    }

    /// Checks the invariants of the whole drive; takes time proportional to its size.
    ///
    /// # Errors
    /// Says which one is broken: each logical page maps to one valid slot and back; valid counts are those of the map;
    /// what the write buffer counts is what is not on flash.
    pub fn check_invariants(&self) -> Result<(), String> {
        self.ftl.check()?;
        let superpages = self.ftl.host_superpages().iter();
        let buffered: u64 = superpages.map(|&superpage| u64::from(self.ftl.superpages[superpage].filled)).sum();
        let parked = self.parked_pages.taken() as u64;
        if buffered + parked != self.buffer.used_pages {
            let (used, held) = (self.buffer.used_pages, buffered + parked);
            return Err(format!("the write buffer counts {used} pages and holds {held}"));
        }
        let known = self.in_drive as usize + self.host_queue.len() + self.completed.len();
        if known != self.outstanding {
            return Err(format!("{} requests are outstanding, {known} are known", self.outstanding));
        }
        Ok(())
    }

    fn is_in_place(&self) -> bool {
        self.config.ftl.mapping == Mapping::InPlace
    }

    /// Where a logical page is.
    pub(crate) fn locate(&self, logical_page: u32) -> Location {
        if self.is_in_place() { Location::Flash(logical_page) } else { self.ftl.locate(logical_page) }
    }

    /// The slot whose bytes are a logical page's.
    pub(crate) fn slot_of(&self, logical_page: u32) -> Option<u32> {
        if self.is_in_place() { Some(logical_page) } else { self.ftl.slot_of(logical_page) }
    }

    /// Forgets a logical page; gives the slot whose bytes go with it.
    pub(crate) fn forget(&mut self, logical_page: u32) -> Option<u32> {
        if self.is_in_place() { Some(logical_page) } else { self.ftl.trim(logical_page) }
    }

    /// Where a slot is, with everything that is sensed by one command with it.
    pub(crate) fn address_of(&self, slot: u32) -> FlashAddress {
        if self.is_in_place() { self.address_in_place(slot) } else { self.ftl.geometry.address_of(slot) }
    }

    /// The bytes that an active request names.
    pub(crate) fn range_of(&self, request: u32) -> Option<ByteRange> {
        self.active[request].request.as_ref().map(|request| ByteRange::of(request, self.page))
    }

    /// Takes requests from the host's queue for as long as the drive's queue has a place.
    fn take_commands(&mut self) {
        while self.in_drive < self.config.host.queue_depth {
            let Some(request) = self.host_queue.pop_front() else { return };
            self.in_drive += 1;
            let ready_ns = self.host.take_command(self.now_ns);
            if let Some(range) = self.range_of(request) {
                let [before, last] = self.expected;
                self.expected = [last, range.first_page()];
                self.ftl.expect(range.first_page(), before);
            }
            let ready_ns = match &self.active[request].request {
                Some(r) if r.operation == Operation::Write => self.host.receive(ready_ns, r.length.bytes()),
                _ => ready_ns,
            };
            self.events.schedule(ready_ns, Event::Command { request });
        }
    }

    /// A command has its first effect.
    fn start(&mut self, request: u32) {
        let Some(operation) = self.active[request].request.as_ref().map(|r| r.operation) else { return };
        match (operation, self.config.ftl.mapping) {
            (Operation::Read, _) => self.start_read(request),
            (Operation::Write, Mapping::Page) => self.start_write(request),
            (Operation::Write, Mapping::InPlace) => self.start_write_in_place(request),
            (Operation::Trim, _) => self.trim(request),
            (Operation::Flush, Mapping::Page) => self.start_flush(request),
            (Operation::Flush, Mapping::InPlace) => self.complete(request),
        }
    }

    /// Answers a request.
    pub(crate) fn complete(&mut self, request: u32) {
        let active = &mut self.active[request];
        let Some(done) = active.request.take() else { return };
        let (submitted_at, failed) = (active.submitted_at, active.failed);
        self.active.give_back(request);
        let counters = &mut self.counters;
        match done.operation {
            Operation::Read => {
                (counters.host_reads, counters.host_bytes_read) =
                    (counters.host_reads + 1, counters.host_bytes_read + done.length)
            }
            Operation::Write => {
                (counters.host_writes, counters.host_bytes_written) =
                    (counters.host_writes + 1, counters.host_bytes_written + done.length)
            }
            Operation::Trim => counters.trims += 1,
            Operation::Flush => counters.flushes += 1,
        }
        self.completed.push_back(Completion {
            tag: done.tag,
            operation: done.operation,
            submitted_at,
            completed_at: Nanos(self.now_ns),
            result: if failed { Err(uncorrectable(&done)) } else { Ok(()) },
            buffer: done.buffer,
        });
        self.in_drive -= 1;
        self.take_commands();
    }

    fn handle(&mut self, event: Event) {
        let finished = match event {
            Event::Command { request } => return self.start(request),
            Event::Dispatch { request } => return self.dispatch(request),
            Event::Completed { request } => return self.complete(request),
            Event::ArrayDone { die } => self.flash.array_done(die, self.now_ns, &mut self.events),
            Event::TransferDone { channel } => self.flash.transfer_done(channel, self.now_ns, &mut self.events),
            Event::Decoded { op } => Some(self.flash.decoded(op, self.now_ns)),
        };
        if let Some(finished) = finished {
            self.flash_op_finished(&finished);
        }
    }

    fn flash_op_finished(&mut self, finished: &Finished) {
        if let (true, Owner::Read { request } | Owner::Fill { request }) = (finished.failed, finished.op.owner) {
            self.active[request].failed = true;
        }
        match finished.op.owner {
            Owner::None => {}
            Owner::Read { request } => self.read_op_finished(request, finished),
            Owner::Fill { request } => {
                self.active[request].pending -= 1;
                match (self.active[request].pending, self.config.ftl.mapping) {
                    (0, Mapping::Page) => self.enqueue_write(request),
                    (0, Mapping::InPlace) => self.program_in_place(request),
                    _ => {}
                }
            }
            Owner::InPlace { request } => self.one_less_pending(request),
            Owner::Superpage { superpage } => self.program_op_finished(superpage),
            Owner::Gc { unit } => self.collection_read_finished(unit),
            Owner::Erase { unit, block } => self.erase_finished(unit, block),
        }
    }

    /// Lets the next event happen; `false` when there is none.
    fn step(&mut self) -> bool {
        let Some((time_ns, event)) = self.events.pop() else { return false };
        debug_assert!(time_ns >= self.now_ns, "time never runs back");
        self.now_ns = time_ns;
        self.handle(event);
        self.flash.settle(self.now_ns, &mut self.events);
        true
    }
}

#[cold]
fn uncorrectable(request: &Request) -> BlockError {
    let Request { operation, offset, length, .. } = *request;
    BlockError::Uncorrectable { operation, offset, length }
}

impl BlockDevice for SimulatedSsd {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        Nanos(self.now_ns)
    }

    fn submit(&mut self, request: Request) -> Result<(), BlockError> {
        self.info.check(&request)?;
        let index = self.active.take();
        self.active[index].start(request, Nanos(self.now_ns));
        self.outstanding += 1;
        self.host_queue.push_back(index);
        self.take_commands();
        Ok(())
    }

    fn wait(&mut self) -> Result<Option<Completion>, BlockError> {
        loop {
            if let Some(completion) = self.completed.pop_front() {
                self.outstanding -= 1;
                return Ok(Some(completion));
            }
            if self.outstanding == 0 {
                return Ok(None);
            }
            if !self.step() {
                return Err(BlockError::Protocol("the simulated drive lost a request"));
            }
        }
    }

    fn outstanding(&self) -> usize {
        self.outstanding
    }

    fn pause(&mut self, duration: Nanos) -> Result<(), BlockError> {
        let end_ns = self.now_ns.saturating_add(duration.0);
        while self.events.next_time().is_some_and(|time_ns| time_ns <= end_ns) {
            self.step();
        }
        self.now_ns = end_ns;
        Ok(())
    }

    fn counters(&self) -> DeviceCounters {
        DeviceCounters { flash: Some(self.flash_counters), ..self.counters }
    }
}
