//! The result of a fit in sentences.

use flashwise_audit::Rule;
use flashwise_tune::sqlite::Objective;
use flashwise_tune::{AppliedTuning, Candidate, ChangeKind, Comparison, Declined, Gain, Guarantees, Proposal};

use super::findings::sentence;
use super::numbers::{bytes, change_interval, grouped, more_or, percentage, ratio_interval, significant};

/// A difference that nobody acts on: settings this close to the best need no change.
const CLOSE: f64 = 1.05;

/// Label of a configuration that changes nothing.
const UNCHANGED: &str = "unmodified";

/// The confirmed gain of one metric between two runs.
pub(crate) fn find_gain<'a>(c: &'a Comparison, metric: &str, from: &str, to: &str) -> Option<&'a Gain> {
    c.gains.iter().find(|g| g.metric == metric && g.from == from && g.to == to)
}

/// The objective that the recommendation gains in; the first one where nothing is recommended.
pub(crate) fn objective(c: &Comparison) -> Objective {
    let of_gain = |gain: &Gain| Objective::ALL.into_iter().find(|objective| objective.metric() == gain.metric);
    let gained = c.gain.as_ref().and_then(of_gain);
    gained.or(c.objectives.first().copied()).unwrap_or(Objective::Throughput)
}

/// The run that is recommended, as `gains` call it.
fn recommended(c: &Comparison) -> &'static str {
    if c.best.label == c.checklist.label { "checklist" } else { "best" }
}

/// Where to see what pays elsewhere.
pub(crate) const WHERE_IT_PAYS: &str = "Where which change pays: flashwise study fit, five workloads on nine drives.";

/// What was fitted to which drive.
pub(crate) fn title(c: &Comparison) -> String {
    format!("{} on {}", c.file.as_deref().unwrap_or(&c.database), c.profile.device.name)
}

/// Where the runs were, with what was in front of the drive.
pub(crate) fn place_sentence(c: &Comparison) -> String {
    match &c.search.machine {
        Some(machine) => format!("On {}, {machine}.", c.target),
        None => format!("On {}.", c.target),
    }
}

/// The result: what is gained for which changes, so many of them by name, at which cost, then what of it the checklist
/// brings, and memory if that is to be said.
pub(crate) fn headline(c: &Comparison, named: usize, has_memory: bool) -> Vec<String> {
    let Some(gain) = &c.gain else { return vec![nothing(c)] };
    let mut sentences = vec![format!(
        "{} {}: {}. {}.",
        amount(gain),
        interval(c, gain),
        assignments(&c.proposals, named),
        sentence(&costs(c)).trim_end_matches('.')
    )];
    sentences.extend(other_objective(c));
    sentences.extend(seen(c));
    sentences.extend(checklist(c));
    sentences.extend(memory(c).filter(|_| has_memory));
    sentences
}

/// What a client sees of it on the attached drive.
fn seen(c: &Comparison) -> Option<String> {
    let seen = c.seen.as_ref()?;
    let gain = seen.gains.iter().find(|gain| gain.from == "default" && gain.to == "best")?;
    let busy = if seen.was_late { "; the machine was too busy for the drive's times" } else { "" };
    let speed = if seen.slower == 1 { "at its own speed".to_owned() } else { format!("{} times as slow", seen.slower) };
    let place = format!("on the attached drive ({}, {speed}{busy})", seen.file_system);
    let times = times(c, gain, "");
    Some(match seen.confirms() {
        true => format!("Seen {place}: {times}."),
        false => format!("Not seen {place}: {times}. Do not apply it."),
    })
}

/// What becomes of the objective that does not decide.
fn other_objective(c: &Comparison) -> Option<String> {
    let other = c.objectives.iter().find(|&&other| other != objective(c))?;
    let gain = find_gain(c, other.metric(), "default", recommended(c))?;
    Some(format!("In {}, this is {}.", other.name(), times(c, gain, "")))
}

