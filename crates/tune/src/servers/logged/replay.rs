//! Plays the transactions of a log on a server, in rounds.
//!
//! ```text
//!   transactions  0 1 2 3 4 5 6 7 8 …     one pair of rounds plays the same ones, the next pair goes on from there
//!                 ├─ pair 1 ─┤├─ pair 2 …
//!   connection A  0   2 3     6           the next one starts when its connection is free, and after the one before it
//!   connection B    1     4 5   7
//! ```
//!
//! A session keeps its connection; as many connections are made as the log has sessions at once, up to a limit. The
//! first round of a pair ends with its share of the log or with its time, the second plays exactly as many. With
//! weights, transactions are drawn by them instead, from whichever session.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{Counts, LoggedStatement, LoggedTransaction, LoggedWorkload};
use crate::{ReplayedLog, TuneError};

/// Reasons that are reported of each kind.
const REASONS_SHOWN: usize = 8;
/// Keeps draws of a round apart from those of the next.
const DRAW: u64 = 0x9e37_79b9_7f4a_7c15;

/// A connection that plays statements.
pub(crate) trait Connection: Send {
    /// Runs a statement to its end.
    fn run(&mut self, statement: &LoggedStatement) -> Result<(), Refusal>;

    /// Rolls back what is open.
    ///
    /// # Errors
    /// When the server does not respond.
    fn roll_back(&mut self) -> Result<(), TuneError>;

    /// Forgets everything that a session has set.
    ///
    /// # Errors
    /// When the server does not respond.
    fn reset(&mut self) -> Result<(), TuneError>;
}

/// Why a statement was not done.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Another transaction is in the way: a deadlock, a serialization failure.
    Conflict,
    /// The server refused it, in these words.
    Refused(String),
    /// The server does not respond.
    Lost(TuneError),
}

/// How often each transaction is to be played, relative to the others.
#[derive(Debug)]
pub(crate) struct Weighted {
    /// Of each transaction.
    pub(crate) weights: Vec<f64>,
    /// The share of the calls that are counted whose statements the log has samples of, 0 to 1.
    pub(crate) calls_covered: f64,
    /// Statements that are counted and not in the log, and the other way round.
    pub(crate) missing: Counts,
}

/// Sums of weights, for drawing.
struct Draws {
    sums: Vec<f64>,
    seed: u64,
}

impl Draws {
    fn new(weights: &[f64], seed: u64) -> Self {
        let sums = weights.iter().scan(0.0, |sum, weight| {
            *sum += weight.max(0.0);
            Some(*sum)
        });
        Self { sums: sums.collect(), seed }
    }

    fn total(&self) -> f64 {
        self.sums.last().copied().unwrap_or(0.0)
    }

    /// The transaction with a number in the order of playing: the same whoever asks.
    fn draw(&self, number: usize) -> usize {
        let seed = self.seed ^ (number as u64).wrapping_mul(DRAW);
        let at = Pcg64Mcg::seed_from_u64(seed).random::<f64>() * self.total();
        self.sums.partition_point(|&sum| sum <= at).min(self.sums.len().saturating_sub(1))
    }
}

/// What a pair of rounds plays.
#[derive(Clone, Copy, Debug)]
struct Pair {
    round: u32,
    first: usize,
    count: usize,
}

/// Plays a log in pairs of rounds.
pub(crate) struct Replay<'a> {
    log: &'a LoggedWorkload,
    rounds: u32,
    round_time: Duration,
    connections: u32,
    /// The connection of each transaction.
    places: Vec<u32>,
    /// What a session sets before a transaction, in order; sessions that set nothing are absent.
    setup: HashMap<u32, Vec<usize>>,
    draws: Option<Draws>,
    pair: Option<Pair>,
    /// Transactions done in all rounds.
    played: u64,
    conflicts: u64,
    failures: Counts,
}

