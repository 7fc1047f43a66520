//! Where a byte of the array lies: its row, its column, and its place in the chunk.

use super::config::Level;
use super::level::{Layout, Role, layout};

/// The geometry of an array.
pub(super) struct Stripes {
    layout: Box<dyn Layout>,
    pub(super) chunk_bytes: u64,
    pub(super) rows: u64,
    /// Chunks of data in a row, copies of each, and chunks of parity.
    pub(super) columns: usize,
    pub(super) copies: usize,
    pub(super) parities: usize,
}

/// Bytes of the array that are together in one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) row: u64,
    pub(super) column: usize,
    /// First byte in the chunk.
    pub(super) from: u64,
    pub(super) length: u64,
    /// First byte on the array.
    pub(super) at: u64,
}

impl Stripes {
    /// A level over members of so many bytes; what is no whole chunk at their ends is not used.
    pub(super) fn new(level: Level, members: usize, chunk_bytes: u64, member_bytes: u64) -> Self {
        let layout = layout(level, members);
        let (columns, copies, parities) = (layout.columns(), layout.copies(), layout.parities());
        Self { layout, chunk_bytes, rows: member_bytes / chunk_bytes, columns, copies, parities }
    }

    /// Bytes of data in a row.
    pub(super) fn row_bytes(&self) -> u64 {
        self.chunk_bytes * self.columns as u64
    }

    /// Bytes of data in the array.
    pub(super) fn capacity_bytes(&self) -> u64 {
        self.rows * self.row_bytes()
    }

    /// The member that holds a role in a row.
    pub(super) fn member(&self, row: u64, role: Role, copy: usize) -> usize {
        self.layout.member(row, role, copy)
    }

    /// The members that hold a column in a row.
    pub(super) fn holders(&self, row: u64, column: usize) -> impl Iterator<Item = usize> {
        (0..self.copies).map(move |copy| self.member(row, Role::Data(column), copy))
    }

    /// The role of a slot: the columns, then P, then Q.
    pub(super) fn role(&self, slot: usize) -> Role {
        match slot.checked_sub(self.columns) {
            None => Role::Data(slot),
            Some(0) => Role::P,
            Some(_) => Role::Q,
        }
    }

    /// Columns and parities of a row.
    pub(super) fn slots(&self) -> usize {
        self.columns + self.parities
    }

    /// The slot that a member holds in a row.
    pub(super) fn slot_of(&self, row: u64, member: usize) -> usize {
        let holds = |&slot: &usize| (0..self.copies).any(|copy| self.member(row, self.role(slot), copy) == member);
        (0..self.slots()).find(holds).unwrap_or(0)
    }

    /// A range of the array, chunk by chunk.
    pub(super) fn pieces(&self, start: u64, end: u64) -> impl Iterator<Item = Piece> + use<> {
        let (chunk, columns) = (self.chunk_bytes, self.columns as u64);
        let mut at = start;
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let (number, from) = (at / chunk, at % chunk);
            let length = (chunk - from).min(end - at);
            let piece = Piece { row: number / columns, column: (number % columns) as usize, from, length, at };
            at += length;
            Some(piece)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_at_chunks() {
        let stripes = Stripes::new(Level::Raid5, 4, 1000, 10_999);
        assert_eq!((stripes.rows, stripes.capacity_bytes()), (10, 30_000));
        let pieces: Vec<_> = stripes.pieces(2_900, 4_100).collect();
        let piece = |row, column, from, length, at| Piece { row, column, from, length, at };
        assert_eq!(pieces, [piece(0, 2, 900, 100, 2_900), piece(1, 0, 0, 1000, 3_000), piece(1, 1, 0, 100, 4_000)]);
    }

    #[test]
    fn slots_and_members_are_each_others_inverse() {
        for (level, members) in [(Level::Raid10, 6), (Level::Raid5, 5), (Level::Raid6, 6)] {
            let stripes = Stripes::new(level, members, 4096, 1 << 20);
            for row in 0..12 {
                for slot in 0..stripes.slots() {
                    let member = stripes.member(row, stripes.role(slot), stripes.copies - 1);
                    assert_eq!(stripes.slot_of(row, member), slot);
                }
            }
        }
    }
}
