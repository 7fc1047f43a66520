//! The adapter for PostgreSQL: settings from the figures of a drive, as statements with reason, evidence and undo.
//!
//! ```text
//!   profile ──┐
//!             ├─▶ rules, one a setting ─▶ proposals, and what is left alone ─▶ private server: old against new settings
//!   server ───┘                                │
//!   (or the defaults of a version)             └─▶ ALTER SYSTEM, where that is asked for
//! ```
//!
//! - `rules/`: one file a rule, with its arithmetic and its source;
//! - `server.rs`: what a server tells; `defaults.rs`: what it does unless told otherwise;
//! - `private.rs`: servers for measurements that are gone at the end whatever happens;
//! - `measure.rs`: rounds in turns; `apply.rs`: all of the proposals, or none;
//! - `tpcc/`: the tables and transactions of sysbench-tpcc, for studies.
//!
//! # Limits
//! Versions 13 to 18, of which 15 is tested; pages of 8 KiB; connections without TLS. A measurement compares all proposals
//! together with none.

mod apply;
mod defaults;
mod document;
mod measure;
mod pgbench;
mod private;
mod programs;
mod rules;
mod server;
mod settings;
mod tpcc;

pub use document::{AppliedSettings, POSTGRES_TUNING_SCHEMA, POSTGRES_TUNING_SCHEMA_VERSION, PostgresTuning};
pub use measure::MeasureOptions;
pub use pgbench::Pgbench;
pub use private::PrivateServer;
pub use tpcc::{Played, PostgresTpcc, Sessions};

use flashwise_block::Progress;
use flashwise_profile::DeviceProfile;

use crate::TuneError;
use crate::servers::{Change, Ruling};
pub use crate::servers::{EvidenceFigure, LeftAlone, MeasuredSettings, SettingProposal};
use apply::{apply, statements, undo_statements};
use defaults::defaults;
use rules::{Facts, RULES, fill_factor};
use server::{Server, ServerFacts, Table};
use settings::{Effect, Setting, Settings, set_statement, undo_statement};

/// `--skip` for every table.
const FILL_FACTOR: &str = "fillfactor";

/// What to tune, and for what.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// What is known about the drive.
    pub profile: DeviceProfile,
    /// The server, as libpq names it; without one the old values are the defaults of `version`.
    pub dsn: Option<String>,
    /// Major version where no server is asked.
    pub version: u32,
    /// Sessions that read at once.
    pub sessions: u32,
    /// Reads in flight of the work; k_r where it is not given.
    pub depth: Option<u32>,
    /// Names of what is not to be changed.
    pub skip: Vec<String>,
    /// Whether the server is to be changed.
    pub apply: bool,
    /// How old and new settings are measured, where that is asked for.
    pub measure: Option<MeasureOptions>,
}

/// Proposes settings for a drive; measures and applies them where that is asked for.
///
/// # Errors
/// When the options make no sense, the server does not answer or refuses a statement, or the measurement fails. The server
/// is changed only where that is asked for, and where a measurement is asked for too, only if that shows a gain.
pub fn tune_postgres(options: &PostgresOptions, progress: &mut dyn Progress) -> Result<PostgresTuning, TuneError> {
    if options.apply && options.dsn.is_none() {
        return Err(TuneError::Options("--apply needs a server: name it with --dsn".to_owned()));
    }
    if let Some(measure) = &options.measure {
        measure.check()?;
    }
    let mut server = options.dsn.as_deref().map(Server::connect).transpose()?;
    let known = defaults(options.version)?;
    let judged = Judged::of(options, server.as_ref().map(|server| &server.facts), &known)?;
    let mut tuning = judged.document(options, server.as_ref().map(|server| &server.facts));
    let settings: Vec<SettingProposal> = tuning.proposals.iter().filter(|p| p.is_of_server()).cloned().collect();
    if let Some(measure) = options.measure.as_ref().filter(|_| !settings.is_empty()) {
        let measured = measure::measure(measure, &settings, progress)?;
        if measured.program != tuning.program && server.is_some() {
            tuning.notes.push(format!("{} was measured; the server itself is {}.", measured.program, tuning.program));
        }
        tuning.measured = Some(measured);
    }
    if options.measure.is_some() && settings.is_empty() {
        tuning.notes.push("Nothing was measured, as no setting of the server is to be changed.".to_owned());
    }
    let pays = options.measure.is_none() || tuning.measured.as_ref().is_some_and(|measured| measured.verdict == "pays");
    if let Some(server) = server.as_mut().filter(|_| options.apply && !tuning.proposals.is_empty()) {
        match pays {
            true => tuning.applied = Some(apply(server, &tuning.proposals)?),
            false => tuning.notes.push("Nothing was applied, as no gain was measured.".to_owned()),
        }
    }
    Ok(tuning)
}

