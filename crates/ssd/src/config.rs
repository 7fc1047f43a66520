//! What a drive is built of, as one TOML file.
//!
//! Every key carries its unit in its name. Unknown keys, missing keys and impossible values are refused with the key,
//! the value and what would be right.

use flashwise_block::ByteSize;
use serde::{Deserialize, Serialize};

use crate::error::SsdError;
use crate::{LOGICAL_PAGE_BYTES, Preset};

/// A whole drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
}

/// Which protocol the host speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interface {
    /// NVMe over PCIe: both directions at once.
    Nvme,
    /// SATA with native command queuing: one direction at a time, at most 32 commands.
    Sata,
}

/// The host interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostConfig {
    /// Protocol.
    pub interface: Interface,
    /// Commands that the drive takes at once.
    pub queue_depth: u32,
    /// Payload bytes a second over the link, each direction.
    pub link_bytes_per_s: u64,
    /// From a command's arrival to its first effect inside the drive, ns.
    pub command_latency_ns: u64,
    /// Time that the firmware is busy with one command, ns; its inverse limits IOPS.
    pub command_issue_ns: u64,
    /// Smallest addressable unit.
    pub logical_block_bytes: u64,
    /// Largest request.
    pub max_transfer_bytes: u64,
}

/// The controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerConfig {
    /// DRAM that holds written data until the flash has it; 0 only for media that are written in place.
    pub write_buffer_bytes: u64,
    /// Whether the write buffer survives a power cut; then a flush costs nothing.
    pub power_loss_protection: bool,
    /// From issuing the flash commands for one run of pages on a channel to issuing the next run's, ns.
    pub dispatch_ns: u64,
}

/// How logical pages find their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mapping {
    /// Log-structured page mapping: a write goes to a clean page, the old one becomes invalid.
    Page,
    /// Each logical page has its place for ever; for media without erase.
    InPlace,
}

/// Which superblock garbage collection takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GcPolicy {
    /// The sealed superblock with the fewest valid pages.
    #[default]
    Greedy,
}

/// The flash translation layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FtlConfig {
    /// How logical pages find their place.
    pub mapping: Mapping,
    /// A write is cut into pieces of this length from its start; each piece goes to the next group of channels.
    pub stripe_bytes: u64,
    /// Channels that program one superpage together; the channels form groups of this size.
    pub superpage_channels: u32,
    /// Dies on each of these channels that program one superpage together.
    pub superpage_ways: u32,
    /// Which superblock garbage collection takes.
    pub gc_policy: GcPolicy,
    /// Garbage collection starts in a parallel unit when it has fewer free superblocks than this.
    pub gc_free_superblocks: u32,
}

/// The medium and the buses to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashConfig {
    /// Channels.
    pub channels: u32,
    /// Chips on a channel.
    pub chips_per_channel: u32,
    /// Dies in a chip.
    pub dies_per_chip: u32,
    /// Planes in a die; a superpage spans all planes of its dies.
    pub planes_per_die: u32,
    /// Blocks in a plane.
    pub blocks_per_plane: u32,
    /// Pages in a block.
    pub pages_per_block: u32,
    /// Bytes in a page.
    pub page_bytes: u64,
    /// What a read moves over the channel at least, and in multiples of what (an ECC codeword).
    pub transfer_unit_bytes: u64,
    /// What a medium that is written in place can write without reading first.
    pub write_granule_bytes: u64,
    /// Bytes a second over one channel.
    pub channel_bytes_per_s: u64,
    /// Sensing one page (all planes at once), ns.
    pub read_ns: u64,
    /// Programming one page (all planes at once); with mapping in place, writing one granule, ns.
    pub program_ns: u64,
    /// Erasing one block (all planes at once), ns.
    pub erase_ns: u64,
    /// Sensing and programming vary uniformly by ± this share of their time.
    pub array_time_jitter: f64,
}

