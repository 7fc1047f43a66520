//! A page on the medium: two slots, two delta blocks.
//!
//! ```text
//!   area of page i:   slot A (l_pg) │ Δ0 4 KiB │ Δ1 4 KiB │ slot B (l_pg)
//! ```
//!
//! A whole image goes to the slot that is not valid, so the valid one survives a torn write, and no page table says
//! which it is: the slot with the higher LSN. A delta holds the segments that differ from the valid slot's image; it
//! names that image by its checksum. Deltas go to the two blocks in turn, so the last one survives a torn write too.
//!
//! A slot and a delta carry page and LSN with a check of their own at both ends. These *claims* separate damage from a
//! torn write: whatever was torn can be redone from the log, so a claim above what can be read, which the log does not
//! cover, is damage.
//!
//! Source: Qiao et al., *Closing the B+-tree vs. LSM-tree Write Amplification Gap on Modern Storage Hardware with
//! Built-in Transparent Compression*, FAST 2022; the second delta block and the claims are ours.

use flashwise_block::IoBuffer;

use super::page::{FOOT, HEAD, PageRef, Segments};
use crate::bytes::{checksum, get_u16, get_u32, get_u64, put};
use crate::faults::{Planted, is_planted};
use crate::medium::BLOCK;
use crate::superblock::Geometry;

/// Number of a page: where its area is.
pub(crate) type PageId = u64;

const DELTA: usize = BLOCK as usize;
/// A delta's head: checksum, page, LSN, checksum of the image, check, number of segments, segment size.
const DELTA_HEAD: usize = 40;

/// The geometry of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageLayout {
    pub seed: u64,
    pub page_bytes: usize,
    pub segment_bytes: usize,
    area_start: u64,
}

impl PageLayout {
    pub(crate) fn new(geometry: &Geometry) -> Self {
        Self {
            seed: geometry.seed,
            page_bytes: geometry.page_bytes as usize,
            segment_bytes: geometry.segment_bytes as usize,
            area_start: geometry.area_start,
        }
    }

    pub(crate) fn segments(&self) -> usize {
        self.page_bytes / self.segment_bytes
    }

    /// Bytes of a page's area.
    pub(crate) fn area_bytes(&self) -> u64 {
        2 * self.page_bytes as u64 + 2 * BLOCK
    }

    pub(crate) fn area(&self, page: PageId) -> u64 {
        self.area_start.saturating_add(page.saturating_mul(self.area_bytes()))
    }

    /// How many pages a medium has space for.
    pub(crate) fn pages_in(&self, capacity: u64) -> u64 {
        capacity.saturating_sub(self.area_start) / self.area_bytes()
    }

    pub(crate) fn slot_offset(&self, page: PageId, slot: u8) -> u64 {
        self.area(page) + if slot == 0 { 0 } else { self.page_bytes as u64 + 2 * BLOCK }
    }

    pub(crate) fn delta_offset(&self, page: PageId, delta: u8) -> u64 {
        self.area(page) + self.page_bytes as u64 + u64::from(delta) * BLOCK
    }

    /// What is out of use while `slot` is valid without deltas: the other slot and both delta blocks, adjacent.
    pub(crate) fn unused(&self, page: PageId, slot: u8) -> (u64, u64) {
        let length = self.page_bytes as u64 + 2 * BLOCK;
        (self.area(page) + if slot == 0 { self.page_bytes as u64 } else { 0 }, length)
    }

    /// Where the bytes are that must be read to load a page: one request.
    pub(crate) fn span(&self, page: PageId, known: Valid) -> (u64, usize) {
        let part = self.page_bytes + 2 * DELTA;
        match known {
            Valid::Unknown => (self.area(page), self.area_bytes() as usize),
            Valid::Image(slot) => (self.slot_offset(page, slot), self.page_bytes),
            Valid::Deltas(0) => (self.area(page), part),
            Valid::Deltas(_) => (self.delta_offset(page, 0), part),
        }
    }

