//! ACE: buffer pools that write as many pages at once as the drive does, by Papon and Athanassoulis.
//!
//! ```text
//!   workload ─▶ accesses ─▶ pool: classic, ACE, ACE + prefetch ─▶ drive in virtual time ─▶ time, misses, pages written
//!                 ▲                                                  ▲
//!        four of the text, TPC-C on SQLite           the text's, as presets; one that is built as the text argues
//! ```
//!
//! - [`published`]: the numbers of the texts; [`claims`]: beside them what is measured, and why it differs;
//! - [`matrix`]: every drive, workload and policy; [`implied`] and [`processor`] read the same runs;
//! - [`one_request`]: what one write costs, of which everything else follows;
//! - [`misses`], [`scale`], [`pool_size`], [`alpha`], [`batch_size`], [`write_share`], [`prefetchers`], [`wear`]: one
//!   thing varied at a time;
//! - [`tpcc`]: the five transactions;
//! - [`run`], [`drives`], [`workload`], [`sweep`]: what all of them use.

mod alpha;
mod batch_size;
mod claims;
mod drives;
mod implied;
mod matrix;
mod misses;
mod one_request;
mod pool_size;
mod prefetchers;
mod processor;
mod published;
mod run;
mod scale;
mod sweep;
mod tpcc;
mod wear;
mod workload;
mod write_share;

use flashwise_report::study::Measured;
use flashwise_ssd::DeviceConfig;

use crate::statistics::Repetition;
use crate::{Findings, Progress, StudyError, StudyOptions};
use drives::{Drive, RAW};
use run::{Compared, Setting};
use workload::{Conditions, WORKLOADS, Workload};

/// What a workload of the text asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AccessPattern {
    pub(crate) name: &'static str,
    /// Share of the accesses that write.
    pub(crate) writes: f64,
    /// Share of the accesses that go to the first pages, and the share of the pages that these are.
    pub(crate) hot_accesses: f64,
    pub(crate) hot_pages: f64,
}

/// MS, WIS, RIS and MU.
pub(crate) fn patterns() -> [AccessPattern; 4] {
    WORKLOADS.map(|workload| {
        let Workload { name, writes, hot_accesses, hot_pages, .. } = workload;
        AccessPattern { name, writes, hot_accesses, hot_pages }
    })
}

/// What the text's scheme gains over a classic pool with PostgreSQL's policy, in virtual time: accesses a second more,
/// per cent.
pub(crate) fn gain_in_place(
    pattern: &AccessPattern,
    preset: &str,
    batch: usize,
    options: &StudyOptions,
) -> Result<Measured, StudyError> {
    let drive = DeviceConfig::preset(preset)?;
    let workload = WORKLOADS.into_iter().find(|workload| workload.name == pattern.name).ok_or(StudyError::Lost)?;
    let [conditions, ..] = conditions(options);
    let compared = Setting::of(conditions, workload, "clock-sweep", &drive, batch).compare(options.seed)?;
    let percent = |times: f64| 100.0 * (times - 1.0);
    let Measured { value, low, high } = compared.speedup(matrix::ACE);
    Ok(Measured { value: percent(value), low: percent(low), high: percent(high) })
}

/// All that was measured.
struct Measurements {
    drives: Vec<Drive>,
    waits: Vec<one_request::Waits>,
    matrix: matrix::Matrix,
    misses: misses::Misses,
    implied: implied::Implied,
    at_scale: Vec<Compared>,
    pool_sizes: pool_size::PoolSizes,
    alphas: alpha::Alphas,
    batch_sizes: batch_size::BatchSizes,
    write_shares: write_share::WriteShares,
    prefetchers: prefetchers::Prefetchers,
    wear: wear::Wear,
    tpcc: tpcc::Tpcc,
}

/// The scale of most runs; that of [`scale`]; that of [`wear`], whose drive is as large as the file and needs blocks of
/// some pages; that of [`misses`], which needs no drive.
fn conditions(options: &StudyOptions) -> [Conditions; 4] {
    let known = |runs_min, runs_max| Repetition { runs_min, runs_max, error_max: 0.0025 };
    let divisors = if options.quick { [128, 64, 16, 8] } else { [16, 1, 4, 1] };
    let repetition = if options.quick { known(3, 3) } else { known(3, 10) };
    divisors.map(|divisor| Conditions { divisor, repetition })
}

/// Runs the study.
pub(crate) fn run(options: &StudyOptions, progress: Progress<'_>) -> Result<Findings, StudyError> {
    let [conditions, own @ ..] = conditions(options);
    let drives = drives::text()?;
    let raw = &drives[RAW];
    let matrix = matrix::measure(&drives, &conditions, options, progress)?;
    let measurements = Measurements {
        waits: one_request::measure(&drives, options, progress)?,
        misses: misses::measure(&own[2], options, progress)?,
        implied: implied::explain(&matrix, &conditions),
        at_scale: scale::measure(raw, &own[0], options, progress)?,
        pool_sizes: pool_size::measure(raw, &conditions, options, progress)?,
        alphas: alpha::measure(raw, &conditions, options, progress)?,
        batch_sizes: batch_size::measure(&drives, &conditions, options, progress)?,
        write_shares: write_share::measure(&drives, &conditions, options, progress)?,
        prefetchers: prefetchers::measure(raw, &conditions, options, progress)?,
        wear: wear::measure(raw, &own[1], options, progress)?,
        tpcc: tpcc::measure(raw, options, progress)?,
        matrix,
        drives,
    };
    Ok(findings(&measurements, &conditions, &own))
}

fn findings(m: &Measurements, conditions: &Conditions, own: &[Conditions; 3]) -> Findings {
    let raw = &m.drives[RAW];
    let sections = vec![
        matrix::section(&m.drives, &m.matrix, conditions),
        one_request::section(&m.drives, &m.waits, &m.matrix),
        implied::section(&m.implied),
        m.misses.section(&own[2]),
        m.pool_sizes.section(raw, conditions),
        m.alphas.section(raw, conditions),
        m.batch_sizes.section(conditions),
        m.write_shares.section(conditions),
        m.prefetchers.section(raw, conditions),
        m.wear.section(raw, &own[1]),
        processor::section(&m.matrix),
        scale::section(&own[0], &m.at_scale, &m.matrix, conditions),
        m.tpcc.section(raw),
    ];
    let limits = vec![
        "The presets are fitted to the published α, k_r and k_w; all other behaviour of the drives is the simulator's."
            .to_owned(),
        "The pool has one thread and waits for each read and each batch. The paper's PostgreSQL has a background \
         writer, a log, checkpoints and many clients, so its numbers and these can differ in both directions."
            .to_owned(),
        "The curves of the slides exist as images only; the comparison uses their text, the abstract and the data of \
         two figures. None of these gives the time of a single request."
            .to_owned(),
        "The prefetchers are our own: the paper says that there are two, but not how they decide.".to_owned(),
    ];
    Findings { claims: claims::all(m), sections, limits }
}
