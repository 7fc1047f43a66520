//! What the documents name is there: every path in backticks, and the target of every relative link; and there are as
//! many of it as they say.

use std::fs;
use std::path::{Path, PathBuf};

use flashwise_ssd::DeviceConfig;

/// Folders that hold nothing of the repository, by their names.
const NOT_OURS: [&str; 3] = ["target", ".git", "shared"];

/// Endings of source files: a name that ends so is a path wherever it stands.
const SOURCES: [&str; 5] = [".rs", ".md", ".sh", ".tcl", ".py"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every file below a folder, relative to `root`.
fn files(root: &Path, folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let is_ours = entry.file_name().to_str().is_some_and(|name| !NOT_OURS.contains(&name));
        match entry.file_type().unwrap().is_dir() {
            true if is_ours => files(root, &entry.path(), found),
            true => {}
            false => found.push(entry.path().strip_prefix(root).unwrap().display().to_string()),
        }
    }
}

/// A document without its fenced blocks, line by line, with the number of each.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut is_fenced = false;
    let mut is_prose = |line: &str| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fenced && !is_fence
    };
    text.lines().enumerate().filter(|(_, line)| is_prose(line)).map(|(at, line)| (at + 1, line)).collect()
}

/// What stands between backticks and looks like a path: with a slash, without spaces and placeholders.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    let is_placeholder = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "./_-*".contains(c);
    line.split('`').skip(1).step_by(2).filter(move |text| {
        let names = text.split(['/', '.']).any(is_placeholder);
        text.contains('/') && text.chars().all(is_plain) && !names && !text.starts_with(['/', '.'])
    })
}

/// Whether a file or a folder of that path exists, `*` standing for any name.
fn exists(root: &Path, path: &str, files: &[String]) -> bool {
    match path.split_once('*') {
        Some((before, behind)) => files.iter().any(|file| file.starts_with(before) && file.ends_with(behind)),
        None => root.join(path).exists(),
    }
}

fn missing_paths(root: &Path, text: &str, files: &[String]) -> Vec<String> {
    let top: Vec<&str> = files.iter().filter_map(|file| file.split_once('/')).map(|(folder, _)| folder).collect();
    let is_known = |path: &str| {
        let from_top = path.split('/').next().is_some_and(|folder| top.contains(&folder));
        let is_source = SOURCES.iter().any(|ending| path.ends_with(ending)) && !path.starts_with("shared/");
        // Within a row that names a crate, a path may start anywhere below it.
        let is_end_of_one = || files.iter().any(|file| file.ends_with(&format!("/{path}")));
        (!from_top && !is_source) || exists(root, path, files) || (is_source && is_end_of_one())
    };
    let of_line = |(at, line)| paths(line).filter(|path| !is_known(path)).map(move |path| format!("{at}: `{path}`"));
    prose(text).into_iter().flat_map(of_line).collect()
}

/// Targets of `[text](target)` that are neither addresses nor places of the same page and that are not there.
fn missing_links(folder: &Path, text: &str) -> Vec<String> {
    let is_missing = |target: &&str| {
        let path = target.split('#').next().unwrap_or_default();
        !path.is_empty() && !path.contains(':') && !folder.join(path).exists()
    };
    let of_line = |(at, line): (usize, &str)| -> Vec<String> {
        let ends = line.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
        ends.filter(is_missing).map(|target| format!("{at}: ({target})")).collect()
    };
    prose(text).into_iter().flat_map(of_line).collect()
}

/// README and the pages beside it, the examples' page and the book: name and text of each.
pub fn texts() -> Vec<(String, String)> {
    let root = root();
    let mut all = Vec::new();
    files(&root, &root, &mut all);
    let is_document = |file: &String| {
        let is_at_the_top = !file.contains('/') || file == "examples/README.md";
        file.ends_with(".md") && (file.starts_with("docs/") || is_at_the_top)
    };
    all.retain(is_document);
    assert!(all.len() > 20, "{all:?}");
    let with_text = |file: String| {
        let text = fs::read_to_string(root.join(&file)).unwrap();
        (file, text)
    };
    all.into_iter().map(with_text).collect()
}

