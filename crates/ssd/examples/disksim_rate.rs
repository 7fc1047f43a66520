//! How fast a drive of elements is simulated: the random and sequential writes and reads that DiskSim's SSD model is
//! validated with, open arrivals at 2,000 a second of 1 to 16 pages of 4 KiB, on one core. Rates are by user CPU time.
//!
//! `cargo run --release -p flashwise-ssd --example disksim_rate [MILLIONS OF REQUESTS]`

use flashwise_block::{BlockDevice, ByteSize, Nanos, Request};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

/// Pages that the workload touches, as there.
const PAGES: u64 = 877_363;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let millions = std::env::args().nth(1).map_or(Ok(5.0), |text| text.parse::<f64>())?;
    let requests = (millions * 1e6) as u64;
    for (name, sequential, is_read) in [
        ("sequential read", true, true),
        ("random read", false, true),
        ("sequential write", true, false),
        ("random write", false, false),
    ] {
        let mut drive = SimulatedSsd::new(DeviceConfig::preset("disksim-msr")?, 1)?;
        drive.fill_at_once()?;
        let start_s = cpu_s();
        let (mean_ms, completed) = run(&mut drive, requests, sequential, is_read)?;
        let rate = requests as f64 / (cpu_s() - start_s).max(0.01) / 1e6;
        let cleaning = drive.cleaning_statistics().unwrap_or_default();
        println!(
            "{name:<16} {rate:5.2} million requests a second of CPU, mean {mean_ms:.4} ms over {completed}, {} cleans",
            cleaning.cleans
        );
    }
    Ok(())
}

/// User CPU time of this process so far, seconds, so that other programs do not matter. 0 where there is no /proc.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = stat.rsplit(") ").next().and_then(|fields| fields.split(' ').nth(11)?.parse::<f64>().ok());
    ticks.unwrap_or(0.0) / 100.0
}

/// Runs requests at most 20 deep; gives the mean response time, ms.
fn run(
    drive: &mut SimulatedSsd,
    requests: u64,
    sequential: bool,
    is_read: bool,
) -> Result<(f64, u64), flashwise_block::BlockError> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let (mut time_ns, mut page, mut sum_ns, mut completed) = (0, 0, 0, 0_u64);
    for _ in 0..requests {
        time_ns += random() % 1_000_000;
        // 1 page with probability 63 %, one more with 37 % each time.
        let pages = if sequential { 1 } else { 1 + u64::from(random().leading_zeros()).min(15) * 7 / 10 };
        page = if sequential { (page + 1) % PAGES } else { random() % (PAGES - pages) };
        while let Some(done) = drive.wait_until(Nanos(time_ns))? {
            (sum_ns, completed) = (sum_ns + done.latency().0, completed + 1);
        }
        let (offset, length) = (ByteSize(page * 4096), ByteSize(pages * 4096));
        drive.submit(if is_read { Request::read(offset, length) } else { Request::write(offset, length) })?;
        while drive.outstanding() >= 20 {
            if let Some(done) = drive.wait()? {
                (sum_ns, completed) = (sum_ns + done.latency().0, completed + 1);
            }
        }
    }
    Ok((sum_ns as f64 / completed.max(1) as f64 / 1e6, completed))
}
