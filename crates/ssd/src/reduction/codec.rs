//! The codes that a drive compresses logical pages with; each page by itself.
//!
//! Deflate is libdeflate's: zlib's format and levels, made for whole buffers.
//!
//! # Adding a code
//!
//! A name in the list of `Codec` (`config/reduction.rs`) and a variant of [`Compressor`]. The property tests take
//! every code.

use libdeflater::{CompressionLvl, Compressor as Deflate, Decompressor as Inflate};
use zstd::zstd_safe::{CCtx, DCtx, compress_bound};

use crate::config::{Codec, CompressionConfig};

/// Compresses and decompresses pages.
pub(super) enum Compressor {
    /// Deflate without a frame.
    Zlib(Box<Deflate>, Box<Inflate>),
    /// LZ4's blocks.
    Lz4,
    /// Zstandard; the level. Its contexts are kept: making one asks the processor what it can do, which a virtual
    /// machine leaves to its host, and takes longer than a page.
    Zstd(Box<(CCtx<'static>, DCtx<'static>)>, i32),
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
            Codec::Zstd => Self::Zstd(Box::new((CCtx::create(), DCtx::create())), config.level as i32),
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
            Self::Zstd(contexts, level) => {
                into.resize(before + compress_bound(page.len()), 0);
                let written = contexts.0.compress(&mut into[before..], page, *level);
                into.truncate(before + written.unwrap_or(0));
                written.is_ok()
            }
        };
        is_whole && into.len() - before < page.len()
    }

    /// Restores a page; gives whether all of it came back.
    pub(super) fn decompress(&mut self, bytes: &[u8], page: &mut [u8]) -> bool {
        match self {
            Self::Zlib(_, inflate) => inflate.deflate_decompress(bytes, page).is_ok_and(|n| n == page.len()),
            Self::Lz4 => lz4_flex::block::decompress_into(bytes, page).is_ok_and(|n| n == page.len()),
            Self::Zstd(contexts, _) => contexts.1.decompress(page, bytes).is_ok_and(|n| n == page.len()),
        }
    }
}
