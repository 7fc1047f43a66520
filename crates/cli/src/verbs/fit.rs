//! `flashwise fit`, and `fit sqlite`.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use flashwise_block::output::Published;
use flashwise_report::{Detail, HTML_FILE, ReportFiles, check_writable, render_comparison, write_report};
use flashwise_studies::attached::may_mount;
use flashwise_tune::sqlite::{
    DEFAULT_PAGE_CACHE, FitOptions, KeyValueWorkload, Statements, TimeBudget, UserWorkload, Workload, fit,
};
use flashwise_tune::{
    AttachRequest, Attaching, Comparison, DEFAULT_TARGET, DataDrive, Host, ProgramTime, ServerTuning, Target,
    free_memory,
};

use super::fit_attached::OnThisMachine;
use super::fit_record::recorded;
use super::learn::conditions;
use super::{fit_mariadb, fit_postgres, read_profile};
use crate::arguments::{FitDatabase, FitSqlite, ServerDrive, WorkloadSize};
use crate::failure::Failure;
use crate::files::{check_new, write_new};
use crate::output::{Output, note};
use crate::progress::Bar;

/// Directory of a report that was not named.
const REPORT: &str = "flashwise-report";
/// Reports that are kept beside one another.
const REPORTS: u32 = 10_000;

/// Finds the settings of a database for a drive, and applies them on request.
pub fn run(database: FitDatabase, output: &Output) -> Result<ExitCode, Failure> {
    match database {
        FitDatabase::Sqlite(options) => fit_sqlite(*options, output),
        FitDatabase::Postgres(options) => fit_postgres::run(*options, output),
        FitDatabase::Mariadb(options) => fit_mariadb::run(*options, output),
    }
}

/// The drive of a server's data, and what shows the progress: learning and measuring may take minutes.
pub fn drive_of_server(drive: &ServerDrive) -> Result<(DataDrive, Bar), Failure> {
    let drive = match (&drive.profile, &drive.on) {
        (Some(file), _) => read_profile(file)?.into(),
        (None, Some(target)) => DataDrive::Unlearned(Target::parse(target)?),
        (None, None) => DataDrive::Unnamed,
    };
    Ok((drive, Bar::spoken()))
}

/// The drive of a server attached, if that was requested, so many times as slow.
pub fn attach_request(is_attached: bool, slower: u32) -> Option<AttachRequest> {
    is_attached.then(|| AttachRequest { how: Arc::new(OnThisMachine), slower })
}

/// A file for the proposed settings of a server, if it was named, and how they are written in it.
pub type Form = (Option<PathBuf>, fn(&ServerTuning) -> String);

/// Checks, before anything is measured, that the files can be created.
pub fn check_forms(forms: &[Form]) -> Result<(), Failure> {
    forms.iter().filter_map(|(path, _)| path.as_deref()).try_for_each(check_new)
}

/// Writes the files.
pub fn write_forms(forms: &[Form], tuning: &ServerTuning) -> Result<(), Failure> {
    let named = forms.iter().filter_map(|(path, form)| Some((path.as_deref()?, form)));
    named.into_iter().try_for_each(|(path, form)| write_new(path, form(tuning).as_bytes()))
}

