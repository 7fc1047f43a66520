//! `flashwise audit`.

use std::collections::BTreeMap;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};
use std::sync::Arc;

use flashwise_audit::provision::{self, Product};
use flashwise_audit::{Audit, AuditOptions, Finding, Judgement, PartitionAudit, Rule, audit_trace};
use flashwise_block::input::check_regular;
use flashwise_block::temporary::TemporaryFolder;
use flashwise_block::{Alignment, ByteSize, file_extents, partition_table};
use flashwise_profile::DeviceProfile;
use flashwise_report::audit::AuditDocument;
use flashwise_report::{OwnFile, audit_page, render_audit, render_provision};
use flashwise_trace::capture::{self, CaptureError, TracedCommand};
use flashwise_trace::{IoTrace, ReadOptions, TraceFormat, TraceReader, TraceRecord};
use flashwise_tune::sqlite::{Statements, UserWorkload, Workload, flush_remark, with_flush};
use flashwise_tune::{DEFAULT_TARGET, Target};
use flashwise_volume::Volume;

use super::read_profile;
use crate::arguments::{AuditArguments, FailOn, LeastCost};
use crate::failure::{Failure, INCONCLUSIVE, VIOLATIONS};
use crate::files::{self, Wanted, check_new};
use crate::interrupt::Listener;
use crate::output::Output;
use crate::progress::Bar;
use crate::traces::{format_note, print_note};

/// Holds a trace against a profile.
pub fn run(options: &AuditArguments, output: &Output) -> Result<ExitCode, Failure> {
    let profile = match (&options.profile, options.provision) {
        (_, Some(product)) => return provisioned(product, options, output),
        (Some(path), None) => read_profile(path)?,
        (None, None) => return Err(Failure::usage("give --profile FILE, from flashwise learn --profile FILE")),
    };
    let page = options.html.as_deref().map(|path| Wanted::prepare(path, OwnFile::Page)).transpose()?;
    if let Some(path) = &options.save_trace {
        check_new(path)?;
    }
    let drive = options.target.as_deref().filter(|_| options.db.is_none());
    let partitions = drive.map(|drive| partitions_of(Path::new(drive), &profile)).transpose()?;
    let audited = match (&options.trace, &options.db, &options.sql) {
        (Some(trace), ..) => read(trace, options, &profile)?,
        (None, Some(database), Some(sql)) => through_vfs(database, sql, options, &profile)?,
        (None, ..) if options.command.is_empty() => match partitions.clone() {
            Some(partitions) => Audited::from_partitions(partitions),
            None => return Err(Failure::usage(NOTHING)),
        },
        _ => through_kernel(options, &profile, *output)?,
    };
    let Audited { name, remarks, audit } = audited;
    let audit = Audit { partitions, ..audit };
    let document = AuditDocument::new(name, remarks, &profile, audit);
    if let Some(page) = page {
        page.write(audit_page(&document))?;
    }
    output.print(&document, |style| render_audit(&document, style))?;
    Ok(ExitCode::from(verdict(&document.audit, &options.fail_on)))
}

/// What to buy for the requests of a trace.
fn provisioned(product: Product, options: &AuditArguments, output: &Output) -> Result<ExitCode, Failure> {
    let Some(path) = &options.trace else { return Err(Failure::usage("--provision needs a trace")) };
    let mut reader = TraceReader::open(path, &options.reading.clone().into())?;
    let note = format_note(&reader, options.reading.format());
    let mut records = Vec::new();
    reader.find_start();
    while records.len() < provision::REQUESTS_MAX
        && let Some(record) = reader.next_record()?
    {
        records.push(TraceRecord { at: reader.since_start(record.at)?, ..record });
    }
    print_note(note);
    let volume = Volume::preset(product.name).map_err(Failure::error)?;
    let name = path.display().to_string();
    let report = provision::provision(&name, &records, &volume, product, options.percentile, options.within);
    let report = report.map_err(Failure::error)?;
    output.print(&report, |style| render_provision(&report, style))?;
    Ok(if report.needed.is_some() { ExitCode::SUCCESS } else { ExitCode::from(VIOLATIONS) })
}

/// An audit and its input.
struct Audited {
    name: String,
    remarks: Vec<String>,
    audit: Audit,
}

