//! The adapter for MariaDB: variables of InnoDB from the figures of a drive, with reason, evidence and undo.
//!
//! ```text
//!   profile ──┐
//!             ├─▶ rules, one a variable ─▶ proposals, and what is left alone ─▶ private server: old against new settings
//!   server ───┘                                │
//!   (or the defaults of 10.11)                 ├─▶ SET GLOBAL, where that is asked for and acts at once
//!                                              └─▶ an option file for all that can be changed at all
//! ```
//!
//! - `rules/`: one file a rule, with its arithmetic and its source;
//! - `server.rs`: what a server tells; `settings.rs`: what is looked at, and what it is unless told otherwise;
//! - `private.rs`: servers for measurements that are gone at the end whatever happens; `measure.rs`: rounds in turns;
//! - `apply.rs`: all of the proposals that act at once, or none.
//!
//! # Limits
//! MariaDB 10.6 to 11.8, of which 10.11 is tested; connections without TLS. A measurement compares all proposals
//! together with none, and leaves out what only a new instance can have. The page size is told, and never changed.

mod apply;
mod measure;
mod private;
mod rules;
mod server;
mod settings;

pub use measure::MariadbMeasureOptions;
pub use private::PrivateMariadb;
pub use server::MariadbAddress;

use flashwise_block::Progress;
use flashwise_profile::DeviceProfile;

use crate::servers::{Judged, Judgement, Ruling, ServerTuning, SettingProposal, Statements};
use crate::{MARIADB_TUNING_SCHEMA, MARIADB_TUNING_SCHEMA_VERSION, TuneError};
use apply::{acting, apply, statements};
use rules::{Facts, RULES};
use server::{Server, ServerFacts};
use settings::{Effect, Variable, Variables, set_statement};

/// Whose defaults are the old values where no server is asked.
const DEFAULTS_OF: &str = "MariaDB 10.11";
const CAPACITY: &str = "innodb_io_capacity";
const CAPACITY_MAX: &str = "innodb_io_capacity_max";

/// What to tune, and for what.
#[derive(Clone, Debug)]
pub struct MariadbOptions {
    /// What is known about the drive.
    pub profile: DeviceProfile,
    /// The server; without one the old values are the defaults of 10.11.
    pub server: Option<MariadbAddress>,
    /// Names of what is not to be changed.
    pub skip: Vec<String>,
    /// Whether the server is to be changed.
    pub apply: bool,
    /// How old and new settings are measured, where that is asked for.
    pub measure: Option<MariadbMeasureOptions>,
}

/// Proposes settings for a drive; measures and applies them where that is asked for.
///
/// # Errors
/// When the options make no sense, the server does not answer or refuses a statement, or the measurement fails. The
/// server is changed only where that is asked for, and where a measurement is asked for too, only if that shows a gain.
pub fn tune_mariadb(options: &MariadbOptions, progress: &mut dyn Progress) -> Result<ServerTuning, TuneError> {
    if options.apply && options.server.is_none() {
        return Err(TuneError::Options("--apply needs a server: name it with --socket or --dsn".to_owned()));
    }
    check_names(&options.skip)?;
    if let Some(measure) = &options.measure {
        measure.check()?;
    }
    let mut server = options.server.as_ref().map(Server::connect).transpose()?;
    let facts = server.as_ref().map(|server| &server.facts);
    let documented = Variables::documented();
    let variables = facts.map_or(&documented, |facts| &facts.variables);
    let judged = judge(options, variables);
    let of = Judgement {
        schema: MARIADB_TUNING_SCHEMA,
        schema_version: MARIADB_TUNING_SCHEMA_VERSION,
        profile: &options.profile,
        program: facts.map_or_else(|| DEFAULTS_OF.to_owned(), |facts| facts.program.clone()),
        place: facts.map(|facts| facts.place.clone()),
    };
    let notes = notes(facts, &judged.proposals);
    let option_file = Some(option_file(&judged.proposals));
    let tuning = ServerTuning { option_file, ..judged.document(of, statements, notes) };
    let mut measure =
        options.measure.as_ref().map(|with| |proposals: &[_]| measure::measure(with, proposals, progress));
    let mut apply = server.as_mut().filter(|_| options.apply).map(|server| |proposals: &[_]| apply(server, proposals));
    tuning.concluded(is_startable, measure.as_mut().map(|measure| measure as _), apply.as_mut().map(|apply| apply as _))
}

/// Whether a server can be started with it, on the instance that there is.
fn is_startable(proposal: &SettingProposal) -> bool {
    proposal.takes_effect != Effect::NewInstance.name()
}

fn judge(options: &MariadbOptions, variables: &Variables) -> Judged {
    let facts = Facts { profile: &options.profile, variables };
    let mut judged = Judged::default();
    for rule in RULES {
        let Some(now) = variables.get(rule.name) else { continue };
        if options.skip.iter().any(|skipped| skipped == rule.name) {
            judged.skip(rule.name, &now.value);
            continue;
        }
        let ruling = (rule.judge)(&facts, now);
        match now.effect == Effect::Restart && now.is_of_command_line && matches!(ruling, Ok(Ruling::Change(_))) {
            true => {
                let why = "it is set by the server's command line, which goes before option files";
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
            format!("mariadb-install-db --{name}={value}, and load a dump of this instance into the new one"),
            "keep this instance until the new one has proved itself".to_owned(),
        ),
    };
    Statements { new_value: value.to_owned(), takes_effect: now.effect.name(), apply, undo }
}

/// The server lets no capacity be above its maximum: it changes the other one, unasked. So what would be lower is set
/// first, and a capacity above a maximum that stays is not set at all.
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
    let why = format!("{} would be right, and is {than}", proposal.new_value);
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
            let all = RULES.iter().map(|rule| rule.name).collect::<Vec<_>>().join(", ");
            Err(TuneError::Options(format!("--skip {name}: there is {all}")))
        }
        None => Ok(()),
    }
}

fn notes(server: Option<&ServerFacts>, proposals: &[SettingProposal]) -> Vec<String> {
    let mut notes = Vec::new();
    if server.is_none() {
        notes.push(format!(
            "No server was asked: the old values are the documented defaults of {DEFAULTS_OF}. --socket or --dsn asks one."
        ));
    }
    if acting(proposals, Effect::AtOnce).next().is_some() {
        notes.push(
            "SET GLOBAL acts until the server ends. --cnf-out writes an option file that makes it stay; put it where your \
             server includes such files, such as /etc/mysql/mariadb.conf.d."
                .to_owned(),
        );
    }
    if acting(proposals, Effect::NewInstance).next().is_some() {
        notes.push(
            "The page size of an instance is that with which it was initialised; a server with another setting does not start \
             on it. It is neither applied, nor in the option file, nor measured."
                .to_owned(),
        );
    }
    notes
}

#[cfg(test)]
mod tests;
