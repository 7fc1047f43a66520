//! The first two blocks of a store: what it is, and where its log starts.
//!
//! Both copies have the same content. They are written one after the other with a flush behind each, the copy that was
//! not read at the opening first, so that one of them is always whole. Space of the log is used again only after both
//! are durable: then the older copy, should the newer one be damaged, still finds its log.

use flashwise_block::{ByteSize, IoBuffer};

use crate::bytes::{checksum, get_u32, get_u64, put};
use crate::error::{Result, StoreError};
use crate::medium::{BLOCK, Cause, Disk};
use crate::options::{Engine, LogForm, StoreOptions};

const MAGIC: &[u8; 8] = b"flwstore";
/// The only version so far.
pub(crate) const VERSION: u32 = 1;
/// Where the fill of buckets is.
const FILL_AT: usize = 112;
/// Where the checksum is; it covers the bytes before.
const CHECKSUM_AT: usize = 4088;
/// The checksum of a superblock, which names the store's identity, is seeded with a constant.
const SEED: u64 = 0;

/// Superblocks, tail blocks of the log, then its ring.
const TAILS_AT: u64 = 2 * BLOCK;
const RING_AT: u64 = 4 * BLOCK;
/// Pages start at a multiple of this: of every chunk and flash page that drives are known to have.
const AREA_ALIGNMENT: u64 = 1 << 20;

/// New pages that may wait for their first write. On a medium without space they need some that no old image gives
/// back.
pub(crate) const NEW_PAGES_MAX: u64 = 64;
/// Bytes in front of the pages that hold space for a medium without any (`reserve.rs`): for the new pages, and for one
/// page at a time that is written before its old image is given back.
pub(crate) const fn reserve_bytes(page_bytes: u64) -> u64 {
    NEW_PAGES_MAX * page_bytes + (64 << 10)
}

/// Bounds of the page size; that of a segment; those of the ring.
pub(crate) const PAGE_MIN: u64 = 4096;
pub(crate) const PAGE_MAX: u64 = 32 << 10;
pub(crate) const SEGMENTS_MAX: u64 = 512;
/// A group of a quarter of the ring holds the splits of a put: eight pages whole.
pub(crate) const RING_PAGES_MIN: u64 = 32;
pub(crate) const RING_BLOCKS_MAX: u64 = 1 << 24;

/// Numbers of the engines.
const ENGINE_B_TREE: u32 = 1;
const ENGINE_HASH: u32 = 2;

/// Bounds of the buckets' fill in percent.
const FILL_MIN: u32 = 5;
const FILL_MAX: u32 = 90;

/// What never changes in the life of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Which engine the pages belong to.
    pub engine: Engine,
    /// Random identity; the seed of all checksums.
    pub seed: u64,
    pub page_bytes: u64,
    pub segment_bytes: u64,
    pub ring_blocks: u64,
    /// Whether commits share log blocks.
    pub is_packed: bool,
    /// Where the pages start.
    pub area_start: u64,
    /// How many percent of a table's buckets are used; zero for trees.
    pub bucket_fill: u32,
}

impl Geometry {
    /// The geometry of a new store.
    pub(crate) fn new(seed: u64, options: &StoreOptions) -> Result<Self> {
        let StoreOptions { engine, page, segment, log, log_form, bucket_fill, .. } = *options;
        let ring_blocks = (log.0 / BLOCK).min(RING_BLOCKS_MAX + 1);
        let alignment = if log.0 < AREA_ALIGNMENT { BLOCK } else { AREA_ALIGNMENT };
        let area_start = (RING_AT + ring_blocks.saturating_mul(BLOCK) + reserve_bytes(page.0.min(PAGE_MAX)))
            .next_multiple_of(alignment);
        let geometry = Self {
            engine,
            seed,
            page_bytes: page.0,
            segment_bytes: segment.0,
            ring_blocks,
            is_packed: log_form == LogForm::Packed,
            area_start,
            bucket_fill: if engine == Engine::Hash { bucket_fill } else { 0 },
        };
        geometry.check().map_err(StoreError::Invalid)?;
        Ok(geometry)
    }

