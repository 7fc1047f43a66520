//! `flashwise generate`.

use std::process::ExitCode;

use clap::CommandFactory;

use crate::arguments::{Arguments, Generated};
use crate::failure::Failure;

/// Writes completions or man pages.
pub fn run(what: &Generated) -> Result<ExitCode, Failure> {
    let mut command = Arguments::command();
    match what {
        Generated::Completions { shell } => {
            clap_complete::generate(*shell, &mut command, "flashwise", &mut std::io::stdout());
        }
        Generated::Man { directory } => {
            std::fs::create_dir_all(directory).map_err(|e| Failure::file(directory, &e))?;
            clap_mangen::generate_to(command, directory).map_err(|e| Failure::file(directory, &e))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
