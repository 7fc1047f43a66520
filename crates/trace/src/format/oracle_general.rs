//! libCacheSim's oracleGeneral: packed little-endian records of 24 bytes, `<IQIq`.
//!
//! ```text
//!   0 clock_time u32, s · 4 obj_id u64 · 12 obj_size u32, bytes · 16 next_access_vtime i64, −1 for never
//! ```
//!
//! An object of a block trace is a sector, and its number the address. There is no operation: every request is told as
//! a read. Times are whole seconds, so that many requests share one. Source: `oracleGeneralBin.h` of libCacheSim.

use flashwise_block::{ByteSize, Nanos, Operation};

use super::Units;
use super::detect::Head;
use super::fields::sized;
use super::source::{Failure, RecordSource};
use super::vscsi::{u32_at, u64_at};
use crate::error::Place;
use crate::input::{Input, records::Records};
use crate::record::TraceRecord;

/// Bytes of a record.
pub(crate) const RECORD: usize = 24;
/// Larger objects are none of a block trace.
const MAX_OBJECT: u32 = 1 << 30;

struct OracleGeneral {
    records: Records,
    sector: u64,
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    let (mut last, mut count) = (0, 0);
    for record in head.bytes.chunks_exact(RECORD).take(256) {
        let (at, size, next) = (u32_at(record, 0), u32_at(record, 12), u64_at(record, 16) as i64);
        if at < last || size == 0 || size > MAX_OBJECT || next < -1 || next == 0 {
            return None;
        }
        (last, count) = (at, count + 1);
    }
    let looks_so = count > 0 && head.bytes.contains(&0);
    looks_so.then_some("binary records of 24 bytes with times that grow, sizes below 1 GiB and next accesses ahead")
}

pub(super) fn open(input: Input, units: &Units) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(OracleGeneral { records: Records::new(input.into_bytes()), sector: units.sector }))
}

impl RecordSource for OracleGeneral {
    #[inline]
    fn next(&mut self) -> Result<Option<TraceRecord>, Failure> {
        let Some(record) = self.records.next::<RECORD>()? else { return Ok(None) };
        let (at, object, size) = (u32_at(record, 0), u64_at(record, 4), u32_at(record, 12));
        let offset =
            sized("object", object, self.sector).map_err(|reason| Failure::Bad { text: String::new(), reason })?;
        let at = Nanos(u64::from(at) * 1_000_000_000);
        Ok(Some(TraceRecord::new(at, Operation::Read, offset, ByteSize(size.into()))))
    }

    fn place(&self) -> Place {
        Place::Record(self.records.number())
    }

    fn remarks(&self) -> Vec<String> {
        vec!["the format has no operations: every request is told as a read".to_owned()]
    }
}