    /// The most segments that fit into a delta block.
    pub(crate) fn delta_segments_max(&self) -> usize {
        (DELTA - DELTA_HEAD - FOOT - self.segments().div_ceil(8)) / self.segment_bytes
    }

    /// Seals a page's image for a slot; returns its checksum.
    pub(crate) fn seal(&self, page: PageId, lsn: u64, image: &mut [u8]) -> u64 {
        let end = image.len() - FOOT;
        image[..HEAD].fill(0);
        put(image, 8, &page.to_le_bytes());
        put(image, 16, &lsn.to_le_bytes());
        put(image, 24, &self.claim_check(page, lsn).to_le_bytes());
        put(image, end, &lsn.to_le_bytes());
        put(image, end + 8, &self.claim_check(page, lsn).to_le_bytes());
        put(image, end + 12, &(page as u32).to_le_bytes());
        let sum = checksum(self.seed, &image[8..]);
        put(image, 0, &sum.to_le_bytes());
        sum
    }

    /// The delta block of the changed segments of a page.
    pub(crate) fn delta(&self, page: PageId, lsn: u64, base: u64, changed: &Segments, bytes: &[u8]) -> IoBuffer {
        let mut block = IoBuffer::zeroed(DELTA);
        let check = self.claim_check(page, lsn);
        put(&mut block, 8, &page.to_le_bytes());
        put(&mut block, 16, &lsn.to_le_bytes());
        put(&mut block, 24, &base.to_le_bytes());
        put(&mut block, 32, &check.to_le_bytes());
        put(&mut block, 36, &(changed.count() as u16).to_le_bytes());
        put(&mut block, 38, &(self.segment_bytes as u16).to_le_bytes());
        let bitmap = changed.to_bytes(self.segments());
        put(&mut block, DELTA_HEAD, &bitmap);
        let mut at = DELTA_HEAD + bitmap.len();
        for segment in (0..self.segments()).filter(|&segment| changed.contains(segment)) {
            let from = segment * self.segment_bytes;
            put(&mut block, at, &bytes[from..from + self.segment_bytes]);
            at += self.segment_bytes;
        }
        put(&mut block, DELTA - FOOT, &lsn.to_le_bytes());
        put(&mut block, DELTA - FOOT + 8, &check.to_le_bytes());
        put(&mut block, DELTA - FOOT + 12, &(page as u32).to_le_bytes());
        let sum = checksum(self.seed, &block[8..]);
        put(&mut block, 0, &sum.to_le_bytes());
        block
    }

    fn claim_check(&self, page: PageId, lsn: u64) -> u32 {
        let mut bytes = [0; 16];
        put(&mut bytes, 0, &page.to_le_bytes());
        put(&mut bytes, 8, &lsn.to_le_bytes());
        checksum(self.seed, &bytes) as u32
    }

    /// The highest LSN that a slot's or a delta's ends claim; `check_at` is where the head's check is.
    fn claim(&self, page: PageId, bytes: &[u8], check_at: usize) -> Option<u64> {
        let end = bytes.len() - FOOT;
        let verify = |lsn: u64, check: u32| (check == self.claim_check(page, lsn)).then_some(lsn);
        let head = verify(get_u64(bytes, 16), get_u32(bytes, check_at)).filter(|_| get_u64(bytes, 8) == page);
        head.max(verify(get_u64(bytes, end), get_u32(bytes, end + 8)))
    }

    /// Whether bytes are a sealed image of the page.
    fn is_image(&self, page: PageId, bytes: &[u8]) -> bool {
        get_u64(bytes, 8) == page && get_u64(bytes, 0) == checksum(self.seed, &bytes[8..])
    }

    /// The LSN of a whole delta.
    fn delta_lsn(&self, page: PageId, bytes: &[u8]) -> Option<u64> {
        let is_whole = self.is_image(page, bytes) && usize::from(get_u16(bytes, 38)) == self.segment_bytes;
        is_whole.then(|| get_u64(bytes, 16))
    }

