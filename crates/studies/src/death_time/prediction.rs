//! Write amplification of the online algorithm against the error of its predictions.

use crate::slots::PredictionError;
use flashwise_report::study::{Measured, StudyCell, StudyChart, StudyPoint, StudySection, StudySeries, StudyTable};

use super::model::{self, Bed};
use super::{FILL, Scale};
use crate::statistics::mean;
use crate::{Progress, StudyError, parallel};

/// Uniform writes, and shares of the writes on the rest of the pages.
pub(super) const TRAFFIC: [(&str, Option<f64>); 3] = [("uniform", None), ("80/20", Some(0.8)), ("95/5", Some(0.95))];
/// Predicted lives are off by a factor e^(σ·z).
pub(super) const SIGMAS: [f64; 7] = [0.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0];
/// Share of the predictions that are dealt out anew.
pub(super) const SWAPPED: [f64; 5] = [0.0, 0.0625, 0.25, 0.5, 1.0];

pub(super) struct Measurement {
    /// Greedy, by workload.
    pub(super) greedy: [Measured; 3],
    /// By σ, by workload.
    pub(super) by_sigma: Vec<[Measured; 3]>,
    /// By share, by workload.
    pub(super) by_share: Vec<[Measured; 3]>,
}

/// A run for greedy, for each σ and for each share.
fn run(scale: &Scale, traffic: Option<f64>, seed: u64) -> Result<Vec<f64>, StudyError> {
    let bed = Bed::new(scale.shape(FILL)?, model::workload(traffic), seed);
    let mut values = vec![bed.greedy()?];
    for sigma in SIGMAS {
        values.push(bed.online(PredictionError { sigma, swapped: 0.0 })?);
    }
    for swapped in SWAPPED {
        values.push(bed.online(PredictionError { sigma: 0.0, swapped })?);
    }
    Ok(values)
}

pub(super) fn measure(scale: &Scale, seed: u64, progress: Progress<'_>) -> Result<Measurement, StudyError> {
    let runs = scale.runs;
    let inputs: Vec<(Option<f64>, u64)> =
        TRAFFIC.iter().flat_map(|&(_, traffic)| (0..runs).map(move |run| (traffic, run))).collect();
    let values = parallel::map("write amplification against the error", &inputs, progress, |&(traffic, n)| {
        run(scale, traffic, seed.wrapping_add(n))
    })?;
    let means: Vec<[Measured; 3]> = (0..1 + SIGMAS.len() + SWAPPED.len())
        .map(|column| {
            std::array::from_fn(|workload| {
                let of_workload = values.iter().skip(workload * runs as usize).take(runs as usize);
                mean(&of_workload.map(|values| values[column]).collect::<Vec<_>>())
            })
        })
        .collect();
    let (by_sigma, by_share) = means[1..].split_at(SIGMAS.len());
    Ok(Measurement { greedy: means[0], by_sigma: by_sigma.to_vec(), by_share: by_share.to_vec() })
}

impl Measurement {
    pub(super) fn section(&self) -> StudySection {
        let table = |caption: &str, first: &str, rows: Vec<Vec<StudyCell>>| StudyTable {
            caption: caption.to_owned(),
            columns: [first].into_iter().chain(TRAFFIC.map(|(name, _)| name)).map(str::to_owned).collect(),
            rows,
        };
        let row = |name: String, measured: &[Measured; 3]| -> Vec<StudyCell> {
            [StudyCell::text(name)].into_iter().chain(measured.map(StudyCell::from)).collect()
        };
        let rows = |values: &[f64], measured: &[[Measured; 3]]| {
            let online = values.iter().zip(measured).map(|(value, measured)| row(value.to_string(), measured));
            online.chain([row("greedy".to_owned(), &self.greedy)]).collect()
        };
        let line = |workload: usize| StudySeries {
            name: TRAFFIC[workload].0.to_owned(),
            points: SIGMAS[1..]
                .iter()
                .zip(&self.by_sigma[1..])
                .map(|(&x, measured)| StudyPoint { x, y: measured[workload] })
                .collect(),
        };
        StudySection {
            title: "Effect of prediction errors".to_owned(),
            text: vec![format!(
                "Fill {FILL}. A predicted life is the true one times e^(σ·z), z standard normal: with σ = 1, a third \
                 of them are off by more than a factor of 2.7. Alternatively a share of the predictions is shuffled \
                 among themselves: with a share of 1 they contain only the distribution of lives."
            )],
            tables: vec![
                table("Lives multiplied by a random factor:", "σ", rows(&SIGMAS, &self.by_sigma)),
                table("Lives shuffled:", "share", rows(&SWAPPED, &self.by_share)),
            ],
            charts: vec![StudyChart {
                title: "Online, against the error of the predictions".to_owned(),
                x_label: "σ".to_owned(),
                x_is_bytes: false,
                y_label: "write amplification".to_owned(),
                series: (0..TRAFFIC.len()).map(line).collect(),
            }],
        }
    }
}
