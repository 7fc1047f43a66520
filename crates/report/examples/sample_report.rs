//! Writes the pages of two sample comparisons, to look at them while working on the report:
//! `cargo run -p flashwise-report --example sample_report -- DIRECTORY`.

#[path = "../src/sample.rs"]
#[allow(dead_code, reason = "the samples of simulations are looked at by other means")]
mod sample;

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).ok_or("name a directory")?;
    for (name, comparison) in [("samsung", sample::samsung()), ("optane", sample::optane())] {
        let files = flashwise_report::write_report(&Path::new(&directory).join(name), &comparison)?;
        println!("{}", files.html.display());
    }
    Ok(())
}
