//! Lines of a log file, of limited length.

use std::io::{self, BufRead};

/// The longest line that is kept, bytes: MariaDB's largest statement by default (`max_allowed_packet`).
const LINE_BYTES_MAX: usize = 16 << 20;

/// One line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// Its first bytes: it is longer than is kept.
    TooLong(&'a [u8]),
}

/// Reads lines.
pub(crate) struct Lines<R> {
    reader: R,
    line: Vec<u8>,
    longest: usize,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader, line: Vec::new(), longest: LINE_BYTES_MAX }
    }

    /// The next line; `None` at the end.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        let mut read = 0_u64;
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                break;
            }
            let end = buffer.iter().position(|&byte| byte == b'\n');
            let taken = end.map_or(buffer.len(), |end| end + 1);
            let kept = end.unwrap_or(buffer.len()).min(self.longest + 1 - self.line.len());
            self.line.extend_from_slice(&buffer[..kept]);
            self.reader.consume(taken);
            read += taken as u64;
            if end.is_some() {
                break;
            }
        }
        if read == 0 {
            return Ok(None);
        }
        if self.line.len() > self.longest {
            return Ok(Some(Line::TooLong(&self.line[..self.longest])));
        }
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        Ok(Some(Line::Whole(line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_cut_and_the_next_one_is_whole() {
        let text = b"ab\r\n\nabcdefgh\nij";
        let reader = io::BufReader::with_capacity(3, &text[..]);
        let mut lines = Lines { reader, line: Vec::new(), longest: 4 };
        for expected in [Line::Whole(b"ab"), Line::Whole(b""), Line::TooLong(b"abcd"), Line::Whole(b"ij")] {
            assert_eq!(lines.next().unwrap(), Some(expected));
        }
        assert_eq!(lines.next().unwrap(), None);
    }
}
