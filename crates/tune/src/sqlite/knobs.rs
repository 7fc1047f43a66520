//! The settings of a database that can be changed: which values are worth a run, what a change costs its user, and how
//! it is made and undone.
//!
//! A value is tried only if it can differ physically from the present one for this workload: [`Facts`] has what decides
//! that. What answers the costliest findings of the [audit](Answers) of the unmodified workload is tried first. None
//! makes a commit less durable.
//!
//! # Adding a setting
//!
//! A [`Knob`] with its values in [`Space::neighbours`], its change in [`Space::changes`], and its effect in
//! `settings.rs`. A technique of `flashwise_sqlite`'s `TECHNIQUES` is tried automatically.

use flashwise_block::names::choices;
use flashwise_block::{ByteSize, Nanos};
use flashwise_profile::DeviceProfile;
use flashwise_sqlite::{Layout, LogLayout, LogSyncs, TECHNIQUES, VfsOptions};

use super::answers::Answers;
use super::places::Places;
use super::settings::{Journal, Settings, cache_pragma, checkpoint_pragma, journal_pragma};
use crate::search::WORTH_IT;
use crate::{ChangeKind, TuneError};

/// Page sizes that are tried: from a drive's smallest unit to SQLite's largest page. Smaller ones make every write of
/// such a drive a read as well.
pub(super) const PAGES: [ByteSize; 5] =
    [ByteSize::kib(4), ByteSize::kib(8), ByteSize::kib(16), ByteSize::kib(32), ByteSize::kib(64)];
/// Page cache of the checklist.
pub(crate) const CHECKLIST_CACHE: ByteSize = ByteSize::mib(64);
/// What a page in SQLite's cache takes beside its bytes: an eighth covers its header at every page size that is tried
/// (`sqlite3_db_status`, `SQLITE_DBSTATUS_CACHE_USED`: 4,368 bytes for a page of 4 KiB), and growth.
const CACHE_OVERHEAD: u64 = 8;

/// The least ratio that a change has to bring, by what it costs its user. A statement in a connection or in the file is
/// worth what a measurement can show; a library to load in each program 5 %; a file that plain SQLite, its shell and
/// backup tools cannot open 10 %.
pub(crate) fn price(kind: ChangeKind) -> f64 {
    match kind {
        ChangeKind::Connection | ChangeKind::File => WORTH_IT,
        ChangeKind::Vfs => 1.05,
        ChangeKind::Conversion => 1.10,
        // Never bought.
        ChangeKind::Guarantee => f64::INFINITY,
    }
}

/// What several changes of a kind have to bring together, where they share a price, and each of them beside the others.
/// A library is loaded and a file converted once, and whoever converts a file loads the library as well: on a Samsung
/// 960 EVO a shop gained 4.7 and 2.9 % by two techniques of the VFS, 7.7 % by both, and neither was worth 5 % alone.
pub(crate) fn prices(kind: ChangeKind, count: usize, beside: &[Change]) -> (Option<f64>, f64) {
    let is_paid = kind == ChangeKind::Vfs && beside.iter().any(|change| change.kind == ChangeKind::Conversion);
    match price(kind) {
        price if is_paid || price <= WORTH_IT => (None, WORTH_IT),
        price if count == 1 => (None, price),
        price => (Some(price), WORTH_IT),
    }
}

/// Something that can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Knob {
    PageSize,
    JournalMode,
    CheckpointLength,
    PageCache,
    /// By name.
    Technique(&'static str),
}

/// Every knob; a knob that others depend on is before them.
fn knobs() -> impl Iterator<Item = Knob> {
    let settings = [Knob::PageSize, Knob::JournalMode, Knob::CheckpointLength, Knob::PageCache];
    let techniques = TECHNIQUES.iter().map(|technique| technique.name).chain([LOG_SYNC]);
    settings.into_iter().chain(techniques.map(Knob::Technique))
}

impl Knob {
    /// The name, as `--skip` takes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PageCache => "cache_size",
            Self::JournalMode => "journal_mode",
            Self::PageSize => "page_size",
            Self::CheckpointLength => "wal_autocheckpoint",
            Self::Technique(name) => name,
        }
    }
}

/// Refuses names that no knob has.
pub(crate) fn check_names(names: &[String]) -> Result<(), TuneError> {
    let known = || knobs().map(Knob::name);
    match names.iter().find(|name| !known().any(|known| known == name.as_str())) {
        Some(name) => Err(TuneError::Options(format!("--skip {name}: unknown setting; {}", choices(name, known())))),
        None => Ok(()),
    }
}

/// What is known of the drive, the database and the workload before the search.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) profile: DeviceProfile,
    pub(crate) database: ByteSize,
    pub(crate) page_cache_limit: ByteSize,
    /// Whether the workload writes to the database.
    pub(crate) writes: bool,
    /// Pages that go through a log in a full run, and in a short one.
    pub(crate) log_pages: u64,
    pub(crate) log_pages_short: u64,
    /// What the audit of the unmodified workload found.
    pub(crate) answers: Answers,
    /// Settings that must stay.
    pub(crate) skip: Vec<String>,
    /// Whether places in the database's file are places on the drive.
    pub(crate) places: Places,
}