impl<'a> Replay<'a> {
    pub(crate) fn new(log: &'a LoggedWorkload, rounds: u32, round_time: Duration, clients: u32) -> Self {
        let connections = sessions_at_once(&log.transactions).clamp(1, clients.max(1));
        let places = places(&log.transactions, connections);
        let mut setup: HashMap<u32, Vec<usize>> = HashMap::new();
        for (at, transaction) in log.transactions.iter().enumerate().filter(|(_, transaction)| !transaction.works) {
            setup.entry(transaction.session).or_default().push(at);
        }
        Self {
            log,
            rounds,
            round_time,
            connections,
            places,
            setup,
            draws: None,
            pair: None,
            played: 0,
            conflicts: 0,
            failures: Counts::default(),
        }
    }

    /// Draws by weights, with so many connections.
    ///
    /// # Errors
    /// When no transaction has a weight.
    pub(crate) fn weighted(mut self, weights: &[f64], clients: u32, seed: u64) -> Result<Self, TuneError> {
        let draws = Draws::new(weights, seed);
        if draws.total() <= 0.0 || !draws.total().is_finite() {
            let why = "pg_stat_statements has none of the statements of the log: are both of the same database?";
            return Err(TuneError::Options(why.to_owned()));
        }
        self.connections = clients.max(1);
        self.draws = Some(draws);
        Ok(self)
    }

    /// How many connections a round needs.
    pub(crate) fn connections(&self) -> u32 {
        self.connections
    }

    /// Plays a round of the pair with a number; gives how many transactions were done.
    ///
    /// # Errors
    /// When the server does not respond, or refuses more than it does.
    pub(crate) fn round<C: Connection>(&mut self, round: u32, connections: Vec<C>) -> Result<u64, TuneError> {
        let known = self.pair.filter(|pair| pair.round == round);
        let (first, end, deadline) = match known {
            Some(pair) => (pair.first, pair.first + pair.count, None),
            None => {
                let first = self.pair.map_or(0, |pair| pair.first + pair.count);
                (first, first + self.share(first, round), Some(Instant::now() + self.round_time))
            }
        };
        let order =
            Order { state: Mutex::new(State { next: first, is_closed: false }), moved: Condvar::new(), end, deadline };
        let ends = thread::scope(|scope| {
            let this = &*self;
            let order = &order;
            let play = |(place, connection)| scope.spawn(move || this.play(place, connection, order, first));
            let players: Vec<_> = (0..).zip(connections).map(play).collect();
            players.into_iter().map(|player| player.join().unwrap_or_else(|_| Err(lost()))).collect::<Vec<_>>()
        });
        let count = order.lock().next - first;
        self.pair = Some(Pair { round, first, count });
        let mut all = Tally::default();
        for end in ends {
            let tally = end?;
            all.done += tally.done;
            all.conflicts += tally.conflicts;
            all.failed += tally.failed;
            all.reasons.extend(tally.reasons);
        }
        if all.failed > all.done {
            let most = all.reasons.sorted().into_iter().next();
            let why = most.map(|most| format!("{} ({})", most.reason, most.example)).unwrap_or_default();
            let (failed, of) = (all.failed, all.failed + all.done);
            let message = format!(
                "{failed} of {of} transactions fail on the loaded tables, mostly: {why}. Give with --load a dump of the \
                 database from before the log starts"
            );
            return Err(TuneError::Server { context: "replaying the log".to_owned(), message });
        }
        self.played += all.done;
        self.conflicts += all.conflicts;
        self.failures.extend(all.reasons);
        Ok(all.done)
    }

    /// As many as there may be in a round, so that every one of the rounds that are left has its share.
    fn share(&self, first: usize, round: u32) -> usize {
        match self.draws {
            Some(_) => usize::MAX - first,
            None => (self.log.transactions.len() - first) / self.rounds.saturating_sub(round).max(1) as usize,
        }
    }

