//! The times of a drive, set so that it answers as the profile's curves do.
//!
//! What a curve tells directly is taken over: a buffered write alone tells the command's latency, the most requests a
//! second tell how often a command can be issued, the steepest of the long writes and reads tells the link. Sensing,
//! programming and the channel are found by asking the drive and correcting by the difference; three or four rounds are
//! enough, because each answer is nearly linear in its own time.

use flashwise_block::{ByteSize, Operation, Request};
use flashwise_profile::{DeviceProfile, LocationCurve, ThroughputCurve};

use super::shape::Shape;
use super::{Calibrated, LearnedError};
use crate::config::DeviceConfig;
use crate::simulation::SimulationError;
use crate::truth::bench::{Bench, median, one_at_a_time};

/// Rounds of asking and correcting.
const ROUNDS: usize = 6;
/// Requests asked each time.
const ASKED: usize = 9;
const SHORT_READ: u64 = 4096;
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
    for _ in 0..ROUNDS {
        times.apply(&mut trial);
        let answers = Answers::ask(&trial, &targets)?;
        times.correct(&targets, &answers);
    }
    times.apply(&mut trial);
    let answers = Answers::ask(&trial, &targets)?;
    Ok((times, answers.beside(&targets)))
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
        let longest = longest.map_or(128 << 10, |chunk| chunk / 2);
        let inside = curves.location.iter().filter(|c| c.read_bytes > SHORT_READ && c.read_bytes <= longest);
        let long_read = inside.max_by_key(|c| c.read_bytes).and_then(|c| Some((c.read_bytes, aligned(c)?)));
        let unit = shape.unit.max(SHORT_READ);
        let durable = curves.durable_write.iter().find(|p| p.write_bytes == unit);
        let durable_write = durable.map(|p| (unit, p.latency_ns.median));
        Ok(Self { short_read, long_read, durable_write })
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
    Times {
        command_latency_ns: command,
        command_issue_ns: issue.max(1),
        link_bytes_per_s: link as u64,
        channel_bytes_per_s: targets
            .long_read
            .and_then(|long| rate((SHORT_READ, short_read), long))
            .unwrap_or(800e6)
            .clamp(RATES.0, RATES.1) as u64,
        read_ns: short_read.saturating_sub(command).max(100),
        program_ns: targets.durable_write.map_or(500_000, |(_, ns)| ns.saturating_sub(command).max(100)),
    }
}

/// What the drive answers, ns.
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
    /// Moves each time by what its own answer is off.
    fn correct(&mut self, targets: &Targets, answers: &Answers) {
        let moved = |time: u64, target: u64, answer: u64| {
            let corrected = i128::from(time) + i128::from(target) - i128::from(answer);
            corrected.clamp(100, 1_000_000_000) as u64
        };
        if let Some((_, long)) = targets.long_read {
            let (wanted, seen) =
                (long.saturating_sub(targets.short_read), answers.long_read.saturating_sub(answers.short_read));
            if wanted > 0 && seen > 0 {
                // Halved in the exponent: the link has its share of what is seen, so a full step would swing.
                let factor = (seen as f64 / wanted as f64).sqrt().clamp(0.5, 2.0);
                self.channel_bytes_per_s = (self.channel_bytes_per_s as f64 * factor).clamp(RATES.0, RATES.1) as u64;
            }
        }
        self.read_ns = moved(self.read_ns, targets.short_read, answers.short_read);
        if let Some((_, durable)) = targets.durable_write {
            self.program_ns = moved(self.program_ns, durable, answers.durable_write);
        }
    }
}
