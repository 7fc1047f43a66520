//! Where results and failures go.

use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use clap::ValueEnum;
use flashwise_report::Style;
use serde::Serialize;

use crate::failure::Failure;

/// Form of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// One JSON document
    Json,
}

/// Stdout, in the form that was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    format: Format,
}

/// Whether the arguments ask for JSON, as far as that can be told of arguments that do not parse.
pub fn asks_for_json(arguments: impl Iterator<Item = OsString>) -> bool {
    let arguments: Vec<String> = arguments.map(|a| a.to_string_lossy().into_owned()).collect();
    let pair = arguments.windows(2).any(|w| ["-o", "--output", "--output-format"].contains(&&*w[0]) && w[1] == "json");
    let single = ["-ojson", "-o=json", "--output=json", "--output-format=json"];
    pair || arguments.iter().any(|a| single.contains(&&**a))
}

impl Output {
    /// Output in a form.
    pub fn new(format: Format) -> Self {
        Self { format }
    }

    /// Whether a JSON document is asked for.
    pub fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Colour and width that stdout allows.
    pub fn style(&self) -> Style {
        let terminal = std::io::stdout().is_terminal();
        let color = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
        Style { color, width: columns.unwrap_or(80).clamp(60, 200) }
    }

    /// Prints a JSON Schema: as it is, or inside a document of our own where one is asked for.
    pub fn print_json_schema(&self, json_schema: &serde_json::Value) -> Result<(), Failure> {
        let document = serde_json::json!({
            "schema": "flashwise.json-schema",
            "schema_version": 1,
            "json_schema": json_schema,
        });
        self.print(&document, |_| format!("{json_schema:#}"))
    }

    /// Prints the result.
    pub fn print(&self, document: &impl Serialize, text: impl FnOnce(Style) -> String) -> Result<(), Failure> {
        let result = match self.format {
            Format::Json => flashwise_report::to_json(document)?,
            Format::Text => text(self.style()),
        };
        match put(&result) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::file("stdout".as_ref(), &error)),
            _ => Ok(()),
        }
    }

    /// Prints one result of several, in a line of its own where documents are asked for; `false` once nobody reads any
    /// more.
    pub fn print_look(&self, document: &impl Serialize, text: impl FnOnce(Style) -> String) -> Result<bool, Failure> {
        let result = match self.format {
            Format::Json => serde_json::to_string(document).map_err(Failure::error)?,
            Format::Text => text(self.style()),
        };
        match put(&result) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(Failure::file("stdout".as_ref(), &error)),
            Ok(()) => Ok(true),
        }
    }

    /// Tells a failure and gives its exit code.
    pub fn fail(&self, failure: &Failure) -> ExitCode {
        let message = failure.message.trim().replace('\n', " ");
        if self.is_json() {
            let _ = write!(std::io::stdout(), "{}", flashwise_report::error_document(&message, failure.code));
        }
        let _ = writeln!(std::io::stderr(), "flashwise: {message}");
        ExitCode::from(failure.code)
    }
}

/// Puts something on stdout, with a line end.
fn put(result: &str) -> std::io::Result<()> {
    let end = if result.ends_with('\n') { "" } else { "\n" };
    let mut stdout = std::io::stdout().lock();
    write!(stdout, "{result}{end}").and_then(|()| stdout.flush())
}
