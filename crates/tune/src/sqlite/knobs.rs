//! The settings of a database that can be changed, and their candidates from a drive's profile.
//!
//! Each [`Knob`] names settings that are worth a measurement; the gain is measured, never assumed. They are tried in
//! the order of [`knobs`]: settings with the fewest requirements first, and a setting before those whose gain depends
//! on it. None makes a commit less durable.
//!
//! # Adding a setting
//!
//! A [`Knob`] with its candidates here, and its effect in `settings.rs`. A technique of `flashwise_sqlite`'s
//! `TECHNIQUES` is tried automatically.

use flashwise_block::{ByteSize, Nanos};
use flashwise_profile::{DeviceProfile, Parameters};
use flashwise_sqlite::{Layout, TECHNIQUES, Technique};

use super::settings::{Journal, Settings, cache_pragma, checkpoint_pragma};

/// SQLite's page sizes.
const PAGES: std::ops::RangeInclusive<u64> = 512..=65536;

/// Something that can be changed.
#[derive(Clone, Copy)]
pub(crate) enum Knob {
    PageCache,
    JournalMode,
    PageSize,
    CheckpointLength,
    Technique(&'static Technique),
}

/// Every knob, in the order in which they are tried.
pub(crate) fn knobs() -> impl Iterator<Item = Knob> {
    let settings = [Knob::PageCache, Knob::JournalMode, Knob::PageSize, Knob::CheckpointLength];
    settings.into_iter().chain(TECHNIQUES.iter().map(Knob::Technique))
}

/// The input for the candidates.
pub(crate) struct Facts<'a> {
    pub(crate) profile: &'a DeviceProfile,
    pub(crate) database: ByteSize,
    pub(crate) page_cache_limit: ByteSize,
}

/// A change that is worth a measurement.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) settings: Settings,
    pub(crate) old_value: String,
    pub(crate) new_value: String,
    pub(crate) reason: String,
    /// How to do it by hand.
    pub(crate) apply: String,
    /// How to take it back.
    pub(crate) undo: String,
}

impl Knob {
    /// The name, as `--skip` takes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PageCache => "cache_size",
            Self::JournalMode => "journal_mode",
            Self::PageSize => "page_size",
            Self::CheckpointLength => "wal_autocheckpoint",
            Self::Technique(technique) => technique.name,
        }
    }

    /// The candidates for changing `now`.
    pub(crate) fn candidates(self, facts: &Facts<'_>, now: &Settings) -> Vec<Candidate> {
        match self {
            Self::PageCache => page_cache(facts, now).into_iter().collect(),
            Self::JournalMode => journal_mode(&facts.profile.parameters, now).into_iter().collect(),
            Self::PageSize => page_sizes(&facts.profile.parameters, now),
            Self::CheckpointLength => checkpoint_lengths(now),
            Self::Technique(technique) => by_technique(technique, &facts.profile.parameters, now).into_iter().collect(),
        }
    }
}

/// All of the database, as far as memory may be had.
fn page_cache(facts: &Facts<'_>, now: &Settings) -> Option<Candidate> {
    // A page in the cache takes more than its bytes; a whole mebibyte is easier to read.
    let whole = ByteSize((facts.database.bytes() + facts.database.bytes() / 8).next_multiple_of(1 << 20));
    let size = whole.min(facts.page_cache_limit);
    let reason = match size == whole {
        true => format!("the whole database, {}, fits: no page is read twice", facts.database),
        false => format!("the limit of --page-cache-limit; the database has {}", facts.database),
    };
    (size > now.page_cache).then(|| Candidate {
        settings: Settings { page_cache: size, ..*now },
        old_value: now.page_cache.to_string(),
        new_value: size.to_string(),
        reason,
        apply: format!("in each connection: {}", cache_pragma(size)),
        undo: format!("in each connection: {}", cache_pragma(now.page_cache)),
    })
}

fn journal_mode(drive: &Parameters, now: &Settings) -> Option<Candidate> {
    let flush = drive.flush_ns.known().map(|ns| format!(", {} each on this drive", Nanos(ns))).unwrap_or_default();
    (now.journal == Journal::Rollback).then(|| Candidate {
        settings: Settings { journal: Journal::Log, ..*now },
        old_value: now.journal.name().to_owned(),
        new_value: Journal::Log.name().to_owned(),
        reason: format!(
            "a commit with a rollback journal waits for several flushes in sequence{flush}; with a log, for one"
        ),
        apply: "PRAGMA journal_mode = wal".to_owned(),
        undo: "PRAGMA journal_mode = delete".to_owned(),
    })
}

