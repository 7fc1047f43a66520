//! The `flashwise` program: parses the arguments, calls a crate, prints a report. It has no logic of its own.
//!
//! Results go to stdout, everything else to stderr. With `-o json`, stdout holds exactly one document, also on failure.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own"))]

mod arguments;
mod failure;
mod files;
mod interrupt;
mod output;
mod progress;
mod start;
mod traces;
mod verbs;
mod version;

use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use arguments::{Arguments, Verb};
use failure::Failure;
use output::{Format, Output};

fn main() -> ExitCode {
    if std::env::args_os().len() <= 1 {
        let printed = Output::new(Format::Text).print(&(), |_| start::screen());
        return if printed.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(failure::ERROR) };
    }
    // The watchdog of a mounted drive must outlive the drive's process, however that ends.
    if verbs::attach_watchdog::is_requested() {
        let output = Output::new(Format::Text);
        return verbs::attach_watchdog::run().unwrap_or_else(|failure| output.fail(&failure));
    }
    let arguments = match Arguments::try_parse_from(arguments::command_line()) {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    let output = Output::new(arguments.output);
    interrupt::listen(output);
    match run(arguments, &output) {
        Ok(code) => code,
        // An error caused by the interruption is reported as the interruption.
        Err(failure) if flashwise_block::interrupt::is_requested() && failure.code != failure::INTERRUPTED => {
            output.fail(&interrupt::failure("interrupted"))
        }
        Err(failure) => output.fail(&failure),
    }
}

/// Prints clap's help and version in full, and an error in one line.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let format = match output::asks_for_json(arguments::command_line().into_iter()) {
        true => Format::Json,
        false => Format::Text,
    };
    let lacks_command = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if lacks_command && format == Format::Text {
        let _ = error.print();
        return ExitCode::from(failure::USAGE);
    }
    let message = match lacks_command {
        true => "give a command; see --help".into(),
        false => meant(error).unwrap_or_else(|| one_line(&error.to_string())),
    };
    Output::new(format).fail(&Failure::usage(message))
}

/// The error for a database under a name that the command line has another one for; clap would suggest the name that
/// looks most like it, such as sqlite for mysql.
fn meant(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let known = match name.to_ascii_lowercase().as_str() {
        "mysql" | "innodb" | "maria" => "mariadb",
        "postgresql" | "pg" | "psql" => "postgres",
        "sqlite3" => "sqlite",
        _ => return None,
    };
    Some(format!("unrecognized subcommand '{name}'; use '{known}': flashwise fit {known}"))
}

/// What is wrong and what to do, without the usage that clap prints after it.
fn one_line(page: &str) -> String {
    let (what, rest) = page.split_once("\n\nUsage: ").unwrap_or((page, ""));
    let what = what.split("\n\nFor more information").next().unwrap_or_default().trim_start_matches("error: ");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let message = what.split("\n\n").map(words).collect::<Vec<_>>().join("; ");
    // The words of Rust's own parsers are not for users.
    let message = message.replace("invalid digit found in string", "give a whole number");
    let message = message.replace("invalid float literal", "give a number");
    let verb: Vec<_> = rest.split_whitespace().take_while(|word| !word.starts_with(['-', '<', '['])).collect();
    if verb.is_empty() { message } else { format!("{message}; see '{} --help'", verb.join(" ")) }
}

fn run(arguments: Arguments, output: &Output) -> Result<ExitCode, Failure> {
    match arguments.verb {
        Verb::Fit(database) => verbs::fit::run(database, output),
        Verb::Learn(options) => verbs::learn::run(&options, output),
        Verb::Audit(options) => verbs::audit::run(&options, output),
        Verb::Simulate(options) => verbs::simulate::run(&options, output),
        Verb::Attach(options) => verbs::attach::run(&options, output),
        Verb::Sweep(options) => verbs::sweep::run(&options, output),
        Verb::Pool(options) => verbs::pool::run(&options, output),
        Verb::Study(options) => verbs::study::run(&options, output),
        Verb::Sqlite(action) => verbs::sqlite::run(&action, output),
        Verb::Store(action) => verbs::store::run(&action, output),
        Verb::Device(action) => verbs::device::run(&action, output),
        Verb::Trace(action) => verbs::trace::run(&action, output),
        Verb::Kernel(action) => verbs::kernel::run(&action, output),
        Verb::Generate(what) => verbs::generate::run(&what, output),
    }
}
