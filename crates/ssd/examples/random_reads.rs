//! How fast the simulator is: 4 KiB random reads of a filled drive, 32 in flight, on one core.
//!
//! `cargo run --release -p flashwise-ssd --example random_reads`

use std::time::Instant;

use flashwise_block::{BlockDevice, ByteSize, Request};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = DeviceConfig::preset("samsung-960-evo")?;
    config.flash.blocks_per_plane = 60;
    config.flash.pages_per_block = 256;
    config.ftl.gc.free_superblocks = Some(3);
    config.capacity_bytes = ByteSize::gib(6).bytes();
    let mut drive = SimulatedSsd::new(config, 1)?;
    let pages = drive.info().capacity.bytes() / 4096;
    for at in (0..pages * 4096).step_by(1 << 20) {
        drive.submit(Request::write(ByteSize(at), ByteSize::mib(1)))?;
        drive.wait()?;
    }
    drive.submit(Request::flush())?;
    while drive.wait()?.is_some() {}
    let (mut state, reads, mut best) = (1_u64, 2_000_000_u64, f64::INFINITY);
    for _ in 0..3 {
        let start = Instant::now();
        for _ in 0..reads {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            drive.submit(Request::read(ByteSize(state % pages * 4096), ByteSize::kib(4)))?;
            if drive.outstanding() >= 32 {
                drive.wait()?;
            }
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{:.2} million random reads a second simulated, best of three", reads as f64 / best / 1e6);
    Ok(())
}
