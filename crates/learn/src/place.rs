//! Where on the drive the probes of layout start.
//!
//! Chunks, stripes and hot locations repeat on the drive. Through a file they are seen relative to the file, which lies
//! on the drive in extents that start anywhere:
//!
//! ```text
//!   extents of the file ──▶ starts in it that are on whole sections of the drive ──▶ offsets that count from the drive's
//!                     └──▶ not known, or too short ──▶ offsets that count from the file's start, and are not certain
//! ```

use std::fmt;

use flashwise_block::{ByteSize, Extent, ExtentMap, PlacementUnknown};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

/// The unit in which the probes divide their region; every layout that can be learned repeats in it.
pub(crate) const SECTION: ByteSize = ByteSize::mib(1);
/// The longest window of a probe, with the read at its end, and how many places there must be for it.
const WINDOW: ByteSize = ByteSize::mib(2);
const PLACES_MIN: usize = 16;

/// What offsets count from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The device is the drive.
    Drive,
    /// The start of the drive on which the device lies, in so many extents.
    Below { drive: String, extents: usize },
    /// The start of the file, and why not that of the drive.
    File(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drive => write!(f, "offsets are offsets on the drive"),
            Self::Below { drive, extents: 1 } => {
                write!(f, "offsets count from the start of {drive}, where the file is one contiguous extent")
            }
            Self::Below { drive, extents } => {
                write!(f, "offsets count from the start of {drive}, where the file has {extents} extents")
            }
            Self::File(why) => write!(f, "offsets count from the start of the file: {why}"),
        }
    }
}

/// A start on a whole section of the drive, and what follows it there without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Start {
    at: ByteSize,
    /// Where it is on the drive.
    on_drive: ByteSize,
    room: ByteSize,
}

/// The starts of a region, in its order.
#[derive(Clone, Debug)]
pub(crate) struct Sections {
    starts: Vec<Start>,
    origin: Origin,
}

impl Sections {
    /// Of the first `region` bytes of a device that is on its drive so.
    pub(crate) fn of(extents: Result<ExtentMap, PlacementUnknown>, region: ByteSize) -> Self {
        let in_the_file = |why: String| Self {
            starts: starts_in(&[Extent { offset: ByteSize(0), drive_offset: ByteSize(0), length: region }], region),
            origin: Origin::File(why),
        };
        let map = match extents {
            Ok(map) => map,
            Err(why) => return in_the_file(format!("its location on the drive is unknown: {why}")),
        };
        let pieces = joined(map.extents());
        let starts = starts_in(&pieces, region);
        let many = starts.iter().filter(|start| start.room >= WINDOW).count();
        if many < PLACES_MIN.min((region / WINDOW) as usize) {
            return in_the_file(format!("its {} extents on the drive are too short to probe", pieces.len()));
        }
        let is_drive = pieces.first().is_some_and(|piece| piece.drive_offset.0 == 0) && pieces.len() == 1;
        let below = || Origin::Below { drive: map.drive().to_owned(), extents: pieces.len() };
        Self { starts, origin: if is_drive { Origin::Drive } else { below() } }
    }

    /// What offsets count from.
    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The region in the order in which it is filled, as offsets and lengths of a section at most: whole sections
    /// first, so that they start where those of the drive do also where a drive lays out what it is given in the order
    /// in which it comes; then what is left before and between them.
    pub(crate) fn in_order(&self, region: ByteSize) -> Vec<(ByteSize, ByteSize)> {
        let whole: Vec<ByteSize> =
            self.starts.iter().filter(|start| start.room >= SECTION).map(|start| start.at).collect();
        let ends = whole.iter().map(|&at| at + SECTION);
        let gaps = std::iter::once(ByteSize(0)).chain(ends).zip(whole.iter().copied().chain([region]));
        let pieces = |(from, to): (ByteSize, ByteSize)| {
            let piece = move |at: u64| (ByteSize(at), SECTION.min(to - ByteSize(at)));
            (from.0..to.0).step_by(SECTION.0 as usize).map(piece)
        };
        let left: Vec<(ByteSize, ByteSize)> = gaps.flat_map(pieces).collect();
        whole.into_iter().map(|at| (at, SECTION)).chain(left).collect()
    }

