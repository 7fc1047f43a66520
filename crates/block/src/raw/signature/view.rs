//! A device as the rules read it: both ends at once, anything else a little at a time, each block once.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;

use crate::ByteSize;

/// Bytes read from the start: the last copy of a LUKS 2 header is at 4 MiB.
pub(crate) const HEAD: ByteSize = ByteSize((4 << 20) + (64 << 10));
/// How much of the end: the farthest place of a RAID controller's is 3,087 sectors before it.
pub(crate) const TAIL: ByteSize = ByteSize(2 << 20);

/// Bytes per read elsewhere.
const BLOCK: u64 = 4096;

/// Reads a number of bytes from a place of the device.
type Read<'a> = dyn FnMut(u64, &mut [u8]) -> io::Result<()> + 'a;

pub(crate) struct View<'a> {
    pub(super) size: u64,
    read: RefCell<&'a mut Read<'a>>,
    /// Pieces by their start.
    pieces: RefCell<BTreeMap<u64, Vec<u8>>>,
    failed: Cell<Option<io::Error>>,
}

impl<'a> View<'a> {
    pub(crate) fn new(size: u64, read: &'a mut Read<'a>) -> Self {
        let view = Self { size, read: RefCell::new(read), pieces: RefCell::default(), failed: Cell::new(None) };
        let (head, tail) = (size.min(HEAD.0), size.min(TAIL.0) / BLOCK * BLOCK);
        view.fetch(0, head);
        // From a block's start on, so that pieces do not overlap.
        let tail_start = ((size - tail) / BLOCK * BLOCK).max(head);
        view.fetch(tail_start, size - tail_start);
        view
    }

    fn fetch(&self, start: u64, length: u64) {
        let mut bytes = vec![0; length as usize];
        if length > 0 {
            if let Err(error) = (self.read.borrow_mut())(start, &mut bytes) {
                self.failed.set(Some(error));
            }
            self.pieces.borrow_mut().insert(start, bytes);
        }
    }

    /// Bytes of the device; `None` where it is shorter.
    pub(super) fn bytes<const N: usize>(&self, offset: u64) -> Option<[u8; N]> {
        offset.checked_add(N as u64).filter(|&end| end <= self.size)?;
        let mut bytes = [0; N];
        (offset..).zip(&mut bytes).for_each(|(at, byte)| *byte = self.byte(at));
        Some(bytes)
    }

    fn byte(&self, at: u64) -> u8 {
        let known = |at: u64| {
            let pieces = self.pieces.borrow();
            let (start, piece) = pieces.range(..=at).next_back()?;
            piece.get((at - start) as usize).copied()
        };
        known(at).unwrap_or_else(|| {
            let start = at / BLOCK * BLOCK;
            self.fetch(start, BLOCK.min(self.size - start));
            known(at).unwrap_or(0)
        })
    }

    pub(super) fn has(&self, offset: u64, magic: &[u8]) -> bool {
        let fits = offset.checked_add(magic.len() as u64).is_some_and(|end| end <= self.size);
        fits && (offset..).zip(magic).all(|(at, &byte)| self.byte(at) == byte)
    }

    pub(super) fn u16_le(&self, offset: u64) -> Option<u16> {
        self.bytes(offset).map(u16::from_le_bytes)
    }

    pub(super) fn u32_le(&self, offset: u64) -> Option<u32> {
        self.bytes(offset).map(u32::from_le_bytes)
    }

    pub(super) fn u32_be(&self, offset: u64) -> Option<u32> {
        self.bytes(offset).map(u32::from_be_bytes)
    }

    /// The first read error: then the content is unknown.
    pub(crate) fn failure(&self) -> io::Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }
}
