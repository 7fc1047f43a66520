//! A page in memory: a slotted page with fences, and the only functions that change its bytes.
//!
//! ```text
//!  0      32           56        56 + 2·count                heap                 fences        len − 16   len
//!  ┌──────┬────────────┬─────────┬──────────── free ─────────┬────────────────────┬─────────────┬──────────┐
//!  │ head │ page head  │ slots   │                           │ records, unsorted  │ low, high   │ foot     │
//!  └──────┴────────────┴─────────┴───────────────────────────┴────────────────────┴─────────────┴──────────┘
//! ```
//!
//! Head and foot belong to the image on the medium (`image.rs`). Records are not sorted: a new one goes below the
//! others, so that an insert changes its record, the slots behind it and the page head, and not half of the page.
//! Every change goes through [`PageMut::set`], which compares segment by segment: it knows which segments differ from
//! the image on the medium, and keeps the old bytes for a batch that fails.
//!
//! **Fences.** A page holds the keys from its low fence (inclusive) up to its high fence (exclusive). All keys of the
//! page have the common prefix of both fences, which no record repeats. A reader that was led to the wrong page finds
//! out by the fences.
//!
//! Source: R. Bayer, K. Unterauer, *Prefix B-trees*, TODS 1977; G. Graefe, *Write-optimized B-trees*, VLDB 2004
//! (fences).

use std::ops::Range;

use super::table::{BucketRef, TABLE_END};
use crate::bytes::{get_u16, get_u32, get_u64};

/// Bytes of the image in front of and behind what a page holds.
pub(crate) const HEAD: usize = 32;
pub(crate) const FOOT: usize = 16;

const KIND: usize = HEAD;
const LEVEL: usize = HEAD + 1;
const COUNT: usize = HEAD + 2;
const TREE: usize = HEAD + 4;
const HEAP: usize = HEAD + 8;
const GARBAGE: usize = HEAD + 10;
const PREFIX: usize = HEAD + 12;
const LOW: usize = HEAD + 14;
const HIGH: usize = HEAD + 16;
/// The page head ends here: slots, or a map's bits, or what an overflow page has.
pub(crate) const BODY: usize = HEAD + 24;
const SLOT: usize = 2;
/// Length of the key's rest and of the value (u16 each).
const RECORD_HEADER: usize = 4;
/// No upper limit.
const INFINITE: u16 = u16::MAX;
/// The value is an overflow reference.
pub(crate) const OVERFLOW: u16 = 1 << 15;

/// What a page is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Free = 0,
    Leaf = 1,
    Inner = 2,
    Overflow = 3,
    Map = 4,
    Bucket = 5,
    Table = 6,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::Free,
            1 => Self::Leaf,
            2 => Self::Inner,
            3 => Self::Overflow,
            4 => Self::Map,
            5 => Self::Bucket,
            6 => Self::Table,
            _ => return None,
        })
    }
}

/// A value as a leaf has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored<'a> {
    Inline(&'a [u8]),
    /// A reference to a chain of overflow pages: 24 bytes.
    Overflow(&'a [u8]),
}

impl<'a> Stored<'a> {
    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            Self::Inline(bytes) | Self::Overflow(bytes) => bytes,
        }
    }

    pub(crate) fn is_overflow(self) -> bool {
        matches!(self, Self::Overflow(_))
    }

    pub(crate) fn new(bytes: &'a [u8], is_overflow: bool) -> Self {
        if is_overflow { Self::Overflow(bytes) } else { Self::Inline(bytes) }
    }
}

/// Length of an overflow reference: length of the value, first page, stamp.
pub(crate) const REFERENCE: usize = 24;

/// A page that is read.
#[derive(Clone, Copy)]
pub(crate) struct PageRef<'a>(pub &'a [u8]);

/// How a page of keys starts out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape<'a> {
    pub kind: Kind,
    pub level: u8,
    pub tree: u32,
    pub low: &'a [u8],
    pub high: Option<&'a [u8]>,
}

impl<'a> PageRef<'a> {
    fn u16(self, at: usize) -> usize {
        usize::from(get_u16(self.0, at))
    }

    pub(crate) fn kind(self) -> Kind {
        Kind::of(self.0[KIND]).unwrap_or(Kind::Free)
    }

