//! `flashwise pool`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use flashwise_bufferpool::cost::DriveModel;
use flashwise_bufferpool::simulate::{PoolPlan, simulate};
use flashwise_bufferpool::traces::{PoolSize, simulate_traces};
use flashwise_bufferpool::{Ace, AceRequest, PageTrace, PoolError, TraceOptions};
use flashwise_report::{OwnFile, pool_page, render_pool, render_pool_traces};
use flashwise_ssd::DeviceConfig;

use super::{read_device, read_profile};
use crate::arguments::PoolArguments;
use crate::failure::Failure;
use crate::files::Wanted;
use crate::output::{Output, note};
use crate::progress::shared_bar;
use crate::traces::{format_note, print_note};

/// Simulates pools on a trace.
pub fn run(options: &PoolArguments, output: &Output) -> Result<ExitCode, Failure> {
    let reading =
        TraceOptions { reading: options.reading.clone().into(), unit: options.unit.into(), accesses: options.accesses };
    let model = model(options)?;
    let drive = options.drive.as_deref().map(read_device).transpose()?;
    let (plan, sizes) = (plan(options, model, drive), sizes(options));
    if let Some(directory) = &options.traces {
        return on_traces(directory, &reading, &plan, &sizes, output);
    }
    let Some(trace) = &options.trace else { return Err(Failure::usage("a trace is missing")) };
    let page = options.html.as_deref().map(|path| Wanted::prepare(path, OwnFile::Page)).transpose()?;
    let bar = shared_bar();
    bar.show("reading the trace", 0.0);
    let (mut trace, reader) = PageTrace::open(trace, &reading)?;
    let (pages, page_bytes) = (trace.pages() as u64, trace.page_bytes());
    let plan = PoolPlan { frames: sizes.iter().map(|size| size.frames(pages, page_bytes)).collect(), ..plan };
    let report = simulate(&mut trace, &plan, &|fraction| bar.show("simulating pools", fraction))?;
    drop(bar);
    print_note(format_note(&reader, options.reading.format()));
    reader.remarks().into_iter().for_each(|remark| print_note(Some(format!("{}: {remark}", reader.name()))));
    if let Some(page) = &page {
        page.write(pool_page(&report))?;
    }
    output.print(&report, |style| render_pool(&report, style))?;
    Ok(ExitCode::SUCCESS)
}

/// Simulates pools on every trace of a directory.
fn on_traces(
    directory: &Path,
    reading: &TraceOptions,
    plan: &PoolPlan,
    sizes: &[PoolSize],
    output: &Output,
) -> Result<ExitCode, Failure> {
    let files = files_of(directory)?;
    let bar = shared_bar();
    let report = simulate_traces(&files, reading, plan, sizes, &|name, fraction| bar.show(name, fraction))?;
    drop(bar);
    for unread in &report.unread {
        note(&format!("{} is left out: {}", unread.trace, unread.reason));
    }
    output.print(&report, |style| render_pool_traces(&report, style))?;
    Ok(ExitCode::SUCCESS)
}

/// The regular files of a directory by name, without hidden ones.
fn files_of(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error: std::io::Error| Failure::file(directory, &error);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if !is_hidden && entry.path().is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    match files.is_empty() {
        true => Err(Failure::usage(format!("{}: no file is in it", directory.display()))),
        false => Ok(files),
    }
}

/// A plan without sizes.
fn plan(options: &PoolArguments, model: Option<DriveModel>, drive: Option<DeviceConfig>) -> PoolPlan {
    PoolPlan {
        policies: options.policy.iter().flat_map(|policies| policies.0.clone()).collect(),
        frames: Vec::new(),
        write_backs: write_backs(options, model),
        prefetch: options.prefetch.into(),
        model,
        drive,
        jobs: options.jobs,
    }
}

fn model(options: &PoolArguments) -> Result<Option<DriveModel>, Failure> {
    if let (Some(asymmetry), Some(read_concurrency), Some(write_concurrency)) = (options.alpha, options.kr, options.kw)
    {
        if !(asymmetry.is_finite() && asymmetry > 0.0) {
            return Err(Failure::usage("--alpha must be a number above 0"));
        }
        return Ok(Some(DriveModel { asymmetry, read_concurrency, write_concurrency }));
    }
    let Some(path) = &options.profile else { return Ok(None) };
    let model = DriveModel::of_profile(&read_profile(path)?, options.reading.page_size.0);
    let missing = || {
        let path = path.display();
        Failure::error(format!(
            "{path}: α, k_r or k_w is missing; learn the drive again, or give --alpha, --kr and --kw"
        ))
    };
    model.map(Some).ok_or_else(missing)
}

fn sizes(options: &PoolArguments) -> Vec<PoolSize> {
    let frames = options.frames.iter().map(|&frames| PoolSize::Frames(frames));
    let bytes = options.pool_size.iter().map(|size| PoolSize::Bytes(size.0));
    frames.chain(bytes).chain(options.pool_share.iter().map(|&share| PoolSize::Share(share))).collect()
}

fn write_backs(options: &PoolArguments, model: Option<DriveModel>) -> Vec<Ace> {
    let PoolArguments { ace, compare, write_back_batch, near, evict, prefetch, .. } = *options;
    AceRequest { ace, compare, write_back_batch, near, evict }.write_backs(model, prefetch.into())
}

impl From<PoolError> for Failure {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Policy(_) | PoolError::NoFrames => Self::usage(error.to_string()),
            error => Self::error(error),
        }
    }
}
