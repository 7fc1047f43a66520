//! `flashwise attach cut` and `fault`: commands for an attached drive.

use std::path::Path;
use std::process::ExitCode;

use flashwise_attach::control;
use flashwise_attach::{FaultCommand, FaultState, LatencySpike, PowerCut};
use flashwise_report::{render_faults, render_power_cut};
use serde::Serialize;

use crate::arguments::{AttachAction, FaultArguments};
use crate::failure::Failure;
use crate::output::Output;

/// JSON document of a power cut.
#[derive(Serialize)]
struct CutDocument<'a> {
    schema: &'static str,
    schema_version: u32,
    #[serde(flatten)]
    cut: &'a PowerCut,
}

/// JSON document of faults.
#[derive(Serialize)]
struct FaultDocument<'a> {
    schema: &'static str,
    schema_version: u32,
    faults: &'a FaultState,
}

/// Does it.
pub fn run(action: &AttachAction, output: &Output) -> Result<ExitCode, Failure> {
    match action {
        AttachAction::Cut { place } => cut(&control::find(place)?, output)?,
        AttachAction::Fault(options) => fault(&control::find(&options.place)?, options, output)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn cut(control: &Path, output: &Output) -> Result<(), Failure> {
    let cut = control::cut(control)?;
    let document = CutDocument { schema: "flashwise.attach-cut", schema_version: 1, cut: &cut };
    output.print(&document, |style| render_power_cut(&cut, style))
}

fn fault(control: &Path, options: &FaultArguments, output: &Output) -> Result<(), Failure> {
    let spike = |extra: flashwise_block::Nanos| LatencySpike {
        extra_ns: extra.0,
        for_ns: options.duration.map(|duration| duration.0),
        requests: options.requests,
    };
    let command = FaultCommand {
        clear: options.clear,
        latency_spike: options.latency_spike.map(spike),
        unreadable: options.unreadable.clone(),
        read_only: options.read_only,
    };
    let faults = control::fault(control, command)?;
    let document = FaultDocument { schema: "flashwise.attach-fault", schema_version: 1, faults: &faults };
    output.print(&document, |style| render_faults(&faults, style))
}
