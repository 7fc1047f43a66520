//! One file a verb: options into a call, its result into the output.

pub mod audit;
pub mod device;
pub mod fit;
pub mod generate;
pub mod learn;
pub mod sqlite;

use std::path::Path;

use flashwise_profile::DeviceProfile;

use crate::failure::Failure;

/// Reads a profile.
fn read_profile(path: &Path) -> Result<DeviceProfile, Failure> {
    let text = std::fs::read_to_string(path).map_err(|e| Failure::file(path, &e))?;
    DeviceProfile::from_toml(&text, &path.display().to_string()).map_err(Failure::error)
}
