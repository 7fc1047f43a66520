//! What one read, one write and one batch take on a drive: what a pool waits for.

use flashwise_block::{BlockDevice, ByteSize, Operation, Request};
use flashwise_report::study::{Measured, StudyCell, StudySection, StudyTable};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::drives::Drive;
use super::matrix::{ACE, CLASSIC, Matrix};
use super::run::{Compared, PAGE, State, drive};
use crate::statistics::mean;
use crate::{Progress, StudyError, StudyOptions, parallel};

/// Requests, or batches, whose mean is one value.
const REQUESTS: u64 = 2_000;
/// Drives that are measured for one interval.
const SEEDS: u64 = 5;
/// Pages that they go to: 256 MiB.
const SPAN: u64 = 1 << 16;

/// Times of a drive, µs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waits {
    pub(super) read: Measured,
    pub(super) write: Measured,
    /// As many writes as a batch has, together.
    pub(super) batch: Measured,
}

impl Waits {
    pub(super) fn write_in_reads(&self) -> f64 {
        self.write.value / self.read.value
    }

    pub(super) fn batch_in_writes(&self) -> f64 {
        self.batch.value / self.write.value
    }
}

/// Mean time of random requests, so many together, each lot awaited before the next.
fn wait_for(ssd: &mut SimulatedSsd, operation: Operation, together: usize, seed: u64) -> Result<f64, StudyError> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let start = ssd.now();
    for _ in 0..REQUESTS {
        for _ in 0..together {
            let place = ByteSize(random.random_range(0..SPAN) * PAGE);
            ssd.submit(match operation {
                Operation::Write => Request::write(place, ByteSize(PAGE)),
                _ => Request::read(place, ByteSize(PAGE)),
            })?;
        }
        while let Some(completion) = ssd.wait()? {
            completion.result?;
        }
    }
    Ok(ssd.now().since(start).0 as f64 / 1e3 / REQUESTS as f64)
}

/// Measures a drive.
pub(super) fn waits(config: &DeviceConfig, batch: usize, seed: u64) -> Result<Waits, StudyError> {
    let of = |operation, together| {
        let once = |n: u64| {
            let seed = seed.wrapping_add(n);
            wait_for(&mut drive(config, State::Written, SPAN as usize, seed)?, operation, together, seed)
        };
        (0..SEEDS).map(once).collect::<Result<Vec<f64>, StudyError>>().map(|values| mean(&values))
    };
    Ok(Waits { read: of(Operation::Read, 1)?, write: of(Operation::Write, 1)?, batch: of(Operation::Write, batch)? })
}

/// Measures the text's drives.
pub(super) fn measure(
    drives: &[Drive],
    options: &StudyOptions,
    progress: Progress<'_>,
) -> Result<Vec<Waits>, StudyError> {
    parallel::map("one request at a time", drives, progress, |drive| waits(&drive.config, drive.batch, options.seed))
}

/// A read and a page written in a run of WIS with LRU, µs: what the pool waited, classic and with ACE.
fn in_a_run(cell: &Compared, method: usize) -> [Measured; 2] {
    let read = cell.mean(method, |run| 1e6 * run.read_seconds / run.misses);
    [read, cell.mean(method, |run| 1e6 * run.write_seconds / run.pages_written)]
}

/// A read of WIS with LRU on a drive, µs, classic and with ACE.
pub(super) fn reads_in_a_run(matrix: &Matrix, drive: usize) -> [f64; 2] {
    [CLASSIC, ACE].map(|method| in_a_run(matrix.cell(drive, WIS_PLACE, 0), method)[0].value)
}

/// The place of WIS among the workloads.
const WIS_PLACE: usize = 1;

/// The times, beside what the published row promises.
pub(super) fn section(drives: &[Drive], waits: &[Waits], matrix: &Matrix) -> StudySection {
    let both = || drives.iter().zip(waits);
    let times = both().map(|(drive, waits)| {
        let batch = StudyCell::text(drive.batch.to_string());
        vec![StudyCell::text(drive.name), waits.read.into(), waits.write.into(), batch, waits.batch.into()]
    });
    let prices = both().map(|(drive, waits)| {
        let (promised, alpha) = (drive.published_latency_ratio(), drive.published.at_4k.asymmetry);
        let ratios = [alpha, promised, waits.write_in_reads(), waits.batch_in_writes()];
        let ratios = ratios.map(|ratio| StudyCell::text(format!("{ratio:.2}")));
        std::iter::once(StudyCell::text(drive.name)).chain(ratios).collect()
    });
    let runs = drives.iter().enumerate().map(|(place, drive)| {
        let cells = [CLASSIC, ACE].map(|method| in_a_run(matrix.cell(place, WIS_PLACE, 0), method));
        let cells = cells.into_iter().flatten().map(StudyCell::from);
        std::iter::once(StudyCell::text(drive.name)).chain(cells).collect()
    });
    let table = |caption: &str, columns: [&str; 5], rows: Vec<Vec<StudyCell>>| StudyTable {
        caption: caption.to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
    };
    StudySection {
        title: "Cost of a synchronous write".to_owned(),
        text: vec![
            "The paper argues that one write costs α reads, and that k_w writes cost no more than one. But its α is \
             the ratio of saturated rates, and a classic pool has one request in flight. A drive that serves k \
             requests concurrently at a given rate takes k ÷ rate for each, so one write costs α·k_w÷k_r reads, which \
             equals α only if k_w = k_r."
                .to_owned(),
            "If a rate limits writes, the n-th write of a batch waits for those before it: k_w writes take nearly the \
             time of two."
                .to_owned(),
            "During a run a read takes longer than alone if it meets a die that is programming; with ACE this is more \
             frequent, because the same writes arrive in less time."
                .to_owned(),
        ],
        tables: vec![
            table(
                "Random 4 KiB pages, one at a time, and n_w writes together, µs:",
                ["", "read", "write", "n_w", "batch"],
                times.collect(),
            ),
            table(
                "One write in reads, as published (α; α·k_w÷k_r) and as measured; one batch in writes:",
                ["", "α", "α·k_w÷k_r", "write ÷ read", "batch ÷ write"],
                prices.collect(),
            ),
            table(
                "In a run of WIS with LRU, µs per page, classic and with ACE:",
                ["", "read", "written", "read, ACE", "written, ACE"],
                runs.collect(),
            ),
        ],
        charts: Vec::new(),
    }
}
