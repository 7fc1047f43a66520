//! The request-size profile: how the length of a write decides what it costs and how its data reads back.
//!
//! **Write unit.** A drive that has to make a short write durable programs a whole unit of flash and wastes the rest,
//! so latency over length is a staircase. The end of its first flat stretch is the desirable write length.
//!
//! Where a protected buffer answers, no stair shows and nothing is wasted on durability; but what is shorter than a
//! logical page still takes a whole one, which a drive that counts what it programs tells.
//!
//! **Stripe.** Data written in short durable pieces lies scattered as the pieces came. The length from which on
//! longer pieces read back no faster is the unit in which the drive lays data out.
//!
//! Source: Kakaraparthy et al., PVLDB 13(4), 2019, request-size profile: write in pieces of s, read back in requests of
//! 512 KiB at queue depth 1. Added here: the staircase, which tells write unit and stripe apart.

use flashwise_block::{ByteSize, Clock, Nanos, Operation, Progress};
use flashwise_profile::{DurableWritePoint, Figure, ReadBackPoint, Verdict};

use crate::draft::{Because, ProfileDraft, key};
use crate::evidence::Evidence;
use crate::prober::{Prober, SECTION, anywhere};
use crate::stats::{Samples, figure, median, standard_error};
use crate::step::Step;
use crate::verdict::{Doubt, Wording, applying, doubt, doubt_of_either};
use crate::{Effort, LearnError};

use super::buffer::WriteBuffer;
use super::throughput::Reads;

pub(crate) const DURABLE_WRITES: Step = Step::new("durable writes", &["write_unit_bytes"]).layout();
pub(crate) const READING_BACK: Step = Step::new("reading back", &["stripe_bytes"]).layout();

/// Samples of each length of a durable write.
const fn writes_a_length(effort: Effort) -> usize {
    match effort {
        Effort::Thorough => 60,
        Effort::Quick => 20,
    }
}
/// Distance of two lengths on the staircase from 4 KiB on.
const STEP: ByteSize = ByteSize::kib(4);
/// Longest durable write.
const LONGEST_WRITE: ByteSize = ByteSize::kib(256);
/// Share of the latency that a jump of it comes to, at least, to be a stair.
const STAIR_SHARE_MIN: f64 = 0.02;
/// Standard errors of the two medians that it comes to, at least.
const STAIR_STANDARD_ERRORS: f64 = 4.0;

/// Bytes written in pieces of each length, and then read back.
const AREA: ByteSize = ByteSize::mib(4);
/// Length of the reads of the read-back curve.
const READ_BACK_MAX: ByteSize = ByteSize::kib(512);
/// How often each part of an area is read.
const fn reads_a_part(effort: Effort) -> usize {
    match effort {
        Effort::Thorough => 24,
        Effort::Quick => 6,
    }
}
/// Share by which reading back takes longer, at least, where it is slower.
const SLOWER_SHARE_MIN: f64 = 0.05;
/// Share within which reading back is equally fast.
const EQUAL_SHARE_MAX: f64 = 0.03;

/// Lengths from one block to 4 KiB, then in steps of 4 KiB.
fn lengths(logical_block: ByteSize, longest: ByteSize) -> Vec<ByteSize> {
    let below = [512, 1024, 2048, 3072].map(ByteSize);
    let below = below.into_iter().filter(|length| length.is_multiple_of(logical_block));
    below.chain((1..=LONGEST_WRITE.min(longest) / STEP).map(|n| STEP * n)).collect()
}

/// Evidence of the write unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteUnit(Figure<u64>);

impl Evidence for WriteUnit {
    fn recorded(draft: &ProfileDraft) -> Self {
        Self(draft.recorded(key!(write_unit_bytes)))
    }
}

