//! `flashwise generate`.

use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use flashwise_block::output::{Access, OutputFile, Replaceable, create_directories};
use flashwise_report::Printed;
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
            clap_complete::generate(*shell, &mut Arguments::command(), "flashwise", &mut script);
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

/// Writes a page for each verb; their names, sorted.
fn man_pages(directory: &Path) -> std::io::Result<Vec<String>> {
    create_directories(directory)?;
    let mut command = Arguments::command().disable_help_subcommand(true);
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