    pub(crate) fn level(self) -> u8 {
        self.0[LEVEL]
    }

    pub(crate) fn tree(self) -> u32 {
        get_u32(self.0, TREE)
    }

    pub(crate) fn count(self) -> usize {
        self.u16(COUNT)
    }

    fn heap(self) -> usize {
        self.u16(HEAP)
    }

    fn garbage(self) -> usize {
        self.u16(GARBAGE)
    }

    fn end(self) -> usize {
        self.0.len() - FOOT
    }

    fn low_length(self) -> usize {
        self.u16(LOW)
    }

    fn high_length(self) -> usize {
        match get_u16(self.0, HIGH) {
            INFINITE => 0,
            length => usize::from(length),
        }
    }

    /// Where the fences start: the heap ends here.
    fn fences(self) -> usize {
        self.end() - self.low_length() - self.high_length()
    }

    pub(crate) fn low(self) -> &'a [u8] {
        let start = self.fences();
        &self.0[start..start + self.low_length()]
    }

    pub(crate) fn high(self) -> Option<&'a [u8]> {
        let start = self.end() - self.high_length();
        (get_u16(self.0, HIGH) != INFINITE).then(|| &self.0[start..self.end()])
    }

    pub(crate) fn prefix(self) -> &'a [u8] {
        &self.low()[..self.u16(PREFIX)]
    }

    /// Whether this is the page of a level of a tree that holds `key`.
    pub(crate) fn serves(self, tree: u32, key: &[u8]) -> bool {
        matches!(self.kind(), Kind::Leaf | Kind::Inner)
            && self.tree() == tree
            && self.low() <= key
            && self.high().is_none_or(|high| key < high)
    }

    /// The same for the page that holds the keys just below `bound`; without a bound, the last keys.
    pub(crate) fn serves_below(self, tree: u32, bound: Option<&[u8]>) -> bool {
        let is_node = matches!(self.kind(), Kind::Leaf | Kind::Inner) && self.tree() == tree;
        let reaches = match (self.high(), bound) {
            (None, _) => true,
            (Some(high), Some(bound)) => bound <= high,
            (Some(_), None) => false,
        };
        is_node
            && reaches
            && bound.is_none_or(|bound| self.low() < bound || (bound.is_empty() && self.low().is_empty()))
    }

    fn record(self, index: usize) -> usize {
        self.u16(BODY + SLOT * index)
    }

    /// The key of a record, without the prefix.
    pub(crate) fn rest(self, index: usize) -> &'a [u8] {
        let at = self.record(index);
        &self.0[at + RECORD_HEADER..at + RECORD_HEADER + self.u16(at)]
    }

    pub(crate) fn key(self, index: usize) -> Vec<u8> {
        [self.prefix(), self.rest(index)].concat()
    }

    /// Where a record's value is in the page.
    pub(crate) fn value_range(self, index: usize) -> Range<usize> {
        let at = self.record(index);
        let start = at + RECORD_HEADER + self.u16(at);
        start..start + (self.u16(at + 2) & usize::from(!OVERFLOW))
    }

    pub(crate) fn value(self, index: usize) -> Stored<'a> {
        let is_overflow = get_u16(self.0, self.record(index) + 2) & OVERFLOW != 0;
        Stored::new(&self.0[self.value_range(index)], is_overflow)
    }

    fn record_length(self, index: usize) -> usize {
        self.value_range(index).end - self.record(index)
    }

    /// Where `key`, which the page serves, is or belongs.
    pub(crate) fn find(self, key: &[u8]) -> Result<usize, usize> {
        let prefix = self.u16(PREFIX);
        let Some(rest) = key.get(prefix..).filter(|_| key[..prefix] == *self.prefix()) else {
            return Err(if key < self.prefix() { 0 } else { self.count() });
        };
        let (mut from, mut to) = (0, self.count());
        while from < to {
            let middle = usize::midpoint(from, to);
            match self.rest(middle).cmp(rest) {
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Greater => to = middle,
            }
        }
        Err(from)
    }

    /// The child of an inner page at an index.
    pub(crate) fn child(self, index: usize) -> u64 {
        get_u64(self.value(index).bytes(), 0)
    }

    /// Index of the child that holds `key`.
    pub(crate) fn child_index(self, key: &[u8]) -> usize {
        match self.find(key) {
            Ok(index) => index,
            Err(index) => index.saturating_sub(1),
        }
    }

    /// Index of the child that holds the keys just below `bound`.
    pub(crate) fn child_index_below(self, bound: Option<&[u8]>) -> usize {
        let index = match bound {
            None => self.count(),
            Some(bound) => self.find(bound).unwrap_or_else(|index| index),
        };
        index.saturating_sub(1)
    }

    /// Free bytes, garbage included.
    pub(crate) fn free(self) -> usize {
        self.heap() - (BODY + SLOT * self.count()) + self.garbage()
    }

    /// Whether a record has space, after its old value is gone.
    pub(crate) fn fits(self, key: &[u8], value_length: usize) -> bool {
        match self.find(key) {
            Ok(index) => self.free() + self.value_range(index).len() >= value_length,
            Err(_) => self.free() >= RECORD_HEADER + key.len() - self.prefix().len() + value_length + SLOT,
        }
    }

    /// Bytes that records and slots take.
    pub(crate) fn used(self) -> usize {
        self.end() - BODY - self.free() - (self.end() - self.fences())
    }

    /// Bytes that records and slots may take.
    pub(crate) fn space(self) -> usize {
        self.fences() - BODY
    }

    /// Whether the page is well-formed: no later access goes out of bounds.
    pub(crate) fn check(self) -> Result<(), &'static str> {
        let Some(kind) = Kind::of(self.0[KIND]) else { return Err("its kind is unknown") };
        match kind {
            Kind::Free | Kind::Map | Kind::Table => return Ok(()),
            Kind::Bucket => return BucketRef(self.0).check(),
            Kind::Overflow => {
                let fits = get_u32(self.0, OVERFLOW_LENGTH) as usize <= overflow_space(self.0.len());
                return if fits { Ok(()) } else { Err("its length is impossible") };
            }
            Kind::Leaf | Kind::Inner => {}
        }
        if self.low_length() + self.high_length() > self.end() - BODY || self.u16(PREFIX) > self.low_length() {
            return Err("its fences are impossible");
        }
        if self.high().is_some_and(|high| high <= self.low()) || self.u16(PREFIX) != self.common_prefix() {
            return Err("its fences are impossible");
        }
        if (self.level() == 0) != (kind == Kind::Leaf) {
            return Err("its level is impossible");
        }
        let slots_end = BODY + SLOT * self.count();
        if slots_end > self.heap() || self.heap() > self.fences() {
            return Err("its slots are impossible");
        }
        let mut used = 0;
        for index in 0..self.count() {
            let at = self.record(index);
            if at < self.heap() || at + RECORD_HEADER > self.fences() || self.value_range(index).end > self.fences() {
                return Err("a record is out of bounds");
            }
            let value = self.value(index);
            if value.is_overflow() && value.bytes().len() != REFERENCE
                || kind == Kind::Inner && value.bytes().len() != 8
            {
                return Err("a reference is impossible");
            }
            if index > 0 && self.rest(index - 1) >= self.rest(index) {
                return Err("its keys are not sorted");
            }
            used += self.record_length(index);
        }
        if !self.is_within_fences() {
            return Err("its keys are beyond its fences");
        }
        if used + self.garbage() != self.fences() - self.heap() {
            return Err("its free space is impossible");
        }
        if kind == Kind::Inner && self.count() == 0 {
            return Err("it has no child");
        }
        Ok(())
    }

    /// How many bytes the fences have in common: what all keys between them start with.
    fn common_prefix(self) -> usize {
        self.high().map_or(0, |high| common_bytes(self.low(), high))
    }

    /// Whether the first and the last key are between the fences, of which the prefix is a part.
    fn is_within_fences(self) -> bool {
        let length = self.u16(PREFIX);
        let (low, high) = (self.low(), self.high());
        let Some(last) = self.count().checked_sub(1) else { return true };
        let is_low = self.rest(0) >= &low[length..] && (self.kind() == Kind::Leaf || self.rest(0) == &low[length..]);
        let is_high =
            high.is_none_or(|high| high.get(..length) == Some(&low[..length]) && self.rest(last) < &high[length..]);
        is_low && is_high
    }

    /// The content without the free space in the middle: what a log record of the whole page has.
    pub(crate) fn content(self) -> (&'a [u8], &'a [u8]) {
        match self.kind() {
            Kind::Free => (&self.0[HEAD..BODY], &[]),
            Kind::Leaf | Kind::Inner => (&self.0[HEAD..BODY + SLOT * self.count()], &self.0[self.heap()..self.end()]),
            Kind::Overflow => {
                let length = get_u32(self.0, OVERFLOW_LENGTH) as usize;
                (&self.0[HEAD..OVERFLOW_DATA + length], &[])
            }
            Kind::Map => (&self.0[HEAD..self.end()], &[]),
            Kind::Bucket => (BucketRef(self.0).content(), &[]),
            Kind::Table => (&self.0[HEAD..TABLE_END], &[]),
        }
    }
}

