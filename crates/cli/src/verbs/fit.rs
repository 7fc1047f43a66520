//! `flashwise fit sqlite`.

use std::process::ExitCode;

use flashwise_block::output::Published;
use flashwise_report::{check_writable, render_comparison, write_report};
use flashwise_tune::Target;
use flashwise_tune::sqlite::{FitOptions, KeyValueWorkload, Statements, UserWorkload, Workload, fit};

use super::read_profile;
use crate::arguments::{FitDatabase, FitSqlite, WorkloadSize};
use crate::failure::Failure;
use crate::files::check_new;
use crate::output::Output;
use crate::progress::Bar;

/// Learns, runs, audits, applies, runs again, reports.
pub fn run(database: FitDatabase, output: &Output) -> Result<ExitCode, Failure> {
    let FitDatabase::Sqlite(options) = database;
    let workload = workload(&options)?;
    let target = Target::parse(options.target_option.as_ref().unwrap_or(&options.target))?;
    let profile = options.profile.as_deref().map(read_profile).transpose()?;
    check_writable(&options.report)?;
    for path in [&options.save_database, &options.save_trace].into_iter().flatten() {
        check_new(path)?;
    }
    if options.save_database.is_some() && options.save_database == options.save_trace {
        return Err(Failure::usage("--save-database and --save-trace name the same file"));
    }
    let fit_options = FitOptions {
        target,
        workload,
        seed: options.seed,
        profile,
        save_database: options.save_database,
        save_trace: options.save_trace,
    };
    let comparison = fit(&fit_options, &mut Bar::new())?;
    let saved = [&fit_options.save_database, &fit_options.save_trace].into_iter().flatten();
    let saved: Vec<Published> = saved.filter_map(|path| Published::found(path).ok()).collect();
    let files = write_report(&options.report, &comparison).inspect_err(|_| {
        // All requested files, or none.
        saved.iter().for_each(|file| _ = file.remove());
    })?;
    output.print(&comparison, |style| {
        let (html, json) = (files.html.display(), files.json.display());
        render_comparison(&comparison, style).and(format!("\nReport: {html}, {json}\n"))
    })?;
    Ok(ExitCode::SUCCESS)
}

fn workload(options: &FitSqlite) -> Result<Workload, Failure> {
    let base = match options.workload_size {
        WorkloadSize::Quick => KeyValueWorkload::QUICK,
        WorkloadSize::Full => KeyValueWorkload::FULL,
    };
    if let (Some(database), Some(sql)) = (&options.db, &options.sql) {
        let page_cache = options.page_cache.unwrap_or(base.page_cache);
        let workload = UserWorkload { database: database.clone(), sql: Statements::File(sql.clone()), page_cache };
        workload.check()?;
        return Ok(Workload::User(workload));
    }
    let workload = KeyValueWorkload {
        rows: options.rows.unwrap_or(base.rows),
        rounds: options.rounds.unwrap_or(base.rounds),
        inserts_per_round: options.inserts.unwrap_or(base.inserts_per_round),
        selects_per_round: options.selects.unwrap_or(base.selects_per_round),
        inserts_per_transaction: options.inserts_per_transaction.unwrap_or(base.inserts_per_transaction),
        page_cache: options.page_cache.unwrap_or(base.page_cache),
    };
    workload.check()?;
    Ok(Workload::KeyValue(workload))
}
