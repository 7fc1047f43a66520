//! What one request at a time costs: reads beside writes, and what durability adds.
//!
//! **α by latency.** Median latency of random writes over that of random reads of one length, nothing else in flight,
//! in the running state: the writes start after as much was written as a write buffer swallows.
//!
//! **Flush and durable write.** On an idle drive, in random order: a write alone, a durable write, a flush of nothing,
//! a flush of one block that was just written. A drive whose write buffer survives a power cut has nothing to do for a
//! flush; that its flush is free is all that time can show of the protection. Where the whole drive may be written,
//! both are timed once more anywhere on it when it is full, and the interval holds both.

use flashwise_block::{ByteSize, Clock, Nanos, Progress};
use flashwise_profile::Figure;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use crate::draft::{Because, Key, ProfileDraft, key};
use crate::evidence::Evidence;
use crate::prober::Prober;
use crate::stats::graded::{INTERVAL_SHARE_MAX, both, measured, whole};
use crate::stats::{interval95, median, rank};
use crate::step::Step;
use crate::verdict::{Doubt, Wording, applying, doubt};
use crate::{Effort, LearnError, REGION_BYTES_MIN};

use super::buffer::WriteBuffer;
use super::throughput::Reads;

pub(crate) const LATENCY: Step = Step::new("latency", &["latency_asymmetry_4k", "latency_asymmetry_8k"]);
pub(crate) const DURABILITY: Step = Step::new("durability", &["flush_ns", "durable_write_ns", "power_loss_protected"]);

/// Latencies of each kind.
const fn requests(effort: Effort) -> usize {
    match effort {
        Effort::Thorough => 2000,
        Effort::Quick => 400,
    }
}

/// Repetitions of each of the four durable cases.
const fn repetitions(effort: Effort) -> usize {
    match effort {
        Effort::Thorough => 200,
        Effort::Quick => 40,
    }
}

/// An idle drive is one that has had this long for itself; longer than programming and erasing take.
const IDLE: Nanos = Nanos(20_000_000);
/// Resampled medians.
const RESAMPLES: usize = 200;
/// Share of the time of a plain write that a flush must add to cost something; less is noise of the medians.
const ADDS_SHARE_MIN: f64 = 0.03;
/// Bytes written before, in multiples of what fills the buffer when many are in flight.
const FILLING: u64 = 6;
const BLOCK: ByteSize = ByteSize::kib(4);

/// Measures α by latency at 4 and 8 KiB.
pub(crate) fn probe_asymmetry(
    prober: &mut Prober<'_>,
    (earlier, buffer): (&Reads, WriteBuffer),
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    let bytes = prober.region();
    let settle = buffer.settling(prober.effort);
    let keys = [(ByteSize::kib(4), key!(latency_asymmetry_4k)), (ByteSize::kib(8), key!(latency_asymmetry_8k))];
    for (length, key) in keys {
        let reads = match earlier.of(length) {
            Some(reads) => reads.latencies.clone(),
            None => {
                prober.fill_region(progress)?;
                read_latencies(prober, bytes, length, progress)?
            }
        };
        let writes = write_latencies(prober, bytes, length, (settle, TURNOVERS_MAX), progress)?;
        let mut figure = ratio(&writes, &reads, &mut prober.random);
        if prober.clock() == Clock::Wall {
            // Neighbours of a real drive come and go: what the reads take afterwards is in the interval as well.
            prober.fill_region(progress)?;
            let again = ratio(&writes, &read_latencies(prober, bytes, length, progress)?, &mut prober.random);
            figure = both(figure, again);
        }
        let reason = "median write latency ÷ median read latency".to_owned();
        let recipe = "random requests of one length over the filled region, one at a time: reads, then writes";
        draft.settle(key, figure, Because { recipe, reason, curve: None });
    }
    Ok(())
}

