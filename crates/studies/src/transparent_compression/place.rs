//! A directory for the files of databases, removed with all that is in it.

use std::path::Path;

use flashwise_block::temporary::TemporaryFolder;

/// A directory of its own.
pub(super) struct Place(TemporaryFolder);

impl Place {
    /// Makes one where temporary files go.
    pub(super) fn new() -> std::io::Result<Self> {
        TemporaryFolder::create("flashwise-study-").map(Self)
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}
