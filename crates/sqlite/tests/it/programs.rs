//! SQLite's other test programs on the VFS: mptester (processes that write one database, and crash), threadtest3
//! (threads that do), kvtest (large blobs), speedtest1 (every kind of statement) and fuzzcheck (SQL and databases that
//! broke SQLite once).
//!
//! `scripts/sqlite-suite` builds mptester and kvtest, `scripts/sqlite-suite all` the others too; without them the tests
//! say so and skip.

use crate::configurations;
use crate::sqlite_programs;
use crate::support;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use configurations::{CONFIGURATIONS, Configuration};
use flashwise_sqlite::{Vfs, VfsOptions};
use sqlite_programs::{Outcome, Suite, in_parallel};
use support::{integrity, open, unique};

/// SQLite's own, and so that of programs that choose none.
const DEFAULT_PAGE: u32 = 4096;
const ALL_TOGETHER: &Configuration = &CONFIGURATIONS[CONFIGURATIONS.len() - 1];

/// Runs a program on `test.db` in a directory of its own; what it said, or what is wrong: it failed, or the database
/// that it left is not sound.
fn run(
    suite: &Suite,
    configuration: &Configuration,
    page: Option<u32>,
    program: &str,
    commands: &[Vec<PathBuf>],
) -> Result<String, String> {
    let work = suite.workplace();
    let mut said = String::new();
    for arguments in commands {
        let Outcome { status, text } = suite.run(configuration, page, work.path(), 600, program, arguments);
        said.push_str(&text);
        if !status.success() {
            return Err(format!("{status}: {}", last_lines(&text)));
        }
    }
    let database = work.path().join("test.db");
    if database.exists() {
        let vfs = Vfs::install(&unique("look"), VfsOptions::PLAIN, false).unwrap();
        let found = integrity(&open(database.to_str().unwrap(), vfs.name()));
        if found != "ok" {
            return Err(format!("the database is damaged: {found}"));
        }
    }
    Ok(said)
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}

fn words(text: &str) -> Vec<PathBuf> {
    text.split(' ').map(PathBuf::from).collect()
}

/// The number of tests in `0 errors out of N tests`; an error with anything else.
fn tests_without_error(said: &str) -> Result<usize, String> {
    let count = said.lines().rev().find_map(|line| {
        let (errors, tests) = line.rsplit_once(" errors out of ")?;
        let is_none = errors.rsplit(' ').next() == Some("0");
        tests.split(' ').next()?.parse().ok().filter(|_| is_none)
    });
    count.ok_or_else(|| last_lines(said))
}

/// Something to run under some configuration: what it is called, and what it finds.
struct Job<'a> {
    name: String,
    work: Box<dyn Fn() -> Result<String, String> + Sync + 'a>,
}