/// Where nothing is to be changed.
fn nothing(c: &Comparison) -> String {
    let whose = match c.file {
        None => format!("{}'s defaults", program(c)),
        Some(_) => "the present settings".to_owned(),
    };
    let count = grouped(c.candidates.len() as u64 + 1);
    let keep = "Nothing needs to be changed";
    let Some(resolution) = c.resolution else {
        return format!(
            "{keep}: no other configuration could be tried, as --skip or the workload excludes all of them."
        );
    };
    let percent = percentage(resolution - 1.0);
    if resolution <= 1.0 {
        return format!("{keep}: {whose} are the best of {count} configurations.");
    }
    if resolution <= CLOSE {
        return format!("{keep}: {whose} are within {percent} of the best of {count} configurations.");
    }
    let of = |to: &'static str| c.gains.iter().filter(move |gain| gain.from == "default" && gain.to == to);
    let seen = ["candidate", "checklist"].into_iter().find_map(|to| Some((to, of(to).find(|gain| gain.low > 1.0)?)));
    let Some((to, gain)) = seen else {
        return format!(
            "{keep}: no gain larger than {percent} over {whose} could be seen in {count} configurations. A larger \
             --time-budget shows smaller ones."
        );
    };
    let seen = format!(
        "Nothing is recommended: the best of {count} configurations has {} {}",
        amount(gain),
        interval(c, gain)
    );
    match of(to).find(|other| other.high < 1.0) {
        _ if !gain.is_usable() => format!(
            "{seen}: runs of one configuration differ too much to promise that. A larger --time-budget, or an idle \
             machine, shows how much it is."
        ),
        Some(lost) => format!("{seen}, but loses in {}: ×{}.", lost.metric, significant(lost.ratio)),
        None => format!("{seen}, which is not worth what its changes cost."),
    }
}

/// `2.91 times as many statements a second`.
pub(crate) fn amount(gain: &Gain) -> String {
    let fewer = |what: &str| format!("{} {what}", percentage(1.0 - 1.0 / gain.ratio));
    match gain.metric.as_str() {
        "p99_latency" => fewer("less latency at the 99th percentile"),
        "flash_bytes" => fewer("fewer flash bytes"),
        _ if gain.leaves_hardly_any() => "Hardly any waiting for the drive: less than 0.1 % of it is left".to_owned(),
        _ => {
            let many = if gain.ratio < 2.995 { "" } else { " many" };
            format!("{}{many} statements a second", more_or(gain.ratio, "fewer"))
        }
    }
}

/// `(99 % interval +27.0…+31.2 %)`, behind a value in percent.
fn interval(c: &Comparison, gain: &Gain) -> String {
    format!("({} interval {})", confidence(c), change_interval(gain.low, gain.high))
}

/// `×1.39 (99 % interval ×1.37…×1.41)`.
fn times(c: &Comparison, gain: &Gain, of: &str) -> String {
    let Gain { ratio, low, high, .. } = gain;
    format!("×{}{of} ({} interval {})", significant(*ratio), confidence(c), ratio_interval(*low, *high))
}

/// `99 %` or `99.5 %`.
pub(crate) fn confidence(c: &Comparison) -> String {
    format!("{} %", (1000.0 * c.search.confidence).round() / 10.0)
}

/// `journal_mode = wal, cache_size = 27 MiB and use-hot-locations`.
fn assignments(proposals: &[Proposal], at_most: usize) -> String {
    let mut words: Vec<String> = proposals.iter().take(at_most).map(assignment).collect();
    let more = proposals.len() - words.len();
    words.extend((more > 0).then(|| format!("{more} more")));
    match words.pop() {
        Some(last) if words.is_empty() => last,
        Some(last) => format!("{} and {last}", words.join(", ")),
        None => String::new(),
    }
}

