//! Rule 2: reads are chunk-sized and start at hot locations.
//!
//! Cost: for each read that breaks the rule, what reads of about its length take longer where it starts than at a hot
//! location. A read within one chunk breaks the letter of the rule, but its curve is flat and the cost nothing. Reads
//! that no curve speaks about are left out; when that is all of them, the time is not told.

use std::collections::BTreeMap;

use flashwise_block::ByteSize;
use flashwise_profile::{DeviceProfile, HotLocation, LocationCurve};
use flashwise_trace::{IoRecord, IoTrace};

use super::{Check, is_database_read, known_hot_location, known_size, location};
use crate::Cost;
use crate::curves::ReadLocation;

struct ReadChunksAtHotLocations<'a> {
    chunk: u64,
    hot: HotLocation,
    curves: &'a [LocationCurve],
}

pub(super) fn prepare(profile: &DeviceProfile) -> Result<Box<dyn Check + '_>, String> {
    let chunk = known_size(&profile.parameters.chunk_bytes, "chunk")?;
    let hot = known_hot_location(profile)?;
    Ok(Box::new(ReadChunksAtHotLocations { chunk, hot, curves: &profile.curves.location }))
}

impl Check for ReadChunksAtHotLocations<'_> {
    fn applies(&self, record: &IoRecord) -> bool {
        is_database_read(record)
    }

    fn obeys(&self, record: &IoRecord) -> bool {
        record.length.0 == self.chunk && record.offset.0 % self.hot.period_bytes == self.hot.offset_bytes
    }

    fn cost(&self, trace: &IoTrace) -> Cost {
        let mut curves = BTreeMap::new();
        let (mut time, mut broken) = (None, false);
        for record in trace.records.iter().filter(|r| self.breaks(r)) {
            broken = true;
            let length = record.length.0;
            let curve = curves.entry(length).or_insert_with(|| ReadLocation::for_length(self.curves, self.hot, length));
            if let Some(curve) = curve {
                time = Some(time.unwrap_or(0_u64).saturating_add(curve.excess_ns(record.offset.0)));
            }
        }
        Cost { time_ns: if broken { time } else { Some(0) }, ..Cost::default() }
    }

    fn statement(&self) -> String {
        let (chunk, at) = (ByteSize(self.chunk), location(self.hot));
        format!("reads of the database should be {chunk} long and start at {at}")
    }

    fn remedy(&self) -> String {
        let chunk = ByteSize(self.chunk);
        format!("set {chunk} pages and let use-hot-locations place each one at {}", location(self.hot))
    }
}
