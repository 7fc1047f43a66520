//! A text as lines, and never more than one of them in memory.

use std::io;

use super::{BUFFER, Bytes};

/// Longest line, bytes: no format needs more than a few hundred, and a file without line ends must not fill the memory.
const MAX_LINE: usize = 64 << 10;

/// Gives line after line.
pub(crate) struct Lines {
    bytes: Bytes,
    buffer: Box<[u8]>,
    /// What is not given yet: `buffer[start..end]`.
    start: usize,
    end: usize,
    /// Number of the line that was given last.
    number: u64,
    is_at_end: bool,
}

impl Lines {
    pub(crate) fn new(bytes: Bytes) -> Self {
        let buffer = vec![0; BUFFER].into_boxed_slice();
        Self { bytes, buffer, start: 0, end: 0, number: 0, is_at_end: false }
    }

    /// Number of the line that was given last; the first is 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The next line without its end, or `None` after the last.
    #[inline]
    pub(crate) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        let mut searched = 0;
        loop {
            let there = &self.buffer[self.start..self.end];
            if let Some(at) = memchr::memchr(b'\n', &there[searched..]) {
                let line = self.start..self.start + searched + at;
                (self.start, self.number) = (line.end + 1, self.number + 1);
                return Ok(Some(without_return(&self.buffer[line])));
            }
            searched = there.len();
            if searched > MAX_LINE {
                self.number += 1;
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is longer than 64 KiB: not a trace"));
            }
            if self.is_at_end {
                return Ok(self.last());
            }
            self.fill()?;
        }
    }

    /// What is behind the last line end.
    fn last(&mut self) -> Option<&[u8]> {
        let line = self.start..self.end;
        self.start = self.end;
        self.number += u64::from(!line.is_empty());
        (!line.is_empty()).then(|| without_return(&self.buffer[line]))
    }

    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let read = self.bytes.read(&mut self.buffer[self.end..])?;
        self.end += read;
        self.is_at_end = read == 0;
        Ok(())
    }
}

/// A line of Windows ends in a carriage return and a line feed.
#[inline]
pub(crate) fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut lines = Lines::new(Box::new(io::Cursor::new(bytes.to_vec())));
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push(line.to_vec());
        }
        assert_eq!(lines.number(), found.len() as u64);
        found
    }

    #[test]
    fn a_line_of_64_kib_is_the_longest() {
        let text = [vec![b'x'; MAX_LINE], b"\nshort".to_vec()].concat();
        assert_eq!(lines(&text).len(), 2);
        let mut endless = Lines::new(Box::new(io::BufReader::new(io::repeat(b'x'))));
        assert!(endless.next().unwrap_err().to_string().contains("longer than 64 KiB"));
    }

    proptest! {
        #[test]
        fn lines_are_what_stands_between_line_ends(text in prop::collection::vec(prop::collection::vec(1_u8..10, 0..70_000 / 8), 0..40)) {
            let bytes = text.join(&b'\n');
            // A line end is byte 10, which no line has.
            let mut expected: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
            expected.pop_if(|last| last.is_empty());
            prop_assert_eq!(lines(&bytes), expected);
        }
    }
}
