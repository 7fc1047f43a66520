//! The key-value workload and YCSB, each variant on a drive of its own, alternately.
//!
//! ```text
//!   for each page size: load ─▶ for each variant: drive, copy, server
//!   round by round, variants alternately:  inserts ─▶ all written back ─▶ SELECTs
//!   repetition by repetition, mix by mix, variants alternately:  operations
//! ```

use std::fmt::Write as _;

use flashwise_block::{ByteSize, grouped};
use flashwise_report::study::Measured;

use super::Scale;
use super::bench::{Database, Ended, Piece, Source, Stage, page_sizes};
use super::drives::{self, Hidden};
use super::key_value::Keys;
use super::placement::{Page, Placed, Variant, Writes};
use super::ycsb::{Client, MIXES};
use crate::attached::Cores;
use crate::statistics::mean;
use crate::{Progress, StudyError, StudyOptions};

/// MariaDB with default settings.
pub(super) const DEFAULT: &str = "16 KiB pages";
/// Pages as long as a chunk and nothing else: what techniques are compared with.
pub(super) const PLAIN: &str = "64 KiB pages";
/// The file system starts at a hot location.
pub(super) const PLACED: &str = "placed";
/// The same, and the table is written again before the server starts.
pub(super) const BULK: &str = "placed, written in bulk";
/// The same, and pages are written in halves.
pub(super) const HALVED: &str = "placed, split writes";
/// Halves alone.
pub(super) const ONLY_HALVED: &str = "split writes";

/// All of them.
const VARIANTS: [Variant; 6] = {
    const fn variant(name: &'static str, page: Page, is_placed: bool, writes: Writes) -> Variant {
        Variant { name, page, is_placed, writes }
    }
    [
        variant(DEFAULT, Page::Default, false, Writes::Whole),
        variant(PLAIN, Page::Chunk, false, Writes::Whole),
        variant(PLACED, Page::Chunk, true, Writes::Whole),
        variant(BULK, Page::Chunk, true, Writes::Bulk),
        variant(HALVED, Page::Chunk, true, Writes::Halved),
        variant(ONLY_HALVED, Page::Chunk, false, Writes::Halved),
    ]
};
/// Those that YCSB is run on.
const OF_YCSB: [&str; 4] = [DEFAULT, PLAIN, PLACED, HALVED];

/// What one variant showed.
pub(super) struct Shown {
    pub(super) variant: Variant,
    pub(super) page: ByteSize,
    pub(super) placed: Placed,
    pub(super) inserts: Vec<Piece>,
    pub(super) selects: Vec<Piece>,
    /// By mix, repetition by repetition; none of a variant that YCSB is not run on.
    pub(super) mixes: Vec<Vec<Piece>>,
    pub(super) ended: Ended,
}

/// All that was measured.
pub(super) struct Reads {
    pub(super) variants: Vec<Shown>,
    pub(super) version: String,
    pub(super) time_scale: f64,
    /// Why servers' requests waited behind flushes.
    pub(super) not_apart: Option<String>,
}

/// A database while it is worked on.
struct Running {
    database: Database,
    keys: Keys,
    client: Client,
    inserts: Vec<Piece>,
    selects: Vec<Piece>,
    mixes: Vec<Vec<Piece>>,
}

/// Runs all of it.
pub(super) fn measure(
    scale: &Scale,
    hidden: Hidden,
    options: &StudyOptions,
    cores: &Cores,
    progress: Progress<'_>,
) -> Result<Reads, StudyError> {
    let config = drives::samsung()?;
    let stage =
        Stage { program: options.program.as_deref(), config: &config, hidden, time_scale: scale.time_scale, cores };
    let mut running = start(scale, stage, options.seed, progress)?;
    rounds(scale, &mut running, progress)?;
    mixes(scale, &mut running, options.seed, progress)?;
    let version = running.first().map(|one| one.database.version.clone()).unwrap_or_default();
    let not_apart = running.iter().find_map(|one| one.database.not_apart.clone());
    let end = |one: Running| {
        let Running { database, inserts, selects, mixes, .. } = one;
        let (variant, placed) = (database.variant, database.placed);
        let page = variant.page.bytes(ByteSize(hidden.chunk_bytes));
        Ok(Shown { variant, page, placed, inserts, selects, mixes, ended: database.end()? })
    };
    let variants = running.into_iter().map(end).collect::<Result<_, StudyError>>()?;
    Ok(Reads { variants, version, time_scale: scale.time_scale, not_apart })
}

