//! The controller's DRAM: one access at a time, each a fixed time and the time of its bytes.

use crate::config::ControllerConfig;

/// The DRAM, busy until a known time.
pub(crate) struct Dram {
    ns_per_access: u64,
    bytes_per_s: u64,
    free_ns: u64,
}

impl Dram {
    pub(crate) fn new(config: &ControllerConfig) -> Self {
        Self { ns_per_access: config.dram_ns_per_access, bytes_per_s: config.dram_bytes_per_s, free_ns: 0 }
    }

    /// Moves bytes from or to the DRAM; gives the time when they are there.
    pub(crate) fn access(&mut self, now_ns: u64, bytes: u64) -> u64 {
        if bytes == 0 || (self.ns_per_access == 0 && self.bytes_per_s == 0) {
            return now_ns;
        }
        let moving_ns = (bytes * 1_000_000_000).checked_div(self.bytes_per_s).unwrap_or(0);
        self.free_ns = now_ns.max(self.free_ns) + self.ns_per_access + moving_ns;
        self.free_ns
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
}
