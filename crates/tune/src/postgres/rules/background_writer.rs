//! `bgwriter_delay`, `bgwriter_lru_maxpages`, `bgwriter_lru_multiplier`: how much the background writer writes before
//! pages are evicted.
//!
//! Where pages bypass the kernel's page cache, and backends spend so much time on writes of evicted ones that saving
//! it would be seen (`eviction.rs`), all three change together: every page that is about to be evicted is written, in
//! short rounds. That is what the study `ace-postgres` calls tuned, and what is to be tried before an extension.
//! Otherwise only the limit of a round changes:
//!
//! ```text
//!   wanted   present · (pages it wrote + pages that backends wrote) ÷ pages it wrote
//!   at most  pages that the drive writes in one bgwriter_delay, saturated
//!   value    a whole multiple of k_w
//! ```
//!
//! Only if the server counted rounds that ended at the limit (`maxwritten_clean`): then backends that need a page write
//! one themselves, and a query waits for that. The pages written by backends include those by which tables grow, so the
//! value is rather too high than too low; it is a limit, not the number of written pages.
//!
//! Source: PostgreSQL documentation, "Background Writer", and the view `pg_stat_bgwriter` (`pg_stat_io` from 17 on).

use flashwise_block::Operation;

use super::super::settings::{PAGE, Setting};
use super::{Change, Facts, Ruling};
use crate::EvictionBound;
use crate::servers::figures::{certain, counted, saturated_iops};

/// A value of a background writer that writes every page that is about to be evicted.
struct Tuned {
    name: &'static str,
    value: &'static str,
    /// Whether a value has as much of it already.
    is_so: fn(f64) -> bool,
}

/// The shortest that is allowed, ms.
const ROUND: Tuned = Tuned { name: "bgwriter_delay", value: "10", is_so: |ms| ms <= 10.0 };
/// As many as there are.
const PAGES_OF_A_ROUND: Tuned = Tuned { name: "bgwriter_lru_maxpages", value: "1000000", is_so: |pages| pages >= 1e6 };
/// The greatest that is allowed: times as many as the last rounds needed.
const AHEAD: Tuned = Tuned { name: "bgwriter_lru_multiplier", value: "10", is_so: |times| times >= 10.0 };

/// The statements that set all three.
pub(in super::super) fn by_hand() -> String {
    let set = |Tuned { name, value, .. }: Tuned| format!("ALTER SYSTEM SET {name} = {value}; ");
    [ROUND, PAGES_OF_A_ROUND, AHEAD].map(set).concat() + "SELECT pg_reload_conf();"
}

pub(super) fn delay(facts: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    of_eviction(facts, now, ROUND).unwrap_or_else(|| Err(UNCOUNTED.to_owned()))
}

pub(super) fn ahead(facts: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    of_eviction(facts, now, AHEAD).unwrap_or_else(|| Err(UNCOUNTED.to_owned()))
}

pub(super) fn pages_of_a_round(facts: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    let is_of_eviction = |bound: &EvictionBound| bound.is_worth_it && bound.is_direct;
    let of_eviction = facts.eviction.filter(is_of_eviction).and_then(|_| of_eviction(facts, now, PAGES_OF_A_ROUND));
    of_eviction.unwrap_or_else(|| of_limited_rounds(facts, now))
}

const UNCOUNTED: &str = "how long backends wait for writes of evicted pages was not counted";

/// One of the three settings together; `None` where no server has counted what they are for.
fn of_eviction(facts: &Facts<'_>, now: &Setting, tuned: Tuned) -> Option<Result<Ruling, String>> {
    let EvictionBound { write_share, ratio_at_most, is_direct, is_worth_it, .. } = facts.eviction?;
    let share = format!("backends spend {:.1} % of their time on writes of evicted pages", write_share * 100.0);
    if !is_worth_it {
        return Some(Ok(Ruling::Fits(share)));
    }
    if !is_direct {
        let waits = "they wait for the drive only where the kernel's page cache is short of memory";
        return Some(Ok(Ruling::Fits(format!("{share}; {waits}"))));
    }
    if now.value.parse().is_ok_and(tuned.is_so) {
        return Some(Ok(Ruling::Fits(format!("{share}, with this value already"))));
    }
    let most = |ratio: f64| format!("at most {:.0} %", (ratio - 1.0) * 100.0);
    let most = ratio_at_most.map_or_else(|| "no upper bound by these counters".to_owned(), most);
    let evidence = vec![counted("time of statements spent on writes of pages", write_share * 100.0, "%")];
    Some(Ok(Ruling::Change(Change {
        expected_gain: format!("{most}, of all settings of the background writer together"),
        ..Change::unmeasured(tuned.value, format!("{share}: it writes them before"), evidence)
    })))
}