/// Runs jobs, so many at a time, and tells of each what it found and how long it took.
fn all_pass(jobs: &[Job<'_>], at_once: usize) {
    let wrong = Mutex::new(Vec::new());
    in_parallel(jobs, at_once, |job| {
        let began = Instant::now();
        let found = (job.work)();
        let seconds = began.elapsed().as_secs();
        match found {
            Ok(found) => println!("{}: {found} ({seconds} s)", job.name),
            Err(why) => wrong.lock().unwrap().push(format!("{} ({seconds} s): {why}", job.name)),
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "what SQLite's own VFS does not get wrong:\n{}", wrong.join("\n"));
}

/// Several processes by a script of SQLite's, which also kills some of them in the middle of a transaction.
fn mptester<'a>(suite: &'a Suite, configuration: &'a Configuration, script: &'a str, journal: &'a str) -> Job<'a> {
    let name = format!("{}: mptester {script} with journal_mode {journal}", configuration.name);
    let work = move || {
        let mut arguments = words(&format!("test.db --quiet --journalmode {journal}"));
        arguments.push(suite.path("mptest").join(script));
        // What these scripts configure is the page size, among others.
        let page = (!script.starts_with("config")).then_some(DEFAULT_PAGE);
        let tests = tests_without_error(&run(suite, configuration, page, "mptester", &[arguments])?)?;
        match tests > 20 {
            true => Ok(format!("{tests} tests")),
            false => Err(format!("{tests} tests only")),
        }
    };
    Job { name, work: Box::new(work) }
}

const MPTESTER: &[&str] = &["mptester"];
const SCRIPTS: &[&str] = &["mptest"];

/// The scripts: what config01 does to journals, it does on SQLite's own VFS only, going by its name. Ours takes the
/// same.
fn scripts_for_any_vfs(suite: &Suite) {
    let (path, condition) = (suite.path("mptest/config01.test"), "--if vfsname() GLOB 'unix'\n");
    let script = fs::read_to_string(&path).unwrap();
    assert_eq!(script.matches(condition).count(), 1);
    fs::write(&path, script.replace(condition, "")).unwrap();
}

#[test]
fn processes_that_write_one_database_do_not_get_in_each_others_way() {
    let Some(suite) = Suite::find(MPTESTER, SCRIPTS) else { return };
    let jobs = [
        mptester(&suite, &CONFIGURATIONS[2], "multiwrite01.test", "wal"),
        mptester(&suite, ALL_TOGETHER, "multiwrite01.test", "delete"),
    ];
    all_pass(&jobs, 2);
}

/// A change of the page size, which both config scripts are about, needs a rollback journal.
#[test]
#[ignore = "minutes: make test-full runs it"]
fn processes_that_write_and_crash_do_not_get_in_each_others_way_under_any_technique() {
    let Some(suite) = Suite::find(MPTESTER, SCRIPTS) else { return };
    scripts_for_any_vfs(&suite);
    let scripts = [
        ("multiwrite01.test", "wal"),
        ("multiwrite01.test", "delete"),
        ("crash01.test", "wal"),
        ("crash01.test", "delete"),
        ("crash01.test", "persist"),
        ("config01.test", "delete"),
        ("config02.test", "truncate"),
    ];
    let jobs: Vec<Job<'_>> = CONFIGURATIONS
        .iter()
        .flat_map(|configuration| scripts.map(|(script, journal)| mptester(&suite, configuration, script, journal)))
        .collect();
    all_pass(&jobs, 2);
}

/// Blobs that fill several pages, written, overwritten in random order and read through the blob interface.
fn kvtest<'a>(suite: &'a Suite, configuration: &'a Configuration, page: u32, journal: &'a str) -> Job<'a> {
    let name = format!("{}: kvtest with pages of {page} and journal_mode {journal}", configuration.name);
    let work = move || {
        let commands = [
            words(&format!("init test.db --count 100 --size 30000 --variance 20000 --pagesize {page}")),
            words(&format!("run test.db --count 100 --random --update --jmode {journal} --integrity-check")),
            words("run test.db --count 100 --update --blob-api --multitrans --cache-size 5"),
            words("run test.db --count 100 --desc --cache-size 5 --integrity-check"),
            words("stat test.db --vacuum"),
        ];
        let said = run(suite, configuration, Some(page), "kvtest", &commands)?;
        let sound = said.to_lowercase().matches("integrity-check:").count();
        let ok =
            said.lines().filter(|line| line.to_lowercase().starts_with("integrity-check:") && line.ends_with(" ok"));
        let entries = said.lines().find_map(|line| line.strip_prefix("Number of entries:"));
        match ok.count() == 3 && sound == 3 && entries.map(str::trim) == Some("100") {
            true => Ok("100 blobs".into()),
            false => Err(last_lines(&said)),
        }
    };
    Job { name, work: Box::new(work) }
}

#[test]
fn large_blobs_are_written_and_read_under_every_technique() {
    let Some(suite) = Suite::find(&["kvtest"], &[]) else { return };
    let jobs: Vec<Job<'_>> = CONFIGURATIONS
        .iter()
        .flat_map(|configuration| {
            [(4096, "wal"), (65536, "delete")].map(|(page, journal)| kvtest(&suite, configuration, page, journal))
        })
        .collect();
    all_pass(&jobs, 2);
}

/// Threads on one database, each case for some seconds. Left out: lookaside1, which is about memory, and stress2, which
/// is stress1 for a minute.
#[test]
#[ignore = "ten minutes: make test-full runs it"]
fn threads_that_write_one_database_do_not_get_in_each_others_way_under_any_technique() {
    let Some(suite) = Suite::find(&["threadtest3"], &[]) else { return };
    let cases = [
        "walthread1",
        "walthread2",
        "walthread3",
        "walthread4",
        "walthread5",
        "cgt_pager_1",
        "dynamic_triggers",
        "checkpoint_starvation_1",
        "checkpoint_starvation_2",
        "create_drop_index_1",
        "vacuum1",
        "stress1",
        "shared1",
    ];
    // These two look for files that are called -journal and -wal, which databases that are laid out have not.
    let goes_by_names = ["walthread2", "walthread5"];
    let job = |configuration: &'static Configuration, case: &'static str| {
        let suite = &suite;
        let work = move || {
            let said = run(suite, configuration, Some(DEFAULT_PAGE), "threadtest3", &[words(case)])?;
            tests_without_error(&said).map(|_| "no error".into())
        };
        Job { name: format!("{}: threadtest3 {case}", configuration.name), work: Box::new(work) }
    };
    let mut jobs = Vec::new();
    for configuration in &CONFIGURATIONS {
        let cases = cases.iter().filter(|case| !configuration.layout || !goes_by_names.contains(case));
        jobs.extend(cases.map(|case| job(configuration, case)));
    }
    // They wait more than they work.
    all_pass(&jobs, 3);
}

/// What `--verify` adds up over all answers.
fn speedtest1(suite: &Suite, configuration: &Configuration, options: &str) -> Result<String, String> {
    let mut words_of = options.split(' ').skip_while(|&word| word != "--pagesize").skip(1);
    let page = words_of.next().map_or(DEFAULT_PAGE, |page| page.parse().unwrap());
    let arguments = words(&format!("{options} --size 5 --verify test.db"));
    let said = run(suite, configuration, Some(page), "speedtest1", &[arguments])?;
    let hash = said.lines().find(|line| line.starts_with("Verification Hash: "));
    hash.map(str::to_owned).ok_or_else(|| last_lines(&said))
}

#[test]
#[ignore = "minutes: make test-full runs it"]
fn every_answer_is_the_same_under_every_technique() {
    let Some(suite) = Suite::find(&["speedtest1"], &[]) else { return };
    let ways = [
        "--journal delete --cachesize 50",
        "--journal wal --checkpoint",
        "--journal wal --pagesize 512 --incrvacuum --cachesize 50",
        "--journal truncate --pagesize 65536 --autovacuum",
        "--journal persist --pagesize 16384 --big-transactions",
        "--journal wal --exclusive --pagesize 65536 --temp 6",
        "--testset orm --journal wal --without-rowid",
    ];
    for options in ways {
        let expected = speedtest1(&suite, &CONFIGURATIONS[0], options).unwrap();
        let job = |configuration: &'static Configuration| {
            let (suite, expected) = (&suite, &expected);
            let work = move || match speedtest1(suite, configuration, options)? {
                found if found == *expected => Ok(found),
                other => Err(format!("{other}, not {expected}")),
            };
            Job { name: format!("{}: speedtest1 {options}", configuration.name), work: Box::new(work) }
        };
        all_pass(&CONFIGURATIONS[1..].iter().map(job).collect::<Vec<_>>(), 2);
    }
}

