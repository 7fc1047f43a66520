//! Public maps of read latency over reads a second and bytes written a second.

use flashwise_block::Nanos;
use flashwise_report::study::{StudyCell, StudyClaim, StudySection, StudyTable};
use flashwise_volume::{CostConfig, Counts, Direction, LimitConfig, SimulatedVolume, Volume, VolumeConfig};

use super::load::{Reads, cell};
use crate::verdict::verdict;
use crate::{Progress, StudyError, StudyOptions, parallel};

/// The map of a gp3 of 16,000 IOPS and 1,000 MB/s (`scylladb/diskplorer` @33a5db3): median and 95th percentile read off
/// the colours of its plot, 1.5 % a step; 5 ms is "5 ms or more".
const GP3: &str = include_str!("gp3-map.csv");
/// Latency at which the map ends, ms.
const CLIP_MS: f64 = 5.0;
/// Accepted difference off the edge.
const TOLERANCE: f64 = 0.05;

/// A cell of the map.
#[derive(Clone, Copy)]
struct Cell {
    written_mb_per_s: f64,
    reads_per_s: f64,
    p50_ms: f64,
    p95_ms: f64,
}

impl Cell {
    fn all() -> Vec<Self> {
        let number = |text: Option<&str>| text.and_then(|text| text.parse().ok()).unwrap_or(f64::NAN);
        let cell = |line: &str| {
            let mut fields = line.split(',');
            let [written_mb_per_s, reads_per_s, p50_ms, p95_ms] = [(); 4].map(|()| number(fields.next()));
            Self { written_mb_per_s, reads_per_s, p50_ms, p95_ms }
        };
        GP3.lines().skip(1).map(cell).collect()
    }

    fn is_clipped(&self) -> bool {
        self.p50_ms >= CLIP_MS || self.p95_ms >= CLIP_MS
    }

    /// Whether a neighbour of the cell is beyond the limits: then it is at the edge.
    fn is_at_edge(&self, all: &[Self]) -> bool {
        let near = |other: &&Self| {
            (other.reads_per_s - self.reads_per_s).abs() < 801.0
                && (other.written_mb_per_s - self.written_mb_per_s).abs() < 51.0
        };
        let near: Vec<bool> = all.iter().filter(near).map(Self::is_clipped).collect();
        near.contains(&true) && near.contains(&false)
    }
}

/// gp3 with other figures for what its limit of IOPS counts.
fn gp3(rate_per_s: u64, unit_bytes: u64) -> Result<VolumeConfig, StudyError> {
    let mut config = Volume::preset("gp3")?.config;
    config.limits[0].rate_per_s = rate_per_s;
    config.limits[0].unit_bytes = unit_bytes;
    config.limits[0].size = rate_per_s / 100;
    config.limits[1].rate_per_s = 1000 << 20;
    Ok(config)
}

/// A variant of the volume beside the map.
struct Compared {
    /// Cells off the edge, and those of them whose median and 95th percentile are within 5 %.
    off_edge: (usize, usize),
    /// All cells, and those that are beyond the limits in both or in neither.
    all: (usize, usize),
}

fn compare(cells: &[Cell], measured: &[Reads], all: &[Cell]) -> Compared {
    let mut compared = Compared { off_edge: (0, 0), all: (0, 0) };
    for (cell, reads) in cells.iter().zip(measured) {
        let (p50, p95) = (reads.percentile_ms(50.0), reads.percentile_ms(95.0));
        let is_beyond = p95 >= CLIP_MS;
        compared.all.0 += 1;
        compared.all.1 += usize::from(is_beyond == cell.is_clipped());
        if !cell.is_at_edge(all) {
            let near = |here: f64, there: f64| (here / there - 1.0).abs() <= TOLERANCE;
            let agrees = if cell.is_clipped() { is_beyond } else { near(p50, cell.p50_ms) && near(p95, cell.p95_ms) };
            compared.off_edge.0 += 1;
            compared.off_edge.1 += usize::from(agrees);
        }
    }
    compared
}

/// What the limit of IOPS counts, varied.
const VARIANTS: [(&str, u64, u64); 3] = [
    ("as documented: units of 256 KiB, 16,000 a second", 16_000, 256 << 10),
    ("units of 1 MiB", 16_000, 1 << 20),
    ("units of 1 MiB, and 0.8 % more than provisioned", 16_128, 1 << 20),
];

