//! Garbage collection: when it sets in, what it costs, and what it works on.
//!
//! ```text
//!   trim ▶ fill in order ▶ random overwrites … onset … steady ▶ 80/20 … steady ▶ trim half … steady ▶ passes in order
//!          SLC cache,       onset       cost, WA, α while      WA, skewed         gain by trim        superblock,
//!          sustained speed              collecting                                                   spare room
//! ```
//!
//! The whole drive is written several times over, so this is for drives that are small, simulated, or bought for it;
//! what a write budget does not allow is not begun.
//!
//! - **Cache of fast cells**: `slc_cache.rs`. **Onset and room**: `onset.rs` and `superblock.rs`.
//! - **Steady state.** Rounds of an eighth of what is written to, shorter where a drive programs as much as that is in less,
//!   until their later half has no trend and a known mean ([`steady`](crate::stats::steady)).
//!
//! Source: the protocol (fill, overwrite several times, WA from physical bytes) is SSD-iq's, PVLDB 18(11), 2025; the
//! steady state SNIA's; PELT Killick et al. 2012.

mod onset;
mod slc_cache;
mod superblock;

use std::ops::Range;

use flashwise_block::{ByteSize, FlashCounters, Nanos, Operation, Progress, Request};
use flashwise_profile::{Figure, ProbeCurve, ProbePoint, Verdict};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use crate::LearnError;
use crate::findings::{Because, Findings, measured, median_interval, whole, widened};
use crate::prober::{Prober, SECTION, anywhere};
use crate::stats::joined_rate;
use crate::stats::steady::{Settled, level, settled, wandering};

use super::latency;
use super::throughput::{TOLERANCE, settling};
use onset::{OVERWRITES, tells};

const BLOCK: ByteSize = ByteSize::kib(4);
/// Requests in flight of the overwrites.
const DEPTH: u32 = 256;
/// Large writes in flight in passes in order.
const PASS_DEPTH: usize = 32;
/// Writes of a window of a pass at least: they end in bursts.
const WINDOW_WRITES: u64 = 8;
/// Windows of the fill, and of one overwrite of the whole drive until the onset.
const FILL_WINDOWS: u64 = 200;
const ONSET_WINDOWS: u64 = 400;
/// Rounds that make up what is written to, for the steady state, and windows of one round.
const A_PASS_ROUNDS: u64 = 8;
const A_ROUND_WINDOWS: u64 = 8;
/// Rounds before which the drive is not asked whether it is steady: what was written last must have replaced what was
/// there before. Coming from a fill, and coming from a steady state of another kind.
const ROUNDS_MIN: (usize, usize) = (22, 14);
/// Half as many rounds do where the drive tells that it programmed so many times what is written to: then what it moved has
/// mixed what was there before, not the writes alone.
const TURNED_OVER: f64 = 7.0;
/// Steady where the mean is known to within this share.
const KNOWN_SHARE: f64 = 0.04;
/// Overwrites after which a drive that is not steady is given up: so many, on large drives fewer.
const OVERWRITES_MAX: u64 = 12;
const OVERWRITES_MIN: u64 = 4;
/// What they may come to on drives in between.
const OVERWRITTEN_MAX: ByteSize = ByteSize::gib(16);
/// What a drive may program from the fill on, where it tells, and how often what is written to where that is more: a map that does
/// not fit its memory can make it program hundreds of times what is written, more and more of it, and each time costs it a
/// part of its life.
const PROGRAMMED_MAX: ByteSize = ByteSize::gib(96);
const TURNOVERS_MAX: u64 = 8;
/// Where the first overwrites are given up so, what follows is of no steady state either, and gets this part of what the fill left
/// to them.
const HOPELESS: u64 = 4;
/// Overwrites that all of this takes at most, for asking whether the budget allows it.
const PASSES: u64 = 11;
/// What is written at most without being asked to, on drives of this kind.
pub(crate) const UNASKED: ByteSize = ByteSize::gib(100);

const ROOM_FIGURES: [&str; 2] = ["over_provisioning", "collection_onset_bytes"];
pub(crate) const FIGURES: [&str; 13] = [
    "over_provisioning",
    "collection_onset_bytes",
    "collection_cost",
    "write_amplification_uniform",
    "write_amplification_skewed",
    "asymmetry_4k_collecting",
    "asymmetry_8k_collecting",
    "latency_asymmetry_4k_collecting",
    "latency_asymmetry_8k_collecting",
    "superblock_bytes",
    "slc_cache_bytes",
    "sustained_write_bytes_per_s",
    "trim_gain",
];

/// Why the whole drive cannot be written over and over; `None` where it can.
pub(crate) fn obstacle(prober: &Prober<'_>, whole_drive: bool, asked: Option<ByteSize>) -> Option<String> {
    if !whole_drive {
        return Some("a file is not the drive: what is beside it on the drive decides as well".to_owned());
    }
    let needed = prober.capacity() * PASSES;
    let limit = asked.unwrap_or(prober.written() + UNASKED);
    (prober.written() + needed > limit)
        .then(|| format!("needs up to {needed} of writes, {PASSES} times the drive; allowed are {limit}"))
}

