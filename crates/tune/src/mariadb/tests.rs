//! Proposals in order, and a comparison with a real server, if one is installed.

use std::time::Duration;

use flashwise_block::Silent;
use flashwise_profile::Figure;

use super::rules::tests::Bench;
use super::statements::SqlFile;
use super::*;
use crate::Target;
use crate::servers::tests::LearnsNothing;

fn options(bench: &Bench) -> MariadbOptions {
    MariadbOptions { drive: bench.profile.clone().into(), server: None, skip: Vec::new(), apply: false, measure: None }
}

/// A running server; `None` where none is installed.
fn server() -> Option<PrivateMariadb> {
    let mut server = match PrivateMariadb::new(None, None) {
        Ok(server) => server,
        Err(TuneError::Missing(why)) => {
            eprintln!("{why}: not tested");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    server.create("one", &mut Silent).unwrap();
    server.start("one", &[], &mut Silent).unwrap();
    Some(server)
}

fn names(tuning: &ServerTuning) -> Vec<&str> {
    tuning.proposals.iter().map(|proposal| proposal.name.as_str()).collect()
}

#[test]
fn settings_follow_from_the_profile_alone_and_say_when_they_act() {
    let mut bench = Bench::new();
    bench.profile.parameters.page_bytes = Figure::certain(8192, 8192, 8192);
    let tuning = tune_mariadb(&options(&bench), &mut Silent).unwrap();
    let capacities = [CAPACITY_MAX, CAPACITY];
    assert_eq!(
        names(&tuning),
        [&["innodb_flush_neighbors"][..], &capacities, &["innodb_log_write_ahead_size"]].concat()
    );
    assert_eq!(
        tuning.sql,
        [
            "SET GLOBAL innodb_flush_neighbors = 0;",
            "SET GLOBAL innodb_io_capacity_max = 20000;",
            "SET GLOBAL innodb_io_capacity = 10000;"
        ]
    );
    assert_eq!(tuning.undo_sql[0], "SET GLOBAL innodb_io_capacity = 200;", "the last one first");
    let option_file = tuning.option_file.unwrap();
    assert_eq!((&*option_file[0], &*option_file[4]), ("[mariadbd]", "innodb_log_write_ahead_size = 8192"));
    assert_eq!(tuning.left_alone.len() + tuning.proposals.len(), RULES.len());
}

#[test]
fn a_page_size_is_for_a_new_instance_and_nowhere_else() {
    let mut bench = Bench::new();
    bench.profile.parameters.page_bytes = Figure::certain(32_768, 32_768, 32_768);
    let tuning = tune_mariadb(&options(&bench), &mut Silent).unwrap();
    let page = tuning.proposals.iter().find(|proposal| proposal.name == "innodb_page_size").unwrap();
    assert_eq!((page.new_value.as_str(), page.takes_effect.as_str()), ("32768", "new-instance"));
    assert!(page.apply.contains("mariadb-install-db --innodb_page_size=32768"), "{}", page.apply);
    assert!(!tuning.sql.iter().chain(tuning.option_file.iter().flatten()).any(|line| line.contains("page_size")));
    assert!(tuning.notes.iter().any(|note| note.starts_with("The page size of an instance")));
}

#[test]
fn a_capacity_and_its_maximum_never_pass_each_other() {
    let mut bench = Bench::new();
    bench.set(CAPACITY, "50000");
    bench.set(CAPACITY_MAX, "60000");
    let order = |bench: &Bench, skip: &[&str]| {
        let mut options = options(bench);
        options.skip = skip.iter().map(|name| (*name).to_owned()).collect();
        let judged = judge(&options, &bench.facts());
        judged.proposals.into_iter().map(|p| p.name).filter(|n| n.contains("capacity")).collect::<Vec<_>>()
    };
    assert_eq!(order(&bench, &[]), [CAPACITY, CAPACITY_MAX], "what is lowered below the other one goes second");
    assert!(order(&bench, &[CAPACITY]).is_empty(), "a maximum below a capacity that stays");
    let bench = Bench::new();
    assert_eq!(order(&bench, &[]), [CAPACITY_MAX, CAPACITY]);
    assert!(order(&bench, &[CAPACITY_MAX]).is_empty(), "a capacity above a maximum that stays");
}

#[test]
fn what_is_not_known_is_refused() {
    let bench = Bench::new();
    let told = |options: &MariadbOptions| tune_mariadb(options, &mut Silent).unwrap_err().to_string();
    let skip = vec!["io_capacity".to_owned()];
    assert!(told(&MariadbOptions { skip, ..options(&bench) }).contains("innodb_io_capacity_max"));
    assert!(told(&MariadbOptions { apply: true, ..options(&bench) }).contains("CONNECTION"));
}

#[test]
fn mistakes_are_found_before_a_drive_is_learned() {
    let drive = DataDrive::Unlearned(Target::parse("sim:samsung-960-evo").unwrap());
    let unlearned = MariadbOptions { drive, ..options(&Bench::new()) };
    let skip = vec!["io_capacity".to_owned()];
    let nobody = MariadbAddress::Socket { path: "/no/such/socket".into(), user: "root".to_owned() };
    let measure = MariadbMeasureOptions {
        programs: Some("/no/such/programs".into()),
        directory: None,
        attach: None,
        load: None,
        script: None,
        log: Vec::new(),
        rows: 1,
        clients: 1,
        rounds: 5,
        round_time: Duration::from_secs(1),
        seed: 1,
    };
    let mistakes = [
        (MariadbOptions { skip, ..unlearned.clone() }, "innodb_io_capacity_max"),
        (MariadbOptions { server: Some(nobody), ..unlearned.clone() }, "/no/such/socket"),
        (MariadbOptions { measure: Some(measure), ..unlearned.clone() }, "/no/such/programs"),
    ];
    for (options, words) in mistakes {
        let told = tune_mariadb(&options, &mut LearnsNothing).unwrap_err().to_string();
        assert!(told.contains(words), "{told}");
    }
}

#[test]
fn the_table_of_defaults_is_that_of_a_real_server() {
    let Some(server) = server() else { return };
    let facts = Server::connect(&server.place()).unwrap().facts;
    for (name, value, effect) in settings::KNOWN {
        let told = facts.variables.get(name).unwrap_or_else(|| panic!("{} has no {name}", facts.program));
        assert_eq!(told.effect, effect, "{name}");
        // This one the server takes from its drive.
        assert!(told.value == value || name == "innodb_log_write_ahead_size", "{name} is {}", told.value);
    }
}

/// A server that starts removes temporary tables from its directory for them: those of another one were lost, which
/// broke the making of an instance beside it.
#[test]
fn a_private_server_leaves_the_temporary_tables_of_others_alone() {
    let others = std::env::temp_dir().join(format!("#sql-temptable-flashwise-{}.MAI", std::process::id()));
    std::fs::write(&others, "").unwrap();
    let server = server();
    let is_there = others.exists();
    std::fs::remove_file(&others).unwrap();
    assert!(is_there || server.is_none());
}

#[test]
fn what_acts_at_once_is_applied_read_back_and_taken_back() {
    let Some(server) = server() else { return };
    let bench = Bench::new();
    let options = MariadbOptions { server: Some(server.place()), apply: true, ..options(&bench) };
    let tuning = tune_mariadb(&options, &mut Silent).unwrap();
    let applied = tuning.applied.as_ref().unwrap();
    assert_eq!(applied.statements.len(), 3);
    let mut connection = Server::connect(&server.place()).unwrap();
    assert_eq!(connection.value(CAPACITY_MAX).unwrap(), "20000");
    assert_eq!(connection.value("innodb_flush_neighbors").unwrap(), "0");
    let again = tune_mariadb(&options, &mut Silent).unwrap();
    assert!(again.sql.is_empty() && again.proposals.len() < tuning.proposals.len(), "{:?}", again.sql);
    applied.undo.iter().for_each(|statement| connection.execute(statement).unwrap());
    for name in [CAPACITY, CAPACITY_MAX, "innodb_flush_neighbors"] {
        assert_eq!(connection.value(name).unwrap(), Variables::documented().get(name).unwrap().value, "{name}");
    }
}

#[test]
fn where_one_proposal_is_refused_none_is_applied() {
    let Some(server) = server() else { return };
    let bench = Bench::new();
    let judged = judge(&options(&bench), &bench.facts());
    let mut connection = Server::connect(&server.place()).unwrap();
    // The server refuses a statement; and it mends a value, with a warning, which is read back.
    for (wrong, words) in [("SET GLOBAL innodb_io_capacity = 'much';", "Incorrect argument"), ("", "is 100, not 10000")]
    {
        let mut proposals = judged.proposals.clone();
        let last = proposals.iter_mut().find(|proposal| proposal.name == CAPACITY).unwrap();
        last.apply = if wrong.is_empty() { "SET GLOBAL innodb_io_capacity = 1;".to_owned() } else { wrong.to_owned() };
        let told = apply(&mut connection, &proposals).unwrap_err().to_string();
        assert!(told.contains(words), "{told}");
        for name in [CAPACITY, CAPACITY_MAX, "innodb_flush_neighbors"] {
            assert_eq!(connection.value(name).unwrap(), Variables::documented().get(name).unwrap().value, "{name}");
        }
    }
}

#[test]
fn an_instance_cannot_be_given_another_page_size() {
    let Some(mut server) = server() else { return };
    let other = [("innodb_page_size".to_owned(), "8192".to_owned())];
    let told = server.start("one", &other, &mut Silent).unwrap_err().to_string();
    assert!(told.starts_with("mariadbd: "), "{told}");
    server.start("one", &[], &mut Silent).unwrap();
}

fn measure_options() -> MariadbMeasureOptions {
    MariadbMeasureOptions {
        programs: None,
        directory: None,
        attach: None,
        load: None,
        script: None,
        log: Vec::new(),
        rows: 2_000,
        clients: 2,
        rounds: 5,
        round_time: std::time::Duration::from_millis(200),
        seed: 1,
    }
}

#[test]
fn the_user_s_files_are_read_once_also_from_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::write(pipe, "SELECT 1; SELECT 2").unwrap()
    });
    let options = MariadbMeasureOptions { script: Some(pipe), ..measure_options() };
    let script = options.check().unwrap().script.unwrap();
    writer.join().unwrap();
    assert_eq!(script.statements().map(|statement| statement.text).collect::<Vec<_>>(), ["SELECT 1", "SELECT 2"]);
}

