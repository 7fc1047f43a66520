//! What a drive is called on the command line.
//!
//! `sim:PRESET`, `sim:FILE.toml`, or a directory of a real file system. A file or a raw device is never opened for
//! writing.

use std::fmt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use flashwise_block::{BlockDevice, ByteSize, FileDevice};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

use crate::TuneError;

/// A drive to work on.
#[derive(Clone, Debug)]
pub enum Target {
    /// A simulated drive, new and empty each time it is opened.
    Simulated {
        /// As the user named it.
        name: String,
        /// What it is built of.
        config: Box<DeviceConfig>,
    },
    /// A directory; new scratch files in it stand for the drive below.
    Directory(PathBuf),
}

/// The default target.
pub const DEFAULT_TARGET: &str = "sim:samsung-960-evo";

impl Target {
    /// Reads a target's name and checks that it can be opened without harm.
    ///
    /// # Errors
    /// When there is no such preset, file or directory, or when it is a file or a raw device.
    pub fn parse(name: &str) -> Result<Self, TuneError> {
        match name.strip_prefix("sim:") {
            Some(drive) => Self::simulated(name, drive),
            None => Self::directory(Path::new(name)),
        }
    }

    fn simulated(name: &str, drive: &str) -> Result<Self, TuneError> {
        let is_file = drive.ends_with(".toml") || drive.contains('/');
        let config = if is_file {
            let text = std::fs::read_to_string(drive).map_err(|e| TuneError::file(drive, &e))?;
            DeviceConfig::from_toml(&text, drive)?
        } else {
            DeviceConfig::preset(drive)?
        };
        Ok(Self::Simulated { name: name.to_owned(), config: Box::new(config) })
    }

    fn directory(path: &Path) -> Result<Self, TuneError> {
        let kind = std::fs::metadata(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => TuneError::Target(no_such_directory(path)),
            _ => TuneError::file(path, &e),
        })?;
        if kind.is_dir() {
            return Ok(Self::Directory(path.to_owned()));
        }
        let what = if kind.file_type().is_block_device() { "a raw device" } else { "an existing file" };
        Err(TuneError::Refused(format!(
            "{}: {what} is never written to; give a directory on the drive, a scratch file in it will do",
            path.display()
        )))
    }

    /// Refuses a database of `needed` bytes that would take more than 10 % of a directory's free space.
    pub(crate) fn check_space(&self, needed: ByteSize) -> Result<(), TuneError> {
        let Self::Directory(path) = self else { return Ok(()) };
        let space = rustix::fs::statvfs(path).map_err(|e| TuneError::file(path, &e.into()))?;
        let free = ByteSize(space.f_bavail.saturating_mul(space.f_frsize));
        if needed.0 <= free.0 / 10 {
            return Ok(());
        }
        Err(TuneError::Refused(format!(
            "{}: this work makes a database of up to {needed}, more than 10 % of the {free} that are free on this file \
             system; give a smaller work or a directory on another disk",
            path.display()
        )))
    }

    /// Opens the drive: a new simulated one, or a new scratch file of at most `wanted` bytes that is gone when the
    /// device is dropped.
    ///
    /// # Errors
    /// When the drive cannot be, or the directory cannot hold a scratch file.
    pub fn open(&self, seed: u64, wanted: ByteSize) -> Result<Box<dyn BlockDevice + Send>, TuneError> {
        Ok(match self {
            Self::Simulated { config, .. } => Box::new(SimulatedSsd::new(*config.clone(), seed)?),
            Self::Directory(path) => Box::new(FileDevice::scratch(path, wanted)?),
        })
    }
}

fn no_such_directory(path: &Path) -> String {
    let name = path.display().to_string();
    if DeviceConfig::preset(&name).is_ok() {
        return format!("{name}: no such directory; the simulated drive of that name is sim:{name}");
    }
    let shown = if name.is_empty() { "''" } else { &name };
    format!("{shown}: no such directory; a target is sim:PRESET, sim:FILE.toml or a directory")
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simulated { name, .. } => f.write_str(name),
            Self::Directory(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_files_and_directories_are_targets() {
        assert_eq!(Target::parse(DEFAULT_TARGET).unwrap().to_string(), DEFAULT_TARGET);
        assert!(matches!(Target::parse("/").unwrap(), Target::Directory(_)));
    }

    #[test]
    fn what_is_no_target_is_told_and_what_could_lose_data_is_refused() {
        let unknown = Target::parse("sim:samsung").unwrap_err().to_string();
        assert!(unknown.contains("samsung-960-evo"), "{unknown}");
        assert!(Target::parse("/no/such/place").unwrap_err().to_string().contains("no such directory"));
        assert!(Target::parse("").unwrap_err().to_string().starts_with("'': no such directory"));
        assert!(Target::parse("toshiba-xg5").unwrap_err().to_string().ends_with("is sim:toshiba-xg5"));
        assert!(Target::parse("/proc/version").unwrap_err().is_refusal());
        assert!(Target::parse("sim:/no/such.toml").unwrap_err().to_string().starts_with("/no/such.toml: "));
    }

    #[test]
    fn a_database_may_take_a_tenth_of_the_free_space_of_a_directory() {
        let directory = Target::Directory(std::env::temp_dir());
        assert!(directory.check_space(ByteSize(1)).is_ok());
        let refused = directory.check_space(ByteSize(u64::MAX)).unwrap_err();
        assert!(refused.is_refusal() && refused.to_string().contains("10 % of the"), "{refused}");
        assert!(Target::parse(DEFAULT_TARGET).unwrap().check_space(ByteSize(u64::MAX)).is_ok());
    }
}
