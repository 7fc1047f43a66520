//! The write buffer: how much a drive takes before the flash sets the pace.
//!
//! Into an idle drive with an empty buffer writes are pushed in order, several in flight. At first the host interface
//! sets the pace, then the flash does, and from there on
//!
//! ```text
//!   bytes acknowledged at t  =  size of the buffer + bytes on flash at t
//! ```
//!
//! Where the drive counts what it programs, the most that was acknowledged and not on flash at any time is the size.
//! Where it does not, the line of the second part, drawn back to the start, ends at it; some caches send nothing on
//! before they are full, so it is drawn back to where the flash starts, where that is known. Programs end in bursts,
//! all dies at once; right after a burst the bytes on flash are at their line, before it below, so the line is drawn
//! through the upper edge, and the time that the host needs to fill the space is taken out. The burst is made longer
//! until its second half runs at one speed that is lower than at the start.
//!
//! Each burst starts with an empty buffer. Where nothing can be lost a flush leaves what it holds: so there is a rest
//! as long as the burst, and what was written is trimmed, where the target is a drive that counts. What is left even
//! then, the beginnings of pages, takes space from the next burst and is added: all that was ever written and not
//! programmed. Where more than that was programmed nobody knows it, and the figure is certain only where the long-run
//! line says the same.
//!
//! A size next to a power of two is told as that: memory comes in such sizes.

use flashwise_block::{ByteSize, Nanos, Operation, Progress, Request};
use flashwise_profile::{Figure, ProbeCurve, ProbePoint};

use crate::draft::{Because, ProfileDraft, key};
use crate::evidence::Evidence;
use crate::prober::Prober;
use crate::stats::graded::power_of_two_within;
use crate::stats::{line_through, median};
use crate::step::Step;
use crate::verdict::{Doubt, Wording, applying, doubt};
use crate::{Effort, LearnError};

pub(crate) const WRITE_BURST: Step = Step::new("write burst", &["write_buffer_bytes"]);

/// Evidence of the write buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteBuffer(pub(crate) Figure<u64>);

impl Evidence for WriteBuffer {
    fn recorded(draft: &ProfileDraft) -> Self {
        Self(draft.recorded(key!(write_buffer_bytes)))
    }
}

impl WriteBuffer {
    /// What it holds as far as anybody can say; nothing where there is no guess.
    pub(crate) fn bytes(self) -> u64 {
        self.0.value.unwrap_or(0)
    }

    /// Bytes to write before writes are measured in the long run.
    pub(crate) fn settling(self, effort: Effort) -> ByteSize {
        settling(effort, self.0.known().unwrap_or(0))
    }

    /// The same where a flush has emptied the buffer, however large it is.
    pub(crate) fn settling_at_least(effort: Effort) -> ByteSize {
        settling(effort, 0)
    }
}

fn settling(effort: Effort, buffer: u64) -> ByteSize {
    ByteSize(SETTLE_BUFFERS * buffer).max(settle_min(effort)).min(settle_max(effort))
}

/// Bytes written before each batch of writes at least.
const fn settle_min(effort: Effort) -> ByteSize {
    match effort {
        Effort::Thorough => ByteSize::mib(16),
        Effort::Quick => ByteSize::mib(2),
    }
}
/// And in multiples of the write buffer: the flash empties it while it is being filled.
const SETTLE_BUFFERS: u64 = 2;
/// No more than this, however large the buffer.
const fn settle_max(effort: Effort) -> ByteSize {
    match effort {
        Effort::Thorough => ByteSize::mib(256),
        Effort::Quick => ByteSize::mib(16),
    }
}

