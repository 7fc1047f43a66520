//! Compressed output: gzip, zstd, xz or bzip2.

use std::io::{self, Write};

use crate::input::Compression;

/// Packs what is written. [`finish`](Self::finish) completes the file; without it the file is cut off.
pub struct CompressedWriter<W: Write> {
    inner: Inner<W>,
}

enum Inner<W: Write> {
    Plain(W),
    Gzip(flate2::write::GzEncoder<W>),
    Zstd(zstd::stream::write::Encoder<'static, W>),
    Xz(liblzma::write::XzEncoder<W>),
    Bzip2(bzip2::write::BzEncoder<W>),
}

impl<W: Write> std::fmt::Debug for CompressedWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompressedWriter").finish_non_exhaustive()
    }
}

impl<W: Write> CompressedWriter<W> {
    /// Packs into `out`, at each library's usual level.
    ///
    /// # Errors
    /// When the encoder cannot be made.
    pub fn new(compression: Compression, out: W) -> io::Result<Self> {
        let inner = match compression {
            Compression::None => Inner::Plain(out),
            Compression::Gzip => Inner::Gzip(flate2::write::GzEncoder::new(out, flate2::Compression::default())),
            Compression::Zstd => Inner::Zstd(zstd::stream::write::Encoder::new(out, zstd::DEFAULT_COMPRESSION_LEVEL)?),
            Compression::Xz => Inner::Xz(liblzma::write::XzEncoder::new(out, 6)),
            Compression::Bzip2 => Inner::Bzip2(bzip2::write::BzEncoder::new(out, bzip2::Compression::default())),
            Compression::Tar => return Err(io::Error::other("tar archives cannot be written")),
        };
        Ok(Self { inner })
    }

    /// Writes the end, and gives the output back.
    ///
    /// # Errors
    /// When the output fails.
    pub fn finish(self) -> io::Result<W> {
        match self.inner {
            Inner::Plain(out) => Ok(out),
            Inner::Gzip(encoder) => encoder.finish(),
            Inner::Zstd(encoder) => encoder.finish(),
            Inner::Xz(encoder) => encoder.finish(),
            Inner::Bzip2(encoder) => encoder.finish(),
        }
    }
}

impl<W: Write> Write for CompressedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.inner {
            Inner::Plain(out) => out.write(bytes),
            Inner::Gzip(encoder) => encoder.write(bytes),
            Inner::Zstd(encoder) => encoder.write(bytes),
            Inner::Xz(encoder) => encoder.write(bytes),
            Inner::Bzip2(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.inner {
            Inner::Plain(out) => out.flush(),
            Inner::Gzip(encoder) => encoder.flush(),
            Inner::Zstd(encoder) => encoder.flush(),
            Inner::Xz(encoder) => encoder.flush(),
            Inner::Bzip2(encoder) => encoder.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::input::Input;

    #[test]
    fn what_is_packed_is_read_as_it_was() {
        let text = "4711 0 8 8 1\n".repeat(20_000);
        let packed = [Compression::Gzip, Compression::Zstd, Compression::Xz, Compression::Bzip2];
        for compression in std::iter::once(Compression::None).chain(packed) {
            let mut writer = CompressedWriter::new(compression, Vec::new()).unwrap();
            writer.write_all(text.as_bytes()).unwrap();
            let input = Input::read(io::Cursor::new(writer.finish().unwrap())).unwrap();
            assert_eq!(input.layers, packed.into_iter().filter(|&known| known == compression).collect::<Vec<_>>());
            let mut read = String::new();
            input.into_bytes().read_to_string(&mut read).unwrap();
            assert_eq!(read, text);
        }
    }
}
