//! A directory for the files of databases, removed with all that is in it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers the directories of this process.
static DIRECTORIES: AtomicU64 = AtomicU64::new(0);

/// A directory of its own.
pub(super) struct Place(PathBuf);

impl Place {
    /// Makes one where temporary files go.
    pub(super) fn new() -> std::io::Result<Self> {
        let n = DIRECTORIES.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("flashwise-study-{}-{n}", std::process::id()));
        std::fs::create_dir(&path)?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
