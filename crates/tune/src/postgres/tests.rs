//! Proposals as a whole, without a server.

use flashwise_block::Silent;

use super::measure::tests::shortest;
use super::rules::tests::Bench;
use super::*;
use crate::Target;
use crate::servers::tests::LearnsNothing;

fn options(profile: DeviceProfile) -> PostgresOptions {
    PostgresOptions {
        drive: profile.into(),
        dsn: None,
        version: 15,
        sessions: 1,
        depth: None,
        skip: Vec::new(),
        apply: false,
        measure: None,
    }
}

/// Rules that judge a setting of version 15.
fn ruled() -> usize {
    let settings = defaults(15).unwrap();
    RULES.iter().filter(|rule| settings.get(rule.name).is_some()).count()
}

/// A measurement whose programs are absent.
fn unmeasurable() -> PostgresMeasureOptions {
    PostgresMeasureOptions { programs: Some("/no/such/folder".into()), ..shortest() }
}

fn names(tuning: &ServerTuning) -> Vec<&str> {
    tuning.proposals.iter().map(|proposal| proposal.name.as_str()).collect()
}

#[test]
fn what_follows_from_the_figures_is_proposed_and_all_else_is_told() {
    let tuning = tune_postgres(&options(Bench::new().profile), &mut Silent).unwrap();
    let expected = ["random_page_cost", "effective_io_concurrency", "maintenance_io_concurrency", "commit_delay"];
    assert_eq!(names(&tuning), expected);
    assert_eq!(tuning.proposals.len() + tuning.left_alone.len(), ruled(), "nothing is passed over");
    let ahead = &tuning.proposals[1];
    assert_eq!((ahead.old_value.as_str(), ahead.new_value.as_str()), ("1", "16"));
    assert_eq!(ahead.apply, "ALTER SYSTEM SET effective_io_concurrency = 16;");
    assert_eq!(ahead.undo, "ALTER SYSTEM RESET effective_io_concurrency;");
    let backend = tuning.left_alone.iter().find(|left| left.name == "backend_flush_after").unwrap();
    assert_eq!((backend.value.as_str(), backend.verdict.as_str()), ("0", "cannot-tell"));
    assert_eq!(tuning.sql.last().unwrap(), "SELECT pg_reload_conf();");
    assert!(tuning.notes[0].contains("documented defaults of PostgreSQL 15"));
}

#[test]
fn a_profile_without_certain_figures_changes_nothing() {
    let mut profile = Bench::new().profile;
    profile.parameters = flashwise_profile::Parameters::default();
    let tuning = tune_postgres(&options(profile), &mut Silent).unwrap();
    assert!(tuning.proposals.is_empty() && tuning.sql.is_empty() && tuning.undo_sql.is_empty());
    assert_eq!(tuning.left_alone.len(), ruled());
    assert!(tuning.left_alone.iter().any(|left| left.verdict == "cannot-tell"));
}

#[test]
fn what_is_skipped_is_left_and_a_wrong_name_is_told() {
    let skip = vec!["commit_delay".to_owned(), "fillfactor".to_owned()];
    let tuning = tune_postgres(&PostgresOptions { skip, ..options(Bench::new().profile) }, &mut Silent).unwrap();
    assert!(!names(&tuning).contains(&"commit_delay"));
    assert!(tuning.left_alone.iter().any(|left| left.name == "commit_delay" && left.verdict == "skipped"));
    let wrong = PostgresOptions { skip: vec!["delay".to_owned()], ..options(Bench::new().profile) };
    let told = tune_postgres(&wrong, &mut Silent).unwrap_err();
    assert!(matches!(&told, TuneError::Options(why) if why.contains("commit_delay, ")), "{told}");
}

#[test]
fn applying_needs_a_server_and_a_version_must_be_known() {
    let apply = PostgresOptions { apply: true, ..options(Bench::new().profile) };
    assert!(tune_postgres(&apply, &mut Silent).unwrap_err().to_string().contains("CONNECTION"));
    let old = PostgresOptions { version: 9, ..options(Bench::new().profile) };
    assert!(tune_postgres(&old, &mut Silent).unwrap_err().to_string().contains("13 to 19"));
}

