//! Channels, dies and planes: what takes time in a drive.
//!
//! A `FlashOp` is one command to one die; it spans the die's planes. A die does one command at a time. A channel
//! moves the data of one die at a time, while its other dies sense, program or erase:
//!
//! ```text
//!   read      die: ── sense ──┐               ┌─ free
//!             channel:        └─ (wait) ─ data ┘
//!   program   die: ┌───────────────────┬─ program ── free
//!             channel: ─ (wait) ─ data ┘
//!   erase     die: ── erase ── free
//! ```
//!
//! While a die waits for its channel it stays taken, because its page register holds the data. Reads go before
//! programs and erases, on the die and on the channel; within each class the order is that of arrival, which keeps
//! the pages of a block programmed in order. Commands that *yield* wait behind both. A command without bytes to transfer,
//! a copy-back, needs no channel.
//!
//! Source: the die, plane and channel model of Agrawal et al., "Design Tradeoffs for SSD Performance", USENIX ATC 2008,
//! section 2, with ONFI's split of a command into array time and transfer time.

mod timing;

pub(crate) use timing::Timing;

use crate::event::{Event, EventQueue};
use crate::list::{Fifo, Linked, NONE, Slab};

/// What a die is told to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FlashOpKind {
    /// Sense a page, then move `transfer_bytes` out.
    #[default]
    Read,
    /// Move `transfer_bytes` in, then program a page.
    Program,
    /// Erase a block.
    Erase,
}

/// Who waits for a flash command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A host read.
    #[default]
    None,
    /// A host read.
    Read {
        /// Its request.
        request: u32,
    },
    /// The read that fills up a partial logical page before it is written.
    Fill {
        /// The writing request.
        request: u32,
    },
    /// A write in place.
    InPlace {
        /// The writing request.
        request: u32,
    },
    /// A superpage being programmed.
    Superpage {
        /// Its record.
        superpage: u32,
    },
    /// Garbage collection of a parallel unit, which reads a victim.
    Gc {
        /// The unit.
        unit: u32,
    },
    /// The erasure of a superblock.
    Erase {
        /// Its unit.
        unit: u32,
        /// The superblock.
        block: u32,
    },
}

/// The planes of one die that a command names, and the page or block in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlashAddress {
    /// The die, counted over the drive; die `d` is on channel `d / ways`.
    pub(crate) die: u32,
    /// The first plane.
    pub(crate) plane: u8,
    /// How many planes, from the first one on.
    pub(crate) planes: u8,
    /// The page in its block.
    pub(crate) row: u16,
    /// The superblock, counted over the drive.
    pub(crate) block: u32,
}

/// One command to one die.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlashOp {
    pub(crate) kind: FlashOpKind,
    pub(crate) owner: Owner,
    pub(crate) at: FlashAddress,
    /// Bytes over the channel.
    pub(crate) transfer_bytes: u32,
    /// Array operations one after the other: 1, or granules of a write in place.
    pub(crate) array_steps: u32,
    /// Lets every other command that waits for its die go first.
    pub(crate) yields: bool,
    /// Next in the list that this command waits in.
    next: u32,
}

impl FlashOp {
    /// A command that nobody has issued yet.
    pub(crate) fn new(kind: FlashOpKind, owner: Owner, at: FlashAddress, transfer_bytes: u32) -> Self {
        Self { kind, owner, at, transfer_bytes, array_steps: 1, yields: false, next: NONE }
    }
}

impl Linked for FlashOp {
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

#[derive(Clone, Copy)]
struct Die {
    current: u32,
    reads: Fifo,
    writes: Fifo,
    /// Commands that let all others go first.
    yielding: Fifo,
}

#[derive(Clone, Copy)]
struct Channel {
    current: u32,
    from_dies: Fifo,
    to_dies: Fifo,
}

/// A finished command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    pub(crate) op: FlashOp,
    /// How long its data was on the channel, ns.
    pub(crate) transfer_ns: u64,
    /// The array could not program or erase.
    pub(crate) failed: bool,
}

