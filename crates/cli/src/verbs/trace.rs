//! `flashwise trace`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use flashwise_block::ByteSize;
use flashwise_report::trace::{TraceConversion, TraceInfo, TraceOrigin};
use flashwise_report::{render_trace_conversion, render_trace_info};
use flashwise_trace::workload::Workload;
use flashwise_trace::{
    CompressedWriter, Conversion, ReadOptions, TraceError, TraceFormat, TraceReader, TraceSummary, TraceWriter,
    convert, generate,
};

use super::simulate::NAMED_REQUESTS;
use crate::arguments::{TraceAction, TraceReading};
use crate::failure::Failure;
use crate::files;
use crate::output::Output;

/// Bytes that are written at a time.
const BUFFER: usize = 256 << 10;

/// Does what is asked of a trace.
pub fn run(action: &TraceAction, output: &Output) -> Result<ExitCode, Failure> {
    match action {
        TraceAction::Info { trace, reading } => info(trace, *reading, output)?,
        TraceAction::Convert { input, target: to_file, to, reading } => {
            convert_file(input, to_file, written_format(to_file, *to)?, *reading, *output)?;
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
    let work = |out: &mut (dyn Write + Send)| -> Result<(TraceOrigin, Conversion), Failure> {
        let mut reader = TraceReader::open(input, &reading.into())?;
        let name = to_file.display().to_string();
        let told = convert(&mut reader, TraceWriter::new(format, out, &name)?)?;
        Ok((TraceOrigin::of(&reader), told))
    };
    if to_file == Path::new("-") {
        return to_stdout(&output, work);
    }
    let (origin, told) = files::create(to_file, output, |path| packed(path, to_file, work))?;
    let name = to_file.display().to_string();
    let document = TraceConversion::new(Some(origin), name, format, told);
    output.print(&document, |style| render_trace_conversion(&document, style))
}

/// A workload by name, or from a file.
pub(super) fn read_workload(name: &str, requests: Option<u64>) -> Result<Workload, Failure> {
    if let Some(workload) = Workload::named(name, requests.unwrap_or(NAMED_REQUESTS)) {
        return Ok(workload);
    }
    if !name.ends_with(".toml") {
        let names = Workload::NAMES.join(", ");
        return Err(Failure::usage(format!("'{name}' is no workload: give a file NAME.toml or one of {names}")));
    }
    let mut workload = Workload::read(name)?;
    workload.flows.iter_mut().for_each(|flow| flow.requests = requests.or(flow.requests));
    Ok(workload)
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
    if to_file == Path::new("-") {
        return to_stdout(&output, work);
    }
    let told = files::create(to_file, output, |path| packed(path, to_file, work))?;
    let document = TraceConversion::new(None, name.clone(), format, told);
    output.print(&document, |style| render_trace_conversion(&document, style))
}

/// Standard output holds the trace and nothing else.
fn to_stdout<T>(
    output: &Output,
    work: impl FnOnce(&mut (dyn Write + Send)) -> Result<T, Failure>,
) -> Result<(), Failure> {
    if output.is_json() {
        return Err(Failure::usage(
            "standard output holds the trace; write it to a file to have a document with -o json",
        ));
    }
    let mut out = BufWriter::with_capacity(BUFFER, io::stdout());
    work(&mut out)?;
    Ok(())
}

/// Writes a file, packed where its name asks for it.
pub(super) fn packed<T>(
    path: &Path,
    named: &Path,
    work: impl FnOnce(&mut (dyn Write + Send)) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let failed = |e: io::Error| Failure::file(named, &e);
    let file = BufWriter::with_capacity(BUFFER, File::create_new(path).map_err(failed)?);
    let (compression, _) = flashwise_trace::Compression::of_name(named.to_str().unwrap_or_default());
    let mut out = CompressedWriter::new(compression, file).map_err(failed)?;
    let done = work(&mut out)?;
    let file = out.finish().map_err(failed)?.into_inner().map_err(|e| failed(e.into_error()))?;
    file.sync_all().map_err(failed)?;
    Ok(done)
}

/// The form that was asked for, or that the name tells.
pub(super) fn written_format(path: &Path, to: Option<TraceFormat>) -> Result<TraceFormat, Failure> {
    if let Some(format) = to {
        return Ok(format);
    }
    let name = path.to_str().unwrap_or_default();
    let (_, plain) = flashwise_trace::Compression::of_name(name);
    match Path::new(plain).extension().and_then(|extension| extension.to_str()) {
        Some("csv") => Ok(TraceFormat::Csv),
        Some("parquet") => Ok(TraceFormat::Parquet),
        _ => {
            let names: Vec<_> = TraceWriter::FORMATS.iter().map(|format| format.name()).collect();
            let names = names.join(", ");
            Err(Failure::usage(format!("{name}: the name does not tell the form; add --to, one of {names}")))
        }
    }
}

/// What was decided about a trace whose format was not asked for; flashwise's own needs no word.
pub fn decision(reader: &TraceReader, asked: TraceFormat) -> Option<String> {
    let detection = reader.detection();
    let is_guessed = asked == TraceFormat::Auto && detection.format != TraceFormat::Csv;
    is_guessed.then(|| format!("{}: read as {}: {}", reader.name(), detection.format.name(), detection.reason))
}

/// Tells it on stderr.
pub fn tell(decision: Option<String>) {
    if let Some(decision) = decision {
        // Where nobody listens nothing is lost.
        let _ = writeln!(io::stderr(), "flashwise: {decision}");
    }
}

impl From<TraceReading> for ReadOptions {
    fn from(reading: TraceReading) -> Self {
        let TraceReading { trace_format, skip_bad_lines, sector_size, page_size } = reading;
        Self { format: trace_format, skip_bad_lines, sector_bytes: sector_size.0, page_bytes: page_size.0 }
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Self {
        Self::error(error)
    }
}
