//! Write-back of a span of the page cache, started and not awaited.
//!
//! Source: sync_file_range(2).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::ByteSize;

/// Starts write-back of a span of a file. Nothing is durable by that; a later sync has less to do, and the kernel,
/// which joins adjacent dirty pages, makes no request of pages inside and outside of the span, except of those in one
/// folio.
///
/// # Errors
/// When the file is no regular file, or the span is beyond what a file may have.
pub fn start_write_back(file: &File, offset: ByteSize, length: ByteSize) -> io::Result<()> {
    let signed = |bytes: ByteSize| libc::off64_t::try_from(bytes.bytes()).map_err(|_| io::ErrorKind::InvalidInput);
    let (offset, length) = (signed(offset)?, signed(length)?);
    // SAFETY: the descriptor is open for as long as the file is borrowed, and the call takes no pointer.
    match unsafe { libc::sync_file_range(file.as_raw_fd(), offset, length, libc::SYNC_FILE_RANGE_WRITE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_of_a_regular_file_is_accepted_and_anything_else_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        start_write_back(&file, ByteSize(4096), ByteSize(4096)).unwrap();
        start_write_back(&file, ByteSize(1 << 20), ByteSize(4096)).unwrap();
        assert!(start_write_back(&file, ByteSize(u64::MAX), ByteSize(1)).is_err());
        assert!(start_write_back(&File::open("/dev/null").unwrap(), ByteSize(0), ByteSize(1)).is_err());
    }
}
