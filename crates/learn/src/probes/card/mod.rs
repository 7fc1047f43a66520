//! The units in which a memory card works.
//!
//! ```text
//!   area written in order ─▶ writes far apart: is any slow? ─▶ boundaries of units ─▶ units in rotation ─▶ the first unit
//!                            merge time                         allocation unit        how many stay open
//! ```
//!
//! | file | content |
//! |---|---|
//! | `area.rs` | the part of the card that is written, in offsets of the card |
//! | `writes.rs` | timed writes, and whether one was slow |
//! | `unit.rs` | where units end: the size that explains which writes were slow |
//! | `open.rs` | how many units stay open |
//!
//! All timed writes are short and durable. One that goes to a closed unit makes the card merge another, which takes a
//! hundred times as long: no statistics are needed to see it, but it costs the card the programs of one unit. Nothing
//! is erased or trimmed.
//!
//! Source: flashbench's modes `-O` and `-f` (Bergmann, Linaro, 2011), read by a program instead of by eye; the size of
//! units comes from writes, since reads across a boundary show nothing on many cards.

mod area;
mod open;
mod unit;
mod writes;

use flashwise_block::{ByteSize, Nanos, Progress};
use flashwise_profile::{Figure, ProbeCurve, ProbePoint};

use crate::LearnError;
use crate::draft::{Because, Key, ProfileDraft, card, key};
use crate::prober::Prober;
use crate::stats::Samples;
use crate::step::Step;

use area::Area;
use open::{Open, Order};
use unit::Unit;
use writes::Slow;

pub(crate) const CARD: Step = Step::new(
    "card",
    &["allocation_unit_bytes", "open_units_linear", "open_units_random", "merge_ns", "special_first_unit", "flush_ns"],
);

/// Share by which the time of a merge may differ with what of the unit was written before: six blocks of a unit of 1
/// MiB, on a card that writes in order alone.
const MERGE_SHARE: f64 = 0.1;
/// Flushes that are timed of each kind.
const FLUSHES: u64 = 15;
/// Area from which on a card without a slow write has no units: twice what class A1 has to keep open, which no card is
/// known to exceed.
const NO_UNITS_FROM: ByteSize = ByteSize::mib(512);

/// A card while it is probed.
struct Probe<'p, 'd> {
    prober: &'p mut Prober<'d>,
    progress: &'p mut dyn Progress,
    area: Area,
    /// Bytes of a timed write.
    block: ByteSize,
    slow: Slow,
}

/// Learns the units of a card.
pub(crate) fn probe(
    prober: &mut Prober<'_>,
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    prober.fill_region(progress)?;
    let area = Area::of(prober);
    let mut probe = Probe { prober, progress, area, block: ByteSize(0), slow: Slow::default() };
    probe.measure_lone()?;
    let merges = probe.find_merges()?;
    let unit = if merges.is_empty() { Unit::none(probe.area.length) } else { unit::measure(&mut probe)? };
    let (linear, random) = match unit.size() {
        Some(size) => {
            let linear = open::count(&mut probe, size, Order::Linear)?;
            let random = open::count(&mut probe, size, Order::Random)?;
            (linear, random)
        }
        None => (Open::unknown(), Open::unknown()),
    };
    let first = match (unit.size(), linear.exactly()) {
        (Some(size), Some(units)) => open::is_first_beside(&mut probe, size, units)?,
        _ => None,
    };
    settle_merge(&merges, &random.merges, &probe, draft);
    settle_flush(&mut probe, draft)?;
    settle_units(&unit, &linear, &random, draft);
    settle_first(first, probe.area.has_start(), draft);
    Ok(())
}

