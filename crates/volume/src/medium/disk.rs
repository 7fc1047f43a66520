//! A rotating disk: one head, a seek curve, a rotation position, and zones that are longer outside.
//!
//! ```text
//!   byte ──▶ zone ──▶ track ──▶ cylinder = track ÷ surfaces, and an angle
//!   service = command + seek (settling, for a write) + rotation to the angle + transfer
//! ```
//!
//! **Seek.** a + b √d cylinders up to a third of the stroke, linear beyond it (C. Ruemmler, J. Wilkes: *An Introduction
//! to Disk Drive Modeling*. IEEE Computer 27(3), 1994); a and b come from the times to the next track and over a third
//! of the stroke, which data sheets call average.
//!
//! **Tracks.** Each track starts later by the time to the next one (skew), so that long transfers lose that and no
//! rotation. A data sheet's sustained rate contains it, so tracks are longer by as much.
//!
//! **Read-ahead.** A read that continues the last one finds what passed under the head since, up to the buffer's size.
//!
//! **Write cache.** Cached writes complete at once and stand in the queue as the others; a flush waits for them.
//!
//! **Not modelled.** Reads of data in the write cache take the disk's time; shortest positioning has no ageing;
//! remapped sectors, thermal recalibration.

use flashwise_block::{Operation, Request};
use flashwise_ssd::SsdError;
use flashwise_ssd::config::Checker;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Done;
use super::bytes::Bytes;
use super::completions::Completions;

/// A rotating disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskConfig {
    /// Rotations a minute.
    pub rpm: u32,
    /// Surfaces with a head each, of which one at a time reads or writes: tracks of a cylinder.
    pub surfaces: u32,
    /// Zones of tracks of the same length, the outermost first.
    pub zones: u32,
    /// Sustained bytes a second in the outermost zone.
    pub outer_bytes_per_s: u64,
    /// Sustained bytes a second in the innermost zone.
    pub inner_bytes_per_s: u64,
    /// Seek to the next track, ns.
    pub track_seek_ns: u64,
    /// Seek over a third of all cylinders, ns: a data sheet's average.
    pub average_seek_ns: u64,
    /// Seek over all cylinders, ns.
    pub full_seek_ns: u64,
    /// What a write's seek takes longer, ns.
    #[serde(default)]
    pub write_settle_ns: u64,
    /// What each command takes apart from the mechanism, ns.
    #[serde(default)]
    pub command_ns: u64,
    /// Bytes a second of the interface.
    pub interface_bytes_per_s: u64,
    /// Which waiting request is next.
    #[serde(default)]
    pub queue: DiskQueue,
    /// Waiting requests among which the disk chooses.
    #[serde(default = "queue_depth")]
    pub queue_depth: u32,
    /// Bytes that the disk reads ahead of a sequential reader; 0 for none.
    #[serde(default)]
    pub read_ahead_bytes: u64,
    /// Bytes of writes that the disk completes before they are stored; 0 for none.
    #[serde(default)]
    pub write_cache_bytes: u64,
}

/// Which waiting request is next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DiskQueue {
    /// The one that came first.
    Fifo,
    /// The one that the head reaches first: shortest seek and rotation.
    #[default]
    Shortest,
}

fn queue_depth() -> u32 {
    32
}

/// Tracks of one length.
#[derive(Clone, Copy)]
struct Zone {
    /// First byte.
    start: u64,
    /// First track.
    track: u64,
    track_bytes: u64,
}

/// A waiting request; without one, a write that is in the cache.
struct Job {
    request: Option<Request>,
    is_write: bool,
    offset: u64,
    length: u64,
    number: u64,
}

/// A flush, and the last cached write that it waits for.
struct WaitingFlush {
    request: Request,
    number: u64,
}

