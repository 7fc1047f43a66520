//! `flashwise fit mariadb`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use flashwise_report::{mariadb_option_file, render_mariadb_tuning};
use flashwise_tune::mariadb::{MariadbAddress, MariadbMeasureOptions, MariadbOptions, tune_mariadb};

use super::fit::drive_of_server;
use crate::arguments::FitMariadb;
use crate::failure::Failure;
use crate::files;
use crate::output::Output;
use crate::progress::Bar;

/// Recommends settings, and measures and applies them on request.
pub fn run(options: FitMariadb, output: &Output) -> Result<ExitCode, Failure> {
    let cnf_out = options.cnf_out.clone();
    if let Some(path) = &cnf_out {
        files::check_new(path)?;
    }
    let tuning = tune_mariadb(&mariadb_options(options)?, &mut Bar::new())?;
    if let Some(path) = &cnf_out {
        files::write_new(path, mariadb_option_file(&tuning).as_bytes())?;
    }
    output.print(&tuning, |style| render_mariadb_tuning(&tuning, style))?;
    Ok(ExitCode::SUCCESS)
}

fn mariadb_options(options: FitMariadb) -> Result<MariadbOptions, Failure> {
    let with = &options.measurement;
    let measure = options.measure.then(|| MariadbMeasureOptions {
        programs: with.programs.clone(),
        directory: with.directory.clone(),
        load: with.load.clone(),
        script: with.sql.clone(),
        rows: with.rows,
        clients: with.clients,
        rounds: with.rounds,
        round_time: Duration::from_nanos(with.round_time.0),
        seed: with.seed,
    });
    let (urls, sockets): (Vec<_>, Vec<_>) =
        options.connection.into_iter().partition(|connection| connection.contains("://"));
    let socket = sockets.into_iter().next().map(PathBuf::from).or(options.socket);
    let socket = socket.map(|path| MariadbAddress::Socket { path, user: options.user });
    let url = urls.into_iter().next().or(options.dsn);
    Ok(MariadbOptions {
        profile: drive_of_server(&options.drive, &MariadbOptions::REQUEST_SIZES)?,
        server: socket.or(url.map(MariadbAddress::Url)),
        skip: options.skip,
        apply: options.apply,
        measure,
    })
}