impl SettingProposal {
    /// Whether it is a setting of the server, and not of a table.
    fn is_of_server(&self) -> bool {
        self.takes_effect != NEW_PAGES
    }
}

const NEW_PAGES: &str = "new-pages";

/// What the rules say.
#[derive(Default)]
struct Judged {
    proposals: Vec<SettingProposal>,
    left_alone: Vec<LeftAlone>,
}

impl Judged {
    fn of(options: &PostgresOptions, server: Option<&ServerFacts>, known: &Settings) -> Result<Self, TuneError> {
        let tables = server.map(|server| server.tables.as_slice()).unwrap_or_default();
        check_names(&options.skip, tables)?;
        let settings = server.map_or(known, |server| &server.settings);
        let facts = Facts {
            profile: &options.profile,
            settings,
            activity: server.map(|server| &server.activity),
            sessions: options.sessions,
            depth: options.depth,
        };
        let is_skipped = |name: &str| options.skip.iter().any(|skipped| skipped == name);
        let mut judged = Self::default();
        for rule in RULES {
            let Some(now) = settings.get(rule.name) else { continue };
            let obstacle = now.obstacle();
            match (is_skipped(rule.name), obstacle) {
                (true, _) => judged.leave(rule.name, now.shown(), "skipped", "it was to be left as it is"),
                (_, Some(why)) => judged.leave(rule.name, now.shown(), "overridden", &why),
                _ => judged.setting(rule.name, now, (rule.judge)(&facts, now)),
            }
        }
        for table in tables {
            let name = name_of(table);
            match is_skipped(FILL_FACTOR) || is_skipped(&name) {
                true => judged.leave(&name, table.fill_factor.to_string(), "skipped", "it was to be left as it is"),
                false => judged.table(&name, table, fill_factor::judge(table)),
            }
        }
        Ok(judged)
    }

    fn leave(&mut self, name: &str, value: String, verdict: &str, reason: &str) {
        let [name, verdict, reason] = [name, verdict, reason].map(str::to_owned);
        self.left_alone.push(LeftAlone { name, value, verdict, reason });
    }

    fn setting(&mut self, name: &str, now: &Setting, ruling: Result<Ruling, String>) {
        match ruling {
            Err(why) => self.leave(name, now.shown(), "cannot-tell", &why),
            Ok(Ruling::Fits(why)) => self.leave(name, now.shown(), "fits", &why),
            Ok(Ruling::Change(change)) => {
                let new_value = now.with_unit(&change.value);
                let takes_effect = if now.effect == Effect::Restart { "restart" } else { "reload" };
                let (apply, undo) = (set_statement(name, &new_value), undo_statement(name, now));
                self.propose(name, now.shown(), new_value, change, takes_effect, (apply, undo));
            }
        }
    }