    /// A start with `length` bytes behind it, any of them.
    pub(crate) fn random(&self, length: ByteSize, random: &mut Pcg64Mcg) -> ByteSize {
        self.random_of_drive(length, random).0
    }

    /// The same, with where it is on the drive.
    pub(crate) fn random_of_drive(&self, length: ByteSize, random: &mut Pcg64Mcg) -> (ByteSize, ByteSize) {
        self.random_start(length, random).map_or((ByteSize(0), ByteSize(0)), |start| (start.at, start.on_drive))
    }

    /// A place that is a multiple of `length` on the drive, with as much behind it.
    pub(crate) fn random_multiple(&self, length: ByteSize, random: &mut Pcg64Mcg) -> ByteSize {
        let start = self.random_start(length * 2, random);
        start.map_or(ByteSize(0), |start| {
            start.at + ByteSize(start.on_drive.0.next_multiple_of(length.0) - start.on_drive.0)
        })
    }

    fn random_start(&self, length: ByteSize, random: &mut Pcg64Mcg) -> Option<&Start> {
        let fits = |start: &&Start| start.room >= length;
        let count = self.starts.iter().filter(fits).count();
        if count == 0 {
            return None;
        }
        let n = random.random_range(0..count);
        self.starts.iter().filter(fits).nth(n)
    }

    /// The start with the most behind it, where it is on the drive, and how much that is.
    pub(crate) fn longest(&self) -> (ByteSize, ByteSize, ByteSize) {
        let longest = self.starts.iter().max_by_key(|start| start.room);
        longest.map_or((ByteSize(0), ByteSize(0), ByteSize(0)), |start| (start.at, start.on_drive, start.room))
    }

    /// The first `count` starts that have `length` bytes each, which do not overlap; `None` where there are fewer.
    pub(crate) fn stretches(&self, length: ByteSize, count: usize) -> Option<Vec<ByteSize>> {
        let mut stretches = Vec::with_capacity(count);
        let mut free_from = ByteSize(0);
        for start in self.starts.iter().filter(|start| start.room >= length) {
            if start.at >= free_from && stretches.len() < count {
                stretches.push(start.at);
                free_from = start.at + length;
            }
        }
        (stretches.len() == count).then_some(stretches)
    }
}

/// Extents of which the next starts where one ends on the drive, as one.
fn joined(extents: &[Extent]) -> Vec<Extent> {
    let mut pieces: Vec<Extent> = Vec::new();
    for extent in extents {
        match pieces.last_mut() {
            Some(last) if last.drive_offset + last.length == extent.drive_offset => {
                last.length += extent.length;
            }
            _ => pieces.push(*extent),
        }
    }
    pieces
}