    /// Lays a delta over its image; `None` where its segments are impossible.
    fn overlay(&self, image: &mut [u8], delta: &[u8]) -> Option<Segments> {
        let bitmap = self.segments().div_ceil(8);
        let changed = Segments::from_bytes(delta.get(DELTA_HEAD..DELTA_HEAD + bitmap)?);
        if changed.count() != usize::from(get_u16(delta, 36)) || changed.count() > self.delta_segments_max() {
            return None;
        }
        let segments = (0..self.segments()).filter(|&segment| changed.contains(segment));
        for (n, segment) in segments.enumerate() {
            let from = DELTA_HEAD + bitmap + n * self.segment_bytes;
            let to = segment * self.segment_bytes;
            image[to..to + self.segment_bytes].copy_from_slice(delta.get(from..from + self.segment_bytes)?);
        }
        Some(changed)
    }

    /// The newest state in the bytes of [`PageLayout::span`].
    pub(crate) fn load(&self, page: PageId, bytes: &[u8], known: Valid) -> Loaded {
        let (slots, deltas_at, deltas) = match known {
            Valid::Unknown => (vec![(0, 0), (1, self.page_bytes + 2 * DELTA)], self.page_bytes, 2),
            Valid::Image(slot) => (vec![(slot, 0)], 0, 0),
            Valid::Deltas(0) => (vec![(0, 0)], self.page_bytes, 2),
            Valid::Deltas(_) => (vec![(1, 2 * DELTA)], 0, 2),
        };
        let delta = |n: usize| &bytes[deltas_at + n * DELTA..deltas_at + (n + 1) * DELTA];
        let image = |at: usize| &bytes[at..at + self.page_bytes];
        let claims = slots.iter().filter_map(|&(_, at)| self.claim(page, image(at), 24));
        let claims = claims.chain((0..deltas).filter_map(|n| self.claim(page, delta(n), 32)));
        let claimed = claims.max();

        let mut best: Option<(u64, u8, usize, Option<usize>)> = None;
        for &(slot, at) in slots.iter().filter(|&&(_, at)| self.is_image(page, image(at))) {
            let (lsn, base) = (get_u64(image(at), 16), get_u64(image(at), 0));
            let belongs = |n: &usize| get_u64(delta(*n), 24) == base || is_planted(Planted::BaseIgnored);
            let own = (0..deltas).filter(belongs).filter_map(|n| Some((self.delta_lsn(page, delta(n))?, n)));
            let newest = own.filter(|own| own.0 >= lsn).max();
            let state = (newest.map_or(lsn, |own| own.0), slot, at, newest.map(|own| own.1));
            if best.is_none_or(|best| best.0 < state.0) {
                best = Some(state);
            }
        }
        let is_blank = bytes.iter().all(|&byte| byte == 0);
        let Some((lsn, slot, at, newest)) = best else { return Loaded { state: None, claimed, is_blank } };
        let mut whole = image(at).to_vec();
        let base = get_u64(&whole, 0);
        let changed = match newest {
            None => Some(Segments::default()),
            Some(n) => self.overlay(&mut whole, delta(n)),
        };
        let state = changed.filter(|_| PageRef(&whole).check().is_ok()).map(|changed| LoadedPage {
            bytes: whole.into_boxed_slice(),
            lsn,
            slot,
            base,
            changed,
            delta: newest.map(|n| n as u8),
        });
        Loaded { state, claimed, is_blank }
    }
}

/// What is known of a page's area before it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Valid {
    /// Nothing: the page was not in the cache since the store was opened.
    Unknown,
    /// This slot is valid, and has no delta.
    Image(u8),
    /// This slot is valid, and has deltas.
    Deltas(u8),
}

/// What was found in a page's area.
pub(crate) struct Loaded {
    pub state: Option<LoadedPage>,
    /// The highest LSN that any part claims.
    pub claimed: Option<u64>,
    /// Only zeros.
    pub is_blank: bool,
}