    /// Whether all of it is within bounds.
    fn check(&self) -> std::result::Result<(), String> {
        let Self { page_bytes, segment_bytes, ring_blocks, area_start, .. } = *self;
        if !page_bytes.is_power_of_two() || !(PAGE_MIN..=PAGE_MAX).contains(&page_bytes) {
            let page = ByteSize(page_bytes);
            return Err(format!("a page size of {page}: choose 4, 8, 16 or 32 KiB"));
        }
        let is_segment = segment_bytes.is_power_of_two() && segment_bytes >= 64 && segment_bytes <= page_bytes / 8;
        if !is_segment || page_bytes / segment_bytes > SEGMENTS_MAX {
            return Err(format!(
                "segments of {} in pages of {}: choose a power of two from 64 bytes to an eighth of a page",
                ByteSize(segment_bytes),
                ByteSize(page_bytes)
            ));
        }
        let least = page_bytes * RING_PAGES_MIN / BLOCK;
        if !(least..=RING_BLOCKS_MAX).contains(&ring_blocks) {
            let (log, least) = (ByteSize(ring_blocks.saturating_mul(BLOCK)), ByteSize(least * BLOCK));
            return Err(format!("a log of {log}: choose {least} to 64 GiB"));
        }
        match self.engine {
            Engine::Hash if !(FILL_MIN..=FILL_MAX).contains(&self.bucket_fill) => {
                let fill = self.bucket_fill;
                return Err(format!("buckets filled by {fill} percent: choose {FILL_MIN} to {FILL_MAX}"));
            }
            Engine::BTree if self.bucket_fill != 0 => return Err("buckets in a store of trees".to_owned()),
            _ => {}
        }
        let behind_ring = RING_AT + ring_blocks * BLOCK + reserve_bytes(page_bytes);
        if area_start < behind_ring || !area_start.is_multiple_of(BLOCK) || area_start > behind_ring + AREA_ALIGNMENT {
            return Err(format!("pages that start at byte {area_start}, and a log that ends at {behind_ring}"));
        }
        Ok(())
    }

    /// Where the reserve is.
    pub(crate) fn reserve_offset(&self) -> u64 {
        self.area_start - reserve_bytes(self.page_bytes)
    }

    /// Where a log block of this number goes.
    pub(crate) fn ring_offset(&self, number: u64) -> u64 {
        RING_AT + number % self.ring_blocks * BLOCK
    }

    /// Where the packed log's unfinished blocks go.
    pub(crate) fn tail_offset(&self, turn: bool) -> u64 {
        TAILS_AT + u64::from(turn) * BLOCK
    }
}

/// A superblock's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub geometry: Geometry,
    /// Grows with each change.
    pub generation: u64,
    /// Number of the opening, and the number of its first log block.
    pub epoch: u64,
    pub epoch_start: u64,
    /// The log block from which a restart reads.
    pub tail: u64,
    /// Log blocks below this one are durable.
    pub durable: u64,
    /// The last sequence number when this was written.
    pub last_seq: u64,
    /// The number of map pages.
    pub engine_word: u64,
}

impl Superblock {
    /// The superblock of a new store.
    pub(crate) fn new(geometry: Geometry) -> Self {
        Self { geometry, generation: 1, epoch: 1, epoch_start: 0, tail: 0, durable: 0, last_seq: 0, engine_word: 0 }
    }