/// `journal_mode = wal`; of a technique, its name.
fn assignment(proposal: &Proposal) -> String {
    match proposal.kind {
        ChangeKind::Vfs | ChangeKind::Conversion => proposal.name.clone(),
        _ => format!("{} = {}", proposal.name, proposal.new_value),
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
    if recommended(c) == "checklist" {
        return Some("This is what the usual checklist says; nothing that was tried is better.".to_owned());
    }
    if c.checklist.label == UNCHANGED {
        return Some("The present settings are what the usual checklist says.".to_owned());
    }
    let over = find_gain(c, metric, "checklist", "best")?;
    let alone = format!("the usual checklist ({}) alone brings ×{}", c.checklist.label, significant(checklist.ratio));
    let more = match over.low > 1.0 {
        true => format!("this is {}", times(c, over, " of that")),
        false => format!("no difference to this could be seen {}", interval(c, over)),
    };
    Some(sentence(&format!("{alone}; {more}")))
}

/// What memory brings of the gain.
fn memory(c: &Comparison) -> Option<String> {
    let of_memory = c.proposals.iter().find(|proposal| proposal.is_memory)?;
    let gain = of_memory.gain.as_ref()?;
    let total = c.gain.as_ref().filter(|total| total.metric == gain.metric)?.ratio;
    Some(format!(
        "Of the gain, ×{} is due to memory ({}) and ×{} to the drive.",
        significant(gain.ratio),
        of_memory.name,
        significant(total / gain.ratio)
    ))
}

/// What the runs keep.
pub(crate) fn guarantee_sentence(c: &Comparison) -> String {
    let Guarantees { statement, of_default, synchronous, .. } = &c.guarantees;
    match of_default == statement || of_default.is_empty() {
        true => format!("All runs keep the guarantee of synchronous={synchronous}: {statement}."),
        false => format!("All runs are at synchronous={synchronous}. Default: {of_default}. Best: {statement}."),
    }
}

/// What weaker guarantees would bring; never part of the recommendation.
pub(crate) fn weaker_sentences(c: &Comparison) -> impl Iterator<Item = String> + '_ {
    c.guarantees.weaker.iter().map(|weaker| {
        let interval = weaker.low.zip(weaker.high);
        let interval = interval.map(|(low, high)| format!(" ({})", ratio_interval(low, high))).unwrap_or_default();
        let (name, ratio, loses) = (&weaker.name, significant(weaker.ratio), &weaker.loses);
        format!("{name} would bring ×{ratio}{interval} more, may lose {loses}; never applied.")
    })
}

/// How the figures came about.
pub(crate) fn search_sentence(c: &Comparison) -> String {
    let search = &c.search;
    format!(
        "{} screened on {}, {} compared in full runs; confirmed: best, checklist and default in {} fresh runs each.",
        grouped(search.screened as u64),
        search.screened_on,
        grouped(search.raced as u64),
        search.confirmation_runs
    )
}

/// The same in a line.
pub(crate) fn search_line(c: &Comparison) -> String {
    let search = &c.search;
    let (screened, raced) = (grouped(search.screened as u64), grouped(search.raced as u64));
    format!(
        "{screened} screened, {raced} in full runs, {} to confirm. Other drives: flashwise study fit.",
        search.confirmation_runs
    )
}

/// Why a change is left out.
pub(crate) fn declined_sentence(declined: &Declined) -> String {
    format!(
        "{} brings ×{} and is left out: {}, it has to bring ×{}.",
        declined_change(declined),
        significant(declined.gain.ratio),
        group(declined.kind).split(':').next().unwrap_or_default(),
        significant(declined.price)
    )
}

/// The same for the first of them, in a line; `None` if there are none.
pub(crate) fn declined_line(c: &Comparison, at_most: usize) -> Option<String> {
    let one = |declined: &Declined| {
        let (ratio, price) = (significant(declined.gain.ratio), significant(declined.price));
        format!("{} (×{ratio}, worth it from ×{price})", declined_change(declined))
    };
    let mut all: Vec<String> = c.declined.iter().take(at_most).map(one).collect();
    let more = c.declined.len().saturating_sub(at_most);
    all.extend((more > 0).then(|| format!("{more} more")));
    (!all.is_empty()).then(|| format!("Left out: {}.", all.join(", ")))
}

