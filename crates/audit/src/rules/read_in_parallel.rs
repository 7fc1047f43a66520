//! Rule 9: reads are submitted k_r at a time, as many as the drive serves concurrently.
//!
//! A run is reads with no write or flush between; the n-th of them violates the rule if fewer than n, and fewer than
//! k_r, are in flight. Not every such read could have been submitted earlier: the second level of a tree is not known
//! before the first is read. So the cost counts only **foreseeable** reads: they start where one of the last reads
//! ended (a scan, which read-ahead serves), or are as far from the last one as that was from the one before it (a
//! stride). For all others the remedy is more connections, whose gain cannot be computed from a trace.
//!
//! Source of k_r: Papon and Athanassoulis, DaMoN 2021.

use std::collections::VecDeque;

use flashwise_block::{Operation, grouped};
use flashwise_profile::DeviceProfile;

use super::{Check, known_concurrency};
use crate::fix::deepen;
use crate::play::Step;
use crate::request::{Facts, ObservedRequest, Space};
use crate::system::{DatabaseSystem, Shown, Technique};
use crate::tally::Tally;

/// Pages that flashwise's VFS reads ahead, at most.
const VFS_AHEAD_MAX: u32 = 64;
/// Scans that are followed at once, as many as common drives and kernels follow.
const SCANS: usize = 16;

struct ReadInParallel {
    concurrency: u32,
    run: u32,
    foreseen: Foresight,
    foreseeable: u64,
}

pub(super) fn prepare(profile: &DeviceProfile) -> Result<Box<dyn Check>, String> {
    let concurrency = known_concurrency(&profile.parameters.read_concurrency_4k, "k_r")?;
    Ok(Box::new(ReadInParallel { concurrency, run: 0, foreseen: Foresight::default(), foreseeable: 0 }))
}

/// What reads are to be expected.
#[derive(Default)]
struct Foresight {
    /// Where the last reads ended.
    ends: VecDeque<(Space, u64)>,
    /// The last read's start, and its distance from the one before.
    last: Option<(Space, u64, i128)>,
}

impl Foresight {
    /// Whether the read was to be expected; remembers it.
    fn see(&mut self, space: Space, offset: u64, end: u64) -> bool {
        let scan = self.ends.iter().position(|&at| at == (space, offset));
        let distance =
            self.last.filter(|last| last.0 == space).map_or(0, |last| i128::from(offset) - i128::from(last.1));
        let is_stride = distance != 0 && self.last.is_some_and(|last| last.2 == distance);
        match scan {
            Some(place) => _ = self.ends.remove(place),
            None if self.ends.len() == SCANS => _ = self.ends.pop_front(),
            None => {}
        }
        self.ends.push_back((space, end));
        self.last = Some((space, offset, distance));
        scan.is_some() || is_stride
    }
}

impl Check for ReadInParallel {
    fn observe(&mut self, seen: &ObservedRequest, tally: &mut Tally) {
        if seen.record.operation != Operation::Read {
            self.run = 0;
        }
        if !seen.is_database_read() {
            return;
        }
        self.run = self.run.saturating_add(1);
        tally.speaks();
        let is_foreseen = self.foreseen.see(seen.space(), seen.record.offset.0, seen.end());
        if seen.in_flight.is_some_and(|count| count < self.run.min(self.concurrency)) {
            tally.breaks(seen);
            self.foreseeable += u64::from(is_foreseen);
        }
    }

    fn hidden(&self, facts: &Facts) -> Option<String> {
        facts.hides_queues()
    }

    fn statement(&self) -> String {
        format!("reads should be submitted {} at a time (k_r)", self.concurrency)
    }

    fn remedy(&self, shown: &Shown) -> String {
        let others = "from more connections or threads at once";
        match self.foreseeable {
            0 => format!("submit reads {others}; none of these is sequential, so read-ahead does not help"),
            _ if shown.is_on(Technique::ConcurrentReadAhead) => {
                format!("submit reads {others}; scans are read ahead already")
            }
            count => {
                let ahead = format!(
                    "the technique concurrent-read-ahead={} of flashwise's VFS",
                    self.concurrency.min(VFS_AHEAD_MAX)
                );
                let settings = shown.settings([
                    (DatabaseSystem::Sqlite, &ahead),
                    (DatabaseSystem::Postgres, "effective_io_concurrency and io_combine_limit"),
                    (DatabaseSystem::MariaDb, "innodb_read_ahead_threshold"),
                ]);
                let count = grouped(count);
                format!(
                    "use read-ahead for scans, to which {count} of these belong ({settings}); submit the others {others}"
                )
            }
        }
    }

    fn fix(&self, steps: &[Step]) -> Vec<Step> {
        let mut foreseen = Foresight::default();
        let marked = steps.iter().map(|step| {
            let reads = step.operation == Operation::Read && step.length > 0 && step.is_of_database();
            let is_foreseen = reads && foreseen.see(step.space, step.offset, step.end());
            Step { is_broken: step.is_broken && is_foreseen, ..*step }
        });
        deepen(&marked.collect::<Vec<_>>(), self.concurrency)
    }
}
