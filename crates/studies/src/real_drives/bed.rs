//! A drive made smaller, a workload on it, and what its counters and its clock say.
//!
//! # Why a smaller drive does
//!
//! A superblock keeps its dies and planes and gets fewer pages, and the drive less capacity, by the same factor; an
//! erase takes less time by that factor. So the number of superblocks stays, and with it the share of them that are
//! open or free; a row is programmed, read and transferred as before. Write amplification and rates depend on these.
//! What changes is chance: a superblock of `n` pages has a number of valid ones that varies by about 1 ÷ √n of itself.
//! The section on the scale measures what is left of it.

use flashwise_block::{BlockDevice, ByteSize, DeviceCounters, Nanos, Request};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use flashwise_trace::workload::Zipf;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::StudyError;

/// Bytes of a random write of the measurements, and how many of them are in flight.
const PAGE: u64 = 4096;
const RANDOM_DEPTH: usize = 512;
/// Bytes of a sequential write.
const SEQUENTIAL: u64 = 512 << 10;
/// Pages of the area that a database writes to before it writes in place: InnoDB's doublewrite buffer has 128 of 16
/// KiB.
const DOUBLE_WRITE: u64 = 512;
/// The share of the host's bytes in which the published rows were measured.
const WINDOW: (f64, f64) = (0.60, 0.99);
/// On a smaller drive the write buffer holds at most one part in so many of a superblock; on the real ones it holds
/// one in a hundred. With a superblock of 16 rows and a buffer as large as it, uniform writes to half of a Micron 7450
/// MAX are 1.4 % slower than with a quarter of it, which gives what a superblock of 32 rows gives (1,259, 1,277, 1,278
/// MB/s).
const SUPERBLOCKS_PER_BUFFER: u64 = 4;
/// But so many superpages, so that one is filled while another is programmed.
const SUPERPAGES_IN_BUFFER: u64 = 4;
/// Ranks of a Zipf distribution that keep a page of their own on a smaller drive. Behind them neighbours in rank share
/// one, which then is overwritten as often in the life of a smaller superblock as each of them in that of a real one.
/// The hottest few would share one that takes a quarter of all writes; with pages of their own they are overwritten
/// many times in the life of a superblock, as on the real drive.
const HOTTEST: u64 = 64;

/// A second in which the host writes less than this share of its mean counts as stalled. In the published series of
/// eight open zones of a Micron 7450 MAX, whose mean is 934 MB/s, the slowest seconds have 21 to 25 MB/s.
const STALLED: f64 = 0.1;

/// How a drive was filled before the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preparation {
    /// Not at all.
    New,
    /// Once, in order.
    InOrder,
    /// Once, page by page in random order.
    Shuffled,
    /// All of the drive once, in order, though the workload then writes to a part: what lies behind it stays valid.
    Whole,
}

/// What the host writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Work {
    /// In order, 512 KiB at a time.
    Sequential,
    /// Pages of 4 KiB, all equally often.
    Uniform,
    /// By a Zipf distribution with this exponent, its ranks scattered over the drive.
    Zipf(f64),
    /// The same, each page written to an area of [`DOUBLE_WRITE`] first, as databases do that write in place.
    ZipfTwice(f64),
    /// A share of the pages gets a share of the writes; scattered.
    TwoZones { space: f64, traffic: f64 },
    /// A share of the pages is never written again; scattered.
    Never(f64),
    /// Zones, so many at a time, each written in order; the next is any that is not open, trimmed first. MiB of the
    /// real drive.
    Zones { open: usize, mib: f64 },
}

/// One experiment.
#[derive(Clone, Copy)]
pub(super) struct Case {
    pub(super) preset: &'static str,
    /// Share of the capacity that is used.
    pub(super) fill: f64,
    pub(super) preparation: Preparation,
    pub(super) work: Work,
    /// Multiples of the used capacity that are written.
    pub(super) drive_writes: f64,
    /// Rows of a superblock of the smaller drive.
    pub(super) rows: u32,
    /// What is varied.
    pub(super) change: fn(&mut DeviceConfig),
}

