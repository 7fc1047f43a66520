//! The `flashwise` program: arguments in, a verb called, a report out. No logic of its own.
//!
//! Results go to stdout, everything else to stderr. With `-o json` stdout holds exactly one document, also on failure.

mod arguments;
mod failure;
mod output;
mod progress;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Verb};
use failure::Failure;
use output::Output;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    let output = Output::new(arguments.output);
    match run(arguments, &output) {
        Ok(code) => code,
        Err(failure) => output.fail(&failure),
    }
}

/// What clap has to say: help and versions are no failures.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        return if error.print().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if output::asks_for_json(std::env::args_os()) {
        let first = error.to_string();
        let message = first.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        return Output::new(output::Format::Json).fail(&Failure::usage(message));
    }
    let _ = error.print();
    ExitCode::from(failure::USAGE)
}

fn run(arguments: Arguments, output: &Output) -> Result<ExitCode, Failure> {
    match arguments.verb {
        Verb::Fit(database) => verbs::fit::run(database, output),
        Verb::Learn(options) => verbs::learn::run(&options, output),
        Verb::Audit(options) => verbs::audit::run(&options, output),
        Verb::Sqlite(action) => verbs::sqlite::run(&action, output),
        Verb::Device(action) => verbs::device::run(&action, output),
        Verb::Generate(what) => verbs::generate::run(&what),
    }
}
