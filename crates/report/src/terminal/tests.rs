//! What a terminal shows, word for word.

use flashwise_attach::{DeviceStat, FaultState, LatencySpike, ReadOnlyCause};
use flashwise_audit::Machine;
use flashwise_block::ByteSize;
use flashwise_learn::score::Score;
use flashwise_profile::{Figure, HotLocation, Parameters};
use flashwise_ssd::EndOfLife;
use flashwise_ssd::SpaceUse;
use flashwise_tune::{AppliedTuning, Comparison};

use super::comparison::SHORT_LINES;
use super::*;
use crate::sample;
use crate::sample_audit::audit;
use crate::sample_simulation::{simulation, simulation_with_life};

fn plain(width: u16) -> Style {
    Style { color: false, width }
}

#[test]
fn costs_of_system_calls_are_waiting_time_and_the_machine_is_named() {
    let mut document = audit();
    let simulated = document.audit.simulated.as_mut().unwrap();
    simulated.machine = Some(Machine { file_system: "ext4".to_owned(), memory_bytes: 4 << 30 });
    let text = render_audit(&document, plain(80));
    assert!(text.contains("4.73 s of waiting time (48.3 %)") && !text.contains("drive time"), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("one after another on ext4 on that drive, under a page cache of 4 GiB"), "{text}");
}

#[test]
fn a_drive_with_something_to_gain_is_told_at_80_columns() {
    insta::assert_snapshot!(render_comparison(&sample::samsung(), Detail::Full, plain(80)));
}

#[test]
fn a_short_report_fits_two_screens() {
    let mut c = sample::samsung();
    let text = render_comparison(&c, Detail::Short, plain(80));
    c.proposals.pop();
    c.uri = None;
    let without_vfs = render_comparison(&c, Detail::Short, plain(80));
    let lines = [&text, &without_vfs].map(|text| text.lines().count());
    assert!(lines.iter().all(|lines| *lines <= SHORT_LINES), "{lines:?}");
    insta::assert_snapshot!(text);
}

