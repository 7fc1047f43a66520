//! The one file of a tar archive, as a stream.
//!
//! Folders, links, the headers of pax and GNU, empty files and what macOS puts beside a file (`._name`) are passed
//! over. A second file is an error, and how to take one of them is in its message: whether the files follow each other,
//! run side by side on several drives or are parts of one recording, only the user knows, and each is another trace.

use std::io::{self, BufRead, Read};

use tar::{EntryType, Header};

/// Bytes of a header, and what contents are filled up to.
const BLOCK: usize = 512;
/// Longest header of pax or GNU.
const MOST_HEADER: u64 = 1 << 20;

/// Whether the bytes start with the header of an archive: its sum fits.
pub(super) fn is_archive(start: &[u8]) -> bool {
    start.get(..BLOCK).is_some_and(|block| header(block).is_some())
}

/// A header whose sum fits.
fn header(block: &[u8]) -> Option<&Header> {
    let header = Header::from_byte_slice(block);
    let sum = |bytes: &[u8]| bytes.iter().map(|&byte| u32::from(byte)).sum::<u32>();
    // The field of the sum counts as blanks.
    let computed = sum(&block[..148]) + 8 * u32::from(b' ') + sum(&block[156..]);
    let is_blank = block.iter().all(|&byte| byte == 0);
    header.cksum().ok().filter(|&told| told == computed && !is_blank).map(|_| header)
}

/// The bytes of the file.
pub(super) struct OneFile<R> {
    archive: R,
    name: String,
    left: u64,
    padding: u64,
    is_over: bool,
}

impl<R: BufRead> OneFile<R> {
    /// Goes to the first file.
    pub(super) fn new(mut archive: R) -> io::Result<Self> {
        let Some((name, size)) = next_file(&mut archive)? else {
            return Err(io::Error::other("the tar archive contains no file"));
        };
        Ok(Self { archive, name, left: size, padding: padding(size), is_over: false })
    }

    /// What the file is called.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether nothing follows but the end.
    fn end(&mut self) -> io::Result<()> {
        self.is_over = true;
        skip(&mut self.archive, self.padding)?;
        match next_file(&mut self.archive)? {
            None => Ok(()),
            Some((second, _)) => Err(io::Error::other(format!(
                "the tar archive has several files, such as {first} and {second}, and a trace is one: unpack it, or take \
                 one with tar --extract --to-stdout --file ARCHIVE {first} | flashwise trace info -",
                first = self.name
            ))),
        }
    }
}

impl<R: BufRead> Read for OneFile<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 || buffer.is_empty() {
            if !self.is_over && self.left == 0 {
                self.end()?;
            }
            return Ok(0);
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.archive.read(&mut buffer[..most])?;
        if read == 0 {
            return Err(cut_off());
        }
        self.left -= read as u64;
        Ok(read)
    }
}

fn cut_off() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the tar archive is truncated")
}

fn padding(size: u64) -> u64 {
    size.wrapping_neg() % BLOCK as u64
}

fn skip(archive: &mut impl Read, bytes: u64) -> io::Result<()> {
    let skipped = io::copy(&mut archive.take(bytes), &mut io::sink())?;
    if skipped == bytes { Ok(()) } else { Err(cut_off()) }
}

/// Name and size of the next file that has bytes.
fn next_file(archive: &mut impl Read) -> io::Result<Option<(String, u64)>> {
    let mut told_size = None;
    loop {
        let mut block = Vec::new();
        archive.take(BLOCK as u64).read_to_end(&mut block)?;
        if block.len() < BLOCK || block.iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        let damaged = || io::Error::other("the tar archive is damaged: wrong checksum in a header");
        let header = header(&block).ok_or_else(damaged)?;
        let size = header.entry_size()?;
        match header.entry_type() {
            EntryType::Regular | EntryType::Continuous => {
                let size = told_size.take().unwrap_or(size);
                let name = crate::error::shown(&header.path_bytes(), 256);
                let is_beside = name.rsplit('/').next().is_some_and(|file| file.starts_with("._"));
                if size > 0 && !is_beside {
                    return Ok(Some((name, size)));
                }
                skip(archive, size.checked_add(padding(size)).ok_or_else(damaged)?)?;
            }
            EntryType::GNUSparse => {
                return Err(io::Error::other("the tar archive contains a sparse file: unpack it first"));
            }
            EntryType::XHeader if size <= MOST_HEADER => {
                let mut text = Vec::new();
                archive.take(size).read_to_end(&mut text)?;
                told_size = pax_size(&text);
                skip(archive, padding(size))?;
            }
            other => {
                // A header of pax is of the entry that follows it, with a long name of GNU between them.
                if !matches!(other, EntryType::GNULongName | EntryType::GNULongLink) {
                    told_size = None;
                }
                skip(archive, size.checked_add(padding(size)).ok_or_else(damaged)?)?;
            }
        }
    }
}

