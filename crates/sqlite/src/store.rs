//! The place of an open file's bytes: a file in a directory, a drive, or memory.

use std::ffi::c_int;

use crate::batch::BatchPlace;
use crate::bytes::Span;
use crate::error::Failure;
use crate::layout::{Chunks, Header};

/// How a write may reach the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// As one request, or one after another where the device takes no request as long.
    Whole,
    /// Cut at chunks, all pieces together; in a file system see [`crate::pieces`].
    Chunks(Chunks),
}

/// The rights and options of the connection that opened a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rights {
    /// Whether SQLite takes locks; with `nolock=1` and `immutable=1` it never does.
    pub locks: bool,
    /// Whether anything may be written: the database, or its companions.
    pub writes: bool,
}

impl Rights {
    pub(crate) const USUAL: Self = Self { locks: true, writes: true };
}

/// Where bytes are kept.
pub(crate) trait Store {
    /// Name for messages.
    fn name(&self) -> &str;
    /// Bytes stored.
    fn size(&mut self) -> Result<u64, Failure>;
    /// Reads; fewer bytes than requested only at the end of the file.
    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, Failure>;
    /// Called with the form of a database, found or created.
    fn decided(&mut self, _mapping: Mapping) {}
    /// A file is about to become a database in a layout. Companions of an empty one under SQLite's own names belong to
    /// no database any more, and are deleted; those of one with blank pages may contain the pages, and are an error.
    fn clear_leftovers(&mut self, _is_empty: bool) -> Result<(), Failure> {
        Ok(())
    }
    /// Makes sure that `end` bytes fit, where that can be known.
    fn reserve(&mut self, end: u64) -> Result<(), Failure>;
    /// Writes; the file grows as needed.
    fn write(&mut self, offset: u64, data: &[u8], how: Cut) -> Result<(), Failure>;
    /// Writes runs that do not touch each other, all together where the place can do that.
    fn write_all(&mut self, runs: &[(u64, Vec<u8>)], how: Cut) -> Result<(), Failure> {
        runs.iter().try_for_each(|(start, bytes)| self.write(*start, bytes, how))
    }
    /// A batch is written and more follow; the drive can start on it.
    fn begin(&mut self, _batch: Span) {}
    /// Prefetch hint: spans likely to be read next, in that order.
    fn ask_ahead(&mut self, _spans: &[Span]) {}
    /// Gives back the space of whole blocks, which read as zeros or as before from then on.
    fn discard(&mut self, _span: Span) -> Result<(), Failure> {
        Ok(())
    }
    /// Sets the size.
    fn truncate(&mut self, size: u64) -> Result<(), Failure>;
    /// Makes all that was written durable.
    fn sync(&mut self, flags: c_int) -> Result<(), Failure>;
    /// The rights of the connection to the file.
    fn rights(&self) -> Rights {
        Rights::USUAL
    }
    /// A place for the database's log of batches, where there can be one.
    fn batch_place(&self) -> Option<Box<dyn BatchPlace>> {
        None
    }
}

/// The places of a database's bytes in its stored file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mapping {
    Plain,
    Shifted(Header),
}
