//! A combination of store, drive and workload, and what a run of it gave.

use std::fmt;

use flashwise_block::{ByteSize, DeviceCounters};
use flashwise_store::workload::{Distribution, KEY_BYTES, Workload};
use flashwise_store::{Engine, LogForm};

use super::drives::Drive;
use super::{Scale, peers};
use crate::{StudyError, StudyOptions};

/// Whose store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Ours(Engine),
    Sqlite,
    /// One that the program of `--peers` knows.
    Peer(String),
}

impl Side {
    /// All that are run.
    pub(super) fn all(options: &StudyOptions) -> Result<Vec<Self>, StudyError> {
        let mut sides = vec![Self::Ours(Engine::BTree), Self::Ours(Engine::Hash), Self::Sqlite];
        if let Some(program) = &options.peers {
            sides.extend(peers::names(program)?.into_iter().map(Self::Peer));
        }
        Ok(sides)
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours(Engine::BTree) => f.write_str("B⁻-tree"),
            Self::Ours(Engine::Hash) => f.write_str("hash"),
            Self::Sqlite => f.write_str("SQLite"),
            Self::Peer(name) => f.write_str(name),
        }
    }
}

/// Updates a commit where nothing else is said.
pub(super) const COMMIT: u64 = 1_000;

/// The same in the quick form, whose stores are smaller: a commit that changes more pages than the cache has makes the
/// cache grow.
pub(super) const QUICK_COMMIT: u64 = 100;

/// What is run, apart from how much of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Case {
    pub(super) side: Side,
    pub(super) drive: Drive,
    pub(super) value_bytes: usize,
    /// Bytes of a value ÷ those of them that are random, in tenths.
    pub(super) compressibility_tenths: usize,
    /// Updates a commit.
    pub(super) commit: u64,
    /// Cache, in per cent of keys and values.
    pub(super) cache_percent: u64,
    pub(super) tuning: Tuning,
}

/// Options of our stores, each the default where it is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tuning {
    pub(super) page: Option<ByteSize>,
    pub(super) segment: Option<ByteSize>,
    pub(super) threshold: Option<ByteSize>,
    pub(super) fill_percent: Option<u32>,
    pub(super) log: Option<LogForm>,
}

impl Case {
    /// Values of 128 bytes, half of them zeros, commits of a thousand, a cache for 22 % of the data, on the drive that
    /// compresses.
    pub(super) fn base(side: Side) -> Self {
        Self {
            side,
            drive: Drive::Compresses,
            value_bytes: 128,
            compressibility_tenths: 20,
            commit: COMMIT,
            cache_percent: 22,
            tuning: Tuning::default(),
        }
    }

    /// Its keys and values.
    pub(super) fn workload(&self, scale: &Scale, seed: u64) -> Workload {
        let random_bytes = (self.value_bytes * 10).div_ceil(self.compressibility_tenths.max(1));
        Workload { keys: scale.keys, value_bytes: self.value_bytes, random_bytes, seed }
    }

    /// Updates of each distribution.
    pub(super) fn updates(&self, scale: &Scale) -> u64 {
        if self.commit == 1 { scale.single_updates } else { scale.updates }
    }

    /// Bytes of its cache.
    pub(super) fn cache(&self, workload: &Workload) -> ByteSize {
        ByteSize(workload.bytes() * self.cache_percent / 100)
    }
}

/// Names everything on which a run depends besides the seed and the program's version.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { side, drive, value_bytes, compressibility_tenths, commit, cache_percent, tuning } = self;
        write!(
            f,
            "{side}, {drive}, {value_bytes} B, 1:{}.{}",
            compressibility_tenths / 10,
            compressibility_tenths % 10
        )?;
        write!(f, ", commits of {commit}, cache {cache_percent} %")?;
        let Tuning { page, segment, threshold, fill_percent, log } = tuning;
        let sizes = [("page", page), ("segment", segment), ("threshold", threshold)];
        for (name, size) in sizes.into_iter().filter_map(|(name, size)| Some((name, size.as_ref()?))) {
            write!(f, ", {name} {}", size.0)?;
        }
        fill_percent.map_or(Ok(()), |percent| write!(f, ", fill {percent} %"))?;
        log.map_or(Ok(()), |form| write!(f, ", log {form:?}"))
    }
}

