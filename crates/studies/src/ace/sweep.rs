//! One thing varied at a time: settings in, comparisons out, a table and a chart of them.

use flashwise_report::study::{Measured, StudyChart, StudyPoint, StudySeries};

use super::run::{Compared, Setting};
use crate::{Progress, StudyError, StudyOptions, parallel};

/// Runs every setting, on all cores.
pub(super) fn compare(
    what: &str,
    settings: &[Setting<'_>],
    options: &StudyOptions,
    progress: Progress<'_>,
) -> Result<Vec<Compared>, StudyError> {
    parallel::map(what, settings, progress, |setting| setting.compare(options.seed))
}

/// Classic time ÷ time with ACE over what was varied.
pub(super) fn chart(title: &str, x_label: &str, lines: Vec<(String, Vec<(f64, Measured)>)>) -> StudyChart {
    let series = |(name, points): (String, Vec<(f64, Measured)>)| StudySeries {
        name,
        points: points.into_iter().map(|(x, y)| StudyPoint { x, y }).collect(),
    };
    StudyChart {
        title: title.to_owned(),
        x_label: x_label.to_owned(),
        x_is_bytes: false,
        y_label: "classic time ÷ time".to_owned(),
        series: lines.into_iter().map(series).collect(),
    }
}
