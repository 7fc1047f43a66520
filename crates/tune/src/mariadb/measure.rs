//! Old and new settings on the same work: a private server, rounds in turns.
//!
//! ```text
//!   install ─▶ load ─▶ copy ──┬─▶ instance with the old settings ─▶ round 1        round 4 …
//!                             └─▶ instance with the new settings ─▶      round 2, 3         …
//!   a round: start with nothing cached, transactions for a time, stop; transactions ÷ time of both
//! ```
//!
//! A transaction is that of sysbench's OLTP, made shorter: four rows read by their key, one updated in an indexed column and one
//! in another, one deleted and inserted again. Stopping writes all dirty pages back and is counted: settings that only put
//! writes off win nothing. Which instance is first changes from pair to pair.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use flashwise_block::{ByteSize, Progress};
use mysql::prelude::Queryable;
use mysql::{Conn, TxOpts};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::private::PrivateMariadb;
use super::server::{MariadbPlace, Server, failed, options};
use crate::rates::{gain, rate};
use crate::servers::{FEWEST_ROUNDS, MeasuredSettings, SettingProposal, verdict};
use crate::{Target, TuneError};

/// A row with its index takes this, with room to grow.
const ROW_BYTES: u64 = 400;
/// An instance without tables, its log included.
const EMPTY_BYTES: u64 = 256 << 20;
/// Rows of a statement that loads.
const LOADED_AT_ONCE: u32 = 500;
/// Errors after which a transaction is begun again: a deadlock, and a lock that was waited for too long.
const IN_THE_WAY: [u16; 2] = [1213, 1205];

/// How old and new settings are measured.
#[derive(Clone, Debug)]
pub struct MariadbMeasureOptions {
    /// Folder of the server's programs; those that are installed where none is given.
    pub programs: Option<PathBuf>,
    /// Where the private server's data goes; the directory for temporary files where none is given.
    pub directory: Option<PathBuf>,
    /// Rows of the table.
    pub rows: u32,
    /// Sessions at once.
    pub clients: u32,
    /// Rounds of old and of new settings.
    pub rounds: u32,
    /// Time of a round without its end.
    pub round_time: Duration,
    /// Seed of every random choice.
    pub seed: u64,
}

impl MariadbMeasureOptions {
    /// Refuses what tells nothing or takes too much room.
    ///
    /// # Errors
    /// With the option that is wrong, or the room that is missing.
    pub(super) fn check(&self) -> Result<(), TuneError> {
        let fail = |reason: String| Err(TuneError::Options(reason));
        if self.rounds < FEWEST_ROUNDS {
            return fail(format!("--rounds {}: fewer than {FEWEST_ROUNDS} tell nothing", self.rounds));
        }
        if self.rows == 0 || self.clients == 0 || self.round_time.is_zero() {
            return fail("--rows, --clients and --round-time must be more than 0".to_owned());
        }
        let directory = self.directory();
        if !directory.is_dir() {
            return Err(TuneError::Target(format!("{}: no such directory", directory.display())));
        }
        Target::Directory(directory).check_space(ByteSize(2 * (u64::from(self.rows) * ROW_BYTES + EMPTY_BYTES)))
    }

    fn directory(&self) -> PathBuf {
        self.directory.clone().unwrap_or_else(std::env::temp_dir)
    }
}

/// One of the two.
struct Side {
    name: &'static str,
    settings: Vec<(String, String)>,
    /// Transactions a second, round by round.
    rates: Vec<f64>,
}