fn start(scale: &Scale, stage: Stage<'_>, seed: u64, progress: Progress<'_>) -> Result<Vec<Running>, StudyError> {
    let mut running = Vec::new();
    for page in page_sizes(&VARIANTS) {
        let bytes = page.bytes(ByteSize(stage.hidden.chunk_bytes));
        progress(&format!("loading {} rows, pages of {bytes}", grouped(scale.work.rows.into())), 0.2);
        let source = Source::load(bytes, &scale.work, &mut Client::new(scale.ycsb_rows, seed), seed)?;
        for variant in VARIANTS.into_iter().filter(|variant| variant.page == page) {
            progress(&format!("{}: copying to the drive", variant.name), 0.25 + 0.02 * running.len() as f64);
            running.push(Running {
                database: Database::start(stage, variant, &source)?,
                keys: scale.work.keys(seed),
                client: Client::new(scale.ycsb_rows, seed),
                inserts: Vec::new(),
                selects: Vec::new(),
                mixes: Vec::new(),
            });
        }
    }
    Ok(running)
}

/// The places of all in turn, another one first each time: drift is no gain.
fn turns(count: usize, time: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |turn| (turn + time) % count.max(1))
}

fn rounds(scale: &Scale, running: &mut [Running], progress: Progress<'_>) -> Result<(), StudyError> {
    let work = &scale.work;
    for round in 0..work.rounds as usize {
        for at in turns(running.len(), round) {
            let Running { database, keys, inserts, selects, .. } = &mut running[at];
            let done = 0.4 + 0.35 * round as f64 / f64::from(work.rounds);
            progress(&format!("{}: round {} of {}", database.variant.name, round + 1, work.rounds), done);
            inserts.push(database.piece(|connection| work.insert(connection, keys))?);
            database.settle()?;
            selects.push(database.piece(|connection| work.select(connection, keys))?);
        }
    }
    Ok(())
}

fn mixes(scale: &Scale, running: &mut [Running], seed: u64, progress: Progress<'_>) -> Result<(), StudyError> {
    let of_ycsb = |one: &Running| OF_YCSB.contains(&one.database.variant.name);
    running.iter_mut().filter(|one| of_ycsb(one)).for_each(|one| one.mixes = vec![Vec::new(); MIXES.len()]);
    let chosen: Vec<usize> = (0..running.len()).filter(|&at| of_ycsb(&running[at])).collect();
    for repetition in 0..scale.repetitions as usize {
        for (number, mix) in MIXES.iter().enumerate() {
            let done = 0.75
                + 0.25 * (repetition * MIXES.len() + number) as f64 / (scale.repetitions as usize * MIXES.len()) as f64;
            progress(&format!("YCSB {}, repetition {} of {}", mix.name, repetition + 1, scale.repetitions), done);
            // The same operations for all of a turn.
            let seed = seed.wrapping_add((repetition * MIXES.len() + number) as u64 + 1);
            for at in turns(chosen.len(), repetition + number) {
                let Running { database, client, mixes, .. } = &mut running[chosen[at]];
                database.settle()?;
                let piece = database.piece(|connection| client.play(connection, mix, scale.operations, seed))?;
                mixes[number].push(piece);
            }
        }
    }
    Ok(())
}

impl Reads {
    /// What a variant showed.
    pub(super) fn of(&self, name: &str) -> Result<&Shown, StudyError> {
        self.variants.iter().find(|shown| shown.variant.name == name).ok_or(StudyError::Lost)
    }

    /// How many times as many SELECTs a second a variant does as another one, round by round, by the drive's time
    /// alone.
    pub(super) fn gain(&self, name: &str, against: &str) -> Result<Measured, StudyError> {
        self.ratio(name, against, |shown, piece| shown.ended.waited_s(piece))
    }

    /// The same where the server's time on a processor, as it was on this machine, comes to the drive's. It is that of
    /// its own page size's mean: where a page lies is nothing to a processor, and what else the machine did is in each
    /// piece.
    pub(super) fn gain_with_processor(&self, name: &str, against: &str) -> Result<Measured, StudyError> {
        self.ratio(name, against, |shown, piece| shown.ended.waited_s(piece) + self.processor_s_of(shown.variant.page))
    }