#[test]
fn every_path_and_link_of_the_documents_exists() {
    let root = root();
    let mut all = Vec::new();
    files(&root, &root, &mut all);
    let mut missing = Vec::new();
    for (document, text) in texts() {
        let folder = root.join(&document).parent().unwrap().to_owned();
        let found = [missing_paths(&root, &text, &all), missing_links(&folder, &text)].concat();
        missing.extend(found.iter().map(|what| format!("{document}:{what}")));
    }
    assert!(missing.is_empty(), "not there:\n{}", missing.join("\n"));
}

#[test]
fn a_path_that_is_gone_is_found_and_a_placeholder_is_not() {
    let root = root();
    let files = ["crates/cli/tests/it/documents.rs".to_owned(), "devices/one.toml".to_owned()];
    let text = "`it/documents.rs` `crates/cli/tests` `devices/*.toml` `devices/NAME.toml` `a/b`\n\
                ```text\n`crates/fenced.rs`\n```\n`crates/gone.rs` [x](gone.md) [y](https://example.org) [z](#here)";
    assert_eq!(missing_paths(&root, text, &files), ["5: `crates/gone.rs`"]);
    assert_eq!(missing_links(&root, text), ["5: (gone.md)"]);
}

#[test]
fn the_table_of_data_centre_drives_is_that_of_the_presets() {
    let page = fs::read_to_string(root().join("docs/devices.md")).unwrap();
    let rows = page.lines().skip_while(|line| !line.starts_with("## Data-centre drives")).skip(1);
    let rows: Vec<Vec<&str>> = rows
        .take_while(|line| !line.starts_with("## "))
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.split('|').map(|cell| cell.trim().trim_matches('`')).collect())
        .collect();
    assert_eq!(rows.len(), 8, "{rows:?}");
    for row in rows {
        let drive = DeviceConfig::preset(row[1]).unwrap();
        let parity = format!("{} of {}", drive.ftl.parity_pages, drive.flash_pages_per_superpage());
        assert_eq!(row[3..5], [format!("{:.0} %", 100.0 * drive.over_provisioning()), parity], "{}", row[1]);
    }
}

/// The number that a word or digits stand for, up to twenty in words.
fn number(word: &str) -> Option<usize> {
    const WORDS: [&str; 20] = [
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
        "twenty",
    ];
    let in_words = || WORDS.iter().position(|each| *each == word.to_lowercase()).map(|at| at + 1);
    word.parse().ok().or_else(in_words)
}

/// The numbers that a text gives before this phrase, links and line breaks aside.
fn counts(text: &str, phrase: &str) -> Vec<usize> {
    let plain = text.split_whitespace().collect::<Vec<_>>().join(" ").replace(['[', '*'], "");
    let before = plain.match_indices(phrase).map(|(at, _)| plain[..at].trim_end());
    before.filter_map(|text| number(text.rsplit(' ').next()?)).collect()
}

#[test]
fn readme_and_changelog_count_what_there_is() {
    let policies = flashwise_bufferpool::policies().len();
    let formats = flashwise_trace::TraceFormat::all().count();
    let of_gc = flashwise_ssd::config::GcPolicy::ALL.len();
    let counted = [
        ("parameters of a drive", flashwise_profile::Parameters::default().entries().len()),
        ("rules", flashwise_audit::Rule::ALL.len()),
        ("buffer-pool policies", policies),
        ("replacement policies", policies),
        ("garbage-collection policies", of_gc),
        ("victim policies", of_gc),
        ("trace formats", formats),
        ("formats, compressed", formats),
        ("presets, your own", flashwise_ssd::Preset::all().count()),
    ];
    let text = ["README.md", "CHANGELOG.md"].map(|path| fs::read_to_string(root().join(path)).unwrap()).concat();
    for (phrase, there_are) in counted {
        let named = counts(&text, phrase);
        assert!(!named.is_empty(), "neither document has a number of {phrase}");
        assert_eq!(named, vec![there_are; named.len()], "{phrase}");
    }
}
