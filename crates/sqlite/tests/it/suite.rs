//! SQLite's own tests on the VFS: `testfixture` from SQLite's source, with flashwise as its default VFS.
//!
//! Each configuration must have no error that SQLite's own VFS does not have. What differs for a reason stands in
//! `suite/known-differences.txt`, with the reason. `scripts/sqlite-suite` builds the program; without it the tests say
//! so and skip.

use crate::configurations;
use crate::sqlite_programs;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use configurations::{CONFIGURATIONS, Configuration, techniques_for};
use sqlite_programs::{Outcome, Suite, in_parallel};

/// What `make test` runs: a file of each part of SQLite that has to do with files.
const SELECTION: [&str; 28] = [
    "attach",
    "autovacuum",
    "bigfile2",
    "corruptA",
    "crash5",
    "delete",
    "e_vacuum",
    "e_walckpt",
    "incrblob",
    "incrvacuum",
    "insert",
    "ioerr4",
    "journal1",
    "journal2",
    "jrnlmode",
    "jrnlmode3",
    "lock",
    "pagesize",
    "rollback",
    "savepoint",
    "select1",
    "superlock",
    "update",
    "vacuum",
    "wal2",
    "wal4",
    "walbak",
    "walro",
];

/// A difference that is known: where it holds, the test file, the test (with * at its end for more), the reason.
struct Known {
    scope: String,
    file: String,
    test: String,
}

fn known() -> Vec<Known> {
    let text = include_str!("../../suite/known-differences.txt");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (what, reason) = line.split_once('|').expect("a reason behind a bar");
            assert!(!reason.trim().is_empty(), "without a reason: {line}");
            let mut words = what.split_whitespace().map(str::to_owned);
            let mut word = || words.next().expect("scope, file and test");
            Known { scope: word(), file: word(), test: word() }
        })
        .collect()
}

impl Known {
    fn covers(&self, configuration: &Configuration, file: &str, test: &str) -> bool {
        let holds = match self.scope.as_str() {
            "any" => true,
            "layout" => configuration.layout,
            "held" => configuration.holds_back,
            "discard" => configuration.discards,
            "batch" => configuration.batches,
            other => panic!("no scope is called {other}"),
        };
        let is_test = self.test.strip_suffix('*').map_or(test == self.test, |start| test.starts_with(start));
        holds && self.file == file && is_test
    }
}

/// Runs one file; tells its tests and the names of those that failed.
fn run(suite: &Suite, configuration: &Configuration, file: &str) -> (usize, Vec<String>) {
    let work = suite.workplace();
    let mut arguments = vec![suite.path("test").join(format!("{file}.test"))];
    if configuration.layout {
        arguments.insert(0, suite.path("places.tcl"));
    }
    // A file ends after a thousand differences, known or not; this one goes on behind them. Others take no arguments.
    if file == "walcrash2" {
        arguments.push("--maxerror=1000000".into());
    }
    // walcrash3 alone syncs for minutes.
    // Its pages are of 1 KiB, and many files change them, so that it has no hot locations.
    let Outcome { status, text } = suite.run(configuration, None, work.path(), 1200, "testfixture", &arguments);
    let count = text.lines().find_map(|line| line.split_once(" errors out of ")?.1.split(' ').next()?.parse().ok());
    let failed = text.lines().find_map(|line| line.strip_prefix("!Failures on these tests:"));
    let mut failed: Vec<String> = failed.unwrap_or("").split_whitespace().map(str::to_owned).collect();
    if count.is_none() {
        failed.push(format!("(it did not reach its end: {status})"));
    }
    (count.unwrap_or(0), failed)
}

/// Runs files, two at a time; tells how many tests there were, and every failure that nothing explains.
fn run_all(suite: &Suite, configuration: &Configuration, files: &[String]) -> (usize, usize, Vec<String>) {
    let (tests, explained) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let unexplained = Mutex::new(Vec::new());
    let known = known();
    in_parallel(files, 2, |file| {
        let (count, failed) = run(suite, configuration, file);
        tests.fetch_add(count, Ordering::Relaxed);
        for test in failed {
            if known.iter().any(|known| known.covers(configuration, file, &test)) {
                explained.fetch_add(1, Ordering::Relaxed);
            } else {
                unexplained.lock().unwrap().push(format!("{file}.test: {test}"));
            }
        }
    });
    (tests.into_inner(), explained.into_inner(), unexplained.into_inner().unwrap())
}

fn check(suite: &Suite, files: &[String]) {
    let mut all = Vec::new();
    let is_tried = |configuration: &&Configuration| !techniques_for(configuration.techniques, None).is_empty();
    for configuration in CONFIGURATIONS.iter().filter(is_tried) {
        let (tests, explained, unexplained) = run_all(suite, configuration, files);
        let name = configuration.name;
        println!(
            "{name}: {tests} tests of {} files, {explained} known differences, {} errors",
            files.len(),
            unexplained.len()
        );
        assert!(tests > files.len(), "{name}: the files hold more tests than {tests}");
        all.extend(unexplained.into_iter().map(|test| format!("{name}: {test}")));
    }
    assert!(all.is_empty(), "errors that SQLite's own VFS does not have:\n{}", all.join("\n"));
}

#[test]
fn a_selection_of_sqlites_own_tests_passes_under_every_technique() {
    let Some(suite) = Suite::find(&["testfixture"], &["test"]) else { return };
    check(&suite, &SELECTION.map(str::to_owned));
}

/// Everything that `veryquick` runs, for each configuration: half an hour on two cores. Files that are named in
/// `FLASHWISE_SQLITE_TESTS`, as in "wal walro", are run alone.
#[test]
#[ignore = "half an hour: make test-full runs it"]
fn sqlites_own_tests_pass_under_every_technique() {
    let Some(suite) = Suite::find(&["testfixture"], &["test"]) else { return };
    let mut files: Vec<String> = include_str!("../../suite/files.txt").lines().map(str::to_owned).collect();
    assert!(files.len() > 900);
    if let Ok(named) = std::env::var("FLASHWISE_SQLITE_TESTS") {
        files = named.split_whitespace().map(str::to_owned).collect();
    }
    check(&suite, &files);
}

#[test]
fn every_known_difference_is_of_a_file_that_is_run_and_stands_once() {
    let files: BTreeSet<&str> = include_str!("../../suite/files.txt").lines().collect();
    let mut seen = BTreeSet::new();
    for known in known() {
        assert!(files.contains(known.file.as_str()), "{}", known.file);
        assert!(seen.insert((known.scope, known.file.clone(), known.test.clone())), "{} {}", known.file, known.test);
    }
}