/// Measures durable writes of all lengths in random order.
pub(crate) fn probe_durable_writes(
    prober: &mut Prober<'_>,
    (reads, buffer): (&Reads, WriteBuffer),
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<WriteUnit, LearnError> {
    prober.fill_region(progress)?;
    let lengths = lengths(prober.logical_block(), prober.longest());
    let points = durable_writes(prober, &lengths, progress)?;
    let waste = programmed_by_length(prober, &lengths, progress)?;
    let by_latency = Staircase { lengths: &lengths, points: &points }.write_unit(prober);
    let told = counted_unit(&lengths, &waste).unwrap_or(by_latency);
    // A medium that is written in place, block by block, is as fast and as thrifty.
    let by_block = told.0.value == Some(STEP.bytes()) && wastes_nothing(&lengths, &waste);
    let block_ns = lengths.iter().position(|&length| length == STEP).map(|i| points[i].median());
    let in_a_buffer = match block_ns {
        Some(ns) if !by_block => {
            is_less_than_a_read(reads, ns)
                || costs_no_more_than_a_plain_write(prober, buffer)?
                || completes_before_it_programs(&waste)
        }
        _ => completes_before_it_programs(&waste),
    };
    let (write_unit, reason) = match in_a_buffer {
        true => behind_a_buffer(prober, buffer, progress)?.unwrap_or(told),
        false => told,
    };
    let recipe = "durable writes of one block to 256 KiB at random offsets, one at a time, lengths in random order";
    draft.settle(key!(write_unit_bytes), write_unit, Because { recipe, reason, curve: None });
    draft.curves.durable_write = std::iter::zip(&lengths, &points)
        .map(|(length, point)| DurableWritePoint { write_bytes: length.bytes(), latency_ns: point.interval() })
        .collect();
    Ok(WriteUnit(write_unit))
}

/// Latencies of durable writes of each length, in random order.
fn durable_writes(
    prober: &mut Prober<'_>,
    lengths: &[ByteSize],
    progress: &mut dyn Progress,
) -> Result<Vec<Samples>, LearnError> {
    let samples_a_length = writes_a_length(prober.effort);
    let visits = (0..lengths.len()).flat_map(|i| std::iter::repeat_n(i, samples_a_length));
    let visits = prober.shuffled(visits);
    let mut samples = vec![Vec::new(); lengths.len()];
    for (n, &i) in visits.iter().enumerate() {
        if n.is_multiple_of(100) {
            prober.advance(progress, "durable writes by length", n as f64 / visits.len() as f64)?;
        }
        let offset = prober.random_section(lengths[i]);
        samples[i].push(prober.durable_write(offset, lengths[i])?.0);
        prober.sample("durable write", lengths[i].bytes() as f64, samples[i].last().map_or(0.0, |&ns| ns as f64));
    }
    Ok(samples.into_iter().map(Samples::new).collect())
}

/// Latency of durable writes over their length.
struct Staircase<'a> {
    lengths: &'a [ByteSize],
    points: &'a [Samples],
}

impl Staircase<'_> {
    /// The length before its first step.
    fn write_unit(&self, prober: &mut Prober<'_>) -> (Figure<u64>, String) {
        let would_be_seen = typical_error(self.points) * STAIR_STANDARD_ERRORS < STAIR_SHARE_MIN;
        let unit = figure(self.points, &mut prober.random, would_be_seen, |points| {
            first_stair(self.lengths, points).map(|length| length.bytes())
        });
        let reason = match unit.value {
            Some(_) => "the longest write before the first step in latency",
            None => "latency grows with length without a step",
        };
        (unit, reason.to_owned())
    }
}

/// Of a drive that tells: which length, and how many bytes the flash programmed for a durable write of it. A unit need
/// not be a power of two, so each write starts at a multiple of its own length: those of whole units then fill whole
/// units.
fn programmed_by_length(
    prober: &mut Prober<'_>,
    lengths: &[ByteSize],
    progress: &mut dyn Progress,
) -> Result<Vec<(usize, u64)>, LearnError> {
    if prober.programmed().is_none() {
        return Ok(Vec::new());
    }
    let visits = prober.shuffled((0..lengths.len()).flat_map(|i| std::iter::repeat_n(i, TOLD_WRITES)));
    let mut told = Vec::with_capacity(visits.len());
    for (n, &i) in visits.iter().enumerate() {
        if n.is_multiple_of(100) {
            prober.advance(progress, "bytes programmed by durable writes", n as f64 / visits.len() as f64)?;
        }
        let offset = prober.random_multiple(lengths[i]);
        let before = prober.programmed();
        prober.durable_write(offset, lengths[i])?;
        told.extend(std::iter::zip(before, prober.programmed()).map(|(before, now)| (i, now - before)));
    }
    Ok(told)
}

