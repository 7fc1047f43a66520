//! The variables of a MariaDB server that are read, each with its origin and with the time when a change takes effect.

use std::collections::BTreeMap;

use crate::TuneError;

/// A variable as a server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Variable {
    pub(super) value: String,
    /// When a change acts.
    pub(super) effect: Effect,
    /// Whether it was given on the server's command line, which goes before option files.
    pub(super) is_of_command_line: bool,
}

/// When a change of a variable acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// At once, by `SET GLOBAL`.
    AtOnce,
    /// Once the server was started again.
    Restart,
    /// In a newly initialised instance.
    NewInstance,
}

impl Effect {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::AtOnce => "at-once",
            Self::Restart => "restart",
            Self::NewInstance => "new-instance",
        }
    }
}

/// The variables of a server by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Variables(pub(super) BTreeMap<String, Variable>);

/// Every variable that a rule reads or proposes, with the default of 10.11 and the effect of a change there. MariaDB
/// knows no way to change the page size of an instance.
///
/// Source: MariaDB documentation, "InnoDB System Variables" and "Replication and Binary Log System Variables"; a test
/// compares the table with a server, where there is one.
pub(super) const KNOWN: [(&str, &str, Effect); 14] = [
    ("innodb_doublewrite", "ON", Effect::Restart),
    ("innodb_flush_log_at_trx_commit", "1", Effect::AtOnce),
    // From 11.0 on a server goes by `innodb_data_file_buffering`.
    ("innodb_flush_method", "O_DIRECT", Effect::Restart),
    ("innodb_flush_neighbors", "1", Effect::AtOnce),
    ("innodb_io_capacity", "200", Effect::AtOnce),
    ("innodb_io_capacity_max", "2000", Effect::AtOnce),
    // The server's own choice for its drive may differ.
    ("innodb_log_write_ahead_size", "512", Effect::Restart),
    ("innodb_page_size", "16384", Effect::NewInstance),
    ("innodb_read_io_threads", "4", Effect::AtOnce),
    ("innodb_use_atomic_writes", "ON", Effect::Restart),
    ("innodb_use_native_aio", "ON", Effect::Restart),
    ("innodb_write_io_threads", "4", Effect::AtOnce),
    ("log_bin", "OFF", Effect::Restart),
    ("sync_binlog", "0", Effect::AtOnce),
];

/// What holds the binary log, from 12.3 on; empty for files of their own.
pub(super) const BINLOG_ENGINE: &str = "binlog_storage_engine";
/// Whether data files go through the page cache, from 11.0 on.
pub(super) const DATA_BUFFERING: &str = "innodb_data_file_buffering";

impl Variables {
    /// The defaults of 10.11.
    pub(super) fn documented() -> Self {
        let variable = |&(name, value, effect): &(&str, &str, Effect)| {
            (name.to_owned(), Variable { value: value.to_owned(), effect, is_of_command_line: false })
        };
        Self(KNOWN.iter().map(variable).collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&Variable> {
        self.0.get(name)
    }

    /// The value as a number, or why it is none.
    pub(super) fn number(&self, name: &str) -> Result<f64, String> {
        let variable = self.get(name).ok_or_else(|| format!("this server has no {name}"))?;
        variable.value.parse().map_err(|_| format!("{name} is {}, which is not a number", variable.value))
    }
}

/// Refuses a server whose version is not supported: MariaDB 10.6 to 12.3.
///
/// # Errors
/// With the supported versions.
pub(super) fn check_version(told: &str) -> Result<String, TuneError> {
    let fail = || TuneError::Options(format!("{told}: only MariaDB 10.6 to 12.3 are supported"));
    let number = told.split('-').next().unwrap_or_default();
    let mut parts = number.split('.').map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (parts.next(), parts.next()) else { return Err(fail()) };
    match told.contains("MariaDB") && ((10, 6)..=(12, 3)).contains(&(major, minor)) {
        true => Ok(format!("MariaDB {number}")),
        false => Err(fail()),
    }
}

/// The statement that gives a variable a value.
pub(super) fn set_statement(name: &str, value: &str) -> String {
    format!("SET GLOBAL {name} = {value};")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_servers_of_mariadb_that_are_known_are_taken() {
        assert_eq!(check_version("10.11.19-MariaDB-0+deb12u1").unwrap(), "MariaDB 10.11.19");
        assert_eq!(check_version("11.8.2-MariaDB").unwrap(), "MariaDB 11.8.2");
        assert_eq!(check_version("12.3.2-MariaDB-log").unwrap(), "MariaDB 12.3.2");
        for unknown in ["8.0.36", "10.5.9-MariaDB", "12.4.1-MariaDB", "MariaDB", ""] {
            assert!(check_version(unknown).unwrap_err().to_string().contains("10.6 to 12.3"), "{unknown}");
        }
    }
}
