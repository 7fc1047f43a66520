//! `flashwise sqlite`.

use std::process::ExitCode;

use flashwise_block::ByteSize;
use flashwise_sqlite::{Layout, export, import, info};

use super::read_profile;
use crate::arguments::SqliteAction;
use crate::failure::Failure;
use crate::output::Output;

/// Tells, exports or imports.
pub fn run(action: &SqliteAction, output: &Output) -> Result<ExitCode, Failure> {
    match action {
        SqliteAction::Info { file } => {
            let info = info(file)?;
            let document = serde_json::to_value(&info).map_err(Failure::error)?;
            output.print(&with_schema("flashwise.sqlite-info", document.clone()), |_| lines(&document))?;
        }
        SqliteAction::Export { file, plain } => {
            let summary = export(file, plain)?;
            let document = serde_json::to_value(&summary).map_err(Failure::error)?;
            let text = format!("{}: plain SQLite, from {}\n", plain.display(), file.display());
            output.print(&with_schema("flashwise.sqlite-export", document), |_| text)?;
        }
        SqliteAction::Import { plain, file, profile } => {
            let layout = layout_of(profile)?;
            let summary = import(plain, file, &layout)?;
            let document = serde_json::to_value(&summary).map_err(Failure::error)?;
            let text =
                format!("{}: laid out for the drive ({}), from {}\n", file.display(), layout.name(), plain.display());
            output.print(&with_schema("flashwise.sqlite-import", document), |_| text)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn layout_of(profile: &std::path::Path) -> Result<Layout, Failure> {
    let parameters = read_profile(profile)?.parameters;
    match (parameters.chunk_bytes.known(), parameters.hot_location.known()) {
        (Some(chunk), Some(hot)) if hot.offset_bytes != 0 => {
            let layout = Layout::HotLocations { chunk: ByteSize(chunk), offset: ByteSize(hot.offset_bytes) };
            layout.check()?;
            Ok(layout)
        }
        _ => Err(Failure::error(format!(
            "{}: this drive asks for no layout of its own; use the plain file as it is",
            profile.display()
        ))),
    }
}

/// A document with its schema in front.
fn with_schema(schema: &str, document: serde_json::Value) -> serde_json::Value {
    let mut whole = serde_json::json!({ "schema": schema, "schema_version": 1 });
    if let (Some(whole), serde_json::Value::Object(fields)) = (whole.as_object_mut(), document) {
        whole.extend(fields);
    }
    whole
}

/// `key: value`, a line each.
fn lines(document: &serde_json::Value) -> String {
    let fields = document.as_object().into_iter().flatten();
    fields
        .map(|(key, value)| match value {
            serde_json::Value::String(text) => format!("{key}: {text}\n"),
            other => format!("{key}: {other}\n"),
        })
        .collect()
}
