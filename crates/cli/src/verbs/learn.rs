//! `flashwise learn`.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use flashwise_profile::{DeviceProfile, Verdict};
use flashwise_report::{profile_page, render_profile};
use flashwise_tune::Target;
use flashwise_tune::sqlite::learn_target;

use crate::arguments::LearnArguments;
use crate::failure::{Failure, INCONCLUSIVE};
use crate::output::Output;
use crate::progress::Bar;

/// Learns a drive and shows its profile.
pub fn run(options: &LearnArguments, output: &Output) -> Result<ExitCode, Failure> {
    let target = Target::parse(options.target_option.as_ref().unwrap_or(&options.target))?;
    let profile = learn_target(&target, options.seed, options.max_write, &mut Bar::new())?;
    if let Some(path) = &options.profile {
        write(path, &profile.to_toml().map_err(Failure::error)?)?;
    }
    if let Some(path) = &options.html {
        write(path, &profile_page(&profile))?;
    }
    output.print(&profile, |style| render_profile(&profile, style))?;
    Ok(if is_conclusive(&profile) { ExitCode::SUCCESS } else { ExitCode::from(INCONCLUSIVE) })
}

/// Writes a file that was asked for by name.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::File::create(path).and_then(|mut f| f.write_all(text.as_bytes())).map_err(|e| Failure::file(path, &e))
}

/// Whether the figures about layout, on which what is applied depends, are all told.
fn is_conclusive(profile: &DeviceProfile) -> bool {
    let p = &profile.parameters;
    let verdicts = [
        p.write_unit_bytes.verdict,
        p.stripe_bytes.verdict,
        p.chunk_bytes.verdict,
        p.page_bytes.verdict,
        p.hot_location.verdict,
        p.asymmetry_4k.verdict,
        p.read_concurrency_4k.verdict,
        p.write_concurrency_4k.verdict,
        p.asymmetry_8k.verdict,
        p.read_concurrency_8k.verdict,
        p.write_concurrency_8k.verdict,
    ];
    !verdicts.contains(&Verdict::Inconclusive)
}
