//! The offline algorithm's rewrites against the number of blocks.

use crate::slots::{Shape, Workload};
use flashwise_report::study::{Measured, StudyCell, StudyChart, StudyPoint, StudySection, StudySeries, StudyTable};

use super::model::{self, Bed};
use super::{FILL, Scale};
use crate::statistics::mean;
use crate::{Progress, StudyError, parallel};

const WORKLOADS: [(&str, Option<f64>); 2] = [("uniform", None), ("90/10", Some(0.9))];

/// One number of blocks.
pub(super) struct Point {
    pub(super) blocks: u32,
    /// Rewrites a write, by workload.
    pub(super) rewrites: [Measured; 2],
    /// What was proved of them before the run, from the lives of the trace.
    bounds: [Measured; 2],
    /// Greedy's.
    greedy: [Measured; 2],
}

pub(super) struct Measurement {
    slots_per_block: u32,
    /// By number of blocks, ascending.
    pub(super) points: Vec<Point>,
}

/// Rewrites a write, the bound on them, and greedy's.
fn run(shape: Shape, workload: Workload, seed: u64) -> Result<[f64; 3], StudyError> {
    let bed = Bed::new(shape, workload, seed);
    let (run, bound) = bed.offline()?;
    let whole = run.all.rewrites as f64 / run.all.writes as f64;
    Ok([whole, bound as f64 / run.all.writes as f64, bed.greedy()? - 1.0])
}

pub(super) fn measure(scale: &Scale, seed: u64, progress: Progress<'_>) -> Result<Measurement, StudyError> {
    let counts = [scale.blocks / 2, scale.blocks, scale.blocks * 2];
    let mut inputs = Vec::new();
    for &blocks in &counts {
        for (_, traffic) in WORKLOADS {
            inputs.extend((0..scale.runs).map(|run| (blocks, traffic, seed.wrapping_add(run))));
        }
    }
    let values =
        parallel::map("rewrites against the number of blocks", &inputs, progress, |&(blocks, traffic, seed)| {
            run(Shape::with_fill(blocks, scale.slots_per_block, FILL)?, model::workload(traffic), seed)
        })?;
    let runs = scale.runs as usize;
    let point = |(&blocks, values): (&u32, &[[f64; 3]])| {
        let of = |column: usize| {
            std::array::from_fn(|workload| {
                let runs = &values[workload * runs..(workload + 1) * runs];
                mean(&runs.iter().map(|run| run[column]).collect::<Vec<_>>())
            })
        };
        Point { blocks, rewrites: of(0), bounds: of(1), greedy: of(2) }
    };
    let points = counts.iter().zip(values.chunks(WORKLOADS.len() * runs)).map(point).collect();
    Ok(Measurement { slots_per_block: scale.slots_per_block, points })
}

impl Measurement {
    pub(super) fn section(&self) -> StudySection {
        let rows = self.points.iter().map(|point| {
            let pairs = (0..2).flat_map(|n| [point.rewrites[n], point.bounds[n], point.greedy[n]]);
            [StudyCell::text(point.blocks.to_string())].into_iter().chain(pairs.map(StudyCell::from)).collect()
        });
        let columns = ["blocks", "uniform", "bound", "greedy", "90/10", "bound", "greedy"].map(str::to_owned).to_vec();
        let line = |n: usize| StudySeries {
            name: WORKLOADS[n].0.to_owned(),
            points: self.points.iter().map(|p| StudyPoint { x: f64::from(p.blocks), y: p.rewrites[n] }).collect(),
        };
        StudySection {
            title: "Are the offline algorithm's rewrites negligible?".to_owned(),
            text: vec![format!(
                "Fill {FILL}, {} slots per block; rewrites per write, starting from an empty drive. The bound is \
                 proved for the trace before the replay: no page is moved more often than the level of its death in \
                 the wheel allows. In the worst case it is about 8ρ ÷ ((1 − ρ)²·M) with M blocks: it halves when the \
                 number of blocks doubles, at any fill below 1. The number of blocks does not affect greedy.",
                self.slots_per_block
            )],
            tables: vec![StudyTable { caption: "Rewrites per write:".to_owned(), columns, rows: rows.collect() }],
            charts: vec![StudyChart {
                title: "Offline: rewrites per write".to_owned(),
                x_label: "blocks".to_owned(),
                x_is_bytes: false,
                y_label: "rewrites per write".to_owned(),
                series: vec![line(0), line(1)],
            }],
        }
    }
}