/// fuzzcheck keeps its databases in memory; what comes to the VFS of its own is temporary files and what the SQL
/// attaches. So two configurations are enough.
#[test]
#[ignore = "two minutes: make test-full runs it"]
fn what_once_broke_sqlite_breaks_nothing() {
    let files: Vec<String> = (1..=8).map(|n| format!("fuzzdata{n}.db")).collect();
    let sources: Vec<String> = files.iter().map(|file| format!("test/{file}")).collect();
    let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
    let Some(suite) = Suite::find(&["fuzzcheck"], &sources) else { return };
    let job = |configuration: &'static Configuration, file: &str| {
        let (suite, path) = (&suite, suite.path(file));
        let work = move || {
            let said = run(suite, configuration, Some(DEFAULT_PAGE), "fuzzcheck", &[vec![path.clone()]])?;
            let tests = tests_without_error(&said)?;
            (tests > 500).then(|| format!("{tests} tests")).ok_or_else(|| format!("{tests} tests only"))
        };
        Job { name: format!("{}: fuzzcheck {file}", configuration.name), work: Box::new(work) }
    };
    let jobs: Vec<Job<'_>> =
        files.iter().flat_map(|file| [&CONFIGURATIONS[0], ALL_TOGETHER].map(|under| job(under, file))).collect();
    all_pass(&jobs, 2);
}
