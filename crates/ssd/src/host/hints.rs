//! Prefetch hints: the requests that are about to come, so that what the tables hold of their pages is in the
//! processor's cache when it is needed. They change no result.

/// A request that is about to come: its first logical page, and whether it writes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Hint {
    pub(crate) page: u32,
    pub(crate) is_write: bool,
}

/// The last requests that were about to come, or that have just come.
#[derive(Default)]
pub(crate) struct PrefetchHints {
    /// The host gives hints itself, before its requests come.
    pub(crate) are_given: bool,
    recent: [Hint; 8],
    turn: usize,
}

impl PrefetchHints {
    #[inline(always)]
    pub(crate) fn push(&mut self, request: Hint) {
        self.turn = self.turn.wrapping_add(1);
        self.recent[self.turn % self.recent.len()] = request;
    }

    /// The request that came so many before the last one.
    #[inline(always)]
    pub(crate) fn before(&self, back: usize) -> Hint {
        self.recent[self.turn.wrapping_sub(back) % self.recent.len()]
    }
}
