//! Channels, dies and planes: what takes time in a drive.
//!
//! A `FlashOp` is one command to one die, for one or several of the die's planes. A die does one command at a time. A
//! channel moves the command cycles and the data of one die at a time, while its other dies sense, program or erase:
//!
//! ```text
//!   read      die:     ┌─ (command) ─┬── sense ──┐               ┌─ free
//!             channel: └─ (wait) ────┘           └─ (wait) ─ data ┘
//!   program   die:     ┌─────────────────────────┬─ program ── free
//!             channel: └─ (wait) ─ command, data ┘
//!   erase     die:     ┌─ (command) ─┬── erase ── free
//!             channel: └─ (wait) ────┘
//! ```
//!
//! While a die waits for its channel it stays taken, because its page register holds the data. Data that leaves a die
//! goes before what goes to one. Where command cycles take no time, which is the default, reads and erases need no
//! channel to start.
//!
//! A command goes through the files of this folder in this order:
//!
//! ```text
//!   command      what it says                       scheduler    which one goes first
//!   die, chip    who takes it, and when             multi_plane  which others go with it
//!   suspension   what it interrupts                 channel      its way in and out
//!   timing       how long the array takes           slc_mode     how long in cells that hold one bit
//!   reliability  whether it succeeds                statistics   what is kept of it
//! ```
//!
//! Source: the die, plane and channel model of Agrawal et al., "Design Tradeoffs for SSD Performance", USENIX ATC 2008,
//! section 2, with ONFI's split of a command into command, array and transfer time.

mod channel;
mod chip;
mod command;
mod die;
mod medium;
mod multi_plane;
mod reliability;
mod scheduler;
mod slc_mode;
mod statistics;
mod suspension;
#[cfg(test)]
mod tests;
mod timing;

use std::hint::cold_path;

pub use command::OpClass;
pub(crate) use command::{Finished, FlashAddress, FlashOp, FlashOpKind, Owner};
pub(crate) use medium::{Medium, RowRead};
pub(crate) use statistics::KnownOp;
pub use statistics::{ChannelStatistics, ClassStatistics, DieStatistics, Statistics};

use crate::config::{CommandScope, DeviceConfig, Suspend, SuspensionConfig};
use crate::event::{Event, EventQueue};
use crate::list::{NONE, Slab};
use channel::Channel;
use chip::Chip;
use die::{Die, Phase};
use reliability::Reliability;
use scheduler::{Ranked, Ranks, YIELDING};
use slc_mode::SlcMode;
use timing::Timing;

/// All dies and channels of a drive.
pub(crate) struct FlashArray {
    ops: Slab<FlashOp>,
    dies: Vec<Die>,
    /// What waits for each die, or with `command_scope = "chip"` for each chip.
    queues: Vec<Queue>,
    channels: Vec<Channel>,
    dies_per_chip: u32,
    chips_per_channel: u32,
    /// Commands that wait or run on each die.
    commands_of_die: Vec<u32>,
    ranks: Ranks,
    rules: Rules,
    suspension: SuspensionConfig,
    timing: Timing,
    reliability: Option<Box<Reliability>>,
    slc_mode: Option<Box<SlcMode>>,
    /// What is kept neither by the channels nor by the dies themselves.
    statistics: Statistics,
    /// Dies, or with `command_scope = "chip"` channels, that take their next command when the present event is over.
    unsettled: Vec<u32>,
    /// Scratch space of [`multi_plane`] and [`chip`].
    gathered: Vec<u32>,
    /// For each die of the chip that takes commands the one that it takes, or [`NONE`].
    op_for_die: Vec<u32>,
}

/// Commands that wait for a die, or for a chip.
#[derive(Clone, Copy, Default)]
struct Queue {
    commands: Ranked,
    /// The chip, where chips take the commands.
    chip: Chip,
}

/// How commands are formed.
#[derive(Clone, Copy)]
struct Rules {
    chips_take_commands: bool,
    multi_plane: bool,
    programs_in_order: bool,
    interleave: bool,
    all_planes: u32,
    planes_per_die: u32,
}

