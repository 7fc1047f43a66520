//! `flashwise device counters`, and the counters of `flashwise learn --counters`.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use flashwise_attach::control;
use flashwise_block::interrupt;
use flashwise_block::nvme::{Counters, CountersError, is_nvme_device};
use flashwise_block::output::OutputFolder;
use flashwise_learn::wear::{WearError, WearInput, wear};
use flashwise_profile::{DeviceProfile, Verdict};
use flashwise_report::counters::CountersDocument;
use flashwise_report::render_counters;
use flashwise_trace::{ReadOptions, TraceFormat, TraceReader, TraceSummary};

use crate::arguments::CountersArguments;
use crate::failure::{Failure, INCONCLUSIVE, INTERRUPTED};
use crate::output::{Output, note};

/// How often a wait looks for Ctrl-C.
const WAIT_STEP: Duration = Duration::from_millis(50);

/// Reads the counters, computes what follows, and prints both.
pub fn run(options: &CountersArguments, output: &Output) -> Result<ExitCode, Failure> {
    let folder = options.save.as_deref().map(|path| open_folder(path).map(|folder| (path, folder))).transpose()?;
    let workload_bytes_per_s = options.trace.as_deref().map(write_rate).transpose()?;
    let first = match (options.over, options.before.is_empty()) {
        (Some(_), _) => Some(read_all(&options.sources)?),
        (None, false) => Some(read_all(&options.before)?),
        (None, true) => None,
    };
    if let Some(time) = options.over {
        if let Some(file) = options.sources.iter().find(|path| path.is_file()) {
            let path = file.display();
            return Err(Failure::usage(format!("--over: {path} is a file, which does not change; give a device")));
        }
        wait(Duration::from_nanos(time.0))?;
    }
    let now = read_all(&options.sources)?;
    let input = WearInput {
        before: first.as_ref(),
        after: &now,
        elapsed_s: options.elapsed.map(|time| time.0 as f64 / 1e9),
        workload_bytes_per_s,
        endurance: options.tbw,
    };
    let counted = wear(&input)?;
    if let Some((path, folder)) = folder {
        save(folder, &now).map_err(|error| in_folder(path, &error))?;
    }
    let sources: Vec<String> = options.sources.iter().map(|path| path.display().to_string()).collect();
    let document = CountersDocument::new(sources.join(", "), now, counted);
    output.print(&document, |style| render_counters(&document, style))?;
    let is_inconclusive = document.figures().iter().any(|entry| entry.figure.verdict == Verdict::Inconclusive);
    Ok(if is_inconclusive { ExitCode::from(INCONCLUSIVE) } else { ExitCode::SUCCESS })
}

/// A drive's state, from one or more sources that have a part of it each.
pub fn read_all(sources: &[PathBuf]) -> Result<Counters, Failure> {
    sources.iter().try_fold(Counters::default(), |so_far, source| Ok(so_far.or(read(source)?)))
}

fn read(source: &Path) -> Result<Counters, Failure> {
    let is_drive = is_nvme_device(source) || source.is_file();
    if !is_drive && is_attached(source) {
        let stat = control::stat(&control::find(&source.display().to_string())?)?;
        let pages = stat.life.map(|life| life.pages());
        return pages.ok_or_else(|| Failure::error(format!("{}: a cloud volume has no SMART log", source.display())));
    }
    Ok(Counters::read(source)?)
}

/// Whether a path may be that of an attached drive: its socket, its directory, or the socket beside it.
fn is_attached(source: &Path) -> bool {
    let is_socket = source.metadata().is_ok_and(|found| found.file_type().is_socket());
    is_socket || control::find(&source.display().to_string()).is_ok()
}

/// Bytes a second that a trace writes.
fn write_rate(path: &Path) -> Result<f64, Failure> {
    let mut reader = TraceReader::open(path, &ReadOptions::of(TraceFormat::Auto))?;
    let summary = TraceSummary::of(&mut reader)?;
    if summary.duration_ns == 0 {
        let path = path.display();
        return Err(Failure::error(format!("{path}: its requests have no times, so it has no rate of writes")));
    }
    Ok(summary.bytes_written as f64 * 1e9 / summary.duration_ns as f64)
}

/// Waits, until Ctrl-C.
fn wait(time: Duration) -> Result<(), Failure> {
    note("reading the counters, and again at the end");
    let end = Instant::now() + time;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        if interrupt::is_requested() {
            return Err(Failure { message: "interrupted".to_owned(), code: INTERRUPTED });
        }
        std::thread::sleep(left.min(WAIT_STEP));
    }
}

/// The kind of such a folder in its own list.
const PAGES: &str = "log pages";

fn open_folder(path: &Path) -> Result<OutputFolder, Failure> {
    OutputFolder::open(path, PAGES).map_err(|error| in_folder(path, &error))
}

fn in_folder(path: &Path, error: &std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::AlreadyExists => Failure::refused(format!("{}: {error}", path.display())),
        _ => Failure::file(path, error),
    }
}

/// One file for each page.
fn save(mut folder: OutputFolder, counters: &Counters) -> std::io::Result<()> {
    if let Some(smart) = &counters.smart {
        folder.write("smart-02.bin", &smart.to_bytes())?;
    }
    if let Some(ocp) = &counters.ocp {
        folder.write("ocp-c0.bin", &ocp.to_bytes())?;
    }
    folder.finish()
}

/// The counters of `learn --counters`: read before learning, and again afterwards.
#[derive(Debug)]
pub struct LearnCounters {
    before: Option<Counters>,
    after: Option<Counters>,
    device: Option<PathBuf>,
}

impl LearnCounters {
    /// Reads the earlier state. Of a device, the later one follows after learning; of files, the last one is it.
    pub fn begin(sources: &[PathBuf]) -> Result<Option<Self>, Failure> {
        let (device, before, after) = match sources {
            [] => return Ok(None),
            [device] if !device.is_file() => (Some(device.clone()), Some(read(device)?), None),
            [whole_life] => (None, None, Some(read(whole_life)?)),
            [before, after] => (None, Some(read(before)?), Some(read(after)?)),
            _ => return Err(Failure::usage("--counters: give a device, or one file, or one before and one after")),
        };
        Ok(Some(Self { before, after, device }))
    }

    /// Adds what was counted to a profile.
    pub fn add_to(self, profile: &mut DeviceProfile) -> Result<(), Failure> {
        let after = match (self.after, &self.device) {
            (Some(after), _) => after,
            (None, Some(device)) => read(device)?,
            (None, None) => return Ok(()),
        };
        let before = self.before.as_ref();
        let input = WearInput { before, after: &after, elapsed_s: None, workload_bytes_per_s: None, endurance: None };
        Ok(flashwise_learn::wear::add_counters(profile, &input)?)
    }
}

impl From<CountersError> for Failure {
    fn from(error: CountersError) -> Self {
        match error {
            CountersError::Io { path, error } => Self::file(path.as_ref(), &error),
            CountersError::Content { .. } => Self::error(error),
        }
    }
}

impl From<WearError> for Failure {
    fn from(error: WearError) -> Self {
        Self::usage(error.to_string())
    }
}