/// What was measured in a part of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Part {
    /// Multiples of the used capacity that were written when it ended.
    pub(super) drive_writes: f64,
    pub(super) host_mb_s: f64,
    pub(super) media_mb_s: f64,
    /// What garbage collection read.
    pub(super) moved_mb_s: f64,
    pub(super) amplification: f64,
}

/// A run in equal parts, and the window of the published rows.
pub(super) struct Run {
    pub(super) parts: Vec<Part>,
    pub(super) window: Part,
    /// Seconds of the real drive in the window in which the host hardly writes.
    pub(super) stalled_s: usize,
    /// GiB of the real drive that are used.
    pub(super) used_gib: f64,
}

/// Parts of a multiple of the used capacity: fine enough for the cliff and the dip, which public measurements have to
/// 0.01 of it.
const PARTS_PER_DRIVE_WRITE: f64 = 100.0;

/// The smaller drive, and by how much it is.
fn smaller(case: &Case) -> Result<(DeviceConfig, f64), StudyError> {
    let mut config = DeviceConfig::preset(case.preset)?;
    (case.change)(&mut config);
    let factor = shrink(&mut config, case.rows);
    config.check(case.preset)?;
    Ok((config, factor))
}

/// Gives a drive superblocks of so many rows, and returns by how much it is smaller then.
pub(super) fn shrink(config: &mut DeviceConfig, rows: u32) -> f64 {
    let factor = f64::from(config.flash.pages_per_block) / f64::from(rows);
    config.flash.pages_per_block = rows;
    config.flash.erase_ns = (config.flash.erase_ns as f64 / factor) as u64;
    config.capacity_bytes = (config.capacity_bytes as f64 / factor) as u64 / PAGE * PAGE;
    let superpage = config.ftl.stripe_bytes;
    let buffer = (u64::from(rows) / SUPERBLOCKS_PER_BUFFER).max(SUPERPAGES_IN_BUFFER) * superpage;
    config.controller.write_buffer_bytes = config.controller.write_buffer_bytes.min(buffer);
    factor
}

/// Which page is written next.
enum Pages {
    Uniform,
    Scattered { by: Draw, order: Vec<u32> },
}

enum Draw {
    Zipf { zipf: Zipf, ranks: u64 },
    TwoZones { hot: u64, traffic: f64 },
    Below(u64),
}

impl Pages {
    fn new(work: Work, pages: u64, factor: f64, random: &mut Pcg64Mcg) -> Option<Self> {
        let by = match work {
            Work::Sequential | Work::Zones { .. } => return None,
            Work::Uniform => return Some(Self::Uniform),
            Work::Zipf(exponent) | Work::ZipfTwice(exponent) => {
                let ranks = (pages as f64 * factor) as u64;
                Draw::Zipf { zipf: Zipf::new(ranks, exponent), ranks }
            }
            Work::TwoZones { space, traffic } => Draw::TwoZones { hot: (space * pages as f64) as u64, traffic },
            Work::Never(share) => Draw::Below(((1.0 - share) * pages as f64) as u64),
        };
        Some(Self::Scattered { by, order: shuffled(pages, random) })
    }

    fn next(&self, pages: u64, random: &mut Pcg64Mcg) -> u64 {
        match self {
            Self::Uniform => random.random_range(0..pages),
            Self::Scattered { by, order } => u64::from(order[by.rank(pages, random) as usize]),
        }
    }
}

