//! MariaDB with the settings of `fit mariadb --apply`, on a file system on an attached drive whose power is cut.
//!
//! Like `attach_postgres_power_cuts.rs`: sessions commit transactions of inserts, an update and deletes. After each cut
//! InnoDB recovers; every transaction that was acknowledged is there, none by half, and `CHECK TABLE` finds no fault.
//!
//! `FLASHWISE_MARIADB_POWER_CUTS` asks for more than a few cuts.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, TxOpts};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rustix::process::{Pid, Signal, kill_process};

use crate::mounted::{Drive, MOMENT, Power, assert_nothing_left, place, power_fails, small_drive, turn};
use crate::private_server::{expect_success, let_user_through};
use crate::support::Place;

const SESSIONS: i32 = 3;
/// Transactions whose rows are kept; older ones are deleted.
const KEPT: i64 = 40;
/// A server that writes and recovers much in a short time.
const SMALL: [&str; 3] =
    ["--innodb-buffer-pool-size=6M", "--innodb-log-file-size=4M", "--innodb-flush-log-at-trx-commit=1"];

fn cuts() -> u64 {
    std::env::var("FLASHWISE_MARIADB_POWER_CUTS").ok().map_or(2, |text| text.parse().unwrap())
}

/// A server of the test's own; it and its files are gone with its place.
struct Server {
    data: PathBuf,
    socket: PathBuf,
    log: PathBuf,
    settings: Vec<String>,
    /// Whose files they are, with the group; a server does not run as root.
    user: (u32, u32),
    process: Option<Child>,
}

/// The user `mysql`, or `nobody` where only the server's programs are installed.
fn server_user() -> (u32, u32) {
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let of = |name: &str| users.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let fields = of("mysql").or_else(|| of("nobody")).unwrap().split(':').skip(1);
    let numbers: Vec<u32> = fields.map_while(|field| field.parse().ok()).collect();
    (numbers[0], numbers[1])
}

impl Server {
    /// Makes an instance in a new directory; `None`, and a line that says so, where no server is installed.
    fn create(place: &Place, data: PathBuf) -> Option<Self> {
        let (user, own) = (server_user(), place.path("run"));
        let_user_through(place);
        for path in [&data, &own] {
            std::fs::create_dir(path).unwrap();
            chown(path, Some(user.0), Some(user.1)).unwrap();
        }
        let mut install = Command::new("mariadb-install-db");
        install.args(["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"]);
        install.arg(format!("--datadir={}", data.display())).env("TMPDIR", &own).uid(user.0).gid(user.1);
        let Ok(output) = install.output() else {
            println!("skipped: MariaDB is not installed");
            return None;
        };
        expect_success(&output);
        let (socket, log) = (own.join("s"), own.join("log"));
        Some(Self { data, socket, log, settings: Vec::new(), user, process: None })
    }

