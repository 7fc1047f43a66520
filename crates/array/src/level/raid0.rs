//! RAID-0: chunks go round the members, nothing is held twice.

use super::{Layout, Role};

pub(super) struct Raid0 {
    pub(super) members: usize,
}

impl Layout for Raid0 {
    fn columns(&self) -> usize {
        self.members
    }

    fn member(&self, _row: u64, role: Role, _copy: usize) -> usize {
        match role {
            Role::Data(column) => column,
            Role::P | Role::Q => 0,
        }
    }
}