/// Writes of each length by which it is told what they program.
const TOLD_WRITES: usize = 24;

/// Whether a durable write was completed before the flash programmed anything: then a buffer keeps what is durable, and
/// what is programmed within one write is of earlier ones.
fn completes_before_it_programs(waste: &[(usize, u64)]) -> bool {
    waste.iter().any(|&(_, programmed)| programmed == 0)
}

/// Whether a durable block takes less than a read of one from flash: then a buffer answers.
fn is_less_than_a_read(reads: &Reads, durable_ns: f64) -> bool {
    reads.of(STEP).is_some_and(|reads| !reads.latencies.is_empty() && durable_ns < median(reads.latencies.clone()))
}

/// Whether a drive that has a write buffer takes as long for a durable block as for another: the buffer answers, after
/// whatever it reads to complete the page.
fn costs_no_more_than_a_plain_write(prober: &mut Prober<'_>, buffer: WriteBuffer) -> Result<bool, LearnError> {
    if buffer.0.value.is_none() {
        return Ok(false);
    }
    let (mut plain, mut durable) = (Vec::with_capacity(PLAIN_WRITES), Vec::with_capacity(PLAIN_WRITES));
    for _ in 0..PLAIN_WRITES {
        prober.rest(Nanos::millis(2))?;
        let offset = prober.random_section(STEP);
        plain.push(prober.write(offset, STEP)?.0 as f64);
        prober.rest(Nanos::millis(2))?;
        let offset = prober.random_section(STEP);
        durable.push(prober.durable_write(offset, STEP)?.0 as f64);
    }
    Ok(median(durable) <= PLAIN_FACTOR_MAX * median(plain))
}

/// Writes of each kind, and the share up to which the two are equal.
const PLAIN_WRITES: usize = 24;
/// Factor between a durable write and a plain one up to which the two take the same.
const PLAIN_FACTOR_MAX: f64 = 1.2;

/// The write unit of a drive whose buffer keeps what is durable, and counts what it programs: short writes at random
/// are programmed in whole units, however much later. `None` where the drive does not tell, or wastes at every length.
fn behind_a_buffer(
    prober: &mut Prober<'_>,
    buffer: WriteBuffer,
    progress: &mut dyn Progress,
) -> Result<Option<(Figure<u64>, String)>, LearnError> {
    if prober.programmed().is_none() {
        return Ok(None);
    }
    let held = buffer.bytes();
    let lengths: Vec<ByteSize> =
        (9..=18).map(|n| ByteSize(1 << n)).filter(|l| l.is_multiple_of(prober.logical_block())).collect();
    let lengths: Vec<ByteSize> = lengths.into_iter().filter(|&length| length <= prober.longest()).collect();
    // What is kept back at the end of one length, and programmed with the next, must be little beside what all its
    // writes come to. A short one takes a block of 4 KiB there.
    let bytes = (8 * held).clamp(BEHIND_BYTES.0.bytes(), BEHIND_BYTES.1.bytes());
    let mut wasted = Vec::with_capacity(lengths.len());
    for (n, &length) in lengths.iter().rev().chain(lengths.last()).rev().enumerate() {
        prober.advance(progress, "short writes into a buffer", n as f64 / lengths.len() as f64)?;
        let count = (bytes / length.max(STEP).bytes()) as usize;
        let before = prober.programmed();
        let mut place = anywhere(prober.region(), length);
        prober.keep_in_flight(Operation::Write, length, BEHIND_DEPTH, count, &mut place)?;
        let written = length * (count + prober.in_flight()) as u64;
        if prober.clock() == Clock::Virtual {
            prober.come_to_rest()?
        } else {
            prober.rest(BEHIND_REST)?
        }
        let programmed = prober.programmed().zip(before).map_or(0, |(now, before)| now - before);
        wasted.push(programmed as f64 / written.bytes() as f64);
    }
    // The first round filled the caches. What all lengths program alike is moved again, and not waste.
    let wasted = &wasted[1..];
    let least = wasted.iter().copied().fold(f64::MAX, f64::min).max(1.0);
    let beyond: Vec<f64> = wasted.iter().map(|programmed| programmed / least).collect();
    Ok(unit_of(&lengths, &beyond))
}

