//! libCacheSim's oracleGeneral: packed little-endian records of 24 bytes, `<IQIq`.
//!
//! ```text
//!   0 clock_time u32, s · 4 obj_id u64 · 12 obj_size u32, bytes · 16 next_access_vtime i64, −1 for never
//! ```
//!
//! An object of a block trace is a sector, and its number the address. There is no operation: every request is told as
//! a read. Times are whole seconds, so that many requests share one. Source: `oracleGeneralBin.h` of libCacheSim.

use flashwise_block::{Nanos, Operation};

use super::Units;
use super::detect::Head;
use super::objects::Objects;
use super::source::{Failure, RecordSource};
use super::vscsi::{u32_at, u64_at};
use crate::error::Place;
use crate::input::{Input, records::Records};
use crate::record::TraceRecord;

/// Bytes of a record.
pub(crate) const RECORD: usize = 24;
/// Records of the start that are examined.
const RECORDS: usize = 256;
/// Larger objects are none of a block trace.
const MAX_OBJECT: u32 = 1 << 30;
/// More requests than any trace has.
const MOST_REQUESTS: i64 = 1 << 40;
/// Most next accesses are nearer than this.
const NEAR: i64 = 1 << 32;

struct OracleGeneral {
    records: Records,
    objects: Objects,
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    let is_named = [".oracleGeneral", ".oracleGeneral.bin"].iter().any(|ending| head.is_named(ending));
    let records = head.bytes.chunks_exact(RECORD).take(RECORDS);
    let looks_so = head.bytes.contains(&0) && (!head.is_whole || head.bytes.len().is_multiple_of(RECORD));
    let (mut last, mut count, mut near, mut far, mut is_blank) = (0, 0, 0, 0, true);
    let mut small_never = None;
    for (index, record) in records.enumerate() {
        let (at, object) = (u32_at(record, 0), u64_at(record, 4));
        let (size, next) = (u32_at(record, 12), u64_at(record, 16) as i64);
        // Never is -1 as a rule, and with some writers the largest number or a small one.
        let is_ahead = next > index as i64 && next < MOST_REQUESTS;
        let is_never = matches!(next, -1 | i64::MAX)
            || (0..=index as i64).contains(&next) && *small_never.get_or_insert(next) == next;
        if at < last || !is_named && (size > MAX_OBJECT || !(is_ahead || is_never)) {
            return None;
        }
        (last, count, is_blank) = (at, count + 1, is_blank && object == 0 && next == 0);
        (near, far) = (near + u64::from(is_ahead && next < NEAR), far + u64::from(is_ahead && next >= NEAR));
    }
    match () {
        () if count == 0 || is_blank || !looks_so => None,
        () if is_named => Some("its name, and binary records of 24 bytes with times that grow"),
        // Page numbers of 4 bytes that grow look like accesses far away.
        () if far > near => None,
        () => Some("binary records of 24 bytes with times that grow, and next accesses ahead"),
    }
}

pub(super) fn open(input: Input, units: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    let ids = input.head.chunks_exact(RECORD).map(|record| u64_at(record, 4));
    let objects = Objects::new(units, ids);
    Ok(Box::new(OracleGeneral { records: Records::new(input.into_bytes()), objects }))
}

impl RecordSource for OracleGeneral {
    #[inline]
    fn next(&mut self) -> Result<Option<TraceRecord>, Failure> {
        let Some(record) = self.records.next::<RECORD>()? else { return Ok(None) };
        let (at, object, size) = (u32_at(record, 0), u64_at(record, 4), u32_at(record, 12));
        let (offset, length) = self.objects.place(object, u64::from(size)).map_err(Failure::bad)?;
        let at = Nanos(u64::from(at) * 1_000_000_000);
        Ok(Some(TraceRecord::new(at, Operation::Read, offset, length)))
    }

    fn place(&self) -> Place {
        Place::Record(self.records.number())
    }

    fn remarks(&self) -> Vec<String> {
        let no_operations = "the format has no operations: every request counts as a read".to_owned();
        std::iter::once(no_operations).chain(self.objects.remark()).collect()
    }
}