    /// One connection's part of a round.
    fn play<C: Connection>(
        &self,
        place: u32,
        mut connection: C,
        order: &Order,
        first: usize,
    ) -> Result<Tally, TuneError> {
        let mut closing = Closing { order, is_done: false };
        let mut tally = Tally::default();
        // The session that has set something here, and is not reset.
        let mut session = None;
        let own = |&at: &usize| self.places[at] == place;
        let mut mine = (first..self.log.transactions.len().min(order.end)).filter(own);
        loop {
            let at = match &self.draws {
                Some(draws) => order.take_any().map(|number| draws.draw(number)),
                None => mine.next().filter(|&at| order.take(at)),
            };
            let Some(at) = at else { break };
            let transaction = &self.log.transactions[at];
            self.prepare(transaction.session, at, &mut session, &mut connection)?;
            tally.add(transaction, self.run(transaction, &mut connection)?);
        }
        closing.is_done = true;
        Ok(tally)
    }

    /// Sets what a transaction's session has set before, if another one was on this connection.
    fn prepare<C: Connection>(
        &self,
        session: u32,
        at: usize,
        on: &mut Option<u32>,
        connection: &mut C,
    ) -> Result<(), TuneError> {
        if *on == Some(session) {
            return Ok(());
        }
        if on.take().is_some() {
            connection.reset()?;
        }
        let Some(setup) = self.setup.get(&session) else { return Ok(()) };
        for &before in setup.iter().take_while(|&&before| before < at) {
            self.run(&self.log.transactions[before], connection)?;
        }
        *on = Some(session);
        Ok(())
    }

    fn run<C: Connection>(&self, transaction: &LoggedTransaction, connection: &mut C) -> Result<Ran, TuneError> {
        for statement in &transaction.statements {
            let ran = match connection.run(statement) {
                Ok(()) => continue,
                Err(Refusal::Conflict) => Ran::InConflict,
                Err(Refusal::Refused(words)) => Ran::Refused(words, statement.sql.to_string()),
                Err(Refusal::Lost(error)) => return Err(error),
            };
            connection.roll_back()?;
            return Ok(ran);
        }
        Ok(Ran::Done)
    }

    /// What was replayed, for the report.
    pub(crate) fn report(self, weighted: Option<&Weighted>) -> ReplayedLog {
        let shown = |counts: &Counts| counts.sorted().into_iter().take(REASONS_SHOWN).collect();
        let mut left_out = self.log.left_out.clone();
        left_out.extend(weighted.map(|weighted| weighted.missing.clone()).unwrap_or_default());
        ReplayedLog {
            transactions: self.log.count(),
            statements: self.log.statements(),
            sessions: self.log.sessions().into(),
            connections: self.connections,
            played: self.played,
            conflicts: self.conflicts,
            refused: self.failures.total(),
            refusals: shown(&self.failures),
            left_out: left_out.sorted(),
            calls_covered: weighted.map(|weighted| weighted.calls_covered),
        }
    }
}

fn lost() -> TuneError {
    TuneError::Server { context: "replaying the log".to_owned(), message: "a session was lost".to_owned() }
}

/// How a transaction ended.
enum Ran {
    Done,
    InConflict,
    /// The server's words, and the statement.
    Refused(String, String),
}

/// How transactions ended.
#[derive(Default)]
struct Tally {
    done: u64,
    conflicts: u64,
    failed: u64,
    reasons: Counts,
}

impl Tally {
    fn add(&mut self, transaction: &LoggedTransaction, ran: Ran) {
        match ran {
            Ran::Done => self.done += u64::from(transaction.works),
            Ran::InConflict => self.conflicts += 1,
            Ran::Refused(words, statement) => {
                self.failed += 1;
                self.reasons.add(&words, &statement);
            }
        }
    }
}

/// The order in which transactions start.
struct Order {
    state: Mutex<State>,
    moved: Condvar,
    end: usize,
    deadline: Option<Instant>,
}

struct State {
    /// The next one to start.
    next: usize,
    is_closed: bool,
}

