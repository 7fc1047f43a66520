//! TPC-C by its five transactions: the pages that SQLite asks for when it runs them, on a pool and a drive.
//!
//! ```text
//!   SQLite, as small a page cache as it can have ─▶ pages, each with its transaction ─▶ pool ─▶ drive
//!                                                                    │
//!                                                    the whole mix, or one transaction's accesses alone
//! ```
//!
//! In the mix, a transaction pays for what it waits for: also for the dirty pages of others that fall when it misses.

use std::ops::Range as Span;
use std::sync::Arc;

use flashwise_block::{ByteSize, Operation, Silent};
use flashwise_bufferpool::{Access, PageTrace};
use flashwise_report::study::{Measured, StudyCell, StudySection, StudyTable};
use flashwise_tune::sqlite::{TPCC_PAGE, TpccTransaction, TpccWorkload, tpcc};
use flashwise_tune::{DEFAULT_TARGET, Target};

use super::drives::Drive;
use super::matrix::{ACE, CLASSIC, WITH_PREFETCH};
use super::run::{Bench, Compared, Method, POLICIES, Pages, Run, State, drive};
use crate::{Progress, StudyError, StudyOptions, parallel};

/// In the order of the text, with what it says of them.
const TRANSACTIONS: [(TpccTransaction, &str); 5] = [
    (TpccTransaction::NewOrder, "NewOrder, r/w"),
    (TpccTransaction::Payment, "Payment, r/w"),
    (TpccTransaction::OrderStatus, "OrderStatus, r"),
    (TpccTransaction::StockLevel, "StockLevel, r"),
    (TpccTransaction::Delivery, "Delivery, w"),
];
/// Frames ÷ pages of the database: the text names none for TPC-C, so that of its other runs.
const POOL_SHARE: f64 = 0.058;

/// The real run: its size, and how often it is made with another seed.
fn workload(options: &StudyOptions) -> (TpccWorkload, u64) {
    let of = |scale, transactions| TpccWorkload { warehouses: 1, transactions, scale, page_cache: ByteSize(0) };
    if options.quick { (of(0.05, 1_150), 2) } else { (of(1.0, 11_500), 3) }
}

/// Pages of a run of TPC-C.
struct Trace {
    accesses: Vec<Access>,
    /// Accesses of one transaction after the other.
    transactions: Vec<(TpccTransaction, Span<usize>)>,
    pages: Pages,
    frames: usize,
    database_pages: usize,
}

/// What one seed gives: of each method the whole mix, and the seconds of each transaction's part; each transaction
/// alone.
struct Seed {
    mix: Vec<Run>,
    parts: Vec<[f64; 5]>,
    alone: [Vec<Run>; 5],
    /// Accesses that write, per cent, of each transaction and of all.
    writes: [f64; 5],
    all_writes: f64,
    accesses: usize,
    database_pages: usize,
}

/// All runs.
pub(super) struct Tpcc {
    seeds: Vec<Seed>,
    workload: TpccWorkload,
}

fn record(workload: &TpccWorkload, batch: usize, seed: u64) -> Result<Trace, StudyError> {
    let run = tpcc(&Target::parse(DEFAULT_TARGET)?, workload, seed, &mut Silent)?;
    let (mut asked, mut transactions) = (Vec::new(), Vec::<(TpccTransaction, Span<usize>)>::new());
    for (record, &by) in run.trace.records.iter().zip(&run.requested_by) {
        let is_write = match record.operation {
            Operation::Read => false,
            Operation::Write => true,
            _ => continue,
        };
        let start = asked.len();
        let first = record.offset / TPCC_PAGE;
        asked.extend((first..first + record.length.0.div_ceil(TPCC_PAGE.0)).map(|page| (page, is_write)));
        match transactions.last_mut() {
            Some((last, span)) if *last == by => span.end = asked.len(),
            _ => transactions.push((by, start..asked.len())),
        }
    }
    let mut trace = PageTrace::of_pages("TPC-C", asked)?;
    let database_pages = run.pages as usize;
    let next = trace.with_neighbours(batch as u64)?;
    let pages = Pages { places: trace.places(), next, blocks: Arc::from([]) };
    let frames = (database_pages as f64 * POOL_SHARE).round().max(1.0) as usize;
    Ok(Trace { accesses: trace.accesses().to_vec(), transactions, pages, frames, database_pages })
}