/// Length of each write.
const WRITE: ByteSize = ByteSize::kib(16);
/// Writes in flight; enough for the interface, few enough for SATA.
const DEPTH: usize = 16;
/// Bursts of one length.
const BURSTS: usize = 7;
const BURSTS_QUICK: usize = 2;
/// Length of the first burst; each further one is four times as long, up to the last.
const FIRST: ByteSize = ByteSize::mib(16);
const LAST: ByteSize = ByteSize::mib(1024);
const LAST_QUICK: ByteSize = ByteSize::mib(64);
/// Share by which the flash must be slower than the start of a burst, for a buffer to show.
const SLOWER_SHARE_MIN: f64 = 0.15;
/// Share of a burst in which the buffer must have been filled, so that enough of it shows the pace of the flash.
const FILLED_SHARE_MAX: f64 = 0.6;
/// Share by which bursts of two lengths may differ that show the same buffer.
const AGREEING_SHARE: f64 = 0.15;
/// Time for the drive to empty its buffer and clean up.
const IDLE: Nanos = Nanos(200_000_000);
/// Share of its value by which the size can be off beside the spread of bursts: the flash's last program is not seen
/// to its end, and what waits for the rest of its page keeps its space.
const SYSTEMATIC_SHARE: f64 = 0.10;
/// Speed of the flash, as a share of the interface's, up to which the time to fill the space of a burst is taken out.
const FLASH_SPEED_SHARE_MAX: f64 = 0.5;
/// Share of what a burst fills that a flush leaves in the buffer, at most: pages that wait for their rest. So much
/// larger the buffer can be where nobody knows.
const KEPT_SHARE_MAX: f64 = 0.25;
/// Share by which what is held late in a burst is less than at its most, where data is moved meanwhile.
const MOVED_SHARE: f64 = 0.05;
/// Share within which two ways to find the size agree.
const SAME_SHARE: f64 = 0.05;
/// Times that a drive must say in a burst that it has programmed more, for what it holds to be followed.
const MOVES_MIN: usize = 16;
/// Share of the size by which bursts may differ that show it for certain.
const SPREAD_SHARE_MAX: f64 = 0.14;
/// Share of the size within which a power of two is near: other sizes than powers lie a sixteenth apart at least.
const POWER_SHARE: f64 = 0.03;
const NAME: &str = "write burst";

/// One burst: acknowledged bytes over time.
struct Burst {
    /// (ns since the start, bytes acknowledged).
    points: Vec<(f64, f64)>,
    /// When the flash started to program, ns since the start; at once, where the drive does not tell.
    begun: f64,
    /// What was acknowledged and not programmed, where the drive tells often enough.
    held: Option<Held>,
}

/// What a drive that counts held in its buffer, bytes.
#[derive(Clone, Copy)]
struct Held {
    /// The most at any time.
    most: f64,
    /// And in the second half of the burst.
    late: f64,
    /// What was in the buffer before the burst.
    kept: Kept,
}

/// What a flush had left in the buffer.
#[derive(Clone, Copy)]
enum Kept {
    /// It leaves nothing.
    Nothing,
    /// So many bytes, all that was ever written and not programmed.
    Bytes(f64),
    /// Some; more than what was written has been programmed, and nobody knows.
    Some,
}

/// What a burst says.
struct Reading {
    /// Bytes a nanosecond at the start and in the long run.
    start: f64,
    run: f64,
    /// Intercept of the upper edge, or what was held.
    bytes: f64,
    /// The latter.
    is_held: bool,
    /// What takes the certainty away, if anything does.
    unclear: Option<Unclear>,
}

/// Why a burst that was followed does not show the size for certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unclear {
    /// What was in the buffer before is not known, and the long run draws back to another size.
    Kept,
    /// Data was moved meanwhile, and programming it was counted with what was written.
    Moved,
}

