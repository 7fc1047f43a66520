//! Traces that are used where they lie.

use std::path::{Path, PathBuf};

/// A trace of the shared folder, or `None`, said aloud.
pub fn shared(path: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces").join(path);
    let is_there = path.exists();
    if !is_there {
        eprintln!("SKIPPED: {} is not there", path.display());
    }
    is_there.then_some(path)
}
