//! What a drive is built of, as one TOML file.
//!
//! Every key carries its unit in its name. Unknown keys, missing keys and impossible values are refused with the key,
//! the value and what would be right.
//!
//! # Adding a key
//!
//! A field of its section's type in the section's file, with a default that leaves the presets as they are, and what
//! makes a value impossible in that file's `check`. `FLASHWISE_BLESS=1 cargo test -p flashwise-ssd --lib reference`
//! writes its line in `docs/formats/device.md`. A key that is one of several names is a list: see `choices.rs`.

mod check;
pub(crate) mod choices;
mod commands;
mod controller;
mod domains;
mod element;
mod endurance;
mod flash;
mod ftl;
mod gc;
mod host;
mod link;
mod reduction;
mod reliability;
mod slc_cache;
mod static_units;
mod streams;

use flashwise_block::ByteSize;
use flashwise_block::names::with_suggestion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Preset;
use crate::error::SsdError;
pub use check::Checker;
pub use commands::{CommandScope, CommandTimes, EnergyConfig, Scheduling, Suspend, SuspensionConfig};
pub use controller::{
    CacheFlush, CachePolicy, ControllerConfig, ReadAheadConfig, ReadCacheConfig, UnwrittenReads, WriteCacheConfig,
    WritePolicy,
};
pub use domains::DomainConfig;
pub use element::{AllocationPool, BlockOrder, CleaningMode, CleaningPolicy, ElementConfig};
pub use endurance::{EnduranceConfig, EnduranceFigures};
pub use flash::{CellType, FlashConfig, PageOrder};
pub use ftl::{BoundTo, FtlConfig, Level, Mapping, MappingCacheConfig, PartialPages, Placement, StaticOrder};
pub(crate) use ftl::{WritePath, ftl_kinds, placements};
pub use gc::{
    BadBlocksConfig, DynamicWearLevelling, GcConfig, GcMode, GcPolicy, GcReads, GcTrigger, StaticWearLevelling,
    WearLevellingConfig,
};
pub(crate) use gc::{EMPTIED_MAX, gc_policies};
pub use host::{Arbitration, ArbitrationWeights, DataTransfer, HostConfig, Interface, QueuePriority};
pub(crate) use link::link_bytes_per_s;
pub(crate) use reduction::STORED_PAGE_HEADER;
pub use reduction::{Codec, CompressionConfig, DeduplicationConfig, ReductionConfig};
pub use reliability::ReliabilityConfig;
pub use slc_cache::{SlcCacheConfig, SlcCacheFull, SlcModeConfig};
pub use static_units::StaticUnits;
pub(crate) use streams::CLASSES_MAX;
pub(crate) use streams::stream_policies;
pub use streams::{StreamPolicy, StreamsConfig};

/// A whole drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceConfig {
    /// Model, for people.
    pub name: String,
    /// Bytes that the host can address.
    pub capacity_bytes: u64,
    /// Host interface.
    pub host: HostConfig,
    /// Controller.
    pub controller: ControllerConfig,
    /// Flash translation layer.
    pub ftl: FtlConfig,
    /// Medium.
    pub flash: FlashConfig,
    /// Compression and deduplication; by default there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduction: Option<ReductionConfig>,
}

impl DeviceConfig {
    /// One of the presets.
    ///
    /// # Errors
    /// When there is no preset of that name.
    pub fn preset(name: &str) -> Result<Self, SsdError> {
        let preset = Preset::find(name)?;
        Self::from_toml(preset.toml, &format!("preset {name}"))
    }

    /// Reads and checks a configuration; `path` is for messages.
    ///
    /// # Errors
    /// When the text does not parse or describes no possible drive.
    pub fn from_toml(text: &str, path: &str) -> Result<Self, SsdError> {
        let config: Self = toml::from_str(text).map_err(|e| match is_of_array(text) {
            true => SsdError::IsArray { path: path.to_owned() },
            false => syntax_error(text, path, &e),
        })?;
        config.check(path)?;
        Ok(config)
    }

    /// Logical pages that the host can address.
    pub fn logical_pages(&self) -> u64 {
        self.capacity_bytes / self.ftl.logical_page_bytes
    }

    /// Translation pages that hold the page map on flash; 0 where all of it is in controller memory.
    pub fn translation_pages(&self) -> u32 {
        self.ftl
            .mapping_cache
            .as_ref()
            .map_or(0, |cache| self.logical_pages().div_ceil(cache.entries_per_page(self)) as u32)
    }

    /// Dies on one channel.
    pub fn ways(&self) -> u32 {
        self.flash.chips_per_channel * self.flash.dies_per_chip
    }