/// The change of a setting, with everything that its user needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) knob: Knob,
    pub(crate) kind: ChangeKind,
    /// Whether what it brings is the work of memory, not of the drive.
    pub(crate) is_memory: bool,
    pub(crate) old_value: String,
    pub(crate) new_value: String,
    pub(crate) reason: String,
    /// How to do it, without the names of files, which `by_hand.rs` adds.
    pub(crate) apply: String,
    /// How to take it back.
    pub(crate) undo: String,
}

/// The configurations of a database.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    pub(crate) stock: Settings,
    pub(crate) facts: Facts,
}

impl Space {
    fn may_change(&self, knob: Knob) -> bool {
        !self.facts.skip.iter().any(|name| name == knob.name()) && self.facts.places.allow(knob.name())
    }

    /// What everybody's checklist says: a write-ahead log and a cache of 64 MiB, or of what memory may be had, with the
    /// present guarantees.
    pub(crate) fn checklist(&self) -> Settings {
        // Without a write there is no commit, and a log is the same as none.
        let has_log = self.facts.writes && self.may_change(Knob::JournalMode);
        let journal = if has_log { Journal::Log } else { self.stock.journal };
        let cache = match self.may_change(Knob::PageCache) {
            true => CHECKLIST_CACHE.min(self.facts.page_cache_limit),
            false => self.stock.page_cache,
        };
        Settings { journal, page_cache: cache.max(self.stock.page_cache), ..self.stock }
    }

    /// Where the search starts: what answers a finding of the audit, the costliest first; then single changes, then
    /// techniques beside the other journal and cache, then the other combinations. Where time is short, what is worth
    /// trying most comes first.
    pub(crate) fn first(&self) -> Vec<Settings> {
        let combinations = self.combinations();
        let same_pages = combinations.iter().filter(|settings| settings.page == self.stock.page);
        let base = same_pages.max_by_key(|settings| self.changes(settings).len()).copied();
        let is_single = |settings: &Settings| self.changes(settings).len() < 2;
        let (mut all, several): (Vec<Settings>, Vec<Settings>) = combinations.into_iter().partition(is_single);
        let techniques: Vec<Settings> = base.iter().flat_map(|base| self.with_techniques(base)).collect();
        all.extend(self.with_other_rollback(&self.stock));
        all.extend(&techniques);
        all.extend(several);
        let steps = self.steps().into_iter().map(|settings| (settings, self.rank(&self.stock, &settings)));
        let beside = techniques.iter().flat_map(|settings| base.map(|base| (*settings, self.rank(&base, settings))));
        let ranks: Vec<(Settings, usize)> = steps.chain(beside).collect();
        let rank = |settings: &Settings| ranks.iter().find(|(step, _)| step == settings).map(|(_, rank)| *rank);
        // Stable: what answers no finding stays in this order, behind the rest.
        let last = self.facts.answers.last();
        all.sort_by_key(|settings| (*settings != self.stock, rank(settings).unwrap_or(last)));
        all
    }

    /// One step from the present settings; a layout comes with the page size that it needs.
    fn steps(&self) -> Vec<Settings> {
        let stock = &self.stock;
        let mut steps = self.with_other_pages(stock);
        steps.extend(self.with_other_journal(stock));
        steps.extend(self.with_other_rollback(stock));
        steps.extend(self.with_other_cache(stock));
        steps
    }

    /// How early settings are tried: by the costliest finding that one of their changes beyond those of `base` answers.
    fn rank(&self, base: &Settings, settings: &Settings) -> usize {
        let (known, all) = (self.changes(base), self.changes(settings));
        self.facts.answers.rank(all.iter().filter(|change| !known.contains(change)).map(|change| change.knob.name()))
    }

    /// Every combination of page size, hot locations, journal and cache, those with the fewest changes first.
    pub(crate) fn combinations(&self) -> Vec<Settings> {
        let pages = std::iter::once(self.stock).chain(self.with_other_pages(&self.stock));
        let journals = |settings: Settings| std::iter::once(settings).chain(self.with_other_journal(&settings));
        let caches = |settings: Settings| std::iter::once(settings).chain(self.with_other_cache(&settings));
        let mut all: Vec<Settings> = pages.flat_map(journals).flat_map(caches).collect();
        all.sort_by_key(|settings| self.changes(settings).len());
        all
    }

    /// Configurations that differ in one setting, as far as short runs can show a difference.
    pub(crate) fn neighbours(&self, of: &Settings) -> Vec<Settings> {
        let mut near = self.with_other_pages(of);
        near.extend(self.with_other_journal(of));
        near.extend(self.with_other_rollback(of));
        near.extend(self.with_other_cache(of));
        near.extend(self.with_other_checkpoint(of, self.facts.log_pages_short));
        near.extend(self.with_techniques(of));
        near.sort_by_key(|settings| self.rank(of, settings));
        // Each change can be taken back, too.
        near.extend(self.changes(of).iter().map(|change| self.without(of, change.knob)));
        near
    }

    /// Configurations that differ from this one only in a full run.
    pub(crate) fn seen_in_full_runs(&self, of: &Settings) -> Vec<Settings> {
        let short = self.with_other_checkpoint(of, self.facts.log_pages_short);
        let full = self.with_other_checkpoint(of, self.facts.log_pages);
        full.into_iter().filter(|settings| !short.contains(settings)).collect()
    }

