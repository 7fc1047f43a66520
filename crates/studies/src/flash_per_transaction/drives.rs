//! Drives in steady state on which a recording is replayed.
//!
//! ```text
//!   load once ─▶ the work again and again, until two windows in a row have the same write amplification ─▶ flash ÷ host
//! ```
//!
//! A recording is short: many pages of the table are written once in it. Repeated as it is, they would die in the order
//! in which they were written, and nothing would have to be moved. So the pages of the table change places at random
//! before each round.
//!
//! A drive has the size that makes it as full as it should be, and superblocks as small as let it have some hundred of
//! them: a real one has thousands. Those that are free or open, which take hardly anything of a real drive, come on
//! top of its spare flash. Only bytes are counted: the timing is that of the example, and no request waits for another.

use std::collections::BTreeSet;

use flashwise_block::{BlockDevice, ByteSize, IoBuffer, Operation, Request, execute, interrupt};
use flashwise_ssd::config::{ReductionConfig, StreamPolicy};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::bench::{Recording, Step};
use super::database::Kind;
use crate::StudyError;

/// Bytes of a page of the file system and of the drive.
pub(super) const PAGE: u64 = 4096;
/// The drive to which a database is attached: enough for all cases, and a journal that is no larger than it must be.
const ATTACHED_BYTES: u64 = 768 << 20;
/// Four channels with flash pages of 16 KiB make a superpage of 64 KiB, eight of which make a superblock.
const CHANNELS: u32 = 4;
const ROWS: u32 = 8;
/// What the longest request and the open superpages of all streams need.
const WRITE_BUFFER: u64 = 4 << 20;
/// Two windows differ by at most this. With a recording like that of the tests below (seeds 1 to 3) the write
/// amplification of the second one then is within 1 % of the mean of windows from the 20th drive write on.
const STEADY: f64 = 0.02;
/// Drive writes before the first window, of a window, and at most.
const BEFORE: f64 = 3.0;
const WINDOW: f64 = 0.5;
const DRIVE_WRITES_MAX: f64 = 20.0;

/// A drive, and what sets it apart from the first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drive {
    pub(super) name: &'static str,
    /// Share of the capacity that holds data.
    fill: f64,
    /// Flash beyond the capacity, as a share of it.
    spare: f64,
    compresses: bool,
    streams: StreamPolicy,
    is_protected: bool,
}

/// Flash bytes for a byte that the host writes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Amplification {
    /// All that are programmed. Below 1 where pages are replaced in the buffer before they are programmed.
    pub(super) flash: f64,
    /// Of those, what garbage collection moves.
    pub(super) moved: f64,
}

const NINETY: Drive = Drive {
    name: "90 % full, 7 % spare",
    fill: 0.9,
    spare: 0.07,
    compresses: false,
    streams: StreamPolicy::One,
    is_protected: true,
};

/// All drives, the one on which every case is measured first.
pub(super) const DRIVES: [Drive; 9] = [
    NINETY,
    Drive { name: "70 % full", fill: 0.7, ..NINETY },
    Drive { name: "50 % full", fill: 0.5, ..NINETY },
    Drive { name: "28 % spare", spare: 0.28, ..NINETY },
    Drive { name: COMPRESSES, compresses: true, ..NINETY },
    Drive { name: BY_KIND, streams: StreamPolicy::Hint, ..NINETY },
    Drive { name: "streams by SepBIT", streams: StreamPolicy::SepBit, ..NINETY },
    Drive { name: "streams by Bloom filters", streams: StreamPolicy::BloomFilters, ..NINETY },
    Drive { name: "buffer lost in a power cut", is_protected: false, ..NINETY },
];

pub(super) const COMPRESSES: &str = "compresses";
pub(super) const BY_KIND: &str = "streams by the host, one a kind";

fn example() -> Result<DeviceConfig, StudyError> {
    Ok(DeviceConfig::from_toml(include_str!("../compressing.toml"), "examples/compressing.toml")?)
}

/// The drive to which a database is attached.
pub(super) fn attached(compresses: bool) -> Result<DeviceConfig, StudyError> {
    let mut config = example()?;
    config.capacity_bytes = ATTACHED_BYTES;
    config.controller.write_buffer_bytes = WRITE_BUFFER;
    reduce(&mut config, compresses);
    config.check("flash-per-transaction")?;
    Ok(config)
}

