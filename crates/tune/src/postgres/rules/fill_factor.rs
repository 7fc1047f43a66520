//! `fillfactor` of a table: the free space in its pages for new versions of their rows.
//!
//! ```text
//!   updates of a row between two vacuums   w = updates ÷ rows ÷ (vacuums + 1)
//!   fillfactor                             100 ÷ (1 + min(w, 1)), rounded up to a multiple of 5
//! ```
//!
//! An update whose new version fits the same page, and changes no indexed column, writes no index (HOT). A page with
//! space for one more version of each row is half full: less is never proposed, as old versions are pruned meanwhile.
//! Only for tables with at least a thousand updates, at least 5 % of the rows between two vacuums, and more than a
//! tenth of the updates moved to another page. Before version 16 the server does not count those; then updates that are
//! not HOT replace them, including updates of an indexed column, which free space does not help.
//!
//! Source: PostgreSQL documentation, "Heap-Only Tuples (HOT)": "You can increase the likelihood of sufficient page
//! space for HOT updates by decreasing a table's fillfactor"; "CREATE TABLE", `fillfactor` (10 to 100).

use super::super::server::Table;
use super::{Change, Ruling};
use crate::servers::figures::counted;

/// Fewer updates are not enough for a decision.
const ENOUGH: u64 = 1_000;
/// Fewer updates of a row between two vacuums need no free space.
const SELDOM: f64 = 0.05;
/// As few updates that leave their page are well.
const WELL: f64 = 0.1;

/// A table's fill factor from its counters; the error says why there is no decision.
pub(in super::super) fn judge(table: &Table) -> Result<Ruling, String> {
    if table.updates < ENOUGH {
        return Err(format!("{} updates are too few for a decision", table.updates));
    }
    let moved = table.moved.unwrap_or(table.updates - table.hot_updates.min(table.updates));
    let share = moved as f64 / table.updates as f64;
    let words = if table.moved.is_some() { "went to another page" } else { "were not HOT" };
    let told = format!("{:.0} % of its {} updates {words}", share * 100.0, table.updates);
    let rate = table.updates as f64 / table.rows.max(1) as f64 / (table.vacuums + 1) as f64;
    if share <= WELL || rate < SELDOM {
        return Ok(Ruling::Fits(format!("{told}, {rate:.2} updates per row between two vacuums")));
    }
    let wanted = fill_factor(rate);
    if wanted >= table.fill_factor {
        return Ok(Ruling::Fits(format!("{told}, but the fill factor already leaves enough space")));
    }
    let caveat = match table.moved {
        Some(_) => "",
        None => "; if they change an indexed column, free space does not help",
    };
    Ok(Ruling::Change(Change {
        value: wanted.to_string(),
        reason: format!("{told}, and each row is updated {rate:.2} times between two vacuums{caveat}"),
        evidence: vec![
            counted("updates", table.updates as f64, "rows"),
            counted("updates that are not HOT, or left their page", moved as f64, "rows"),
            counted("rows", table.rows as f64, "rows"),
            counted("vacuums", table.vacuums as f64, "vacuums"),
        ],
        expected: None,
        expected_gain: format!(
            "unknown; the table grows to {:.2} times its size when it is rewritten",
            f64::from(table.fill_factor) / f64::from(wanted)
        ),
    }))
}

fn fill_factor(updates_of_a_row: f64) -> u32 {
    let full = 100.0 / (1.0 + updates_of_a_row.clamp(0.0, 1.0));
    ((full / 5.0).ceil() * 5.0) as u32
}

#[cfg(test)]
mod tests {
    use super::super::tests::{changed, fits, untold};
    use super::*;

    fn table() -> Table {
        let name = "public.t".to_owned();
        let (rows, updates, hot_updates) = (10_000, 4_000, 1_000);
        Table { name, rows, updates, hot_updates, moved: None, vacuums: 1, fill_factor: 100, has_fill_factor: false }
    }

    #[test]
    fn it_is_room_for_the_updates_between_two_vacuums() {
        // 4,000 updates of 10,000 rows in two stretches: 0.2 of a row, 100 ÷ 1.2 = 83.3.
        assert_eq!(changed(judge(&table())).value, "85");
        assert_eq!((fill_factor(0.05), fill_factor(1.0), fill_factor(50.0)), (100, 50, 50));
        assert_eq!(fill_factor(0.1), 95);
    }

    #[test]
    fn a_table_without_a_need_is_left() {
        assert!(fits(judge(&Table { hot_updates: 3_900, ..table() })).contains("2 %"));
        assert!(fits(judge(&Table { moved: Some(100), ..table() })).contains("another page"));
        assert!(fits(judge(&Table { rows: 1_000_000, ..table() })).contains("0.00 updates per row"));
        assert!(fits(judge(&Table { fill_factor: 80, ..table() })).contains("already leaves enough space"));
        assert!(untold(judge(&Table { updates: 999, ..table() })).contains("too few"));
    }

    #[test]
    fn what_cannot_be_known_of_older_servers_is_said() {
        assert!(changed(judge(&table())).reason.contains("indexed column"));
        assert!(!changed(judge(&Table { moved: Some(3_000), ..table() })).reason.contains("indexed column"));
    }
}
