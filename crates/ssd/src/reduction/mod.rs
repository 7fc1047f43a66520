//! Storing less than is written: compression of each logical page, and equal pages stored once.
//!
//! ```text
//!   a page of a write ─▶ zeros?  ─▶ nothing is stored
//!                     ─▶ a fingerprint that is known? ─▶ the page shares what is stored      sharing.rs
//!                     ─▶ compressed to whole granules, or stored as it is                    codec.rs
//!                     ─▶ so many slots of the open superpage                                 ftl/page_map/extents.rs
//! ```
//!
//! The drive sees bytes where requests carry them, and compresses and compares these. Where they do not, a
//! [`ContentModel`] says what a page is like. The controller's part is in [`crate::controller::reduced`].
//!
//! Sources: for transparent compression, ScaleFlux's description of the CSD 2000, which compresses each block of 4 KiB
//! by zlib, stores nothing of blocks of zeros and of trimmed ones, and may offer more than it has space for; for
//! deduplication, Chen, Luo and Zhang, "CAFTL: A Content-Aware Flash Translation Layer Enhancing the Lifespan of Flash
//! Memory based Solid State Drives", FAST 2011. The drive that does both is what DuraWrite is understood to be;
//! SandForce has not published it.

mod codec;
mod content;
mod fingerprints;
mod images;
mod sharing;

use serde::{Deserialize, Serialize};

use crate::config::{DeviceConfig, STORED_PAGE_HEADER as HEADER};
use crate::ftl::PageMap;
use crate::pages::PageSpan;
use crate::payload::Payload;
use crate::state::{AtRest, state};
use codec::Compressor;
pub use content::ContentModel;
use content::Contents;
use images::Images;
pub(crate) use sharing::{Lookup, Sharing};

/// How much was written, and what became of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReductionCounters {
    /// Bytes of the logical pages that were written, partial ones as a whole.
    pub written_bytes: u64,
    /// Of those, bytes of pages of zeros, of which nothing was stored.
    pub zero_bytes: u64,
    /// Of those, bytes of pages that were stored already.
    pub duplicate_bytes: u64,
    /// Bytes of pages that were stored, before compression.
    pub unique_bytes: u64,
    /// Bytes that these take on flash, whole slots.
    pub stored_bytes: u64,
    /// Bytes of pages that were found to be stored twice after they had been written, and are stored once since.
    pub merged_bytes: u64,
    /// Pages whose fingerprint was looked up.
    pub lookups: u64,
    /// Writes of pages that found no space.
    pub refused_pages: u64,
}

impl ReductionCounters {
    /// What two drives have counted together.
    pub fn and(&self, other: &Self) -> Self {
        Self {
            written_bytes: self.written_bytes + other.written_bytes,
            zero_bytes: self.zero_bytes + other.zero_bytes,
            duplicate_bytes: self.duplicate_bytes + other.duplicate_bytes,
            unique_bytes: self.unique_bytes + other.unique_bytes,
            stored_bytes: self.stored_bytes + other.stored_bytes,
            merged_bytes: self.merged_bytes + other.merged_bytes,
            lookups: self.lookups + other.lookups,
            refused_pages: self.refused_pages + other.refused_pages,
        }
    }
}

/// What is on a drive that reduces what it stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpaceUse {
    /// Bytes of the logical pages that hold something other than zeros.
    pub logical_bytes: u64,
    /// Bytes that they take on flash.
    pub physical_bytes: u64,
    /// Bytes that they may take.
    pub physical_capacity_bytes: u64,
}

/// A serial engine: it takes its time for each page, one page after the other.
#[derive(Default)]
pub(crate) struct Engine {
    ns_per_page: u64,
    bytes_per_s: u64,
    free_ns: u64,
}

impl Engine {
    fn new(ns_per_page: u64, bytes_per_s: u64) -> Self {
        Self { ns_per_page, bytes_per_s, free_ns: 0 }
    }

    /// What cannot be of one that was restored.
    fn check(&self) -> Result<(), String> {
        if self.free_ns < 1 << 60 { Ok(()) } else { Err(format!("an engine is at work until {} ns", self.free_ns)) }
    }

    /// Works on a page of so many bytes that is there at `now_ns`; gives the time when it is done.
    pub(crate) fn run(&mut self, now_ns: u64, bytes: u64) -> u64 {
        let moving_ns = (bytes * 1_000_000_000).checked_div(self.bytes_per_s).unwrap_or(0);
        if self.ns_per_page + moving_ns == 0 {
            return now_ns;
        }
        self.free_ns = now_ns.max(self.free_ns) + self.ns_per_page + moving_ns;
        self.free_ns
    }
}