/// What an overflow page has: the next page, the stamp of its value, its place in the chain, and data.
const OVERFLOW_NEXT: usize = BODY;
const OVERFLOW_STAMP: usize = BODY + 8;
const OVERFLOW_INDEX: usize = BODY + 16;
const OVERFLOW_LENGTH: usize = BODY + 20;
const OVERFLOW_DATA: usize = BODY + 24;

/// Bytes of a value in one overflow page.
pub(crate) const fn overflow_space(page_bytes: usize) -> usize {
    page_bytes - FOOT - OVERFLOW_DATA
}

/// An overflow page's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk<'a> {
    pub tree: u32,
    pub next: u64,
    pub stamp: u64,
    pub index: u32,
    pub data: &'a [u8],
}

impl<'a> Chunk<'a> {
    pub(crate) fn of(page: PageRef<'a>) -> Option<Self> {
        if page.kind() != Kind::Overflow {
            return None;
        }
        let length = get_u32(page.0, OVERFLOW_LENGTH) as usize;
        Some(Self {
            tree: page.tree(),
            next: get_u64(page.0, OVERFLOW_NEXT),
            stamp: get_u64(page.0, OVERFLOW_STAMP),
            index: get_u32(page.0, OVERFLOW_INDEX),
            data: page.0.get(OVERFLOW_DATA..OVERFLOW_DATA + length)?,
        })
    }

