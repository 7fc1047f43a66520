//! A workload out of a server's own log: the statements that clients sent, with their values, replayed on a private
//! server.
//!
//! ```text
//!   log files ─▶ lines ─▶ entries (each database's own) ─▶ collector: transactions of sessions, in the order of the log
//!                                                             └─▶ what cannot be replayed: counted, with an example
//!   transactions ─▶ replay: connections that start them in that order ─▶ done, in conflict, refused
//! ```
//!
//! A log is what anybody may have sent to a server: sizes are limited, and statements are replayed by a user who has
//! rights on the loaded tables alone.
//!
//! # Limits
//! Transactions start in the order of the log; how their statements interleave is up to the replay. The time that a
//! client took between statements is not kept.

mod collector;
mod counts;
mod lines;
mod replay;

pub(crate) use collector::{Collector, Effect, Said, Values};
pub(crate) use counts::Counts;
pub(crate) use lines::{Line, Lines};
pub(crate) use replay::{Connection, Refusal, Replay, Weighted};

use std::sync::Arc;

/// One statement as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoggedStatement {
    pub(crate) sql: Arc<str>,
    /// Values of its parameters; `None` where the text has none and was sent without them.
    pub(crate) values: Option<Values>,
}

/// Statements from the start of a transaction to its end; one alone where it was a transaction of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoggedTransaction {
    /// The session, numbered from zero.
    pub(crate) session: u32,
    pub(crate) statements: Vec<LoggedStatement>,
    /// Whether it does more than set up its session: only such ones are counted.
    pub(crate) works: bool,
}

/// The transactions of a log on one database, in the order in which they started.
#[derive(Debug)]
pub(crate) struct LoggedWorkload {
    pub(crate) transactions: Vec<LoggedTransaction>,
    /// The database, where the log names it.
    pub(crate) database: Option<String>,
    /// What is not replayed.
    pub(crate) left_out: Counts,
}

impl LoggedWorkload {
    /// Transactions that work.
    pub(crate) fn count(&self) -> u64 {
        self.transactions.iter().filter(|transaction| transaction.works).count() as u64
    }

    pub(crate) fn statements(&self) -> u64 {
        self.transactions.iter().map(|transaction| transaction.statements.len() as u64).sum()
    }

    /// How many sessions there are: their numbers end there.
    pub(crate) fn sessions(&self) -> u32 {
        self.transactions.iter().map(|transaction| transaction.session + 1).max().unwrap_or(0)
    }
}
