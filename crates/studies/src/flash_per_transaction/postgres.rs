//! PostgreSQL: a private server on the drive, one session.

use std::io::Write as _;
use std::path::Path;

use flashwise_block::Silent;
use flashwise_tune::postgres::PrivatePostgres;
use postgres::{Client, NoTls, Statement};

use super::Scale;
use super::cases::Change;
use super::database::{Database, Kind, changed};
use super::work::{FIELDS, Update, Work, columns};
use crate::StudyError;

const CLUSTER: &str = "data";
/// Files of a user's tables and indexes have numbers from this on (`FirstNormalObjectId`).
const FIRST_OF_USERS: u32 = 16_384;

/// A running server.
pub(super) struct Postgres {
    client: Client,
    updates: Vec<Statement>,
    /// Transactions between checkpoints, and between runs of VACUUM.
    checkpoint_every: u32,
    vacuum_every: u32,
    // Ended after the session.
    _server: PrivatePostgres,
}

/// Checkpoints and VACUUM come by the number of transactions, not by the clock: what a transaction writes must not
/// depend on how fast this machine is.
fn settings(scale: &Scale) -> Vec<(&'static str, String)> {
    [
        ("shared_buffers", format!("{}kB", scale.cache_kib())),
        ("max_wal_size", "4GB".to_owned()),
        ("min_wal_size", "2MB".to_owned()),
        ("checkpoint_timeout", "1d".to_owned()),
        ("autovacuum", "off".to_owned()),
    ]
    .to_vec()
}

impl Postgres {
    pub(super) fn create(change: Change, scale: &Scale, directory: &Path, work: &mut Work) -> Result<Self, StudyError> {
        let mut server = PrivatePostgres::new(None, Some(directory))?;
        // The log is to be as long as the distance of checkpoints makes it, and not a few segments of 16 MiB.
        server.create_with(CLUSTER, &["--wal-segsize=1"], &mut Silent)?;
        server.start(CLUSTER, &changed(&settings(scale), change), &mut Silent)?;
        let mut client = Client::connect(&server.dsn(), NoTls)?;
        let fill = if let Change::FillFactor(percent) = change { percent } else { 100 };
        client.batch_execute(&format!(
            "CREATE TABLE t (id integer PRIMARY KEY, {}) WITH (fillfactor = {fill})",
            columns("text")
        ))?;
        let mut rows = client.copy_in("COPY t FROM STDIN")?;
        for id in 1..=scale.rows {
            let mut line = id.to_string();
            work.fields().iter().for_each(|field| line.extend(["\t", field.as_str()]));
            line.push('\n');
            rows.write_all(line.as_bytes())?;
        }
        rows.finish()?;
        client.batch_execute("VACUUM (FREEZE, ANALYZE) t")?;
        let updates = (0..FIELDS).map(|n| client.prepare(&format!("UPDATE t SET field{n} = $1 WHERE id = $2")));
        let updates = updates.collect::<Result<_, _>>()?;
        let distance = if let Change::CheckpointDistance(times) = change { times } else { 1.0 };
        let checkpoint_every = (f64::from(scale.checkpoint_every) * distance) as u32;
        Ok(Self { client, updates, checkpoint_every, vacuum_every: scale.vacuum_every(), _server: server })
    }
}

impl Database for Postgres {
    fn update(&mut self, update: &Update) -> Result<(), StudyError> {
        self.client.execute(&self.updates[update.field], &[&update.value, &update.row])?;
        Ok(())
    }

    fn upkeep(&mut self, done: u32) -> Result<(), StudyError> {
        if done.is_multiple_of(self.vacuum_every) {
            self.client.batch_execute("VACUUM t")?;
        }
        if done.is_multiple_of(self.checkpoint_every) {
            self.client.batch_execute("CHECKPOINT")?;
        }
        Ok(())
    }

    fn write_back(&mut self) -> Result<(), StudyError> {
        Ok(self.client.batch_execute("CHECKPOINT")?)
    }

    fn kind(&self, file: &Path, _: u64) -> Kind {
        if file.components().any(|part| part.as_os_str() == "pg_wal") {
            return Kind::Log;
        }
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let number = name.split(['_', '.']).next().and_then(|number| number.parse::<u32>().ok());
        if number.is_some_and(|number| number >= FIRST_OF_USERS) { Kind::Pages } else { Kind::Other }
    }
}