    /// Planes of a die that program one superpage together.
    pub fn superpage_planes(&self) -> u32 {
        self.ftl.superpage_planes.unwrap_or(self.flash.planes_per_die)
    }

    /// Parallel units: what programs and erases as one.
    pub fn units(&self) -> u64 {
        let groups = u64::from(self.flash.channels / self.ftl.superpage_channels);
        groups
            * u64::from(self.ways() / self.ftl.superpage_ways)
            * u64::from(self.flash.planes_per_die / self.superpage_planes())
    }

    /// Raw bytes of the medium; saturates where a configuration that was not checked has more than fit 64 bits.
    pub fn raw_bytes(&self) -> u64 {
        self.flash.raw_bytes().unwrap_or(u64::MAX)
    }

    /// Flash pages of a superpage, with those that hold parity.
    pub fn flash_pages_per_superpage(&self) -> u64 {
        let dies = u64::from(self.ftl.superpage_channels) * u64::from(self.ftl.superpage_ways);
        dies * u64::from(self.superpage_planes())
    }

    /// Bytes of a superpage that hold data: what fills it, and is programmed in one go with its parity.
    pub fn superpage_bytes(&self) -> u64 {
        let pages = self.flash_pages_per_superpage();
        pages.saturating_sub(u64::from(self.ftl.parity_pages)) * self.flash.page_bytes
    }

    /// Raw bytes less those of parity.
    pub fn raw_bytes_for_data(&self) -> u64 {
        let pages = u128::from(self.flash_pages_per_superpage().max(1));
        let of_data = pages.saturating_sub(u128::from(self.ftl.parity_pages));
        (u128::from(self.raw_bytes()) * of_data / pages) as u64
    }

    /// Over-provisioning: (raw − addressable) ÷ addressable, parity not counted as raw; on a thin drive, what may be
    /// stored counts and not what is addressable.
    pub fn over_provisioning(&self) -> f64 {
        self.raw_bytes_for_data() as f64 / self.physical_bytes() as f64 - 1.0
    }

    /// Refuses what describes no possible drive.
    ///
    /// # Errors
    /// With the first impossible key.
    pub fn check(&self, path: &str) -> Result<(), SsdError> {
        let checker = Checker { path };
        let page = self.ftl.logical_page_bytes;
        self.flash.check(page, &checker)?;
        self.ftl.check(self, &checker)?;
        self.check_reclaiming(&checker)?;
        self.ftl.streams.check(self, &checker)?;
        self.host.check(page, &checker)?;
        self.controller.check(self, &checker)?;
        self.check_size(&checker)?;
        self.check_reduction(&checker)?;
        self.check_cells(&checker)?;
        self.check_slc_mode(&checker)?;
        self.check_domains(&checker)?;
        match self.ftl.mapping.write_path() {
            WritePath::Buffer => {
                self.ftl.check_page_mapping(self, &checker)?;
                self.controller.check_buffer(self, &checker)
            }
            WritePath::InPlace => self.check_in_place(&checker),
            WritePath::Steps => self.ftl.check_block_mapping(self, &checker),
            WritePath::Elements => self.ftl.element.check(self, &checker),
        }
    }

    fn check_size(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        checker.multiple("flash.page_bytes", self.flash.page_bytes, self.ftl.logical_page_bytes)?;
        checker.multiple("capacity_bytes", self.capacity_bytes, self.ftl.logical_page_bytes)?;
        let pages = self.flash.raw_bytes().map(|bytes| bytes / self.ftl.logical_page_bytes);
        let fits = pages.is_some_and(|pages| pages <= LOGICAL_PAGES_MAX);
        let reason = format!("the flash has more than 2^31 logical pages of {}", ByteSize(self.ftl.logical_page_bytes));
        checker.require("flash.blocks_per_plane", self.flash.blocks_per_plane, fits, reason)
    }

    fn check_cells(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        let (cell, in_place) = (self.flash.cell, self.ftl.mapping == Mapping::InPlace);
        let fits = cell.is_none_or(|cell| (cell == CellType::Xpoint) == in_place);
        let reason = "\"xpoint\" and mapping = \"in-place\" require each other";
        checker.require("flash.cell", format!("{cell:?}"), fits, reason)?;
        self.flash.endurance.map_or(Ok(()), |endurance| endurance.check(self, checker))
    }

