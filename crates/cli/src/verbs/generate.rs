//! `flashwise generate`.

use std::path::Path;
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Command, CommandFactory};
use flashwise_block::output::{Access, OutputFile, Replaceable, create_directories};
use flashwise_report::Printed;
use flashwise_ssd::Preset;
use flashwise_studies::STUDIES;
use serde::Serialize;

use crate::arguments::{Arguments, Generated};
use crate::failure::Failure;
use crate::output::Output;

/// JSON document of completions.
#[derive(Serialize)]
struct Completions {
    schema: &'static str,
    schema_version: u32,
    shell: String,
    script: String,
}

/// JSON document of man pages.
#[derive(Serialize)]
struct ManPages {
    schema: &'static str,
    schema_version: u32,
    files: Vec<String>,
}

/// Writes completions or man pages.
pub fn run(what: &Generated, output: &Output) -> Result<ExitCode, Failure> {
    match what {
        Generated::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut with_names(Arguments::command()), "flashwise", &mut script);
            let script = String::from_utf8(script).map_err(Failure::error)?;
            let shell = shell.to_string();
            let document = Completions { schema: "flashwise.completions", schema_version: 1, shell, script };
            output.print(&document, |_| Printed::own(document.script.clone()))?;
        }
        Generated::Man { directory } => {
            let files = man_pages(directory).map_err(|e| Failure::file(directory, &e))?;
            let text = format!("{}: {} man pages\n", directory.display(), files.len());
            output.print(&ManPages { schema: "flashwise.man-pages", schema_version: 1, files }, |_| text)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The command with the values that completions offer for presets and studies. Other values of these arguments, such as
/// files and directories, are completed by the shell where none of these fits.
fn with_names(command: Command) -> Command {
    let verbs: Vec<String> = command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    let command = verbs.iter().fold(command, |command, verb| command.mut_subcommand(verb, with_names));
    let verb = command.get_name().to_owned();
    command.mut_args(|argument| match names_of(&verb, argument.get_id().as_str()) {
        Some(names) => argument.value_parser(PossibleValuesParser::new(names)),
        None => argument,
    })
}

/// The names that an argument of a command takes, if it takes any.
fn names_of(verb: &str, argument: &str) -> Option<Vec<&'static str>> {
    let presets = || Preset::all().map(|preset| preset.name);
    // One leaked text for each preset, in a process that ends after printing them.
    let targets = || presets().map(|name| &*Box::leak(format!("sim:{name}").into_boxed_str()));
    match (verb, argument) {
        ("study", "name") => Some(STUDIES.iter().map(|study| study.name).collect()),
        (_, "preset" | "device" | "drive") => Some(presets().collect()),
        (_, "target" | "target_option" | "on") => Some(targets().collect()),
        _ => None,
    }
}

/// Writes a page for each verb; their names, sorted.
fn man_pages(directory: &Path) -> std::io::Result<Vec<String>> {
    create_directories(directory)?;
    // A page names the version that it describes, and not how the program was built.
    let short = clap::builder::Resettable::Reset;
    let mut command = Arguments::command().long_version(short).disable_help_subcommand(true);
    command.build();
    let mut files = Vec::new();
    write_man_pages(&command, directory, &mut files)?;
    files.sort();
    Ok(files)
}

/// Writes a page, over an earlier one of flashwise's.
fn place(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let is_page = |file| {
        let text = std::io::read_to_string(file).unwrap_or_default();
        Ok(text.lines().any(|line| line.starts_with(".TH flashwise")))
    };
    let old = Replaceable::recognise(path, is_page).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => std::io::Error::new(
            error.kind(),
            format!("{} in it is not a man page of flashwise; it is not replaced", path.display()),
        ),
        _ => error,
    })?;
    let mut new = OutputFile::create(path, if old.is_some() { Access::of(path)? } else { Access::Usual })?;
    std::io::Write::write_all(new.file(), text)?;
    match old {
        Some(old) => new.replace(&old).map(drop),
        None => new.publish().map(drop),
    }
}

fn write_man_pages(command: &clap::Command, directory: &Path, files: &mut Vec<String>) -> std::io::Result<()> {
    let page = clap_mangen::Man::new(command.clone());
    let name = page.get_filename();
    let mut text = Vec::new();
    page.render(&mut text)?;
    place(&directory.join(&name), &text)?;
    files.push(name);
    command.get_subcommands().try_for_each(|verb| write_man_pages(verb, directory, files))
}

#[cfg(test)]
mod tests {
    use flashwise_ssd::{CARDS, PRESETS};

    use super::*;

    #[test]
    fn completions_offer_presets_and_studies() {
        let mut script = Vec::new();
        let mut command = with_names(Arguments::command());
        clap_complete::generate(clap_complete::Shell::Bash, &mut command, "flashwise", &mut script);
        let script = String::from_utf8(script).unwrap();
        for name in [PRESETS[0].name, CARDS[0].name, STUDIES[0].name, &format!("sim:{}", PRESETS[0].name)] {
            assert!(script.contains(name), "{name}");
        }
    }

    #[test]
    fn no_internal_command_has_a_man_page() {
        let directory = tempfile::tempdir().unwrap();
        let files = man_pages(directory.path()).unwrap();
        assert!(files.contains(&"flashwise-attach-cut.1".to_owned()), "{files:?}");
        assert!(files.iter().all(|name| !name.contains("watchdog")), "{files:?}");
    }
}
