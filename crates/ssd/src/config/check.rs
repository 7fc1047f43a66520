//! How an impossible value is told: the file, the key, the value, and what would be right.

use crate::error::SsdError;

/// Refuses values on behalf of one file.
pub struct Checker<'a> {
    /// The file, for messages.
    pub path: &'a str,
}

impl Checker<'_> {
    /// Refuses a value.
    pub fn fail(&self, key: &'static str, value: impl ToString, reason: impl Into<String>) -> Result<(), SsdError> {
        let (path, value, reason) = (self.path.to_owned(), value.to_string(), reason.into());
        Err(SsdError::Impossible { path, key, value, reason })
    }

    /// Refuses a value unless `holds`.
    pub fn require(
        &self,
        key: &'static str,
        value: impl ToString,
        holds: bool,
        reason: impl Into<String>,
    ) -> Result<(), SsdError> {
        if holds { Ok(()) } else { self.fail(key, value, reason) }
    }

    /// Refuses a count outside 1 to `most`.
    pub fn count(&self, key: &'static str, value: u32, most: u32, reason: &str) -> Result<(), SsdError> {
        self.require(key, value, value >= 1 && value <= most, reason)
    }

    /// Refuses a time of more than a minute.
    pub fn time(&self, key: &'static str, time_ns: u64) -> Result<(), SsdError> {
        self.require(key, time_ns, time_ns <= 60_000_000_000, "must be at most one minute")
    }

    /// Refuses a rate that no bus has.
    pub fn rate(&self, key: &'static str, bytes_per_s: u64) -> Result<(), SsdError> {
        let possible = (1_000_000..=1_000_000_000_000).contains(&bytes_per_s);
        self.require(key, bytes_per_s, possible, "must be between 1 MB/s and 1 TB/s")
    }

    /// Refuses a share outside `least` to `most`.
    pub fn share(&self, key: &'static str, share: f64, least: f64, most: f64) -> Result<(), SsdError> {
        let reason = format!("must be a share between {least} and {most}");
        self.require(key, share, (least..=most).contains(&share), reason)
    }

    /// Refuses what is not a positive multiple of `unit` bytes.
    pub fn multiple(&self, key: &'static str, bytes: u64, unit: u64) -> Result<(), SsdError> {
        let whole = bytes > 0 && bytes.is_multiple_of(unit);
        self.require(key, bytes, whole, format!("must be a positive multiple of {unit}"))
    }
}
