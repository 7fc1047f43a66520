//! `flashwise device`.

use std::process::ExitCode;

use flashwise_block::ByteSize;
use flashwise_ssd::{DeviceConfig, PRESETS, Preset, SsdError};
use serde::Serialize;

use crate::arguments::DeviceAction;
use crate::failure::{Failure, USAGE};
use crate::output::Output;

/// What `-o json` gives of one drive.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    schema_version: u32,
    preset: Option<&'a str>,
    device: &'a DeviceConfig,
}

/// What `-o json` gives of all presets.
#[derive(Serialize)]
struct List {
    schema: &'static str,
    schema_version: u32,
    presets: Vec<Listed>,
}

#[derive(Serialize)]
struct Listed {
    name: &'static str,
    summary: &'static str,
}

/// Lists, shows or checks.
pub fn run(action: &DeviceAction, output: &Output) -> Result<ExitCode, Failure> {
    match action {
        DeviceAction::List => list(output)?,
        DeviceAction::Show { preset } => {
            let found = Preset::find(preset.trim_start_matches("sim:")).map_err(usage)?;
            let device = DeviceConfig::preset(found.name).map_err(Failure::error)?;
            let document = document(Some(found.name), &device);
            output.print(&document, |_| found.toml.to_owned())?;
        }
        DeviceAction::Check { file } => {
            let text = std::fs::read_to_string(file).map_err(|e| Failure::file(file, &e))?;
            let device = DeviceConfig::from_toml(&text, &file.display().to_string()).map_err(Failure::error)?;
            output.print(&document(None, &device), |_| sound(&file.display().to_string(), &device))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn usage(error: SsdError) -> Failure {
    Failure { message: error.to_string(), code: USAGE }
}

fn document<'a>(preset: Option<&'a str>, device: &'a DeviceConfig) -> Document<'a> {
    Document { schema: "flashwise.device", schema_version: 1, preset, device }
}

fn list(output: &Output) -> Result<(), Failure> {
    let presets = PRESETS.iter().map(|p| Listed { name: p.name, summary: p.summary }).collect();
    output.print(&List { schema: "flashwise.devices", schema_version: 1, presets }, |_| {
        PRESETS.iter().map(|p| format!("{:<18} {}\n", p.name, p.summary)).collect()
    })
}

fn sound(path: &str, device: &DeviceConfig) -> String {
    format!(
        "{path}: {}: a possible drive, {} addressable, {:.0} % over-provisioning, superpages of {}\n",
        device.name,
        ByteSize(device.capacity_bytes),
        100.0 * device.over_provisioning(),
        ByteSize(device.superpage_bytes())
    )
}