impl Order {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a transaction may start; `false` if it must not any more.
    fn take(&self, at: usize) -> bool {
        let mut state = self.lock();
        while state.next != at && !state.is_closed {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let may = self.may(&mut state);
        state.next += usize::from(may);
        self.moved.notify_all();
        may
    }

    /// The number of the next transaction, whichever that is.
    fn take_any(&self) -> Option<usize> {
        let mut state = self.lock();
        let at = state.next;
        self.may(&mut state).then(|| {
            state.next += 1;
            at
        })
    }

    fn may(&self, state: &mut State) -> bool {
        let is_over = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        state.is_closed |= state.next >= self.end || is_over;
        !state.is_closed
    }
}

/// Lets the others end where one connection ends early.
struct Closing<'a> {
    order: &'a Order,
    is_done: bool,
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.order.lock().is_closed = true;
            self.order.moved.notify_all();
        }
    }
}

/// First and last transaction of each session.
fn spans(transactions: &[LoggedTransaction]) -> BTreeMap<u32, (usize, usize)> {
    let mut spans = BTreeMap::new();
    for (at, transaction) in transactions.iter().enumerate() {
        spans.entry(transaction.session).or_insert((at, at)).1 = at;
    }
    spans
}

/// The most sessions that are between their first and last transaction.
fn sessions_at_once(transactions: &[LoggedTransaction]) -> u32 {
    let spans = spans(transactions);
    let (mut open, mut most) = (0_u32, 0);
    for (at, transaction) in transactions.iter().enumerate() {
        let (first, last) = spans[&transaction.session];
        open += u32::from(first == at);
        most = most.max(open);
        open -= u32::from(last == at);
    }
    most
}

