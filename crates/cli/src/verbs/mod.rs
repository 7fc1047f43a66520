//! One file a verb: options into a call, its result into the output.

pub mod attach;
mod attach_command;
mod attach_interrupt;
pub mod attach_watchdog;
pub mod audit;
mod counters;
pub mod device;
mod device_stat;
pub mod fit;
mod fit_attached;
mod fit_mariadb;
mod fit_postgres;
mod fit_record;
pub mod generate;
pub mod kernel;
pub mod learn;
pub mod pool;
mod same_drive;
pub mod simulate;
mod simulate_file;
pub mod sqlite;
pub mod store;
pub mod study;
pub mod sweep;
pub mod trace;
mod trace_replay;
mod trace_tpcc;

use std::path::Path;

use flashwise_profile::DeviceProfile;
use flashwise_sim::Machine;
use flashwise_ssd::{DeviceConfig, SsdError};

use crate::failure::Failure;

/// A simulated drive's configuration: a preset, with or without `sim:` before it, or a TOML file.
fn read_device(name: &str) -> Result<DeviceConfig, Failure> {
    let name = name.strip_prefix("sim:").unwrap_or(name);
    if !name.ends_with(".toml") && !name.contains('/') {
        return Ok(DeviceConfig::preset(name)?);
    }
    let text = flashwise_block::input::read_text(name).map_err(|e| Failure::file(name.as_ref(), &e))?;
    Ok(DeviceConfig::from_toml(&text, name)?)
}

/// A simulated drive's configuration, or an array's or a volume's where the file or the preset describes one.
fn read_machine(name: &str) -> Result<Machine, Failure> {
    let plain = name.strip_prefix("sim:").unwrap_or(name);
    if !plain.ends_with(".toml") && !plain.contains('/') {
        return Ok(Machine::preset(plain)?);
    }
    let text = flashwise_block::input::read_text(plain).map_err(|e| Failure::file(plain.as_ref(), &e))?;
    Ok(Machine::from_toml(&text, plain)?)
}

impl From<SsdError> for Failure {
    fn from(error: SsdError) -> Self {
        flashwise_tune::TuneError::from(error).into()
    }
}

/// A document with its schema in front.
fn with_schema(schema: &str, document: serde_json::Value) -> serde_json::Value {
    let mut whole = serde_json::json!({ "schema": schema, "schema_version": 1 });
    if let (Some(whole), serde_json::Value::Object(fields)) = (whole.as_object_mut(), document) {
        whole.extend(fields);
    }
    whole
}

/// Reads a profile.
fn read_profile(path: &Path) -> Result<DeviceProfile, Failure> {
    let text = flashwise_block::input::read_text(path).map_err(|e| Failure::file(path, &e))?;
    DeviceProfile::from_toml(&text, &path.display().to_string()).map_err(Failure::error)
}