/// What a phase of a run cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Phase {
    /// Bytes of keys and values that were committed; a key that comes twice in a commit counts twice.
    pub(super) user: f64,
    pub(super) flash: f64,
    pub(super) host: f64,
    pub(super) flushes: f64,
    pub(super) commits: f64,
}

impl Phase {
    /// Between two readings of the drive's counters.
    pub(super) fn new(user: u64, commits: u64, before: &DeviceCounters, after: &DeviceCounters) -> Self {
        let done = after.since(before);
        let flash = done.flash.unwrap_or_default();
        Self {
            user: user as f64,
            // What garbage collection moves depends on how full the drive is; it hardly runs here.
            flash: flash.bytes_programmed.0.saturating_sub(flash.gc_bytes_moved.0) as f64,
            host: done.host_bytes_written.0 as f64,
            flushes: done.flushes as f64,
            commits: commits as f64,
        }
    }
}

/// What a run gave.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Outcome {
    pub(super) load: Phase,
    pub(super) uniform: Phase,
    pub(super) zipf: Phase,
    /// Physical bytes on the drive at the end ÷ those of the keys and values alone, packed and compressed.
    pub(super) space: f64,
}

/// The phases after the load, in their order.
pub(super) const DISTRIBUTIONS: [Distribution; 2] = [Distribution::Uniform, Distribution::Zipf];

impl Outcome {
    /// Its numbers, in the order of the fields.
    pub(super) fn numbers(&self) -> Vec<f64> {
        let phases = [self.load, self.uniform, self.zipf];
        let numbers = phases.iter().flat_map(|p| [p.user, p.flash, p.host, p.flushes, p.commits]);
        numbers.chain([self.space]).collect()
    }

    /// From its numbers; `None` where there are more or fewer.
    pub(super) fn from_numbers(numbers: &[f64]) -> Option<Self> {
        let phase = |n: &[f64]| match *n {
            [user, flash, host, flushes, commits] => Some(Phase { user, flash, host, flushes, commits }),
            _ => None,
        };
        let (space, phases) = numbers.split_last()?;
        let [load, uniform, zipf] = [0, 5, 10].map(|at| phases.get(at..at + 5).and_then(phase));
        (phases.len() == 15).then_some(Self { load: load?, uniform: uniform?, zipf: zipf?, space: *space })
    }
}

/// Bytes of keys and values in a commit.
pub(super) fn user_bytes(changes: &[flashwise_store::workload::Change]) -> u64 {
    changes.iter().map(|(_, value)| (KEY_BYTES + value.len()) as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_an_outcome_make_it_again_and_none_is_missing() {
        let phase = |n| Phase { user: n, flash: n + 0.1, host: n + 0.2, flushes: n + 0.3, commits: n + 0.4 };
        let outcome = Outcome { load: phase(1.0), uniform: phase(2.0), zipf: phase(3.0), space: 4.0 };
        let numbers = outcome.numbers();
        assert_eq!(Outcome::from_numbers(&numbers), Some(outcome));
        assert_eq!(Outcome::from_numbers(&numbers[1..]), None);
        assert_eq!(Outcome::from_numbers(&[]), None);
    }

    #[test]
    fn cases_that_differ_have_names_that_differ() {
        let base = Case::base(Side::Ours(Engine::BTree));
        let tuned = |tuning| Case { tuning, ..base.clone() };
        let size = Some(ByteSize(512));
        let all = [
            base.clone(),
            Case { side: Side::Ours(Engine::Hash), ..base.clone() },
            Case { drive: Drive::Plain, ..base.clone() },
            Case { value_bytes: 32, ..base.clone() },
            Case { compressibility_tenths: 15, ..base.clone() },
            Case { commit: 1, ..base.clone() },
            Case { cache_percent: 1, ..base.clone() },
            tuned(Tuning { page: size, ..Tuning::default() }),
            tuned(Tuning { segment: size, ..Tuning::default() }),
            tuned(Tuning { threshold: size, ..Tuning::default() }),
            tuned(Tuning { fill_percent: Some(20), ..Tuning::default() }),
            tuned(Tuning { log: Some(LogForm::Packed), ..Tuning::default() }),
        ];
        let mut names: Vec<String> = all.iter().map(Case::to_string).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len(), "{names:#?}");
    }
}
