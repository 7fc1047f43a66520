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
//! - **Room.** Flash that was programmed has been erased since, or holds data or garbage. So what a drive has programmed in
//!   its life, less what it has erased, is what its flash holds, and when it keeps no more free than it must, that less what
//!   it offers is the room that data has to move in: over-provisioning, and, divided by what small writes waste, the onset
//!   of collection. It holds whatever the drive was used for before, and however it chooses what it collects.
//! - **Onset.** Where a drive does not count: before the onset the flash programs what the host writes; from then on more.
//!   The first lasting rise of write amplification, or fall of throughput, is told by ranks.
//! - **Steady state.** Rounds of an eighth of what is written to, until their later half has no trend and a known mean
//!   ([`steady`](crate::stats::steady)).
//! - **Superblock.** Passes in order leave nothing to move: each superblock is erased when the next is opened. The slope
//!   of bytes programmed over erases is its size, rounded to the unit in which the counter of programmed bytes moves.
//!   Only for drives that count erases.
//!
//! Source: the protocol (fill, overwrite several times, WA from physical bytes) is SSD-iq's, PVLDB 18(11), 2025; the
//! steady state SNIA's; PELT Killick et al. 2012.

use flashwise_block::{ByteSize, FlashCounters, Nanos, Operation, Progress, Request};
use flashwise_profile::{Figure, ProbeCurve, ProbePoint, Verdict};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use crate::LearnError;
use crate::findings::{Because, Findings, measured, median_interval, whole, widened};
use crate::prober::{Prober, SECTION, anywhere};
use crate::stats::steady::{Settled, level, settled};
use crate::stats::{median, pelt, rank};

use super::latency;
use super::throughput::{TOLERANCE, settling};

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
/// Windows of what is written to, for the steady state.
const STEADY_WINDOWS: u64 = 8;
/// Rounds before which the drive is not asked whether it is steady: what was written last must have replaced what was
/// there before. Coming from a fill, and coming from a steady state of another kind.
const ROUNDS_MIN: (usize, usize) = (22, 14);
/// Steady where the mean is known to within this share.
const KNOWN_SHARE: f64 = 0.04;
/// Overwrites after which a drive that is not steady is given up: so many, on large drives fewer.
const OVERWRITES_MAX: u64 = 12;
const OVERWRITES_MIN: u64 = 4;
/// What they may come to on drives in between.
const OVERWRITTEN_MAX: ByteSize = ByteSize::gib(16);
/// A change of level counts from this share on.
const CHANGE_SHARE: f64 = 0.15;
/// Overwrites that all of this takes at most, for asking whether the budget allows it.
const PASSES: u64 = 10;
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
}

/// Measures everything that needs the whole drive.
pub(crate) fn probe(
    prober: &mut Prober<'_>,
    findings: &mut Findings,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    fill(prober, findings, progress)?;
    let capacity = prober.capacity();
    let mut everywhere = anywhere(capacity, BLOCK);
    let (name, rounds) = (OVERWRITES, ROUNDS_MIN.0);
    let windows = until_steady(prober, capacity, (ONSET_WINDOWS, rounds), name, &mut everywhere, progress)?;
    onset(findings, capacity, &windows.all);
    nothing_is_moved(findings, &windows);
    tell_amplification(findings, "write_amplification_uniform", &windows, UNIFORM);
    asymmetries(prober, findings, &windows, progress)?;
    let (name, rounds) = ("80/20 overwrites", ROUNDS_MIN.1);
    let mut place = eighty_twenty(capacity);
    let skewed = until_steady(prober, capacity, (STEADY_WINDOWS, rounds), name, &mut place, progress)?;
    tell_amplification(findings, "write_amplification_skewed", &skewed, SKEWED);
    trim(prober, findings, &windows, progress)?;
    superblock(prober, findings, progress)
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

    /// The window from here until now, of `requests` of `length`.
    fn window(&self, prober: &Prober<'_>, requests: u64, length: ByteSize) -> Window {
        let now = Self::now(prober);
        let bytes = (length * requests).bytes();
        let seconds = (now.at_ns - self.at_ns).max(1) as f64 / 1e9;
        let programmed = now.flash.zip(self.flash).map(|(now, then)| now.since(&then).bytes_programmed.bytes());
        let amplification = programmed.map(|programmed| programmed as f64 / bytes as f64);
        Window { bytes, rate: requests as f64 / seconds, amplification }
    }
}

// ---- the fill -------------------------------------------------------------------------------------------------------

/// One pass in order over the trimmed drive.
fn fill(prober: &mut Prober<'_>, findings: &mut Findings, progress: &mut dyn Progress) -> Result<(), LearnError> {
    const NAME: &str = "fill in order";
    trim_all(prober)?;
    let windows = pass_in_order(prober, FILL_WINDOWS, "filling the drive", progress, &mut |_| {})?;
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
    slc_cache(prober, findings, &windows, NAME);
    Ok(())
}