/// Bytes that short writes of each length take in a buffer, at least and at most; how many are in flight; and how long
/// a real drive may take to program them.
const BEHIND_BYTES: (ByteSize, ByteSize) = (ByteSize::mib(4), ByteSize::mib(128));
const BEHIND_DEPTH: usize = 16;
const BEHIND_REST: Nanos = Nanos(200_000_000);
/// Write amplification up to which writes of a length are programmed without waste. Lengths go by twos, so that half
/// a unit comes to 2.
const THRIFTY_WA: f64 = 1.25;
/// Write amplification from which on they waste for certain.
const WASTEFUL_WA: f64 = 1.5;

/// The length from which on nothing is wasted; absent where that is all of them.
fn unit_of(lengths: &[ByteSize], wasted: &[f64]) -> Option<(Figure<u64>, String)> {
    let first = wasted.iter().rposition(|&ratio| ratio > THRIFTY_WA).map_or(0, |last| last + 1);
    let unit = lengths.get(first)?.bytes();
    if first == 0 {
        return Some((
            Figure::absent(),
            "a buffer takes short writes, and they are programmed without padding".to_owned(),
        ));
    }
    let reason = format!(
        "a buffer takes short writes; writes of {} program {:.2} times their bytes, writes of {} {:.2} times",
        lengths[first - 1],
        wasted[first - 1],
        ByteSize(unit),
        wasted[first]
    );
    Some((applying(&UNIT_DOUBTS, &wasted[..first]).judge(Figure::certain(unit, unit, unit)), reason))
}

/// Why a write unit behind a buffer may be inconclusive, by what shorter writes program for each byte. One that a
/// staircase shows is certain by the same estimate on resampled writes, one that a drive counts always.
const UNIT_DOUBTS: [Doubt<[f64]>; 1] = [doubt("some shorter writes are padded little", Wording::Nothing, |wasted| {
    !wasted.iter().all(|&ratio| ratio >= WASTEFUL_WA)
})];

/// Whether what is written in whole blocks of 4 KiB is programmed once.
fn wastes_nothing(lengths: &[ByteSize], waste: &[(usize, u64)]) -> bool {
    let whole = || waste.iter().filter(|(i, _)| lengths[*i] >= STEP);
    let written: u64 = whole().map(|&(i, _)| lengths[i].bytes()).sum();
    let programmed: u64 = whole().map(|(_, programmed)| programmed).sum();
    written > 0 && programmed as f64 <= (1.0 + WASTE_SHARE) * written as f64
}

/// Share of what was written that is programmed beyond it, up to which nothing is wasted: pages of a map.
const WASTE_SHARE: f64 = 0.02;

/// The same share up to which the flash programs a length as it is: less than a block of 4 KiB in the longest.
const TIGHT_SHARE: f64 = 0.005;

