//! RAID levels: which member holds what.
//!
//! ```text
//!   row r    chunk r of every member, one below the other on each drive
//!            member 0   member 1   member 2   member 3
//!   row 0    data 0     data 1     data 2     P            RAID-5, left-symmetric
//!   row 1    data 1     data 2     P          data 0
//! ```
//!
//! A level says what each member holds in a row: a chunk of data, a copy of one, or a parity. All else (locks, reads,
//! writes, rebuilding) is the same for all levels and is beside this folder.
//!
//! Source of the levels: D. Patterson, G. Gibson, R. Katz: *A Case for Redundant Arrays of Inexpensive Disks*, SIGMOD
//! 1988; P. Chen et al.: *RAID: High-Performance, Reliable Secondary Storage*, ACM Computing Surveys 26(2), 1994.
//!
//! # Adding a level
//!
//! 1. A file here with a type behind [`Layout`]; its `mod`, and its line in [`layout`].
//! 2. Its name in [`Level`] (`config.rs`), with how many members it has and how many may fail.
//! 3. Its line in the tests of arrays, which let every survivable failure happen.

mod raid0;
mod raid1;
mod raid10;
mod raid5;
mod raid6;

use super::config::Level;

/// What a member holds in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The chunk of a column, or a copy of it.
    Data(usize),
    /// The sum of all columns.
    P,
    /// The weighted sum of all columns.
    Q,
}

/// A level over a number of members.
pub(super) trait Layout: Send {
    /// Chunks of data in a row.
    fn columns(&self) -> usize;

    /// Members that hold the same chunk of data.
    fn copies(&self) -> usize {
        1
    }

    /// Chunks of parity in a row: none, P, or P and Q.
    fn parities(&self) -> usize {
        0
    }

    /// The member that holds a chunk in a row; of copies, the one of that number.
    fn member(&self, row: u64, role: Role, copy: usize) -> usize;
}

/// The level of that name.
pub(super) fn layout(level: Level, members: usize) -> Box<dyn Layout> {
    match level {
        Level::Raid0 => Box::new(raid0::Raid0 { members }),
        Level::Raid1 => Box::new(raid1::Raid1 { members }),
        Level::Raid10 => Box::new(raid10::Raid10 { members }),
        Level::Raid5 => Box::new(raid5::Raid5 { members }),
        Level::Raid6 => Box::new(raid6::Raid6 { members }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chunk_of_a_row_has_members_of_its_own() {
        for (level, members) in [
            (Level::Raid0, 1),
            (Level::Raid0, 5),
            (Level::Raid1, 3),
            (Level::Raid10, 6),
            (Level::Raid5, 3),
            (Level::Raid5, 8),
            (Level::Raid6, 4),
            (Level::Raid6, 7),
        ] {
            let layout = layout(level, members);
            for row in 0..20 {
                let data = (0..layout.columns())
                    .flat_map(|column| (0..layout.copies()).map(move |copy| (Role::Data(column), copy)));
                let parity = [(Role::P, 0), (Role::Q, 0)].into_iter().take(layout.parities());
                let mut held: Vec<_> = data.chain(parity).map(|(role, copy)| layout.member(row, role, copy)).collect();
                held.sort_unstable();
                assert_eq!(held, (0..members).collect::<Vec<_>>(), "{level:?}, row {row}");
            }
        }
    }
}
