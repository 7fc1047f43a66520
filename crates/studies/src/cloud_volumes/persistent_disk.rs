//! The public map of a Persistent Disk: the line that ends it, and read latency below the line.

use flashwise_block::Nanos;
use flashwise_report::study::{StudyCell, StudyClaim, StudySection, StudyTable};
use flashwise_volume::{
    CostConfig, Counts, DelayConfig, Direction, LimitConfig, MediumConfig, PlainConfig, SimulatedVolume, Volume,
    VolumeConfig,
};

use super::load::{Reads, cell};
use super::maps::{CLIP_MS, TOLERANCE};
use crate::verdict::verdict;
use crate::{Progress, StudyError, StudyOptions, parallel};

/// A step of the map of a Persistent Disk (SSD, 2 TB): reads a second, and MB written a second.
const PD_READ_STEP: f64 = 603.06;
const PD_WRITE_STEP: f64 = 29.4826;
/// In the map (`scylladb/diskplorer` @33a5db3, gcp-pd-SSD-2TB.png), of 21 × 21 cells those met their rates whose steps
/// add up to 20, up to 19 write steps. One more did, at 8 write steps, with a median above 10 ms.
const PD_STEPS: u32 = 20;
/// The budget in the middle between what met its rates and what did not, at both ends of the line: 20.5 steps.
const PD_BUDGET_PER_S: u64 = 12_363;
const PD_COST_PER_MB: f64 = 20.455;

/// A Persistent Disk whose only limit is the fitted budget.
fn with_budget() -> Result<VolumeConfig, StudyError> {
    let mut budget = LimitConfig::new("budget", Direction::Joint, Counts::Cost, PD_BUDGET_PER_S);
    budget.size = PD_BUDGET_PER_S / 100;
    budget.read_cost = Some(CostConfig { per_request: 1.0, per_byte: 0.0 });
    budget.write_cost = Some(CostConfig { per_request: 0.0, per_byte: PD_COST_PER_MB / 1e6 });
    let mut config = Volume::preset("gcp-pd-balanced")?.config;
    config.limits = vec![budget];
    (config.instance.limits, config.logical_block_bytes) = (Vec::new(), 512);
    Ok(config)
}

/// The line of a Persistent Disk.
pub(super) fn pd_line(
    options: &StudyOptions,
    progress: Progress<'_>,
) -> Result<(StudyClaim, StudySection), StudyError> {
    let config = with_budget()?;
    let lasts = Nanos::millis(if options.quick { 1_200 } else { 6_000 });
    let steps: Vec<u32> = (0..PD_STEPS).collect();
    let measured = parallel::map("the line of a Persistent Disk", &steps, progress, |&step| {
        let mut highest = 0;
        for reads in 1..=PD_STEPS {
            let mut volume = SimulatedVolume::new(Volume::new(config.clone())?, options.seed)?;
            let load = (PD_READ_STEP * f64::from(reads), PD_WRITE_STEP * f64::from(step));
            let found = cell(&mut volume, load, lasts, options.seed)?;
            if found.percentile_ms(95.0) < CLIP_MS {
                highest = reads;
            }
        }
        Ok::<_, StudyError>(highest)
    })?;
    let agree = steps.iter().zip(&measured).filter(|&(&step, &highest)| PD_STEPS - step == highest).count();
    let near =
        steps.iter().zip(&measured).filter(|&(&step, &highest)| (PD_STEPS - step).abs_diff(highest) <= 1).count();
    let row = |(&step, &highest): (&u32, &u32)| {
        let reads = |steps: u32| format!("{:.0}", PD_READ_STEP * f64::from(steps));
        let written = format!("{:.0}", PD_WRITE_STEP * f64::from(step));
        [written, reads(PD_STEPS - step), reads(highest)].map(StudyCell::text).to_vec()
    };
    let claim = StudyClaim {
        claim: "A Persistent Disk (SSD, 2 TB): reads and writes share a budget, a straight line over 20 write rates."
            .to_owned(),
        measured: format!(
            "At {agree} of 20 write rates the highest step of reads is the published one, at {near} it is at most one \
             step (603 reads a second) off."
        ),
        verdict: verdict(agree == steps.len(), near * 10 >= steps.len() * 9),
        because: format!(
            "A read costs one of {PD_BUDGET_PER_S} tokens a second and a MB written {PD_COST_PER_MB}; both are \
             fitted to the two ends of the published line, in the middle between the last step that met its rates \
             and the first that did not; the rates between follow."
        ),
    };
    let section = StudySection {
        title: "The line of a Persistent Disk".to_owned(),
        text: vec!["Highest step of reads a second that a write rate leaves, 95 % of the reads below 5 ms.".to_owned()],
        tables: vec![StudyTable {
            caption: "Reads a second:".to_owned(),
            columns: ["written, MB/s", "published", "measured"].map(str::to_owned).to_vec(),
            rows: steps.iter().zip(&measured).map(row).collect(),
        }],
        charts: Vec::new(),
    };
    Ok((claim, section))
}