/// The write unit of a drive that tells what it programs: the shortest length that is programmed without waste, as all
/// its multiples are; absent where nothing is wasted at any length. Where every length up to the longest is wasteful,
/// what one block makes the flash program.
fn counted_unit(lengths: &[ByteSize], waste: &[(usize, u64)]) -> Option<(Figure<u64>, String)> {
    if waste.is_empty() {
        return None;
    }
    let written: u64 = waste.iter().map(|&(i, _)| lengths[i].bytes()).sum();
    let programmed: u64 = waste.iter().map(|(_, programmed)| programmed).sum();
    let bearable = |written: u64| (1.0 + WASTE_SHARE) * written as f64;
    let one_block = typical(waste, 0) as f64;
    if programmed as f64 <= bearable(written) && one_block <= bearable(lengths[0].bytes()) {
        return Some((Figure::absent(), "writes of every length are programmed without padding".to_owned()));
    }
    let needed: Vec<u64> = (0..lengths.len()).map(|i| least(waste, i)).collect();
    let is_tight = |i: usize| needed[i] > 0 && needed[i] as f64 <= (1.0 + TIGHT_SHARE) * lengths[i].bytes() as f64;
    let tight = (0..lengths.len()).find(|&i| {
        let multiples = (i..lengths.len()).filter(|&j| lengths[j].is_multiple_of(lengths[i]));
        let (fit, all) = multiples.fold((0, 0), |(fit, all), j| (fit + usize::from(is_tight(j)), all + 1));
        // The longest ones have no multiple: chance may make one fit.
        is_tight(i) && fit * 10 >= all * 9 && (all > 1 || needed[0] == lengths[i].bytes())
    });
    match tight {
        Some(i) => {
            let unit = lengths[i].bytes();
            let reason = format!(
                "whole multiples of {} are programmed without padding, shorter writes with padding",
                lengths[i]
            );
            Some((Figure::certain(unit, unit, unit), reason))
        }
        None => {
            let unit = needed[0];
            let longer = unit > lengths.last().map_or(0, |longest| longest.bytes());
            let reason = format!("a write of one block programs {}", ByteSize(unit));
            longer.then(|| (Figure::certain(unit, unit, unit), reason))
        }
    }
}

/// What writes of a length made the flash program.
fn programmed_for(waste: &[(usize, u64)], i: usize) -> Vec<u64> {
    waste.iter().filter(|(of, _)| *of == i).map(|&(_, programmed)| programmed).collect()
}

/// The median of what a length made the flash program; collection may add to single ones.
fn typical(waste: &[(usize, u64)], i: usize) -> u64 {
    median(programmed_for(waste, i).into_iter().map(|programmed| programmed as f64).collect()) as u64
}

/// The lower tenth of it: collection and pages of a map that is kept on flash add to most long writes, and take nothing
/// away.
fn least(waste: &[(usize, u64)], i: usize) -> u64 {
    let mut programmed = programmed_for(waste, i);
    programmed.sort_unstable();
    programmed.get(programmed.len() / 10).copied().unwrap_or(0)
}

/// Standard error of the points' medians as a share of them; of the points, the median.
fn typical_error(points: &[Samples]) -> f64 {
    median(points.iter().map(|point| standard_error(&point.interval()) / point.median().max(1.0)).collect())
}

/// The last length before the first jump that the link's time for more bytes does not explain.
fn first_stair(lengths: &[ByteSize], points: &[Samples]) -> Option<ByteSize> {
    let medians: Vec<f64> = points.iter().map(Samples::median).collect();
    let errors: Vec<f64> = points.iter().map(|point| standard_error(&point.interval())).collect();
    let grown = |i: usize| (lengths[i + 1] - lengths[i]).bytes() as f64;
    let slopes =
        (0..lengths.len() - 1).filter(|&i| lengths[i] >= STEP).map(|i| (medians[i + 1] - medians[i]) / grown(i));
    let slope = median(slopes.collect()).max(0.0);
    (0..lengths.len() - 1)
        .find(|&i| {
            let jump = medians[i + 1] - medians[i] - slope * grown(i);
            let error = errors[i].hypot(errors[i + 1]);
            jump > STAIR_SHARE_MIN * medians[i] && jump > STAIR_STANDARD_ERRORS * error
        })
        .map(|i| lengths[i])
}

