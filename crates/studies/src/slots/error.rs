//! What can be wrong with a drive, a trace or an algorithm of the model.

/// Why nothing was measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeathTimeError {
    /// The pages leave no block free, or there are too many slots.
    #[error(
        "{pages} pages on {blocks} blocks of {slots_per_block} slots: at least one page is required, all pages must \
         fit in all blocks but one with a slot to spare, and there must be fewer than 2^32 slots"
    )]
    Shape {
        /// Blocks.
        blocks: u32,
        /// Slots of a block.
        slots_per_block: u32,
        /// Logical pages.
        pages: u32,
    },
    /// The offline algorithm needs more spare blocks.
    #[error(
        "{blocks} blocks leave too little space beside {pages} pages to group {writes} writes by death: add blocks"
    )]
    NoRoom {
        /// Blocks.
        blocks: u32,
        /// Logical pages.
        pages: u32,
        /// Writes of the trace.
        writes: usize,
    },
    /// A page beyond the last.
    #[error("the trace writes page {page}, but there are only {pages} pages, numbered from 0")]
    Page {
        /// The page.
        page: u32,
        /// Logical pages.
        pages: u32,
    },
    /// Too long a trace.
    #[error("{0} writes: the model supports up to 2^32 - 2")]
    Writes(usize),
    /// The user wants the work to stop.
    #[error("interrupted")]
    Interrupted,
    /// An algorithm broke the model.
    #[error("the algorithm violated the model: {0}")]
    Broken(String),
}