#[test]
fn the_user_s_tables_are_loaded_and_the_user_s_transaction_is_repeated() {
    let Some(server) = server() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let tables = file(
        "load.sql",
        "/*!40101 SET NAMES utf8mb4 */;
         CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL) ENGINE = InnoDB;
         INSERT INTO t SELECT seq, 0 FROM seq_1_to_100;
         CREATE TABLE log (k INT AUTO_INCREMENT PRIMARY KEY, id INT, note TEXT);\n\
         DELIMITER ;;\n\
         CREATE TRIGGER once BEFORE UPDATE ON t FOR EACH ROW BEGIN INSERT INTO log (id, note) VALUES (NEW.id, ';'); END ;;\n\
         DELIMITER ;\n",
    );
    let transaction =
        "SET @id = 1 + FLOOR(RAND() * 100);\nBEGIN; UPDATE t SET n = n + 1 WHERE id = @id; COMMIT; -- end";
    let mut options = measure_options();
    options.script = Some(file("work.sql", transaction));
    options.load = Some(tables);
    let own = options.check().unwrap();
    let (tables, script) = (own.load.unwrap(), own.script.unwrap());
    let mut connection = server.connect().unwrap();
    measure::load(&mut connection, &tables, "flashwise", &mut Silent).unwrap();
    let repeat = |seed: u64| {
        let end = std::time::Instant::now() + std::time::Duration::from_millis(100);
        measure::repeat(server.connect().unwrap(), &script, seed, end)
    };
    // Two sessions that meet at the same rows.
    let done: u64 = std::thread::scope(|scope| {
        [1, 2]
            .map(|seed| {
                scope.spawn({
                    let repeat = &repeat;
                    move || repeat(seed)
                })
            })
            .into_iter()
            .map(|session| session.join().unwrap().unwrap())
            .sum()
    });
    let mut ask = |sql: &str| mysql::prelude::Queryable::query_first::<u64, _>(&mut connection, sql).unwrap().unwrap();
    assert_eq!((ask("SELECT sum(n) FROM t"), ask("SELECT count(*) FROM log")), (done, done));
    let mut chosen = || {
        let before = ask("SELECT max(k) FROM log");
        assert!(repeat(7).unwrap() > 1);
        [0, 1].map(|n| ask(&format!("SELECT id FROM log WHERE k > {before} ORDER BY k LIMIT {n}, 1")))
    };
    assert_eq!(chosen(), chosen(), "the same choices for one seed");

    let wrong = SqlFile::read(&file("wrong.sql", "SELECT 1;\n\nSELECT nothing FROM t;")).unwrap();
    let end = std::time::Instant::now() + std::time::Duration::from_secs(1);
    let told = measure::repeat(server.connect().unwrap(), &wrong, 1, end).unwrap_err().to_string();
    assert!(told.contains("wrong.sql, line 3: ") && told.contains("nothing"), "{told}");
    options.script = None;
    assert!(options.check().unwrap_err().to_string().contains("give yours with --sql"));
    options.script = Some(file("empty.sql", "-- nothing"));
    assert!(options.check().unwrap_err().to_string().ends_with("empty.sql: no SQL statement in it"));
}

