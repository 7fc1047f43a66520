//! The `.lis` traces of ARC's authors: `first_block blocks ignored request_number`.
//!
//! Blocks are pages of a cache. There is no operation and no time: every request counts as a read, and request n is at
//! n ns, so that the order is kept. Source: Megiddo and Modha, "ARC: A Self-Tuning, Low Overhead Replacement Cache",
//! FAST 2003, whose traces (`P1.lis`, `OLTP.lis`, …) caches are compared with.

use flashwise_block::{Nanos, Operation};

use super::Units;
use super::detect::Head;
use super::fields::{bytes_of, number, spaced};
use super::source::{Line, LineParser, RecordSource, TextSource};
use crate::input::Input;
use crate::record::TraceRecord;

struct Parser {
    page: u64,
    count: u64,
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    let numbers = |line: &[u8]| {
        spaced::<4>(line, "").ok().map(|[_, _, third, last]| (third == b"0", number::<u64>("", last).ok()))
    };
    let mut last = None;
    // The third field says nothing, and the last one counts.
    let counts = head.lines.iter().all(|line| {
        let (is_ignored, number) = numbers(line).unwrap_or((false, None));
        let follows = number.is_some_and(|number| last.is_none_or(|last: u64| last.checked_add(1) == Some(number)));
        last = number;
        is_ignored && follows
    });
    let is_one = head.is_mostly(Parser { page: 1, count: 0 });
    match () {
        () if is_one && head.is_named(".lis") => Some("its name, and four numbers per line"),
        () if is_one && counts && head.lines.len() > 1 => {
            Some("four numbers per line, the third 0 and the last counting up: a trace of ARC's authors")
        }
        () => None,
    }
}

pub(super) fn open(input: Input, units: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(TextSource::new(input, Parser { page: units.page, count: 0 })))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Line<TraceRecord>, String> {
        let [first, blocks, ignored, request] = spaced::<4>(line, "first_block blocks ignored request_number")?;
        let (offset, length) =
            (bytes_of("first block", first, self.page)?, bytes_of("number of blocks", blocks, self.page)?);
        number::<u64>("third field", ignored)?;
        number::<u64>("request number", request)?;
        self.count += 1;
        Ok(Line::Data(TraceRecord::new(Nanos(self.count - 1), Operation::Read, offset, length)))
    }

    fn remarks(&self) -> Vec<String> {
        vec!["the format has no operations: every request counts as a read".to_owned()]
    }
}
