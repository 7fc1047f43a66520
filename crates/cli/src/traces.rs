//! Traces and workloads that the user named: how each verb reads and writes them.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use flashwise_block::names::choices;
use flashwise_trace::workload::{Workload, WorkloadError};
use flashwise_trace::{CompressedWriter, Compression, ReadOptions, TraceError, TraceFormat, TraceReader, TraceWriter};

use crate::arguments::TraceReading;
use crate::failure::Failure;
use crate::files;
use crate::output::Output;

/// Bytes that are written at a time.
const BUFFER: usize = 256 << 10;

/// A workload by name, or from a file.
pub fn read_workload(name: &str, requests: Option<u64>) -> Result<Workload, Failure> {
    if let Some(workload) = Workload::named(name, requests.unwrap_or(Workload::NAMED_REQUESTS)) {
        return Ok(workload);
    }
    if !name.ends_with(".toml") {
        let names = choices(name, Workload::NAMES.iter().copied());
        return Err(Failure::usage(format!("unknown workload '{name}': give a file NAME.toml, or a name; {names}")));
    }
    let mut workload = Workload::read(name)?;
    workload.flows.iter_mut().for_each(|flow| flow.requests = requests.or(flow.requests));
    Ok(workload)
}

/// Writes a new trace file, compressed where its name ends so; `None` for `-`, standard output, which then holds the
/// trace and nothing else.
pub fn write<T>(
    path: &Path,
    output: Output,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    if path != Path::new("-") {
        return files::create(path, |new| compressed(new, path, write)).map(Some);
    }
    if output.is_json() {
        return Err(Failure::usage("standard output is the trace; with -o json, write the trace to a file"));
    }
    let mut out = BufWriter::with_capacity(BUFFER, io::stdout());
    write(&mut out)?;
    Ok(None)
}

/// Writes a new file, compressed according to its final name.
fn compressed<T>(
    new: &mut File,
    named: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let failed = |e: io::Error| Failure::file(named, &e);
    let file = BufWriter::with_capacity(BUFFER, new);
    let (compression, _) = Compression::of_name(named.to_str().unwrap_or_default());
    let mut out = CompressedWriter::new(compression, file).map_err(failed)?;
    let done = write(&mut out)?;
    out.finish().map_err(failed)?.into_inner().map_err(|e| failed(e.into_error()))?;
    Ok(done)
}

/// The requested form of a new trace, or the one that its name has.
pub fn written_format(path: &Path, to: Option<TraceFormat>) -> Result<TraceFormat, Failure> {
    if let Some(format) = to {
        return Ok(format);
    }
    let name = path.to_str().unwrap_or_default();
    let (_, plain) = Compression::of_name(name);
    match Path::new(plain).extension().and_then(|extension| extension.to_str()) {
        Some("csv") => Ok(TraceFormat::Csv),
        Some("parquet") => Ok(TraceFormat::Parquet),
        _ => {
            let names: Vec<_> = TraceWriter::FORMATS.iter().map(|format| format.name()).collect();
            let names = names.join(", ");
            Err(Failure::usage(format!("{name}: the extension does not name a format; add --to with one of {names}")))
        }
    }
}

/// A note on the format that a trace was read as, where it was detected; none for flashwise's own.
pub fn format_note(reader: &TraceReader, asked: TraceFormat) -> Option<String> {
    let detection = reader.detection();
    let is_guessed = asked == TraceFormat::Auto && detection.format != TraceFormat::Csv;
    is_guessed.then(|| format!("{}: read as {}: {}", reader.name(), detection.format.name(), detection.reason))
}

/// Prints a note on stderr.
pub fn print_note(note: Option<String>) {
    if let Some(note) = note {
        crate::output::note(&note);
    }
}

impl From<TraceReading> for ReadOptions {
    fn from(reading: TraceReading) -> Self {
        let TraceReading { skip_bad_lines, sector_size, page_size, .. } = reading;
        let (format, layout) = (reading.format(), reading.blkparse_format.map(Into::into));
        Self {
            format,
            layout: layout.or(reading.trace_format.layout),
            skip_bad_lines,
            sector_bytes: sector_size.0,
            page_bytes: page_size.0,
            object_ids: false,
        }
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Self {
        Self::error(error)
    }
}

impl From<WorkloadError> for Failure {
    fn from(error: WorkloadError) -> Self {
        Self::error(error)
    }
}