/// The sizes that the drive itself works in.
fn page_sizes(drive: &Parameters, now: &Settings) -> Vec<Candidate> {
    let figures =
        [("write unit", &drive.write_unit_bytes), ("flash page", &drive.page_bytes), ("chunk", &drive.chunk_bytes)];
    let mut candidates: Vec<Candidate> = Vec::new();
    for (what, figure) in figures {
        let Some(bytes) = figure.known().filter(|bytes| PAGES.contains(bytes) && bytes.is_power_of_two()) else {
            continue;
        };
        let page = ByteSize(bytes);
        if page != now.page && candidates.iter().all(|candidate| candidate.settings.page != page) {
            candidates.push(page_size(now, page, &format!("as long as this drive's {what}")));
        }
    }
    candidates
}

fn page_size(now: &Settings, page: ByteSize, reason: &str) -> Candidate {
    Candidate {
        settings: Settings { page, ..*now },
        old_value: now.page.to_string(),
        new_value: page.to_string(),
        reason: reason.to_owned(),
        apply: set_page_size(now, page),
        undo: set_page_size(now, now.page),
    }
}

/// The statements that give a database another page size, which only one without a log can be given.
pub(crate) fn set_page_size(settings: &Settings, page: ByteSize) -> String {
    let set = format!("PRAGMA page_size = {}; VACUUM", page.bytes());
    match settings.journal {
        Journal::Rollback => set,
        Journal::Log => format!("PRAGMA journal_mode = delete; {set}; PRAGMA journal_mode = wal"),
    }
}

fn checkpoint_lengths(now: &Settings) -> Vec<Candidate> {
    let candidate = |pages: u32| Candidate {
        settings: Settings { checkpoint_pages: pages, ..*now },
        old_value: format!("{} pages", now.checkpoint_pages),
        new_value: format!("{pages} pages"),
        reason: format!(
            "a page that changes often is written back once per {pages} pages of log instead of {}; the log grows to {}",
            now.checkpoint_pages,
            ByteSize(u64::from(pages) * now.page.bytes())
        ),
        apply: format!("in each connection: {}", checkpoint_pragma(pages)),
        undo: format!("in each connection: {}", checkpoint_pragma(now.checkpoint_pages)),
    };
    let lengths = [4, 16].map(|times| now.checkpoint_pages.saturating_mul(times));
    if now.journal == Journal::Log { lengths.map(candidate).into() } else { Vec::new() }
}

fn by_technique(technique: &Technique, drive: &Parameters, now: &Settings) -> Option<Candidate> {
    let vfs = technique.recommended(drive, &now.vfs)?;
    let mut settings = Settings { vfs, ..*now };
    let is_for_the_other_journal = match now.journal {
        Journal::Rollback => vfs.log != now.vfs.log,
        Journal::Log => vfs.atomic_batch != now.vfs.atomic_batch,
    };
    if is_for_the_other_journal {
        return None;
    }
    let mut reason = technique.what.to_owned();
    if let Layout::HotLocations { chunk, .. } = vfs.layout
        && now.vfs.layout == Layout::Plain
    {
        if !PAGES.contains(&chunk.bytes()) {
            return None;
        }
        if settings.page != chunk {
            settings.page = chunk;
            reason = format!("{reason}; needs page_size {chunk}");
        }
    }
    let before = now.vfs.parameters();
    let value = vfs.parameters().into_iter().find(|value| !before.contains(value))?;
    let stored = |settings: &Settings| (settings.vfs.layout, settings.vfs.log, settings.vfs.atomic_batch);
    let is_layout = stored(&settings) != stored(now);
    let (apply, undo) = match is_layout {
        true => (
            format!("flashwise sqlite import PLAIN FILE --techniques '{value}'"),
            "flashwise sqlite export FILE PLAIN".to_owned(),
        ),
        false => (format!("in the URI: &{value}"), format!("in the URI: &{}=off", technique.name)),
    };
    Some(Candidate { settings, old_value: "off".to_owned(), new_value: value, reason, apply, undo })
}