    fn with_other_pages(&self, of: &Settings) -> Vec<Settings> {
        if !self.may_change(Knob::PageSize) {
            return Vec::new();
        }
        let plain = |page: ByteSize| Settings { page, ..*of };
        let mut all: Vec<Settings> = PAGES.into_iter().map(plain).map(normal).collect();
        let hot = TECHNIQUES.iter().find(|technique| technique.name == HOT_LOCATIONS);
        let hot = hot.filter(|_| self.may_change(Knob::Technique(HOT_LOCATIONS)));
        let vfs = hot.and_then(|hot| hot.recommended(&self.facts.profile.parameters, &of.vfs));
        if let Some(vfs) = vfs
            && let Layout::HotLocations { chunk, .. } = vfs.layout
            && PAGES.contains(&chunk)
        {
            all.push(Settings { page: chunk, vfs, ..*of });
        }
        all.retain(|settings| settings != of);
        all
    }

    fn with_other_journal(&self, of: &Settings) -> Vec<Settings> {
        // Without a write there is no commit.
        if !self.may_change(Knob::JournalMode) || !self.facts.writes {
            return Vec::new();
        }
        let journal = match of.journal {
            Journal::Delete | Journal::Truncate | Journal::Persist => Journal::Log,
            // A log is given back only where the database had none.
            Journal::Log if self.stock.journal == Journal::Delete => Journal::Delete,
            Journal::Log => return Vec::new(),
        };
        vec![normal(Settings { journal, ..*of })]
    }

    /// The other ways to end a rollback journal, on a drive that merges units: which places a commit writes to decides
    /// there. On any other drive the number of flushes does, and on ext4 a transaction takes 6.0 of them with these and
    /// 4.0 with a journal that is deleted (`docs/kernel.md`). So they are no candidates, and the search takes no longer.
    /// They make a commit more durable: SQLite syncs the header that it overwrites and the new length, and does not
    /// sync the folder after a deletion. So a database whose journal is kept is not given one that is deleted.
    fn with_other_rollback(&self, of: &Settings) -> Vec<Settings> {
        let merges_units = self.facts.profile.card.allocation_unit_bytes.known().is_some();
        // An atomic batch needs no journal.
        let has_journal = of.journal != Journal::Log && !of.vfs.atomic_batch;
        if !merges_units || !has_journal || !self.may_change(Knob::JournalMode) || !self.facts.writes {
            return Vec::new();
        }
        let journals = [Journal::Delete, Journal::Truncate, Journal::Persist];
        let others = journals.into_iter().filter(|journal| *journal != of.journal);
        let others = others.map(|journal| Settings { journal, ..*of });
        others.filter(|settings| self.stock.may_lose_a_commit() || !settings.may_lose_a_commit()).collect()
    }

    /// The cache that holds the whole database, as far as memory may be had; `None` if the present one does.
    fn largest_cache(&self) -> Option<ByteSize> {
        let bytes = self.facts.database.bytes();
        let whole = bytes + bytes / CACHE_OVERHEAD;
        // A whole mebibyte is easier to read.
        let largest = ByteSize(whole.next_multiple_of(1 << 20)).min(self.facts.page_cache_limit);
        let now = self.stock.page_cache;
        (now.bytes() < whole && now < largest).then_some(largest)
    }

    fn with_other_cache(&self, of: &Settings) -> Vec<Settings> {
        let Some(largest) = self.largest_cache().filter(|_| self.may_change(Knob::PageCache)) else {
            return Vec::new();
        };
        let sizes = [self.stock.page_cache, largest];
        sizes
            .into_iter()
            .filter(|size| *size != of.page_cache)
            .map(|page_cache| Settings { page_cache, ..*of })
            .collect()
    }

    /// Longer logs, as far as the log of a run reaches.
    fn with_other_checkpoint(&self, of: &Settings, log_pages: u64) -> Vec<Settings> {
        if of.journal != Journal::Log || !self.may_change(Knob::CheckpointLength) {
            return Vec::new();
        }
        // Two lengths beyond the end of the log are one run.
        let pages = log_pages * self.stock.page.bytes() / of.page.bytes().max(1);
        let mut lengths = vec![self.stock.checkpoint_pages];
        for times in [4, 16] {
            if lengths.last().is_some_and(|length| pages > u64::from(*length)) {
                lengths.push(self.stock.checkpoint_pages.saturating_mul(times));
            }
        }
        let others = lengths.into_iter().filter(|length| *length != of.checkpoint_pages);
        others.map(|checkpoint_pages| Settings { checkpoint_pages, ..*of }).collect()
    }

    fn with_techniques(&self, of: &Settings) -> Vec<Settings> {
        let drive = &self.facts.profile.parameters;
        // Our VFS extends logs ahead where it is let. That is a change of its own beside a technique, so that whichever
        // of the two brings nothing is pruned.
        let of_vfs = VfsOptions { log_syncs: self.log_syncs(of), ..of.vfs };
        let extended = (of_vfs != of.vfs).then_some(Settings { vfs: of_vfs, ..*of });
        let with = |technique: &flashwise_sqlite::Technique| {
            let may_change = self.may_change(Knob::Technique(technique.name)) && technique.name != HOT_LOCATIONS;
            let vfs = technique.recommended(drive, &of_vfs).filter(|vfs| may_change && *vfs != of_vfs)?;
            // Reads alone are all the same to what concerns writes.
            let is_of_reads = vfs.read_ahead_depth != of_vfs.read_ahead_depth;
            (is_of_reads || self.facts.writes).then_some(Settings { vfs, ..*of })
        };
        // A technique of the other journal changes nothing.
        let techniques = TECHNIQUES.iter().filter_map(with).filter(|settings| normal(*settings) == *settings);
        extended.into_iter().chain(techniques).collect()
    }

