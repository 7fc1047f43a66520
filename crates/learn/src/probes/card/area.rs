//! The part of a card that is probed, in offsets of the card: units are counted from the card's start, not from the
//! start of a file on it.

use flashwise_block::ByteSize;

use crate::place::Origin;
use crate::prober::Prober;

/// What is left free at the start of a card, whose first units may be special: as much as flashbench leaves.
const LEFT_FREE: ByteSize = ByteSize::mib(16);

/// Bytes of the card that lie in one piece.
#[derive(Clone, Debug)]
pub(super) struct Area {
    /// Where the piece is on the card.
    on_card: ByteSize,
    /// Where the piece is in the probed region.
    offset: ByteSize,
    pub(super) length: ByteSize,
    /// Why offsets of the card are not known.
    pub(super) why_unplaced: Option<String>,
}

impl Area {
    /// The longest piece of the region.
    pub(super) fn of(prober: &Prober<'_>) -> Self {
        let (offset, on_card, length) = prober.longest_piece();
        let why_unplaced = match prober.origin() {
            Origin::File(why) => Some(why.clone()),
            Origin::Drive | Origin::Below { .. } => None,
        };
        Self { on_card, offset, length, why_unplaced }
    }

    /// Where an offset of the card is in the region.
    pub(super) fn at(&self, on_card: ByteSize) -> ByteSize {
        ByteSize(on_card.0 - self.on_card.0 + self.offset.0)
    }

    /// The `n`th multiple of a length on the card that is in the area, behind what is left free at the card's start.
    pub(super) fn start_of(&self, length: ByteSize, n: u64) -> ByteSize {
        let first = self.first().0.next_multiple_of(length.0);
        ByteSize(first + length.0 * n)
    }

    /// Multiples of a length with `length` bytes behind each.
    pub(super) fn count_of(&self, length: ByteSize) -> u64 {
        (self.end().0.saturating_sub(self.start_of(length, 0).0)) / length.0
    }

    /// The first offset of the card that is written.
    pub(super) fn first(&self) -> ByteSize {
        self.on_card.max(LEFT_FREE)
    }

    /// The end of the area on the card.
    pub(super) fn end(&self) -> ByteSize {
        self.on_card + self.length
    }

    /// Whether the start of the card is in the area.
    pub(super) fn has_start(&self) -> bool {
        self.on_card.0 == 0 && self.why_unplaced.is_none()
    }
}
