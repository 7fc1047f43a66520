//! RAID-1: every member holds everything.

use super::{Layout, Role};

pub(super) struct Raid1 {
    pub(super) members: usize,
}

impl Layout for Raid1 {
    fn columns(&self) -> usize {
        1
    }

    fn copies(&self) -> usize {
        self.members
    }

    fn member(&self, _row: u64, _role: Role, copy: usize) -> usize {
        copy
    }
}
