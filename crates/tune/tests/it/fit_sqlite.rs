//! `fit` with the built-in workload: on each kind of drive, in a directory, interrupted, and again from the same seed.

use crate::support;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use flashwise_audit::Rule;
use flashwise_block::{BlockError, ByteSize, Progress, Silent};
use flashwise_profile::Verdict;
use flashwise_ssd::Preset;
use flashwise_tune::sqlite::{
    FitOptions, KeyValueWorkload, Objective, TimeBudget, Workload, fit, hot_locations, learn_target,
};
use flashwise_tune::{Comparison, DEFAULT_TARGET, Host, ProgramTime, TuneError};
use support::{SMALL, TINY, is_empty, options, run, samsung, target};

fn small() -> FitOptions {
    options(Workload::KeyValue(SMALL))
}

fn tiny() -> FitOptions {
    options(Workload::KeyValue(TINY))
}

/// The small workload on the default drive, run once.
fn fitted() -> &'static Comparison {
    static FITTED: OnceLock<Comparison> = OnceLock::new();
    FITTED.get_or_init(|| run(&small()))
}

fn tiny_in(directory: &Path) -> FitOptions {
    let (target, time_budget) = (target(directory.to_str().unwrap()), Some(TimeBudget::Clock(Duration::from_secs(2))));
    FitOptions { target, time_budget, ..options(Workload::KeyValue(TINY)) }
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
fn the_published_experiment_gains_by_the_published_margin_on_a_drive_with_hot_locations_of_its_own() {
    let (target, workload) = (target(DEFAULT_TARGET), Workload::KeyValue(SMALL));
    let runs = hot_locations(&target, &workload, &samsung(), 1, &mut Silent).unwrap().unwrap();
    let ratio = runs.after.select_per_s / runs.before.select_per_s;
    assert!((1.2..2.0).contains(&ratio), "SELECT/s after ÷ before = {ratio}");
    assert_eq!([&runs.default, &runs.before, &runs.after].map(|run| run.page_bytes), [4096, 65536, 65536]);
    let mut uncertain = samsung();
    uncertain.parameters.hot_location.verdict = Verdict::Inconclusive;
    assert_eq!(hot_locations(&target, &workload, &uncertain, 1, &mut Silent).unwrap(), None);
}

#[test]
fn a_volume_has_the_file_system_and_the_page_cache_of_its_machine_in_front() {
    let rates = ["none", "ext4"].map(|file_system| {
        let host = Host::named(file_system, ByteSize::gib(1), ProgramTime::Modelled).unwrap();
        let c = run(&FitOptions { target: target("sim:gp3").with_host(host), ..tiny() });
        assert_eq!(c.search.times.contains("ext4"), file_system == "ext4", "{}", c.search.times);
        c.default.select_per_s
    });
    assert!(rates[1] > 2.0 * rates[0], "what is read again comes from the page cache: {rates:?}");
}

#[test]
fn what_is_recommended_beats_the_defaults_and_is_never_behind_the_checklist() {
    let c = fitted();
    let gain = c.gain.as_ref().expect("a gain over SQLite's defaults");
    assert!(gain.low > 1.01 && gain.low <= gain.ratio && gain.ratio <= gain.high, "{gain:?}");
    let find = |from: &str, to: &str| c.gains.iter().find(|gain| gain.from == from && gain.to == to);
    let checklist = find("default", "checklist").unwrap();
    assert!(gain.ratio >= checklist.ratio, "{gain:?} is behind {checklist:?}");
    assert_eq!(c.recommendation.run, "after");
    assert!(!c.proposals.is_empty() && c.proposals.len() == c.applied.len());
    for proposal in &c.proposals {
        assert!(proposal.old_value != proposal.new_value, "{proposal:?}");
        assert!(
            ![&proposal.reason, &proposal.apply, &proposal.undo].iter().any(|text| text.is_empty()),
            "{proposal:?}"
        );
        assert!(proposal.gain.as_ref().is_none_or(|gain| gain.ratio > 1.0), "{proposal:?}");
    }
    assert_eq!(c.checklist.label, "wal, 64 MiB cache");
    assert_eq!((c.before == c.default, c.after == c.best, c.default_page_size == c.default), (true, true, true));
}

#[test]
fn a_search_reports_what_it_tried() {
    let c = fitted();
    assert!(!c.search.is_cut_short && c.search.screened >= 20, "{:?}", c.search);
    assert!(c.search.raced >= 4 && c.search.confirmation_runs >= 3, "{:?}", c.search);
    assert!(c.candidates.len() >= c.search.screened, "{:?}", c.search);
    assert!(c.candidates.iter().filter(|candidate| candidate.stage == "screened").all(|tried| tried.ratios[0] > 0.0));
    assert!(c.candidates.is_sorted_by(|a, b| a.ratios[0] >= b.ratios[0]));
    let labels: BTreeSet<&str> = c.candidates.iter().map(|candidate| candidate.label.as_str()).collect();
    assert_eq!(labels.len(), c.candidates.len(), "each once");
    let pages: BTreeSet<u64> = c.candidates.iter().map(|candidate| candidate.page_bytes).collect();
    assert_eq!(pages, [4096, 8192, 16384, 32768, 65536].into());
    assert!(
        c.candidates.iter().any(|candidate| candidate.techniques.iter().any(|t| t.starts_with("use-hot-locations")))
    );
    assert!(c.guarantees.of_default.contains("a power cut may undo the last one"), "{:?}", c.guarantees);
    let is_logged = c.proposals.iter().any(|proposal| proposal.name == "journal_mode" && proposal.new_value == "wal");
    assert!(!is_logged || c.guarantees.statement.ends_with("survives a crash and a power cut"), "{:?}", c.guarantees);
    assert!(c.guarantees.synchronous == "full" && c.guarantees.weaker.iter().all(|weaker| weaker.ratio > 0.0));
}

#[test]
fn every_finding_with_violations_shows_one_and_says_what_would_help() {
    let c = fitted();
    assert!(c.findings.iter().any(|f| f.violations > 0));
    for f in c.findings.iter().chain(&c.findings_after) {
        assert!(f.violations <= f.requests, "{f:?}");
        assert_eq!(!f.examples.is_empty(), f.violations > 0, "{f:?}");
        assert!(!f.statement.is_empty() && !f.remedy.is_empty(), "{f:?}");
        let others = ["PostgreSQL", "MariaDB", "InnoDB", "innodb_"];
        assert!(others.iter().all(|other| !f.remedy.contains(other)), "a setting of another system: {f:?}");
    }
}

#[test]
fn a_time_of_a_flush_that_the_profile_lacks_is_measured() {
    let mut profile = samsung();
    profile.parameters.flush_ns = flashwise_profile::Figure::unknown();
    let c = run(&FitOptions { profile: Some(profile.clone()), ..tiny() });
    assert!(c.findings.iter().any(|found| found.rule == Rule::SyncLessOften), "{:?}", c.unjudged);
    assert!(c.notes.iter().any(|note| note.starts_with("The profile had no time of a flush")), "{:?}", c.notes);
    assert!(c.profile.parameters.flush_ns.known().is_some());
}

#[test]
fn what_is_measured_adds_up() {
    let c = fitted();
    for run in [&c.default, &c.checklist, &c.best] {
        let flash = run.flash_bytes_programmed.unwrap();
        let amplification = flash as f64 / run.host_bytes_written as f64;
        // The drive's write buffer takes some pages twice and programs them once.
        assert!((run.write_amplification.unwrap() - amplification).abs() < 1e-9 && amplification > 0.5, "{run:?}");
        assert!(run.select_rate.low <= run.select_per_s && run.select_per_s <= run.select_rate.high, "{run:?}");
        assert!(run.insert_rate.low <= run.insert_per_s && run.insert_per_s <= run.insert_rate.high, "{run:?}");
        assert_eq!(run.select_latency.count, 4 * 400);
        assert_eq!(run.transaction_latency.count, 4);
        assert_eq!(run.integrity_check, "ok");
        assert!(run.database_bytes > 10_000 * 100 && run.database_bytes % run.page_bytes == 0, "{run:?}");
    }
}

#[test]
fn reads_alone_are_offered_nothing_that_concerns_writes() {
    let c = run(&options(Workload::KeyValue(KeyValueWorkload { inserts_per_round: 0, ..TINY })));
    assert_eq!(c.checklist.label, "64 MiB cache");
    for candidate in &c.candidates {
        assert!(candidate.journal_mode == "delete" && candidate.wal_autocheckpoint == 1000, "{candidate:?}");
        assert!(!candidate.techniques.iter().any(|technique| technique.contains("write-back")), "{candidate:?}");
    }
    assert!(c.guarantees.weaker.is_empty());
}

#[test]
fn two_objectives_give_a_front() {
    let objectives = vec![Objective::P99, Objective::FlashBytes];
    let c = run(&FitOptions { objectives, ..options(Workload::KeyValue(TINY)) });
    assert!(c.candidates.iter().all(|candidate| candidate.ratios.len() == 2));
    assert!(c.candidates.iter().any(|candidate| candidate.is_on_front));
    assert_eq!(c.gains.len(), 2 * 3);
    let twice = vec![Objective::P99, Objective::P99];
    let error = fit(&FitOptions { objectives: twice, ..options(Workload::KeyValue(TINY)) }, &mut Silent).unwrap_err();
    assert!(matches!(error, TuneError::Options(_)), "{error}");
}

#[test]
fn a_short_budget_ends_with_a_confirmation() {
    let workload = KeyValueWorkload { rows: 20_000, rounds: 20, ..SMALL };
    let began = Instant::now();
    let budget = Duration::from_secs(4);
    let c = fit(
        &FitOptions { time_budget: Some(TimeBudget::Clock(budget)), ..options(Workload::KeyValue(workload)) },
        &mut Silent,
    )
    .unwrap();
    assert!(c.search.confirmation_runs >= 3 && c.search.is_cut_short, "{:?}", c.search);
    let a_round = c.workload.inserts_per_round + c.workload.selects_per_round;
    assert_eq!(c.workload.rounds * a_round, c.search.statements, "the workload is described as it was run");
    // A machine that is busy with other tests is several times as slow as the estimates of a moment before.
    assert!(began.elapsed() < 4 * budget, "{:?}", began.elapsed());
}

#[test]
fn one_seed_is_one_result_to_the_bit_and_another_seed_is_another() {
    let first = run(&tiny());
    assert!(first == run(&tiny()));
    let other = run(&FitOptions { seed: 2, ..tiny() });
    assert!(first.default.select_latency != other.default.select_latency);
}

#[test]
fn a_configuration_file_is_a_drive_like_the_preset_that_it_copies() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mine.toml");
    std::fs::write(&path, Preset::find("samsung-960-evo").unwrap().toml).unwrap();
    let name = format!("sim:{}", path.display());
    let mine = run(&FitOptions { target: target(&name), profile: None, ..tiny() });
    let preset = run(&tiny());
    assert_eq!(mine.target, name);
    assert!(mine.default == preset.default && mine.best == preset.best && mine.findings == preset.findings);
}

