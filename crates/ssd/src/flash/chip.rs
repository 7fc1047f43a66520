//! Chips that take commands as a whole.
//!
//! A chip takes a command only when all its dies and its channel are idle; which one is decided at that moment and not
//! before. With interleaving it takes a command of the same kind for each further die at once. The idle chips of a
//! channel are asked in turn. Nothing is taken in the middle of an event, so that all commands that an event issues are
//! considered together.
//!
//! Source: the transaction scheduler of MQSim (Tavakkol et al., FAST 2018), which does not interleave: the second die
//! of a chip waits for the first.

use super::FlashArray;
use super::command::{FlashOp, FlashOpKind};
use super::scheduler::Wanted;
use crate::event::EventQueue;
use crate::list::NONE;

/// One chip.
#[derive(Clone, Copy, Default)]
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
        self.queues[chip as usize].commands.push(&mut self.ops, rank, op);
        if self.queues[chip as usize].chip.busy_dies == 0 {
            self.chip_is_ready(chip);
        }
    }

    /// Whether a die's chip and channel have nothing to do and nothing waiting.
    #[inline]
    pub(super) fn way_is_free(&self, die: u32) -> bool {
        let queue = &self.queues[self.dies[die as usize].chip as usize];
        let channel = &self.channels[queue.chip.channel as usize];
        queue.chip.busy_dies == 0 && queue.commands.is_empty() && channel.current == NONE && !channel.is_wanted()
    }

    /// A chip whose way is free takes the only command that there is for it, as [`Self::use_channel`] would have it do
    /// when the event is over.
    #[inline]
    pub(super) fn idle_chip_takes(&mut self, die: u32, op: u32, now_ns: u64, events: &mut EventQueue) {
        let chip = &mut self.queues[self.dies[die as usize].chip as usize].chip;
        chip.busy_dies = 1;
        let channel = &mut self.channels[chip.channel as usize];
        let nth = chip.bit.trailing_zeros();
        channel.next_chip = if nth + 1 == self.chips_per_channel { 0 } else { nth + 1 };
        self.begin(die, op, now_ns, events);
    }

    /// Notes on its channel that a chip is idle and has a command waiting; that ends when it is its turn to take it.
    #[inline(always)]
    fn chip_is_ready(&mut self, chip: u32) {
        let Chip { channel, bit, .. } = self.queues[chip as usize].chip;
        self.channels[channel as usize].ready_chips |= bit;
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

    #[inline(always)]
    pub(super) fn die_of_chip_is_free(&mut self, die: u32) {
        let chip = self.dies[die as usize].chip;
        let state = &mut self.queues[chip as usize].chip;
        state.busy_dies -= 1;
        if state.busy_dies == 0 && !self.queues[chip as usize].commands.is_empty() {
            self.chip_is_ready(chip);
        }
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
            state.ready_chips &= !(1 << nth);
            self.chip_takes(channel * self.chips_per_channel + nth, now_ns, events);
        }
    }

    /// A ready chip takes a command, others beside it, and with interleaving one for each of its other dies.
    #[inline(always)]
    fn chip_takes(&mut self, chip: u32, now_ns: u64, events: &mut EventQueue) {
        let Some(first) = self.queues[chip as usize].commands.pop(&mut self.ops) else { return };
        let FlashOp { kind, at, .. } = self.ops[first];
        self.die_of_chip_takes(chip, at.die, first, now_ns, events);
        if self.rules.interleave {
            self.others_of_chip_take(chip, at.die, kind, now_ns, events);
        }
    }

    #[inline(always)]
    fn die_of_chip_takes(&mut self, chip: u32, die: u32, op: u32, now_ns: u64, events: &mut EventQueue) {
        self.queues[chip as usize].chip.busy_dies += 1;
        if self.rules.multi_plane {
            self.join_others(chip as usize, op);
        }
        self.begin(die, op, now_ns, events);
    }

    /// The other dies of a chip of which one has taken a command take one of the same kind, where one waits for them.
    #[inline(never)]
    fn others_of_chip_take(&mut self, chip: u32, first: u32, kind: FlashOpKind, now_ns: u64, events: &mut EventQueue) {
        let (begin, end) = (chip * self.dies_per_chip, (chip + 1) * self.dies_per_chip);
        self.find_for_dies(chip, first, kind);
        let mut is_joined = false;
        for die in (first + 1..end).chain(begin..first) {
            let op = std::mem::replace(&mut self.op_for_die[(die - begin) as usize], NONE);
            if op != NONE {
                self.die_of_chip_takes(chip, die, op, now_ns, events);
                is_joined = true;
            }
        }
        self.statistics.interleaved_commands += u64::from(is_joined);
    }

    /// Takes, for each die of a chip but one, the first waiting command of a kind, past others, in one pass.
    fn find_for_dies(&mut self, chip: u32, but: u32, kind: FlashOpKind) {
        let (begin, end) = (chip * self.dies_per_chip, (chip + 1) * self.dies_per_chip);
        let waiting = self.commands_of_die[begin as usize..end as usize].iter();
        let mut dies_left = waiting.zip(begin..end).filter(|&(&commands, die)| commands > 0 && die != but).count();
        let op_for_die = &mut self.op_for_die;
        let wanted = |op: &FlashOp| {
            if dies_left == 0 {
                return Wanted::Enough;
            }
            let found = &mut op_for_die[(op.at.die - begin) as usize];
            if op.kind != kind || op.at.die == but || *found != NONE {
                return Wanted::Leave;
            }
            // Which one it is, the list tells.
            *found = 0;
            dies_left -= 1;
            Wanted::Take
        };
        self.gathered.clear();
        self.queues[chip as usize].commands.extract_of(u8::MAX, &mut self.ops, wanted, &mut self.gathered);
        for &op in &self.gathered {
            self.op_for_die[(self.ops[op].at.die - begin) as usize] = op;
        }
    }
}

crate::state::state! {
    Chip {
        at_rest { busy_dies }
        built { channel, bit }
    }
}