/// The disk, with its bytes.
pub(crate) struct Disk {
    config: DiskConfig,
    rotation_ns: u64,
    zones: Vec<Zone>,
    cylinders: u64,
    /// In the order in which they came.
    queue: Vec<Job>,
    /// What the head is doing, and until when.
    serving: Option<(u64, Job)>,
    cylinder: u64,
    /// The byte behind the last read, and when it passes under the head.
    stream: Option<(u64, u64)>,
    cached_bytes: u64,
    flushes: Vec<WaitingFlush>,
    number: u64,
    ends: Completions,
    pub(super) bytes: Bytes,
}

impl DiskConfig {
    pub(crate) fn check(&self, capacity_bytes: u64, checker: &Checker<'_>) -> Result<(), SsdError> {
        let possible = (300..=60_000).contains(&self.rpm);
        checker.require("medium.disk.rpm", self.rpm, possible, "must be from 300 to 60000")?;
        checker.count("medium.disk.surfaces", self.surfaces, 64, "must be from 1 to 64")?;
        checker.count("medium.disk.zones", self.zones, 1024, "must be from 1 to 1024")?;
        checker.rate("medium.disk.outer_bytes_per_s", self.outer_bytes_per_s)?;
        checker.rate("medium.disk.inner_bytes_per_s", self.inner_bytes_per_s)?;
        let possible = self.inner_bytes_per_s <= self.outer_bytes_per_s;
        let reason = "inner tracks are shorter: at most the outer rate";
        checker.require("medium.disk.inner_bytes_per_s", self.inner_bytes_per_s, possible, reason)?;
        checker.rate("medium.disk.interface_bytes_per_s", self.interface_bytes_per_s)?;
        let seeks = [self.track_seek_ns, self.average_seek_ns, self.full_seek_ns];
        let possible = seeks.is_sorted() && seeks[0] > 0 && seeks[2] <= 1_000_000_000;
        let reason = "track_seek_ns, average_seek_ns and full_seek_ns must grow, from 1 ns to at most one second";
        checker.require("medium.disk.average_seek_ns", self.average_seek_ns, possible, reason)?;
        let possible = self.track_seek_ns < self.rotation_ns();
        checker.require("medium.disk.track_seek_ns", self.track_seek_ns, possible, "must be less than a rotation")?;
        checker.time("medium.disk.write_settle_ns", self.write_settle_ns)?;
        checker.time("medium.disk.command_ns", self.command_ns)?;
        checker.count("medium.disk.queue_depth", self.queue_depth, 4096, "must be from 1 to 4096")?;
        let possible = self.read_ahead_bytes <= 1 << 32 && self.write_cache_bytes <= 1 << 32;
        checker.require("medium.disk.write_cache_bytes", self.write_cache_bytes, possible, "must be at most 4 GiB")?;
        let possible = capacity_bytes >= u64::from(self.zones) << 24;
        let reason = format!("a disk of {} zones needs at least 16 MiB of each", self.zones);
        checker.require("capacity_bytes", capacity_bytes, possible, reason)
    }

    fn rotation_ns(&self) -> u64 {
        60_000_000_000 / u64::from(self.rpm)
    }

    /// The zones of a disk of so many bytes, each with the same number of tracks, and the number of all tracks.
    fn zones(&self, capacity_bytes: u64) -> (Vec<Zone>, u64) {
        let count = u64::from(self.zones);
        let passing_ns = u128::from(self.rotation_ns() + self.track_seek_ns);
        let track_bytes = |zone: u64| {
            let slower = u128::from(self.outer_bytes_per_s - self.inner_bytes_per_s) * u128::from(zone);
            let rate = u128::from(self.outer_bytes_per_s) - slower / u128::from(count.max(2) - 1);
            ((rate * passing_ns / 1_000_000_000) as u64 / 512 * 512).max(512)
        };
        let tracks = capacity_bytes.div_ceil((0..count).map(track_bytes).sum());
        let mut start = 0;
        let zones = (0..count).map(|zone| {
            let found = Zone { start, track: zone * tracks, track_bytes: track_bytes(zone) };
            start += tracks * found.track_bytes;
            found
        });
        (zones.collect(), tracks * count)
    }
}