/// The first lasting fall of the fill's speed, and what it falls to. What the write buffer takes is left aside.
fn slc_cache(prober: &Prober<'_>, findings: &mut Findings, windows: &[Window], curve: &str) {
    let buffer = 2 * findings.parameters.write_buffer_bytes.value.unwrap_or(0);
    let mut at = 0;
    let behind_buffer = windows.iter().take_while(|window| {
        at += window.bytes;
        at <= buffer
    });
    let (before, windows) = windows.split_at(behind_buffer.count().min(windows.len() / 2));
    let before: u64 = before.iter().map(|window| window.bytes).sum();
    let rates: Vec<f64> = windows.iter().map(|window| window.rate * prober.longest().bytes() as f64).collect();
    let falls: Vec<usize> = pelt::confirmed(&rates, CHANGE_SHARE)
        .into_iter()
        .filter(|&cut| median(rates[cut..].to_vec()) < median(rates[..cut].to_vec()))
        .filter(|&cut| !collects(&windows[cut..]))
        .collect();
    let recipe = "the trimmed drive is filled in order with large writes, 32 in flight";
    let p = &mut findings.parameters;
    let reason = match falls.first() {
        Some(&cut) => {
            let size = before + where_speed_falls(windows, cut);
            let step = windows[0].bytes;
            p.slc_cache_bytes = Figure::certain(size, size.saturating_sub(2 * step), size + 2 * step);
            format!("speed falls after {}", ByteSize(size))
        }
        None if windows.len() < WINDOWS_MIN && begins_faster(windows) => {
            "speed falls, but the drive is too small to tell where".to_owned()
        }
        None => {
            p.slc_cache_bytes = Figure::absent();
            "speed stays to the end".to_owned()
        }
    };
    findings.because("slc_cache_bytes", Because { recipe, reason, curve: Some(curve) });
}

/// Windows of a fill without which a fall of speed need not show as a change of level.
const WINDOWS_MIN: usize = 40;

/// Whether the first eighth of a pass was written faster than the rest.
fn begins_faster(windows: &[Window]) -> bool {
    let (first, rest) = windows.split_at((windows.len() / 8).max(1).min(windows.len()));
    join(first).rate > (1.0 + CHANGE_SHARE) * join(rest).rate
}

/// Whether the drive tells that it moves data meanwhile, which makes writes slower as well.
fn collects(windows: &[Window]) -> bool {
    join(windows).amplification.is_some_and(|amplification| amplification > COLLECTS)
}

/// Flash bytes for each host byte from which on data is moved, in writes that are as long as they can be.
const COLLECTS: f64 = 1.05;

/// Bytes until the speed falls, from a cut between windows: so many at the speed before and the rest at that after take
/// as long as the windows next to the cut did.
fn where_speed_falls(windows: &[Window], cut: usize) -> u64 {
    let (from, to) = (cut.saturating_sub(2).max(1), (cut + 2).min(windows.len() - 1));
    let sum = |windows: &[Window]| windows.iter().map(|window| window.bytes).sum::<u64>() as f64;
    let seconds = |windows: &[Window]| windows.iter().map(|window| window.bytes as f64 / window.rate).sum::<f64>();
    let pace = |windows: &[Window]| seconds(windows) / sum(windows).max(1.0);
    let (before, around, after) = (&windows[..from], &windows[from..to], &windows[to..]);
    let (fast, slow) = (pace(before), pace(after));
    // What was in flight when the speed fell makes one window slower than all that follow.
    let around_s: f64 = around.iter().map(|window| (1.0 / window.rate).min(slow) * window.bytes as f64).sum();
    let at_fast = (slow * sum(around) - around_s) / (slow - fast);
    (sum(before) + at_fast.clamp(0.0, sum(around))) as u64
}

/// Writes the whole drive once in order; `watch` is called after every completion.
fn pass_in_order(
    prober: &mut Prober<'_>,
    windows: u64,
    stage: &str,
    progress: &mut dyn Progress,
    watch: &mut dyn FnMut(&Prober<'_>),
) -> Result<Vec<Window>, LearnError> {
    let length = prober.longest();
    let writes = prober.capacity() / length;
    let a_window = (writes / windows).max(WINDOW_WRITES.min(writes / 8)).max(1);
    let (mut submitted, mut done, mut seen) = (0, 0, Vec::new());
    let mut mark = Mark::now(prober);
    while done < writes {
        while prober.in_flight() < PASS_DEPTH && submitted < writes {
            prober.submit(Request::write(length * submitted, length))?;
            submitted += 1;
        }
        if prober.wait()?.is_none() {
            break;
        }
        watch(prober);
        done += 1;
        if done % a_window == 0 {
            prober.advance(progress, stage, done as f64 / writes as f64)?;
            seen.push(mark.window(prober, a_window, length));
            mark = Mark::now(prober);
        }
    }
    prober.flush()?;
    Ok(seen)
}

/// Trims the whole drive, where it can.
fn trim_all(prober: &mut Prober<'_>) -> Result<(), LearnError> {
    prober.flush()?;
    let (capacity, part) = (prober.capacity(), ByteSize::mib(64));
    for n in 0..capacity.bytes().div_ceil(part.bytes()) {
        let start = part * n;
        let _ = prober.trim(start, part.min(capacity - start));
    }
    Ok(())
}

// ---- the onset ------------------------------------------------------------------------------------------------------

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
    let mark = Mark::now(prober);
    prober.keep_in_flight(Operation::Write, BLOCK, depth, SMALL_WRITES, &mut place)?;
    let in_flight = prober.in_flight();
    prober.flush()?;
    let window = mark.window(prober, (SMALL_WRITES + in_flight) as u64, BLOCK);
    findings.padding = window.amplification.filter(|_| prober.never_erased());
    Ok(())
}

