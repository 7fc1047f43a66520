//! How busy a server's own pages keep its drive, from what it has counted.
//!
//! ```text
//!   busy = reads a second ÷ the most that the drive reads + writes a second ÷ the most that it writes
//! ```
//!
//! Reads are blocks that were not in the server's buffers (`pg_stat_database`), writes those of backends, background
//! writer and checkpoints, and the log, all of 8 KiB; the drive's rates are those of its profile's deepest queues. All
//! are means since the statistics were reset, nights included. Through the kernel's page cache fewer of them reach the
//! drive, so there it is the most that it can have been.

use flashwise_block::Operation;
use flashwise_profile::DeviceProfile;

use super::server::Activity;
use super::settings::PAGE;
use crate::servers::figures::saturated_iops;

/// What a server asks of its drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Utilisation {
    /// Blocks that were read a second.
    pub(super) reads_per_s: f64,
    /// Blocks that were written a second, with the log.
    pub(super) writes_per_s: f64,
    /// Share of what the drive serves, 0 to 1; more where not all of it reached the drive.
    pub(super) busy: f64,
}

impl Utilisation {
    /// `None` where the server has not counted all of it, or the profile has no rates of 8 KiB.
    pub(super) fn of(profile: &DeviceProfile, activity: &Activity) -> Option<Self> {
        let [background_writer, backends] = activity.seconds;
        let per_s = |pages: u64, seconds: Option<f64>| Some(pages as f64 / seconds.filter(|&seconds| seconds > 0.0)?);
        let reads_per_s = activity.reads_per_s?;
        let writes_per_s = per_s(activity.by_background_writer, background_writer)?
            + per_s(activity.by_backends, backends)?
            + per_s(activity.checkpoints.pages, activity.checkpoints.seconds)?
            + activity.log_per_s? / PAGE as f64;
        let most = |operation| Some(saturated_iops(profile, operation, PAGE)?.value).filter(|&most| most > 0.0);
        let busy = reads_per_s / most(Operation::Read)? + writes_per_s / most(Operation::Write)?;
        Some(Self { reads_per_s, writes_per_s, busy })
    }
}

#[cfg(test)]
mod tests {
    use super::super::server::CheckpointCounters;
    use super::*;

    fn activity() -> Activity {
        Activity {
            by_background_writer: 1_000,
            by_backends: 3_000,
            seconds: [Some(100.0), Some(100.0)],
            checkpoints: CheckpointCounters { pages: 500, seconds: Some(50.0), ..CheckpointCounters::default() },
            log_per_s: Some(819_200.0),
            reads_per_s: Some(200.0),
            ..Activity::default()
        }
    }

    #[test]
    fn all_reads_and_writes_count_by_what_the_drive_serves_of_each() {
        let profile = crate::servers::tests::profile();
        let most = |operation| saturated_iops(&profile, operation, PAGE).unwrap().value;
        let found = Utilisation::of(&profile, &activity()).unwrap();
        assert_eq!((found.reads_per_s, found.writes_per_s), (200.0, 10.0 + 30.0 + 10.0 + 100.0));
        let expected = 200.0 / most(Operation::Read) + 150.0 / most(Operation::Write);
        assert!((found.busy - expected).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn what_was_not_counted_or_not_learned_is_unknown() {
        let mut profile = crate::servers::tests::profile();
        for unknown in [
            Activity { reads_per_s: None, ..activity() },
            Activity { log_per_s: None, ..activity() },
            Activity { seconds: [Some(0.0), Some(100.0)], ..activity() },
        ] {
            assert_eq!(Utilisation::of(&profile, &unknown), None, "{unknown:?}");
        }
        profile.curves.throughput.retain(|curve| curve.operation == Operation::Read);
        assert_eq!(Utilisation::of(&profile, &activity()), None);
    }
}
