//! The result of a fit in sentences.

use flashwise_tune::sqlite::Objective;
use flashwise_tune::{ChangeKind, Comparison, Gain, Proposal};

use super::findings::sentence;
use super::numbers::{bytes, change_interval, grouped, more_or, percentage, significant};

/// A difference that nobody acts on: settings this close to the best need no change.
const CLOSE: f64 = 1.05;
/// From this ratio on the drive is no longer what a statement waits for: of 5 ms, 5 µs are left, about what SQLite
/// itself takes for a point SELECT. Drive time is all that the ratio knows, so that beyond it counts what nobody would
/// see.
const DRIVE_HARDLY_USED: f64 = 1000.0;

/// The confirmed gain of one metric between two runs.
pub(crate) fn find_gain<'a>(c: &'a Comparison, metric: &str, from: &str, to: &str) -> Option<&'a Gain> {
    c.gains.iter().find(|g| g.metric == metric && g.from == from && g.to == to)
}

/// The deciding objective.
pub(crate) fn objective(c: &Comparison) -> Objective {
    c.objectives.first().copied().unwrap_or(Objective::Throughput)
}

/// The result: what is gained for which change at which cost, then what of it the checklist brings, and memory.
pub(crate) fn headline(c: &Comparison) -> Vec<String> {
    let Some(gain) = &c.gain else { return vec![nothing(c)] };
    let mut sentences = vec![format!(
        "{} {}: {}. {}.",
        amount(gain),
        interval(c, gain),
        assignments(&c.proposals),
        sentence(&costs(c)).trim_end_matches('.')
    )];
    sentences.extend(checklist(c));
    sentences.extend(memory(c));
    sentences
}

/// Where nothing is to be changed.
fn nothing(c: &Comparison) -> String {
    let (whose, verb) = match c.file {
        None => (format!("{}'s defaults", program(c)), "are"),
        Some(_) => ("the present settings".to_owned(), "are"),
    };
    let count = grouped(c.candidates.len() as u64 + 1);
    let percent = percentage(c.resolution - 1.0);
    let keep = "Nothing needs to be changed";
    match c.resolution <= CLOSE {
        true => format!("{keep}: {whose} {verb} within {percent} of the best of {count} configurations."),
        false => format!(
            "{keep}: no difference larger than {percent} could be seen between {whose} and the best of {count} \
             configurations. A larger --time-budget shows smaller differences."
        ),
    }
}

/// `2.91 times as many statements a second`.
pub(crate) fn amount(gain: &Gain) -> String {
    let fewer = |what: &str| format!("{} {what}", percentage(1.0 - 1.0 / gain.ratio));
    match gain.metric.as_str() {
        "p99_latency" => fewer("less latency at the 99th percentile"),
        "flash_bytes" => fewer("fewer flash bytes"),
        _ if gain.low >= DRIVE_HARDLY_USED => {
            "Hardly any waiting for the drive: less than 0.1 % of it is left".to_owned()
        }
        _ => {
            let many = if gain.ratio < 2.995 { "" } else { " many" };
            format!("{}{many} statements a second", more_or(gain.ratio, "fewer"))
        }
    }
}

/// `(99 % interval +27.0…+31.2 %)`.
fn interval(c: &Comparison, gain: &Gain) -> String {
    format!("({:.0} % interval {})", 100.0 * c.search.confidence, change_interval(gain.low, gain.high))
}

/// `journal_mode = wal, cache_size = 27 MiB and use-hot-locations`.
fn assignments(proposals: &[Proposal]) -> String {
    let word = |proposal: &Proposal| match proposal.kind {
        ChangeKind::Vfs | ChangeKind::Conversion => proposal.name.clone(),
        _ => format!("{} = {}", proposal.name, proposal.new_value),
    };
    let mut words: Vec<String> = proposals.iter().map(word).collect();
    match words.pop() {
        Some(last) if words.is_empty() => last,
        Some(last) => format!("{} and {last}", words.join(", ")),
        None => String::new(),
    }
}

/// What the changes cost their user, the dearest first.
fn costs(c: &Comparison) -> String {
    let has = |kind: ChangeKind| c.proposals.iter().any(|proposal| proposal.kind == kind);
    let kinds = [
        (ChangeKind::Conversion, "a converted file, which plain SQLite cannot open"),
        (ChangeKind::Vfs, "flashwise's VFS in each program"),
        (ChangeKind::File, "a setting in the file"),
        (ChangeKind::Connection, "a statement in each connection"),
    ];
    let words: Vec<&str> = kinds.into_iter().filter(|(kind, _)| has(*kind)).map(|(_, words)| words).collect();
    format!("the cost: {}; commits stay as safe as now", words.join(", "))
}

/// What is added to what everybody does.
fn checklist(c: &Comparison) -> Option<String> {
    let metric = objective(c).metric();
    let checklist = find_gain(c, metric, "default", "checklist")?;
    if c.best.label == c.checklist.label {
        return Some("This is what the usual checklist says; nothing that was tried is better.".to_owned());
    }
    let over = find_gain(c, metric, "checklist", "best")?;
    let alone = format!(
        "the usual checklist (a write-ahead log, a cache of 64 MiB) alone brings ×{}",
        significant(checklist.ratio)
    );
    let more = match over.low > 1.0 {
        true => format!("this is ×{} of that {}", significant(over.ratio), interval(c, over)),
        false => format!("no difference to this could be seen {}", interval(c, over)),
    };
    Some(sentence(&format!("{alone}; {more}")))
}

