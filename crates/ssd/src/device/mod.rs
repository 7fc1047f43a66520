//! The drive: its parts, and what can be examined from outside.
//!
//! ```text
//!   SimulatedSsd
//!     host        queues, active requests, completions, link           crate::host
//!     cache       DRAM, write cache, write buffer, read cache          crate::cache
//!     collector   garbage collection in progress, end of life            crate::collector
//!     ftl         where pages are and go                               crate::ftl
//!     flash       array, bytes, counters                               crate::flash
//!     clock       time and events                                      crate::clock
//!     power       what a power cut would leave                         crate::power
//! ```
//!
//! How a request is handed from part to part is in [`crate::controller`], which knows this type; no part does.

mod inspection;

pub use inspection::BlockWear;

use std::collections::BTreeMap;

use flashwise_block::ByteSize;

use crate::cache::{Cache, ReadCacheCounters, WriteCacheCounters};
use crate::clock::Clock;
use crate::collector::Collector;
use crate::config::{DeviceConfig, QueuePriority};
use crate::error::SsdError;
use crate::flash::{FlashAddress, Medium, Statistics};
use crate::ftl::element::{CleaningStatistics, Elements};
use crate::ftl::gc::{Shape, VictimPolicy};
use crate::ftl::streams::foresight::{Foresight, WRITES_MAX};
use crate::ftl::{AnyFtl, Location};
use crate::host::{Host, StageTimes};
use crate::pages::PageSize;
use crate::power::Power;
use crate::translation::Translation;

/// Superpages of one forced write for which memory is taken beforehand.
const MOST_TOUCHED: usize = 64;

/// Events of one request for which memory is taken beforehand: of each sort one, and pages that are decoded.
const MOST_EVENTS_OF_A_REQUEST: usize = 16;

/// Events for which memory is taken beforehand, whatever a drive is like: eight times 16 bytes each.
const MOST_EVENTS_RESERVED: usize = 1 << 16;

