//! The drives: one that compresses, and others that differ from it in one thing.

use flashwise_block::{BlockDevice, ByteSize, IoBuffer, Request, execute};
use flashwise_ssd::config::{Codec, CompressionConfig, ReductionConfig};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

use crate::StudyError;

/// What the drives compress, bytes.
pub(super) const BLOCK: u64 = 4096;
/// Bytes of a request that writes many blocks.
const REQUEST: usize = 256 << 10;
/// Capacity, bytes: room for the longest run without garbage collection.
const CAPACITY: u64 = 384 << 20;

/// A drive of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drive {
    /// Compresses as the CSD 2000 does, with this granule; what it buffers survives a power cut.
    Compresses { granule_bytes: u64 },
    /// The same without compression.
    Protected,
    /// Without either: a forced write has to be programmed, and pads its superpage.
    Unprotected,
    /// The same, programming single pages: nothing is padded.
    UnprotectedByPage,
}

impl Drive {
    /// Granules of 64 bytes.
    pub(super) const COMPRESSES: Self = Self::Compresses { granule_bytes: 64 };
    /// All of them.
    pub(super) const ALL: [Self; 4] = [Self::COMPRESSES, Self::Protected, Self::Unprotected, Self::UnprotectedByPage];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Compresses { .. } => "compresses",
            Self::Protected => "buffer survives a power cut",
            Self::Unprotected => "neither",
            Self::UnprotectedByPage => "neither, single pages",
        }
    }

    /// Its configuration: flash and link of the preset `toshiba-xg5`, less of it.
    pub(super) fn config(self) -> Result<DeviceConfig, StudyError> {
        let mut config = DeviceConfig::preset("toshiba-xg5")?;
        (config.flash.blocks_per_plane, config.flash.pages_per_block) = (40, 64);
        config.capacity_bytes = CAPACITY;
        config.controller.power_loss_protection = matches!(self, Self::Compresses { .. } | Self::Protected);
        match self {
            Self::Compresses { granule_bytes } => {
                let compression = CompressionConfig { granule_bytes, ..CompressionConfig::default() };
                config.reduction =
                    Some(ReductionConfig { compression: Some(compression), ..ReductionConfig::default() });
            }
            Self::UnprotectedByPage => superpage(&mut config, 1, 1),
            Self::Protected | Self::Unprotected => {}
        }
        config.check("transparent-compression")?;
        Ok(config)
    }
}

/// A superpage of so many flash pages of 4 KiB.
pub(super) fn superpage(config: &mut DeviceConfig, channels: u32, ways: u32) {
    (config.ftl.superpage_channels, config.ftl.superpage_ways) = (channels, ways);
    config.ftl.stripe_bytes = u64::from(channels * ways) * config.flash.page_bytes;
}

/// A code and how hard it tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Coding {
    pub(super) name: &'static str,
    codec: Codec,
    level: u32,
}

/// The codes; the first is what the CSD 2000 is said to use, at zlib's own level.
pub(super) const CODINGS: [Coding; 5] = [
    Coding { name: "zlib 6", codec: Codec::Zlib, level: 6 },
    Coding { name: "zlib 1", codec: Codec::Zlib, level: 1 },
    Coding { name: "zlib 9", codec: Codec::Zlib, level: 9 },
    Coding { name: "lz4", codec: Codec::Lz4, level: 1 },
    Coding { name: "zstd 3", codec: Codec::Zstd, level: 3 },
];

/// Bytes as they are addressed and as they are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Size {
    pub(super) logical: f64,
    pub(super) physical: f64,
}

/// Writes a file's bytes to a new drive that compresses them so; gives what is on the drive then. Blocks of zeros are
/// among the logical bytes: a file has them.
pub(super) fn size_of(image: &[u8], coding: &Coding) -> Result<Size, StudyError> {
    let mut config = Drive::COMPRESSES.config()?;
    if let Some(compression) = config.reduction.as_mut().and_then(|reduction| reduction.compression.as_mut()) {
        (compression.codec, compression.level) = (coding.codec, coding.level);
    }
    let mut ssd = SimulatedSsd::new(config, 1)?;
    let mut offset = 0;
    for part in image.chunks(REQUEST) {
        let mut buffer = IoBuffer::zeroed(part.len().next_multiple_of(BLOCK as usize));
        buffer[..part.len()].copy_from_slice(part);
        let length = buffer.len() as u64;
        let done = execute(&mut ssd, Request::write(ByteSize(offset), ByteSize(length)).with_buffer(buffer))?;
        done.result?;
        offset += length;
    }
    debug_assert!(offset <= ssd.info().capacity.bytes(), "a request beyond the end is refused");
    let space = ssd.space_use().ok_or(StudyError::Lost)?;
    Ok(Size { logical: offset as f64, physical: space.physical_bytes as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_noise_takes_its_own_length_and_zeros_take_nothing() {
        let mut image = vec![0; 3 * BLOCK as usize];
        let mut random = 1_u64;
        for byte in &mut image[..BLOCK as usize] {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = (random >> 56) as u8;
        }
        for coding in &CODINGS {
            let size = size_of(&image, coding).unwrap();
            assert_eq!(size, Size { logical: 3.0 * BLOCK as f64, physical: BLOCK as f64 }, "{}", coding.name);
        }
    }
}