/// A connection for each transaction: its session's; a new session gets the one with the fewest open ones.
fn places(transactions: &[LoggedTransaction], connections: u32) -> Vec<u32> {
    let spans = spans(transactions);
    let mut open = vec![0_u32; connections as usize];
    let mut places = HashMap::new();
    let place = |(at, transaction): (usize, &LoggedTransaction)| {
        let (first, last) = spans[&transaction.session];
        if first == at {
            let place = (0..connections).min_by_key(|&place| open[place as usize]).unwrap_or(0);
            places.insert(transaction.session, place);
            open[place as usize] += 1;
        }
        let place = places[&transaction.session];
        if last == at {
            open[place as usize] -= 1;
        }
        place
    };
    transactions.iter().enumerate().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// Writes down what is played, in the order in which it starts.
    #[derive(Clone)]
    struct Recorder {
        number: u32,
        played: Arc<Mutex<Vec<(u32, String)>>>,
    }

    impl Connection for Recorder {
        fn run(&mut self, statement: &LoggedStatement) -> Result<(), Refusal> {
            self.played.lock().unwrap().push((self.number, statement.sql.to_string()));
            match &*statement.sql {
                "conflict" => Err(Refusal::Conflict),
                "refused" => Err(Refusal::Refused("no".to_owned())),
                "lost" => Err(Refusal::Lost(lost())),
                _ => Ok(()),
            }
        }

        fn roll_back(&mut self) -> Result<(), TuneError> {
            self.played.lock().unwrap().push((self.number, "rolled back".to_owned()));
            Ok(())
        }

        fn reset(&mut self) -> Result<(), TuneError> {
            self.played.lock().unwrap().push((self.number, "reset".to_owned()));
            Ok(())
        }
    }

    fn workload(transactions: &[(u32, &str)]) -> LoggedWorkload {
        let transaction = |&(session, sql): &(u32, &str)| LoggedTransaction {
            session,
            statements: vec![LoggedStatement { sql: sql.into(), values: None }],
            works: !sql.starts_with("set"),
        };
        let transactions = transactions.iter().map(transaction).collect();
        LoggedWorkload { transactions, database: None, left_out: Counts::default() }
    }

    fn play(replay: &mut Replay<'_>, round: u32) -> (Result<u64, TuneError>, Vec<(u32, String)>) {
        let played = Arc::default();
        let connections =
            (0..replay.connections()).map(|number| Recorder { number, played: Arc::clone(&played) }).collect();
        let done = replay.round(round, connections);
        let played = played.lock().unwrap().clone();
        (done, played)
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn both_rounds_of_a_pair_play_the_same_and_the_next_pair_goes_on() {
        let texts: Vec<String> = (0..10).map(|n| n.to_string()).collect();
        let log: Vec<(u32, &str)> = texts.iter().enumerate().map(|(n, text)| (n as u32 % 3, &**text)).collect();
        let log = workload(&log);
        let mut replay = Replay::new(&log, 2, LONG, 2);
        assert_eq!(replay.connections(), 2);
        let sorted = |(done, mut played): (Result<u64, TuneError>, Vec<(u32, String)>)| {
            played.sort_by(|a, b| a.1.cmp(&b.1));
            (done.unwrap(), played)
        };
        let [first, again, second] = [0, 0, 1].map(|round| sorted(play(&mut replay, round)));
        assert_eq!(first, again);
        let texts = |played: &[(u32, String)]| played.iter().map(|(_, text)| text.clone()).collect::<String>();
        assert_eq!((first.0, texts(&first.1), texts(&second.1)), (5, "01234".to_owned(), "56789".to_owned()));
        // Sessions 0 and 2 share a connection.
        assert_eq!(first.1.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 1, 0, 0, 1]);
        assert_eq!(replay.report(None).played, 15);
    }

    #[test]
    fn a_session_finds_what_it_has_set_on_whichever_connection_and_round() {
        let log = workload(&[(0, "set a"), (1, "1"), (0, "2"), (1, "3"), (0, "4"), (1, "5")]);
        let mut replay = Replay::new(&log, 2, LONG, 1);
        let texts = |(done, played): (Result<u64, TuneError>, Vec<(u32, String)>)| {
            (done.unwrap(), played.into_iter().map(|(_, text)| text).collect::<Vec<_>>())
        };
        assert_eq!(texts(play(&mut replay, 0)), (2, ["set a", "reset", "1", "set a", "2"].map(str::to_owned).to_vec()));
        assert_eq!(texts(play(&mut replay, 1)), (3, ["3", "set a", "4", "reset", "5"].map(str::to_owned).to_vec()));
    }

    #[test]
    fn conflicts_and_refusals_roll_back_and_are_counted_apart() {
        let log = workload(&[(0, "1"), (0, "conflict"), (0, "2"), (0, "refused"), (0, "3")]);
        let mut replay = Replay::new(&log, 1, LONG, 4);
        let (done, played) = play(&mut replay, 0);
        assert_eq!(done.unwrap(), 3);
        assert_eq!(played.iter().filter(|(_, text)| text == "rolled back").count(), 2);
        let report = replay.report(None);
        assert_eq!((report.played, report.conflicts, report.refused), (3, 1, 1));
        assert_eq!((&*report.refusals[0].reason, &*report.refusals[0].example), ("no", "refused"));
    }

    #[test]
    fn a_log_of_other_tables_and_a_lost_server_end_the_measurement() {
        let other = workload(&[(0, "refused"), (0, "refused"), (0, "1")]);
        let error = play(&mut Replay::new(&other, 1, LONG, 1), 0).0.unwrap_err().to_string();
        assert!(error.contains("2 of 3 transactions fail") && error.contains("--load"), "{error}");
        let lost = workload(&[(0, "lost"), (1, "1"), (0, "2"), (1, "3"), (0, "4"), (1, "5")]);
        assert!(play(&mut Replay::new(&lost, 1, LONG, 2), 0).0.is_err());
    }

    #[test]
    fn weights_draw_the_same_transactions_for_both_sides() {
        let log = workload(&[(0, "often"), (0, "seldom"), (0, "never")]);
        let mut replay = Replay::new(&log, 1, Duration::from_millis(50), 8).weighted(&[9.0, 1.0, 0.0], 1, 7).unwrap();
        let (first, second) = (play(&mut replay, 0).1, play(&mut replay, 0).1);
        assert!(first == second && !first.is_empty());
        let count = |text: &str| first.iter().filter(|(_, played)| played == text).count() as f64;
        assert!((0.05..0.2).contains(&(count("seldom") / first.len() as f64)) && count("never") == 0.0);
        assert!(Replay::new(&log, 1, LONG, 8).weighted(&[0.0; 3], 1, 7).is_err());
    }
}
