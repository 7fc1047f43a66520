//! Google's Thesios: requests to the servers of a distributed file system, 17 columns with a header.
//!
//! Of them are used `filename`, `file_offset`, `op_type` (`READ` or `WRITE`), `request_io_size_bytes`, `start_time` in
//! seconds since 1970, and `simulated_latency` in seconds. A file is one of
//! [`TraceReader::files`](crate::TraceReader::files). Requests that the server's own cache served are told as well, and
//! counted. Source: the README of `thesios` (Phothilimthana et al., "Thesios: Synthesizing Accurate Counterfactual I/O
//! Traces from I/O Samples", ASPLOS 2024).

use flashwise_block::Operation;

use super::Units;
use super::detect::Head;
use super::fields::{SECONDS, bytes_of, decimal_time, quoted};
use super::source::{Line, LineParser, Names, RecordSource, TextSource};
use super::table::Table;
use crate::input::Input;
use crate::record::TraceRecord;

struct Parser {
    table: Table<7>,
    files: Names,
    hits: u64,
}

impl Default for Parser {
    fn default() -> Self {
        let names = [
            "filename",
            "file_offset",
            "op_type",
            "cache_hit",
            "request_io_size_bytes",
            "start_time",
            "simulated_latency",
        ];
        Self { table: Table::new(names, "the columns of Thesios by name"), files: Names::default(), hits: 0 }
    }
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    let names = Parser::default().table.fields(head.first_line());
    matches!(names, Ok(None)).then_some("the header filename,file_offset,…,simulated_latency of Thesios")
}

pub(super) fn open(input: Input, _: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(TextSource::new(input, Parser::default())))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Line<TraceRecord>, String> {
        let Some([file, offset, operation, hit, size, at, latency]) = self.table.fields(line)? else {
            return Ok(Line::Silent);
        };
        let operation = match operation {
            b"READ" => Operation::Read,
            b"WRITE" => Operation::Write,
            other => return Err(format!("op_type is {}; Thesios writes READ or WRITE", quoted(other))),
        };
        let (offset, length) = (bytes_of("file_offset", offset, 1)?, bytes_of("request_io_size_bytes", size, 1)?);
        let record = TraceRecord::new(decimal_time("start_time", at, SECONDS)?, operation, offset, length);
        self.hits += u64::from(hit == b"1");
        let latency = match latency {
            b"" => None,
            latency => Some(decimal_time("simulated_latency", latency, SECONDS)?),
        };
        Ok(Line::Data(TraceRecord { latency, file: self.files.number(file), ..record }))
    }

    fn files(&self) -> &[String] {
        self.files.list()
    }

    fn remarks(&self) -> Vec<String> {
        let hits = (self.hits > 0).then(|| format!("{} of the reads were served by the server's cache", self.hits));
        hits.into_iter().chain(self.files.remark()).collect()
    }
}
