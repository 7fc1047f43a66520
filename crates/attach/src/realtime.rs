//! A thread that does not wait for other threads: it gets a CPU as soon as it wants one, if the system allows it.
//!
//! A completion is late by as long as its thread waits for a CPU, which is milliseconds on a machine with other work:
//! each thread has its time slice. With `SCHED_FIFO` there are no slices. But such a thread gives other threads no
//! slice either, and the kernel stops one that never waits for 50 ms of each second. So the thread becomes a normal one
//! when it has worked for [`LONGEST`] without waiting, until it has waited.
//!
//! This needs `CAP_SYS_NICE` or a limit for it (`RLIMIT_RTPRIO`); without, nothing changes.
//!
//! Source: `sched(7)`.

use std::time::{Duration, Instant};

use thread_priority::unix::{
    NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id, thread_schedule_policy,
};
use thread_priority::{ThreadPriority, ThreadPriorityValue};

/// The longest time that others are kept waiting.
const LONGEST: Duration = Duration::from_millis(20);
/// A thread that was away for that long has waited, rather than made a system call.
const AWAY: Duration = Duration::from_micros(50);
/// Above all normal threads, and below the kernel's own of that kind, which have 50.
const PRIORITY: u8 = 20;

const FIFO: ThreadSchedulePolicy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
const NORMAL: ThreadSchedulePolicy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);

/// Scheduling parameters of a thread.
#[derive(Debug)]
pub(crate) struct RealtimePriority {
    /// How the thread is set back, where it may be urgent at all.
    normal: Option<ThreadPriority>,
    is_realtime: bool,
    /// When it waited last.
    awake_since: Instant,
    seen: Instant,
}

impl RealtimePriority {
    /// Makes the calling thread urgent from now on. A thread with an unusual scheduling policy is not changed.
    pub(crate) fn of_this_thread(now: Instant) -> Self {
        let is_one_of_many = thread_schedule_policy().is_ok_and(|policy| policy == NORMAL);
        let normal = if is_one_of_many { niceness() } else { None };
        let mut this = Self { normal, is_realtime: false, awake_since: now, seen: now };
        normal.into_iter().for_each(|normal| this.set(true, normal));
        this
    }

    /// The thread that calls has waited, or worked, from a moment to another.
    pub(crate) fn waited(&mut self, from: Instant, to: Instant) {
        let Some(normal) = self.normal else { return };
        self.seen = to;
        let wants = match to.saturating_duration_since(from) >= AWAY {
            true => {
                self.awake_since = to;
                true
            }
            false => self.is_realtime && to.saturating_duration_since(self.awake_since) < LONGEST,
        };
        if wants != self.is_realtime {
            self.set(wants, normal);
        }
    }

    /// Called regularly by the thread; its work since the last call is unknown.
    pub(crate) fn called_again(&mut self, now: Instant) {
        self.waited(self.seen, now);
    }

    /// The thread that calls is one of many from now on, and so are those that it starts.
    pub(crate) fn give_up(&mut self) {
        if let Some(normal) = self.normal.take().filter(|_| self.is_realtime) {
            self.set(false, normal);
        }
    }

    fn set(&mut self, is_realtime: bool, normal: ThreadPriority) {
        let urgent = ThreadPriorityValue::try_from(PRIORITY).map_or(ThreadPriority::Min, ThreadPriority::Crossplatform);
        let (priority, policy) = if is_realtime { (urgent, FIFO) } else { (normal, NORMAL) };
        match set_thread_priority_and_policy(thread_native_id(), priority, policy) {
            Ok(()) => self.is_realtime = is_realtime,
            // It is not requested again.
            Err(_) => self.normal = None,
        }
    }
}

/// The niceness of this process, which is kept.
fn niceness() -> Option<ThreadPriority> {
    let nice = rustix::process::getpriority_process(None).ok()?;
    let all = (0..=99).filter_map(|value| ThreadPriorityValue::try_from(value).ok()).map(ThreadPriority::Crossplatform);
    all.into_iter().find(|priority| priority.to_posix(NORMAL).is_ok_and(|found| found == nice))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The system's error for this thread.
    fn is_fifo() -> bool {
        thread_schedule_policy().unwrap() == FIFO
    }

    #[test]
    fn a_thread_is_urgent_until_it_has_worked_for_long_and_again_once_it_has_waited() {
        let began = Instant::now();
        let at = |us| began + Duration::from_micros(us);
        let nice = rustix::process::getpriority_process(None).unwrap();
        let mut priority = RealtimePriority::of_this_thread(began);
        if !is_fifo() {
            assert!(priority.normal.is_none(), "it is not tried again");
            return eprintln!("SCHED_FIFO is not allowed here: not tested");
        }
        (0..400).for_each(|n| priority.called_again(at(49 * n)));
        assert!(is_fifo(), "19.6 ms without waiting");
        (400..600).for_each(|n| priority.called_again(at(49 * n)));
        assert!(!is_fifo(), "more than 20 ms");
        priority.waited(at(29_000), at(29_049));
        assert!(!is_fifo(), "it has not waited");
        priority.called_again(at(60_000));
        assert!(is_fifo(), "it has waited again");
        priority.give_up();
        assert!(!is_fifo() && rustix::process::getpriority_process(None).unwrap() == nice);
        priority.waited(at(60_000), at(90_000));
        assert!(!is_fifo(), "it has ended");
    }

    #[test]
    fn every_niceness_can_be_set_back() {
        let all = (0..=99).filter_map(|value| ThreadPriorityValue::try_from(value).ok());
        let mut found: Vec<i32> =
            all.filter_map(|value| ThreadPriority::Crossplatform(value).to_posix(NORMAL).ok()).collect();
        found.dedup();
        assert_eq!(found, (-20..=19).rev().collect::<Vec<_>>());
    }
}
