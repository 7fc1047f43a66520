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
//! MariaDB 10.6 to 11.8, of which 10.11 is tested; connections without TLS. A measurement compares all proposals together with
//! none, and leaves out what only a new instance can have. The page size is told, and never changed.

mod apply;
mod document;
mod measure;
mod private;
mod rules;
mod server;
mod settings;

pub use document::{AppliedVariables, MARIADB_TUNING_SCHEMA, MARIADB_TUNING_SCHEMA_VERSION, MariadbTuning};
pub use measure::MariadbMeasureOptions;
pub use private::PrivateMariadb;
pub use server::MariadbPlace;

use flashwise_block::Progress;
use flashwise_profile::DeviceProfile;

use crate::TuneError;
use crate::servers::{Change, LeftAlone, Ruling, SettingProposal};
use apply::{acting, apply, statements, undo_statements};
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
    pub server: Option<MariadbPlace>,
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
/// When the options make no sense, the server does not answer or refuses a statement, or the measurement fails. The server
/// is changed only where that is asked for, and where a measurement is asked for too, only if that shows a gain.
pub fn tune_mariadb(options: &MariadbOptions, progress: &mut dyn Progress) -> Result<MariadbTuning, TuneError> {
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
    let mut judged = Judged::of(options, variables);
    judged.order_capacities(variables);
    let mut tuning = judged.document(options, facts);
    let startable: Vec<SettingProposal> =
        tuning.proposals.iter().filter(|p| p.takes_effect != Effect::NewInstance.name()).cloned().collect();
    match (&options.measure, startable.is_empty()) {
        (Some(measure), false) => {
            let measured = measure::measure(measure, &startable, progress)?;
            if measured.program != tuning.program && server.is_some() {
                tuning
                    .notes
                    .push(format!("{} was measured; the server itself is {}.", measured.program, tuning.program));
            }
            tuning.measured = Some(measured);
        }
        (Some(_), true) => {
            tuning.notes.push("Nothing was measured, as no setting of the server is to be changed.".to_owned());
        }
        (None, _) => {}
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

/// What the rules say.
#[derive(Default)]
struct Judged {
    proposals: Vec<SettingProposal>,
    left_alone: Vec<LeftAlone>,
}

impl Judged {
    fn of(options: &MariadbOptions, variables: &Variables) -> Self {
        let facts = Facts { profile: &options.profile, variables };
        let mut judged = Self::default();
        for rule in RULES {
            let Some(now) = variables.get(rule.name) else { continue };
            match options.skip.iter().any(|skipped| skipped == rule.name) {
                true => judged.leave(rule.name, &now.value, "skipped", "it was to be left as it is"),
                false => judged.judge(rule.name, now, (rule.judge)(&facts, now)),
            }
        }
        judged
    }

    fn leave(&mut self, name: &str, value: &str, verdict: &str, reason: &str) {
        let [name, value, verdict, reason] = [name, value, verdict, reason].map(str::to_owned);
        self.left_alone.push(LeftAlone { name, value, verdict, reason });
    }

    fn judge(&mut self, name: &str, now: &Variable, ruling: Result<Ruling, String>) {
        let change = match ruling {
            Err(why) => return self.leave(name, &now.value, "cannot-tell", &why),
            Ok(Ruling::Fits(why)) => return self.leave(name, &now.value, "fits", &why),
            Ok(Ruling::Change(change)) => change,
        };
        if now.effect == Effect::Restart && now.is_of_command_line {
            let why = "it is set by the server's command line, which goes before option files";
            return self.leave(name, &now.value, "overridden", why);
        }
        let Change { value, reason, evidence, expected, expected_gain } = change;
        let line = |value: &str| format!("{name} = {value}");
        let (apply, undo) = match now.effect {
            Effect::AtOnce => (set_statement(name, &value), set_statement(name, &now.value)),
            Effect::Restart => (line(&value), line(&now.value)),
            Effect::NewInstance => (
                format!("mariadb-install-db --{name}={value}, and load a dump of this instance into the new one"),
                "keep this instance until the new one has proved itself".to_owned(),
            ),
        };
        self.proposals.push(SettingProposal {
            name: name.to_owned(),
            old_value: now.value.clone(),
            new_value: value,
            reason,
            evidence,
            expected,
            expected_gain,
            takes_effect: now.effect.name().to_owned(),
            apply,
            undo,
        });
    }

    /// The server lets no capacity be above its maximum: it mends the other one, unasked. So what would be lower is set first,
    /// and a capacity above a maximum that stays is not set at all.
    fn order_capacities(&mut self, variables: &Variables) {
        let number = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
        let at = |judged: &Self, name: &str| judged.proposals.iter().position(|proposal| proposal.name == name);
        let present = |name: &str| variables.get(name).map_or(f64::NAN, |variable| number(&variable.value));
        let (usual, most) = (at(self, CAPACITY), at(self, CAPACITY_MAX));
        match (usual, most) {
            (Some(usual), Some(most)) if number(&self.proposals[most].new_value) < present(CAPACITY) => {
                self.proposals.swap(usual, most);
            }
            (Some(usual), None) if number(&self.proposals[usual].new_value) > present(CAPACITY_MAX) => {
                let proposal = self.proposals.remove(usual);
                let why = format!("{} would be right, and is more than {CAPACITY_MAX}", proposal.new_value);
                self.leave(CAPACITY, &proposal.old_value, "cannot-tell", &why);
            }
            (None, Some(most)) if number(&self.proposals[most].new_value) < present(CAPACITY) => {
                let proposal = self.proposals.remove(most);
                let why = format!("{} would be right, and is less than {CAPACITY}", proposal.new_value);
                self.leave(CAPACITY_MAX, &proposal.old_value, "cannot-tell", &why);
            }
            _ => {}
        }
    }

    fn document(self, options: &MariadbOptions, server: Option<&ServerFacts>) -> MariadbTuning {
        MariadbTuning {
            schema: MARIADB_TUNING_SCHEMA.to_owned(),
            schema_version: MARIADB_TUNING_SCHEMA_VERSION,
            flashwise_version: env!("CARGO_PKG_VERSION").to_owned(),
            program: server.map_or_else(|| DEFAULTS_OF.to_owned(), |server| server.program.clone()),
            server: server.map(|server| server.place.clone()),
            drive: options.profile.device.name.clone(),
            sql: statements(&self.proposals),
            undo_sql: undo_statements(&self.proposals),
            option_file: option_file(&self.proposals),
            notes: notes(options, server, &self.proposals),
            proposals: self.proposals,
            left_alone: self.left_alone,
            measured: None,
            applied: None,
        }
    }
}

/// Lines of an option file, in order; none where nothing can be set in one.
fn option_file(proposals: &[SettingProposal]) -> Vec<String> {
    let settable = proposals.iter().filter(|proposal| proposal.takes_effect != Effect::NewInstance.name());
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

fn notes(options: &MariadbOptions, server: Option<&ServerFacts>, proposals: &[SettingProposal]) -> Vec<String> {
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
    if options.measure.is_some() && proposals.iter().any(|p| p.takes_effect != Effect::NewInstance.name()) {
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
