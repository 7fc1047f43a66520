//! How long the medium and its buses take.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::config::FlashConfig;

/// Array and transfer times, with their jitter.
pub(crate) struct Timing {
    read_ns: u64,
    program_ns: u64,
    erase_ns: u64,
    /// Time of 2¹⁰ bytes on the channel, in 2⁻²⁰ ns, so that no division is on the path of a command.
    byte_time: u64,
    /// Half-width of the jitter in 2⁻³² of the time.
    jitter: u64,
    random: Pcg64Mcg,
}

const BYTE_TIME_SHIFT: u32 = 24;

impl Timing {
    /// The times of a medium; `seed` drives the jitter alone.
    pub(crate) fn new(flash: &FlashConfig, seed: u64) -> Self {
        Self {
            read_ns: flash.read_ns,
            program_ns: flash.program_ns,
            erase_ns: flash.erase_ns,
            byte_time: byte_time(flash.channel_bytes_per_s),
            jitter: (flash.array_time_jitter * 2f64.powi(32)) as u64,
            random: Pcg64Mcg::seed_from_u64(seed),
        }
    }

    #[cfg(test)]
    pub(crate) fn exact(read_ns: u64, program_ns: u64, erase_ns: u64, bytes_per_s: u64) -> Self {
        let (byte_time, random) = (byte_time(bytes_per_s), Pcg64Mcg::seed_from_u64(0));
        Self { read_ns, program_ns, erase_ns, byte_time, jitter: 0, random }
    }

    /// Sensing a page.
    pub(crate) fn sense_ns(&mut self) -> u64 {
        self.jittered(self.read_ns)
    }

    /// Programming `steps` pages or granules one after the other.
    pub(crate) fn program_ns(&mut self, steps: u32) -> u64 {
        self.jittered(self.program_ns * u64::from(steps))
    }

    /// Erasing a block.
    pub(crate) fn erase_ns(&self) -> u64 {
        self.erase_ns
    }

    /// Moving bytes over a channel.
    pub(crate) fn transfer_ns(&self, bytes: u32) -> u64 {
        (u64::from(bytes) * self.byte_time) >> BYTE_TIME_SHIFT
    }

    /// `time_ns` times a factor drawn uniformly from 1 − jitter to 1 + jitter.
    fn jittered(&mut self, time_ns: u64) -> u64 {
        if self.jitter == 0 {
            return time_ns;
        }
        let share = u64::from(self.random.random::<u32>());
        let width = (time_ns * 2 * self.jitter) >> 32;
        time_ns - width / 2 + ((width * share) >> 32)
    }
}

/// Nanoseconds a byte in 2⁻²⁴ ns; 64 MiB at 1 MB/s still fits 64 bits.
fn byte_time(bytes_per_s: u64) -> u64 {
    ((1_000_000_000_u128 << BYTE_TIME_SHIFT).div_ceil(u128::from(bytes_per_s))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_takes_bytes_over_rate_to_the_nanosecond() {
        let timing = Timing::exact(0, 0, 0, 400_000_000);
        assert_eq!(timing.transfer_ns(4096), 10_240);
        assert_eq!(timing.transfer_ns(64 << 20), 167_772_160);
    }

    #[test]
    fn jitter_stays_inside_its_share_and_centres_on_the_time() {
        let mut timing = Timing { jitter: (0.1 * 2f64.powi(32)) as u64, ..Timing::exact(10_000, 0, 0, 1_000_000) };
        let times: Vec<u64> = (0..10_000).map(|_| timing.sense_ns()).collect();
        assert!(times.iter().all(|t| (9_000..=11_000).contains(t)));
        let mean = times.iter().sum::<u64>() / 10_000;
        assert!((9_970..=10_030).contains(&mean), "{mean}");
    }
}
