//! `fit postgres` with a real server: what is read, what is applied, what is taken back, and that nothing stays
//! behind.
//!
//! Where no server is installed there is nothing to test, and a line says so.

use crate::support;
use std::path::{Path, PathBuf};

use flashwise_block::Silent;
use flashwise_profile::{DeviceProfile, Figure};
use flashwise_tune::TuneError;
use flashwise_tune::postgres::{
    PostgresMeasureOptions, PostgresOptions, PrivatePostgres, StatementCounts, tune_postgres,
};
use flashwise_tune::{DataDrive, LeftAlone, ServerTuning, SettingProposal};
use postgres::{Client, NoTls};
use support::samsung;

/// A server that runs; `None`, told, where none is installed.
fn server() -> Option<PrivatePostgres> {
    let mut server = match PrivatePostgres::new(None, None) {
        Err(TuneError::Missing(why)) => {
            println!("skipped: {why}");
            return None;
        }
        other => other.unwrap(),
    };
    server.create("data", &mut Silent).unwrap();
    server.start("data", &[], &mut Silent).unwrap();
    Some(server)
}

/// A server, and room for the clusters of a measurement, which must fit in a tenth of what is free.
fn server_and_room() -> Option<PrivatePostgres> {
    let space = rustix::fs::statvfs(std::env::temp_dir()).unwrap();
    if space.f_bavail * space.f_frsize < 24 << 30 {
        println!("skipped: it takes 24 GiB of free space in {}", std::env::temp_dir().display());
        return None;
    }
    server()
}

/// The default drive, with what is learned of it only where more is asked for than the layout.
fn drive() -> DeviceProfile {
    let mut profile = samsung();
    profile.parameters.flush_ns = Figure::certain(740_000, 708_000, 771_000);
    profile
}

fn connect(server: &PrivatePostgres) -> Client {
    Client::connect(&server.dsn(), NoTls).unwrap()
}

fn show(server: &PrivatePostgres, name: &str) -> String {
    connect(server).query_one("SELECT current_setting($1)", &[&name]).unwrap().get(0)
}

fn options(server: &PrivatePostgres, profile: DeviceProfile) -> PostgresOptions {
    PostgresOptions {
        drive: profile.into(),
        dsn: Some(server.dsn()),
        version: 15,
        sessions: 1,
        depth: Some(1),
        skip: Vec::new(),
        apply: false,
        measure: None,
    }
}

fn tuned(options: &PostgresOptions) -> ServerTuning {
    tune_postgres(options, &mut Silent).unwrap()
}

fn proposal<'a>(tuning: &'a ServerTuning, name: &str) -> &'a SettingProposal {
    let found = tuning.proposals.iter().find(|proposal| proposal.name == name);
    found.unwrap_or_else(|| panic!("{name}: {:?}", tuning.proposals))
}

fn left<'a>(tuning: &'a ServerTuning, name: &str) -> &'a LeftAlone {
    tuning.left_alone.iter().find(|left| left.name == name).unwrap_or_else(|| panic!("{name}: {:?}", tuning.left_alone))
}

/// Stops what it is shown, and keeps what that was.
#[derive(Default)]
struct Stopping(String);

impl flashwise_block::Progress for Stopping {
    fn advance(&mut self, stage: &str, _: f64) -> Result<(), flashwise_block::BlockError> {
        self.0 = stage.to_owned();
        Err(flashwise_block::BlockError::Interrupted)
    }
}

