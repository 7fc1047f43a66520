//! The drive as a [`BlockDevice`](flashwise_block::BlockDevice): its parts, and what can be looked at. What happens to a
//! request is in `requests.rs`.

mod requests;

pub(crate) use requests::LOST;

use std::collections::BTreeMap;

use flashwise_block::{BlockError, ByteSize, Clock, DeviceCounters, DeviceInfo, FlashCounters, Operation};

use crate::config::{DeviceConfig, DomainConfig, Mapping, QueuePriority};
use crate::controller::collection::UnitCollector;
use crate::controller::dram::Dram;
use crate::controller::element::WholeRequestLink;
use crate::controller::read::RowRead;
use crate::controller::read_ahead::ReadAhead;
use crate::controller::read_cache::{ReadCache, ReadCacheCounters};
use crate::controller::slc_cache::{Folding, SlcCacheCounters};
use crate::controller::translate::Translator;
use crate::controller::write::{ParkedPage, WriteBuffer};
use crate::controller::write_cache::{WriteCache, WriteCacheCounters};
use crate::controller::{Active, ByteRange, PageSize};
use crate::error::SsdError;
use crate::event::EventQueue;
use crate::flash::{FlashAddress, FlashArray, Statistics};
use crate::ftl::blocks::{BlockFtl, BlockSpace, Fast, Replacement, Step};
use crate::ftl::element::{CleaningStatistics, Elements};
use crate::ftl::geometry::Geometry;
use crate::ftl::mapping_cache::{MappingCache, Rules, Split};
use crate::ftl::sectors::Sectors;
use crate::ftl::streams::foresight::{Foresight, WRITES_MAX};
use crate::ftl::wear::InPlaceWear;
use crate::ftl::{Ftl, Location};
use crate::host::{HostInterface, StageTimes, SubmissionQueues};
use crate::life::EndOfLife;
use crate::list::{Fifo, Slab};
use crate::payload::Payload;
use crate::power::DurableState;
use crate::reduction::Reduction;

/// Superpages of one forced write for which memory is taken beforehand.
const MOST_TOUCHED: usize = 64;

/// A simulated drive in virtual time.
///
/// Time moves only in [`wait`](flashwise_block::BlockDevice::wait) and [`pause`](flashwise_block::BlockDevice::pause).
/// Requests with a buffer carry their bytes, those without take the same time and leave no bytes behind.
pub struct SimulatedSsd {
    pub(crate) config: DeviceConfig,
    pub(crate) page: PageSize,
    info: DeviceInfo,
    /// Drives what is left to chance.
    pub(crate) seed: u64,
    /// The bits of an address inside a logical block; all of them where its length is no power of two.
    in_logical_block: u64,
    pub(crate) now_ns: u64,
    pub(crate) events: EventQueue,

    pub(crate) host: HostInterface,
    pub(crate) active: Slab<Active>,
    /// Requests that the drive has taken and not answered.
    in_drive: u32,
    /// Requests that wait for a place in the drive.
    queues: SubmissionQueues,
    /// The last requests that the drive has been told of.
    expected: Expectations,
    /// The drive is told of requests before they come, by [`Self::expect`].
    is_told: bool,
    /// Requests that are answered and not given back, in the order of their answers, and how many there are.
    completed: Fifo,
    pub(crate) answered: u32,
    outstanding: u64,

    pub(crate) dram: Dram,
    pub(crate) write_cache: Option<Box<WriteCache>>,
    pub(crate) read_cache: Option<Box<ReadCache>>,
    pub(crate) ahead: Option<Box<ReadAhead>>,
    /// Pages are mapped one by one, and nothing but the write buffer stands before the flash of a read.
    pub(crate) reads_plainly: bool,
    pub(crate) buffer: WriteBuffer,
    /// Pages that wait for room in their unit, unit by unit; in the last list, those that any unit may take.
    pub(crate) parked: Vec<Fifo>,
    pub(crate) parked_pages: Slab<ParkedPage>,
    pub(crate) collectors: Vec<UnitCollector>,
    /// Flash commands of the host that wait until their unit is clean, unit by unit.
    pub(crate) held: Vec<Fifo>,
    /// Superblocks that were chosen to be emptied since the host has nothing outstanding and nothing left the buffer.
    pub(crate) emptied_unasked: u32,
    /// The drive has run out of spare superblocks.
    pub(crate) read_only: bool,
    pub(crate) end_of_life: Option<EndOfLife>,
    /// Wear of a medium that is written in place, where it has a limit.
    pub(crate) in_place_wear: Option<Box<InPlaceWear>>,
    pub(crate) ftl: Ftl,
    pub(crate) folding: Folding,
    pub(crate) slc_counters: SlcCacheCounters,
    pub(crate) sectors: Sectors,
    /// The look-up of a page map that does not fit controller memory.
    pub(crate) translator: Option<Translator>,
    /// The FTL where it maps blocks.
    pub(crate) blocks: Option<Box<dyn BlockFtl + Send>>,
    /// The elements where they map pages by themselves.
    pub(crate) elements: Option<Box<Elements>>,
    pub(crate) link: WholeRequestLink,
    pub(crate) flash: FlashArray,
    pub(crate) payload: Payload,
    /// What is done to store less than is written, where anything is.
    pub(crate) reduction: Option<Box<Reduction>>,
    /// What a power cut would leave, where that is asked for.
    pub(crate) durable: Option<Box<DurableState>>,

