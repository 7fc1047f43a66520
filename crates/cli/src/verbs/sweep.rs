//! `flashwise sweep`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use flashwise_report::{OwnFile, render_sweep, sweep_table};
use flashwise_sim::sweep::{Grid, Sweep, SweepError, SweepOptions, merge, sweep};

use crate::arguments::SweepArguments;
use crate::failure::{ERROR, Failure, INTERRUPTED};
use crate::files::Wanted;
use crate::output::Output;
use crate::progress::Bar;

/// Runs the simulations of a grid that are not finished, and writes all rows.
pub fn run(options: &SweepArguments, output: &Output) -> Result<ExitCode, Failure> {
    let shard = options.shard.map_or_else(String::new, |shard| format!("shard-{}-of-{}.", shard.number, shard.of));
    let beside = |extension: &str| {
        PathBuf::from(options.grid.file_stem().unwrap_or_default()).with_extension(format!("{shard}{extension}"))
    };
    let results = options.results.clone().unwrap_or_else(|| beside("results.jsonl"));
    let parquet = options.parquet.clone().unwrap_or_else(|| beside("parquet"));
    let mut grid = Grid::read(&options.grid)?;
    if let Some(shard) = options.shard {
        grid.keep(shard);
    }
    let parquet_file = Wanted::prepare(&parquet, OwnFile::Sweep)?;
    let csv_file = options.csv.as_deref().map(|path| Wanted::prepare(path, OwnFile::SweepCsv)).transpose()?;
    let how = SweepOptions { jobs: options.jobs };
    let result = match options.merge.is_empty() {
        true => sweep(&grid, &results, how, &mut Bar::new()).map_err(|error| interrupted(error, &results))?,
        false => merge(&grid, &results, &options.merge)?,
    };
    let table = sweep_table(&result);
    parquet_file.write(table.to_parquet()?)?;
    if let Some(file) = csv_file {
        file.write(table.to_csv()?)?;
    }
    output.print(&result, |style| {
        let text = render_sweep(&result, style);
        let csv = options.csv.as_ref().map_or_else(String::new, |path| format!(", {}", path.display()));
        text.and(format!("\nRows: {}{csv}\nResults: {}\n", parquet.display(), results.display()))
    })?;
    Ok(exit_code(&result))
}

fn exit_code(result: &Sweep) -> ExitCode {
    if result.failed > 0 { ExitCode::from(ERROR) } else { ExitCode::SUCCESS }
}

/// The message of an interruption names the results file.
fn interrupted(error: SweepError, results: &Path) -> Failure {
    let mut failure = Failure::from(error);
    if failure.code == INTERRUPTED {
        let results = results.display();
        failure.message =
            format!("{}; finished simulations are in {results}; the same command continues", failure.message);
    }
    failure
}

impl From<SweepError> for Failure {
    fn from(error: SweepError) -> Self {
        match error {
            SweepError::NotResults(_) => Self::refused(error.to_string()),
            SweepError::Device(error) => error.into(),
            SweepError::Stopped(error) => error.into(),
            error => Self::error(error),
        }
    }
}
