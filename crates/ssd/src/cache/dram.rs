//! The controller's DRAM: one access at a time, each a fixed time and the time of its bytes.
//!
//! An access that is longer than a row opens rows of two banks in turn: while the data of one is moved, the other gets
//! ready and moves its data at the same time, so that two rows take the time of one.

use crate::config::ControllerConfig;

/// The DRAM, busy until a known time.
pub(crate) struct Dram {
    ns_per_access: u64,
    bytes_per_s: u64,
    row_bytes: u64,
    /// The number of bytes that was moved last, and its time: most accesses are alike, and a division is slow.
    last_moving_ns: (u64, u64),
    free_ns: u64,
}

impl Dram {
    pub(crate) fn new(config: &ControllerConfig) -> Self {
        let row_bytes = if config.dram_row_bytes == 0 { u64::MAX } else { config.dram_row_bytes };
        let (ns_per_access, bytes_per_s) = (config.dram_ns_per_access, config.dram_bytes_per_s);
        Self { ns_per_access, bytes_per_s, row_bytes, last_moving_ns: (0, 0), free_ns: 0 }
    }

    /// Moves bytes from or to the DRAM; gives the time when they are there.
    pub(crate) fn access(&mut self, now_ns: u64, bytes: u64) -> u64 {
        if bytes == 0 || (self.ns_per_access == 0 && self.bytes_per_s == 0) {
            return now_ns;
        }
        if self.last_moving_ns.0 != bytes {
            self.last_moving_ns = (bytes, self.moving_ns(bytes));
        }
        self.free_ns = now_ns.max(self.free_ns) + self.ns_per_access + self.last_moving_ns.1;
        self.free_ns
    }

    fn moving_ns(&self, bytes: u64) -> u64 {
        let bytes = if bytes > self.row_bytes { bytes.div_ceil(2 * self.row_bytes) * self.row_bytes } else { bytes };
        (bytes * 1_000_000_000).checked_div(self.bytes_per_s).unwrap_or(0)
    }
}

crate::state::state! {
    Dram {
        saved { free_ns }
        built { ns_per_access, bytes_per_s, row_bytes, last_moving_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_take_their_time_one_after_the_other_and_none_where_dram_is_free() {
        let mut config = crate::DeviceConfig::preset("samsung-960-evo").unwrap().controller;
        assert_eq!(Dram::new(&config).access(7, 4096), 7);
        (config.dram_ns_per_access, config.dram_bytes_per_s) = (26, 200_000_000);
        let mut dram = Dram::new(&config);
        assert_eq!([0, 0, 100_000].map(|now| dram.access(now, 4096)), [20_506, 41_012, 120_506]);
    }

    #[test]
    fn two_rows_take_the_time_of_one() {
        let mut config = crate::DeviceConfig::preset("samsung-960-evo").unwrap().controller;
        (config.dram_bytes_per_s, config.dram_row_bytes) = (200_000_000, 8192);
        let times = [4096, 8192, 16384, 131_072].map(|bytes| Dram::new(&config).access(0, bytes));
        assert_eq!(times, [20_480, 40_960, 40_960, 8 * 40_960]);
    }
}
