//! Write amplification with streams beside that without and that of theory, as the table in the book
//! (`docs/validation.md`).
//!
//! `cargo run --release -p flashwise-sim --example streams_validation`

#[path = "../tests/it/support/one_plane.rs"]
mod one_plane;
#[path = "../tests/it/support/streams.rs"]
mod streams;

use std::error::Error;

use flashwise_ssd::config::{GcPolicy, StreamPolicy};
use streams::{Case, Traffic};

const TRAFFIC: [(&str, Traffic); 6] = [
    ("uniform", Traffic::Uniform),
    ("80 % on 20 %", Traffic::HotCold { traffic: 0.8, size: 0.2 }),
    ("90 % on 10 %", streams::STRONG),
    ("95 % on 5 %", Traffic::HotCold { traffic: 0.95, size: 0.05 }),
    ("Zipf, θ = 0.8", Traffic::Zipf { theta: 0.8 }),
    ("Zipf, θ = 1", Traffic::Zipf { theta: 1.0 }),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "| traffic | collection | one | hint | sepbit | bloom-filters | death-time | theory, apart |\n\
         |---|---|---|---|---|---|---|---|"
    );
    for (name, traffic) in TRAFFIC {
        for (gc, gc_name) in [(GcPolicy::Greedy, "greedy"), (GcPolicy::CostBenefit, "cost-benefit")] {
            let case = |streams| Case {
                streams,
                gc,
                traffic,
                fill: 0.875,
                blocks: 2_000,
                pages_per_block: 32,
                warm_up: 40,
                rounds: 10,
            };
            print!("| {name} | {gc_name} |");
            for policy in StreamPolicy::ALL {
                match (policy, traffic) {
                    (StreamPolicy::Hint, Traffic::Zipf { .. }) => print!(" – |"),
                    _ => print!(" {:.3} |", case(policy).simulate()?),
                }
            }
            let apart = case(StreamPolicy::Hint);
            match (gc, traffic) {
                (_, Traffic::Zipf { .. }) => println!(" – |"),
                (GcPolicy::Greedy, _) => println!(" {:.3} |", apart.greedy_apart().unwrap_or(f64::NAN)),
                (_, Traffic::Uniform) => println!(" – |"),
                _ => println!(" {:.3} at best |", apart.best_apart()),
            }
        }
    }
    Ok(())
}