    pub(crate) fn encode(&self) -> IoBuffer {
        let mut block = IoBuffer::zeroed(BLOCK as usize);
        let g = &self.geometry;
        put(&mut block, 0, MAGIC);
        put(&mut block, 8, &VERSION.to_le_bytes());
        let engine = match g.engine {
            Engine::BTree => ENGINE_B_TREE,
            Engine::Hash => ENGINE_HASH,
        };
        put(&mut block, 12, &engine.to_le_bytes());
        put(&mut block, 16, &g.seed.to_le_bytes());
        put(&mut block, 24, &(g.page_bytes as u32).to_le_bytes());
        put(&mut block, 28, &(g.segment_bytes as u32).to_le_bytes());
        put(&mut block, 32, &g.ring_blocks.to_le_bytes());
        put(&mut block, 40, &g.area_start.to_le_bytes());
        put(&mut block, 48, &u64::from(g.is_packed).to_le_bytes());
        let counts = [self.generation, self.epoch, self.epoch_start, self.tail, self.durable, self.last_seq];
        for (n, count) in counts.into_iter().chain([self.engine_word]).enumerate() {
            put(&mut block, 56 + 8 * n, &count.to_le_bytes());
        }
        put(&mut block, FILL_AT, &g.bucket_fill.to_le_bytes());
        let sum = checksum(SEED, &block[..CHECKSUM_AT]);
        put(&mut block, CHECKSUM_AT, &sum.to_le_bytes());
        block
    }

    /// The content of a block; `Ok(None)` where it is damaged or no superblock.
    fn decode(block: &[u8], place: &str) -> Result<Option<Self>> {
        if !block.starts_with(MAGIC) || get_u64(block, CHECKSUM_AT) != checksum(SEED, &block[..CHECKSUM_AT]) {
            return Ok(None);
        }
        let not_ours = |why: String| Err(StoreError::NotAStore { place: place.to_owned(), why });
        let (version, engine) = (get_u32(block, 8), get_u32(block, 12));
        if version != VERSION {
            return not_ours(format!(
                "a store of format version {version}, and this flashwise reads version {VERSION}; use the flashwise \
                 that wrote it, or a newer one"
            ));
        }
        let engine = match engine {
            ENGINE_B_TREE => Engine::BTree,
            ENGINE_HASH => Engine::Hash,
            _ => {
                return not_ours(format!(
                    "a store of engine {engine}, which this flashwise does not have; use a newer one"
                ));
            }
        };
        let geometry = Geometry {
            engine,
            seed: get_u64(block, 16),
            page_bytes: u64::from(get_u32(block, 24)),
            segment_bytes: u64::from(get_u32(block, 28)),
            ring_blocks: get_u64(block, 32),
            area_start: get_u64(block, 40),
            is_packed: get_u64(block, 48) != 0,
            bucket_fill: get_u32(block, FILL_AT),
        };
        let count = |n: usize| get_u64(block, 56 + 8 * n);
        let superblock = Self {
            geometry,
            generation: count(0),
            epoch: count(1),
            epoch_start: count(2),
            tail: count(3),
            durable: count(4),
            last_seq: count(5),
            engine_word: count(6),
        };
        geometry.check().map_err(|why| StoreError::corrupt(format!("{place}: superblock"), why))?;
        /// A counter beyond this would overflow in a later sum.
        const COUNTER_MAX: u64 = 1 << 56;
        let is_impossible = superblock.epoch == 0 || superblock.durable < superblock.tail;
        if (0..7).any(|n| count(n) > COUNTER_MAX) || is_impossible {
            return Err(StoreError::corrupt(format!("{place}: superblock"), "its counters are impossible"));
        }
        Ok(Some(superblock))
    }

    /// Reads both copies; returns the newer one and which it is.
    pub(crate) fn read(disk: &Disk) -> Result<(Self, usize)> {
        let copies = disk.read(&[(0, BLOCK as usize), (BLOCK, BLOCK as usize)], 2, "the superblock")?;
        Self::newer([&copies[0], &copies[1]], &disk.name())
    }

    /// The newer of two copies, and which it is.
    pub(crate) fn newer(copies: [&[u8]; 2], place: &str) -> Result<(Self, usize)> {
        let found = [Self::decode(copies[0], place)?, Self::decode(copies[1], place)?];
        match found {
            [Some(first), Some(second)] if second.generation > first.generation => Ok((second, 1)),
            [Some(first), _] => Ok((first, 0)),
            [None, Some(second)] => Ok((second, 1)),
            [None, None] if copies.iter().any(|copy| copy.starts_with(MAGIC)) => {
                Err(StoreError::corrupt(format!("{place}: superblock"), "both copies fail their checksums"))
            }
            [None, None] => {
                let why = "it does not start with a superblock of a flashwise store; it is left as it is".to_owned();
                Err(StoreError::NotAStore { place: place.to_owned(), why })
            }
        }
    }

