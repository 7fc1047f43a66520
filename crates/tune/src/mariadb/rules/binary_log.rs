//! The binary log inside InnoDB (from 12.3 on): one log that a commit waits for instead of two.
//!
//! With `sync_binlog = 1` and `innodb_flush_log_at_trx_commit = 1` a commit, or a group of them, waits until InnoDB's
//! log and then the binary log are durable. With `binlog_storage_engine = innodb` the binary log is in pages that
//! InnoDB's own log makes durable. It is advice and no proposal: the binary logs of before cannot be read any more, and
//! replicas have to be prepared.
//!
//! Source: MariaDB documentation, "InnoDB-Based Binary Log"; MDEV-34705.

use super::super::settings::{BINLOG_ENGINE, Variables};
use super::Facts;
use crate::servers::figures::certain;

/// The advice, as a note; `None` where a commit waits for one log, or the server cannot have it otherwise.
pub(in super::super) fn advice(facts: &Facts<'_>) -> Option<String> {
    let value = |name: &str| facts.variables.get(name).map(|variable| variable.value.as_str());
    let is_separate = value(BINLOG_ENGINE)?.is_empty() && waits_for_both(facts.variables);
    let flush = certain(&facts.profile.parameters.flush_ns, "flush time").ok();
    let time = flush.map_or_else(String::new, |flush| format!(", {:.0} µs each on this drive", flush.value / 1000.0));
    is_separate.then(|| {
        format!(
            "A commit waits for two logs to be durable, InnoDB's and the binary log{time}. With \
             {BINLOG_ENGINE} = innodb in an option file it waits for one. It is not proposed, because it changes more \
             than speed: binary logs from before cannot be read afterwards, and replicas need global transaction IDs."
        )
    })
}

/// Whether a commit waits until both logs are durable.
fn waits_for_both(variables: &Variables) -> bool {
    let is = |name: &str, wanted: &[&str]| variables.get(name).is_some_and(|now| wanted.contains(&now.value.as_str()));
    is("log_bin", &["ON", "1"]) && is("sync_binlog", &["1"]) && is("innodb_flush_log_at_trx_commit", &["1", "3"])
}

#[cfg(test)]
mod tests {
    use super::super::super::settings::{Effect, Variable};
    use super::super::tests::Bench;
    use super::*;

    #[test]
    fn one_log_is_advised_where_a_commit_waits_for_two() {
        let mut bench = Bench::new();
        let advised = |bench: &Bench| advice(&bench.facts());
        bench.set("log_bin", "ON");
        bench.set("sync_binlog", "1");
        assert_eq!(advised(&bench), None, "10.11 cannot have it");
        let variable =
            |value: &str| Variable { value: value.to_owned(), effect: Effect::Restart, is_of_command_line: false };
        bench.variables.0.insert(BINLOG_ENGINE.to_owned(), variable(""));
        let text = advised(&bench).unwrap();
        assert!(text.contains("740 µs each") && text.contains("cannot be read afterwards"), "{text}");
        for (name, value) in [("sync_binlog", "0"), ("innodb_flush_log_at_trx_commit", "2"), ("log_bin", "OFF")] {
            let before = bench.variables.get(name).unwrap().value.clone();
            bench.set(name, value);
            assert_eq!(advised(&bench), None, "{name} = {value}");
            bench.set(name, &before);
        }
        bench.variables.0.insert(BINLOG_ENGINE.to_owned(), variable("innodb"));
        assert_eq!(advised(&bench), None);
    }
}