#[test]
fn the_longest_short_report_fits_two_screens_and_names_where_the_rest_is() {
    let text = render_comparison(&sample::longest(), Detail::Short, plain(80));
    assert!(text.lines().count() <= SHORT_LINES, "{} lines: {text}", text.lines().count());
    assert!(text.contains("--verbose shows all"), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_short_report_has_its_sections_in_the_order_in_which_they_are_needed() {
    let text = render_comparison(&sample::samsung(), Detail::Short, plain(80)).to_string();
    let sections = [
        "What to change",
        "best / default",
        "configuration",
        "Audit findings",
        "How to apply and undo",
        "Drive:",
        "Notes",
    ];
    let places: Vec<Option<usize>> = sections.iter().map(|section| text.find(section)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}");
    for words in [
        "On sim:samsung-960-evo, ext4 under a page cache of 4 GiB.",
        "worth it from ×1.10",
        "Changes a guarantee: synchronous=normal",
    ] {
        assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(words), "{words}: {text}");
    }
    assert!(text.contains("1  read-chunks-at-hot-locations: ") && text.contains("4.73 s of drive time"), "{text}");
}

#[test]
fn with_two_objectives_the_front_is_shown_before_what_is_better_in_the_first_alone() {
    let mut c = sample::longest();
    c.proposals.truncate(1);
    (c.notes, c.declined, c.guarantees.weaker, c.seen) = (Vec::new(), Vec::new(), Vec::new(), None);
    c.candidates[4].ratios[0] = 3.15;
    c.candidates.sort_by(|a, b| b.ratios[0].total_cmp(&a.ratios[0]));
    let text = render_comparison(&c, Detail::Short, plain(80)).to_string();
    let front = c.candidates.iter().filter(|candidate| candidate.is_on_front);
    assert!(front.clone().count() > 2 && text.matches(" front\n").count() == front.count(), "{text}");
}

#[test]
fn only_violations_are_counted_as_such() {
    let mut c = sample::samsung();
    let shown = |c: &Comparison| render_comparison(c, Detail::Short, plain(80)).to_string();
    assert!(shown(&c).contains("1  read-chunks-at-hot-locations: 100 % of 48,221 requests"), "{}", shown(&c));
    use flashwise_audit::Judgement::{Kept, LeaveIt, Observation};
    for (finding, judgement) in c.findings.iter_mut().zip([Observation, LeaveIt, LeaveIt, Kept]) {
        finding.judgement = judgement;
    }
    assert!(shown(&c).contains("No rule is violated by the present settings."), "{}", shown(&c));
}

#[test]
fn what_is_left_out_is_shown_though_nothing_is_proposed() {
    let c = Comparison { declined: sample::samsung().declined, ..sample::optane() };
    let [short, full] =
        [Detail::Short, Detail::Full].map(|detail| render_comparison(&c, detail, plain(80)).to_string());
    assert!(short.contains("Left out: concurrent-write-back=8 (×1.02, worth it from ×1.05)."), "{short}");
    assert!(full.contains("concurrent-write-back=8 brings ×1.02 and is left out"), "{full}");
}

#[test]
fn settings_of_connections_leave_the_file_unchanged() {
    let changed = AppliedTuning { file: "app.db".into(), in_place: true, steps: Vec::new() };
    let mut c = Comparison { changed: Some(changed), ..sample::samsung() };
    let shown = |c: &Comparison| render_comparison(c, Detail::Short, plain(80)).to_string();
    assert!(shown(&c).contains("app.db: unchanged; the settings belong to each connection."), "{}", shown(&c));
    c.changed.as_mut().unwrap().steps.push("PRAGMA journal_mode = wal".into());
    assert!(shown(&c).contains("app.db: changed.\n"), "{}", shown(&c));
}

#[test]
fn a_drive_with_nothing_to_gain_is_told_so() {
    insta::assert_snapshot!(render_comparison(&sample::optane(), Detail::Short, plain(80)));
}

/// A drive under fio; what `flashwise device stat -o json` gave once.
fn device_stat() -> DeviceStat {
    serde_json::from_str(include_str!("../sample-device-stat.json")).unwrap()
}

#[test]
fn an_attached_drive_tells_what_it_is_doing_at_80_columns() {
    let text = render_device_stat(&device_stat(), None, plain(80));
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn an_attached_drive_tells_what_is_wrong_with_it_and_what_it_did_since_the_last_look() {
    let before = device_stat();
    let mut now = before.clone();
    now.simulated_ns += 500_000_000;
    now.counters.host_writes += 1_000;
    now.counters.host_bytes_written.0 += 4_096_000;
    if let Some(flash) = &mut now.counters.flash {
        (flash.gc_runs, flash.gc_pages_moved) = (17, 5_230);
    }
    now.space = Some(SpaceUse { logical_bytes: 3 << 30, physical_bytes: 1 << 30, physical_capacity_bytes: 4 << 30 });
    now.state.read_only = Some(ReadOnlyCause::Fault);
    (now.power_cuts, now.failed, now.in_flight, now.pacing) = (2, 31, 1, None);
    let spike = LatencySpike { extra_ns: 50_000_000, for_ns: None, requests: Some(3) };
    now.faults = FaultState { latency_spike: Some(spike), unreadable_bytes: 8192, read_only: true };
    insta::assert_snapshot!(render_device_stat(&now, Some(&before), plain(80)));
}

#[test]
fn a_worn_out_drive_says_what_it_took() {
    let mut stat = device_stat();
    let end = EndOfLife { at_ns: 5, host_bytes_written: 3 << 40 };
    (stat.state.read_only, stat.state.end_of_life) = (Some(ReadOnlyCause::EndOfLife), Some(end));
    let text = render_device_stat(&stat, None, plain(80));
    assert!(text.contains("read-only: its blocks wore out after 3 TiB written"), "{text}");
}

/// A change of each kind.
fn postgres_tuning() -> flashwise_tune::ServerTuning {
    use flashwise_tune::*;
    let proposal = |name: &str, words: [&str; 7]| {
        let [old_value, new_value, reason, expected_gain, takes_effect, apply, undo] = words.map(str::to_owned);
        let (evidence, expected) = (Vec::new(), None);
        let name = name.to_owned();
        SettingProposal {
            name,
            old_value,
            base_value: new_value.clone(),
            new_value,
            reason,
            evidence,
            expected,
            expected_gain,
            takes_effect,
            apply,
            undo,
        }
    };
    let delay = [
        "0",
        "370",
        "a flush takes 740 µs on this drive (708 to 771)",
        "unknown; use --measure",
        "reload",
        "ALTER SYSTEM SET commit_delay = 370;",
        "ALTER SYSTEM RESET commit_delay;",
    ];
    let table = [
        "100",
        "80",
        "75 % of its 1250 updates were not HOT",
        "unknown",
        "new-pages",
        "ALTER TABLE public.t SET (fillfactor = 80);",
        "ALTER TABLE public.t RESET (fillfactor);",
    ];
    let proposals = vec![proposal("commit_delay", delay), proposal("fillfactor of public.t", table)];
    let statements = |get: fn(&SettingProposal) -> &String| {
        proposals.iter().map(get).cloned().chain(["SELECT pg_reload_conf();".to_owned()]).collect()
    };
    let (sql, undo_sql) = (statements(|p| &p.apply), statements(|p| &p.undo));
    let rate = |per_s: f64| flashwise_tune::Rate { per_s, low: per_s * 0.98, high: per_s * 1.03 };
    let (metric, from, to) = ("transactions_per_s".to_owned(), "before".to_owned(), "after".to_owned());
    ServerTuning {
        schema: POSTGRES_TUNING_SCHEMA.into(),
        schema_version: POSTGRES_TUNING_SCHEMA_VERSION,
        flashwise_version: "0.1.0".into(),
        program: "PostgreSQL 15.18".into(),
        server: Some("/run/postgresql:5432".into()),
        drive: "Samsung 960 EVO (simulated)".into(),
        proposals,
        left_alone: vec![LeftAlone {
            name: "full_page_writes".into(),
            value: "on".into(),
            verdict: "cannot-tell".into(),
            reason: "no figure of a profile proves that a write of 8 KiB is never torn by a power cut".into(),
        }],
        sql,
        undo_sql,
        option_file: None,
        eviction: None,
        measured: Some(MeasuredSettings {
            program: "PostgreSQL 15.18".into(),
            directory: "/mnt/nvme".into(),
            attached: None,
            workload: "pgbench's transactions, like TPC-B, on pgbench's tables, scale 10".into(),
            rounds: 10,
            settings: vec!["commit_delay = 370".into()],
            before: rate(1234.0),
            after: rate(1357.0),
            gain: flashwise_tune::Gain { metric, from, to, ratio: 1.1, low: 1.07, high: 1.12 },
            verdict: "pays".into(),
            log: None,
        }),
        applied: None,
        notes: vec!["Rates are wall-clock time on this machine.".into()],
    }
}

#[test]
fn where_a_server_was_measured_is_its_directory_or_the_attached_drive() {
    let mut tuning = postgres_tuning();
    let shown = |tuning: &flashwise_tune::ServerTuning| render_postgres_tuning(tuning, plain(80));
    assert!(shown(&tuning).contains("PostgreSQL 15.18 in /mnt/nvme:"));
    let place = flashwise_tune::AttachedPlace {
        file_system: "ext4".into(),
        slower: 10,
        was_late: false,
        before: None,
        after: None,
    };
    tuning.measured.as_mut().unwrap().attached = Some(place);
    let text = shown(&tuning);
    assert!(text.contains("PostgreSQL 15.18 on the attached drive (ext4, 10 times as slow):"));
    assert!(!text.contains("flash/transaction"), "the drive did not say: {text}");
    let attached = tuning.measured.as_mut().unwrap().attached.as_mut().unwrap();
    let written = |host: u64, flash: u64| {
        Some(flashwise_tune::Written { host_bytes: ByteSize::kib(host), flash_bytes: ByteSize::kib(flash) })
    };
    (attached.before, attached.after) = (written(20, 60), written(20, 45));
    let text = shown(&tuning);
    let is_of_table = |line: &&str| ["settings ", "old ", "new "].iter().any(|name| line.starts_with(name));
    let table: Vec<&str> = text.lines().filter(is_of_table).collect();
    assert_eq!(table.len(), 3, "{text}");
    assert!(table[0].contains("host/transaction") && table[0].contains("flash/transaction"), "{text}");
    assert!(table[1].starts_with("old") && table[1].contains("20 KiB") && table[1].ends_with("60 KiB"), "{text}");
    assert!(table[2].starts_with("new") && table[2].ends_with("45 KiB"), "{text}");
}

#[test]
fn what_to_change_of_a_server_is_told_setting_by_setting() {
    insta::assert_snapshot!(render_postgres_tuning(&postgres_tuning(), plain(80)));
}

/// One setting for each way in which a change acts.
fn mariadb_tuning() -> flashwise_tune::ServerTuning {
    use flashwise_tune::*;
    let like = postgres_tuning();
    let proposal = |name: &str, words: [&str; 5]| {
        let [old_value, new_value, takes_effect, apply, undo] = words.map(str::to_owned);
        let name = name.to_owned();
        let reason = "a read of the drive cannot split 32768 bytes (32768 to 32768)".to_owned();
        let base_value = new_value.clone();
        let like = like.proposals[0].clone();
        SettingProposal { name, old_value, new_value, base_value, reason, takes_effect, apply, undo, ..like }
    };
    let (set, unset) = ("SET GLOBAL innodb_flush_neighbors = 0;", "SET GLOBAL innodb_flush_neighbors = 1;");
    ServerTuning {
        schema: MARIADB_TUNING_SCHEMA.into(),
        schema_version: MARIADB_TUNING_SCHEMA_VERSION,
        flashwise_version: "0.1.0".into(),
        program: "MariaDB 10.11.19".into(),
        server: Some("/run/mysqld/mysqld.sock".into()),
        drive: "Samsung 960 EVO (simulated)".into(),
        proposals: vec![
            proposal("innodb_page_size", ["16384", "32768", "new-instance", "mariadb-install-db …", "keep this one"]),
            proposal("innodb_flush_neighbors", ["1", "0", "at-once", set, unset]),
            proposal(
                "innodb_log_write_ahead_size",
                ["512", "4096", "restart", "innodb_log_write_ahead_size = 4096", "innodb_log_write_ahead_size = 512"],
            ),
        ],
        left_alone: like.left_alone,
        sql: vec![set.into()],
        undo_sql: vec![unset.into()],
        option_file: Some(
            ["[mariadbd]", "innodb_flush_neighbors = 0", "innodb_log_write_ahead_size = 4096"]
                .map(str::to_owned)
                .to_vec(),
        ),
        eviction: None,
        measured: None,
        applied: None,
        notes: vec!["SET GLOBAL acts until the server ends.".into()],
    }
}

#[test]
fn settings_of_mariadb_say_when_they_act_and_where_they_go() {
    let mut tuning = mariadb_tuning();
    insta::assert_snapshot!(render_mariadb_tuning(&tuning, plain(80)));
    tuning.applied = Some(flashwise_tune::AppliedSettings {
        statements: tuning.sql.clone(),
        undo: tuning.undo_sql.clone(),
        needs_restart: vec!["innodb_log_write_ahead_size".into()],
        needs_instance: Some(vec!["innodb_page_size".into()]),
    });
    let text = render_mariadb_tuning(&tuning, plain(80));
    assert!(text.contains("The new values were read back and verified. To undo:"), "{text}");
    assert!(
        text.contains("These need an option file and a restart") && !text.contains("Statements for the mariadb client"),
        "{text}"
    );
}

#[test]
fn an_option_file_has_its_reasons_and_nothing_that_an_instance_cannot_take() {
    insta::assert_snapshot!(mariadb_option_file(&mariadb_tuning()));
    let mut nothing = mariadb_tuning();
    (nothing.proposals, nothing.sql, nothing.option_file) = Default::default();
    assert!(mariadb_option_file(&nothing).ends_with("# No changes.\n"));
}

#[test]
fn settings_are_written_as_each_service_takes_them() {
    let mut tuning = postgres_tuning();
    let flush = flashwise_tune::SettingProposal {
        name: "checkpoint_flush_after".into(),
        old_value: "256kB".into(),
        new_value: "512kB".into(),
        base_value: "64".into(),
        ..tuning.proposals[0].clone()
    };
    let recycle = flashwise_tune::SettingProposal {
        name: "wal_recycle".into(),
        old_value: "on".into(),
        new_value: "off".into(),
        base_value: "off".into(),
        ..flush.clone()
    };
    let workers = flashwise_tune::SettingProposal {
        name: "io_max_concurrency".into(),
        new_value: "128".into(),
        base_value: "128".into(),
        takes_effect: "restart".into(),
        ..flush.clone()
    };
    tuning.proposals.extend([flush, recycle, workers]);
    let forms = [postgres_conf, parameter_group, cloud_sql_flags].map(|form| form(&tuning));
    insta::assert_snapshot!(forms.join("---\n"));
    tuning.proposals.clear();
    assert!(postgres_conf(&tuning).ends_with("# No changes.\n"));
    assert_eq!(parameter_group(&tuning), "[]\n");
    assert!(cloud_sql_flags(&tuning).ends_with("--database-flags: {}\n"));
}

#[test]
fn statements_for_psql_have_their_reasons_and_how_to_take_them_back() {
    insta::assert_snapshot!(postgres_tuning_sql(&postgres_tuning()));
    let mut nothing = postgres_tuning();
    (nothing.proposals, nothing.sql, nothing.undo_sql) = Default::default();
    assert!(postgres_tuning_sql(&nothing).ends_with("-- No changes.\n"));
    let text = render_postgres_tuning(&nothing, plain(80));
    assert!(text.contains("Keep the current settings") && !text.contains("Statements for psql"), "{text}");
}

#[test]
fn of_a_log_the_report_has_what_was_replayed_and_what_not() {
    let counted = |reason: &str, count, example: &str| flashwise_tune::CountedReason {
        reason: reason.to_owned(),
        count,
        example: example.to_owned(),
    };
    let mut tuning = postgres_tuning();
    tuning.measured.as_mut().unwrap().log = Some(flashwise_tune::ReplayedLog {
        transactions: 12_001,
        statements: 21_082,
        sessions: 5,
        connections: 4,
        played: 24_000,
        conflicts: 3,
        refused: 2,
        refusals: vec![counted("permission denied", 2, "SELECT 1")],
        left_out: vec![counted("checkpoints", 18, "")],
        calls_covered: Some(0.999),
    });
    let text = render_postgres_tuning(&tuning, plain(100)).to_string();
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "12,001 transactions of 21,082 statements and 5 sessions, on 4 connections.",
        "24,000 were done in all rounds, 3 met a lock or a conflict, of 2 the server refused a statement.",
        "the statements that are 99.9 % of the counted calls",
        "refused: 2 × permission denied (SELECT 1)",
        "left out: 18 × checkpoints",
    ] {
        assert!(joined.contains(words), "{words}: {joined}");
    }
}

#[test]
fn what_was_measured_of_settings_is_told_as_what_it_is() {
    let told = |verdict: &str, ratio: f64| {
        let mut tuning = postgres_tuning();
        let measured = tuning.measured.as_mut().unwrap();
        verdict.clone_into(&mut measured.verdict);
        (measured.gain.ratio, measured.gain.low, measured.gain.high) = (ratio, ratio * 0.98, ratio * 1.02);
        render_postgres_tuning(&tuning, plain(100))
    };
    assert!(told("costs", 0.9).contains("Measured: 10.0 % fewer transactions a second"), "{}", told("costs", 0.9));
    assert!(told("no-gain-seen", 1.0).contains("No gain was measured (95 % interval"), "{}", told("no-gain-seen", 1.0));
    let mut unmeasured = postgres_tuning();
    unmeasured.measured = None;
    assert!(render_postgres_tuning(&unmeasured, plain(80)).contains("use --measure"));
}

#[test]
fn what_was_applied_to_a_server_stands_in_place_of_what_to_paste() {
    let mut tuning = postgres_tuning();
    let (statements, undo) = (tuning.sql.clone(), tuning.undo_sql.clone());
    let needs_restart = vec!["commit_delay".to_owned()];
    tuning.applied = Some(flashwise_tune::AppliedSettings { statements, undo, needs_restart, needs_instance: None });
    let text = render_postgres_tuning(&tuning, plain(80));
    assert!(text.contains("These need a restart: commit_delay.") && !text.contains("Statements for psql"), "{text}");
}

#[test]
fn a_profile_is_a_table() {
    insta::assert_snapshot!(render_profile(&sample::samsung().profile, Style::default()));
}

/// A score with a figure of each kind: right, wrong, absent, a best guess, and an inconclusive one.
fn score_of_every_kind() -> Score {
    fn certain<T: Copy>(value: T) -> Figure<T> {
        Figure::certain(value, value, value)
    }
    let truth = Parameters {
        write_unit_bytes: certain(32 << 10),
        stripe_bytes: certain(128 << 10),
        hot_location: certain(HotLocation { period_bytes: 64 << 10, offset_bytes: 32 << 10 }),
        page_bytes: Figure::absent(),
        write_concurrency_4k: certain(24),
        write_concurrency_8k: certain(4),
        power_loss_protected: certain(false),
        ..Parameters::default()
    };
    let mut profile = sample::samsung().profile;
    profile.parameters.power_loss_protected = certain(false);
    flashwise_learn::score::score(&profile, &truth)
}

#[test]
fn a_score_is_a_table_with_its_totals() {
    insta::assert_snapshot!(render_score(&score_of_every_kind(), Style::default()));
}

#[test]
fn truth_and_learned_hot_locations_fit_beside_each_other_into_80_columns() {
    let text = render_score(&score_of_every_kind(), plain(80));
    assert!(text.contains("64 KiB·i + 32 KiB  64 KiB·i + 32 KiB  certain       right"), "{text}");
}

#[test]
fn a_title_of_a_section_may_be_wider_than_its_column() {
    let text = render_profile(&sample::samsung().profile, Style::default());
    assert!(text.contains("\n\nAsymmetry and concurrency\n  α, 4 KiB "), "{text}");
    assert!(!text.contains('\u{e000}'));
}

#[test]
fn an_audit_tells_what_was_broken_what_was_kept_and_what_stays_open() {
    insta::assert_snapshot!(render_audit(&audit(), Style::default()));
}

#[test]
fn a_cost_says_when_mending_would_lose_and_when_nothing_was_simulated() {
    let mut document = audit();
    document.audit.findings[0].cost =
        flashwise_audit::Cost { time_ns: Some(-3_000_000), flash_bytes: Some(0), ..Default::default() };
    document.audit.findings[1].cost = flashwise_audit::Cost::default();
    let text = render_audit(&document, Style::default());
    assert!(text.contains("cost     none in drive time: fixed, it takes 3 ms more; no flash bytes"), "{text}");
    assert!(text.contains("cost     not simulated"), "{text}");
    document.audit.simulated = None;
    document.audit.not_simulated = Some("the write unit is inconclusive".to_owned());
    let text = render_audit(&document, Style::default());
    assert!(text.contains("Costs were not simulated: the write unit is inconclusive."), "{text}");
}

#[test]
fn a_simulation_is_told_with_its_flows_and_its_write_amplification() {
    insta::assert_snapshot!(render_simulation(&simulation(), plain(80)));
}

#[test]
fn nothing_is_wider_than_the_terminal_and_no_line_ends_in_a_space() {
    for width in [60, 72, 80, 100, 200] {
        for line in render_simulation(&simulation(), plain(width)).lines() {
            assert!(line.chars().count() <= usize::from(width), "{width} columns: {line}");
        }
        for line in render_audit(&audit(), plain(width)).lines() {
            assert!(line.chars().count() <= usize::from(width), "{width} columns: {line}");
        }
        for comparison in [sample::samsung(), sample::optane()] {
            for line in render_comparison(&comparison, Detail::Full, plain(width)).lines() {
                assert!(line.chars().count() <= usize::from(width), "{width} columns: {line}");
                assert_eq!(line, line.trim_end());
            }
        }
    }
}

#[test]
fn colours_come_only_when_asked_for_and_change_no_word() {
    let colored = render_comparison(&sample::samsung(), Detail::Full, Style { color: true, width: 80 });
    let without = render_comparison(&sample::samsung(), Detail::Full, plain(80));
    assert!(!without.contains('\u{1b}') && colored.contains('\u{1b}'));
    let mut stripped = String::new();
    for (i, part) in colored.split('\u{1b}').enumerate() {
        stripped += if i == 0 { part } else { part.split_once('m').unwrap().1 };
    }
    let trimmed: Vec<_> = stripped.lines().map(str::trim_end).collect();
    assert_eq!(trimmed, without.lines().collect::<Vec<_>>());
}

#[test]
fn a_rule_that_only_the_run_after_breaks_is_shown_with_its_example() {
    let mut c = sample::samsung();
    std::mem::swap(&mut c.findings, &mut c.findings_after);
    let text = render_comparison(&c, Detail::Full, plain(80));
    assert!(text.contains("before   0 of 48,221 (0 %)\n   after    48,221 of 48,221 (100 %), 2.94 GiB\n"), "{text}");
    assert!(text.contains("example  read 64 KiB at byte 1,245,184 of the database"), "{text}");
}

#[test]
fn a_life_is_told_with_what_it_is_made_of() {
    let text = render_simulation(&simulation_with_life(), plain(80));
    let life = &text[text.find("\nLife\n").unwrap()..];
    insta::assert_snapshot!(life[..life.find("\nAll ").unwrap()].rsplit_once('\n').unwrap().0);
    assert!(!render_simulation(&simulation(), plain(80)).contains("\nLife\n"), "this drive has no wear limit");
}

#[test]
fn the_end_of_a_life_and_a_life_that_is_not_known_are_told() {
    let told = |change: fn(&mut flashwise_sim::life::Life)| {
        let mut simulation = simulation_with_life();
        let life = simulation.life.as_mut().unwrap();
        life.projection = None;
        change(life);
        simulation.flows[0].refused = 1_234;
        render_simulation(&simulation, plain(80)).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let end = told(|life| {
        life.end_of_life = Some(flashwise_ssd::EndOfLife { at_ns: 2_500_000_000, host_bytes_written: 3 << 30 });
    });
    assert!(end.contains("became read-only after 2.5 s of simulated time and 3 GiB written. 1,234 writes"), "{end}");
    let unknown = told(|life| life.not_projected = Some("nothing was written".to_owned()));
    assert!(unknown.contains("The drive's life was not projected: nothing was written."), "{unknown}");
}
