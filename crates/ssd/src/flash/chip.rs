//! Chips that take commands as a whole.
//!
//! A chip takes a command only when all its dies and its channel are idle; which one is decided at that moment and not
//! before. With interleaving it takes a command of the same kind for each further die at once. The idle chips of a
//! channel are asked in turn. Nothing is taken in the middle of an event, so that all commands that an event issues are
//! considered together.
//!
//! Source: the transaction scheduler of MQSim (Tavakkol et al., FAST 2018), which does not interleave: the second die of
//! a chip waits for the first.

use super::FlashArray;
use super::command::FlashOp;
use super::scheduler::Wanted;
use crate::event::EventQueue;
use crate::list::NONE;

/// One chip.
#[derive(Clone, Copy)]
pub(super) struct Chip {
    busy_dies: u32,
    channel: u32,
    /// Its bit in [`Channel::ready_chips`](super::channel::Channel::ready_chips).
    bit: u64,
}

impl Chip {
    pub(super) fn idle(chip: u32, chips_per_channel: u32) -> Self {
        Self { busy_dies: 0, channel: chip / chips_per_channel, bit: 1 << (chip % chips_per_channel) }
    }
}

impl FlashArray {
    #[inline]
    pub(super) fn issue_to_chip(&mut self, die: u32, rank: usize, op: u32) {
        let chip = self.dies[die as usize].chip;
        self.queues[chip as usize].push(&mut self.ops, rank, op);
        self.chip_may_be_ready(chip);
    }

    /// Notes on its channel whether a chip is idle and has a command waiting.
    #[inline]
    fn chip_may_be_ready(&mut self, chip: u32) {
        let Chip { busy_dies, channel, bit } = self.chips[chip as usize];
        let ready = busy_dies == 0 && !self.queues[chip as usize].is_empty();
        let state = &mut self.channels[channel as usize];
        if !ready {
            state.ready_chips &= !bit;
            return;
        }
        state.ready_chips |= bit;
        self.channel_is_unsettled(channel);
    }

    /// A channel may take something when the event is over, unless something is on it.
    #[inline]
    pub(super) fn channel_is_unsettled(&mut self, channel: u32) {
        let state = &mut self.channels[channel as usize];
        if state.current == NONE && !std::mem::replace(&mut state.unsettled, true) {
            self.unsettled.push(channel);
        }
    }

    #[inline]
    pub(super) fn die_of_chip_is_free(&mut self, die: u32) {
        let chip = self.dies[die as usize].chip;
        self.chips[chip as usize].busy_dies -= 1;
        self.chip_may_be_ready(chip);
    }

    /// Gives an idle channel its next transfer: data that waits in a die, or the commands of a chip that is ready.
    pub(super) fn use_channel(&mut self, channel: u32, now_ns: u64, events: &mut EventQueue) {
        if self.channels[channel as usize].has_transfers() {
            self.start_channel(channel, now_ns, events);
        }
        loop {
            let state = &mut self.channels[channel as usize];
            if state.current != NONE || state.ready_chips == 0 {
                return;
            }
            let from_next_on = state.ready_chips >> state.next_chip << state.next_chip;
            let ready = if from_next_on != 0 { from_next_on } else { state.ready_chips };
            let nth = ready.trailing_zeros();
            state.next_chip = if nth + 1 == self.chips_per_channel { 0 } else { nth + 1 };
            self.chip_takes(channel * self.chips_per_channel + nth, now_ns, events);
        }
    }

    /// A ready chip takes a command, others beside it, and with interleaving one for each of its other dies.
    fn chip_takes(&mut self, chip: u32, now_ns: u64, events: &mut EventQueue) {
        let Some(first) = self.queues[chip as usize].pop(&mut self.ops) else { return };
        let FlashOp { kind, at, .. } = self.ops[first];
        let first_die = chip * self.dies_per_chip;
        let dies = if self.rules.interleave { self.dies_per_chip } else { 1 };
        let (mut op, mut taken) = (Some(first), 0);
        for n in 0..dies {
            let in_turn = at.die + n;
            let die = if in_turn < first_die + self.dies_per_chip { in_turn } else { in_turn - self.dies_per_chip };
            if n > 0 {
                op = self.first_of_die(chip as usize, |op| op.at.die == die && op.kind == kind);
            }
            let Some(op) = op else { continue };
            if self.rules.multi_plane {
                self.join_others(chip as usize, op);
            }
            taken += 1;
            self.chips[chip as usize].busy_dies += 1;
            self.begin(die, op, now_ns, events);
        }
        self.statistics.interleaved_commands += u64::from(taken > 1);
        self.chip_may_be_ready(chip);
    }

    /// Takes the first waiting command that fits, past others.
    fn first_of_die(&mut self, queue: usize, fits: impl Fn(&FlashOp) -> bool) -> Option<u32> {
        let mut found = false;
        let wanted = |op: &FlashOp| {
            if found {
                return Wanted::Enough;
            }
            found = fits(op);
            if found { Wanted::Take } else { Wanted::Leave }
        };
        self.gathered.clear();
        self.queues[queue].extract_of(u8::MAX, &mut self.ops, wanted, &mut self.gathered);
        self.gathered.first().copied()
    }
}
