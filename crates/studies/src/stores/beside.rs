//! Stores beside each other: one condition varied at a time.

use flashwise_report::study::{StudyCell, StudySection, StudyTable};

use super::Scale;
use super::case::{Case, Outcome, Phase, Side};
use super::drives::Drive;
use super::runs::Runs;
use crate::StudyOptions;

/// A condition, with its name in a table.
pub(super) struct Condition {
    name: &'static str,
    of: fn(Case) -> Case,
    is_quick: bool,
}

impl Condition {
    /// The case of a side.
    pub(super) fn case(&self, side: &Side) -> Case {
        (self.of)(Case::base(side.clone()))
    }
}

const fn condition(name: &'static str, is_quick: bool, of: fn(Case) -> Case) -> Condition {
    Condition { name, of, is_quick }
}

/// The conditions; the quick form has commits of [`super::case::QUICK_COMMIT`] for those of a thousand.
static CONDITIONS: [Condition; 9] = [
    condition("commits of 1,000", false, |case| case),
    condition("commits of 100", true, |case| Case { commit: 100, ..case }),
    condition("commits of 1", true, |case| Case { commit: 1, ..case }),
    condition("cache 1 %", false, |case| Case { cache_percent: 1, ..case }),
    condition("cache 1 %, commits of 1", false, |case| Case { cache_percent: 1, commit: 1, ..case }),
    condition("values of 32 B", false, |case| Case { value_bytes: 32, ..case }),
    condition("plain drive, commits of 1,000", false, |case| Case { drive: Drive::Plain, ..case }),
    condition("plain drive, commits of 100", true, |case| Case { drive: Drive::Plain, commit: 100, ..case }),
    condition("plain drive, commits of 1", false, |case| Case { drive: Drive::Plain, commit: 1, ..case }),
];

fn conditions(is_quick: bool) -> impl Iterator<Item = &'static Condition> {
    CONDITIONS.iter().filter(move |condition| condition.is_quick || !is_quick)
}

/// Everything that is compared.
pub(super) fn cases(sides: &[Side], is_quick: bool) -> Vec<Case> {
    conditions(is_quick).flat_map(|condition| sides.iter().map(|side| condition.case(side))).collect()
}

fn table(caption: &str, runs: &Runs, sides: &[Side], is_quick: bool, of: impl Fn(&Outcome) -> f64) -> StudyTable {
    let columns = std::iter::once(String::new()).chain(sides.iter().map(Side::to_string)).collect();
    let row = |condition: &Condition| {
        let cells = sides.iter().map(|side| runs.cell(&condition.case(side), &of));
        std::iter::once(StudyCell::text(condition.name)).chain(cells).collect()
    };
    StudyTable { caption: caption.to_owned(), columns, rows: conditions(is_quick).map(row).collect() }
}

fn per_user(of: fn(&Phase) -> f64) -> impl Fn(&Phase) -> f64 {
    move |phase| of(phase) / phase.user.max(1.0)
}

/// Flash bytes, host bytes, flushes, space.
pub(super) fn sections(runs: &Runs, sides: &[Side], scale: &Scale, options: &StudyOptions) -> Vec<StudySection> {
    let [flash, host] = [(|phase: &Phase| phase.flash) as fn(&Phase) -> f64, |phase: &Phase| phase.host].map(per_user);
    let table = |caption: &str, of: &dyn Fn(&Outcome) -> f64| table(caption, runs, sides, options.quick, of);
    let flash = StudySection {
        title: "Flash bytes programmed for each user byte".to_owned(),
        text: vec![
            scale.words(),
            "Unless a row says otherwise: values of 128 bytes, half of them zeros; each commit flushed; a cache of 22 % \
             of keys and values; the drive that compresses. User bytes are all keys and values that were committed. A \
             phase ends when everything is written back."
                .to_owned(),
            format!(
                "Our stores have the options of the guide: the B⁻-tree pages of 8 KiB, the hash pages of 4 KiB, a log \
                 of 64 MiB, which is packed on the plain drive. SQLite is on {}: a write-ahead log, synchronous FULL, \
                 pages of 4 KiB, a checkpoint after 1,000 pages.",
                options.host.describe()
            ),
        ],
        tables: vec![
            table("uniform updates", &|outcome| flash(&outcome.uniform)),
            table("updates by Zipf's law", &|outcome| flash(&outcome.zipf)),
            table("load", &|outcome| flash(&outcome.load)),
        ],
        charts: Vec::new(),
    };
    let host = StudySection {
        title: "Bytes and flushes that reach the drive".to_owned(),
        text: vec!["The same runs, at the drive's interface.".to_owned()],
        tables: vec![
            table("bytes written for each user byte, uniform updates", &|outcome| host(&outcome.uniform)),
            table("bytes written for each user byte, updates by Zipf's law", &|outcome| host(&outcome.zipf)),
            table("flushes a commit, uniform updates", &|outcome| {
                outcome.uniform.flushes / outcome.uniform.commits.max(1.0)
            }),
        ],
        charts: Vec::new(),
    };
    vec![flash, host, space(runs, sides, options.quick)]
}

fn space(runs: &Runs, sides: &[Side], is_quick: bool) -> StudySection {
    // SQLite's drive is below its VFS, and is not asked what is stored on it.
    let sides: Vec<&Side> = sides.iter().filter(|side| **side != Side::Sqlite).collect();
    let columns = std::iter::once(String::new()).chain(sides.iter().map(|side| side.to_string())).collect();
    let is_compressed = |condition: &&Condition| condition.case(&Side::Sqlite).drive == Drive::Compresses;
    let row = |condition: &Condition| {
        let cells = sides.iter().map(|side| runs.cell(&condition.case(side), |outcome| outcome.space));
        std::iter::once(StudyCell::text(condition.name)).chain(cells).collect()
    };
    StudySection {
        title: "Space on the drive that compresses".to_owned(),
        text: vec![
            "Physical bytes at the end ÷ those of keys and values alone: in order of keys, packed into blocks of 4 KiB, \
             compressed by the same drive. The log is among them."
                .to_owned(),
        ],
        tables: vec![StudyTable {
            caption: "physical bytes ÷ those of keys and values".to_owned(),
            columns,
            rows: conditions(is_quick).filter(is_compressed).map(row).collect(),
        }],
        charts: Vec::new(),
    }
}
