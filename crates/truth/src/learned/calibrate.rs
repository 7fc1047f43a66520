//! The times of a drive, set so that it answers as the profile's curves do.
//!
//! What a curve tells directly is taken over: a buffered write alone tells the command's latency, the most requests a
//! second tell how often a command can be issued, the steepest of the long writes and reads tells the link. Sensing,
//! programming and the channel are found by asking the drive and correcting by the difference, until it answers as the
//! profile does. A long read within a chunk is moved by one channel, and tells its pace; where no chunk is known it is
//! spread over channels, which then must not be what holds it up, and tells the pace of the link.

use flashwise_block::{ByteSize, Operation, Request};
use flashwise_profile::{DeviceProfile, LocationCurve, ThroughputCurve};

use super::shape::Shape;
use super::{Calibrated, LearnedError};
use crate::bench::{Bench, median, one_at_a_time};
use flashwise_sim::SimulationError;
use flashwise_ssd::config::DeviceConfig;

/// Rounds of asking and correcting, at most.
const ROUNDS: usize = 24;
/// Answers this near are near enough.
const NEAR: f64 = 0.01;
/// Requests asked each time.
const ASKED: usize = 9;
const SHORT_READ: u64 = 4096;
/// Bytes a second of a channel of which nothing is known: ONFI's NV-DDR2 and above; as fast as the link where that is
/// more.
const CHANNEL: f64 = 800e6;
/// Bytes a second of links and channels that are believed.
const RATES: (f64, f64) = (20e6, 16e9);

/// The times that calibration sets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    command_latency_ns: u64,
    command_issue_ns: u64,
    link_bytes_per_s: u64,
    channel_bytes_per_s: u64,
    read_ns: u64,
    program_ns: u64,
}

impl Times {
    pub(super) fn apply(&self, config: &mut DeviceConfig) {
        config.host.command_latency_ns = self.command_latency_ns;
        config.host.command_issue_ns = self.command_issue_ns;
        config.host.link_bytes_per_s = Some(self.link_bytes_per_s);
        config.flash.channel_bytes_per_s = self.channel_bytes_per_s;
        (config.flash.read_ns, config.flash.program_ns) = (self.read_ns, self.program_ns);
    }
}

/// What the profile answers, ns.
struct Targets {
    short_read: u64,
    /// Length and time.
    long_read: Option<(u64, u64)>,
    /// Whether one channel moves that read; otherwise the link sets its pace.
    in_a_chunk: bool,
    durable_write: Option<(u64, u64)>,
}

/// Finds the times of a drive, and tells how near they come.
pub(super) fn calibrate(
    config: &DeviceConfig,
    profile: &DeviceProfile,
    shape: &Shape,
) -> Result<(Times, Vec<Calibrated>), LearnedError> {
    let targets = Targets::of(profile, shape)?;
    let mut times = told_directly(profile, &targets);
    let mut trial = config.clone();
    let mut before: Option<(Times, Answers)> = None;
    let mut nearest: Option<(f64, Times, Vec<Calibrated>)> = None;
    for _ in 0..ROUNDS {
        times.apply(&mut trial);
        let answers = Answers::ask(&trial, &targets)?;
        let beside = answers.beside(&targets);
        let off = beside.iter().map(Calibrated::off).fold(0.0, f64::max);
        if nearest.as_ref().is_none_or(|(least, ..)| off < *least) {
            nearest = Some((off, times, beside));
        }
        if off <= NEAR {
            break;
        }
        let asked = (times, answers);
        times.correct(&targets, &answers, before.as_ref());
        before = Some(asked);
    }
    let nothing = LearnedError::Open("any time that can be asked again");
    nearest.map(|(_, times, beside)| (times, beside)).ok_or(nothing)
}

