//! libCacheSim's lcs: a header with a magic number at both ends, then packed little-endian records.
//!
//! ```text
//!   early       1,024 B  magic u64 · format 240 characters · numbers of the fields · … · record size u32 · version · magic
//!   versioned   1,024 B  magic u64 · version u64 · statistics · magic u64                     (2023)
//!               8,192 B  the same with longer statistics                                      (from 2024 on)
//!
//!   version 1   clock_time u32, s · obj_id u64 · obj_size u32 · next_access_vtime i64
//!           2   … obj_size u32 · op u8 · tenant u24 · next_access_vtime
//!           3   … obj_size i64 · op u8 · tenant u24 · ttl u32 · next_access_vtime;   4 to 8: and 1, 2, 4, 8, 16 features
//! ```
//!
//! The early header describes its records: a format string as of Python's `struct` and the place of each field. As with
//! [`oracle_general`](super::oracle_general) an object of a block trace is a sector, and version 1 has no operations.
//! Source: `lcs.h` of libCacheSim in its three forms, `req_op_e` in `enum.h` for the operations.

use flashwise_block::{Nanos, Operation};

use super::Units;
use super::detect::Head;
use super::fields::digits;
use super::objects::Objects;
use super::source::{Chatter, Failure, RecordSource};
use super::vscsi::{u32_at, u64_at};
use crate::error::Place;
use crate::input::{Input, records::Records};
use crate::record::TraceRecord;

const MAGIC: u64 = 0x1234_5678_9ABC_DEF0;
const SHORT: usize = 1024;
const LONG: usize = 8192;
/// Most bytes of a record: 240 fields of 8 bytes.
const MAX_RECORD: usize = 1920;

/// Where the fields of a record are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    header: usize,
    record: usize,
    time: Field,
    object: Field,
    size: Field,
    operation: Option<Field>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    at: usize,
    bytes: usize,
}

struct Lcs {
    records: Records,
    layout: Layout,
    objects: Objects,
    chatter: Chatter,
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    (head.bytes.len() >= 8 && u64_at(head.bytes, 0) == MAGIC).then_some("the magic number of libCacheSim's lcs")
}

pub(super) fn open(input: Input, units: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    let layout = Layout::of(&input.head)?;
    let records = input.head.get(layout.header..).unwrap_or_default().chunks_exact(layout.record.max(1));
    let objects = Objects::new(units, records.map(|record| value(record, layout.object)));
    let mut records = Records::new(input.into_bytes());
    records.skip(layout.header).map_err(|e| e.to_string())?;
    Ok(Box::new(Lcs { records, layout, objects, chatter: Chatter::default() }))
}

impl Layout {
    fn of(head: &[u8]) -> Result<Self, String> {
        let ends_at = |length: usize| head.len() >= length && u64_at(head, length - 8) == MAGIC;
        if head.len() < SHORT || u64_at(head, 0) != MAGIC {
            return Err("it does not start with the lcs header".to_owned());
        }
        // The first character of a format string makes a version of at least 33.
        if u64_at(head, 8) > 32 && ends_at(SHORT) {
            return Self::described(&head[..SHORT]);
        }
        let header = [SHORT, LONG].into_iter().find(|&length| ends_at(length));
        let header =
            header.ok_or("its header has no magic number at its end, neither at byte 1016 nor at byte 8184")?;
        Self::versioned(header, u64_at(head, 8))
    }

    fn versioned(header: usize, version: u64) -> Result<Self, String> {
        let field = |at, bytes| Field { at, bytes };
        let features = |count: usize| 36 + 4 * count;
        let (record, size, operation) = match version {
            1 => (24, field(12, 4), None),
            2 => (28, field(12, 4), Some(field(16, 1))),
            3 => (36, field(12, 8), Some(field(20, 1))),
            4..=8 => (features(1 << (version - 4)), field(12, 8), Some(field(20, 1))),
            _ => return Err(format!("its version is {version}; 1 to 8 are known")),
        };
        Ok(Self { header, record, time: field(0, 4), object: field(4, 8), size, operation })
    }

