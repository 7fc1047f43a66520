//! How fast the simulator is where every logical page is a flash command of its own: 4 KiB random writes to a drive of
//! single planes with pages of 4 KiB, before garbage collection starts, 32 in flight, on one core.
//!
//! `cargo run --release -p flashwise-ssd --example page_writes`

use std::time::Instant;

use flashwise_block::{BlockDevice, ByteSize, Request};
use flashwise_ssd::config::Placement;
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = DeviceConfig::preset("samsung-960-evo")?;
    (config.flash.page_bytes, config.flash.pages_per_block) = (4096, 256);
    (config.ftl.superpage_planes, config.ftl.placement) = (Some(1), Placement::Static);
    config.capacity_bytes = ByteSize::gib(8).bytes();
    let mut best = f64::INFINITY;
    let writes = 2_000_000_u64;
    for _ in 0..3 {
        let mut drive = SimulatedSsd::new(config.clone(), 1)?;
        let pages = drive.info().capacity.bytes() / 4096;
        let (mut state, start) = (1_u64, Instant::now());
        for _ in 0..writes {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            drive.submit(Request::write(ByteSize(state % pages * 4096), ByteSize::kib(4)))?;
            if drive.outstanding() >= 32 {
                drive.wait()?;
            }
        }
        best = best.min(start.elapsed().as_secs_f64());
        assert_eq!(drive.counters().flash.map(|flash| flash.erases), Some(0));
    }
    println!("{:.2} million single-page writes a second simulated, best of three", writes as f64 / best / 1e6);
    Ok(())
}
