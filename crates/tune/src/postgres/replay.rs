//! Statements of a log on a private server, by a user who may read and change the loaded tables and nothing else.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;

use postgres::fallible_iterator::FallibleIterator;
use postgres::types::private::BytesMut;
use postgres::types::{Format, IsNull, ToSql, Type};
use postgres::{Client, Config, NoTls, Statement};

use super::server::failed;
use crate::TuneError;
use crate::servers::logged::{Connection, LoggedStatement, Refusal, Values};

/// Who replays.
const USER: &str = "flashwise_replay";
/// Statements of a connection that stay prepared.
const PREPARED_MAX: usize = 1_000;
/// No statement and no lock may hold up a round for longer.
const LIMITS: &str = "SET statement_timeout = '60s'; SET lock_timeout = '10s'";
/// A deadlock, a serialization failure, a lock that is not available.
const IN_THE_WAY: [&str; 3] = ["40P01", "40001", "55P03"];

/// Makes the user and gives it rights on everything that was loaded. A log may have what others have tried with the
/// server: reading its files or starting programs takes a superuser.
pub(super) const GRANTS: &str = "
    DO $$
    DECLARE
        s text;
    BEGIN
        CREATE ROLE flashwise_replay LOGIN NOSUPERUSER;
        EXECUTE format('GRANT ALL ON DATABASE %I TO flashwise_replay', current_database());
        FOR s IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' LOOP
            EXECUTE format('GRANT ALL ON SCHEMA %I TO flashwise_replay', s);
            EXECUTE format('GRANT ALL ON ALL TABLES IN SCHEMA %I TO flashwise_replay', s);
            EXECUTE format('GRANT ALL ON ALL SEQUENCES IN SCHEMA %I TO flashwise_replay', s);
            EXECUTE format('GRANT ALL ON ALL ROUTINES IN SCHEMA %I TO flashwise_replay', s);
        END LOOP;
    END
    $$";

/// One connection.
pub(super) struct ReplayClient {
    client: Client,
    prepared: HashMap<Arc<str>, Statement>,
}

impl ReplayClient {
    /// Connects to a server that has [`GRANTS`].
    ///
    /// # Errors
    /// When it does not respond.
    pub(super) fn connect(dsn: &str) -> Result<Self, TuneError> {
        let mut config: Config = dsn.parse().map_err(|e| failed("replaying the log", &e))?;
        let mut client = config.user(USER).connect(NoTls).map_err(|e| failed("replaying the log", &e))?;
        client.batch_execute(LIMITS).map_err(|e| failed("replaying the log", &e))?;
        Ok(Self { client, prepared: HashMap::new() })
    }

    fn execute(&mut self, sql: &Arc<str>, values: &Values) -> Result<(), postgres::Error> {
        let statement = match self.prepared.get(sql) {
            Some(statement) => statement.clone(),
            None => {
                let statement = self.client.prepare(sql)?;
                if self.prepared.len() < PREPARED_MAX {
                    self.prepared.insert(Arc::clone(sql), statement.clone());
                }
                statement
            }
        };
        // A log of samples may have values that this text has no parameter for.
        let values = values.iter().take(statement.params().len()).map(|value| Text(value.as_deref()));
        let values: Vec<Text<'_>> = values.collect();
        let mut rows = self.client.query_raw(&statement, values.iter().map(|value| value as &dyn ToSql))?;
        while rows.next()?.is_some() {}
        Ok(())
    }
}

impl Connection for ReplayClient {
    fn run(&mut self, statement: &LoggedStatement) -> Result<(), Refusal> {
        let ran = match &statement.values {
            Some(values) => self.execute(&statement.sql, values),
            None => self.client.batch_execute(&statement.sql),
        };
        ran.map_err(|error| match error.as_db_error() {
            Some(reported) if IN_THE_WAY.contains(&reported.code().code()) => Refusal::Conflict,
            Some(reported) => Refusal::Refused(reported.message().to_owned()),
            None if self.client.is_closed() => Refusal::Lost(failed("replaying the log", &error)),
            // A value that the type of its parameter does not take.
            None => Refusal::Refused(error.to_string()),
        })
    }

    fn roll_back(&mut self) -> Result<(), TuneError> {
        self.client.batch_execute("ROLLBACK").map_err(|e| failed("replaying the log", &e))
    }

    fn reset(&mut self) -> Result<(), TuneError> {
        self.prepared.clear();
        let reset = self.client.batch_execute("DISCARD ALL").and_then(|()| self.client.batch_execute(LIMITS));
        reset.map_err(|e| failed("replaying the log", &e))
    }
}

/// A value as text, of whichever type.
#[derive(Debug)]
struct Text<'a>(Option<&'a str>);

impl ToSql for Text<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let Some(text) = self.0 else { return Ok(IsNull::Yes) };
        out.extend_from_slice(text.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    postgres::types::to_sql_checked!();
}
