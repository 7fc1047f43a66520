//! Machado et al. (ERAD 2015): what the internal organisation of an SSD costs, in DiskSim's SSD model.
//!
//! The poster simulates drives of 32 and 4 GB with two cleaning policies and thresholds of free blocks of 5, 50 and 90
//! %, 300 synchronous requests a run, 8 KiB to 4 MiB, and finds garbage collection to cost 5.5 to 7 %, the threshold to
//! matter most, no difference between the policies, and random reads that look like writes. The drives here are drives
//! of elements ([`flashwise_ssd::config::ElementConfig`]), which agree with DiskSim's model to the digit (see the tests
//! of `crates/ssd`).
//!
//! - [`grid`]: the poster's own grid;
//! - [`random_read`]: what makes a random read look like a write;
//! - [`reserve`]: threshold and reserve, each alone;
//! - [`regime`]: where the policies do differ.

mod experiment;
mod grid;
mod random_read;
mod regime;
mod reserve;

use crate::statistics::Repetition;
use crate::{Findings, Progress, StudyError, StudyOptions};

/// Runs of one point, as the poster repeated them: until the interval is within 5 % of the mean.
fn repetition(options: &StudyOptions) -> Repetition {
    let (runs_min, runs_max) = if options.quick { (3, 10) } else { (5, 100) };
    Repetition { runs_min, runs_max, error_max: 0.05 }
}

/// Runs the study.
pub(crate) fn run(options: &StudyOptions, progress: Progress<'_>) -> Result<Findings, StudyError> {
    let grid = grid::measure(options, progress)?;
    let random_read = random_read::measure(options, progress)?;
    let reserve = reserve::measure(options, progress)?;
    let regime = regime::measure(options, progress)?;
    let mut claims = grid.claims;
    claims.extend([reserve.claim, random_read.claim]);
    let sections = [grid.sections, vec![random_read.section], reserve.sections, regime].concat();
    let limits = vec![
        "The poster's figures exist as images only; the comparison uses its words.".to_owned(),
        "Reserve, page times and lifetime are not on the poster; they are DiskSim's defaults, and the reserve is 10 \
         points above the threshold (95 % with 90 %), because cleaning could not end otherwise."
            .to_owned(),
        "One parallel unit per element, copy-back on, as in DiskSim's defaults.".to_owned(),
    ];
    Ok(Findings { claims, sections, limits })
}