    fn check_in_place(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        let fits = self.capacity_bytes <= self.raw_bytes();
        let reason = format!("must be at most the medium's size, {}", ByteSize(self.raw_bytes()));
        checker.require("capacity_bytes", self.capacity_bytes, fits, reason)?;
        let page = self.flash.page_bytes;
        let reason = "must equal the logical page for a medium written in place";
        checker.require("flash.page_bytes", page, page == self.ftl.logical_page_bytes, reason)?;
        let reason = "not supported for media written in place, which have no erase";
        checker.require("flash.reliability", "present", self.flash.reliability.is_none(), reason)
    }
}

/// Most logical pages: 2³¹, 8 TiB of pages of 4 KiB, whose page map and its inverse take 16 GiB of address space; their
/// entries have 32 bits, of which two values are no numbers.
const LOGICAL_PAGES_MAX: u64 = 1 << 31;

/// Whether a text describes an array of drives rather than a drive: an array has a level and members.
pub fn is_of_array(text: &str) -> bool {
    toml::from_str::<toml::Table>(text)
        .is_ok_and(|table| ["level", "members", "member"].iter().any(|key| table.contains_key(*key)))
}

/// The parser's message in one line, with the line number and, where a value is wrong, its key.
pub fn syntax_error(text: &str, path: &str, error: &toml::de::Error) -> SsdError {
    let before = error.span().map(|span| &text[..span.start.min(text.len())]);
    let message = in_words(with_suggestion(error.message().trim().replace('\n', " ")));
    let key = before.filter(|_| message.starts_with("invalid ")).and_then(key_at_end);
    let message = key.map_or_else(|| message.clone(), |key| format!("{key}: {message}"));
    let line = before.map(|before| 1 + before.matches('\n').count());
    let reason = line.map_or_else(|| message.clone(), |line| format!("line {line}: {message}"));
    SsdError::Syntax { path: path.to_owned(), reason }
}

/// The key whose value starts where a text ends, with the table that it is in.
fn key_at_end(text: &str) -> Option<String> {
    let (above, line) = text.rsplit_once('\n').unwrap_or(("", text));
    let key = line.split_once('=')?.0.trim();
    let header = above.lines().rev().find_map(|line| line.trim().strip_prefix('[')?.split_once(']'));
    Some(header.map_or_else(|| key.to_owned(), |(table, _)| format!("{table}.{key}")))
}