impl Disk {
    pub(crate) fn new(config: &DiskConfig, capacity_bytes: u64) -> Self {
        let (zones, tracks) = config.zones(capacity_bytes);
        Self {
            config: config.clone(),
            rotation_ns: config.rotation_ns(),
            zones,
            cylinders: tracks.div_ceil(u64::from(config.surfaces)),
            queue: Vec::new(),
            serving: None,
            cylinder: 0,
            stream: None,
            cached_bytes: 0,
            flushes: Vec::new(),
            number: 0,
            ends: Completions::default(),
            bytes: Bytes::default(),
        }
    }

    pub(crate) fn submit(&mut self, mut request: Request, now_ns: u64) {
        self.bytes.serve(&mut request);
        self.number += 1;
        let (is_write, offset, length) = (request.operation.writes(), request.offset.0, request.length.0);
        let job = |request| Job { request, is_write, offset, length, number: self.number };
        match request.operation {
            Operation::Flush => {
                self.flushes.push(WaitingFlush { request, number: self.number });
                return self.complete_flushes(now_ns);
            }
            Operation::Trim => return self.ends.add(now_ns + self.config.command_ns, request),
            Operation::Write | Operation::WriteZeroes
                if !request.fua && self.cached_bytes + length <= self.config.write_cache_bytes =>
            {
                self.queue.push(job(None));
                self.cached_bytes += length;
                self.ends.add(now_ns + self.config.command_ns + self.interface_ns(length), request);
            }
            _ => self.queue.push(job(Some(request))),
        }
        self.start(now_ns);
    }

    pub(crate) fn next_time(&self) -> Option<u64> {
        let serving = self.serving.as_ref().map(|(until_ns, _)| *until_ns);
        self.ends.next_time().into_iter().chain(serving).min()
    }

    pub(crate) fn advance(&mut self, limit_ns: u64) -> Option<Done> {
        loop {
            let until_ns = self.serving.as_ref().map_or(u64::MAX, |(until_ns, _)| *until_ns);
            if self.ends.next_time().is_some_and(|at_ns| at_ns <= until_ns) {
                return self.ends.take(limit_ns);
            }
            if until_ns > limit_ns {
                return None;
            }
            let (_, job) = self.serving.take()?;
            match job.request {
                Some(request) => self.ends.add(until_ns, request),
                None => {
                    self.cached_bytes -= job.length;
                    self.complete_flushes(until_ns);
                }
            }
            self.start(until_ns);
        }
    }

    /// Gives the head its next request.
    fn start(&mut self, now_ns: u64) {
        if self.serving.is_some() || self.queue.is_empty() {
            return;
        }
        let next = match self.config.queue {
            DiskQueue::Fifo => 0,
            DiskQueue::Shortest => {
                let waiting = self.queue.iter().take(self.config.queue_depth as usize).enumerate();
                waiting.min_by_key(|(index, job)| (self.reached_ns(job, now_ns), *index)).map_or(0, |(i, _)| i)
            }
        };
        let job = self.queue.remove(next);
        let until_ns = self.serve(&job, now_ns);
        debug_assert!(until_ns >= now_ns);
        self.serving = Some((until_ns, job));
    }

    /// When the first byte of a read that continues the last one passes under the head; `None` for other requests.
    fn streams_from(&self, job: &Job, now_ns: u64) -> Option<u64> {
        let (_, passes_ns) = self.stream.filter(|&(next, _)| !job.is_write && next == job.offset)?;
        (self.config.read_ahead_bytes > 0 || passes_ns >= now_ns).then_some(passes_ns)
    }

    /// When a request begins, at the earliest.
    fn reached_ns(&self, job: &Job, now_ns: u64) -> u64 {
        self.streams_from(job, now_ns).unwrap_or_else(|| self.positioned_ns(job, now_ns))
    }

    /// When the head is where a request begins.
    fn positioned_ns(&self, job: &Job, now_ns: u64) -> u64 {
        let (track, _, angle_ns) = self.place(job.offset);
        let settled_ns = if job.is_write { self.config.write_settle_ns } else { 0 };
        let cylinder = track / u64::from(self.config.surfaces);
        let there_ns = now_ns + self.config.command_ns + self.seek_ns(cylinder) + settled_ns;
        there_ns + (angle_ns + self.rotation_ns - there_ns % self.rotation_ns) % self.rotation_ns
    }