    /// How our VFS is to sync the logs of these settings.
    fn log_syncs(&self, of: &Settings) -> LogSyncs {
        match of.journal == Journal::Log && self.facts.writes && self.may_change(Knob::Technique(LOG_SYNC)) {
            true => LogSyncs::Extend,
            false => of.vfs.log_syncs,
        }
    }

    /// Settings without one of their changes, and without those that depend on it.
    pub(crate) fn without(&self, settings: &Settings, knob: Knob) -> Settings {
        let stock = &self.stock;
        let mut without = *settings;
        match knob {
            Knob::PageSize => without.page = stock.page,
            Knob::JournalMode => without.journal = stock.journal,
            Knob::CheckpointLength => without.checkpoint_pages = stock.checkpoint_pages,
            Knob::PageCache => without.page_cache = stock.page_cache,
            Knob::Technique(name) => without.vfs = without_technique(&settings.vfs, name),
        }
        let mut normal = normal(without);
        if normal.journal != Journal::Log {
            normal.checkpoint_pages = stock.checkpoint_pages;
        }
        normal
    }

    /// What settings change of the present ones.
    pub(crate) fn changes(&self, to: &Settings) -> Vec<Change> {
        let stock = &self.stock;
        let settings = [self.page_size(to), self.journal_mode(to), self.checkpoint(to), self.page_cache(to)];
        let techniques = to.techniques().into_iter().filter(|value| !stock.techniques().contains(value));
        settings.into_iter().flatten().chain(techniques.filter_map(|value| technique(&value))).collect()
    }

    fn page_size(&self, to: &Settings) -> Option<Change> {
        let (stock, page) = (&self.stock, to.page);
        let drive = &self.facts.profile.parameters;
        let figures =
            [("write unit", &drive.write_unit_bytes), ("flash page", &drive.page_bytes), ("chunk", &drive.chunk_bytes)];
        let same = figures.into_iter().find(|(_, figure)| figure.known() == Some(page.bytes()));
        let reason = match same {
            Some((what, _)) => format!("the fastest size that was tried, as long as this drive's {what}"),
            None => "the fastest size that was tried".to_owned(),
        };
        (page != stock.page).then(|| Change {
            knob: Knob::PageSize,
            kind: ChangeKind::File,
            is_memory: false,
            old_value: stock.page.to_string(),
            new_value: page.to_string(),
            reason,
            apply: set_page_size(stock, page),
            undo: set_page_size(to, stock.page),
        })
    }

    fn journal_mode(&self, to: &Settings) -> Option<Change> {
        let flush = self.facts.profile.parameters.flush_ns.known();
        let flush = flush.map(|ns| format!(", {} each on this drive", Nanos(ns))).unwrap_or_default();
        let [old, new] = [self.stock.journal, to.journal];
        let kind = if old.of_file() == new.of_file() { ChangeKind::Connection } else { ChangeKind::File };
        let at = if kind == ChangeKind::Connection { "in each connection: " } else { "" };
        let reason = match new {
            Journal::Truncate | Journal::Persist => {
                "the fastest journal that was tried: it stays one file, so that a commit writes to fewer units"
                    .to_owned()
            }
            _ => format!(
                "a commit with a rollback journal waits for several flushes in sequence{flush}; with a log, for one"
            ),
        };
        (new != old).then(|| Change {
            knob: Knob::JournalMode,
            kind,
            is_memory: false,
            old_value: old.name().to_owned(),
            new_value: new.name().to_owned(),
            reason,
            apply: format!("{at}{}", journal_pragma(new)),
            undo: format!("{at}{}", journal_pragma(old)),
        })
    }

    fn checkpoint(&self, to: &Settings) -> Option<Change> {
        let (old, new) = (self.stock.checkpoint_pages, to.checkpoint_pages);
        (new != old).then(|| Change {
            knob: Knob::CheckpointLength,
            kind: ChangeKind::Connection,
            is_memory: false,
            old_value: format!("{old} pages"),
            new_value: format!("{new} pages"),
            reason: format!(
                "a page that changes often is written back once per {new} pages of log instead of {old}; the log grows \
                 to {}",
                ByteSize(u64::from(new) * to.page.bytes())
            ),
            apply: format!("in each connection: {}", checkpoint_pragma(new)),
            undo: format!("in each connection: {}", checkpoint_pragma(old)),
        })
    }

    fn page_cache(&self, to: &Settings) -> Option<Change> {
        let (old, new) = (self.stock.page_cache, to.page_cache);
        let database = self.facts.database;
        let reason = match new.bytes() >= database.bytes() {
            true => format!("the whole database, {database}, fits: no page is read twice"),
            false => format!("holds a larger part of the database of {database}"),
        };
        (new != old).then(|| Change {
            knob: Knob::PageCache,
            kind: ChangeKind::Connection,
            is_memory: true,
            old_value: old.to_string(),
            new_value: new.to_string(),
            reason,
            apply: format!("in each connection: {}", cache_pragma(new)),
            undo: format!("in each connection: {}", cache_pragma(old)),
        })
    }
}

pub(super) const HOT_LOCATIONS: &str = "use-hot-locations";

/// The parameter of our VFS that extends logs ahead.
pub(super) const LOG_SYNC: &str = "log-sync";

