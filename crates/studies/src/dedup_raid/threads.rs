//! A database's accesses of 8 KiB: threads against operations a second, for each organisation.
//!
//! **Writes alone** are slow to measure. A drive collects garbage a superblock at a time and answers nothing meanwhile;
//! all drives of an array are written at one pace and collect at the same time, and whoever waits for one of them waits
//! with all threads. So the rate swings between nothing and three times its mean every one to two seconds, and it
//! starts with free space that is used up only after some ten thousand writes of each drive. What is measured therefore
//! starts after [`SETTLING`] writes, and a batch at 256 threads is longer than such a swing.

use flashwise_report::study::{Measured, StudyCell, StudyChart, StudyPoint, StudySection, StudySeries, StudyTable};

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use super::drives::{CONTROLLER_IOPS, Generation, ORGANISATIONS, Organisation, State};
use crate::bonnie::database::{Load, database};
use crate::statistics::rate;
use crate::{Progress, StudyError, StudyOptions, parallel};

/// Threads of the text's horizontal axis.
pub(super) const THREADS: [u32; 5] = [1, 4, 16, 64, 256];

/// Share of reads of the mixed test: the text gives none; that of Bonnie++'s seeks is 0.9.
const MIXED_READ_SHARE: f64 = 0.9;

/// Accesses that an array becomes steady in before writes alone are measured, at [`SETTLING_THREADS`].
const SETTLING: u64 = 100_000;
const SETTLING_THREADS: u32 = 64;

/// Batches of a measurement.
const BATCHES: u64 = 10;

/// Accesses of a batch with so many threads.
fn batch(is_write_only: bool, threads: u32) -> u64 {
    match (is_write_only, threads) {
        (false, _) => 2_000,
        (true, ..=4) => 4_000,
        (true, ..=64) => 10_000,
        // What the claims are about.
        (true, _) => 25_000,
    }
}

/// Operations a second of one array under one mix.
pub(super) struct Line {
    pub(super) generation: Generation,
    pub(super) organisation: Organisation,
    /// Whether the controller has its limit.
    pub(super) is_limited: bool,
    pub(super) is_write_only: bool,
    /// By [`THREADS`].
    pub(super) iops: Vec<Measured>,
}

impl Line {
    pub(super) fn name(&self) -> String {
        let limit = if self.is_limited { "" } else { ", controller without limit" };
        format!("{}, {}{limit}", self.generation.name(), self.organisation.name())
    }

    /// At most threads.
    pub(super) fn saturated(&self) -> f64 {
        self.iops.last().map_or(0.0, |iops| iops.value)
    }

    /// Whether that is known to a tenth.
    pub(super) fn is_sharp(&self) -> bool {
        self.iops.last().is_some_and(|iops| iops.high - iops.low <= 0.2 * iops.value)
    }
}

/// Measures all.
pub(super) fn measure(options: &StudyOptions, progress: Progress<'_>) -> Result<Vec<Line>, StudyError> {
    let (seeds, scale) = if options.quick { (2, 1) } else { (5, 2) };
    let mut cells = Vec::new();
    for is_write_only in [false, true] {
        cells.push((Generation::Slc, ORGANISATIONS[0], true, is_write_only));
        cells.extend(ORGANISATIONS.map(|organisation| (Generation::Mlc, organisation, true, is_write_only)));
        cells.push((Generation::MlcTenth, ORGANISATIONS[0], true, is_write_only));
        // Writes alone do not come near the limit.
        let free = if is_write_only { &[] } else { &ORGANISATIONS[..3] };
        cells.extend(free.iter().map(|&organisation| (Generation::Mlc, organisation, false, is_write_only)));
    }
    let inputs: Vec<_> = cells.iter().flat_map(|&cell| (0..seeds).map(move |n| (cell, n))).collect();
    let runs = parallel::map("threads", &inputs, progress, |&((generation, organisation, limited, write_only), n)| {
        let seed = options.seed.wrapping_add(n);
        let limit = if limited { CONTROLLER_IOPS } else { 0 };
        // See `sequential` for why this one need not be overwritten.
        let state = if generation == Generation::MlcTenth { State::Filled } else { State::Steady };
        let mut array = generation.array(organisation, state, limit, seed)?;
        let read_share = if write_only { 0.0 } else { MIXED_READ_SHARE };
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut load = |threads, warm_up, batches, batch| {
            let load = Load { threads, read_share, access_bytes: 8192, warm_up, batches, batch };
            database(&mut array, &load, &mut random).map_err(StudyError::from)
        };
        if write_only {
            load(SETTLING_THREADS, 0, 1, SETTLING)?;
        }
        let measured = THREADS.iter().map(|&threads| {
            let batch = scale * batch(write_only, threads);
            load(threads, batch, BATCHES, batch)
        });
        measured.collect::<Result<Vec<_>, StudyError>>()
    })?;
    let line = |(&(generation, organisation, is_limited, is_write_only), runs): (&(_, _, _, _), &[Vec<Vec<f64>>])| {
        let at = |n: usize| {
            let batches_s: Vec<f64> = runs.iter().flat_map(|run| &run[n]).copied().collect();
            rate(&batches_s, (scale * batch(is_write_only, THREADS[n])) as f64)
        };
        let iops = (0..THREADS.len()).map(at).collect();
        Line { generation, organisation, is_limited, is_write_only, iops }
    };
    Ok(cells.iter().zip(runs.chunks(seeds as usize)).map(line).collect())
}

/// Tables and pictures of all.
pub(super) fn section(lines: &[Line]) -> StudySection {
    let of = |is_write_only: bool| lines.iter().filter(move |line| line.is_write_only == is_write_only);
    let table = |is_write_only: bool| StudyTable {
        caption: format!("Operations a second, {}:", mix(is_write_only)),
        columns: std::iter::once("threads".to_owned()).chain(THREADS.map(|n| n.to_string())).collect(),
        rows: of(is_write_only)
            .map(|line| {
                std::iter::once(StudyCell::text(line.name()))
                    .chain(line.iops.iter().copied().map(StudyCell::from))
                    .collect()
            })
            .collect(),
    };
    let chart = |is_write_only: bool| {
        let series =
            of(is_write_only).filter(|line| line.generation == Generation::Mlc && line.is_limited).map(|line| {
                let points =
                    THREADS.iter().zip(&line.iops).map(|(&threads, &y)| StudyPoint { x: f64::from(threads), y });
                StudySeries { name: line.organisation.name(), points: points.collect() }
            });
        StudyChart {
            title: format!("Operations a second by threads, {}, MLC", mix(is_write_only)),
            x_label: "threads".to_owned(),
            x_is_bytes: false,
            y_label: "operations a second".to_owned(),
            series: series.collect(),
        }
    };
    StudySection {
        title: "A database".to_owned(),
        text: vec![
            "8 KiB at random offsets of the whole array, on drives overwritten at random before; mixed is 90 % reads, \
             as in Bonnie++'s seeks. The thread counts follow one another on the same array."
                .to_owned(),
            format!(
                "Each figure is of {BATCHES} successive batches per seed, and the interval is over the batches. \
                 Write-only is measured after {SETTLING} of them: until then an array uses up free space, at up to \
                 twice its later rate. All drives are written at the same rate and run garbage collection at the same \
                 time, one superblock per burst; every one to two seconds the array completes nothing for a while."
            ),
        ],
        tables: vec![table(false), table(true)],
        charts: vec![chart(false), chart(true)],
    }
}

fn mix(is_write_only: bool) -> &'static str {
    if is_write_only { "write-only" } else { "mixed" }
}
