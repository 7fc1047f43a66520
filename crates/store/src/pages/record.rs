//! Log records: what changes one page. The same function applies a record when it is made and when it is redone.
//!
//! | bytes | what |
//! |---|---|
//! | 1 | kind of the record |
//! | varint | page |
//! | varint | how far the page's LSN before this record lies behind the group's sequence number |
//! | … | `put`: key, value; `remove`: key; `format`: front part and back part of the content; `cut`: the new high fence; `bit`: which; `run`: first bit, number; `exceptions`: number; `counts`: buckets, keys, bytes |
//!
//! Keys, values and parts have their length (varint) in front.

use super::image::PageId;
use super::page::{Builder, Kind, PageMut, PageRef, Shape, Stored};
use super::table::Counts;
use crate::bytes::{Cursor, put_bytes, put_varint};

/// A change of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change<'a> {
    /// Puts a record into a leaf or an inner page.
    Put { key: &'a [u8], value: Stored<'a> },
    /// Removes a record.
    Remove { key: &'a [u8] },
    /// Replaces the content, whatever it was.
    Format { front: &'a [u8], back: &'a [u8] },
    /// Removes the records from `high` on, which becomes the high fence.
    Cut { high: &'a [u8] },
    /// Sets or clears a bit of a map page.
    Bit { bit: u64, value: bool },
    /// Sets or clears neighbouring bits of a map page.
    Run { from: u64, count: u64, value: bool },
    /// How many records of a bucket are in the side tree.
    Exceptions { count: u64 },
    /// How large a table is.
    Counts(Counts),
    /// The page is free.
    Free,
}

const PUT: u8 = 1;
const PUT_OVERFLOW: u8 = 2;
const REMOVE: u8 = 3;
const FORMAT: u8 = 4;
const CUT: u8 = 5;
const SET_BIT: u8 = 6;
const CLEAR_BIT: u8 = 7;
const FREE: u8 = 8;
const EXCEPTIONS: u8 = 9;
const COUNTS: u8 = 10;
const SET_RUN: u8 = 11;
const CLEAR_RUN: u8 = 12;

/// A record in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub page: PageId,
    /// The page's LSN before it.
    pub before: u64,
    pub change: Change<'a>,
}

impl<'a> Record<'a> {
    /// Appends the record of a group with number `seq`.
    pub(crate) fn encode(&self, seq: u64, into: &mut Vec<u8>) {
        let (kind, parts): (u8, [&[u8]; 2]) = match self.change {
            Change::Put { key, value } if value.is_overflow() => (PUT_OVERFLOW, [key, value.bytes()]),
            Change::Put { key, value } => (PUT, [key, value.bytes()]),
            Change::Remove { key } => (REMOVE, [key, &[]]),
            Change::Format { front, back } => (FORMAT, [front, back]),
            Change::Cut { high } => (CUT, [high, &[]]),
            Change::Bit { value: true, .. } => (SET_BIT, [&[]; 2]),
            Change::Bit { value: false, .. } => (CLEAR_BIT, [&[]; 2]),
            Change::Free => (FREE, [&[]; 2]),
            Change::Exceptions { .. } => (EXCEPTIONS, [&[]; 2]),
            Change::Counts(_) => (COUNTS, [&[]; 2]),
            Change::Run { value: true, .. } => (SET_RUN, [&[]; 2]),
            Change::Run { value: false, .. } => (CLEAR_RUN, [&[]; 2]),
        };
        into.push(kind);
        put_varint(into, self.page);
        put_varint(into, seq.saturating_sub(self.before));
        match self.change {
            Change::Put { .. } | Change::Format { .. } => parts.iter().for_each(|part| put_bytes(into, part)),
            Change::Remove { .. } | Change::Cut { .. } => put_bytes(into, parts[0]),
            Change::Bit { bit, .. } => put_varint(into, bit),
            Change::Run { from, count, .. } => [from, count].into_iter().for_each(|word| put_varint(into, word)),
            Change::Exceptions { count } => put_varint(into, count),
            Change::Counts(Counts { buckets, keys, bytes }) => {
                [buckets, keys, bytes].into_iter().for_each(|word| put_varint(into, word));
            }
            Change::Free => {}
        }
    }

    /// The next record of group `seq`.
    pub(crate) fn decode(from: &mut Cursor<'a>, seq: u64) -> Option<Self> {
        let kind = from.u8()?;
        let page = from.varint()?;
        let before = seq.checked_sub(from.varint()?)?;
        let change = match kind {
            PUT | PUT_OVERFLOW => {
                let (key, value) = (from.bytes()?, from.bytes()?);
                Change::Put { key, value: Stored::new(value, kind == PUT_OVERFLOW) }
            }
            REMOVE => Change::Remove { key: from.bytes()? },
            FORMAT => Change::Format { front: from.bytes()?, back: from.bytes()? },
            CUT => Change::Cut { high: from.bytes()? },
            SET_BIT | CLEAR_BIT => Change::Bit { bit: from.varint()?, value: kind == SET_BIT },
            FREE => Change::Free,
            EXCEPTIONS => Change::Exceptions { count: from.varint()? },
            COUNTS => Change::Counts(Counts { buckets: from.varint()?, keys: from.varint()?, bytes: from.varint()? }),
            SET_RUN | CLEAR_RUN => Change::Run { from: from.varint()?, count: from.varint()?, value: kind == SET_RUN },
            _ => return None,
        };
        Some(Self { page, before, change })
    }
}

