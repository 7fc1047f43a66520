//! `flashwise sqlite`.

use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;

use flashwise_block::ByteSize;
use flashwise_block::input::check_regular;
use flashwise_sqlite::{FileInfo, ImportSummary, Layout, LogLayout, VfsOptions, check_target, export, import, info};

use crate::arguments::SqliteAction;
use crate::failure::Failure;
use crate::files::create_from;
use crate::output::Output;
use crate::verbs::with_schema;

/// Runs `info`, `export` or `import`.
pub fn run(action: &SqliteAction, output: &Output) -> Result<ExitCode, Failure> {
    match action {
        SqliteAction::Info { file } => {
            refuse_special_file(file)?;
            let info = info(file)?;
            let document = serde_json::to_value(&info).map_err(Failure::error)?;
            output.print(&with_schema("flashwise.sqlite-info", document), |_| lines(&info))?;
        }
        SqliteAction::Export { file, plain } => {
            refuse_special_file(file)?;
            check_target(plain)?;
            let summary = create_from(file, plain, |new| Ok(export(file, new)?))?;
            let document = serde_json::to_value(&summary).map_err(Failure::error)?;
            let text = format!("{}: plain SQLite, from {}\n", plain.display(), file.display());
            output.print(&with_schema("flashwise.sqlite-export", document), |_| text)?;
        }
        SqliteAction::Import { plain, file, profile, techniques } => {
            let options = options_of(profile.as_deref(), techniques.as_deref())?;
            refuse_special_file(plain)?;
            check_target(file)?;
            let summary = create_from(plain, file, |new| Ok(import(plain, new, &options)?))?;
            let document = serde_json::to_value(&summary).map_err(Failure::error)?;
            let text = imported(file, &summary);
            output.print(&with_schema("flashwise.sqlite-import", document), |_| text)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses a pipe or a device, which SQLite would open by its name; an absent file is reported by the code that opens
/// it.
fn refuse_special_file(file: &Path) -> Result<(), Failure> {
    match check_regular(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Failure::file(file, &error)),
        _ => Ok(()),
    }
}

fn imported(file: &Path, summary: &ImportSummary) -> String {
    let file = file.display();
    let log = match summary.log {
        LogLayout::Plain => String::new(),
        log => format!(", with a log in the layout '{}'", log.name()),
    };
    let log = if summary.atomic_batches { format!("{log}, with transactions as atomic batches") } else { log };
    let Layout::HotLocations { .. } = summary.layout else { return format!("{file}: pages unchanged{log}\n") };
    let pages = match summary.hot_pages {
        Some(hot) if hot == summary.pages => "every page at a hot location".to_owned(),
        Some(hot) => format!("{hot} of {} pages at hot locations: the file is fragmented", summary.pages),
        None => "every page at a hot location if the file starts at a chunk of the drive, which its file system does \
                 not report"
            .to_owned(),
    };
    format!("{file}: laid out for the drive, {pages}{log}\n")
}

/// The options from a profile and `--techniques`; an import must change something.
fn options_of(profile: Option<&Path>, techniques: Option<&str>) -> Result<VfsOptions, Failure> {
    let profile = profile.map(|path| path.display().to_string());
    let options = VfsOptions::from_text_with(techniques.unwrap_or(""), profile.as_deref())?;
    if !options.is_converting() {
        let who = profile.map_or("the techniques need".to_owned(), |profile| format!("{profile}: this drive needs"));
        return Err(Failure::error(format!("{who} no layout of its own; use the plain file unmodified")));
    }
    Ok(options)
}

/// How many pages start at hot locations of the drive.
fn hot_pages(info: &FileInfo) -> Option<String> {
    if info.layout != "hot-locations" {
        return None;
    }
    Some(match info.hot_pages {
        Some(hot) => format!("{hot}, from the extents of the file"),
        None => "not reported by the file system".to_owned(),
    })
}

/// The known properties, one per line.
fn lines(info: &FileInfo) -> String {
    let size = |size: Option<ByteSize>| size.map(|size| size.to_string());
    let checksum =
        info.header_checksum_ok.map(|ok| if ok { "ok" } else { "mismatch: the header is damaged" }.to_owned());
    let rows = [
        ("layout", Some(info.layout.clone())),
        ("layout version", info.version.map(|version| version.to_string())),
        ("chunk", size(info.chunk.filter(|_| info.layout == "hot-locations"))),
        ("hot location", size(info.offset.filter(|_| info.layout == "hot-locations"))),
        ("shift", size(info.shift.filter(|&shift| Some(shift) != info.offset))),
        ("pages at hot locations", hot_pages(info)),
        ("log", Some(info.log.clone()).filter(|log| log != "plain")),
        ("log unit", size(info.log_unit)),
        ("transactions", info.atomic_batches.then(|| "atomic batches".to_owned())),
        ("laid out for pages of", size(info.layout_page_size)),
        ("header checksum", checksum),
        ("page size", size(info.page_size)),
        ("pages", info.pages.map(|pages| pages.to_string())),
        ("database", size(Some(info.database_bytes))),
        ("file", size(Some(info.stored_bytes))),
    ];
    rows.into_iter().filter_map(|(key, value)| Some(format!("{key:<22} {}\n", value?))).collect()
}