fn of_limited_rounds(facts: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    let activity = facts.activity.ok_or("without a server, the number of pages that backends write is unknown")?;
    let present = now.value.parse::<u64>().map_err(|_| format!("{} is not a number", now.value))?;
    if present == 0 {
        return Ok(Ruling::Fits("it is disabled".to_owned()));
    }
    if activity.limited_rounds == 0 || activity.by_background_writer == 0 {
        return Ok(Ruling::Fits("no round of the background writer ended at this limit".to_owned()));
    }
    let k = certain(&facts.profile.parameters.write_concurrency_8k, "k_w at 8 KiB")?;
    let writes = saturated_iops(facts.profile, Operation::Write, PAGE).ok_or("the profile has no 8 KiB writes")?;
    let delay_ms = facts.settings.number("bgwriter_delay").ok_or("the server reports no bgwriter_delay")?;
    let capacity = writes.low * delay_ms / 1000.0;
    let (cleaned, by_backends) = (activity.by_background_writer as f64, activity.by_backends as f64);
    let wanted = pages(present as f64, cleaned, by_backends, capacity, k.value);
    let reason = format!(
        "{} rounds of the background writer ended at this limit, and backends wrote {} pages besides its {}; the drive \
         can write {:.0} in one bgwriter_delay",
        activity.limited_rounds, activity.by_backends, activity.by_background_writer, capacity
    );
    if wanted <= present {
        return Ok(Ruling::Fits(reason));
    }
    let share = by_backends / (cleaned + by_backends);
    Ok(Ruling::Change(Change {
        value: wanted.to_string(),
        reason,
        evidence: vec![
            counted("rounds that ended at the limit", activity.limited_rounds as f64, "rounds"),
            counted("pages written by backends", by_backends, "pages"),
            counted("pages written by the background writer", cleaned, "pages"),
            writes.evidence("saturated writes of 8 KiB", "per second"),
            k.evidence("write_concurrency_8k", "writes in flight"),
        ],
        expected: None,
        expected_gain: format!("unknown; queries no longer wait for up to {:.0} % of the written pages", share * 100.0),
    }))
}

fn pages(present: f64, cleaned: f64, by_backends: f64, capacity: f64, k: f64) -> u64 {
    let wanted = (present * (cleaned + by_backends) / cleaned).min(capacity);
    let batches = (wanted / k).floor().max(1.0);
    (batches * k) as u64
}

#[cfg(test)]
mod tests {
    use super::super::super::server::Activity;
    use super::super::tests::{Bench, changed, fits, untold};
    use super::*;

    #[test]
    fn what_backends_wrote_is_what_the_limit_is_raised_by() {
        assert_eq!(pages(100.0, 1_000.0, 9_000.0, 1e9, 1.0), 1_000);
        assert_eq!(pages(100.0, 1_000.0, 9_000.0, 1e9, 3.0), 999, "a whole number of batches");
        assert_eq!(pages(100.0, 1_000.0, 9_000.0, 400.0, 8.0), 400, "the drive takes no more");
    }

    #[test]
    fn it_is_changed_only_where_the_server_counted_a_need() {
        let bench = Bench::new();
        let name = "bgwriter_lru_maxpages";
        let judge = pages_of_a_round;
        assert!(untold(judge(&bench.facts(), bench.setting(name))).contains("without a server"));
        let idle = Activity { by_background_writer: 5, by_backends: 9, ..Activity::default() };
        let facts = Facts { activity: Some(&idle), ..bench.facts() };
        assert!(fits(judge(&facts, bench.setting(name))).contains("no round"));
        let busy =
            Activity { limited_rounds: 7, by_background_writer: 1_000, by_backends: 3_000, ..Activity::default() };
        let facts = Facts { activity: Some(&busy), ..bench.facts() };
        let change = changed(judge(&facts, bench.setting(name)));
        assert_eq!(change.value, "400");
        assert!(change.expected_gain.contains("75 %"), "{}", change.expected_gain);
    }

    #[test]
    fn where_backends_wait_for_evictions_every_page_is_written_before_in_short_rounds() {
        let bench = Bench::new();
        let of = |write_share: f64, is_worth_it| EvictionBound {
            write_share,
            ratio_at_most: Some(1.0 / (1.0 - write_share)),
            drive_busy: None,
            is_direct: true,
            is_worth_it,
        };
        let all = [
            ("bgwriter_delay", delay as fn(&Facts<'_>, &Setting) -> Result<Ruling, String>, "10"),
            ("bgwriter_lru_maxpages", pages_of_a_round, "1000000"),
            ("bgwriter_lru_multiplier", ahead, "10"),
        ];
        let activity = Activity::default();
        for (name, judge, value) in all {
            let facts = |eviction| Facts { activity: Some(&activity), eviction, ..bench.facts() };
            let change = changed(judge(&facts(Some(of(0.2, true))), bench.setting(name)));
            assert_eq!(change.value, value, "{name}");
            assert!(change.reason.contains("20.0 % of their time"), "{}", change.reason);
            assert!(change.expected_gain.starts_with("at most 25 %"), "{}", change.expected_gain);
            fits(judge(&facts(Some(of(0.005, false))), bench.setting(name)));
            let buffered = EvictionBound { is_direct: false, ..of(0.2, true) };
            fits(judge(&facts(Some(buffered)), bench.setting(name)));
            let mut tuned = Bench::new();
            tuned.set(name, value);
            let facts = Facts { eviction: Some(of(0.2, true)), activity: Some(&activity), ..tuned.facts() };
            fits(judge(&facts, tuned.setting(name)));
        }
        assert!(untold(delay(&bench.facts(), bench.setting("bgwriter_delay"))).contains("not counted"));
    }
}
