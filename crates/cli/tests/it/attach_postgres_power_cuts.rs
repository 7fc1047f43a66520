//! PostgreSQL on a file system on an attached drive, whose power is cut again and again at any moment.
//!
//! Like `attach_power_cuts.rs`, with a server that recovers from its log after each cut. Three sessions commit
//! transactions of inserts, an update and deletes, checkpoints come between, and the server's data checksums are on.
//! After each cut every transaction that was acknowledged is there, none by half, and every row can be read. So it is
//! with the settings that `fit postgres --apply` makes for this drive.
//!
//! `FLASHWISE_POSTGRES_POWER_CUTS` asks for more than a few cuts.

use crate::ace_in_postgres::{
    self, check_structure, check_tpcb, load_tpcb, server_with_extension, start_tpcb, wait_until, written,
};
use crate::mounted;
use crate::private_server::{Programs, Server};
use crate::support;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use mounted::{Drive, Power, assert_nothing_left, place, power_fails, run, small_drive, turn};
use postgres::{Client, NoTls};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rustix::process::Signal;
use support::Place;

const SESSIONS: i32 = 3;
/// Transactions whose rows are kept; older ones are deleted.
const KEPT: i64 = 40;

const TABLES: &str = "CREATE TABLE a (session int, n bigint, v bytea, PRIMARY KEY (session, n));
    CREATE TABLE b (session int, n bigint, v bytea, PRIMARY KEY (session, n));
    ALTER TABLE a ALTER v SET STORAGE EXTERNAL;
    CREATE TABLE last (session int PRIMARY KEY, n bigint)";

const SETTINGS: [&str; 5] =
    ["restart_after_crash=off", "shared_buffers=8MB", "max_wal_size=8MB", "min_wal_size=2MB", "autovacuum_naptime=1s"];

/// What runs until the power is cut.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Transactions whose acknowledgements are counted.
    Alone,
    /// The same, with the settings of `fit postgres --apply`.
    Fitted,
    /// TPC-B and the workers of `flashwise_ace` beside them.
    WithTpcb,
}

/// Cuts of each file system.
fn cuts() -> u64 {
    std::env::var("FLASHWISE_POSTGRES_POWER_CUTS").ok().map_or(3, |text| text.parse::<u64>().unwrap().div_ceil(2))
}

/// Commits one transaction after the other until the power fails or an error comes; what was acknowledged last is
/// in `acknowledged`.
fn write(
    address: &postgres::Config,
    session: i32,
    acknowledged: &AtomicI64,
    power: &Power,
    seed: u64,
) -> Result<(), postgres::Error> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut client = address.connect(NoTls)?;
    loop {
        let n = acknowledged.load(Ordering::Relaxed) + 1;
        let mut transaction = client.transaction()?;
        for table in ["a", "b"] {
            let value = vec![random.random::<u8>(); random.random_range(1..6_000)];
            transaction.execute(&format!("INSERT INTO {table} VALUES ($1, $2, $3)"), &[&session, &n, &value])?;
            let old = n - KEPT;
            transaction.execute(&format!("DELETE FROM {table} WHERE session = $1 AND n <= $2"), &[&session, &old])?;
        }
        transaction.execute("UPDATE last SET n = $2 WHERE session = $1", &[&session, &n])?;
        transaction.commit()?;
        if !power.is_on() {
            return Ok(());
        }
        acknowledged.store(n, Ordering::Relaxed);
    }
}

/// The last transaction of a session that is there, whole, with those before it.
fn last_transaction(client: &mut Client, session: i32) -> i64 {
    let last: i64 = client.query_one("SELECT n FROM last WHERE session = $1", &[&session]).unwrap().get(0);
    for table in ["a", "b"] {
        // The sum reads every byte, and with it the checksums of all pages.
        let sql = format!(
            "SELECT count(*), coalesce(max(n), 0), coalesce(sum(length(md5(v))), 0)::bigint FROM {table} WHERE session = $1"
        );
        let row = client.query_one(&sql, &[&session]).unwrap();
        let (count, greatest, digits): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
        assert_eq!(greatest, last, "half of a transaction in {table}");
        assert_eq!((count, digits), (last.min(KEPT), 32 * count), "one is missing between others in {table}");
    }
    last
}

