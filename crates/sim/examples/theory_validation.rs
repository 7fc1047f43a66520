//! Write amplification of the simulator beside that of theory, as the table in the book (`docs/validation.md`).
//!
//! `cargo run --release -p flashwise-sim --example theory_validation [sizes|two-regions]`; with a word that table
//! alone.

#[path = "../tests/it/support/one_plane.rs"]
mod one_plane;
#[path = "../tests/it/support/overwrite.rs"]
mod overwrite;

use std::error::Error;

use flashwise_ssd::config::GcPolicy;
use overwrite::{Case, FILLS, SKEWS, Skew, UNIFORM};

/// SSD-iq's greedy under the skews, from uniform to 95/5, at a fill of 0.875 (PVLDB 18(11), 2025).
const SSD_IQ: [f64; 5] = [4.17, 4.30, 4.52, 5.11, 5.90];
/// The same of its 2R in the FIFO form.
const SSD_IQ_TWO_R: [f64; 5] = [4.19, 4.18, 4.12, 2.51, 2.06];

fn name(policy: GcPolicy) -> String {
    serde_json::to_value(policy).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

fn percent(simulated: f64, expected: f64) -> String {
    format!("{:+.1} %", 100.0 * (simulated / expected - 1.0))
}

fn uniform() -> Result<(), Box<dyn Error>> {
    println!("| fill | policy | theory | simulated | difference |\n|---|---|---|---|---|");
    for policy in [GcPolicy::Greedy, GcPolicy::RandomGreedy, GcPolicy::Fifo, GcPolicy::Random] {
        for fill in FILLS {
            let (blocks, pages_per_block) = (2_000, 64);
            let case = Case { policy, fill, skew: UNIFORM, blocks, pages_per_block, one_frontier: false, rounds: 3 };
            let (expected, simulated) = (case.theory().unwrap_or(f64::NAN), case.simulate()?);
            let difference = percent(simulated, expected);
            println!("| {fill} | {} | {expected:.3} | {simulated:.3} | {difference} |", name(policy));
        }
    }
    Ok(())
}

fn skewed() -> Result<(), Box<dyn Error>> {
    println!("\n| skew | theory | simulated | difference | SSD-iq | difference |\n|---|---|---|---|---|---|");
    let skews: Vec<Skew> = std::iter::once(UNIFORM).chain(SKEWS).collect();
    for (skew, published) in skews.into_iter().zip(SSD_IQ) {
        let (policy, blocks, pages_per_block) = (GcPolicy::Greedy, 500, 1024);
        let case = Case { policy, fill: 0.875, skew, blocks, pages_per_block, one_frontier: true, rounds: 6 };
        let (expected, simulated) = (case.theory().unwrap_or(f64::NAN), case.simulate()?);
        let what = format!("{:.0}/{:.0}", 100.0 * skew.traffic, 100.0 * skew.size);
        let differences = [percent(simulated, expected), percent(simulated, published)];
        println!(
            "| {what} | {expected:.3} | {simulated:.3} | {} | {published:.2} | {} |",
            differences[0], differences[1]
        );
    }
    Ok(())
}

/// 2R in the FIFO form, overwritten for longer and longer: cold data takes long to come to rest where it belongs.
fn two_regions() -> Result<(), Box<dyn Error>> {
    println!("\n| skew | SSD-iq | overwrites 4 to 6 | 7 to 12 | 13 to 24 | 25 to 48 |\n|---|---|---|---|---|---|");
    let skews: Vec<Skew> = std::iter::once(UNIFORM).chain(SKEWS).collect();
    for (skew, published) in skews.into_iter().zip(SSD_IQ_TWO_R) {
        print!("| {:.0}/{:.0} | {published:.2} |", 100.0 * skew.traffic, 100.0 * skew.size);
        for rounds in [3, 6, 12, 24] {
            let (policy, blocks, pages_per_block) = (GcPolicy::TwoRFifo, 1_000, 256);
            let case = Case { policy, fill: 0.875, skew, blocks, pages_per_block, one_frontier: false, rounds };
            print!(" {:.3} |", case.simulate()?);
        }
        println!();
    }
    Ok(())
}

/// The same drive with twice and twice as many blocks: what is due to its size halves each time, what is not stays.
fn sizes() -> Result<(), Box<dyn Error>> {
    println!("\n| policy | fill | 150 blocks | 300 | 600 | 1,200 | 2,400 |\n|---|---|---|---|---|---|---|");
    for policy in [GcPolicy::Greedy, GcPolicy::Fifo] {
        for fill in [0.5, 0.8, 0.95] {
            print!("| {} | {fill} |", name(policy));
            for blocks in [150, 300, 600, 1_200, 2_400] {
                // As many overwrites of a block on each drive, so that chance is as large on all of them.
                let (pages_per_block, rounds) = (64, 7_200 / blocks);
                let case = Case { policy, fill, skew: UNIFORM, blocks, pages_per_block, one_frontier: false, rounds };
                let (expected, simulated) = (case.theory().unwrap_or(f64::NAN), case.simulate()?);
                print!(" {:+.2} % |", 100.0 * (simulated / expected - 1.0));
            }
            println!();
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("sizes") => return sizes(),
        Some("two-regions") => return two_regions(),
        _ => {}
    }
    uniform()?;
    skewed()?;
    two_regions()?;
    sizes()
}
