//! `flashwise fit postgres`.

use std::process::ExitCode;

use flashwise_report::{cloud_sql_flags, parameter_group, postgres_conf, postgres_tuning_sql, render_postgres_tuning};
use flashwise_tune::postgres::{PostgresMeasureOptions, PostgresOptions, StatementCounts, tune_postgres};

use super::fit::{Form, attach_request, check_forms, drive_of_server, write_forms};
use crate::arguments::FitPostgres;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Bar;

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// Names the server that is fitted in place of an export.
const FROM_SERVER: &str = "server";

/// Recommends settings, and measures and applies them on request.
pub fn run(options: FitPostgres, output: &Output) -> Result<ExitCode, Failure> {
    let files: [Form; 4] = [
        (options.sql_out.clone(), postgres_tuning_sql),
        (options.conf_out.clone(), postgres_conf),
        (options.rds_out.clone(), parameter_group),
        (options.cloud_sql_out.clone(), cloud_sql_flags),
    ];
    check_forms(&files)?;
    let (options, mut bar) = postgres_options(options)?;
    let tuning = tune_postgres(&options, &mut bar)?;
    write_forms(&files, &tuning)?;
    output.print(&tuning, |style| render_postgres_tuning(&tuning, style))?;
    Ok(ExitCode::SUCCESS)
}

fn postgres_options(options: FitPostgres) -> Result<(PostgresOptions, Bar), Failure> {
    let measure = options.measure.then(|| measure_options(&options)).transpose()?;
    let (drive, bar) = drive_of_server(&options.drive)?;
    let options = PostgresOptions {
        drive,
        dsn: options.connection.or(options.dsn),
        version: options.for_version,
        sessions: options.sessions,
        depth: options.iodepth,
        skip: options.skip,
        apply: options.apply,
        measure,
    };
    Ok((options, bar))
}

fn measure_options(options: &FitPostgres) -> Result<PostgresMeasureOptions, Failure> {
    let with = &options.measurement;
    let seconds = with.round_time.0 / SECOND;
    let round_seconds = u32::try_from(seconds).ok().filter(|_| with.round_time.0.is_multiple_of(SECOND));
    let wrong = || Failure::usage(format!("--round-time {}: pgbench counts whole seconds", with.round_time));
    Ok(PostgresMeasureOptions {
        programs: with.programs.clone(),
        directory: with.directory.clone(),
        attach: attach_request(with.attached, with.slower),
        load: with.load.clone(),
        script: with.sql.clone(),
        log: with.log.clone(),
        counts: with.stat_statements.as_deref().map(|name| match name {
            FROM_SERVER => StatementCounts::Server,
            file => StatementCounts::File(file.into()),
        }),
        scale: with.scale,
        clients: with.clients,
        rounds: with.rounds,
        round_seconds: round_seconds.ok_or_else(wrong)?,
        seed: with.seed,
    })
}