/// Learns, runs, audits, searches, confirms, reports.
fn fit_sqlite(options: FitSqlite, output: &Output) -> Result<ExitCode, Failure> {
    let database = database_of(&options)?;
    let profile = options.profile.as_deref().map(read_profile).transpose()?;
    let target = match (&options.on, &database) {
        (Some(name), _) => Target::parse(name)?,
        (None, None) => Target::parse(DEFAULT_TARGET)?,
        (None, Some(database)) => FitOptions::target_of(profile.as_ref(), database)?,
    };
    let memory = options.memory.unwrap_or_else(free_memory);
    let host = Host::named(&options.file_system, memory, ProgramTime::named(&options.program_time)?)?;
    let report = report_directory(options.report.as_deref())?;
    check_writable(&report)?;
    if report.join(HTML_FILE).exists() {
        note(&format!("{}: the report in it will be replaced", report.display()));
    }
    for path in [&options.save_database, &options.save_trace].into_iter().flatten() {
        check_new(path)?;
    }
    if options.save_database.is_some() && options.save_database == options.save_trace {
        return Err(Failure::usage("--save-database and --save-trace name the same file"));
    }
    let mut unsaved = None;
    let workload = workload(&options, database.as_deref(), output, &mut unsaved)?;
    let detail = if options.verbose { Detail::Full } else { Detail::Short };
    let fit_options = FitOptions {
        seed: options.seed,
        profile,
        objectives: options.objective,
        time_budget: options.time_budget.map(|time| TimeBudget::Clock(Duration::from_nanos(time.0))),
        page_cache_limit: options.page_cache_limit,
        skip: options.skip,
        apply: options.apply,
        attach: attaching(options.attached),
        save_database: options.save_database,
        save_trace: options.save_trace,
        model_host: host.clone(),
        ..FitOptions::new(target.with_host(host), workload)
    };
    if let Some(conditions) = conditions(&fit_options.target).filter(|_| fit_options.profile.is_none()) {
        note(&conditions);
    }
    let comparison = fit(&fit_options, &mut Bar::spoken())?;
    let files = write(&report, &comparison, &fit_options)?;
    output.print(&comparison, |style| {
        let (html, json) = (files.html.display(), files.json.display());
        let more = if options.verbose { "" } else { "; --verbose prints all of it" };
        render_comparison(&comparison, detail, style).and(format!("\nReport: {html}, {json}{more}\n"))
    })?;
    unsaved.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// The recommendation is seen on the attached drive on request, and unasked where this user may attach one.
fn attaching(is_requested: bool) -> Attaching {
    match is_requested {
        true => Attaching::Always(Arc::new(OnThisMachine)),
        false if may_mount() => Attaching::IfItCan(Arc::new(OnThisMachine)),
        false => Attaching::Never,
    }
}

/// Writes the report; all requested files are there, or none.
fn write(report: &Path, comparison: &Comparison, options: &FitOptions) -> Result<ReportFiles, Failure> {
    let saved = [&options.save_database, &options.save_trace].into_iter().flatten();
    let saved: Vec<Published> = saved.filter_map(|path| Published::found(path).ok()).collect();
    let files = write_report(report, comparison).inspect_err(|_| saved.iter().for_each(|file| _ = file.remove()))?;
    Ok(files)
}

/// The user's database, as the command line names it.
fn database_of(options: &FitSqlite) -> Result<Option<PathBuf>, Failure> {
    let (Some(named), other) = (&options.database, &options.database_option) else {
        return Ok(options.database_option.clone());
    };
    let text = named.display().to_string();
    let found = std::fs::metadata(named);
    let what = match () {
        () if other.is_some() => {
            return Err(Failure::usage(format!("{text}: the database is given twice; name it once")));
        }
        () if text.starts_with("sim:") => "a simulated drive",
        () if found.as_ref().is_ok_and(std::fs::Metadata::is_dir) => "a directory",
        () if found.is_ok_and(|found| found.file_type().is_block_device()) => "a drive",
        () => return Ok(Some(named.clone())),
    };
    Err(Failure::usage(format!("{text}: DB is a database, and this is {what}; type --on {text} to fit to it")))
}

/// The directory for the report: the named one, or a new one.
fn report_directory(named: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(directory) = named {
        return Ok(directory.to_owned());
    }
    let numbered = (2..REPORTS).map(|number| format!("{REPORT}-{number}"));
    let free = std::iter::once(REPORT.to_owned()).chain(numbered).map(PathBuf::from);
    let found = free.into_iter().find(|directory| directory.symlink_metadata().is_err());
    found.ok_or_else(|| Failure::refused(format!("{REPORT}: {REPORTS} reports exist; name a directory with --report")))
}

fn workload(
    options: &FitSqlite,
    database: Option<&Path>,
    output: &Output,
    unsaved: &mut Option<Failure>,
) -> Result<Workload, Failure> {
    let page_cache = options.page_cache.unwrap_or(DEFAULT_PAGE_CACHE);
    let Some(database) = database else { return built_in(options) };
    let is_built_in = [options.rows, options.rounds, options.inserts, options.selects, options.inserts_per_transaction]
        .iter()
        .any(Option::is_some);
    if is_built_in || options.workload_size != WorkloadSize::Quick {
        let message = format!("{}: options of the built-in workload do not go with a database", database.display());
        return Err(Failure::usage(message));
    }
    if options.record {
        return recorded(options, database, output, unsaved);
    }
    let sql = match &options.sql {
        Some(path) => Statements::File(path.clone()),
        None => Statements::Made(UserWorkload::made_up(database, options.seed)?),
    };
    let mut workload = UserWorkload::new(database.to_owned(), sql, page_cache);
    workload.parameters.clone_from(&options.parameters);
    workload.think_limit = options.think_limit;
    workload.check()?;
    Ok(Workload::User(workload))
}

fn built_in(options: &FitSqlite) -> Result<Workload, Failure> {
    if let Some(sql) = &options.sql {
        return Err(Failure::usage(format!("--sql {}: name the database that it is for", sql.display())));
    }
    if options.record {
        return Err(Failure::usage("--record: name the database that COMMAND works on"));
    }
    if options.apply {
        return Err(Failure::usage("--apply changes a database of yours: name it"));
    }
    let base = match options.workload_size {
        WorkloadSize::Quick => KeyValueWorkload::QUICK,
        WorkloadSize::Full => KeyValueWorkload::FULL,
    };
    let workload = KeyValueWorkload {
        rows: options.rows.unwrap_or(base.rows),
        rounds: options.rounds.unwrap_or(base.rounds),
        inserts_per_round: options.inserts.unwrap_or(base.inserts_per_round),
        selects_per_round: options.selects.unwrap_or(base.selects_per_round),
        inserts_per_transaction: options.inserts_per_transaction.unwrap_or(base.inserts_per_transaction),
        page_cache: options.page_cache.unwrap_or(DEFAULT_PAGE_CACHE),
    };
    workload.check()?;
    Ok(Workload::KeyValue(workload))
}