impl FlashArray {
    /// An idle array; die `d` is on channel `d / ways`. `seed` drives jitter and errors.
    pub(crate) fn new(config: &DeviceConfig, seed: u64) -> Self {
        let flash = &config.flash;
        let (channels, ways) = (flash.channels, config.ways());
        let dies = (channels * ways) as usize;
        let rules = Rules {
            chips_take_commands: flash.command_scope == CommandScope::Chip,
            multi_plane: flash.multi_plane,
            programs_in_order: flash.programs_in_order,
            interleave: flash.interleave,
            all_planes: (1 << flash.planes_per_die) - 1,
            planes_per_die: flash.planes_per_die,
        };
        let queue = |nth: u32| match rules.chips_take_commands {
            true => Queue { chip: Chip::idle(nth, flash.chips_per_channel), ..Queue::default() },
            false => Queue::default(),
        };
        let queues = if rules.chips_take_commands { channels * flash.chips_per_channel } else { dies as u32 };
        Self {
            ops: Slab::default(),
            dies: (0..dies as u32).map(|die| Die::idle(die / ways, die / flash.dies_per_chip)).collect(),
            queues: (0..queues).map(queue).collect(),
            channels: vec![Channel::default(); channels as usize],
            dies_per_chip: flash.dies_per_chip,
            chips_per_channel: flash.chips_per_channel,
            commands_of_die: vec![0; dies],
            ranks: Ranks::new(flash.scheduling),
            rules,
            suspension: flash.suspension,
            timing: Timing::new(flash, seed),
            reliability: Reliability::new(config, seed).map(Box::new),
            slc_mode: SlcMode::new(config),
            statistics: Statistics::new(channels as usize, dies, flash.planes_per_die as usize, flash.energy),
            unsettled: Vec::new(),
            gathered: Vec::new(),
            op_for_die: vec![NONE; config.flash.dies_per_chip as usize],
        }
    }

    /// Takes room for a command that is issued later.
    #[inline(always)]
    pub(crate) fn prepare(&mut self, op: FlashOp) -> u32 {
        let index = self.ops.take();
        self.ops[index] = op;
        index
    }

    /// A prepared command, for changing it or for linking it.
    pub(crate) fn prepared(&mut self) -> &mut Slab<FlashOp> {
        &mut self.ops
    }

    /// The channel of a prepared command.
    pub(crate) fn channel_of(&self, op: u32) -> u32 {
        self.dies[self.ops[op].at.die as usize].channel
    }

    /// How many ends of what dies and channels do can be under way at once.
    pub(crate) fn most_events(&self) -> usize {
        // A die's command, and one that ends together with it.
        const ENDS_OF_A_DIE: usize = 2;
        // The end that a suspended operation would have had stays where it is.
        let overtaken = match self.suspension.suspend {
            Suspend::None => 0,
            _ => self.suspension.reads_max as usize,
        };
        self.dies.len() * (ENDS_OF_A_DIE + overtaken) + self.channels.len()
    }

    /// How many commands wait or run on each die.
    pub(crate) fn commands_of_die(&self) -> &[u32] {
        &self.commands_of_die
    }

    /// What the flash has done.
    pub(crate) fn statistics(&self) -> Statistics {
        let mut all = self.statistics.clone();
        all.channels.iter_mut().zip(&self.channels).for_each(|(sum, channel)| sum.add(channel.statistics));
        all.dies.iter_mut().zip(&self.dies).for_each(|(sum, die)| sum.add(die.statistics));
        if self.rules.planes_per_die == 1 {
            // What an only plane does is its die's.
            all.planes_ns.iter_mut().zip(&self.dies).for_each(|(sum, die)| *sum += die.statistics.array_ns);
        }
        all
    }

    /// What the flash has done, for an FTL that does its operations without the flash's queues.
    pub(crate) fn statistics_mut(&mut self) -> &mut Statistics {
        &mut self.statistics
    }

    /// Issues a prepared command.
    pub(crate) fn issue(&mut self, op: u32, now_ns: u64, events: &mut EventQueue) {
        self.issue_here(op, now_ns, events);
    }

    #[inline(always)]
    fn issue_here(&mut self, op: u32, now_ns: u64, events: &mut EventQueue) {
        let issued = &mut self.ops[op];
        issued.issued_ns = now_ns;
        let die = issued.at.die;
        let rank = if issued.yields { YIELDING } else { self.ranks.on_die(issued.class) };
        self.commands_of_die[die as usize] += 1;
        if self.rules.chips_take_commands {
            return self.issue_to_chip(die, rank, op);
        }
        if self.dies[die as usize].is_free() && !self.rules.multi_plane {
            debug_assert!(self.queues[die as usize].commands.is_empty());
            return self.begin(die, op, now_ns, events);
        }
        self.queues[die as usize].commands.push(&mut self.ops, rank, op);
        self.die_may_take(die, now_ns, events);
    }

    /// Issues a prepared command that is all its event issues: where its way is free, it is taken at once.
    #[inline(always)]
    pub(crate) fn issue_alone(&mut self, op: u32, now_ns: u64, events: &mut EventQueue) {
        let die = self.ops[op].at.die;
        if self.rules.chips_take_commands && self.unsettled.is_empty() && self.way_is_free(die) {
            self.ops[op].issued_ns = now_ns;
            self.commands_of_die[die as usize] += 1;
            return self.idle_chip_takes(die, op, now_ns, events);
        }
        self.issue_here(op, now_ns, events);
    }

    /// Commands that wait for a die, or its chip, and let others go first take their places among them.
    pub(crate) fn stop_yielding(&mut self, die: u32) {
        let queue = if self.rules.chips_take_commands { self.dies[die as usize].chip } else { die };
        self.queues[queue as usize].commands.stop_yielding(&mut self.ops, &self.ranks);
    }

