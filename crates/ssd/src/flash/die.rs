//! A die: takes a command, waits for its channel, and lets its array work.

use super::FlashArray;
use super::command::{FlashOp, FlashOpKind};
use super::statistics::DieStatistics;
use super::suspension::Suspended;
use crate::config::Suspend;
use crate::event::{Event, EventQueue};
use crate::list::NONE;
use crate::state::AtRest;

/// What a die's command is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// There is none.
    Idle,
    /// On its way in, or waiting for that.
    ToDie,
    /// In the array.
    Array,
    /// Its data is on its way out, or waiting for that.
    FromDie,
}

/// One die.
#[derive(Clone, Copy)]
pub(super) struct Die {
    /// The first of the commands that are being done together.
    pub(super) current: u32,
    pub(super) phase: Phase,
    /// It is in the list of what takes its next command when the event is over.
    pub(super) unsettled: bool,
    pub(super) channel: u32,
    pub(super) chip: u32,
    /// Reads whose data has not left the die.
    pub(super) reads_left: u32,
    pub(super) array_end_ns: u64,
    /// Goes before the next array operation.
    pub(super) delay_ns: u64,
    pub(super) suspended: Suspended,
    pub(super) statistics: DieStatistics,
}

impl Die {
    pub(super) fn idle(channel: u32, chip: u32) -> Self {
        Self {
            current: NONE,
            phase: Phase::Idle,
            unsettled: false,
            channel,
            chip,
            reads_left: 0,
            array_end_ns: 0,
            delay_ns: 0,
            suspended: Suspended::default(),
            statistics: DieStatistics::default(),
        }
    }

    /// Neither does it anything nor has it anything left to continue with.
    #[inline]
    pub(super) fn is_free(&self) -> bool {
        self.current == NONE && self.suspended.op == NONE
    }
}

impl FlashArray {
    /// A command has come or gone: the die takes its next one, now or when the event is over.
    #[inline(always)]
    pub(super) fn die_may_take(&mut self, die: u32, now_ns: u64, events: &mut EventQueue) {
        if !self.rules.multi_plane {
            if self.may_take_now(die) {
                self.take_next(die, now_ns, events);
            }
            return;
        }
        if !std::mem::replace(&mut self.dies[die as usize].unsettled, true) {
            self.unsettled.push(die);
        }
    }

    /// Whether a die may be able to take a command: one that has something to do cannot where nothing is interrupted,
    /// nor can an idle one for which nothing waits.
    #[inline(always)]
    fn may_take_now(&self, die: u32) -> bool {
        let state = &self.dies[die as usize];
        if state.current != NONE {
            return self.suspension.suspend != Suspend::None;
        }
        !self.queues[die as usize].commands.is_empty() || state.suspended.op != NONE
    }

    /// Takes the next command, if the die is idle or may be interrupted.
    #[inline(never)]
    pub(super) fn take_next(&mut self, die: u32, now_ns: u64, events: &mut EventQueue) {
        if self.dies[die as usize].current != NONE && !self.interrupt(die, now_ns) {
            return;
        }
        let ranks = if self.dies[die as usize].suspended.op == NONE { u8::MAX } else { self.ranks.of_reads() };
        if ranks != u8::MAX && !self.read_goes_first(die) {
            return self.resume(die, now_ns, events);
        }
        let Some(op) = self.queues[die as usize].commands.pop_of(ranks, &mut self.ops) else { return };
        if self.rules.multi_plane {
            self.join_others(die as usize, op);
        }
        self.begin(die, op, now_ns, events);
    }

    /// A die starts with a command and with those beside it.
    #[inline(always)]
    pub(super) fn begin(&mut self, die: u32, first: u32, now_ns: u64, events: &mut EventQueue) {
        let taken = &mut self.ops[first];
        taken.started_ns = now_ns;
        let (kind, mut op, mut planes) = (taken.kind, taken.beside, u32::from(taken.at.planes));
        while op != NONE {
            let beside = &mut self.ops[op];
            beside.started_ns = now_ns;
            planes += u32::from(beside.at.planes);
            op = beside.beside;
        }
        self.statistics.taken(kind, planes);
        let command_ns = self.timing.command_ns(kind, planes);
        let state = &mut self.dies[die as usize];
        state.statistics.commands += 1;
        state.current = first;
        if kind != FlashOpKind::Read {
            state.suspended.reads_left = self.suspension.reads_max;
        }
        if kind == FlashOpKind::Program || command_ns > 0 {
            state.phase = Phase::ToDie;
            let channel = state.channel;
            self.send_to_die(channel, (first, kind), command_ns, now_ns, events);
        } else {
            self.start_array(die, first, now_ns, events);
        }
    }

