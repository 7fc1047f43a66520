//! What to change of a PostgreSQL server, as a document.

use serde::{Deserialize, Serialize};

use crate::servers::{LeftAlone, MeasuredSettings, SettingProposal};

/// `schema` of the document.
pub const POSTGRES_TUNING_SCHEMA: &str = "flashwise.tuning-postgres";
/// `schema_version` of the document.
pub const POSTGRES_TUNING_SCHEMA_VERSION: u32 = 1;

/// What one `tune postgres` found out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PostgresTuning {
    /// Always [`POSTGRES_TUNING_SCHEMA`].
    pub schema: String,
    /// Always [`POSTGRES_TUNING_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Version of flashwise.
    pub flashwise_version: String,
    /// The server's version, such as `PostgreSQL 15.18`.
    pub program: String,
    /// The server that was asked, without its password; `None` where the old values are the documented defaults.
    pub server: Option<String>,
    /// The drive that the profile is of.
    pub drive: String,
    /// What follows from the drive's figures.
    pub proposals: Vec<SettingProposal>,
    /// What was looked at and is left as it is.
    pub left_alone: Vec<LeftAlone>,
    /// Statements for psql that do all proposals.
    pub sql: Vec<String>,
    /// Statements for psql that take all proposals back.
    pub undo_sql: Vec<String>,
    /// Old and new settings on a private server; `None` where that was not asked for, or nothing is proposed.
    pub measured: Option<MeasuredSettings>,
    /// What was done to the server; `None` where that was not asked for.
    pub applied: Option<AppliedSettings>,
    /// What a reader should know to read the numbers right, a sentence or two each.
    pub notes: Vec<String>,
}

/// What was done to a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedSettings {
    /// The statements, in order.
    pub statements: Vec<String>,
    /// The statements that take them back, in order.
    pub undo: Vec<String>,
    /// Settings that wait for a restart.
    pub needs_restart: Vec<String>,
}
