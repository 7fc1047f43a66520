//! Files on a bare drive: names → files → extents of 1 MiB.
//!
//! Each extent is 1 MiB, aligned to 1 MiB on the device, so that a chunk (a power of two up to 1 MiB) never crosses two
//! and a file's offset is congruent to the device's offset modulo the chunk. A file grows into the extent after its
//! last one while that is free; databases start from the device's front and all other files from its last eighth, so
//! that a growing journal does not block a growing database.
//!
//! Only bookkeeping: this module makes no requests. The directory is in memory and lost with the VFS; the data is on
//! the device.

use std::collections::BTreeMap;

use crate::bytes::Span;

/// Length and alignment of an extent.
pub(crate) const EXTENT: u64 = 1 << 20;

/// A file's number; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileId(pub u64);

/// No extent is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VolumeFull;

/// Where the search for a file's extents starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zone {
    /// From the device's first byte: databases.
    Front,
    /// From its last eighth: journals, WAL, temporary files.
    Back,
}

#[derive(Debug)]
struct StoredFile {
    /// Extent numbers in the order of the file's bytes.
    extents: Vec<u32>,
    size: u64,
    zone: Zone,
}

/// The directory and the free space of one device.
#[derive(Debug)]
pub(crate) struct Volume {
    names: BTreeMap<String, FileId>,
    files: BTreeMap<FileId, StoredFile>,
    /// One flag an extent.
    used: Vec<bool>,
    /// No extent below is free.
    lowest_free: usize,
    logical_block: u64,
    next_id: u64,
}

impl Volume {
    pub(crate) fn new(capacity: u64, logical_block: u64) -> Self {
        let extents = usize::try_from(capacity / EXTENT).unwrap_or(usize::MAX).min(u32::MAX as usize);
        Self {
            names: BTreeMap::new(),
            files: BTreeMap::new(),
            used: vec![false; extents],
            lowest_free: 0,
            logical_block,
            next_id: 0,
        }
    }

    pub(crate) fn find(&self, name: &str) -> Option<FileId> {
        self.names.get(name).copied()
    }

    /// An empty file; without a name it lives until it is removed.
    pub(crate) fn create(&mut self, name: Option<&str>, zone: Zone) -> FileId {
        let id = FileId(self.next_id);
        self.next_id += 1;
        self.files.insert(id, StoredFile { extents: Vec::new(), size: 0, zone });
        if let Some(name) = name {
            self.names.insert(name.to_owned(), id);
        }
        id
    }

    /// Takes a name away; the file stays until it is removed.
    pub(crate) fn unlink(&mut self, name: &str) -> Option<FileId> {
        self.names.remove(name)
    }

    /// Whether any name leads to the file.
    pub(crate) fn is_linked(&self, id: FileId) -> bool {
        self.names.values().any(|&linked| linked == id)
    }

    pub(crate) fn size(&self, id: FileId) -> u64 {
        self.files.get(&id).map_or(0, |file| file.size)
    }

    /// Allocates space for `end` bytes.
    pub(crate) fn reserve(&mut self, id: FileId, end: u64) -> Result<(), VolumeFull> {
        let Some(file) = self.files.get(&id) else { return Err(VolumeFull) };
        let zone = file.zone;
        let wanted = usize::try_from(end.div_ceil(EXTENT)).map_err(|_| VolumeFull)?;
        let missing = wanted.saturating_sub(file.extents.len());
        if missing > self.used.len() {
            return Err(VolumeFull);
        }
        let mut last = file.extents.last().copied();
        let mut taken = Vec::with_capacity(missing);
        for _ in 0..missing {
            let Some(extent) = self.take(last, zone) else {
                taken.into_iter().for_each(|extent| self.give_back(extent));
                return Err(VolumeFull);
            };
            taken.push(extent);
            last = Some(extent);
        }
        if let Some(file) = self.files.get_mut(&id) {
            file.extents.extend(taken);
        }
        Ok(())
    }

    fn take(&mut self, behind: Option<u32>, zone: Zone) -> Option<u32> {
        let next = behind.map(|last| last as usize + 1).filter(|&next| self.used.get(next) == Some(&false));
        let from = match zone {
            Zone::Front => self.lowest_free,
            Zone::Back => (self.used.len() / 8 * 7).max(self.lowest_free),
        };
        let free_from = |from: usize| self.used[from..].iter().position(|used| !used).map(|at| from + at);
        let extent = next.or_else(|| free_from(from)).or_else(|| free_from(self.lowest_free))?;
        self.used[extent] = true;
        if extent == self.lowest_free {
            self.lowest_free += 1;
        }
        u32::try_from(extent).ok()
    }

    fn give_back(&mut self, extent: u32) {
        debug_assert!(self.used[extent as usize], "extent {extent} is given back once");
        self.used[extent as usize] = false;
        self.lowest_free = self.lowest_free.min(extent as usize);
    }

    /// The file's size after a write or an extension; its space must be reserved.
    pub(crate) fn set_size(&mut self, id: FileId, size: u64) {
        if let Some(file) = self.files.get_mut(&id) {
            debug_assert!(size <= file.extents.len() as u64 * EXTENT, "room is reserved before a file grows");
            file.size = size;
        }
    }

