//! Write amplification: a drive that its file fills, in the steady state of its garbage collection.

use flashwise_report::study::{StudyCell, StudySection, StudyTable};

use super::drives::{Drive, filled_by};
use super::matrix::{ACE, CLASSIC, Range, WITH_PREFETCH};
use super::run::{Compared, POLICIES, Setting, State};
use super::sweep;
use super::workload::{Conditions, MS};
use crate::{Progress, StudyError, StudyOptions};

/// The comparisons, by policy.
pub(super) struct Wear {
    compared: Vec<Compared>,
    /// Flash beyond the file, a share of it.
    spare: f64,
    block_pages: u32,
}

/// Runs them.
pub(super) fn measure(
    drive: &Drive,
    conditions: &Conditions,
    options: &StudyOptions,
    progress: Progress<'_>,
) -> Result<Wear, StudyError> {
    let small = filled_by(&drive.config, conditions.pages())?;
    let setting = |&(_, policy): &(&str, &'static str)| Setting {
        state: State::Steady,
        ..Setting::of(*conditions, MS, policy, &small, drive.batch)
    };
    let settings: Vec<_> = POLICIES.iter().map(setting).collect();
    let compared = sweep::compare("write amplification", &settings, options, progress)?;
    let spare = small.raw_bytes() as f64 / small.capacity_bytes as f64 - 1.0;
    Ok(Wear { compared, spare, block_pages: small.flash.pages_per_block })
}

fn flash_more(compared: &Compared, method: usize) -> flashwise_report::study::Measured {
    compared.against_first(method, |run, first| {
        100.0 * (run.amplification * run.pages_written / (first.amplification * first.pages_written) - 1.0)
    })
}

impl Wear {
    /// Write amplification of the classic pools and of ACE.
    pub(super) fn amplifications(&self) -> [Range; 2] {
        [CLASSIC, ACE].map(|method| {
            Range::of(self.compared.iter().map(|compared| compared.mean(method, |run| run.amplification)))
        })
    }

    /// Flash bytes that ACE programs beyond the classic pools, per cent.
    pub(super) fn flash_more(&self) -> Range {
        Range::of(self.compared.iter().map(|compared| flash_more(compared, ACE)))
    }

    /// The table.
    pub(super) fn section(&self, drive: &Drive, conditions: &Conditions) -> StudySection {
        let mut rows = Vec::new();
        for ((policy, _), compared) in POLICIES.iter().zip(&self.compared) {
            rows.push(vec![
                StudyCell::text(*policy),
                compared.mean(CLASSIC, |run| run.amplification).into(),
                compared.mean(ACE, |run| run.amplification).into(),
                flash_more(compared, ACE).into(),
                flash_more(compared, WITH_PREFETCH).into(),
                compared.saved(ACE).into(),
            ]);
        }
        StudySection {
            title: "Effect on a full drive".to_owned(),
            text: vec![format!(
                "On a terabyte drive that holds one file garbage collection never runs, and write amplification is 1 \
                 with any pool. Here the {} has the same channels and dies but so little flash that the file fills \
                 it, in the steady state of random overwrites, with spare space of {:.0} % of the file's size and \
                 blocks of {} pages. MS. {}.",
                drive.name,
                100.0 * self.spare,
                self.block_pages,
                conditions.words()
            )],
            tables: vec![StudyTable {
                caption: "Flash bytes ÷ bytes written; flash bytes beyond the classic pool, %; time saved, %:"
                    .to_owned(),
                columns: ["", "classic", "ACE", "flash, %", "pf, %", "saved, %"].map(str::to_owned).to_vec(),
                rows,
            }],
            charts: Vec::new(),
        }
    }
}