    counters: DeviceCounters,
    stage_times: [StageTimes; 2],
    pub(crate) flash_counters: FlashCounters,

    // Scratch space, kept so that no request allocates.
    pub(crate) row_reads: Vec<RowRead>,
    pub(crate) scratch_superpages: Vec<u32>,
    pub(crate) bytes_of_die: Vec<u32>,
    pub(crate) scratch_steps: Vec<Step>,
}

/// A request that is about to come: its first logical page, and whether it writes.
#[derive(Clone, Copy, Default)]
struct Expected {
    page: u32,
    is_write: bool,
}

/// The last requests that were about to come.
#[derive(Default)]
struct Expectations {
    told: [Expected; 8],
    turn: usize,
}

impl Expectations {
    #[inline(always)]
    fn push(&mut self, request: Expected) {
        self.turn = self.turn.wrapping_add(1);
        self.told[self.turn % self.told.len()] = request;
    }

    /// The request that came so many before the last one.
    #[inline(always)]
    fn before(&self, back: usize) -> Expected {
        self.told[self.turn.wrapping_sub(back) % self.told.len()]
    }
}

/// The answer to a request without a buffer: what a [`Completion`] tells, in as few bytes as it takes.
pub(crate) struct Answer {
    pub(crate) tag: u64,
    pub(crate) operation: Operation,
    /// When it was submitted, when the drive took it, and when it was done.
    pub(crate) submitted_ns: u64,
    pub(crate) taken_ns: u64,
    pub(crate) completed_ns: u64,
    /// Why it was not done.
    pub(crate) error: Option<Box<BlockError>>,
}

/// The look-up of a drive whose page map lies on flash.
fn translator(config: &DeviceConfig, geometry: &Geometry) -> Option<Translator> {
    let cache = config.ftl.mapping_cache.as_ref()?;
    let (pages, entries) = (config.logical_pages() as u32, cache.entries_per_page(config) as u32);
    let capacity = cache.capacity_entries() as u32;
    let load_bytes = cache.load_bytes.unwrap_or(config.ftl.logical_page_bytes as u32);
    let domains = &config.ftl.domains;
    let split = match domains.len() {
        several @ 2.. if several == cache.partitions as usize => Split::At(ends_of(domains, config)),
        _ => Split::evenly(pages, cache.partitions),
    };
    let room = (capacity, split);
    let rules = Rules {
        stored_at_start: cache.stored_at_start,
        deferred_write_back: cache.deferred_write_back,
        write_back_renews: cache.write_back_renews,
    };
    let cache = MappingCache::new(pages, entries, room, rules);
    Some(Translator::new(cache, pages, load_bytes, geometry.units))
}

/// The logical page behind the last of each domain.
fn ends_of(domains: &[DomainConfig], config: &DeviceConfig) -> Box<[u32]> {
    let mut end = 0;
    let ends = domains.iter().map(|domain| {
        end += domain.capacity_bytes / config.ftl.logical_page_bytes;
        end as u32
    });
    ends.collect()
}

/// The FTL of a drive that maps blocks.
fn block_ftl(config: &DeviceConfig, geometry: &Geometry) -> Option<Box<dyn BlockFtl + Send>> {
    let space = || BlockSpace::new(geometry, config.capacity_bytes / config.ftl.logical_page_bytes);
    match config.ftl.mapping {
        Mapping::Page | Mapping::InPlace | Mapping::Element => None,
        Mapping::Block => Some(Box::new(Replacement::new(space(), config.ftl.replacement_blocks))),
        Mapping::Fast => Some(Box::new(Fast::new(space(), config.ftl.log_blocks))),
    }
}

