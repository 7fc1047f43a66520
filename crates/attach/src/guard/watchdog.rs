//! A separate process that disconnects the drive if the drive's own process makes no progress.
//!
//! ```text
//!   server's thread ── a heartbeat: how long until the next, ms, 4 bytes ──▶ a pipe ─▶ the watchdog
//!   the next one is late, or the pipe ends ─▶ "1" into the connection's abort file: all requests get EIO
//! ```
//!
//! The server's thread sends a heartbeat from its poll loop, four per second, unless one of the threads that receive
//! requests from the kernel has been busy with one for half the timeout: such a thread waits for memory
//! ([`BusyThreads`]). The watchdog is the same program, started again, because a fork of a process with threads may not
//! allocate; it has only the pipe and the `abort` file, locks its memory, and does not receive Ctrl-C.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::poll::poll;

/// How often a sign is given.
pub(crate) const HEARTBEAT: Duration = Duration::from_millis(250);
/// How long a step may take that is known to take long, such as a power cut of a large drive.
pub(crate) const LONG_STEP: Duration = Duration::from_secs(120);

/// A watchdog, seen from the drive.
#[derive(Debug)]
pub(crate) struct Watchdog {
    /// Written to without waiting.
    heartbeats: OwnedFd,
    process: Child,
    timeout: Duration,
    last: Instant,
    is_gone: bool,
}

impl Watchdog {
    /// Starts one. `command` runs [`watch`] on its standard input and output.
    ///
    /// # Errors
    /// Where it cannot be started.
    pub(crate) fn start(mut command: Command, abort: File, timeout: Duration) -> io::Result<Self> {
        use std::os::unix::process::CommandExt;
        let (heard, heartbeats) = pipe_with(PipeFlags::CLOEXEC)?;
        // Only the drive's end is non-blocking; each end has its own flag.
        rustix::fs::fcntl_setfl(&heartbeats, rustix::fs::OFlags::NONBLOCK)?;
        let process = command.stdin(heard).stdout(abort).process_group(0).spawn()?;
        let mut watchdog = Self { heartbeats, process, timeout, last: Instant::now(), is_gone: false };
        watchdog.send_heartbeat(timeout);
        Ok(watchdog)
    }

    /// One turn of the server; `busy` are the threads that receive requests. `false` if the watchdog has just been
    /// found to have ended.
    pub(crate) fn beat(&mut self, busy: &BusyThreads) -> bool {
        let is_due = self.last.elapsed() >= HEARTBEAT && busy.longest() < self.timeout / 2;
        !is_due || self.send_heartbeat(self.timeout)
    }

    /// Before a step that may take longer, and after it.
    pub(crate) fn allow_long_step(&mut self, long: bool) {
        self.send_heartbeat(if long { LONG_STEP.max(self.timeout) } else { self.timeout });
    }

    fn send_heartbeat(&mut self, until_next: Duration) -> bool {
        self.last = Instant::now();
        let sign = u32::try_from(until_next.as_millis()).unwrap_or(u32::MAX).to_ne_bytes();
        // A pipe that is full is read later; the sign is not missed in it.
        let is_gone = matches!(rustix::io::write(&self.heartbeats, &sign), Err(rustix::io::Errno::PIPE));
        !is_gone || std::mem::replace(&mut self.is_gone, true)
    }
}

impl Drop for Watchdog {
    /// Ends it: nothing is mounted any more, or the mount is to be cut off.
    fn drop(&mut self) {
        if let Ok((_, nobody)) = pipe_with(PipeFlags::CLOEXEC) {
            self.heartbeats = nobody;
        }
        let end = Instant::now() + Duration::from_secs(1);
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// How long threads have been busy with their current request. Marking costs two writes to memory of their own.
#[derive(Debug)]
pub(crate) struct BusyThreads {
    began: Instant,
    /// Since when each thread is busy, µs after `began` plus one; 0 if it is not.
    since: [AtomicU64; 8],
}

impl BusyThreads {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), since: Default::default() }
    }

    /// Does something, seen to be busy with it.
    pub(crate) fn with<T>(&self, work: impl FnOnce() -> T) -> T {
        let now = 1 + self.passed();
        let free = |slot: &&AtomicU64| slot.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        let slot = self.since.iter().find(free);
        let done = work();
        slot.inspect(|slot| slot.store(0, Ordering::Relaxed));
        done
    }

    /// For how long the one has been that has been longest.
    pub(crate) fn longest(&self) -> Duration {
        let since = self.since.iter().map(|since| since.load(Ordering::Relaxed)).filter(|&since| since > 0).min();
        since.map_or(Duration::ZERO, |since| Duration::from_micros((1 + self.passed()).saturating_sub(since)))
    }

    fn passed(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX - 1)
    }
}