/// The map off the edge (`scylladb/diskplorer` @33a5db3, gcp-pd-SSD-2TB.svg): median and 95th percentile are the
/// colours of its cells, 1.5 % a step. A cell is at the edge where one step more of reads or writes leads beyond the
/// line. The lowest row, of 10 reads a second, is left out.
const PD_MAP: &str = include_str!("pd-map.csv");
/// From this step of reads on, the published 95th percentiles are alike: 51 of 65 cells are within 5 % of the median of
/// their neighbours. Below it, 11 of 103 are, and it is 0.5 to 18 ms.
const PD_REGULAR_STEP: u32 = 8;
/// Median and 99th percentile of what is not fixed of a read's latency, and the fixed part: fitted to the map.
const PD_READ: DelayConfig =
    DelayConfig { fixed_ns: 200_000, median_ns: 185_000, p99_ns: 413_000, percentiles: Vec::new() };
/// What machines of 8 to 15 virtual processors write at most to all their disks (Google Cloud documentation).
const PD_PATH_BYTES_PER_S: u64 = 800_000_000;

/// A cell of the map: steps of writes and reads, median and 95th percentile.
#[derive(Clone, Copy)]
struct Cell {
    write_step: u32,
    read_step: u32,
    p50_ms: f64,
    p95_ms: f64,
}

impl Cell {
    fn all() -> Vec<Self> {
        let cell = |line: &str| {
            let fields: Vec<f64> = line.split(',').map(|text| text.parse().unwrap_or(f64::NAN)).collect();
            let [write_step, read_step, p50_ms, p95_ms] = *fields else { return None };
            Some(Self { write_step: write_step as u32, read_step: read_step as u32, p50_ms, p95_ms })
        };
        PD_MAP.lines().skip(1).filter_map(cell).collect()
    }

    fn is_regular(&self) -> bool {
        self.read_step >= PD_REGULAR_STEP
    }
}

/// What is in the way of a read, varied.
const PD_VARIANTS: [(&str, u32, u64); 2] =
    [("its latency alone", 0, 0), ("and writes, on a path of 800 MB/s", 1, PD_PATH_BYTES_PER_S)];

/// How many cells agree, of how many: medians and 95th percentiles where the map is regular, medians elsewhere.
fn agreeing(cells: &[Cell], measured: &[Reads]) -> [(usize, usize); 3] {
    let near = |here: f64, there: f64| (here / there - 1.0).abs() <= TOLERANCE;
    let count = |is_regular: bool, agrees: &dyn Fn(&Cell, &Reads) -> bool| {
        let chosen: Vec<_> = cells.iter().zip(measured).filter(|(cell, _)| cell.is_regular() == is_regular).collect();
        (chosen.iter().filter(|(cell, reads)| agrees(cell, reads)).count(), chosen.len())
    };
    let median = |cell: &Cell, reads: &Reads| near(reads.percentile_ms(50.0), cell.p50_ms);
    let tail = |cell: &Cell, reads: &Reads| near(reads.percentile_ms(95.0), cell.p95_ms);
    [count(true, &median), count(true, &tail), count(false, &median)]
}

