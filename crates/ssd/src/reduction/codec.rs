//! The codes that a drive compresses logical pages with; each page by itself.
//!
//! Deflate is libdeflate's: zlib's format and levels, made for whole buffers.

use libdeflater::{CompressionLvl, Compressor as Deflate, Decompressor as Inflate};

use crate::config::{Codec, CompressionConfig};

/// Compresses and decompresses pages.
pub(super) enum Compressor {
    /// Deflate without a frame.
    Zlib(Box<Deflate>, Box<Inflate>),
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
                let level = CompressionLvl::new(config.level as i32).unwrap_or_default();
                Self::Zlib(Box::new(Deflate::new(level)), Box::new(Inflate::new()))
            }
            Codec::Lz4 => Self::Lz4,
            Codec::Zstd => Self::Zstd(config.level as i32),
        }
    }

    /// Appends a page, compressed, if that is shorter than the page; gives whether it is.
    pub(super) fn compress(&mut self, page: &[u8], into: &mut Vec<u8>) -> bool {
        let before = into.len();
        let is_whole = match self {
            Self::Zlib(deflate, _) => {
                // What would not be shorter does not fit.
                into.resize(before + page.len() - 1, 0);
                let written = deflate.deflate_compress(page, &mut into[before..]);
                into.truncate(before + written.as_ref().copied().unwrap_or(0));
                written.is_ok()
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
            Self::Zlib(_, inflate) => inflate.deflate_decompress(bytes, page).is_ok_and(|n| n == page.len()),
            Self::Lz4 => lz4_flex::block::decompress_into(bytes, page).is_ok_and(|n| n == page.len()),
            Self::Zstd(_) => zstd::bulk::decompress_to_buffer(bytes, page).is_ok_and(|n| n == page.len()),
        }
    }
}
