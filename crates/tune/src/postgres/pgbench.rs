//! pgbench's own tables and transactions, like TPC-B, on a private server.
//!
//! Each transaction updates an account, a teller and a branch by their keys, none of which is in an index that changes,
//! and adds a row to a history. Source: PostgreSQL's documentation of pgbench.

use std::time::Instant;

use flashwise_block::Silent;

use super::measure::transactions;
use super::{PrivatePostgres, SessionOptions, TransactionStats};
use crate::TuneError;

/// How large pgbench's tables are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pgbench {
    /// Branches, each with 10 tellers and 100,000 accounts.
    pub scale: u32,
    /// Per cent to which pages of tables are filled when they are loaded.
    pub fill_factor: u32,
}

impl Pgbench {
    /// Makes and fills the tables.
    ///
    /// # Errors
    /// When `pgbench` is not installed, or the server refuses.
    pub fn load(&self, server: &PrivatePostgres) -> Result<(), TuneError> {
        let mut command = server.pgbench()?;
        command.args(["-i", "-q", "-s", &self.scale.to_string(), "-F", &self.fill_factor.to_string()]);
        server.run(&mut command, &mut Silent).map(drop)
    }

    /// Runs transactions from sessions at once, each as many.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn play(&self, server: &PrivatePostgres, how: &SessionOptions) -> Result<TransactionStats, TuneError> {
        let sessions = how.sessions.max(1);
        let each = how.transactions.div_ceil(sessions.into());
        let mut command = server.pgbench()?;
        command.args(["-n", "-j", "1", "-c", &sessions.to_string(), "-t", &each.to_string()]);
        command.arg(format!("--random-seed={}", how.seed));
        let started = Instant::now();
        let told = server.run(&mut command, &mut Silent)?;
        let elapsed = started.elapsed();
        let transactions = transactions(&told)?;
        Ok(TransactionStats { transactions, retries: 0, elapsed })
    }
}