    /// Moves the head for a request; gives when it is done.
    fn serve(&mut self, job: &Job, now_ns: u64) -> u64 {
        let transfer_ns = self.transfer_ns(job.offset, job.length);
        let end = job.offset + job.length;
        let last_track = self.place(end - 1).0;
        let passed_ns = match self.streams_from(job, now_ns) {
            Some(passes_ns) => {
                let ahead_ns = self.transfer_ns(job.offset, self.config.read_ahead_bytes);
                (passes_ns + transfer_ns).max(now_ns.saturating_sub(ahead_ns))
            }
            None => self.positioned_ns(job, now_ns) + transfer_ns,
        };
        self.cylinder = last_track / u64::from(self.config.surfaces);
        self.stream = (!job.is_write).then_some((end, passed_ns));
        let is_buffered = passed_ns <= now_ns;
        let sent_ns = if is_buffered { self.config.command_ns + self.interface_ns(job.length) } else { 0 };
        passed_ns.max(now_ns) + sent_ns
    }

    /// The track of a byte, its zone, and the time of a rotation at which it passes under the head.
    fn place(&self, byte: u64) -> (u64, Zone, u64) {
        let zone = self.zones[self.zones.partition_point(|zone| zone.start <= byte) - 1];
        let track = zone.track + (byte - zone.start) / zone.track_bytes;
        let within = u128::from((byte - zone.start) % zone.track_bytes);
        let turned_ns = (within * u128::from(self.rotation_ns) / u128::from(zone.track_bytes)) as u64;
        let skew_ns = u128::from(track) * u128::from(self.config.track_seek_ns) % u128::from(self.rotation_ns);
        (track, zone, (turned_ns + skew_ns as u64) % self.rotation_ns)
    }

    /// How long so many bytes from one on take to pass under the head.
    fn transfer_ns(&self, byte: u64, length: u64) -> u64 {
        let (track, zone, _) = self.place(byte);
        let last = self.place(byte + length.saturating_sub(1)).0;
        let turned = u128::from(length) * u128::from(self.rotation_ns) / u128::from(zone.track_bytes);
        turned as u64 + (last - track) * self.config.track_seek_ns
    }

    fn seek_ns(&self, cylinder: u64) -> u64 {
        let distance = self.cylinder.abs_diff(cylinder);
        if distance == 0 {
            return 0;
        }
        let (track, average) = (self.config.track_seek_ns as f64, self.config.average_seek_ns as f64);
        let (full, distance, all) = (self.config.full_seek_ns as f64, distance as f64, self.cylinders as f64);
        let third = (all / 3.0).max(2.0);
        let seek = if distance <= third {
            track + (average - track) * (distance.sqrt() - 1.0) / (third.sqrt() - 1.0)
        } else {
            average + (full - average) * (distance - third) / (all - third).max(1.0)
        };
        seek.round() as u64
    }

    fn interface_ns(&self, bytes: u64) -> u64 {
        (u128::from(bytes) * 1_000_000_000 / u128::from(self.config.interface_bytes_per_s)) as u64
    }

    /// Completes the flushes before which no cached write waits any more.
    fn complete_flushes(&mut self, now_ns: u64) {
        let cached = |job: &&Job| job.request.is_none();
        let serving = self.serving.iter().map(|(_, job)| job);
        let oldest = self.queue.iter().chain(serving).filter(cached).map(|job| job.number).min();
        let is_done = |flush: &mut WaitingFlush| oldest.is_none_or(|oldest| oldest > flush.number);
        let done: Vec<WaitingFlush> = self.flushes.extract_if(.., is_done).collect();
        let at_ns = now_ns + self.config.command_ns;
        done.into_iter().for_each(|flush| self.ends.add(at_ns, flush.request));
    }
}