#[test]
fn in_a_directory_it_runs_in_real_time_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let c: Comparison = fit(&tiny_in(directory.path()), &mut Silent).unwrap();
    for run in [&c.default, &c.checklist, &c.best] {
        assert!(run.select_per_s > 0.0 && run.insert_per_s > 0.0 && run.drive_time_ns > 0, "{run:?}");
        assert!(run.host_bytes_written > 0 && run.flash_bytes_programmed.is_none(), "{run:?}");
        assert_eq!(run.integrity_check, "ok");
    }
    assert!(c.search.screened_on.starts_with("a model of "), "{}", c.search.screened_on);
    // What SQLite calls says nothing of the drive's queue.
    let of_queues = [Rule::ReadInParallel, Rule::WriteBackInParallel];
    assert!(c.findings.iter().chain(&c.findings_after).all(|found| !of_queues.contains(&found.rule)));
    let is_hidden = |rule: Rule| {
        c.unjudged.iter().any(|unjudged| unjudged.rule == rule && unjudged.reason.contains("above the page cache"))
    };
    assert!(of_queues.into_iter().all(is_hidden), "{:?}", c.unjudged);
    let costs = c.findings.iter().map(|found| found.cost).filter(|cost| cost.time_ns.is_some());
    assert!(costs.into_iter().all(|cost| cost.is_of_calls || cost.is_in_steady_state));
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
fn an_interruption_at_any_moment_is_reported_as_one_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let saved = directory.path().join("saved.db");
    let options = FitOptions { save_database: Some(saved.clone()), ..tiny_in(directory.path()) };
    let mut count = StopAt { calls: 0, n: u32::MAX };
    fit(&options, &mut count).unwrap();
    std::fs::remove_file(&saved).unwrap();
    assert!(count.calls > 20, "{} calls are too few to hear Ctrl-C in time", count.calls);
    // As many as a test has time for, at every stage.
    for n in (1..=count.calls).step_by((count.calls as usize).div_ceil(INTERRUPTIONS)) {
        // Threads and the clock make the number of calls differ a little.
        let Err(error) = fit(&options, &mut StopAt { calls: 0, n }) else {
            std::fs::remove_file(&saved).unwrap();
            continue;
        };
        assert!(error.is_interrupt() && error.to_string() == "interrupted", "call {n}: {error}");
        assert!(is_empty(directory.path()), "call {n}");
    }
}