/// The error if the command line names nothing to audit.
const NOTHING: &str = "give something to audit: a trace, --db and --sql, a command after --, or a drive or disk image \
                       as --target";

impl Audited {
    fn from_partitions(partitions: PartitionAudit) -> Self {
        Self { name: partitions.drive.clone(), remarks: Vec::new(), audit: Audit::from_partitions(partitions) }
    }
}

/// Audits the partitions of a drive or of a disk image.
fn partitions_of(drive: &Path, profile: &DeviceProfile) -> Result<PartitionAudit, Failure> {
    let is_drive = std::fs::metadata(drive).is_ok_and(|found| found.file_type().is_block_device());
    let look = || if is_drive { Ok(()) } else { check_regular(drive) };
    let table = look().and_then(|()| partition_table(drive)).map_err(|e| Failure::file(drive, &e))?;
    let name = drive.display().to_string();
    match table {
        Some(table) => Ok(PartitionAudit::new(name, &table, profile)),
        None => Err(Failure::error(format!("{name}: no partition table (GPT or MBR)"))),
    }
}

fn audit_options(options: &AuditArguments, is_above_page_cache: bool) -> AuditOptions {
    AuditOptions { window_requests: options.window, is_above_page_cache, ..AuditOptions::default() }
}

/// Audits an existing trace.
fn read(trace: &Path, options: &AuditArguments, profile: &DeviceProfile) -> Result<Audited, Failure> {
    let mut reader = TraceReader::open(trace, &options.reading.clone().into())?;
    let note = format_note(&reader, options.reading.format());
    let is_above = reader.detection().format == TraceFormat::Strace;
    let audit = audit_trace(&mut reader, profile, &audit_options(options, is_above), None)?;
    print_note(note);
    Ok(Audited { name: trace.display().to_string(), remarks: reader.remarks(), audit })
}

/// Of SQL that is run through the VFS.
fn through_vfs(
    database: &Path,
    sql: &Path,
    options: &AuditArguments,
    profile: &DeviceProfile,
) -> Result<Audited, Failure> {
    let target = Target::parse(options.target.as_deref().unwrap_or(DEFAULT_TARGET))?;
    let measured = with_flush(&target, profile, &mut Bar::new())?;
    let remark = measured.as_ref().and_then(flush_remark);
    let profile = measured.as_ref().unwrap_or(profile);
    let mut workload = UserWorkload::new(database.to_owned(), Statements::File(sql.to_owned()), options.page_cache);
    workload.parameters.clone_from(&options.parameters);
    let workload = Workload::User(workload);
    let trace: IoTrace = flashwise_tune::sqlite::capture(&target, &workload, 1, &mut Bar::new())?;
    if let Some(path) = &options.save_trace {
        flashwise_tune::sqlite::save_trace(path, &trace)?;
    }
    let usual = flashwise_tune::sqlite::audit_options(&target, &workload)?;
    let sqlite = AuditOptions { window_requests: options.window, ..usual };
    let audit = flashwise_audit::audit(&trace, profile, &sqlite);
    let remarks = remark.into_iter().collect();
    Ok(Audited { name: format!("{} on {}", sql.display(), database.display()), remarks, audit })
}

/// Of a command that is run.
fn through_kernel(options: &AuditArguments, profile: &DeviceProfile, output: Output) -> Result<Audited, Failure> {
    let drive = options.block.as_deref().map(capture::block::Drive::of).transpose()?;
    let directory = TemporaryFolder::create("flashwise-").map_err(Failure::error)?;
    let path = directory.path().join("trace");
    // A command that is interrupted at once has captured nothing, which is a trace too.
    files::grow(&path).map(drop)?;
    let listener = Listener::start();
    let interrupted = Arc::clone(&listener.interrupted);
    let traced = TracedCommand { command: options.command.clone(), output_to_stderr: output.is_json(), interrupted };
    let (status, format) = match drive {
        Some(drive) => (capture::block::capture(&traced, drive, &path)?, TraceFormat::Tracefs),
        None => (capture::strace::capture(&traced, &path)?, TraceFormat::Strace),
    };
    if let Some(kept) = &options.save_trace {
        files::copy_new(&path, kept)?;
    }
    listener.is_over(options.save_trace.as_deref())?;
    let reading = ReadOptions { format, layout: None, ..options.reading.clone().into() };
    let (audit, mut remarks) = match format {
        TraceFormat::Strace => of_files(&path, &reading, options, profile)?,
        _ => {
            let mut reader = TraceReader::open(&path, &reading)?;
            let audit = audit_trace(&mut reader, profile, &audit_options(options, false), None)?;
            (audit, reader.remarks())
        }
    };
    remarks.extend(ending(status));
    let words: Vec<_> = options.command.iter().map(|word| word.to_string_lossy()).collect();
    Ok(Audited { name: words.join(" "), remarks, audit })
}

