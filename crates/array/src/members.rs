//! The drives of an array, in step on one clock.
//!
//! Each drive has events of its own. The one whose next event is earliest continues, as far as the next event of any
//! other; of drives with events at the same time, the first. So nothing happens on a drive after the array's present
//! time, and work that a completion starts on another drive starts at that time. A drive's own clock is at its last
//! event; it is brought to the present when a request goes to it.

use std::collections::{BTreeSet, VecDeque};

use flashwise_block::{BlockDevice, BlockError, Completion, DeviceCounters, FlashCounters, Nanos, Request};

use flashwise_ssd::SimulatedSsd;
use flashwise_ssd::SlcCacheCounters;
use flashwise_ssd::flash::Statistics;
use flashwise_ssd::reduction::ReductionCounters;

/// What a place among the members holds.
pub(super) enum State {
    /// All of what it should.
    Whole,
    /// Nothing: the drive has failed.
    Failed,
    /// What has been rebuilt of it.
    Rebuilding(Rebuilt),
}

/// The rows of a spare that hold what they should.
#[derive(Default)]
pub(super) struct Rebuilt {
    /// Tells this rebuilding from an earlier one of the same place.
    pub(super) epoch: u64,
    /// All rows below.
    pub(super) below: u64,
    /// And these.
    pub(super) also: BTreeSet<u64>,
    /// The row that is started next.
    pub(super) next: u64,
    /// Rows that are started and not done.
    pub(super) under_way: u32,
    /// When the next row may start, ns.
    pub(super) next_ns: u64,
}

/// One place of the array.
pub(super) struct Member {
    /// The drive; none where it has failed.
    pub(super) drive: Option<SimulatedSsd>,
    pub(super) state: State,
    /// Requests on their way.
    pub(super) busy: u32,
    /// What the drives did that have failed in this place.
    past: Past,
}

/// What drives did that are gone.
#[derive(Default)]
struct Past {
    counters: DeviceCounters,
    statistics: Statistics,
    reduction: Option<ReductionCounters>,
    slc_cache: Option<SlcCacheCounters>,
    /// Bytes that were in their buffers when they failed.
    buffered_bytes: u64,
}

impl Member {
    /// Whether a row of it can be written, and holds what it should.
    pub(super) fn holds(&self, row: u64) -> bool {
        match &self.state {
            State::Whole => true,
            State::Failed => false,
            State::Rebuilding(rebuilt) => row < rebuilt.below || rebuilt.also.contains(&row),
        }
    }

    /// When something happens next on its drive.
    fn next_time(&self) -> Option<u64> {
        let drive = self.drive.as_ref()?;
        if drive.has_completions() {
            return Some(drive.now().0);
        }
        // An idle drive with completions pending runs garbage collection first.
        let at_rest = || (drive.outstanding() > 0).then(|| drive.now());
        Some(drive.next_event().or_else(at_rest)?.0)
    }

    /// What all drives of the place have counted.
    pub(super) fn counters(&self) -> DeviceCounters {
        self.drive.as_ref().map_or(self.past.counters, |drive| self.past.counters.and(&drive.counters()))
    }

    /// What the flash of all drives of the place has done.
    pub(super) fn statistics(&self) -> Statistics {
        let Some(drive) = &self.drive else { return self.past.statistics.clone() };
        let mut statistics = drive.flash_statistics();
        statistics.merge(&self.past.statistics);
        statistics
    }

    /// What all drives of the place did to store less than they were given.
    pub(super) fn reduction_counters(&self) -> Option<ReductionCounters> {
        let present = self.drive.as_ref().and_then(SimulatedSsd::reduction_counters);
        present.into_iter().chain(self.past.reduction).reduce(|all, one| all.and(&one))
    }

    /// What went through the SLC caches of all drives of the place.
    pub(super) fn slc_cache_counters(&self) -> Option<SlcCacheCounters> {
        let present = self.drive.as_ref().and_then(SimulatedSsd::slc_cache_counters);
        present.into_iter().chain(self.past.slc_cache).reduce(|all, one| all.and(&one))
    }

    /// Bytes in the drive's buffers, or lost with those of the drives before it.
    pub(super) fn buffered_bytes(&self) -> u64 {
        self.past.buffered_bytes + self.drive.as_ref().map_or(0, SimulatedSsd::buffered_bytes)
    }

    /// The drive is gone; what it did is kept.
    fn fail(&mut self) {
        let past = Past {
            counters: self.counters(),
            statistics: self.statistics(),
            reduction: self.reduction_counters(),
            slc_cache: self.slc_cache_counters(),
            buffered_bytes: self.buffered_bytes(),
        };
        (self.drive, self.state, self.busy, self.past) = (None, State::Failed, 0, past);
    }
}

