//! The bytes of a trace: from a file or standard input, unpacked, never more than a few buffers of them in memory.
//!
//! ```text
//!   file or stdin ─▶ first bytes: gzip, bzip2, zstd, xz, tar ─▶ decoder ─┐   (up to four times)
//!                        ▲                                              │
//!                        └──────────────────────────────────────────────┘
//!                                 └─▶ UTF-16 ─▶ UTF-8 ─▶ head, 64 KiB, for the detection ─▶ lines, records
//! ```
//!
//! Compression is detected from the first bytes, never from the name: gzip `1f 8b` (RFC 1952), bzip2 `BZh` and the
//! digits of π, zstd `28 b5 2f fd` (RFC 8878), xz `fd 37 7a 58 5a 00` (the .xz file format, 2.1.1), tar by the sum of
//! its first header. Files of several members, frames or streams are read as one; of an archive its one file is read
//! ([`tar`]). A decoder holds its window only: at most 128 MiB for zstd and xz, larger ones are refused. What is packed
//! in another known way is refused by its name. A byte order mark is taken off a text, and one of UTF-16, as PowerShell
//! writes it, becomes UTF-8.

pub(crate) mod lines;
pub(crate) mod records;
mod tar;
mod utf16;

use std::fs::{File, FileType};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use liblzma::stream::Stream;

/// Bytes read at a time.
const BUFFER: usize = 128 << 10;
/// Bytes of the start that the detection sees.
const HEAD: usize = 64 << 10;
/// Bytes that tell how a file is packed: the header of an archive.
const START: u64 = 512;
/// Largest window of a decoder, as a power of two.
const WINDOW_LOG: u32 = 27;
/// How often a trace may be packed: an archive of a packed file, packed again.
const MOST_LAYERS: usize = 4;

/// How a trace is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
    /// xz.
    Xz,
    /// bzip2.
    Bzip2,
    /// As the one file of a tar archive.
    Tar,
}

impl Compression {
    /// Its usual name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
            Self::Bzip2 => "bzip2",
            Self::Tar => "tar",
        }
    }

    /// What the first bytes of a file tell.
    fn of(head: &[u8]) -> Self {
        match head {
            [0x1F, 0x8B, ..] => Self::Gzip,
            [0x28, 0xB5, 0x2F, 0xFD, ..] => Self::Zstd,
            [0xFD, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..] => Self::Bzip2,
            // Of nothing at all.
            [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, 0x45, 0x38, 0x50, 0x90, ..] => Self::Bzip2,
            _ if tar::is_archive(head) => Self::Tar,
            _ => Self::None,
        }
    }

    /// What the end of a name asks for, and the name without it.
    pub fn of_name(name: &str) -> (Self, &str) {
        let endings = [
            (".gz", Self::Gzip),
            (".zst", Self::Zstd),
            (".zstd", Self::Zstd),
            (".xz", Self::Xz),
            (".bz2", Self::Bzip2),
        ];
        endings
            .iter()
            .find_map(|&(ending, compression)| Some((compression, name.strip_suffix(ending)?)))
            .unwrap_or((Self::None, name))
    }
}

/// Packings that are known and not read.
const OTHERS: [(&[u8], &str); 7] = [
    (b"PK\x03\x04", "a zip archive"),
    (b"7z\xBC\xAF\x27\x1C", "a 7z archive"),
    (b"Rar!\x1A\x07", "a rar archive"),
    (b"\x04\x22\x4D\x18", "compressed with lz4"),
    (b"LZIP\x01", "compressed with lzip"),
    (b"\x89LZO\0", "compressed with lzop"),
    (b"\x1F\x9D", "compressed with compress (.Z)"),
];

/// Any bytes.
pub(crate) type Bytes = Box<dyn BufRead + Send>;

/// A trace that was opened.
pub(crate) struct Input {
    /// The first bytes, unpacked.
    pub(crate) head: Vec<u8>,
    /// Whether the head is all.
    pub(crate) is_whole: bool,
    /// What follows the head.
    rest: Bytes,
    /// How the file is packed, the outermost first.
    pub(crate) layers: Vec<Compression>,
    /// What the file is called in its archive.
    pub(crate) name: Option<String>,
    /// The file itself, where it is one that is not packed.
    pub(crate) file: Option<File>,
}