/// Largest drive: 4 TiB, whose page map and its inverse take 8 GiB of address space.
const LOGICAL_PAGES_MAX: u64 = (4 << 40) / LOGICAL_PAGE_BYTES;

/// Superblocks that garbage collection of a unit has emptied and not yet erased, at most, because their last data is in
/// a superpage that is not full yet.
pub(crate) const EMPTIED_MAX: usize = 2;

/// Superblocks of a unit, beside the free ones, that may hold nothing valid at a time: the one that the host fills, the
/// one that garbage collection fills, and emptied victims.
const NOT_HOLDING_DATA: u32 = 2 + EMPTIED_MAX as u32;

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
        let config: Self = toml::from_str(text).map_err(|e| syntax_error(text, path, &e))?;
        config.check(path)?;
        Ok(config)
    }

    /// Dies on one channel.
    pub fn ways(&self) -> u32 {
        self.flash.chips_per_channel * self.flash.dies_per_chip
    }

    /// Raw bytes of the medium.
    pub fn raw_bytes(&self) -> u64 {
        let f = &self.flash;
        [f.chips_per_channel, f.dies_per_chip, f.planes_per_die, f.blocks_per_plane, f.pages_per_block]
            .iter()
            .fold(u64::from(f.channels) * f.page_bytes, |n, &x| n * u64::from(x))
    }

    /// Bytes of a superpage: what is programmed in one go.
    pub fn superpage_bytes(&self) -> u64 {
        let dies = u64::from(self.ftl.superpage_channels) * u64::from(self.ftl.superpage_ways);
        dies * u64::from(self.flash.planes_per_die) * self.flash.page_bytes
    }

    /// Over-provisioning: (raw − addressable) ÷ addressable.
    pub fn over_provisioning(&self) -> f64 {
        self.raw_bytes() as f64 / self.capacity_bytes as f64 - 1.0
    }

    /// Refuses what describes no possible drive.
    ///
    /// # Errors
    /// With the first impossible key.
    pub fn check(&self, path: &str) -> Result<(), SsdError> {
        let checker = Checker { path };
        self.check_counts(&checker)?;
        self.check_times(&checker)?;
        self.check_sizes(&checker)?;
        match self.ftl.mapping {
            Mapping::Page => self.check_page_mapping(&checker),
            Mapping::InPlace => self.check_in_place(&checker),
        }
    }

    fn check_counts(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        let f = &self.flash;
        checker.count("flash.channels", f.channels, 256, "a drive has 1 to 256 channels")?;
        checker.count("flash.chips_per_channel", f.chips_per_channel, 64, "a channel has 1 to 64 chips")?;
        checker.count("flash.dies_per_chip", f.dies_per_chip, 64, "a chip has 1 to 64 dies")?;
        checker.count("flash.planes_per_die", f.planes_per_die, 16, "a die has 1 to 16 planes")?;
        checker.count("flash.blocks_per_plane", f.blocks_per_plane, 1 << 24, "a plane has at least one block")?;
        checker.count("flash.pages_per_block", f.pages_per_block, 1 << 16, "a block needs at least one page")?;
        checker.count("host.queue_depth", self.host.queue_depth, 65_536, "a queue holds 1 to 65536 commands")?;
        if self.host.interface == Interface::Sata && self.host.queue_depth > 32 {
            let depth = self.host.queue_depth;
            return checker.fail("host.queue_depth", depth, "SATA's native command queuing holds at most 32 commands");
        }
        let (channels, together) = (f.channels, self.ftl.superpage_channels);
        if together == 0 || !channels.is_multiple_of(together) {
            let reason = format!("the {channels} channels must split into groups of this size");
            return checker.fail("ftl.superpage_channels", together, reason);
        }
        let (ways, together) = (self.ways(), self.ftl.superpage_ways);
        let reason = format!("the {ways} dies of a channel must split into groups of this size");
        checker.require("ftl.superpage_ways", together, together > 0 && ways.is_multiple_of(together), reason)
    }

    fn check_times(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        const RATE: &str = "a bus moves between 1 MB and 1 TB a second";
        const TIME: &str = "no such time exceeds one minute";
        for (key, rate) in [
            ("host.link_bytes_per_s", self.host.link_bytes_per_s),
            ("flash.channel_bytes_per_s", self.flash.channel_bytes_per_s),
        ] {
            checker.require(key, rate, (1_000_000..=1_000_000_000_000).contains(&rate), RATE)?;
        }
        for (key, time_ns) in [
            ("host.command_latency_ns", self.host.command_latency_ns),
            ("host.command_issue_ns", self.host.command_issue_ns),
            ("controller.dispatch_ns", self.controller.dispatch_ns),
            ("flash.read_ns", self.flash.read_ns),
            ("flash.program_ns", self.flash.program_ns),
            ("flash.erase_ns", self.flash.erase_ns),
        ] {
            checker.require(key, time_ns, time_ns <= 60_000_000_000, TIME)?;
        }
        let jitter = self.flash.array_time_jitter;
        let reason = "it is a share of the time, between 0 and 0.5";
        checker.require("flash.array_time_jitter", jitter, (0.0..=0.5).contains(&jitter), reason)
    }

    fn check_sizes(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        let block = self.host.logical_block_bytes;
        let reason = "a logical block has 512 or 4096 bytes";
        checker.require("host.logical_block_bytes", block, block == 512 || block == 4096, reason)?;
        for (key, bytes) in [
            ("capacity_bytes", self.capacity_bytes),
            ("flash.page_bytes", self.flash.page_bytes),
            ("ftl.stripe_bytes", self.ftl.stripe_bytes),
            ("host.max_transfer_bytes", self.host.max_transfer_bytes),
        ] {
            let whole = bytes > 0 && bytes.is_multiple_of(LOGICAL_PAGE_BYTES);
            checker.require(key, bytes, whole, "it must be a positive multiple of 4096")?;
        }
        let page = self.flash.page_bytes;
        checker.require("flash.page_bytes", page, page <= 1 << 20, "a page has at most 1 MiB")?;
        let transfer = self.host.max_transfer_bytes;
        checker.require("host.max_transfer_bytes", transfer, transfer <= 1 << 26, "a request has at most 64 MiB")?;
        for (key, unit) in [
            ("flash.transfer_unit_bytes", self.flash.transfer_unit_bytes),
            ("flash.write_granule_bytes", self.flash.write_granule_bytes),
        ] {
            let divides = unit.is_power_of_two() && (512..=LOGICAL_PAGE_BYTES).contains(&unit);
            checker.require(key, unit, divides, "it must be 512, 1024, 2048 or 4096")?;
        }
        let raw = self.checked_raw_bytes();
        let pages = raw.map(|bytes| bytes / LOGICAL_PAGE_BYTES);
        if pages.is_none_or(|pages| pages > LOGICAL_PAGES_MAX) {
            let reason = "the drive is larger than 4 TiB, the most that can be simulated";
            return checker.fail("flash.blocks_per_plane", self.flash.blocks_per_plane, reason);
        }
        Ok(())
    }

    fn checked_raw_bytes(&self) -> Option<u64> {
        let f = &self.flash;
        [f.channels, f.chips_per_channel, f.dies_per_chip, f.planes_per_die, f.blocks_per_plane, f.pages_per_block]
            .iter()
            .try_fold(f.page_bytes, |n, &x| n.checked_mul(u64::from(x)))
    }

    fn check_page_mapping(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        let superpage = self.superpage_bytes();
        let superblock = superpage * u64::from(self.flash.pages_per_block);
        let (stripe, keep) = (self.ftl.stripe_bytes, self.ftl.gc_free_superblocks);
        let reason = format!("it must be a multiple of the superpage's {}", ByteSize(superpage));
        checker.require("ftl.stripe_bytes", stripe, stripe.is_multiple_of(superpage), reason)?;
        let blocks = self.flash.blocks_per_plane;
        let reason = format!("it must be at least 2 and leave room in the {blocks} blocks of a plane");
        let leaves_room = keep.saturating_add(NOT_HOLDING_DATA) < blocks;
        checker.require("ftl.gc_free_superblocks", keep, keep >= 2 && leaves_room, reason)?;
        let units = self.raw_bytes() / superblock / u64::from(blocks);
        let usable = units * superblock * u64::from(blocks - keep - NOT_HOLDING_DATA);
        let reason = format!(
            "the flash has {}, of which garbage collection needs {}; at most {usable} bytes can be offered",
            ByteSize(self.raw_bytes()),
            ByteSize(self.raw_bytes() - usable)
        );
        checker.require("capacity_bytes", self.capacity_bytes, self.capacity_bytes <= usable, reason)?;
        let open = units * superpage;
        let needed = self.host.max_transfer_bytes + 2 * open;
        let buffer = self.controller.write_buffer_bytes;
        let reason = format!("it must hold the largest request and the open superpages: at least {needed} bytes");
        checker.require("controller.write_buffer_bytes", buffer, buffer >= needed, reason)
    }

    fn check_in_place(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        let fits = self.capacity_bytes <= self.raw_bytes();
        let reason = format!("the medium has only {}", ByteSize(self.raw_bytes()));
        checker.require("capacity_bytes", self.capacity_bytes, fits, reason)?;
        let page = self.flash.page_bytes;
        let reason = "a medium that is written in place is simulated with pages of 4096 bytes";
        checker.require("flash.page_bytes", page, page == LOGICAL_PAGE_BYTES, reason)
    }
}

