//! Which format a file is in, from its first 64 KiB.
//!
//! A binary format is known by its magic number, or by what its first records hold; a text by a header, or by whether
//! its first lines parse: three of four of the first 64 must. Several formats look alike to a human eye and mean
//! opposite things: MQSim's and DiskSim's last field is 1 for a read, Tencent's fourth is 1 for a write. So what was
//! decided, and why, is always told.

use super::source::{Common, EventParser, Line, LineParser};
use super::{REGISTRY, TraceFormat};
use crate::input::Compression;
use crate::input::lines::without_return;

/// Lines that are examined.
const LINES: usize = 64;

/// The first bytes of a trace.
pub(crate) struct Head<'a> {
    /// The name of the file, without what packing adds to it; empty where there is none.
    pub(crate) name: &'a str,
    /// The bytes.
    pub(crate) bytes: &'a [u8],
    /// Whether they are all of the file.
    pub(crate) is_whole: bool,
    /// Lines that are whole, without empty ones; none where the bytes are no text.
    pub(crate) lines: Vec<&'a [u8]>,
}

/// What was decided, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detection {
    /// The format.
    pub format: TraceFormat,
    /// What speaks for it, in a sentence.
    pub reason: &'static str,
}

impl<'a> Head<'a> {
    pub(crate) fn new(name: &'a str, bytes: &'a [u8], is_whole: bool) -> Self {
        let (_, name) = Compression::of_name(name);
        let is_text = !bytes.contains(&0);
        let mut lines: Vec<&[u8]> =
            bytes.split(|&byte| byte == b'\n').take(if is_text { LINES + 1 } else { 0 }).collect();
        if lines.len() > LINES || !is_whole {
            lines.pop();
        }
        lines.retain(|line| !line.trim_ascii().is_empty());
        lines.iter_mut().for_each(|line| *line = without_return(line));
        Self { name, bytes, is_whole, lines }
    }

    /// Whether the file's name ends so, in any case.
    pub(crate) fn is_named(&self, ending: &str) -> bool {
        let start = self.name.len().checked_sub(ending.len());
        start.and_then(|start| self.name.get(start..)).is_some_and(|end| end.eq_ignore_ascii_case(ending))
    }

    /// Whether at least three of four lines that are no chatter parse, and one of them is a request.
    pub(crate) fn is_mostly(&self, mut parser: impl LineParser) -> bool {
        self.is_mostly_data(|line| parser.parse(line))
    }

    /// The same of events.
    pub(crate) fn is_mostly_events(&self, mut parser: impl EventParser) -> bool {
        self.is_mostly_data(|line| parser.parse(line))
    }

    fn is_mostly_data<T>(&self, mut parse: impl FnMut(&[u8]) -> Result<Line<T>, String>) -> bool {
        let (mut common, mut good, mut bad) = (Common::default(), 0, 0);
        for line in &self.lines {
            match parse(line) {
                Ok(Line::Data(_)) => {
                    common.has_data = true;
                    good += 1;
                }
                Ok(Line::Silent | Line::Chatter(_)) => {}
                Err(_) if common.kind(line).is_some() => {}
                Ok(Line::Wrong(_)) | Err(_) => bad += 1,
            }
        }
        good > 0 && good >= 3 * bad
    }

    /// The first line.
    pub(crate) fn first_line(&self) -> &[u8] {
        self.lines.first().map_or(&[], |line| line.trim_ascii())
    }
}

/// The format that the first bytes speak for.
pub(crate) fn detect(head: &Head<'_>) -> Result<Detection, String> {
    let found =
        REGISTRY.iter().find_map(|entry| Some(Detection { format: entry.format, reason: (entry.recognise)(head)? }));
    found.ok_or_else(|| {
        let what = if head.bytes.is_empty() { "the file is empty" } else { "its first lines match no known format" };
        let names: Vec<_> = TraceFormat::all().map(TraceFormat::name).collect();
        format!(
            "{what}: name its format with --trace-format, one of {}; for text in columns use --trace-format \
             columns:'time=1:s,op=2,offset=3:bytes,length=4:bytes'",
            names.join(", ")
        )
    })
}
