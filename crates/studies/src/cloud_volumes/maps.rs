//! The public map of gp3: read latency over reads a second and bytes written a second.

use flashwise_block::Nanos;
use flashwise_report::study::{StudyCell, StudyClaim, StudySection, StudyTable};
use flashwise_volume::{SimulatedVolume, Volume, VolumeConfig};

use super::load::{Reads, cell};
use crate::verdict::verdict;
use crate::{Progress, StudyError, StudyOptions, parallel};

/// The map of a gp3 of 16,000 IOPS and 1,000 MB/s (`scylladb/diskplorer` @33a5db3): median and 95th percentile read off
/// the colours of its plot, 1.5 % a step; 5 ms is "5 ms or more".
const GP3: &str = include_str!("gp3-map.csv");
/// Latency at which the map ends, ms.
pub(super) const CLIP_MS: f64 = 5.0;
/// Accepted difference off the edge.
pub(super) const TOLERANCE: f64 = 0.05;

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
