//! Imports configurations of other simulators as drives and workloads.
//!
//! ```text
//!   MQSim    ssdconfig.xml, workload.xml ── mqsim ───┐
//!                                                    ├─▶ Imported: device.toml, workload.toml, notes
//!   DiskSim  ssd.parv                    ── disksim ─┘
//! ```
//!
//! Every key of the other simulator is read: it is mapped, or a note says why it has no effect, or the import fails. An
//! unknown key, as forks of these simulators add them, gets a note with its line and the most similar known key. The
//! notes are at the top of the written files.
//!
//! A value that is out of range is an error with its key: no arithmetic on a file's values overflows or truncates.
//!
//! **Not here**: traces of these simulators, which `flashwise-trace` reads, and simulations (`flashwise-sim`).
//! **Limits**: one drive; all flows of an MQSim workload.
//!
//! # Example
//! ```
//! let refused = flashwise_import::mqsim::import(("ssdconfig.xml", "<Execution_Parameter_Set/>"), None).unwrap_err();
//! assert!(refused.to_string().starts_with("ssdconfig.xml"));
//! ```

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro))]
// Every figure comes from a file that anybody may have written, so no arithmetic may wrap and no conversion may cut
// off.
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss
    )
)]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own"))]

pub mod disksim;
mod figure;
pub mod mqsim;
mod notes;
mod parv;
mod section;

use std::fmt::Write;

use flashwise_trace::workload::{Workload, WorkloadError};

use flashwise_block::shown;
use flashwise_ssd::SsdError;
use flashwise_ssd::config::DeviceConfig;

use self::notes::Notes;

/// What an import gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The other simulator and the file, for people.
    pub source: String,
    /// The drive.
    pub device: DeviceConfig,
    /// The workloads, one for each scenario of the source; none where it tells none.
    pub workloads: Vec<Workload>,
    /// What has no effect, or another one than in the source.
    pub notes: Vec<String>,
}

/// Why a configuration cannot be imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// The text is not what it should be, lacks a key or has one too many.
    #[error("{file}: line {line}: {reason}")]
    Syntax {
        /// The file.
        file: String,
        /// Its line; the first is 1.
        line: u32,
        /// What is wrong and what would be right.
        reason: String,
    },
    /// The drive that it describes cannot be.
    #[error(transparent)]
    Device(#[from] SsdError),
    /// The workload that it describes cannot be.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// What follows from the figures is a number beyond 63 bits.
    #[error(
        "{file}: {key} would be {value}, but the largest value is {}: check the figures it is computed from",
        i64::MAX
    )]
    OutOfRange {
        /// The file.
        file: String,
        /// The key of the drive.
        key: String,
        /// The number.
        value: u64,
    },
    /// The result has no form in TOML.
    #[error("cannot write the imported configuration: {0}")]
    Unwritable(String),
}

impl Imported {
    /// The drive as a file, with the notes at its head.
    ///
    /// # Errors
    /// When a number does not fit TOML's 63 bits.
    pub fn device_toml(&self) -> Result<String, ImportError> {
        let body = toml::to_string(&self.device).map_err(|e| ImportError::Unwritable(e.to_string()))?;
        Ok(self.head() + &body)
    }

    /// The workloads as files, with the notes at their heads.
    ///
    /// # Errors
    /// When a number does not fit TOML's 63 bits.
    pub fn workload_tomls(&self) -> Result<Vec<String>, ImportError> {
        self.workloads.iter().map(|workload| Ok(self.head() + &workload.to_toml()?)).collect()
    }

    fn head(&self) -> String {
        let mut head = format!("# Imported by flashwise from {}.\n", shown::line(&self.source));
        for note in &self.notes {
            let _ = writeln!(head, "#\n# note: {}", shown::line(note));
        }
        head + "\n"
    }
}

/// Values by key path (`ftl.gc.policy`), turned into a drive by the reader of configurations, which checks them.
#[derive(Debug, Default)]
struct Keys {
    root: toml::Table,
    /// The first key whose number has no form in TOML, and the number.
    out_of_range: Option<(String, u64)>,
}

impl Keys {
    fn set(&mut self, path: &str, value: impl Into<toml::Value>) {
        let (tables, key) = path.rsplit_once('.').unwrap_or(("", path));
        let mut table = &mut self.root;
        for name in tables.split('.').filter(|name| !name.is_empty()) {
            let entry = table.entry(name).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            // Only tables are ever put where a table is looked for.
            let toml::Value::Table(inner) = entry else { return };
            table = inner;
        }
        table.insert(key.to_owned(), value.into());
    }

    /// A whole number. One beyond TOML's 63 bits fails the import, with the name of the first such key.
    fn set_count(&mut self, path: &str, value: u64) {
        match i64::try_from(value) {
            Ok(value) => self.set(path, value),
            Err(_) => drop(self.out_of_range.get_or_insert_with(|| (path.to_owned(), value))),
        }
    }

    fn into_device(self, source: &str) -> Result<DeviceConfig, ImportError> {
        if let Some((key, value)) = self.out_of_range {
            return Err(ImportError::OutOfRange { file: source.to_owned(), key, value });
        }
        let text = toml::to_string(&self.root).map_err(|e| ImportError::Unwritable(e.to_string()))?;
        Ok(DeviceConfig::from_toml(&text, source)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_become_tables() {
        let mut keys = Keys::default();
        keys.set("name", "x");
        keys.set("ftl.gc.policy", "greedy");
        keys.set_count("ftl.gc.choices", 7);
        assert_eq!(keys.root["ftl"]["gc"]["policy"].as_str(), Some("greedy"));
        assert_eq!(keys.root["ftl"]["gc"]["choices"].as_integer(), Some(7));
        keys.set_count("capacity_bytes", u64::MAX);
        let refused = keys.into_device("f").unwrap_err().to_string();
        assert!(
            refused.starts_with("f: capacity_bytes would be 18446744073709551615, but the largest value"),
            "{refused}"
        );
    }
}