const SMALL_WRITES: usize = 16_384;

/// Tells the spare room from what a drive has programmed and erased in its life: flash that was programmed is erased, or
/// holds data or garbage, and when a drive keeps no more free than it must, that is all there is, but for what is open.
fn room(prober: &mut Prober<'_>, findings: &mut Findings, superblock: u64, seen: &[Worn]) -> Result<(), LearnError> {
    let capacity = prober.capacity().bytes();
    prober.rest(AFTERMATH)?;
    let Some(last) = Worn::now(prober) else { return Ok(()) };
    // Of more turns than there are units, with some planes for themselves, nothing is known.
    let units_max = findings.parameters.parallel_units.value.map_or(u64::MAX, |units| 2 * units);
    let units = turns(seen).filter(|&units| units <= units_max);
    let open = (units.unwrap_or(0) * superblock) as f64;
    let held = |worn: &Worn| worn.programmed as f64 - worn.erases as f64 * superblock as f64;
    // In each unit the host and collection fill a superblock, which on average is half empty. Under way a victim may still
    // wait for its erase; at rest more may be free than must be.
    let under_way = seen.iter().map(held).sum::<f64>() / seen.len().max(1) as f64 + open / 2.0;
    let at_rest = held(&last) + open;
    let occupied = ((under_way + at_rest) / 2.0).max(0.0) as u64;
    let p = &mut findings.parameters;
    if occupied <= capacity || p.collection_onset_bytes.verdict == Verdict::Absent {
        return Ok(());
    }
    // What small writes waste counts as well; what meets in the write buffer, and is programmed once, does not.
    let padding = findings.padding.unwrap_or(1.0).max(1.0);
    let onset = (occupied - capacity) as f64 / padding;
    let bytes = [1.0, 1.0 - ROOM_SPREAD, 1.0 + ROOM_SPREAD].map(|share| (share * onset) as u64);
    let share = bytes.map(|bytes| bytes as f64 / capacity as f64);
    // Without the number of units what is open is not known.
    let verdict = if units.is_some() { Verdict::Certain } else { Verdict::Inconclusive };
    p.collection_onset_bytes = Figure { verdict, ..Figure::certain(bytes[0], bytes[1], bytes[2]) };
    p.over_provisioning = Figure { verdict, ..Figure::certain(share[0], share[1], share[2]) };
    let reason = format!(
        "{} are programmed and {} erasures of {} done in all, so {} more than the drive offers are in use; small writes \
         program {padding:.2} times what they write",
        ByteSize(last.programmed),
        last.erases,
        ByteSize(superblock),
        ByteSize(occupied - capacity),
    );
    for key in ROOM_FIGURES {
        findings.because(key, Because { recipe: ROOM, reason: reason.clone(), curve: Some(OVERWRITES) });
    }
    Ok(())
}

/// Share by which the onset of random overwrites may come before the room is full, or after: they fill one part of the
/// drive before the others, and the parts are filled by superblocks.
const ROOM_SPREAD: f64 = 0.10;
const ROOM: &str = "the drive is overwritten until it collects all the time; what it says it has programmed, less what it \
                    says it has erased, is what its flash holds";