/// What the verdict of the stripe rests on, beside the same estimate on resampled reads.
struct StripeEvidence {
    stripe: Option<u64>,
    write_unit: Option<u64>,
    /// Whether the same pieces, written once more behind a single block, showed another one.
    depends_on_what_came_before: bool,
}

/// Why a stripe may be inconclusive.
const STRIPE_DOUBTS: [Doubt<StripeEvidence>; 2] = [
    doubt(
        "shorter than the write unit",
        Wording::Instead(
            "data written in longer pieces reads back no faster, in the next shorter pieces slower, but those are \
             parts of one write unit",
        ),
        |evidence| evidence.stripe.zip(evidence.write_unit).is_some_and(|(stripe, unit)| stripe < unit),
    ),
    doubt_of_either(
        "it depends on the write before",
        Wording::Then("; but the same pieces, written again after a single block, read back differently"),
        |evidence| evidence.depends_on_what_came_before,
    ),
];

/// Writes an area in durable pieces of each length, then reads all areas back in random order. Once more behind a
/// single block: where pieces continue where the one before ended, what came before decides which of them are in one
/// place.
pub(crate) fn probe_read_back(
    prober: &mut Prober<'_>,
    (buffer, WriteUnit(unit)): (WriteBuffer, WriteUnit),
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    let smallest = prober.logical_block().bytes().max(1024);
    let lengths: Vec<ByteSize> =
        (10..=19).map(|n| ByteSize(1 << n)).filter(|&l| l.bytes() >= smallest && l <= prober.longest()).collect();
    let mut order = prober.shuffled(0..lengths.len());
    let points = read_back(prober, buffer, &lengths, &order, progress)?;
    let would_be_seen = typical_error(&points) < EQUAL_SHARE_MAX / 2.0 && is_flat(&points);
    let stripe = figure(&points, &mut prober.random, would_be_seen, |points| {
        last_improvement(&lengths, points).map(|length| length.bytes())
    });
    let mut evidence =
        StripeEvidence { stripe: stripe.value, write_unit: unit.value, depends_on_what_came_before: false };
    if stripe.verdict != Verdict::Inconclusive && prober.effort == Effort::Thorough {
        order.reverse();
        prober.durable_write(ByteSize(0), STEP.max(prober.logical_block()))?;
        let again = read_back(prober, buffer, &lengths, &order, progress)?;
        let stripe = last_improvement(&lengths, &again).map(ByteSize::bytes);
        evidence.depends_on_what_came_before = stripe != evidence.stripe;
    }
    let doubts = applying(&STRIPE_DOUBTS, &evidence);
    let recipe = "areas written in durable pieces of 1 to 512 KiB each, then read in large reads, one at a time";
    let reason = doubts.reason(match stripe.value {
        Some(_) => "data written in longer pieces reads back no faster, in the next shorter pieces slower",
        None => "the length of the pieces makes no lasting difference",
    });
    draft.settle(key!(stripe_bytes), doubts.judge(stripe), Because { recipe, reason, curve: None });
    let read_bytes = READ_BACK_MAX.min(prober.longest()).bytes();
    draft.curves.read_back = std::iter::zip(&lengths, &points)
        .map(|(length, point)| ReadBackPoint { write_bytes: length.bytes(), read_bytes, latency_ns: point.interval() })
        .collect();
    Ok(())
}