impl Targets {
    fn of(profile: &DeviceProfile, shape: &Shape) -> Result<Self, LearnedError> {
        let curves = &profile.curves;
        let reads = |bytes| curves.location.iter().find(|c| c.read_bytes == bytes).and_then(aligned);
        let alone = |operation| throughput(&curves.throughput, operation).and_then(latency_alone);
        let short_read =
            reads(SHORT_READ).or_else(|| alone(Operation::Read)).ok_or(LearnedError::Open("a read of 4 KiB"))?;
        // Inside a chunk a read is moved by one channel; beyond, only the link is certain to be shared.
        let longest = profile.parameters.chunk_bytes.known().filter(|&chunk| chunk > shape.unit.max(8192));
        let in_a_chunk = longest.is_some();
        let longest = longest.map_or(128 << 10, |chunk| chunk / 2);
        let inside = curves.location.iter().filter(|c| c.read_bytes > SHORT_READ && c.read_bytes <= longest);
        let long_read = inside.max_by_key(|c| c.read_bytes).and_then(|c| Some((c.read_bytes, aligned(c)?)));
        let unit = shape.unit.max(SHORT_READ);
        let durable = curves.durable_write.iter().find(|p| p.write_bytes == unit);
        let durable_write = durable.map(|p| (unit, p.latency_ns.median));
        Ok(Self { short_read, long_read, in_a_chunk, durable_write })
    }
}

/// Of reads that start where a chunk does: inside it one channel moves them.
fn aligned(curve: &LocationCurve) -> Option<u64> {
    curve.latency_ns.first().map(|at| at.median)
}

fn throughput(curves: &[ThroughputCurve], operation: Operation) -> Option<&ThroughputCurve> {
    curves.iter().find(|curve| curve.operation == operation && curve.request_bytes == SHORT_READ)
}

fn latency_alone(curve: &ThroughputCurve) -> Option<u64> {
    let point = curve.points.iter().find(|point| point.in_flight == 1 && point.iops > 0.0)?;
    Some((1e9 / point.iops) as u64)
}

/// Bytes a second, from the time that two lengths take.
fn rate(short: (u64, u64), long: (u64, u64)) -> Option<f64> {
    let (bytes, ns) = (long.0.checked_sub(short.0)?, long.1.checked_sub(short.1)?);
    (bytes > 0 && ns > 0).then(|| (bytes as f64 * 1e9 / ns as f64).clamp(RATES.0, RATES.1))
}

fn told_directly(profile: &DeviceProfile, targets: &Targets) -> Times {
    let curves = &profile.curves;
    let durable: Vec<_> = curves.durable_write.iter().map(|p| (p.write_bytes, p.latency_ns.median)).collect();
    let longest = durable.last().copied().unwrap_or_default();
    let half = durable.iter().copied().find(|&(bytes, _)| bytes >= longest.0 / 2).unwrap_or_default();
    let read_of =
        |bytes: u64| curves.location.iter().find(|c| c.read_bytes == bytes).and_then(|c| Some((bytes, aligned(c)?)));
    let reads = read_of(64 << 10).zip(read_of(128 << 10)).and_then(|(short, long)| rate(short, long));
    let link = [rate(half, longest), reads].into_iter().flatten().fold(0.0, f64::max);
    let link = if link > 0.0 { link } else { 3.2e9 };
    let most = curves.throughput.iter().flat_map(|c| &c.points).map(|point| point.iops).fold(0.0, f64::max);
    let issue = if most > 0.0 { (1e9 / most) as u64 } else { 2_000 };
    let short_read = targets.short_read;
    let write = throughput(&curves.throughput, Operation::Write).and_then(latency_alone);
    let moved = (SHORT_READ as f64 * 1e9 / link) as u64;
    // A write that is acknowledged from a buffer takes command and link; without one it takes the medium too.
    let command = write.unwrap_or(short_read / 5).saturating_sub(moved + issue).min(short_read / 2).max(100);
    let of_one_channel = targets.long_read.filter(|_| targets.in_a_chunk);
    let channel = match of_one_channel.and_then(|long| rate((SHORT_READ, short_read), long)) {
        Some(rate) => rate,
        None => link.max(CHANNEL),
    };
    Times {
        command_latency_ns: command,
        command_issue_ns: issue.max(1),
        link_bytes_per_s: link as u64,
        channel_bytes_per_s: channel as u64,
        read_ns: short_read.saturating_sub(command).max(100),
        program_ns: targets.durable_write.map_or(500_000, |(_, ns)| ns.saturating_sub(command).max(100)),
    }
}

