//! Superpages of retired superblocks whose content is in the write buffer only.

use crate::ftl::Stream;

/// A superpage that will not be on flash where it should be.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unsaved {
    pub(crate) superpage: u32,
    /// Streams and generations of the superpages that parts of its content went to.
    pub(crate) moved_to: Vec<(Stream, u64)>,
}

impl Unsaved {
    pub(crate) fn new(superpage: u32) -> Self {
        Self { superpage, moved_to: Vec::new() }
    }
}

crate::state::state! {
    Unsaved {
        saved { superpage }
        lists { moved_to }
    }
}
