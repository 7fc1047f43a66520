//! Statements of a log on a private server, by a user who has rights on the loaded database and nothing else.

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use super::measure::IN_THE_WAY;
use super::server::failed;
use crate::TuneError;
use crate::servers::logged::{Connection, LoggedStatement, Refusal};

/// Who replays.
const USER: &str = "flashwise_replay";
/// No statement and no lock may hold up a round for longer, seconds.
const LIMITS: &str = "SET SESSION max_statement_time = 60, lock_wait_timeout = 10, innodb_lock_wait_timeout = 10";

/// A name in quotes.
pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Statements that make the user. A log may have what others have tried with the server: reading its files takes a
/// right on all databases.
pub(super) fn grants(database: &str) -> [String; 2] {
    // In the name of a grant, _ and % stand for others.
    let pattern = database.replace('_', "\\_").replace('%', "\\%");
    [format!("CREATE USER {USER}@localhost"), format!("GRANT ALL ON {}.* TO {USER}@localhost", quoted(&pattern))]
}

/// One connection.
pub(super) struct ReplayConnection {
    connection: Conn,
    database: String,
}

impl ReplayConnection {
    /// Connects to a server that has the [`grants`].
    ///
    /// # Errors
    /// When it does not respond.
    pub(super) fn connect(options: OptsBuilder, database: &str) -> Result<Self, TuneError> {
        let options = options.user(Some(USER)).pass(None::<String>);
        let connection = Conn::new(options).map_err(|e| failed("replaying the log", &e))?;
        let mut this = Self { connection, database: quoted(database) };
        this.set_up()?;
        Ok(this)
    }

    fn set_up(&mut self) -> Result<(), TuneError> {
        let ready = self.connection.query_drop(format!("USE {}", self.database));
        ready.and_then(|()| self.connection.query_drop(LIMITS)).map_err(|e| failed("replaying the log", &e))
    }
}

impl Connection for ReplayConnection {
    fn run(&mut self, statement: &LoggedStatement) -> Result<(), Refusal> {
        self.connection.query_drop(&*statement.sql).map_err(|error| match &error {
            mysql::Error::MySqlError(reported) if IN_THE_WAY.contains(&reported.code) => Refusal::Conflict,
            mysql::Error::MySqlError(reported) => Refusal::Refused(without_values(&reported.message)),
            _ => Refusal::Lost(failed("replaying the log", &error)),
        })
    }

    fn roll_back(&mut self) -> Result<(), TuneError> {
        self.connection.query_drop("ROLLBACK").map_err(|e| failed("replaying the log", &e))
    }

    fn reset(&mut self) -> Result<(), TuneError> {
        self.connection.reset().map_err(|e| failed("replaying the log", &e))?;
        self.set_up()
    }
}

/// A message without the value that it is about: `Duplicate entry '…' for key 'PRIMARY'`.
fn without_values(message: &str) -> String {
    const BEFORE: &str = "Duplicate entry '";
    match message.strip_prefix(BEFORE).and_then(|rest| rest.rsplit_once("' for key")) {
        Some((_, key)) => format!("{BEFORE}…' for key{key}"),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_values_are_left_out() {
        assert_eq!(quoted("a`b"), "`a``b`");
        assert_eq!(grants("my_shop")[1], "GRANT ALL ON `my\\_shop`.* TO flashwise_replay@localhost");
        assert_eq!(
            without_values("Duplicate entry 'a' for key' for key 'PRIMARY'"),
            "Duplicate entry '…' for key 'PRIMARY'"
        );
        assert_eq!(without_values("Table 'a.b' doesn't exist"), "Table 'a.b' doesn't exist");
    }
}