/// Why a watchdog ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchdogEnd {
    /// The drive's process has ended, cleanly or not.
    Gone,
    /// It showed no sign of life in time.
    Silent,
}

/// The watchdog process: reads heartbeats, and writes to `abort` when they stop.
///
/// # Errors
/// When `abort` cannot be written to, except because the connection has ended already.
pub fn watch(heartbeats: impl AsFd, abort: impl AsFd) -> io::Result<WatchdogEnd> {
    // It must neither wait for memory nor be killed first. If that is not allowed, it continues without.
    let _ = super::memory::lock();
    let _ = super::memory::spare_from_killing();
    let end = listen(&heartbeats);
    match rustix::io::write(&abort, b"1") {
        Ok(_) | Err(rustix::io::Errno::NODEV | rustix::io::Errno::NOTCONN | rustix::io::Errno::NOENT) => Ok(end),
        Err(error) => Err(error.into()),
    }
}

/// Reads heartbeats until they stop.
fn listen(heartbeats: &impl AsFd) -> WatchdogEnd {
    let mut due: Option<Instant> = None;
    loop {
        let rest = due.map(|due| due.saturating_duration_since(Instant::now()));
        match poll(&mut [PollFd::new(heartbeats, PollFlags::IN)], rest) {
            Ok(0) if due.is_some_and(|due| due <= Instant::now()) => return WatchdogEnd::Silent,
            // A signal.
            Ok(0) => continue,
            Ok(_) => {}
            Err(_) => return WatchdogEnd::Gone,
        }
        // Signs are written whole; of several the last one counts.
        let mut bytes = [0; 4 * 64];
        match rustix::io::read(heartbeats, &mut bytes) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(0) | Err(_) => return WatchdogEnd::Gone,
            Ok(count) => {
                let last = bytes[..count].as_chunks().0.last();
                let until_next = last.map_or(0, |last| u32::from_ne_bytes(*last));
                due = Some(Instant::now() + Duration::from_millis(until_next.into()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched() -> (OwnedFd, OwnedFd, std::thread::JoinHandle<WatchdogEnd>) {
        let (heard, heartbeats) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let (aborted, abort) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        (
            heartbeats,
            aborted,
            std::thread::spawn(move || {
                let end = listen(&heard);
                rustix::io::write(&abort, b"1").unwrap();
                end
            }),
        )
    }

    fn sign(heartbeats: &OwnedFd, milliseconds: u32) {
        rustix::io::write(heartbeats, &milliseconds.to_ne_bytes()).unwrap();
    }

    #[test]
    fn it_waits_as_long_as_the_last_sign_said_and_no_longer() {
        let (heartbeats, _aborted, watching) = watched();
        let began = Instant::now();
        for milliseconds in [60_000, 100, 400] {
            sign(&heartbeats, milliseconds);
        }
        assert_eq!(watching.join().unwrap(), WatchdogEnd::Silent);
        let waited = began.elapsed();
        assert!(waited >= Duration::from_millis(400) && waited < Duration::from_secs(30), "{waited:?}");
    }

    #[test]
    fn it_hears_at_once_that_the_drive_is_gone() {
        let (heartbeats, aborted, watching) = watched();
        sign(&heartbeats, 60_000);
        drop(heartbeats);
        assert_eq!(watching.join().unwrap(), WatchdogEnd::Gone);
        assert_eq!(rustix::io::read(&aborted, &mut [0; 8]).unwrap(), 1);
    }

    #[test]
    fn the_thread_that_has_been_busy_longest_counts() {
        let busy = BusyThreads::new();
        assert_eq!(busy.longest(), Duration::ZERO);
        busy.with(|| {
            std::thread::sleep(Duration::from_millis(30));
            busy.with(|| assert!(busy.longest() >= Duration::from_millis(30)));
        });
        assert_eq!(busy.longest(), Duration::ZERO);
    }
}
