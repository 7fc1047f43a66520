//! Descriptions of drives and arrays: presets, files, random ones, with values changed.

use flashwise_bufferpool::policies;
use flashwise_sim::sweep::set_value;
use flashwise_sim::{ArrayMachine, Machine};
use flashwise_ssd::{DeviceConfig, Preset};
use flashwise_trace::workload::Workload;
use flashwise_truth::random::random_toml;
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::input::Text;

fn raised<T>(py: Python<'_>, made: impl FnOnce() -> Result<T, Failure>) -> PyResult<T> {
    made().map_err(|failure| failure.raise(py))
}

/// Names and summaries of the presets.
#[pyfunction]
pub(crate) fn presets() -> Vec<(&'static str, &'static str)> {
    Preset::all().map(|preset| (preset.name, preset.summary)).collect()
}

/// The file of a preset.
#[pyfunction]
pub(crate) fn preset(py: Python<'_>, name: &str) -> PyResult<&'static str> {
    raised(py, || Ok(Preset::find(name)?.toml))
}

/// The file of a random drive.
#[pyfunction]
pub(crate) fn random(py: Python<'_>, seed: u64) -> PyResult<String> {
    raised(py, || Ok(random_toml(seed)?))
}

/// A drive or an array, checked, as JSON: its configuration and what follows from it.
#[pyfunction]
pub(crate) fn describe(py: Python<'_>, text: String, path: String) -> PyResult<String> {
    raised(py, || {
        let machine = Text { text, path }.machine()?;
        let (name, array, survives) = match &machine {
            Machine::Drive(drive) => (&drive.name, None, 0),
            Machine::Array(array) => {
                let ArrayMachine { config, .. } = &**array;
                (&config.name, Some(config), config.survives())
            }
            Machine::Volume(volume) => (&volume.config.name, None, 0),
        };
        let drive = machine.drive_config();
        Ok(json!({
            "name": name,
            "capacity_bytes": machine.capacity(),
            "logical_block_bytes": machine.logical_block(),
            "over_provisioning": drive.map(DeviceConfig::over_provisioning),
            "superpage_bytes": drive.map(DeviceConfig::superpage_bytes),
            "array": array,
            "survives": survives,
            "device": drive,
        })
        .to_string())
    })
}

/// A file with other values, by key paths; comments are lost.
#[pyfunction]
pub(crate) fn changed(py: Python<'_>, text: &str, path: &str, values: &str) -> PyResult<String> {
    raised(py, || {
        let failed = |error: &dyn std::fmt::Display| Failure::usage(format!("{path}: {error}"));
        let mut table: toml::Table = toml::from_str(text).map_err(|error| failed(&error))?;
        for (key, value) in serde_json::from_str::<Map<String, Value>>(values)? {
            let value = toml::Value::try_from(without_nulls(value)).map_err(|error| failed(&error))?;
            set_value(&mut table, &key, value).map_err(|error| failed(&error))?;
        }
        Ok(table.to_string())
    })
}

/// An object as a TOML file.
#[pyfunction]
pub(crate) fn to_toml(py: Python<'_>, json: &str) -> PyResult<String> {
    raised(py, || {
        let value: Value = serde_json::from_str(json)?;
        let table = toml::Table::try_from(without_nulls(value)).map_err(Failure::usage)?;
        Ok(table.to_string())
    })
}

/// TOML has no null: what is none is left out.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(fields.map(|(name, value)| (name, without_nulls(value))).collect())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

/// Workloads that have a name.
#[pyfunction]
pub(crate) fn workload_names() -> Vec<&'static str> {
    Workload::NAMES.to_vec()
}

/// Replacement policies and what they are.
#[pyfunction]
pub(crate) fn policy_names() -> Vec<(&'static str, &'static str)> {
    policies().iter().map(|policy| (policy.name, policy.title)).collect()
}
