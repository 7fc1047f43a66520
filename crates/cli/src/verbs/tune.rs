//! `flashwise tune`.

use std::process::ExitCode;

use flashwise_report::render_tuning;
use flashwise_tune::sqlite::{TuneOptions, tune};
use flashwise_tune::{Host, ProgramTime, Target, free_memory};

use super::{read_profile, tune_mariadb, tune_postgres};
use crate::arguments::{TuneDatabase, TuneSqlite};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Bar;

/// Recommends settings for a database, and applies them on request.
pub fn run(database: TuneDatabase, output: &Output) -> Result<ExitCode, Failure> {
    match database {
        TuneDatabase::Sqlite(options) => tune_sqlite(*options, output),
        TuneDatabase::Postgres(options) => tune_postgres::run(*options, output),
        TuneDatabase::Mariadb(options) => tune_mariadb::run(*options, output),
    }
}

fn tune_sqlite(options: TuneSqlite, output: &Output) -> Result<ExitCode, Failure> {
    let tuning = tune(&tune_options(options)?, &mut Bar::new())?;
    output.print(&tuning, |style| render_tuning(&tuning, style))?;
    Ok(ExitCode::SUCCESS)
}

fn tune_options(options: TuneSqlite) -> Result<TuneOptions, Failure> {
    let profile = read_profile(&options.profile)?;
    let target = match &options.target {
        Some(name) => Target::parse(name)?,
        None => TuneOptions::target_of(&profile, &options.database)?,
    };
    let memory = options.memory.unwrap_or_else(free_memory);
    let target =
        target.with_host(Host::named(&options.file_system, memory, ProgramTime::named(&options.program_time)?)?);
    Ok(TuneOptions {
        database: options.database,
        statements: options.sql,
        profile,
        target,
        seed: options.seed,
        page_cache: options.page_cache,
        page_cache_limit: options.page_cache_limit,
        skip: options.skip,
        apply: options.apply,
    })
}