/// Latencies of random reads of the first `bytes`, one at a time.
pub(crate) fn read_latencies(
    prober: &mut Prober<'_>,
    bytes: ByteSize,
    length: ByteSize,
    progress: &mut dyn Progress,
) -> Result<Vec<f64>, LearnError> {
    let n = requests(prober.effort);
    let mut place = crate::prober::anywhere(bytes, length);
    let mut reads = Vec::with_capacity(n);
    for i in 0..n {
        if i.is_multiple_of(100) {
            prober.advance(progress, "latency of reads", i as f64 / n as f64)?;
        }
        let offset = place(&mut prober.random);
        reads.push(prober.read(offset, length)?.0 as f64);
    }
    Ok(reads)
}

/// Times that a drive may program what it holds, one write at a time, until it is taken as it is, and until there are
/// enough samples: where it moves hundreds of bytes for each that is written, any buffer has been emptied by then.
pub(crate) const TURNOVERS_MAX: u64 = 8;
/// Latencies that are enough then.
const ENOUGH: usize = 200;

/// Latencies of random writes to the first `bytes`, one at a time, after `settle` bytes and more; flushes.
pub(crate) fn write_latencies(
    prober: &mut Prober<'_>,
    bytes: ByteSize,
    length: ByteSize,
    (settle, turnovers): (ByteSize, u64),
    progress: &mut dyn Progress,
) -> Result<Vec<f64>, LearnError> {
    let n = requests(prober.effort);
    let mut place = crate::prober::anywhere(bytes, length);
    // One at a time a buffer fills slowly where the flash is nearly as fast.
    let settle = (settle * FILLING / length) as usize;
    let (mut settled, mut writes) = (0, Vec::with_capacity(n));
    let turnovers = (prober.capacity() * turnovers).bytes();
    let mut worn_at = prober.programmed().map(|programmed| programmed + turnovers);
    while writes.len() < n {
        let done = settled + writes.len();
        if done.is_multiple_of(100) {
            prober.advance(progress, "latency of writes", done as f64 / (settle + n) as f64)?;
            let is_worn = prober.programmed().zip(worn_at).is_some_and(|(programmed, worn_at)| programmed > worn_at);
            if is_worn && settled < settle {
                settled = settle;
                worn_at = prober.programmed().map(|programmed| programmed + turnovers);
            } else if is_worn && writes.len() >= ENOUGH {
                break;
            }
        }
        let offset = place(&mut prober.random);
        let latency = prober.write(offset, length)?.0 as f64;
        if settled < settle {
            settled += 1;
        } else {
            writes.push(latency);
        }
    }
    prober.flush()?;
    Ok(writes)
}

/// Median write latency ÷ median read latency.
pub(crate) fn ratio(writes: &[f64], reads: &[f64], random: &mut Pcg64Mcg) -> Figure<f64> {
    let value = median(writes.to_vec()) / median(reads.to_vec()).max(1.0);
    let again = (0..RESAMPLES).map(|_| drawn_median(writes, random) / drawn_median(reads, random).max(1.0));
    let figure = measured(value, again.collect(), INTERVAL_SHARE_MAX);
    applying(&Latencies::RATIO_DOUBTS, &Latencies { writes, reads }).judge(figure)
}

/// Latencies of both operations, ns.
struct Latencies<'a> {
    writes: &'a [f64],
    reads: &'a [f64],
}

impl Latencies<'_> {
    /// Why a ratio of latencies may be inconclusive, beside an interval wider than [`INTERVAL_SHARE_MAX`].
    const RATIO_DOUBTS: [Doubt<Self>; 2] = [
        doubt("a buffer completes some of the writes", Wording::Nothing, |of| !has_a_middle(of.writes)),
        doubt("a buffer completes some of the reads", Wording::Nothing, |of| !has_a_middle(of.reads)),
    ];
}

/// Whether latencies have a median to speak of: where some are completed by a buffer and others wait, it is in between,
/// and moves with the shares of the two.
fn has_a_middle(latencies: &[f64]) -> bool {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let at = |tenths: usize| sorted.get((sorted.len().max(1) - 1) * tenths / 10).copied().unwrap_or(0.0);
    at(6) <= at(4) * (1.0 + MIDDLE_SHARE)
}