/// Measures proposals that a server can be started with.
///
/// # Errors
/// When no server is installed, or it fails; nothing is left behind then either.
pub(super) fn measure(
    options: &MariadbMeasureOptions,
    proposals: &[SettingProposal],
    progress: &mut dyn Progress,
) -> Result<MeasuredSettings, TuneError> {
    let mut server = PrivateMariadb::new(options.programs.as_deref(), options.directory.as_deref())?;
    let side = |name, value: fn(&SettingProposal) -> &String| {
        let settings = proposals.iter().map(|p| (p.name.clone(), value(p).clone())).collect();
        Side { name, settings, rates: Vec::new() }
    };
    let mut sides = [side("before", |p| &p.old_value), side("after", |p| &p.new_value)];
    let program = load(&mut server, options, &sides, progress)?;
    for round in 0..options.rounds {
        let order = if round.is_multiple_of(2) { [0, 1] } else { [1, 0] };
        for index in order {
            let side = &mut sides[index];
            let words = format!("round {} of {}, {}", round + 1, options.rounds, side.name);
            server.at(words, f64::from(round) / f64::from(options.rounds));
            let rate = run_round(&mut server, side, options, round, progress)?;
            side.rates.push(rate);
        }
    }
    let [before, after] = sides;
    let gain = gain("transactions_per_s", (before.name, &before.rates), (after.name, &after.rates));
    let gain = gain.ok_or_else(|| TuneError::Server {
        context: "mariadbd".to_owned(),
        message: "no round finished a transaction; give longer ones with --round-time".to_owned(),
    })?;
    Ok(MeasuredSettings {
        program,
        directory: options.directory().display().to_string(),
        workload: format!(
            "short OLTP transactions on {} rows, {} sessions, rounds of {:.1} s and the server's end, nothing cached at first",
            options.rows,
            options.clients,
            options.round_time.as_secs_f64()
        ),
        rounds: options.rounds,
        settings: after.settings.iter().map(|(name, value)| format!("{name} = {value}")).collect(),
        before: rate(&before.rates),
        after: rate(&after.rates),
        verdict: verdict(&gain).to_owned(),
        gain,
    })
}

fn connect(place: &MariadbPlace) -> Result<Conn, TuneError> {
    let (options, name) = options(place)?;
    Conn::new(options).map_err(|e| failed(&name, &e))
}

/// Makes both instances; gives the server's version.
fn load(
    server: &mut PrivateMariadb,
    options: &MariadbMeasureOptions,
    [before, after]: &[Side; 2],
    progress: &mut dyn Progress,
) -> Result<String, TuneError> {
    server.create(before.name, progress)?;
    server.at("loading".to_owned(), 0.0);
    server.start(before.name, &[], progress)?;
    let program = Server::connect(&server.place())?.facts.program;
    let mut connection = connect(&server.place())?;
    let fail = |e: mysql::Error| failed("loading", &e);
    let table = "CREATE DATABASE flashwise; CREATE TABLE flashwise.t (id INT UNSIGNED PRIMARY KEY, k INT UNSIGNED NOT NULL, \
                 c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY (k)) ENGINE = InnoDB";
    table.split(';').try_for_each(|statement| connection.query_drop(statement)).map_err(fail)?;
    let mut random = Pcg64Mcg::seed_from_u64(options.seed);
    let mut next = 1;
    while next <= options.rows {
        let last = options.rows.min(next + LOADED_AT_ONCE - 1);
        let row = |id: u32| {
            let (k, c): (u32, u64) = (random.random_range(1..=options.rows), random.random());
            format!("({id}, {k}, '{}', '{}')", text(c, 119), text(!c, 59))
        };
        let rows = (next..=last).map(row).collect::<Vec<_>>().join(", ");
        connection.query_drop(format!("INSERT INTO flashwise.t VALUES {rows}")).map_err(fail)?;
        progress.advance("loading", f64::from(last) / f64::from(options.rows))?;
        next = last + 1;
    }
    drop(connection);
    server.stop(progress)?;
    server.copy(before.name, after.name, progress)?;
    Ok(program)
}

/// Digits that do not repeat, as sysbench's.
fn text(seed: u64, length: usize) -> String {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    (0..length).map(|at| if at % 12 == 11 { '-' } else { char::from(b'0' + random.random_range(0..10_u8)) }).collect()
}

