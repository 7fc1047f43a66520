//! `fit` with the built-in workload: on each kind of drive, in a directory, interrupted, and again from the same seed.

use crate::support;
use std::path::Path;
use std::sync::OnceLock;

use flashwise_audit::{Finding, Rule};
use flashwise_block::{BlockError, Progress, Silent};
use flashwise_profile::Verdict;
use flashwise_ssd::Preset;
use flashwise_tune::sqlite::{FitOptions, KeyValueWorkload, Workload, fit, learn_target};
use flashwise_tune::{Comparison, DEFAULT_TARGET, TuneError};
use support::{SMALL, TINY, is_empty, options, run, samsung, target};

fn small() -> FitOptions {
    options(Workload::KeyValue(SMALL))
}

/// The small workload on the default drive, run once.
fn fitted() -> &'static Comparison {
    static FITTED: OnceLock<Comparison> = OnceLock::new();
    FITTED.get_or_init(|| run(&small()))
}

fn tiny_in(directory: &Path) -> FitOptions {
    FitOptions { target: target(directory.to_str().unwrap()), ..options(Workload::KeyValue(TINY)) }
}

fn finding(findings: &[Finding], rule: Rule) -> &Finding {
    findings.iter().find(|finding| finding.rule == rule).unwrap()
}

/// Stops the work at its n-th call.
struct StopAt {
    calls: u32,
    n: u32,
}

impl Progress for StopAt {
    fn advance(&mut self, _stage: &str, fraction: f64) -> Result<(), BlockError> {
        assert!((0.0..=1.0).contains(&fraction), "{fraction}");
        self.calls += 1;
        if self.calls == self.n { Err(BlockError::Interrupted) } else { Ok(()) }
    }
}

#[test]
fn on_a_drive_with_hot_locations_of_its_own_selects_gain_by_the_published_margin() {
    let c = fitted();
    let ratio = c.after.select_per_s / c.before.select_per_s;
    assert!((1.2..2.0).contains(&ratio), "SELECT/s after ÷ before = {ratio}");
    let applied: Vec<_> = c.applied.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(applied, ["page_size", "use-hot-locations"]);
    assert!(c.applied.iter().all(|a| a.old_value != a.new_value && !a.reason.is_empty() && !a.undo.is_empty()));
    assert_eq!((c.default_page_size.page_bytes, c.before.page_bytes, c.after.page_bytes), (4096, 65536, 65536));
    let gain = c.gains.iter().find(|g| g.metric == "select_per_s" && g.from == "before" && g.to == "after").unwrap();
    assert!(gain.low <= gain.ratio && gain.ratio <= gain.high && (1.2..2.0).contains(&gain.ratio), "{gain:?}");
}

#[test]
fn reads_off_hot_locations_fall_from_all_of_them_to_those_of_the_headers() {
    let c = fitted();
    let rule = Rule::ReadChunksAtHotLocations;
    let (before, after) = (finding(&c.findings, rule), finding(&c.findings_after, rule));
    assert_eq!(before.violations, before.requests, "{before:?}");
    assert!(after.requests > 1000 && after.violations * 50 < after.requests, "{after:?}");
    let (cost, left) = (before.cost.time_ns.unwrap(), after.cost.time_ns.unwrap_or(0));
    assert!(cost > 0 && cost.unsigned_abs() < c.before.drive_time_ns, "{cost} of {}", c.before.drive_time_ns);
    assert!(left * 20 < cost, "{left} of {cost}");
}

#[test]
fn every_finding_with_violations_shows_one_and_says_what_would_help() {
    let c = fitted();
    assert!(c.findings.iter().any(|f| f.violations > 0));
    for f in c.findings.iter().chain(&c.findings_after) {
        assert!(f.violations <= f.requests, "{f:?}");
        assert_eq!(!f.examples.is_empty(), f.violations > 0, "{f:?}");
        assert!(!f.statement.is_empty() && !f.remedy.is_empty(), "{f:?}");
    }
}

#[test]
fn what_is_measured_adds_up() {
    let c = fitted();
    for run in [&c.default_page_size, &c.before, &c.after] {
        let flash = run.flash_bytes_programmed.unwrap();
        let amplification = flash as f64 / run.host_bytes_written as f64;
        assert!((run.write_amplification.unwrap() - amplification).abs() < 1e-9 && amplification >= 1.0, "{run:?}");
        assert!(run.select_rate.low <= run.select_per_s && run.select_per_s <= run.select_rate.high, "{run:?}");
        assert!(run.insert_rate.low <= run.insert_per_s && run.insert_per_s <= run.insert_rate.high, "{run:?}");
        assert_eq!(run.select_latency.count, 4 * 400);
        assert_eq!(run.transaction_latency.count, 4);
        assert_eq!(run.integrity_check, "ok");
        assert!(run.database_bytes > 10_000 * 100 && run.database_bytes % run.page_bytes == 0, "{run:?}");
    }
}

