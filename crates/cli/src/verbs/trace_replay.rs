//! `flashwise trace replay`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use flashwise_block::{Clock, IoBuffer, Operation};
use flashwise_report::render_trace_replay;
use flashwise_report::trace::TraceReplayed;
use flashwise_trace::replay::{ReplayError, replay};
use flashwise_trace::workload::{
    Flow, FlowRequest, FlowSource, Pacing, ReplayPacing, SourcePacing, TraceReplay, Workload,
};
use flashwise_trace::{ReadOptions, TraceFormat, TraceReader};
use flashwise_tune::Target;

use crate::arguments::ReplayArguments;
use crate::failure::{Failure, REFUSED};
use crate::output::{self, Output};
use crate::progress::Bar;
use crate::traces::{format_note, print_note, read_workload};

/// Replays one flow on a drive.
pub fn run(options: &ReplayArguments, output: &Output) -> Result<ExitCode, Failure> {
    if !(options.speed.is_finite() && options.speed > 0.0) {
        return Err(Failure::usage(format!("--speed {}: it must be a number above 0", options.speed)));
    }
    let target = Target::parse_with_devices(&options.target, &options.raw_device.options(options.max_write))?;
    let plan = target.plan(options.size)?;
    if options.dry_run {
        output.print(&plan, |_| plan.to_string())?;
        return Ok(if plan.refusal().is_none() { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) });
    }
    if let Some(refusal) = plan.refusal() {
        return Err(Failure::refused(refusal));
    }
    let (flow, note) = flow(options)?;
    if let Some(warning) = plan.warning() {
        output::note(&warning);
    }
    // Before a scratch file is made, so that Ctrl-C is heard from then on.
    let mut bar = Bar::new();
    let mut device = target.open(options.seed, options.size)?;
    let mut info = device.info().clone();
    if options.raw_device.destructive {
        // Nothing beyond the region may be written, so the trace must fit into it.
        info.capacity = info.capacity.min(options.size);
    }
    let base = options.trace.parent().unwrap_or(Path::new("")).to_owned();
    let mut source = FlowSource::open(&flow, 0, options.seed, info.capacity, info.logical_block, &base)?;
    let queue_depth = match source.pacing() {
        SourcePacing::Closed { queue_depth, .. } => Some(queue_depth),
        SourcePacing::Timed => None,
    };
    let mut payload = |request: &FlowRequest| payload(request, info.clock);
    let report = replay(&mut source, device.as_mut(), &mut payload, &mut bar)?;
    print_note(note);
    source.notes().into_iter().for_each(|note| print_note(Some(note)));
    let document = TraceReplayed {
        schema: "flashwise.trace-replay",
        schema_version: 1,
        trace: flow.name,
        target: target.to_string(),
        clock: info.clock,
        queue_depth,
        report,
    };
    output.print(&document, |style| render_trace_replay(&document, style))?;
    Ok(ExitCode::SUCCESS)
}

/// A simulated drive stores nothing of a replay. On a real one nothing may be gained by bytes that compress.
fn payload(request: &FlowRequest, clock: Clock) -> Option<IoBuffer> {
    let moves_bytes = matches!(request.operation, Operation::Read | Operation::Write);
    if clock == Clock::Virtual || !moves_bytes {
        return None;
    }
    let mut buffer = IoBuffer::zeroed(usize::try_from(request.length.0).ok()?);
    if request.operation == Operation::Write {
        let mut state = request.offset.0 | 1;
        for word in buffer.chunks_exact_mut(8) {
            // xorshift64 (Marsaglia 2003).
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes());
        }
    }
    Some(buffer)
}

/// The flow, and a note on the detected trace format.
fn flow(options: &ReplayArguments) -> Result<(Flow, Option<String>), Failure> {
    let name = options.trace.to_str().unwrap_or_default();
    let is_workload = name.ends_with(".toml") || (Workload::named(name, 1).is_some() && !options.trace.exists());
    let (mut flow, note) = if is_workload { (of_workload(name, options)?, None) } else { of_trace(options)? };
    flow.requests = options.requests.or(flow.requests);
    if let (Some(depth), Some(trace)) = (options.iodepth, &mut flow.trace) {
        trace.pacing = ReplayPacing::Closed { queue_depth: depth };
    }
    if let (Some(depth), Some(synthetic)) = (options.iodepth, &mut flow.synthetic) {
        synthetic.pacing = Pacing::Closed { queue_depth: depth, think_ns: 0 };
    }
    Ok((flow, note))
}

fn of_workload(name: &str, options: &ReplayArguments) -> Result<Flow, Failure> {
    let mut workload = read_workload(name, options.requests)?;
    match (workload.flows.pop(), workload.flows.len()) {
        (Some(flow), 0) => Ok(flow),
        _ => Err(Failure::usage(format!(
            "{name}: a replay takes a workload of one flow; `flashwise simulate` runs \
                                         several"
        ))),
    }
}

fn of_trace(options: &ReplayArguments) -> Result<(Flow, Option<String>), Failure> {
    if options.trace == Path::new("-") {
        return Err(Failure::usage("a trace is read twice for a replay; save standard input to a file"));
    }
    let reading = ReadOptions::from(options.reading.clone());
    let reader = TraceReader::open(&options.trace, &reading)?;
    let note = format_note(&reader, options.reading.format());
    let format: TraceFormat = reader.detection().format;
    // The flow's base is the trace's folder; a folder without a name of its own, such as `.`, needs none.
    let whole = || std::path::absolute(&options.trace).map_err(|e| Failure::file(&options.trace, &e));
    let file = options.trace.file_name().map_or_else(whole, |name| Ok(PathBuf::from(name)))?;
    let mut trace = TraceReplay::new(&file, format);
    (trace.fold, trace.widen, trace.time_scale) = (options.fold, options.widen, 1.0 / options.speed);
    trace.layout = reading.layout.as_deref().map(str::to_owned);
    (trace.skip_bad_lines, trace.logical_block_bytes) = (reading.skip_bad_lines, reading.sector_bytes);
    Ok((Flow::replay(file.to_string_lossy(), trace), note))
}

impl From<ReplayError> for Failure {
    fn from(error: ReplayError) -> Self {
        match error {
            ReplayError::Device { error: flashwise_block::BlockError::Interrupted, .. } => {
                flashwise_block::BlockError::Interrupted.into()
            }
            error => Self::error(error),
        }
    }
}
