//! `flashwise sqlite`.

use std::process::ExitCode;

use flashwise_block::ByteSize;
use flashwise_sqlite::{FileInfo, ImportSummary, Layout, export, import, info};

use super::read_profile;
use crate::arguments::SqliteAction;
use crate::failure::Failure;
use crate::files::create;
use crate::output::Output;

/// Tells, exports or imports.
pub fn run(action: &SqliteAction, output: &Output) -> Result<ExitCode, Failure> {
    match action {
        SqliteAction::Info { file } => {
            let info = info(file)?;
            let document = serde_json::to_value(&info).map_err(Failure::error)?;
            output.print(&with_schema("flashwise.sqlite-info", document), |_| lines(&info))?;
        }
        SqliteAction::Export { file, plain } => {
            let summary = create(plain, *output, |new| Ok(export(file, new)?))?;
            let document = serde_json::to_value(&summary).map_err(Failure::error)?;
            let text = format!("{}: plain SQLite, from {}\n", plain.display(), file.display());
            output.print(&with_schema("flashwise.sqlite-export", document), |_| text)?;
        }
        SqliteAction::Import { plain, file, profile } => {
            let layout = layout_of(profile)?;
            let summary = create(file, *output, |new| Ok(import(plain, new, &layout)?))?;
            let document = serde_json::to_value(&summary).map_err(Failure::error)?;
            let text = imported(file, &summary);
            output.print(&with_schema("flashwise.sqlite-import", document), |_| text)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn imported(file: &std::path::Path, summary: &ImportSummary) -> String {
    let file = file.display();
    if summary.pages_are_hot {
        return format!("{file}: laid out for the drive, every page at a hot location\n");
    }
    let (page, chunk) = match summary.layout {
        Layout::HotLocations { chunk, .. } => (summary.page_size, chunk),
        Layout::Headed => {
            return format!("{file}: pages as they were, with a log of the layout '{}'\n", summary.log.name());
        }
        Layout::Plain => return format!("{file}: plain\n"),
    };
    format!(
        "{file}: laid out for the drive, but pages of {page} are not at hot locations; before the import, give the plain \
         file pages as long as the drive's chunk: PRAGMA page_size = {}; VACUUM\n",
        chunk.bytes()
    )
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

/// What is known, a line each.
fn lines(info: &FileInfo) -> String {
    let size = |size: Option<ByteSize>| size.map(|size| size.to_string());
    let checksum = info.header_checksum_ok.map(|ok| if ok { "ok" } else { "wrong: the header is damaged" }.to_owned());
    let rows = [
        ("layout", Some(info.layout.clone())),
        ("layout version", info.version.map(|version| version.to_string())),
        ("chunk", size(info.chunk)),
        ("hot location", size(info.offset)),
        ("laid out for pages of", size(info.layout_page_size)),
        ("header checksum", checksum),
        ("page size", size(info.page_size)),
        ("pages", info.pages.map(|pages| pages.to_string())),
        ("database", size(Some(info.database_bytes))),
        ("file", size(Some(info.stored_bytes))),
    ];
    rows.into_iter().filter_map(|(key, value)| Some(format!("{key:<22} {}\n", value?))).collect()
}