/// The map of gp3.
pub(super) fn gp3_map(
    options: &StudyOptions,
    progress: Progress<'_>,
) -> Result<(StudyClaim, StudySection), StudyError> {
    let all = Cell::all();
    let step = if options.quick { 3 } else { 1 };
    let (least_ms, reads) = if options.quick { (1_200, 4_000.0) } else { (6_000, 30_000.0) };
    let is_chosen = |index: &usize| index % 20 % step == step - 1 && (index / 20).is_multiple_of(step);
    let cells: Vec<Cell> = (0..all.len()).filter(is_chosen).map(|index| all[index]).collect();
    let mut rows = Vec::new();
    let mut results = Vec::new();
    for (name, rate, unit) in VARIANTS {
        let config = gp3(rate, unit)?;
        let measured = parallel::map("the map of gp3", &cells, progress, |one| {
            let mut volume = SimulatedVolume::new(Volume::new(config.clone())?, options.seed)?;
            // Enough reads that the 95th percentile is known to a few per cent.
            let lasts = Nanos::millis(least_ms.max((1_000.0 * reads / one.reads_per_s) as u64));
            Ok::<_, StudyError>(cell(&mut volume, (one.reads_per_s, one.written_mb_per_s), lasts, options.seed)?)
        })?;
        let found = compare(&cells, &measured, &all);
        let share = |(all, some): (usize, usize)| format!("{some} of {all}");
        rows.push([name.to_owned(), share(found.off_edge), share(found.all)].map(StudyCell::text).to_vec());
        results.push(found);
    }
    let share = |found: &Compared| found.off_edge.1 as f64 / found.off_edge.0 as f64;
    let last = &results[results.len() - 1];
    let claim = StudyClaim {
        claim: "gp3, 16,000 IOPS and 1,000 MB/s: a read takes 0.44 ms (median) and 0.71 ms (95 %) to 14,400 reads a \
                second, whatever is written; within 5 % off the edge."
            .to_owned(),
        measured: format!(
            "With units of 1 MiB and 0.8 % more than provisioned, {} of {} cells off the edge are within 5 %; as \
             documented, {} of {}.",
            last.off_edge.1, last.off_edge.0, results[0].off_edge.1, results[0].off_edge.0
        ),
        verdict: verdict(share(&results[0]) > 0.99, share(last) > 0.99),
        because:
            "Documented are units of at most 256 KiB, of which 1,000 MB/s are 3,815 a second: too many for the map, \
                  whose edge at 1,000 MB/s is above 14,400 reads. Sequential writes of 128 KiB are counted together \
                  beyond 256 KiB; the edge allows about 1 MiB."
                .to_owned(),
    };
    let section = StudySection {
        title: "The map of gp3".to_owned(),
        text: vec![
            "Reads of 512 bytes arrive as a Poisson process, sequential writes of 128 KiB at a steady rate, as diskplorer \
             measured it. Cells at the edge, where one step of the map leads beyond the limits, are counted in the last \
             column only: there, beyond the limits is what has a 95th percentile of 5 ms or more."
                .to_owned(),
            "What follows from the volume's limits is the edge; latencies off it are those of the network, which the preset \
             has from this map."
                .to_owned(),
        ],
        tables: vec![StudyTable {
            caption: "Cells that agree with the map:".to_owned(),
            columns: ["limit of IOPS", "off the edge, within 5 %", "all, beyond or not"].map(str::to_owned).to_vec(),
            rows,
        }],
        charts: Vec::new(),
    };
    Ok((claim, section))
}

/// A step of the map of a Persistent Disk (SSD, 2 TB): reads a second, and MB written a second.
const PD_READ_STEP: f64 = 603.06;
const PD_WRITE_STEP: f64 = 29.4826;
/// In the map (`scylladb/diskplorer` @33a5db3, gcp-pd-SSD-2TB.png), of 21 × 21 cells those met their rates whose steps
/// add up to 20, up to 19 write steps. One more did, at 8 write steps, with a median above 10 ms.
const PD_STEPS: u32 = 20;
/// The budget in the middle between what met its rates and what did not, at both ends of the line: 20.5 steps.
const PD_BUDGET_PER_S: u64 = 12_363;
const PD_COST_PER_MB: f64 = 20.455;

/// The line of a Persistent Disk.
pub(super) fn pd_line(
    options: &StudyOptions,
    progress: Progress<'_>,
) -> Result<(StudyClaim, StudySection), StudyError> {
    let mut budget = LimitConfig::new("budget", Direction::Joint, Counts::Cost, PD_BUDGET_PER_S);
    budget.size = PD_BUDGET_PER_S / 100;
    budget.read_cost = Some(CostConfig { per_request: 1.0, per_byte: 0.0 });
    budget.write_cost = Some(CostConfig { per_request: 0.0, per_byte: PD_COST_PER_MB / 1e6 });
    let mut config = Volume::preset("gcp-pd-balanced")?.config;
    config.limits = vec![budget];
    (config.instance.limits, config.logical_block_bytes) = (Vec::new(), 512);
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
             and the first that did not; the rates between follow. Latencies below the line are not \
             compared: their colours are beside those of failed measurements in the published plot."
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
