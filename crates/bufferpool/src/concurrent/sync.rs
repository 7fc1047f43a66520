//! What threads meet at. A test puts a model checker's in place of these.

pub use std::sync::atomic::{AtomicU64, Ordering};
pub use std::sync::{Condvar, Mutex};

/// Attempts before a thread sleeps.
pub const SPINS: usize = 64;

/// Places to wait at.
pub const SHARDS: usize = 64;
