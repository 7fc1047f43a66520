//! What requests cost while garbage collection runs: speed and latency in the steady state of overwrites.

use flashwise_block::{ByteSize, Nanos, Operation, Progress};
use flashwise_profile::{Figure, Verdict};

use crate::LearnError;
use crate::draft::{Because, ProfileDraft, key};
use crate::prober::{Prober, anywhere};
use crate::probes::buffer::WriteBuffer;
use crate::probes::latency;
use crate::probes::throughput::FreshWrites;
use crate::stats::graded::{INTERVAL_SHARE_MAX, measured};
use crate::stats::joined_rate;
use crate::stats::steady::wandering;
use crate::verdict::{Doubt, Wording, applying, doubt};

use super::onset::Onset;
use super::overwrites::{DEPTH, NOTHING_MOVED_WA, Overwritten, TURNED_OVER_TIMES, UNIFORM, of_one_past};
use crate::probes::windows::Mark;

/// The figures of requests while garbage collection runs.
const WHILE_COLLECTING: [&str; 4] = [
    "asymmetry_4k_collecting",
    "asymmetry_8k_collecting",
    "latency_asymmetry_4k_collecting",
    "latency_asymmetry_8k_collecting",
];

/// Factor by which overwrites make a drive slower, at least, that does not count what it moves and runs garbage
/// collection; less may be noise of both speeds.
const SLOWER_FACTOR_MIN: f64 = 1.1;

/// What the cost of garbage collection rests on, beside its interval over batches.
struct CostEvidence {
    /// Whether data was moved for the writes that should have shown the fresh drive.
    fresh_writes_are_moved_for: bool,
}

/// Why the cost of garbage collection may be inconclusive, beside [`PACE_DOUBTS`] and an interval wider than twice
/// [`INTERVAL_SHARE_MAX`].
const COST_DOUBTS: [Doubt<CostEvidence>; 1] =
    [doubt("the drive has no fresh state", Wording::Nothing, |evidence| evidence.fresh_writes_are_moved_for)];