/// All dies and channels of a drive.
pub(crate) struct FlashArray {
    ops: Slab<FlashOp>,
    dies: Vec<Die>,
    channels: Vec<Channel>,
    dies_per_channel: u32,
    /// Commands that wait or run on each die.
    commands_of_die: Vec<u32>,
    timing: Timing,
}

impl FlashArray {
    /// An idle array; die `d` is on channel `d / ways`.
    pub(crate) fn new(channels: u32, ways: u32, timing: Timing) -> Self {
        let die = Die { current: NONE, reads: Fifo::default(), writes: Fifo::default(), yielding: Fifo::default() };
        let channel = Channel { current: NONE, from_dies: Fifo::default(), to_dies: Fifo::default() };
        Self {
            ops: Slab::default(),
            dies: vec![die; (channels * ways) as usize],
            channels: vec![channel; channels as usize],
            dies_per_channel: ways,
            commands_of_die: vec![0; (channels * ways) as usize],
            timing,
        }
    }

    /// Takes room for a command that is issued later.
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
        self.ops[op].at.die / self.dies_per_channel
    }

    /// How many commands wait or run on each die.
    pub(crate) fn commands_of_die(&self) -> &[u32] {
        &self.commands_of_die
    }

    /// Issues a prepared command.
    pub(crate) fn issue(&mut self, op: u32, now_ns: u64, events: &mut EventQueue) {
        let FlashOp { at: FlashAddress { die, .. }, kind, yields, .. } = self.ops[op];
        let waiting = &mut self.dies[die as usize];
        let list = match kind {
            _ if yields => &mut waiting.yielding,
            FlashOpKind::Read => &mut waiting.reads,
            FlashOpKind::Program | FlashOpKind::Erase => &mut waiting.writes,
        };
        list.push(&mut self.ops, op);
        self.commands_of_die[die as usize] += 1;
        self.start_die(die, now_ns, events);
    }

    /// Lets the commands that wait for a die and let others go first wait with its programs and erases.
    pub(crate) fn stop_yielding(&mut self, die: u32) {
        let waiting = &mut self.dies[die as usize];
        while let Some(op) = waiting.yielding.pop(&mut self.ops) {
            waiting.writes.push(&mut self.ops, op);
        }
    }

    /// The array part of a die's command is over.
    pub(crate) fn array_done(&mut self, die: u32, now_ns: u64, events: &mut EventQueue) -> Option<Finished> {
        let op = self.dies[die as usize].current;
        if self.ops[op].kind == FlashOpKind::Read && self.ops[op].transfer_bytes > 0 {
            let channel = die / self.dies_per_channel;
            self.channels[channel as usize].from_dies.push(&mut self.ops, op);
            self.start_channel(channel, now_ns, events);
            return None;
        }
        Some(self.finish(op, now_ns, events))
    }

    /// A channel's transfer is over.
    pub(crate) fn transfer_done(&mut self, channel: u32, now_ns: u64, events: &mut EventQueue) -> Option<Finished> {
        let op = std::mem::replace(&mut self.channels[channel as usize].current, NONE);
        let FlashOp { kind, at: FlashAddress { die, .. }, array_steps, .. } = self.ops[op];
        let finished = if kind == FlashOpKind::Read {
            Some(self.finish(op, now_ns, events))
        } else {
            events.schedule(now_ns + self.timing.program_ns(array_steps), Event::ArrayDone { die });
            None
        };
        self.start_channel(channel, now_ns, events);
        finished
    }

    fn finish(&mut self, op: u32, now_ns: u64, events: &mut EventQueue) -> Finished {
        let done = self.ops[op];
        self.ops.give_back(op);
        self.dies[done.at.die as usize].current = NONE;
        self.commands_of_die[done.at.die as usize] -= 1;
        self.start_die(done.at.die, now_ns, events);
        Finished { op: done, transfer_ns: self.timing.transfer_ns(done.transfer_bytes), failed: false }
    }

    fn start_die(&mut self, die: u32, now_ns: u64, events: &mut EventQueue) {
        let state = &mut self.dies[die as usize];
        if state.current != NONE {
            return;
        }
        let first = state.reads.pop(&mut self.ops).or_else(|| state.writes.pop(&mut self.ops));
        let Some(op) = first.or_else(|| state.yielding.pop(&mut self.ops)) else { return };
        state.current = op;
        match self.ops[op].kind {
            FlashOpKind::Read => events.schedule(now_ns + self.timing.sense_ns(), Event::ArrayDone { die }),
            FlashOpKind::Erase => events.schedule(now_ns + self.timing.erase_ns(), Event::ArrayDone { die }),
            FlashOpKind::Program if self.ops[op].transfer_bytes == 0 => {
                let program_ns = self.timing.program_ns(self.ops[op].array_steps);
                events.schedule(now_ns + program_ns, Event::ArrayDone { die });
            }
            FlashOpKind::Program => {
                let channel = die / self.dies_per_channel;
                self.channels[channel as usize].to_dies.push(&mut self.ops, op);
                self.start_channel(channel, now_ns, events);
            }
        }
    }

    fn start_channel(&mut self, channel: u32, now_ns: u64, events: &mut EventQueue) {
        let state = &mut self.channels[channel as usize];
        if state.current != NONE {
            return;
        }
        let next = state.from_dies.pop(&mut self.ops).or_else(|| state.to_dies.pop(&mut self.ops));
        let Some(op) = next else { return };
        state.current = op;
        let transfer_ns = self.timing.transfer_ns(self.ops[op].transfer_bytes);
        events.schedule(now_ns + transfer_ns, Event::TransferDone { channel });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `(kind, die, bytes)` issued at time zero on one channel of two dies; gives (die, end) of each.
    fn run(ops: &[(FlashOpKind, u32, u32)]) -> Vec<(u32, u64)> {
        let timing = Timing::exact(50, 500, 3_000, 1_000_000_000);
        let mut flash = FlashArray::new(1, 2, timing);
        let mut events = EventQueue::default();
        for &(kind, die, bytes) in ops {
            let at = FlashAddress { die, planes: 1, ..FlashAddress::default() };
            let op = flash.prepare(FlashOp::new(kind, Owner::None, at, bytes));
            flash.issue(op, 0, &mut events);
        }
        let mut ends = Vec::new();
        while let Some((now, event)) = events.pop() {
            let finished = match event {
                Event::ArrayDone { die } => flash.array_done(die, now, &mut events),
                Event::TransferDone { channel } => flash.transfer_done(channel, now, &mut events),
                other => panic!("{other:?}"),
            };
            ends.extend(finished.map(|f| (f.op.at.die, now)));
        }
        ends
    }

    use FlashOpKind::{Erase, Program, Read};

    #[test]
    fn a_single_command_takes_the_sum_of_its_parts() {
        assert_eq!(run(&[(Read, 0, 100)]), [(0, 150)]);
        assert_eq!(run(&[(Program, 0, 100)]), [(0, 600)]);
        assert_eq!(run(&[(Erase, 0, 0)]), [(0, 3_000)]);
    }

    #[test]
    fn two_dies_of_a_channel_sense_together_and_share_the_bus() {
        assert_eq!(run(&[(Read, 0, 100), (Read, 1, 100)]), [(0, 150), (1, 250)]);
    }

    #[test]
    fn one_die_senses_the_next_page_only_when_its_register_is_empty() {
        assert_eq!(run(&[(Read, 0, 100), (Read, 0, 100)]), [(0, 150), (0, 300)]);
    }

    #[test]
    fn a_read_goes_before_a_waiting_program_but_not_before_a_running_one() {
        let order = run(&[(Program, 0, 100), (Program, 0, 100), (Read, 0, 100)]);
        assert_eq!(order, [(0, 600), (0, 750), (0, 1_350)]);
    }
}
