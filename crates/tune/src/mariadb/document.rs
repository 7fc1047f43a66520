//! What to change of a MariaDB server, as a document.

use serde::{Deserialize, Serialize};

use crate::servers::{LeftAlone, MeasuredSettings, SettingProposal};

/// `schema` of the document.
pub const MARIADB_TUNING_SCHEMA: &str = "flashwise.tuning-mariadb";
/// `schema_version` of the document.
pub const MARIADB_TUNING_SCHEMA_VERSION: u32 = 1;

/// What one `tune mariadb` found out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MariadbTuning {
    /// Always [`MARIADB_TUNING_SCHEMA`].
    pub schema: String,
    /// Always [`MARIADB_TUNING_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Version of flashwise.
    pub flashwise_version: String,
    /// The server's version, such as `MariaDB 10.11.19`.
    pub program: String,
    /// The server that was asked, without its password; `None` where the old values are the documented defaults.
    pub server: Option<String>,
    /// The drive that the profile is of.
    pub drive: String,
    /// What follows from the drive's figures.
    pub proposals: Vec<SettingProposal>,
    /// What was looked at and is left as it is.
    pub left_alone: Vec<LeftAlone>,
    /// Statements that act at once and until the server ends, in order.
    pub sql: Vec<String>,
    /// Statements that take them back, in order.
    pub undo_sql: Vec<String>,
    /// Lines of an option file, which act from the next start on.
    pub option_file: Vec<String>,
    /// Old and new settings on a private server; `None` where that was not asked for, or nothing is proposed.
    pub measured: Option<MeasuredSettings>,
    /// What was done to the server; `None` where that was not asked for.
    pub applied: Option<AppliedVariables>,
    /// What a reader should know to read the numbers right, a sentence or two each.
    pub notes: Vec<String>,
}

/// What was done to a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedVariables {
    /// The statements, in order.
    pub statements: Vec<String>,
    /// The statements that take them back, in order.
    pub undo: Vec<String>,
    /// Settings that only an option file can set.
    pub needs_restart: Vec<String>,
    /// Settings that only a new instance can have.
    pub needs_instance: Vec<String>,
}
