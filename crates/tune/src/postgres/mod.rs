//! The adapter for PostgreSQL: settings from the profile of a drive, as statements with reason, evidence and undo.
//!
//! ```text
//!   profile ──┐
//!             ├─▶ rules, one per setting ─▶ proposals, unchanged settings ─▶ private server: old against new settings
//!   server ───┘                                │
//!   (or the defaults of a version)             └─▶ ALTER SYSTEM, on request
//! ```
//!
//! - `rules/`: one file per rule, with its arithmetic and its source;
//! - `server.rs`: facts read from a server; `defaults.rs`: default settings;
//! - `eviction.rs`: what writing pages before their eviction can bring at most;
//! - `utilisation.rs`: how busy the server keeps the drive;
//! - `private.rs`: servers for measurements, always deleted at the end;
//! - `measure.rs`: interleaved rounds; `apply.rs`: all of the proposals, or none;
//! - `log/`, `replay.rs`: transactions out of a server's log;
//! - `tpcc/`: the tables and transactions of sysbench-tpcc, for studies.
//!
//! # Limits
//! Versions 13 to 19, of which 15 is tested; pages of 8 KiB; connections without TLS. A measurement compares all
//! proposals together with none.

mod apply;
mod defaults;
mod eviction;
mod log;
mod measure;
mod pgbench;
mod private;
mod programs;
mod replay;
mod rules;
mod server;
mod settings;
mod tpcc;
mod utilisation;

pub use log::weights::StatementCounts;
pub use measure::PostgresMeasureOptions;
pub use pgbench::Pgbench;
pub use private::PrivatePostgres;
pub use tpcc::{PostgresTpcc, SessionOptions, TransactionStats};

use std::borrow::Cow;

use flashwise_block::names::choices;
use flashwise_block::{ByteSize, Progress};
use flashwise_profile::DeviceProfile;

use crate::servers::{
    Attached, DataDrive, Judged, Judgement, NamedDrive, ServerTuning, SettingProposal, Statements, learn_drive,
};
use crate::{EvictionBound, POSTGRES_TUNING_SCHEMA, POSTGRES_TUNING_SCHEMA_VERSION, TuneError};
use apply::{apply, statements};
use defaults::defaults;
use rules::{Facts, RULES, fill_factor};
use server::{Server, ServerFacts, Table};
use settings::{Effect, Setting, Settings, set_statement, undo_statement};
use utilisation::Utilisation;

/// `--skip` for every table.
const FILL_FACTOR: &str = "fillfactor";

/// Options of `tune_postgres`.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// The drive of the server's data.
    pub drive: DataDrive,
    /// The server, as libpq names it; without one the old values are the defaults of `version`.
    pub dsn: Option<String>,
    /// Major version without a server.
    pub version: u32,
    /// Sessions that read at once.
    pub sessions: u32,
    /// Reads in flight of the work; k_r where it is not given.
    pub depth: Option<u32>,
    /// Names of settings that must not change.
    pub skip: Vec<String>,
    /// Whether the server is to be changed.
    pub apply: bool,
    /// How old and new settings are measured, on request.
    pub measure: Option<PostgresMeasureOptions>,
}

impl PostgresOptions {
    /// What the rules look at beside the sizes that are always learned: the reads of a scan, as the kernel's read-ahead
    /// makes them.
    const REQUEST_SIZES: [ByteSize; 1] = [ByteSize::kib(128)];
}

/// Proposes settings for a drive; measures and applies them on request. A drive that is unknown is learned when
/// everything else has been checked.
///
/// # Errors
/// When the options are invalid, the server does not respond or refuses a statement, or the measurement fails. The
/// server is changed only on request, and if a measurement is requested too, only if that shows a gain.
pub fn tune_postgres(options: &PostgresOptions, progress: &mut dyn Progress) -> Result<ServerTuning, TuneError> {
    if options.apply && options.dsn.is_none() {
        return Err(TuneError::Options("--apply needs a server: name it as CONNECTION".to_owned()));
    }
    if let Some(measure) = &options.measure {
        measure.check()?;
    }
    let connect = || options.dsn.as_deref().map(Server::connect).transpose();
    let known = defaults(options.version)?;
    let mut server = connect()?;
    check_names(&options.skip, server.as_ref().map_or(&[], |server| &server.facts.tables))?;
    let drive = options.drive.named(server.as_ref().map(|server| server.facts.data()))?;
    let request = options.measure.as_ref().and_then(|measure| measure.attach.as_ref());
    let attached = request.map(|request| Attached::of(request, &drive)).transpose()?;
    let mut measure = options.measure.clone();
    if let (Some(measure), Some(drive)) = (&mut measure, &attached) {
        measure.directory = Some(drive.directory());
    }
    let profile = match &drive {
        NamedDrive::Known(profile) => Cow::Borrowed(*profile),
        NamedDrive::Unlearned(target) => {
            measure.as_ref().map(PostgresMeasureOptions::check_place).transpose()?;
            // A server may end connections that are idle for as long.
            drop(server.take());
            let profile = learn_drive(target, &PostgresOptions::REQUEST_SIZES, progress)?;
            server = connect()?;
            Cow::Owned(profile)
        }
    };
    let own = measure.as_ref().map(|measure| measure.read_log(server.as_mut())).transpose()?.flatten();
    let facts = server.as_ref().map(|server| &server.facts);
    let time = facts.and_then(|facts| Some((facts.backend_time?, facts.version)));
    let use_of_drive = facts.and_then(|facts| Utilisation::of(&profile, &facts.activity));
    let eviction = time.and_then(|(time, _)| eviction::bound(time, use_of_drive));
    let judged = judge(options, &profile, facts, &known, eviction);
    let of = Judgement {
        schema: POSTGRES_TUNING_SCHEMA,
        schema_version: POSTGRES_TUNING_SCHEMA_VERSION,
        profile: &profile,
        program: facts.map_or_else(|| format!("PostgreSQL {}", options.version), |facts| facts.program.clone()),
        place: facts.map(|facts| facts.place.clone()),
    };
    let mut notes = notes(options, facts, &judged.proposals);
    let together = profile.parameters.write_concurrency_8k.known();
    notes.extend(time.and_then(|(time, version)| eviction::advice(time, use_of_drive, together, version)));
    let tuning = ServerTuning { eviction, ..judged.document(of, statements, notes) };
    let mut measure = measure
        .as_ref()
        .map(|with| |proposals: &[_]| measure::measure(with, attached.as_ref(), own.as_ref(), proposals, progress));
    let mut apply = server.as_mut().filter(|_| options.apply).map(|server| |proposals: &[_]| apply(server, proposals));
    tuning.concluded(
        SettingProposal::is_of_server,
        |tuning| [tuning.sql, tuning.undo_sql] = statements(&tuning.proposals),
        measure.as_mut().map(|measure| measure as _),
        apply.as_mut().map(|apply| apply as _),
    )
}

