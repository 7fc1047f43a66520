//! TPC-C on SQLite, run to record its page accesses.
//!
//! ```text
//!   load: 9 tables of --warehouses ──▶ the deck: 10 New-Order, 10 Payment, 1 of each other, shuffled, again and again
//!                                            │ SQLite with a page cache of its own
//!                                            ▼
//!                              VFS on a simulated drive ──▶ requests to the database file ──▶ IoTrace, traffic by table
//! ```
//!
//! The trace has the requests of SQLite's page cache: with a large cache those to a drive, with none the accesses to a
//! buffer pool. A single connection works and has the file to itself, so it need not check for changes by others; the
//! journal is in memory and not in the trace. One deck after the loading, not recorded, warms the cache.
//!
//! **As in the specification** (TPC Benchmark C, revision 5.11): tables, columns and sizes of rows, cardinalities,
//! `NURand`, the five transactions, their mix as a deck of 23 cards (clause 5.2.4.2), New-Orders that are rolled back,
//! remote warehouses. **Not included**: terminals, think and keying times, the audit of results. The rates are not TPC
//! rates.

mod load;
mod sql;

use std::collections::BTreeMap;

use flashwise_block::{ByteSize, Nanos, Operation, Progress};
use flashwise_sqlite::VfsOptions;
use flashwise_trace::{FileRole, IoTrace};
use rusqlite::Connection;
use serde::Serialize;

use super::session::Session;
use super::workload::check_page_cache;
pub use crate::tpcc::TpccTransaction;
use crate::tpcc::{DECK, Deck, Scale, Source, Terminal};
use crate::{Target, TuneError};
use sql::SqliteSession;

/// SQLite's page cache while the tables are loaded: as good as unlimited.
const LOADING_CACHE: ByteSize = ByteSize::gib(4);
/// Bytes of a page, SQLite's default.
pub const TPCC_PAGE: ByteSize = ByteSize::kib(4);
/// Bytes of a warehouse of full size with 10 % for splits; `tpcc_takes_the_room_that_is_reserved` holds it to that.
const WAREHOUSE_BYTES: u64 = 110 << 20;
/// Bytes of the items.
const ITEMS_BYTES: u64 = 10 << 20;
/// Bytes that a transaction adds at most, on average.
const TRANSACTION_BYTES: u64 = 1 << 10;

/// How much of TPC-C is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TpccWorkload {
    /// Warehouses, 1 to 1,000.
    pub warehouses: u32,
    /// Transactions that are recorded.
    pub transactions: u64,
    /// Items, customers and orders against the specification's, above 0 and at most 1.
    pub scale: f64,
    /// SQLite's page cache; 0 for the smallest that it can have, about ten pages.
    pub page_cache: ByteSize,
}

impl TpccWorkload {
    fn rows(&self) -> Scale {
        let of = |count: f64, least: u32| ((count * self.scale) as u32).max(least);
        Scale { warehouses: self.warehouses, items: of(100_000.0, 100), customers: of(3_000.0, 30) }
    }

    /// Bytes that the database takes at most, roughly.
    fn database_bytes_max(&self) -> ByteSize {
        let warehouses = f64::from(self.warehouses) * WAREHOUSE_BYTES as f64;
        let loaded = (warehouses + ITEMS_BYTES as f64) * self.scale.max(0.01);
        ByteSize(loaded as u64 + self.transactions.saturating_mul(TRANSACTION_BYTES))
    }

    fn check(&self) -> Result<(), TuneError> {
        let fail = |reason: String| Err(TuneError::Options(reason));
        if !(1..=1_000).contains(&self.warehouses) || self.transactions == 0 {
            return fail("TPC-C needs 1 to 1,000 warehouses and at least one transaction".to_owned());
        }
        if !(self.scale > 0.0 && self.scale <= 1.0) {
            return fail(format!("a scale of {}: give a number above 0 and at most 1", self.scale));
        }
        check_page_cache(self.page_cache)
    }
}

/// The accesses to a table or an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TableTraffic {
    /// Its name; that of an index is its own.
    pub table: String,
    /// Pages that it has at the end.
    pub pages: u64,
    /// Pages that were read.
    pub reads: u64,
    /// Pages that were written.
    pub writes: u64,
}