/// The options without a technique: those that its parameter is not among.
fn without_technique(vfs: &VfsOptions, name: &str) -> VfsOptions {
    if name == LOG_SYNC {
        return VfsOptions { log_syncs: LogSyncs::Parent, ..*vfs };
    }
    let is_other = |value: &String| value.split('=').next() != Some(name);
    let others: Vec<String> = vfs.parameters().into_iter().filter(is_other).collect();
    // Parameters that options were written as are read as the same.
    let parsed = VfsOptions::from_text(&others.join("&")).unwrap_or(*vfs);
    VfsOptions { parent: vfs.parent, record: vfs.record, ..parsed }
}

/// The change of a technique, from its parameter in a URI.
fn technique(value: &str) -> Option<Change> {
    let name = value.split('=').next()?;
    if name == LOG_SYNC {
        return Some(extended_logs(value));
    }
    let technique = TECHNIQUES.iter().find(|technique| technique.name == name)?;
    let options = VfsOptions::from_text(value).ok()?;
    let is_layout = options.is_converting();
    // Where it is a layout, `by_hand.rs` has the commands, which need the names of files.
    let [apply, undo] = [value.to_owned(), format!("{name}=off")].map(|parameter| format!("in the URI: &{parameter}"));
    Some(Change {
        knob: Knob::Technique(technique.name),
        kind: if is_layout { ChangeKind::Conversion } else { ChangeKind::Vfs },
        is_memory: false,
        old_value: "off".to_owned(),
        new_value: value.to_owned(),
        reason: technique.what.to_owned(),
        apply,
        undo,
    })
}

/// The change that our VFS is without a technique.
fn extended_logs(value: &str) -> Change {
    let by_sqlite = "parent";
    Change {
        knob: Knob::Technique(LOG_SYNC),
        kind: ChangeKind::Vfs,
        is_memory: false,
        old_value: by_sqlite.to_owned(),
        new_value: value.to_owned(),
        reason:
            "a log that is written before it is used grows without a commit of the file system: one flush per commit"
                .to_owned(),
        apply: format!("in the URI: &{value}"),
        undo: format!("in the URI: &{LOG_SYNC}={by_sqlite}"),
    }
}

/// Settings without those that have no effect beside the others.
fn normal(mut settings: Settings) -> Settings {
    match settings.journal {
        Journal::Log => settings.vfs.atomic_batch = false,
        journal => {
            (settings.vfs.log, settings.vfs.log_syncs) = (LogLayout::Plain, LogSyncs::Parent);
            settings.vfs.atomic_batch &= journal == Journal::Delete;
        }
    }
    if let Layout::HotLocations { chunk, .. } = settings.vfs.layout
        && chunk != settings.page
    {
        settings.vfs.layout = Layout::Plain;
    }
    settings
}

/// The statements that give a database another page size, which only one without a log can be given.
pub(crate) fn set_page_size(settings: &Settings, page: ByteSize) -> String {
    let set = format!("PRAGMA page_size = {}; VACUUM", page.bytes());
    match settings.journal {
        Journal::Delete | Journal::Truncate | Journal::Persist => set,
        Journal::Log => format!("PRAGMA journal_mode = delete; {set}; PRAGMA journal_mode = wal"),
    }
}

