//! TPC-C on a PostgreSQL server, as in sysbench-tpcc: the same tables, statements and mix, from sessions of flashwise.
//!
//! ```text
//!   load: CREATE TABLE … WITH (fillfactor = N), COPY, indexes, ANALYZE       one transaction, so that no log is written
//!   play: sessions ─▶ the deck of 23 cards ─▶ statements, one after the other ─▶ commits, and retried transactions
//! ```
//!
//! Sources: Percona's sysbench-tpcc (tables, indexes, statements, and strings of one repeated letter, which compress
//! better than the specification's); TPC Benchmark C, revision 5.11, for cardinalities and `NURand`. Foreign keys are
//! left out, as with `--use_fk=0`. Items, customers and orders can be fewer than in the specification: many small
//! warehouses keep sessions from waiting for the same row, as thousands of large ones do.

mod load;
mod sql;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use postgres::error::SqlState;
use postgres::{Client, NoTls};

use super::server::failed;
use crate::TuneError;
use crate::tpcc::{Deck, Scale, Source, Sql, Terminal};
use sql::PostgresSession;

/// Stack of a session's thread.
const STACK_BYTES: usize = 512 << 10;
/// A transaction that others are in the way of so often fails for another reason.
const TRIES: u32 = 100;

/// How large the tables are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostgresTpcc {
    /// Warehouses.
    pub warehouses: u32,
    /// Items, and rows of STOCK a warehouse; 100,000 in the specification.
    pub items: u32,
    /// Customers and orders of a district; 3,000 in the specification.
    pub customers: u32,
    /// Per cent to which pages of tables are filled when they are loaded.
    pub fill_factor: u32,
}

/// The measurements of a number of transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionStats {
    /// Transactions that were done; New-Orders that TPC-C wants undone are among them.
    pub transactions: u64,
    /// Transactions that were restarted because of conflicts.
    pub retries: u64,
    /// From the first to the last.
    pub elapsed: Duration,
}

/// How transactions are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionOptions {
    /// Sessions at once.
    pub sessions: u32,
    /// Transactions of all of them.
    pub transactions: u64,
    /// Seed of every random choice.
    pub seed: u64,
}

impl PostgresTpcc {
    /// Checks the parameters of the tables.
    ///
    /// # Errors
    /// With the allowed values.
    fn check(&self) -> Result<(), TuneError> {
        let ranges = [
            ("warehouses", self.warehouses, 1..=10_000),
            ("items", self.items, 100..=100_000),
            ("customers", self.customers, 30..=3_000),
            ("fill factor", self.fill_factor, 10..=100),
        ];
        match ranges.iter().find(|(_, value, range)| !range.contains(value)) {
            Some((name, value, range)) => {
                let (first, last) = (range.start(), range.end());
                Err(TuneError::Options(format!("TPC-C: {value} {name}; give {first} to {last}")))
            }
            None => Ok(()),
        }
    }

    fn scale(&self) -> Scale {
        Scale { warehouses: self.warehouses, items: self.items, customers: self.customers }
    }

    /// Makes and fills the tables of an empty database, which is best on a server with `wal_level = minimal`: nothing
    /// of it is logged there.
    ///
    /// # Errors
    /// When the sizes make no sense, or the server refuses.
    pub fn load(&self, dsn: &str, seed: u64) -> Result<(), TuneError> {
        self.check()?;
        let mut client = connect(dsn)?;
        let loaded = load::load(&mut client, self.scale(), self.fill_factor, &mut Source::new(seed));
        loaded.map_err(|e| failed("loading TPC-C", &e))
    }

    /// Runs transactions from sessions at once.
    ///
    /// # Errors
    /// When the server refuses; the first that any session met.
    pub fn play(&self, dsn: &str, how: &SessionOptions) -> Result<TransactionStats, TuneError> {
        self.check()?;
        let sessions = how.sessions.max(1);
        // Connected before the measured time starts.
        let clients = (0..sessions).map(|_| connect(dsn)).collect::<Result<Vec<_>, _>>()?;
        let (left, retries) = (AtomicU64::new(how.transactions), AtomicU64::new(0));
        let started = Instant::now();
        thread::scope(|scope| {
            let session = |(number, client): (u32, Client)| {
                let (left, retries) = (&left, &retries);
                let work = move || {
                    let seed = how.seed.wrapping_mul(0x9e37_79b9).wrapping_add(u64::from(number));
                    self.session(client, Source::new(seed), left, retries)
                };
                thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work)
            };
            let threads: Vec<_> = (0..).zip(clients).map(session).collect();
            let lost = || TuneError::Server { context: "TPC-C".to_owned(), message: "a session was lost".to_owned() };
            let ends = threads.into_iter().map(|thread| thread.map_err(|_| lost())?.join().map_err(|_| lost())?);
            // All of them must end before the first error is reported.
            ends.collect::<Vec<_>>().into_iter().collect::<Result<(), _>>()
        })?;
        let (transactions, retries) = (how.transactions, retries.into_inner());
        Ok(TransactionStats { transactions, retries, elapsed: started.elapsed() })
    }

    fn session(
        &self,
        client: Client,
        mut source: Source,
        left: &AtomicU64,
        retries: &AtomicU64,
    ) -> Result<(), TuneError> {
        let mut deck = Deck::default();
        let mut terminal = Terminal::new(PostgresSession::new(client), self.scale());
        while left.try_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
            let what = deck.draw(&mut source);
            for tries in 1.. {
                let Err(error) = terminal.transact(what, &mut source) else { break };
                if !is_in_the_way(&error) || tries == TRIES {
                    return Err(failed(&format!("{what:?}"), &error));
                }
                retries.fetch_add(1, Ordering::Relaxed);
                terminal.sql.rollback().map_err(|e| failed("ROLLBACK", &e))?;
            }
        }
        Ok(())
    }
}

/// Whether another session is why a transaction could not go on.
fn is_in_the_way(error: &postgres::Error) -> bool {
    matches!(error.code(), Some(code) if *code == SqlState::T_R_DEADLOCK_DETECTED
        || *code == SqlState::T_R_SERIALIZATION_FAILURE)
}

fn connect(dsn: &str) -> Result<Client, TuneError> {
    Client::connect(dsn, NoTls).map_err(|e| failed("TPC-C", &e))
}

#[cfg(test)]
mod tests;
