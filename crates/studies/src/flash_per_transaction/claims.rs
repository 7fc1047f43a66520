//! What is published or expected, beside what was measured.

use flashwise_report::study::{Measured, StudyClaim};

use super::cases::{self, DEFAULT, System};
use super::drives::{Amplification, BY_KIND, COMPRESSES, DRIVES};
use super::runs::{Outcome, Runs, mean, plain};
use crate::verdict::verdict;

/// A page of 4 KiB written in place, KiB of flash.
const PUBLISHED_KIB: f64 = 18.85;
/// How far a figure may be from the published one, whose drive is not known well enough for less: with or without data
/// in its last tenth it is 20 or 36 KiB in the study real-drives.
const NEAR: f64 = 0.25;
/// Where writing each page once instead of twice is said to have halved something.
const HALVED: f64 = 0.6;

/// All claims that the systems measured allow.
pub(super) fn all(runs: &Runs) -> Vec<StudyClaim> {
    let claims = [in_place(runs), once(runs), distance(runs), space(runs), compression(runs), placement(runs)];
    claims.into_iter().flatten().collect()
}

fn claim(text: &str, measured: String, holds: (bool, bool), because: &str) -> StudyClaim {
    StudyClaim { claim: text.to_owned(), measured, verdict: verdict(holds.0, holds.1), because: because.to_owned() }
}

/// A ratio as it is written in a sentence; half of its range where there is more than one run.
fn times(of: Measured) -> String {
    let half = (of.high - of.low) / 2.0;
    if half > 0.0 { format!("×{} ± {}", plain(of.value), plain(half)) } else { format!("×{}", plain(of.value)) }
}

fn value(runs: &[Outcome], of: impl Fn(&Outcome) -> f64) -> f64 {
    mean(&runs.iter().map(of).collect::<Vec<_>>()).value
}

fn in_place(runs: &Runs) -> Option<StudyClaim> {
    let of = |system| Some(value(runs.of(system, DEFAULT)?, Outcome::in_place) / 1024.0);
    let [postgres, mariadb] = [of(System::Postgres)?, of(System::Mariadb)?];
    let near = |kib: f64| (kib / PUBLISHED_KIB - 1.0).abs() <= NEAR;
    let words = |system: &System| {
        let outcomes = runs.of(*system, DEFAULT)?;
        // The product of the factors, which for several runs is that of their means.
        let (kib, drive) = (value(outcomes, Outcome::in_place) / 1024.0, value(outcomes, Outcome::factor));
        Some(format!("{system} {kib:.1} KiB = 4 KiB × {} × {}", plain(kib / 4.0 / drive), plain(drive)))
    };
    let words: Vec<String> = System::ALL.iter().filter_map(words).collect();
    Some(claim(
        "Samsung PM9A3, 90 % full, Zipf 0.8: a page of 4 KiB that a database writes in place costs 18.85 KiB of flash, \
         with MySQL and PostgreSQL alike.",
        format!("For each 4 KiB written to the table, × all bytes written × the drive: {}.", words.join("; ")),
        (near(postgres) && near(mariadb), near(postgres) || near(mariadb)),
        "The published workload is not known well enough to repeat it. Here a large part of what is written is the log: it \
         is overwritten in a circle, so that the drive moves little of it, and its end is replaced while it waits in the \
         drive's buffer. A page that is written once for several transactions has the logs of all of them beside it.",
    ))
}

fn once(runs: &Runs) -> Option<StudyClaim> {
    let ratio = |system, name| runs.ratio(system, name, DEFAULT, Outcome::flash);
    let full_pages = ratio(System::Postgres, cases::POSTGRES_ONCE)?;
    let doublewrite = ratio(System::Mariadb, cases::MARIADB_ONCE)?;
    let halves = |ratio: Measured| ratio.value <= HALVED;
    Some(claim(
        "Expected: a page that is written once instead of twice halves the flash bytes of a transaction.",
        format!(
            "PostgreSQL without full_page_writes {}, MariaDB without doublewrite {}.",
            times(full_pages),
            times(doublewrite)
        ),
        (halves(full_pages) && halves(doublewrite), full_pages.value < 1.0 && doublewrite.value < 1.0),
        "Either is safe only where file system and drive write a page as a whole or not at all. The log of a commit and \
         the file system's journal remain.",
    ))
}