struct Checker<'a> {
    path: &'a str,
}

impl Checker<'_> {
    fn fail(&self, key: &'static str, value: impl ToString, reason: impl Into<String>) -> Result<(), SsdError> {
        let (path, value, reason) = (self.path.to_owned(), value.to_string(), reason.into());
        Err(SsdError::Impossible { path, key, value, reason })
    }

    fn require(
        &self,
        key: &'static str,
        value: impl ToString,
        holds: bool,
        reason: impl Into<String>,
    ) -> Result<(), SsdError> {
        if holds { Ok(()) } else { self.fail(key, value, reason) }
    }

    fn count(&self, key: &'static str, value: u32, most: u32, reason: &str) -> Result<(), SsdError> {
        self.require(key, value, value >= 1 && value <= most, reason)
    }
}

/// The parser's message in one line, with the line number.
fn syntax_error(text: &str, path: &str, error: &toml::de::Error) -> SsdError {
    let line = error.span().map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
    let message = error.message().trim().replace('\n', " ");
    let reason = line.map_or_else(|| message.clone(), |line| format!("line {line}: {message}"));
    SsdError::Syntax { path: path.to_owned(), reason }
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
        assert_eq!(
            broken(|c| c.flash.pages_per_block = 0),
            "mine.toml: flash.pages_per_block = 0: a block needs at least one page"
        );
        assert!(broken(|c| c.capacity_bytes = c.raw_bytes()).contains("garbage collection needs"));
        assert!(broken(|c| c.ftl.superpage_channels = 3).contains("groups of this size"));
        assert!(broken(|c| c.flash.array_time_jitter = f64::NAN).contains("between 0 and 0.5"));
        assert!(broken(|c| c.controller.write_buffer_bytes = 4096).contains("at least"));
        assert!(broken(|c| (c.host.interface, c.host.queue_depth) = (Interface::Sata, 64)).contains("at most 32"));
        assert!(broken(|c| c.flash.blocks_per_plane = 1 << 24).contains("4 TiB"));
    }

    #[test]
    fn an_unknown_key_is_told_with_its_line() {
        let text = Preset::find("samsung-960-evo").unwrap().toml.replace("read_ns", "raed_ns");
        let error = DeviceConfig::from_toml(&text, "mine.toml").unwrap_err().to_string();
        assert!(error.starts_with("mine.toml: line ") && error.contains("raed_ns"), "{error}");
    }
}