/// What happened in one window of writes.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// Host bytes.
    bytes: u64,
    /// Writes a second.
    rate: f64,
    /// Flash bytes ÷ host bytes, where the drive tells.
    amplification: Option<f64>,
    /// Erases, where it counts them.
    erases: Option<u64>,
}

/// Measures everything that needs the whole drive.
pub(crate) fn probe(
    prober: &mut Prober<'_>,
    findings: &mut Findings,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    let began = Mark::now(prober);
    fill(prober, findings, progress)?;
    let capacity = prober.capacity();
    let wears = PROGRAMMED_MAX.max(capacity * TURNOVERS_MAX);
    let left = ByteSize(wears.bytes().saturating_sub(began.programmed(prober).bytes())).max(capacity);
    let mut everywhere = anywhere(capacity, BLOCK);
    let (name, rounds) = (OVERWRITES, ROUNDS_MIN.0);
    let of = Load { bytes: capacity, windows: ONSET_WINDOWS, rounds_min: rounds, wears: left };
    let windows = until_steady(prober, of, name, &mut everywhere, progress)?;
    let (wears, hopeless) = if windows.is_given_up { (left, HOPELESS) } else { (wears, 1) };
    let wears = ByteSize(wears.bytes() / hopeless);
    let pass_wears = ByteSize(capacity.bytes() * TURNOVERS_MAX / hopeless);
    onset::tell(findings, capacity, &windows.all);
    onset::nothing_is_moved(findings, &windows);
    tell_amplification(findings, "write_amplification_uniform", &windows, UNIFORM);
    asymmetries(prober, findings, &windows, progress)?;
    let (name, rounds) = ("80/20 overwrites", ROUNDS_MIN.1);
    let mut place = eighty_twenty(capacity);
    let of = Load { bytes: capacity, windows: A_PASS_ROUNDS * A_ROUND_WINDOWS, rounds_min: rounds, wears };
    let skewed = until_steady(prober, of, name, &mut place, progress)?;
    tell_amplification(findings, "write_amplification_skewed", &skewed, SKEWED);
    trim(prober, findings, &windows, wears, progress)?;
    superblock::probe(prober, findings, pass_wears, progress)?;
    slc_cache::doubt_what_it_hides(findings);
    latency::probe_durability_everywhere(prober, findings, progress)
}

const UNIFORM: &str = "uniform random 4 KiB writes over the whole filled drive, until steady";
const SKEWED: &str = "random 4 KiB writes, 80 % of them to the first 20 % of the drive, until steady";

/// Offsets of which four in five lie in the first fifth.
fn eighty_twenty(capacity: ByteSize) -> impl FnMut(&mut Pcg64Mcg) -> ByteSize {
    let blocks = capacity / BLOCK;
    let hot = blocks / 5;
    move |random| {
        let n =
            if random.random_range(0..5) < 4 { random.random_range(0..hot) } else { random.random_range(hot..blocks) };
        BLOCK * n
    }
}

/// Counts of one moment.
struct Mark {
    at_ns: u64,
    flash: Option<FlashCounters>,
}

impl Mark {
    fn now(prober: &Prober<'_>) -> Self {
        Self { at_ns: prober.now().0, flash: prober.counters().flash }
    }

    /// Flash bytes programmed from here until now, none where the drive does not tell.
    fn programmed(&self, prober: &Prober<'_>) -> ByteSize {
        let flash = prober.counters().flash.zip(self.flash);
        flash.map_or(ByteSize(0), |(now, then)| now.since(&then).bytes_programmed)
    }

    /// The window from here until now, of `requests` of `length`.
    fn window(&self, prober: &Prober<'_>, requests: u64, length: ByteSize) -> Window {
        let now = Self::now(prober);
        let bytes = (length * requests).bytes();
        let seconds = (now.at_ns - self.at_ns).max(1) as f64 / 1e9;
        let flash = now.flash.zip(self.flash).map(|(now, then)| now.since(&then));
        let amplification = flash.map(|flash| flash.bytes_programmed.bytes() as f64 / bytes as f64);
        Window { bytes, rate: requests as f64 / seconds, amplification, erases: flash.map(|flash| flash.erases) }
    }
}

// ---- the fill -------------------------------------------------------------------------------------------------------

