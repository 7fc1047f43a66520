//! How long programs on a mounted drive waited, by the kernel's own account of the loop device.
//!
//! ```text
//!   program ─▶ /dev/loopN: queue ─▶ loop driver's thread ─▶ the file: queue ─▶ server ─▶ drive
//!              ├──────────────── the kernel's account of a request ─────────────────────┤ and back
//!                                                                    ├─ the server's ───┤
//! ```
//!
//! The server sees a request when it reads it from the kernel. Before that it may wait for a thread of the loop driver:
//! where those got no processor, fio measured 3.1 ms for reads that the drive did in 0.4 ms, and the server saw
//! nothing.
//!
//! Source: `Documentation/block/stat.rst` of Linux: counts and times, in ms, of reads, writes, discards and flushes,
//! from a request's arrival to its end. The kernel adds up nanoseconds: the sums are exact to 1 ms.

use serde::Serialize;

use crate::pace::rounded_up;

/// Share of the drive's mean time by which the mean of what programs waited may be longer. fio through `--mount`, 4 KiB
/// 1 to 32 requests in flight, on two processors that others kept busy: reads with a time scale of 10 took 6 to 16 %
/// longer, writes at 14,000 a second 36 to 44 %, and at real time, which that machine could not keep, both 150 % and
/// more.
const TOLERATED: f64 = 0.25;
/// Requests below which nothing is concluded: a few of them may have met whatever else the machine did.
const FEWEST: u64 = 100;
/// Share of requests that may be missing on either side: merged, split, or from another program than the loop driver.
const UNMATCHED: f64 = 0.2;

/// Requests of the kernel's at some moment: how many, and their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeSum {
    pub(crate) requests: u64,
    pub(crate) ns: u64,
}

impl TimeSum {
    pub(crate) fn add(&mut self, ns: u64) {
        self.requests += 1;
        self.ns = self.ns.saturating_add(ns);
    }

    fn since(self, before: Self) -> Self {
        Self { requests: self.requests.saturating_sub(before.requests), ns: self.ns.saturating_sub(before.ns) }
    }

    /// The sums of a device's `stat`; `None` if the kernel has other columns than are known.
    pub(crate) fn of_stat(stat: &str) -> Option<Self> {
        const NS_OF_MS: u64 = 1_000_000;
        let columns: Vec<u64> = stat.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        // Reads, writes, and since Linux 4.18 and 5.5 discards and flushes.
        let [reads, writes] = [(0, 3), (4, 7)].map(|(count, time)| Some((*columns.get(count)?, *columns.get(time)?)));
        let others = [(11, 14), (15, 16)].map(|(count, time)| Some((*columns.get(count)?, *columns.get(time)?)));
        let all = [reads?, writes?].into_iter().chain(others.into_iter().flatten());
        Some(all.fold(Self::default(), |sum, (requests, ms)| Self {
            requests: sum.requests.saturating_add(requests),
            ns: sum.ns.saturating_add(ms.saturating_mul(NS_OF_MS)),
        }))
    }
}

/// How long programs on a mounted drive waited, and how long the drive took for them, on the machine's clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct KernelTimes {
    /// Requests of the block device.
    pub requests: u64,
    /// From the arrival in the kernel to the end of a request, mean, ns.
    pub mean_ns: u64,
    /// What the drive took of that, mean, ns.
    pub drive_mean_ns: u64,
    /// Programs waited for more than 25 % longer than the drive took, on average: they measured the machine.
    pub spoils_the_result: bool,
    /// The time scale with which that would not be so, for this load on this machine; `null` where this one is enough.
    pub enough_time_scale: Option<f64>,
}

/// Both accounts when the file system was mounted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelBaseline {
    pub(crate) device: TimeSum,
    pub(crate) drive: TimeSum,
}

impl KernelBaseline {
    /// What has happened since; `None` where the two accounts are not about the same requests.
    pub(crate) fn times(&self, device: TimeSum, drive: TimeSum, scale: f64) -> Option<KernelTimes> {
        let (device, drive) = (device.since(self.device), drive.since(self.drive));
        let matched = device.requests.abs_diff(drive.requests) as f64 <= UNMATCHED * device.requests as f64;
        if device.requests == 0 || !matched {
            return None;
        }
        let mean_ns = device.ns / device.requests;
        let drive_mean_ns = (drive.ns as f64 * scale / drive.requests.max(1) as f64) as u64;
        let excess = mean_ns.saturating_sub(drive_mean_ns) as f64 / drive_mean_ns.max(1) as f64;
        let spoils_the_result = device.requests >= FEWEST && excess > TOLERATED;
        let enough = rounded_up(scale * excess / TOLERATED);
        Some(KernelTimes {
            requests: device.requests,
            mean_ns,
            drive_mean_ns,
            spoils_the_result,
            enough_time_scale: (spoils_the_result && enough > scale).then_some(enough),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_of_requests_are_summed() {
        let stat = "  100 5 800 40   200 0 1600 60  0 90 100   10 0 80 7   3 9\n";
        assert_eq!(TimeSum::of_stat(stat), Some(TimeSum { requests: 313, ns: 116_000_000 }));
        let old = "100 5 800 40 200 0 1600 60 0 90 100";
        assert_eq!(TimeSum::of_stat(old), Some(TimeSum { requests: 300, ns: 100_000_000 }));
        assert_eq!(TimeSum::of_stat("100 5 800"), None);
        assert_eq!(TimeSum::of_stat("a b c d e f g h"), None);
    }

    fn times(device_us: u64, drive_us: u64, requests: u64, scale: f64) -> Option<KernelTimes> {
        let before = TimeSum { requests: 50, ns: 5_000_000_000 };
        let sum = |us: u64| TimeSum { requests: 50 + requests, ns: before.ns + requests * us * 1_000 };
        KernelBaseline { device: before, drive: before }.times(sum(device_us), sum(drive_us), scale)
    }

    #[test]
    fn programs_that_waited_for_the_machine_are_warned_with_what_helps() {
        let starved = times(3_100, 400, 1_000, 1.0).unwrap();
        assert_eq!((starved.mean_ns, starved.drive_mean_ns, starved.spoils_the_result), (3_100_000, 400_000, true));
        assert_eq!(starved.enough_time_scale, Some(50.0));
        for fine in [times(430, 400, 1_000, 1.0), times(4_300, 400, 1_000, 10.0), times(3_100, 400, 50, 1.0)] {
            let fine = fine.unwrap();
            assert!(!fine.spoils_the_result && fine.enough_time_scale.is_none(), "{fine:?}");
        }
        assert_eq!(times(400, 400, 0, 1.0), None);
    }

    #[test]
    fn accounts_of_different_requests_are_not_compared() {
        let zero = TimeSum::default();
        let baseline = KernelBaseline { device: zero, drive: zero };
        let sum = |requests| TimeSum { requests, ns: requests * 1_000_000 };
        assert_eq!(baseline.times(sum(1_000), sum(3_000), 1.0), None);
        assert!(baseline.times(sum(1_000), sum(1_100), 1.0).is_some());
    }
}