    fn table(&mut self, name: &str, table: &Table, ruling: Result<Ruling, String>) {
        let old_value = table.fill_factor.to_string();
        match ruling {
            Err(why) => self.leave(name, old_value, "cannot-tell", &why),
            Ok(Ruling::Fits(why)) => self.leave(name, old_value, "fits", &why),
            Ok(Ruling::Change(change)) => {
                let alter = format!("ALTER TABLE {}", table.name);
                let apply = format!("{alter} SET (fillfactor = {});", change.value);
                let undo = match table.has_fill_factor {
                    true => format!("{alter} SET (fillfactor = {old_value});"),
                    false => format!("{alter} RESET (fillfactor);"),
                };
                let new_value = change.value.clone();
                self.propose(name, old_value, new_value, change, NEW_PAGES, (apply, undo));
            }
        }
    }

    fn propose(
        &mut self,
        name: &str,
        old_value: String,
        new_value: String,
        change: Change,
        takes_effect: &str,
        (apply, undo): (String, String),
    ) {
        let Change { reason, evidence, expected, expected_gain, .. } = change;
        self.proposals.push(SettingProposal {
            name: name.to_owned(),
            old_value,
            new_value,
            reason,
            evidence,
            expected,
            expected_gain,
            takes_effect: takes_effect.to_owned(),
            apply,
            undo,
        });
    }

    fn document(self, options: &PostgresOptions, server: Option<&ServerFacts>) -> PostgresTuning {
        PostgresTuning {
            schema: POSTGRES_TUNING_SCHEMA.to_owned(),
            schema_version: POSTGRES_TUNING_SCHEMA_VERSION,
            flashwise_version: env!("CARGO_PKG_VERSION").to_owned(),
            program: server.map_or_else(|| format!("PostgreSQL {}", options.version), |server| server.program.clone()),
            server: server.map(|server| server.place.clone()),
            drive: options.profile.device.name.clone(),
            sql: statements(&self.proposals),
            undo_sql: undo_statements(&self.proposals),
            notes: notes(options, server, &self.proposals),
            proposals: self.proposals,
            left_alone: self.left_alone,
            measured: None,
            applied: None,
        }
    }
}

fn name_of(table: &Table) -> String {
    format!("{FILL_FACTOR} of {}", table.name)
}

fn check_names(names: &[String], tables: &[Table]) -> Result<(), TuneError> {
    let known = || RULES.iter().map(|rule| rule.name).chain([FILL_FACTOR]);
    let is_known = |name: &str| known().any(|known| known == name) || tables.iter().any(|table| name_of(table) == name);
    match names.iter().find(|name| !is_known(name)) {
        Some(name) => {
            let all = known().collect::<Vec<_>>().join(", ");
            Err(TuneError::Options(format!("--skip {name}: there is {all}, and {FILL_FACTOR} of each updated table")))
        }
        None => Ok(()),
    }
}

fn notes(options: &PostgresOptions, server: Option<&ServerFacts>, proposals: &[SettingProposal]) -> Vec<String> {
    let mut notes = Vec::new();
    match server {
        None => notes.push(format!(
            "No server was asked: the old values are the documented defaults of PostgreSQL {}, and nothing is known of \
             its tables. --dsn asks one.",
            options.version
        )),
        Some(server) => notes.push(format!(
            "Settings that a role, a database or a session has of its own are not looked for beyond this connection's; \
             tables are those of the database that {} was asked for.",
            server.place
        )),
    }
    if proposals.iter().any(|proposal| proposal.name == "random_page_cost") {
        notes.push(
            "random_page_cost is told for pages that come from the drive. Where most random reads find their page cached, \
             a lower one is right."
                .to_owned(),
        );
    }
    if proposals.iter().any(|proposal| !proposal.is_of_server()) {
        notes.push(
            "A fill factor acts on new pages only; VACUUM FULL writes the table anew, with an exclusive lock as long as \
             that takes. It is not measured here."
                .to_owned(),
        );
    }
    if options.measure.is_some() && proposals.iter().any(SettingProposal::is_of_server) {
        notes.push(
            "Measured on a private server whose other settings are the defaults, all proposed settings together. Rates \
             are wall-clock time on this machine, and tell of the profile's drive only where the data lay on it."
                .to_owned(),
        );
    }
    notes
}

#[cfg(test)]
mod tests;
