//! Which format a file is in, from its first 64 KiB.
//!
//! A binary format is known by its magic number, or by what its first records hold; a text by a header, or by whether
//! its first lines parse: three of four of the first 64 must. Several formats look alike to a human eye and mean
//! opposite things: MQSim's and DiskSim's last field is 1 for a read, Tencent's fourth is 1 for a write. So what was
//! decided, and why, is always told.

use super::source::LineParser;
use super::{REGISTRY, TraceFormat};

/// Lines that are looked at.
const LINES: usize = 64;

/// The first bytes of a trace.
pub(crate) struct Head<'a> {
    /// The bytes.
    pub(crate) bytes: &'a [u8],
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
    pub(crate) fn new(bytes: &'a [u8], is_whole: bool) -> Self {
        let is_text = !bytes.contains(&0);
        let mut lines: Vec<&[u8]> =
            bytes.split(|&byte| byte == b'\n').take(if is_text { LINES + 1 } else { 0 }).collect();
        if lines.len() > LINES || !is_whole {
            lines.pop();
        }
        lines.retain(|line| !line.trim_ascii().is_empty());
        Self { bytes, lines }
    }

    /// Whether at least three of four lines parse, and one of them is a request.
    pub(crate) fn is_mostly(&self, mut parser: impl LineParser) -> bool {
        let parsed: Vec<_> = self.lines.iter().filter_map(|line| parser.parse(line).ok()).collect();
        parsed.iter().any(Option::is_some) && 4 * parsed.len() >= 3 * self.lines.len()
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
        let what = if head.bytes.is_empty() { "it is empty" } else { "its first lines fit no format that is known" };
        let names: Vec<_> = TraceFormat::all().map(TraceFormat::name).collect();
        format!("{what}; say how it is written with --trace-format, one of {}", names.join(", "))
    })
}
