//! The bytes of a trace: from a file or standard input, decompressed, never more than a few buffers of them in memory.
//!
//! ```text
//!   file or stdin ──▶ first bytes: gzip, zstd, xz or none ──▶ decoder ──▶ head, 64 KiB, for the detection ──▶ lines, records
//! ```
//!
//! Compression is told by the first bytes, never by the name: gzip `1f 8b` (RFC 1952), zstd `28 b5 2f fd` (RFC 8878),
//! xz `fd 37 7a 58 5a 00` (the .xz file format, 2.1.1). Files of several members, frames or streams are read as one. A
//! decoder holds its window only: at most 128 MiB for zstd and xz, larger ones are refused.

pub(crate) mod lines;
pub(crate) mod records;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use liblzma::stream::Stream;

/// Bytes read at a time.
const BUFFER: usize = 128 << 10;
/// Bytes of the start that the detection sees.
const HEAD: usize = 64 << 10;
/// Largest window of a decoder, as a power of two.
const WINDOW_LOG: u32 = 27;

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
}

impl Compression {
    /// Its usual name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
        }
    }

    /// What the first bytes of a file tell.
    fn of(head: &[u8]) -> Self {
        match head {
            [0x1F, 0x8B, ..] => Self::Gzip,
            [0x28, 0xB5, 0x2F, 0xFD, ..] => Self::Zstd,
            [0xFD, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            _ => Self::None,
        }
    }

    /// What the end of a name asks for, and the name without it.
    pub fn of_name(name: &str) -> (Self, &str) {
        let endings = [(".gz", Self::Gzip), (".zst", Self::Zstd), (".zstd", Self::Zstd), (".xz", Self::Xz)];
        endings
            .iter()
            .find_map(|&(ending, compression)| Some((compression, name.strip_suffix(ending)?)))
            .unwrap_or((Self::None, name))
    }
}

/// Any bytes.
pub(crate) type Bytes = Box<dyn Read + Send>;

/// A trace that was opened.
pub(crate) struct Input {
    /// The first bytes, decompressed.
    pub(crate) head: Vec<u8>,
    /// Whether the head is all.
    pub(crate) is_whole: bool,
    /// What follows the head.
    rest: Bytes,
    /// How the file is packed.
    pub(crate) compression: Compression,
    /// The file itself, where it is one that is not packed.
    pub(crate) file: Option<File>,
}

impl Input {
    /// Opens a regular file.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let kind = file.metadata()?.file_type();
        if !kind.is_file() && !is_pipe(kind) {
            return Err(io::Error::other("it is no regular file and no pipe"));
        }
        let again = if kind.is_file() { file.try_clone().ok() } else { None };
        let mut input = Self::read(file)?;
        input.file = again.filter(|_| input.compression == Compression::None);
        Ok(input)
    }

    /// Takes bytes that can be read once.
    pub(crate) fn read(bytes: impl Read + Send + 'static) -> io::Result<Self> {
        let mut bytes = BufReader::with_capacity(BUFFER, bytes);
        let compression = Compression::of(bytes.fill_buf()?);
        let mut rest = decoder(compression, bytes)?;
        let mut head = Vec::new();
        rest.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
        Ok(Self { is_whole: head.len() < HEAD, head, rest, compression, file: None })
    }

    /// All bytes, the head included.
    pub(crate) fn into_bytes(self) -> Bytes {
        Box::new(io::Cursor::new(self.head).chain(self.rest))
    }
}

fn is_pipe(kind: std::fs::FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind.is_fifo()
}

fn decoder(compression: Compression, bytes: BufReader<impl Read + Send + 'static>) -> io::Result<Bytes> {
    Ok(match compression {
        Compression::None => Box::new(bytes),
        Compression::Gzip => Box::new(MultiGzDecoder::new(bytes)),
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