impl Trace {
    /// The accesses of one transaction in their order.
    fn of(&self, what: TpccTransaction) -> Vec<Access> {
        let spans = self.transactions.iter().filter(|(by, _)| *by == what);
        spans.flat_map(|(_, span)| &self.accesses[span.clone()]).copied().collect()
    }

    /// The whole mix, and the seconds of each transaction's part.
    fn mix(&self, on: &Drive, method: Method, seed: u64) -> Result<(Run, [f64; 5]), StudyError> {
        let mut ssd = drive(&on.config, State::Written, self.pages.places.len(), seed)?;
        let mut bench = Bench::new(&mut ssd, &self.pages, POLICIES[0].1, self.frames, method)?;
        let (mut parts, mut before) = ([0.0; 5], 0.0);
        for (what, span) in &self.transactions {
            bench.play(&self.accesses[span.clone()])?;
            let now = bench.told().seconds;
            let place = TRANSACTIONS.iter().position(|(known, _)| known == what).unwrap_or(0);
            parts[place] += now - before;
            before = now;
        }
        Ok((bench.told(), parts))
    }

    fn alone(&self, accesses: &[Access], on: &Drive, method: Method, seed: u64) -> Result<Run, StudyError> {
        let mut ssd = drive(&on.config, State::Written, self.pages.places.len(), seed)?;
        let mut bench = Bench::new(&mut ssd, &self.pages, POLICIES[0].1, self.frames, method)?;
        bench.play(accesses)?;
        Ok(bench.told())
    }
}

fn once(workload: &TpccWorkload, on: &Drive, seed: u64) -> Result<Seed, StudyError> {
    let trace = record(workload, on.batch, seed)?;
    let (mut mix, mut parts) = (Vec::new(), Vec::new());
    for method in Method::three(on.batch) {
        let (run, of_transactions) = trace.mix(on, method, seed)?;
        mix.push(run);
        parts.push(of_transactions);
    }
    let (mut alone, mut writes) = ([const { Vec::new() }; 5], [0.0; 5]);
    for (place, &(what, _)) in TRANSACTIONS.iter().enumerate() {
        let accesses = trace.of(what);
        writes[place] = written(&accesses);
        let run = |&method: &Method| trace.alone(&accesses, on, method, seed);
        alone[place] = Method::three(on.batch).iter().map(run).collect::<Result<_, _>>()?;
    }
    let (all_writes, accesses) = (written(&trace.accesses), trace.accesses.len());
    Ok(Seed { mix, parts, alone, writes, all_writes, accesses, database_pages: trace.database_pages })
}

/// Runs TPC-C on SQLite, and its pages on the pool.
pub(super) fn measure(on: &Drive, options: &StudyOptions, progress: Progress<'_>) -> Result<Tpcc, StudyError> {
    let (workload, seeds) = workload(options);
    let seeds: Vec<u64> = (0..seeds).map(|n| options.seed.wrapping_add(n)).collect();
    let seeds = parallel::map("TPC-C", &seeds, progress, |&seed| once(&workload, on, seed))?;
    Ok(Tpcc { seeds, workload })
}

impl Tpcc {
    fn mean(&self, what: impl Fn(&Seed) -> f64) -> Measured {
        crate::statistics::mean(&self.seeds.iter().map(what).collect::<Vec<_>>())
    }

    /// What a method saves of a transaction's part in the mix, per cent.
    pub(super) fn saved_in_mix(&self, transaction: usize, method: usize) -> Measured {
        self.mean(|seed| 100.0 * (1.0 - seed.parts[method][transaction] / seed.parts[CLASSIC][transaction]))
    }

    /// The same of the transaction alone.
    pub(super) fn saved_alone(&self, transaction: usize, method: usize) -> Measured {
        self.mean(|seed| {
            let runs = &seed.alone[transaction];
            100.0 * (1.0 - runs[method].seconds / runs[CLASSIC].seconds)
        })
    }