/// The map of a Persistent Disk below its line.
pub(super) fn pd_map(options: &StudyOptions, progress: Progress<'_>) -> Result<(StudyClaim, StudySection), StudyError> {
    let step = if options.quick { 3 } else { 1 };
    let (least_ms, reads) = if options.quick { (1_200, 4_000.0) } else { (6_000, 30_000.0) };
    let is_chosen = |cell: &Cell| cell.write_step.is_multiple_of(step) && cell.read_step % step == step - 1;
    let cells: Vec<Cell> = Cell::all().into_iter().filter(is_chosen).collect();
    let (mut rows, mut results) = (Vec::new(), Vec::new());
    for (name, parallel, bytes_per_s) in PD_VARIANTS {
        let mut config = with_budget()?;
        config.network.read = PD_READ;
        let plain = PlainConfig {
            parallel,
            read_bytes_per_s: bytes_per_s,
            write_bytes_per_s: bytes_per_s,
            ..PlainConfig::default()
        };
        config.medium = MediumConfig { plain: Some(plain), ..MediumConfig::default() };
        let measured = parallel::map("the map of a Persistent Disk", &cells, progress, |one| {
            let mut volume = SimulatedVolume::new(Volume::new(config.clone())?, options.seed)?;
            let load = (PD_READ_STEP * f64::from(one.read_step), PD_WRITE_STEP * f64::from(one.write_step));
            let lasts = Nanos::millis(least_ms.max((1_000.0 * reads / load.0) as u64));
            Ok::<_, StudyError>(cell(&mut volume, load, lasts, options.seed)?)
        })?;
        let found = agreeing(&cells, &measured);
        let shares = found.map(|(some, all)| StudyCell::text(format!("{some} of {all}")));
        rows.push(std::iter::once(StudyCell::text(name.to_owned())).chain(shares).collect());
        results.push(found);
    }
    let [medians, tails, low] = results[results.len() - 1];
    let share = |(some, all): (usize, usize)| some as f64 / all as f64;
    let claim = StudyClaim {
        claim: "A Persistent Disk below its line: a read takes 0.37 to 0.51 ms (median); the 95th percentile is 0.51 to \
                0.66 ms from 4,800 reads a second on, and up to 18 ms below. Within 5 % off the edge."
            .to_owned(),
        measured: format!(
            "From 4,800 reads a second on, medians of {} of {} cells are within 5 %, 95th percentiles of {} of {}; below, \
             medians of {} of {}.",
            medians.0, medians.1, tails.0, tails.1, low.0, low.1
        ),
        verdict: verdict(share(medians) > 0.95 && share(tails) > 0.95 && share(low) > 0.95, share(medians) > 0.95),
        because: "The published 95th percentiles scatter: from 4,800 reads a second on, 51 of 65 cells are within 5 % of \
                  the median of their neighbours, below 11 of 103. Below, about 200 reads a second are slow, whatever the \
                  rate: a median of 3.5 ms at 10 reads a second, and less than a twentieth of the reads from 4,200 a \
                  second on. The authors call it strange, no rule explains it, and it is not modelled."
            .to_owned(),
    };
    let section = StudySection {
        title: "The map of a Persistent Disk".to_owned(),
        text: vec![
            "A read's latency is fitted to the map, and the same at each rate. What writes add follows from their transfers: \
             a read waits for that of a write that is under way, at the 800 MB/s that Google documents for the machine."
                .to_owned(),
        ],
        tables: vec![StudyTable {
            caption: "Cells off the edge within 5 %:".to_owned(),
            columns: ["what delays a read", "medians, from 4,800/s", "95 %, from 4,800/s", "medians, below"]
                .map(str::to_owned)
                .to_vec(),
            rows,
        }],
        charts: Vec::new(),
    };
    Ok((claim, section))
}
