//! `flashwise tune mariadb`.

use std::process::ExitCode;
use std::time::Duration;

use flashwise_report::{mariadb_option_file, render_mariadb_tuning};
use flashwise_tune::mariadb::{MariadbAddress, MariadbMeasureOptions, MariadbOptions, tune_mariadb};

use super::read_profile;
use crate::arguments::TuneMariadb;
use crate::failure::Failure;
use crate::files;
use crate::output::Output;
use crate::progress::Bar;

/// Recommends settings, and measures and applies them on request.
pub fn run(options: TuneMariadb, output: &Output) -> Result<ExitCode, Failure> {
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

fn mariadb_options(options: TuneMariadb) -> Result<MariadbOptions, Failure> {
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
    let socket = options.socket.map(|path| MariadbAddress::Socket { path, user: options.user });
    Ok(MariadbOptions {
        profile: read_profile(&options.profile)?,
        server: socket.or(options.dsn.map(MariadbAddress::Url)),
        skip: options.skip,
        apply: options.apply,
        measure,
    })
}
