//! What was measured, as tables, and beside what is published.

use flashwise_report::study::{Measured, StudyCell, StudyClaim, StudySection, StudyTable};

use super::bench::Settings;
use super::{Outcome, Scale};
use crate::verdict::verdict;

/// *Abstract*: most time saved on mixed workloads, per cent.
const MIXED_MOST: f64 = 32.1;
/// A server on buffered I/O may lose so much, per cent.
const LOSS_MAX: f64 = 1.0;

fn columns<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

/// `+12.3 ± 4.5 %`.
fn percent(of: Measured) -> String {
    format!("{:+.1} ± {:.1} %", of.value, (of.high - of.low) / 2.0)
}

/// All sections.
pub(super) fn all(outcomes: &[Outcome], scale: &Scale) -> Vec<StudySection> {
    vec![rates(outcomes, scale), gains(outcomes)]
}

fn rates(outcomes: &[Outcome], scale: &Scale) -> StudySection {
    let row = |outcome: &Outcome| {
        let rates = Settings::ALL.map(|settings| StudyCell::from(outcome.mean(settings, |slice| slice.rate)));
        std::iter::once(StudyCell::text(outcome.case.to_string())).chain(rates).collect()
    };
    StudySection {
        title: "Transactions a second".to_owned(),
        text: vec![format!(
            "A table of {} pages with a row each, a pool of {} buffers; {} rounds in which slices of {} s alternate. \
             Default settings; off: no background writer, so that backends write every victim, the paper's baseline; \
             tuned: bgwriter_delay = 10 ms, bgwriter_lru_maxpages = 1000000, bgwriter_lru_multiplier = 10; extension: \
             flashwise_ace with k_w workers.",
            flashwise_block::grouped(scale.pages.into()),
            scale.buffers,
            scale.rounds,
            scale.slice.as_secs_f64()
        )],
        tables: vec![StudyTable {
            caption: "Of the drive's clock:".to_owned(),
            columns: columns(["", "default", "off", "tuned", "extension"]),
            rows: outcomes.iter().map(row).collect(),
        }],
        charts: Vec::new(),
    }
}

fn gains(outcomes: &[Outcome]) -> StudySection {
    let gain = |outcome: &Outcome| {
        let gain = |settings, over| outcome.gain(settings, over).into();
        vec![
            StudyCell::text(outcome.case.to_string()),
            gain(Settings::Extension, Settings::Default),
            gain(Settings::Extension, Settings::Tuned),
            gain(Settings::Extension, Settings::Off),
            gain(Settings::Tuned, Settings::Default),
            outcome.in_place.into(),
        ]
    };
    let share = |outcome: &Outcome| {
        let share = |settings| outcome.mean(settings, |slice| slice.write_share);
        let off = share(Settings::Off);
        let most = 100.0 * off.value / (1.0 - off.value);
        vec![
            StudyCell::text(outcome.case.to_string()),
            off.into(),
            StudyCell::text(format!("{most:.0}")),
            outcome.gain(Settings::Extension, Settings::Off).into(),
            share(Settings::Extension).into(),
        ]
    };
    StudySection {
        title: "What the extension brings".to_owned(),
        text: vec![
            "In place is the paper's scheme in the pool library's simulator: one thread that writes k_w pages at once \
             instead of one. s is the share of the sessions' time in which backends write pages. If no backend wrote \
             any more, the gain over off would be s ÷ (1 − s)."
                .to_owned(),
        ],
        tables: vec![
            StudyTable {
                caption:
                    "Extension over default, over tuned and over off, tuned over default, in place over classic, %:"
                        .to_owned(),
                columns: columns(["", "default", "tuned", "off", "tuned alone", "in place"]),
                rows: outcomes.iter().map(gain).collect(),
            },
            StudyTable {
                caption: "s with off, and the most that it promises, %; the gain of the extension over off, %, and s \
                          with it:"
                    .to_owned(),
                columns: columns(["", "s, off", "at most", "gain", "s, extension"]),
                rows: outcomes.iter().map(share).collect(),
            },
        ],
        charts: Vec::new(),
    }
}

/// What is published, expected or promised.
pub(super) fn claims(outcomes: &[Outcome]) -> Vec<StudyClaim> {
    [mixed(outcomes), tuned(outcomes), buffered(outcomes)].into_iter().flatten().collect()
}

fn listed(outcomes: &[&Outcome], of: impl Fn(&Outcome) -> Measured) -> String {
    let one = |outcome: &&Outcome| format!("{} {}", outcome.case, percent(of(outcome)));
    outcomes.iter().map(one).collect::<Vec<_>>().join("; ") + "."
}

fn mixed(outcomes: &[Outcome]) -> Option<StudyClaim> {
    let direct: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.case.is_direct).collect();
    if direct.is_empty() {
        return None;
    }
    let saved = |outcome: &Outcome| {
        let gain = outcome.gain(Settings::Extension, Settings::Off);
        let saved = |gain: f64| 100.0 * (1.0 - 100.0 / (100.0 + gain));
        Measured { value: saved(gain.value), low: saved(gain.low), high: saved(gain.high) }
    };
    let most = direct.iter().map(|outcome| saved(outcome).value).fold(f64::NEG_INFINITY, f64::max);
    Some(StudyClaim {
        claim: format!("ACE in PostgreSQL saves up to {MIXED_MOST} % of the time of mixed workloads (abstract)."),
        measured: format!("Extension compared with no background writer: {}", listed(&direct, saved)),
        verdict: verdict(most >= MIXED_MOST, most > 0.0),
        because: "The workers run ahead of the clock hand, so that backends hardly write at all; the paper writes a \
                  batch in the backend's place. What can be saved is the share of time in which backends write."
            .to_owned(),
    })
}

fn tuned(outcomes: &[Outcome]) -> Option<StudyClaim> {
    let direct: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.case.is_direct).collect();
    let gain = |outcome: &Outcome| outcome.gain(Settings::Extension, Settings::Tuned);
    let above = direct.iter().filter(|outcome| gain(outcome).low > 0.0).count();
    (!direct.is_empty()).then(|| StudyClaim {
        claim: "Expected: the extension brings more than a tuned background writer, which writes one page at a time."
            .to_owned(),
        measured: listed(&direct, gain),
        verdict: verdict(above == direct.len(), above > 0),
        because:
            "One writer keeps up with one session on a fast drive; where several sessions evict at the rate of a slow \
                  one, k_w writers are needed."
                .to_owned(),
    })
}

fn buffered(outcomes: &[Outcome]) -> Option<StudyClaim> {
    let buffered: Vec<&Outcome> = outcomes.iter().filter(|outcome| !outcome.case.is_direct).collect();
    let gain = |outcome: &Outcome| outcome.gain(Settings::Extension, Settings::Default);
    let within = buffered.iter().filter(|outcome| gain(outcome).value >= -LOSS_MAX).count();
    let may_be = buffered.iter().filter(|outcome| gain(outcome).high >= -LOSS_MAX).count();
    (!buffered.is_empty()).then(|| StudyClaim {
        claim: format!("Expected: on buffered I/O the extension brings nothing, and costs at most {LOSS_MAX} %."),
        measured: listed(&buffered, gain),
        verdict: verdict(within == buffered.len(), may_be > 0),
        because: "A backend's write then ends in the page cache, after microseconds, so that nothing is gained. The \
                  processor is the bottleneck, and what the workers do takes it from the sessions; here all of them have \
                  half of this machine's processors, and a pool of 512 buffers turns over in milliseconds."
            .to_owned(),
    })
}
