//! The guarantee: greedy and the online algorithm under an adversary, with predictions that lie.

use crate::slots::{Counts, Greedy, NEVER, Online, Shape, Wheel, play_adversary};
use flashwise_report::study::{StudyCell, StudySection, StudyTable};

use crate::{Progress, StudyError, parallel};

const BLOCKS: u32 = 64;
const SLOTS: u32 = 32;
const WRITES: u32 = 200_000;
const FILLS: [f64; 3] = [0.7, 0.8, 0.9];

/// What is told of the deaths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    /// No predictions: greedy.
    Greedy,
    /// Every page is never written again.
    Never,
    /// Every page is written again at once.
    Now,
    /// Any life from 1 to 32,768, so that every block gets pages of all kinds.
    Scattered,
}

const LIES: [(Lie, &str); 4] =
    [(Lie::Greedy, "greedy"), (Lie::Never, "\"never\""), (Lie::Now, "\"now\""), (Lie::Scattered, "scattered")];

/// One run.
pub(super) struct Point {
    pub(super) fill: f64,
    lie: usize,
    pub(super) rewrites: u64,
    /// Greedy's guarantee, or that of the online algorithm.
    pub(super) bound: u64,
    writes: u64,
    refused: u64,
}

impl Point {
    pub(super) fn is_greedy(&self) -> bool {
        LIES[self.lie].0 == Lie::Greedy
    }
}

pub(super) struct Measurement {
    pub(super) points: Vec<Point>,
}

fn tell(lie: Lie, time: u32, page: u32) -> u32 {
    match lie {
        Lie::Greedy | Lie::Never => NEVER,
        Lie::Now => time + 1,
        Lie::Scattered => {
            let mixed = (u64::from(time) << 32 | u64::from(page)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            time + (1 << (mixed >> 59 & 15))
        }
    }
}

fn run(fill: f64, lie: usize) -> Result<Point, StudyError> {
    let shape = Shape::with_fill(BLOCKS, SLOTS, fill)?;
    let point = |counts: Counts, bound: u64, refused| Point {
        fill,
        lie,
        rewrites: counts.rewrites,
        bound,
        writes: counts.writes,
        refused,
    };
    if LIES[lie].0 == Lie::Greedy {
        let counts = play_adversary(shape, &mut Greedy::new(shape), WRITES).1.counts();
        return Ok(point(counts, shape.greedy_guarantee(counts.writes), 0));
    }
    // As many open blocks as it takes to hurt it.
    let wheel = Wheel { epoch: 8, fan_out: 4, levels: 3 };
    let mut online = Online::with_wheel(shape, wheel, |time, page| tell(LIES[lie].0, time, page));
    let counts = play_adversary(shape, &mut online, WRITES).1.counts();
    Ok(point(counts, shape.online_guarantee(counts.writes), online.refused()))
}

pub(super) fn measure(progress: Progress<'_>) -> Result<Measurement, StudyError> {
    let inputs: Vec<(f64, usize)> = FILLS.iter().flat_map(|&fill| (0..LIES.len()).map(move |n| (fill, n))).collect();
    let points = parallel::map("lies and an adversary", &inputs, progress, |&(fill, lie)| run(fill, lie))?;
    Ok(Measurement { points })
}

impl Measurement {
    pub(super) fn section(&self) -> StudySection {
        let columns =
            ["fill", "predictions", "rewrites per write", "guaranteed", "steps refused"].map(str::to_owned).to_vec();
        let rows = self.points.iter().map(|point| {
            let per_write = |n: u64| format!("{:.3}", n as f64 / point.writes as f64);
            [
                point.fill.to_string(),
                LIES[point.lie].1.to_owned(),
                per_write(point.rewrites),
                per_write(point.bound),
                point.refused.to_string(),
            ]
            .map(StudyCell::text)
            .to_vec()
        });
        StudySection {
            title: "Worst writes with worst predictions".to_owned(),
            text: vec![format!(
                "{BLOCKS} blocks of {SLOTS} slots; an adversary writes a page of the fullest block each time, \
                 {WRITES} times. Nothing is random. A step is refused if it would exceed the guarantee; the page then \
                 goes to any open block. The guarantee is greedy's worst case, not greedy's result on the same \
                 writes: wrong predictions can cost up to that."
            )],
            tables: vec![StudyTable { caption: "Rewrites:".to_owned(), columns, rows: rows.collect() }],
            charts: Vec::new(),
        }
    }
}