impl Draw {
    fn rank(&self, pages: u64, random: &mut Pcg64Mcg) -> u64 {
        match self {
            &Self::Below(pages) => random.random_range(0..pages),
            &Self::TwoZones { hot, traffic } => match random.random::<f64>() < traffic {
                true => random.random_range(0..hot),
                false => random.random_range(hot..pages),
            },
            Self::Zipf { zipf, ranks } => {
                let rank = zipf.draw(random);
                if rank < HOTTEST {
                    return rank;
                }
                let behind = u128::from(rank - HOTTEST) * u128::from(pages - HOTTEST) / u128::from(ranks - HOTTEST);
                HOTTEST + behind as u64
            }
        }
    }
}

fn shuffled(pages: u64, random: &mut Pcg64Mcg) -> Vec<u32> {
    let mut order: Vec<u32> = (0..pages as u32).collect();
    order.shuffle(random);
    order
}

/// Zones that are written in order.
struct Zones {
    bytes: u64,
    count: u64,
    /// The zone that each place writes, and how far.
    open: Vec<(u64, u64)>,
}

impl Zones {
    /// The next write, and the zone to trim before it.
    fn next(&mut self, random: &mut Pcg64Mcg) -> (u64, u64, Option<u64>) {
        let at = random.random_range(0..self.open.len());
        let mut trim = None;
        if self.open[at].1 == self.bytes {
            let zone = loop {
                let zone = random.random_range(0..self.count);
                if self.count <= self.open.len() as u64 || self.open.iter().all(|&(open, _)| open != zone) {
                    break zone;
                }
            };
            self.open[at] = (zone, 0);
            trim = Some(zone);
        }
        let (zone, written) = &mut self.open[at];
        let length = SEQUENTIAL.min(self.bytes - *written);
        let offset = *zone * self.bytes + *written;
        *written += length;
        (offset, length, trim)
    }
}

/// What the host writes second by second.
struct Seconds {
    start: Nanos,
    length_ns: f64,
    bytes: Vec<u64>,
}

impl Seconds {
    /// Of a drive that is smaller by `factor`, on which a second is as much shorter.
    fn of_smaller(factor: f64) -> Self {
        Self { start: Nanos(0), length_ns: 1e9 / factor, bytes: Vec::new() }
    }

    fn start_at(&mut self, now: Nanos) {
        (self.start, self.bytes) = (now, Vec::new());
    }

    fn written(&mut self, now: Nanos, bytes: u64) {
        let second = (now.since(self.start).0 as f64 / self.length_ns) as usize;
        if self.bytes.len() <= second {
            self.bytes.resize(second + 1, 0);
        }
        self.bytes[second] += bytes;
    }

    /// The last one is not whole.
    fn stalled(&self) -> usize {
        let Some((_, whole)) = self.bytes.split_last() else { return 0 };
        let mean = whole.iter().sum::<u64>() as f64 / whole.len() as f64;
        whole.iter().filter(|&&bytes| (bytes as f64) < STALLED * mean).count()
    }
}

pub(super) fn submit(drive: &mut SimulatedSsd, request: Request, depth: usize) -> Result<(), StudyError> {
    while drive.outstanding() >= depth {
        drive.wait()?;
    }
    drive.submit(request)?;
    Ok(())
}

pub(super) fn drain(drive: &mut SimulatedSsd) -> Result<(), StudyError> {
    while drive.outstanding() > 0 {
        drive.wait()?;
    }
    Ok(())
}

fn write(offset: u64, length: u64) -> Request {
    Request::write(ByteSize(offset), ByteSize(length))
}

fn prepare(drive: &mut SimulatedSsd, case: &Case, used: u64, random: &mut Pcg64Mcg) -> Result<(), StudyError> {
    match case.preparation {
        Preparation::New => {}
        Preparation::Whole => drive.fill_at_once()?,
        Preparation::InOrder if used >= drive.info().capacity.0 => drive.fill_at_once()?,
        Preparation::InOrder => {
            for offset in (0..used).step_by(SEQUENTIAL as usize) {
                submit(drive, write(offset, SEQUENTIAL.min(used - offset)), 2)?;
            }
        }
        Preparation::Shuffled => {
            for page in shuffled(used / PAGE, random) {
                submit(drive, write(u64::from(page) * PAGE, PAGE), RANDOM_DEPTH)?;
            }
        }
    }
    drain(drive)
}