fn starts_in(pieces: &[Extent], region: ByteSize) -> Vec<Start> {
    let of_one = |piece: &Extent| {
        let skip = piece.drive_offset.0.next_multiple_of(SECTION.0) - piece.drive_offset.0;
        let (first, end) = (piece.offset.0 + skip, (piece.offset.0 + piece.length.0).min(region.0));
        let shift = piece.drive_offset.0.wrapping_sub(piece.offset.0);
        let start = move |at: u64| Start {
            at: ByteSize(at),
            on_drive: ByteSize(at.wrapping_add(shift)),
            room: ByteSize(end - at),
        };
        (first..end).step_by(SECTION.0 as usize).map(start)
    };
    pieces.iter().flat_map(of_one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    fn map(extents: &[(u64, u64)]) -> Result<ExtentMap, PlacementUnknown> {
        let mut offset = 0;
        let place = |&(drive_offset, length): &(u64, u64)| {
            let extent =
                Extent { offset: ByteSize(offset), drive_offset: ByteSize(drive_offset), length: ByteSize(length) };
            offset += length;
            extent
        };
        let extents: Vec<Extent> = extents.iter().map(place).collect();
        ExtentMap::new("sda", extents, ByteSize(0))
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_drive_is_divided_from_its_begin_on() {
        let sections = Sections::of(Ok(ExtentMap::whole("sim", ByteSize(0), ByteSize::mib(512))), ByteSize::mib(64));
        assert_eq!(sections.origin(), &Origin::Drive);
        assert_eq!(sections.starts.len(), 64);
        let in_a_row: Vec<_> = (0..64).map(|n| (SECTION * n, SECTION)).collect();
        assert_eq!(sections.in_order(ByteSize::mib(64)), in_a_row);
        let stretches = sections.stretches(ByteSize::mib(4), 10).unwrap();
        assert_eq!(stretches, (0..10).map(|n| ByteSize::mib(4) * n).collect::<Vec<_>>());
    }

    #[test]
    fn each_start_lies_on_a_whole_section_of_the_drive_with_its_room_in_one_piece() {
        let pieces = [(5 * MIB + 12_288, 40 * MIB), (100 * MIB + 4096, 3 * MIB + 8192), (300 * MIB, 50 * MIB)];
        let extents = map(&pieces).unwrap();
        let sections = Sections::of(Ok(extents.clone()), ByteSize::mib(80));
        assert_eq!(sections.origin(), &Origin::Below { drive: "sda".to_owned(), extents: 3 });
        for start in &sections.starts {
            let at = extents.to_drive(start.at).unwrap();
            assert!(at.is_multiple_of(SECTION), "{start:?} lies at {}", at.0);
            let last = ByteSize(start.at.0 + start.room.0 - 1);
            assert_eq!(extents.to_drive(last).unwrap().0 - at.0, start.room.0 - 1, "{start:?} has no gap");
        }
        let order = sections.in_order(ByteSize::mib(80));
        let mut covered: Vec<(u64, u64)> = order.iter().map(|(at, length)| (at.0, at.0 + length.0)).collect();
        covered.sort_unstable();
        assert!(covered.windows(2).all(|pair| pair[0].1 == pair[1].0), "{covered:?}");
        assert_eq!((covered[0].0, covered[covered.len() - 1].1), (0, 80 * MIB));
        assert!(extents.to_drive(order[0].0).unwrap().is_multiple_of(SECTION));
        let mut random = Pcg64Mcg::seed_from_u64(1);
        for _ in 0..200 {
            let at = sections.random(WINDOW, &mut random);
            assert!(at + WINDOW <= ByteSize::mib(80) && extents.to_drive(at).unwrap().is_multiple_of(SECTION));
            let length = ByteSize::kib(40);
            let at = sections.random_multiple(length, &mut random);
            assert!(at + length <= ByteSize::mib(80) && extents.to_drive(at).unwrap().is_multiple_of(length));
        }
    }

    #[test]
    fn pieces_that_follow_each_other_on_the_drive_are_one() {
        let extents = map(&[(MIB, 8 * MIB), (9 * MIB, 8 * MIB), (40 * MIB, 64 * MIB)]).unwrap();
        assert_eq!(joined(extents.extents()).len(), 2);
    }

    #[test]
    fn a_file_in_crumbs_or_of_unknown_place_counts_from_its_own_begin() {
        let crumbs: Vec<(u64, u64)> = (0..256).map(|n| (n * 3 * MIB + 4096, MIB)).collect();
        let sections = Sections::of(map(&crumbs), ByteSize::mib(256));
        assert!(matches!(sections.origin(), Origin::File(why) if why.contains("256 extents")), "{}", sections.origin());
        assert_eq!(sections.starts.len(), 256);
        let sections = Sections::of(Err(PlacementUnknown("tmpfs has no extents".to_owned())), ByteSize::mib(64));
        assert!(sections.origin().to_string().ends_with("is unknown: tmpfs has no extents"));
    }
}