/// Onset and spare room.
fn onset(findings: &mut Findings, capacity: ByteSize, windows: &[Window]) {
    let told = tells(windows);
    let mut at = 0;
    let points = windows.iter().step_by(4).map(|window| {
        at += 4 * window.bytes;
        let y = window.amplification.unwrap_or(window.rate);
        ProbePoint { x: at as f64 / capacity.bytes() as f64, y, low: y, high: y }
    });
    findings.keep(ProbeCurve {
        name: OVERWRITES.to_owned(),
        x: "overwritten, times the drive".to_owned(),
        y: if told { "write amplification" } else { "writes a second" }.to_owned(),
        points: points.collect(),
        fit: Vec::new(),
    });
    let p = &mut findings.parameters;
    let first = &windows[..windows.len().min(ONSET_WINDOWS as usize)];
    let reason = match Rise::of(first, p.write_buffer_bytes.value.unwrap_or(0)).first() {
        Some(cut) => {
            let sum = |n: usize| windows[..n].iter().map(|window| window.bytes).sum::<u64>();
            let value = sum(cut);
            // What lay in open superblocks from the drive's life before the fill was room of an empty one.
            let kept = LIFE_BEFORE * value as f64;
            let (low, high) = widened(value as f64, sum(cut.max(1) - 1) as f64, sum(cut + 1) as f64 + kept);
            let (low, high) = (low as u64, high as u64);
            let share = |bytes: u64| bytes as f64 / capacity.bytes() as f64;
            let narrow = high - low <= value / 5;
            p.collection_onset_bytes =
                if narrow { Figure::certain(value, low, high) } else { Figure::inconclusive(value, low, high) };
            p.over_provisioning = Figure {
                value: Some(share(value)),
                low: Some(share(low)),
                high: Some(share(high)),
                verdict: p.collection_onset_bytes.verdict,
            };
            format!("the first lasting change comes after {}", ByteSize(value))
        }
        None => "no lasting change within one overwrite of the drive".to_owned(),
    };
    for key in ROOM_FIGURES {
        findings.because(key, Because { recipe: UNIFORM, reason: reason.clone(), curve: Some(OVERWRITES) });
    }
}

const OVERWRITES: &str = "random overwrites";

fn tells(windows: &[Window]) -> bool {
    windows.iter().all(|window| window.amplification.is_some())
}

/// A search for the first lasting rise of the response in successive windows.
struct Rise {
    series: Vec<f64>,
    /// Windows left out at the begin: what the write buffer takes is faster than all that comes after.
    behind: usize,
    /// What the response cannot fall below in the long run: a flash byte for each host byte.
    floor: f64,
}

impl Rise {
    fn of(windows: &[Window], buffer: u64) -> Self {
        let told = tells(windows);
        let a_window = windows.first().map_or(1, |window| window.bytes.max(1));
        let behind = if told { 0 } else { (2 * buffer / a_window) as usize };
        let series: Vec<f64> = windows.iter().skip(behind).map(response).collect();
        Self { series, behind, floor: if told { 1.0 } else { 0.0 } }
    }

    fn first(&self) -> Option<usize> {
        Some(first_rise(&self.series, self.floor)? + self.behind)
    }
}

// ---- overwrites -----------------------------------------------------------------------------------------------------

/// Random overwrites until the steady state.
struct Overwritten {
    all: Vec<Window>,
    /// The windows joined to eighths of what was written to.
    rounds: Vec<Window>,
    is_steady: bool,
}

/// What decides whether a drive is steady: flash bytes for each host byte where it tells, else time.
fn response(window: &Window) -> f64 {
    window.amplification.unwrap_or(1e9 / window.rate)
}

impl Overwritten {
    fn responses(&self) -> Vec<f64> {
        self.rounds.iter().map(response).collect()
    }

    /// Level of the response over the later half.
    fn level(&self) -> Settled {
        level(&self.responses())
    }

    fn verdict(&self) -> Verdict {
        if self.is_steady { Verdict::Certain } else { Verdict::Inconclusive }
    }
}

fn join(windows: &[Window]) -> Window {
    let bytes: u64 = windows.iter().map(|window| window.bytes).sum();
    let seconds: f64 = windows.iter().map(|window| window.bytes as f64 / window.rate).sum();
    let programmed: Option<f64> =
        windows.iter().map(|window| window.amplification.map(|wa| wa * window.bytes as f64)).sum();
    Window { bytes, rate: bytes as f64 / seconds.max(1e-9), amplification: programmed.map(|p| p / bytes.max(1) as f64) }
}

/// Random writes over `bytes` until they are steady, in windows of `bytes ÷ windows`.
fn until_steady(
    prober: &mut Prober<'_>,
    bytes: ByteSize,
    (windows, rounds_min): (u64, usize),
    stage: &str,
    place: &mut dyn FnMut(&mut Pcg64Mcg) -> ByteSize,
    progress: &mut dyn Progress,
) -> Result<Overwritten, LearnError> {
    let a_window = (bytes / BLOCK / windows).max(1);
    let a_round = (windows / STEADY_WINDOWS).max(1) as usize;
    let depth = DEPTH.min(prober.queue_depth().max(1)) as usize;
    let mut seen = Overwritten { all: Vec::new(), rounds: Vec::new(), is_steady: false };
    let overwrites = (OVERWRITTEN_MAX / bytes).clamp(OVERWRITES_MIN, OVERWRITES_MAX);
    let most = windows * overwrites;
    while (seen.all.len() as u64) < most && !seen.is_steady {
        prober.advance(progress, stage, seen.all.len() as f64 / most as f64)?;
        let mark = Mark::now(prober);
        prober.keep_in_flight(Operation::Write, BLOCK, depth, a_window as usize, place)?;
        seen.all.push(mark.window(prober, a_window, BLOCK));
        if seen.all.len().is_multiple_of(a_round) {
            let round = join(&seen.all[seen.all.len() - a_round..]);
            seen.rounds.push(round);
            seen.is_steady = seen.rounds.len() >= rounds_min && settled(&seen.responses(), KNOWN_SHARE).is_some();
        }
    }
    while prober.wait()?.is_some() {}
    Ok(seen)
}

