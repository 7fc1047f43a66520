//! Files that are gone are freed a little later.
//!
//! Linux 6.18, `fs/xfs/xfs_icache.c` `xfs_inodegc_queue`, `xfs_inodegc_worker`: a file whose name and last handle have
//! gone waits in a list of the processor; a worker takes the blocks of all one to two ticks of the clock after the last
//! one came, at once where more than a cluster of inodes waits, or when space is needed (`xfs_inodegc_flush`). So files
//! that go soon after one another are freed in one checkpoint, and blocks of theirs that lie together are one trim
//! (`xfs_discard_extents` plugs its bios).
//!
//! User data never takes blocks whose trim has not been sent (`xfs_extent_busy_trim`): here they are free only when it
//! has completed.

use std::collections::BTreeMap;

use flashwise_block::{BlockDevice, Nanos};

use crate::error::Result;
use crate::fs::inode::Ino;
use crate::kernel::Kernel;

/// `inodes_per_cluster`: 16 KiB of 512 bytes.
const CLUSTER_INODES: usize = 32;

/// Files that wait, and until when.
#[derive(Debug, Default)]
struct Waiting {
    inodes: Vec<Ino>,
    due: Option<Nanos>,
}

/// The lists of all processors.
#[derive(Debug, Default)]
pub(crate) struct InodeGc {
    lists: BTreeMap<usize, Waiting>,
}

impl InodeGc {
    pub(crate) fn due(&self) -> Option<Nanos> {
        self.lists.values().filter_map(|list| list.due).min()
    }
}

impl<D: BlockDevice> Kernel<D> {
    /// `xfs_inodegc_queue`
    pub(crate) fn queue_inactivation(&mut self, ino: Ino) -> Result<()> {
        // `mod_delayed_work` by one jiffy, which a timer rounds up.
        let due = Nanos((self.tick_now() + 2).saturating_mul(self.config.tick.0));
        let list = self.inodegc.lists.entry(self.processor).or_default();
        list.inodes.push(ino);
        list.due = Some(due);
        if list.inodes.len() > CLUSTER_INODES { self.inactivate_list(self.processor) } else { Ok(()) }
    }

    /// `xfs_inodegc_worker`, where the tick has come.
    pub(crate) fn inodegc_tick(&mut self) -> Result<()> {
        if self.inodegc.lists.is_empty() {
            return Ok(());
        }
        let now = self.now();
        let is_due = |list: &Waiting| list.due.is_some_and(|due| due <= now);
        while let Some((&processor, _)) = self.inodegc.lists.iter().find(|(_, list)| is_due(list)) {
            self.inactivate_list(processor)?;
        }
        Ok(())
    }

    fn inactivate_list(&mut self, processor: usize) -> Result<()> {
        let Some(waiting) = self.inodegc.lists.remove(&processor) else { return Ok(()) };
        waiting.inodes.into_iter().try_for_each(|ino| self.inactivate(ino))
    }

    /// Frees all files that wait.
    pub(crate) fn inactivate_all(&mut self) -> Result<()> {
        while let Some(&processor) = self.inodegc.lists.keys().next() {
            self.inactivate_list(processor)?;
        }
        Ok(())
    }
}
