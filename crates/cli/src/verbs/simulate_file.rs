//! `flashwise simulate --file-system`: a workload on a file.

use std::process::ExitCode;

use flashwise_block::ByteSize;
use flashwise_kernel::job::{FileJob, JobError, SyncEvery, run as run_job};
use flashwise_kernel::{FileSystemKind, Kernel, KernelConfig};
use flashwise_report::render_file_run;
use flashwise_sim::{Machine, precondition};
use flashwise_ssd::SimulatedSsd;
use flashwise_trace::workload::Workload;
use flashwise_tune::free_memory;

use crate::arguments::SimulateArguments;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Bar;

/// Runs a workload on a file of a new file system.
pub fn run(
    options: &SimulateArguments,
    (machine, workload, base): (&Machine, &Workload, &std::path::Path),
    output: &Output,
) -> Result<ExitCode, Failure> {
    let Machine::Drive(config) = machine else {
        return Err(Failure::usage("--file-system is for a single drive, and this is an array or a volume"));
    };
    let [flow] = workload.flows.as_slice() else {
        return Err(Failure::usage("--file-system runs one program: give a workload of one flow"));
    };
    let kernel = KernelConfig {
        file_system: FileSystemKind::named(options.file_system.as_deref().unwrap_or_default())
            .map_err(|why| Failure::usage(format!("--file-system: {why}")))?,
        fast_commit: options.fast_commit,
        memory: options.memory.unwrap_or_else(free_memory),
        ..KernelConfig::default()
    };
    if kernel.fast_commit && kernel.file_system != FileSystemKind::Ext4 {
        return Err(Failure::usage("--fast-commit is for --file-system ext4"));
    }
    let size = options.file_size.or(options.size);
    let size = size.ok_or_else(|| Failure::usage("--file-system needs the file's size: give --size or --file-size"))?;
    let job = FileJob { size: ByteSize(size.0), direct: options.direct, sync: sync(options) };
    let mut bar = Bar::new();
    let mut drive = SimulatedSsd::new((**config).clone(), workload.seed)?;
    precondition(&mut drive, options.precondition.into(), workload.seed, &mut bar)?;
    let mut kernel = Kernel::new(drive, kernel).map_err(Failure::error)?;
    let found = run_job(&mut kernel, &job, (&workload.name, flow, workload.seed), base, &mut bar);
    let found = found.map_err(|error| match error {
        JobError::Block(error) => error.into(),
        error => Failure::error(error),
    })?;
    output.print(&found, |style| render_file_run(&found, style))?;
    Ok(ExitCode::SUCCESS)
}

fn sync(options: &SimulateArguments) -> Option<SyncEvery> {
    match (options.fsync, options.fdatasync) {
        (Some(writes), _) => Some(SyncEvery::Fsync(writes)),
        (None, Some(writes)) => Some(SyncEvery::Fdatasync(writes)),
        (None, None) => None,
    }
}