#[test]
fn a_drive_that_is_not_named_is_the_one_below_the_server_s_data() {
    let Some(server) = server() else { return };
    let options = PostgresOptions { drive: DataDrive::Unnamed, ..options(&server, drive()) };
    let mut progress = Stopping::default();
    let error = tune_postgres(&options, &mut progress).unwrap_err().to_string();
    assert!(!progress.0.is_empty() && !error.contains("--on"), "learning has begun: {error}");
    // Who may not see the directory of the data names the drive.
    connect(&server).batch_execute("CREATE ROLE reader LOGIN").unwrap();
    let dsn = format!("{} user=reader", server.dsn().replace("user=postgres", ""));
    let of_reader = PostgresOptions { dsn: Some(dsn), ..options };
    let error = tune_postgres(&of_reader, &mut progress).unwrap_err().to_string();
    assert!(error.contains("does not show this user") && error.contains("--on"), "{error}");
}

/// Everything that can be set, as a new connection sees it.
fn all_settings(server: &PrivatePostgres) -> Vec<(String, String)> {
    let rows = connect(server).query("SELECT name, setting FROM pg_settings ORDER BY name", &[]).unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// Runs statements one by one, and waits until new connections have read the configuration again.
fn run_and_wait(server: &PrivatePostgres, statements: &[String], is_done: impl Fn() -> bool) {
    let mut client = connect(server);
    statements.iter().for_each(|statement| client.batch_execute(statement).unwrap());
    for _ in 0..200 {
        if is_done() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("the configuration was not read again");
}

#[test]
fn nothing_is_changed_unless_that_is_asked_for_and_undo_takes_all_of_it_back() {
    let Some(server) = server() else { return };
    run_and_wait(&server, &["ALTER SYSTEM SET commit_delay = 7".into(), "SELECT pg_reload_conf()".into()], || {
        show(&server, "commit_delay") == "7"
    });
    let before = all_settings(&server);
    let plan = tuned(&options(&server, drive()));
    assert!(plan.applied.is_none() && all_settings(&server) == before, "only read");
    assert!(plan.program.starts_with("PostgreSQL ") && plan.server.as_deref().unwrap().ends_with(":5432"));
    assert_eq!(plan.proposals[0].name, "random_page_cost");

    let applied = tuned(&PostgresOptions { apply: true, ..options(&server, drive()) });
    let done = applied.applied.as_ref().unwrap();
    assert_eq!((&done.statements, &done.undo), (&plan.sql, &plan.undo_sql));
    assert!(done.needs_restart.is_empty());
    for proposal in &plan.proposals {
        assert_eq!(show(&server, &proposal.name), proposal.new_value, "{}", proposal.name);
        assert_ne!(proposal.old_value, proposal.new_value);
    }
    let again = tuned(&options(&server, drive()));
    assert_eq!(again.proposals, [], "what was applied fits");

    assert_eq!(proposal(&plan, "commit_delay").undo, "ALTER SYSTEM SET commit_delay = 7;");
    run_and_wait(&server, &done.undo, || all_settings(&server) == before);
}

#[test]
fn what_writes_of_evicted_pages_cost_follows_from_the_servers_times() {
    let Some(server) = server() else { return };
    let note = || {
        let notes = tuned(&options(&server, drive())).notes;
        notes.into_iter().find(|note| note.contains("evicted")).unwrap()
    };
    assert!(note().contains("track_io_timing is off"), "{}", note());
    let timed = ["ALTER SYSTEM SET track_io_timing = on", "SELECT pg_reload_conf()", "SELECT pg_stat_reset()"];
    run_and_wait(&server, &timed.map(str::to_owned), || show(&server, "track_io_timing") == "on");
    let mut client = connect(&server);
    client.batch_execute("CREATE TABLE evicted AS SELECT repeat('x', 500) FROM generate_series(1, 5000)").unwrap();
    drop(client);
    let started = std::time::Instant::now();
    while !note().starts_with("Backends spent ") {
        assert!(started.elapsed().as_secs() < 60, "{}", note());
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let busy = tuned(&options(&server, drive())).eviction.unwrap().drive_busy.unwrap();
    assert!(
        (0.0..1.0).contains(&busy) && note().contains("writes a second keep the drive at most"),
        "{busy}: {}",
        note()
    );
    let undo = ["ALTER SYSTEM RESET track_io_timing", "SELECT pg_reload_conf()"];
    run_and_wait(&server, &undo.map(str::to_owned), || show(&server, "track_io_timing") == "off");
}

#[test]
fn a_table_gets_room_from_its_own_updates_and_keeps_what_it_had() {
    let Some(server) = server() else { return };
    let rows = "CREATE TABLE moved (k integer PRIMARY KEY, v text);
        CREATE TABLE \"Half\" (k integer PRIMARY KEY, v text) WITH (fillfactor = 95);
        CREATE TABLE quiet (k integer PRIMARY KEY, v text) WITH (fillfactor = 50);
        INSERT INTO moved SELECT i, repeat('x', 100) FROM generate_series(1, 5000) i;
        INSERT INTO \"Half\" SELECT i, repeat('x', 100) FROM generate_series(1, 5000) i;
        INSERT INTO quiet SELECT i, repeat('x', 100) FROM generate_series(1, 5000) i;";
    let mut client = connect(&server);
    client.batch_execute(rows).unwrap();
    for table in ["moved", "\"Half\"", "quiet"] {
        client.batch_execute(&format!("UPDATE {table} SET v = repeat('y', 100) WHERE k % 4 = 0")).unwrap();
    }
    client.batch_execute("SELECT pg_stat_force_next_flush()").unwrap();
    drop(client);
    let mut seen = tuned(&options(&server, drive()));
    for _ in 0..100 {
        if seen.proposals.iter().filter(|proposal| proposal.name.starts_with("fillfactor of")).count() == 2 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
        seen = tuned(&options(&server, drive()));
    }
    // 1,250 updates of 5,000 rows: 0.25 of a row, 100 ÷ 1.25 = 80.
    let moved = proposal(&seen, "fillfactor of public.moved");
    assert_eq!((&*moved.old_value, &*moved.new_value, &*moved.takes_effect), ("100", "80", "new-pages"));
    assert_eq!(moved.undo, "ALTER TABLE public.moved RESET (fillfactor);");
    let half = proposal(&seen, "fillfactor of public.\"Half\"");
    assert_eq!(half.undo, "ALTER TABLE public.\"Half\" SET (fillfactor = 95);");
    assert_eq!(left(&seen, "fillfactor of public.quiet").verdict, "fits");

    let fill = |table: &str| -> Option<String> {
        let query = "SELECT array_to_string(reloptions, ',') FROM pg_class WHERE relname = $1";
        connect(&server).query_one(query, &[&table]).unwrap().get(0)
    };
    let skip = vec!["fillfactor of public.\"Half\"".to_owned()];
    let applied = tuned(&PostgresOptions { apply: true, skip, ..options(&server, drive()) }).applied.unwrap();
    assert_eq!((fill("moved").as_deref(), fill("Half").as_deref()), (Some("fillfactor=80"), Some("fillfactor=95")));
    run_and_wait(&server, &applied.undo, || fill("moved").is_none());
}

#[test]
fn a_statement_that_fails_takes_back_those_before_it() {
    let Some(server) = server() else { return };
    let before = all_settings(&server);
    let lesser = "CREATE ROLE lesser LOGIN; GRANT ALTER SYSTEM ON PARAMETER random_page_cost TO lesser;
        GRANT EXECUTE ON FUNCTION pg_reload_conf TO lesser";
    connect(&server).batch_execute(lesser).unwrap();
    let dsn = Some(server.dsn().replace("user=postgres", "user=lesser"));
    let error = tune_postgres(&PostgresOptions { apply: true, dsn, ..options(&server, drive()) }, &mut Silent);
    let told = error.unwrap_err().to_string();
    assert!(told.contains("ALTER SYSTEM SET effective_io_concurrency") && told.contains("permission denied"), "{told}");
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(all_settings(&server), before);
}

#[test]
fn what_is_set_elsewhere_is_left() {
    let Some(server) = server() else { return };
    connect(&server).batch_execute("ALTER ROLE postgres SET random_page_cost = 2").unwrap();
    let tuning = tuned(&options(&server, drive()));
    let cost = left(&tuning, "random_page_cost");
    assert_eq!((&*cost.verdict, &*cost.value), ("overridden", "2"));
    assert!(cost.reason.contains("ALTER ROLE"));
}

/// Programs of other versions, which `scripts/postgres-versions` gets.
fn other_versions() -> Vec<PathBuf> {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/postgres-versions");
    let found = std::fs::read_dir(target).into_iter().flatten().flatten();
    found.map(|entry| entry.path().join("bin")).filter(|programs| programs.join("initdb").exists()).collect()
}

/// A running server of these programs; `None` where they cannot be run, as below a folder that is this user's alone.
fn server_of(programs: &Path) -> Option<PrivatePostgres> {
    let mut server = PrivatePostgres::new(Some(programs), None).unwrap();
    let created = server.create("data", &mut Silent).and_then(|()| server.start("data", &[], &mut Silent));
    created.inspect_err(|why| println!("skipped {}: {why}", programs.display())).ok().map(|()| server)
}

#[test]
fn the_documented_defaults_are_those_of_every_server_that_is_here() {
    let others = other_versions();
    if others.is_empty() {
        println!("skipped for versions that are not installed: scripts/postgres-versions gets them");
    }
    let mut profile = drive();
    // Then the rule of either setting speaks.
    profile.parameters.compression_gain = Figure::certain(3.0, 2.9, 3.1);
    for server in server().into_iter().chain(others.iter().filter_map(|programs| server_of(programs))) {
        let version: i32 = connect(&server)
            .query_one("SELECT current_setting('server_version_num')::int / 10000", &[])
            .unwrap()
            .get(0);
        let asked = tuned(&options(&server, profile.clone()));
        let version = version.unsigned_abs();
        let known = tuned(&PostgresOptions { dsn: None, version, ..options(&server, profile.clone()) });
        let values = |tuning: &ServerTuning| {
            let proposed = tuning.proposals.iter().map(|p| (p.name.clone(), p.old_value.clone(), p.new_value.clone()));
            let left = tuning.left_alone.iter().map(|l| (l.name.clone(), l.value.clone(), String::new()));
            proposed.chain(left).filter(|(name, ..)| !name.starts_with("fillfactor")).collect::<Vec<_>>()
        };
        assert_eq!(values(&asked), values(&known), "{}", asked.program);
        let acts = |tuning: &ServerTuning| {
            tuning.proposals.iter().map(|p| (p.name.clone(), p.takes_effect.clone())).collect::<Vec<_>>()
        };
        assert_eq!(acts(&asked), acts(&known), "{}", asked.program);
        assert_eq!(proposal(&asked, "wal_recycle").new_value, "off");
        println!("{}: {} settings", asked.program, values(&asked).len());
    }
}

/// Transactions whose time is told by a setting.
struct Work {
    place: tempfile::TempDir,
}

impl Work {
    fn new(transaction: &str) -> Self {
        let work = Self { place: tempfile::tempdir().unwrap() };
        std::fs::write(work.path("work.sql"), transaction).unwrap();
        std::fs::write(work.path("load.sql"), "CREATE TABLE t AS SELECT 1 AS k").unwrap();
        std::fs::create_dir(work.path("data")).unwrap();
        for path in [work.place.path(), &work.path("data")] {
            // The server's user is another one where the tests are run by root.
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        work
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.place.path().join(name)
    }

    fn options(&self, server: &PrivatePostgres) -> PostgresOptions {
        let measure = PostgresMeasureOptions {
            programs: None,
            directory: Some(self.path("data")),
            attach: None,
            load: Some(self.path("load.sql")),
            script: Some(self.path("work.sql")),
            log: Vec::new(),
            counts: None,
            scale: 1,
            clients: 2,
            rounds: 5,
            round_seconds: 1,
            seed: 1,
        };
        PostgresOptions { measure: Some(measure), apply: true, ..options(server, drive()) }
    }

    fn left_nothing(&self) -> bool {
        std::fs::read_dir(self.path("data")).unwrap().next().is_none() && works_in(self.place.path()).is_empty()
    }
}

/// A transaction that takes longer where `maintenance_io_concurrency` is what a comparison with its default says.
fn slow_where(comparison: &str) -> String {
    let setting = "current_setting('maintenance_io_concurrency')::int";
    format!("SELECT k, pg_sleep(CASE WHEN {setting} {comparison} 10 THEN 0.05 ELSE 0.01 END) FROM t;\n")
}

#[test]
fn new_settings_that_are_faster_pay_and_are_applied() {
    let Some(server) = server_and_room() else { return };
    let work = Work::new(&slow_where("="));
    let tuning = tuned(&work.options(&server));
    let measured = tuning.measured.unwrap();
    assert_eq!((measured.rounds, &*measured.verdict), (5, "pays"), "{:?}", measured.gain);
    assert_eq!(measured.settings.len(), tuning.proposals.len());
    // Two sessions that sleep for 50 or for 10 ms; how long a checkpoint takes is the machine's.
    assert!((4.0..=40.0).contains(&measured.before.per_s), "{:?}", measured.before);
    assert!(measured.gain.ratio > 2.0 && measured.gain.low <= measured.gain.ratio, "{:?}", measured.gain);
    assert_ne!(show(&server, "maintenance_io_concurrency"), "10", "applied");
    assert!(tuning.applied.is_some() && work.left_nothing());
}

#[test]
fn new_settings_that_are_slower_are_told_as_that_and_not_applied() {
    let Some(server) = server_and_room() else { return };
    let work = Work::new(&slow_where("<>"));
    let before = all_settings(&server);
    let tuning = tuned(&work.options(&server));
    assert_eq!(tuning.measured.unwrap().verdict, "costs");
    assert!(tuning.applied.is_none() && tuning.notes.iter().any(|note| note.starts_with("Nothing was applied")));
    assert!(all_settings(&server) == before && work.left_nothing());
}

#[test]
fn transactions_that_fail_are_told_with_their_reason_and_leave_nothing_behind() {
    let Some(server) = server_and_room() else { return };
    let work = Work::new("SELECT * FROM nowhere;\n");
    let told = tune_postgres(&work.options(&server), &mut Silent).unwrap_err().to_string();
    assert!(told.starts_with("pgbench: ") && told.contains("nowhere"), "{told}");
    assert!(work.left_nothing());
}

/// What the log in `tests/data` was written on.
const SHOP: &str = "\\restrict key
    CREATE TABLE item (id int PRIMARY KEY, name text NOT NULL, stock int NOT NULL, price numeric(8,2) NOT NULL);
    CREATE TABLE sale (id bigserial PRIMARY KEY, item int NOT NULL REFERENCES item, count int NOT NULL, note text);
    INSERT INTO item SELECT n, 'item ' || n, 1000, n * 0.5 FROM generate_series(1, 1000) n;";

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

#[test]
fn a_log_is_replayed_with_old_and_new_settings() {
    let Some(server) = server_and_room() else { return };
    let work = Work::new("");
    std::fs::write(work.path("load.sql"), SHOP.trim_start()).unwrap();
    let measured = |log: &str, counts: Option<StatementCounts>| {
        let mut options = PostgresOptions { apply: false, ..work.options(&server) };
        let measure = options.measure.as_mut().unwrap();
        (measure.script, measure.log, measure.counts) = (None, vec![data(log)], counts);
        tuned(&options).measured.unwrap()
    };
    let plain = measured("stderr.log", None);
    let log = plain.log.as_ref().unwrap();
    // Every round of each side has a fifth of it, and all of it is played on both.
    assert_eq!((log.played, log.refused, log.conflicts), (2 * log.transactions, 0, 0), "{log:?}");
    assert!(log.transactions > 20 && log.connections == 2 && plain.before.per_s > 0.0, "{log:?}");
    assert!(
        log.left_out.iter().any(|left| left.reason.starts_with("COPY from a client") && left.count == 1),
        "{log:?}"
    );

    let weighted = measured("log.csv", Some(StatementCounts::File(data("pg_stat_statements.csv"))));
    let log = weighted.log.unwrap();
    assert!(log.calls_covered.unwrap() > 0.9 && log.played > 10 * log.transactions, "{log:?}");
    assert!(work.left_nothing());
}

#[test]
fn who_replays_a_log_has_rights_on_the_tables_alone() {
    let Some(server) = server_and_room() else { return };
    let work = Work::new("");
    std::fs::write(work.path("load.sql"), SHOP.trim_start()).unwrap();
    let line = |sql: &str| format!("[7] LOG:  statement: {sql}\n");
    let evil = line("SELECT pg_read_file('/etc/passwd')");
    std::fs::write(work.path("log"), [evil, line("UPDATE item SET stock = 1"), line("TRUNCATE sale")].concat())
        .unwrap();
    let mut options = PostgresOptions { apply: false, ..work.options(&server) };
    let measure = options.measure.as_mut().unwrap();
    (measure.script, measure.log) = (None, vec![work.path("log"); 5]);
    let log = tuned(&options).measured.unwrap().log.unwrap();
    assert_eq!((log.refused, log.played), (10, 20), "{log:?}");
    assert!(log.refusals[0].reason.contains("permission denied"), "{log:?}");

    std::fs::write(work.path("log"), line("SELECT * FROM other")).unwrap();
    options.measure.as_mut().unwrap().log = vec![work.path("log"); 10];
    let error = tune_postgres(&options, &mut Silent).unwrap_err().to_string();
    assert!(error.contains("2 of 2 transactions fail") && error.contains("\"other\" does not exist"), "{error}");
}

#[test]
fn calls_are_read_off_the_server_that_is_fitted() {
    let Some(server) = server_and_room() else { return };
    let mut options = options(&server, drive());
    let work = Work::new("");
    options.measure = work.options(&server).measure.map(|measure| PostgresMeasureOptions {
        script: None,
        log: vec![data("log.json")],
        counts: Some(StatementCounts::Server),
        ..measure
    });
    let error = tune_postgres(&options, &mut Silent).unwrap_err().to_string();
    assert!(error.starts_with("pg_stat_statements: ") && error.contains("does not exist"), "{error}");
    // A view of the same name in its place: the module has to be loaded when a server starts.
    let view = "CREATE VIEW pg_stat_statements AS SELECT d.oid AS dbid, 'VACUUM' AS query, 5::bigint AS calls \
                FROM pg_database d WHERE datname = 'postgres'";
    connect(&server).batch_execute(view).unwrap();
    let error = tune_postgres(&options, &mut Silent).unwrap_err().to_string();
    assert!(error.contains("none of the statements of the log"), "{error}");
}

#[test]
fn a_server_goes_with_its_directory() {
    let Some(server) = server() else { return };
    let directory = server.directory().to_owned();
    let dsn = server.dsn();
    assert!(directory.join("data/postmaster.pid").exists());
    drop(server);
    assert!(!directory.exists());
    assert!(Client::connect(&dsn, NoTls).is_err());
    assert!(works_in(&directory).is_empty());
}

/// Processes whose working directory is below a directory.
fn works_in(directory: &Path) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let places = processes.filter_map(|process| std::fs::read_link(process.path().join("cwd")).ok());
    let places = places.map(|place| place.display().to_string());
    places.filter(|place| place.starts_with(&directory.display().to_string())).collect()
}
