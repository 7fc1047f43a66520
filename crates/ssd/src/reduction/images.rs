//! What pages become that are written again and again: how the last ones were stored.
//!
//! To compress a page takes a simulation longer than all else about its write, and what writes the same content often,
//! as one that looks for deduplication, would have it compressed each time. What is compressed comes out the same, so
//! that nobody can tell, but by the time that the simulation takes.

/// Places; each page has one, by its hash.
const PLACES: usize = 64;

/// A page and how it was stored. The next one in its place takes its memory.
#[derive(Default)]
struct Image {
    hash: u64,
    page: Vec<u8>,
    slots: u32,
    stored: Vec<u8>,
}

/// What a page is found by.
pub(super) fn hash(page: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(page)
}

/// How the last pages were stored.
#[derive(Default)]
pub(super) struct Images {
    /// Each with the hash of the page that came there last. A page is kept, in the place of another, when it comes for
    /// the second time in succession: most come once.
    places: Vec<(u64, Option<Image>)>,
}

impl Images {
    /// How a page with this hash was stored, and in how many slots, if it is one of the last.
    pub(super) fn of(&self, hash: u64, page: &[u8]) -> Option<(u32, &[u8])> {
        let (_, image) = self.places.get(hash as usize % PLACES)?;
        let image = image.as_ref().filter(|image| image.hash == hash && *image.page == *page)?;
        Some((image.slots, &image.stored))
    }

    /// A page was stored so.
    pub(super) fn keep(&mut self, hash: u64, page: &[u8], slots: u32, stored: &[u8]) {
        self.places.resize_with(PLACES, || (0, None));
        let (last, image) = &mut self.places[hash as usize % PLACES];
        if std::mem::replace(last, hash) != hash {
            return;
        }
        let image = image.get_or_insert_default();
        (image.hash, image.slots) = (hash, slots);
        image.page.clear();
        image.page.extend_from_slice(page);
        image.stored.clear();
        // No page is stored as much more than it has.
        image.stored.reserve(stored.len().max(page.len() + size_of::<u64>()));
        image.stored.extend_from_slice(stored);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_comes_again_is_known_by_all_of_its_bytes() {
        let mut images = Images::default();
        let page = vec![7; 4096];
        let number = hash(&page);
        images.keep(number, &page, 2, b"seven");
        assert_eq!(images.of(number, &page), None, "it came once");
        images.keep(number, &page, 2, b"seven");
        assert_eq!(images.of(number, &page), Some((2, &b"seven"[..])));
        let mut other = page.clone();
        other[4095] = 8;
        assert_eq!(images.of(number, &other), None, "equal hashes do not make equal pages");
        let others = |images: &mut Images, times: usize| {
            for page in (0..64 * 40_u32).map(u32::to_le_bytes) {
                (0..times).for_each(|_| images.keep(hash(&page), &page, 1, b"n"));
            }
        };
        others(&mut images, 1);
        assert!(images.of(number, &page).is_some(), "what comes once takes no place");
        others(&mut images, 2);
        assert_eq!(images.of(number, &page), None);
    }
}
