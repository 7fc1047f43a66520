//! RAID-5, left-symmetric: the parity moves one member to the left with each row, and the data starts behind it, so
//! that a sequential read keeps all members busy (Lee, Katz: *Performance Consequences of Parity Placement in Disk
//! Arrays*, ASPLOS 1991).

use super::{Layout, Role};

pub(super) struct Raid5 {
    pub(super) members: usize,
}

impl Layout for Raid5 {
    fn columns(&self) -> usize {
        self.members - 1
    }

    fn parities(&self) -> usize {
        1
    }

    fn member(&self, row: u64, role: Role, _copy: usize) -> usize {
        let parity = self.members - 1 - (row % self.members as u64) as usize;
        match role {
            Role::P | Role::Q => parity,
            Role::Data(column) => (parity + 1 + column) % self.members,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_are_those_of_the_left_symmetric_layout() {
        let layout = Raid5 { members: 4 };
        let row = |row| {
            let data = (0..3).map(|column| layout.member(row, Role::Data(column), 0));
            data.chain([layout.member(row, Role::P, 0)]).collect::<Vec<_>>()
        };
        assert_eq!(row(0), [0, 1, 2, 3]);
        assert_eq!(row(1), [3, 0, 1, 2]);
        assert_eq!(row(2), [2, 3, 0, 1]);
        assert_eq!(row(3), [1, 2, 3, 0]);
        assert_eq!(row(4), row(0));
    }
}