crate::state::state! {
    SimulatedSsd {
        saved {
            now_ns, events, host, queues, dram, write_cache, read_cache, ahead, buffer, collectors, emptied_unasked,
            read_only, end_of_life, in_place_wear, ftl, folding, slc_counters, sectors, translator, blocks, elements,
            flash, reduction, counters, stage_times, flash_counters,
        }
        at_rest { active, in_drive, outstanding, completed, answered, parked, parked_pages, held, link }
        built {
            config, page, info, seed, in_logical_block, expected, is_told, reads_plainly, payload, durable, row_reads,
            scratch_superpages, bytes_of_die, scratch_steps,
        }
    }
}

/// P/E cycles that the blocks of a drive have left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RemainingLife {
    /// Of the most worn block.
    pub least: u32,
    /// Of the least worn block.
    pub most: u32,
    /// Mean over all blocks.
    pub mean: f64,
    /// Standard deviation over all blocks (n − 1).
    pub deviation: f64,
}

impl RemainingLife {
    fn of(lives: impl Iterator<Item = u32> + Clone) -> Self {
        let count = lives.clone().count() as f64;
        let mean = lives.clone().map(f64::from).sum::<f64>() / count;
        let squares: f64 = lives.clone().map(|life| (f64::from(life) - mean).powi(2)).sum();
        let (least, most) = (lives.clone().min().unwrap_or(0), lives.max().unwrap_or(0));
        Self { least, most, mean, deviation: (squares / (count - 1.0).max(1.0)).sqrt() }
    }
}

impl SimulatedSsd {
    /// A new, empty drive; `seed` drives the jitter of the flash.
    ///
    /// # Errors
    /// When the configuration describes no possible drive.
    pub fn new(config: DeviceConfig, seed: u64) -> Result<Self, SsdError> {
        config.check(&config.name)?;
        let ftl = match config.ftl.mapping {
            Mapping::Page => Ftl::new(&config, seed),
            Mapping::InPlace | Mapping::Element => Ftl::idle(&config, Geometry::trivial()),
            Mapping::Block | Mapping::Fast => Ftl::idle(&config, Geometry::new(&config)),
        };
        let blocks = block_ftl(&config, &ftl.geometry);
        let info = DeviceInfo {
            name: config.name.clone(),
            capacity: ByteSize(config.capacity_bytes),
            logical_block: ByteSize(config.host.logical_block_bytes),
            max_transfer: ByteSize(config.host.max_transfer_bytes),
            queue_depth: config.host.queue_depth,
            clock: Clock::Virtual,
        };
        let page = PageSize::new(config.ftl.logical_page_bytes);
        let logical_block = config.host.logical_block_bytes;
        let (write_cache, read_cache, ahead) =
            (WriteCache::new(&config), ReadCache::new(&config), ReadAhead::new(&config));
        let has_caches = write_cache.is_some() || read_cache.is_some() || ahead.is_some();
        Ok(Self {
            page,
            info,
            seed,
            in_logical_block: if logical_block.is_power_of_two() { logical_block - 1 } else { u64::MAX },
            now_ns: 0,
            events: EventQueue::default(),
            host: HostInterface::new(&config.host),
            active: Slab::default(),
            in_drive: 0,
            queues: SubmissionQueues::new(&config.host),
            expected: Expectations::default(),
            is_told: false,
            completed: Fifo::default(),
            answered: 0,
            outstanding: 0,
            dram: Dram::new(&config.controller),
            write_cache,
            read_cache,
            ahead,
            reads_plainly: config.ftl.mapping == Mapping::Page && !has_caches && config.reduction.is_none(),
            sectors: Sectors::new(&config),
            buffer: WriteBuffer {
                capacity_bytes: config.controller.write_buffer_bytes / page.bytes() * page.bytes(),
                used_bytes: 0,
                parked_bytes: 0,
                least_bytes: 0,
                waiting: Fifo::default(),
                is_admitting: false,
                has_changed: false,
            },
            parked: vec![Fifo::default(); ftl.geometry.units as usize + 1],
            parked_pages: Slab::default(),
            collectors: vec![UnitCollector::default(); ftl.geometry.units as usize],
            emptied_unasked: 0,
            held: vec![Fifo::default(); ftl.geometry.units as usize],
            read_only: false,
            end_of_life: None,
            in_place_wear: InPlaceWear::new(&config).map(Box::new),
            flash: FlashArray::new(&config, seed),
            payload: Payload::new(Reduction::content_bytes(&config)),
            reduction: Reduction::new(&config, seed),
            folding: Folding::default(),
            slc_counters: SlcCacheCounters::default(),
            durable: None,
            counters: DeviceCounters::default(),
            stage_times: [StageTimes::default(); 2],
            flash_counters: FlashCounters::default(),
            row_reads: Vec::new(),
            scratch_superpages: Vec::new(),
            bytes_of_die: vec![0; ftl.geometry.dies_per_unit as usize],
            scratch_steps: Vec::new(),
            translator: translator(&config, &ftl.geometry),
            elements: (config.ftl.mapping == Mapping::Element).then(|| Box::new(Elements::new(&config, seed))),
            link: WholeRequestLink::default(),
            ftl,
            blocks,
            config,
        })
    }

