//! `flashwise learn`.

use std::process::ExitCode;

use flashwise_report::{profile_page, render_profile};
use flashwise_tune::Target;
use flashwise_tune::sqlite::learn_target;

use crate::arguments::LearnArguments;
use crate::failure::{Failure, INCONCLUSIVE};
use crate::files::{Kind, Wanted};
use crate::output::Output;
use crate::progress::Bar;

/// Learns a drive and shows its profile.
pub fn run(options: &LearnArguments, output: &Output) -> Result<ExitCode, Failure> {
    let target = Target::parse(options.target_option.as_ref().unwrap_or(&options.target))?;
    let profile_file = options.profile.as_deref().map(|path| Wanted::prepare(path, Kind::Profile)).transpose()?;
    let page_file = options.html.as_deref().map(|path| Wanted::prepare(path, Kind::Page)).transpose()?;
    let profile = learn_target(&target, options.seed, options.max_write, &mut Bar::new())?;
    if let Some(file) = profile_file {
        file.write(&profile.to_toml().map_err(Failure::error)?)?;
    }
    if let Some(file) = page_file {
        file.write(profile_page(&profile))?;
    }
    output.print(&profile, |style| render_profile(&profile, style))?;
    Ok(if profile.is_conclusive() { ExitCode::SUCCESS } else { ExitCode::from(INCONCLUSIVE) })
}