/// Transactions a second of one round, the server's end included.
fn run_round(
    server: &mut PrivateMariadb,
    side: &Side,
    options: &MariadbMeasureOptions,
    round: u32,
    progress: &mut dyn Progress,
) -> Result<f64, TuneError> {
    server.forget_cached(side.name)?;
    server.start(side.name, &side.settings, progress)?;
    let place = server.place();
    let connections = (0..options.clients).map(|_| connect(&place)).collect::<Result<Vec<_>, _>>()?;
    let started = Instant::now();
    let end = started + options.round_time;
    let done = thread::scope(|scope| {
        let session = |(number, connection): (u64, Conn)| {
            // The same choices for both sides of a pair.
            let seed = options.seed.wrapping_add(u64::from(round)).wrapping_mul(1_000_003).wrapping_add(number);
            scope.spawn(move || play(connection, options.rows, seed, end))
        };
        let sessions: Vec<_> = (0..).zip(connections).map(session).collect();
        let lost = || TuneError::Server { context: "measuring".to_owned(), message: "a session was lost".to_owned() };
        let ends: Vec<_> = sessions.into_iter().map(|session| session.join().map_err(|_| lost())?).collect();
        ends.into_iter().sum::<Result<u64, TuneError>>()
    })?;
    server.stop(progress)?;
    Ok(done as f64 / started.elapsed().as_secs_f64())
}

/// Transactions of one session until a moment.
fn play(mut connection: Conn, rows: u32, seed: u64, end: Instant) -> Result<u64, TuneError> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut done = 0;
    while Instant::now() < end {
        match transaction(&mut connection, rows, &mut random) {
            Ok(()) => done += 1,
            Err(mysql::Error::MySqlError(told)) if IN_THE_WAY.contains(&told.code) => {}
            Err(error) => return Err(failed("measuring", &error)),
        }
    }
    Ok(done)
}

fn transaction(connection: &mut Conn, rows: u32, random: &mut Pcg64Mcg) -> Result<(), mysql::Error> {
    let mut row = || random.random_range(1..=rows);
    let (read, updated, changed, replaced, key) = ([row(), row(), row(), row()], row(), row(), row(), row());
    let (c, pad) = (text(u64::from(key), 119), text(u64::from(updated), 59));
    let mut work = connection.start_transaction(TxOpts::default())?;
    for id in read {
        work.exec_drop("SELECT c FROM flashwise.t WHERE id = ?", (id,))?;
    }
    work.exec_drop("UPDATE flashwise.t SET k = k + 1 WHERE id = ?", (updated,))?;
    work.exec_drop("UPDATE flashwise.t SET c = ? WHERE id = ?", (&c, changed))?;
    work.exec_drop("DELETE FROM flashwise.t WHERE id = ?", (replaced,))?;
    work.exec_drop("INSERT INTO flashwise.t (id, k, c, pad) VALUES (?, ?, ?, ?)", (replaced, key, &c, &pad))?;
    work.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_nothing_is_refused() {
        let options = MariadbMeasureOptions {
            programs: None,
            directory: None,
            rows: 1_000,
            clients: 1,
            rounds: 5,
            round_time: Duration::from_secs(1),
            seed: 1,
        };
        let told = |options: &MariadbMeasureOptions| options.check().unwrap_err().to_string();
        assert!(told(&MariadbMeasureOptions { rounds: 4, ..options.clone() }).contains("fewer than 5"));
        assert!(told(&MariadbMeasureOptions { clients: 0, ..options.clone() }).contains("--clients"));
        let nowhere = MariadbMeasureOptions { directory: Some("/no/such/place".into()), ..options.clone() };
        assert!(told(&nowhere).contains("no such directory"));
        assert!(MariadbMeasureOptions { rows: u32::MAX, ..options }.check().unwrap_err().is_refusal());
    }

    #[test]
    fn rows_have_texts_of_their_own() {
        assert_eq!((text(1, 119).len(), text(1, 119) == text(1, 119)), (119, true));
        assert_ne!(text(1, 59), text(2, 59));
    }
}