    /// The page's content for the log.
    pub(crate) fn content(&self) -> Vec<u8> {
        let mut content = vec![0; OVERFLOW_DATA - HEAD];
        content[KIND - HEAD] = Kind::Overflow as u8;
        content[TREE - HEAD..][..4].copy_from_slice(&self.tree.to_le_bytes());
        content[OVERFLOW_NEXT - HEAD..][..8].copy_from_slice(&self.next.to_le_bytes());
        content[OVERFLOW_STAMP - HEAD..][..8].copy_from_slice(&self.stamp.to_le_bytes());
        content[OVERFLOW_INDEX - HEAD..][..4].copy_from_slice(&self.index.to_le_bytes());
        content[OVERFLOW_LENGTH - HEAD..][..4].copy_from_slice(&(self.data.len() as u32).to_le_bytes());
        content.extend_from_slice(self.data);
        content
    }
}

/// Content of a map page without a bit, and of a free page.
pub(crate) fn empty_content(kind: Kind) -> Vec<u8> {
    let mut content = vec![0; BODY - HEAD];
    content[0] = kind as u8;
    content
}

/// Which segments of a page differ from its image on the medium: up to 512.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segments([u64; 8]);

impl Segments {
    pub(crate) fn insert(&mut self, segment: usize) {
        self.0[segment / 64] |= 1 << (segment % 64);
    }

    pub(crate) fn contains(&self, segment: usize) -> bool {
        self.0[segment / 64] & 1 << (segment % 64) != 0
    }

    pub(crate) fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub(crate) fn all(count: usize) -> Self {
        let mut segments = Self::default();
        (0..count).for_each(|segment| segments.insert(segment));
        segments
    }

    /// Bytes of the bitmap of `count` segments, and back.
    pub(crate) fn to_bytes(self, count: usize) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_le_bytes()).take(count.div_ceil(8)).collect()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let mut segments = Self::default();
        for (n, byte) in bytes.iter().enumerate().take(64) {
            segments.0[n / 8] |= u64::from(*byte) << (n % 8 * 8);
        }
        segments
    }
}

