//! The codes that a drive compresses logical pages with; each page by itself.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::config::{Codec, CompressionConfig};

/// Compresses and decompresses pages.
pub(super) enum Compressor {
    /// Deflate without a frame.
    Zlib(Box<Compress>, Box<Decompress>),
    /// LZ4's blocks.
    Lz4,
    /// Zstandard; the level.
    Zstd(i32),
}

impl Compressor {
    /// What a configuration names.
    pub(super) fn new(config: &CompressionConfig) -> Self {
        match config.codec {
            Codec::Zlib => {
                let compress = Compress::new(Compression::new(config.level), false);
                Self::Zlib(Box::new(compress), Box::new(Decompress::new(false)))
            }
            Codec::Lz4 => Self::Lz4,
            Codec::Zstd => Self::Zstd(config.level as i32),
        }
    }

    /// Appends a page, compressed, if that is shorter than the page; gives whether it is.
    pub(super) fn compress(&mut self, page: &[u8], into: &mut Vec<u8>) -> bool {
        let before = into.len();
        let is_whole = match self {
            Self::Zlib(compress, _) => {
                compress.reset();
                into.reserve_exact(page.len());
                let status = compress.compress_vec(page, into, FlushCompress::Finish);
                matches!(status, Ok(Status::StreamEnd))
            }
            Self::Lz4 => {
                into.resize(before + lz4_flex::block::get_maximum_output_size(page.len()), 0);
                let written = lz4_flex::block::compress_into(page, &mut into[before..]);
                into.truncate(before + written.as_ref().copied().unwrap_or(0));
                written.is_ok()
            }
            Self::Zstd(level) => match zstd::bulk::compress(page, *level) {
                Ok(bytes) => {
                    into.extend_from_slice(&bytes);
                    true
                }
                Err(_) => false,
            },
        };
        is_whole && into.len() - before < page.len()
    }

    /// Restores a page; gives whether all of it came back.
    pub(super) fn decompress(&mut self, bytes: &[u8], page: &mut [u8]) -> bool {
        match self {
            Self::Zlib(_, decompress) => {
                decompress.reset(false);
                let status = decompress.decompress(bytes, page, FlushDecompress::Finish);
                status.is_ok() && decompress.total_out() == page.len() as u64
            }
            Self::Lz4 => lz4_flex::block::decompress_into(bytes, page).is_ok_and(|n| n == page.len()),
            Self::Zstd(_) => zstd::bulk::decompress_to_buffer(bytes, page).is_ok_and(|n| n == page.len()),
        }
    }
}
