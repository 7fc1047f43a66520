//! Small drives and short ways to say what is done to them.
#![allow(dead_code, reason = "each test program uses its own part")]

use flashwise_block::{BlockDevice, ByteSize, Nanos, Request, execute};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use proptest::prelude::ProptestConfig;

/// So many random cases, or as many as `PROPTEST_CASES` says, as it does in `make test-full`.
pub fn cases(usual: u32) -> ProptestConfig {
    let usual = ProptestConfig::with_cases(usual);
    std::env::var_os("PROPTEST_CASES").map_or(usual, |_| ProptestConfig::default())
}

/// The preset without jitter, so that times can be compared to the nanosecond.
pub fn exact(preset: &str) -> SimulatedSsd {
    let mut config = DeviceConfig::preset(preset).unwrap();
    config.flash.array_time_jitter = 0.0;
    SimulatedSsd::new(config, 1).unwrap()
}

/// A page-mapped drive small enough to fill many times: the preset's structure with few short blocks.
pub fn tiny(preset: &str, capacity: ByteSize, blocks: u32, pages: u32) -> DeviceConfig {
    let mut config = DeviceConfig::preset(preset).unwrap();
    config.flash.blocks_per_plane = blocks;
    config.flash.pages_per_block = pages;
    config.ftl.gc.free_superblocks = Some(2);
    config.host.max_transfer_bytes = ByteSize::kib(256).bytes();
    config.controller.write_buffer_bytes = ByteSize::mib(2).bytes();
    config.capacity_bytes = capacity.bytes();
    config.check("tiny").unwrap();
    config
}

pub fn read_us(drive: &mut SimulatedSsd, offset: u64, length: u64) -> f64 {
    let done = execute(drive, Request::read(ByteSize(offset), ByteSize(length))).unwrap();
    done.latency().0 as f64 / 1e3
}

pub fn write(drive: &mut SimulatedSsd, offset: u64, length: u64) {
    execute(drive, Request::write(ByteSize(offset), ByteSize(length))).unwrap();
}

pub fn durable_write_us(drive: &mut SimulatedSsd, offset: u64, length: u64) -> f64 {
    let done = execute(drive, Request::write(ByteSize(offset), ByteSize(length)).with_fua()).unwrap();
    drive.pause(Nanos::millis(5)).unwrap();
    done.latency().0 as f64 / 1e3
}

pub fn flush(drive: &mut SimulatedSsd) {
    execute(drive, Request::flush()).unwrap();
}

/// Writes `[start, start + length)` in large writes, in order.
pub fn fill(drive: &mut SimulatedSsd, start: u64, length: u64) {
    let step = drive.info().max_transfer.bytes();
    (start..start + length).step_by(step as usize).for_each(|at| write(drive, at, step.min(start + length - at)));
    flush(drive);
}