/// Old bytes of a segment.
pub(crate) struct OldSegment {
    pub at: usize,
    pub bytes: Box<[u8]>,
}

/// A page that is changed.
pub(crate) struct PageMut<'a> {
    pub bytes: &'a mut [u8],
    pub changed: &'a mut Segments,
    pub segment_bytes: usize,
    /// Takes the old bytes, where the change may have to be taken back.
    pub undo: Option<&'a mut Vec<OldSegment>>,
}

/// There is too little space in the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageFull;

impl PageMut<'_> {
    pub(crate) fn view(&self) -> PageRef<'_> {
        PageRef(self.bytes)
    }

    /// Changes bytes. The only function that does.
    pub(crate) fn set(&mut self, at: usize, value: &[u8]) {
        let mut done = 0;
        while done < value.len() {
            let start = at + done;
            let segment = start / self.segment_bytes;
            let end = ((segment + 1) * self.segment_bytes).min(at + value.len());
            let new = &value[done..end - at];
            if self.bytes[start..end] != *new {
                self.changed.insert(segment);
                let whole = segment * self.segment_bytes..(segment + 1) * self.segment_bytes;
                if let Some(undo) = &mut self.undo {
                    undo.push(OldSegment { at: whole.start, bytes: self.bytes[whole].into() });
                }
                self.bytes[start..end].copy_from_slice(new);
            }
            done = end - at;
        }
    }

    fn set_u16(&mut self, at: usize, value: usize) {
        self.set(at, &(value as u16).to_le_bytes());
    }

    /// Replaces everything between head and foot.
    fn set_all(&mut self, image: &[u8]) {
        let end = self.bytes.len() - FOOT;
        self.set(HEAD, &image[HEAD..end]);
    }

    /// Makes the page what a log record says; the page is checked afterwards by the caller.
    pub(crate) fn format(&mut self, front: &[u8], back: &[u8]) -> bool {
        let end = self.bytes.len() - FOOT;
        if front.len() + back.len() > end - HEAD {
            return false;
        }
        let mut image = vec![0; self.bytes.len()];
        image[HEAD..HEAD + front.len()].copy_from_slice(front);
        image[end - back.len()..end].copy_from_slice(back);
        self.set_all(&image);
        true
    }

    /// Puts a record.
    pub(crate) fn put(&mut self, key: &[u8], value: Stored<'_>) -> Result<(), PageFull> {
        match self.view().find(key) {
            Ok(index) => self.replace(index, key, value),
            Err(index) => self.insert(index, key, value),
        }
    }

    fn value_word(value: Stored<'_>) -> usize {
        value.bytes().len() | if value.is_overflow() { usize::from(OVERFLOW) } else { 0 }
    }

    fn replace(&mut self, index: usize, key: &[u8], value: Stored<'_>) -> Result<(), PageFull> {
        let page = self.view();
        let (at, old) = (page.record(index), page.value_range(index));
        let (new_length, old_length) = (value.bytes().len(), old.len());
        if new_length <= old_length {
            let garbage = page.garbage() + old_length - new_length;
            self.set_u16(at + 2, Self::value_word(value));
            self.set(old.start, value.bytes());
            self.set_u16(GARBAGE, garbage);
            return Ok(());
        }
        // A page with too little space stays as it is.
        if page.free() < new_length - old_length {
            return Err(PageFull);
        }
        self.remove_at(index);
        self.insert(index, key, value)
    }

    fn insert(&mut self, index: usize, key: &[u8], value: Stored<'_>) -> Result<(), PageFull> {
        let page = self.view();
        let rest = &key[page.prefix().len()..];
        let length = RECORD_HEADER + rest.len() + value.bytes().len();
        if page.free() < length + SLOT {
            return Err(PageFull);
        }
        if page.heap() < BODY + SLOT * (page.count() + 1) + length {
            self.compact();
        }
        let page = self.view();
        let (at, count) = (page.heap() - length, page.count());
        let mut record = Vec::with_capacity(length);
        record.extend_from_slice(&(rest.len() as u16).to_le_bytes());
        record.extend_from_slice(&(Self::value_word(value) as u16).to_le_bytes());
        record.extend_from_slice(rest);
        record.extend_from_slice(value.bytes());
        let slot = BODY + SLOT * index;
        let mut slots = (at as u16).to_le_bytes().to_vec();
        slots.extend_from_slice(&page.0[slot..BODY + SLOT * count]);
        self.set(at, &record);
        self.set(slot, &slots);
        self.set_u16(COUNT, count + 1);
        self.set_u16(HEAP, at);
        Ok(())
    }

    /// Removes a record; whether there was one.
    pub(crate) fn remove(&mut self, key: &[u8]) -> bool {
        let found = self.view().find(key);
        if let Ok(index) = found {
            self.remove_at(index);
        }
        found.is_ok()
    }

    fn remove_at(&mut self, index: usize) {
        let page = self.view();
        let (count, at, length) = (page.count(), page.record(index), page.record_length(index));
        let garbage = page.garbage();
        let slots = page.0[BODY + SLOT * (index + 1)..BODY + SLOT * count].to_vec();
        // The lowest record's space joins the free space at once.
        if at == page.heap() {
            self.set_u16(HEAP, at + length);
        } else {
            self.set_u16(GARBAGE, garbage + length);
        }
        self.set(BODY + SLOT * index, &slots);
        self.set_u16(COUNT, count - 1);
    }

    /// Removes the garbage between records.
    fn compact(&mut self) {
        let page = self.view();
        let mut image = page.0.to_vec();
        let mut at = page.fences();
        for index in 0..page.count() {
            let record = page.record(index);
            let length = page.record_length(index);
            at -= length;
            image[at..at + length].copy_from_slice(&page.0[record..record + length]);
            image[BODY + SLOT * index..][..SLOT].copy_from_slice(&(at as u16).to_le_bytes());
        }
        image[BODY + SLOT * page.count()..at].fill(0);
        image[HEAP..HEAP + 2].copy_from_slice(&(at as u16).to_le_bytes());
        image[GARBAGE..GARBAGE + 2].fill(0);
        self.set_all(&image);
    }

    /// Sets or clears a bit of a map page; `false` where it has no such bit.
    pub(crate) fn set_bit(&mut self, bit: usize, value: bool) -> bool {
        let at = BODY + bit / 8;
        if at >= self.bytes.len() - FOOT {
            return false;
        }
        let mask = 1 << (bit % 8);
        let byte = if value { self.bytes[at] | mask } else { self.bytes[at] & !mask };
        self.set(at, &[byte]);
        true
    }
}

