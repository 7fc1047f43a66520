//! `flashwise trace`.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use flashwise_block::ByteSize;
use flashwise_report::trace::{TraceConversion, TraceInfo, TraceOrigin};
use flashwise_report::{render_trace_conversion, render_trace_info};
use flashwise_trace::workload::Workload;
use flashwise_trace::{
    Conversion, ReadOptions, TraceFormat, TraceReader, TraceSummary, TraceWriter, convert, generate,
};

use crate::arguments::{TraceAction, TraceReading};
use crate::failure::Failure;
use crate::output::Output;
use crate::traces::{self, read_workload, written_format};

/// Runs a subcommand of `trace`.
pub fn run(action: &TraceAction, output: &Output) -> Result<ExitCode, Failure> {
    match action {
        TraceAction::Info { trace, reading } => info(trace, reading.clone(), output)?,
        TraceAction::Convert { input, target: to_file, to, reading } => {
            convert_file(input, to_file, written_format(to_file, *to)?, reading.clone(), *output)?;
        }
        TraceAction::Generate { workload, target: to_file, size, requests, seed, to } => {
            let mut generated = read_workload(workload, *requests)?;
            generated.seed = seed.unwrap_or(generated.seed);
            generate_file(&generated, Path::new(workload), to_file, *size, written_format(to_file, *to)?, *output)?;
        }
        TraceAction::Tpcc(options) => super::trace_tpcc::run(options, output)?,
        TraceAction::Replay(options) => return super::trace_replay::run(options, output),
    }
    Ok(ExitCode::SUCCESS)
}

fn info(trace: &Path, reading: TraceReading, output: &Output) -> Result<(), Failure> {
    let mut reader = TraceReader::open(trace, &reading.into())?;
    let summary = TraceSummary::of(&mut reader)?;
    let document = TraceInfo::new(&reader, summary);
    output.print(&document, |style| render_trace_info(&document, style))
}

fn convert_file(
    input: &Path,
    to_file: &Path,
    format: TraceFormat,
    reading: TraceReading,
    output: Output,
) -> Result<(), Failure> {
    let reading = ReadOptions::from(reading);
    let work = |out: &mut (dyn Write + Send)| -> Result<(TraceOrigin, Conversion), Failure> {
        let mut reader = TraceReader::open(input, &reading)?;
        let name = to_file.display().to_string();
        let conversion = convert(&mut reader, TraceWriter::new(format, out, &name)?)?;
        Ok((TraceOrigin::of(&reader), conversion))
    };
    let Some((origin, conversion)) = traces::write(to_file, output, work)? else { return Ok(()) };
    let name = to_file.display().to_string();
    let document = TraceConversion::new(Some(origin), name, format, conversion);
    output.print(&document, |style| render_trace_conversion(&document, style))
}

/// Logical block of the drive that a trace is generated for.
const LOGICAL_BLOCK: ByteSize = ByteSize(512);

fn generate_file(
    workload: &Workload,
    source: &Path,
    to_file: &Path,
    size: ByteSize,
    format: TraceFormat,
    output: Output,
) -> Result<(), Failure> {
    let base = source.parent().unwrap_or(Path::new(""));
    let name = to_file.display().to_string();
    let work = |out: &mut (dyn Write + Send)| -> Result<Conversion, Failure> {
        let writer = TraceWriter::new(format, out, &name)?;
        generate(workload, size, LOGICAL_BLOCK, base, writer).map_err(Failure::error)
    };
    let Some(conversion) = traces::write(to_file, output, work)? else { return Ok(()) };
    let document = TraceConversion::new(None, name.clone(), format, conversion);
    output.print(&document, |style| render_trace_conversion(&document, style))
}