#[test]
fn on_drives_that_leave_nothing_to_gain_nothing_is_applied_and_all_runs_are_one() {
    for name in ["sim:toshiba-xg5", "sim:micron-m500", "sim:intel-optane-905p"] {
        let workload = Workload::KeyValue(TINY);
        let c = run(&FitOptions { target: target(name), profile: None, ..options(workload) });
        assert!(c.applied.is_empty() && c.gains.is_empty(), "{name}: {:?}", c.applied);
        assert!(c.before == c.after && c.before == c.default_page_size, "{name}");
        assert!(c.findings == c.findings_after, "{name}");
        assert!(c.notes.iter().any(|note| note.contains("Nothing was applied")), "{name}: {:?}", c.notes);
        assert_eq!(c.profile.device.target, name);
    }
}

#[test]
fn more_inserts_a_transaction_are_fewer_commits_and_more_inserts_a_second() {
    let work = KeyValueWorkload { inserts_per_round: 5_000, selects_per_round: 0, rounds: 1, ..SMALL };
    let with = |inserts_per_transaction| {
        run(&options(Workload::KeyValue(KeyValueWorkload { inserts_per_transaction, ..work })))
    };
    let [one, middle, all] = [1, 500, 5_000].map(with);
    assert_eq!([&one, &middle, &all].map(|c| c.before.transaction_latency.count), [5_000, 10, 1]);
    assert_eq!([&one, &middle, &all].map(|c| c.workload.inserts_per_transaction), [1, 500, 5_000]);
    for [few, many] in [[&one, &middle], [&middle, &all]] {
        assert!(few.default_page_size.insert_per_s < many.default_page_size.insert_per_s);
        assert!(few.before.host_bytes_written > many.before.host_bytes_written);
    }
    assert_eq!(one.before.select_per_s, 0.0);
}

#[test]
fn one_seed_is_one_result_to_the_bit_and_another_seed_is_another() {
    let first = fitted();
    assert!(*first == run(&small()));
    let other = run(&FitOptions { seed: 2, ..small() });
    assert!(first.before.select_latency != other.before.select_latency);
}

#[test]
fn a_configuration_file_is_a_drive_like_the_preset_that_it_copies() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mine.toml");
    std::fs::write(&path, Preset::find("samsung-960-evo").unwrap().toml).unwrap();
    let name = format!("sim:{}", path.display());
    let mine = run(&FitOptions { target: target(&name), profile: None, ..small() });
    let preset = fitted();
    assert_eq!(mine.target, name);
    assert!(mine.before == preset.before && mine.after == preset.after && mine.findings == preset.findings);
}

#[test]
fn in_a_directory_it_runs_in_real_time_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let c: Comparison = fit(&tiny_in(directory.path()), &mut Silent).unwrap();
    assert_eq!(c.applied.len(), 2);
    for run in [&c.default_page_size, &c.before, &c.after] {
        assert!(run.select_per_s > 0.0 && run.insert_per_s > 0.0 && run.drive_time_ns > 0, "{run:?}");
        assert!(run.host_bytes_written > 0 && run.flash_bytes_programmed.is_none(), "{run:?}");
        assert_eq!(run.integrity_check, "ok");
    }
    let reads = finding(&c.findings_after, Rule::ReadChunksAtHotLocations);
    assert!(reads.violations < reads.requests, "{reads:?}");
    assert!(is_empty(directory.path()));
}

#[test]
fn a_work_too_large_for_the_directory_is_refused_before_anything_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let vast = KeyValueWorkload { rows: 2_000_000_000, ..TINY };
    let free = rustix::fs::statvfs(directory.path()).unwrap();
    if free.f_bavail * free.f_frsize > 4 << 40 {
        return assert!(vast.check().is_ok(), "so large a disk has room for it");
    }
    let error = fit(&FitOptions { workload: Workload::KeyValue(vast), ..tiny_in(directory.path()) }, &mut Silent);
    let error = error.unwrap_err();
    assert!(error.is_refusal() && error.to_string().contains("10 % of the"), "{error}");
    assert!(is_empty(directory.path()));
}