/// What a cut came upon.
struct Cut {
    /// Whether requests were under way.
    had_requests: bool,
    /// Buffers that the extension's workers had written since the server's start.
    written: i64,
}

/// Cuts the power in the middle of work, lets the server recover, and looks.
fn cut(
    place: &Place,
    device: &str,
    server: &mut Server,
    acknowledged: &[Arc<AtomicI64>],
    work: Work,
    seed: u64,
) -> Cut {
    let tpcb = (work == Work::WithTpcb).then(|| start_tpcb(server));
    let mut watching = tpcb.as_ref().map(|_| server.connect().unwrap());
    let (address, power) = (server.address(), Arc::new(Power::default()));
    let writing: Vec<_> = (0..)
        .zip(acknowledged)
        .map(|(session, acknowledged)| {
            let (address, acknowledged, power) = (address.clone(), Arc::clone(acknowledged), Arc::clone(&power));
            let seed = 10 * seed + u64::from(session as u32);
            std::thread::spawn(move || write(&address, session, &acknowledged, &power, seed))
        })
        .collect();
    // Half of the cuts come at any moment from the start on, the others when the workers are at work.
    if let Some(client) = watching.as_mut().filter(|_| seed.is_multiple_of(2)) {
        wait_until("the workers write", || written(client) > 0);
    }
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let until_power_fails = Duration::from_micros(random.random_range(0..500_000));
    let checkpointing = std::thread::spawn(move || {
        std::thread::sleep(until_power_fails.mul_f64(random.random_range(0.2..1.5)));
        // It may be interrupted.
        address.connect(NoTls).and_then(|mut client| client.batch_execute("CHECKPOINT"))
    });
    std::thread::sleep(until_power_fails);
    let written = watching.map_or(0, |mut client| written(&mut client));
    let (lost_requests, ended) = power_fails(place, device, &power, || {
        server.crash();
        let _ = checkpointing.join().unwrap();
        writing.into_iter().map(|session| session.join().unwrap()).collect::<Vec<_>>()
    });
    server.start();
    let mut client = server.connect().unwrap();
    if let Some(mut tpcb) = tpcb {
        tpcb.wait().unwrap();
        check_tpcb(&mut client);
    }
    for (session, acknowledged) in (0..).zip(acknowledged) {
        let (before, after) = (acknowledged.load(Ordering::Relaxed), last_transaction(&mut client, session));
        assert!(after >= before, "{} of {before} acknowledged transactions are lost: {ended:?}", before - after);
        // One more may be there: it was on its way to be acknowledged.
        assert!(after <= before + 1, "{after} of {before}");
        acknowledged.store(after, Ordering::Relaxed);
    }
    Cut { had_requests: lost_requests > 0, written }
}

/// Makes the changes that are proposed for the drive, as a user does: by one command and a restart.
fn apply_what_is_proposed(place: &Place, server: &mut Server) {
    let connection = format!("host={} user=postgres dbname=postgres", server.sockets().display());
    let fit = ["fit", "postgres", &connection, "--on", "sim:drive.toml", "--apply", "-o", "json"];
    let document = place.run(&fit).expect(0).document();
    let statements = document["applied"]["statements"].as_array().unwrap();
    assert!(statements.len() > 3, "there is something to survive: {document:#}");
    server.stop();
    server.start();
    let mut client = server.connect().unwrap();
    let durable = "SELECT string_agg(name, ' ' ORDER BY name) FROM pg_settings WHERE setting = 'on' \
                   AND name IN ('fsync', 'full_page_writes', 'synchronous_commit')";
    let durable: String = client.query_one(durable, &[]).unwrap().get(0);
    assert_eq!(durable, "fsync full_page_writes synchronous_commit");
    let set = "SELECT count(*) FROM pg_settings WHERE sourcefile LIKE '%postgresql.auto.conf'";
    let set: i64 = client.query_one(set, &[]).unwrap().get(0);
    assert!(set > 3, "{set} of {} are in force: {statements:?}", statements.len());
}

