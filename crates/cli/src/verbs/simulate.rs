//! `flashwise simulate`: a workload on a drive, an array or a volume.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use flashwise_array::FailureConfig;
use flashwise_report::{
    OwnFile, ReportFiles, check_writable, render_simulation, simulation_page, time_series_table,
    write_simulation_report,
};
use flashwise_sim::Machine;
use flashwise_sim::{Simulation, SimulationOptions};
use flashwise_trace::ReadOptions;
use flashwise_trace::workload::{Arrivals, FioJob, Overrides, Rw, Workload, workload_schema};

use super::{read_machine, simulate_file};
use crate::arguments::{RateProcess, SimulateArguments};
use crate::failure::Failure;
use crate::files::Wanted;
use crate::output::Output;
use crate::progress::Bar;
use crate::traces::{format_note, print_note};

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
        Machine::Volume(_) if !failures.is_empty() => {
            Err(Failure::usage(format!("{name}: --fail is for arrays, and this is a volume")))
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
    let workload = match (&options.workload, options.rw) {
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
    let workload = workload.with(&Overrides {
        seed: options.seed,
        requests: options.requests,
        runtime: options.runtime,
        compress_percentage: options.buffer_compress_percentage,
        dedupe_percentage: options.dedupe_percentage,
    })?;
    Ok(Asked { workload, base, note })
}

fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml")
}

/// A workload by name, unless a file has that name.
fn named(path: &Path, options: &SimulateArguments) -> Option<Workload> {
    let name = path.to_str().filter(|_| !path.exists())?;
    Workload::named(name, options.requests.unwrap_or(Workload::NAMED_REQUESTS))
}

/// A workload of one trace.
fn replay(path: &Path, options: &SimulateArguments, note: &mut Option<String>) -> Result<Workload, Failure> {
    let asked = options.format.clone().unwrap_or_default();
    if path == Path::new("-") {
        return Err(Failure::usage("a trace is read twice for a replay; save standard input to a file"));
    }
    let reading = ReadOptions { layout: asked.layout.clone(), ..ReadOptions::of(asked.format) };
    let (mut workload, reader) = Workload::of_trace(path, &reading)?;
    *note = format_note(&reader, asked.format);
    for trace in workload.flows.iter_mut().filter_map(|flow| flow.trace.as_mut()) {
        (trace.fold, trace.widen, trace.skip_bad_lines) = (options.fold, options.widen, options.skip_bad_lines);
    }
    Ok(workload)
}

/// A workload of one flow, from options as fio has them.
fn like_fio(rw: Rw, options: &SimulateArguments, machine: &Machine) -> Result<Workload, Failure> {
    let job = FioJob {
        rw,
        bs: options.bs,
        bssplit: options.bssplit.clone(),
        size: options.size,
        iodepth: options.iodepth,
        rwmixread: options.rwmixread,
        random_distribution: options.random_distribution.clone(),
        thinktime: options.thinktime.unwrap_or_default(),
        rate_iops: options.rate_iops,
        rate_process: match options.rate_process {
            RateProcess::Linear => Arrivals::Constant,
            RateProcess::Poisson => Arrivals::Poisson,
        },
        requests: options.requests,
        runtime: options.runtime,
    };
    job.workload(machine.capacity()).map_err(Failure::usage)
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
