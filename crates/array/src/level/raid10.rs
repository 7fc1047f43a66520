//! RAID-10: chunks go round pairs of members that hold the same.

use super::{Layout, Role};

pub(super) struct Raid10 {
    pub(super) members: usize,
}

impl Layout for Raid10 {
    fn columns(&self) -> usize {
        self.members / 2
    }

    fn copies(&self) -> usize {
        2
    }

    fn member(&self, _row: u64, role: Role, copy: usize) -> usize {
        match role {
            Role::Data(column) => 2 * column + copy,
            Role::P | Role::Q => 0,
        }
    }
}