/// Says of a drive that comes to its steady state without ever moving anything that it does not collect.
fn nothing_is_moved(findings: &mut Findings, overwritten: &Overwritten) {
    let told = overwritten.all.iter().all(|window| window.amplification.is_some());
    let p = &mut findings.parameters;
    if p.collection_onset_bytes.value.is_some() || !told || !overwritten.is_steady {
        return;
    }
    if overwritten.level().mean < NOTHING_MOVED {
        (p.collection_onset_bytes, p.over_provisioning, p.collection_cost) =
            (Figure::absent(), Figure::absent(), Figure::absent());
        for key in ["collection_onset_bytes", "over_provisioning", "collection_cost"] {
            let reason = "nothing is ever moved".to_owned();
            findings.because(key, Because { recipe: UNIFORM, reason, curve: None });
        }
    }
}

/// A drive that does not tell what it moves collects if overwrites make it slower by this factor at least.
const NO_SLOWER: f64 = 1.1;
/// Write amplification below which nothing is moved.
const NOTHING_MOVED: f64 = 1.02;
/// Share by which collection can start earlier on a drive that was in use before it was trimmed and filled.
const LIFE_BEFORE: f64 = 0.06;
/// Flash bytes for each host byte at which collection is at work.
const AT_WORK: f64 = 1.2;
/// Windows by which that is judged, but for the first, and how far they may be apart where nothing is collected.
const AT_FIRST: usize = 8;
const EVEN: f64 = 0.06;

fn is_even(values: &[f64]) -> bool {
    let usual = median(values.to_vec());
    values.iter().skip(1).all(|value| (value / usual - 1.0).abs() <= EVEN)
}

/// Windows that a rise must last, and windows before it that it is held against.
const LASTING: usize = 10;
const BEFORE: usize = 40;

/// The first window from which on the response is lastingly higher than before: by ranks, and by a
/// tenth, or by a fiftieth where flash bytes are counted.
///
/// Collection may come in bursts with nothing in between, so the mean of what follows counts, beside the ranks.
///
/// `floor` is what the response cannot fall below in the long run: a flash byte for each host byte.
fn first_rise(series: &[f64], floor: f64) -> Option<usize> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    // Flash bytes are counted, time is measured.
    let rise = if floor > 0.0 { 1.02 } else { 1.1 };
    let rises = |cut: usize| {
        let (before, after) = (&series[cut.saturating_sub(BEFORE)..cut], &series[cut..cut + LASTING]);
        let test = rank::compare(after, before);
        // What is still in the write buffer makes the first windows look better than they are.
        let usual = median(before.to_vec());
        mean(after) > rise * usual.max(floor) && (test.p_greater < 0.01 && test.delta >= 0.5)
    };
    // A collector that takes what is valid while there is something better is at work from the first window on, now more
    // and now less; what is programmed beside the data of each write is always the same.
    let begin: Vec<f64> = series.iter().take(AT_FIRST).copied().collect();
    if floor > 0.0 && median(begin.clone()) > AT_WORK * floor && !is_even(&begin) {
        return None;
    }
    let cut = (4..series.len().saturating_sub(2 * LASTING)).find(|&cut| rises(cut))?;
    // It is seen coming as soon as most of what follows is higher; it begins where a quarter of it is reached.
    let usual = median(series[..cut].to_vec()).max(floor);
    let risen = mean(&series[cut + LASTING..(cut + 2 * LASTING).min(series.len())]);
    let reached = usual + (risen - usual) / 4.0;
    // Where it rises slowly, in the middle of what was seen coming.
    (cut..cut + LASTING).find(|&i| series[i] > reached).or(Some(cut + LASTING / 2))
}