/// Runs an experiment.
pub(super) fn run(case: &Case, seed: u64) -> Result<Run, StudyError> {
    let (config, factor) = smaller(case)?;
    let pages = (config.capacity_bytes as f64 * case.fill.min(1.0)) as u64 / PAGE;
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut drive = SimulatedSsd::new(config, seed)?;
    prepare(&mut drive, case, pages * PAGE, &mut random)?;
    let random_pages = Pages::new(case.work, pages, factor, &mut random);
    let (open, mib) = match case.work {
        Work::Zones { open, mib } => (open, mib),
        _ => (1, (pages * PAGE) as f64 * factor / f64::from(1 << 20)),
    };
    let bytes = (mib * f64::from(1 << 20) / factor) as u64 / PAGE * PAGE;
    let mut zones = Zones { bytes, count: (pages * PAGE / bytes).max(1), open: vec![(u64::MAX, bytes); open] };
    let trims = matches!(case.work, Work::Zones { .. });
    let total = (case.drive_writes * (pages * PAGE) as f64) as u64;
    let parts = (case.drive_writes * PARTS_PER_DRIVE_WRITE).round() as u64;
    let mut doubled = 0;
    let (mut written, mut done) = (0, Vec::with_capacity(parts as usize));
    let start = (drive.counters(), drive.now());
    let mut marks = vec![start];
    let mut seconds = Seconds::of_smaller(factor);
    let at = |share: f64| (share * parts as f64) as usize;
    for part in 1..=parts {
        if part as usize == at(WINDOW.0) + 1 {
            seconds.start_at(drive.now());
        }
        while written < total * part / parts {
            let length = match &random_pages {
                Some(random_pages) => {
                    if let Work::ZipfTwice(_) = case.work {
                        // The last pages of the drive, which are not part of the filled ones.
                        doubled = (doubled + 1) % DOUBLE_WRITE;
                        submit(&mut drive, write((pages + doubled) * PAGE, PAGE), RANDOM_DEPTH)?;
                        written += PAGE;
                    }
                    submit(&mut drive, write(random_pages.next(pages, &mut random) * PAGE, PAGE), RANDOM_DEPTH)?;
                    PAGE
                }
                None => {
                    let (offset, length, trim) = zones.next(&mut random);
                    if let Some(zone) = trim.filter(|_| trims) {
                        drain(&mut drive)?;
                        submit(&mut drive, Request::trim(ByteSize(zone * bytes), ByteSize(bytes)), 1)?;
                    }
                    submit(&mut drive, write(offset, length), 1)?;
                    length
                }
            };
            written += length;
            if part as usize <= at(WINDOW.1) {
                seconds.written(drive.now(), length);
            }
        }
        marks.push((drive.counters(), drive.now()));
        done.push(between(&marks, part as usize - 1, part as usize, part as f64 / PARTS_PER_DRIVE_WRITE));
    }
    let window = between(&marks, at(WINDOW.0), at(WINDOW.1).max(at(WINDOW.0) + 1), case.drive_writes);
    let used_gib = (pages * PAGE) as f64 * factor / f64::from(1 << 30);
    Ok(Run { parts: done, window, stalled_s: seconds.stalled(), used_gib })
}

type Mark = (DeviceCounters, Nanos);

fn between(marks: &[Mark], from: usize, to: usize, drive_writes: f64) -> Part {
    let (before, after) = (&marks[from], &marks[to]);
    let seconds = after.1.since(before.1).as_secs_f64();
    let counters = after.0.since(&before.0);
    let flash = counters.flash.unwrap_or_default();
    let mb_s = |bytes: ByteSize| bytes.0 as f64 / 1e6 / seconds;
    Part {
        drive_writes,
        host_mb_s: mb_s(counters.host_bytes_written),
        media_mb_s: mb_s(flash.bytes_programmed),
        moved_mb_s: mb_s(flash.gc_bytes_moved),
        amplification: counters.write_amplification().unwrap_or(f64::NAN),
    }
}