/// A server on a drive with a file system of this kind, whose power is cut again and again.
fn survives(programs: &Programs, settings: &[&str], work: Work, kind: &str, seed: u64) {
    let place = place();
    small_drive(&place);
    // Slow enough for requests to be under way when the power goes.
    let more = ["--fs", kind, "--power-cuts", "--precondition", "steady", "--time-scale", "4"];
    let drive = Drive::of(&place, &[&["attach", "drive.toml", "--mount", "on"], &more[..]].concat());
    let device = drive.device();
    let mut server = Server::create(&place, "server", programs.clone(), place.path("on/db"), settings);
    run("sync", &["--file-system", &place.path("on").display().to_string()]);
    server.start();
    if work == Work::Fitted {
        apply_what_is_proposed(&place, &mut server);
    }
    let mut client = server.connect().unwrap();
    client.batch_execute(TABLES).unwrap();
    client.execute("INSERT INTO last SELECT generate_series(0, $1 - 1), 0", &[&SESSIONS]).unwrap();
    if work == Work::WithTpcb {
        load_tpcb(&server, 1);
        client.batch_execute("CREATE EXTENSION flashwise_ace").unwrap();
    }
    drop(client);
    let acknowledged: Vec<_> = (0..SESSIONS).map(|_| Arc::new(AtomicI64::new(0))).collect();
    let mut made = Vec::new();
    for n in 0..cuts() {
        made.push(cut(&place, &device, &mut server, &acknowledged, work, seed * 1_000_000 + n));
    }
    let under_way = made.iter().filter(|cut| cut.had_requests).count();
    let written: i64 = made.iter().map(|cut| cut.written).sum();
    let transactions: i64 = acknowledged.iter().map(|session| session.load(Ordering::Relaxed)).sum();
    eprintln!(
        "{kind}: {} cuts, {under_way} in the middle of requests; {transactions} transactions; {written} buffers by workers",
        cuts()
    );
    assert!(written > 0 || work != Work::WithTpcb, "the workers write");
    assert!(transactions.cast_unsigned() > cuts(), "it was at work: {transactions}");
    check_structure(&server);
    server.stop();
    server.check_checksums();
    let process = drive.number();
    drive.signal(Signal::INT);
    drive.ended().expect(0);
    assert_nothing_left(&place, process);
}

#[test]
fn postgresql_loses_no_transaction_that_it_acknowledged_to_a_power_cut() {
    let Some(_turn) = turn(&["mkfs.ext4", "mkfs.xfs", "blockdev"]) else { return };
    let Some(programs) = Programs::find() else { return };
    for (kind, seed) in [("ext4", 1), ("xfs", 2)] {
        survives(&programs, &SETTINGS, Work::Alone, kind, seed);
    }
}

#[test]
fn with_the_settings_that_fit_applies_power_cuts_lose_nothing_either() {
    let Some(_turn) = turn(&["mkfs.ext4", "blockdev"]) else { return };
    let Some(programs) = Programs::find() else { return };
    survives(&programs, &SETTINGS, Work::Fitted, "ext4", 5);
}

#[test]
#[ignore = "minutes: a power cut after each of many runs of TPC-B; make test-full runs it"]
fn with_workers_that_write_ahead_of_the_clock_hand_power_cuts_lose_nothing_either() {
    let Some(_turn) = turn(&["mkfs.ext4", "mkfs.xfs", "blockdev"]) else { return };
    let extension = Place::new();
    let Some(programs) = server_with_extension(&extension) else { return };
    let settings = [&ace_in_postgres::SETTINGS[..], &SETTINGS[..], &["shared_buffers=4MB"]].concat();
    for (kind, seed) in [("ext4", 3), ("xfs", 4)] {
        survives(&programs, &settings, Work::WithTpcb, kind, seed);
    }
}
