//! What a file describes that a workload can run on: a drive, an array of drives, or a cloud volume.
//!
//! The file's content decides which of them it is: an array has a level and members, a volume has a medium.

use std::path::Path;

use flashwise_block::{ByteSize, Progress};
use flashwise_trace::workload::Workload;
use serde::{Deserialize, Serialize};

use crate::{Simulation, SimulationError, SimulationOptions, simulate, simulate_array, simulate_volume};
use flashwise_array::{ArrayConfig, SimulatedArray};
use flashwise_ssd::SimulatedSsd;
use flashwise_ssd::SsdError;
use flashwise_ssd::config::{DeviceConfig, is_of_array};
use flashwise_volume::{SimulatedVolume, Volume, is_of_volume};

/// A drive, an array or a volume, as a file describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Machine {
    /// A single drive.
    Drive(Box<DeviceConfig>),
    /// Drives of one kind behind a controller.
    Array(Box<ArrayMachine>),
    /// A cloud volume.
    Volume(Box<Volume>),
}

/// An array and what its members are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArrayMachine {
    /// The array.
    pub config: ArrayConfig,
    /// Each of its members.
    pub member: DeviceConfig,
}

impl Machine {
    /// A single drive.
    pub fn drive(config: DeviceConfig) -> Self {
        Self::Drive(Box::new(config))
    }

    /// An array of such drives.
    pub fn array(config: ArrayConfig, member: DeviceConfig) -> Self {
        Self::Array(Box::new(ArrayMachine { config, member }))
    }

    /// A preset, of a drive or of a volume.
    ///
    /// # Errors
    /// When there is no preset of that name.
    pub fn preset(name: &str) -> Result<Self, SsdError> {
        match flashwise_volume::preset::find(name) {
            Some(_) => Volume::preset(name).map(|volume| Self::Volume(Box::new(volume))),
            None => DeviceConfig::preset(name).map(Self::drive),
        }
    }

    /// Reads and checks a drive, an array or a volume; `path` is for messages, and what the file names is looked for
    /// beside it.
    ///
    /// # Errors
    /// When the text does not parse or describes nothing possible.
    pub fn from_toml(text: &str, path: &str) -> Result<Self, SsdError> {
        if is_of_array(text) {
            return ArrayConfig::from_toml(text, path).map(|(config, member)| Self::array(config, member));
        }
        if is_of_volume(text) {
            return Volume::from_toml(text, path).map(|volume| Self::Volume(Box::new(volume)));
        }
        DeviceConfig::from_toml(text, path).map(Self::drive)
    }

    /// Bytes that a host can address.
    pub fn capacity(&self) -> ByteSize {
        ByteSize(match self {
            Self::Drive(drive) => drive.capacity_bytes,
            Self::Array(array) => array.config.capacity_bytes(&array.member),
            Self::Volume(volume) => volume.capacity().0,
        })
    }

    /// Smallest addressable unit.
    pub fn logical_block(&self) -> ByteSize {
        ByteSize(match self {
            Self::Drive(drive) => drive.host.logical_block_bytes,
            Self::Array(array) => array.member.host.logical_block_bytes,
            Self::Volume(volume) => volume.config.logical_block_bytes,
        })
    }

    /// What the drive is built of, each member of the array, or the volume's drive, if it has one.
    pub fn drive_config(&self) -> Option<&DeviceConfig> {
        match self {
            Self::Drive(drive) => Some(drive),
            Self::Array(array) => Some(&array.member),
            Self::Volume(volume) => volume.drive.as_ref(),
        }
    }

    /// Runs a workload on a new one.
    ///
    /// # Errors
    /// As [`simulate`], [`simulate_array`] and [`simulate_volume`].
    pub fn simulate(
        &self,
        workload: &Workload,
        base: &Path,
        options: &SimulationOptions,
        progress: &mut dyn Progress,
    ) -> Result<Simulation, SimulationError> {
        match self {
            Self::Drive(config) => {
                let mut drive = SimulatedSsd::new((**config).clone(), workload.seed)?;
                simulate(&mut drive, workload, base, options, progress)
            }
            Self::Array(array) => {
                let mut simulated = SimulatedArray::new(array.config.clone(), array.member.clone(), workload.seed)?;
                simulate_array(&mut simulated, workload, base, options, progress)
            }
            Self::Volume(volume) => {
                let mut simulated = SimulatedVolume::new((**volume).clone(), workload.seed)?;
                simulate_volume(&mut simulated, workload, base, options, progress)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwise_ssd::PRESETS;

    #[test]
    fn the_content_of_a_file_tells_an_array_from_a_drive() {
        let array = "name = \"a\"\nlevel = \"raid5\"\nmembers = 4\nmember = \"micron-m500\"\nchunk_bytes = 65536\n";
        let found = Machine::from_toml(array, "any-name.toml").unwrap();
        let drive = Machine::from_toml(PRESETS[0].toml, "raid.toml").unwrap();
        assert!(matches!((&found, &drive), (Machine::Array(_), Machine::Drive(_))));
        let member = DeviceConfig::preset("micron-m500").unwrap();
        assert_eq!(found.capacity(), ByteSize(member.capacity_bytes / 65536 * 65536 * 3));
        assert_eq!(found.logical_block(), ByteSize(member.host.logical_block_bytes));
        // An array that lacks a key is told as an array.
        let lacking = Machine::from_toml(&array.replace("members = 4\n", ""), "a.toml").unwrap_err().to_string();
        assert!(lacking.contains("members"), "{lacking}");
    }

    #[test]
    fn where_a_single_drive_is_needed_an_array_is_refused_by_name() {
        let array = "name = \"a\"\nlevel = \"raid5\"\nmembers = 4\nmember = \"micron-m500\"\nchunk_bytes = 65536\n";
        let error = DeviceConfig::from_toml(array, "a.toml").unwrap_err();
        assert_eq!(error, SsdError::IsArray { path: "a.toml".to_owned() });
        assert!(error.to_string().starts_with("a.toml: is an array of drives"), "{error}");
    }
}
