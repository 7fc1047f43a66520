//! Rule 8: dirty pages are written back k_w at a time, as many as the drive serves concurrently.
//!
//! A run is a series of database writes with no flush or read between: no write in it had to wait for any other. The
//! n-th write of a run could have been submitted together with the n − 1 before it, up to k_w of them; it violates the
//! rule if fewer are in flight. Source of k_w and of write-back in such batches: Papon and Athanassoulis, DaMoN 2021
//! (the model) and ICDE 2023 (ACE).

use flashwise_block::Operation;
use flashwise_profile::DeviceProfile;

use super::{Check, SET_ALREADY, known_concurrency};
use crate::fix::deepen;
use crate::play::Step;
use crate::request::{Facts, ObservedRequest};
use crate::system::{DatabaseSystem, Shown, Technique};
use crate::tally::Tally;

struct WriteBackInParallel {
    concurrency: u32,
    /// Writes of the run so far.
    run: u32,
}

pub(super) fn prepare(profile: &DeviceProfile) -> Result<Box<dyn Check>, String> {
    let concurrency = known_concurrency(&profile.parameters.write_concurrency_4k, "k_w")?;
    Ok(Box::new(WriteBackInParallel { concurrency, run: 0 }))
}

impl Check for WriteBackInParallel {
    fn observe(&mut self, seen: &ObservedRequest, tally: &mut Tally) {
        let is_durable = seen.record.operation == Operation::Flush || seen.record.fua;
        if is_durable || seen.record.operation == Operation::Read {
            self.run = 0;
        }
        if !seen.is_write() || !seen.is_of_database() || seen.record.fua {
            return;
        }
        self.run = self.run.saturating_add(1);
        tally.speaks();
        if seen.in_flight.is_some_and(|count| count < self.run.min(self.concurrency)) {
            tally.breaks(seen);
        }
    }

    fn hidden(&self, facts: &Facts) -> Option<String> {
        facts.hides_queues()
    }

    fn statement(&self) -> String {
        format!("dirty pages should be written back {} at a time (k_w)", self.concurrency)
    }

    fn remedy(&self, shown: &Shown) -> String {
        if shown.is_on(Technique::ConcurrentWriteBack) {
            return SET_ALREADY.to_owned();
        }
        let count = self.concurrency;
        let back = format!("the technique concurrent-write-back={count} of flashwise's VFS");
        let settings = shown.settings([
            (DatabaseSystem::Sqlite, &back),
            (DatabaseSystem::Postgres, "checkpoint_flush_after and io_method=io_uring"),
            (DatabaseSystem::MariaDb, "innodb_use_native_aio=ON, innodb_flush_neighbors and innodb_write_io_threads"),
        ]);
        format!("write back {count} pages at once ({settings})")
    }

    fn can_change(&self, shown: &Shown) -> bool {
        !shown.is_on(Technique::ConcurrentWriteBack)
    }

    fn fix(&self, steps: &[Step]) -> Vec<Step> {
        deepen(steps, self.concurrency)
    }
}