impl Input {
    /// Opens a regular file.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let check = |kind: FileType| match kind.is_file() || is_pipe(kind) {
            true => Ok(kind),
            false => Err(io::Error::other("neither a regular file nor a pipe")),
        };
        // Opening some devices has side effects: the name is checked first, then the opened file.
        check(std::fs::metadata(path)?.file_type())?;
        let file = File::open(path)?;
        let kind = check(file.metadata()?.file_type())?;
        let again = if kind.is_file() { file.try_clone().ok() } else { None };
        let mut input = Self::read(file)?;
        input.file = again.filter(|_| input.layers.is_empty());
        Ok(input)
    }

    /// Takes bytes that can be read once.
    pub(crate) fn read(bytes: impl Read + Send + 'static) -> io::Result<Self> {
        let mut bytes: Bytes = Box::new(BufReader::with_capacity(BUFFER, bytes));
        let (mut layers, mut name) = (Vec::new(), None);
        loop {
            let (start, whole) = started(bytes)?;
            if let Some((_, what)) = OTHERS.iter().find(|(magic, _)| start.starts_with(magic)) {
                return Err(io::Error::other(format!("it is {what}: unpack it first")));
            }
            let layer = Compression::of(&start);
            bytes = match layer {
                Compression::None if utf16::is_text(&start) => Box::new(BufReader::new(utf16::Utf8::new(whole))),
                Compression::None => whole,
                _ if layers.len() == MOST_LAYERS => {
                    return Err(io::Error::other(format!(
                        "it is compressed more than {MOST_LAYERS} times: unpack it first"
                    )));
                }
                Compression::Tar => {
                    let file = tar::OneFile::new(whole)?;
                    name = Some(file.name().to_owned());
                    Box::new(BufReader::with_capacity(BUFFER, file))
                }
                packed => Box::new(BufReader::with_capacity(BUFFER, decoder(packed, whole)?)),
            };
            if layer == Compression::None {
                break;
            }
            layers.push(layer);
        }
        let mut head = Vec::new();
        bytes.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
        let is_whole = head.len() < HEAD;
        // The byte order mark of UTF-8; a binary trace may start with its bytes.
        if head.starts_with(b"\xEF\xBB\xBF") && !head.contains(&0) {
            head.drain(..3);
        }
        Ok(Self { is_whole, head, rest: bytes, layers, name, file: None })
    }

    /// All bytes, the head included.
    pub(crate) fn into_bytes(self) -> Bytes {
        Box::new(io::Cursor::new(self.head).chain(self.rest))
    }
}

/// The first bytes, and all of them.
fn started(mut bytes: Bytes) -> io::Result<(Vec<u8>, Bytes)> {
    let mut start = Vec::new();
    bytes.by_ref().take(START).read_to_end(&mut start)?;
    Ok((start.clone(), Box::new(io::Cursor::new(start).chain(bytes))))
}

fn is_pipe(kind: FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind.is_fifo()
}

fn decoder(compression: Compression, bytes: Bytes) -> io::Result<Box<dyn Read + Send>> {
    Ok(match compression {
        Compression::None | Compression::Tar => Box::new(bytes),
        Compression::Gzip => Box::new(MultiGzDecoder::new(bytes)),
        Compression::Bzip2 => Box::new(MultiBzDecoder::new(bytes)),
        Compression::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes)?;
            decoder.window_log_max(WINDOW_LOG)?;
            Box::new(decoder)
        }
        Compression::Xz => {
            let several = liblzma::stream::CONCATENATED;
            let stream = Stream::new_stream_decoder(1 << WINDOW_LOG, several).map_err(io::Error::other)?;
            Box::new(liblzma::bufread::XzDecoder::new_stream(bytes, stream))
        }
    })
}

#[cfg(test)]
mod tests {
    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
    use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

    use super::*;

    /// A tape rewinds, a watchdog starts.
    #[test]
    fn a_device_is_not_even_opened() {
        let dir = tempfile::tempdir().unwrap();
        let device = dir.path().join("device");
        if mknodat(CWD, &device, FileType::CharacterDevice, Mode::RUSR, makedev(1, 3)).is_err() {
            return println!("skipped: only root makes devices");
        }
        let watched = inotify::init(CreateFlags::NONBLOCK).unwrap();
        inotify::add_watch(&watched, &device, WatchFlags::OPEN).unwrap();
        let refused = Input::open(&device).err().unwrap();
        assert!(refused.to_string().contains("neither a regular file"), "{refused}");
        let mut space = [std::mem::MaybeUninit::uninit(); 256];
        assert!(inotify::Reader::new(&watched, &mut space).next().is_err(), "it was opened");
    }
}