impl SettingProposal {
    /// Whether it is a setting of the server, and not of a table.
    fn is_of_server(&self) -> bool {
        self.takes_effect != NEW_PAGES
    }
}

const NEW_PAGES: &str = "new-pages";

fn judge(
    options: &PostgresOptions,
    profile: &DeviceProfile,
    server: Option<&ServerFacts>,
    known: &Settings,
    eviction: Option<EvictionBound>,
) -> Judged {
    let tables = server.map(|server| server.tables.as_slice()).unwrap_or_default();
    let settings = server.map_or(known, |server| &server.settings);
    let facts = Facts {
        profile,
        settings,
        activity: server.map(|server| &server.activity),
        sessions: options.sessions,
        depth: options.depth,
        eviction,
    };
    let is_skipped = |name: &str| options.skip.iter().any(|skipped| skipped == name);
    let mut judged = Judged::default();
    for rule in RULES {
        let Some(now) = settings.get(rule.name) else { continue };
        match (is_skipped(rule.name), now.obstacle()) {
            (true, _) => judged.skip(rule.name, &now.shown()),
            (_, Some(why)) => judged.leave(rule.name, &now.shown(), "overridden", &why),
            _ => {
                let ruling = (rule.judge)(&facts, now);
                judged.judge(rule.name, &now.shown(), ruling, |value| setting_statements(rule.name, now, value));
            }
        }
    }
    for table in tables {
        let (name, old_value) = (name_of(table), table.fill_factor.to_string());
        match is_skipped(FILL_FACTOR) || is_skipped(&name) {
            true => judged.skip(&name, &old_value),
            false => judged.judge(&name, &old_value, fill_factor::judge(table), |value| table_statements(table, value)),
        }
    }
    judged
}

fn setting_statements(name: &str, now: &Setting, value: &str) -> Statements {
    let new_value = now.with_unit(value);
    let takes_effect = if now.effect == Effect::Restart { "restart" } else { "reload" };
    let (apply, undo) = (set_statement(name, &new_value), undo_statement(name, now));
    Statements { new_value, takes_effect, apply, undo }
}

fn table_statements(table: &Table, value: &str) -> Statements {
    let alter = format!("ALTER TABLE {}", table.name);
    let undo = match table.has_fill_factor {
        true => format!("{alter} SET (fillfactor = {});", table.fill_factor),
        false => format!("{alter} RESET (fillfactor);"),
    };
    let apply = format!("{alter} SET (fillfactor = {value});");
    Statements { new_value: value.to_owned(), takes_effect: NEW_PAGES, apply, undo }
}

fn name_of(table: &Table) -> String {
    format!("{FILL_FACTOR} of {}", table.name)
}

fn check_names(names: &[String], tables: &[Table]) -> Result<(), TuneError> {
    let known = || RULES.iter().map(|rule| rule.name).chain([FILL_FACTOR]);
    let is_known = |name: &str| known().any(|known| known == name) || tables.iter().any(|table| name_of(table) == name);
    match names.iter().find(|name| !is_known(name)) {
        Some(name) => {
            let all = choices(name, known());
            let tables = format!("or '{FILL_FACTOR} of TABLE' for a table that is updated");
            Err(TuneError::Options(format!("--skip {name}: unknown setting; {all}, {tables}")))
        }
        None => Ok(()),
    }
}

fn notes(options: &PostgresOptions, server: Option<&ServerFacts>, proposals: &[SettingProposal]) -> Vec<String> {
    let mut notes: Vec<String> = options.drive.note(server.is_some()).into_iter().collect();
    match server {
        None => notes.push(format!(
            "No server was given: the old values are the documented defaults of PostgreSQL {}, and its tables are \
             unknown. Name a server with --dsn.",
            options.version
        )),
        Some(server) => notes.push(format!(
            "Settings of roles, databases and sessions are seen only as far as they apply to this connection; the tables \
             are those of the database of {}.",
            server.place
        )),
    }
    if proposals.iter().any(|proposal| proposal.name == "random_page_cost") {
        notes.push(
            "random_page_cost is computed for pages read from the drive. If most random reads find their page in a \
             cache, a lower value is right."
                .to_owned(),
        );
    }
    if proposals.iter().any(|proposal| !proposal.is_of_server()) {
        notes.push(
            "A fill factor applies to new pages only; VACUUM FULL rewrites the table, under an exclusive lock. It is \
             not measured here."
                .to_owned(),
        );
    }
    notes
}

#[cfg(test)]
mod tests;
