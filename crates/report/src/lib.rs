//! Reports: text for a terminal, JSON documents, CSV and Parquet tables, and HTML pages with plots.
//!
//! ```text
//!                        ┌─▶ terminal   text of a given width, with or without colours
//!   DeviceProfile ──┐    │
//!   Findings ───────┼─▶ text (words and numbers, once) ──────┼─▶ html   one self-contained file, plots by svg
//!   Comparison ─────┤    │
//!   Simulation ─────┤    │
//!   Trace ──────────┘    │
//!                        └─▶ json       the values as they are
//!                            files      report.html and report.json, both or neither
//!   Simulation, SweepTable ─▶ table ─▶ csv, parquet
//! ```
//!
//! A page loads no script, font or picture from elsewhere: it can be mailed and printed. A figure is always shown with
//! its interval and its verdict if it has them, and an absent feature is reported as absent.
//!
//! This crate computes no results. Ratios and intervals come from the comparison; the one exception is a table row
//! without an interval of its own, which shows the plain quotient of two runs.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro))]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own"))]

pub mod audit;
pub mod counters;
mod error;
mod files;
mod html;
mod json;
mod own;
mod printed;
pub mod study;
mod svg;
mod table;
mod terminal;
mod text;
pub mod trace;

#[cfg(test)]
mod sample;
#[cfg(test)]
mod sample_audit;
#[cfg(test)]
mod sample_simulation;

pub use error::ReportError;
pub use files::{HTML_FILE, JSON_FILE, ReportFiles, check_writable, write_report, write_simulation_report};
pub use html::{audit_page, comparison_page, pool_page, profile_page, simulation_page, study_page};
pub use json::{ERROR_SCHEMA, ERROR_SCHEMA_VERSION, error_document, to_json, to_json_line};
pub use own::OwnFile;
pub use printed::Printed;
pub use table::{Column, Table, Values, sweep_table, time_series_table};
pub use terminal::{
    Detail, Style, cloud_sql_flags, mariadb_option_file, parameter_group, postgres_conf, postgres_tuning_sql,
    render_attach, render_audit, render_comparison, render_counters, render_device_stat, render_drift, render_faults,
    render_file_run, render_mariadb_tuning, render_pool, render_pool_traces, render_postgres_tuning, render_power_cut,
    render_profile, render_provision, render_score, render_simulation, render_study, render_sweep,
    render_trace_conversion, render_trace_info, render_trace_replay, render_trace_tpcc,
};
