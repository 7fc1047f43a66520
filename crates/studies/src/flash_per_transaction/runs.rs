//! All runs: repeated with other seeds, interleaved, and kept in a file if one is given.

use flashwise_report::study::{Measured, StudyCell};

use super::bench;
use super::cases::{Case, System};
use super::database::Kind;
use super::drives::{self, Amplification, DRIVES};
use super::work::FIELD_BYTES;
use super::{Scale, cases};
use crate::attached::Cores;
use crate::kept::Kept;
use crate::{Progress, StudyError, StudyOptions, parallel};

/// What a run gave.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    /// Bytes that the host wrote for a transaction, by kind.
    pub(super) written: [f64; Kind::ALL.len()],
    /// Bytes on the drive at the end, without what an empty database has.
    pub(super) used: f64,
    /// What is left of a written byte by compression; not a number where the drive did not compress.
    pub(super) stored_share: f64,
    /// What each drive makes of that, in the order of [`DRIVES`]; the first alone where a case is on no other.
    pub(super) drives: Vec<Amplification>,
}

impl Outcome {
    fn numbers(&self) -> Vec<f64> {
        let drives = self.drives.iter().flat_map(|drive| [drive.flash, drive.moved]);
        self.written.into_iter().chain([self.used, self.stored_share]).chain(drives).collect()
    }

    fn from_numbers(numbers: &[f64]) -> Option<Self> {
        let (written, rest) = numbers.split_first_chunk()?;
        let (&[used, stored_share], rest) = rest.split_first_chunk()?;
        let (drives, rest) = rest.as_chunks::<2>();
        let is_whole = rest.is_empty() && (drives.len() == 1 || drives.len() == DRIVES.len());
        let drives = drives.iter().map(|&[flash, moved]| Amplification { flash, moved }).collect();
        is_whole.then_some(Self { written: *written, used, stored_share, drives })
    }

    /// Bytes that the host wrote for a transaction.
    pub(super) fn host(&self) -> f64 {
        self.written.iter().sum()
    }

    /// Flash bytes ÷ host bytes on the first drive.
    pub(super) fn factor(&self) -> f64 {
        self.drives.first().map_or(f64::NAN, |drive| drive.flash)
    }

    /// Flash bytes of a transaction there.
    pub(super) fn flash(&self) -> f64 {
        self.host() * self.factor()
    }

    /// Bytes that the database wrote for a byte that the user changed.
    pub(super) fn database(&self) -> f64 {
        self.host() / FIELD_BYTES as f64
    }

    /// Flash bytes for each 4 KiB that were written to tables and indexes in their place.
    pub(super) fn in_place(&self) -> f64 {
        let pages = Kind::ALL.iter().position(|&kind| kind == Kind::Pages).map_or(f64::NAN, |at| self.written[at]);
        self.flash() / pages * drives::PAGE as f64
    }
}

/// What all runs of a case gave, in the order of the seeds.
pub(super) struct Runs {
    pub(super) cases: Vec<(Case, Vec<Outcome>)>,
}

/// The mean of runs, and the range of all of them.
pub(super) fn mean(values: &[f64]) -> Measured {
    let ends = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &v| (low.min(v), high.max(v)));
    Measured { value: values.iter().sum::<f64>() / values.len() as f64, low: ends.0, high: ends.1 }
}

fn heading(scale: &Scale) -> String {
    format!(
        "flashwise-study-flash-per-transaction {}, {} rows, {} transactions",
        env!("CARGO_PKG_VERSION"),
        scale.rows,
        scale.transactions
    )
}

impl Runs {
    /// Runs all cases of these systems.
    pub(super) fn all(
        systems: &[System],
        scale: &Scale,
        options: &StudyOptions,
        progress: Progress<'_>,
    ) -> Result<Self, StudyError> {
        let is_run = |numbers: &[f64]| Outcome::from_numbers(numbers).is_some();
        let kept = Kept::open(options.resume.as_deref(), &heading(scale), is_run)?;
        let cases = cases::of(systems, options.quick);
        let mut runs = Self { cases: cases.into_iter().map(|case| (case, Vec::new())).collect() };
        let all = runs.cases.len() as f64 * scale.runs as f64;
        let cores = Cores::share()?;
        let mut done = 0.0;
        // Seeds outermost: what disturbs the machine for a while disturbs all cases.
        for seed in (0..scale.runs).map(|n| options.seed.wrapping_add(n)) {
            for (case, outcomes) in &mut runs.cases {
                progress(&format!("{case} (about {} in all)", scale.duration), done / all);
                let name = format!("{case}, seed {seed}");
                let outcome = match kept.get(&name).and_then(Outcome::from_numbers) {
                    Some(outcome) => outcome,
                    None => {
                        let outcome = run(case, scale, options, seed, &cores)?;
                        kept.add(&name, &outcome.numbers())?;
                        outcome
                    }
                };
                outcomes.push(outcome);
                done += 1.0;
            }
        }
        Ok(runs)
    }