#[test]
fn mistakes_are_found_before_a_drive_is_learned() {
    let drive = DataDrive::Unlearned(Target::parse("sim:samsung-960-evo").unwrap());
    let unlearned = PostgresOptions { drive, ..options(Bench::new().profile) };
    let skip = vec!["delay".to_owned()];
    let dsn = |dsn: &str| Some(dsn.to_owned());
    let mistakes = [
        (PostgresOptions { skip, ..unlearned.clone() }, "commit_delay"),
        (PostgresOptions { version: 9, ..unlearned.clone() }, "13 to 19"),
        (PostgresOptions { dsn: dsn("user=me"), ..unlearned.clone() }, "no host"),
        (PostgresOptions { dsn: dsn("host=/no/such/place"), ..unlearned.clone() }, "/no/such/place:5432"),
        (PostgresOptions { measure: Some(unmeasurable()), ..unlearned.clone() }, "/no/such/folder"),
    ];
    for (options, words) in mistakes {
        let told = tune_postgres(&options, &mut LearnsNothing).unwrap_err().to_string();
        assert!(told.contains(words), "{told}");
    }
}

#[test]
fn where_nothing_is_to_be_changed_nothing_is_measured() {
    let measure = unmeasurable();
    let mut profile = Bench::new().profile;
    let told = |profile: &DeviceProfile| {
        tune_postgres(&PostgresOptions { measure: Some(measure.clone()), ..options(profile.clone()) }, &mut Silent)
    };
    assert!(matches!(told(&profile), Err(TuneError::Missing(_))), "a server is looked for");
    profile.parameters = flashwise_profile::Parameters::default();
    let nothing = told(&profile).unwrap();
    assert!(nothing.measured.is_none() && nothing.notes.last().unwrap().starts_with("Nothing was measured"));
}

#[test]
fn the_old_value_of_what_was_altered_comes_back_with_undo() {
    let bench = Bench::new();
    let mut settings = bench.settings.clone();
    let name = "random_page_cost";
    settings.0.get_mut(name).unwrap().is_altered = true;
    settings.0.get_mut("commit_delay").unwrap().source = "command line".to_owned();
    let judged = judge(&options(bench.profile.clone()), &bench.profile, None, &settings, None);
    assert_eq!(judged.proposals[0].undo, "ALTER SYSTEM SET random_page_cost = 4;");
    let delay = judged.left_alone.iter().find(|left| left.name == "commit_delay").unwrap();
    assert_eq!(delay.verdict, "overridden");
}

#[test]
fn what_a_measurement_does_not_confirm_is_no_statement_to_run() {
    let options = options(Bench::new().profile);
    let gain = |low: f64, high: f64| crate::Gain {
        metric: "transactions_per_s".to_owned(),
        from: "before".to_owned(),
        to: "after".to_owned(),
        ratio: (low + high) / 2.0,
        low,
        high,
    };
    let concluded = |low: f64, high: f64| {
        let mut measure = |proposals: &[SettingProposal]| {
            let rate = crate::Rate { per_s: 100.0, low: 99.0, high: 101.0 };
            let gain = gain(low, high);
            Ok(crate::servers::MeasuredSettings {
                program: "PostgreSQL 15".to_owned(),
                directory: "/tmp".to_owned(),
                attached: None,
                workload: "pgbench".to_owned(),
                rounds: 5,
                settings: proposals.iter().map(|proposal| proposal.name.clone()).collect(),
                before: rate,
                after: rate,
                verdict: crate::servers::verdict(&gain).to_owned(),
                gain,
                log: None,
            })
        };
        let tuning = tune_postgres(&options, &mut Silent).unwrap();
        let restate = |tuning: &mut ServerTuning| [tuning.sql, tuning.undo_sql] = statements(&tuning.proposals);
        tuning.concluded(SettingProposal::is_of_server, restate, Some(&mut measure), None).unwrap()
    };
    let confirmed = concluded(1.05, 1.2);
    assert_eq!((confirmed.proposals.len(), confirmed.sql.len()), (4, 5));
    let neither = concluded(0.9, 1.2);
    assert!(neither.proposals.is_empty() && neither.sql.is_empty() && neither.undo_sql.is_empty(), "{neither:?}");
    assert_eq!(neither.left_alone.len(), ruled());
    let first = &neither.left_alone[0];
    assert_eq!((first.name.as_str(), first.verdict.as_str()), ("random_page_cost", "not-confirmed"));
}
