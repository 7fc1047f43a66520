//! Threshold and reserve, each alone. A threshold must are below the reserve, so that the poster's 50 and 90 % need
//! drives of which more than half is reserve: another drive, with less data.

use flashwise_report::study::{StudyCell, StudyClaim, StudySection, StudyTable, StudyVerdict};
use flashwise_ssd::config::CleaningPolicy;

use super::experiment::{Experiment, Organisation, Pattern};
use super::repetition;
use crate::{Progress, StudyError, StudyOptions, parallel};

/// The reserve's part of the study.
pub(super) struct Reserve {
    pub(super) claim: StudyClaim,
    pub(super) sections: Vec<StudySection>,
}

/// (threshold, reserve), per cent: first the threshold alone, then the reserve alone, then both as the poster needs.
const DRIVES: [(u32, u32); 9] = [(5, 60), (25, 60), (50, 60), (5, 15), (5, 30), (5, 60), (5, 95), (5, 15), (50, 60)];

/// Measures threshold and reserve.
pub(super) fn measure(options: &StudyOptions, progress: Progress<'_>) -> Result<Reserve, StudyError> {
    // Overwriting reaches every block; before that a drive has its whole reserve free.
    let overwrites = if options.quick { 2.0 } else { 4.0 };
    let inputs: Vec<_> = DRIVES.iter().flat_map(|&drive| [(drive, 0.0), (drive, overwrites)]).collect();
    let values = parallel::map("threshold and reserve", &inputs, progress, |&((threshold, reserve), overwrites)| {
        let mut organisation = Organisation::with_threshold(256, threshold, CleaningPolicy::Greedy);
        (organisation.reserve_percent, organisation.lifetime_erasures) = (reserve, 3_000);
        let mut experiment = Experiment::new(organisation, Pattern::ALL[3], 64 << 10);
        experiment.overwrites = overwrites;
        experiment.repeat(repetition(options), options.seed)
    })?;
    let row = |n: usize| {
        let (threshold, reserve) = DRIVES[n];
        let drive = [format!("{threshold} %"), format!("{reserve} %")].map(StudyCell::text);
        drive.into_iter().chain([values[2 * n].into(), values[2 * n + 1].into()]).collect::<Vec<_>>()
    };
    let table = |caption: &str, rows: std::ops::Range<usize>| StudyTable {
        caption: caption.to_owned(),
        columns: ["threshold", "reserve", "300 requests, fresh", "after overwriting"].map(str::to_owned).to_vec(),
        rows: rows.map(row).collect(),
    };
    let steady = |n: usize| values[2 * n + 1].value;
    let (threshold, reserve) = (100.0 * (steady(2) / steady(0) - 1.0), 100.0 * (steady(6) / steady(3) - 1.0));
    let claim = StudyClaim {
        claim: "The parameter with the largest influence is the minimum of free blocks.".to_owned(),
        measured: format!(
            "Once cleaning runs, the threshold alone (5 to 50 % with a reserve of 60 %) changes a random write of 64 \
             KiB by {threshold:+.0} %; the reserve alone (15 to 95 % with a threshold of 5 %) by {reserve:+.0} %."
        ),
        verdict: StudyVerdict::Partly,
        because: "A threshold must be below the reserve, so a drive with a threshold of 50 or 90 % holds less data, \
                  and the reserve changes with it. Cleaning works with the part of the reserve above the threshold."
            .to_owned(),
    };
    let sections = vec![StudySection {
        title: "Threshold or reserve?".to_owned(),
        text: vec![format!(
            "4 GB, greedy, random writes of 64 KiB: on a fresh full drive, and after {overwrites} overwrites of the \
             drive with random pages. Mean response time, ms. On a fresh drive neither matters, because cleaning does \
             not run."
        )],
        tables: vec![
            table("The threshold alone:", 0..3),
            table("The reserve alone:", 3..7),
            table("Both, as required for thresholds of 5 and 50 %:", 7..9),
        ],
        charts: Vec::new(),
    }];
    Ok(Reserve { claim, sections })
}