/// α from saturated throughput and from latency while garbage is collected all the time, and what collection costs;
/// hands on the onset, which is unknown of a drive that neither counts nor gets slower.
pub(super) fn probe(
    prober: &mut Prober<'_>,
    (buffer, fresh): (WriteBuffer, FreshWrites),
    (uniform, onset): (&Overwritten, Onset),
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<Onset, LearnError> {
    if onset.bytes.verdict == Verdict::Absent {
        draft.set(key!(asymmetry_4k_collecting), Figure::absent());
        draft.set(key!(asymmetry_8k_collecting), Figure::absent());
        draft.set(key!(latency_asymmetry_4k_collecting), Figure::absent());
        draft.set(key!(latency_asymmetry_8k_collecting), Figure::absent());
        for key in WHILE_COLLECTING {
            let reason = "garbage collection never runs".to_owned();
            draft.because(key, Because { recipe: UNIFORM, reason, curve: None });
        }
        return Ok(onset);
    }
    let rates: Vec<f64> = uniform.rounds.iter().map(|round| round.rate).collect();
    let later = rates[rates.len() / 2..].to_vec();
    let states = States::of(&rates, joined_rate(&later));
    let (turnovers, one_by_one) = match uniform.is_given_up {
        true => (1.0, 1),
        false => (TURNED_OVER_TIMES, latency::TURNOVERS_MAX),
    };
    let mut four = while_collecting(prober, buffer, ByteSize::kib(4), (later, one_by_one), progress)?;
    let rates = saturated_writes(prober, ByteSize::kib(8), turnovers, progress)?;
    let mut eight = while_collecting(prober, buffer, ByteSize::kib(8), (rates, one_by_one), progress)?;
    four.saturated = states.widen(four.saturated, INTERVAL_SHARE_MAX);
    eight.saturated = states.widen(eight.saturated, INTERVAL_SHARE_MAX);
    let moves = uniform.is_counted() && uniform.level().mean >= NOTHING_MOVED_WA;
    let mut cost = draft.recorded(key!(collection_cost));
    if let (Some(saturated), true) = (fresh.saturated_per_s, moves || onset.bytes.value.is_some()) {
        let again = four.writes.iter().map(|rate| saturated / rate).collect();
        let tolerance = 2.0 * INTERVAL_SHARE_MAX;
        cost = of_one_past(measured(saturated / joined_rate(&four.writes), again, tolerance));
        let evidence = CostEvidence { fresh_writes_are_moved_for: fresh.are_moved_for };
        cost = applying(&COST_DOUBTS, &evidence).judge(states.widen(cost, tolerance));
        let reason =
            format!("saturated 4 KiB write IOPS of the fresh drive ÷ in the steady state{}", states.sentence());
        draft.settle(key!(collection_cost), cost, Because { recipe: UNIFORM, reason, curve: None });
    }
    draft.set(key!(asymmetry_4k_collecting), four.saturated);
    draft.set(key!(asymmetry_8k_collecting), eight.saturated);
    draft.set(key!(latency_asymmetry_4k_collecting), four.latency);
    draft.set(key!(latency_asymmetry_8k_collecting), eight.latency);
    for key in WHILE_COLLECTING {
        let by_throughput = if key.starts_with("latency") { String::new() } else { states.sentence() };
        let reason = format!("as on the fresh drive, but in the steady state of overwrites{by_throughput}");
        draft.because(key, Because { recipe: COLLECTING, reason, curve: None });
    }
    if uniform.is_counted() || !cost.value.is_some_and(|cost| cost < SLOWER_FACTOR_MIN) {
        return Ok(onset);
    }
    let unknown = Onset { bytes: Figure::unknown(), share: Figure::unknown() };
    unknown.set(draft);
    draft.set(key!(collection_cost), Figure::unknown());
    for key in ["collection_onset_bytes", "over_provisioning", "collection_cost"] {
        let reason = "the drive does not report what it moves, and does not slow down".to_owned();
        draft.because(key, Because { recipe: UNIFORM, reason, curve: None });
    }
    Ok(unknown)
}

const COLLECTING: &str = "random writes of one length over the whole drive at the largest depth: at least half of its \
                          capacity unmeasured, then half measured; then reads of that data; then both one at a time";

/// Batches of reads, and of writes.
const BATCHES: usize = 6;
/// Looks at what the drive programs meanwhile.
const PARTS: usize = 8;
/// Reads of one.
const READS: usize = 4096;
/// Writes of one at least.
const BATCH_MIN: usize = 1024;

/// What requests of one length cost in the steady state.
struct Collecting {
    saturated: Figure<f64>,
    latency: Figure<f64>,
    /// Writes a second of the batches.
    writes: Vec<f64>,
}

/// Writes a second of one length in batches, in the steady state of writes of that length, or after so many turnovers.
fn saturated_writes(
    prober: &mut Prober<'_>,
    length: ByteSize,
    turnovers: f64,
    progress: &mut dyn Progress,
) -> Result<Vec<f64>, LearnError> {
    let capacity = prober.capacity();
    // The share that is still valid in what is collected takes long to get used to another length.
    let half = (capacity / length / 2) as usize;
    batches(prober, Operation::Write, length, ((half / BATCHES).max(BATCH_MIN), half), turnovers, progress)
}

/// Requests a second at the largest depth, in batches of so many, after so many; after fewer, and in shorter ones,
/// where those make the drive program all that it holds so many times over.
fn batches(
    prober: &mut Prober<'_>,
    operation: Operation,
    length: ByteSize,
    (requests, before): (usize, usize),
    turnovers: f64,
    progress: &mut dyn Progress,
) -> Result<Vec<f64>, LearnError> {
    let mut place = anywhere(prober.capacity(), length);
    let depth = DEPTH.min(prober.queue_depth().max(1)) as usize;
    let mut rates = Vec::with_capacity(BATCHES);
    const STAGE: &str = "throughput during garbage collection";
    let (began, turned_over) = (Mark::now(prober), prober.capacity().bytes() as f64 * turnovers);
    let (mut parts, a_batch) = (0, before / BATCHES);
    while parts < BATCHES * PARTS && (began.programmed(prober).bytes() as f64) < turned_over {
        prober.advance(progress, STAGE, parts as f64 / (BATCHES * PARTS) as f64 / 2.0)?;
        let nth = parts % PARTS;
        let completions = a_batch * (nth + 1) / PARTS - a_batch * nth / PARTS;
        prober.keep_in_flight(operation, length, depth, completions, &mut place)?;
        parts += 1;
    }
    let requests = (requests * parts / (BATCHES * PARTS)).max(requests.min(BATCH_MIN));
    for n in 0..BATCHES {
        prober.advance(progress, STAGE, 0.5 + n as f64 / BATCHES as f64 / 2.0)?;
        rates.push(prober.rate(operation, length, depth, requests, &mut place)?);
    }
    while prober.wait()?.is_some() {}
    Ok(rates)
}

/// After writes of a length that came to `writes` a second: how reads fare depends on what wrote the data. Writes one
/// by one may make the drive program what it holds so many times over.
fn while_collecting(
    prober: &mut Prober<'_>,
    buffer: WriteBuffer,
    length: ByteSize,
    (writes, turnovers): (Vec<f64>, u64),
    progress: &mut dyn Progress,
) -> Result<Collecting, LearnError> {
    let capacity = prober.capacity();
    // Where nothing can be lost a flush empties no buffer, which then goes to flash while reads are measured.
    let drained = 1e9 * DRAIN_TIMES * buffer.bytes() as f64 / (joined_rate(&writes) * length.bytes() as f64).max(1.0);
    let quiet = |prober: &mut Prober<'_>| {
        prober.rest(Nanos(drained as u64))?;
        // Collection continues for as long as it takes to have superblocks free again, and reads wait for it.
        prober.come_to_rest()
    };
    quiet(prober)?;
    let reads = batches(prober, Operation::Read, length, (READS, 2 * DEPTH as usize), TURNED_OVER_TIMES, progress)?;
    // Collection comes in bursts, which a median would not see.
    let value = joined_rate(&reads) / joined_rate(&writes);
    let again = reads.iter().flat_map(|read| writes.iter().map(move |write| read / write)).collect();
    // Ratios of single batches spread more than the ratio of their means does.
    let spread = measured(value, again, 1.0);
    let shrink = |end: Option<f64>| end.map(|end| value + (end - value) / (writes.len() as f64).sqrt());
    let again = [shrink(spread.low), shrink(spread.high)].into_iter().flatten().collect();
    let saturated = of_one_past(measured(value, again, INTERVAL_SHARE_MAX));

    let settle = buffer.settling(prober.effort);
    let writes_ns = latency::write_latencies(prober, capacity, length, (settle, turnovers), progress)?;
    quiet(prober)?;
    let reads_ns = latency::read_latencies(prober, capacity, length, progress)?;
    let latency = latency::ratio(&writes_ns, &reads_ns, &mut prober.random);
    Ok(Collecting { saturated, latency, writes })
}

