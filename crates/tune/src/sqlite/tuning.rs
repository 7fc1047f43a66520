//! Tunes a user's database: candidates from the drive's profile, each measured on a copy, kept if it gains.
//!
//! The settings are improved one after the other. A candidate's run is compared with the best one so far, round by
//! round with the same statements; it is kept if the interval of the gain is above [`WORTH_IT`]. So each gain is that
//! of a change on top of the earlier ones, and the last run has all of them.

use std::path::{Path, PathBuf};

use flashwise_block::names::choices;
use flashwise_block::{ByteSize, Clock, Progress};
use flashwise_profile::DeviceProfile;
use flashwise_sqlite::{Layout, LogLayout, VfsOptions};

use super::apply::apply;
use super::knobs::{Candidate, Facts, Knob, knobs};
use super::run::{Run, RunConfig, Workload, run};
use super::settings::Settings;
use super::user::{Statements, UserWorkload};
use crate::rates::time_gain;
use crate::{Declined, Gain, Host, Proposal, TUNING_SCHEMA, TUNING_SCHEMA_VERSION, Target, TuneError, Tuning};

/// A gain below this is not worth a change: 1 %.
const WORTH_IT: f64 = 1.01;

/// Options of `tune`.
#[derive(Clone, Debug)]
pub struct TuneOptions {
    /// A plain SQLite database.
    pub database: PathBuf,
    /// The user's own statements; generated ones if `None`.
    pub statements: Option<PathBuf>,
    /// The profile of the drive.
    pub profile: DeviceProfile,
    /// Where it is measured.
    pub target: Target,
    /// Seed of every random choice.
    pub seed: u64,
    /// The page cache that the user's program sets.
    pub page_cache: ByteSize,
    /// The most that it may become.
    pub page_cache_limit: ByteSize,
    /// Names of settings that must not change.
    pub skip: Vec<String>,
    /// Whether the database is to be changed.
    pub apply: bool,
}

impl TuneOptions {
    /// Where to measure for a profile: on the same drive, or else in the directory of the database.
    ///
    /// # Errors
    /// When there is no such directory.
    pub fn target_of(profile: &DeviceProfile, database: &Path) -> Result<Target, TuneError> {
        let parent = database.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        match Target::parse(&profile.device.target) {
            Ok(target) if profile.device.clock == Clock::Virtual => Ok(target),
            _ => Target::parse(&parent.display().to_string()),
        }
    }
}

/// Tunes a database.
///
/// # Errors
/// When the database, the statements or the target fail. The database itself is changed only on request.
pub fn tune(options: &TuneOptions, progress: &mut dyn Progress) -> Result<Tuning, TuneError> {
    check_names(&options.skip)?;
    let workload = UserWorkload {
        database: options.database.clone(),
        sql: match &options.statements {
            Some(path) => Statements::File(path.clone()),
            None => Statements::Made(UserWorkload::made_up(&options.database, options.seed)?),
        },
        page_cache: options.page_cache,
    };
    workload.check()?;
    let mut search = Search::start(options, &workload, progress)?;
    for knob in knobs().filter(|knob| !options.skip.iter().any(|name| name == knob.name())) {
        search.turn(knob, progress)?;
    }
    search.finish(&workload, progress)
}

fn check_names(names: &[String]) -> Result<(), TuneError> {
    let known = || knobs().map(Knob::name);
    match names.iter().find(|name| !known().any(|known| known == name.as_str())) {
        Some(name) => Err(TuneError::Options(format!("--skip {name}: unknown setting; {}", choices(name, known())))),
        None => Ok(()),
    }
}

/// The best settings so far.
struct Search<'a> {
    options: &'a TuneOptions,
    workload: Workload,
    facts: Facts<'a>,
    first: (Settings, Run),
    best: (Settings, Run),
    proposals: Vec<Proposal>,
    declined: Vec<Declined>,
}

impl<'a> Search<'a> {
    fn start(
        options: &'a TuneOptions,
        workload: &UserWorkload,
        progress: &mut dyn Progress,
    ) -> Result<Self, TuneError> {
        let now =
            Settings { journal: workload.journal_mode(), ..Settings::plain(workload.page_size()?, options.page_cache) };
        let bytes = std::fs::metadata(&options.database).map_err(|e| TuneError::file(&options.database, &e))?.len();
        let facts =
            Facts { profile: &options.profile, database: ByteSize(bytes), page_cache_limit: options.page_cache_limit };
        let workload = Workload::User(workload.clone());
        let first = (now, measure(options, &workload, &now, "unmodified", progress)?);
        let best = first.clone();
        Ok(Self { options, workload, facts, first, best, proposals: Vec::new(), declined: Vec::new() })
    }