/// One pass in order over the trimmed drive, which had time to empty its cache of fast cells. Where that shows one, a second pass
/// that rests when half of it is full.
fn fill(prober: &mut Prober<'_>, findings: &mut Findings, progress: &mut dyn Progress) -> Result<(), LearnError> {
    const NAME: &str = "fill in order";
    trim_all(prober)?;
    prober.come_to_rest()?;
    let windows = pass_in_order(prober, FILL_WINDOWS, "filling the drive", progress, &mut |_| true)?;
    let mib = |window: &Window| window.rate * prober.longest().bytes() as f64 / f64::from(1 << 20);
    let mut at = 0;
    let points = windows.iter().map(|window| {
        at += window.bytes;
        let y = mib(window);
        ProbePoint { x: at as f64 / f64::from(1 << 30), y, low: y, high: y }
    });
    findings.keep(ProbeCurve {
        name: NAME.to_owned(),
        x: "written, GiB".to_owned(),
        y: "MiB/s".to_owned(),
        points: points.collect(),
        fit: Vec::new(),
    });
    slc_cache::tell(findings, &windows, prober.longest(), NAME);
    let Some(cache) = findings.parameters.slc_cache_bytes.known() else { return Ok(()) };
    trim_all(prober)?;
    prober.come_to_rest()?;
    let half = ByteSize(cache / 2) / prober.longest();
    let pass = Pass { stage: "filling the drive again", ..Pass::whole(prober, FILL_WINDOWS, "") };
    in_order(prober, Pass { writes: 0..half, ..pass.clone() }, progress, &mut |_| true)?;
    prober.come_to_rest()?;
    let windows = in_order(prober, Pass { writes: half..pass.writes.end, ..pass }, progress, &mut |_| true)?;
    slc_cache::tell_again(findings, &windows, prober.longest(), NAME);
    Ok(())
}

/// Large writes in order.
#[derive(Clone)]
struct Pass {
    /// Of all that make up the drive, by number.
    writes: Range<u64>,
    /// Writes of a window.
    a_window: u64,
    stage: &'static str,
}

impl Pass {
    /// The whole drive, in so many windows or fewer.
    fn whole(prober: &Prober<'_>, windows: u64, stage: &'static str) -> Self {
        let writes = prober.capacity() / prober.longest();
        let a_window = (writes / windows).max(WINDOW_WRITES.min(writes / 8)).max(1);
        Self { writes: 0..writes, a_window, stage }
    }
}

