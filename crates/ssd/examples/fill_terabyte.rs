//! How long it takes to make drives of 0.5, 1 and 8 TB and to fill them at once, and how much memory the process has
//! then.
//!
//! `cargo run --release -p flashwise-ssd --example fill_terabyte`

use std::time::Instant;

use flashwise_ssd::{DeviceConfig, SimulatedSsd};

/// Resident memory of this process, KiB; 0 where the system does not say.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Above 4 TiB pages must be longer than 4 KiB.
    for (times, page) in [(1, 4096), (2, 4096), (16, 16384)] {
        let mut config = DeviceConfig::preset("samsung-960-evo")?;
        config.flash.chips_per_channel = times;
        config.ftl.logical_page_bytes = page;
        config.controller.write_buffer_bytes *= u64::from(times);
        config.capacity_bytes = config.capacity_bytes * u64::from(times) / page * page;
        let start = Instant::now();
        let mut drive = SimulatedSsd::new(config, 1)?;
        let made_ms = start.elapsed().as_secs_f64() * 1e3;
        let start = Instant::now();
        drive.fill_at_once()?;
        let filled_ms = start.elapsed().as_secs_f64() * 1e3;
        let (capacity, pages) = (drive.config().capacity_bytes as f64 / 1e12, drive.config().logical_pages());
        println!(
            "{capacity:.1} TB, {pages} logical pages: made in {made_ms:.1} ms, filled in {filled_ms:.1} ms, {:.1} MiB",
            resident_kib() as f64 / 1024.0
        );
    }
    Ok(())
}
