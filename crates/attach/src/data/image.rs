//! The file that holds a drive's bytes: sparse, each byte at its logical address.

use std::fs::Metadata;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use flashwise_block::{ByteSize, LockedFile};
use rustix::fs::{Advice, FallocateFlags, SeekFrom, fadvise, fallocate, seek};
use rustix::io::Errno;

/// Zeros for a file system that cannot make holes.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// A drive's bytes in a file.
#[derive(Debug)]
pub(crate) struct Image {
    file: LockedFile,
    length: u64,
}

impl Image {
    /// A file whose length is the drive's capacity.
    pub(crate) fn new(file: LockedFile, capacity: ByteSize) -> Self {
        Self { file, length: capacity.0 }
    }

    /// Whether a name still means this file.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        let numbers = |metadata: Metadata| (metadata.dev(), metadata.ino());
        let named = std::fs::metadata(path).map(numbers);
        matches!((named, self.file.metadata().map(numbers)), (Ok(named), Ok(own)) if named == own)
    }

    /// Reads at an offset.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, offset)
    }

    /// Puts bytes at an offset.
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    /// Makes zeros of a range, and a hole where the file system can.
    pub(crate) fn clear(&self, offset: u64, length: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(&*self.file, flags, offset, length) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.write_zeros(offset..offset + length),
            done => done.map_err(io::Error::from),
        }
    }

    fn write_zeros(&self, range: Range<u64>) -> io::Result<()> {
        let mut at = range.start;
        while at < range.end {
            let length = (range.end - at).min(ZEROS.len() as u64);
            self.write(at, &ZEROS[..length as usize])?;
            at += length;
        }
        Ok(())
    }

    /// Announces a read of a range. This is advice only: if the system ignores it, the read waits longer.
    pub(crate) fn expect(&self, offset: u64, length: u64) {
        let _ = fadvise(&*self.file, offset, std::num::NonZeroU64::new(length), Advice::WillNeed);
    }

    /// The next range from an offset on that may hold something; the rest is zeros. A file system that knows of no
    /// holes names all that is left.
    pub(crate) fn next_data(&self, from: u64) -> io::Result<Option<Range<u64>>> {
        let start = match seek(&*self.file, SeekFrom::Data(from)) {
            Ok(start) => start,
            Err(Errno::NXIO) => return Ok(None),
            Err(Errno::INVAL) => from,
            Err(error) => return Err(error.into()),
        };
        let end = seek(&*self.file, SeekFrom::Hole(start)).unwrap_or(self.length).min(self.length);
        Ok((start < end).then_some(start..end))
    }

    /// Brings all that was written to the medium.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Brings the bytes that were written to the medium, and where they are.
    pub(crate) fn sync_bytes(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// When it was changed last: s and ns.
    pub(crate) fn changed(&self) -> io::Result<(i64, i64)> {
        self.file.metadata().map(|found| changed(&found))
    }
}

/// When a file was changed last: s and ns.
fn changed(found: &Metadata) -> (i64, i64) {
    (found.mtime(), found.mtime_nsec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(length: u64) -> Image {
        let file = LockedFile::new(tempfile::tempfile().unwrap()).unwrap();
        file.set_len(length).unwrap();
        Image::new(file, ByteSize(length))
    }

    #[test]
    fn what_is_cleared_reads_as_zeros_and_takes_no_room() {
        let image = image(1 << 20);
        image.write(64 << 10, &[7; 128 << 10]).unwrap();
        image.clear((64 << 10) + 100, 200).unwrap();
        let mut bytes = [1; 400];
        image.read(64 << 10, &mut bytes).unwrap();
        assert!(bytes[..100] == [7; 100] && bytes[100..300] == [0; 200] && bytes[300..] == [7; 100]);
        assert_eq!(image.next_data(0).unwrap(), Some(64 << 10..192 << 10));
        image.clear(64 << 10, 128 << 10).unwrap();
        assert_eq!(image.next_data(0).unwrap(), None);
    }

    #[test]
    fn zeros_are_written_where_there_can_be_no_hole() {
        let image = image(1 << 20);
        image.write(0, &vec![7; 1 << 20]).unwrap();
        image.write_zeros(5..(200 << 10)).unwrap();
        let mut bytes = vec![1; 1 << 20];
        image.read(0, &mut bytes).unwrap();
        assert!(bytes[..5] == [7; 5] && bytes[5..200 << 10].iter().all(|&byte| byte == 0) && bytes[200 << 10] == 7);
    }
}