/// A simulated drive in virtual time.
///
/// Time moves only in [`wait`](flashwise_block::BlockDevice::wait) and [`pause`](flashwise_block::BlockDevice::pause).
/// Requests with a buffer carry their bytes, those without take the same time and leave no bytes behind.
pub struct SimulatedSsd {
    pub(crate) config: DeviceConfig,
    pub(crate) page: PageSize,
    /// Drives what is left to chance.
    pub(crate) seed: u64,
    pub(crate) clock: Clock,
    pub(crate) host: Host,
    pub(crate) cache: Cache,
    pub(crate) collector: Collector,
    pub(crate) ftl: Translation,
    pub(crate) flash: Medium,
    pub(crate) power: Power,
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
        let ftl = Translation::new(&config, seed);
        Ok(Self {
            page: PageSize::new(config.ftl.logical_page_bytes),
            seed,
            clock: Clock::default(),
            host: Host::new(&config),
            cache: Cache::new(&config, &ftl.pages.geometry),
            collector: Collector::new(&config, &ftl.pages.geometry),
            flash: Medium::new(&config, seed),
            power: Power::default(),
            ftl,
            config,
        })
    }

    /// A new, empty drive whose garbage collection takes the victims that a policy of the caller names, whatever
    /// `ftl.gc.policy` says; all else is as the configuration has it. `policy` is given how many superblocks there are.
    ///
    /// Such a drive's state cannot be saved, and no theory says what its steady state is: bring it there by writing.
    ///
    /// # Errors
    /// When the configuration describes no possible drive, or one that does not map pages.
    ///
    /// # Panics
    /// Later, when the policy names a superblock that is not sealed.
    pub fn with_victim_policy(
        config: DeviceConfig,
        seed: u64,
        policy: impl FnOnce(Shape) -> Box<dyn VictimPolicy + Send>,
    ) -> Result<Self, SsdError> {
        let mut drive = Self::new(config, seed)?;
        if !drive.ftl.is_page_map() {
            return Err(SsdError::Impossible {
                path: drive.config.name,
                key: "ftl.mapping",
                value: format!("{:?}", drive.config.ftl.mapping.name()),
                reason: "a garbage-collection policy requires mapping = \"page\"".to_owned(),
            });
        }
        drive.ftl.pages.choose_victims_by(&drive.config, policy);
        Ok(drive)
    }

    /// Whether its victims are chosen by a policy of the caller's.
    pub fn has_own_victim_policy(&self) -> bool {
        self.ftl.pages.has_own_victim_policy()
    }

    /// Takes memory for so many bytes of content that requests will bring, so that writing them takes none.
    pub fn reserve_content(&mut self, content: ByteSize) {
        self.flash.payload.reserve((content.0 / self.page.bytes()) as usize);
    }

    /// Takes memory for so many requests that are in progress at once, so that they take none while they wait for
    /// flash, however many superpages they wait for and in whatever order the flash is done.
    pub fn reserve_requests(&mut self, requests: usize) {
        let pages = self.config.controller.write_buffer_bytes / self.config.ftl.logical_page_bytes;
        let superpages = self.ftl.pages.reserve_superpages(pages, requests);
        self.host.active.reserve(requests, |active| active.touched.reserve(MOST_TOUCHED));
        self.cache.buffer.to_program.reserve(superpages);
        let events = self.flash.array.most_events() + requests * MOST_EVENTS_OF_A_REQUEST;
        self.clock.events.reserve(events.min(MOST_EVENTS_RESERVED));
    }

    /// What the drive is built of.
    pub fn config(&self) -> &DeviceConfig {
        &self.config
    }

    /// How often an entry of the page map was found in controller memory, and how often not; `None` where all of it is
    /// there.
    pub fn mapping_cache_hits_and_misses(&self) -> Option<(u64, u64)> {
        self.ftl.translator.as_ref().map(|translator| (translator.counters().hits, translator.counters().misses))
    }

    /// Sets the logical pages that the host will write from now on, in order, so that pages can be placed by their
    /// death time (`ftl.streams.foresight_error`).
    ///
    /// # Errors
    /// When the drive's streams do not use it, or the list is longer than 2²⁹ writes.
    pub fn set_future_writes(&mut self, writes: &[u32]) -> Result<(), SsdError> {
        let refused = |reason: &str| Err(SsdError::Precondition { state: "foresight", reason: reason.to_owned() });
        let Some(error) = self.config.ftl.streams.foresight_error else {
            return refused("the drive does not use it: set ftl.streams.foresight_error");
        };
        if writes.len() > WRITES_MAX {
            return refused("at most 2^29 page writes are supported");
        }
        self.ftl.pages.foresee(Foresight::new(self.config.logical_pages(), writes, error));
        Ok(())
    }

    /// What the write cache did; `None` where there is none.
    pub fn write_cache_counters(&self) -> Option<WriteCacheCounters> {
        self.cache.write.as_ref().map(|cache| cache.counters)
    }

    /// What the read cache and read-ahead did; `None` where there is no read cache.
    pub fn read_cache_counters(&self) -> Option<ReadCacheCounters> {
        self.cache.read.as_ref().map(|cache| cache.counters)
    }

    /// How long completed reads, and completed writes (of bytes and of zeros), spent in each stage.
    pub fn stage_times(&self) -> (StageTimes, StageTimes) {
        (self.host.stage_times[0], self.host.stage_times[1])
    }

    /// Smallest and largest number of P/E cycles of any superblock.
    pub fn erase_counts(&self) -> (u32, u32) {
        let histogram = self.ftl.erase_histogram();
        let least_and_most = (histogram.first_key_value(), histogram.last_key_value());
        (least_and_most.0.map_or(0, |(&least, _)| least), least_and_most.1.map_or(0, |(&most, _)| most))
    }

    /// What the flash has done since the drive is new: times of channels and dies, counts and waits by class of
    /// command, retries, suspensions, energy.
    pub fn flash_statistics(&self) -> Statistics {
        self.flash.array.statistics()
    }

    /// How many superblocks have gone through how many P/E cycles; empty for media that need no erase.
    pub fn erase_histogram(&self) -> BTreeMap<u32, u64> {
        self.ftl.erase_histogram()
    }

    /// Gives a submission queue, in which no command waits, its class under weighted round robin.
    pub fn set_queue_class(&mut self, queue: u16, class: QueuePriority) {
        self.host.queues.set_class(queue, class);
    }

    /// Logical pages that are mapped, in slots, and the sum of what the superblocks count as valid: the same number.
    pub fn mapped_and_valid_pages(&self) -> (u64, u64) {
        self.ftl.mapped_and_valid_pages()
    }

    /// Bytes of host data that are in the write cache or the write buffer and not on flash, at most.
    pub fn buffered_bytes(&self) -> u64 {
        let cached = self.cache.write.as_ref().map_or(0, |cache| cache.held_pages());
        self.cache.buffer.used_bytes + u64::from(cached) * self.page.bytes()
    }

    /// What cleaning has done in a drive of elements; `None` for other drives.
    pub fn cleaning_statistics(&self) -> Option<CleaningStatistics> {
        self.elements().map(Elements::statistics)
    }

    /// What the blocks of a drive of elements have left of their lives: smallest, largest, mean, and standard
    /// deviation; `None` for other drives.
    pub fn remaining_life(&self) -> Option<RemainingLife> {
        self.elements().map(|elements| RemainingLife::of(elements.lives()))
    }

    /// Checks the invariants of the whole drive; takes time proportional to its size.
    ///
    /// # Errors
    /// Says which one is broken: each logical page maps to one valid slot and back; valid counts are those of the map;
    /// what the write buffer counts is what is not on flash.
    pub fn check_invariants(&self) -> Result<(), String> {
        self.ftl.check()?;
        let superpages = self.ftl.pages.host_superpages().iter();
        let buffered: u64 =
            superpages.map(|&superpage| u64::from(self.ftl.pages.superpages[superpage].held_bytes)).sum();
        let leaving = self.cache.write.as_ref().map_or(0, |cache| cache.leaving_bytes);
        let (used, held) = (self.cache.buffer.used_bytes, buffered + self.cache.buffer.parked_bytes + leaving);
        if used != held {
            return Err(format!("the write buffer counts {used} bytes and holds {held}"));
        }
        self.cache.write.as_ref().map_or(Ok(()), |cache| cache.check())?;
        self.cache.read.as_ref().map_or(Ok(()), |cache| cache.check())?;
        self.power.check()?;
        let known =
            u64::from(self.host.in_drive) + self.host.queues.waiting() as u64 + u64::from(self.host.completions);
        if known != self.host.outstanding {
            return Err(format!("{} requests are in flight, {known} are known", self.host.outstanding));
        }
        Ok(())
    }

    /// Whether the drive holds anything of the logical page that a byte is on. Media that are written in place hold
    /// all.
    pub fn is_mapped(&self, byte: ByteSize) -> bool {
        let page = self.page.of_byte(byte.0);
        self.ftl.slot_of(page).is_some()
            || self.cache.write.as_ref().is_some_and(|cache| cache.entry_of(page).is_some())
    }

    /// Whether the drive carries bytes of anything.
    pub fn carries_bytes(&self) -> bool {
        !self.flash.payload.is_empty()
    }

    /// Whether the drive carries bytes of the logical page that a byte is on, apart from those in a write cache.
    pub fn carries_bytes_of(&self, byte: ByteSize) -> bool {
        self.ftl.slot_of(self.page.of_byte(byte.0)).is_some_and(|slot| self.flash.payload.image(slot).is_some())
    }

    /// Whether a power cut now would leave the logical page that a byte is on as it is.
    pub fn is_durable(&self, byte: ByteSize) -> bool {
        let page = self.page.of_byte(byte.0);
        let is_cached = self.cache.write.as_ref().is_some_and(|cache| cache.entry_of(page).is_some());
        !self.has_volatile_memory() || !is_cached && !matches!(self.ftl.locate(page), Location::Buffer(_))
    }

    /// Whether a power cut loses anything that was completed and not flushed.
    pub fn has_volatile_memory(&self) -> bool {
        let has_memory = self.ftl.is_page_map() || self.cache.write.is_some();
        has_memory && !self.config.controller.power_loss_protection
    }

    /// The slot whose bytes are a logical page's.
    pub(crate) fn slot_of(&self, logical_page: u32) -> Option<u32> {
        self.ftl.slot_of(logical_page)
    }

    /// Where a slot is, with everything that is sensed by one command with it.
    pub(crate) fn address_of(&self, slot: u32) -> FlashAddress {
        self.ftl.address_of(slot)
    }

    fn elements(&self) -> Option<&Elements> {
        match &self.ftl.kind {
            AnyFtl::Elements(elements) => Some(elements),
            _ => None,
        }
    }
}