fn distance(runs: &Runs) -> Option<StudyClaim> {
    let postgres = runs.ratio(System::Postgres, cases::POSTGRES_OFTEN, DEFAULT, Outcome::flash)?;
    let further = [
        (System::Postgres, cases::POSTGRES_SELDOM, "PostgreSQL, a quarter as often"),
        (System::Sqlite, cases::SQLITE_OFTEN, "SQLite, at 100 pages"),
        (System::Sqlite, cases::SQLITE_SELDOM, "SQLite, at 10,000"),
    ];
    let further: Vec<(&str, &str, Measured)> = further
        .into_iter()
        .filter_map(|(system, name, words)| Some((name, words, runs.ratio(system, name, DEFAULT, Outcome::flash)?)))
        .collect();
    let holds = |&(name, _, ratio): &(&str, &str, Measured)| {
        let is_often = name == cases::SQLITE_OFTEN;
        if is_often { ratio.value > 1.0 } else { ratio.value < 1.0 }
    };
    let words: String = further.iter().map(|(_, words, ratio)| format!("; {words} {}", times(*ratio))).collect();
    let first = postgres.value > 1.0;
    Some(claim(
        "Expected: the further apart checkpoints are, the fewer flash bytes a transaction programs.",
        format!("PostgreSQL, four times as often {}{words}.", times(postgres)),
        (first && further.iter().all(holds), first || further.iter().any(holds)),
        "A page that is changed several times between two checkpoints is written once, and is copied to the log once. \
         The longer log lives on the same drive.",
    ))
}

fn space(runs: &Runs) -> Option<StudyClaim> {
    let of = |of: fn(&Outcome) -> f64| runs.ratio(System::Postgres, cases::POSTGRES_SPACE, DEFAULT, of);
    let (flash, used) = (of(Outcome::flash)?, of(|outcome| outcome.used)?);
    Some(claim(
        "Expected: space left in PostgreSQL's pages keeps updates on their page, and saves flash.",
        format!("Fill factor 75: flash bytes {}, data on the drive {}.", times(flash), times(used)),
        (flash.value < 1.0, false),
        "An update that leaves its page changes two pages and the index. The drive is as full as before here; the space \
         itself makes a given drive fuller.",
    ))
}

/// A figure of the drives with each system's default settings.
fn beside(runs: &Runs, of: impl Fn(&[Amplification]) -> Option<f64>) -> Vec<(System, f64)> {
    let default = |system| {
        let outcomes = runs.of(system, DEFAULT)?;
        Some((system, value(outcomes, |outcome| of(&outcome.drives).unwrap_or(f64::NAN))))
    };
    // Where nothing is moved at all, no share of it is known.
    System::ALL.into_iter().filter_map(default).filter(|(_, value)| value.is_finite()).collect()
}

fn listed(values: &[(System, f64)]) -> String {
    values.iter().map(|(system, value)| format!("{system} {}", plain(*value))).collect::<Vec<_>>().join(", ")
}

fn at(name: &str) -> Option<usize> {
    DRIVES.iter().position(|drive| drive.name == name)
}

fn compression(runs: &Runs) -> Option<StudyClaim> {
    let drive = at(COMPRESSES)?;
    let ratio = beside(runs, |drives| Some(drives.get(drive)?.flash / drives.first()?.flash));
    let stored = System::ALL
        .into_iter()
        .filter_map(|system| Some((system, value(runs.of(system, DEFAULT)?, |outcome| outcome.stored_share))));
    let stored: Vec<(System, f64)> = stored.collect();
    let below = ratio.iter().zip(&stored).filter(|((_, ratio), (_, stored))| ratio < stored).count();
    Some(claim(
        "Expected: a drive that compresses saves more than its ratio, since what it does not store is spare flash.",
        format!("Stored of a byte: {}. Flash bytes ÷ those without: {}.", listed(&stored), listed(&ratio)),
        (below == ratio.len(), below > 0),
        "The fields are random letters, which compress to three quarters; pages that are not full and a log that ends \
         within a page compress further. Garbage collection hardly runs with so much space.",
    ))
}

