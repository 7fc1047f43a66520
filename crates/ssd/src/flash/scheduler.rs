//! Scheduling: which of the commands that wait for a die, a chip or a channel goes first.
//!
//! A policy is a table: it gives each class of commands a rank. The lowest rank that has a command waiting goes first;
//! within a rank the order is that of arrival. A block is written by one stream, so that its programs are of one class
//! and one rank, and reach the flash in the order of their pages under every policy.
//!
//! | policy | ranks | |
//! |---|---|---|
//! | `fcfs` | all classes alike | first come, first served |
//! | `read-first` | reads · programs and erases | |
//! | `out-of-order` | host read · mapping read · GC read · host program · mapping program · GC program · erase | |
//! | `priority-out-of-order` | mapping read · GC read · GC program · erase · host read · mapping program · host program | MQSim's scheduler of this name while garbage collection may not be preempted (its default) |
//! | `preemptible-gc` | mapping read · host read · host program · mapping program · GC read · GC program · erase | the same while it may |
//!
//! Source of the last two: Tavakkol et al., "MQSim: A Framework for Enabling Realistic Studies of Modern Multi-Queue
//! SSD Devices", FAST 2018, and the behaviour of its program. MQSim never issues programs of the page map; here they go
//! before the host's, which may wait for them. Where an erase may overtake a host read of the same block, as in
//! `priority-out-of-order`, the read has the bytes from before: they are also where garbage collection moved them.
//!
//! # Adding a policy
//!
//! A name in the list of `Scheduling` (`config/commands.rs`), its line in the table above and its ranks in
//! [`Ranks::new`].

use super::command::{FlashOp, FlashOpKind, OpClass};
use crate::config::Scheduling;
use crate::list::{Fifo, Slab};
use crate::state::AtRest;

const CLASSES: usize = OpClass::ALL.len();

/// The rank of commands that let all others go first.
pub(super) const YIELDING: usize = CLASSES;

/// The rank of each class, in the order of [`OpClass::ALL`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Ranks {
    /// On a die or a chip.
    on_die: [u8; CLASSES],
    /// Of data that leaves a die over a channel.
    on_channel: [u8; CLASSES],
    /// The ranks on a die, one bit each, of the classes of each kind of command, and of commands that let others go
    /// first.
    of_kind: [u8; 3],
}

/// Mapping before host before garbage collection: MQSim's order of data that leaves the dies.
const MAPPING_FIRST: [u8; CLASSES] = [1, 0, 2, 0, 0, 0, 0];

impl Ranks {
    pub(super) fn new(policy: Scheduling) -> Self {
        let (on_die, on_channel) = match policy {
            Scheduling::Fcfs => ([0; CLASSES], [0; CLASSES]),
            Scheduling::ReadFirst => ([0, 0, 0, 1, 1, 1, 1], [0; CLASSES]),
            Scheduling::OutOfOrder => ([0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 0, 0, 0, 0]),
            Scheduling::PriorityOutOfOrder => ([4, 0, 1, 6, 5, 2, 3], MAPPING_FIRST),
            Scheduling::PreemptibleGc => ([1, 0, 4, 2, 3, 5, 6], MAPPING_FIRST),
        };
        let ranks_of = |classes: &[OpClass]| {
            classes.iter().fold(1 << YIELDING, |ranks, &class| ranks | 1 << on_die[class as usize])
        };
        use OpClass::{Erase, GcProgram, GcRead, HostProgram, HostRead, MappingProgram, MappingRead};
        let of_kind = [
            ranks_of(&[HostRead, MappingRead, GcRead]),
            ranks_of(&[HostProgram, MappingProgram, GcProgram]),
            ranks_of(&[Erase]),
        ];
        Self { on_die, on_channel, of_kind }
    }

    #[inline]
    pub(super) fn on_die(&self, class: OpClass) -> usize {
        self.on_die[class as usize] as usize
    }

    #[inline]
    pub(super) fn on_channel(&self, class: OpClass) -> usize {
        self.on_channel[class as usize] as usize
    }

    /// The ranks, one bit each, that may hold commands of a kind.
    #[inline]
    pub(super) fn of_kind(&self, kind: FlashOpKind) -> u8 {
        self.of_kind[kind as usize]
    }

    /// The ranks, one bit each, that hold reads and nothing else.
    pub(super) fn of_reads(&self) -> u8 {
        let bits = |classes: &[u8]| classes.iter().fold(0_u8, |bits, rank| bits | 1 << rank);
        bits(&self.on_die[..3]) & !bits(&self.on_die[3..])
    }
}

/// Commands that wait, rank by rank.
#[derive(Clone, Copy, Default)]
pub(super) struct Ranked {
    /// One bit for each rank that holds a command.
    waiting: u8,
    lists: [Fifo; YIELDING + 1],
}

impl Ranked {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Whether a command waits in one of some ranks, one bit each.
    pub(super) fn has_any_of(&self, ranks: u8) -> bool {
        self.waiting & ranks != 0
    }

    #[inline]
    pub(super) fn push(&mut self, ops: &mut Slab<FlashOp>, rank: usize, op: u32) {
        self.lists[rank].push(ops, op);
        self.waiting |= 1 << rank;
    }

