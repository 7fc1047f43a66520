//! Lange, Naor, Yadgar (SIGMETRICS 2021, CACM 2023): placement of pages by when they die.
//!
//! The algorithms are those of [`crate::slots`], a pure model of slots and blocks, where a run of millions of
//! writes takes a second.
//!
//! - [`skew`]: write amplification against skew, beside the curves that SSD-iq's authors published;
//! - [`two_regions`]: the same of 2R in its FIFO form, on a simulated drive;
//! - [`fill`]: against the fill, under uniform writes;
//! - [`prediction`]: against the error of the predictions;
//! - [`blocks`]: the offline algorithm's rewrites against the number of blocks, and its bounds;
//! - [`guarantee`]: greedy and the online algorithm under writes and predictions made to hurt them.

mod blocks;
mod claims;
mod fill;
mod guarantee;
mod model;
mod prediction;
mod published;
mod skew;
mod two_regions;

use crate::slots::Shape;

use crate::{Findings, Progress, StudyError, StudyOptions};

/// How large the runs are.
#[derive(Clone, Copy, Debug)]
struct Scale {
    blocks: u32,
    slots_per_block: u32,
    /// Runs of each point, with other seeds.
    runs: u64,
    /// Limits of groups that NoDaP's search chooses among.
    limits: &'static [f64],
}

impl Scale {
    fn new(options: &StudyOptions) -> Self {
        if options.quick {
            Self { blocks: 512, slots_per_block: 64, runs: 3, limits: &[0.0625, 0.25, 0.5, 1.0, 2.0] }
        } else {
            let limits = &[0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0];
            Self { blocks: 2048, slots_per_block: 64, runs: 4, limits }
        }
    }

    fn shape(&self, fill: f64) -> Result<Shape, StudyError> {
        Ok(Shape::with_fill(self.blocks, self.slots_per_block, fill)?)
    }
}

/// The fill that the published curves against skew are of.
const FILL: f64 = 0.875;

/// Runs the study.
pub(crate) fn run(options: &StudyOptions, progress: Progress<'_>) -> Result<Findings, StudyError> {
    let scale = Scale::new(options);
    let skew = skew::measure(&scale, options.seed, progress)?;
    let two_regions = two_regions::measure(options, progress)?;
    let fill = fill::measure(&scale, options.seed, progress)?;
    let prediction = prediction::measure(&scale, options.seed, progress)?;
    let blocks = blocks::measure(&scale, options.seed, progress)?;
    let guarantee = guarantee::measure(progress)?;
    let claims = claims::claims(&skew, &two_regions, &fill, &prediction, &blocks, &guarantee);
    let sections = vec![
        skew.section(),
        two_regions.section(),
        fill.section(),
        prediction.section(),
        blocks.section(),
        guarantee.section(),
    ];
    let limits = vec![
        "The full paper was not available: the claims are from its abstracts. The offline and online algorithms and \
         their bounds are our own derivation and may differ from the paper's in constants; its traces and its \
         state-of-the-art scheme are not compared."
            .to_owned(),
        "SSD-iq's curve of 2R is of its FIFO form, whose initial limit and choice of region are not published: both \
         are ours, the latter as in the greedy form. How often its drive was overwritten before the measurement is \
         unknown."
            .to_owned(),
        "The traces are finite: a page that would die after the end counts as immortal, and costs an algorithm that \
         knows it nothing. Under strong skew, and where the groups span the whole trace, longer traces would cost \
         more."
            .to_owned(),
        "The model counts pages. The memory that the deaths of all pages take in a drive, and the source of \
         predictions, are out of scope."
            .to_owned(),
    ];
    Ok(Findings { claims, sections, limits })
}
