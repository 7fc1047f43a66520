//! The tables and the transactions on a server of one's own.

use flashwise_block::Silent;

use super::*;
use crate::postgres::PrivatePostgres;
use crate::tpcc::{DISTRICTS, consistency};

const SMALL: PostgresTpcc = PostgresTpcc { warehouses: 4, items: 200, customers: 40, fill_factor: 100 };

/// A server with loaded tables; `None` where none is installed.
fn server(tables: &PostgresTpcc) -> Option<PrivatePostgres> {
    let mut server = match PrivatePostgres::new(None, None) {
        Ok(server) => server,
        Err(TuneError::Missing(why)) => {
            eprintln!("{why}: not tested");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    server.create("tpcc", &mut Silent).unwrap();
    let settings = [("wal_level", "minimal"), ("max_wal_senders", "0"), ("fsync", "off")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    server.start("tpcc", &settings, &mut Silent).unwrap();
    tables.load(&server.dsn(), 1).unwrap();
    Some(server)
}

fn count(client: &mut Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).unwrap().get(0)
}

#[test]
fn transactions_leave_the_tables_as_consistent_as_the_specification_wants_them() {
    let Some(server) = server(&SMALL) else { return };
    let mut client = connect(&server.dsn()).unwrap();
    let customers = i64::from(SMALL.warehouses * DISTRICTS * SMALL.customers);
    assert_eq!(count(&mut client, "SELECT count(*) FROM stock"), i64::from(SMALL.warehouses * SMALL.items));
    assert_eq!(count(&mut client, "SELECT count(*) FROM orders"), customers);
    assert_eq!(count(&mut client, "SELECT count(*) FROM new_orders"), customers * 3 / 10);
    let how = SessionOptions { sessions: 4, transactions: 400, seed: 7 };
    let played = SMALL.play(&server.dsn(), &how).unwrap();
    assert_eq!(played.transactions, 400);
    // 10 of 23 cards each are New-Orders and Payments; one of a hundred New-Orders is undone.
    let orders = count(&mut client, "SELECT count(*) FROM orders") - customers;
    let payments = count(&mut client, "SELECT count(*) FROM history") - customers;
    assert!((150..=190).contains(&orders) && (160..=190).contains(&payments), "{orders} orders, {payments} payments");
    for violations in consistency() {
        // sysbench-tpcc's name for the table.
        assert_eq!(count(&mut client, &violations.replace("new_order ", "new_orders ")), 0, "{violations}");
    }
}

#[test]
fn a_fill_factor_makes_tables_larger_and_keeps_updates_on_their_pages() {
    let mut told = Vec::new();
    for fill_factor in [100, 75] {
        let tables = PostgresTpcc { fill_factor, ..SMALL };
        let Some(server) = server(&tables) else { return };
        let how = SessionOptions { sessions: 1, transactions: 60, seed: 3 };
        let mut client = connect(&server.dsn()).unwrap();
        let pages = count(&mut client, "SELECT pg_relation_size('stock') / 8192");
        tables.play(&server.dsn(), &how).unwrap();
        client.batch_execute("SELECT pg_stat_force_next_flush()").unwrap();
        // Statistics of an ended session appear a moment later.
        let sql = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'stock'";
        let end = Instant::now() + Duration::from_secs(10);
        let (updates, hot) = loop {
            let row = client.query_one(sql, &[]).unwrap();
            let (updates, hot): (i64, i64) = (row.get(0), row.get(1));
            if updates > 0 || Instant::now() > end {
                break (updates, hot);
            }
            thread::sleep(Duration::from_millis(20));
        };
        assert!(updates > 100, "{updates}");
        told.push((pages, hot as f64 / updates as f64));
    }
    let [(full, stay_full), (room, stay_room)] = told.try_into().unwrap();
    assert!((1.25..=1.45).contains(&(room as f64 / full as f64)), "{room} pages and {full}");
    assert!(stay_room > 0.95 && stay_full < 0.8, "{stay_room} and {stay_full}");
}

#[test]
fn sizes_that_make_no_sense_are_told() {
    let told = |tables: PostgresTpcc| tables.load("host=/no/such/place", 1).unwrap_err().to_string();
    assert!(told(PostgresTpcc { fill_factor: 101, ..SMALL }).contains("101 fill factor; give 10 to 100"));
    assert!(told(PostgresTpcc { warehouses: 0, ..SMALL }).contains("0 warehouses; give 1 to 10000"));
}
