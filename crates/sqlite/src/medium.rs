//! Where the files of a drive are: on the bare drive, or in a file system under an operating system's page cache.

use flashwise_block::{BlockDevice, DeviceCounters, Nanos};
use flashwise_trace::FileRole;

use crate::bytes::Span;
use crate::error::Failure;
use crate::ledger::Ledger;
use crate::locks::HandleId;
use crate::store::Cut;
use crate::volume::FileId;

/// How a file is to be opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenMode {
    pub role: FileRole,
    pub create: bool,
    pub exclusive: bool,
}

/// An open file: which one, through which handle, as what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileRef<'a> {
    pub id: FileId,
    pub handle: HandleId,
    pub role: FileRole,
    /// For messages.
    pub name: &'a str,
}

impl FileRef<'_> {
    pub(crate) fn is_database(&self) -> bool {
        self.role == FileRole::Database
    }
}

/// How a file is deleted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deletion {
    pub role: FileRole,
    /// A handle has it open: its space goes when that is closed.
    pub is_open: bool,
    /// The name must not come back after a power cut.
    pub is_durable: bool,
}

/// Files on a drive.
pub(crate) trait Medium: Send {
    /// The drive's clock, with the processor's time where that counts.
    fn now(&mut self) -> Nanos;
    fn counters(&self) -> DeviceCounters;
    fn ledger(&mut self) -> &mut Ledger;
    /// Gives the drive back; no call works afterwards.
    fn take_device(&mut self) -> Option<Box<dyn BlockDevice + Send>>;
    fn sector_size(&self) -> u64;
    fn find(&self, name: &str) -> Option<FileId>;
    fn size(&mut self, id: FileId) -> u64;
    /// Opens or creates a file; without a name it goes when it is closed.
    fn open(&mut self, name: Option<&str>, mode: OpenMode, handle: HandleId) -> Result<FileId, Failure>;
    /// Closes a handle; `is_last` if no other one has the file open.
    fn close(&mut self, file: FileRef<'_>, is_last: bool);
    fn delete(&mut self, name: &str, how: Deletion) -> Result<(), Failure>;
    /// Reads bytes that the file has.
    fn read(&mut self, file: FileRef<'_>, offset: u64, into: &mut [u8]) -> Result<(), Failure>;
    /// Reads spans that the file has, all of them together.
    fn read_together(&mut self, file: FileRef<'_>, spans: &[Span]) -> Result<Vec<Vec<u8>>, Failure>;
    /// Starts to read spans in the background. `false` where the medium cannot do that: then they are to be read
    /// together with the next read.
    fn prefetch(&mut self, _file: FileRef<'_>, _spans: &[Span]) -> bool {
        false
    }
    /// Makes sure that `end` bytes fit, where that can be known.
    fn reserve(&mut self, file: FileRef<'_>, end: u64) -> Result<(), Failure>;
    /// Writes bytes whose end a file can have.
    fn write(&mut self, file: FileRef<'_>, offset: u64, data: &[u8], how: Cut) -> Result<(), Failure>;
    /// Writes runs, ascending ones that do not touch each other.
    fn write_all(&mut self, file: FileRef<'_>, runs: &[(u64, Vec<u8>)], how: Cut) -> Result<(), Failure>;
    /// A batch is written and more follow; the drive can start on it.
    fn start_write_back(&mut self, _file: FileRef<'_>, _batch: Span) {}
    fn discard(&mut self, file: FileRef<'_>, span: Span) -> Result<(), Failure>;
    fn truncate(&mut self, file: FileRef<'_>, size: u64) -> Result<(), Failure>;
    fn sync(&mut self, file: FileRef<'_>) -> Result<(), Failure>;
    /// Allocates space for `length` bytes of a new file and two chunks; returns where in the file the drive's chunks
    /// start for most of it, modulo the chunk. `None` where the file is as the drive.
    fn place(&mut self, _file: FileRef<'_>, _length: u64, _chunk: u64) -> Option<u64> {
        None
    }
    /// Bytes that files may still take, where a file that grows costs the file system a commit of its own journal.
    fn free_space(&self) -> Option<u64> {
        None
    }
    /// The index of the database's log has `bytes` of shared memory; 0 when it goes.
    fn share_memory(&mut self, _file: FileRef<'_>, _bytes: u64) {}
    /// Locks took so many calls of the operating system.
    fn spend_calls(&mut self, _calls: u32) {}
    /// The program has computed for so long.
    fn compute(&mut self, _time: Nanos) {}
    /// Nothing is called for so long; the drive and the operating system go on with what they do in the background.
    fn pause(&mut self, time: Nanos) -> Result<(), Failure>;
    /// What the operating system holds in memory and has no need to write is dropped.
    fn drop_caches(&mut self) -> Result<(), Failure> {
        Ok(())
    }
    /// Another file is written, synced and dropped from memory, as on a file system that is in use.
    fn write_earlier_file(&mut self) -> Result<(), Failure> {
        Ok(())
    }
    /// The machine's memory is lost, with unwritten data; the directory is unchanged.
    #[cfg(test)]
    fn power_cut(&mut self) {}
}