#[test]
fn an_interruption_at_any_moment_is_told_as_one_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let saved = directory.path().join("saved.db");
    let options = FitOptions { save_database: Some(saved.clone()), ..tiny_in(directory.path()) };
    let mut count = StopAt { calls: 0, n: u32::MAX };
    fit(&options, &mut count).unwrap();
    std::fs::remove_file(&saved).unwrap();
    assert!(count.calls > 20, "{} calls are too few to hear Ctrl-C in time", count.calls);
    for n in 1..=count.calls {
        let error = fit(&options, &mut StopAt { calls: 0, n }).unwrap_err();
        assert!(error.is_interrupt() && error.to_string() == "interrupted", "call {n}: {error}");
        assert!(is_empty(directory.path()), "call {n}");
    }
}

#[test]
fn learning_hears_an_interruption_too() {
    for n in [1, 2, 40, 300] {
        let error = learn_target(&target(DEFAULT_TARGET), 1, None, &mut StopAt { calls: 0, n }).unwrap_err();
        assert!(error.is_interrupt() && !error.is_refusal(), "call {n}: {error}");
    }
}

#[test]
fn the_database_of_the_last_run_is_left_as_plain_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let saved = directory.path().join("saved.db");
    run(&FitOptions { save_database: Some(saved.clone()), ..small() });
    let db = rusqlite::Connection::open(&saved).unwrap();
    let text = |sql: &str| db.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(text("PRAGMA integrity_check"), "ok");
    assert_eq!(text("SELECT count(*) || ' ' || min(length(V)) FROM KV"), "11600 100");
    assert_eq!(text("SELECT page_size || '' FROM pragma_page_size"), "65536");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn an_existing_file_is_never_taken_for_the_saved_database_or_trace() {
    let directory = tempfile::tempdir().unwrap();
    let saved = directory.path().join("precious");
    std::fs::write(&saved, "data").unwrap();
    for options in [
        FitOptions { save_database: Some(saved.clone()), ..small() },
        FitOptions { save_trace: Some(saved.clone()), ..small() },
    ] {
        let error = fit(&options, &mut Silent).unwrap_err();
        assert!(error.is_refusal() && error.to_string().contains("precious: exists"), "{error}");
    }
    assert_eq!(std::fs::read(&saved).unwrap(), b"data");
}

#[test]
fn the_saved_trace_is_the_one_that_the_findings_are_about() {
    let directory = tempfile::tempdir().unwrap();
    let saved = directory.path().join("trace.csv");
    let c = run(&FitOptions { save_trace: Some(saved.clone()), ..small() });
    let trace = flashwise_trace::read_csv(std::fs::File::open(saved).unwrap()).unwrap();
    let options = flashwise_audit::AuditOptions::default();
    assert!(flashwise_audit::audit(&trace, &c.profile, &options).findings == c.findings);
}

#[test]
fn a_saved_database_that_has_no_place_is_an_error_and_not_a_loss() {
    let directory = tempfile::tempdir().unwrap();
    let saved = directory.path().join("missing/saved.db");
    let options = FitOptions { save_database: Some(saved.clone()), ..options(Workload::KeyValue(TINY)) };
    let error = fit(&options, &mut Silent).unwrap_err().to_string();
    assert!(error.contains("saved.db"), "{error}");
    assert!(is_empty(directory.path()));
}

#[test]
fn figures_that_are_not_certain_apply_nothing() {
    let mut profile = samsung();
    profile.parameters.hot_location.verdict = Verdict::Inconclusive;
    let c = run(&FitOptions { profile: Some(profile), ..options(Workload::KeyValue(TINY)) });
    assert!(c.applied.is_empty() && c.before == c.after);
    assert_eq!(c.recommendation.run, "none");
}

#[test]
fn a_workload_that_cannot_be_is_an_error_of_the_options() {
    for workload in [
        KeyValueWorkload { rows: 0, ..TINY },
        KeyValueWorkload { inserts_per_transaction: 0, ..TINY },
        KeyValueWorkload { rows: u32::MAX, ..TINY },
        KeyValueWorkload { rounds: u32::MAX, inserts_per_round: u32::MAX, ..TINY },
    ] {
        let error = fit(&options(Workload::KeyValue(workload)), &mut Silent).unwrap_err();
        assert!(matches!(error, TuneError::Options(_)), "{workload:?}: {error}");
    }
}

#[test]
fn a_trace_that_cannot_be_saved_leaves_no_saved_database_behind() {
    let directory = tempfile::tempdir().unwrap();
    let saved = directory.path().join("saved.db");
    let trace = directory.path().join("missing/trace.csv");
    let failing = FitOptions { save_database: Some(saved.clone()), save_trace: Some(trace), ..small() };
    assert!(fit(&failing, &mut Silent).is_err());
    assert!(!saved.exists());
}