    /// Takes the command that goes first.
    #[inline]
    pub(super) fn pop(&mut self, ops: &mut Slab<FlashOp>) -> Option<u32> {
        self.pop_of(u8::MAX, ops)
    }

    /// Takes the command that goes first among those of some ranks, one bit each.
    #[inline(always)]
    pub(super) fn pop_of(&mut self, ranks: u8, ops: &mut Slab<FlashOp>) -> Option<u32> {
        let waiting = self.waiting & ranks;
        if waiting == 0 {
            return None;
        }
        let rank = waiting.trailing_zeros() as usize;
        let op = self.lists[rank].pop(ops);
        if self.lists[rank].peek().is_none() {
            self.waiting &= !(1 << rank);
        }
        op
    }

    /// Puts the commands that let all others go first into their classes' ranks.
    pub(super) fn stop_yielding(&mut self, ops: &mut Slab<FlashOp>, ranks: &Ranks) {
        while let Some(op) = self.pop_of(1 << YIELDING, ops) {
            self.push(ops, ranks.on_die(ops[op].class), op);
        }
    }

    /// Takes commands out of some ranks, one bit each, in the order in which they would go, for as long as `wanted`
    /// wants more.
    pub(super) fn extract_of(
        &mut self,
        ranks: u8,
        ops: &mut Slab<FlashOp>,
        mut wanted: impl FnMut(&FlashOp) -> Wanted,
        into: &mut Vec<u32>,
    ) {
        let mut left = self.waiting & ranks;
        while left != 0 {
            let rank = left.trailing_zeros() as usize;
            left &= left - 1;
            let mut end = false;
            let list = &mut self.lists[rank];
            list.extract(
                ops,
                |op| match wanted(op) {
                    Wanted::Take => Some(true),
                    Wanted::Leave => Some(false),
                    Wanted::Enough => {
                        end = true;
                        None
                    }
                },
                into,
            );
            if list.peek().is_none() {
                self.waiting &= !(1 << rank);
            }
            if end {
                return;
            }
        }
    }
}

/// Whether a waiting command goes together with one that was taken.
pub(super) enum Wanted {
    Take,
    Leave,
    /// This one is left, and no other needs to be examined.
    Enough,
}

impl AtRest for Ranked {
    fn is_at_rest(&self) -> bool {
        self.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flash::{FlashAddress, Owner};

    fn order(policy: Scheduling, arriving: &[OpClass]) -> Vec<OpClass> {
        let (ranks, mut ops, mut queue) = (Ranks::new(policy), Slab::default(), Ranked::default());
        for &class in arriving {
            let op = ops.take();
            ops[op] = FlashOp::new(FlashOpKind::Read, Owner::None, FlashAddress::default(), 0).of_class(class);
            queue.push(&mut ops, ranks.on_die(class), op);
        }
        std::iter::from_fn(|| queue.pop(&mut ops).map(|op| ops[op].class)).collect()
    }

    #[test]
    fn each_policy_has_its_order() {
        use OpClass::{Erase, GcProgram, GcRead, HostProgram, HostRead, MappingProgram, MappingRead};
        let arriving = [Erase, GcProgram, HostProgram, MappingProgram, GcRead, MappingRead, HostRead];
        assert_eq!(order(Scheduling::Fcfs, &arriving), arriving);
        assert_eq!(
            order(Scheduling::ReadFirst, &arriving),
            [GcRead, MappingRead, HostRead, Erase, GcProgram, HostProgram, MappingProgram]
        );
        assert_eq!(order(Scheduling::OutOfOrder, &arriving), OpClass::ALL);
        assert_eq!(
            order(Scheduling::PriorityOutOfOrder, &arriving),
            [MappingRead, GcRead, GcProgram, Erase, HostRead, MappingProgram, HostProgram]
        );
        assert_eq!(
            order(Scheduling::PreemptibleGc, &arriving),
            [MappingRead, HostRead, HostProgram, MappingProgram, GcRead, GcProgram, Erase]
        );
    }

    #[test]
    fn a_rank_is_known_to_hold_the_kinds_of_its_classes() {
        let ranks = Ranks::new(Scheduling::PriorityOutOfOrder);
        let of = [FlashOpKind::Read, FlashOpKind::Program, FlashOpKind::Erase].map(|kind| ranks.of_kind(kind));
        assert_eq!(of, [0b1001_0011, 0b1110_0100, 0b1000_1000]);
        assert_eq!(Ranks::new(Scheduling::Fcfs).of_kind(FlashOpKind::Erase), 0b1000_0001);
    }

    #[test]
    fn only_reads_are_in_the_ranks_that_may_interrupt_a_program() {
        assert_eq!(Ranks::new(Scheduling::Fcfs).of_reads(), 0);
        assert_eq!(Ranks::new(Scheduling::ReadFirst).of_reads(), 0b1);
        assert_eq!(Ranks::new(Scheduling::OutOfOrder).of_reads(), 0b111);
        assert_eq!(Ranks::new(Scheduling::PriorityOutOfOrder).of_reads(), 0b1_0011);
    }
}
