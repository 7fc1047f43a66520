//! The tables in `docs/studies` are those of the runs whose JSON lies in `docs/studies/data`.
//!
//! `flashwise study NAME -o json > docs/studies/data/NAME.json` renews a run, and `UPDATE_TABLES=1 cargo test -p
//! flashwise-cli --test it study_tables` writes its tables into the page. `NAME.WHAT.json` is a run with other options
//! (`scripts/study-tables` has them). In a page, a line
//!
//! - `<!-- table: NAME claims -->` starts the table of the claims;
//! - `<!-- table: NAME 2.1 columns 1 3 rows 1 2 -->` starts the first table of the second section, or these columns and
//!   rows of it. The header is the page's own, if it has one.
//!
//! `<!-- end -->` ends either.

use std::fs;
use std::path::{Path, PathBuf};

use flashwise_report::study::{StudyCell, StudyDocument, StudyTable};

/// The environment variable that has the tables rewritten instead of compared.
const UPDATE: &str = "UPDATE_TABLES";

const START: &str = "<!-- table: ";
const END: &str = "<!-- end -->";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/studies").canonicalize().unwrap()
}

/// The files of a folder with that extension, in order.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == extension)).collect();
    found.sort();
    found
}

fn run_of(name: &str) -> StudyDocument {
    let path = folder().join("data").join(format!("{name}.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let run: StudyDocument = serde_json::from_str(&text).unwrap();
    assert_eq!(Some(run.name.as_str()), name.split('.').next(), "{}", path.display());
    run
}

fn line(cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<String> = cells.into_iter().map(|cell| cell.replace('|', "\\|")).collect();
    format!("| {} |", cells.join(" | "))
}

/// What a marker chooses: numbers behind a word, counted from 1; all where the word is not there.
fn chosen(words: &[&str], key: &str, all: usize) -> Vec<usize> {
    let Some(at) = words.iter().position(|word| *word == key) else { return (0..all).collect() };
    words[at + 1..].iter().map_while(|word| word.parse::<usize>().ok()).map(|number| number - 1).collect()
}

fn claims(run: &StudyDocument) -> (Vec<String>, Vec<String>) {
    let header = vec![line(["published", "measured", "verdict"].map(str::to_owned)), "|---|---|---|".to_owned()];
    let rows = run
        .claims
        .iter()
        .map(|claim| line([claim.claim.clone(), claim.measured.clone(), claim.verdict.words().to_owned()]));
    let quick = if run.quick { " --quick" } else { "" };
    let command = format!("From `flashwise study {}{quick} --seed {}`.", run.name, run.seed);
    (header, rows.chain([String::new(), command]).collect())
}

fn numbers(table: &StudyTable, words: &[&str]) -> (Vec<String>, Vec<String>) {
    let columns = chosen(words, "columns", table.columns.len());
    let rows = chosen(words, "rows", table.rows.len());
    let header = line(columns.iter().map(|column| table.columns[*column].clone()));
    let rule = format!("|{}", "---|".repeat(columns.len()));
    let row = |row: &usize| line(columns.iter().map(|column| StudyCell::words(&table.rows[*row][*column])));
    (vec![header, rule], rows.iter().map(row).collect())
}

/// Header and body of the table that a marker names.
fn table(marker: &str) -> (Vec<String>, Vec<String>) {
    let words: Vec<&str> = marker.split_whitespace().collect();
    let run = run_of(words[0]);
    match words[1] {
        "claims" => claims(&run),
        place => {
            let (section, table) = place.split_once('.').unwrap_or_else(|| panic!("{marker}: neither claims nor 2.1"));
            let index = |number: &str| number.parse::<usize>().unwrap() - 1;
            numbers(&run.sections[index(section)].tables[index(table)], &words[2..])
        }
    }
}

/// A page with its tables as the runs have them.
fn with_tables(page: &str) -> String {
    let mut lines = page.lines().peekable();
    let mut out: Vec<String> = Vec::new();
    while let Some(line) = lines.next() {
        out.push(line.to_owned());
        let Some(marker) = line.strip_prefix(START).and_then(|rest| rest.strip_suffix(" -->")) else { continue };
        let (header, body) = table(marker);
        let own: Vec<&str> = lines.by_ref().take_while(|line| *line != END).collect();
        let is_header = |own: &&[&str]| own[0].starts_with('|') && own[1].starts_with("|--");
        match own.get(..2).filter(is_header) {
            Some(own) => {
                let cells = |line: &str| line.matches('|').count();
                assert_eq!(
                    cells(own[1]),
                    cells(&header[1]),
                    "{marker}: its header has another number of columns (delete it for the one of the run)"
                );
                out.extend(own.iter().map(|line| (*line).to_owned()));
            }
            None => out.extend(header),
        }
        out.extend(body);
        out.extend([String::new(), END.to_owned()]);
    }
    out.join("\n") + "\n"
}

#[test]
fn the_tables_of_the_studies_are_those_of_the_runs_beside_them() {
    let mut stale = Vec::new();
    let mut pages = String::new();
    for path in files(&folder(), "md") {
        let page = fs::read_to_string(&path).unwrap();
        let renewed = with_tables(&page);
        if page != renewed {
            match std::env::var_os(UPDATE) {
                Some(_) => fs::write(&path, &renewed).unwrap(),
                None => stale.push(path.display().to_string()),
            }
        }
        pages.push_str(&renewed);
    }
    assert!(stale.is_empty(), "not the tables of the runs; {UPDATE}=1 writes them:\n{}", stale.join("\n"));
    for path in files(&folder().join("data"), "json") {
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(pages.contains(&format!("{START}{name} ")), "no page shows {}", path.display());
    }
}

#[test]
fn a_header_of_the_page_stays_and_rows_are_the_runs() {
    let page = "a\n<!-- table: gc-organisation 4.1 columns 1 2 rows 1 -->\n| n | greedy |\n|---|---|\n| old | 7 |\n\n<!-- end -->\nb\n";
    let renewed = with_tables(page);
    assert!(
        renewed.starts_with("a\n<!-- table: gc-organisation 4.1 columns 1 2 rows 1 -->\n| n | greedy |\n|---|---|\n| ")
    );
    assert!(renewed.ends_with(" |\n\n<!-- end -->\nb\n") && !renewed.contains("old"), "{renewed}");
    assert_eq!(renewed.lines().count(), 8);
}
