//! How fast the simulator is: 4 KiB random writes in the steady state of garbage collection, on one core.
//!
//! `cargo run --release -p flashwise-ssd --example steady_state`

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
    println!(
        "{} addressable, {:.0} % over-provisioning",
        drive.info().capacity,
        100.0 * drive.config().over_provisioning()
    );
    for at in (0..pages * 4096).step_by(1 << 20) {
        drive.submit(Request::write(ByteSize(at), ByteSize::mib(1)))?;
        drive.wait()?;
    }
    let mut state = 1_u64;
    let mut random = |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % n
    };
    let mut run = |drive: &mut SimulatedSsd, writes: u64| -> Result<_, flashwise_block::BlockError> {
        let (start, before) = (Instant::now(), drive.counters());
        for _ in 0..writes {
            drive.submit(Request::write(ByteSize(random(pages) * 4096), ByteSize::kib(4)))?;
            if drive.outstanding() >= 32 {
                drive.wait()?;
            }
        }
        Ok((writes as f64 / start.elapsed().as_secs_f64(), drive.counters().since(&before)))
    };
    run(&mut drive, 3 * pages)?;
    let (rate, counters) = run(&mut drive, 3 * pages)?;
    let amplification = counters.write_amplification().unwrap_or(f64::NAN);
    println!("{:.2} million random writes a second simulated, write amplification {amplification:.2}", rate / 1e6);
    Ok(())
}
