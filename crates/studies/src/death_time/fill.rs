//! Write amplification against fill, under uniform writes.

use crate::slots::Workload;
use flashwise_report::study::{Measured, StudyCell, StudyChart, StudyPoint, StudySection, StudySeries, StudyTable};
use flashwise_theory::{Policy, fill_of_sealed, mean_field};

use super::Scale;
use super::model::{Bed, GREEDY, NAMES, NODAP, OFFLINE, ONLINE, nodap_limits};
use super::published::FILLS;
use super::skew::means;
use crate::{Progress, StudyError, parallel};

/// One fill.
pub(super) struct Point {
    pub(super) fill: f64,
    /// SSD-iq's simulator, greedy.
    pub(super) published: f64,
    /// Of theory, greedy with blocks of this size.
    theory: Option<f64>,
    /// By algorithm.
    pub(super) measured: [Measured; 5],
}

pub(super) struct Measurement {
    pub(super) points: Vec<Point>,
}

pub(super) fn measure(scale: &Scale, seed: u64, progress: Progress<'_>) -> Result<Measurement, StudyError> {
    let limits = parallel::map("groups for NoDaP, by fill", &FILLS, progress, |&(fill, _)| {
        nodap_limits(scale, fill, Workload::Uniform, seed)
    })?;
    let runs = scale.runs;
    let inputs: Vec<(usize, u64)> = (0..FILLS.len()).flat_map(|n| (0..runs).map(move |run| (n, run))).collect();
    let measured = parallel::map("write amplification against fill", &inputs, progress, |&(n, run)| {
        Bed::new(scale.shape(FILLS[n].0)?, Workload::Uniform, seed.wrapping_add(run)).all(&limits[n])
    })?;
    let point = |(&(fill, published), runs): (&(f64, f64), &[[f64; 5]])| -> Result<Point, StudyError> {
        let pages = u64::from(scale.shape(fill)?.pages());
        let rho = fill_of_sealed(pages, u64::from(scale.blocks), u64::from(scale.slots_per_block), 1.0, 1.0);
        let theory = mean_field(rho, scale.slots_per_block, Policy::Greedy).ok();
        let theory = theory.map(|state| state.write_amplification);
        Ok(Point { fill, published, theory, measured: means(runs) })
    };
    let points = FILLS.iter().zip(measured.chunks(runs as usize)).map(point).collect::<Result<_, _>>()?;
    Ok(Measurement { points })
}

impl Measurement {
    pub(super) fn section(&self) -> StudySection {
        let columns = ["fill", "greedy, SSD-iq", "greedy, theory"].iter().chain(&NAMES);
        let rows = self.points.iter().map(|point| {
            let theory = point.theory.map_or("–".to_owned(), |theory| format!("{theory:.3}"));
            let words = [point.fill.to_string(), format!("{:.2}", point.published), theory].map(StudyCell::text);
            words.into_iter().chain(point.measured.map(StudyCell::from)).collect()
        });
        let line = |n: usize| StudySeries {
            name: NAMES[n].to_owned(),
            points: self.points.iter().map(|point| StudyPoint { x: point.fill, y: point.measured[n] }).collect(),
        };
        StudySection {
            title: "Effect of the fill".to_owned(),
            text: vec![
                "Uniform writes. Theory is the mean field of greedy with the same number of slots per block; SSD-iq's \
                 blocks have 2048, and larger blocks cost greedy slightly more."
                    .to_owned(),
            ],
            tables: vec![StudyTable {
                caption: "Write amplification:".to_owned(),
                columns: columns.map(|name| (*name).to_owned()).collect(),
                rows: rows.collect(),
            }],
            charts: vec![StudyChart {
                title: "Write amplification against fill, uniform writes".to_owned(),
                x_label: "fill".to_owned(),
                x_is_bytes: false,
                y_label: "write amplification".to_owned(),
                series: [GREEDY, NODAP, OFFLINE, ONLINE].map(line).to_vec(),
            }],
        }
    }
}