/// A parser's words for what it expects, as people say it.
fn in_words(message: String) -> String {
    let types = [
        ("expected u8", "expected a whole number from 0 to 255"),
        ("expected u16", "expected a whole number from 0 to 65535"),
        ("expected u32", "expected a whole number from 0 to 4294967295"),
        ("expected u64", "expected a whole number from 0 on"),
        ("expected f64", "expected a number"),
        ("expected a boolean", "expected true or false"),
    ];
    let found = types.iter().find(|(parser, _)| message.ends_with(parser));
    found.map_or_else(|| message.clone(), |(parser, words)| message.replace(parser, words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(change: impl FnOnce(&mut DeviceConfig)) -> String {
        let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
        change(&mut config);
        config.check("mine.toml").unwrap_err().to_string()
    }

    #[test]
    fn an_impossible_value_is_told_with_file_key_value_and_reason() {
        assert_eq!(broken(|c| c.flash.pages_per_block = 0), "mine.toml: flash.pages_per_block = 0: must be at least 1");
        assert!(broken(|c| c.capacity_bytes = c.raw_bytes()).contains("garbage collection needs"));
        assert!(broken(|c| c.ftl.superpage_channels = 3).contains("must divide the"));
        assert!(broken(|c| c.flash.array_time_jitter = f64::NAN).contains("between 0 and 0.5"));
        assert!(broken(|c| c.controller.write_buffer_bytes = 4096).contains("at least"));
        assert!(broken(|c| (c.host.interface, c.host.queue_depth) = (Interface::Sata, 64)).contains("at most 32"));
        assert!(broken(|c| c.flash.blocks_per_plane = 1 << 24).contains("2^31 logical pages"));
    }

    #[test]
    fn a_promise_of_atomic_writes_that_no_nvme_drive_makes_is_refused() {
        let promised = |unit: u64| broken(|c| c.host.atomic_write_bytes = Some(unit));
        assert!(promised(12 << 10).contains("host.atomic_write_bytes = 12288: must be a power of two"));
        assert!(promised(256).contains("from the logical block, 512"));
        assert!(promised(1 << 40).contains("to the largest request"));
        let mut sata = DeviceConfig::preset("micron-m500").unwrap();
        sata.host.atomic_write_bytes = Some(16 << 10);
        assert!(sata.check("mine.toml").unwrap_err().to_string().contains("SATA has no such promise"));
    }

    #[test]
    fn rules_of_the_flash_that_exclude_each_other_are_refused() {
        assert!(broken(|c| c.flash.interleave = false).contains("each die takes its own commands"));
        assert!(broken(|c| c.flash.read_ns_by_page_type = vec![1, 2]).contains("each of the 0 bits"));
        let on = |c: &mut DeviceConfig| c.flash.suspension.suspend = Suspend::ProgramErase;
        let fcfs = |c: &mut DeviceConfig| (on(c), c.flash.scheduling = Scheduling::Fcfs).1;
        assert!(broken(fcfs).contains("distinguishes reads"));
        assert!(broken(|c| (on(c), c.flash.command_scope = CommandScope::Chip).1).contains("command_scope"));
        let codeword = ReliabilityConfig { correctable_bits: 4096, ..ReliabilityConfig::default() };
        assert!(broken(|c| c.flash.reliability = Some(codeword)).contains("half of the codeword"));
        let mut xpoint = DeviceConfig::preset("intel-optane-905p").unwrap();
        xpoint.flash.reliability = Some(ReliabilityConfig::default());
        assert!(xpoint.check("mine.toml").unwrap_err().to_string().contains("written in place"));
    }

    #[test]
    fn keys_that_a_drive_would_never_come_to_are_refused() {
        let xpoint = |change: fn(&mut ControllerConfig)| {
            let mut config = DeviceConfig::preset("intel-optane-905p").unwrap();
            change(&mut config.controller);
            config.check("mine.toml")
        };
        let refused = |change| xpoint(change).unwrap_err().to_string();
        let access = refused(|c| c.dram_ns_per_access = 30);
        assert!(
            access.starts_with("mine.toml: controller.dram_ns_per_access = 30: requires mapping = \"page\""),
            "{access}"
        );
        assert!(refused(|c| c.dram_bytes_per_s = 1 << 30).contains("or a cache (controller.read_cache"));
        assert!(refused(|c| c.unwritten_reads = UnwrittenReads::Flash).contains("one cost for all reads"));
        assert!(
            refused(|c| c.unwritten_reads = UnwrittenReads::Allocate)
                .contains("requires mapping = \"page\" and superpages")
        );
        fn cache() -> Option<ReadCacheConfig> {
            Some(ReadCacheConfig { bytes: 1 << 20, policy: CachePolicy::Lru })
        }
        xpoint(|c| (c.read_cache, c.dram_bytes_per_s) = (cache(), 1 << 30)).unwrap();
        assert!(broken(|c| c.controller.dram_row_bytes = 8192).contains("requires controller.dram_bytes_per_s"));
        assert!(broken(|c| c.controller.unwritten_reads = UnwrittenReads::Allocate).contains("superpages of one"));
        let mut elements = DeviceConfig::preset("disksim-msr").unwrap();
        elements.controller.read_cache = cache();
        assert!(elements.check("mine.toml").unwrap_err().to_string().contains("elements have no cache"));
    }

    #[test]
    fn all_keys_of_the_flash_are_read_back_as_they_were_written() {
        let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
        let flash = &mut config.flash;
        (flash.command_scope, flash.interleave, flash.scheduling) =
            (CommandScope::Chip, false, Scheduling::PreemptibleGc);
        (flash.cell, flash.page_order) = (Some(CellType::Tlc), PageOrder::Shadow);
        flash.program_ns_by_page_type = vec![500_000, 700_000, 900_000];
        flash.command.read_ns = 290;
        flash.reliability = Some(ReliabilityConfig { pe_cycles_limit: Some(3_000), ..ReliabilityConfig::default() });
        let text = toml::to_string(&config).unwrap();
        assert_eq!(DeviceConfig::from_toml(&text, "written").unwrap(), config);
        let short = format!("{}\n[flash.reliability]\n", Preset::find("samsung-960-evo").unwrap().toml);
        let default = DeviceConfig::from_toml(&short, "short").unwrap().flash.reliability;
        assert_eq!(default, Some(ReliabilityConfig::default()), "an empty table turns the model on");
    }

    #[test]
    fn a_link_is_given_in_exactly_one_way_that_fits_its_interface() {
        assert!(broken(|c| c.host.link_bytes_per_s = None).contains("exactly one way"));
        assert!(broken(|c| c.host.sata_gigabits_per_s = Some(6.0)).contains("exactly one way"));
        let pcie = |generation, lanes| {
            move |c: &mut DeviceConfig| {
                let host = &mut c.host;
                (host.link_bytes_per_s, host.pcie_generation, host.pcie_lanes) = (None, generation, lanes);
            }
        };
        assert!(broken(pcie(Some(3), None)).contains("host.pcie_lanes"));
        assert!(broken(pcie(None, Some(4))).contains("host.pcie_generation"));
        assert!(broken(pcie(Some(7), Some(4))).contains("between 1 and 6"));
        let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
        pcie(Some(3), Some(4))(&mut config);
        config.check("mine.toml").unwrap();
    }

    #[test]
    fn caches_that_cannot_work_are_refused() {
        use crate::config::{CacheFlush, CachePolicy, ReadAheadConfig, WriteCacheConfig, WritePolicy};
        let cache = |change: fn(&mut WriteCacheConfig)| {
            let (policy, flush, hot_window_ns) = (CachePolicy::Lru, CacheFlush::WhenFull, None);
            let (bytes, high_watermark, low_watermark) = (1 << 20, 0.8, 0.5);
            let mut cache = WriteCacheConfig { bytes, policy, flush, high_watermark, low_watermark, hot_window_ns };
            change(&mut cache);
            Some(cache)
        };
        assert!(broken(|c| c.controller.write_cache = cache(|w| w.bytes = 4095)).contains("multiple of 4096"));
        assert!(broken(|c| c.controller.write_cache = cache(|w| w.low_watermark = 0.9)).contains("low_watermark"));
        assert!(broken(|c| c.controller.write_cache = cache(|w| w.hot_window_ns = Some(5))).contains("immediate"));
        let through = |c: &mut DeviceConfig| {
            (c.controller.write_cache, c.controller.write_policy) = (cache(|_| {}), WritePolicy::Through);
        };
        assert!(broken(through).contains("requires write_policy"));
        let ahead = Some(ReadAheadConfig { pages: 8, streams: 1, trigger: 2 });
        assert!(broken(|c| c.controller.read_ahead = ahead).contains("read cache"));
    }

    #[test]
    fn caches_and_queues_are_read_from_a_file_with_their_defaults() {
        let text = Preset::find("samsung-960-evo").unwrap().toml;
        let more = "[host]\nsubmission_queues = 3\nqueue_priorities = [\"urgent\", \"low\"]\n\
                    arbitration = \"weighted-round-robin\"\narbitration_weights = { high = 4, medium = 2, low = 1 }\n";
        let caches = "[controller.write_cache]\nbytes = 1048576\n[controller.read_cache]\nbytes = 1048576\n\
                      [controller.read_ahead]\npages = 16\n";
        let text = format!("{}\n{caches}", text.replace("[host]\n", more));
        let config = DeviceConfig::from_toml(&text, "mine.toml").unwrap();
        assert_eq!(config.host.queue_priorities, [QueuePriority::Urgent, QueuePriority::Low]);
        let ahead = config.controller.read_ahead.as_ref().unwrap();
        assert_eq!((ahead.pages, ahead.streams, ahead.trigger), (16, 4, 2));
        let again = DeviceConfig::from_toml(&toml::to_string(&config).unwrap(), "again.toml").unwrap();
        assert_eq!(again, config);
    }

    #[test]
    fn a_value_of_a_wrong_kind_is_told_with_its_key_and_line() {
        let preset = Preset::find("samsung-960-evo").unwrap().toml;
        let told = |from: &str, to: &str| {
            let at = preset.lines().position(|line| line.starts_with(from)).unwrap();
            let changed: Vec<&str> =
                preset.lines().enumerate().map(|(n, line)| if n == at { to } else { line }).collect();
            let error = DeviceConfig::from_toml(&changed.join("\n"), "mine.toml").unwrap_err().to_string();
            error.strip_prefix(&format!("mine.toml: line {}: ", at + 1)).unwrap().to_owned()
        };
        assert_eq!(
            told("queue_depth", "queue_depth = -3"),
            "host.queue_depth: invalid value: integer `-3`, expected a whole number from 0 to 4294967295"
        );
        assert!(
            told("capacity_bytes", "capacity_bytes = \"much\"").starts_with("capacity_bytes: invalid type: string")
        );
        assert!(told("power_loss", "power_loss_protection = 2").ends_with("expected true or false"));
    }

    #[test]
    fn an_unknown_key_is_told_with_its_line() {
        let text = Preset::find("samsung-960-evo").unwrap().toml.replace("read_ns", "raed_ns");
        let error = DeviceConfig::from_toml(&text, "mine.toml").unwrap_err().to_string();
        assert!(error.starts_with("mine.toml: line ") && error.ends_with("did you mean `read_ns`?"), "{error}");
    }
}