/// Writes an area in durable pieces of each length, the lengths in an order, and measures how long reading back takes.
fn read_back(
    prober: &mut Prober<'_>,
    buffer: WriteBuffer,
    lengths: &[ByteSize],
    order: &[usize],
    progress: &mut dyn Progress,
) -> Result<Vec<Samples>, LearnError> {
    let (areas, end) = prober.areas(AREA, lengths.len());
    for (n, &i) in order.iter().enumerate() {
        prober.advance(progress, "writing in pieces", n as f64 / lengths.len() as f64)?;
        for piece in 0..AREA / lengths[i] {
            prober.durable_write(areas[i] + lengths[i] * piece, lengths[i])?;
        }
    }
    push_out(prober, buffer, end)?;
    let length = READ_BACK_MAX.min(prober.longest());
    let parts = AREA / length;
    let visits = (0..lengths.len()).flat_map(|i| (0..parts).map(move |part| (i, part)));
    let reads = reads_a_part(prober.effort);
    let visits = visits.flat_map(|visit| std::iter::repeat_n(visit, reads));
    let visits = prober.shuffled(visits);
    let mut samples = vec![Vec::new(); lengths.len()];
    for (n, &(i, part)) in visits.iter().enumerate() {
        if n.is_multiple_of(50) {
            prober.advance(progress, "reading back", n as f64 / visits.len() as f64)?;
        }
        samples[i].push(prober.read(areas[i] + length * part, length)?.0);
    }
    Ok(samples.into_iter().map(Samples::new).collect())
}

/// Writes, in order behind an offset, twice what the write buffer holds, and lets the drive come to rest: where nothing
/// can be lost it would keep what was written last, and answer reads of it.
fn push_out(prober: &mut Prober<'_>, buffer: WriteBuffer, behind: ByteSize) -> Result<(), LearnError> {
    let held = buffer.bytes();
    let (length, room) = (READ_BACK_MAX.min(prober.longest()), prober.region() - behind);
    let places = (room / length).max(1);
    for n in 0..(2 * held).div_ceil(length.bytes()) {
        prober.write(behind + length * (n % places), length)?;
    }
    prober.come_to_rest()
}

/// What stands for reads of one length: above what a cache answers, as long as that is less than two in three.
fn slower(samples: &Samples) -> f64 {
    samples.quantile(SLOWER_QUANTILE)
}

/// Share of the reads of one length that are faster than what stands for them.
const SLOWER_QUANTILE: f64 = 0.7;

/// Whether data reads back equally fast however it was written.
fn is_flat(points: &[Samples]) -> bool {
    let best = points.last().map_or(0.0, slower);
    points.iter().all(|point| (slower(point) / best - 1.0).abs() <= EQUAL_SHARE_MAX)
}

/// The shortest length from which on nothing reads back slower than what was written in the longest pieces, if all
/// shorter ones do, and the next one clearly: where some short ones read back as fast, where the pieces fell made
/// others slow.
fn last_improvement(lengths: &[ByteSize], points: &[Samples]) -> Option<ByteSize> {
    let best = slower(points.last()?);
    let excess = |i: usize| slower(&points[i]) / best - 1.0;
    let first_equal = (0..lengths.len()).rev().take_while(|&i| excess(i).abs() <= EQUAL_SHARE_MAX).last()?;
    let all_slower = (0..first_equal).all(|i| excess(i) > EQUAL_SHARE_MAX);
    (first_equal > 0 && all_slower && excess(first_equal - 1) >= SLOWER_SHARE_MIN).then(|| lengths[first_equal])
}