impl PageMut<'_> {
    /// Sets or clears neighbouring bits of a map page; `false` where it has no such bits.
    pub(crate) fn set_run(&mut self, from: usize, count: usize, value: bool) -> bool {
        let Some(end) = from.checked_add(count).filter(|&end| end <= map_bits(self.bytes.len()) as usize) else {
            return false;
        };
        if count == 0 {
            return true;
        }
        let first = BODY + from / 8;
        let mut bytes = self.bytes[first..BODY + end.div_ceil(8)].to_vec();
        for bit in from..end {
            let (at, mask) = (bit / 8 - from / 8, 1 << (bit % 8));
            bytes[at] = if value { bytes[at] | mask } else { bytes[at] & !mask };
        }
        self.set(first, &bytes);
        true
    }
}

/// Bits of a map page: how many pages it describes.
pub(crate) const fn map_bits(page_bytes: usize) -> u64 {
    ((page_bytes - FOOT - BODY) * 8) as u64
}

impl PageRef<'_> {
    /// The first clear bit at or after `from`.
    pub(crate) fn clear_bit(self, from: usize) -> Option<usize> {
        let bytes = &self.0[BODY..self.end()];
        let first = *bytes.get(from / 8)? | ((1u16 << (from % 8)) - 1) as u8;
        if first != u8::MAX {
            return Some(from / 8 * 8 + first.trailing_ones() as usize);
        }
        let behind = bytes.iter().enumerate().skip(from / 8 + 1).find(|(_, byte)| **byte != u8::MAX);
        behind.map(|(at, byte)| at * 8 + byte.trailing_ones() as usize)
    }

    /// The first of `count` neighbouring clear bits.
    pub(crate) fn clear_run(self, count: usize) -> Option<usize> {
        let (mut start, mut length) = (0, 0);
        for (at, &byte) in self.0[BODY..self.end()].iter().enumerate() {
            for bit in 0..8 {
                if byte & 1 << bit != 0 {
                    (start, length) = (at * 8 + bit + 1, 0);
                    continue;
                }
                length += 1;
                if length >= count {
                    return Some(start);
                }
            }
        }
        None
    }

    pub(crate) fn bit(self, bit: usize) -> bool {
        self.0.get(BODY + bit / 8).is_some_and(|byte| byte & 1 << (bit % 8) != 0)
    }

    pub(crate) fn set_bits(self) -> u64 {
        self.0[BODY..self.end()].iter().map(|byte| u64::from(byte.count_ones())).sum()
    }
}