    /// Measures the candidates of a knob, and keeps the best one if it gains.
    fn turn(&mut self, knob: Knob, progress: &mut dyn Progress) -> Result<(), TuneError> {
        let mut measured: Vec<(Candidate, Run, Gain)> = Vec::new();
        for candidate in knob.candidates(&self.facts, &self.best.0) {
            let label = format!("{} {}", knob.name(), candidate.new_value);
            let run = measure(self.options, &self.workload, &candidate.settings, &label, progress)?;
            let gain = faster(("without", &self.best.1), ("with", &run));
            measured.push((candidate, run, gain));
        }
        measured.sort_by(|a, b| b.2.ratio.total_cmp(&a.2.ratio));
        let mut measured = measured.into_iter().peekable();
        if let Some((candidate, run, gain)) = measured.next_if(|(_, _, gain)| gain.low > WORTH_IT) {
            self.best = (candidate.settings, run);
            let Candidate { old_value, new_value, reason, apply, undo, .. } = candidate;
            self.proposals.push(Proposal {
                name: knob.name().to_owned(),
                old_value,
                new_value,
                reason,
                gain,
                apply,
                undo,
            });
        }
        let declined = measured.map(|(candidate, _, gain)| Declined {
            name: knob.name().to_owned(),
            new_value: candidate.new_value,
            gain,
        });
        self.declined.extend(declined);
        Ok(())
    }

    fn finish(self, workload: &UserWorkload, progress: &mut dyn Progress) -> Result<Tuning, TuneError> {
        let (settings, options) = (self.best.0, self.options);
        let is_changed = !self.proposals.is_empty();
        let gain = faster(("before", &self.first.1), ("after", &self.best.1));
        let applied = match options.apply && is_changed {
            true => Some(apply(&options.database, &self.first.0, &settings, progress)?),
            false => None,
        };
        let file = applied.as_ref().map_or_else(|| options.database.display().to_string(), |done| done.file.clone());
        Ok(Tuning {
            schema: TUNING_SCHEMA.to_owned(),
            schema_version: TUNING_SCHEMA_VERSION,
            flashwise_version: env!("CARGO_PKG_VERSION").to_owned(),
            database: options.database.display().to_string(),
            program: format!("SQLite {}", flashwise_sqlite::sqlite_version()),
            drive: options.profile.device.name.clone(),
            target: options.target.to_string(),
            workload: workload.summary(),
            notes: notes(options, &settings),
            uri: uri(&file, &settings.vfs),
            at_open: settings.at_open(),
            proposals: self.proposals,
            declined: self.declined,
            before: self.first.1.measurement,
            after: self.best.1.measurement,
            gain: is_changed.then_some(gain),
            applied,
        })
    }
}

/// How many times as many statements a second another run made.
fn faster((from, before): (&str, &Run), (to, after): (&str, &Run)) -> Gain {
    let metric = "statements_per_s";
    time_gain(metric, (from, &before.rounds.whole_times()), (to, &after.rounds.whole_times()))
}

fn measure(
    options: &TuneOptions,
    workload: &Workload,
    settings: &Settings,
    label: &str,
    progress: &mut dyn Progress,
) -> Result<Run, TuneError> {
    let techniques = settings.vfs.parameters();
    let config = RunConfig { label: label.to_owned(), settings: *settings, techniques };
    run(&options.target, &config, workload, options.seed, None, progress)
}

/// The URI that opens the database with exactly the techniques that were measured.
fn uri(file: &str, vfs: &VfsOptions) -> Option<String> {
    if vfs.parameters().is_empty() {
        return None;
    }
    let words = std::iter::once(format!("file:{}?vfs=flashwise", escaped(file)));
    // Layouts are recorded in the file itself.
    let of_connections =
        VfsOptions { layout: Layout::Plain, log: LogLayout::Plain, atomic_batch: false, ..*vfs }.parameters();
    Some(words.chain(of_connections).collect::<Vec<_>>().join("&"))
}

/// A path within a URI (RFC 3986): reserved characters in hexadecimal.
fn escaped(path: &str) -> String {
    let escape = |byte: u8| match byte {
        b'%' | b'?' | b'#' | b' ' | b'"' | b'<' | b'>' | 0..0x20 | 0x7f.. => format!("%{byte:02X}"),
        _ => char::from(byte).to_string(),
    };
    path.bytes().map(escape).collect()
}

fn notes(options: &TuneOptions, settings: &Settings) -> Vec<String> {
    let mut notes = Vec::new();
    if options.statements.is_none() {
        notes.push(
            "The statements are generated: point SELECTs of random rows, with an UPDATE after every fourth. Give your \
             own with --sql: the gains depend on them."
                .to_owned(),
        );
    }
    notes.push(match &options.target {
        Target::Simulated { host: Host::Bare, .. } => "Times are on the simulated drive's clock, without SQLite's CPU \
                                                       time. The log is written back at the end, and that time is \
                                                       included."
            .to_owned(),
        Target::Simulated { host, .. } => format!(
            "The database is in a simulated machine: on {}, which is empty at first. Times are on its clock, with {}. \
             The log is written back at the end, and that time is included.",
            host.describe(),
            host.describe_program()
        ),
        _ => "Times are wall-clock time on this machine. The database is dropped from the system's page cache before \
              each statement, so that requests reach the drive. The log is written back at the end, and that time is \
              included."
            .to_owned(),
    });
    if settings.vfs.is_converting() {
        notes.push(
            "A database in a layout of flashwise can be opened only through its VFS; plain SQLite refuses it."
                .to_owned(),
        );
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_names_what_the_file_does_not_tell() {
        let vfs = VfsOptions::from_text("write-aligned-stripes=64k&concurrent-write-back=8").unwrap();
        assert_eq!(uri("a b?.db", &vfs).unwrap(), "file:a%20b%3F.db?vfs=flashwise&concurrent-write-back=8");
        assert_eq!(uri("a.db", &VfsOptions::PLAIN), None, "SQLite as it is needs no VFS");
    }
}