/// The size in a header of pax.
fn pax_size(text: &[u8]) -> Option<u64> {
    let sizes = tar::PaxExtensions::new(text).flatten().filter(|extension| extension.key_bytes() == b"size");
    sizes.last()?.value().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, bytes) in files {
            let mut header = Header::new_ustar();
            header.set_size(bytes.len() as u64);
            header.set_cksum();
            builder.append_data(&mut header, name, *bytes).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn read(bytes: &[u8]) -> Result<(String, Vec<u8>), String> {
        assert!(is_archive(bytes));
        let mut file = OneFile::new(bytes).map_err(|e| e.to_string())?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(|e| e.to_string())?;
        Ok((file.name().to_owned(), text))
    }

    #[test]
    fn the_one_file_is_read_whatever_lies_beside_it() {
        let long = vec![b'x'; 1000];
        let beside = archive(&[("d/._t.csv", b"of macOS"), ("empty", b""), ("d/t.csv", &long)]);
        assert_eq!(read(&beside), Ok(("d/t.csv".to_owned(), long)));
        assert!(!is_archive(&[0; BLOCK]) && !is_archive(b"1,R,0,4096,5\n"));
    }

    #[test]
    fn a_size_is_read_from_a_header_of_pax_and_from_no_path_in_it() {
        let with = |path: &str, size: &str| {
            let mut builder = tar::Builder::new(Vec::new());
            builder.append_pax_extensions([("path", path.as_bytes()), ("size", size.as_bytes())]).unwrap();
            let mut header = Header::new_ustar();
            header.set_size(0);
            header.set_cksum();
            builder.append_data(&mut header, "t.csv", &b""[..]).unwrap();
            let mut bytes = builder.into_inner().unwrap();
            bytes.truncate(bytes.len() - 1024);
            bytes.extend_from_slice(&[b'1'; BLOCK]);
            bytes.extend_from_slice(&[0; 1024]);
            read(&bytes).unwrap().1.len()
        };
        assert_eq!(with("a size=3\n.csv", "500"), 500);
        assert_eq!(pax_size(b"22 path=a size=3\n.csv\n"), None);
    }

    /// The headers of some entries, each with its contents.
    fn entries(list: &[(EntryType, &str, u64, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (kind, name, size, contents) in list {
            let mut header = Header::new_ustar();
            header.set_path(name).unwrap();
            header.set_entry_type(*kind);
            header.set_size(*size);
            header.set_cksum();
            bytes.extend_from_slice(header.as_bytes());
            bytes.extend_from_slice(contents);
            bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        }
        bytes.resize(bytes.len() + 2 * BLOCK, 0);
        bytes
    }

    #[test]
    fn a_size_in_a_header_of_pax_is_of_the_entry_behind_it_and_of_no_other() {
        let size: (EntryType, &str, u64, &[u8]) = (EntryType::XHeader, "x", 12, b"12 size=500\n");
        let other: (EntryType, &str, u64, &[u8]) = (EntryType::XHeader, "x", 11, b"11 mtime=5\n");
        let file: (EntryType, &str, u64, &[u8]) = (EntryType::Regular, "t.csv", 3, b"abc");
        let long_name: (EntryType, &str, u64, &[u8]) = (EntryType::GNULongName, "l", 6, b"t.csv\0");
        let folder: (EntryType, &str, u64, &[u8]) = (EntryType::Directory, "d", 0, b"");
        let large: (EntryType, &str, u64, &[u8]) = (EntryType::Regular, "t.csv", 0, &[b'1'; 500]);
        let length = |list: &[_]| read(&entries(list)).unwrap().1.len();
        assert_eq!(length(&[size, large]), 500);
        assert_eq!(length(&[size, long_name, large]), 500);
        assert_eq!(length(&[size, folder, file]), 3);
        assert_eq!(length(&[size, other, file]), 3);
    }

    #[test]
    fn a_second_file_and_a_cut_are_told() {
        let two = read(&archive(&[("a.csv", b"1"), ("b.csv", b"2")])).unwrap_err();
        assert_eq!(
            two,
            "the tar archive has several files, such as a.csv and b.csv, and a trace is one: unpack it, or take one with \
             tar --extract --to-stdout --file ARCHIVE a.csv | flashwise trace info -"
        );
        let cut = &archive(&[("a.csv", &[b'1'; 700])])[..900];
        assert_eq!(read(cut).unwrap_err(), "the tar archive is truncated");
    }
}