/// Builds a page of keys from sorted records; `None` where they do not fit.
pub(crate) struct Builder {
    image: Vec<u8>,
    at: usize,
    count: usize,
    prefix: usize,
}

impl Builder {
    pub(crate) fn new(page_bytes: usize, shape: Shape<'_>) -> Option<Self> {
        let mut image = vec![0; page_bytes];
        let end = page_bytes - FOOT;
        let high = shape.high.unwrap_or_default();
        let at = end.checked_sub(shape.low.len() + high.len()).filter(|&at| at >= BODY)?;
        image[at..at + shape.low.len()].copy_from_slice(shape.low);
        image[end - high.len()..end].copy_from_slice(high);
        let prefix = common_bytes(shape.low, high);
        image[KIND] = shape.kind as u8;
        image[LEVEL] = shape.level;
        image[TREE..TREE + 4].copy_from_slice(&shape.tree.to_le_bytes());
        image[PREFIX..PREFIX + 2].copy_from_slice(&(prefix as u16).to_le_bytes());
        image[LOW..LOW + 2].copy_from_slice(&(shape.low.len() as u16).to_le_bytes());
        let high_word = shape.high.map_or(INFINITE, |high| high.len() as u16);
        image[HIGH..HIGH + 2].copy_from_slice(&high_word.to_le_bytes());
        Some(Self { image, at, count: 0, prefix })
    }

    /// Adds the next record; `None` where it does not fit.
    pub(crate) fn push(&mut self, key: &[u8], value: Stored<'_>) -> Option<()> {
        let rest = &key[self.prefix.min(key.len())..];
        let length = RECORD_HEADER + rest.len() + value.bytes().len();
        let at = self.at.checked_sub(length).filter(|&at| at >= BODY + SLOT * (self.count + 1))?;
        let record = &mut self.image[at..at + length];
        record[..2].copy_from_slice(&(rest.len() as u16).to_le_bytes());
        record[2..4].copy_from_slice(&(PageMut::value_word(value) as u16).to_le_bytes());
        record[4..4 + rest.len()].copy_from_slice(rest);
        record[4 + rest.len()..].copy_from_slice(value.bytes());
        self.image[BODY + SLOT * self.count..][..SLOT].copy_from_slice(&(at as u16).to_le_bytes());
        (self.at, self.count) = (at, self.count + 1);
        Some(())
    }

    /// The page, head and foot being zeros.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.image[COUNT..COUNT + 2].copy_from_slice(&(self.count as u16).to_le_bytes());
        self.image[HEAP..HEAP + 2].copy_from_slice(&(self.at as u16).to_le_bytes());
        self.image
    }
}

/// Longest key: a page holds at least four of them, with references, besides two fences.
pub(crate) const fn key_max(page_bytes: usize) -> usize {
    page_bytes / 8 - 16
}

/// Longest key and value together that a leaf holds; longer values go to overflow pages. A page of four such records
/// can be split whatever its fences are.
pub(crate) const fn inline_max(page_bytes: usize) -> usize {
    page_bytes / 4 - 32
}

fn common_bytes(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(a, b)| a == b).count()
}

