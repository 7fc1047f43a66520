//! `poll(2)` with the time-outs of the standard library.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, Timespec};
use rustix::io::Errno;

/// Waits until one of the descriptors is ready, at most for a while; how many are. A signal ends it early.
pub(crate) fn poll(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<usize> {
    let timeout = timeout.map(|timeout| Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    match rustix::event::poll(fds, timeout.as_ref()) {
        Err(Errno::INTR) => Ok(0),
        done => Ok(done?),
    }
}
