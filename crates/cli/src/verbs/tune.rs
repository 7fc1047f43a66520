//! `flashwise tune`.

use std::process::ExitCode;

use super::{fit, tune_mariadb, tune_postgres};
use crate::arguments::TuneDatabase;
use crate::failure::Failure;
use crate::output::Output;

/// Recommends settings for a database, and applies them on request.
pub fn run(database: TuneDatabase, output: &Output) -> Result<ExitCode, Failure> {
    match database {
        TuneDatabase::Sqlite(options) => fit::fit_sqlite(*options, output),
        TuneDatabase::Postgres(options) => tune_postgres::run(*options, output),
        TuneDatabase::Mariadb(options) => tune_mariadb::run(*options, output),
    }
}
