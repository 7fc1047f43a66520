//! Applies proposals to a server: all of them, or none.
//!
//! `ALTER SYSTEM` writes `postgresql.auto.conf`; the server reads it at `pg_reload_conf`. Afterwards the values are
//! read back. If a statement fails, the earlier ones are undone.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::server::{Server, failed};
use crate::TuneError;
use crate::servers::{AppliedSettings, SettingProposal};

/// How long a server may take to read its configuration again.
const RELOAD: Duration = Duration::from_secs(10);
const RELOAD_STATEMENT: &str = "SELECT pg_reload_conf();";

/// Applies every proposal.
///
/// # Errors
/// When a statement fails, with nothing applied; when a value differs afterwards from the one set.
pub(super) fn apply(server: &mut Server, proposals: &[SettingProposal]) -> Result<AppliedSettings, TuneError> {
    let mut done: Vec<&SettingProposal> = Vec::new();
    for proposal in proposals {
        if let Err(error) = server.execute(&proposal.apply) {
            take_back(server, &done)?;
            return Err(error);
        }
        done.push(proposal);
    }
    server.execute(RELOAD_STATEMENT)?;
    let needs_restart = wait_until_read(server, proposals)?;
    let [statements, undo] = statements(proposals);
    Ok(AppliedSettings { statements, undo, needs_restart, needs_instance: None })
}

fn take_back(server: &mut Server, done: &[&SettingProposal]) -> Result<(), TuneError> {
    done.iter().rev().try_for_each(|proposal| server.execute(&proposal.undo))?;
    server.execute(RELOAD_STATEMENT)
}

/// The statements that do all proposals, and those that take them back.
pub(super) fn statements(proposals: &[SettingProposal]) -> [Vec<String>; 2] {
    let reload = (!proposals.is_empty()).then(|| RELOAD_STATEMENT.to_owned());
    let all: [fn(&SettingProposal) -> &String; 2] = [|proposal| &proposal.apply, |proposal| &proposal.undo];
    all.map(|statement| proposals.iter().map(statement).cloned().chain(reload.clone()).collect())
}

/// Names of the settings that wait for a restart, once all others have their new values.
fn wait_until_read(server: &Server, proposals: &[SettingProposal]) -> Result<Vec<String>, TuneError> {
    const QUERY: &str = "SELECT current_setting(name), pending_restart FROM pg_settings WHERE name = $1";
    let started = Instant::now();
    loop {
        // A connection reads the configuration again between statements, a new one has read it.
        let mut client = server.reconnect()?;
        let (mut waiting, mut unlike) = (Vec::new(), None);
        for proposal in proposals.iter().filter(|p| p.is_of_server()) {
            let row = client.query_one(QUERY, &[&proposal.name]).map_err(|e| failed(&server.facts.place, &e))?;
            let (value, is_pending): (String, bool) = (row.get(0), row.get(1));
            if is_pending {
                waiting.push(proposal.name.clone());
            } else if !is_same(&value, &proposal.new_value) {
                unlike = Some(format!("{} is {value}, not {}", proposal.name, proposal.new_value));
            }
        }
        match unlike {
            None => return Ok(waiting),
            Some(message) if started.elapsed() > RELOAD => {
                return Err(TuneError::Server { context: server.facts.place.clone(), message });
            }
            Some(_) => sleep(Duration::from_millis(50)),
        }
    }
}

/// `1MB` and `1024kB` are one value.
fn is_same(told: &str, wanted: &str) -> bool {
    let number = |text: &str| {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let factor = match &text[digits.len()..] {
            "" | "kB" | "ms" | "us" => 1.0,
            "MB" => 1024.0,
            "s" => 1000.0,
            _ => return None,
        };
        digits.parse::<f64>().ok().map(|number| number * factor)
    };
    match (number(told), number(wanted)) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * b.abs(),
        _ => told == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_by_what_they_mean() {
        assert!(is_same("1MB", "1024kB") && is_same("2.5", "2.50") && is_same("off", "off"));
        assert!(!is_same("1MB", "1kB") && !is_same("on", "off") && !is_same("4", "2.5"));
    }
}
