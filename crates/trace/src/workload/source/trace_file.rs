//! A trace file as a stream: plain or compressed, and never more than a line of its text in memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

/// Bytes read at a time.
const BUFFER: usize = 64 << 10;
/// Longest line, bytes: no format needs more than a few hundred, and a file without line ends must not fill the memory.
const MAX_LINE: usize = 64 << 10;
/// What a gzip file starts with (RFC 1952).
const GZIP: [u8; 2] = [0x1F, 0x8B];

/// The text of a trace.
pub(super) type TraceText = BufReader<LineLimit<TraceBytes>>;

/// The bytes of a trace, decompressed.
#[derive(Debug)]
pub(super) enum TraceBytes {
    Plain(BufReader<File>),
    Gzip(Box<MultiGzDecoder<BufReader<File>>>),
}

/// Opens a trace, whose first bytes tell whether it is compressed.
pub(super) fn open(path: &Path) -> io::Result<TraceText> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = BufReader::with_capacity(BUFFER, file);
    let compressed = bytes.fill_buf()?.starts_with(&GZIP);
    let text = match compressed {
        true => TraceBytes::Gzip(Box::new(MultiGzDecoder::new(bytes))),
        false => TraceBytes::Plain(bytes),
    };
    Ok(BufReader::with_capacity(BUFFER, LineLimit { text, line: 0 }))
}

impl Read for TraceBytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(bytes) => bytes.read(buffer),
            Self::Gzip(bytes) => bytes.read(buffer),
        }
    }
}

/// Passes text on until a line becomes too long.
#[derive(Debug)]
pub(super) struct LineLimit<R> {
    text: R,
    /// Bytes of the last line so far.
    line: usize,
}

impl<R: Read> Read for LineLimit<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.text.read(buffer)?;
        self.line = match buffer[..bytes].iter().rposition(|&byte| byte == b'\n') {
            Some(end) => bytes - end - 1,
            None => self.line + bytes,
        };
        if self.line > MAX_LINE {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is longer than 64 KiB; this is no trace"));
        }
        Ok(bytes)
    }
}
