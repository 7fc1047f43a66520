//! Files that are gone are freed a little later.
//!
//! Linux 6.18, `fs/xfs/xfs_icache.c` `xfs_inodegc_queue`, `xfs_inodegc_worker`: a file whose name and last handle have
//! gone waits in a list of the processor (here there is one: the task stays on its own); a worker takes the blocks of
//! all one to two ticks of the clock after the last one came, at once where more than a cluster of inodes waits, or
//! when space is needed (`xfs_inodegc_flush`). So files that go soon after one another are freed in one checkpoint,
//! and blocks of theirs that lie together are one trim (`xfs_discard_extents` plugs its bios).
//!
//! User data never takes blocks whose trim has not been sent (`xfs_extent_busy_trim`): here they are free only when it
//! has completed.

use flashwise_block::{BlockDevice, Nanos};

use crate::error::Result;
use crate::fs::inode::Ino;
use crate::kernel::Kernel;

/// `inodes_per_cluster`: 16 KiB of 512 bytes.
const CLUSTER_INODES: usize = 32;

/// Files that wait, and until when.
#[derive(Debug, Default)]
pub(crate) struct InodeGc {
    inodes: Vec<Ino>,
    due: Option<Nanos>,
}

impl InodeGc {
    pub(crate) fn due(&self) -> Option<Nanos> {
        self.due
    }
}

impl<D: BlockDevice> Kernel<D> {
    /// `xfs_inodegc_queue`
    pub(crate) fn queue_inactivation(&mut self, ino: Ino) -> Result<()> {
        // `mod_delayed_work` by one jiffy, which a timer rounds up.
        let due = Nanos((self.tick_now() + 2).saturating_mul(self.config.tick.0));
        self.inodegc.inodes.push(ino);
        self.inodegc.due = Some(due);
        if self.inodegc.inodes.len() > CLUSTER_INODES { self.inactivate_all() } else { Ok(()) }
    }

    /// `xfs_inodegc_worker`, where the tick has come.
    pub(crate) fn inodegc_tick(&mut self) -> Result<()> {
        let is_due = self.inodegc.due.is_some_and(|due| due <= self.now());
        if is_due { self.inactivate_all() } else { Ok(()) }
    }

    /// Frees all files that wait.
    pub(crate) fn inactivate_all(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.inodegc);
        waiting.inodes.into_iter().try_for_each(|ino| self.inactivate(ino))
    }
}
