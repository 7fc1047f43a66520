//! Policies of your own beside the built-in ones, without a change to flashwise: one chooses the victims of garbage
//! collection, one chooses the page that a buffer pool evicts.
//!
//! ```text
//!   least_worn.rs   VictimPolicy ─▶ SimulatedSsd::with_victim_policy ─▶ a workload on it   write amplification, wear
//!   clean_first.rs  Policy       ─▶ PolicyInfo::of                   ─▶ a trace on a pool  misses, pages written
//! ```
//!
//! `cargo run --release --manifest-path examples/own-policy/Cargo.toml` prints both tables.

mod clean_first;
mod least_worn;

use std::error::Error;
use std::path::Path;

use flashwise_block::Silent;
use flashwise_bufferpool::simulate::PoolPlan;
use flashwise_bufferpool::{Ace, PageTrace, PolicyInfo, PolicySpec, Prefetch};
use flashwise_ssd::config::GcPolicy;
use flashwise_sim::{Precondition, SimulationOptions, simulate};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use flashwise_trace::workload::Workload;

use clean_first::CleanFirst;
use least_worn::LeastWorn;

fn main() -> Result<(), Box<dyn Error>> {
    compare_victims()?;
    println!();
    compare_evictions()
}

/// Small enough to be written many times over in a second: 2 channels, 256 superblocks of 1 MiB, 20 %
/// over-provisioning.
fn drive() -> Result<DeviceConfig, Box<dyn Error>> {
    let mut config = DeviceConfig::preset("samsung-960-evo")?;
    let flash = &mut config.flash;
    (flash.channels, flash.chips_per_channel, flash.dies_per_chip, flash.planes_per_die) = (2, 1, 1, 1);
    (flash.blocks_per_plane, flash.pages_per_block) = (128, 64);
    config.controller.write_buffer_bytes = 8 << 20;
    config.ftl.stripe_bytes = config.superpage_bytes();
    let superpage = config.superpage_bytes();
    config.capacity_bytes = config.raw_bytes() / superpage * 5 / 6 * superpage;
    Ok(config)
}

/// Nine writes of ten go to a tenth of the pages.
const WORKLOAD: &str = r#"
    name = "hot and cold"
    [[flows]]
    requests = 60_000
    [flows.synthetic]
    read_share = 0.0
    access.hot-cold.zones = [{ size = 0.1, traffic = 0.9 }, { size = 0.9, traffic = 0.1 }]
    size.fixed.bytes = 4096
    pacing.closed.queue_depth = 8
"#;

fn compare_victims() -> Result<(), Box<dyn Error>> {
    println!("{:<20} {:>20} {:>20}", "garbage collection", "write amplification", "erasures, most/least");
    for policy in [GcPolicy::Greedy, GcPolicy::CostBenefit, GcPolicy::Fifo] {
        let mut config = drive()?;
        config.ftl.gc.policy = policy;
        print_victims(policy.name(), SimulatedSsd::new(config, 1)?)?;
    }
    let policy = |shape| Box::new(LeastWorn::new(shape)) as Box<_>;
    print_victims("least-worn (own)", SimulatedSsd::with_victim_policy(drive()?, 1, policy)?)
}

fn print_victims(name: &str, mut drive: SimulatedSsd) -> Result<(), Box<dyn Error>> {
    let workload = Workload::from_toml(WORKLOAD, "hot-and-cold.toml")?;
    let options = SimulationOptions { precondition: Precondition::Fill, ..SimulationOptions::default() };
    let result = simulate(&mut drive, &workload, Path::new("."), &options, &mut Silent)?;
    let amplification = result.write_amplification.ok_or("nothing was written")?;
    let (least, most) = drive.erase_counts();
    println!("{name:<20} {amplification:>20.3} {:>20}", format!("{most}/{least}"));
    Ok(())
}

/// 50,000 accesses, half of them writes, nine of ten to a tenth of 10,000 pages.
fn trace() -> Result<PageTrace, Box<dyn Error>> {
    let mut state = 1_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let access = move |_| {
        let pages = if random() % 10 < 9 { 1_000 } else { 10_000 };
        (random() % pages, random() % 2 == 0)
    };
    Ok(PageTrace::of_pages("hot and cold", (0..50_000).map(access))?)
}

fn compare_evictions() -> Result<(), Box<dyn Error>> {
    let own = PolicyInfo::of::<CleanFirst>("clean-first (own)", "clean pages first, each oldest first").with("")?;
    let plan = PoolPlan {
        policies: vec![PolicySpec::parse("lru")?, PolicySpec::parse("cflru")?, own],
        frames: vec![500],
        write_backs: vec![Ace::CLASSIC, Ace::of(8)],
        prefetch: Prefetch::None,
        model: None,
        drive: None,
        jobs: 1,
    };
    let report = flashwise_bufferpool::simulate::simulate(&mut trace()?, &plan, &|_| {})?;
    println!(
        "{:<20} {:>12} {:>10} {:>14} {:>12}",
        "replacement", "write-back", "misses", "pages written", "write calls"
    );
    for result in report.results {
        let write_back = if result.ace { "batches of 8" } else { "one by one" };
        let (name, misses, written) = (result.policy, result.misses, result.pages_written);
        println!("{name:<20} {write_back:>12} {misses:>10} {written:>14} {:>12}", result.write_back_operations);
    }
    Ok(())
}