    /// The runs of a case.
    pub(super) fn of(&self, system: System, name: &str) -> Option<&[Outcome]> {
        let found = self.cases.iter().find(|(case, _)| case.system == system && case.name == name);
        found.map(|(_, outcomes)| outcomes.as_slice())
    }

    /// Something of a case ÷ the same of another one of its system, run by run.
    pub(super) fn ratio(
        &self,
        system: System,
        name: &str,
        against: &str,
        of: impl Fn(&Outcome) -> f64,
    ) -> Option<Measured> {
        let (these, those) = (self.of(system, name)?, self.of(system, against)?);
        Some(mean(&these.iter().zip(those).map(|(a, b)| of(a) / of(b)).collect::<Vec<_>>()))
    }
}

fn run(case: &Case, scale: &Scale, options: &StudyOptions, seed: u64, cores: &Cores) -> Result<Outcome, StudyError> {
    let recording = bench::record(case, scale, options, seed, cores)?;
    let drives = if case.is_default() { &DRIVES[..] } else { &DRIVES[..1] };
    let steady = parallel::map("drives", drives, &|_, _| {}, |drive| drive.steady(&recording, seed))?;
    Ok(Outcome {
        written: recording.written().map(|bytes| bytes as f64 / f64::from(scale.transactions)),
        used: f64::from(recording.used) * drives::PAGE as f64,
        stored_share: recording.stored_share.unwrap_or(f64::NAN),
        drives: steady,
    })
}

/// The mean of runs with their range; of a single run its value alone.
pub(super) fn cell(runs: &[Outcome], of: impl Fn(&Outcome) -> f64) -> StudyCell {
    cell_of(mean(&runs.iter().map(of).collect::<Vec<_>>()), runs.len())
}

/// The same of a mean that is known already.
pub(super) fn cell_of(mean: Measured, runs: usize) -> StudyCell {
    match runs {
        0 | 1 => StudyCell::text(plain(mean.value)),
        _ => mean.into(),
    }
}

/// A number with three digits.
pub(super) fn plain(value: f64) -> String {
    let digits = (2.0 - value.abs().max(1e-9).log10().floor()).clamp(0.0, 3.0) as usize;
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_an_outcome_make_it_again_and_none_is_missing() {
        let of = |drives: usize| Outcome {
            written: [1.0, 2.0, 3.0, 4.0, 5.0],
            used: 5.0,
            stored_share: 0.6,
            drives: (0..drives).map(|n| Amplification { flash: n as f64, moved: 0.5 }).collect(),
        };
        for drives in [1, DRIVES.len()] {
            assert_eq!(Outcome::from_numbers(&of(drives).numbers()), Some(of(drives)));
        }
        assert_eq!(Outcome::from_numbers(&of(2).numbers()), None);
        assert_eq!(Outcome::from_numbers(&[1.0; 7]), None);
    }

    #[test]
    fn flash_bytes_are_the_product_of_the_factors() {
        let written = [1000.0, 4096.0, 0.0, 0.0, 904.0];
        let drives = vec![Amplification { flash: 2.5, moved: 1.5 }];
        let outcome = Outcome { written, used: 0.0, stored_share: f64::NAN, drives };
        assert_eq!(outcome.flash(), 100.0 * outcome.database() * outcome.factor());
        assert_eq!((outcome.host(), outcome.in_place()), (6000.0, 15_000.0));
    }

    #[test]
    fn a_number_has_three_digits() {
        let all = [0.1234, 1.2345, 12.345, 123.45, 12345.6, 0.0].map(plain);
        assert_eq!(all, ["0.123", "1.23", "12.3", "123", "12346", "0.000"]);
    }
}
