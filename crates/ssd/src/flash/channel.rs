//! A channel: moves commands and data of one die at a time.

use super::FlashArray;
use super::command::FlashOpKind;
use super::die::Phase;
use super::scheduler::Ranked;
use super::statistics::ChannelStatistics;
use crate::event::{Event, EventQueue};
use crate::list::{Fifo, NONE};

/// One channel.
#[derive(Clone, Copy)]
pub(super) struct Channel {
    /// The command whose data is on it, or the first of those that go to a die together.
    pub(super) current: u32,
    /// It is in the list of what continues when the event is over.
    pub(super) unsettled: bool,
    /// Data that waits in a die.
    from_dies: Ranked,
    /// Commands that wait to go to a die.
    to_dies: Fifo,
    /// One bit a chip: idle and with a command waiting.
    pub(super) ready_chips: u64,
    /// The chip that is examined first.
    pub(super) next_chip: u32,
    pub(super) statistics: ChannelStatistics,
}

impl Default for Channel {
    fn default() -> Self {
        Self {
            current: NONE,
            unsettled: false,
            from_dies: Ranked::default(),
            to_dies: Fifo::default(),
            ready_chips: 0,
            next_chip: 0,
            statistics: ChannelStatistics::default(),
        }
    }
}

impl Channel {
    /// Whether something waits for it.
    #[inline]
    pub(super) fn is_wanted(&self) -> bool {
        self.ready_chips != 0 || self.has_transfers()
    }

    /// Whether data waits in a die, or commands that are to go to one.
    #[inline]
    pub(super) fn has_transfers(&self) -> bool {
        !self.from_dies.is_empty() || self.to_dies.peek().is_some()
    }
}

impl FlashArray {
    /// Sends a die its commands, with the data of programs.
    #[inline(always)]
    pub(super) fn send_to_die(
        &mut self,
        channel: u32,
        (first, kind): (u32, FlashOpKind),
        command_ns: u64,
        now_ns: u64,
        events: &mut EventQueue,
    ) {
        let state = &mut self.channels[channel as usize];
        if state.current == NONE && !state.has_transfers() {
            return self.occupy_to_die(channel, (first, kind), command_ns, now_ns, events);
        }
        state.to_dies.push(&mut self.ops, first);
        if !self.rules.chips_take_commands {
            self.start_channel(channel, now_ns, events);
        }
    }

    /// The array has sensed: the data waits for the channel.
    #[inline(always)]
    pub(super) fn data_is_ready(&mut self, die: u32, channel: u32, first: u32, now_ns: u64, events: &mut EventQueue) {
        let state = &self.channels[channel as usize];
        if self.ops[first].beside == NONE && state.current == NONE && !state.has_transfers() {
            return self.data_leaves(die, channel, first, now_ns, events);
        }
        let (mut op, mut reads) = (first, 0);
        while op != NONE {
            let ready = &self.ops[op];
            let (rank, beside) = (self.ranks.on_channel(ready.class), ready.beside);
            self.channels[channel as usize].from_dies.push(&mut self.ops, rank, op);
            (op, reads) = (beside, reads + 1);
        }
        let state = &mut self.dies[die as usize];
        (state.phase, state.reads_left) = (Phase::FromDie, reads);
        if self.channels[channel as usize].current == NONE {
            self.channel_is_free(channel, now_ns, events);
        }
    }

    /// The data of one read finds its channel idle and nobody waiting: it would be the next to go in any case.
    #[inline(always)]
    fn data_leaves(&mut self, die: u32, channel: u32, op: u32, now_ns: u64, events: &mut EventQueue) {
        let state = &mut self.dies[die as usize];
        (state.phase, state.reads_left) = (Phase::FromDie, 1);
        let bytes = self.ops[op].transfer_bytes;
        self.occupy(channel, op, self.timing.transfer_ns(bytes), u64::from(bytes), now_ns, events);
    }

    /// A read's data has left the die; gives whether the read has ended, or its data has still to be corrected.
    #[inline(always)]
    pub(super) fn data_is_out(&mut self, die: u32, op: u32, now_ns: u64, events: &mut EventQueue) -> bool {
        let state = &mut self.dies[die as usize];
        state.reads_left -= 1;
        let is_last = state.reads_left == 0;
        let decode_ns = self.reliability.as_ref().map_or(0, |reliability| reliability.decode_ns());
        if decode_ns > 0 {
            events.schedule(now_ns + decode_ns, Event::Decoded { op });
        }
        if is_last {
            self.die_is_free(die, now_ns, events);
        }
        decode_ns == 0
    }

    /// The channel takes what waits for it; where chips take commands, when the event is over.
    #[inline]
    pub(super) fn channel_is_free(&mut self, channel: u32, now_ns: u64, events: &mut EventQueue) {
        if self.rules.chips_take_commands {
            self.channel_is_unsettled(channel);
        } else {
            self.start_channel(channel, now_ns, events);
        }
    }

    /// Starts the next transfer, unless one is going on.
    #[inline(always)]
    pub(super) fn start_channel(&mut self, channel: u32, now_ns: u64, events: &mut EventQueue) {
        let state = &mut self.channels[channel as usize];
        if state.current != NONE {
            return;
        }
        if let Some(op) = state.from_dies.pop(&mut self.ops) {
            let bytes = self.ops[op].transfer_bytes;
            let transfer_ns = self.timing.transfer_ns(bytes);
            self.occupy(channel, op, transfer_ns, u64::from(bytes), now_ns, events);
        } else if let Some(first) = state.to_dies.pop(&mut self.ops) {
            let (mut op, mut planes) = (first, 0);
            while op != NONE {
                (op, planes) = (self.ops[op].beside, planes + u32::from(self.ops[op].at.planes));
            }
            let kind = self.ops[first].kind;
            let command_ns = self.timing.command_ns(kind, planes);
            self.occupy_to_die(channel, (first, kind), command_ns, now_ns, events);
        }
    }

    #[inline(always)]
    fn occupy_to_die(
        &mut self,
        channel: u32,
        (first, kind): (u32, FlashOpKind),
        command_ns: u64,
        now_ns: u64,
        events: &mut EventQueue,
    ) {
        let (mut op, mut busy_ns, mut bytes) = (first, command_ns, 0);
        if kind == FlashOpKind::Program {
            while op != NONE {
                let sent = &self.ops[op];
                busy_ns += self.timing.transfer_ns(sent.transfer_bytes);
                bytes += u64::from(sent.transfer_bytes);
                op = sent.beside;
            }
        }
        self.occupy(channel, first, busy_ns, bytes, now_ns, events);
    }

    #[inline(always)]
    fn occupy(&mut self, channel: u32, op: u32, busy_ns: u64, bytes: u64, now_ns: u64, events: &mut EventQueue) {
        let state = &mut self.channels[channel as usize];
        state.current = op;
        state.statistics.busy_ns += busy_ns;
        state.statistics.bytes += bytes;
        let sent = if bytes == 0 { Event::CommandSent { channel } } else { Event::DataSent { channel } };
        events.schedule(now_ns + busy_ns, sent);
    }
}

crate::state::state! {
    Channel {
        saved { next_chip, statistics }
        at_rest { unsettled, from_dies, to_dies, ready_chips }
        none { current }
    }
}
