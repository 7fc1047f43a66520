//! Logs of a real server, in every format.

use super::*;
use crate::servers::logged::LoggedTransaction;
use proptest::prelude::*;

const STDERR: &[u8] = include_bytes!("../../../tests/data/stderr.log");
const CSV: &[u8] = include_bytes!("../../../tests/data/log.csv");
const JSON: &[u8] = include_bytes!("../../../tests/data/log.json");
const DURATIONS: &[u8] = include_bytes!("../../../tests/data/durations.log");

fn read_text(text: &[u8]) -> LoggedWorkload {
    let mut collector = Collector::default();
    read(text, &mut collector).unwrap();
    collector.finish()
}

fn left(workload: &LoggedWorkload, reason: &str) -> u64 {
    let all = workload.left_out.sorted();
    all.iter().find(|counted| counted.reason.starts_with(reason)).map_or(0, |counted| counted.count)
}

fn text(transaction: &LoggedTransaction) -> String {
    let texts: Vec<_> = transaction.statements.iter().map(|statement| statement.sql.trim_end_matches(';')).collect();
    texts.join("; ")
}

#[test]
fn every_format_gives_the_same_transactions() {
    assert_eq!([STDERR, CSV, JSON].map(Format::of), [Format::Stderr, Format::Csv, Format::Json]);
    let [stderr, csv, json] = [STDERR, CSV, JSON].map(read_text);
    assert!(stderr.count() > 20);
    for other in [&csv, &json] {
        assert_eq!(other.transactions, stderr.transactions);
        assert_eq!((other.database.as_deref(), other.sessions()), (Some("shop"), stderr.sessions()));
        for reason in ["statements that failed", "COPY", "connections", "errors", "transactions"] {
            assert_eq!(left(other, reason), left(&stderr, reason), "{reason}");
        }
    }
}

#[test]
fn statements_have_their_values_and_transactions_their_statements() {
    let workload = read_text(STDERR);
    let sale =
        |transaction: &&LoggedTransaction| text(transaction).starts_with("BEGIN; UPDATE item SET stock = stock - $1");
    let sale = workload.transactions.iter().find(sale).unwrap();
    assert_eq!(
        text(sale),
        "BEGIN; UPDATE item SET stock = stock - $1 WHERE id = $2; INSERT INTO sale (item, count, note) VALUES ($1, $2, \
         'it''s :-)'); COMMIT"
    );
    let values: Vec<Option<&str>> = sale.statements[1].values.as_ref().unwrap().iter().map(Option::as_deref).collect();
    assert!(values.len() == 2 && values.iter().all(|value| value.unwrap().parse::<u32>().is_ok()), "{values:?}");
    let texts: Vec<String> = workload.transactions.iter().map(text).collect();
    for expected in [
        "SELECT name,\n       stock -- left\n  FROM item WHERE id = 748",
        // Of transactions in which a statement failed, what did not; they rolled back.
        "BEGIN; UPDATE item SET stock = 0 WHERE id = 1; ROLLBACK",
        "BEGIN; INSERT INTO sale (item, count) VALUES (1, 2); ROLLBACK",
        "EXECUTE p(4)",
        "SELECT $$a;b$$, E'a\\'b\n\tsecond'",
        // The session ended in it.
        "BEGIN; UPDATE item SET stock = 5 WHERE id = 7; ROLLBACK",
    ] {
        assert!(texts.iter().any(|text| text == expected), "{expected}\n{texts:#?}");
    }
    assert_eq!(
        (left(&workload, "statements that failed"), left(&workload, "COPY from"), left(&workload, "COPY to")),
        (3, 1, 1)
    );
}

#[test]
fn statements_with_durations_are_taken_when_they_were_executed() {
    let workload = read_text(DURATIONS);
    let texts: Vec<String> = workload.transactions.iter().map(text).collect();
    assert_eq!((workload.count(), texts.iter().filter(|text| text.starts_with("SELECT")).count()), (3, 2));
    assert_eq!(texts.iter().filter(|text| text.starts_with("BEGIN; UPDATE") && text.ends_with("; COMMIT")).count(), 1);
    assert!(left(&workload, "steps before") >= 9);
}

#[test]
fn counted_calls_weigh_the_transactions_of_the_same_server() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/pg_stat_statements.csv");
    let workload = read_text(STDERR);
    let weighted = weights::Calls::read(&path).unwrap().weigh(&workload);
    assert!(weighted.calls_covered > 0.9, "{:?}", weighted.missing.sorted());
    let unknown = workload.transactions.iter().zip(&weighted.weights).filter(|(_, weight)| **weight == 0.0);
    let unknown: Vec<String> = unknown.filter(|(transaction, _)| transaction.works).map(|(t, _)| text(t)).collect();
    // The module counts it under the text of its PREPARE.
    assert_eq!(unknown, ["EXECUTE p(4)"]);
}

#[test]
fn a_log_without_statements_is_an_error_that_says_how_to_log_them() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("empty.log");
    std::fs::write(&file, "2026-11-29 15:56:08 UTC [1] LOG:  checkpoint starting: time\n").unwrap();
    let error = read_logs(std::slice::from_ref(&file)).unwrap_err().to_string();
    assert!(error.contains("1 × checkpoints") && error.contains("log_statement = all"), "{error}");
    assert!(read_logs(&[place.path().to_owned()]).is_err());
}

proptest! {
    #[test]
    fn any_log_has_an_end(
        lines in prop::collection::vec(
            "(\t|[0-9]{0,2} \\[[0-9]{1,2}\\] (a@b )?(LOG|ERROR|DETAIL|STATEMENT):  )?(duration: 1 ms  )?\
             (statement: |execute [a-z]{0,2}: |parameters: |disconnection: )?[ -~ä'\"$;]{0,40}",
            0..20,
        ),
        start in prop::sample::select(vec!["", "{", "a,b,c,d,e,f\n"]),
        end in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let mut log = [start, &lines.join("\n")].concat().into_bytes();
        log.extend(end);
        let workload = read_text(&log);
        prop_assert!(workload.statements() <= 3 * log.len() as u64);
    }

    #[test]
    fn a_real_log_with_damage_has_an_end(at in 0..35_000_usize, byte in any::<u8>(), which in 0..3_usize) {
        let mut log = [STDERR, CSV, JSON][which].to_vec();
        let at = at % log.len();
        log[at] = byte;
        let workload = read_text(&log);
        prop_assert!(workload.count() > 10, "{}", workload.count());
    }
}