/// What memory brings of the gain.
fn memory(c: &Comparison) -> Option<String> {
    let of_memory = c.proposals.iter().find(|proposal| proposal.is_memory)?;
    let gain = of_memory.gain.as_ref()?;
    let total = c.gain.as_ref()?.ratio;
    Some(format!(
        "Of the gain, ×{} is memory's ({} = {}) and ×{} that of the drive.",
        significant(gain.ratio),
        of_memory.name,
        of_memory.new_value,
        significant(total / gain.ratio)
    ))
}

/// What weaker guarantees would bring; never part of the recommendation.
pub(crate) fn guarantee_sentences(c: &Comparison) -> Vec<String> {
    let kept =
        format!("All runs keep the guarantee of synchronous={}: {}.", c.guarantees.synchronous, c.guarantees.statement);
    let weaker = c.guarantees.weaker.iter().map(|weaker| {
        format!(
            "{} would bring ×{} more, and may lose {}: measured for information, never applied.",
            weaker.name,
            significant(weaker.ratio),
            weaker.loses
        )
    });
    std::iter::once(kept).chain(weaker).collect()
}

/// How the figures came about.
pub(crate) fn search_sentence(c: &Comparison) -> String {
    let search = &c.search;
    format!(
        "{} tried in short runs on {}, {} in full runs; confirmed: best, checklist and default in {} fresh runs each.",
        grouped(search.screened as u64),
        search.screened_on,
        grouped(search.raced as u64),
        search.confirmation_runs
    )
}

/// A group of changes by their cost, for headings.
pub(crate) fn group(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Connection => "in each connection",
        ChangeKind::File => "in the file",
        ChangeKind::Vfs => "needs flashwise's VFS",
        ChangeKind::Conversion => "needs a conversion: plain SQLite cannot open the file",
        ChangeKind::Guarantee => "changes a guarantee",
    }
}

/// What a change brings, or that it was not measured alone.
pub(crate) fn part(proposal: &Proposal) -> String {
    let whose = if proposal.is_memory { ", by memory" } else { "" };
    match &proposal.gain {
        Some(gain) => format!("×{}{whose}", significant(gain.ratio)),
        None => "not measured alone".to_owned(),
    }
}

/// `SQLite` out of `SQLite 3.51.0`.
pub(crate) fn program(c: &Comparison) -> &str {
    c.database.split_whitespace().next().unwrap_or("the database")
}

/// The work of every run, in two sentences.
pub(crate) fn work_sentences(c: &Comparison) -> String {
    let how_much = work(c);
    format!("{} {}", sentence(&c.workload.summary), sentence(&how_much))
}

/// The same in one; the built-in work needs no description.
pub(crate) fn work_sentence(c: &Comparison) -> String {
    let what = if c.file.is_some() { format!("{}: ", c.workload.summary) } else { String::new() };
    sentence(&format!("{what}{}", work(c)))
}

fn work(c: &Comparison) -> String {
    let w = &c.workload;
    let mut parts = Vec::new();
    if w.rows > 0 {
        parts.push(format!("{} rows loaded", grouped(w.rows)));
    }
    parts.push(match w.inserts_per_round + w.selects_per_round {
        0 => format!("{} statements", grouped(c.search.statements)),
        _ => format!(
            "{} rounds of {} INSERTs ({} a transaction) and {} SELECTs",
            grouped(w.rounds),
            grouped(w.inserts_per_round),
            grouped(w.inserts_per_transaction),
            grouped(w.selects_per_round),
        ),
    });
    parts.push(format!("{} of page cache, seed {}", bytes(w.page_cache_bytes), w.seed));
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_first_sentence_has_the_gain_the_changes_and_their_cost() {
        let c = sample::samsung();
        assert_eq!(
            headline(&c)[0],
            "3.21 times as many statements a second (99 % interval ×3.17…×3.25): page_size = 64 KiB, journal_mode = \
             wal, cache_size = 64 MiB and use-hot-locations. The cost: a converted file, which plain SQLite cannot open, \
             a setting in the file, a statement in each connection; commits stay as safe as now."
        );
        assert_eq!(headline(&c).len(), 3, "the checklist, and what memory brings");
    }

    #[test]
    fn where_nothing_gains_the_sentence_says_how_close_the_present_settings_are() {
        let mut c = sample::optane();
        let close = "Nothing needs to be changed: SQLite's defaults are within 2.00 % of the best of 4 configurations.";
        assert_eq!(headline(&c), [close]);
        c.resolution = 1.24;
        assert!(headline(&c)[0].contains("no difference larger than 24.0 % could be seen"), "{:?}", headline(&c));
    }

    #[test]
    fn an_objective_has_words_of_its_own() {
        let gain = |metric: &str| {
            let [metric, from, to] = [metric, "default", "best"].map(str::to_owned);
            Gain { metric, from, to, ratio: 2.0, low: 1.9, high: 2.1 }
        };
        assert_eq!(amount(&gain("p99_latency")), "50.0 % less latency at the 99th percentile");
        assert_eq!(amount(&gain("flash_bytes")), "50.0 % fewer flash bytes");
        assert_eq!(amount(&gain("statements_per_s")), "100.0 % more statements a second");
    }
}