#[test]
fn old_and_new_settings_are_measured_in_turns_and_nothing_is_left() {
    let directory = tempfile::tempdir().unwrap();
    // The server's user has to come through.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let bench = Bench::new();
    let measure = MariadbMeasureOptions { directory: Some(directory.path().to_owned()), ..measure_options() };
    let options = MariadbOptions { measure: Some(measure), ..options(&bench) };
    let tuning = match tune_mariadb(&options, &mut Silent) {
        Ok(tuning) => tuning,
        Err(TuneError::Missing(why)) => return eprintln!("{why}: not tested"),
        Err(TuneError::Refused(why)) => return eprintln!("{why}: not tested"),
        Err(error) => panic!("{error}"),
    };
    let measured = tuning.measured.unwrap();
    assert!(measured.before.per_s > 1.0 && measured.after.per_s > 1.0, "{measured:?}");
    assert!(measured.gain.low <= measured.gain.ratio && measured.gain.ratio <= measured.gain.high);
    assert!(measured.settings.contains(&"innodb_flush_neighbors = 0".to_owned()), "{:?}", measured.settings);
    assert_eq!(directory.path().read_dir().unwrap().count(), 0);
}

#[test]
fn a_general_log_is_replayed_with_old_and_new_settings() {
    let directory = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let place = tempfile::tempdir().unwrap();
    let load = place.path().join("load.sql");
    let tables = "CREATE TABLE item (id int PRIMARY KEY, name varchar(100) NOT NULL, stock int NOT NULL);
        CREATE TABLE sale (id bigint PRIMARY KEY AUTO_INCREMENT, item int NOT NULL, count int NOT NULL, note text);
        INSERT INTO item SELECT seq, concat('item ', seq), 1000 FROM seq_1_to_1000;";
    std::fs::write(&load, tables).unwrap();
    let evil = place.path().join("evil.log");
    let line =
        "\t\t     9 Connect\tapp@localhost on shop using Socket\n\t\t     9 Query\tSELECT 1 INTO OUTFILE '/tmp/x'\n";
    std::fs::write(&evil, line).unwrap();
    let log = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/general.log");
    let measure = MariadbMeasureOptions {
        directory: Some(directory.path().to_owned()),
        load: Some(load),
        log: vec![log, evil],
        ..measure_options()
    };
    let bench = Bench::new();
    let tuning = match tune_mariadb(&MariadbOptions { measure: Some(measure), ..options(&bench) }, &mut Silent) {
        Ok(tuning) => tuning,
        Err(TuneError::Missing(why) | TuneError::Refused(why)) => return eprintln!("{why}: not tested"),
        Err(error) => panic!("{error}"),
    };
    let log = tuning.measured.unwrap().log.unwrap();
    // Of each side: what the log's sessions did on a table that is missing, and the file that nobody may write.
    assert_eq!(log.refused, 2 * 4, "{log:?}");
    assert_eq!(log.played, 2 * (log.transactions - 4), "{log:?}");
    let reasons: Vec<&str> = log.refusals.iter().map(|counted| &*counted.reason).collect();
    assert!(reasons.iter().any(|reason| reason.contains("Access denied")), "{reasons:?}");
    assert!(reasons.contains(&"Table 'shop.nowhere' doesn't exist"), "{reasons:?}");
    assert_eq!(directory.path().read_dir().unwrap().count(), 0);
}