/// Measures the write buffer.
pub(crate) fn probe(
    prober: &mut Prober<'_>,
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<WriteBuffer, LearnError> {
    let mut length = FIRST;
    let recipe = "sequential 16 KiB writes to an idle drive, 16 in flight, no flush, in bursts of 16 MiB, 64 MiB and \
                  so on until a longer burst shows no larger buffer";
    let (count, last) = match prober.effort {
        Effort::Thorough => (BURSTS, LAST),
        Effort::Quick => (BURSTS_QUICK, LAST_QUICK),
    };
    let mut shorter: Option<(Vec<Reading>, ProbeCurve)> = None;
    loop {
        let mut bursts = Vec::new();
        for n in 0..count {
            prober.advance(progress, "write buffer", n as f64 / count as f64)?;
            bursts.push(burst(prober, length)?);
        }
        let readings: Vec<Reading> = bursts.iter().filter_map(Burst::read).collect();
        let curve = bursts[0].curve();
        let seen = readings.len() == count && readings.iter().all(|reading| reading.shows(length));
        // Caches may are in a row, and a short burst fill no more than the first.
        let agreeing = shorter.take_if(|(earlier, _)| seen && agree(earlier, &readings));
        let at_the_end = length * 4 > last || prober.afford(length * 4 * count as u64).is_err();
        if agreeing.is_some() || at_the_end {
            let (readings, curve) = agreeing.unwrap_or((readings, curve));
            let interface = interface_speed(prober)?;
            let bursts = Bursts { readings, all_show: seen, longest: length, interface };
            let (figure, reason) = bursts.verdict();
            draft.settle(key!(write_buffer_bytes), figure, Because { recipe, reason, curve: Some(NAME) });
            draft.keep(curve);
            return Ok(WriteBuffer(figure));
        }
        shorter = seen.then_some((readings, curve));
        length = length * 4;
    }
}

impl Reading {
    /// Whether a burst of that length has filled a buffer and then gone on at the pace of the flash.
    fn shows(&self, length: ByteSize) -> bool {
        self.run <= (1.0 - SLOWER_SHARE_MIN) * self.start && self.bytes <= FILLED_SHARE_MAX * length.bytes() as f64
    }
}

/// Whether longer bursts show the same buffer.
fn agree(shorter: &[Reading], longer: &[Reading]) -> bool {
    let middle = |readings: &[Reading]| median(readings.iter().map(|reading| reading.bytes).collect());
    let (shorter, longer) = (middle(shorter), middle(longer));
    (longer - shorter).abs() <= AGREEING_SHARE * shorter.max((DEPTH as u64 * WRITE.bytes()) as f64)
}

/// What bursts have shown.
struct Bursts {
    readings: Vec<Reading>,
    /// Whether each of them shows a buffer that was filled.
    all_show: bool,
    /// Length of the last ones.
    longest: ByteSize,
    /// Bytes a nanosecond of the host interface.
    interface: f64,
}

/// Why the size of a write buffer may be inconclusive.
const SIZE_DOUBTS: [Doubt<Bursts>; 3] = [
    doubt(
        "garbage collection ran during a burst",
        Wording::Instead("the largest amount acknowledged and not yet programmed, but garbage collection ran as well"),
        |bursts| bursts.any(Unclear::Moved),
    ),
    doubt(
        "a flush leaves data in the buffer",
        Wording::Instead("a flush leaves an unknown amount in the buffer, which is not included"),
        |bursts| bursts.any(Unclear::Kept),
    ),
    doubt("bursts differ", Wording::Nothing, |bursts| {
        let (low, high) = bursts.range();
        high - low > SPREAD_SHARE_MAX * bursts.size()
    }),
];

impl Bursts {
    /// Bytes in flight at once.
    const IN_FLIGHT: f64 = (DEPTH as u64 * WRITE.bytes()) as f64;

    fn any(&self, unclear: Unclear) -> bool {
        self.readings.iter().any(|reading| reading.unclear == Some(unclear))
    }

    fn sizes(&self) -> Vec<f64> {
        self.readings.iter().map(|reading| reading.bytes).collect()
    }

    /// The size that they show.
    fn size(&self) -> f64 {
        median(self.sizes())
    }

    /// The smallest and the largest size.
    fn range(&self) -> (f64, f64) {
        let mut sizes = self.sizes();
        // One late completion makes one burst an outlier.
        sizes.sort_unstable_by(f64::total_cmp);
        let odd = usize::from(sizes.len() >= BURSTS);
        let sizes = &sizes[odd..sizes.len() - odd];
        let spread = |f: fn(f64, f64) -> f64, start: f64| sizes.iter().copied().fold(start, f);
        (spread(f64::min, f64::MAX), spread(f64::max, 0.0))
    }

    /// Whether the drive reported in each burst how much it had not programmed yet, and that was more than one write.
    fn all_held(&self) -> bool {
        self.readings.iter().all(|reading| reading.is_held && reading.bytes > WRITE.bytes() as f64)
    }

    fn verdict(&self) -> (Figure<u64>, String) {
        let start = median(self.readings.iter().map(|reading| reading.start).collect());
        let starts_slow = start <= (1.0 - SLOWER_SHARE_MIN) * self.interface;
        let is_small = !self.all_show && !self.readings.is_empty() && self.size() <= Self::IN_FLIGHT;
        if is_small && starts_slow && self.all_held() {
            // A buffer smaller than the bytes in flight is full from the start, and writes run at the speed of the
            // flash.
            let reason =
                "writes run at flash speed from the start; this is the amount acknowledged and not yet programmed";
            return (self.figure(), reason.to_owned());
        }
        if !self.all_show && starts_slow {
            let reason = "writes run at flash speed from the start, slower than reads";
            return (Figure::absent(), reason.to_owned());
        }
        let is_a_write = |reading: &Reading| reading.is_held && reading.bytes <= WRITE.bytes() as f64;
        if !self.readings.is_empty() && self.readings.iter().all(is_a_write) {
            return (Figure::absent(), "all acknowledged data is already programmed".to_owned());
        }
        if !self.all_show {
            let longest = self.longest;
            let reason = format!(
                "no drop in speed within {longest}: there is no buffer, or flash as fast as the buffer, or a larger \
                 buffer"
            );
            return (Figure::unknown(), reason);
        }
        if self.size() < 2.0 * Self::IN_FLIGHT && self.sizes().iter().all(|&size| size < Self::IN_FLIGHT) {
            return (Figure::absent(), "writes run at flash speed from the start".to_owned());
        }
        let plain = match self.all_held() {
            true => "the largest amount acknowledged and not yet programmed",
            false => "the long-run line, extended back to the start of the burst, meets the axis there",
        };
        (self.figure(), applying(&SIZE_DOUBTS, self).reason(plain))
    }

    /// The size with its verdict.
    fn figure(&self) -> Figure<u64> {
        let size = self.size();
        let (low, high) = self.range();
        let is_unclear = self.readings.iter().any(|reading| reading.unclear.is_some());
        let kept = if is_unclear { KEPT_SHARE_MAX } else { 0.0 };
        let (low, high) = (low * (1.0 - SYSTEMATIC_SHARE), high * (1.0 + SYSTEMATIC_SHARE + kept));
        let near = |share: f64| size * (1.0 + share);
        let value = power_of_two_within(near(-POWER_SHARE).max(low), near(POWER_SHARE).min(high));
        let value = value.unwrap_or(size.round() as u64);
        applying(&SIZE_DOUBTS, self).judge(Figure::certain(value, low.floor() as u64, high.ceil() as u64))
    }
}

/// Bytes a nanosecond of reads as long and as many as the writes.
fn interface_speed(prober: &mut Prober<'_>) -> Result<f64, LearnError> {
    let length = WRITE.min(prober.longest());
    let (mut next, places) = (0, prober.region() / length);
    let mut in_order = |_: &mut rand_pcg::Pcg64Mcg| {
        next = (next + 1) % places;
        length * next
    };
    let rate = prober.rate(Operation::Read, length, DEPTH, 4096, &mut in_order)?;
    while prober.wait()?.is_some() {}
    Ok(rate * length.bytes() as f64 / 1e9)
}

/// Pushes `length` bytes into the idle drive.
fn burst(prober: &mut Prober<'_>, length: ByteSize) -> Result<Burst, LearnError> {
    let write = WRITE.min(prober.longest());
    let (writes, places) = (length / write, prober.region() / write);
    let first = places / 2;
    prober.rest(IDLE)?;
    let (started, before) = (prober.now(), prober.programmed());
    let mut begun = before.map_or(Some(0.0), |_| None);
    let mut points = Vec::with_capacity(writes as usize);
    let (mut submitted, mut acknowledged) = (0, 0.0);
    let unprogrammed = prober.unprogrammed();
    let (mut held, mut last, mut moves) = ((0.0_f64, 0.0_f64), before, 0);
    while points.len() < writes as usize {
        while prober.in_flight() < DEPTH && submitted < writes {
            prober.submit(Request::write(write * ((first + submitted) % places), write))?;
            submitted += 1;
        }
        let Some(completion) = prober.wait()? else { break };
        acknowledged += write.bytes() as f64;
        points.push((completion.completed_at.since(started).0 as f64, acknowledged));
        let programmed = prober.programmed();
        if begun.is_none() && programmed > before {
            begun = Some(prober.now().since(started).0 as f64);
        }
        moves += usize::from(programmed > last);
        last = programmed;
        if let Some((programmed, before)) = programmed.zip(before) {
            let now = acknowledged - (programmed - before) as f64;
            let is_late = points.len() > writes as usize / 2;
            held = (held.0.max(now), if is_late { held.1.max(now) } else { held.1 });
        }
    }
    prober.flush()?;
    // Where nothing can be lost a flush empties no buffer: it gets as long as it took to fill, and what stays in a
    // cache until its room is needed is given up. In a file a hole would have to be allocated anew.
    prober.rest(prober.now().since(started))?;
    let kept = match before.is_some() && held_after_a_flush(prober)? {
        false => Kept::Nothing,
        true => Kept::from(unprogrammed, held.0),
    };
    if before.is_some() {
        prober.trim(ByteSize(0), prober.region())?;
    }
    let held = Held { most: held.0, late: held.1, kept };
    Ok(Burst { points, begun: begun.unwrap_or(0.0), held: (moves >= MOVES_MIN).then_some(held) })
}

impl Kept {
    /// What was written and not programmed when a burst started that filled the buffer with `most` bytes.
    fn from(unprogrammed: Option<i64>, most: f64) -> Self {
        match unprogrammed {
            Some(bytes) if bytes >= 0 && bytes as f64 <= KEPT_SHARE_MAX * most => Self::Bytes(bytes as f64),
            _ => Self::Some,
        }
    }
}

impl Held {
    /// The size, and what speaks against it, beside what the long run draws back to.
    fn size(&self, intercept: f64) -> (f64, Option<Unclear>) {
        if self.late < (1.0 - MOVED_SHARE) * self.most {
            return (self.most, Some(Unclear::Moved));
        }
        match self.kept {
            Kept::Nothing => (self.most, None),
            Kept::Bytes(bytes) => (self.most + bytes, None),
            Kept::Some if (intercept - self.most).abs() <= SAME_SHARE * self.most => (self.most.max(intercept), None),
            // The one leaves out what was there before, the other is drawn from bursts that came late: between the two.
            Kept::Some => {
                let largest = intercept.clamp(self.most, (1.0 + KEPT_SHARE_MAX) * self.most);
                (f64::midpoint(self.most, largest), Some(Unclear::Kept))
            }
        }
    }
}

/// Whether a drive that counts what it programs leaves a block that was just written where it is when it is flushed.
fn held_after_a_flush(prober: &mut Prober<'_>) -> Result<bool, LearnError> {
    let before = prober.programmed();
    prober.submit(Request::write(ByteSize(0), prober.logical_block()))?;
    prober.flush()?;
    Ok(prober.programmed() == before)
}

impl Burst {
    /// Speeds of the start and of the second half, and the intercept of the latter's upper edge.
    fn read(&self) -> Option<Reading> {
        let second = self.points.get(self.points.len() / 2..)?;
        // The bursts, many and alike, do not tilt it.
        let run = line_through(second).map_or(0.0, |(slope, _)| slope);
        let above = |point: &(f64, f64)| point.1 - run * (point.0 - self.begun);
        let (lower, upper) =
            second.iter().map(above).fold((f64::MAX, f64::MIN), |(lower, upper), y| (lower.min(y), upper.max(y)));
        // The start is what goes into half of the buffer, or a few writes where there is none.
        let starts = self.points.iter().take_while(|point| point.1 <= upper / 2.0).count().max(2 * DEPTH);
        let last_of_start = self.points.get(starts)?;
        let start = last_of_start.1 / last_of_start.0.max(1.0);
        // The room that a burst of programs makes is taken at the speed of the start; meanwhile the line has moved on.
        // Where the two are nearly the same, nothing can be said of it.
        let share = (run / start).min(FLASH_SPEED_SHARE_MAX);
        let bytes = upper + (upper - lower) * share / (1.0 - share);
        let (bytes, unclear) = self.held.map_or((bytes, None), |held| held.size(bytes));
        Some(Reading { start, run, bytes, is_held: self.held.is_some(), unclear })
    }

    /// At most 200 points of it.
    fn curve(&self) -> ProbeCurve {
        let step = self.points.len().div_ceil(200).max(1);
        let point = |&(ns, bytes): &(f64, f64)| {
            let mib = bytes / f64::from(1 << 20);
            ProbePoint { x: ns / 1e6, y: mib, low: mib, high: mib }
        };
        let fit = self.read().map(|r| {
            let end = self.points.last().map_or(0.0, |last| last.0);
            let mib = |bytes: f64| bytes / f64::from(1 << 20);
            let at = |ns: f64| (ns / 1e6, mib(r.bytes + r.run * (ns - self.begun)));
            vec![at(self.begun), at(end)]
        });
        ProbeCurve {
            name: NAME.to_owned(),
            x: "time, ms".to_owned(),
            y: "acknowledged, MiB".to_owned(),
            points: self.points.iter().step_by(step).map(point).collect(),
            fit: fit.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A buffer of `size` bytes before dies that program in bursts.
    fn modelled(size: f64, link: f64, burst_bytes: f64, burst_ns: f64, total: f64) -> Burst {
        let (mut at, mut points) = (0.0_f64, Vec::new());
        let mut acknowledged = 0.0;
        while acknowledged < total {
            acknowledged += WRITE.bytes() as f64;
            at += WRITE.bytes() as f64 / link;
            while acknowledged > size + (at / burst_ns).floor() * burst_bytes {
                at = ((at / burst_ns).floor() + 1.0) * burst_ns;
            }
            points.push((at, acknowledged));
        }
        Burst { points, begun: 0.0, held: None }
    }

    /// All buffers of whole MiB below 16 and all bursts of whole KiB that leave space for a write.
    #[test]
    fn the_buffer_is_where_the_long_run_begins() {
        let all = (1_u64..16).flat_map(|mib| (32..1024).map(move |burst_kib| (mib << 20, burst_kib << 10)));
        for (size, burst_bytes) in all.filter(|(size, burst_bytes)| burst_bytes + WRITE.bytes() <= *size) {
            let bytes = size as f64;
            let burst = modelled(bytes, 3.0, burst_bytes as f64, 660_000.0, 64.0 * f64::from(1 << 20));
            let reading = burst.read().unwrap();
            assert!(reading.run < reading.start, "{size} {burst_bytes}");
            let error = (reading.bytes - bytes).abs();
            let bound = (0.03 * bytes).max(3.0 * WRITE.bytes() as f64);
            assert!(error < bound, "{} for {size}, bursts of {burst_bytes}", reading.bytes);
        }
    }

    #[test]
    fn a_buffer_that_is_less_than_what_is_in_flight_is_told_by_what_a_drive_has_not_programmed_yet() {
        let told = |held: f64| {
            let reading = || Reading { start: 0.08, run: 0.08, bytes: held, is_held: true, unclear: None };
            let readings = (0..BURSTS).map(|_| reading()).collect();
            Bursts { readings, all_show: false, longest: ByteSize::mib(64), interface: 2.0 }.verdict().0
        };
        assert_eq!(told(65_536.0).known(), Some(65_536));
        assert_eq!(told(16_384.0), Figure::absent(), "one write that is under way is no buffer");
    }

    #[test]
    fn what_a_flush_had_left_in_the_buffer_is_part_of_its_size() {
        let held = |late, kept| Held { most: 2.0e6, late, kept };
        assert_eq!(held(2.0e6, Kept::Nothing).size(2.5e6), (2.0e6, None));
        assert_eq!(held(2.0e6, Kept::from(Some(300_000), 2.0e6)).size(2.5e6), (2.3e6, None));
        assert_eq!(held(2.0e6, Kept::from(Some(-300_000), 2.0e6)).size(2.3e6), (2.15e6, Some(Unclear::Kept)));
        assert_eq!(held(2.0e6, Kept::from(Some(1_000_000), 2.0e6)).size(9.0e6), (2.25e6, Some(Unclear::Kept)));
        assert_eq!(held(2.0e6, Kept::Some).size(2.05e6), (2.05e6, None), "nothing is missing");
    }

    #[test]
    fn a_drive_that_moves_data_meanwhile_does_not_tell_its_buffer_for_certain() {
        let held = Held { most: 2.0e6, late: 1.0e6, kept: Kept::Nothing };
        assert_eq!(held.size(4.0e6), (2.0e6, Some(Unclear::Moved)));
    }
}
