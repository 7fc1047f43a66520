//! Write amplification against skew, at the fill of the published curves.

use flashwise_report::study::{Measured, StudyCell, StudySection, StudyTable};
use flashwise_theory::{Zone, write_amplification_separated};

use super::model::{self, Bed, NAMES, nodap_limits};
use super::published::{SKEWS, Skew};
use super::{FILL, Scale};
use crate::statistics::mean;
use crate::{Progress, StudyError, parallel};

/// One skew.
pub(super) struct Point {
    pub(super) published: &'static Skew,
    /// By algorithm.
    pub(super) measured: [Measured; 5],
    /// Groups that NoDaP's search chose.
    pub(super) nodap_groups: usize,
}

pub(super) struct Measurement {
    pub(super) points: Vec<Point>,
}

/// The mean of each algorithm over the runs.
pub(super) fn means(runs: &[[f64; 5]]) -> [Measured; 5] {
    std::array::from_fn(|n| mean(&runs.iter().map(|run| run[n]).collect::<Vec<_>>()))
}

pub(super) fn measure(scale: &Scale, seed: u64, progress: Progress<'_>) -> Result<Measurement, StudyError> {
    let shape = scale.shape(FILL)?;
    let limits = parallel::map("groups for NoDaP, by skew", &SKEWS, progress, |skew| {
        nodap_limits(scale, FILL, model::workload(skew.traffic), seed)
    })?;
    let runs = scale.runs;
    let inputs: Vec<(usize, u64)> = (0..SKEWS.len()).flat_map(|n| (0..runs).map(move |run| (n, run))).collect();
    let measured = parallel::map("write amplification against skew", &inputs, progress, |&(n, run)| {
        Bed::new(shape, model::workload(SKEWS[n].traffic), seed.wrapping_add(run)).all(&limits[n])
    })?;
    let point = |((published, limits), runs): ((&'static Skew, &Vec<f64>), &[[f64; 5]])| Point {
        published,
        measured: means(runs),
        nodap_groups: limits.len() + 1,
    };
    Ok(Measurement { points: SKEWS.iter().zip(&limits).zip(measured.chunks(runs as usize)).map(point).collect() })
}

/// The least of an algorithm that knows the zones, and not when each page dies.
fn separated(skew: &Skew) -> f64 {
    let Some(traffic) = skew.traffic else { return flashwise_theory::write_amplification_greedy(FILL) };
    let zones = [Zone { size: 1.0 - traffic, traffic }, Zone { size: traffic, traffic: 1.0 - traffic }];
    write_amplification_separated(FILL, &zones)
}

impl Measurement {
    pub(super) fn section(&self) -> StudySection {
        let columns = ["skew"].iter().chain(&NAMES).map(|name| (*name).to_owned()).collect();
        let rows = self.points.iter().map(|point| {
            let name = StudyCell::text(point.published.name);
            [name].into_iter().chain(point.measured.map(StudyCell::from)).collect()
        });
        let measured = StudyTable { caption: "Write amplification:".to_owned(), columns, rows: rows.collect() };
        let columns = ["skew", "greedy", "2R (FIFO)", "optimal", "zones apart, theory", "NoDaP's groups here"];
        let rows = self.points.iter().map(|Point { published, nodap_groups, .. }| {
            let numbers = [published.greedy, published.two_r_fifo, published.optimal, separated(published)];
            let words = numbers.iter().map(|number| format!("{number:.2}")).chain([nodap_groups.to_string()]);
            [published.name.to_owned()].into_iter().chain(words).map(StudyCell::text).collect()
        });
        let published = StudyTable {
            caption: "Published by SSD-iq's authors:".to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            rows: rows.collect(),
        };
        StudySection {
            title: "Gain from knowing when pages die".to_owned(),
            text: vec![
                format!(
                    "Fill {FILL}; \"90/10\": 90 % of the writes go to 10 % of the pages, uniformly in each zone. \
                     NoDaP and the offline algorithm know all deaths, the online algorithm gets them as predictions \
                     without error."
                ),
                "An algorithm that knows only the zones, and collects each in its own blocks with the optimal share \
                 of the spare space, reaches \"zones apart\" (large blocks), which is SSD-iq's \"optimal\". An \
                 algorithm that knows when each page dies comes close to 1 at any skew, including uniform writes."
                    .to_owned(),
            ],
            tables: vec![measured, published],
            charts: Vec::new(),
        }
    }
}