/// A logical page on its way into the write buffer.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    /// Nothing but zeros.
    pub(crate) is_zero: bool,
    /// Slots that it takes.
    pub(crate) slots: u32,
    /// It has bytes: they are in [`Reduction::image`] until the next page is prepared.
    pub(crate) has_image: bool,
    /// What it is known by among equal pages; where nothing is deduplicated, 0.
    pub(crate) fingerprint: u128,
    /// The time of its hashes was taken.
    pub(crate) is_hashed: bool,
}

/// What a drive does to store less than it is given.
pub(crate) struct Reduction {
    page_bytes: u64,
    slot_bytes: u64,
    compressor: Option<Compressor>,
    images: Images,
    pub(crate) sharing: Option<Box<Sharing>>,
    contents: Contents,
    /// Slots that what is stored may take.
    pub(crate) slots_max: u64,
    pub(crate) compressing: Engine,
    pub(crate) decompressing: Engine,
    pub(crate) fingerprinting: Engine,
    pub(crate) pre_hashing: Engine,
    /// The page of a request that was prepared last, and found no space: it is asked for again.
    prepared: Option<((u32, u32), Prepared)>,
    /// Its bytes as they are stored.
    prepared_image: Vec<u8>,
    pub(crate) counters: ReductionCounters,
    /// The bytes of the page that was prepared last, as they are stored.
    image: Vec<u8>,
    /// A page, so that none takes memory.
    page: Vec<u8>,
}

impl Reduction {
    /// What a drive's configuration says; `seed` draws the contents of pages that carry no bytes. `None` where nothing
    /// is reduced.
    pub(crate) fn new(config: &DeviceConfig, seed: u64) -> Option<Box<Self>> {
        config.reduction.as_ref()?;
        let (page_bytes, slot_bytes) = (config.ftl.logical_page_bytes, config.slot_bytes());
        let sharing = config.deduplication().map(|deduplication| Box::new(Sharing::new(deduplication, config)));
        let (coding, hashing) = (config.compression(), config.deduplication());
        Some(Box::new(Self {
            page_bytes,
            slot_bytes,
            compressor: coding.map(Compressor::new),
            images: Images::default(),
            sharing,
            contents: Contents::new(seed),
            slots_max: config.physical_bytes() / slot_bytes,
            compressing: coding.map(|c| Engine::new(c.compress_ns, c.compress_bytes_per_s)).unwrap_or_default(),
            decompressing: coding.map(|c| Engine::new(c.decompress_ns, c.decompress_bytes_per_s)).unwrap_or_default(),
            fingerprinting: hashing.map(|h| Engine::new(h.fingerprint_ns, 0)).unwrap_or_default(),
            pre_hashing: hashing.map(|h| Engine::new(h.pre_hash_ns, 0)).unwrap_or_default(),
            prepared: None,
            prepared_image: Vec::new(),
            counters: ReductionCounters::default(),
            image: Vec::new(),
            page: vec![0; page_bytes as usize],
        }))
    }

    /// Says what pages are like that carry no bytes.
    pub(crate) fn set_content(&mut self, model: ContentModel) {
        self.contents.model = model;
    }

    /// The page of the FTL that a logical page is stored as.
    #[inline]
    pub(crate) fn stored(&self, logical_page: u32) -> Option<u32> {
        self.sharing.as_ref().map_or(Some(logical_page), |sharing| sharing.stored(logical_page))
    }

    /// A logical page is forgotten; gives the page of the FTL that goes with it, if no other shares that.
    pub(crate) fn forget(&mut self, logical_page: u32) -> Option<u32> {
        self.sharing.as_mut().map_or(Some(logical_page), |sharing| sharing.forget(logical_page))
    }

    /// The page of a request that was prepared before and found no space.
    pub(crate) fn take_prepared(&mut self, which: (u32, u32)) -> Option<Prepared> {
        let (_, page) = self.prepared.take_if(|(prepared, _)| *prepared == which)?;
        std::mem::swap(&mut self.image, &mut self.prepared_image);
        Some(page)
    }

    /// A page found no space: it will be asked for again.
    pub(crate) fn keep_prepared(&mut self, which: (u32, u32), page: Prepared) {
        self.prepared = Some((which, page));
        std::mem::swap(&mut self.image, &mut self.prepared_image);
    }

    /// A request has ended: what was prepared for it is not asked for again.
    pub(crate) fn drop_prepared(&mut self, request: u32) {
        self.prepared.take_if(|((prepared, _), _)| *prepared == request);
    }

    /// Prepares a page of these bytes.
    pub(crate) fn prepare(&mut self, page: &[u8]) -> Prepared {
        let is_zero = page.iter().all(|&byte| byte == 0);
        let fingerprint = if self.sharing.is_some() { xxhash_rust::xxh3::xxh3_128(page) } else { 0 };
        if is_zero {
            return Prepared { is_zero, fingerprint, ..Prepared::default() };
        }
        let slots = self.store(page);
        Prepared { is_zero, slots, has_image: true, fingerprint, is_hashed: false }
    }

