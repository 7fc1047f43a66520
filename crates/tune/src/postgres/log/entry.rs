//! One entry of a log, whatever its format: what it says, and what that is for the collector.
//!
//! Source: PostgreSQL's `exec_simple_query`, `exec_execute_message` and `errdetail_params` (`postgres.c`): the words
//! before a statement, and its parameters.

use super::sql::{effects, parameters};
use crate::servers::logged::{Collector, Effect, Said, Values};

/// Parameters of a statement; the protocol allows no more.
const PARAMETERS_MAX: usize = 65_535;

/// An entry.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// Whose it is: the session's identifier, or the process's.
    pub(super) session: String,
    pub(super) database: Option<String>,
    /// `LOG`, `ERROR`, ….
    pub(super) severity: String,
    pub(super) message: String,
    pub(super) detail: String,
    /// The statement that an error is about.
    pub(super) statement: String,
}

impl Entry {
    /// Hands the entry to the collector.
    pub(super) fn collect(self, collector: &mut Collector) {
        match &*self.severity {
            "LOG" => self.collect_message(collector),
            "ERROR" | "FATAL" => {
                collector.fail(&self.session, &self.statement);
                collector.leave_out("errors that the server logged", &self.message);
            }
            _ => collector.leave_out("messages of other severities", &self.message),
        }
    }

    fn collect_message(self, collector: &mut Collector) {
        let message = &*self.message;
        let (timed, rest) = match message.strip_prefix("duration: ").and_then(|rest| rest.split_once(" ms")) {
            Some((_, rest)) => (true, rest.trim_start()),
            None => (false, message),
        };
        if timed && rest.is_empty() {
            return collector.leave_out("durations of statements", message);
        }
        let behind_name = |rest: &'_ str| rest.split_once(": ").map(|(_, sql)| sql.to_owned());
        if let Some(sql) = rest.strip_prefix("statement: ") {
            return self.say(collector, sql, None, timed);
        }
        match rest.split_once(' ') {
            Some(("execute", rest)) if rest.starts_with("fetch from ") => {
                collector.leave_out("further rows of a cursor of the protocol", rest);
            }
            Some(("execute", rest)) => match behind_name(rest) {
                Some(sql) => self.say_with_values(collector, &sql, timed),
                None => collector.leave_out("statements without a text", rest),
            },
            Some(("parse" | "bind", rest)) if behind_name(rest).is_some() => {
                collector.leave_out("steps before a statement is executed (parse, bind)", rest);
            }
            Some(("disconnection:", _)) => {
                collector.end(&self.session);
                collector.leave_out("connections and disconnections", rest);
            }
            Some(("connection", of)) => {
                if of.starts_with("authorized") {
                    collector.start(&self.session, self.database.as_deref());
                }
                collector.leave_out("connections and disconnections", rest);
            }
            Some(("checkpoint", _)) => collector.leave_out("checkpoints", rest),
            Some(("automatic", _)) => collector.leave_out("autovacuum", rest),
            _ => collector.leave_out("other messages", rest),
        }
    }

    fn say_with_values(&self, collector: &mut Collector, sql: &str, timed: bool) {
        let needed = parameters(sql) as usize;
        let values = match listed(&self.detail) {
            Some(values) => values,
            None if self.detail.is_empty() && needed == 0 => Box::default(),
            None => return collector.leave_out("statements whose parameters have no values in the log", sql),
        };
        match values.len() < needed {
            true => collector.leave_out("statements whose parameters have no values in the log", sql),
            false => self.say(collector, sql, Some(values), timed),
        }
    }

    fn say(&self, collector: &mut Collector, sql: &str, values: Option<Values>, timed: bool) {
        if let Some(database) = &self.database {
            collector.use_database(&self.session, Some(database));
        }
        let mut effects = effects(sql);
        if sql.contains('\0') {
            effects = vec![Effect::LeftOut("statements with a NUL character")];
        }
        // With its duration, a statement is logged when it has succeeded.
        collector.say(&self.session, Said { sql, values, effects, may_fail: !timed });
    }
}

/// The values of `parameters: $1 = 'it''s', $2 = NULL`; `None` if it is anything else.
fn listed(detail: &str) -> Option<Values> {
    const WORD: &str = "parameters: ";
    let (word, mut rest) = detail.split_at_checked(WORD.len())?;
    if !word.eq_ignore_ascii_case(WORD) {
        return None;
    }
    let mut values = Vec::new();
    loop {
        let number = values.len() + 1;
        rest = rest.strip_prefix(&*format!("${number} = "))?;
        let value = match rest.strip_prefix('\'') {
            None => {
                rest = rest.strip_prefix("NULL")?;
                None
            }
            Some(text) => {
                let (value, behind) = unquoted(text)?;
                rest = behind;
                Some(value.into())
            }
        };
        values.push(value);
        if rest.is_empty() {
            return Some(values.into());
        }
        rest = rest.strip_prefix(", ")?;
        if values.len() >= PARAMETERS_MAX {
            return None;
        }
    }
}

/// A text up to its closing quote, and what is behind that; doubled quotes are single ones.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut rest = text;
    loop {
        let (before, behind) = rest.split_once('\'')?;
        value.push_str(before);
        match behind.strip_prefix('\'') {
            Some(behind) => {
                value.push('\'');
                rest = behind;
            }
            None => return Some((value, behind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_with_quotes_nulls_and_commas() {
        let read = |detail: &str| {
            listed(detail).map(|values| values.iter().map(|v| v.as_deref().map(str::to_owned)).collect::<Vec<_>>())
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(read("parameters: $1 = '5'"), Some(vec![some("5")]));
        assert_eq!(
            read("Parameters: $1 = 'it''s, $2 = ''x''', $2 = NULL, $3 = '', $4 = 'a\nb'"),
            Some(vec![some("it's, $2 = 'x'"), None, some(""), some("a\nb")])
        );
        for broken in
            ["", "parameters: ", "parameters: $2 = '1'", "parameters: $1 = '1", "parameters: $1 = '1', ", "prepare: x"]
        {
            assert_eq!(read(broken), None, "{broken}");
        }
    }
}