/// Share within which the latencies a tenth of all above the median and a tenth below it lie, where there is a median
/// to speak of.
const MIDDLE_SHARE: f64 = 0.1;

fn drawn_median(values: &[f64], random: &mut Pcg64Mcg) -> f64 {
    median((0..values.len()).map(|_| values[random.random_range(0..values.len())]).collect())
}

/// The four cases.
#[derive(Clone, Copy)]
enum Case {
    Write,
    DurableWrite,
    EmptyFlush,
    FlushOfOneBlock,
}

const CASES: [Case; 4] = [Case::Write, Case::DurableWrite, Case::EmptyFlush, Case::FlushOfOneBlock];

/// Evidence of what durability costs, ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Durability {
    flush: Figure<u64>,
    durable_write: Figure<u64>,
}

impl Evidence for Durability {
    fn recorded(draft: &ProfileDraft) -> Self {
        Self { flush: draft.recorded(key!(flush_ns)), durable_write: draft.recorded(key!(durable_write_ns)) }
    }
}

impl Durability {
    /// Of the latencies of the four cases.
    fn of([write, durable, empty, one]: &[Vec<f64>; 4], random: &mut Pcg64Mcg) -> Self {
        Self { flush: added(one, empty, write, random), durable_write: added(durable, write, write, random) }
    }

    /// Whether nothing could be lost, where both say the same.
    fn protection(&self) -> Figure<bool> {
        match (self.flush.value, self.durable_write.value) {
            (None, None) => Figure::certain(true, true, true),
            (Some(_), Some(_)) => Figure::certain(false, false, false),
            _ => Figure::unknown(),
        }
    }
}