    /// Prepares the page that is stored as `old`, or one of zeros, once it is changed.
    pub(crate) fn prepare_changed(&mut self, old: Option<&[u8]>, change: impl FnOnce(&mut [u8])) -> Prepared {
        let mut page = std::mem::take(&mut self.page);
        self.restore(old, &mut page);
        change(&mut page);
        let prepared = self.prepare(&page);
        self.page = page;
        prepared
    }

    /// The bytes of a page that was just prepared, as they are stored.
    pub(crate) fn image(&self, page: &Prepared) -> Option<&[u8]> {
        page.has_image.then_some(&*self.image)
    }

    /// Prepares a page that carries no bytes.
    pub(crate) fn prepare_modelled(&mut self) -> Prepared {
        let content = self.contents.next();
        let bytes = match self.compressor {
            Some(_) => (content.compressed_share * self.page_bytes as f64).ceil() as u64,
            None => self.page_bytes,
        };
        let slots = bytes.clamp(1, self.page_bytes).div_ceil(self.slot_bytes) as u32;
        Prepared { is_zero: content.is_zero, slots, fingerprint: content.fingerprint, ..Prepared::default() }
    }

    /// The slots that a page takes; its bytes as they are stored go to [`Self::image`], behind their number, which is 0
    /// where they are as they were.
    fn store(&mut self, page: &[u8]) -> u32 {
        if self.compressor.is_none() {
            return self.encode(page);
        }
        let hash = images::hash(page);
        if let Some((slots, image)) = self.images.of(hash, page) {
            self.image.clear();
            self.image.extend_from_slice(image);
            return slots;
        }
        let slots = self.encode(page);
        self.images.keep(hash, page, slots, &self.image);
        slots
    }

    /// The same, where nobody knows them yet.
    fn encode(&mut self, page: &[u8]) -> u32 {
        let (image, most) = (&mut self.image, self.page_bytes / self.slot_bytes);
        image.clear();
        image.extend_from_slice(&[0; HEADER]);
        if self.compressor.as_mut().is_some_and(|compressor| compressor.compress(page, image)) {
            let bytes = image.len() - HEADER;
            let slots = (bytes as u64).div_ceil(self.slot_bytes);
            if slots < most {
                image[..HEADER].copy_from_slice(&(bytes as u32).to_le_bytes());
                return slots as u32;
            }
        }
        image.truncate(HEADER);
        image.extend_from_slice(page);
        most as u32
    }

    /// Restores a page from its bytes as they are stored, with whatever is behind them; zeros where there are none.
    fn restore(&mut self, image: Option<&[u8]>, page: &mut [u8]) {
        let Some((header, bytes)) = image.and_then(<[u8]>::split_first_chunk::<HEADER>) else { return page.fill(0) };
        match (u32::from_le_bytes(*header) as usize, &mut self.compressor) {
            (length @ 1.., Some(compressor)) => {
                let is_whole = compressor.decompress(&bytes[..length], page);
                debug_assert!(is_whole, "what a drive has compressed, it can decompress");
            }
            _ => page.copy_from_slice(&bytes[..page.len()]),
        }
    }

    /// Whether bytes that are prepared are what a stored page has, as far as its place on flash tells.
    pub(crate) fn is_alike(&self, page: &Prepared, ftl: &PageMap, stored: u32) -> bool {
        let is_equal = |sharing: &Sharing| sharing.fingerprint(stored) == page.fingerprint;
        page.slots == ftl.slots_of(stored) && self.sharing.as_deref().is_none_or(is_equal)
    }

    /// Copies a part of the page that starts in a slot.
    pub(crate) fn read(&mut self, payload: &Payload, slot: u32, from: usize, into: &mut [u8]) {
        if into.len() as u64 == self.page_bytes {
            return self.restore(payload.image(slot), into);
        }
        let mut page = std::mem::take(&mut self.page);
        self.restore(payload.image(slot), &mut page);
        into.copy_from_slice(&page[from..from + into.len()]);
        self.page = page;
    }

    /// A part of a page reads as zeros from now on; gives whether all of it does. The controller remembers that beside
    /// the page, which stays as it is: its room does not change.
    pub(crate) fn zero(&mut self, payload: &mut Payload, slot: u32, span: PageSpan) -> bool {
        let Some(old) = payload.image(slot) else { return false };
        let page = self.prepare_changed(Some(old), |page| page[span.from..span.to].fill(0));
        payload.put_copy(slot, self.image(&page));
        page.is_zero
    }