    /// Whether a copy is undamaged.
    pub(crate) fn is_good(copy: &[u8]) -> bool {
        matches!(Self::decode(copy, ""), Ok(Some(_)))
    }

    /// Which copies are damaged, for a check.
    pub(crate) fn damaged_copies(disk: &Disk) -> Result<Vec<usize>> {
        let copies = disk.read(&[(0, BLOCK as usize), (BLOCK, BLOCK as usize)], 2, "the superblock")?;
        let is_damaged = |n: &usize| !Self::is_good(&copies[*n]);
        Ok((0..2).filter(is_damaged).collect())
    }

    /// Writes both copies, the one that is known to be good last; durable when it returns. `good` is moved with each
    /// copy: one whose write has failed may be torn.
    pub(crate) fn write(&self, disk: &Disk, good: &mut usize) -> Result<()> {
        for _ in 0..2 {
            let copy = 1 - *good;
            disk.write(vec![(copy as u64 * BLOCK, self.encode(), Cause::Superblock)], 1, "the superblock")?;
            disk.flush()?;
            *good = copy;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry() -> Geometry {
        Geometry::new(7, &StoreOptions::default()).unwrap()
    }

    #[test]
    fn a_superblock_is_read_back_and_no_flipped_bit_is_accepted() {
        let superblock = Superblock { tail: 5, durable: 9, epoch: 3, ..Superblock::new(geometry()) };
        let mut block = superblock.encode();
        assert_eq!(Superblock::decode(&block, "").unwrap(), Some(superblock));
        for bit in (0..4096 * 8).step_by(13) {
            block[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Superblock::decode(&block, "").unwrap(), None, "bit {bit}");
            block[bit / 8] ^= 1 << (bit % 8);
        }
    }

    /// A write that fails may leave a torn block: the next one must not go to the only whole copy first.
    #[test]
    fn a_copy_whose_write_failed_is_not_the_good_one() {
        let (disk, control) = crate::crash::empty_disk();
        let superblock = Superblock::new(geometry());
        let mut good = 0;
        superblock.write(&disk, &mut good).unwrap();
        for (fail_at, expected) in [(1, good), (3, 1 - good)] {
            {
                let mut control = crate::crash::locked(&control);
                (control.requests, control.fail_at) = (0, Some(fail_at));
            }
            let before = good;
            assert!(superblock.write(&disk, &mut good).is_err());
            assert_eq!(good, expected, "copy {before} was good, and request {fail_at} failed");
        }
    }

    #[test]
    fn a_store_knows_its_engine() {
        let hash = Superblock::new(Geometry::new(7, &StoreOptions::hash()).unwrap());
        assert_eq!(Superblock::decode(&hash.encode(), "").unwrap(), Some(hash));
        assert_eq!((hash.geometry.engine, hash.geometry.bucket_fill), (Engine::Hash, 20));
        let options = StoreOptions { bucket_fill: 95, ..StoreOptions::hash() };
        assert!(matches!(Geometry::new(7, &options), Err(StoreError::Invalid(_))));
    }

    #[test]
    fn a_geometry_out_of_bounds_is_refused_in_words() {
        let make = |page, segment, log| {
            let (page, segment, log) = (ByteSize(page), ByteSize(segment), ByteSize(log));
            Geometry::new(1, &StoreOptions { page, segment, log, ..StoreOptions::default() })
        };
        assert!(make(8192, 64, 1 << 20).is_ok() && make(4096, 512, 131_072).is_ok());
        for (page, segment, log) in [(5000, 64, 1 << 20), (65_536, 128, 4 << 20), (8192, 32, 1 << 20), (8192, 64, 4096)]
        {
            assert!(matches!(make(page, segment, log), Err(StoreError::Invalid(_))));
        }
    }
}