/// The shortest key above `left` and not above `right`, `left < right`: what separates two pages.
pub(crate) fn separator<'a>(left: &[u8], right: &'a [u8]) -> &'a [u8] {
    &right[..(common_bytes(left, right) + 1).min(right.len())]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn empty(page_bytes: usize, low: &[u8], high: Option<&[u8]>) -> Vec<u8> {
        Builder::new(page_bytes, Shape { kind: Kind::Leaf, level: 0, tree: 1, low, high }).unwrap().finish()
    }

    #[test]
    fn the_fences_common_prefix_is_stored_once() {
        let page = empty(4096, b"user:1", Some(b"user:3"));
        assert_eq!(PageRef(&page).prefix(), b"user:");
        assert!(PageRef(&page).serves(1, b"user:2") && !PageRef(&page).serves(1, b"user:3"));
        assert!(!PageRef(&page).serves(2, b"user:2") && !PageRef(&page).serves(1, b"user:"));
        assert_eq!(separator(b"abc", b"abde"), b"abd");
        assert_eq!(separator(b"ab", b"abc"), b"abc");
    }

    #[test]
    fn a_prefix_that_is_not_that_of_the_fences_is_found() {
        let mut page = empty(4096, b"abcde", Some(b"zz"));
        let mut set = |at: usize, word: u16| page[at..at + 2].copy_from_slice(&word.to_le_bytes());
        set(PREFIX, 5);
        assert!(PageRef(&page).check().is_err(), "the fences have no common prefix");
        let mut page = empty(4096, b"abc", None);
        page[PREFIX..PREFIX + 2].copy_from_slice(&3u16.to_le_bytes());
        assert!(PageRef(&page).check().is_err(), "without a high fence there is no prefix");
        let page = empty(4096, b"b", Some(b"a"));
        assert!(PageRef(&page).check().is_err(), "no key is in it");
        assert_eq!(PageRef(&empty(4096, b"abc", Some(b"abd"))).check(), Ok(()));
    }

    proptest! {
        /// A page is a sorted map with little space; what is marked as changed is what differs, and undo takes it back.
        #[test]
        fn a_page_is_a_map_that_knows_its_changed_segments(
            operations in prop::collection::vec((0..40u8, 0..90usize, 0..4u8), 1..200),
        ) {
            let original = empty(4096, b"k", Some(b"l"));
            let mut bytes = original.clone();
            let mut changed = Segments::default();
            let mut undo = Vec::new();
            let mut model = BTreeMap::new();
            for (n, (key, length, kind)) in operations.into_iter().enumerate() {
                let key = [b"k".as_slice(), &[key], &vec![7; usize::from(key) % 5]].concat();
                let value = vec![n as u8; length];
                let mut page = PageMut {
                    bytes: &mut bytes, changed: &mut changed, segment_bytes: 64, undo: Some(&mut undo),
                };
                if kind == 0 {
                    prop_assert_eq!(page.remove(&key), model.remove(&key).is_some());
                } else if page.put(&key, Stored::Inline(&value)).is_ok() {
                    model.insert(key, value);
                } else {
                    prop_assert!(page.view().free() < 150);
                }
                let view = page.view();
                prop_assert_eq!(view.check(), Ok(()));
                let found: Vec<_> =
                    (0..view.count()).map(|i| (view.key(i), view.value(i).bytes().to_vec())).collect();
                prop_assert_eq!(found, model.clone().into_iter().collect::<Vec<_>>());
            }
            for segment in 0..64 {
                let range = segment * 64..(segment + 1) * 64;
                prop_assert!(changed.contains(segment) || bytes[range.clone()] == original[range]);
            }
            for OldSegment { at, bytes: old } in undo.into_iter().rev() {
                bytes[at..at + old.len()].copy_from_slice(&old);
            }
            prop_assert_eq!(bytes, original);
        }

        /// No content makes a checked page go out of bounds.
        #[test]
        fn a_page_that_passes_its_check_can_be_read_whatever_it_holds(
            noise in prop::collection::vec((0..4096usize, any::<u8>()), 0..12), key in prop::collection::vec(any::<u8>(), 0..9),
        ) {
            let mut bytes = empty(4096, b"a", Some(b"ab"));
            let mut changed = Segments::default();
            let mut page = PageMut { bytes: &mut bytes, changed: &mut changed, segment_bytes: 64, undo: None };
            for n in 0..20u8 {
                let _ = page.put(&[b'a', n], Stored::Inline(&[n; 33]));
            }
            for (at, byte) in noise {
                bytes[at] = byte;
            }
            let view = PageRef(&bytes);
            if view.check().is_ok() && matches!(view.kind(), Kind::Leaf | Kind::Inner) {
                let _ = (view.find(&key), view.low(), view.high(), view.free(), view.used(), view.content());
                (0..view.count()).for_each(|i| drop((view.key(i), view.value(i))));
            }
        }
    }
}