    fn start(&mut self) {
        let mut server = Command::new("mariadbd");
        server.args(["--no-defaults", "--skip-networking", "--skip-log-bin"]).args(SMALL).args(&self.settings);
        server.uid(self.user.0).gid(self.user.1);
        let paths: [(&str, &Path); 3] = [("datadir", &self.data), ("socket", &self.socket), ("log-error", &self.log)];
        server.args(paths.map(|(option, path)| format!("--{option}={}", path.display())));
        server.arg(format!("--pid-file={}", self.log.with_file_name("pid").display()));
        server.env("TMPDIR", self.log.parent().unwrap()).env_remove("MYSQL_HOME");
        server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.process = Some(server.spawn().unwrap());
        let end = Instant::now() + MOMENT;
        while connect(&self.socket).is_none() {
            let ended = self.process.as_mut().unwrap().try_wait().unwrap();
            let log = || std::fs::read_to_string(&self.log).unwrap_or_default();
            assert!(ended.is_none() && Instant::now() < end, "it does not start: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn end(&mut self, signal: Signal) {
        let Some(mut process) = self.process.take() else { return };
        let _ = kill_process(Pid::from_child(&process), signal);
        let _ = process.wait();
    }

    /// Makes the changes that are proposed for the drive, as a user does: by one command, an option file and a restart.
    fn apply_what_is_proposed(&mut self, place: &Place) {
        let socket = self.socket.display().to_string();
        let fit =
            ["fit", "mariadb", &socket, "--on", "sim:drive.toml", "--apply", "--cnf-out", "drive.cnf", "-o", "json"];
        let document = place.run(&fit).expect(0).document();
        let statements = document["applied"]["statements"].as_array().unwrap();
        assert!(!statements.is_empty(), "there is something to survive: {document:#}");
        let file = place.read("drive.cnf");
        let lines = file.lines().filter_map(|line| line.split_once(" = "));
        self.settings = lines.map(|(name, value)| format!("--{name}={value}")).collect();
        self.end(Signal::TERM);
        self.start();
        let mut client = connect(&self.socket).unwrap();
        let committed: u8 = client.query_first("SELECT @@innodb_flush_log_at_trx_commit").unwrap().unwrap();
        let doubled: String = client.query_first("SELECT @@innodb_doublewrite").unwrap().unwrap();
        assert_eq!((committed, doubled.as_str()), (1, "1"), "commits are as safe as before");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end(Signal::KILL);
    }
}

fn connect(socket: &Path) -> Option<Conn> {
    let address = OptsBuilder::new().socket(Some(socket.to_str().unwrap())).user(Some("root")).prefer_socket(true);
    Conn::new(address).ok()
}

/// Commits one transaction after the other until the power fails or an error comes; what was acknowledged last is
/// in `acknowledged`.
fn write(socket: &Path, session: i32, acknowledged: &AtomicI64, power: &Power, seed: u64) -> Result<(), mysql::Error> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let Some(mut client) = connect(socket) else { return Ok(()) };
    loop {
        let n = acknowledged.load(Ordering::Relaxed) + 1;
        let mut transaction = client.start_transaction(TxOpts::default())?;
        for table in ["a", "b"] {
            let value = vec![random.random::<u8>(); random.random_range(1..6_000)];
            transaction.exec_drop(format!("INSERT INTO test.{table} VALUES (?, ?, ?)"), (session, n, value))?;
            let old = n - KEPT;
            transaction.exec_drop(format!("DELETE FROM test.{table} WHERE session = ? AND n <= ?"), (session, old))?;
        }
        transaction.exec_drop("UPDATE test.last SET n = ? WHERE session = ?", (n, session))?;
        transaction.commit()?;
        if !power.is_on() {
            return Ok(());
        }
        acknowledged.store(n, Ordering::Relaxed);
    }
}

/// The last transaction of a session that is there, whole, with those before it.
fn last_transaction(client: &mut Conn, session: i32) -> i64 {
    let last: i64 = client.exec_first("SELECT n FROM test.last WHERE session = ?", (session,)).unwrap().unwrap();
    for table in ["a", "b"] {
        let sql = format!(
            "SELECT count(*), coalesce(max(n), 0), cast(coalesce(sum(length(md5(v))), 0) AS int) FROM test.{table} \
             WHERE session = ?"
        );
        let (count, greatest, digits): (i64, i64, i64) = client.exec_first(sql, (session,)).unwrap().unwrap();
        assert_eq!(greatest, last, "half of a transaction in {table}");
        assert_eq!((count, digits), (last.min(KEPT), 32 * count), "one is missing between others in {table}");
    }
    last
}

/// Cuts the power in the middle of work, lets the server recover, and looks; gives how many requests the cut has lost.
fn cut(place: &Place, device: &str, server: &mut Server, acknowledged: &[Arc<AtomicI64>], seed: u64) -> u64 {
    let power = Arc::new(Power::default());
    let writing: Vec<_> = (0..)
        .zip(acknowledged)
        .map(|(session, acknowledged)| {
            let (socket, acknowledged, power) = (server.socket.clone(), Arc::clone(acknowledged), Arc::clone(&power));
            let seed = 10 * seed + u64::from(session as u32);
            std::thread::spawn(move || write(&socket, session, &acknowledged, &power, seed))
        })
        .collect();
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    std::thread::sleep(Duration::from_millis(random.random_range(300..1_300)));
    let (lost_requests, ended) = power_fails(place, device, &power, || {
        server.end(Signal::KILL);
        writing.into_iter().map(|session| session.join().unwrap()).collect::<Vec<_>>()
    });
    server.start();
    let mut client = connect(&server.socket).unwrap();
    for (session, acknowledged) in (0..).zip(acknowledged) {
        let (before, after) = (acknowledged.load(Ordering::Relaxed), last_transaction(&mut client, session));
        assert!(after >= before, "{} of {before} acknowledged transactions are lost: {ended:?}", before - after);
        // One more may be there: it was on its way to be acknowledged.
        assert!(after <= before + 1, "{after} of {before}");
        acknowledged.store(after, Ordering::Relaxed);
    }
    let checked: Vec<(String, String, String, String)> =
        client.query("CHECK TABLE test.a, test.b, test.last EXTENDED").unwrap();
    assert!(checked.iter().all(|(.., found)| found == "OK"), "{checked:?}");
    lost_requests
}

#[test]
fn mariadb_with_the_settings_that_fit_applies_loses_no_transaction_to_a_power_cut() {
    let Some(_turn) = turn(&["mkfs.ext4", "blockdev"]) else { return };
    let place = place();
    small_drive(&place);
    let attach = ["attach", "drive.toml", "--mount", "on", "--fs", "ext4", "--power-cuts", "--precondition", "steady"];
    // Slow enough for requests to be under way when the power goes.
    let drive = Drive::of(&place, &[&attach[..], &["--time-scale", "4"]].concat());
    let device = drive.device();
    if let Some(mut server) = Server::create(&place, place.path("on/db")) {
        server.start();
        server.apply_what_is_proposed(&place);
        let mut client = connect(&server.socket).unwrap();
        for sql in ["CREATE DATABASE test", "CREATE TABLE test.last (session int PRIMARY KEY, n bigint)"] {
            client.query_drop(sql).unwrap();
        }
        for table in ["a", "b"] {
            let columns = "(session int, n bigint, v mediumblob, PRIMARY KEY (session, n))";
            client.query_drop(format!("CREATE TABLE test.{table} {columns}")).unwrap();
        }
        for session in 0..SESSIONS {
            client.exec_drop("INSERT INTO test.last VALUES (?, 0)", (session,)).unwrap();
        }
        drop(client);
        let acknowledged: Vec<_> = (0..SESSIONS).map(|_| Arc::new(AtomicI64::new(0))).collect();
        let lost: Vec<u64> = (0..cuts()).map(|n| cut(&place, &device, &mut server, &acknowledged, n)).collect();
        let transactions: i64 = acknowledged.iter().map(|session| session.load(Ordering::Relaxed)).sum();
        println!("{} cuts lost {lost:?} requests; {transactions} transactions; {:?}", cuts(), server.settings);
        assert!(transactions.cast_unsigned() > cuts(), "it was at work: {transactions}");
        server.end(Signal::TERM);
    }
    let process = drive.number();
    drive.signal(Signal::INT);
    drive.ended().expect(0);
    assert_nothing_left(&place, process);
}
