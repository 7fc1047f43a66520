//! `flashwise kernel`.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use flashwise_block::Nanos;
use flashwise_kernel::ProcessorCosts;
use flashwise_kernel::calibrate::{Calibration, MachineNotes, is_on_disk_file_system, machine_notes, measure};
use serde::Serialize;

use crate::arguments::{CalibrateArguments, KernelAction};
use crate::failure::Failure;
use crate::files::{check_new, write_new};
use crate::output::Output;

/// The middle mean is this much above the best one: other work ran on the machine.
const BUSY: f64 = 1.25;

/// JSON document of a calibration.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    schema_version: u32,
    kernel: &'a str,
    processor: &'a str,
    processor_mhz: &'a str,
    mitigations: &'a [String],
    on_disk_file_system: bool,
    costs: ProcessorCosts,
    defaults: ProcessorCosts,
    calls: Vec<Call>,
}

#[derive(Serialize)]
struct Call {
    call: &'static str,
    best_ns: f64,
    median_ns: f64,
}

/// Measures.
pub fn run(action: &KernelAction, output: &Output) -> Result<ExitCode, Failure> {
    let KernelAction::Calibrate(options) = action;
    calibrate(options, output)?;
    Ok(ExitCode::SUCCESS)
}

fn calibrate(options: &CalibrateArguments, output: &Output) -> Result<(), Failure> {
    let directory: PathBuf = options.directory.clone().unwrap_or_else(std::env::temp_dir);
    let failed = |error: std::io::Error| Failure::file(&directory, &error);
    if let Some(path) = &options.costs {
        check_new(path)?;
    }
    let on_disk_file_system = is_on_disk_file_system(&directory).map_err(failed)?;
    let found = measure(&directory).map_err(failed)?;
    let notes = machine_notes();
    if let Some(path) = &options.costs {
        write_new(path, file_of(&found.costs, &notes).as_bytes())?;
    }
    let calls =
        found.calls.iter().map(|call| Call { call: call.call, best_ns: call.best_ns, median_ns: call.median_ns });
    let document = Document {
        schema: "flashwise.kernel-calibration",
        schema_version: 1,
        kernel: &notes.kernel,
        processor: &notes.processor,
        processor_mhz: &notes.mhz,
        mitigations: &notes.mitigations,
        on_disk_file_system,
        costs: found.costs,
        defaults: ProcessorCosts::default(),
        calls: calls.collect(),
    };
    output.print(&document, |_| text(&found, &notes, on_disk_file_system))
}

/// The constants with their names.
fn named(costs: &ProcessorCosts) -> [(&'static str, Nanos); 8] {
    [
        ("system call", costs.system_call),
        ("read, beyond that", costs.read),
        ("read, each page", costs.read_page),
        ("write, beyond the system call", costs.write),
        ("write, each page", costs.write_page),
        ("page that was not cached", costs.new_page),
        ("page fault, page cached", costs.fault),
        ("wake-up of a waiting task", costs.wake_up),
    ]
}

fn file_of(costs: &ProcessorCosts, notes: &MachineNotes) -> String {
    format!(
        "# Measured by `flashwise kernel calibrate`: Linux {}, {}.\n{}",
        notes.kernel,
        notes.processor,
        costs.to_toml()
    )
}

fn text(found: &Calibration, notes: &MachineNotes, on_disk_file_system: bool) -> String {
    let mut text = format!("{:<32}{:>12}{:>12}\n", "Processor time, ns", "measured", "default");
    for ((name, measured), (_, default)) in named(&found.costs).into_iter().zip(named(&ProcessorCosts::default())) {
        let _ = writeln!(text, "{name:<32}{:>12}{:>12}", measured.0, default.0);
    }
    let _ = writeln!(text, "\nLinux {}, {}", notes.kernel, notes.processor);
    if !notes.mhz.is_empty() {
        let _ = writeln!(text, "Frequency: {} MHz", notes.mhz);
    }
    let mitigations = if notes.mitigations.is_empty() { "none".to_owned() } else { notes.mitigations.join("\n  ") };
    let _ = writeln!(text, "Mitigations: {mitigations}");
    if !on_disk_file_system {
        text +=
            "The file was not on ext4 or XFS, so the costs of writes are another file\nsystem's: give --directory.\n";
    }
    let busy = found.calls.iter().filter(|call| call.median_ns > call.best_ns * BUSY).count();
    if busy > 0 {
        let _ = writeln!(
            text,
            "{busy} of {} calls took more than {:.0} % longer in most rounds than in the best one:\nother work ran on \
             the machine. Repeat this when it is idle.",
            found.calls.len(),
            (BUSY - 1.0) * 100.0
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_what_a_configuration_takes() {
        let costs = ProcessorCosts { wake_up: Nanos(1234), ..ProcessorCosts::default() };
        let file = file_of(&costs, &machine_notes());
        assert_eq!(ProcessorCosts::from_toml(&file, "costs.toml").unwrap(), costs);
        let error = ProcessorCosts::from_toml("wake_up = 5", "costs.toml").unwrap_err().to_string();
        assert!(error.starts_with("costs.toml: ") && error.contains("wake_up_ns"), "{error}");
    }
}