    /// The places of a span of the file on the device, in contiguous pieces.
    pub(crate) fn pieces(&self, id: FileId, span: Span) -> Vec<Span> {
        let Some(file) = self.files.get(&id) else { return Vec::new() };
        let mut pieces: Vec<Span> = Vec::new();
        let mut at = span.start;
        while at < span.end() {
            let Some(&extent) = file.extents.get((at / EXTENT) as usize) else { break };
            let length = (EXTENT - at % EXTENT).min(span.end() - at);
            push_merged(&mut pieces, Span { start: u64::from(extent) * EXTENT + at % EXTENT, length });
            at += length;
        }
        pieces
    }

    /// Truncates a file to `size`; frees extents and returns the spans that the device no longer needs.
    pub(crate) fn shrink(&mut self, id: FileId, size: u64) -> Vec<Span> {
        let Some(file) = self.files.get_mut(&id) else { return Vec::new() };
        let written = file.size.next_multiple_of(self.logical_block);
        file.size = size;
        let kept = size.div_ceil(EXTENT) as usize;
        let freed = file.extents.split_off(kept.min(file.extents.len()));
        let kept_end = file.extents.len() as u64 * EXTENT;
        let tail_start = size.next_multiple_of(self.logical_block);
        let tail_end = written.min(kept_end);
        let mut unused = match tail_end.checked_sub(tail_start) {
            Some(length @ 1..) => self.pieces(id, Span { start: tail_start, length }),
            _ => Vec::new(),
        };
        for extent in freed {
            self.give_back(extent);
            push_merged(&mut unused, Span { start: u64::from(extent) * EXTENT, length: EXTENT });
        }
        unused
    }

    /// Deletes a file; returns the spans that the device no longer needs.
    pub(crate) fn remove(&mut self, id: FileId) -> Vec<Span> {
        let unused = self.shrink(id, 0);
        self.files.remove(&id);
        self.names.retain(|_, &mut linked| linked != id);
        unused
    }
}

fn push_merged(spans: &mut Vec<Span>, next: Span) {
    match spans.last_mut() {
        Some(last) if last.end() == next.start => last.length += next.length,
        _ => spans.push(next),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn span(start: u64, length: u64) -> Span {
        Span { start, length }
    }

    #[test]
    fn a_growing_database_stays_contiguous_beside_a_growing_journal() {
        let mut volume = Volume::new(64 * EXTENT, 512);
        let db = volume.create(Some("a.db"), Zone::Front);
        let journal = volume.create(Some("a.db-journal"), Zone::Back);
        for n in 1..=7 {
            volume.reserve(db, n * EXTENT).unwrap();
            volume.reserve(journal, n * EXTENT).unwrap();
        }
        assert_eq!(volume.pieces(db, span(100, 3 * EXTENT)), [span(100, 3 * EXTENT)]);
        assert_eq!(volume.pieces(journal, span(0, 7 * EXTENT)), [span(56 * EXTENT, 7 * EXTENT)]);
    }

    #[test]
    fn a_full_volume_takes_nothing_and_loses_nothing() {
        let mut volume = Volume::new(4 * EXTENT, 512);
        let a = volume.create(Some("a"), Zone::Front);
        let b = volume.create(None, Zone::Back);
        volume.reserve(a, 3 * EXTENT).unwrap();
        assert_eq!(volume.reserve(b, 2 * EXTENT), Err(VolumeFull));
        assert_eq!(volume.reserve(b, u64::MAX), Err(VolumeFull));
        volume.reserve(b, EXTENT).unwrap();
        volume.remove(a);
        volume.reserve(b, 4 * EXTENT).unwrap();
    }

    #[test]
    fn a_truncated_file_gives_extents_back_and_trims_what_it_had_written() {
        let mut volume = Volume::new(8 * EXTENT, 4096);
        let a = volume.create(Some("a"), Zone::Front);
        volume.reserve(a, 3 * EXTENT).unwrap();
        volume.set_size(a, 2 * EXTENT + 5000);
        assert_eq!(volume.shrink(a, 2 * EXTENT + 100), [span(2 * EXTENT + 4096, 4096)]);
        assert_eq!(volume.shrink(a, 5000), [span(8192, 2 * EXTENT + EXTENT - 8192)]);
        assert_eq!((volume.size(a), volume.find("a")), (5000, Some(a)));
        assert_eq!(volume.remove(a), [span(0, EXTENT)]);
        assert_eq!(volume.find("a"), None);
    }

    proptest! {
        #[test]
        fn no_two_files_ever_share_an_extent(steps in prop::collection::vec((0usize..4, 0u64..12), 1..60)) {
            let mut volume = Volume::new(24 * EXTENT, 512);
            let ids: Vec<_> =
                (0..4).map(|n| volume.create(None, if n < 2 { Zone::Front } else { Zone::Back })).collect();
            for (file, extents) in steps {
                let id = ids[file];
                if volume.reserve(id, extents * EXTENT).is_ok() && volume.size(id) < extents * EXTENT {
                    volume.set_size(id, extents * EXTENT);
                } else {
                    volume.shrink(id, extents.min(volume.size(id) / EXTENT) * EXTENT);
                }
                let mut held: Vec<u32> = ids.iter().flat_map(|id| volume.files[id].extents.clone()).collect();
                let count = held.len();
                held.sort_unstable();
                held.dedup();
                prop_assert_eq!(held.len(), count);
                prop_assert_eq!(volume.used.iter().filter(|&&used| used).count(), count);
            }
        }
    }
}