/// Moments at which a fit is interrupted.
const INTERRUPTIONS: usize = 12;

#[test]
fn an_interruption_ends_learning_too() {
    for n in [1, 2, 40, 300] {
        let error = learn_target(&target(DEFAULT_TARGET), 1, None, &mut StopAt { calls: 0, n }).unwrap_err();
        assert!(error.is_interrupt() && !error.is_refusal(), "call {n}: {error}");
    }
}

#[test]
fn the_database_of_the_last_run_is_left_as_plain_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let saved = directory.path().join("saved.db");
    let c = run(&FitOptions { save_database: Some(saved.clone()), ..tiny() });
    let db = rusqlite::Connection::open(&saved).unwrap();
    let text = |sql: &str| db.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(text("PRAGMA integrity_check"), "ok");
    assert_eq!(text("SELECT count(*) || ' ' || min(length(V)) FROM KV"), "340 100");
    let page = c.best.page_bytes.to_string();
    assert_eq!(text("SELECT page_size || '' FROM pragma_page_size"), page);
    drop(db);
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
    let c = run(&FitOptions { save_trace: Some(saved.clone()), ..tiny() });
    let trace = flashwise_trace::read_csv(std::fs::File::open(saved).unwrap()).unwrap();
    let system = Some(flashwise_audit::DatabaseSystem::Sqlite);
    let options = flashwise_audit::AuditOptions { system, ..flashwise_audit::AuditOptions::default() };
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
fn a_technique_whose_figures_are_not_certain_is_not_tried() {
    let mut profile = samsung();
    profile.parameters.hot_location.verdict = Verdict::Inconclusive;
    let c = run(&FitOptions { profile: Some(profile), ..options(Workload::KeyValue(TINY)) });
    let is_hot = |technique: &String| technique.starts_with("use-hot-locations");
    assert!(c.candidates.iter().all(|candidate| !candidate.techniques.iter().any(is_hot)));
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