    /// The early header: which field is which, counted from 1, 0 for none.
    fn described(head: &[u8]) -> Result<Self, String> {
        let fields = struct_fields(&head[8..248])?;
        let field =
            |place: usize| usize::from(head[place]).checked_sub(1).and_then(|number| fields.get(number)).copied();
        let needed = |place, what| field(place).ok_or_else(|| format!("its header has no field for the {what}"));
        let record = fields.last().map_or(0, |last| last.at + last.bytes);
        let told = u32_at(head, 1004);
        if u64::from(told) != record as u64 {
            return Err(format!("its header gives a record length of {told} bytes, but its fields take {record}"));
        }
        let (object, size) = (needed(248, "object")?, needed(249, "size")?);
        Ok(Self { header: SHORT, record, time: needed(250, "time")?, object, size, operation: field(253) })
    }
}

/// The fields of a format string such as `<IQI3q`.
fn struct_fields(format: &[u8]) -> Result<Vec<Field>, String> {
    let end = format.iter().position(|&byte| byte == 0).unwrap_or(format.len());
    let text = format[..end].strip_prefix(b"<").ok_or("its format string does not start with '<', little-endian")?;
    let (mut fields, mut at, mut count) = (Vec::new(), 0, &text[..0]);
    for (index, &letter) in text.iter().enumerate() {
        if letter.is_ascii_digit() {
            count = &text[index - count.len()..=index];
            continue;
        }
        let bytes = match letter {
            b'c' | b'b' | b'B' | b'?' => 1,
            b'h' | b'H' => 2,
            b'i' | b'I' | b'l' | b'L' | b'f' => 4,
            b'q' | b'Q' | b'd' => 8,
            _ => return Err(format!("its format string has '{}', which is not a number type", letter.escape_ascii())),
        };
        let times = if count.is_empty() { 1 } else { digits(count).unwrap_or(u64::MAX) };
        for _ in 0..times {
            fields.push(Field { at, bytes });
            at += bytes;
            if at > MAX_RECORD {
                return Err(format!("its format string describes records of more than {MAX_RECORD} bytes"));
            }
        }
        count = &text[..0];
    }
    Ok(fields)
}

fn value(record: &[u8], field: Field) -> u64 {
    record[field.at..field.at + field.bytes].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// What libCacheSim calls get, read and so on; `None` for what asks nothing of a drive.
fn operation(number: u64) -> Option<Operation> {
    match number {
        0..=2 | 12 => Some(Operation::Read),
        3..=8 | 10 | 11 | 13 | 14 => Some(Operation::Write),
        9 => Some(Operation::Trim),
        _ => None,
    }
}

impl RecordSource for Lcs {
    fn next(&mut self) -> Result<Option<TraceRecord>, Failure> {
        let layout = self.layout;
        while let Some(record) = self.records.next_of(layout.record)? {
            let operation = layout.operation.map_or(Some(Operation::Read), |field| operation(value(record, field)));
            let (at, object, size) =
                (value(record, layout.time), value(record, layout.object), value(record, layout.size));
            let Some(operation) = operation else {
                self.chatter.note("records of unknown operations".into());
                continue;
            };
            let beyond = || Failure::bad(format!("{at} s exceed 584 years"));
            let at = at.checked_mul(1_000_000_000).ok_or_else(beyond)?;
            let (offset, length) = self.objects.place(object, size).map_err(Failure::bad)?;
            return Ok(Some(TraceRecord::new(Nanos(at), operation, offset, length)));
        }
        Ok(None)
    }

    fn place(&self) -> Place {
        Place::Record(self.records.number())
    }

    fn remarks(&self) -> Vec<String> {
        let none = (
            self.layout.operation.is_none(),
            "the format has no operations: every request counts as a read".to_owned(),
        );
        let none = Some(none).filter(|(holds, _)| *holds).map(|(_, told)| told);
        none.into_iter().chain(self.objects.remark()).chain(self.chatter.remark()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_string_gives_the_places_of_its_fields() {
        let places =
            |text: &str| struct_fields(text.as_bytes()).map(|fields| fields.iter().map(|field| field.at).collect());
        assert_eq!(places("<IQIq"), Ok(vec![0, 4, 12, 16]));
        assert_eq!(places("<2B3h\0Q"), Ok(vec![0, 1, 2, 4, 6]));
        let refusals: Vec<String> =
            [">I", "<x", "<99999999999999999999I", "<240Q1Q"].map(|text| places(text).unwrap_err()).into();
        insta::assert_snapshot!(refusals.join("\n"), @r"
        its format string does not start with '<', little-endian
        its format string has 'x', which is not a number type
        its format string describes records of more than 1920 bytes
        its format string describes records of more than 1920 bytes
        ");
    }
}