    /// Takes memory for so many bytes of content that requests will bring, so that writing them takes none.
    pub fn reserve_content(&mut self, content: ByteSize) {
        self.payload.reserve((content.0 / self.page.bytes()) as usize);
    }

    /// Takes memory for so many requests that are under way at once, so that they take none while they wait for flash, however
    /// many superpages they wait for.
    pub fn reserve_requests(&mut self, requests: usize) {
        let pages = self.config.controller.write_buffer_bytes / self.config.ftl.logical_page_bytes;
        let superpages = self.ftl.reserve_superpages(pages, requests);
        self.active.reserve(requests, |active| active.touched.reserve(MOST_TOUCHED));
        self.scratch_superpages.reserve(superpages);
    }

    /// What the drive is built of.
    pub fn config(&self) -> &DeviceConfig {
        &self.config
    }

    /// How often an entry of the page map was found in controller memory, and how often not; `None` where all of it is
    /// there.
    pub fn mapping_cache_hits_and_misses(&self) -> Option<(u64, u64)> {
        self.translator.as_ref().map(|translator| (translator.counters().hits, translator.counters().misses))
    }

    /// Tells the drive which logical pages the host writes from now on, one after the other, so that pages can be placed by
    /// when they die (`ftl.streams.foresight_error`).
    ///
    /// # Errors
    /// When the drive's streams do not go by that, or the list is longer than 2²⁹ writes.
    pub fn foretell(&mut self, writes: &[u32]) -> Result<(), SsdError> {
        let refused = |reason: &str| Err(SsdError::Precondition { state: "foresight", reason: reason.to_owned() });
        let Some(error) = self.config.ftl.streams.foresight_error else {
            return refused("the drive does not go by it: set ftl.streams.foresight_error");
        };
        if writes.len() > WRITES_MAX {
            return refused("more than 2^29 writes of pages cannot be told beforehand");
        }
        self.ftl.foresee(Foresight::new(self.config.logical_pages(), writes, error));
        Ok(())
    }

    /// What the write cache did; `None` where there is none.
    pub fn write_cache_counters(&self) -> Option<WriteCacheCounters> {
        self.write_cache.as_ref().map(|cache| cache.counters)
    }

    /// What the read cache and read-ahead did; `None` where there is no read cache.
    pub fn read_cache_counters(&self) -> Option<ReadCacheCounters> {
        self.read_cache.as_ref().map(|cache| cache.counters)
    }

    /// How long completed reads, and completed writes (of bytes and of zeros), spent in each stage.
    pub fn stage_times(&self) -> (StageTimes, StageTimes) {
        (self.stage_times[0], self.stage_times[1])
    }