/// Times that a buffer could be emptied at the pace of writes before reads are measured: once, and once for whatever
/// is slower then.
const DRAIN_TIMES: f64 = 2.0;

/// How much slower and faster than it was taken for a drive was, while it collected, over longer stretches: its units
/// fall into step and out of it.
#[derive(Clone, Copy)]
struct States {
    slowest: f64,
    fastest: f64,
}

/// The pace of a drive, and by which share it may change.
struct Pace {
    states: States,
    tolerance: f64,
}

/// Why what depends on the pace of writes may be inconclusive.
const PACE_DOUBTS: [Doubt<Pace>; 2] = [
    doubt("long stretches were faster", Wording::Nothing, |pace| pace.states.fastest > 1.0 + pace.tolerance),
    doubt("long stretches were slower", Wording::Nothing, |pace| pace.states.slowest < 1.0 - pace.tolerance),
];

impl States {
    /// Of the pace of successive rounds, as shares of what was taken for it.
    fn of(rates: &[f64], taken: f64) -> Self {
        let (slowest, fastest) = wandering(rates).unwrap_or((taken, taken));
        Self { slowest: (slowest / taken).min(1.0), fastest: (fastest / taken).max(1.0) }
    }

    /// What the report prints of it behind a reason.
    fn sentence(&self) -> String {
        let percent = |share: f64| 100.0 * share;
        match self.slowest < 1.0 || self.fastest > 1.0 {
            true => format!(
                "; over longer stretches the rate was {:.0} to {:.0} % of that used here",
                percent(self.slowest),
                percent(self.fastest)
            ),
            false => String::new(),
        }
    }

    /// A figure that is the larger the slower writes are, with an interval that holds in all these states; no longer
    /// certain where they make more of a difference than `tolerance`.
    fn widen(&self, figure: Figure<f64>, tolerance: f64) -> Figure<f64> {
        let Figure { value: Some(value), low: Some(low), high: Some(high), .. } = figure else { return figure };
        let (low, high) = (low.min(value / self.fastest), high.max(value / self.slowest));
        let wide = Figure { low: Some(low), high: Some(high), ..figure };
        applying(&PACE_DOUBTS, &Pace { states: *self, tolerance }).judge(wide)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_that_changed_for_long_makes_what_depends_on_it_uncertain() {
        let rates = |first: f64| (0..48).map(|i| if i < 26 { first } else { 9_000.0 }).collect::<Vec<f64>>();
        let widened =
            |first| States::of(&rates(first), 9_000.0).widen(Figure::certain(6.6, 6.4, 6.8), INTERVAL_SHARE_MAX);
        let slower = widened(13_500.0);
        assert_eq!((slower.verdict, slower.value, slower.high), (Verdict::Inconclusive, Some(6.6), Some(6.8)));
        assert!((slower.low.unwrap() - 4.4).abs() < 0.1, "{slower:?}");
        let told = States::of(&rates(13_500.0), 9_000.0).sentence();
        assert!(told.ends_with("100 to 150 % of that used here"), "{told}");
        let little = widened(9_300.0);
        assert_eq!((little.verdict, little.high), (Verdict::Certain, Some(6.8)));
        assert!((little.low.unwrap() - 6.6 * 9_000.0 / 9_300.0).abs() < 1e-9, "{little:?}");
        assert_eq!(widened(9_000.0), Figure::certain(6.6, 6.4, 6.8));
    }
}