/// What the drive answers, ns.
#[derive(Clone, Copy)]
struct Answers {
    short_read: u64,
    long_read: u64,
    durable_write: u64,
}

impl Answers {
    fn ask(config: &DeviceConfig, targets: &Targets) -> Result<Self, SimulationError> {
        let mut bench = Bench::filled(config, 1)?;
        let span = bench.everywhere();
        let aligned = |length: u64| length.max(SHORT_READ);
        let mut reads = |length: u64| -> Result<u64, SimulationError> {
            let at = |bench: &mut Bench| Request::read(bench.place(span, aligned(length)), ByteSize(length));
            one_at_a_time(&mut bench, ASKED, at).map(|ns| median(ns) as u64)
        };
        let short_read = reads(SHORT_READ)?;
        let long_read = targets.long_read.map_or(Ok(0), |(length, _)| reads(length))?;
        let durable_write = match targets.durable_write {
            None => 0,
            Some((length, _)) => {
                let at = |bench: &mut Bench| Request::write(bench.place(span, length), ByteSize(length)).with_fua();
                median(one_at_a_time(&mut bench, ASKED, at)?) as u64
            }
        };
        Ok(Self { short_read, long_read, durable_write })
    }

    fn beside(&self, targets: &Targets) -> Vec<Calibrated> {
        let told = |what: String, profile_ns, drive_ns| Calibrated { what, profile_ns, drive_ns };
        let of = |what: &str, length: u64| format!("{what} of {}", ByteSize(length));
        let mut list = vec![told(of("read", SHORT_READ), targets.short_read, self.short_read)];
        list.extend(targets.long_read.map(|(length, ns)| told(of("read", length), ns, self.long_read)));
        list.extend(
            targets.durable_write.map(|(length, ns)| told(of("durable write", length), ns, self.durable_write)),
        );
        list
    }
}

impl Times {
    /// Moves each time by what its own answer is off, from what the times before this one answered.
    fn correct(&mut self, targets: &Targets, answers: &Answers, before: Option<&(Self, Answers)>) {
        let now = (*self, *answers);
        if let Some((_, long)) = targets.long_read {
            let (wanted, seen) =
                (long.saturating_sub(targets.short_read), answers.long_read.saturating_sub(answers.short_read));
            if wanted > 0 && seen > 0 {
                // Halved in the exponent: other parts have their share of what is seen, so a full step would swing.
                let factor = (seen as f64 / wanted as f64).sqrt().clamp(0.5, 2.0);
                let mover = if targets.in_a_chunk { &mut self.channel_bytes_per_s } else { &mut self.link_bytes_per_s };
                *mover = (*mover as f64 * factor).clamp(RATES.0, RATES.1) as u64;
                if !targets.in_a_chunk {
                    self.channel_bytes_per_s = self.channel_bytes_per_s.max(self.link_bytes_per_s);
                }
            }
        }
        let step = |of: fn(&(Self, Answers)) -> (u64, u64), target: u64| {
            let (time, answer) = of(&now);
            let times = before.and_then(|before| times_in_answer(of(before), (time, answer))).unwrap_or(1.0);
            (time as f64 + (target as f64 - answer as f64) / times).clamp(TIME_MIN, TIME_MAX) as u64
        };
        self.read_ns = step(|(times, answers)| (times.read_ns, answers.short_read), targets.short_read);
        if let Some((_, durable)) = targets.durable_write {
            self.program_ns = step(|(times, answers)| (times.program_ns, answers.durable_write), durable);
        }
    }
}

/// How many times a time is in an answer, from what two of them answered: what is cut in pieces may be programmed one
/// piece after the other. `None` where they say nothing.
fn times_in_answer(before: (u64, u64), now: (u64, u64)) -> Option<f64> {
    let (time, answer) = (now.0 as f64 - before.0 as f64, now.1 as f64 - before.1 as f64);
    (time.abs() >= 1.0 && answer / time > 0.0).then(|| (answer / time).clamp(1.0, PIECES_MAX))
}

/// Times that are believed, ns.
const TIME_MIN: f64 = 100.0;
const TIME_MAX: f64 = 1e9;
/// Pieces of a page that are programmed one after the other, at most.
const PIECES_MAX: f64 = 64.0;