    /// A die's array has programmed or erased, or is done in another way; gives a command that has ended with it.
    #[inline(never)]
    pub(crate) fn array_done(&mut self, die: u32, now_ns: u64, events: &mut EventQueue) -> Option<u32> {
        self.array_ends::<false>(die, now_ns, events)
    }

    /// The same where the array has sensed. It is there twice so that a processor learns what reads do and what others
    /// do.
    #[inline(never)]
    pub(crate) fn sensed(&mut self, die: u32, now_ns: u64, events: &mut EventQueue) -> Option<u32> {
        self.array_ends::<true>(die, now_ns, events)
    }

    /// The array part of a die's command is over; gives a command that has ended with it.
    ///
    /// The end of an operation that was suspended may still be in the event queue. An event counts only if it comes at
    /// the time at which the die's array operation ends.
    #[inline(always)]
    fn array_ends<const IS_READ: bool>(&mut self, die: u32, now_ns: u64, events: &mut EventQueue) -> Option<u32> {
        let state = &self.dies[die as usize];
        if state.phase != Phase::Array || state.array_end_ns != now_ns {
            return None;
        }
        let (op, channel) = (state.current, state.channel);
        let is_read = self.ops[op].kind == FlashOpKind::Read;
        if is_read != IS_READ {
            cold_path();
        }
        if is_read {
            self.data_is_ready(die, channel, op, now_ns, events);
            return None;
        }
        let beside = self.ops[op].beside;
        if beside != NONE {
            // What was done together ends together; each command's owner is told by an event of its own.
            self.dies[die as usize].current = beside;
            events.schedule(now_ns, Event::ArrayDone { die });
            return Some(op);
        }
        self.die_is_free(die, now_ns, events);
        Some(op)
    }

    /// Data has crossed a channel; gives a command that has ended with it.
    #[inline(never)]
    pub(crate) fn data_sent(&mut self, channel: u32, now_ns: u64, events: &mut EventQueue) -> Option<u32> {
        self.transfer_ends::<false>(channel, now_ns, events)
    }

    /// The same where command cycles have crossed it, nearly always to a die.
    #[inline(never)]
    pub(crate) fn command_sent(&mut self, channel: u32, now_ns: u64, events: &mut EventQueue) -> Option<u32> {
        self.transfer_ends::<true>(channel, now_ns, events)
    }

    /// A channel's transfer is over; gives a command that has ended with it.
    #[inline(always)]
    fn transfer_ends<const IS_COMMAND: bool>(
        &mut self,
        channel: u32,
        now_ns: u64,
        events: &mut EventQueue,
    ) -> Option<u32> {
        let state = &mut self.channels[channel as usize];
        // What the die will want of the channel it takes by itself.
        let is_wanted = state.is_wanted();
        let op = std::mem::replace(&mut state.current, NONE);
        let die = self.ops[op].at.die;
        let is_to_die = self.dies[die as usize].phase == Phase::ToDie;
        if IS_COMMAND && !is_to_die {
            cold_path();
        }
        let finished = if is_to_die {
            self.start_array(die, op, now_ns, events);
            None
        } else {
            self.data_is_out(die, op, now_ns, events).then_some(op)
        };
        if is_wanted {
            self.channel_is_free(channel, now_ns, events);
        }
        finished
    }

    /// Lets dies and chips take their next commands, now that all commands of the present event are issued.
    #[inline(always)]
    pub(crate) fn settle(&mut self, now_ns: u64, events: &mut EventQueue) {
        if !self.unsettled.is_empty() {
            self.settle_all(now_ns, events);
        }
    }

    #[inline(always)]
    fn settle_all(&mut self, now_ns: u64, events: &mut EventQueue) {
        let mut nth = 0;
        while let Some(&index) = self.unsettled.get(nth) {
            nth += 1;
            if self.rules.chips_take_commands {
                self.channels[index as usize].unsettled = false;
                self.use_channel(index, now_ns, events);
            } else {
                self.dies[index as usize].unsettled = false;
                self.take_next(index, now_ns, events);
            }
        }
        self.unsettled.clear();
    }

    /// Takes a command that has ended out of the array.
    #[inline(always)]
    pub(crate) fn take_ended(&mut self, op: u32, now_ns: u64) -> Finished {
        let done = &self.ops[op];
        let FlashOp { owner, at, transfer_bytes, failed, .. } = *done;
        self.statistics.ended(done, now_ns);
        self.commands_of_die[at.die as usize] -= 1;
        self.ops.give_back(op);
        Finished { owner, at, transfer_bytes, transfer_ns: self.timing.transfer_ns(transfer_bytes), failed }
    }
}

crate::state::state! {
    Queue {
        saved { chip }
        at_rest { commands }
    }
}

crate::state::state! {
    FlashArray {
        saved { dies, queues, channels, timing, reliability, slc_mode, statistics }
        at_rest { ops, commands_of_die }
        empty { unsettled }
        built { dies_per_chip, chips_per_channel, ranks, rules, suspension, gathered, op_for_die }
    }
}