fn tell_amplification(findings: &mut Findings, key: &'static str, windows: &Overwritten, recipe: &str) {
    let told = windows.rounds.iter().all(|round| round.amplification.is_some());
    let Settled { mean, low, high } = windows.level();
    let (low, high) = widened(mean, low, high);
    let (figure, reason) = match (told, windows.is_steady) {
        (false, _) => (Figure::unknown(), "the drive does not tell what it programs".to_owned()),
        (true, true) => (Figure::certain(mean, low, high), "steady: no trend in the later half".to_owned()),
        (true, false) => (
            Figure::inconclusive(mean, low, high),
            format!("not steady after {} overwrites", windows.rounds.len() as u64 / STEADY_WINDOWS),
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
    let later = &uniform.rounds[uniform.rounds.len() / 2..];
    let rates = later.iter().map(|round| round.rate).collect();
    let four = while_collecting(prober, findings, ByteSize::kib(4), rates, progress)?;
    let rates = saturated_writes(prober, ByteSize::kib(8), progress)?;
    let eight = while_collecting(prober, findings, ByteSize::kib(8), rates, progress)?;
    let p = &mut findings.parameters;
    let moves = tells(&uniform.all) && uniform.level().mean >= NOTHING_MOVED;
    if let (Some(fresh), true) = (findings.saturated_writes_per_s, moves || p.collection_onset_bytes.value.is_some()) {
        let again = four.writes.iter().map(|rate| fresh / rate).collect();
        p.collection_cost = measured(fresh / mean_rate(&four.writes), again, 2.0 * TOLERANCE);
        let reason = "saturated 4 KiB writes a second on the fresh drive ÷ in the steady state".to_owned();
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
        let reason = "the same as on the fresh drive, in the steady state of overwrites".to_owned();
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
/// Reads of one.
const READS: usize = 4096;

/// What requests of one length cost in the steady state.
struct Collecting {
    saturated: Figure<f64>,
    latency: Figure<f64>,
    /// Writes a second of the batches.
    writes: Vec<f64>,
}

/// Writes a second of one length in batches, in the steady state of writes of that length.
fn saturated_writes(
    prober: &mut Prober<'_>,
    length: ByteSize,
    progress: &mut dyn Progress,
) -> Result<Vec<f64>, LearnError> {
    let capacity = prober.capacity();
    // The share that is still valid in what is collected takes long to get used to another length.
    let half = (capacity / length / 2) as usize;
    batches(prober, Operation::Write, length, ((half / BATCHES).max(1024), half), progress)
}

/// Requests a second at the largest depth, in batches of so many, after so many.
fn batches(
    prober: &mut Prober<'_>,
    operation: Operation,
    length: ByteSize,
    (requests, before): (usize, usize),
    progress: &mut dyn Progress,
) -> Result<Vec<f64>, LearnError> {
    let mut place = anywhere(prober.capacity(), length);
    let depth = DEPTH.min(prober.queue_depth().max(1)) as usize;
    let mut rates = Vec::with_capacity(BATCHES);
    const STAGE: &str = "throughput while collecting";
    for n in 0..BATCHES {
        prober.advance(progress, STAGE, n as f64 / BATCHES as f64 / 2.0)?;
        prober.keep_in_flight(operation, length, depth, before / BATCHES, &mut place)?;
    }
    for n in 0..BATCHES {
        prober.advance(progress, STAGE, 0.5 + n as f64 / BATCHES as f64 / 2.0)?;
        rates.push(prober.rate(operation, length, depth, requests, &mut place)?);
    }
    while prober.wait()?.is_some() {}
    Ok(rates)
}

/// After writes of a length that came to `writes` a second: how reads fare depends on what wrote the data.
fn while_collecting(
    prober: &mut Prober<'_>,
    findings: &Findings,
    length: ByteSize,
    writes: Vec<f64>,
    progress: &mut dyn Progress,
) -> Result<Collecting, LearnError> {
    let capacity = prober.capacity();
    prober.rest(AFTERMATH)?;
    let reads = batches(prober, Operation::Read, length, (READS, 2 * DEPTH as usize), progress)?;
    let value = mean_rate(&reads) / mean_rate(&writes);
    let again = reads.iter().flat_map(|read| writes.iter().map(move |write| read / write)).collect();
    // Ratios of single batches spread more than the ratio of their means does.
    let spread = measured(value, again, 1.0);
    let shrink = |end: Option<f64>| end.map(|end| value + (end - value) / (writes.len() as f64).sqrt());
    let again = [shrink(spread.low), shrink(spread.high)].into_iter().flatten().collect();
    let saturated = measured(value, again, TOLERANCE);

    let settle = settling(prober.effort, findings.parameters.write_buffer_bytes.known());
    let writes_ns = latency::write_latencies(prober, capacity, length, settle, progress)?;
    prober.rest(AFTERMATH)?;
    let reads_ns = latency::read_latencies(prober, capacity, length, progress)?;
    let latency = latency::ratio(&writes_ns, &reads_ns, &mut prober.random);
    Ok(Collecting { saturated, latency, writes })
}

/// The rate of all batches together: collection comes in bursts, which a median would not see.
fn mean_rate(rates: &[f64]) -> f64 {
    rates.len() as f64 / rates.iter().map(|rate| 1.0 / rate).sum::<f64>()
}

// ---- trim -----------------------------------------------------------------------------------------------------------

/// What trimming half of the drive is worth to writes to the other half.
fn trim(
    prober: &mut Prober<'_>,
    findings: &mut Findings,
    uniform: &Overwritten,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    let half = ByteSize(prober.capacity().bytes() / 2 / SECTION.bytes() * SECTION.bytes());
    let recipe = "the upper half of the steady drive is trimmed, then the lower half overwritten until steady";
    prober.flush()?;
    let mut at = half;
    while at < prober.capacity() {
        let length = ByteSize::mib(64).min(prober.capacity() - at);
        prober.trim(at, length)?;
        at += length;
    }
    let mut lower = anywhere(half, BLOCK);
    let (name, rounds) = ("overwrites after trim", ROUNDS_MIN.0);
    let after = until_steady(prober, half, (STEADY_WINDOWS * 4, rounds), name, &mut lower, progress)?;
    let (before, now) = (uniform.level(), after.level());
    let gain = before.mean / now.mean;
    let figure = if (gain - 1.0).abs() < 0.03 {
        Figure::absent()
    } else {
        // The ends of the two intervals in the worst case, narrowed because they do not both come true.
        let narrowed = |end: f64| gain + (end - gain) / std::f64::consts::SQRT_2;
        let (low, high) = widened(gain, narrowed(before.low / now.high), narrowed(before.high / now.low));
        let verdict = if uniform.is_steady { after.verdict() } else { Verdict::Inconclusive };
        Figure { value: Some(gain), low: Some(low), high: Some(high), verdict }
    };
    findings.parameters.trim_gain = figure;
    let reason = format!("{:.2} before, {:.2} after", before.mean, now.mean);
    findings.because("trim_gain", Because { recipe, reason, curve: None });
    Ok(())
}

// ---- the superblock -------------------------------------------------------------------------------------------------

/// Bytes programmed and erases so far.
#[derive(Clone, Copy)]
struct Worn {
    programmed: u64,
    erases: u64,
}

impl Worn {
    /// `None` where the drive does not count.
    fn now(prober: &Prober<'_>) -> Option<Self> {
        let flash = prober.counters().flash?;
        Some(Self { programmed: flash.bytes_programmed.bytes(), erases: flash.erases })
    }
}

/// Passes in order, and the slope of bytes programmed over erases in the last of them.
fn superblock(prober: &mut Prober<'_>, findings: &mut Findings, progress: &mut dyn Progress) -> Result<(), LearnError> {
    let recipe = "the drive is written in order several times; bytes programmed at each erase that the drive counts";
    let counts = prober.counters().flash.is_some();
    let mut seen: Vec<Worn> = Vec::new();
    let mut steps = 0_u64;
    for pass in 0..3 {
        seen.clear();
        let mut last = None;
        let windows = pass_in_order(prober, 16, "passes in order", progress, &mut |prober| {
            let Some(now) = Worn::now(prober) else { return };
            if let Some(Worn { programmed, erases }) = last.replace(now) {
                steps = gcd(steps, now.programmed - programmed);
                if pass == 2 && now.erases > erases {
                    seen.push(now);
                }
            }
        })?;
        sustained(prober, findings, &windows);
    }
    if !counts {
        let reason = "the drive does not count what it programs and erases".to_owned();
        findings.because("superblock_bytes", Because { recipe, reason, curve: None });
        return Ok(());
    }
    let (figure, reason) = match slope(&seen) {
        Some(slope) if steps > 0 => {
            let unit = steps as f64;
            let size = ((slope / unit).round() * unit) as u64;
            let off = (slope / size.max(1) as f64 - 1.0).abs();
            let reason = format!("{} an erase, in steps of {}", ByteSize(slope.round() as u64), ByteSize(steps));
            let erases = seen.last().map_or(0, |worn| worn.erases) - seen.first().map_or(0, |worn| worn.erases);
            // Ends of the pass lie anywhere within a superblock; a rest beyond that says that erases are not what was
            // opened.
            let unambiguous = (slope - size as f64).abs() <= unit / 4.0 && slope / erases as f64 <= unit;
            let sure = erases >= 8 && size > 0 && (unambiguous || off <= 0.5 / erases as f64);
            let (low, high) = (slope * (1.0 - 1.0 / erases as f64), slope * (1.0 + 1.0 / erases as f64));
            let figure = if sure {
                Figure::certain(size, size, size)
            } else {
                Figure::inconclusive(size, low as u64, high as u64)
            };
            (figure, reason)
        }
        _ if seen.is_empty() => (Figure::absent(), "the drive is written in order and never erases".to_owned()),
        _ => (Figure::unknown(), "too few erases in a pass over the drive".to_owned()),
    };
    findings.parameters.superblock_bytes = figure;
    findings.because("superblock_bytes", Because { recipe, reason, curve: None });
    match findings.parameters.superblock_bytes.known() {
        Some(superblock) => room(prober, findings, superblock, &seen),
        None => Ok(()),
    }
}

/// Speed of the latest pass in order.
fn sustained(prober: &Prober<'_>, findings: &mut Findings, windows: &[Window]) {
    let rates: Vec<f64> = windows.iter().map(|window| window.rate * prober.longest().bytes() as f64).collect();
    let (low, high) = median_interval(&rates);
    let whole_pass = join(windows).rate * prober.longest().bytes() as f64;
    findings.parameters.sustained_write_bytes_per_s = whole(measured(whole_pass, vec![low, high], 2.0 * TOLERANCE));
    let recipe = "the drive is written in order, large writes, 32 in flight, again and again; the last pass";
    let reason = "speed of the whole pass".to_owned();
    findings.because("sustained_write_bytes_per_s", Because { recipe, reason, curve: None });
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// After how many erases everything repeats in a pass in order: units take turns, so there are as many. `None` where no
/// such number stands out.
fn turns(seen: &[Worn]) -> Option<u64> {
    let erases = |lag: usize| -> Vec<f64> {
        std::iter::zip(seen, seen.get(lag..).unwrap_or_default()).map(|(a, b)| (b.erases - a.erases) as f64).collect()
    };
    let spread = |lag: usize| {
        let each: Vec<f64> = std::iter::zip(seen, &seen[lag..])
            .map(|(a, b)| (b.programmed - a.programmed) as f64 / (b.erases - a.erases).max(1) as f64)
            .collect();
        let middle = median(each.clone());
        median(each.iter().map(|one| (one - middle).abs()).collect()) * lag as f64
    };
    let spreads: Vec<f64> = (1..=(seen.len() / CYCLES_MIN).min(TURNS_MAX)).map(spread).collect();
    let best = spreads.iter().copied().min_by(f64::total_cmp)?;
    let usual = median(spreads.clone());
    let lag = 1 + spreads.iter().position(|&spread| spread <= (2.0 * best).min(usual / 2.0))?;
    (usual > 0.0).then(|| median(erases(lag)).round() as u64)
}

/// Turns that a pass must hold, and the longest that are looked for, in erases.
const CYCLES_MIN: usize = 4;
const TURNS_MAX: usize = 512;

/// Bytes programmed an erase.
///
/// Units take turns, so neighbouring erases come at uneven distances; but after as many erases as there are units, or a
/// multiple, everything repeats. Of all lags about half as long as the series, the one whose distances spread least is
/// such a multiple, and the median distance at it, divided by the lag, is free of what happens in between.
fn slope(seen: &[Worn]) -> Option<f64> {
    if seen.len() < 8 {
        return None;
    }
    let distances = |lag: usize| -> Vec<f64> {
        let pairs = std::iter::zip(seen, &seen[lag..]);
        pairs.map(|(a, b)| (b.programmed - a.programmed) as f64 / (b.erases - a.erases) as f64).collect()
    };
    let spread = |lag: &usize| {
        let distances = distances(*lag);
        let middle = median(distances.clone());
        median(distances.iter().map(|d| (d - middle).abs()).collect())
    };
    let longest = seen.len() / 2;
    let lags = (longest - longest / 2).max(1)..=longest;
    let best = lags.min_by(|a, b| spread(a).total_cmp(&spread(b)))?;
    Some(median(distances(best)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_of_programmed_bytes_over_erases_is_the_superblock() {
        let seen: Vec<Worn> = (0..50).map(|n| Worn { programmed: 1000 + n * 4096, erases: 7 + n }).collect();
        assert!((slope(&seen).unwrap() - 4096.0).abs() < 1e-6);
        assert!(slope(&seen[..3]).is_none());
    }

    #[test]
    fn units_that_take_turns_at_uneven_distances_are_counted() {
        // Eight units; what is programmed between two erases depends on whose turn it is.
        let distances = [3_u64, 40, 11, 2, 90, 17, 60, 33];
        let mut programmed = 0;
        let seen: Vec<Worn> = (0..400_u64)
            .map(|n| {
                programmed += distances[(n % 8) as usize];
                Worn { programmed, erases: n }
            })
            .collect();
        assert_eq!(turns(&seen), Some(8));
        // Where all distances are alike, nobody can tell.
        let even: Vec<Worn> = (0..400).map(|n| Worn { programmed: n * 7, erases: n }).collect();
        assert_eq!(turns(&even), None);
    }

    #[test]
    fn waste_that_is_always_the_same_is_no_collection_and_a_rise_above_it_is() {
        let wasteful =
            |rises_at: usize| (0..100).map(move |n| if n < rises_at { 8.0 } else { 14.0 }).collect::<Vec<f64>>();
        assert_eq!(first_rise(&wasteful(40), 1.0), Some(40));
        // Now more and now less from the start on: collection is at work already.
        let at_work: Vec<f64> = (0..100).map(|n| 8.0 + f64::from(n % 5)).collect();
        assert_eq!(first_rise(&at_work, 1.0), None);
    }

    #[test]
    fn windows_join_by_bytes() {
        let window = |bytes, rate, wa| Window { bytes, rate, amplification: Some(wa) };
        let joined = join(&[window(100, 10.0, 1.0), window(300, 30.0, 2.0)]);
        assert_eq!((joined.bytes, joined.rate), (400, 20.0));
        assert!((joined.amplification.unwrap() - 1.75).abs() < 1e-12);
    }
}