/// The settings in a few words, by what they change: `32 KiB pages, wal, 64 MiB cache`.
pub(crate) fn label(stock: &Settings, settings: &Settings) -> String {
    let page = (settings.page != stock.page).then(|| format!("{} pages", settings.page));
    let journal = (settings.journal != stock.journal).then(|| settings.journal.name().to_owned());
    let checkpoint = (settings.checkpoint_pages != stock.checkpoint_pages)
        .then(|| format!("checkpoint {}", settings.checkpoint_pages));
    let cache = (settings.page_cache != stock.page_cache).then(|| format!("{} cache", settings.page_cache));
    let synchronous =
        (settings.synchronous != stock.synchronous).then(|| format!("synchronous={}", settings.synchronous.name()));
    let techniques = settings.techniques();
    let short = techniques.iter().map(|value| value.split('=').next().unwrap_or_default().to_owned());
    let parts: Vec<String> =
        [page, journal, checkpoint, cache, synchronous].into_iter().flatten().chain(short).collect();
    if parts.is_empty() { "unmodified".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::sqlite::settings::{DEFAULT_PAGE, DEFAULT_PAGE_CACHE};

    pub(crate) fn profile() -> DeviceProfile {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../sqlite/tests/samsung-960-evo.toml");
        DeviceProfile::from_toml(&std::fs::read_to_string(path).unwrap(), path).unwrap()
    }

    fn space(change: impl FnOnce(&mut Facts)) -> Space {
        let mut facts = Facts {
            profile: profile(),
            database: ByteSize::mib(24),
            page_cache_limit: ByteSize::mib(64),
            writes: true,
            log_pages: 100_000,
            log_pages_short: 100_000,
            answers: Answers::default(),
            skip: Vec::new(),
            places: Places::Simulated,
        };
        change(&mut facts);
        Space { stock: Settings::plain(DEFAULT_PAGE, DEFAULT_PAGE_CACHE), facts }
    }

    fn logged(space: &Space) -> Settings {
        Settings { journal: Journal::Log, ..space.stock }
    }

    #[test]
    fn where_places_are_unknown_no_candidate_rests_on_one() {
        let protected = |facts: &mut Facts| {
            let drive = &mut facts.profile.parameters;
            drive.stripe_bytes = flashwise_profile::Figure::certain(65536, 65536, 65536);
            drive.write_unit_bytes = flashwise_profile::Figure::certain(16384, 16384, 16384);
            drive.power_loss_protected = flashwise_profile::Figure::certain(true, true, true);
        };
        let all = |space: &Space| [space.first(), space.neighbours(&logged(space))].concat();
        let rests = |settings: &Settings| settings.vfs.layout != Layout::Plain || settings.vfs.log != LogLayout::Plain;
        let known = all(&space(protected));
        assert!(known.iter().any(|settings| settings.vfs.layout != Layout::Plain));
        assert!(known.iter().any(|settings| settings.vfs.log != LogLayout::Plain));
        let unknown = space(|facts| {
            protected(facts);
            facts.places = Places::Unknown("striped".into());
        });
        assert!(!all(&unknown).iter().any(rests));
    }

    #[test]
    fn the_start_has_every_combination_once_and_single_changes_first() {
        let space = space(|_| {});
        let (first, combinations) = (space.first(), space.combinations());
        assert_eq!(combinations.len(), 6 * 2 * 2, "five page sizes, one at hot locations; two journals; two caches");
        assert!(combinations.iter().all(|settings| first.iter().filter(|other| *other == settings).count() == 1));
        assert_eq!(first[0], space.stock);
        let techniques = first.iter().position(|settings| !combinations.contains(settings)).unwrap();
        assert!(first[..techniques].iter().all(|settings| space.changes(settings).len() < 2));
        let is_beside =
            |settings: &&Settings| settings.journal == Journal::Log && settings.page_cache == ByteSize::mib(27);
        let added = first.len() - combinations.len();
        assert!(added > 2 && first[techniques..].iter().take(added).all(|settings| is_beside(&settings)));
        let hot = combinations.iter().filter(|settings| settings.vfs.layout != Layout::Plain);
        assert!(hot.clone().count() == 4 && hot.clone().all(|settings| settings.page == ByteSize::kib(64)));
        assert_eq!(combinations.iter().map(|settings| settings.page_cache).max(), Some(ByteSize::mib(27)));
    }

    #[test]
    fn what_cannot_differ_is_not_tried() {
        let lengths = |pages: u64| {
            let space = space(|facts| facts.log_pages_short = pages);
            let near = space.neighbours(&logged(&space));
            near.iter().map(|settings| settings.checkpoint_pages).filter(|pages| *pages != 1000).collect::<Vec<_>>()
        };
        assert_eq!(lengths(900), Vec::<u32>::new(), "the log never gets as long as now");
        assert_eq!(lengths(1_228), [4_000], "with 4,000 and with 16,000 pages it is never written back");
        assert_eq!(lengths(4_001), [4_000, 16_000]);
        let reads = space(|facts| facts.writes = false);
        let near = reads.neighbours(&reads.stock);
        assert!(near.iter().all(|settings| settings.journal == Journal::Delete && !settings.vfs.atomic_batch));
        assert!(near.iter().all(|settings| settings.vfs.write_back_depth == 0));
        let small = space(|facts| facts.database = ByteSize::kib(1000));
        assert!(small.first().iter().all(|settings| settings.page_cache == DEFAULT_PAGE_CACHE), "it holds all of it");
        let rollback = space(|_| {});
        let near = rollback.neighbours(&rollback.stock);
        assert!(near.iter().all(|settings| settings.journal == Journal::Log || settings.vfs.log == LogLayout::Plain));
    }

    #[test]
    fn what_answers_a_finding_is_tried_first_the_costliest_first() {
        use flashwise_audit::Rule;
        let is_ahead = |settings: &Settings| settings.vfs.read_ahead_depth > 1;
        let is_log = |settings: &Settings| settings.journal == Journal::Log && settings.vfs == VfsOptions::PLAIN;
        let is_hot = |settings: &Settings| settings.vfs.layout != Layout::Plain;
        // Behind the present settings.
        for (rules, first) in [
            (vec![Rule::ReadInParallel, Rule::SyncLessOften], [is_ahead as fn(&Settings) -> bool, is_log]),
            (vec![Rule::SyncLessOften, Rule::ReadInParallel], [is_log, is_ahead]),
            (vec![Rule::KeepHotLocations, Rule::SyncLessOften], [is_hot, is_log]),
        ] {
            let tried = space(|facts| facts.answers = Answers::found(&rules)).first();
            assert!(first[0](&tried[1]) && first[1](&tried[2]), "{rules:?}: {:?}", &tried[..3]);
        }
        let near = |rules: &[Rule]| {
            let space = space(|facts| facts.answers = Answers::found(rules));
            space.neighbours(&logged(&space)).iter().position(is_ahead).unwrap()
        };
        assert!(near(&[Rule::ReadInParallel]) == 0 && near(&[]) > 0);
    }

    #[test]
    fn findings_change_the_order_of_what_is_tried_and_nothing_else() {
        use flashwise_audit::Rule;
        let of = |space: &Space| [space.first(), space.neighbours(&logged(space))];
        let plain = of(&space(|_| {}));
        let all: Vec<Rule> = Rule::ALL.to_vec();
        for rules in Rule::ALL.iter().map(std::slice::from_ref).chain([&all[..]]) {
            let space = space(|facts| facts.answers = Answers::found(rules));
            assert_eq!(space.first()[0], space.stock);
            for (ordered, plain) in of(&space).iter().zip(&plain) {
                let is_known = plain.iter().all(|settings| ordered.contains(settings));
                assert!(ordered.len() == plain.len() && is_known, "{rules:?}");
            }
        }
    }

    /// A card of units of 4 MiB.
    fn card(facts: &mut Facts) {
        facts.profile.card.allocation_unit_bytes = flashwise_profile::Figure::certain(4 << 20, 4 << 20, 4 << 20);
    }

    #[test]
    fn on_a_card_each_way_to_end_a_rollback_journal_is_tried_and_on_no_other_drive() {
        let (other, card) = (space(|_| {}), space(card));
        let rollbacks = |all: &[Settings]| {
            let of = |settings: &&Settings| matches!(settings.journal, Journal::Truncate | Journal::Persist);
            all.iter().filter(of).count()
        };
        let (old, new) = (other.first(), card.first());
        assert_eq!((rollbacks(&old), rollbacks(&new), new.len()), (0, 2, old.len() + 2), "single changes, no more");
        assert_eq!((rollbacks(&other.neighbours(&other.stock)), rollbacks(&card.neighbours(&card.stock))), (0, 2));
        assert_eq!(rollbacks(&card.neighbours(&logged(&card))), 0, "a log has none");
        let batch = Settings { vfs: VfsOptions { atomic_batch: true, ..VfsOptions::PLAIN }, ..card.stock };
        assert_eq!(rollbacks(&card.with_other_rollback(&batch)), 0, "a batch needs none");
        let reads = space(|facts| (self::card(facts), facts.writes = false).1);
        assert_eq!(rollbacks(&reads.first()), 0);
        let kept = space(|facts| (self::card(facts), facts.skip = vec!["journal_mode".to_owned()]).1);
        assert_eq!(rollbacks(&kept.first()), 0);
    }

    #[test]
    fn no_candidate_keeps_less_of_a_commit_than_the_present_settings() {
        for journal in [Journal::Truncate, Journal::Persist, Journal::Log] {
            let mut space = space(card);
            space.stock.journal = journal;
            let of = [space.stock, Settings { journal: Journal::Log, ..space.stock }];
            let all = space.first().into_iter().chain(of.iter().flat_map(|of| space.neighbours(of)));
            assert!(all.into_iter().all(|settings| !settings.may_lose_a_commit()), "{journal:?}");
        }
    }

    #[test]
    fn a_rollback_journal_that_is_kept_is_a_setting_of_each_connection_and_is_taken_back_there() {
        let space = space(card);
        let persistent = Settings { journal: Journal::Persist, ..space.stock };
        let changes = space.changes(&persistent);
        let [change] = &changes[..] else { panic!("{changes:?}") };
        assert_eq!(change.kind, ChangeKind::Connection);
        let pragma = |mode: &str| format!("in each connection: PRAGMA journal_mode = {mode}");
        assert_eq!([&change.apply, &change.undo], [&pragma("persist"), &pragma("delete")]);
        assert_eq!(space.without(&persistent, Knob::JournalMode), space.stock);
        assert_eq!(space.changes(&logged(&space))[0].kind, ChangeKind::File);
    }

    #[test]
    fn what_our_vfs_does_to_a_log_is_a_change_of_its_own() {
        let space = space(|_| {});
        let near = space.neighbours(&logged(&space));
        let parameters: Vec<Vec<String>> = near.iter().map(Settings::techniques).collect();
        assert!(parameters.contains(&vec!["log-sync=extend".to_owned()]), "{parameters:?}");
        let with_technique = near.iter().find(|settings| settings.vfs.write_back_depth > 1).unwrap();
        let changes = space.changes(with_technique);
        assert_eq!(changes.iter().map(|change| change.knob.name()).filter(|name| *name == LOG_SYNC).count(), 1);
        let without = space.without(with_technique, Knob::Technique("concurrent-write-back"));
        assert_eq!(without.techniques(), ["log-sync=extend"], "the technique alone can be pruned");
        let without = space.without(with_technique, Knob::Technique(LOG_SYNC));
        assert_eq!(without.vfs, VfsOptions { log_syncs: LogSyncs::Parent, ..with_technique.vfs }, "and so can that");
        assert!(space.changes(&without).iter().all(|change| change.knob.name() != LOG_SYNC));
        let rollback = space.without(with_technique, Knob::JournalMode);
        assert_eq!(rollback.vfs.log_syncs, LogSyncs::Parent, "there is no log");
        let near = space.neighbours(&space.stock);
        let journals = near.iter().filter(|settings| settings.vfs.log_syncs != LogSyncs::Parent);
        assert!(journals.into_iter().all(|settings| settings.journal == Journal::Log));
        let change = space.changes(with_technique).into_iter().find(|change| change.knob.name() == LOG_SYNC).unwrap();
        assert_eq!(
            [change.old_value, change.new_value],
            ["parent", "log-sync=extend"],
            "like a technique: off, its text"
        );
        assert_eq!([change.apply, change.undo], ["extend", "parent"].map(|to| format!("in the URI: &log-sync={to}")));
    }

    #[test]
    fn without_that_change_no_technique_extends_a_log() {
        let (free, kept) = (space(|_| {}), space(|facts| facts.skip = vec![LOG_SYNC.to_owned()]));
        let near = kept.neighbours(&logged(&kept));
        assert!(near.iter().any(|settings| settings.vfs.write_back_depth > 1), "techniques are tried");
        assert!(near.iter().all(|settings| settings.vfs.log_syncs == LogSyncs::Parent), "{near:?}");
        for space in [free, kept] {
            let pages = space.with_other_pages(&logged(&space));
            assert!(pages.iter().any(|settings| settings.vfs.layout != Layout::Plain), "{pages:?}");
            assert!(pages.iter().all(|settings| settings.vfs.log_syncs == LogSyncs::Parent), "{pages:?}");
        }
    }

    #[test]
    fn a_log_length_that_short_runs_do_not_reach_is_left_to_full_ones() {
        let space = space(|facts| (facts.log_pages_short, facts.log_pages) = (500, 5_000));
        let near = space.neighbours(&logged(&space));
        assert!(near.iter().all(|settings| settings.checkpoint_pages == 1_000));
        let lengths: Vec<u32> =
            space.seen_in_full_runs(&logged(&space)).iter().map(|settings| settings.checkpoint_pages).collect();
        assert_eq!(lengths, [4_000, 16_000]);
    }

    #[test]
    fn what_is_to_stay_stays() {
        let names = ["page_size", "journal_mode", "cache_size"];
        let space = space(|facts| facts.skip = names.map(str::to_owned).to_vec());
        assert_eq!(space.combinations(), [space.stock]);
        assert_eq!(space.checklist(), space.stock);
        let unknown = check_names(&["journal".to_owned()]).unwrap_err().to_string();
        assert!(unknown.starts_with("--skip journal: unknown setting; did you mean 'journal_mode'?"), "{unknown}");
    }

    #[test]
    fn each_change_can_be_taken_back_with_what_depends_on_it() {
        let space = space(|_| {});
        let vfs = VfsOptions::from_text("use-hot-locations=64k+32k&write-aligned-stripes=64k").unwrap();
        let all = Settings {
            page: ByteSize::kib(64),
            journal: Journal::Log,
            page_cache: ByteSize::mib(27),
            checkpoint_pages: 4_000,
            vfs,
            ..space.stock
        };
        let knobs: Vec<Knob> = space.changes(&all).iter().map(|change| change.knob).collect();
        let names: Vec<&str> = knobs.iter().map(|knob| knob.name()).collect();
        let expected =
            ["page_size", "journal_mode", "wal_autocheckpoint", "cache_size", HOT_LOCATIONS, "write-aligned-stripes"];
        assert_eq!(names, expected);
        for knob in knobs {
            let without = space.without(&all, knob);
            assert!(space.changes(&without).iter().all(|change| change.knob != knob), "{knob:?}");
        }
        assert_eq!(space.without(&all, Knob::PageSize).vfs.layout, Layout::Plain, "hot locations need the long page");
        let rollback = space.without(&all, Knob::JournalMode);
        assert_eq!((rollback.checkpoint_pages, rollback.vfs.log), (1_000, LogLayout::Plain));
        let kinds: Vec<ChangeKind> = space.changes(&all).iter().map(|change| change.kind).collect();
        use ChangeKind::{Connection, Conversion, File};
        assert_eq!(kinds, [File, File, Connection, Connection, Conversion, Conversion]);
    }

    #[test]
    fn every_technique_can_be_left_out_alone() {
        let space = space(|_| {});
        let values = [
            "use-hot-locations=65536+32768",
            "sparse-log=65536",
            "write-aligned-stripes=65536",
            "contain-write-in-flash-page=16384",
            "concurrent-write-back=8",
            "concurrent-read-ahead=19",
            "discard=on",
            "atomic-batch=on",
        ];
        for (technique, value) in TECHNIQUES.iter().zip(values) {
            // A log has one layout: each technique is beside another one that does not exclude it.
            let other = if technique.name == "discard" { values[4] } else { values[6] };
            let vfs = VfsOptions::from_text(&format!("{value}&{other}")).unwrap();
            assert!(value.starts_with(technique.name) && vfs.parameters().len() == 2, "{value}");
            let vfs = VfsOptions { log_syncs: LogSyncs::Parent, ..vfs };
            let journal = if vfs.atomic_batch { Journal::Delete } else { Journal::Log };
            let settings = Settings { page: ByteSize::kib(64), journal, vfs, ..space.stock };
            let without = space.without(&settings, Knob::Technique(technique.name));
            assert_eq!(without.techniques(), [other], "{value}");
            assert_eq!(without.vfs.log_syncs, LogSyncs::Parent, "{value}");
        }
    }

    #[test]
    fn no_cache_is_larger_than_the_limit() {
        let space = space(|facts| facts.page_cache_limit = ByteSize::mib(8));
        let largest = |all: Vec<Settings>| all.iter().map(|settings| settings.page_cache).max();
        assert_eq!(space.checklist().page_cache, ByteSize::mib(8));
        assert_eq!(largest(space.first()), Some(ByteSize::mib(8)));
        assert_eq!(largest(space.neighbours(&space.checklist())), Some(ByteSize::mib(8)));
        let none = self::space(|facts| facts.page_cache_limit = ByteSize::mib(1));
        assert_eq!(none.checklist().page_cache, none.stock.page_cache, "the present cache is never taken away");
    }

    #[test]
    fn a_label_names_the_changes() {
        let space = space(|_| {});
        assert_eq!(label(&space.stock, &space.stock), "unmodified");
        assert_eq!(label(&space.stock, &space.checklist()), "wal, 64 MiB cache");
    }
}