    /// What is on the drive.
    pub(crate) fn space_use(&self, ftl: &PageMap) -> SpaceUse {
        let pages = self.sharing.as_ref().map_or(ftl.mapped_pages(), |sharing| sharing.mapped());
        SpaceUse {
            logical_bytes: pages * self.page_bytes,
            physical_bytes: ftl.stored_slots() * self.slot_bytes,
            physical_capacity_bytes: self.slots_max * self.slot_bytes,
        }
    }

    /// Checks what must hold between any two events.
    pub(crate) fn check(&self, ftl: &PageMap) -> Result<(), String> {
        let (stored, most) = (ftl.stored_slots(), self.slots_max);
        if stored > most {
            return Err(format!("{stored} slots are stored where {most} may be"));
        }
        match &self.sharing {
            Some(sharing) => sharing.check(ftl),
            None => Ok(()),
        }
    }
}

state! {
    ReductionCounters {
        saved {
            written_bytes, zero_bytes, duplicate_bytes, unique_bytes, stored_bytes, merged_bytes, lookups,
            refused_pages,
        }
    }
}

state! {
    Engine {
        saved { free_ns }
        built { ns_per_page, bytes_per_s }
    }
    checked check
}

state! {
    Reduction {
        saved { sharing, contents, compressing, decompressing, fingerprinting, pre_hashing, counters }
        at_rest { prepared }
        built { page_bytes, slot_bytes, compressor, images, slots_max, prepared_image, image, page }
    }
}

/// A page that is asked for again belongs to a request.
impl AtRest for ((u32, u32), Prepared) {
    fn is_at_rest(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Codec, CompressionConfig, ReductionConfig};
    use proptest::prelude::*;

    fn reduction(codec: Codec) -> Box<Reduction> {
        let mut config = DeviceConfig::preset("toshiba-xg5").unwrap();
        let compression = CompressionConfig { codec, ..CompressionConfig::default() };
        config.reduction = Some(ReductionConfig { compression: Some(compression), ..ReductionConfig::default() });
        Reduction::new(&config, 1).unwrap()
    }

    fn page() -> impl Strategy<Value = Vec<u8>> {
        let noise = prop::collection::vec(any::<u8>(), 4096);
        let runs = prop::collection::vec((any::<u8>(), 1_usize..600), 1..40).prop_map(|runs| {
            let mut page: Vec<u8> = runs.into_iter().flat_map(|(byte, n)| std::iter::repeat_n(byte, n)).collect();
            page.resize(4096, 0);
            page
        });
        (noise, runs, 0_usize..4097).prop_map(|(noise, mut runs, n)| {
            runs[..n].copy_from_slice(&noise[..n]);
            runs
        })
    }

    proptest! {
        #[test]
        fn every_page_comes_back_as_it_was_and_takes_no_more_than_its_own_room(page in page(), codec in prop::sample::select(&Codec::ALL[..])) {
            let mut reduction = reduction(codec);
            let prepared = reduction.prepare(&page);
            prop_assert_eq!(prepared.is_zero, page.iter().all(|&byte| byte == 0));
            prop_assert!(prepared.slots <= 64);
            let image = reduction.image(&prepared).map(<[u8]>::to_vec);
            let mut restored = vec![1; 4096];
            // It may be in memory that is longer.
            let longer = image.as_deref().map(|image| [image, &[7; 100]].concat());
            reduction.restore(longer.as_deref(), &mut restored);
            prop_assert_eq!(restored, page);
            // The image without the number in front is what takes space.
            let bytes = image.map_or(0, |image| (image.len() - HEADER) as u64);
            prop_assert_eq!(u64::from(prepared.slots), bytes.div_ceil(64));
        }
    }

    #[test]
    fn a_page_takes_what_its_content_needs_and_noise_takes_all_of_its_own() {
        for codec in Codec::ALL {
            let mut reduction = reduction(codec);
            let mut random = 1_u64;
            let noise: Vec<u8> = std::iter::repeat_with(|| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (random >> 56) as u8
            })
            .take(4096)
            .collect();
            assert_eq!(reduction.prepare(&noise).slots, 64, "{codec:?}");
            let mut half = noise.clone();
            half[2048..].fill(0);
            let slots = reduction.prepare(&half).slots;
            // Half of it cannot be compressed; the run of zeros is a few bytes.
            assert!((32..=34).contains(&slots), "{codec:?}: {slots}");
            assert!(reduction.prepare(&[0; 4096]).is_zero);
        }
    }

    #[test]
    fn an_engine_works_on_one_page_after_the_other() {
        let mut engine = Engine::new(100, 4_096_000_000);
        assert_eq!([0, 0, 5_000].map(|now| engine.run(now, 4096)), [1_100, 2_200, 6_100]);
        assert_eq!(Engine::default().run(7, 4096), 7);
    }
}
