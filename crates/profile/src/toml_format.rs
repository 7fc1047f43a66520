//! Profiles as TOML files.

use crate::{DeviceProfile, SCHEMA, SCHEMA_VERSION};

/// Why a profile could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The text is no profile.
    #[error("{path}: not a flashwise profile: {reason}")]
    Malformed {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// A profile of another schema or version.
    #[error(
        "{path}: schema {schema} version {version} is not supported: this flashwise reads {SCHEMA} version \
         {SCHEMA_VERSION}"
    )]
    Version {
        /// The file.
        path: String,
        /// Its schema.
        schema: String,
        /// Its version.
        version: u32,
    },
    /// The value cannot be written as TOML.
    #[error("cannot write the profile: {0}")]
    Write(#[from] toml::ser::Error),
}

impl DeviceProfile {
    /// Reads a profile; `path` is for messages only.
    ///
    /// # Errors
    /// When the text is no profile, or one of another version.
    pub fn from_toml(text: &str, path: &str) -> Result<Self, ProfileError> {
        let malformed =
            |e: toml::de::Error| ProfileError::Malformed { path: path.to_owned(), reason: one_line(text, &e) };
        let profile: Self = toml::from_str(text).map_err(malformed)?;
        if profile.schema != SCHEMA || profile.schema_version != SCHEMA_VERSION {
            let (schema, version) = (profile.schema, profile.schema_version);
            return Err(ProfileError::Version { path: path.to_owned(), schema, version });
        }
        Ok(profile)
    }

    /// The profile as TOML.
    ///
    /// # Errors
    /// When a number does not fit TOML's 63 bits.
    pub fn to_toml(&self) -> Result<String, ProfileError> {
        Ok(toml::to_string(self)?)
    }
}

/// The parser's message in one line, with the line number.
fn one_line(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().trim().replace('\n', " ");
    let line = error.span().and_then(|span| text.get(..span.start)).map(|before| 1 + before.matches('\n').count());
    line.map_or_else(|| message.clone(), |line| format!("line {line}: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As one was written before the drive's promise of atomic writes was kept.
    const OLD: &str = "\
        schema = \"flashwise.profile\"\nschema_version = 1\nflashwise_version = \"0.1.0\"\n\
        [device]\ntarget = \"sim:x\"\nname = \"x\"\ncapacity_bytes = 1073741824\nlogical_block_bytes = 512\n\
        clock = \"virtual\"\n\
        [recipe]\nseed = 1\nregion_bytes = 0\nbytes_written = 0\nbytes_read = 0\ndevice_time_ns = 0\n\
        [parameters]\n";

    #[test]
    fn an_old_profile_without_a_promise_of_atomic_writes_is_read_and_written_without_one() {
        let profile = DeviceProfile::from_toml(OLD, "old.toml").unwrap();
        assert_eq!(profile.device.promised_atomic_write_bytes, None);
        assert!(!profile.to_toml().unwrap().contains("atomic"));
    }

    #[test]
    fn a_promise_of_atomic_writes_is_kept_through_a_file() {
        let mut profile = DeviceProfile::from_toml(OLD, "old.toml").unwrap();
        profile.device.promised_atomic_write_bytes = Some(16_384);
        let again = DeviceProfile::from_toml(&profile.to_toml().unwrap(), "new.toml").unwrap();
        assert_eq!(again, profile);
    }
}