/// A run of TPC-C.
#[derive(Clone, Debug)]
pub struct TpccRun {
    /// SQLite's requests to the database file: bytes from its start, times of the drive.
    pub trace: IoTrace,
    /// For each record of the trace, its transaction.
    pub requested_by: Vec<TpccTransaction>,
    /// Transactions of each kind.
    pub transactions: BTreeMap<TpccTransaction, u64>,
    /// New-Orders among them that were rolled back.
    pub rolled_back: u64,
    /// Pages of the database at the end.
    pub pages: u64,
    /// By table and index, the one with the most accessed pages first.
    pub tables: Vec<TableTraffic>,
}

/// Runs TPC-C on a target and records SQLite's requests to the database file. On a simulated target the same seed gives
/// the same trace.
///
/// # Errors
/// When the target or SQLite fails, and when `progress` wants to stop.
pub fn tpcc(
    target: &Target,
    workload: &TpccWorkload,
    seed: u64,
    progress: &mut dyn Progress,
) -> Result<TpccRun, TuneError> {
    workload.check()?;
    target.check_space(workload.database_bytes_max())?;
    let session = Session::start(target, VfsOptions::PLAIN, seed, "TPC-C")?;
    let mut source = Source::new(seed);
    load_tables(&session, workload, &mut source, progress)?;
    source.begin_run();
    let db = session.connect()?;
    // 0 would be SQLite's own default; one page is raised to the least that it can do with.
    let cache = (workload.page_cache / ByteSize(1024)).max(1);
    session.batch(
        &db,
        &format!(
            "PRAGMA cache_size = -{cache}; PRAGMA journal_mode = MEMORY; PRAGMA temp_store = MEMORY; \
         PRAGMA locking_mode = EXCLUSIVE"
        ),
    )?;
    db.set_prepared_statement_cache_capacity(128);
    let (counts, starts) = (BTreeMap::new(), Vec::new());
    let terminal = Terminal::new(SqliteSession(&db), workload.rows());
    let mut run = Run { terminal, session: &session, source, counts, starts, rolled_back: 0, deck: Deck::default() };
    run.play(DECK, &mut |_| Ok(()))?;
    (run.counts, run.starts, run.rolled_back) = (BTreeMap::new(), Vec::new(), 0);
    session.vfs().set_recording(true);
    let total = workload.transactions;
    run.play(total, &mut |n| Ok(progress.advance("TPC-C: transactions", n as f64 / total as f64)?))?;
    session.vfs().set_recording(false);
    let (transactions, starts, rolled_back) = (run.counts, run.starts, run.rolled_back);
    let mut trace = session.vfs().take_trace();
    // The file grows by writes of zeros, which are not accesses to a pool.
    let is_asked = |operation| matches!(operation, Operation::Read | Operation::Write | Operation::Flush);
    trace.records.retain(|record| record.role == FileRole::Database && is_asked(record.operation));
    session.check_integrity(&db)?;
    let owners = owners(&db).map_err(|e| session.sql_error("finding the tables' pages", &e))?;
    let tables = traffic(&trace, &owners);
    let requested_by = trace.records.iter().map(|record| transaction_at(&starts, record.at)).collect();
    Ok(TpccRun { trace, requested_by, transactions, rolled_back, pages: owners.len() as u64, tables })
}

/// Not recorded: no journal, one transaction.
fn load_tables(
    session: &Session,
    workload: &TpccWorkload,
    source: &mut Source,
    progress: &mut dyn Progress,
) -> Result<(), TuneError> {
    let db = session.connect()?;
    let (page, cache) = (TPCC_PAGE.bytes(), LOADING_CACHE.bytes() / 1024);
    session
        .batch(&db, &format!("PRAGMA cache_size = -{cache}; PRAGMA page_size = {page}; PRAGMA journal_mode = OFF"))?;
    session.batch(&db, "BEGIN")?;
    load::load(&db, workload.rows(), source, &mut |part| {
        progress.advance("TPC-C: loading", part).map_err(Stopped::Block)
    })
    .map_err(|stopped| stopped.told(session, "loading"))?;
    session.batch(&db, "COMMIT")
}