    /// Smallest and largest number of P/E cycles of any superblock.
    pub fn erase_counts(&self) -> (u32, u32) {
        fn span(counts: impl Iterator<Item = u32> + Clone) -> (u32, u32) {
            (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0))
        }
        match (&self.blocks, &self.elements) {
            (Some(blocks), _) => span(blocks.space().erase_counts()),
            (_, Some(_)) => span(self.element_erase_counts()),
            _ => {
                let (least, most) = span(self.ftl.used_superblocks().map(|block| block.erase_count));
                (if self.ftl.fresh_superblocks() > 0 { 0 } else { least }, most)
            }
        }
    }

    /// What the flash has done since the drive is new: times of channels and dies, counts and waits by class of command,
    /// retries, suspensions, energy.
    pub fn flash_statistics(&self) -> Statistics {
        self.flash.statistics()
    }

    /// How many superblocks have gone through how many P/E cycles; empty for media that need no erase.
    pub fn erase_histogram(&self) -> BTreeMap<u32, u64> {
        match &self.blocks {
            _ if self.is_in_place() => BTreeMap::new(),
            Some(blocks) => histogram(blocks.space().erase_counts()),
            None if self.elements.is_some() => histogram(self.element_erase_counts()),
            None => {
                let mut histogram = histogram(self.ftl.used_superblocks().map(|block| block.erase_count));
                if let fresh @ 1.. = self.ftl.fresh_superblocks() {
                    *histogram.entry(0).or_default() += fresh;
                }
                histogram
            }
        }
    }

    /// Gives a submission queue, in which no command waits, its class under weighted round robin.
    pub(crate) fn set_queue_class(&mut self, queue: u16, class: QueuePriority) {
        self.queues.set_class(queue, class);
    }

    /// Logical pages that are mapped, in slots, and the sum of what the superblocks count as valid: the same number.
    pub fn mapped_and_valid_pages(&self) -> (u64, u64) {
        if let Some(elements) = &self.elements {
            return elements.mapped_and_valid_pages();
        }
        let valid = self.ftl.used_superblocks().map(|block| u64::from(block.valid)).sum();
        (self.ftl.stored_slots(), valid)
    }

    /// Bytes of host data that are in the write cache or the write buffer and not on flash, at most.
    pub fn buffered_bytes(&self) -> u64 {
        let cached = self.write_cache.as_ref().map_or(0, |cache| cache.held_pages());
        self.buffer.used_bytes + u64::from(cached) * self.page.bytes()
    }

    /// What cleaning has done in a drive of elements; `None` for other drives.
    pub fn cleaning_statistics(&self) -> Option<CleaningStatistics> {
        self.elements.as_ref().map(|elements| elements.statistics())
    }

    /// What the blocks of a drive of elements have left of their lives: smallest, largest, mean, and standard deviation;
    /// `None` for other drives.
    pub fn remaining_life(&self) -> Option<RemainingLife> {
        self.elements.as_ref().map(|elements| RemainingLife::of(elements.lives()))
    }

    /// Checks the invariants of the whole drive; takes time proportional to its size.
    ///
    /// # Errors
    /// Says which one is broken: each logical page maps to one valid slot and back; valid counts are those of the map;
    /// what the write buffer counts is what is not on flash.
    pub fn check_invariants(&self) -> Result<(), String> {
        match (&self.blocks, &self.elements) {
            (Some(blocks), _) => blocks.space().check()?,
            (_, Some(elements)) => elements.check()?,
            _ => self.ftl.check()?,
        }
        if let Some(reduction) = &self.reduction {
            reduction.check(&self.ftl)?;
        }
        let superpages = self.ftl.host_superpages().iter();
        let buffered: u64 = superpages.map(|&superpage| u64::from(self.ftl.superpages[superpage].held_bytes)).sum();
        let leaving = self.write_cache.as_ref().map_or(0, |cache| cache.leaving_bytes);
        let (used, held) = (self.buffer.used_bytes, buffered + self.buffer.parked_bytes + leaving);
        if used != held {
            return Err(format!("the write buffer counts {used} bytes and holds {held}"));
        }
        self.write_cache.as_ref().map_or(Ok(()), |cache| cache.check())?;
        self.read_cache.as_ref().map_or(Ok(()), |cache| cache.check())?;
        self.check_copies()?;
        let known = u64::from(self.in_drive) + self.queues.waiting() as u64 + u64::from(self.answered);
        if known != self.outstanding {
            return Err(format!("{} requests are outstanding, {known} are known", self.outstanding));
        }
        Ok(())
    }

    /// Whether the drive holds anything of the logical page that a byte is on. Media that are written in place hold all.
    pub fn is_mapped(&self, byte: ByteSize) -> bool {
        let page = self.page.of_byte(byte.0);
        self.slot_of(page).is_some() || self.write_cache.as_ref().is_some_and(|cache| cache.entry_of(page).is_some())
    }

    /// Whether the drive carries bytes of anything.
    pub fn carries_bytes(&self) -> bool {
        !self.payload.is_empty()
    }

    /// Whether the drive carries bytes of the logical page that a byte is on, apart from those in a write cache.
    pub fn carries_bytes_of(&self, byte: ByteSize) -> bool {
        self.slot_of(self.page.of_byte(byte.0)).is_some_and(|slot| self.payload.image(slot).is_some())
    }

    /// Whether a power cut now would leave the logical page that a byte is on as it is.
    pub fn is_durable(&self, byte: ByteSize) -> bool {
        let page = self.page.of_byte(byte.0);
        let is_cached = self.write_cache.as_ref().is_some_and(|cache| cache.entry_of(page).is_some());
        !self.has_volatile_memory() || !is_cached && !matches!(self.locate(page), Location::Buffer(_))
    }

    /// Whether a power cut loses anything that was answered and not flushed.
    pub fn has_volatile_memory(&self) -> bool {
        let has_memory = self.config.ftl.mapping == Mapping::Page || self.write_cache.is_some();
        has_memory && !self.config.controller.power_loss_protection
    }

    /// Whether no logical page has a place yet.
    pub(crate) fn is_unmapped(&self) -> bool {
        match (&self.blocks, &self.elements) {
            (Some(blocks), _) => blocks.space().is_empty(),
            (_, Some(elements)) => elements.is_empty(),
            _ => self.ftl.is_empty(),
        }
    }

    fn is_in_place(&self) -> bool {
        self.config.ftl.mapping == Mapping::InPlace
    }

    /// Where a logical page is.
    #[inline]
    pub(crate) fn locate(&self, logical_page: u32) -> Location {
        match self.config.ftl.mapping {
            Mapping::Page => match &self.reduction {
                Some(reduction) => {
                    reduction.stored(logical_page).map_or(Location::Nowhere, |page| self.ftl.locate(page))
                }
                None => self.ftl.locate(logical_page),
            },
            _ => self.slot_of(logical_page).map_or(Location::Nowhere, Location::Flash),
        }
    }

    /// The slot whose bytes are a logical page's.
    pub(crate) fn slot_of(&self, logical_page: u32) -> Option<u32> {
        match (&self.blocks, &self.elements) {
            (Some(blocks), _) => blocks.space().slot_of(logical_page),
            (_, Some(elements)) => elements.slot_of(logical_page),
            _ if self.is_in_place() => Some(logical_page),
            _ => match &self.reduction {
                Some(reduction) => self.ftl.slot_of(reduction.stored(logical_page)?),
                None => self.ftl.slot_of(logical_page),
            },
        }
    }

    /// Forgets a logical page; gives the slot whose bytes go with it.
    pub(crate) fn forget(&mut self, logical_page: u32) -> Option<u32> {
        let in_place = self.is_in_place();
        match (&mut self.blocks, &mut self.elements) {
            (Some(blocks), _) => blocks.space_mut().trim(logical_page),
            (_, Some(elements)) => elements.trim(logical_page),
            _ if in_place => Some(logical_page),
            _ => match &mut self.reduction {
                Some(reduction) => self.ftl.trim(reduction.forget(logical_page)?),
                None => self.ftl.trim(logical_page),
            },
        }
    }

    /// Where a slot is, with everything that is sensed by one command with it.
    #[inline]
    pub(crate) fn address_of(&self, slot: u32) -> FlashAddress {
        if self.is_in_place() { self.address_in_place(slot) } else { self.ftl.geometry.address_of(slot) }
    }

    /// The bytes that an active request names.
    pub(crate) fn range_of(&self, request: u32) -> Option<ByteRange> {
        self.active[request].request.as_ref().map(|request| ByteRange::of(request, self.page))
    }
}

impl SimulatedSsd {
    /// P/E cycles of each block of a drive of elements.
    fn element_erase_counts(&self) -> impl Iterator<Item = u32> + Clone {
        let lifetime = self.config.ftl.element.lifetime_erasures;
        self.elements.iter().flat_map(|elements| elements.lives()).map(move |life| lifetime - life)
    }
}

/// How often each number comes. Equal neighbours, the rule on a drive that is young, are counted together.
fn histogram(numbers: impl Iterator<Item = u32>) -> BTreeMap<u32, u64> {
    let mut histogram = BTreeMap::new();
    let (mut number, mut run) = (0, 0);
    for next in numbers {
        if next != number && run > 0 {
            *histogram.entry(number).or_default() += run;
            run = 0;
        }
        (number, run) = (next, run + 1);
    }
    if run > 0 {
        *histogram.entry(number).or_default() += run;
    }
    histogram
}
#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_histogram_counts_every_number_however_often_it_comes_again(numbers in prop::collection::vec(0_u32..4, 0..40)) {
            let mut expected = BTreeMap::new();
            numbers.iter().for_each(|&number| *expected.entry(number).or_default() += 1);
            prop_assert_eq!(histogram(numbers.into_iter()), expected);
        }
    }
}
