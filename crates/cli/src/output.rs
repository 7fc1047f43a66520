//! Where results and failures go.

use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clap::ValueEnum;
use flashwise_block::shown;
use flashwise_report::{Printed, Style};
use serde::Serialize;

use crate::failure::Failure;

/// Format of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text for people
    Text,
    /// One JSON document
    Json,
}

/// Stdout, in the requested format.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    format: Format,
}

/// Whether the arguments request JSON; also works for arguments that do not parse.
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

    /// Whether a JSON document is requested.
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

    /// Prints a JSON Schema: directly, or inside a document of flashwise's own with `-o json`.
    pub fn print_json_schema(&self, json_schema: &serde_json::Value) -> Result<(), Failure> {
        let document = serde_json::json!({
            "schema": "flashwise.json-schema",
            "schema_version": 1,
            "json_schema": json_schema,
        });
        self.print(&document, |_| format!("{json_schema:#}"))
    }

    /// Prints the result.
    pub fn print<T: Into<Printed>>(
        &self,
        document: &impl Serialize,
        text: impl FnOnce(Style) -> T,
    ) -> Result<(), Failure> {
        let result = match self.format {
            Format::Json => Printed::own(flashwise_report::to_json(document)?),
            Format::Text => text(self.style()).into(),
        };
        match put(&result) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::file("stdout".as_ref(), &error)),
            _ => Ok(()),
        }
    }

    /// Prints one result of a series, with `-o json` as a document on its own line; `false` when the reader has gone.
    pub fn print_look(&self, document: &impl Serialize, text: impl FnOnce(Style) -> Printed) -> Result<bool, Failure> {
        let result = match self.format {
            Format::Json => Printed::own(flashwise_report::to_json_line(document)?),
            Format::Text => text(self.style()),
        };
        match put(&result) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(Failure::file("stdout".as_ref(), &error)),
            Ok(()) => Ok(true),
        }
    }

    /// Reports a failure and gives its exit code.
    pub fn fail(&self, failure: &Failure) -> ExitCode {
        self.fail_holding(failure, &mut document());
        ExitCode::from(failure.code)
    }

    /// The same from another thread, while the main thread may be blocked writing to stdout.
    pub fn fail_at_once(&self, failure: &Failure) {
        for _ in 0..20 {
            if let Ok(mut document) = DOCUMENT.try_lock() {
                return self.fail_holding(failure, &mut document);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn fail_holding(&self, failure: &Failure, document: &mut Document) {
        let message = failure.message.trim().replace('\n', " ");
        let message = shortened(&shown::line(&message));
        if self.is_json() && *document == Document::Open {
            *document = Document::Written;
            let _ = write!(std::io::stdout(), "{}", flashwise_report::error_document(&message, failure.code));
            let _ = std::io::stdout().flush();
        }
        note(&message);
    }
}

/// Characters of an error that are shown: some quote what they are about, which may be a token of 10 MB. The start says
/// where and what, the end what to do.
const ERROR_START: usize = 1500;
const ERROR_END: usize = 300;

fn shortened(message: &str) -> String {
    let count = message.chars().count();
    if count <= ERROR_START + ERROR_END {
        return message.to_owned();
    }
    let start: String = message.chars().take(ERROR_START).collect();
    let end: String = message.chars().skip(count - ERROR_END).collect();
    format!("{start} … {end}")
}

/// Prints a line on stderr. It is not an error if stderr is closed.
pub fn note(words: &str) {
    let _ = writeln!(std::io::stderr(), "flashwise: {}", shown::line(words));
}

/// Whether stdout has its document. Held while something is written there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Document {
    Open,
    Written,
}

static DOCUMENT: Mutex<Document> = Mutex::new(Document::Open);

fn document() -> MutexGuard<'static, Document> {
    DOCUMENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Puts something on stdout, with a line end.
fn put(result: &Printed) -> std::io::Result<()> {
    let mut document = document();
    *document = Document::Written;
    let end = if result.ends_with('\n') { "" } else { "\n" };
    let mut stdout = std::io::stdout().lock();
    write!(stdout, "{result}{end}").and_then(|()| stdout.flush())
}