/// A page as it is on the medium.
pub(crate) struct LoadedPage {
    pub bytes: Box<[u8]>,
    pub lsn: u64,
    pub slot: u8,
    pub base: u64,
    pub changed: Segments,
    /// Which block the last delta is in.
    pub delta: Option<u8>,
}

#[cfg(test)]
mod tests {
    use flashwise_block::ByteSize;

    use super::*;
    use crate::pages::page::{Builder, Kind, PageMut, Shape, Stored};

    fn layout() -> PageLayout {
        PageLayout::new(
            &Geometry::new(
                9,
                &crate::StoreOptions { page: ByteSize(4096), log: ByteSize::mib(1), ..crate::StoreOptions::default() },
            )
            .unwrap(),
        )
    }

    fn page() -> Vec<u8> {
        let shape = Shape { kind: Kind::Leaf, level: 0, tree: 1, low: b"", high: None };
        let mut builder = Builder::new(4096, shape).unwrap();
        for n in 0..20u8 {
            builder.push(&[n], Stored::Inline(&[n; 50])).unwrap();
        }
        builder.finish()
    }

    /// The area of page 3: an image of LSN 10 in slot B, deltas of LSN 12 and 15.
    fn area() -> (Vec<u8>, Vec<u8>) {
        let layout = layout();
        let mut area = vec![0; layout.area_bytes() as usize];
        let mut image = page();
        let base = layout.seal(3, 10, &mut image);
        put(&mut area, 4096 + 8192, &image);
        let mut changed = Segments::default();
        for (n, lsn) in [(0, 12u64), (1, 15)] {
            let mut page = PageMut { bytes: &mut image, changed: &mut changed, segment_bytes: 64, undo: None };
            page.put(&[n as u8], Stored::Inline(&[lsn as u8; 50])).unwrap();
            put(&mut area, 4096 + n * 4096, &layout.delta(3, lsn, base, &changed, &image));
        }
        (area, image)
    }

    #[test]
    fn the_newest_delta_lies_over_its_image() {
        let (area, image) = area();
        let state = layout().load(3, &area, Valid::Unknown).state.unwrap();
        assert_eq!((state.lsn, state.slot, state.delta), (15, 1, Some(1)));
        assert_eq!(state.bytes[HEAD..4096 - FOOT], image[HEAD..4096 - FOOT]);
        let half = &area[4096..];
        let state = layout().load(3, half, Valid::Deltas(1)).state.unwrap();
        assert_eq!((state.lsn, state.slot, state.delta), (15, 1, Some(1)));
    }

    #[test]
    fn a_delta_of_another_image_does_not_count() {
        let (mut area, _) = area();
        let mut newer = page();
        layout().seal(3, 13, &mut newer);
        put(&mut area, 0, &newer);
        // The delta of LSN 15 belongs to slot B, which is still there.
        assert_eq!(layout().load(3, &area, Valid::Unknown).state.unwrap().lsn, 15);
        layout().seal(3, 20, &mut newer);
        put(&mut area, 0, &newer);
        let state = layout().load(3, &area, Valid::Unknown).state.unwrap();
        assert_eq!((state.lsn, state.slot, state.delta), (20, 0, None));
    }

    #[test]
    fn no_flipped_bit_goes_unnoticed() {
        let (mut area, image) = area();
        let layout = layout();
        for bit in 0..area.len() * 8 {
            if bit % 7 != 0 {
                continue;
            }
            area[bit / 8] ^= 1 << (bit % 8);
            let loaded = layout.load(3, &area, Valid::Unknown);
            let is_right = loaded
                .state
                .as_ref()
                .is_some_and(|state| state.lsn == 15 && state.bytes[HEAD..4096 - FOOT] == image[HEAD..4096 - FOOT]);
            let reached = loaded.state.as_ref().map_or(0, |state| state.lsn);
            assert!(is_right || loaded.claimed > Some(reached), "bit {bit}");
            area[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
