//! The medium's side of a configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Checker;
use super::choices::choices;
use super::commands::{CommandScope, CommandTimes, EnergyConfig, Scheduling, SuspensionConfig};
use super::endurance::EnduranceConfig;
use super::reliability::ReliabilityConfig;
use super::slc_cache::SlcModeConfig;
use crate::error::SsdError;

choices! {
    /// What a cell is, and with it how many bits it holds.
    pub enum CellType {
        /// One.
        Slc = "slc",
        /// Two.
        Mlc = "mlc",
        /// Three.
        Tlc = "tlc",
        /// Four.
        Qlc = "qlc",
        /// One, of 3D XPoint: it is written in place and needs no erase.
        Xpoint = "xpoint",
    }
}

impl CellType {
    /// Bits in a cell, which is the number of page types.
    pub fn bits(self) -> u32 {
        match self {
            Self::Slc | Self::Xpoint => 1,
            Self::Mlc => 2,
            Self::Tlc => 3,
            Self::Qlc => 4,
        }
    }
}

choices! {
    /// Which page of a block is of which type.
    #[derive(Default)]
    pub enum PageOrder {
        /// Page number modulo bits a cell: LSB, MSB, LSB, MSB …, or LSB, CSB, MSB, LSB ….
        #[default]
        InTurn = "in-turn",
        /// For three bits, six LSB pages, two CSB pages, then pairs of LSB, CSB and MSB pages, as MQSim has it;
        /// otherwise as in turn.
        Shadow = "shadow",
    }
}

/// The medium and the buses to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Unit in which a read moves data over the channel (an ECC codeword).
    pub transfer_unit_bytes: u64,
    /// Smallest write, in bytes, that a medium written in place does without reading first.
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
    /// Whether a die or a chip takes one command at a time; default: a die.
    #[serde(default)]
    pub command_scope: CommandScope,
    /// Whether waiting commands of one kind to other planes of the die, for the same page offset, are done together:
    /// one array time, data one after the other; default: no. A superpage that spans planes is one command anyway.
    #[serde(default)]
    pub multi_plane: bool,
    /// Whether the pages of a block are programmed in order, as NAND flash demands (ONFI, "Page Programming Order");
    /// default: yes. Without it, a program may overtake others of its plane to go together with one of another plane,
    /// as in MQSim.
    #[serde(default = "yes")]
    pub programs_in_order: bool,
    /// Whether a chip takes commands for all its dies at once with `command_scope = "chip"`; default: yes. Dies that
    /// take commands by themselves always work at the same time.
    #[serde(default = "yes")]
    pub interleave: bool,
    /// Which waiting command goes first; default: reads.
    #[serde(default)]
    pub scheduling: Scheduling,
    /// Bits a cell; by default the single times hold for all pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<CellType>,
    /// Which page is of which type.
    #[serde(default)]
    pub page_order: PageOrder,
    /// Sensing a page of each type, LSB first, ns, instead of `read_ns`; one for each bit of `cell`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_ns_by_page_type: Vec<u64>,
    /// Programming a page of each type, LSB first, ns, instead of `program_ns`; one for each bit of `cell`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub program_ns_by_page_type: Vec<u64>,
    /// Blocks that are written with one bit a cell; by default there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slc_mode: Option<SlcModeConfig>,
    /// Command and address cycles on the channel.
    #[serde(default)]
    pub command: CommandTimes,
    /// Interruption of programs and erases by reads.
    #[serde(default)]
    pub suspension: SuspensionConfig,
    /// Energy of operations.
    #[serde(default)]
    pub energy: EnergyConfig,
    /// Wear, bit errors and retention; by default there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reliability: Option<ReliabilityConfig>,
    /// P/E cycles of the cells; by default they have no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endurance: Option<EnduranceConfig>,
}

fn yes() -> bool {
    true
}

impl FlashConfig {
    pub(super) fn check(&self, logical_page_bytes: u64, checker: &Checker<'_>) -> Result<(), SsdError> {
        checker.count("flash.channels", self.channels, 256, "must be between 1 and 256")?;
        checker.count("flash.chips_per_channel", self.chips_per_channel, 64, "must be between 1 and 64")?;
        checker.count("flash.dies_per_chip", self.dies_per_chip, 64, "must be between 1 and 64")?;
        checker.count("flash.planes_per_die", self.planes_per_die, 16, "must be between 1 and 16")?;
        checker.count("flash.blocks_per_plane", self.blocks_per_plane, 1 << 24, "must be at least 1")?;
        checker.count("flash.pages_per_block", self.pages_per_block, 1 << 16, "must be at least 1")?;
        checker.rate("flash.channel_bytes_per_s", self.channel_bytes_per_s)?;
        checker.time("flash.read_ns", self.read_ns)?;
        checker.time("flash.program_ns", self.program_ns)?;
        checker.time("flash.erase_ns", self.erase_ns)?;
        checker.share("flash.array_time_jitter", self.array_time_jitter, 0.0, 0.5)?;
        let page = self.page_bytes;
        checker.require("flash.page_bytes", page, page <= 1 << 20, "must be at most 1 MiB")?;
        for (key, unit) in [
            ("flash.transfer_unit_bytes", self.transfer_unit_bytes),
            ("flash.write_granule_bytes", self.write_granule_bytes),
        ] {
            let possible = unit.is_power_of_two() && (512..=logical_page_bytes).contains(&unit);
            let reason = format!("must be a power of two between 512 and the logical page's {logical_page_bytes}");
            checker.require(key, unit, possible, reason)?;
        }
        self.check_commands(checker)
    }

    fn check_commands(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        let chip = self.command_scope == CommandScope::Chip;
        let reason = "requires command_scope = \"chip\": with \"die\" each die takes its own commands";
        checker.require("flash.interleave", self.interleave, self.interleave || chip, reason)?;
        let bits = self.cell.map_or(0, CellType::bits) as usize;
        for (key, times_ns) in [
            ("flash.read_ns_by_page_type", &self.read_ns_by_page_type),
            ("flash.program_ns_by_page_type", &self.program_ns_by_page_type),
        ] {
            let reason = format!("must have one time for each of the {bits} bits of flash.cell, or be absent");
            checker.require(key, format!("{times_ns:?}"), times_ns.is_empty() || times_ns.len() == bits, reason)?;
            times_ns.iter().try_for_each(|&time_ns| checker.time(key, time_ns))?;
        }
        self.command.check(checker)?;
        self.suspension.check(self.command_scope, self.scheduling, checker)?;
        self.energy.check(checker)?;
        self.reliability.map_or(Ok(()), |reliability| reliability.check(checker))
    }

    /// Raw bytes; `None` where they do not fit 64 bits.
    pub(super) fn raw_bytes(&self) -> Option<u64> {
        let counts = [
            self.channels,
            self.chips_per_channel,
            self.dies_per_chip,
            self.planes_per_die,
            self.blocks_per_plane,
            self.pages_per_block,
        ];
        counts.iter().try_fold(self.page_bytes, |n, &x| n.checked_mul(u64::from(x)))
    }
}
