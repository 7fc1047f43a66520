//! The bytes of a medium that has no place of its own for them, in pages that somebody wrote.

use std::collections::BTreeMap;

use flashwise_block::{ByteSize, Operation, Request};

const PAGE: usize = 4096;

/// Written pages, by their number; what is missing reads as zeros.
#[derive(Default)]
pub(crate) struct Bytes {
    pages: BTreeMap<u64, Box<[u8; PAGE]>>,
}

impl Bytes {
    /// Moves the bytes of a request that is served now.
    pub(crate) fn serve(&mut self, request: &mut Request) {
        let (start, end) = (request.offset.0, request.offset.0 + request.length.0);
        match request.operation {
            Operation::Flush => {}
            Operation::Trim | Operation::WriteZeroes => self.clear(start, end),
            Operation::Read => {
                let Some(buffer) = &mut request.buffer else { return };
                let mut left = &mut buffer[..];
                for (page, from, to) in pieces(start, end) {
                    let (piece, rest) = left.split_at_mut(to - from);
                    match self.pages.get(&page) {
                        Some(bytes) => piece.copy_from_slice(&bytes[from..to]),
                        None => piece.fill(0),
                    }
                    left = rest;
                }
            }
            Operation::Write => {
                let Some(buffer) = &request.buffer else { return };
                let mut left = &buffer[..];
                for (page, from, to) in pieces(start, end) {
                    let (piece, rest) = left.split_at(to - from);
                    let bytes = self.pages.entry(page).or_insert_with(|| Box::new([0; PAGE]));
                    bytes[from..to].copy_from_slice(piece);
                    left = rest;
                }
            }
        }
    }

    /// Whether anything of the page of a byte was written.
    pub(crate) fn holds(&self, byte: ByteSize) -> bool {
        self.pages.contains_key(&(byte.0 / PAGE as u64))
    }

    fn clear(&mut self, start: u64, end: u64) {
        let (first, last) = (start / PAGE as u64, end.div_ceil(PAGE as u64));
        let numbers: Vec<u64> = self.pages.range(first..last).map(|(&number, _)| number).collect();
        for number in numbers {
            let from = start.saturating_sub(number * PAGE as u64) as usize;
            let to = (end - number * PAGE as u64).min(PAGE as u64) as usize;
            if from == 0 && to == PAGE {
                self.pages.remove(&number);
            } else if let Some(bytes) = self.pages.get_mut(&number) {
                bytes[from..to].fill(0);
            }
        }
    }
}

/// The parts of a range: a page, and from where to where in it.
fn pieces(start: u64, end: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let page = PAGE as u64;
    (start / page..end.div_ceil(page)).map(move |number| {
        let first = number * page;
        (number, start.saturating_sub(first) as usize, (end - first).min(page) as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwise_block::IoBuffer;

    fn read(bytes: &mut Bytes, offset: u64, length: usize) -> Vec<u8> {
        let buffer = IoBuffer::copy_of(&vec![9; length]);
        let mut request = Request::read(ByteSize(offset), ByteSize(0)).with_buffer(buffer);
        bytes.serve(&mut request);
        request.buffer.unwrap().to_vec()
    }

    #[test]
    fn what_was_written_is_read_and_the_rest_is_zeros() {
        let mut bytes = Bytes::default();
        let written: Vec<u8> = (0..9000).map(|i| (i % 251) as u8).collect();
        bytes.serve(&mut Request::write(ByteSize(1024), ByteSize(0)).with_buffer(IoBuffer::copy_of(&written)));
        let mut expected = vec![0; 16_384];
        expected[1024..10_024].copy_from_slice(&written);
        assert_eq!(read(&mut bytes, 0, 16_384), expected);
        bytes.serve(&mut Request::trim(ByteSize(2048), ByteSize(6144)));
        expected[2048..8192].fill(0);
        assert_eq!(read(&mut bytes, 0, 16_384), expected);
        assert_eq!(bytes.pages.len(), 2, "a page that is trimmed as a whole takes no memory");
    }
}
