//! How flash commands are formed, ordered and interrupted, and what they take on the channel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Checker;
use super::choices::choices;
use crate::error::SsdError;

choices! {
    /// What takes one command at a time.
    #[derive(Default)]
    pub enum CommandScope {
        /// A die: it takes its next command as soon as it is idle, and waits for its channel with it.
        #[default]
        Die = "die",
        /// A chip: it takes commands only when all its dies and its channel are idle, and then for one die, or with
        /// `interleave` for each of its dies, commands of one kind.
        Chip = "chip",
    }
}

choices! {
    /// Which waiting command goes first.
    #[derive(Default)]
    pub enum Scheduling {
        /// In the order of arrival.
        Fcfs = "fcfs",
        /// Reads before programs and erases, each in the order of arrival.
        #[default]
        ReadFirst = "read-first",
        /// By class: host read, mapping read, GC read, host program, mapping program, GC program, erase.
        OutOfOrder = "out-of-order",
        /// As MQSim's scheduler of this name while garbage collection may not be preempted: mapping read, GC read,
        /// GC program, erase, host read, mapping program, host program.
        PriorityOutOfOrder = "priority-out-of-order",
        /// As MQSim's while it may: mapping read, host read, host program, mapping program, GC read, GC program, erase.
        PreemptibleGc = "preemptible-gc",
    }
}

choices! {
    /// What a read may interrupt.
    #[derive(Default)]
    pub enum Suspend {
        /// None: it waits until they finish.
        #[default]
        None = "none",
        /// Erases.
        Erase = "erase",
        /// Programs and erases.
        ProgramErase = "program-erase",
    }
}

/// How reads interrupt programs and erases: keys of `[flash.suspension]`.
///
/// Source: Wu and He, "Reducing SSD Read Latency via NAND Flash Program and Erase Suspension", FAST 2012. The default
/// times are \[fit\]; the paper suspends at the end of a programming pulse, some tens of µs away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SuspensionConfig {
    /// Operations that a read may interrupt; default: none.
    pub suspend: Suspend,
    /// From the interruption of a program to the start of the read, ns; default 20 µs \[fit\].
    pub program_ns: u64,
    /// From the interruption of an erase to the start of the read, ns; default 50 µs \[fit\].
    pub erase_ns: u64,
    /// A program with no more than this left is not interrupted, ns; default 0.
    pub program_left_min_ns: u64,
    /// An erase with no more than this left is not interrupted, ns; default 0.
    pub erase_left_min_ns: u64,
    /// Maximum number of reads that may interrupt one program or erase, so that it finishes; default 16 \[fit\].
    pub reads_max: u32,
}

impl Default for SuspensionConfig {
    fn default() -> Self {
        Self {
            suspend: Suspend::None,
            program_ns: 20_000,
            erase_ns: 50_000,
            program_left_min_ns: 0,
            erase_left_min_ns: 0,
            reads_max: 16,
        }
    }
}

/// Time of command and address cycles on the channel, before a read's or an erase's array time and before a program's
/// data: keys of `[flash.command]`, all 0 by default. From the times of ONFI 4.x (section 4, NV-DDR2), each command or
/// address cycle taking tWC:
///
/// From the times of ONFI 4.x (section 4, NV-DDR2), each command or address cycle taking tWC:
///
/// ```text
///   read     tCS + 7 tWC (00h, five address cycles, 30h) + tWB + tRR        further plane: tDBSY + 7 tWC + tWB
///   program  tCS + 6 tWC (80h, five address cycles) + tADL, data, tWPST + tWPSTH + tWC (10h) + tWB
///   erase    tCS + 5 tWC (60h, three address cycles, D0h) + tWB             further plane: tDBSY + 5 tWC + tWB
/// ```
///
/// With tCS 20, tWC 25, tWB 100 and tRR 20 ns a read has 315 ns and an erase 245. MQSim counts one cycle fewer: 290 and
/// 220, a program 361; and for each further plane, with tDBSY 500, 650, 816 and 700 ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CommandTimes {
    /// A read of one plane, ns.
    pub read_ns: u64,
    /// Each further plane of a read, ns.
    pub read_further_plane_ns: u64,
    /// A program of one plane, ns.
    pub program_ns: u64,
    /// Each further plane of a program, ns.
    pub program_further_plane_ns: u64,
    /// An erase of one plane, ns.
    pub erase_ns: u64,
    /// Each further plane of an erase, ns.
    pub erase_further_plane_ns: u64,
}

