//! SQLite's sqllogictest scripts on the VFS: each under the next technique, in a file, with its log and its rollback
//! journal in turn, and with a page cache so small that most pages go through the VFS again and again.
//!
//! The scripts (https://www.sqlite.org/sqllogictest, public domain, a gigabyte) are in no package that a test could
//! install. `FLASHWISE_SQLLOGICTEST` names a directory with `*.test` files; without it the test says so and skips.
//!
//! Source of the format: "sqllogictest: About" on that site.

use crate::configurations;
use crate::sqlite_programs;
use crate::support;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use configurations::{CONFIGURATIONS, Configuration, page_for};
use flashwise_sqlite::{Vfs, VfsOptions};
use md5::{Digest, Md5};
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use sqlite_programs::in_parallel;
use support::{open, unique};

/// One entry of a script.
#[derive(Debug, PartialEq)]
enum Record {
    Statement { succeeds: bool, sql: String },
    Query { types: String, sort: Sort, sql: String, expected: Vec<String> },
    Halt,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Sort {
    Not,
    Rows,
    Values,
}

/// The entries that are meant for SQLite, with the line that each begins at.
fn parse(script: &str) -> Vec<(usize, Record)> {
    let mut records = Vec::new();
    let mut lines = (1..).zip(script.lines().map(|line| line.trim_end_matches('\r'))).peekable();
    let mut is_ours = true;
    while let Some((number, line)) = lines.next() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let record = match words[..] {
            [] => continue,
            // What is hashed says so itself.
            ["hash-threshold", ..] => continue,
            [word, ..] if word.starts_with('#') => continue,
            ["skipif", database, ..] => {
                is_ours &= database != "sqlite";
                continue;
            }
            ["onlyif", database, ..] => {
                is_ours &= database == "sqlite";
                continue;
            }
            ["halt", ..] => Record::Halt,
            ["statement", outcome, ..] => {
                let sql = until_blank(&mut lines).join("\n");
                Record::Statement { succeeds: outcome == "ok", sql }
            }
            ["query", types, ref rest @ ..] => {
                let body = until_blank(&mut lines);
                let end = body.iter().position(|line| *line == "----").unwrap_or(body.len());
                let sort = match rest.first() {
                    Some(&"rowsort") => Sort::Rows,
                    Some(&"valuesort") => Sort::Values,
                    _ => Sort::Not,
                };
                let expected = body.iter().skip(end + 1).map(|&line| line.to_owned()).collect();
                Record::Query { types: types.to_owned(), sort, sql: body[..end].join("\n"), expected }
            }
            _ => panic!("line {number}: no entry of sqllogictest begins so: {line}"),
        };
        if std::mem::replace(&mut is_ours, true) {
            records.push((number, record));
        }
    }
    records
}

fn until_blank<'a>(lines: &mut impl Iterator<Item = (usize, &'a str)>) -> Vec<&'a str> {
    lines.map(|(_, line)| line).take_while(|line| !line.trim().is_empty()).collect()
}

/// A value as sqllogictest writes it: an integer, a number with three decimals, or text.
fn rendered(kind: char, value: ValueRef<'_>) -> String {
    let number = |text: &[u8]| -> f64 {
        let text = String::from_utf8_lossy(text);
        let end = text.find(|c: char| !"+-.0123456789eE".contains(c)).unwrap_or(text.len());
        (0..=end).rev().find_map(|end| text[..end].parse().ok()).unwrap_or(0.0)
    };
    match (kind, value) {
        (_, ValueRef::Null) => "NULL".to_owned(),
        ('I', ValueRef::Integer(value)) => value.to_string(),
        ('I', ValueRef::Real(value)) => (value as i64).to_string(),
        ('I', ValueRef::Text(text) | ValueRef::Blob(text)) => (number(text) as i64).to_string(),
        ('R', ValueRef::Integer(value)) => format!("{:.3}", value as f64),
        ('R', ValueRef::Real(value)) => format!("{value:.3}"),
        ('R', ValueRef::Text(text) | ValueRef::Blob(text)) => format!("{:.3}", number(text)),
        (_, ValueRef::Integer(value)) => value.to_string(),
        (_, ValueRef::Real(value)) => format!("{value:?}"),
        (_, ValueRef::Text([]) | ValueRef::Blob([])) => "(empty)".to_owned(),
        (_, ValueRef::Text(text) | ValueRef::Blob(text)) => {
            text.iter().map(|&byte| if (b' '..=b'~').contains(&byte) { char::from(byte) } else { '@' }).collect()
        }
    }
}

/// What a query gives, in the order and the form that the script compares.
fn results(db: &Connection, types: &str, sort: Sort, sql: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = db.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut found: Vec<Vec<String>> = Vec::new();
    // Its own runner takes an error of SQL in the midst of a query (a sum that overflows) for the end of the rows.
    let is_of_sql = |error: &rusqlite::Error| error.sqlite_error().is_some_and(|error| error.extended_code == 1);
    while let Some(row) = rows.next().or_else(|error| if is_of_sql(&error) { Ok(None) } else { Err(error) })? {
        let values = types.chars().enumerate().map(|(at, kind)| Ok(rendered(kind, row.get_ref(at)?)));
        found.push(values.collect::<rusqlite::Result<_>>()?);
    }
    if sort == Sort::Rows {
        found.sort();
    }
    let mut values: Vec<String> = found.into_iter().flatten().collect();
    if sort == Sort::Values {
        values.sort();
    }
    Ok(values)
}

