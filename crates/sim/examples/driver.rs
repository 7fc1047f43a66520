//! What the driver of simulations costs a request, beside a bare loop that submits the same requests to the same drive.
//!
//! `cargo run --release -p flashwise-sim --example driver`

use std::time::Instant;

use flashwise_block::{BlockDevice, Request, Silent};
use flashwise_sim::{SimulationOptions, simulate};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use flashwise_trace::workload::{FlowRequest, FlowSource, Workload};

const REQUESTS: u64 = 5_000_000;
const DEPTH: usize = 16;

fn workload() -> Result<Workload, Box<dyn std::error::Error>> {
    let text = format!(
        r#"
        name = "empty reads"
        [[flows]]
        requests = {REQUESTS}
        synthetic.read_share = 1.0
        synthetic.access = "random"
        synthetic.size.fixed.bytes = 4096
        synthetic.pacing.closed.queue_depth = {DEPTH}
        "#
    );
    Ok(Workload::from_toml(&text, "workload")?)
}

fn drive() -> Result<SimulatedSsd, Box<dyn std::error::Error>> {
    let mut config = DeviceConfig::preset("samsung-960-evo")?;
    config.flash.blocks_per_plane = 60;
    config.capacity_bytes = 6 << 30;
    Ok(SimulatedSsd::new(config, 1)?)
}

/// Nanoseconds a request without the driver.
fn bare(workload: &Workload) -> Result<f64, Box<dyn std::error::Error>> {
    let mut drive = drive()?;
    let info = drive.info();
    let base = ".".as_ref();
    let source = FlowSource::open(&workload.flows[0], 0, workload.seed, info.capacity, info.logical_block, base)?;
    let start = Instant::now();
    for FlowRequest { operation, offset, length, fua, .. } in source {
        drive.submit(Request { tag: 0, operation, offset, length, fua, queue: 0, stream: 0, buffer: None })?;
        if drive.outstanding() >= DEPTH {
            drive.wait()?;
        }
    }
    while drive.wait()?.is_some() {}
    Ok(start.elapsed().as_nanos() as f64 / REQUESTS as f64)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let workload = workload()?;
    let mut best = [f64::INFINITY; 2];
    for _ in 0..5 {
        best[0] = best[0].min(bare(&workload)?);
        let result = simulate(&mut drive()?, &workload, ".".as_ref(), &SimulationOptions::default(), &mut Silent)?;
        best[1] = best[1].min(result.process.wall_s * 1e9 / REQUESTS as f64);
    }
    let [bare, driven] = best;
    println!("a bare loop {bare:.1} ns a request, the driver {driven:.1} ns: {:.1} ns more", driven - bare);
    Ok(())
}