/// All places of the array.
pub(super) struct Members {
    places: Vec<Member>,
    /// Completions that arrived while a drive's clock was advanced to the present.
    early: VecDeque<(usize, Completion)>,
}

impl Members {
    /// Drives whose clocks are brought to the latest of them; gives that time too.
    pub(super) fn new(drives: Vec<SimulatedSsd>) -> Result<(Self, u64), BlockError> {
        let now_ns = drives.iter().map(|drive| drive.now().0).max().unwrap_or(0);
        let mut places = Vec::new();
        for mut drive in drives {
            drive.pause(Nanos(now_ns - drive.now().0))?;
            places.push(Member { drive: Some(drive), state: State::Whole, busy: 0, past: Past::default() });
        }
        Ok((Self { places, early: VecDeque::new() }, now_ns))
    }

    pub(super) fn get(&self, member: usize) -> &Member {
        &self.places[member]
    }

    pub(super) fn get_mut(&mut self, member: usize) -> &mut Member {
        &mut self.places[member]
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Member> {
        self.places.iter()
    }

    /// When the earliest event of any drive is, and of which drive.
    fn earliest(&self) -> Option<(u64, usize)> {
        let times = self.places.iter().enumerate();
        times.filter_map(|(index, member)| Some((member.next_time()?, index))).min()
    }

    /// When something happens next on a drive.
    pub(super) fn next_time(&self) -> Option<u64> {
        if let Some((_, done)) = self.early.front() {
            return Some(done.completed_at.0);
        }
        self.earliest().map(|(time_ns, _)| time_ns)
    }

    /// Advances the next drive, not beyond `limit_ns`; returns its completion, if any.
    ///
    /// `Err` if it has neither completions nor work left.
    pub(super) fn go_on(&mut self, limit_ns: u64) -> Result<Option<(usize, Completion)>, BlockError> {
        if let Some(early) = self.early.pop_front() {
            return Ok(Some(early));
        }
        let Some((time_ns, index)) = self.earliest() else { return Ok(None) };
        let others = self.places.iter().enumerate().filter(|&(other, _)| other != index);
        let others = others.filter_map(|(_, member)| member.next_time()).min();
        let limit_ns = limit_ns.min(others.unwrap_or(u64::MAX)).max(time_ns);
        let Some(drive) = &mut self.places[index].drive else { return Ok(None) };
        match drive.wait_within(Nanos(limit_ns)) {
            Some(done) => Ok(Some((index, done))),
            None if drive.next_event().is_none() && drive.outstanding() > 0 => Err(flashwise_ssd::host::LOST),
            None => Ok(None),
        }
    }

    /// Brings a drive's clock to the present.
    fn catch_up(&mut self, index: usize, now_ns: u64) -> Result<(), BlockError> {
        let Some(drive) = &mut self.places[index].drive else { return Ok(()) };
        if drive.now().0 < now_ns {
            while let Some(done) = drive.wait_until(Nanos(now_ns))? {
                self.early.push_back((index, done));
            }
        }
        Ok(())
    }

    /// Brings all clocks to the present.
    pub(super) fn catch_all_up(&mut self, now_ns: u64) -> Result<(), BlockError> {
        (0..self.places.len()).try_for_each(|index| self.catch_up(index, now_ns))
    }

    /// Hands a request to a drive that is there.
    pub(super) fn submit(&mut self, index: usize, request: Request, now_ns: u64) -> Result<(), BlockError> {
        self.catch_up(index, now_ns)?;
        let member = &mut self.places[index];
        let Some(drive) = &mut member.drive else {
            return Err(BlockError::Protocol("a failed drive received a request"));
        };
        drive.submit(request)?;
        member.busy += 1;
        Ok(())
    }

    /// A drive is gone, with all that it has not completed.
    pub(super) fn fail(&mut self, index: usize) {
        self.places[index].fail();
        self.early.retain(|&(of, _)| of != index);
    }

    /// Puts a new drive in the place of one that has failed.
    pub(super) fn replace(
        &mut self,
        index: usize,
        mut drive: SimulatedSsd,
        epoch: u64,
        now_ns: u64,
    ) -> Result<(), BlockError> {
        drive.pause(Nanos(now_ns).since(drive.now()))?;
        let state = State::Rebuilding(Rebuilt { epoch, next_ns: now_ns, ..Rebuilt::default() });
        let member = &mut self.places[index];
        (member.drive, member.state, member.busy) = (Some(drive), state, 0);
        Ok(())
    }

    /// What all drives did, those too that have failed.
    pub(super) fn flash_counters(&self) -> FlashCounters {
        let each = self.places.iter().filter_map(|member| member.counters().flash);
        each.fold(FlashCounters::default(), |all, one| all.and(&one))
    }
}