/// The new value, where the name of the change is beside it: `8` of `concurrent-write-back=8`.
pub(crate) fn new_value(proposal: &Proposal) -> &str {
    let value = proposal.new_value.strip_prefix(&proposal.name).and_then(|value| value.strip_prefix('='));
    value.unwrap_or(&proposal.new_value)
}

/// `cache_size 64 MiB`, `concurrent-write-back=8`.
fn declined_change(declined: &Declined) -> String {
    match declined.new_value.starts_with(&declined.name) {
        true => declined.new_value.clone(),
        false => format!("{} {}", declined.name, declined.new_value),
    }
}

/// What was done to files.
pub(crate) fn changed_sentence(changed: &AppliedTuning) -> String {
    let what = match (changed.in_place, changed.steps.is_empty()) {
        (false, _) => "a new file; the database itself is unchanged",
        (true, false) => "changed",
        (true, true) => "unchanged; the settings belong to each connection",
    };
    format!("{}: {what}.", changed.file)
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

/// The changes, the cheapest for their user first.
pub(crate) fn in_groups(c: &Comparison) -> impl Iterator<Item = &Proposal> {
    GROUPS.into_iter().flat_map(|kind| c.proposals.iter().filter(move |proposal| proposal.kind == kind))
}

/// The kinds of changes that are proposed, the cheapest first.
pub(crate) const GROUPS: [ChangeKind; 4] =
    [ChangeKind::Connection, ChangeKind::File, ChangeKind::Vfs, ChangeKind::Conversion];

/// Whether no other candidate is better in both objectives, in a word.
pub(crate) fn front_mark(candidate: &Candidate) -> &'static str {
    if candidate.is_on_front { "front" } else { "" }
}

/// At most so many candidates, and how many of the front are left out. With two objectives, what was confirmed and the
/// front come before all others.
pub(crate) fn shown_candidates(c: &Comparison, at_most: usize) -> (Vec<&Candidate>, usize) {
    let matters = |candidate: &&Candidate| candidate.stage == "confirmed" || candidate.is_on_front;
    if c.objectives.len() < 2 || at_most >= c.candidates.len() {
        return (c.candidates.iter().take(at_most).collect(), 0);
    }
    let mut ranked: Vec<(bool, usize)> = c.candidates.iter().map(|one| !matters(&one)).zip(0..).collect();
    ranked.sort();
    ranked.truncate(at_most);
    let mut places: Vec<usize> = ranked.into_iter().map(|(_, place)| place).collect();
    places.sort_unstable();
    let shown: Vec<&Candidate> = places.into_iter().map(|place| &c.candidates[place]).collect();
    let of_front = |all: &mut dyn Iterator<Item = &Candidate>| all.filter(|one| one.is_on_front).count();
    let left_out = of_front(&mut c.candidates.iter()) - of_front(&mut shown.iter().copied());
    (shown, left_out)
}

/// What a change brings, or that it was not measured alone; of a conversion, also what it had to bring.
pub(crate) fn part(c: &Comparison, proposal: &Proposal) -> String {
    let brings = brings(c, proposal);
    match proposal.kind {
        ChangeKind::Conversion => format!("{brings}, worth it from ×{}", significant(c.search.conversion_threshold)),
        _ => brings,
    }
}

fn brings(c: &Comparison, proposal: &Proposal) -> String {
    let whose = if proposal.is_memory { ", by memory" } else { "" };
    match &proposal.gain {
        Some(gain) if gain.metric == objective(c).metric() => format!("×{}{whose}", significant(gain.ratio)),
        Some(gain) => format!("×{} in {}{whose}", significant(gain.ratio), gain.metric),
        None => "not measured alone".to_owned(),
    }
}

