//! How long it takes to make a drive of 1 TB and to fill it at once.
//!
//! `cargo run --release -p flashwise-ssd --example fill_terabyte`

use std::time::Instant;

use flashwise_ssd::{DeviceConfig, SimulatedSsd};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = DeviceConfig::preset("samsung-960-evo")?;
    config.flash.chips_per_channel = 2;
    config.capacity_bytes *= 2;
    let start = Instant::now();
    let mut drive = SimulatedSsd::new(config, 1)?;
    println!("made in {:.3} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    drive.fill_at_once()?;
    println!("{} logical pages filled in {:.3} s", drive.config().logical_pages(), start.elapsed().as_secs_f64());
    Ok(())
}
