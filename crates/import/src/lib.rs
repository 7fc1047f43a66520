//! Configurations of other simulators, as drives and workloads of flashwise.
//!
//! ```text
//!   MQSim    ssdconfig.xml, workload.xml ── mqsim ───┐
//!                                                    ├─▶ Imported: device.toml, workload.toml, notes
//!   DiskSim  ssd.parv                    ── disksim ─┘
//! ```
//!
//! Every key of the other simulator is looked at: it is mapped, or a note tells why it has no effect, or the import is
//! refused. A key that nobody knows is refused with its line, because a misspelt one would otherwise be a silent
//! default. The notes stand at the head of the written files.
//!
//! **Not here**: traces of these simulators, which `flashwise-trace` reads, and what comes of running them
//! (`flashwise-sim`). **Limits**: one drive; of a workload of MQSim, up to the flows that it has.
//!
//! # Example
//! ```
//! let refused = flashwise_import::mqsim::import(("ssdconfig.xml", "<Execution_Parameter_Set/>"), None).unwrap_err();
//! assert!(refused.to_string().starts_with("ssdconfig.xml"));
//! ```

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro))]

pub mod disksim;
pub mod mqsim;
mod parv;
mod section;

use std::fmt::Write;

use flashwise_trace::workload::{Workload, WorkloadError};

use flashwise_ssd::SsdError;
use flashwise_ssd::config::DeviceConfig;

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
    /// The result has no form in TOML.
    #[error("the imported configuration cannot be written: {0}")]
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
        let mut head = format!("# Imported by flashwise from {}.\n", self.source);
        for note in &self.notes {
            let _ = writeln!(head, "#\n# note: {note}");
        }
        head + "\n"
    }
}

/// Values by key path (`ftl.gc.policy`), turned into a drive by the reader of configurations, which checks them.
#[derive(Debug, Default)]
struct Keys {
    root: toml::Table,
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

    /// A whole number; beyond TOML's 63 bits it is the largest that there is, which the checks then refuse.
    fn set_count(&mut self, path: &str, value: u64) {
        self.set(path, i64::try_from(value).unwrap_or(i64::MAX));
    }

    fn into_device(self, source: &str) -> Result<DeviceConfig, ImportError> {
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
        keys.set_count("ftl.gc.choices", u64::MAX);
        assert_eq!(keys.root["ftl"]["gc"]["policy"].as_str(), Some("greedy"));
        assert_eq!(keys.root["ftl"]["gc"]["choices"].as_integer(), Some(i64::MAX));
    }
}
