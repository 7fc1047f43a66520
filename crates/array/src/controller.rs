//! What the controller itself costs: its processor, its way to the host, and a latency.
//!
//! ```text
//!   a command ──▶ processor, one after the other ──▶ latency, many at once ──▶ a write's data over the bus ──▶ members
//!   members ──▶ a read's data over the bus ──▶ completion
//! ```
//!
//! A limit that is 0 costs nothing; without any, a request reaches the members in the instant in which it comes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::config::ArrayControllerConfig;

/// What the array itself will do at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// The processor has handled a command of the host's.
    Taken(u64),
    /// A command reaches the members, or the cache.
    Begin(u64),
    /// A request is completed.
    Complete(u64),
    /// A place may continue with being rebuilt.
    Rebuild(usize),
    /// A drive fails.
    Fail(usize),
}

/// What the controller's resources have done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ControllerCounters {
    /// Time of its processor, ns, and commands that found it busy.
    pub(super) processor_ns: u64,
    pub(super) processor_waits: u64,
    /// Time of its way to the host, ns, and transfers that found it busy.
    pub(super) bus_ns: u64,
    pub(super) bus_waits: u64,
}

/// The controller's resources, each serving one after the other.
pub(super) struct Controller {
    config: ArrayControllerConfig,
    processor_free_ns: u64,
    bus_free_ns: u64,
    /// By time, then in the order in which they were set.
    timers: BinaryHeap<Reverse<(u64, u64, Timer)>>,
    sequence: u64,
    counters: ControllerCounters,
}

impl Controller {
    pub(super) fn new(config: ArrayControllerConfig) -> Self {
        Self {
            config,
            processor_free_ns: 0,
            bus_free_ns: 0,
            timers: BinaryHeap::new(),
            sequence: 0,
            counters: ControllerCounters::default(),
        }
    }

    pub(super) fn counters(&self) -> ControllerCounters {
        self.counters
    }

    /// When a command that comes now has been handled.
    pub(super) fn taken_ns(&mut self, now_ns: u64) -> u64 {
        let mut ready_ns = now_ns;
        if self.config.iops_max > 0 {
            let start_ns = now_ns.max(self.processor_free_ns);
            ready_ns = start_ns + 1_000_000_000_u64.div_ceil(self.config.iops_max);
            self.processor_free_ns = ready_ns;
            self.counters.processor_ns += ready_ns - start_ns;
            self.counters.processor_waits += u64::from(start_ns > now_ns);
        }
        ready_ns + self.config.command_latency_ns
    }

    /// When so many bytes that are ready now have crossed the bus to or from the host. To be asked when they are ready:
    /// the bus is given to those who ask, in the order in which they do.
    pub(super) fn moved_ns(&mut self, now_ns: u64, bytes: u64) -> u64 {
        if self.config.bandwidth_bytes_per_s == 0 || bytes == 0 {
            return now_ns;
        }
        let time_ns = u128::from(bytes) * 1_000_000_000 / u128::from(self.config.bandwidth_bytes_per_s);
        self.counters.bus_ns += time_ns as u64;
        self.counters.bus_waits += u64::from(self.bus_free_ns > now_ns);
        self.bus_free_ns = now_ns.max(self.bus_free_ns) + time_ns as u64;
        self.bus_free_ns
    }

    pub(super) fn set(&mut self, time_ns: u64, timer: Timer) {
        self.sequence += 1;
        self.timers.push(Reverse((time_ns, self.sequence, timer)));
    }

    pub(super) fn next_time(&self) -> Option<u64> {
        self.timers.peek().map(|Reverse((time_ns, _, _))| *time_ns)
    }

    pub(super) fn pop(&mut self) -> Option<(u64, Timer)> {
        self.timers.pop().map(|Reverse((time_ns, _, timer))| (time_ns, timer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_and_the_bus_serve_one_after_the_other_and_latency_does_not() {
        let config = ArrayControllerConfig {
            command_latency_ns: 5_000,
            iops_max: 100_000,
            bandwidth_bytes_per_s: 1_000_000_000,
            ..ArrayControllerConfig::default()
        };
        let mut controller = Controller::new(config);
        assert_eq!(controller.taken_ns(0), 15_000);
        assert_eq!(controller.taken_ns(0), 25_000);
        assert_eq!(controller.taken_ns(50_000), 65_000);
        assert_eq!(controller.moved_ns(36_500, 1_000), 37_500);
        assert_eq!(controller.moved_ns(36_500, 1_000), 38_500);
        let ControllerCounters { processor_ns, processor_waits, bus_ns, bus_waits } = controller.counters();
        assert_eq!((processor_ns, processor_waits), (30_000, 1));
        assert_eq!((bus_ns, bus_waits), (2_000, 1));
    }
}
