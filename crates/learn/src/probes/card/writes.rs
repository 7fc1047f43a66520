//! Timed writes: how long one takes behind the last one, how long one to a closed unit, and what is slow.

use flashwise_block::{ByteSize, Nanos};

use super::Probe;
use crate::LearnError;
use crate::stats::median;

/// Times of a write behind the last one from which on a write may be a merge; on measured cards it takes 20 to 100
/// times as long.
const SLOW_FACTOR: u64 = 4;
/// Share of the time from a lone write to a merge from which on a write was one.
const MERGE_FROM: f64 = 0.5;
/// The same where units are written in order alone: pages in front of a write are copied, a part of a merge.
const WHOLE_MERGE_FROM: f64 = 0.8;
/// Share of writes from which on all of them are slow, and up to which none is: merges of a full log come in between.
const ALL: f64 = 0.8;
const NONE: f64 = 0.2;
/// Bytes of a timed write: from flashbench's on, up to twice the longest page that was seen on a card.
const BLOCKS_KIB: [u64; 3] = [16, 32, 64];
/// Share of writes behind the last one that may be slow; half and more are where a page takes several of them, which a
/// card that writes in order alone takes for writes backwards.
const SLOW_LONE: f64 = 0.25;
/// Writes behind the last one that are timed.
const LONE: u64 = 24;
/// Distances of places, MiB: the largest is the largest unit that the SD specification knows.
const DISTANCES_MIB: [u64; 7] = [64, 32, 16, 8, 4, 2, 1];
/// Places of one distance, and timed writes of one rotation, at least.
const PLACES_MAX: u64 = 160;
const WRITES_MIN: u64 = 12;

/// What is slow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slow {
    /// A write behind the last one.
    pub(super) lone_ns: u64,
    /// A write to a closed unit; 0 until one was seen.
    pub(super) merge_ns: u64,
}

impl Slow {
    /// Whether a write is no lone one.
    fn is_no_lone(&self, time: Nanos) -> bool {
        time.0 > self.lone_ns * SLOW_FACTOR
    }

    fn is_beyond(&self, time: Nanos, share: f64) -> bool {
        time.0 as f64 > self.lone_ns as f64 + share * self.merge_ns.saturating_sub(self.lone_ns) as f64
    }

    /// Whether a write merged a unit.
    pub(super) fn is_merge(&self, time: Nanos) -> bool {
        self.is_beyond(time, MERGE_FROM)
    }

    /// Whether a write merged a whole unit, on a card that copies what is in front of a write.
    pub(super) fn is_whole_merge(&self, time: Nanos) -> bool {
        self.is_beyond(time, WHOLE_MERGE_FROM)
    }
}

/// Whether all, none or some of the writes are slow.
pub(super) fn all_or_none(times: &[Nanos], is_slow: impl Fn(Nanos) -> bool) -> Option<bool> {
    let share = times.iter().filter(|&&time| is_slow(time)).count() as f64 / times.len().max(1) as f64;
    match share {
        share if share >= ALL => Some(true),
        share if share <= NONE => Some(false),
        _ => None,
    }
}

/// Rotations over so many places that give enough writes behind the first.
pub(super) fn rotations(places: u64) -> u64 {
    4.max(WRITES_MIN.div_ceil(places) + 1)
}

impl Probe<'_, '_> {
    /// A short durable write at an offset of the card.
    pub(super) fn write(&mut self, on_card: ByteSize) -> Result<Nanos, LearnError> {
        self.write_bytes(on_card, self.block)
    }

    /// A durable write at an offset of the card.
    pub(super) fn write_bytes(&mut self, on_card: ByteSize, bytes: ByteSize) -> Result<Nanos, LearnError> {
        let time = self.prober.durable_write(self.area.at(on_card), bytes)?;
        self.prober.sample("card", on_card.0 as f64, time.0 as f64);
        Ok(time)
    }

    /// Writes one behind the other, longer ones until nearly all take the same time.
    pub(super) fn measure_lone(&mut self) -> Result<(), LearnError> {
        for block in BLOCKS_KIB.map(ByteSize::kib) {
            self.block = block;
            let start = self.area.start_of(ByteSize::mib(16), 0);
            let times = (0..LONE).map(|n| self.write(start + block * n)).collect::<Result<Vec<_>, _>>()?;
            let times = &times[LONE as usize / 3..];
            let least = times.iter().min().map_or(0, |time| time.0);
            let slow = times.iter().filter(|time| time.0 > least * SLOW_FACTOR).count();
            self.slow.lone_ns = median(times.iter().map(|time| time.0 as f64).collect()) as u64;
            if slow as f64 <= SLOW_LONE * times.len() as f64 {
                break;
            }
        }
        Ok(())
    }

    /// Writes to places far apart, nearer and nearer until there are more than stay open; their times, or none where
    /// all stay open. From the second rotation on, each place was written before, not at its end.
    pub(super) fn find_merges(&mut self) -> Result<Vec<Nanos>, LearnError> {
        for distance in DISTANCES_MIB.map(ByteSize::mib) {
            let places = self.area.count_of(distance).min(PLACES_MAX);
            if places < 2 {
                continue;
            }
            let mut times = Vec::new();
            for rotation in 0..rotations(places) {
                self.prober.advance(self.progress, "writes far apart", distance.0 as f64 / (64 << 20) as f64)?;
                for place in 0..places {
                    let time = self.write(self.area.start_of(distance, place) + self.block * (1 + 2 * rotation))?;
                    if rotation > 0 {
                        times.push(time);
                    }
                }
            }
            if all_or_none(&times, |time| self.slow.is_no_lone(time)) == Some(true) {
                self.slow.merge_ns = median(times.iter().map(|time| time.0 as f64).collect()) as u64;
                return Ok(times);
            }
        }
        Ok(Vec::new())
    }
}
