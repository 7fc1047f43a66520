//! Values: cheap to clone, read as bytes.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A value that was read. It shares its memory with its clones and, after a scan, with its neighbours.
#[derive(Clone)]
pub struct Value {
    bytes: Arc<[u8]>,
    range: Range<usize>,
}

impl Value {
    /// A copy of bytes.
    pub(crate) fn copy_of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.into(), range: 0..bytes.len() }
    }

    /// A part of shared bytes.
    pub(crate) fn part(bytes: Arc<[u8]>, range: Range<usize>) -> Self {
        debug_assert!(range.end <= bytes.len());
        Self { bytes, range }
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        let range = 0..bytes.len();
        Self { bytes: bytes.into(), range }
    }
}

impl Deref for Value {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.range.clone()]
    }
}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Value {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

impl Eq for Value {}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.escape_ascii())
    }
}
