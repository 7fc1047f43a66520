//! A binary trace as records.

use std::io;

use super::{BUFFER, Bytes};

/// Gives stretches of bytes, one after the other.
pub(crate) struct Records {
    bytes: Bytes,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// Number of the record that was given last.
    number: u64,
}

impl Records {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self { bytes, buffer: vec![0; BUFFER].into_boxed_slice(), start: 0, end: 0, number: 0 }
    }

    /// Number of the record that was given last; the first is 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The next record of `N` bytes, or `None` at the end.
    #[inline]
    pub(crate) fn next<const N: usize>(&mut self) -> io::Result<Option<&[u8; N]>> {
        Ok(self.next_of(N)?.and_then(|bytes| bytes.try_into().ok()))
    }

    /// The next record of `length` bytes, at most 64 KiB, or `None` at the end.
    #[inline]
    pub(crate) fn next_of(&mut self, length: usize) -> io::Result<Option<&[u8]>> {
        debug_assert!(length <= BUFFER);
        if self.end - self.start < length {
            self.fill(length)?;
        }
        if self.start == self.end {
            return Ok(None);
        }
        self.number += 1;
        if self.end - self.start < length {
            let (left, self_end) = (self.end - self.start, self.end);
            self.start = self_end;
            let reason = format!("incomplete record: {left} of {length} bytes; the file is truncated");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, reason));
        }
        self.start += length;
        Ok(Some(&self.buffer[self.start - length..self.start]))
    }

    /// Passes over bytes that belong to the last record.
    pub(crate) fn skip(&mut self, length: usize) -> io::Result<()> {
        let mut left = length;
        while left > 0 {
            if self.start == self.end {
                self.fill(1)?;
            }
            if self.start == self.end {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "incomplete record: the file is truncated"));
            }
            let step = left.min(self.end - self.start);
            (self.start, left) = (self.start + step, left - step);
        }
        Ok(())
    }

    fn fill(&mut self, length: usize) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        while self.end < length {
            let read = self.bytes.read(&mut self.buffer[self.end..])?;
            if read == 0 {
                return Ok(());
            }
            self.end += read;
        }
        Ok(())
    }
}