fn because(recipe: &'static str, reason: String) -> Because<'static> {
    Because { recipe, reason, curve: None }
}

fn settle_merge(merges: &[Nanos], of_units: &[Nanos], probe: &Probe<'_, '_>, draft: &mut ProfileDraft) {
    let recipe = "short durable writes to places far apart, more of them than stay open";
    let lone = Nanos(probe.slow.lone_ns);
    if merges.is_empty() {
        let reason = format!("no place was slower than a write behind the last one, {lone}");
        let figure = if probe.area.length >= NO_UNITS_FROM { Figure::absent() } else { Figure::unknown() };
        return draft.settle(card!(merge_ns), figure, because(recipe, reason));
    }
    // Where units are known, of writes at one place of each; else the place in the unit, which decides how much is
    // copied on a card that writes in order alone, is not.
    let is_sure = !of_units.is_empty();
    let samples = Samples::new(if is_sure { of_units } else { merges }.iter().map(|time| time.0).collect());
    let middle = samples.interval();
    let (low, high) = (middle.median as f64 * (1.0 - MERGE_SHARE), middle.median as f64 * (1.0 + MERGE_SHARE));
    let mut figure = Figure::certain(middle.median, middle.low.min(low as u64), middle.high.max(high as u64));
    if !is_sure {
        figure.doubt();
    }
    let reason = format!("each takes {}, and a write behind the last one {lone}", Nanos(middle.median));
    draft.settle(card!(merge_ns), figure, because(recipe, reason));
}

fn settle_units(unit: &Unit, linear: &Open, random: &Open, draft: &mut ProfileDraft) {
    let (figure, reason) = unit.figure();
    let recipe = "pairs of writes on either side of where a unit may end: is the second one slow?";
    draft.settle(card!(allocation_unit_bytes), figure, because(recipe, reason));
    let both: [(Key<u64>, &Open, &str, &str); 2] = [
        (
            card!(open_units_linear),
            linear,
            "units written in order, a block of each in rotation",
            "open units, in order",
        ),
        (
            card!(open_units_random),
            random,
            "units written backwards, a block of each in rotation",
            "open units, random",
        ),
    ];
    for (key, open, recipe, curve) in both {
        let (figure, reason) = open.figure();
        let has_curve = !open.times.is_empty();
        draft.settle(key, figure, Because { recipe, reason, curve: has_curve.then_some(curve) });
        if has_curve {
            let mut points: Vec<ProbePoint> = open
                .times
                .iter()
                .map(|&(units, time)| ProbePoint {
                    x: units as f64,
                    y: time.0 as f64,
                    low: time.0 as f64,
                    high: time.0 as f64,
                })
                .collect();
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
            draft.keep(ProbeCurve {
                name: curve.to_owned(),
                x: "units in rotation".to_owned(),
                y: "median latency, ns".to_owned(),
                points,
                fit: Vec::new(),
            });
        }
    }
}

fn settle_first(first: Option<bool>, has_start: bool, draft: &mut ProfileDraft) {
    let recipe = "the first unit and as many others as stay open, in rotation";
    let (figure, reason) = match first {
        Some(true) => (Figure::certain(true, true, true), "all of them stay open"),
        Some(false) => (Figure::certain(false, false, false), "each write is slow, as with any other unit"),
        None if has_start => (Figure::unknown(), "how many others stay open is not known"),
        None => (Figure::unknown(), "the area does not contain the start of the card"),
    };
    draft.settle(card!(special_first_unit), figure, because(recipe, reason.to_owned()));
}

/// What a flush adds inside an open unit.
fn settle_flush(probe: &mut Probe<'_, '_>, draft: &mut ProfileDraft) -> Result<(), LearnError> {
    let start = probe.area.start_of(ByteSize::mib(48), 0);
    let (mut empty, mut written) = (Vec::new(), Vec::new());
    for n in 0..FLUSHES {
        probe.prober.write(probe.area.at(start + probe.block * n), probe.block)?;
        written.push(probe.prober.flush_latency()?.0);
        empty.push(probe.prober.flush_latency()?.0);
    }
    let (empty, written) = (Samples::new(empty).interval(), Samples::new(written).interval());
    let reason = format!(
        "behind a write inside an open unit {}, without a write {}",
        Nanos(written.median),
        Nanos(empty.median)
    );
    let added = written.median.saturating_sub(empty.median);
    // As long as a part of the write that it follows, or it is nothing.
    let figure = if added * 10 < probe.slow.lone_ns || written.low <= empty.high {
        Figure::absent()
    } else {
        Figure::certain(added, written.low - empty.high, written.high - empty.low)
    };
    draft.settle(key!(flush_ns), figure, because("flushes behind writes in order, and without a write", reason));
    Ok(())
}
