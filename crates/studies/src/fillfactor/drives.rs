//! The two drives: `examples/compressing.toml` without deduplication, and the same without compression. They have the
//! same flash, all of which a drive that does not compress needs.

use flashwise_ssd::DeviceConfig;

use crate::StudyError;

/// A drive of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drive {
    /// Stores what it is given.
    Plain,
    /// Compresses each 4 KiB by zlib.
    Compressing,
}

impl Drive {
    pub(super) const BOTH: [Self; 2] = [Self::Plain, Self::Compressing];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Compressing => "compressing",
        }
    }

    pub(super) fn config(self) -> Result<DeviceConfig, StudyError> {
        let example = include_str!("../compressing.toml");
        let mut config = DeviceConfig::from_toml(example, "examples/compressing.toml")?;
        // What is offered and 28 % beside it, where the example has space for half of it.
        config.flash.blocks_per_plane *= 2;
        config.name = format!("the {} drive", self.name());
        match (self, &mut config.reduction) {
            (Self::Plain, reduction) => *reduction = None,
            (Self::Compressing, Some(reduction)) => {
                (reduction.deduplication, reduction.physical_bytes) = (None, None);
            }
            (Self::Compressing, None) => return Err(StudyError::Lost),
        }
        config.check("fillfactor")?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drives_differ_in_compression_alone() {
        let [mut plain, mut compressing] = Drive::BOTH.map(|drive| drive.config().unwrap());
        assert!(compressing.compression().is_some() && compressing.deduplication().is_none());
        assert!(plain.compression().is_none());
        (compressing.reduction, compressing.name) = (None, String::new());
        (plain.reduction, plain.name) = (None, String::new());
        assert_eq!(plain, compressing);
    }
}