fn placement(runs: &Runs) -> Option<StudyClaim> {
    let host = at(BY_KIND)?;
    let moved = |drives: &[Amplification], at: usize| Some(drives.get(at)?.moved / drives.first()?.moved);
    let by_host = beside(runs, |drives| moved(drives, host));
    // Behind the host's streams are those of the drive's own.
    let by_drive =
        beside(runs, |drives| [host + 1, host + 2].iter().filter_map(|&at| moved(drives, at)).reduce(f64::min));
    let halved = |values: &[(System, f64)]| values.iter().filter(|(_, share)| *share <= 0.5).count();
    let (hosts, drives) = (halved(&by_host), halved(&by_drive));
    Some(claim(
        "Expected: data placed by its lifetime halves what garbage collection moves.",
        format!(
            "What is moved ÷ the same without streams, with a stream for each kind: {}; with the better of two drives \
             that infer lifetimes: {}.",
            listed(&by_host),
            listed(&by_drive)
        ),
        (hosts == by_host.len() || drives == by_drive.len(), hosts + drives > 0),
        "The log is overwritten in a circle and dies in the order in which it was written; the pages of a table differ in \
         their lifetimes among themselves, which a stream for all of them does not separate.",
    ))
}

#[cfg(test)]
mod tests {
    use flashwise_report::study::StudyVerdict;

    use super::super::cases::Case;
    use super::super::drives::Drive;
    use super::*;

    fn outcome(written: f64, factor: f64) -> Outcome {
        let moved = |drive: &Drive| if drive.name == BY_KIND { (factor - 1.0) / 4.0 } else { factor - 1.0 };
        let of = |drive: &Drive| Amplification { flash: 1.0 + moved(drive), moved: moved(drive) };
        let (written, drives) = ([written / 2.0, written / 2.0, 0.0, 0.0, 0.0], DRIVES.iter().map(of).collect());
        Outcome { written, used: 1.0, stored_share: 0.5, drives }
    }

    fn runs(of: impl Fn(&Case) -> Outcome) -> Runs {
        let cases = cases::of(&System::ALL, false);
        Runs { cases: cases.into_iter().map(|case| (case, vec![of(&case)])).collect() }
    }

    #[test]
    fn a_claim_is_judged_by_the_runs_that_it_is_about() {
        let runs = runs(|case| match case.name {
            cases::POSTGRES_ONCE | cases::MARIADB_ONCE => outcome(4_000.0, 2.36),
            cases::POSTGRES_OFTEN | cases::SQLITE_OFTEN => outcome(9_000.0, 2.36),
            cases::POSTGRES_SELDOM | cases::SQLITE_SELDOM => outcome(9_000.0, 2.36),
            _ => outcome(8_000.0, 2.36),
        });
        let claims = all(&runs);
        assert_eq!(claims.len(), 6);
        // Half of what is written are pages: 4 × 2 × 2.36 KiB.
        assert!(claims[0].measured.contains("PostgreSQL 18.9 KiB"), "{}", claims[0].measured);
        let verdicts: Vec<StudyVerdict> = claims.iter().map(|claim| claim.verdict).collect();
        use StudyVerdict::{NotReproduced, Partly, Reproduced};
        // Seldom is no gain here, space neither, and compression changes nothing.
        assert_eq!(verdicts, [Reproduced, Reproduced, Partly, NotReproduced, NotReproduced, Reproduced]);
    }

    #[test]
    fn without_a_system_its_claims_are_left_out() {
        let mut runs = runs(|_| outcome(8_000.0, 2.0));
        runs.cases.retain(|(case, _)| case.system == System::Sqlite);
        assert_eq!(all(&runs).len(), 2);
    }
}