impl Change<'_> {
    /// Whether the page's content before does not matter.
    pub(crate) fn replaces(&self) -> bool {
        matches!(self, Self::Format { .. } | Self::Free)
    }

    /// Changes the page.
    pub(crate) fn apply(&self, page: &mut PageMut<'_>) -> Result<(), &'static str> {
        match *self {
            Self::Put { key, value } => {
                let view = page.view();
                if view.kind() == Kind::Bucket && value.bytes().len() < 1 << 15 {
                    return page.put_in_bucket(key, value).map_err(|_| "a record does not fit into its bucket");
                }
                if !view.serves(view.tree(), key) {
                    return Err("a record belongs to another page");
                }
                let is_child = view.kind() == Kind::Inner;
                if is_child && value.bytes().len() != 8 || value.bytes().len() >= 1 << 15 {
                    return Err("a record's value is impossible");
                }
                page.put(key, value).map_err(|_| "a record does not fit into its page")
            }
            Self::Remove { key } => {
                let view = page.view();
                let removed = match view.kind() {
                    Kind::Bucket => page.remove_from_bucket(key),
                    _ => view.serves(view.tree(), key) && page.remove(key),
                };
                if removed { Ok(()) } else { Err("a record to be removed is missing") }
            }
            Self::Format { front, back } => {
                let done = page.format(front, back);
                if !done || page.view().check().is_err() { Err("a page's content is impossible") } else { Ok(()) }
            }
            Self::Cut { high } => {
                let image = cut(page.view(), high).ok_or("a page cannot be cut")?;
                let (front, back) = PageRef(&image).content();
                page.format(front, back);
                Ok(())
            }
            Self::Bit { bit, value } => {
                let is_map = page.view().kind() == Kind::Map;
                let bit = usize::try_from(bit).map_err(|_| "a bit is out of bounds")?;
                if is_map && page.set_bit(bit, value) { Ok(()) } else { Err("a bit is out of bounds") }
            }
            Self::Run { from, count, value } => {
                let is_map = page.view().kind() == Kind::Map;
                let run = usize::try_from(from).ok().zip(usize::try_from(count).ok());
                let is_done = is_map && run.is_some_and(|(from, count)| page.set_run(from, count, value));
                if is_done { Ok(()) } else { Err("bits are out of bounds") }
            }
            Self::Exceptions { count } => {
                if page.view().kind() != Kind::Bucket || count > u64::from(u16::MAX) {
                    return Err("a bucket's exceptions are impossible");
                }
                page.set_exceptions(count);
                Ok(())
            }
            Self::Counts(counts) => {
                if page.view().kind() != Kind::Table {
                    return Err("the size of a table belongs to another page");
                }
                page.set_counts(counts);
                Ok(())
            }
            Self::Free => {
                page.format(&super::page::empty_content(Kind::Free), &[]);
                Ok(())
            }
        }
    }

    /// The same on bytes whose changed segments nobody needs.
    #[cfg(test)]
    pub(crate) fn apply_to(&self, bytes: &mut [u8]) -> Result<(), &'static str> {
        let mut changed = super::page::Segments::default();
        self.apply(&mut PageMut { bytes, changed: &mut changed, segment_bytes: 64, undo: None })
    }
}

/// The page with the records below `high`, which becomes its high fence.
pub(crate) fn cut(page: PageRef<'_>, high: &[u8]) -> Option<Vec<u8>> {
    if !page.serves(page.tree(), high) {
        return None;
    }
    let shape = Shape { kind: page.kind(), level: page.level(), tree: page.tree(), low: page.low(), high: Some(high) };
    let mut builder = Builder::new(page.0.len(), shape)?;
    for index in 0..page.count() {
        let key = page.key(index);
        if key.as_slice() >= high {
            break;
        }
        builder.push(&key, page.value(index))?;
    }
    let image = builder.finish();
    PageRef(&image).check().ok().map(|()| image)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_back_and_none_is_read_beyond_the_end() {
        let changes = [
            Change::Put { key: b"k", value: Stored::Inline(b"value") },
            Change::Put { key: b"", value: Stored::Overflow(&[7; 24]) },
            Change::Remove { key: b"key" },
            Change::Format { front: b"front", back: b"" },
            Change::Cut { high: b"m" },
            Change::Bit { bit: 70_000, value: true },
            Change::Bit { bit: 0, value: false },
            Change::Free,
            Change::Run { from: 9, count: 8192, value: true },
            Change::Run { from: 0, count: 1, value: false },
            Change::Exceptions { count: 300 },
            Change::Counts(Counts { buckets: 5, keys: 70_000, bytes: 1 << 40 }),
        ];
        for change in changes {
            let record = Record { page: 1234, before: 90, change };
            let mut bytes = Vec::new();
            record.encode(100, &mut bytes);
            let mut cursor = Cursor(&bytes);
            assert_eq!(Record::decode(&mut cursor, 100), Some(record));
            assert!(cursor.0.is_empty());
            for end in 0..bytes.len() {
                assert_eq!(Record::decode(&mut Cursor(&bytes[..end]), 100), None);
            }
        }
    }

    #[test]
    fn a_cut_page_has_the_records_below_its_new_fence() {
        let shape = Shape { kind: Kind::Leaf, level: 0, tree: 3, low: b"a", high: None };
        let mut builder = Builder::new(4096, shape).unwrap();
        for n in b'a'..=b'z' {
            builder.push(&[n], Stored::Inline(&[n; 30])).unwrap();
        }
        let mut bytes = builder.finish();
        Change::Cut { high: b"m" }.apply_to(&mut bytes).unwrap();
        let page = PageRef(&bytes);
        assert_eq!((page.count(), page.high(), page.check()), (12, Some(b"m".as_slice()), Ok(())));
        assert!(Change::Cut { high: b"z" }.apply_to(&mut bytes).is_err());
        assert!(Change::Remove { key: b"z" }.apply_to(&mut bytes).is_err());
    }
}
