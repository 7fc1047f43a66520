//! The extension `postgres/` in a server: it is built with PGXS, loaded, and put through what could lose data.
//!
//! The installed server is not touched. A server finds its libraries and extensions from the path of its own program,
//! so a copy of that program, in a tree of links beside the extension, has it and nobody else.

use std::collections::HashSet;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};
use rustix::process::{Pid, Signal, kill_process};

use crate::mounted::MOMENT;
use crate::private_server::{Programs, Server, expect_success, let_user_through};
use crate::support::Place;

/// A pool that every workload overflows, and four workers. The background writer leaves the work to them.
pub const SETTINGS: [&str; 7] = [
    "shared_preload_libraries=flashwise_ace",
    "shared_buffers=4MB",
    "bgwriter_lru_maxpages=0",
    "max_worker_processes=10",
    "max_wal_size=64MB",
    "min_wal_size=2MB",
    "autovacuum_naptime=1s",
];
const WORKERS: i64 = 4;

/// A server where only processes end, and not the machine: it needs no fsync.
fn server(place: &Place, name: &str, programs: Programs, data: PathBuf) -> Server {
    Server::create(place, name, programs, data, &settings_without_fsync())
}

fn settings_without_fsync() -> Vec<&'static str> {
    [&SETTINGS[..], &["fsync=off"]].concat()
}

/// Builds the extension, and puts it into a copy of the installed server below the place; says so where it cannot be
/// built here.
pub fn server_with_extension(place: &Place) -> Option<Programs> {
    let programs = Programs::find()?;
    let asked = |option: &str| {
        let told = Command::new(programs.bin.join("pg_config")).arg(option).output();
        told.ok().map(|told| PathBuf::from(String::from_utf8(told.stdout).unwrap().trim_end()))
    };
    // Debian's client package has PGXS, and no headers.
    let headers = asked("--includedir-server").filter(|headers| headers.join("postgres.h").exists());
    let (Some(pgxs), Some(_)) = (asked("--pgxs").filter(|pgxs| pgxs.exists()), headers) else {
        eprintln!("the server's headers (Debian: postgresql-server-dev) are not installed: not tested");
        return None;
    };
    let_user_through(place);
    let root = place.path("root");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../postgres");
    expect_success(&Command::new("cp").arg("-r").args([&source, &place.path("extension")]).output().unwrap());
    let mut make = Command::new("make");
    make.current_dir(place.path("extension")).args(["-s", "clean", "all", "install", "with_llvm=no", "COPT=-Werror"]);
    make.arg(format!("PG_CONFIG={}", programs.bin.join("pg_config").display()));
    make.arg(format!("PGXS={}", pgxs.display())).arg(format!("DESTDIR={}", root.display()));
    expect_success(&make.output().unwrap());

    let in_root = |path: &Path| root.join(path.strip_prefix("/").unwrap());
    let (libraries, shared) = (asked("--pkglibdir").unwrap(), asked("--sharedir").unwrap());
    for folder in [&libraries, &shared.join("extension"), &shared] {
        link_all(folder, &in_root(folder));
    }
    let bin = in_root(&programs.bin);
    std::fs::create_dir_all(&bin).unwrap();
    // Each finds the others, and the server its libraries, beside its own file: a link would lead to the
    // installed ones.
    for program in ["postgres", "initdb", "pg_ctl"] {
        std::fs::copy(programs.bin.join(program), bin.join(program)).unwrap();
    }
    link_all(&programs.bin, &bin);
    Some(Programs { bin, ..programs })
}

/// Links what is in a folder into another one, unless it is there.
fn link_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let link = to.join(entry.file_name());
        if link.symlink_metadata().is_err() {
            symlink(entry.path(), link).unwrap();
        }
    }
}

pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + MOMENT;
    while !holds() {
        assert!(Instant::now() < end, "it does not come to this: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// How long that takes is the machine's; only where a count stays as it is for a moment it has failed.
fn wait_while_it_grows(what: &str, enough: i64, mut count: impl FnMut() -> i64) {
    let mut last = count();
    while last < enough {
        let before = last;
        wait_until(&format!("more {what} than {before}"), || {
            last = count();
            last > before
        });
    }
}

pub fn number(client: &mut Client, sql: &str) -> i64 {
    client.query_one(&format!("SELECT ({sql})::bigint"), &[]).unwrap().get(0)
}

/// Buffers that the workers have written since the server was started.
pub fn written(client: &mut Client) -> i64 {
    number(client, "SELECT sum(written) FROM flashwise_ace_workers()")
}

/// Processes of the workers that are active.
fn active(client: &mut Client) -> HashSet<i32> {
    let rows = client.query("SELECT pid FROM flashwise_ace WHERE state = 'active'", &[]).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

fn wait_for_all_workers(client: &mut Client) {
    wait_for_workers(client, WORKERS);
}

fn wait_for_workers(client: &mut Client, count: i64) {
    wait_until("the workers are active", || active(client).len() == count as usize);
}

/// Changes the configuration of a running server.
fn reload(client: &mut Client, change: &str) {
    // ALTER SYSTEM does not run in a transaction.
    client.batch_execute(change).unwrap();
    client.batch_execute("SELECT pg_reload_conf()").unwrap();
}

/// Makes the tables of TPC-B.
pub fn load_tpcb(server: &Server, scale: u32) {
    expect_success(&server.client("pgbench").args(["-i", "-q", "-s", &scale.to_string()]).output().unwrap());
}

/// TPC-B by four sessions.
fn tpcb(server: &Server) -> Command {
    let mut pgbench = server.client("pgbench");
    pgbench.args(["-n", "-c", "4", "-j", "2"]).stdout(Stdio::null()).stderr(Stdio::null());
    pgbench
}

/// Runs TPC-B in the background, until it is ended or its server is.
pub fn start_tpcb(server: &Server) -> Child {
    tpcb(server).args(["-T", "600"]).spawn().unwrap()
}

/// Each transaction of TPC-B changes three balances and the history by the same amount.
pub fn check_tpcb(client: &mut Client) {
    let sums =
        "SELECT (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(tbalance) FROM pgbench_tellers)::bigint,
        (SELECT sum(bbalance) FROM pgbench_branches)::bigint,
        (SELECT coalesce(sum(delta), 0) FROM pgbench_history)::bigint";
    let row = client.query_one(sums, &[]).unwrap();
    let sums: [Option<i64>; 4] = [row.get(0), row.get(1), row.get(2), row.get(3)];
    assert!(sums.iter().all(|sum| sum.is_some() && *sum == sums[0]), "{sums:?}");
}

/// Compares indexes with their tables.
pub fn check_structure(server: &Server) {
    let mut amcheck = server.client("pg_amcheck");
    expect_success(&amcheck.args(["--install-missing", "--heapallindexed", "--database=postgres"]).output().unwrap());
}

/// Checks that a program that runs regression tests ended well; shows how results in its folder differ if not.
fn expect_regress(output: &Output, folder: &Path) {
    let differences = std::fs::read_to_string(folder.join("regression.diffs")).unwrap_or_default();
    assert!(output.status.success(), "{}{differences}", String::from_utf8_lossy(&output.stdout));
}

fn run_regress(place: &Place, server: &Server) {
    let extension = place.path("extension");
    let mut regress = Command::new(of_pgxs(&server.programs, "regress/pg_regress"));
    regress.current_dir(&extension).args(["--inputdir=.", "--user=postgres", "--dbname=regression", "flashwise_ace"]);
    regress.arg(format!("--host={}", server.sockets().display()));
    regress.arg(format!("--bindir={}", server.programs.bin.display()));
    expect_regress(&regress.output().unwrap(), &extension);
}

/// Makes databases, moves them to another tablespace and drops them; no worker keeps a file of theirs open.
fn databases_come_and_go(place: &Place, server: &Server, client: &mut Client) {
    let elsewhere = place.path("elsewhere");
    server.programs.own_directory(&elsewhere);
    client.batch_execute(&format!("CREATE TABLESPACE elsewhere LOCATION '{}'", elsewhere.display())).unwrap();
    for round in 0..3 {
        client.batch_execute("CREATE DATABASE gone TEMPLATE template0").unwrap();
        let oid = number(client, "SELECT oid FROM pg_database WHERE datname = 'gone'");
        let mut inside = server.address().dbname("gone").connect(NoTls).unwrap();
        inside
            .batch_execute(
                "CREATE TABLE t AS SELECT i AS k, repeat('x', 500) AS v FROM generate_series(1, 4000) i;
                 CREATE TABLE dropped AS TABLE t;
                 UPDATE t SET v = repeat('y', 500) WHERE k % 7 = 0;
                 UPDATE dropped SET v = 'z';
                 DROP TABLE dropped",
            )
            .unwrap();
        drop(inside);
        wait_until("nobody is connected to it", || {
            number(client, "SELECT count(*) FROM pg_stat_activity WHERE datname = 'gone'") == 0
        });
        if round > 0 {
            // Autovacuum may be in it for a moment.
            let alter = "ALTER DATABASE gone SET TABLESPACE elsewhere";
            wait_until("it is moved", || client.batch_execute(alter).is_ok());
            assert_no_worker_has_open(client, &format!("/base/{oid}/"));
            let mut inside = server.address().dbname("gone").connect(NoTls).unwrap();
            assert_eq!(number(&mut inside, "SELECT sum(length(v)) FROM t"), 2_000_000);
        }
        wait_until("it is dropped", || client.batch_execute("DROP DATABASE gone").is_ok());
        assert_no_worker_has_open(client, &format!("/{oid}/"));
    }
}

/// Files that workers have open, whose path has these words.
fn open_in_workers(client: &mut Client, words: &str) -> Vec<PathBuf> {
    let workers = active(client);
    let open =
        workers.iter().flat_map(|pid| std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten());
    let paths = open.filter_map(|descriptor| std::fs::read_link(descriptor.path()).ok());
    paths.filter(|path| path.display().to_string().contains(words)).collect()
}

fn assert_no_worker_has_open(client: &mut Client, words: &str) {
    assert_eq!(open_in_workers(client, words), Vec::<PathBuf>::new());
}

/// Ends all workers as an administrator does.
fn end_workers(client: &mut Client) {
    let before = active(client);
    client.batch_execute("SELECT pg_terminate_backend(pid) FROM flashwise_ace WHERE pid IS NOT NULL").unwrap();
    wait_until("other workers are active", || {
        let now = active(client);
        now.len() == WORKERS as usize && now.is_disjoint(&before)
    });
}

/// Takes a table's file away while pages of it are dirty: the worker that tries to write one fails, and says why; once
/// the file is back, nothing is lost.
fn a_write_fails(server: &Server, client: &mut Client) {
    let errors = "SELECT sum(errors) FROM flashwise_ace";
    let before = number(client, errors);
    client
        .batch_execute(
            "CREATE TABLE away (k integer, v text) WITH (autovacuum_enabled = off);
             INSERT INTO away SELECT i, repeat('x', 500) FROM generate_series(1, 300) i",
        )
        .unwrap();
    let path: String = client.query_one("SELECT pg_relation_filepath('away')", &[]).unwrap().get(0);
    let (here, there) = (server.data.join(&path), server.data.join("away"));
    client.batch_execute("CHECKPOINT").unwrap();
    wait_until("the workers have closed their files after the checkpoint", || {
        open_in_workers(client, &path).is_empty()
    });
    // This session has the file open from now on.
    assert_eq!(number(client, "SELECT count(*) FROM away"), 300);
    std::fs::rename(&here, &there).unwrap();
    client.batch_execute("UPDATE away SET v = repeat('y', 500)").unwrap();
    let mut other = server.connect().unwrap();
    wait_until("a worker reports an error", || {
        // It pushes the hand, and may fail itself.
        let insert = "INSERT INTO pgbench_history SELECT 1, 1, 1, 0, now(), '' FROM generate_series(1, 20000)";
        let _ = other.batch_execute(insert);
        number(client, errors) > before
    });
    let told: String = client
        .query_one("SELECT last_error FROM flashwise_ace ORDER BY last_error_at DESC NULLS LAST LIMIT 1", &[])
        .unwrap()
        .get(0);
    assert!(told.contains("could not open file") && told.contains(&path), "{told}");
    std::fs::rename(&there, &here).unwrap();
    wait_for_all_workers(client);
    client.batch_execute("CHECKPOINT").unwrap();
    assert_eq!(number(client, "SELECT count(*) FROM away WHERE v = repeat('y', 500)"), 300);
}

/// Kills a worker: the server restarts all of its processes, as it does for any other. There are as many workers again
/// as were started with the server, whatever a reload has set since.
fn a_worker_is_killed(server: &mut Server, client: &mut Client) {
    reload(client, "ALTER SYSTEM SET flashwise_ace.workers = 2");
    wait_for_workers(client, 2);
    let victim = *active(client).iter().next().unwrap();
    kill_process(Pid::from_raw(victim).unwrap(), Signal::KILL).unwrap();
    wait_until("connections end", || client.simple_query("SELECT 1").is_err());
    server.wait_until_reached();
    *client = server.connect().unwrap();
    wait_for_workers(client, 2);
    assert_eq!(number(client, "SELECT count(*) FROM flashwise_ace"), WORKERS);

    reload(client, "ALTER SYSTEM SET flashwise_ace.workers = 6");
    wait_for_all_workers(client);
    let told = "flashwise_ace.workers = 6, but 4 were started with the server";
    wait_until("the log says that six cannot be", || server.log().contains(told));
    reload(client, "ALTER SYSTEM RESET flashwise_ace.workers");
}

/// How often the workers have waited for something, by the kernel's count.
fn waits(client: &mut Client) -> u64 {
    let of = |pid: &i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
        line.trim().parse::<u64>().unwrap()
    };
    active(client).iter().map(of).sum()
}

/// While nothing is evicted, a worker wakes up once a second, and starts at once when the hand moves again.
fn idle_workers_sleep(client: &mut Client) {
    // Autovacuum evicts.
    reload(client, "ALTER SYSTEM SET autovacuum = off");
    const WATCHED: Duration = Duration::from_secs(2);
    let (mut least, end) = (u64::MAX, Instant::now() + MOMENT);
    // At most one second between two naps, and another one for the time that is between two seconds.
    let most = WORKERS as u64 * (WATCHED.as_secs() + 1);
    while least > most {
        assert!(Instant::now() < end, "idle workers wake up {least} times in {WATCHED:?}");
        let before = waits(client);
        std::thread::sleep(WATCHED);
        least = least.min(waits(client) - before);
    }
    reload(client, "ALTER SYSTEM RESET autovacuum");
}

#[test]
fn workers_that_fail_databases_that_go_and_crashes_lose_nothing() {
    let place = Place::new();
    let Some(programs) = server_with_extension(&place) else { return };
    let mut server = server(&place, "server", programs, place.path("db"));
    server.start();
    let hint = "HINT:  Set max_worker_processes to at least 12, so that max_parallel_workers = 8 are left";
    assert!(server.log().contains(hint), "{}", server.log());
    run_regress(&place, &server);

    let mut client = server.connect().unwrap();
    client.batch_execute("CREATE EXTENSION flashwise_ace").unwrap();
    load_tpcb(&server, 1);
    let mut work = start_tpcb(&server);
    databases_come_and_go(&place, &server, &mut client);
    end_workers(&mut client);
    wait_until("the workers have written", || written(&mut client) > 0);
    assert_eq!(number(&mut client, "SELECT sum(errors) FROM flashwise_ace"), 0, "{}", server.log());

    assert!(work.try_wait().unwrap().is_none(), "TPC-B went on: {}", server.log());
    server.crash();
    work.wait().unwrap();
    server.start();
    client = server.connect().unwrap();
    wait_for_all_workers(&mut client);
    check_tpcb(&mut client);

    a_write_fails(&server, &mut client);
    a_worker_is_killed(&mut server, &mut client);
    idle_workers_sleep(&mut client);
    check_tpcb(&mut client);
    check_structure(&server);
    drop(client);
    server.stop();
    server.check_checksums();
}

#[test]
fn on_a_standby_workers_write_what_replay_has_changed_and_go_on_when_it_is_promoted() {
    let place = Place::new();
    let Some(programs) = server_with_extension(&place) else { return };
    let mut primary = server(&place, "primary", programs.clone(), place.path("db"));
    primary.start();
    let mut client = primary.connect().unwrap();
    client.batch_execute("CREATE EXTENSION flashwise_ace").unwrap();
    load_tpcb(&primary, 1);

    let copy = place.path("copy");
    programs.own_directory(&copy);
    let mut backup = primary.client("pg_basebackup");
    backup.args(["--write-recovery-conf", "--checkpoint=fast", "--wal-method=stream", "--pgdata"]).arg(&copy);
    expect_success(&backup.output().unwrap());
    // A promotion waits for the next attempt to reach the primary.
    let settings = [&settings_without_fsync()[..], &["wal_retrieve_retry_interval=100ms"]].concat();
    let mut standby = Server::without_data(&place, "standby", programs, copy, &settings);
    standby.start();
    let mut reader = standby.connect().unwrap();
    wait_for_all_workers(&mut reader);

    let mut work = start_tpcb(&primary);
    client.batch_execute("CREATE DATABASE gone TEMPLATE template0").unwrap();
    client.batch_execute("DROP DATABASE gone").unwrap();
    // As much as the pool holds, of pages that TPC-B has changed.
    let before = written(&mut reader);
    wait_while_it_grows("pages that the standby's workers have written", before + 512, || written(&mut reader));
    assert!(work.try_wait().unwrap().is_none(), "TPC-B went on: {}", primary.log());
    work.kill().unwrap();
    work.wait().unwrap();
    wait_until("its sessions have ended", || {
        number(&mut client, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench'") == 0
    });
    let end: String = client.query_one("SELECT pg_current_wal_insert_lsn()::text", &[]).unwrap().get(0);
    wait_until("the standby has replayed it", || {
        let sql = format!("SELECT (pg_last_wal_replay_lsn() >= '{end}')::int");
        number(&mut reader, &sql) == 1
    });
    check_tpcb(&mut reader);

    primary.stop();
    reader.batch_execute("SELECT pg_promote()").unwrap();
    assert!(tpcb(&standby).args(["-t", "100"]).status().unwrap().success(), "{}", standby.log());
    check_tpcb(&mut reader);
    assert_eq!(number(&mut reader, "SELECT sum(errors) FROM flashwise_ace"), 0, "{}", standby.log());
    check_structure(&standby);
    drop(reader);
    standby.stop();
    standby.check_checksums();
    primary.check_checksums();
}

/// Runs one of PostgreSQL's own suites by its program, with a pool that it overflows and four workers;
/// `scripts/postgres-suite` gets them.
fn passes(folder: &str, program: &str, schedule: &str, options: &[&str]) {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"));
    let suite = target.join("postgres-suite").join(folder);
    if !suite.exists() {
        eprintln!("PostgreSQL's own tests are absent; scripts/postgres-suite gets them as root: not tested");
        return;
    }
    let place = Place::new();
    let Some(programs) = server_with_extension(&place) else { return };
    let mut server = server(&place, "server", programs, place.path("db"));
    server.start();
    // The server's user reads and writes there.
    let copy = place.path("suite");
    expect_success(&Command::new("cp").arg("-r").args([&suite, &copy]).output().unwrap());
    let out = place.path("out");
    server.programs.own_directory(&out);
    server.programs.own_directory(&out.join("testtablespace"));

    let mut regress = server.programs.command(&of_pgxs(&server.programs, program).display().to_string());
    regress.current_dir(&out).args(["--user=postgres", "--no-locale"]).args(options);
    for (option, path) in [
        ("host", server.sockets()),
        ("bindir", &server.programs.bin),
        ("inputdir", &copy),
        ("dlpath", &copy),
        ("outputdir", &out),
    ] {
        regress.arg(format!("--{option}={}", path.display()));
    }
    regress.arg(format!("--schedule={}", copy.join(schedule).display()));
    expect_regress(&regress.output().unwrap(), &out);
    let mut client = server.connect().unwrap();
    client.batch_execute("CREATE EXTENSION flashwise_ace").unwrap();
    assert!(written(&mut client) > 0);
    drop(client);
    server.stop();
    server.check_checksums();
}

#[test]
#[ignore = "minutes: PostgreSQL's whole regression suite; make test-full runs it"]
fn the_servers_own_regression_tests_pass_with_a_small_pool_and_four_workers() {
    passes("regress", "regress/pg_regress", "parallel_schedule", &["--max-concurrent-tests=20"]);
}

#[test]
#[ignore = "minutes: PostgreSQL's whole isolation suite; make test-full runs it"]
fn the_servers_own_isolation_tests_pass_with_a_small_pool_and_four_workers() {
    passes("isolation", "isolation/pg_isolation_regress", "isolation_schedule", &["--dbname=isolation_regression"]);
}

/// A program of the server's tests.
fn of_pgxs(programs: &Programs, name: &str) -> PathBuf {
    let asked = Command::new(programs.bin.join("pg_config")).arg("--pkglibdir").output().unwrap();
    let libraries = PathBuf::from(String::from_utf8(asked.stdout).unwrap().trim_end());
    libraries.join("pgxs/src/test").join(name)
}
