//! `flashwise fit mariadb`.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use flashwise_report::{mariadb_option_file, parameter_group, render_mariadb_tuning};
use flashwise_tune::mariadb::{MariadbAddress, MariadbMeasureOptions, MariadbOptions, tune_mariadb};

use super::fit::{Form, attach_request, check_forms, drive_of_server, write_forms};
use crate::arguments::FitMariadb;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Bar;

/// Of a Unix socket, where `--user` names none.
const DEFAULT_USER: &str = "root";

/// Recommends settings, and measures and applies them on request.
pub fn run(options: FitMariadb, output: &Output) -> Result<ExitCode, Failure> {
    let files: [Form; 2] = [(options.cnf_out.clone(), mariadb_option_file), (options.rds_out.clone(), parameter_group)];
    check_forms(&files)?;
    let (options, mut bar) = mariadb_options(options)?;
    let tuning = tune_mariadb(&options, &mut bar)?;
    write_forms(&files, &tuning)?;
    output.print(&tuning, |style| render_mariadb_tuning(&tuning, style))?;
    Ok(ExitCode::SUCCESS)
}

fn mariadb_options(options: FitMariadb) -> Result<(MariadbOptions, Bar), Failure> {
    let server = address(&options)?;
    let with = &options.measurement;
    let measure = options.measure.then(|| MariadbMeasureOptions {
        programs: with.programs.clone(),
        directory: with.directory.clone(),
        attach: attach_request(with.attached, with.slower),
        load: with.load.clone(),
        script: with.sql.clone(),
        log: with.log.clone(),
        rows: with.rows,
        clients: with.clients,
        rounds: with.rounds,
        round_time: Duration::from_nanos(with.round_time.0),
        seed: with.seed,
    });
    let (drive, bar) = drive_of_server(&options.drive)?;
    Ok((MariadbOptions { drive, server, skip: options.skip, apply: options.apply, measure }, bar))
}

/// The server that CONNECTION, `--socket` or `--dsn` names.
fn address(options: &FitMariadb) -> Result<Option<MariadbAddress>, Failure> {
    let socket = |path: &Path| {
        let user = options.user.as_deref().unwrap_or(DEFAULT_USER).to_owned();
        Ok(Some(MariadbAddress::Socket { path: path.to_owned(), user }))
    };
    // Its password is in no message.
    let url = |url: &str| match &options.user {
        None => Ok(Some(MariadbAddress::Url(url.to_owned()))),
        Some(user) => {
            let why = format!("--user {user}: only for a Unix socket; a URL has its user: mysql://{user}@HOST:PORT");
            Err(Failure::usage(why))
        }
    };
    match (&options.connection, &options.socket, &options.dsn) {
        (Some(connection), ..) if connection.contains("://") => url(connection),
        (Some(connection), ..) => socket(Path::new(connection)),
        (None, Some(path), _) => socket(path),
        (None, None, Some(dsn)) => url(dsn),
        (None, None, None) => Ok(None),
    }
}
