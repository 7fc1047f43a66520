//! Properties of a trace of TPC-C with any seed.

use flashwise_block::Silent;

use super::*;
use crate::DEFAULT_TARGET;
use crate::tpcc::consistency;

/// A hundredth of a warehouse, and of each transaction several.
fn small() -> TpccWorkload {
    TpccWorkload { warehouses: 2, transactions: 230, scale: 0.01, page_cache: ByteSize(0) }
}

fn run(workload: &TpccWorkload, seed: u64) -> TpccRun {
    tpcc(&Target::parse(DEFAULT_TARGET).unwrap(), workload, seed, &mut Silent).unwrap()
}

fn table<'a>(run: &'a TpccRun, name: &str) -> &'a TableTraffic {
    run.tables.iter().find(|table| table.table == name).unwrap()
}

/// Pages written of all, in the order of writing.
fn written(trace: &IoTrace) -> Vec<u64> {
    let writes = trace.records.iter().filter(|record| record.operation == Operation::Write);
    writes.flat_map(|r| r.offset / TPCC_PAGE..(r.offset.0 + r.length.0).div_ceil(TPCC_PAGE.bytes())).collect()
}

#[test]
fn the_mix_is_that_of_the_deck() {
    use TpccTransaction::{Delivery, NewOrder, OrderStatus, Payment, StockLevel};
    let told = run(&small(), 1).transactions;
    assert_eq!(
        told,
        BTreeMap::from([(NewOrder, 100), (Payment, 100), (OrderStatus, 10), (Delivery, 10), (StockLevel, 10)])
    );
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_one_another() {
    let (first, again, other) = (run(&small(), 7), run(&small(), 7), run(&small(), 8));
    assert!(first.trace == again.trace && first.tables == again.tables);
    assert!(first.trace != other.trace);
}

#[test]
fn every_request_is_whole_pages_of_the_database() {
    let run = run(&small(), 1);
    let end = run.pages * TPCC_PAGE.bytes();
    assert!(!run.trace.records.is_empty());
    for record in run.trace.records.iter().filter(|record| record.operation != Operation::Flush) {
        assert!(matches!(record.operation, Operation::Read | Operation::Write), "{record:?}");
        assert!(record.offset.is_multiple_of(TPCC_PAGE) && record.length.is_multiple_of(TPCC_PAGE), "{record:?}");
        assert!(record.offset.0 + record.length.0 <= end, "{record:?}");
    }
}

#[test]
fn transactions_leave_the_tables_as_consistent_as_the_specification_wants_them() {
    let db = Connection::open_in_memory().unwrap();
    let (rows, mut source) = (small().rows(), Source::new(1));
    load::load::<rusqlite::Error>(&db, rows, &mut source, &mut |_| Ok(())).unwrap();
    let (mut terminal, mut deck) = (Terminal::new(SqliteSession(&db), rows), Deck::default());
    for date in 0..400 {
        terminal.set_date(date);
        let what = deck.draw(&mut source);
        terminal.transact(what, &mut source).unwrap();
    }
    for violations in consistency() {
        let count: i64 = db.query_row(violations, [], |row| row.get(0)).unwrap();
        assert_eq!(count, 0, "{violations}");
    }
}

#[test]
fn districts_are_hot_and_items_are_only_read() {
    let run = run(&small(), 3);
    let writes_of_a_page = |name| {
        let TableTraffic { pages, writes, .. } = table(&run, name);
        *writes as f64 / *pages as f64
    };
    // Each of the 200 New-Orders and Payments changes one of 20 rows.
    assert!(writes_of_a_page("district") > 50.0, "{:?}", run.tables);
    // Orders have four pages at this scale, and are left out.
    for cold in ["customer", "stock", "order_line"] {
        assert!(writes_of_a_page("district") > 10.0 * writes_of_a_page(cold), "{cold}: {:?}", run.tables);
    }
    assert_eq!(table(&run, "item").writes, 0);
    assert!(table(&run, "item").reads > 0);
}

#[test]
fn each_request_is_known_by_its_transaction() {
    use TpccTransaction::{NewOrder, OrderStatus, StockLevel};
    let run = run(&small(), 1);
    assert_eq!(run.requested_by.len(), run.trace.records.len());
    let of = |what, operation| {
        let labelled = run.requested_by.iter().zip(&run.trace.records);
        labelled.filter(|&(&by, record)| by == what && record.operation == operation).count()
    };
    // The two that only read write nothing; every New-Order writes its district at least.
    assert_eq!((of(OrderStatus, Operation::Write), of(StockLevel, Operation::Write)), (0, 0));
    assert!(of(OrderStatus, Operation::Read) > 0 && of(StockLevel, Operation::Read) > 0);
    assert!(of(NewOrder, Operation::Write) as u64 >= run.transactions[&NewOrder] - run.rolled_back);
}

#[test]
fn histories_are_appended_and_order_lines_grow_at_the_ends_of_their_districts() {
    let run = run(&TpccWorkload { transactions: 1_150, ..small() }, 5);
    let db_pages = run.pages;
    // 43 of 100 transactions are Payments, and each appends a row: it writes the last page, and now and then a new one.
    let history = table(&run, "history");
    assert!((450..600).contains(&history.writes), "{history:?}");
    assert!(history.writes > 20 * history.pages, "{history:?}");
    let lines = table(&run, "order_line");
    assert!(lines.writes > 0 && lines.pages > 20, "{lines:?}");
    let writes = written(&run.trace);
    let new: Vec<u64> = writes.iter().copied().filter(|&page| page + 30 > db_pages).collect();
    assert!(!new.is_empty(), "the database grows, and its new pages are written");
}

#[test]
fn a_larger_cache_asks_for_fewer_pages() {
    let none = run(&small(), 1);
    let large = run(&TpccWorkload { page_cache: ByteSize::mib(64), ..small() }, 1);
    let reads = |run: &TpccRun| run.tables.iter().map(|table| table.reads).sum::<u64>();
    assert!(reads(&large) * 10 < reads(&none), "{} of {}", reads(&large), reads(&none));
    assert_eq!(none.transactions, large.transactions);
}

#[test]
fn tpcc_takes_the_room_that_is_reserved() {
    for workload in [small(), TpccWorkload { warehouses: 1, scale: 0.05, ..small() }] {
        let (pages, most) = (run(&workload, 1).pages, workload.database_bytes_max());
        assert!(pages * TPCC_PAGE.bytes() <= most.0, "{pages} pages, {most} reserved");
    }
}

#[test]
fn what_cannot_be_run_is_told() {
    let told = |workload: TpccWorkload| {
        tpcc(&Target::parse(DEFAULT_TARGET).unwrap(), &workload, 1, &mut Silent).unwrap_err().to_string()
    };
    assert!(told(TpccWorkload { warehouses: 0, ..small() }).contains("1 to 1,000 warehouses"));
    assert!(told(TpccWorkload { transactions: 0, ..small() }).contains("at least one transaction"));
    for scale in [0.0, -1.0, 1.5, f64::NAN] {
        assert!(told(TpccWorkload { scale, ..small() }).contains("above 0 and at most 1"), "{scale}");
    }
}
