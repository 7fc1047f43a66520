//! The adapter for MariaDB: InnoDB variables from the profile of a drive, with reason, evidence and undo.
//!
//! ```text
//!   profile ──┐
//!             ├─▶ rules, one per variable ─▶ proposals, unchanged settings ─▶ private server: old against new settings
//!   server ───┘                                │
//!   (or the defaults of 10.11)                 ├─▶ SET GLOBAL, on request, for what takes effect at once
//!                                              └─▶ an option file for all that can be changed at all
//! ```
//!
//! - `rules/`: one file per rule, with its arithmetic and its source;
//! - `server.rs`: facts read from a server; `settings.rs`: the variables and their defaults;
//! - `private.rs`: servers for measurements, always deleted at the end; `measure.rs`: interleaved rounds;
//! - `log.rs`, `replay.rs`: transactions out of a server's general log;
//! - `apply.rs`: all of the proposals that take effect at once, or none.
//!
//! # Limits
//! MariaDB 10.6 to 12.3, of which 10.11 is tested; connections without TLS. A measurement compares all proposals
//! together with none, and leaves out settings that need a new instance. The page size is recommended but never
//! changed.

mod apply;
mod log;
mod measure;
mod private;
mod replay;
mod rules;
mod server;
mod settings;
mod statements;

pub use measure::MariadbMeasureOptions;
pub use private::PrivateMariadb;
pub use server::MariadbAddress;

use std::borrow::Cow;

use flashwise_block::names::choices;
use flashwise_block::{ByteSize, Progress};

use crate::servers::{
    Attached, DataDrive, Judged, Judgement, NamedDrive, Ruling, ServerTuning, SettingProposal, Statements, learn_drive,
};
use crate::{MARIADB_TUNING_SCHEMA, MARIADB_TUNING_SCHEMA_VERSION, TuneError};
use apply::{acting, apply, statements};
use rules::{Facts, RULES, binary_log};
use server::{Server, ServerFacts};
use settings::{Effect, Variable, Variables, set_statement};

/// The version whose defaults are the old values without a server.
const DEFAULTS_OF: &str = "MariaDB 10.11";
const CAPACITY: &str = "innodb_io_capacity";
const CAPACITY_MAX: &str = "innodb_io_capacity_max";

/// Options of `tune_mariadb`.
#[derive(Clone, Debug)]
pub struct MariadbOptions {
    /// The drive of the server's data.
    pub drive: DataDrive,
    /// The server; without one the old values are the defaults of 10.11.
    pub server: Option<MariadbAddress>,
    /// Names of settings that must not change.
    pub skip: Vec<String>,
    /// Whether the server is to be changed.
    pub apply: bool,
    /// How old and new settings are measured, on request.
    pub measure: Option<MariadbMeasureOptions>,
}

impl MariadbOptions {
    /// What the rules look at beside the sizes that are always learned: InnoDB's pages.
    const REQUEST_SIZES: [ByteSize; 1] = [ByteSize::kib(16)];
}

/// Proposes settings for a drive; measures and applies them on request. A drive that is unknown is learned when
/// everything else has been checked.
///
/// # Errors
/// When the options are invalid, the server does not respond or refuses a statement, or the measurement fails. The
/// server is changed only on request, and if a measurement is requested too, only if that shows a gain.
pub fn tune_mariadb(options: &MariadbOptions, progress: &mut dyn Progress) -> Result<ServerTuning, TuneError> {
    if options.apply && options.server.is_none() {
        return Err(TuneError::Options("--apply needs a server: name it as CONNECTION".to_owned()));
    }
    check_names(&options.skip)?;
    let own_sql = options.measure.as_ref().map(MariadbMeasureOptions::check).transpose()?.unwrap_or_default();
    let connect = || options.server.as_ref().map(Server::connect).transpose();
    let mut server = connect()?;
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
            measure.as_ref().map(|measure| measure.check_place(&own_sql)).transpose()?;
            // A server may end connections that are idle for as long.
            drop(server.take());
            let profile = learn_drive(target, &MariadbOptions::REQUEST_SIZES, progress)?;
            server = connect()?;
            Cow::Owned(profile)
        }
    };
    let facts = server.as_ref().map(|server| &server.facts);
    let documented = Variables::documented();
    let variables = facts.map_or(&documented, |facts| &facts.variables);
    let atomic_writes = facts.and_then(|facts| facts.atomic_writes);
    let rule_facts = Facts { profile: &profile, variables, atomic_writes };
    let judged = judge(options, &rule_facts);
    let of = Judgement {
        schema: MARIADB_TUNING_SCHEMA,
        schema_version: MARIADB_TUNING_SCHEMA_VERSION,
        profile: &profile,
        program: facts.map_or_else(|| DEFAULTS_OF.to_owned(), |facts| facts.program.clone()),
        place: facts.map(|facts| facts.place.clone()),
    };
    let mut notes = notes(options, facts, &judged.proposals);
    notes.extend(binary_log::advice(&rule_facts));
    let option_file = Some(option_file(&judged.proposals));
    let tuning = ServerTuning { option_file, ..judged.document(of, statements, notes) };
    let mut measure = measure
        .as_ref()
        .map(|with| |proposals: &[_]| measure::measure(with, attached.as_ref(), &own_sql, proposals, progress));
    let mut apply = server.as_mut().filter(|_| options.apply).map(|server| |proposals: &[_]| apply(server, proposals));
    tuning.concluded(
        is_startable,
        restate,
        measure.as_mut().map(|measure| measure as _),
        apply.as_mut().map(|apply| apply as _),
    )
}

