//! Old and new settings on the same work: private servers, rounds that alternate.
//!
//! ```text
//!   load ─▶ copy ──┬─▶ instance with the old settings ─▶ round 1        round 4 …
//!                  └─▶ instance with the new settings ─▶      round 2, 3         …
//! ```
//!
//! The instances age side by side, and are the same to the byte at the start. Which one is first changes from pair to
//! pair, so that drift is no gain.

use std::path::{Path, PathBuf};
use std::time::Duration;

use flashwise_block::{ByteSize, Progress};

use super::{Attached, MeasuredSettings, PrivatePlace, SettingProposal, verdict};
use crate::rates::{gain, rate};
use crate::{Target, TuneError, Written};

/// Fewer rounds give no usable interval.
const FEWEST_ROUNDS: u32 = 5;

/// One of the two instances.
pub(crate) struct Side {
    pub(crate) name: &'static str,
    pub(crate) settings: Vec<(String, String)>,
    /// Transactions a second, round by round.
    rates: Vec<f64>,
    /// Of all rounds.
    transactions: u64,
    /// By all rounds; `None` where the drive below does not say.
    written: Option<Written>,
}

impl Side {
    fn new(name: &'static str, settings: Vec<(String, String)>) -> Self {
        Self { name, settings, rates: Vec::new(), transactions: 0, written: Some(Written::default()) }
    }

    /// Adds a round.
    fn add(&mut self, done: Done, written: Option<Written>) {
        self.rates.push(done.transactions as f64 / done.time.as_secs_f64());
        self.transactions += done.transactions;
        self.written = self.written.zip(written).map(|(all, more)| all.plus(more));
    }

    fn written_each(&self) -> Option<Written> {
        self.written?.of_each(self.transactions)
    }
}

/// What was done in a round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) transactions: u64,
    pub(crate) time: Duration,
}

/// A private server that does rounds of work.
pub(crate) trait Rounds {
    /// The program that does the work, for errors.
    const PROGRAM: &'static str;

    fn place(&mut self) -> &mut PrivatePlace;

    /// Makes an instance with the work's tables, and a copy of it; gives the server's version.
    fn load(&mut self, instance: &str, copy: &str, progress: &mut dyn Progress) -> Result<String, TuneError>;

    /// One round with nothing cached.
    fn round(&mut self, side: &Side, round: u32, progress: &mut dyn Progress) -> Result<Done, TuneError>;
}

/// Number of rounds, directory, the attached drive that it is on, and description of the workload.
pub(crate) struct Terms<'a> {
    pub(crate) rounds: u32,
    pub(crate) directory: Option<&'a Path>,
    pub(crate) attached: Option<&'a Attached>,
    pub(crate) workload: String,
}

/// Measures proposals that a server can be started with.
///
/// # Errors
/// When the server fails, or no round did anything.
pub(crate) fn compare<R: Rounds>(
    server: &mut R,
    proposals: &[SettingProposal],
    terms: Terms<'_>,
    progress: &mut dyn Progress,
) -> Result<MeasuredSettings, TuneError> {
    let side = |name, value: fn(&SettingProposal) -> &String| {
        let settings = proposals.iter().map(|p| (p.name.clone(), value(p).clone())).collect();
        Side::new(name, settings)
    };
    let mut sides = [side("before", |p| &p.old_value), side("after", |p| &p.new_value)];
    let program = server.load(sides[0].name, sides[1].name, progress)?;
    let written = || terms.attached.and_then(Attached::written);
    for round in 0..terms.rounds {
        let order = if round.is_multiple_of(2) { [0, 1] } else { [1, 0] };
        for index in order {
            let side = &mut sides[index];
            let stage = format!("round {} of {}, {}", round + 1, terms.rounds, side.name);
            server.place().at(stage, f64::from(round) / f64::from(terms.rounds));
            let earlier = written();
            let done = server.round(side, round, progress)?;
            side.add(done, written().zip(earlier).map(|(now, earlier)| now.since(earlier)));
        }
    }
    let [before, after] = sides;
    let gain = gain("transactions_per_s", (before.name, &before.rates), (after.name, &after.rates));
    let gain = gain.ok_or_else(|| TuneError::Server {
        context: R::PROGRAM.to_owned(),
        message: "no round completed a transaction; give longer rounds with --round-time".to_owned(),
    })?;
    Ok(MeasuredSettings {
        program,
        directory: directory_or_temporary(terms.directory).display().to_string(),
        attached: terms.attached.map(|drive| drive.place([before.written_each(), after.written_each()])),
        workload: terms.workload,
        rounds: terms.rounds,
        settings: after.settings.iter().map(|(name, value)| format!("{name} = {value}")).collect(),
        before: rate(&before.rates),
        after: rate(&after.rates),
        verdict: verdict(&gain).to_owned(),
        gain,
        log: None,
    })
}

fn directory_or_temporary(directory: Option<&Path>) -> PathBuf {
    directory.map_or_else(std::env::temp_dir, Path::to_owned)
}

/// Refuses too few rounds.
///
/// # Errors
/// With the minimum.
pub(crate) fn check_rounds(rounds: u32) -> Result<(), TuneError> {
    match rounds >= FEWEST_ROUNDS {
        true => Ok(()),
        false => Err(TuneError::Options(format!("--rounds {rounds}: give at least {FEWEST_ROUNDS}"))),
    }
}

/// Refuses a directory without enough space for two instances of that size.
///
/// # Errors
/// With the directory, or the missing space.
pub(crate) fn check_space(directory: Option<&Path>, instance_bytes: u64) -> Result<(), TuneError> {
    let directory = directory_or_temporary(directory);
    if !directory.is_dir() {
        return Err(TuneError::Target(format!("{}: no such directory", directory.display())));
    }
    Target::Directory(directory).check_space(ByteSize(instance_bytes.saturating_mul(2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(transactions: u64) -> Done {
        Done { transactions, time: Duration::from_secs(2) }
    }

    fn written(host: u64, flash: u64) -> Option<Written> {
        Some(Written { host_bytes: ByteSize(host), flash_bytes: ByteSize(flash) })
    }

    #[test]
    fn what_a_transaction_wrote_is_its_part_of_all_rounds() {
        let mut side = Side::new("after", Vec::new());
        assert_eq!(side.written_each(), None, "nothing was done");
        side.add(done(10), written(1_000, 4_000));
        side.add(done(30), written(1_000, 0));
        assert_eq!((side.rates.as_slice(), side.written_each()), (&[5.0, 15.0][..], written(50, 100)));
        side.add(done(10), None);
        assert_eq!(side.written_each(), None, "one round is not known");
    }

    #[test]
    fn a_counter_that_began_anew_counts_nothing() {
        let [now, earlier] = [written(5, 9).unwrap(), written(7, 4).unwrap()];
        assert_eq!(Some(now.since(earlier)), written(0, 5));
    }
}