/// Energy of flash operations: keys of `[flash.energy]`; 0, the default, means unknown. Energies differ by an order of
/// magnitude between dies and no maker publishes them for a page; measured ones are in Grupp et al., "Characterizing
/// Flash Memory: Anomalies, Observations, and Applications", MICRO 2009, and modelled ones in Mohan et al., "Modeling
/// Power Consumption of NAND Flash Memories Using FlashPower", IEEE TCAD 32(7), 2013.
///
/// Energies differ by an order of magnitude between dies and no maker publishes them for a page; measured ones are in
/// Grupp et al., "Characterizing Flash Memory: Anomalies, Observations, and Applications", MICRO 2009, and modelled
/// ones in Mohan et al., "Modeling Power Consumption of NAND Flash Memories Using FlashPower", IEEE TCAD 32(7), 2013.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EnergyConfig {
    /// Sensing a page once, nJ.
    pub sense_nj: f64,
    /// Programming a page, nJ.
    pub program_nj: f64,
    /// Erasing a block, nJ.
    pub erase_nj: f64,
    /// Moving a byte over a channel, nJ.
    pub transfer_nj_per_byte: f64,
}

impl SuspensionConfig {
    pub(super) fn check(
        &self,
        scope: CommandScope,
        scheduling: Scheduling,
        checker: &Checker<'_>,
    ) -> Result<(), SsdError> {
        checker.time("flash.suspension.program_ns", self.program_ns)?;
        checker.time("flash.suspension.erase_ns", self.erase_ns)?;
        checker.time("flash.suspension.program_left_min_ns", self.program_left_min_ns)?;
        checker.time("flash.suspension.erase_left_min_ns", self.erase_left_min_ns)?;
        let off = self.suspend == Suspend::None;
        let reason = "requires a scheduling that distinguishes reads, and command_scope = \"die\"";
        let possible = scope == CommandScope::Die && scheduling != Scheduling::Fcfs;
        checker.require("flash.suspension.suspend", format!("{:?}", self.suspend), off || possible, reason)?;
        let reason = "must be between 1 and 1000";
        checker.count("flash.suspension.reads_max", self.reads_max, 1_000, reason)
    }
}

impl CommandTimes {
    pub(super) fn check(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        for (key, time_ns) in [
            ("flash.command.read_ns", self.read_ns),
            ("flash.command.read_further_plane_ns", self.read_further_plane_ns),
            ("flash.command.program_ns", self.program_ns),
            ("flash.command.program_further_plane_ns", self.program_further_plane_ns),
            ("flash.command.erase_ns", self.erase_ns),
            ("flash.command.erase_further_plane_ns", self.erase_further_plane_ns),
        ] {
            checker.time(key, time_ns)?;
        }
        Ok(())
    }
}

impl EnergyConfig {
    pub(super) fn check(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        for (key, nj) in [
            ("flash.energy.sense_nj", self.sense_nj),
            ("flash.energy.program_nj", self.program_nj),
            ("flash.energy.erase_nj", self.erase_nj),
            ("flash.energy.transfer_nj_per_byte", self.transfer_nj_per_byte),
        ] {
            checker.require(key, nj, (0.0..1e9).contains(&nj), "must be between 0 and 1 J")?;
        }
        Ok(())
    }
}
