//! Aligned positions in a stretch of the drive.

use rand_pcg::Pcg64Mcg;

use super::random::below;

/// How long the requests are that need room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lengths {
    /// The longest, bytes.
    pub(super) longest: u64,
    /// Whether there are others.
    pub(super) varies: bool,
}

impl Lengths {
    /// What room two kinds of requests need.
    pub(super) fn and(self, other: Self) -> Self {
        let varies = self.varies || other.varies || self.longest != other.longest;
        Self { longest: self.longest.max(other.longest), varies }
    }
}

/// A stretch of the drive in which requests start at multiples of `align` and end inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// First position, a multiple of `align`.
    pub(super) first: u64,
    /// First byte behind the stretch.
    pub(super) end: u64,
    /// Distance from one position to the next, bytes.
    pub(super) align: u64,
    /// Positions at which the longest request ends inside; at least one.
    pub(super) positions: u64,
    /// Whether some requests are shorter and have more positions.
    varies: bool,
}

impl Span {
    /// The positions from `start` to `end`, or `None` where the longest request has no space.
    pub(super) fn new(start: u64, end: u64, align: u64, lengths: Lengths) -> Option<Self> {
        let first = start.checked_next_multiple_of(align)?;
        let room = end.checked_sub(first)?.checked_sub(lengths.longest)?;
        Some(Self { first, end, align, positions: room / align + 1, varies: lengths.varies })
    }

    /// A position at which a request of `length` ends inside, each with the same probability.
    #[inline]
    pub(super) fn draw(&self, random: &mut Pcg64Mcg, length: u64) -> u64 {
        let positions = if self.varies { (self.end - self.first - length) / self.align + 1 } else { self.positions };
        self.first + below(random, positions) * self.align
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EIGHT_KIB: Lengths = Lengths { longest: 8192, varies: false };

    #[test]
    fn positions_are_those_at_which_the_longest_request_ends_inside() {
        let span = Span::new(1000, 20_480, 4096, EIGHT_KIB).unwrap();
        assert_eq!((span.first, span.positions), (4096, 3));
        assert_eq!(Span::new(0, 8192, 4096, EIGHT_KIB).unwrap().positions, 1);
    }

    #[test]
    fn a_stretch_without_room_has_no_positions() {
        assert_eq!(Span::new(1, 8192, 4096, EIGHT_KIB), None);
        assert_eq!(Span::new(0, 4096, 4096, EIGHT_KIB), None);
        assert_eq!(Span::new(u64::MAX - 1, u64::MAX, 4096, EIGHT_KIB), None);
    }
}