/// Where a run stops to have its first rate, how deep it drops, and what is left.
pub(super) struct Cliff {
    /// GiB written when the rate drops.
    pub(super) written_gib: f64,
    pub(super) plateau_mb_s: f64,
    /// The lowest rate over 0.02 of the used capacity.
    pub(super) dip_mb_s: f64,
    pub(super) steady_mb_s: f64,
}

impl Run {
    /// The cliff, where there is one.
    pub(super) fn cliff(&self) -> Option<Cliff> {
        // The first parts show what the buffer takes at once.
        let plateau = self.parts.get(2..6)?.iter().map(|part| part.host_mb_s).sum::<f64>() / 4.0;
        let smooth = |parts: &[Part]| parts.len() as f64 / parts.iter().map(|part| 1.0 / part.host_mb_s).sum::<f64>();
        // One slow part alone is a program that came late, not the cliff.
        let is_cliff = |parts: &[Part]| parts[0].host_mb_s < 0.9 * plateau && smooth(parts) < 0.9 * plateau;
        let at = self.parts.windows(3).position(is_cliff)?;
        let dip = self.parts[at..].windows(2).map(smooth).fold(f64::INFINITY, f64::min);
        // The part in which the rate drops is at the first rate as far as its mean says.
        let after = self.parts.get(at + 1).map_or(dip, |part| part.host_mb_s);
        let here = self.parts[at].host_mb_s;
        let share = ((1.0 / here - 1.0 / after) / (1.0 / plateau - 1.0 / after)).clamp(0.0, 1.0);
        let written_gib = (at as f64 + share) / PARTS_PER_DRIVE_WRITE * self.used_gib;
        Some(Cliff { written_gib, plateau_mb_s: plateau, dip_mb_s: dip, steady_mb_s: self.window.host_mb_s })
    }

    /// The part that ends at so many multiples of the used capacity, over 0.1 of it.
    pub(super) fn amplification_at(&self, drive_writes: f64) -> f64 {
        let at = (drive_writes * PARTS_PER_DRIVE_WRITE) as usize;
        let range = self.parts.get(at.saturating_sub(5)..(at + 5).min(self.parts.len())).unwrap_or_default();
        range.iter().map(|part| part.amplification).sum::<f64>() / range.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_in_which_the_host_hardly_writes_is_stalled_and_a_slow_one_is_not() {
        let mut seconds = Seconds::of_smaller(10.0);
        seconds.start_at(Nanos(1_000));
        // Tenths of a second: as the mean, nothing, a twentieth, a fifth, and one that has only begun.
        for (tenth, bytes) in [(0, 1_000), (2, 40), (3, 200), (4, 1_000), (5, 1_000), (6, 1)] {
            seconds.written(Nanos(1_000 + tenth * 100_000_000), bytes);
        }
        assert_eq!(seconds.stalled(), 2);
    }

    #[test]
    fn a_smaller_drive_keeps_its_superblocks_and_its_share_of_spare_flash() {
        let case = Case {
            preset: "micron-7450-max-800",
            fill: 1.0,
            preparation: Preparation::InOrder,
            work: Work::Uniform,
            drive_writes: 1.0,
            rows: 8,
            change: |_| {},
        };
        let (small, whole) = (smaller(&case).unwrap().0, DeviceConfig::preset(case.preset).unwrap());
        assert_eq!(small.flash.blocks_per_plane, whole.flash.blocks_per_plane);
        assert!((small.over_provisioning() / whole.over_provisioning() - 1.0).abs() < 1e-3);
    }
}