/// The violations that a change is for, by their rules, the costliest first.
pub(crate) fn findings_of(proposal: &Proposal) -> Option<String> {
    let names: Vec<&str> = proposal.findings.iter().map(|rule| rule.name()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// The recommended changes for a violation, with their places in the list of changes, from 1 on.
fn changes_for(c: &Comparison, rule: Rule) -> impl Iterator<Item = (usize, &Proposal)> {
    (1..).zip(in_groups(c)).filter(move |(_, proposal)| proposal.findings.contains(&rule))
}

/// The recommended changes for a violation, and what each brings: `journal_mode = wal (×1.72)`.
pub(crate) fn changes_with_gains(c: &Comparison, rule: Rule) -> Option<String> {
    let words = changes_for(c, rule).map(|(_, change)| format!("{} ({})", assignment(change), brings(c, change)));
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// The recommended changes for a violation, by their numbers: `see changes 1 and 3`.
pub(crate) fn changes_by_number(c: &Comparison, rule: Rule) -> Option<String> {
    let mut numbers: Vec<String> = changes_for(c, rule).map(|(number, _)| number.to_string()).collect();
    let last = numbers.pop()?;
    Some(match numbers.is_empty() {
        true => format!("see change {last}"),
        false => format!("see changes {} and {last}", numbers.join(", ")),
    })
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
    use flashwise_tune::Seen;

    use super::*;
    use crate::sample;

    #[test]
    fn the_first_sentence_has_the_gain_the_changes_and_their_cost() {
        let c = sample::samsung();
        assert_eq!(
            headline(&c, usize::MAX, true)[0],
            "3.21 times as many statements a second (99 % interval ×3.17…×3.25): page_size = 64 KiB, journal_mode = \
             wal, cache_size = 64 MiB and use-hot-locations. The cost: a converted file, which plain SQLite cannot open, \
             a setting in the file, a statement in each connection; commits stay as safe as now."
        );
        assert_eq!(headline(&c, usize::MAX, true).len(), 3, "the checklist, and what memory brings");
    }

    #[test]
    fn a_change_and_the_violation_that_it_is_for_name_each_other() {
        let mut c = sample::samsung();
        let rule = Rule::ReadChunksAtHotLocations;
        assert_eq!(findings_of(&c.proposals[0]).unwrap(), rule.name());
        assert_eq!(changes_with_gains(&c, rule).unwrap(), "page_size = 64 KiB (×1.31), use-hot-locations (×1.29)");
        assert_eq!(changes_by_number(&c, rule).unwrap(), "see changes 2 and 4");
        c.proposals[0].findings.clear();
        assert_eq!(findings_of(&c.proposals[0]), None);
        c.proposals[3].gain = None;
        assert_eq!(changes_with_gains(&c, rule).unwrap(), "use-hot-locations (not measured alone)");
        assert_eq!(changes_by_number(&c, rule).unwrap(), "see change 4");
        let other = Rule::WriteWholeUnits;
        assert_eq!((changes_with_gains(&c, other), changes_by_number(&c, other)), (None, None));
    }

    #[test]
    fn where_nothing_gains_the_sentence_says_how_close_the_present_settings_are() {
        let mut c = sample::optane();
        let close = "Nothing needs to be changed: SQLite's defaults are within 2.00 % of the best of 4 configurations.";
        assert_eq!(headline(&c, usize::MAX, true), [close]);
        c.resolution = Some(1.24);
        c.gains.iter_mut().for_each(|gain| (gain.low, gain.high) = (0.8, 1.24));
        assert!(
            headline(&c, usize::MAX, true)[0].contains("no gain larger than 24.0 % over SQLite's defaults"),
            "{:?}",
            headline(&c, usize::MAX, true)
        );
        c.resolution = Some(1.0);
        assert!(
            headline(&c, usize::MAX, true)[0].ends_with("SQLite's defaults are the best of 4 configurations."),
            "{:?}",
            headline(&c, usize::MAX, true)
        );
        c.resolution = None;
        assert!(
            headline(&c, usize::MAX, true)[0].contains("no other configuration could be tried"),
            "{:?}",
            headline(&c, usize::MAX, true)
        );
    }

    #[test]
    fn a_gain_that_is_not_worth_its_cost_is_reported() {
        let mut c = sample::optane();
        c.resolution = Some(1.09);
        (c.gains[0].ratio, c.gains[0].low, c.gains[0].high) = (1.08, 1.07, 1.09);
        assert_eq!(
            headline(&c, usize::MAX, true),
            ["Nothing is recommended: the best of 4 configurations has 8.0 % more statements a second (99 % interval \
              +7.0…+9.0 %), which is not worth what its changes cost."]
        );
        c.gains.push(Gain { metric: "flash_bytes".into(), ratio: 0.7, low: 0.69, high: 0.71, ..c.gains[0].clone() });
        let first = headline(&c, usize::MAX, true).remove(0);
        assert!(first.ends_with(", but loses in flash_bytes: ×0.700."), "{first}");
        (c.gains[0].ratio, c.gains[0].low, c.gains[0].high) = (27.0, 4.93, 153.0);
        let first = headline(&c, usize::MAX, true).remove(0);
        assert!(first.contains("): runs of one configuration differ too much"), "{first}");
    }

    #[test]
    fn the_objective_that_gains_is_in_the_headline_and_the_other_one_below_it() {
        let mut c = sample::samsung();
        (c.objectives, c.search.confidence) = (vec![Objective::P99, Objective::FlashBytes], 0.995);
        let of = |metric: &str, ratio: f64, to: &str| {
            let [metric, from, to] = [metric, "default", to].map(str::to_owned);
            Gain { metric, from, to, ratio, low: ratio - 0.01, high: ratio + 0.01 }
        };
        c.gains = vec![of("p99_latency", 1.0, "best"), of("flash_bytes", 2.0, "best")];
        c.gain = Some(of("flash_bytes", 2.0, "best"));
        let headline = headline(&c, usize::MAX, true);
        assert!(headline[0].starts_with("50.0 % fewer flash bytes (99.5 % interval"), "{headline:?}");
        assert!(headline[1].starts_with("In p99, this is ×1.00 (99.5 % interval"), "{headline:?}");
    }

    #[test]
    fn what_was_seen_on_the_attached_drive_stands_below_the_gain() {
        let mut c = sample::samsung();
        let [metric, from, to] = ["statements_per_s", "default", "best"].map(str::to_owned);
        let gain = Gain { metric, from, to, ratio: 3.0, low: 2.9, high: 3.1 };
        let seen = Seen { file_system: "ext4".into(), slower: 20, runs: 3, gains: vec![gain], was_late: false };
        c.seen = Some(seen.clone());
        let sentence = "Seen on the attached drive (ext4, 20 times as slow): ×3.00 (99 % interval ×2.90…×3.10).";
        assert_eq!(headline(&c, usize::MAX, true)[1], sentence);
        let own_speed = Seen { slower: 1, runs: 15, ..seen.clone() };
        c.seen = Some(own_speed);
        assert!(
            headline(&c, usize::MAX, true)[1].starts_with("Seen on the attached drive (ext4, at its own speed): ×3")
        );
        let mut lost = seen;
        (lost.gains[0].low, lost.was_late) = (0.99, true);
        c.seen = Some(lost);
        let sentence = "Not seen on the attached drive (ext4, 20 times as slow; the machine was too busy for the drive's \
                        times): ×3.00 (99 % interval ×0.990…×3.10). Do not apply it.";
        assert_eq!(headline(&c, usize::MAX, true)[1], sentence);
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
