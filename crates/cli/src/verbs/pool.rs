//! `flashwise pool`.

use std::process::ExitCode;

use flashwise_bufferpool::cost::DriveModel;
use flashwise_bufferpool::simulate::{PoolPlan, simulate};
use flashwise_bufferpool::{Ace, AceRequest, PageTrace, PoolError, TraceOptions};
use flashwise_report::{OwnFile, pool_page, render_pool};

use super::{read_device, read_profile};
use crate::arguments::PoolArguments;
use crate::failure::Failure;
use crate::files::Wanted;
use crate::output::Output;
use crate::progress::shared_bar;
use crate::traces::{format_note, print_note};

/// Simulates pools on a trace.
pub fn run(options: &PoolArguments, output: &Output) -> Result<ExitCode, Failure> {
    let reading =
        TraceOptions { reading: options.reading.clone().into(), unit: options.unit.into(), accesses: options.accesses };
    let model = model(options)?;
    let drive = options.drive.as_deref().map(read_device).transpose()?;
    let page = options.html.as_deref().map(|path| Wanted::prepare(path, OwnFile::Page)).transpose()?;
    let bar = shared_bar();
    bar.show("reading the trace", 0.0);
    let (mut trace, reader) = PageTrace::open(&options.trace, &reading)?;
    let plan = PoolPlan {
        policies: options.policy.iter().flat_map(|policies| policies.0.clone()).collect(),
        frames: frames(options, trace.page_bytes()),
        write_backs: write_backs(options, model),
        prefetch: options.prefetch.into(),
        model,
        drive,
        jobs: options.jobs,
    };
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

fn frames(options: &PoolArguments, page_bytes: u64) -> Vec<u64> {
    let of_size = options.pool_size.iter().map(|size| (size.0 / page_bytes).max(1));
    options.frames.iter().copied().chain(of_size).collect()
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