fn reduce(config: &mut DeviceConfig, compresses: bool) {
    let compression = config.reduction.take().and_then(|reduction| reduction.compression);
    if compresses {
        config.reduction = Some(ReductionConfig { compression, ..ReductionConfig::default() });
    }
}

impl Drive {
    fn config(&self, recording: &Recording) -> Result<DeviceConfig, StudyError> {
        let mut config = example()?;
        let pages = (f64::from(recording.used) / self.fill).ceil().max(f64::from(recording.numbered));
        config.capacity_bytes = pages as u64 * PAGE;
        config.controller.write_buffer_bytes = WRITE_BUFFER;
        config.controller.power_loss_protection = self.is_protected;
        (config.flash.channels, config.flash.chips_per_channel, config.flash.planes_per_die) = (CHANNELS, 1, 1);
        config.flash.pages_per_block = ROWS;
        config.ftl.superpage_channels = CHANNELS;
        config.ftl.streams.policy = self.streams;
        reduce(&mut config, self.compresses);
        let superblock = config.superpage_bytes() * u64::from(ROWS);
        let flash = config.capacity_bytes as f64 * (1.0 + self.spare);
        let blocks = (flash / superblock as f64).ceil() as u64 + config.superblocks_kept();
        config.flash.blocks_per_plane = blocks as u32;
        config.check(self.name)?;
        Ok(config)
    }

    /// What it makes of a recording in steady state.
    pub(super) fn steady(&self, recording: &Recording, seed: u64) -> Result<Amplification, StudyError> {
        let config = self.config(recording)?;
        let capacity = config.capacity_bytes as f64;
        let mut replay = Replay::new(config, self.compresses.then_some(recording.stored_share).flatten(), seed)?;
        replay.places = (0..recording.numbered).collect();
        replay.table = table(recording);
        replay.play(&recording.load)?;
        let per_round = recording.written().iter().sum::<u64>() as f64;
        if per_round <= 0.0 {
            return Err(StudyError::Lost);
        }
        let rounds = |drive_writes: f64| (drive_writes * capacity / per_round).ceil().max(1.0) as u32;
        replay.window(&recording.work, rounds(BEFORE))?;
        let mut last = replay.window(&recording.work, rounds(WINDOW))?;
        for _ in 0..(DRIVE_WRITES_MAX / WINDOW) as u32 {
            let next = replay.window(&recording.work, rounds(WINDOW))?;
            if (next.flash / last.flash - 1.0).abs() <= STEADY {
                return Ok(next);
            }
            last = next;
        }
        Ok(last)
    }
}

/// A drive on which steps are played.
struct Replay {
    ssd: SimulatedSsd,
    /// What every page of a request holds, on a drive that compresses.
    content: Option<Vec<u8>>,
    /// Where each page is, by its number.
    places: Vec<u32>,
    /// Pages that change places, in groups.
    table: Vec<[u32; GROUP]>,
    random: Pcg64Mcg,
}

/// Pages that stay together: a database's page of 16 KiB.
const GROUP: usize = 4;

/// The pages of the table, in groups.
fn table(recording: &Recording) -> Vec<[u32; GROUP]> {
    let steps = recording.load.iter().chain(&recording.work).filter(|step| step.kind == Kind::Pages);
    let pages: BTreeSet<u32> = steps.flat_map(|step| step.first..step.first + step.pages).collect();
    pages.into_iter().collect::<Vec<_>>().as_chunks().0.to_vec()
}

/// Pages of the longest request.
const LONGEST: usize = 256;

impl Replay {
    /// With `stored_share`, pages are written that compress to that share.
    fn new(config: DeviceConfig, stored_share: Option<f64>, seed: u64) -> Result<Self, StudyError> {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let content = stored_share.map(|share| {
            let noise = (share.clamp(0.0, 1.0) * PAGE as f64) as usize;
            let mut page = vec![0; PAGE as usize];
            random.fill(&mut page[..noise]);
            page.repeat(LONGEST)
        });
        let (places, table) = (Vec::new(), Vec::new());
        Ok(Self { ssd: SimulatedSsd::new(config, seed)?, content, places, table, random })
    }