    /// The server's time on a processor for the SELECTs of a round, pages as long as a chunk.
    pub(super) fn processor_s(&self) -> Result<f64, StudyError> {
        Ok(self.processor_s_of(self.of(PLAIN)?.variant.page))
    }

    fn processor_s_of(&self, page: Page) -> f64 {
        let alike = self.variants.iter().filter(|shown| shown.variant.page == page);
        mean(&alike.flat_map(|shown| &shown.selects).map(|piece| piece.processor_s).collect::<Vec<_>>()).value
    }

    /// And as the client saw it on the drive's clock, to which processors are as many times as fast as it is slowed
    /// down.
    pub(super) fn gain_seen(&self, name: &str, against: &str) -> Result<Measured, StudyError> {
        self.ratio(name, against, |_, piece| piece.seconds)
    }

    fn ratio(
        &self,
        name: &str,
        against: &str,
        seconds: impl Fn(&Shown, &Piece) -> f64,
    ) -> Result<Measured, StudyError> {
        let (these, those) = (self.of(name)?, self.of(against)?);
        let pairs = these.selects.iter().zip(&those.selects);
        let ratios: Vec<f64> = pairs.map(|(a, b)| seconds(those, b) / seconds(these, a)).collect();
        Ok(mean(&ratios))
    }

    /// How many times as many operations of a mix a second, repetition by repetition, as the client saw it; `is_real`
    /// with processors that are no faster than this machine's.
    pub(super) fn mix_gain(
        &self,
        mix: usize,
        name: &str,
        against: &str,
        is_real: bool,
    ) -> Result<Measured, StudyError> {
        let (these, those) = (self.of(name)?, self.of(against)?);
        let seconds = |piece: &Piece| if is_real { self.real_seconds(piece) } else { piece.seconds };
        let of = |shown: &Shown| shown.mixes.get(mix).map(|of| of.iter().map(seconds).collect::<Vec<_>>());
        let (a, b) = of(these).zip(of(those)).ok_or(StudyError::Lost)?;
        Ok(mean(&a.iter().zip(&b).map(|(a, b)| b / a).collect::<Vec<_>>()))
    }

    /// How long a piece of work would have taken with processors that are not faster than this machine's: the server's
    /// part of it counts in full.
    pub(super) fn real_seconds(&self, piece: &Piece) -> f64 {
        piece.seconds + piece.processor_s * (1.0 - 1.0 / self.time_scale)
    }
}

impl Shown {
    /// The mean over rounds of something of the SELECTs.
    pub(super) fn select_mean(&self, of: impl Fn(&Piece) -> f64) -> Measured {
        mean(&self.selects.iter().map(of).collect::<Vec<_>>())
    }

    /// How long the drive takes for a page in one round, µs.
    pub(super) fn page_us(&self, piece: &Piece) -> f64 {
        let pages = self.ended.read_bytes(piece) / self.page.0 as f64;
        1e6 * self.ended.waited_s(piece) / pages.max(1.0)
    }

    /// `2,723 of 2,801`.
    pub(super) fn placed_words(&self) -> String {
        let mut words = format!("{} of {}", grouped(self.placed.hot), grouped(self.placed.pages));
        if self.placed.torn > 0 {
            let _ = write!(words, ", {} torn", grouped(self.placed.torn));
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_a_turn_each_time_and_everybody_is_first_once() {
        let all: Vec<Vec<usize>> = (0..4).map(|time| turns(4, time).collect()).collect();
        for turn in &all {
            let mut sorted = turn.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3]);
        }
        assert_eq!(all.iter().map(|turn| turn[0]).collect::<Vec<_>>(), [0, 1, 2, 3]);
    }

    #[test]
    fn variants_differ_from_a_neighbour_in_one_thing() {
        let of = |name: &str| VARIANTS.into_iter().find(|variant| variant.name == name).unwrap();
        let differ = |one: &str, other: &str| {
            let (a, b) = (of(one), of(other));
            [a.page != b.page, a.is_placed != b.is_placed, a.writes != b.writes].iter().filter(|&&d| d).count()
        };
        for (one, other) in [(DEFAULT, PLAIN), (PLAIN, PLACED), (PLACED, BULK), (PLACED, HALVED), (PLAIN, ONLY_HALVED)]
        {
            assert_eq!(differ(one, other), 1, "{one}, {other}");
        }
    }
}