/// Writes the whole drive once in order; `watch` is called after every completion, and says whether to go on.
fn pass_in_order(
    prober: &mut Prober<'_>,
    windows: u64,
    stage: &'static str,
    progress: &mut dyn Progress,
    watch: &mut dyn FnMut(&Prober<'_>) -> bool,
) -> Result<Vec<Window>, LearnError> {
    in_order(prober, Pass::whole(prober, windows, stage), progress, watch)
}

/// The same of a part of it.
fn in_order(
    prober: &mut Prober<'_>,
    Pass { writes, a_window, stage }: Pass,
    progress: &mut dyn Progress,
    watch: &mut dyn FnMut(&Prober<'_>) -> bool,
) -> Result<Vec<Window>, LearnError> {
    let length = prober.longest();
    let (first, count) = (writes.start, writes.end.saturating_sub(writes.start));
    let (mut submitted, mut done, mut seen) = (0, 0, Vec::new());
    let mut mark = Mark::now(prober);
    while done < count {
        while prober.in_flight() < PASS_DEPTH && submitted < count {
            prober.submit(Request::write(length * (first + submitted), length))?;
            submitted += 1;
        }
        if prober.wait()?.is_none() {
            break;
        }
        done += 1;
        let goes_on = watch(prober);
        if done % a_window == 0 {
            prober.advance(progress, stage, done as f64 / count as f64)?;
            seen.push(mark.window(prober, a_window, length));
            mark = Mark::now(prober);
        }
        if !goes_on {
            // The last window is as long as it came to be.
            let of_last = done % a_window;
            seen.extend((of_last > 0).then(|| mark.window(prober, of_last, length)));
            break;
        }
    }
    prober.flush()?;
    Ok(seen)
}

/// Trims the whole drive, where it can.
pub(crate) fn trim_all(prober: &mut Prober<'_>) -> Result<(), LearnError> {
    prober.flush()?;
    let (capacity, part) = (prober.capacity(), ByteSize::mib(64));
    for n in 0..capacity.bytes().div_ceil(part.bytes()) {
        let start = part * n;
        if !prober.trim(start, part.min(capacity - start))? {
            break;
        }
    }
    Ok(())
}

// ---- small writes ---------------------------------------------------------------------------------------------------

/// Measures what a drive that has nothing to collect programs for small writes: one that has never erased. On one that was
/// in use that cannot be told from what it moves.
pub(crate) fn probe_small_writes(
    prober: &mut Prober<'_>,
    findings: &mut Findings,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    if !prober.never_erased() {
        return Ok(());
    }
    prober.advance(progress, "small writes", 0.0)?;
    prober.flush()?;
    let depth = DEPTH.min(prober.queue_depth().max(1)) as usize;
    let mut place = anywhere(prober.region(), BLOCK);
    let (begin, mut under_way) = (Mark::now(prober), None);
    for n in 1..=SMALL_WRITES / A_BATCH {
        prober.keep_in_flight(Operation::Write, BLOCK, depth, A_BATCH, &mut place)?;
        if !prober.never_erased() {
            return Ok(());
        }
        // A drive that wastes much erases before the end: then what counts is what it programmed in between.
        let (first, mark) = under_way.get_or_insert_with(|| (n, Mark::now(prober)));
        if n > *first {
            findings.padding = mark.window(prober, ((n - *first) * A_BATCH) as u64, BLOCK).amplification;
        }
    }
    let in_flight = prober.in_flight();
    prober.flush()?;
    if prober.never_erased() {
        findings.padding = begin.window(prober, (SMALL_WRITES + in_flight) as u64, BLOCK).amplification;
    }
    Ok(())
}

/// Writes in all, and between two looks.
const SMALL_WRITES: usize = 16_384;
const A_BATCH: usize = 512;

// ---- overwrites -----------------------------------------------------------------------------------------------------

/// Random overwrites until the steady state.
struct Overwritten {
    all: Vec<Window>,
    /// Windows that make up what was written to.
    a_pass: u64,
    /// The windows joined.
    rounds: Vec<Window>,
    is_steady: bool,
    /// Whether they ended because the drive programmed too much.
    is_given_up: bool,
}

/// What is written over and over.
#[derive(Clone, Copy)]
struct Load {
    bytes: ByteSize,
    /// Windows that make up that.
    windows: u64,
    /// Rounds before which nobody asks.
    rounds_min: usize,
    /// What the drive may program meanwhile.
    wears: ByteSize,
}

/// What decides whether a drive is steady: flash bytes for each host byte where it tells, else time.
fn response(window: &Window) -> f64 {
    window.amplification.unwrap_or(1e9 / window.rate)
}

impl Overwritten {
    fn responses(&self) -> Vec<f64> {
        self.rounds.iter().map(response).collect()
    }

    /// Whether what was written to `bytes` replaced what was there before.
    fn has_replaced(&self, bytes: ByteSize, rounds_min: usize) -> bool {
        let programmed: Option<f64> = self.rounds.iter().map(programmed).sum();
        let rounds_min = match programmed {
            Some(programmed) if programmed >= TURNED_OVER * bytes.bytes() as f64 => rounds_min / 2,
            _ => rounds_min,
        };
        self.rounds.len() >= rounds_min
    }

    /// Whether both the response and the pace are steady: where small writes waste much, what is moved is a small part of
    /// what is programmed.
    fn has_settled(&self) -> bool {
        let paces: Vec<f64> = self.rounds.iter().map(|round| 1e9 / round.rate).collect();
        settled(&self.responses(), KNOWN_SHARE).is_some() && settled(&paces, KNOWN_SHARE).is_some()
    }

    /// Level of the response over the later half.
    fn level(&self) -> Settled {
        level(&self.responses())
    }

    fn verdict(&self) -> Verdict {
        if self.is_steady { Verdict::Certain } else { Verdict::Inconclusive }
    }
}

/// Flash bytes of a window, where the drive tells.
fn programmed(window: &Window) -> Option<f64> {
    Some(window.amplification? * window.bytes as f64)
}

fn join(windows: &[Window]) -> Window {
    let bytes: u64 = windows.iter().map(|window| window.bytes).sum();
    let seconds: f64 = windows.iter().map(|window| window.bytes as f64 / window.rate).sum();
    let programmed: Option<f64> = windows.iter().map(programmed).sum();
    let amplification = programmed.map(|p| p / bytes.max(1) as f64);
    let erases = windows.iter().map(|window| window.erases).sum();
    Window { bytes, rate: bytes as f64 / seconds.max(1e-9), amplification, erases }
}

/// Random writes until they are steady.
fn until_steady(
    prober: &mut Prober<'_>,
    Load { bytes, windows, rounds_min, wears }: Load,
    stage: &str,
    place: &mut dyn FnMut(&mut Pcg64Mcg) -> ByteSize,
    progress: &mut dyn Progress,
) -> Result<Overwritten, LearnError> {
    let a_window = (bytes / BLOCK / windows).max(1);
    let a_round = (windows / A_PASS_ROUNDS) as usize;
    let depth = DEPTH.min(prober.queue_depth().max(1)) as usize;
    let (all, rounds) = (Vec::new(), Vec::new());
    let mut seen = Overwritten { all, a_pass: windows, rounds, is_steady: false, is_given_up: false };
    let mut in_rounds = 0;
    let overwrites = (OVERWRITTEN_MAX / bytes).clamp(OVERWRITES_MIN, OVERWRITES_MAX);
    let most = windows * overwrites;
    let began = Mark::now(prober);
    while (seen.all.len() as u64) < most && !seen.is_steady && !seen.is_given_up {
        prober.advance(progress, stage, seen.all.len() as f64 / most as f64)?;
        let mark = Mark::now(prober);
        prober.keep_in_flight(Operation::Write, BLOCK, depth, a_window as usize, place)?;
        seen.all.push(mark.window(prober, a_window, BLOCK));
        seen.is_given_up = began.programmed(prober) > wears;
        let round = join(&seen.all[in_rounds..]);
        if seen.all.len() - in_rounds == a_round || programmed(&round) >= Some(bytes.bytes() as f64) {
            in_rounds = seen.all.len();
            seen.rounds.push(round);
            seen.is_steady = seen.has_replaced(bytes, rounds_min) && seen.has_settled();
        }
    }
    while prober.wait()?.is_some() {}
    seen.is_given_up &= !seen.is_steady;
    Ok(seen)
}

/// A drive that does not tell what it moves collects if overwrites make it slower by this factor at least.
const NO_SLOWER: f64 = 1.1;
/// Write amplification below which nothing is moved.
const NOTHING_MOVED: f64 = 1.02;
fn tell_amplification(findings: &mut Findings, key: &'static str, windows: &Overwritten, recipe: &str) {
    let told = windows.rounds.iter().all(|round| round.amplification.is_some());
    let Settled { mean, low, high } = windows.level();
    let (low, high) = widened(mean, low, high);
    let (figure, reason) = match (told, windows.is_steady) {
        (false, _) => (Figure::unknown(), "the drive does not tell what it programs".to_owned()),
        (true, true) => {
            (of_one_past(Figure::certain(mean, low, high)), "steady: no trend in the later half".to_owned())
        }
        (true, false) => (
            of_one_past(Figure::inconclusive(mean, low, high)),
            format!("not steady after {} overwrites", windows.all.len() as u64 / windows.a_pass),
        ),
    };
    let p = &mut findings.parameters;
    let slot = if key == "write_amplification_uniform" {
        &mut p.write_amplification_uniform
    } else {
        &mut p.write_amplification_skewed
    };
    *slot = figure;
    findings.because(key, Because { recipe, reason, curve: None });
}

/// α from saturated throughput and from latency while garbage is collected all the time.
fn asymmetries(
    prober: &mut Prober<'_>,
    findings: &mut Findings,
    uniform: &Overwritten,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    if findings.parameters.collection_onset_bytes.verdict == Verdict::Absent {
        let p = &mut findings.parameters;
        (p.asymmetry_4k_collecting, p.asymmetry_8k_collecting) = (Figure::absent(), Figure::absent());
        (p.latency_asymmetry_4k_collecting, p.latency_asymmetry_8k_collecting) = (Figure::absent(), Figure::absent());
        for key in FIGURES.iter().filter(|key| key.ends_with("_collecting")) {
            let reason = "nothing is ever collected".to_owned();
            findings.because(key, Because { recipe: UNIFORM, reason, curve: None });
        }
        return Ok(());
    }
    let rates: Vec<f64> = uniform.rounds.iter().map(|round| round.rate).collect();
    let later = rates[rates.len() / 2..].to_vec();
    let states = States::of(&rates, joined_rate(&later));
    let (turnovers, one_by_one) = match uniform.is_given_up {
        true => (1.0, 1),
        false => (TURNED_OVER, latency::TURNOVERS_MAX),
    };
    let mut four = while_collecting(prober, findings, ByteSize::kib(4), (later, one_by_one), progress)?;
    let rates = saturated_writes(prober, ByteSize::kib(8), turnovers, progress)?;
    let mut eight = while_collecting(prober, findings, ByteSize::kib(8), (rates, one_by_one), progress)?;
    four.saturated = states.widen(four.saturated, TOLERANCE);
    eight.saturated = states.widen(eight.saturated, TOLERANCE);
    let p = &mut findings.parameters;
    let moves = tells(&uniform.all) && uniform.level().mean >= NOTHING_MOVED;
    if let (Some(fresh), true) = (findings.saturated_writes_per_s, moves || p.collection_onset_bytes.value.is_some()) {
        let again = four.writes.iter().map(|rate| fresh / rate).collect();
        let cost = of_one_past(measured(fresh / joined_rate(&four.writes), again, 2.0 * TOLERANCE));
        p.collection_cost = states.widen(cost, 2.0 * TOLERANCE);
        if findings.fresh_writes_moved && p.collection_cost.verdict == Verdict::Certain {
            p.collection_cost.verdict = Verdict::Inconclusive;
        }
        let reason =
            format!("saturated 4 KiB writes a second on the fresh drive ÷ in the steady state{}", states.told());
        findings.because("collection_cost", Because { recipe: UNIFORM, reason, curve: None });
    }
    let told = uniform.all.iter().all(|window| window.amplification.is_some());
    if !told && findings.parameters.collection_cost.value.is_some_and(|cost| cost < NO_SLOWER) {
        let p = &mut findings.parameters;
        (p.collection_onset_bytes, p.over_provisioning, p.collection_cost) =
            (Figure::unknown(), Figure::unknown(), Figure::unknown());
        for key in ["collection_onset_bytes", "over_provisioning", "collection_cost"] {
            let reason = "the drive does not tell what it moves, and gets no slower".to_owned();
            findings.because(key, Because { recipe: UNIFORM, reason, curve: None });
        }
    }
    let p = &mut findings.parameters;
    (p.asymmetry_4k_collecting, p.asymmetry_8k_collecting) = (four.saturated, eight.saturated);
    (p.latency_asymmetry_4k_collecting, p.latency_asymmetry_8k_collecting) = (four.latency, eight.latency);
    for key in FIGURES.iter().filter(|key| key.ends_with("_collecting")) {
        let by_throughput = if key.starts_with("latency") { String::new() } else { states.told() };
        let reason = format!("the same as on the fresh drive, in the steady state of overwrites{by_throughput}");
        findings.because(key, Because { recipe: COLLECTING, reason, curve: None });
    }
    Ok(())
}

const COLLECTING: &str = "random writes of one length over the whole drive at the largest depth, for half of it or more, then \
                          measured for another half; then reads of what they wrote; then both one at a time";

/// Time in which a drive ends what it does in the background.
const AFTERMATH: Nanos = Nanos(1_000_000_000);
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

/// Requests a second at the largest depth, in batches of so many, after so many; after fewer, and in shorter ones, where those
/// make the drive program all that it holds so many times over.
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
    const STAGE: &str = "throughput while collecting";
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

/// After writes of a length that came to `writes` a second: how reads fare depends on what wrote the data. Writes one by one
/// may make the drive program what it holds so many times over.
fn while_collecting(
    prober: &mut Prober<'_>,
    findings: &Findings,
    length: ByteSize,
    (writes, turnovers): (Vec<f64>, u64),
    progress: &mut dyn Progress,
) -> Result<Collecting, LearnError> {
    let capacity = prober.capacity();
    // Where nothing can be lost a flush empties no buffer, which then goes to flash while reads are measured.
    let buffer = findings.parameters.write_buffer_bytes.value.unwrap_or(0);
    let drained = 1e9 * DRAINS * buffer as f64 / (joined_rate(&writes) * length.bytes() as f64).max(1.0);
    let quiet = |prober: &mut Prober<'_>| {
        prober.rest(Nanos(drained as u64))?;
        // Collection goes on for as long as it takes to have superblocks free again, and reads wait for it.
        prober.come_to_rest()
    };
    quiet(prober)?;
    let reads = batches(prober, Operation::Read, length, (READS, 2 * DEPTH as usize), TURNED_OVER, progress)?;
    // Collection comes in bursts, which a median would not see.
    let value = joined_rate(&reads) / joined_rate(&writes);
    let again = reads.iter().flat_map(|read| writes.iter().map(move |write| read / write)).collect();
    // Ratios of single batches spread more than the ratio of their means does.
    let spread = measured(value, again, 1.0);
    let shrink = |end: Option<f64>| end.map(|end| value + (end - value) / (writes.len() as f64).sqrt());
    let again = [shrink(spread.low), shrink(spread.high)].into_iter().flatten().collect();
    let saturated = of_one_past(measured(value, again, TOLERANCE));

    let settle = settling(prober.effort, findings.parameters.write_buffer_bytes.known());
    let writes_ns = latency::write_latencies(prober, capacity, length, (settle, turnovers), progress)?;
    quiet(prober)?;
    let reads_ns = latency::read_latencies(prober, capacity, length, progress)?;
    let latency = latency::ratio(&writes_ns, &reads_ns, &mut prober.random);
    Ok(Collecting { saturated, latency, writes })
}

/// Times that a buffer could be emptied at the pace of writes before reads are measured.
const DRAINS: f64 = 2.0;

// ---- trim -----------------------------------------------------------------------------------------------------------

/// What trimming half of the drive is worth to writes to the other half.
fn trim(
    prober: &mut Prober<'_>,
    findings: &mut Findings,
    uniform: &Overwritten,
    wears: ByteSize,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    let half = ByteSize(prober.capacity().bytes() / 2 / SECTION.bytes() * SECTION.bytes());
    let recipe = "the upper half of the steady drive is trimmed, then the lower half overwritten until steady";
    prober.flush()?;
    let mut at = half;
    while at < prober.capacity() {
        let length = ByteSize::mib(64).min(prober.capacity() - at);
        if !prober.trim(at, length)? {
            findings.parameters.trim_gain = Figure::absent();
            let reason = "the drive takes no trims".to_owned();
            findings.because("trim_gain", Because { recipe, reason, curve: None });
            return Ok(());
        }
        at += length;
    }
    let mut lower = anywhere(half, BLOCK);
    let (name, rounds) = ("overwrites after trim", ROUNDS_MIN.0);
    let of = Load { bytes: half, windows: A_PASS_ROUNDS * A_ROUND_WINDOWS, rounds_min: rounds, wears };
    let after = until_steady(prober, of, name, &mut lower, progress)?;
    let (before, now) = (uniform.level(), after.level());
    let gain = before.mean / now.mean;
    let figure = if (gain - 1.0).abs() < 0.03 {
        Figure::absent()
    } else {
        // The ends of the two intervals in the worst case, narrowed because they do not both come true.
        let narrowed = |end: f64| gain + (end - gain) / std::f64::consts::SQRT_2;
        let (low, high) = widened(gain, narrowed(before.low / now.high), narrowed(before.high / now.low));
        let verdict = if uniform.is_steady { after.verdict() } else { Verdict::Inconclusive };
        of_one_past(Figure { value: Some(gain), low: Some(low), high: Some(high), verdict })
    };
    findings.parameters.trim_gain = figure;
    let reason = format!("{:.2} before, {:.2} after", before.mean, now.mean);
    findings.because("trim_gain", Because { recipe, reason, curve: None });
    Ok(())
}

/// A speed while garbage is collected, or what is moved, with an interval that holds for other pasts of the drive too: what was
/// written before decides which of its units collect at the same time, and where what is seldom written lies.
fn of_one_past(figure: Figure<f64>) -> Figure<f64> {
    let Figure { value: Some(value), low: Some(low), high: Some(high), .. } = figure else { return figure };
    Figure { low: Some(low - OTHER_PASTS * value), high: Some(high + OTHER_PASTS * value), ..figure }
}

/// Share by which speeds of simulated drives with two pasts were seen to differ, beyond what all intervals allow for, where
/// they did not differ so much that there was nothing to tell.
const OTHER_PASTS: f64 = 0.04;

/// How much slower and faster than it was taken for a drive was, while it collected, over longer stretches: its units fall
/// into step and out of it.
struct States {
    slowest: f64,
    fastest: f64,
}

impl States {
    /// Of the pace of successive rounds, as shares of what was taken for it.
    fn of(rates: &[f64], taken: f64) -> Self {
        let (slowest, fastest) = wandering(rates).unwrap_or((taken, taken));
        Self { slowest: (slowest / taken).min(1.0), fastest: (fastest / taken).max(1.0) }
    }

    /// What is said of it behind a reason.
    fn told(&self) -> String {
        let percent = |share: f64| 100.0 * share;
        match self.slowest < 1.0 || self.fastest > 1.0 {
            true => format!(
                "; for long its pace was {:.0} to {:.0} % of what it is taken for",
                percent(self.slowest),
                percent(self.fastest)
            ),
            false => String::new(),
        }
    }

    /// A figure that is the larger the slower writes are, with an interval that holds in all these states; no longer certain
    /// where they make more of a difference than `tolerance`.
    fn widen(&self, figure: Figure<f64>, tolerance: f64) -> Figure<f64> {
        let Figure { value: Some(value), low: Some(low), high: Some(high), verdict } = figure else { return figure };
        let is_narrow = self.fastest <= 1.0 + tolerance && self.slowest >= 1.0 - tolerance;
        let verdict = if is_narrow { verdict } else { Verdict::Inconclusive };
        let (low, high) = (low.min(value / self.fastest), high.max(value / self.slowest));
        Figure { value: Some(value), low: Some(low), high: Some(high), verdict }
    }
}

/// Speed of the latest pass in order; its interval holds that of the pass before, of which what was written at random before
/// may have been in the way. Of one that did not come to its end it is not certain.
fn sustained(prober: &Prober<'_>, findings: &mut Findings, passes: &[Vec<Window>], is_cut: bool) {
    let Some((last, before)) = passes.split_last() else { return };
    let per_byte = prober.longest().bytes() as f64;
    let rates: Vec<f64> = last.iter().map(|window| window.rate * per_byte).collect();
    let (low, high) = median_interval(&rates);
    let pass = |windows: &[Window]| join(windows).rate * per_byte;
    let ends = before.last().map(|windows| pass(windows)).into_iter().chain([low, high]).collect();
    let mut figure = of_one_past(measured(pass(last), ends, 2.0 * TOLERANCE));
    if is_cut {
        figure.doubt();
    }
    findings.parameters.sustained_write_bytes_per_s = whole(figure);
    let recipe = "the drive is written in order, large writes, 32 in flight, again and again; the last pass";
    let reason = "speed of the whole pass".to_owned();
    findings.because("sustained_write_bytes_per_s", Because { recipe, reason, curve: None });
}

#[cfg(test)]
mod tests {
    use flashwise_block::Silent;
    use flashwise_ssd::{DeviceConfig, SimulatedSsd};

    use super::*;
    use crate::LearnOptions;

    /// A drive of 200 MiB.
    fn small() -> DeviceConfig {
        let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
        (config.flash.channels, config.flash.chips_per_channel, config.flash.dies_per_chip) = (4, 1, 1);
        (config.flash.blocks_per_plane, config.flash.pages_per_block) = (32, 64);
        config.ftl.gc.free_superblocks = Some(3);
        config.capacity_bytes = 200 << 20;
        config
    }

    #[test]
    fn a_drive_that_programs_too_much_until_it_is_steady_is_given_up() {
        let config = small();
        let overwritten = |wears: ByteSize| {
            let mut drive = SimulatedSsd::new(config.clone(), 1).unwrap();
            let capacity = ByteSize(config.capacity_bytes);
            let options = LearnOptions { region: capacity, ..LearnOptions::complete("small") };
            let mut prober = Prober::new(&mut drive, capacity, &options);
            pass_in_order(&mut prober, 8, "fill", &mut Silent, &mut |_| true).unwrap();
            let load = Load { bytes: capacity, windows: 64, rounds_min: ROUNDS_MIN.0, wears };
            let mut place = anywhere(capacity, BLOCK);
            let before = Mark::now(&prober);
            let seen = until_steady(&mut prober, load, "overwrites", &mut place, &mut Silent).unwrap();
            (seen, before.programmed(&prober))
        };
        let (steady, programmed) = overwritten(ByteSize::gib(64));
        assert!(steady.is_steady && !steady.is_given_up && programmed > ByteSize::gib(1), "{programmed}");
        let (given_up, programmed) = overwritten(ByteSize::mib(512));
        assert!(given_up.is_given_up && !given_up.is_steady);
        assert!(programmed > ByteSize::mib(512) && programmed < ByteSize::mib(640), "{programmed}");
        assert_eq!(given_up.verdict(), Verdict::Inconclusive);
    }

    #[test]
    fn a_pass_in_order_that_programs_too_much_ends_and_is_the_last() {
        let config = small();
        let capacity = ByteSize(config.capacity_bytes);
        let passes = |wears: ByteSize| {
            let mut drive = SimulatedSsd::new(config.clone(), 1).unwrap();
            let options = LearnOptions { region: capacity, ..LearnOptions::complete("small") };
            let mut prober = Prober::new(&mut drive, capacity, &options);
            let mut findings = Findings::default();
            superblock::probe(&mut prober, &mut findings, wears, &mut Silent).unwrap();
            (prober.counters().host_bytes_written, findings.parameters.sustained_write_bytes_per_s)
        };
        let (whole, certain) = passes(capacity * 2);
        assert!(whole > ByteSize(capacity.bytes() / 10 * 29), "{whole} of three times {capacity}");
        assert_eq!(certain.verdict, Verdict::Certain);
        // Less than one of the sixteen windows of a pass is done then, and 32 writes are in flight.
        let (cut, open) = passes(ByteSize(capacity.bytes() / 40));
        assert!(cut < ByteSize(capacity.bytes() / 4), "{cut} of {capacity}");
        assert_eq!(open.verdict, Verdict::Inconclusive);
        let (told, expected) = (open.value.unwrap() as f64, certain.value.unwrap() as f64);
        assert!(told > expected / 4.0 && told < expected * 4.0, "{told} bytes a second and not {expected}");
    }

    #[test]
    fn a_pace_that_changed_for_long_makes_what_depends_on_it_uncertain() {
        let rates = |first: f64| (0..48).map(|i| if i < 26 { first } else { 9_000.0 }).collect::<Vec<f64>>();
        let widened = |first| States::of(&rates(first), 9_000.0).widen(Figure::certain(6.6, 6.4, 6.8), TOLERANCE);
        let slower = widened(13_500.0);
        assert_eq!((slower.verdict, slower.value, slower.high), (Verdict::Inconclusive, Some(6.6), Some(6.8)));
        assert!((slower.low.unwrap() - 4.4).abs() < 0.1, "{slower:?}");
        let told = States::of(&rates(13_500.0), 9_000.0).told();
        assert!(told.ends_with("100 to 150 % of what it is taken for"), "{told}");
        let little = widened(9_300.0);
        assert_eq!((little.verdict, little.high), (Verdict::Certain, Some(6.8)));
        assert!((little.low.unwrap() - 6.6 * 9_000.0 / 9_300.0).abs() < 1e-9, "{little:?}");
        assert_eq!(widened(9_000.0), Figure::certain(6.6, 6.4, 6.8));
    }

    #[test]
    fn windows_join_by_bytes() {
        let window = |bytes, rate, wa| Window { bytes, rate, amplification: Some(wa), erases: Some(1) };
        let joined = join(&[window(100, 10.0, 1.0), window(300, 30.0, 2.0)]);
        assert_eq!((joined.bytes, joined.rate), (400, 20.0));
        assert!((joined.amplification.unwrap() - 1.75).abs() < 1e-12);
        assert_eq!(joined.erases, Some(2));
    }
}
