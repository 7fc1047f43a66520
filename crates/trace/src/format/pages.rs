//! Page numbers, one a line: what papers on buffer pools exchange.
//!
//! A number alone is a read; `R 17` and `W 17` say what they are. Lines of `*` (break points of the LIRS traces) and of
//! `#` are skipped. There is no time: request n is told as at n ns, so that the order is kept. The length is one page.

use flashwise_block::{ByteSize, Nanos, Operation};

use super::Units;
use super::detect::Head;
use super::fields::{Words, number, sized};
use super::source::{Line, LineParser, RecordSource, TextSource};
use crate::input::Input;
use crate::record::TraceRecord;

struct Parser {
    page: u64,
    count: u64,
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    head.is_mostly(Parser { page: 1, count: 0 })
        .then_some("one number per line, alone or after R or W: read as page numbers")
}

pub(super) fn open(input: Input, units: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(TextSource::new(input, Parser { page: units.page, count: 0 })))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Line<TraceRecord>, String> {
        let mut words = Words(line);
        let (operation, page) = match (words.next(), words.next(), words.next()) {
            (Some([b'*', ..]), ..) => return Ok(Line::chatter("break points")),
            (Some([b'#', ..]), ..) => return Ok(Line::chatter("comments")),
            (None, ..) => return Ok(Line::Silent),
            (Some(page), None, _) => (Operation::Read, page),
            (Some(b"R" | b"r"), Some(page), None) => (Operation::Read, page),
            (Some(b"W" | b"w"), Some(page), None) => (Operation::Write, page),
            _ => return Err("it is neither a page number nor R or W and a page number".to_owned()),
        };
        let offset = sized("page", number("page", page)?, self.page)?;
        self.count += 1;
        Ok(Line::Data(TraceRecord::new(Nanos(self.count - 1), operation, offset, ByteSize(self.page))))
    }
}
