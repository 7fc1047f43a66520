//! Gains in sentences.

use flashwise_tune::{Comparison, Gain, RunMeasurement};

use super::findings::sentence;
use super::numbers::{bytes, change_interval, grouped, more_or};

/// The gain of one metric between two runs.
pub(crate) fn find_gain<'a>(c: &'a Comparison, metric: &str, from: &str, to: &str) -> Option<&'a Gain> {
    c.gains.iter().find(|g| g.metric == metric && g.from == from && g.to == to)
}

/// The result: the recommendation first, then the gains that it rests on.
pub(crate) fn headline(c: &Comparison) -> Vec<String> {
    let program = program(c);
    if c.applied.is_empty() {
        return vec![c.recommendation.reason.clone(), format!("Nothing was changed for {program}.")];
    }
    let plain_is_default = c.before.page_bytes == c.default_page_size.page_bytes;
    let pages = format!("at the same page size ({})", page_words(&c.before));
    let own = effects(c, "before").map(|e| format!("The changes alone, {pages}: {e}."));
    let default = page_words(&c.default_page_size);
    let all = effects(c, "default_page_size").filter(|_| !plain_is_default);
    let all = all.map(|e| format!("Compared with {program} at its default page size ({default}): {e}."));
    let effects: Vec<_> = all.into_iter().chain(own).collect();
    let mut sentences = vec![c.recommendation.reason.clone()];
    if effects.is_empty() {
        sentences.push(format!("{program} was fitted to the drive; the runs below show the effect."));
    }
    sentences.extend(effects);
    sentences
}

/// `29.1 % more SELECTs a second and 3.1 % fewer INSERTs a second`.
fn effects(c: &Comparison, from: &str) -> Option<String> {
    let gains = ["select_per_s", "insert_per_s"].map(|metric| find_gain(c, metric, from, "after"));
    let told: Vec<_> = gains.into_iter().flatten().map(effect).collect();
    (!told.is_empty()).then(|| told.join(" and "))
}

/// `29.1 % more SELECTs a second`, or that there is no measurable difference.
fn effect(gain: &Gain) -> String {
    match is_measurable(gain) {
        true => amount(gain),
        false => format!("no measurable difference in {}", noun(&gain.metric).0),
    }
}

/// Whether the interval excludes "no difference".
fn is_measurable(gain: &Gain) -> bool {
    gain.low > 1.0 || gain.high < 1.0
}

fn amount(gain: &Gain) -> String {
    let (noun, countable) = noun(&gain.metric);
    let less = if countable { "fewer" } else { "less" };
    let much = if gain.ratio < 2.995 {
        ""
    } else if countable {
        " many"
    } else {
        " much"
    };
    format!("{}{much} {noun}", more_or(gain.ratio, less))
}

/// One gain as a sentence.
pub(crate) fn gain_sentence(gain: &Gain) -> String {
    let what = match is_measurable(gain) {
        true => amount(gain),
        false => format!("no measurable difference in {}", noun(&gain.metric).0),
    };
    let (to, from) = (run_name(&gain.to), run_name(&gain.from));
    sentence(&format!("{to} compared with {from}: {what} (95 % interval {})", change_interval(gain.low, gain.high)))
}

/// A metric's noun, and whether it is countable.
fn noun(metric: &str) -> (String, bool) {
    let (noun, countable) = match metric {
        "select_per_s" => ("SELECTs a second", true),
        "insert_per_s" => ("INSERTs a second", true),
        "host_bytes_written" => ("bytes written by the host", true),
        "flash_bytes_programmed" => ("flash bytes programmed", true),
        "write_amplification" => ("write amplification", false),
        "drive_time_ns" => ("drive time", false),
        "cpu_time_ns" => ("CPU time", false),
        "database_bytes" => ("bytes of database", true),
        other => return (other.replace('_', " "), false),
    };
    (noun.to_owned(), countable)
}

/// `SQLite` out of `SQLite 3.51.0`.
pub(crate) fn program(c: &Comparison) -> &str {
    c.database.split_whitespace().next().unwrap_or("the database")
}

fn page_words(run: &RunMeasurement) -> String {
    format!("{} pages", bytes(run.page_bytes))
}

/// A run by the name of its column.
fn run_name(name: &str) -> &str {
    match name {
        "default_page_size" => "default",
        other => other,
    }
}

/// The work of every run, in two sentences.
pub(crate) fn work_sentences(c: &Comparison) -> String {
    let w = &c.workload;
    let mut parts = Vec::new();
    if w.rows > 0 {
        parts.push(format!("{} rows loaded", grouped(w.rows)));
    }
    parts.push(match w.inserts_per_round + w.selects_per_round {
        0 => format!("{} rounds", grouped(w.rounds)),
        _ => format!(
            "{} rounds of {} INSERTs ({} a transaction) and {} SELECTs",
            grouped(w.rounds),
            grouped(w.inserts_per_round),
            grouped(w.inserts_per_transaction),
            grouped(w.selects_per_round),
        ),
    });
    parts.push(format!("{} of page cache, seed {}", bytes(w.page_cache_bytes), w.seed));
    format!("{} {}", sentence(&w.summary), sentence(&parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence_of(metric: &str, ratio: f64, low: f64, high: f64) -> String {
        let [metric, from, to] = [metric, "before", "after"].map(str::to_owned);
        gain_sentence(&Gain { metric, from, to, ratio, low, high })
    }

    #[test]
    fn a_gain_is_a_sentence_that_counts_what_can_be_counted() {
        let cases = [
            ("select_per_s", 1.291, "29.1 % more SELECTs a second"),
            ("insert_per_s", 0.95, "5.0 % fewer INSERTs a second"),
            ("write_amplification", 0.5, "50.0 % less write amplification"),
            ("select_per_s", 3.5, "3.50 times as many SELECTs a second"),
            ("drive_time_ns", 4.0, "4.00 times as much drive time"),
            ("something_new", 1.5, "50.0 % more something new"),
        ];
        for (metric, ratio, words) in cases {
            let sentence = sentence_of(metric, ratio, ratio, ratio);
            assert!(
                sentence.starts_with(&format!("After compared with before: {words} (95 % interval ")),
                "{sentence}"
            );
        }
    }

    #[test]
    fn where_the_interval_holds_no_difference_none_is_claimed() {
        let sentence = sentence_of("insert_per_s", 1.02, 0.98, 1.05);
        assert_eq!(
            sentence,
            "After compared with before: no measurable difference in INSERTs a second (95 % interval −2.0…+5.0 %)."
        );
    }

    #[test]
    fn the_headline_leaves_out_the_default_when_the_page_size_stayed() {
        let mut c = crate::sample::samsung();
        assert_eq!(headline(&c).len(), 3, "recommendation, against the default, own effect");
        c.default_page_size.page_bytes = c.before.page_bytes;
        assert_eq!(headline(&c).len(), 2);
        c.gains.clear();
        assert_eq!(headline(&c)[1], "SQLite was fitted to the drive; the runs below show the effect.");
    }
}