const _: () = assert!(AREA.bytes() * 10 <= crate::REGION_BYTES_MIN.bytes());
const _: () = assert!(SECTION.bytes() >= LONGEST_WRITE.bytes());

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(latencies: &[u64]) -> Vec<Samples> {
        latencies.iter().map(|&latency| Samples::new(vec![latency; 9])).collect()
    }

    #[test]
    fn pieces_that_read_back_slower_than_shorter_ones_show_no_stripe() {
        let lengths: Vec<ByteSize> = [8, 16, 32, 64].map(ByteSize::kib).to_vec();
        let stripe = |latencies: &[u64]| last_improvement(&lengths, &exact(latencies));
        assert_eq!(stripe(&[900, 880, 750, 750]), Some(ByteSize::kib(32)));
        assert_eq!(stripe(&[900, 750, 960, 750]), None);
    }

    #[test]
    fn the_first_stair_is_the_write_unit_even_where_parts_of_a_page_cost_more() {
        let lengths: Vec<ByteSize> = [2, 4, 8, 12, 16, 20, 24, 28].map(ByteSize::kib).to_vec();
        let points = exact(&[900, 700, 701, 702, 703, 800, 801, 802]);
        assert_eq!(first_stair(&lengths, &points), Some(ByteSize::kib(16)));
    }

    #[test]
    fn the_unit_behind_a_buffer_is_where_waste_ends() {
        let lengths: Vec<ByteSize> = [512, 1024, 2048, 4096, 8192].map(ByteSize).to_vec();
        let unit = |wasted: &[f64]| unit_of(&lengths, wasted).map(|(figure, _)| (figure.verdict, figure.value));
        assert_eq!(unit(&[8.1, 4.0, 2.0, 1.0, 1.1]), Some((Verdict::Certain, Some(4096))));
        assert_eq!(unit(&[1.1, 1.0, 1.0, 1.0, 1.0]), Some((Verdict::Absent, None)));
        assert_eq!(unit(&[8.0, 4.0, 1.3, 1.0, 1.0]), Some((Verdict::Inconclusive, Some(4096))));
        assert_eq!(unit(&[8.0, 8.0, 8.0, 8.0, 8.0]), None, "wasteful at every length");
    }

    #[test]
    fn what_is_added_to_most_writes_hides_no_unit() {
        // Units of 16 KiB; the longer a write, the more often a page of the map is programmed as well.
        let lengths: Vec<ByteSize> = (1..=64).map(|n| STEP * n).collect();
        let whole = |length: ByteSize| length.bytes().next_multiple_of(16 << 10);
        let of = |i: usize, n: usize| (i, whole(lengths[i]) + if 24 - n < 20 * i / 64 { 16 << 10 } else { 0 });
        let waste: Vec<(usize, u64)> =
            (0..64).flat_map(|i| (0..24).map(move |n| (i, n))).map(|(i, n)| of(i, n)).collect();
        let (told, _) = counted_unit(&lengths, &waste).unwrap();
        assert_eq!((told.verdict, told.value), (Verdict::Certain, Some(16 << 10)));
        // Of lengths that have no multiple here, one fits by chance.
        let by_chance: Vec<(usize, u64)> = waste
            .iter()
            .map(|&(i, programmed)| (i, programmed + if lengths[i] == ByteSize::kib(144) { 0 } else { 8_192 }))
            .collect();
        assert!(counted_unit(&lengths, &by_chance).is_none());
    }

    #[test]
    fn what_a_buffer_programs_within_a_durable_write_is_not_that_write_s_own() {
        // The buffer programs four blocks of 4 KiB whenever it has them, whichever write comes then.
        let lengths: Vec<ByteSize> = (1..=8).map(|n| STEP * n).collect();
        let mut held = 0;
        let visits = (0..lengths.len() * 24).map(|n| (n * 5) % lengths.len());
        let waste: Vec<(usize, u64)> = visits
            .map(|i| {
                held += lengths[i].bytes();
                let programmed = held / (16 << 10) * (16 << 10);
                held -= programmed;
                (i, programmed)
            })
            .collect();
        assert!(completes_before_it_programs(&waste));
        let own: Vec<(usize, u64)> = waste.iter().map(|&(i, _)| (i, lengths[i].bytes().max(16 << 10))).collect();
        assert!(!completes_before_it_programs(&own) && !completes_before_it_programs(&[]));
    }

    #[test]
    fn a_line_has_no_stair() {
        let lengths: Vec<ByteSize> = (1..=8).map(|n| STEP * n).collect();
        let points = exact(&[100, 110, 120, 130, 140, 150, 160, 170]);
        assert_eq!(first_stair(&lengths, &points), None);
    }

    #[test]
    fn the_stripe_is_where_reading_back_stops_improving() {
        let lengths: Vec<ByteSize> = (0..6).map(|n| ByteSize::kib(4 << n)).collect();
        assert_eq!(last_improvement(&lengths, &exact(&[471, 542, 272, 228, 228, 227])), Some(ByteSize::kib(32)));
        assert_eq!(last_improvement(&lengths, &exact(&[228, 228, 229, 228, 228, 227])), None);
    }
}
