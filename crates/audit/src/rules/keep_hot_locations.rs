//! Rule 4: no write of a chunk or more that starts off the chunk's alignment.
//!
//! Where hot locations lie off the chunk's alignment they come from how the drive laid the data out; a chunk-sized
//! write that starts off alignment lays it out anew, and the hot locations that it covers are gone. On a drive whose
//! chunks are hot where they begin there is nothing to wipe out, and the rule is not judged.
//!
//! Cost: each chunk at a hot location that such a write touched and that a later read fetches from there, before
//! somebody writes it again, costs once the difference between the slowest and the hot start of a chunk-sized read.

use std::collections::BTreeSet;

use flashwise_block::ByteSize;
use flashwise_profile::{DeviceProfile, HotLocation};
use flashwise_trace::{FileRole, IoRecord, IoTrace};

use super::{Check, is_database_read, is_write, known_hot_location, known_size};
use crate::Cost;
use crate::curves::ReadLocation;

struct KeepHotLocations {
    chunk: u64,
    hot: HotLocation,
    /// What a chunk-sized read loses at most by where it starts; `None` where no curve tells.
    loss_ns: Option<u64>,
    /// Length of the writes that a page is better written with.
    piece: Option<u64>,
}

pub(super) fn prepare(profile: &DeviceProfile) -> Result<Box<dyn Check + '_>, String> {
    let chunk = known_size(&profile.parameters.chunk_bytes, "chunk")?;
    let hot = known_hot_location(profile)?;
    if hot.offset_bytes == 0 {
        return Err("chunks are hot where they begin on this drive: there is no pattern to wipe out".to_owned());
    }
    let loss_ns = ReadLocation::for_length(&profile.curves.location, hot, chunk).map(|c| c.worst_excess_ns());
    let piece = profile.parameters.write_unit_bytes.known().filter(|&unit| unit > 0 && unit < chunk);
    Ok(Box::new(KeepHotLocations { chunk, hot, loss_ns, piece }))
}

impl KeepHotLocations {
    /// Numbers of the hot chunks that share a byte with the request; `None` where it ends before the first.
    fn hot_chunks(&self, record: &IoRecord) -> Option<std::ops::RangeInclusive<u64>> {
        let last_byte = record.offset.0.saturating_add(record.length.0 - 1);
        let last = last_byte.checked_sub(self.hot.offset_bytes)? / self.hot.period_bytes;
        let behind = record.offset.0.checked_sub(self.hot.offset_bytes);
        let first =
            behind.map_or(0, |b| b / self.hot.period_bytes + u64::from(b % self.hot.period_bytes >= self.chunk));
        (first <= last).then_some(first..=last)
    }

    /// The number of the hot chunk that the request reads from its start on.
    fn chunk_read_hot(&self, record: &IoRecord) -> Option<u64> {
        let starts_hot = record.offset.0 % self.hot.period_bytes == self.hot.offset_bytes;
        let reads_hot = is_database_read(record) && starts_hot && record.length.0 >= self.chunk;
        reads_hot.then(|| record.offset.0 / self.hot.period_bytes)
    }

    /// Hot chunks that a write broke and a later read found broken; walks the trace backwards.
    fn broken_and_read_again(&self, trace: &IoTrace) -> u64 {
        let mut read_later: BTreeSet<(FileRole, u64)> = BTreeSet::new();
        let mut broken = 0;
        for record in trace.records.iter().rev() {
            if let Some(chunk) = self.chunk_read_hot(record) {
                read_later.insert((record.role, chunk));
            }
            let Some(chunks) = is_write(record).then(|| self.hot_chunks(record)).flatten() else { continue };
            let range = (record.role, *chunks.start())..=(record.role, *chunks.end());
            let rewritten: Vec<_> = read_later.range(range).copied().collect();
            rewritten.iter().for_each(|key| _ = read_later.remove(key));
            broken += if self.breaks(record) { rewritten.len() as u64 } else { 0 };
        }
        broken
    }
}

impl Check for KeepHotLocations {
    fn applies(&self, record: &IoRecord) -> bool {
        is_write(record) && record.length.0 >= self.chunk
    }

    fn obeys(&self, record: &IoRecord) -> bool {
        record.offset.0.is_multiple_of(self.chunk)
    }

    fn cost(&self, trace: &IoTrace) -> Cost {
        let time_ns = self.loss_ns.map(|loss| loss.saturating_mul(self.broken_and_read_again(trace)));
        Cost { time_ns, ..Cost::default() }
    }

    fn statement(&self) -> String {
        let chunk = ByteSize(self.chunk);
        format!("writes of {chunk} or more should start at a multiple of {chunk}, or they wipe out hot locations")
    }

    fn remedy(&self) -> String {
        match self.piece {
            Some(piece) => {
                format!("write a page at a hot location in pieces of {}, as use-hot-locations does", ByteSize(piece))
            }
            None => format!("write a page at a hot location in pieces shorter than {}", ByteSize(self.chunk)),
        }
    }
}
