//! A drive of elements: one link for commands' data, whole requests over it, and the elements behind it.
//!
//! ```text
//!   write   waits for the link ─▶ all of its data crosses ─▶ its pages go to their elements ─▶ completes
//!   read    its pages go to their elements ─▶ waits for the link ─▶ all of its data crosses ─▶ completes
//! ```
//!
//! The link carries one request at a time. When it becomes free, requests that the elements have done go first, in
//! their order; then the next command is taken, reads without any time on the link. So a read behind a write's transfer
//! waits for it. There is no buffer: a write completes when its last page is programmed, and a flush has nothing to
//! wait for.
//!
//! Source: the SSD model of DiskSim 4.0 (see [`crate::ftl::element`]).

use crate::list::Fifo;
use crate::state::AtRest;

/// Who has the link and who waits for it.
#[derive(Default)]
pub(crate) struct WholeRequestLink {
    /// A request's data crosses.
    pub(crate) is_busy: bool,
    /// Commands that nothing was done for yet.
    pub(crate) commands: Fifo,
    /// Requests that the elements have done.
    pub(crate) done: Fifo,
}

impl AtRest for WholeRequestLink {
    fn is_at_rest(&self) -> bool {
        !self.is_busy && self.commands.is_at_rest() && self.done.is_at_rest()
    }
}
