//! One: the host's pages are not told apart, nor are the moved ones.

use super::{Shape, Stream, StreamPolicy};
use crate::config::StreamsConfig;

/// One class of written and one of moved pages.
pub(crate) struct One;

impl One {
    pub(super) fn new(_: &StreamsConfig, _: Shape) -> Self {
        Self
    }
}

impl StreamPolicy for One {
    #[inline]
    fn class_of_written(&self, _: u32, _: u16, _: u64) -> u8 {
        0
    }

    #[inline]
    fn class_of_moved(&self, _: u32, _: Stream, _: u64) -> u8 {
        0
    }
}

crate::state::state! { One {} }
