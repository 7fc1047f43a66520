//! How many pages may be dirty, and how writers are held back.
//!
//! Linux 6.18, `mm/page-writeback.c`:
//! - `domain_dirty_limits`: above `dirty_background_ratio` of the memory the flusher works, `dirty_ratio` is never to
//!   be exceeded;
//! - `balance_dirty_pages`: below the middle of the two nobody is held back; above it a writer pauses after each write
//!   so that pages become dirty at the rate at which the drive takes them, times `pos_ratio_polynom`, which is 1 in the
//!   middle between that and the limit, 2 at its beginning and 0 at the limit;
//! - `wb_update_bandwidth`: the drive's rate is measured over 200 ms and smoothed; it starts with 100 MiB/s
//!   (`INIT_BW`);
//! - a pause is at most 200 ms (`MAX_PAUSE`); at the limit a writer waits until pages have been written.
//!
//! Not here: the per-device share of the limit (one drive has it all), the estimate of each task's rate.

use flashwise_block::{BlockDevice, Nanos};

use crate::error::Result;
use crate::fs::fs_writeback::Mode;
use crate::kernel::Kernel;

/// `MAX_PAUSE`
const MAX_PAUSE: Nanos = Nanos::millis(200);
/// `BANDWIDTH_INTERVAL`
const INTERVAL: Nanos = Nanos::millis(200);
/// `INIT_BW`, pages a second.
const INITIAL_RATE: f64 = 25_600.0;

/// The rate at which the drive takes pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bandwidth {
    pages_per_second: f64,
    since: Nanos,
    written: u64,
}

impl Default for Bandwidth {
    fn default() -> Self {
        Self { pages_per_second: INITIAL_RATE, since: Nanos(0), written: 0 }
    }
}

impl Bandwidth {
    /// `written` pages have been written in all until `now`.
    fn update(&mut self, written: u64, now: Nanos) {
        let elapsed = now.since(self.since);
        if elapsed < INTERVAL {
            return;
        }
        // A rate is measured only where something was written all the time.
        if written > self.written && elapsed.0 < 10 * INTERVAL.0 {
            let rate = (written - self.written) as f64 / elapsed.as_secs_f64();
            self.pages_per_second += (rate - self.pages_per_second) / 8.0;
        }
        (self.since, self.written) = (now, written);
    }
}

/// `pos_ratio_polynom`: 1 + ((setpoint - dirty) / (limit - setpoint))³
fn position_ratio(dirty: f64, setpoint: f64, limit: f64) -> f64 {
    let x = (setpoint - dirty) / (limit - setpoint).max(1.0);
    (1.0 + x * x * x).clamp(0.0, 2.0)
}

impl<D: BlockDevice> Kernel<D> {
    /// Background threshold and limit, pages.
    fn dirty_limits(&self) -> (u64, u64) {
        let memory = self.cache.capacity();
        let limit = (memory * u64::from(self.config.dirty_ratio) / 100).max(1);
        let background = memory * u64::from(self.config.dirty_background_ratio) / 100;
        (if background >= limit { limit / 2 } else { background }, limit)
    }

    pub(crate) fn over_background_threshold(&self) -> bool {
        self.cache.dirty() > 0 && self.cache.dirty() > self.dirty_limits().0
    }

    /// After a write that made `pages` dirty.
    pub(crate) fn balance_dirty_pages(&mut self, pages: u64) -> Result<()> {
        let (background, limit) = self.dirty_limits();
        let free_run = (background + limit) / 2;
        let busy = |this: &Self| this.cache.dirty() + this.cache.under_writeback();
        if busy(self) <= free_run {
            return Ok(());
        }
        let began = self.now();
        self.flusher_tick()?;
        let written = self.counters.pages_written - self.cache.under_writeback();
        self.flusher.bandwidth.update(written, began);
        while busy(self) > limit {
            if self.cache.under_writeback() == 0 {
                let Some(ino) = self.flusher.oldest() else { break };
                let (_, wrote) = self.write_pages(ino, 0, u64::MAX, 1024, Mode::Wait)?;
                if wrote == 0 {
                    break;
                }
            }
            if !self.wait_for_any()? {
                break;
            }
            self.flusher_tick()?;
        }
        let setpoint = (free_run + limit) as f64 / 2.0;
        let ratio = position_ratio(busy(self) as f64, setpoint, limit as f64);
        let rate = (self.flusher.bandwidth.pages_per_second * ratio).max(1.0);
        let pause = Nanos((pages as f64 / rate * 1e9) as u64).min(MAX_PAUSE);
        let already = self.now().since(began);
        // Pauses shorter than 10 ms are saved up in Linux; the sum is the same.
        if pause > already {
            self.queue.pause(pause.since(already))?;
            self.background()?;
        }
        self.counters.throttled.0 += self.now().since(began).0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_slow_down_towards_the_limit() {
        assert_eq!(position_ratio(1500.0, 1500.0, 2000.0), 1.0);
        assert_eq!(position_ratio(1000.0, 1500.0, 2000.0), 2.0);
        assert_eq!(position_ratio(2000.0, 1500.0, 2000.0), 0.0);
    }

    #[test]
    fn the_rate_follows_what_the_drive_takes() {
        let mut bandwidth = Bandwidth::default();
        for step in 1..100 {
            bandwidth.update(step * 1000, Nanos::millis(200 * step));
        }
        assert!((bandwidth.pages_per_second - 5000.0).abs() < 10.0);
    }
}