/// Measures what durability costs.
pub(crate) fn probe_durability(
    prober: &mut Prober<'_>,
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<Durability, LearnError> {
    let area = match prober.clock() {
        Clock::Virtual => {
            prober.fill_region(progress)?;
            prober.region()
        }
        // The first step of a real drive; the whole region may be more than a budget allows.
        Clock::Wall => {
            prober.fill(REGION_BYTES_MIN, progress)?;
            REGION_BYTES_MIN
        }
    };
    let samples = cases(prober, area, repetitions(prober.effort), progress)?;
    let durability = Durability::of(&samples, &mut prober.random);
    let [write, durable, empty, one] = &samples;
    let ns = |values: &[f64]| format!("{}", Nanos(median(values.to_vec()) as u64));
    let because = |reason| Because { recipe: FOUR_CASES, reason, curve: None };
    let of_flush = format!("a flush after one write takes {}, without a write {}", ns(one), ns(empty));
    let of_durable = format!("a durable write takes {}, a plain write {}", ns(durable), ns(write));
    let of_both = "a drive with power-loss protection makes writes durable at no cost".to_owned();
    draft.settle(key!(flush_ns), durability.flush, because(of_flush));
    draft.settle(key!(durable_write_ns), durability.durable_write, because(of_durable));
    draft.settle(key!(power_loss_protected), durability.protection(), because(of_both));
    Ok(durability)
}

const FOUR_CASES: &str = "on an idle drive, in random order: a plain 4 KiB write, a durable one, a flush without a \
                          write, a flush after one write";

/// Measures what durability costs anywhere on a drive that is full: of a small region a drive may have at hand what it
/// needs to know of it. An interval then holds both, and is no longer certain where they are too far apart.
pub(crate) fn probe_durability_everywhere(
    prober: &mut Prober<'_>,
    here: Durability,
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    if here.flush.value.is_none() && here.durable_write.value.is_none() {
        return Ok(());
    }
    let samples = cases(prober, prober.capacity(), EVERYWHERE, progress)?;
    let elsewhere = Durability::of(&samples, &mut prober.random);
    let both: [(Key<u64>, _, _); 2] = [
        (key!(flush_ns), here.flush, elsewhere.flush),
        (key!(durable_write_ns), here.durable_write, elsewhere.durable_write),
    ];
    for (key, here, elsewhere) in both {
        draft.set(key, in_both(here, elsewhere));
        if let Some(ns) = elsewhere.value {
            draft.add_to_reason(key.name, &format!("across the whole full drive it adds {}", Nanos(ns)));
        }
    }
    Ok(())
}

/// Repetitions of each case anywhere on the drive.
const EVERYWHERE: usize = 60;

/// A time that was measured in two places: that of the first, with an interval that holds the second as well.
fn in_both(here: Figure<u64>, elsewhere: Figure<u64>) -> Figure<u64> {
    let Figure { value: Some(value), low: Some(low), high: Some(high), verdict } = here else { return here };
    let Some(other) = elsewhere.value else { return here };
    let both = Figure { value: here.value, low: Some(low.min(other)), high: Some(high.max(other)), verdict };
    applying(&TIME_DOUBTS, &TwoPlaces { here: value, elsewhere: other }).judge(both)
}

/// A time that was measured in two places, ns.
struct TwoPlaces {
    here: u64,
    elsewhere: u64,
}

/// Why what durability costs may be inconclusive, beside an interval wider than [`INTERVAL_SHARE_MAX`] and samples that
/// chance tells apart as well.
const TIME_DOUBTS: [Doubt<TwoPlaces>; 1] = [doubt("it depends on the place", Wording::Nothing, |places| {
    places.elsewhere.abs_diff(places.here) as f64 > FAR_SHARE * places.here as f64
})];

/// Share of the time from which on two places are far apart; less is noise of the median.
const FAR_SHARE: f64 = 0.05;

/// Latencies of the four cases on the first `bytes`, in random order.
fn cases(
    prober: &mut Prober<'_>,
    bytes: ByteSize,
    repetitions: usize,
    progress: &mut dyn Progress,
) -> Result<[Vec<f64>; 4], LearnError> {
    let mut place = crate::prober::anywhere(bytes, BLOCK);
    let visits = prober.shuffled((0..CASES.len()).cycle().take(CASES.len() * repetitions));
    let mut samples: [Vec<f64>; 4] = Default::default();
    for (n, &case) in visits.iter().enumerate() {
        prober.advance(progress, "flushes", n as f64 / visits.len() as f64)?;
        prober.rest(IDLE)?;
        let offset = place(&mut prober.random);
        let latency = match CASES[case] {
            Case::Write => prober.write(offset, BLOCK)?,
            Case::DurableWrite => prober.durable_write(offset, BLOCK)?,
            Case::EmptyFlush => prober.flush_latency()?,
            Case::FlushOfOneBlock => {
                prober.write(offset, BLOCK)?;
                prober.flush_latency()?
            }
        };
        prober.sample("durability", case as f64, latency.0 as f64);
        samples[case].push(latency.0 as f64);
    }
    Ok(samples)
}

/// What `with` takes longer than `without`; absent where that is nothing, or too little beside `scale`.
fn added(with: &[f64], without: &[f64], scale: &[f64], random: &mut Pcg64Mcg) -> Figure<u64> {
    let difference = median(with.to_vec()) - median(without.to_vec());
    let test = rank::compare(with, without);
    let counts = difference >= ADDS_SHARE_MIN * median(scale.to_vec());
    if !counts {
        return Figure::absent();
    }
    let again: Vec<f64> = (0..RESAMPLES).map(|_| drawn_median(with, random) - drawn_median(without, random)).collect();
    if test.p_greater >= rank::CHANCE_PROBABILITY {
        let (low, high) = interval95(again);
        return whole(Figure::inconclusive(difference, low, high));
    }
    whole(measured(difference, again, INTERVAL_SHARE_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_is_another_elsewhere_is_not_certain_and_its_interval_holds_both() {
        let here = Figure::certain(974, 930, 1_020);
        assert_eq!(in_both(here, Figure::certain(1_071, 1_020, 1_120)), Figure::inconclusive(974, 930, 1_071));
        assert_eq!(in_both(here, Figure::certain(980, 940, 1_030)), here);
        assert_eq!(in_both(here, Figure::absent()), here);
        assert_eq!(in_both(Figure::absent(), here), Figure::absent());
    }
}