/// How many values, and their MD5.
fn hashed(values: &[String]) -> String {
    let mut hash = Md5::new();
    values.iter().for_each(|value| hash.update(format!("{value}\n")));
    let digest = hash.finalize().iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    });
    format!("{} values hashing to {digest}", values.len())
}

/// Whether values are as a script has them: written out, hashed, or left out.
fn is_as_expected(values: &[String], expected: &[String]) -> bool {
    match expected {
        [] => true,
        [hash] if hash.contains(" values hashing to ") => *hash == hashed(values),
        written => written == values,
    }
}

/// Runs a script; tells how many entries it had, or the first that came out otherwise.
fn run(db: &Connection, script: &str) -> Result<u64, String> {
    let mut done = 0;
    for (line, record) in parse(script) {
        match record {
            Record::Halt => break,
            Record::Statement { succeeds, sql } => {
                let outcome = db.execute_batch(&sql);
                if outcome.is_ok() != succeeds {
                    return Err(format!("line {line}: {outcome:?}: {sql}"));
                }
                done += 1;
            }
            Record::Query { types, sort, sql, expected } => {
                let values = results(db, &types, sort, &sql).map_err(|error| format!("line {line}: {error}: {sql}"))?;
                if !is_as_expected(&values, &expected) {
                    return Err(format!("line {line}: {values:?} instead of {expected:?}: {sql}"));
                }
                done += 1;
            }
        }
    }
    Ok(done)
}

fn run_file(path: &Path, configuration: &Configuration, journal: &str) -> Result<u64, String> {
    let directory = tempfile::tempdir().unwrap();
    let vfs = Vfs::install(&unique("logic"), VfsOptions::from_text(configuration.techniques).unwrap(), false).unwrap();
    let database = directory.path().join("logic.db");
    let db = open(database.to_str().unwrap(), vfs.name());
    let page = page_for(configuration.techniques, 1024);
    db.execute_batch(&format!(
        "PRAGMA page_size = {page}; PRAGMA journal_mode = {journal}; PRAGMA synchronous = normal; PRAGMA cache_size = 12"
    ))
    .unwrap();
    run(&db, &String::from_utf8_lossy(&std::fs::read(path).unwrap()))
}

fn scripts(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(scripts(&path)),
            false if path.extension().is_some_and(|extension| extension == "test") => found.push(path),
            false => {}
        }
    }
    found.sort();
    found
}

#[test]
fn the_scripts_of_sqllogictest_give_what_they_say_under_every_technique() {
    let Some(directory) = std::env::var_os("FLASHWISE_SQLLOGICTEST") else {
        println!("skipped: FLASHWISE_SQLLOGICTEST names no directory with scripts of sqllogictest");
        return;
    };
    let scripts: Vec<(usize, PathBuf)> = scripts(Path::new(&directory)).into_iter().enumerate().collect();
    assert!(!scripts.is_empty(), "no *.test in {}", Path::new(&directory).display());
    let (entries, wrong) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    in_parallel(&scripts, 2, |(number, path)| {
        let configuration = &CONFIGURATIONS[number % CONFIGURATIONS.len()];
        let journal = ["wal", "delete"][number / CONFIGURATIONS.len() % 2];
        match run_file(path, configuration, journal) {
            Ok(done) => _ = entries.fetch_add(done, Ordering::Relaxed),
            Err(why) => wrong.lock().unwrap().push(format!(
                "{}, {}, {journal}: {}",
                path.display(),
                configuration.name,
                why.chars().take(500).collect::<String>()
            )),
        }
    });
    let wrong = wrong.into_inner().unwrap();
    println!("{} statements and queries of {} scripts", entries.into_inner(), scripts.len());
    assert!(wrong.is_empty(), "{} of {} scripts:\n{}", wrong.len(), scripts.len(), wrong.join("\n"));
}

#[test]
fn a_script_is_read_as_it_is_meant_and_a_wrong_answer_is_told() {
    let script = "hash-threshold 3\n\nstatement ok\nCREATE TABLE t (a, b)\n\n# rows\nstatement ok\n\
        INSERT INTO t VALUES (2, 'x'), (1, ''), (NULL, 0.5)\n\nstatement error\nINSERT INTO u VALUES (1)\n\n\
        skipif sqlite\nstatement ok\nnot for us\n\nonlyif mysql # aggregate syntax\nquery I\nnor this\n\n\
        query I rowsort label-1\nSELECT a FROM t\n----\n1\n2\nNULL\n\n\
        query T nosort\nSELECT b FROM t WHERE a = 1\n----\n(empty)\n\n\
        query R\nSELECT b FROM t WHERE a IS NULL\n----\n0.500\n\n\
        query II valuesort\nSELECT a, a FROM t WHERE a IS NOT NULL\n----\n4 values hashing to HASH\n\nhalt\n\nnonsense\n";
    let script = script.replace("HASH", "361619205d8fd52692717ea4890ccf94").replace("nonsense\n", "");
    let database = || Connection::open_in_memory().unwrap();
    let records = parse(&script);
    assert_eq!(records.len(), 8);
    assert_eq!(records[7].1, Record::Halt);
    assert_eq!(run(&database(), &script), Ok(7));
    let told = run(&database(), &script.replace("\n0.500", "\n0.501")).unwrap_err();
    assert!(told.contains("0.500") && told.contains("0.501"), "{told}");
    let told = run(&database(), &script.replace("to 3616", "to 3617")).unwrap_err();
    assert!(told.contains("3617"), "{told}");
    let told = run(&database(), &script.replace("statement error", "statement ok")).unwrap_err();
    assert!(told.contains("no such table: u"), "{told}");
}