/// Writes the statements and the option file of the proposals anew.
fn restate(tuning: &mut ServerTuning) {
    [tuning.sql, tuning.undo_sql] = statements(&tuning.proposals);
    tuning.option_file = Some(option_file(&tuning.proposals));
}

/// Whether a server can be started with it, on the instance that there is.
fn is_startable(proposal: &SettingProposal) -> bool {
    proposal.takes_effect != Effect::NewInstance.name()
}

fn judge(options: &MariadbOptions, facts: &Facts<'_>) -> Judged {
    let variables = facts.variables;
    let mut judged = Judged::default();
    for rule in RULES {
        let Some(now) = variables.get(rule.name) else { continue };
        if options.skip.iter().any(|skipped| skipped == rule.name) {
            judged.skip(rule.name, &now.value);
            continue;
        }
        let ruling = (rule.judge)(facts, now);
        match now.effect == Effect::Restart && now.is_of_command_line && matches!(ruling, Ok(Ruling::Change(_))) {
            true => {
                let why = "it is set on the server's command line, which overrides option files";
                judged.leave(rule.name, &now.value, "overridden", why);
            }
            false => judged.judge(rule.name, &now.value, ruling, |value| variable_statements(rule.name, now, value)),
        }
    }
    order_capacities(&mut judged, variables);
    judged
}

fn variable_statements(name: &str, now: &Variable, value: &str) -> Statements {
    let line = |value: &str| format!("{name} = {value}");
    let (apply, undo) = match now.effect {
        Effect::AtOnce => (set_statement(name, value), set_statement(name, &now.value)),
        Effect::Restart => (line(value), line(&now.value)),
        Effect::NewInstance => (
            format!("mariadb-install-db --{name}={value}, then load a dump of this instance into the new one"),
            "keep this instance until the new one has proved itself".to_owned(),
        ),
    };
    Statements { new_value: value.to_owned(), takes_effect: now.effect.name(), apply, undo }
}

/// The server keeps each capacity below its maximum by changing the other variable too. So the lower one is set first,
/// and a capacity above an unchanged maximum is not set at all.
fn order_capacities(judged: &mut Judged, variables: &Variables) {
    let number = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
    let at = |name: &str| judged.proposals.iter().position(|proposal| proposal.name == name);
    let new = |place: usize| number(&judged.proposals[place].new_value);
    let present = |name: &str| variables.get(name).map_or(f64::NAN, |variable| number(&variable.value));
    let (place, name, than) = match (at(CAPACITY), at(CAPACITY_MAX)) {
        (Some(usual), Some(most)) if new(most) < present(CAPACITY) => return judged.proposals.swap(usual, most),
        (Some(usual), None) if new(usual) > present(CAPACITY_MAX) => {
            (usual, CAPACITY, format!("more than {CAPACITY_MAX}"))
        }
        (None, Some(most)) if new(most) < present(CAPACITY) => (most, CAPACITY_MAX, format!("less than {CAPACITY}")),
        _ => return,
    };
    let proposal = judged.proposals.remove(place);
    let why = format!("{} would be right, but is {than}", proposal.new_value);
    judged.leave(name, &proposal.old_value, "cannot-tell", &why);
}

/// Lines of an option file, in order; none where nothing can be set in one.
fn option_file(proposals: &[SettingProposal]) -> Vec<String> {
    let settable = proposals.iter().filter(|proposal| is_startable(proposal));
    let lines: Vec<String> = settable.map(|proposal| format!("{} = {}", proposal.name, proposal.new_value)).collect();
    match lines.is_empty() {
        true => lines,
        false => std::iter::once("[mariadbd]".to_owned()).chain(lines).collect(),
    }
}

fn check_names(names: &[String]) -> Result<(), TuneError> {
    match names.iter().find(|name| !RULES.iter().any(|rule| rule.name == name.as_str())) {
        Some(name) => {
            let all = choices(name, RULES.iter().map(|rule| rule.name));
            Err(TuneError::Options(format!("--skip {name}: unknown setting; {all}")))
        }
        None => Ok(()),
    }
}

fn notes(options: &MariadbOptions, server: Option<&ServerFacts>, proposals: &[SettingProposal]) -> Vec<String> {
    let mut notes: Vec<String> = options.drive.note(server.is_some()).into_iter().collect();
    if server.is_none() {
        notes.push(format!(
            "No server was given: the old values are the documented defaults of {DEFAULTS_OF}. Name a server with \
             --socket or --dsn."
        ));
    }
    if acting(proposals, Effect::AtOnce).next().is_some() {
        notes.push(
            "SET GLOBAL lasts until the server stops. To make the settings permanent, write an option file with \
             --cnf-out and put it where your server includes such files, such as /etc/mysql/mariadb.conf.d."
                .to_owned(),
        );
    }
    if acting(proposals, Effect::NewInstance).next().is_some() {
        notes.push(
            "The page size of an instance is fixed when it is initialised; a server with another setting does not \
             start on it. It is therefore not applied, not in the option file, and not measured."
                .to_owned(),
        );
    }
    notes
}

#[cfg(test)]
mod tests;