/// Why work on the database ended early.
enum Stopped {
    Block(flashwise_block::BlockError),
    Sql(rusqlite::Error),
}

impl From<rusqlite::Error> for Stopped {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl Stopped {
    fn told(self, session: &Session, context: &str) -> TuneError {
        match self {
            Self::Block(error) => error.into(),
            Self::Sql(error) => session.sql_error(context, &error),
        }
    }
}

/// The transactions, one after the other.
struct Run<'a> {
    terminal: Terminal<SqliteSession<'a>>,
    session: &'a Session,
    source: Source,
    counts: BTreeMap<TpccTransaction, u64>,
    /// When each transaction started, on the drive's clock.
    starts: Vec<(Nanos, TpccTransaction)>,
    rolled_back: u64,
    deck: Deck,
}

impl Run<'_> {
    fn play(&mut self, count: u64, told: &mut dyn FnMut(u64) -> Result<(), TuneError>) -> Result<(), TuneError> {
        for number in 0..count {
            if number.is_multiple_of(16) {
                told(number)?;
            }
            let what = self.deck.draw(&mut self.source);
            *self.counts.entry(what).or_default() += 1;
            self.starts.push((self.session.vfs().now(), what));
            self.terminal.set_date(self.counts.values().sum::<u64>() as i64);
            let is_kept = self.terminal.transact(what, &mut self.source);
            let is_kept = is_kept.map_err(|e| self.session.sql_error(&format!("{what:?}"), &e))?;
            self.rolled_back += u64::from(!is_kept);
        }
        Ok(())
    }
}

/// The last transaction that had started by then: one without requests takes no time on the drive's clock.
fn transaction_at(starts: &[(Nanos, TpccTransaction)], at: Nanos) -> TpccTransaction {
    let begun = starts.partition_point(|&(start, _)| start <= at);
    starts.get(begun.saturating_sub(1)).map_or(TpccTransaction::NewOrder, |&(_, what)| what)
}

/// The table or index of each page, by its number less one; pages of none are SQLite's own.
fn owners(db: &Connection) -> rusqlite::Result<Vec<Option<String>>> {
    let pages: i64 = db.query_row("PRAGMA page_count", [], |row| row.get(0))?;
    let mut owners = vec![None; usize::try_from(pages).unwrap_or(0)];
    let mut query = db.prepare("SELECT pageno, name FROM dbstat")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let page: i64 = row.get(0)?;
        if let Some(owner) = usize::try_from(page - 1).ok().and_then(|page| owners.get_mut(page)) {
            *owner = Some(row.get(1)?);
        }
    }
    Ok(owners)
}

/// Pages read and written of each table.
fn traffic(trace: &IoTrace, owners: &[Option<String>]) -> Vec<TableTraffic> {
    const NONE: &str = "(free)";
    let name = |owner: &Option<String>| owner.as_deref().unwrap_or(NONE).to_owned();
    let mut tables: BTreeMap<String, TableTraffic> = BTreeMap::new();
    let mut of = |table: String, change: &dyn Fn(&mut TableTraffic)| {
        let new = || TableTraffic { table: table.clone(), pages: 0, reads: 0, writes: 0 };
        change(tables.entry(table.clone()).or_insert_with(new));
    };
    owners.iter().for_each(|owner| of(name(owner), &|table| table.pages += 1));
    for record in &trace.records {
        let first = record.offset / TPCC_PAGE;
        for page in first..first + record.length.0.div_ceil(TPCC_PAGE.bytes()) {
            let owner = usize::try_from(page).ok().and_then(|page| owners.get(page)).map_or(NONE.to_owned(), name);
            match record.operation {
                Operation::Read => of(owner, &|table| table.reads += 1),
                Operation::Write => of(owner, &|table| table.writes += 1),
                _ => {}
            }
        }
    }
    let mut tables: Vec<_> = tables.into_values().collect();
    tables.sort_by(|a, b| (b.reads + b.writes, &a.table).cmp(&(a.reads + a.writes, &b.table)));
    tables
}

#[cfg(test)]
mod tests;