    /// The whole mix.
    pub(super) fn mix(&self) -> Compared {
        Compared { runs: self.seeds.iter().map(|seed| seed.mix.clone()).collect() }
    }

    /// What ACE saves at most of a transaction that writes, alone or in the mix, and its name.
    pub(super) fn best(&self) -> (&'static str, f64) {
        let of = |place: usize| {
            let name = TRANSACTIONS[place].1.split(',').next().unwrap_or_default();
            (name, self.saved_alone(place, ACE).value.max(self.saved_in_mix(place, ACE).value))
        };
        (0..TRANSACTIONS.len()).map(of).max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(("none", 0.0))
    }

    /// The tables.
    pub(super) fn section(&self, on: &Drive) -> StudySection {
        let row = |place: usize| {
            vec![
                StudyCell::text(TRANSACTIONS[place].1),
                self.mean(|seed| seed.writes[place]).into(),
                self.mean(|seed| seed.parts[CLASSIC][place]).into(),
                self.saved_in_mix(place, ACE).into(),
                self.saved_in_mix(place, WITH_PREFETCH).into(),
            ]
        };
        let alone_row = |place: usize| {
            vec![
                StudyCell::text(TRANSACTIONS[place].1),
                self.mean(|seed| seed.alone[place][CLASSIC].misses).into(),
                self.mean(|seed| seed.alone[place][CLASSIC].pages_written).into(),
                self.saved_alone(place, ACE).into(),
                self.saved_alone(place, WITH_PREFETCH).into(),
            ]
        };
        let mix = self.mix();
        let whole = vec![
            StudyCell::text("all"),
            self.mean(|seed| seed.all_writes).into(),
            mix.mean(CLASSIC, |run| run.seconds).into(),
            mix.saved(ACE).into(),
            mix.saved(WITH_PREFETCH).into(),
        ];
        let first = self.seeds.first();
        let (pages, accesses) = first.map_or((0, 0), |seed| (seed.database_pages, seed.accesses));
        let grouped = |n: usize| flashwise_block::grouped(n as u64);
        StudySection {
            title: "TPC-C, by its five transactions".to_owned(),
            text: vec![
                format!(
                    "TPC-C run on SQLite, {} transactions on {} warehouse at a scale of {}, with the smallest page \
                     cache that SQLite supports (about ten pages), so that its requests are the accesses of a pool: \
                     {} accesses to {} pages with the first of {} seeds. LRU, {}, n_w = {}; a pool of {:.1} % of the \
                     pages, since the paper gives no size for TPC-C. The mix is a deck of 23: 10 NewOrder, 10 \
                     Payment, one of each other.",
                    grouped(self.workload.transactions as usize),
                    self.workload.warehouses,
                    self.workload.scale,
                    grouped(accesses),
                    grouped(pages),
                    self.seeds.len(),
                    on.name,
                    on.batch,
                    100.0 * POOL_SHARE,
                ),
                "In the mix, a transaction waits for its own misses and for any dirty page evicted for them, so \
                 read-only transactions gain too. Alone: the accesses of one kind in their order, without the others; \
                 read-only transactions then have nothing to write."
                    .to_owned(),
            ],
            tables: vec![
                StudyTable {
                    caption: "In the mix: accesses that write, %; classic time, s; saved, %:".to_owned(),
                    columns: ["", "writes, %", "classic, s", "ACE, %", "pf, %"].map(str::to_owned).to_vec(),
                    rows: (0..TRANSACTIONS.len()).map(row).chain([whole]).collect(),
                },
                StudyTable {
                    caption: "Alone: misses and pages written of the classic pool; saved, %:".to_owned(),
                    columns: ["", "misses", "written", "ACE, %", "pf, %"].map(str::to_owned).to_vec(),
                    rows: (0..TRANSACTIONS.len()).map(alone_row).collect(),
                },
            ],
            charts: Vec::new(),
        }
    }
}

/// Accesses that write, per cent.
fn written(accesses: &[Access]) -> f64 {
    let writes = accesses.iter().filter(|access| access.is_write()).count();
    100.0 * writes as f64 / accesses.len().max(1) as f64
}