/// Of the calls of a command: those to files that hold data.
fn of_files(
    path: &Path,
    reading: &ReadOptions,
    options: &AuditArguments,
    profile: &DeviceProfile,
) -> Result<(Audit, Vec<String>), Failure> {
    let mut reader = TraceReader::open(path, reading)?;
    let data = capture::strace::data_files(&mut reader)?;
    let start = |file: u32| {
        let name = reader.files().get(file as usize);
        (file, name.and_then(|name| start_on_drive(name, profile)))
    };
    let files: BTreeMap<u32, Option<ByteSize>> = data.into_iter().map(start).collect();
    let mut reader = TraceReader::open(path, reading)?;
    let audit = audit_trace(&mut reader, profile, &audit_options(options, true), Some(&files))?;
    Ok((audit, reader.remarks()))
}

/// Where a file starts on its drive, modulo the flash page, if file system and partition report it.
fn start_on_drive(name: &str, profile: &DeviceProfile) -> Option<ByteSize> {
    let page = ByteSize(profile.parameters.page_bytes.known()?);
    match file_extents(name.as_ref()).ok()?.alignment(page) {
        Alignment::Known(start) => Some(start),
        Alignment::Unknown(_) => None,
    }
}

/// How the command ended, if not well.
fn ending(status: ExitStatus) -> Option<String> {
    (!status.success()).then(|| format!("the command ended with {status}"))
}

/// The exit code.
fn verdict(audit: &Audit, fail_on: &[FailOn]) -> u8 {
    if fail_on.is_empty() {
        return if audit.is_violated() { VIOLATIONS } else { 0 };
    }
    let mut code = 0;
    let is_off = audit.partitions.as_ref().is_some_and(PartitionAudit::is_violated);
    for of in fail_on {
        // The cost of a misaligned partition depends on what is written to it.
        if is_off && of.rule.is_none_or(|rule| rule == Rule::AlignPartition) {
            code = INCONCLUSIVE;
        }
        let is_meant = |finding: &&Finding| of.rule.is_none_or(|rule| rule == finding.rule);
        let is_violation = |finding: &&Finding| finding.judgement == Judgement::Violation;
        for finding in audit.findings.iter().filter(is_violation).filter(is_meant) {
            match costs(audit, finding, of.cost) {
                Some(true) => return VIOLATIONS,
                Some(false) => {}
                None => code = INCONCLUSIVE,
            }
        }
    }
    code
}

/// Whether a finding costs at least `least`; `None` if its cost is unknown.
fn costs(audit: &Audit, finding: &Finding, least: LeastCost) -> Option<bool> {
    let at_least = |cost: i64, least: u64| i128::from(cost) >= i128::from(least);
    match least {
        LeastCost::Time(time) => finding.cost.time_ns.map(|ns| at_least(ns, time.0)),
        LeastCost::Bytes(ByteSize(bytes)) => finding.cost.flash_bytes.map(|cost| at_least(cost, bytes)),
        LeastCost::Percent(percent) => {
            let simulated = audit.simulated.as_ref().filter(|_| !finding.cost.is_computed())?;
            let (cost, whole) = (finding.cost.time_ns?, simulated.window_totals(&finding.cost).0);
            Some(cost as f64 >= whole as f64 * percent / 100.0)
        }
    }
}

impl From<CaptureError> for Failure {
    fn from(error: CaptureError) -> Self {
        match error {
            CaptureError::NoCommand => Self::usage(error.to_string()),
            _ => Self::error(error),
        }
    }
}
