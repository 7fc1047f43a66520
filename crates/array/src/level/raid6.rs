//! RAID-6: as RAID-5, with Q behind P and the data behind both.

use super::{Layout, Role};

pub(super) struct Raid6 {
    pub(super) members: usize,
}

impl Layout for Raid6 {
    fn columns(&self) -> usize {
        self.members - 2
    }

    fn parities(&self) -> usize {
        2
    }

    fn member(&self, row: u64, role: Role, _copy: usize) -> usize {
        let p = self.members - 1 - (row % self.members as u64) as usize;
        match role {
            Role::P => p,
            Role::Q => (p + 1) % self.members,
            Role::Data(column) => (p + 2 + column) % self.members,
        }
    }
}