    fn play(&mut self, steps: &[Step]) -> Result<(), StudyError> {
        for step in steps {
            if step.operation == Operation::Flush {
                execute(&mut self.ssd, Request::flush())?.result?;
                continue;
            }
            let places = self.places[step.first as usize..(step.first + step.pages) as usize].to_vec();
            let is_next = |a: &u32, b: &u32| a + 1 == *b;
            for run in places.chunk_by(is_next).flat_map(|run| run.chunks(LONGEST)) {
                let (offset, length) = (ByteSize(u64::from(run[0]) * PAGE), ByteSize(run.len() as u64 * PAGE));
                let request = match step.operation {
                    Operation::Write => self.write(step, offset, length),
                    _ => Request::trim(offset, length),
                };
                execute(&mut self.ssd, request)?.result?;
            }
        }
        Ok(())
    }

    /// Groups of the table's pages change places.
    fn move_table(&mut self) {
        let mut order: Vec<usize> = (0..self.table.len()).collect();
        order.shuffle(&mut self.random);
        for (group, &to) in self.table.iter().zip(&order) {
            for (&page, &place) in group.iter().zip(&self.table[to]) {
                self.places[page as usize] = place;
            }
        }
    }

    fn write(&self, step: &Step, offset: ByteSize, length: ByteSize) -> Request {
        // Stream 0 is none.
        let stream = match step.kind {
            Kind::Log => 1,
            Kind::Copies | Kind::Undo => 2,
            Kind::Other => 3,
            Kind::Pages => 0,
        };
        let mut request = Request::write(offset, length).in_stream(stream);
        request.fua = step.fua;
        match &self.content {
            Some(content) => request.with_buffer(IoBuffer::copy_of(&content[..length.0 as usize])),
            None => request,
        }
    }

    /// Plays so many rounds.
    fn window(&mut self, steps: &[Step], rounds: u32) -> Result<Amplification, StudyError> {
        let before = self.ssd.counters();
        for _ in 0..rounds {
            interrupt::check()?;
            self.move_table();
            self.play(steps)?;
        }
        let done = self.ssd.counters().since(&before);
        let flash = done.flash.unwrap_or_default();
        let host = done.host_bytes_written.0.max(1) as f64;
        Ok(Amplification { flash: flash.bytes_programmed.0 as f64 / host, moved: flash.gc_bytes_moved.0 as f64 / host })
    }
}

#[cfg(test)]
mod tests {
    use super::super::work::Work;
    use super::*;

    const PAGES: u32 = 12_000;

    /// Pages that are written one at a time, in the places of rows by popularity.
    fn recording(updates: u32, stored_share: Option<f64>) -> Recording {
        let mut work = Work::new(PAGES, 1);
        let write = |first, pages| Step { operation: Operation::Write, first, pages, fua: false, kind: Kind::Pages };
        let steps = (0..updates).map(|_| write(work.update().row as u32 - 1, 1)).collect();
        Recording { load: vec![write(0, PAGES)], work: steps, numbered: PAGES, used: PAGES, stored_share }
    }

    fn factor(name: &str, recording: &Recording) -> f64 {
        DRIVES.iter().find(|drive| drive.name == name).unwrap().steady(recording, 1).unwrap().flash
    }

    #[test]
    fn space_on_the_drive_lowers_what_it_moves_and_compression_what_it_stores() {
        let recorded = recording(20_000, Some(0.5));
        let [full, emptier, compressing] = [NINETY.name, "50 % full", COMPRESSES].map(|name| factor(name, &recorded));
        // Random writes to nine tenths of a drive: real ones have 2.4 to 3.6.
        assert!((1.8..3.6).contains(&full), "{full}");
        assert!(emptier < 0.6 * full, "{emptier} {full}");
        // Half of each page, and hardly anything to move with so much space.
        assert!((0.5..0.7).contains(&compressing), "{compressing}");
    }

    #[test]
    fn a_buffer_that_is_lost_is_programmed_at_every_flush() {
        let mut recorded = recording(2_000, None);
        let flush = Step { operation: Operation::Flush, first: 0, pages: 0, fua: false, kind: Kind::Other };
        recorded.work = recorded.work.iter().flat_map(|&step| [step, flush]).collect();
        let [kept, lost] = [NINETY.name, "buffer lost in a power cut"].map(|name| factor(name, &recorded));
        assert!(lost > 4.0 * kept, "{lost} {kept}");
    }
}
