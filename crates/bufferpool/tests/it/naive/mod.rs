//! Every policy again, as its definition reads: lists of pages searched from end to end, nothing cached, nothing
//! clever.
//!
//! The pages written together are found by the rule itself: the model is copied and requested victims while every
//! coming request misses on a new page and writes it.

mod models;
mod pool;

pub(crate) use models::with_models;
pub use models::*;
pub use pool::{NaivePool, State};

/// A page in the models; new pages of the imagined future count down from the largest number.
pub type Page = u64;

/// What a policy decides.
pub trait Model: Clone {
    /// A resident page is requested; its dirty bit is as before.
    fn hit(&mut self, page: Page, write: bool, state: &State);
    /// A page that is not resident is requested, before a victim is looked for.
    fn miss(&mut self, _page: Page, _state: &State) {}
    /// Which page is evicted next.
    fn victim(&mut self, state: &State) -> Option<Page>;
    /// The page leaves its frame.
    fn evict(&mut self, page: Page, state: &State);
    /// The page that missed has a frame.
    fn load(&mut self, page: Page, write: bool, state: &State);
    /// The dirty page was written and stays.
    fn clean(&mut self, _page: Page, _state: &State) {}
    /// The pages of a batch in their order, where that is not what the copy says.
    fn order(&mut self, _state: &State) -> Option<Vec<Page>> {
        None
    }
    /// What follows the pages that the copy evicts.
    fn rest(&self) -> Vec<Page> {
        Vec::new()
    }
}
