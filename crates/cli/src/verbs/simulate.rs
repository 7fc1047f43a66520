//! `flashwise simulate`: a workload on a drive or on an array.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use flashwise_array::FailureConfig;
use flashwise_block::ByteSize;
use flashwise_report::{
    OwnFile, ReportFiles, check_writable, render_simulation, simulation_page, time_series_table,
    write_simulation_report,
};
use flashwise_sim::Machine;
use flashwise_sim::{Simulation, SimulationOptions};
use flashwise_trace::workload::{
    Access, Arrivals, Content, Flow, Pacing, Size, Synthetic, TraceReplay, Workload, workload_schema,
};
use flashwise_trace::{ReadOptions, TraceReader};

use super::{read_machine, simulate_file};
use crate::arguments::{RateProcess, Rw, SimulateArguments};
use crate::failure::Failure;
use crate::files::Wanted;
use crate::output::Output;
use crate::progress::Bar;
use crate::traces::{NAMED_REQUESTS, format_note, print_note};

/// Runs a workload on a simulated drive or array.
pub fn run(options: &SimulateArguments, output: &Output) -> Result<ExitCode, Failure> {
    if options.workload_schema {
        output.print_json_schema(&workload_schema())?;
        return Ok(ExitCode::SUCCESS);
    }
    let name = options.device.as_deref().unwrap_or_default();
    let machine = with_failures(read_machine(name)?, name, &options.fail)?;
    let Asked { workload, base, note } = workload(options, &machine)?;
    if options.file_system.is_some() {
        let ended = simulate_file::run(options, (&machine, &workload, &base), output);
        print_note(note);
        return ended;
    }
    let reports = Reports::prepare(options)?;
    let how = SimulationOptions { precondition: options.precondition.into(), interval: options.interval };
    let simulation = machine.simulate(&workload, &base, &how, &mut Bar::new())?;
    print_note(note);
    let written = reports.write(&simulation)?;
    output.print(&simulation, |style| {
        let text = render_simulation(&simulation, style);
        match written {
            Some(files) => text.and(format!("\nReport: {files}\n")),
            None => text,
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Lets drives of an array fail, beside those that its file lets fail.
fn with_failures(machine: Machine, name: &str, failures: &[FailureConfig]) -> Result<Machine, Failure> {
    match machine {
        Machine::Array(mut array) => {
            array.config.failures.extend(failures);
            array.config.check(&array.member, name)?;
            Ok(Machine::Array(array))
        }
        Machine::Drive(_) if !failures.is_empty() => {
            Err(Failure::usage(format!("{name}: --fail is for arrays, and this is a single drive")))
        }
        drive => Ok(drive),
    }
}

/// The workload to run.
struct Asked {
    workload: Workload,
    /// The folder that its traces are relative to.
    base: PathBuf,
    /// The format that a trace was read as.
    note: Option<String>,
}

fn workload(options: &SimulateArguments, machine: &Machine) -> Result<Asked, Failure> {
    let (mut base, mut note) = (PathBuf::new(), None);
    let mut workload = match (&options.workload, options.rw) {
        (Some(path), _) if is_toml(path) && options.format.is_none() => {
            if options.fold || options.widen || options.skip_bad_lines > 0 {
                return Err(Failure::usage(
                    "--fold, --widen and --skip-bad-lines are for a trace; in a workload, set trace.fold = true",
                ));
            }
            path.parent().unwrap_or(Path::new("")).clone_into(&mut base);
            Workload::read(path)?
        }
        (Some(path), _) => match named(path, options) {
            Some(workload) => workload,
            None => replay(path, options, &mut note)?,
        },
        (None, Some(rw)) => like_fio(rw, options, machine)?,
        (None, None) => return Err(Failure::usage("give a workload; see 'flashwise simulate --help'")),
    };
    workload.seed = options.seed.unwrap_or(workload.seed);
    for flow in &mut workload.flows {
        let ends = |limit: Option<u64>, own: Option<u64>| limit.or(own);
        flow.requests = ends(options.requests, flow.requests);
        flow.duration_ns = ends(options.runtime.map(|runtime| runtime.0), flow.duration_ns);
    }
    workload.content = content(options, workload.content);
    workload.check()?;
    Ok(Asked { workload, base, note })
}

/// Properties of the written data, as far as options give them.
fn content(options: &SimulateArguments, own: Option<Content>) -> Option<Content> {
    let (compress, dedupe) = (options.buffer_compress_percentage, options.dedupe_percentage);
    if compress.is_none() && dedupe.is_none() {
        return own;
    }
    let own = own.unwrap_or_default();
    Some(Content {
        compress_percentage: compress.map_or(own.compress_percentage, f64::from),
        dedupe_percentage: dedupe.map_or(own.dedupe_percentage, f64::from),
        ..own
    })
}

fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml")
}

/// A workload by name, unless a file has that name.
fn named(path: &Path, options: &SimulateArguments) -> Option<Workload> {
    let name = path.to_str().filter(|_| !path.exists())?;
    Workload::named(name, options.requests.unwrap_or(NAMED_REQUESTS))
}

/// A workload of one trace.
fn replay(path: &Path, options: &SimulateArguments, note: &mut Option<String>) -> Result<Workload, Failure> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let asked = options.format.clone().unwrap_or_default();
    if path == Path::new("-") {
        return Err(Failure::usage("a trace is read twice for a replay; save standard input to a file"));
    }
    let reading = ReadOptions { layout: asked.layout.clone(), ..ReadOptions::of(asked.format) };
    let reader = TraceReader::open(path, &reading)?;
    *note = format_note(&reader, asked.format);
    let mut trace = TraceReplay::new(path, reader.detection().format);
    trace.layout = asked.layout.as_deref().map(str::to_owned);
    (trace.fold, trace.widen, trace.skip_bad_lines) = (options.fold, options.widen, options.skip_bad_lines);
    Ok(Workload { name: name.clone(), seed: 1, content: None, flows: vec![Flow::replay(name, trace)] })
}

/// A workload of one flow, from options as fio has them.
fn like_fio(rw: Rw, options: &SimulateArguments, machine: &Machine) -> Result<Workload, Failure> {
    let (access, read_share) = match rw {
        Rw::Read => (Access::Sequential, 1.0),
        Rw::Write => (Access::Sequential, 0.0),
        Rw::Rw => (Access::Sequential, f64::from(options.rwmixread) / 100.0),
        Rw::Randread => (Access::Random, 1.0),
        Rw::Randwrite => (Access::Random, 0.0),
        Rw::Randrw => (Access::Random, f64::from(options.rwmixread) / 100.0),
    };
    let access = match (access, &options.random_distribution) {
        (Access::Random, Some(distribution)) => distribution.clone(),
        (Access::Sequential, Some(_)) => {
            return Err(Failure::usage("--random-distribution is for randread, randwrite and randrw"));
        }
        (access, _) => access,
    };
    let size = options.bssplit.clone().unwrap_or(Size::fixed(options.bs.0));
    let mut synthetic = Synthetic::new(access, size, pacing(options));
    (synthetic.read_share, synthetic.region_bytes) = (read_share, options.size.map(|size| size.0));
    let name = rw_name(rw);
    let mut flow = Flow { name: name.clone(), synthetic: Some(synthetic), ..Flow::default() };
    if options.runtime.is_none() && options.requests.is_none() {
        let size = options.size.unwrap_or(ByteSize(0));
        flow.requests = Some(size.0.checked_div(options.bs.0).unwrap_or(0));
        if size.0 == 0 || size > machine.capacity() {
            let what = "the workload has no end: give --runtime (such as 1s), --requests, or --size within the drive";
            return Err(Failure::usage(what));
        }
    }
    let paced = match options.rate_iops {
        Some(rate) => format!("{rate} per second"),
        None => format!("{} in flight", options.iodepth),
    };
    let sizes = options.bssplit.as_ref().map_or_else(|| options.bs.to_string(), |_| "several sizes".to_owned());
    let name = format!("{name} of {sizes}, {paced}");
    Ok(Workload { name, seed: 1, content: None, flows: vec![flow] })
}

/// Open loop at a fixed rate, or closed loop with a number of requests in flight.
fn pacing(options: &SimulateArguments) -> Pacing {
    let think_ns = options.thinktime.unwrap_or_default().0;
    options.rate_iops.map_or(Pacing::Closed { queue_depth: options.iodepth, think_ns }, |rate| Pacing::Open {
        interarrival_ns: (1_000_000_000 / u64::from(rate)).max(1),
        arrivals: match options.rate_process {
            RateProcess::Linear => Arrivals::Constant,
            RateProcess::Poisson => Arrivals::Poisson,
        },
    })
}

fn rw_name(rw: Rw) -> String {
    use clap::ValueEnum;
    rw.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// The files that are written beside the result; known to be writable before the simulation starts.
struct Reports {
    page: Option<Page>,
    csv: Option<Wanted>,
    parquet: Option<Wanted>,
}

/// A page alone, or in a directory with the document.
enum Page {
    Directory(PathBuf),
    File(PathBuf, Wanted),
}

impl Reports {
    fn prepare(options: &SimulateArguments) -> Result<Self, Failure> {
        // Before there was --html, --report NAME.html was the page alone.
        let is_page = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "html");
        let html = options.html.as_ref().or(options.report.as_ref().filter(is_page));
        let page = match (html, &options.report) {
            (Some(path), _) => Some(Page::File(path.clone(), Wanted::prepare(path, OwnFile::Page)?)),
            (None, Some(dir)) => {
                check_writable(dir)?;
                Some(Page::Directory(dir.clone()))
            }
            (None, None) => None,
        };
        let wanted = |path: &Option<PathBuf>, kind| path.as_deref().map(|path| Wanted::prepare(path, kind)).transpose();
        let csv = wanted(&options.csv, OwnFile::TimeSeriesCsv)?;
        Ok(Self { page, csv, parquet: wanted(&options.parquet, OwnFile::TimeSeries)? })
    }

    /// Writes all of them; the names of the report's files.
    fn write(self, simulation: &Simulation) -> Result<Option<String>, Failure> {
        if let Some(file) = self.csv {
            file.write(time_series_table(simulation).to_csv()?)?;
        }
        if let Some(file) = self.parquet {
            file.write(time_series_table(simulation).to_parquet()?)?;
        }
        Ok(match self.page {
            None => None,
            Some(Page::File(path, file)) => {
                file.write(simulation_page(simulation))?;
                Some(path.display().to_string())
            }
            Some(Page::Directory(dir)) => {
                let ReportFiles { html, json } = write_simulation_report(&dir, simulation)?;
                Some(format!("{}, {}", html.display(), json.display()))
            }
        })
    }
}
