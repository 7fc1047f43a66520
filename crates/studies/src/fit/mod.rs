//! Where a fit of SQLite pays: five workloads on nine published drives.
//!
//! ```text
//!   five workloads ─┐
//!                   ├─▶ tune::sqlite::fit ─▶ defaults, checklist and recommendation in fresh runs ─▶ a cell of each table
//!   nine presets ───┘
//! ```
//!
//! There is no paper behind it. What is claimed is what a user may expect of a fit: it is never worse than SQLite's
//! defaults, and hardly ever worse than what everybody recommends, a write-ahead log and a page cache of 64 MiB. Each
//! combination is one fit with its own search, so that a cell also shows whether the search found what there is.
//!
//! - [`work`]: databases and statements;
//! - [`cells`]: one combination, and the tables.

mod cells;
mod work;

use std::time::Duration;

use flashwise_report::study::StudyClaim;

use crate::verdict::verdict;
use crate::{Findings, Progress, StudyError, StudyOptions};
use cells::Cell;
use work::Work;

/// The presets of drives whose hidden parameters or asymmetry are published.
const DRIVES: [&str; 9] = [
    "samsung-960-evo",
    "intel-optane-905p",
    "toshiba-xg5",
    "micron-m500",
    "intel-optane-p4800x",
    "intel-p4510",
    "intel-p4510-fs",
    "intel-s4610",
    "virtual-ssd",
];
/// Time of one search on the processors: twice what the built-in workload's takes to race all of its finalists.
const TIME: Duration = Duration::from_secs(40);
/// The same in the small version: it screens a part of the combinations.
const TIME_QUICK: Duration = Duration::from_secs(4);

/// How much worse than the checklist a recommendation may be.
const BEHIND: f64 = 0.98;
/// How much better it is where there is something to gain.
const AHEAD: f64 = 1.1;

/// Runs the study.
pub(crate) fn run(options: &StudyOptions, progress: Progress<'_>) -> Result<Findings, StudyError> {
    let (drives, work, time) = match options.quick {
        true => (&DRIVES[..1], &Work::ALL[3..], TIME_QUICK),
        false => (&DRIVES[..], &Work::ALL[..], TIME),
    };
    let mut cells = Vec::new();
    let all = drives.len() * work.len();
    for drive in drives {
        let profile = cells::learned(drive, options)?;
        for work in work {
            progress(&format!("{work} on {drive}"), cells.len() as f64 / all as f64);
            cells.push(cells::fit(drive, *work, &profile, time, options)?);
        }
    }
    let sections = vec![cells::ratios(&cells, drives, work), cells::changes(&cells, drives, work)];
    let limits = vec![
        "A search ends after a time on the processors. On slower ones fewer combinations are tried; the figures of those \
         that are tried stay the same."
            .to_owned(),
        "Databases are of 10 to 25 MB, in a machine with 4 GiB of memory: after the first reads the kernel's page cache \
         holds them. A database that exceeds memory reads more from the drive."
            .to_owned(),
        "Each figure is of a simulated drive. docs/kernel.md compares such figures with an attached drive's.".to_owned(),
    ];
    Ok(Findings { claims: claims(&cells), sections, limits })
}

/// What a user may expect.
fn claims(cells: &[Cell]) -> Vec<StudyClaim> {
    let least = |of: fn(&Cell) -> f64| cells.iter().map(of).fold(f64::INFINITY, f64::min);
    let count = |is: &dyn Fn(&&Cell) -> bool| cells.iter().filter(is).count();
    let ahead = count(&|cell| cell.over_checklist.value >= AHEAD);
    let (all, not_behind) = (cells.len(), count(&|cell| cell.over_checklist.value >= BEHIND));
    let most = cells.iter().map(|cell| cell.over_checklist.value).fold(0.0, f64::max);
    vec![
        StudyClaim {
            claim: "A recommendation is never worse than SQLite's defaults".to_owned(),
            measured: format!("×{:.2} at least, in {all} combinations", least(|cell| cell.over_default.value)),
            verdict: verdict(least(|cell| cell.over_default.value) >= 1.0, false),
            because: "Where fresh runs show no gain, the defaults are recommended.".to_owned(),
        },
        StudyClaim {
            claim: "It is at most 2 % behind the checklist".to_owned(),
            measured: format!(
                "in {not_behind} of {all} combinations; ×{:.3} at least",
                least(|cell| cell.over_checklist.value)
            ),
            verdict: verdict(not_behind == all, not_behind * 10 >= all * 9),
            because: "The checklist is always confirmed beside it and taken where it is better. Where neither gains \
                      more than 1 % over the defaults, nothing is changed."
                .to_owned(),
        },
        StudyClaim {
            claim: "It is 1.1 times the checklist or more in a third of the combinations".to_owned(),
            measured: format!("in {ahead} of {all}; ×{most:.2} at most"),
            verdict: verdict(ahead * 3 >= all, ahead > 0),
            because: "The second section names the changes that bring it.".to_owned(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use flashwise_profile::{published_asymmetries, published_drives};
    use flashwise_report::study::{Measured, StudyVerdict};
    use flashwise_ssd::PRESETS;

    use super::*;

    #[test]
    fn a_wide_interval_is_no_evidence_that_a_recommendation_is_not_behind() {
        let behind = |value: f64| {
            let cells = [Cell::beside_checklist(Measured { value, low: value / 2.0, high: value * 2.0 })];
            claims(&cells)[1].verdict
        };
        assert_eq!(behind(0.99), StudyVerdict::Reproduced);
        assert_eq!(behind(0.9), StudyVerdict::NotReproduced);
    }

    #[test]
    fn every_preset_of_a_published_drive_is_in_the_study() {
        let is_published = |name: &&str| {
            published_drives().iter().any(|drive| drive.preset == *name)
                || published_asymmetries().iter().any(|drive| drive.preset == *name)
        };
        let published: Vec<_> = PRESETS.iter().map(|preset| preset.name).filter(is_published).collect();
        assert_eq!(published, DRIVES);
    }
}