    /// The array starts with a die's command and those beside it; whether they succeed is known from now on.
    #[inline(always)]
    pub(super) fn start_array(&mut self, die: u32, first: u32, now_ns: u64, events: &mut EventQueue) {
        debug_assert_eq!(self.dies[die as usize].current, first);
        let is_read = self.ops[first].kind == FlashOpKind::Read;
        let mut array_ns = self.array_ns(first);
        if self.reliability.is_some() {
            array_ns += self.draw_outcomes(first, now_ns);
        }
        let state = &mut self.dies[die as usize];
        array_ns += std::mem::take(&mut state.delay_ns);
        state.phase = Phase::Array;
        state.array_end_ns = now_ns + array_ns;
        state.statistics.array_ns += array_ns;
        if self.rules.planes_per_die > 1 {
            self.planes_work(first, array_ns as i64);
        }
        let done = if is_read { Event::Sensed { die } } else { Event::Programmed { die } };
        events.schedule(now_ns + array_ns, done);
        // A read that came while data was on its way into the die can stop the array only now.
        if !is_read && self.suspension.suspend != Suspend::None {
            self.die_may_take(die, now_ns, events);
        }
    }

    /// The planes that commands done together name work so much longer.
    #[inline(always)]
    pub(super) fn planes_work(&mut self, first: u32, array_ns: i64) {
        let mut op = first;
        while op != NONE {
            let FlashOp { at, beside, .. } = self.ops[op];
            let plane = (at.die * self.rules.planes_per_die + u32::from(at.plane)) as usize;
            for plane in plane..plane + usize::from(at.planes) {
                if let Some(busy_ns) = self.statistics.planes_ns.get_mut(plane) {
                    *busy_ns = busy_ns.wrapping_add_signed(array_ns);
                }
            }
            op = beside;
        }
    }

    /// Draws what becomes of commands that are done together; gives the time of their retries.
    #[cold]
    fn draw_outcomes(&mut self, first: u32, now_ns: u64) -> u64 {
        let (mut op, mut retries) = (first, 0);
        while op != NONE {
            let is_slc = self.is_slc(self.ops[op].at.block);
            let Some(reliability) = &mut self.reliability else { return 0 };
            let drawn = &mut self.ops[op];
            let outcome = reliability.outcome(drawn, is_slc, now_ns);
            drawn.failed = outcome.failed;
            self.statistics.read_retries += u64::from(outcome.retries * u32::from(drawn.at.planes));
            retries = outcome.retries.max(retries);
            op = drawn.beside;
        }
        u64::from(retries) * self.reliability.as_ref().map_or(0, |reliability| reliability.retry_ns())
    }

    /// The die's command has ended.
    #[inline(always)]
    pub(super) fn die_is_free(&mut self, die: u32, now_ns: u64, events: &mut EventQueue) {
        let state = &mut self.dies[die as usize];
        (state.current, state.phase) = (NONE, Phase::Idle);
        if self.rules.chips_take_commands {
            self.die_of_chip_is_free(die);
        } else if self.rules.multi_plane || state.suspended.op != NONE {
            self.die_may_take(die, now_ns, events);
        } else if let Some(op) = self.queues[die as usize].commands.pop(&mut self.ops) {
            // As it would take it there.
            self.begin(die, op, now_ns, events);
        }
    }
}

impl AtRest for Phase {
    fn is_at_rest(&self) -> bool {
        *self == Self::Idle
    }
}

crate::state::state! {
    Die {
        saved { array_end_ns, delay_ns, statistics }
        at_rest { phase, unsettled, reads_left, suspended }
        none { current }
        built { channel, chip }
    }
}
