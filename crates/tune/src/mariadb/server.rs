//! Facts read from a server: its version and its variables. Nothing else is read.
//!
//! The connection is one of the crate `mysql`, over a Unix socket or TCP, without TLS.

use std::path::{Path, PathBuf};
use std::time::Duration;

use flashwise_block::AtomicWrites;
use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder};

use super::settings::{BINLOG_ENGINE, DATA_BUFFERING, Effect, KNOWN, Variable, Variables, check_version};
use crate::TuneError;
use crate::servers::ServerData;

/// Timeout for connecting to a server.
const CONNECT: Duration = Duration::from_secs(10);

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MariadbAddress {
    /// Its Unix socket, and the user; a password is taken from `MYSQL_PWD`.
    Socket {
        /// The socket.
        path: PathBuf,
        /// The user.
        user: String,
    },
    /// `mysql://USER@HOST:PORT`; a password that it lacks is taken from `MYSQL_PWD`.
    Url(String),
}

/// A connection to a server, with the facts read from it.
pub(super) struct Server {
    connection: Conn,
    pub(super) facts: ServerFacts,
}

/// Facts read from a server.
#[derive(Clone, Debug)]
pub(super) struct ServerFacts {
    /// Such as `MariaDB 10.11.19`.
    pub(super) program: String,
    /// Where it is, without the password.
    pub(super) place: String,
    pub(super) variables: Variables,
    /// What file system and drive of its files report; `None` where they are not here, or cannot be examined.
    pub(super) atomic_writes: Option<AtomicWrites>,
    /// The directory of its data, as the server names it.
    data_directory: Option<PathBuf>,
    /// Whether it was reached by a socket of this machine.
    is_here: bool,
}

impl ServerFacts {
    /// Where its data are.
    pub(super) fn data(&self) -> ServerData<'_> {
        ServerData { server: &self.place, directory: self.data_directory.as_deref(), is_here: self.is_here }
    }
}

impl Server {
    /// Connects and reads the facts.
    ///
    /// # Errors
    /// When the address is invalid, the server does not respond, or its version is not supported.
    pub(super) fn connect(place: &MariadbAddress) -> Result<Self, TuneError> {
        let is_here = matches!(place, MariadbAddress::Socket { .. });
        let (options, place) = options(place)?;
        let mut connection = Conn::new(options).map_err(|e| failed(&place, &e))?;
        let version: Option<String> = connection.query_first("SELECT VERSION()").map_err(|e| failed(&place, &e))?;
        let program = check_version(&version.unwrap_or_default())?;
        let variables = read(&mut connection).map_err(|e| failed(&place, &e))?;
        let data_directory = data_directory(&mut connection);
        let atomic_writes = data_directory.as_deref().filter(|_| is_here).and_then(atomic_writes);
        let facts = ServerFacts { program, place, variables, atomic_writes, data_directory, is_here };
        Ok(Self { connection, facts })
    }

    /// Runs one statement.
    ///
    /// # Errors
    /// With the statement and the server's words.
    pub(super) fn execute(&mut self, statement: &str) -> Result<(), TuneError> {
        self.connection.query_drop(statement).map_err(|e| failed(statement, &e))
    }

    /// A variable's current value.
    ///
    /// # Errors
    /// When there is no such variable.
    pub(super) fn value(&mut self, name: &str) -> Result<String, TuneError> {
        let told: Option<String> =
            self.connection.query_first(format!("SELECT @@GLOBAL.{name}")).map_err(|e| failed(name, &e))?;
        Ok(told.unwrap_or_default())
    }
}

/// The connection's options, and its name without the password.
pub(super) fn options(place: &MariadbAddress) -> Result<(Opts, String), TuneError> {
    let password = std::env::var("MYSQL_PWD").ok();
    let (builder, name) = match place {
        MariadbAddress::Socket { path, user } => {
            let builder = OptsBuilder::new().socket(Some(path.display().to_string())).user(Some(user)).pass(password);
            (builder, path.display().to_string())
        }
        MariadbAddress::Url(url) => {
            let opts = Opts::from_url(url)
                .map_err(|e| TuneError::Options(format!("--dsn: {e}; give a URL such as mysql://me@db:3306")))?;
            let name = format!("{}:{}", opts.get_ip_or_hostname(), opts.get_tcp_port());
            let given = opts.get_pass().map(str::to_owned);
            (OptsBuilder::from_opts(opts).pass(given.or(password)), name)
        }
    };
    // Only the requested way to the server is tried.
    let is_socket = matches!(place, MariadbAddress::Socket { .. });
    let builder = builder.prefer_socket(is_socket).tcp_connect_timeout(Some(CONNECT));
    Ok((builder.into(), name))
}

/// A socket as a place.
pub(super) fn at_socket(path: &Path, user: &str) -> MariadbAddress {
    MariadbAddress::Socket { path: path.to_owned(), user: user.to_owned() }
}

const VARIABLES: &str = "SELECT LOWER(VARIABLE_NAME), GLOBAL_VALUE, GLOBAL_VALUE_ORIGIN, READ_ONLY
    FROM information_schema.SYSTEM_VARIABLES WHERE GLOBAL_VALUE IS NOT NULL
    AND (VARIABLE_NAME LIKE 'innodb%' OR VARIABLE_NAME IN ('LOG_BIN', 'SYNC_BINLOG', 'BINLOG_STORAGE_ENGINE'))";

fn read(connection: &mut Conn) -> Result<Variables, mysql::Error> {
    let rows: Vec<(String, String, String, String)> = connection.query(VARIABLES)?;
    let documented = |name: &str| match KNOWN.iter().find(|known| known.0 == name) {
        Some(&(_, _, effect)) => Some(effect),
        None => [BINLOG_ENGINE, DATA_BUFFERING].contains(&name).then_some(Effect::Restart),
    };
    let variable = |(name, value, origin, read_only): (String, String, String, String)| {
        let effect = match (documented(&name)?, read_only.as_str()) {
            (Effect::NewInstance, _) => Effect::NewInstance,
            (_, "NO") => Effect::AtOnce,
            _ => Effect::Restart,
        };
        Some((name, Variable { value, effect, is_of_command_line: origin == "COMMAND-LINE" }))
    };
    Ok(Variables(rows.into_iter().filter_map(variable).collect()))
}

/// The directory of InnoDB's files.
fn data_directory(connection: &mut Conn) -> Option<PathBuf> {
    let directory: Option<String> =
        connection.query_first("SELECT COALESCE(NULLIF(@@innodb_data_home_dir, ''), @@datadir)").ok()?;
    directory.map(PathBuf::from)
}

/// What is reported for the server's tablespace, which is on this machine.
fn atomic_writes(directory: &Path) -> Option<AtomicWrites> {
    const TABLESPACE: &str = "ibdata1";
    AtomicWrites::of(&directory.join(TABLESPACE)).ok()
}

/// The failed operation, with the server's message.
pub(super) fn failed(context: &str, error: &mysql::Error) -> TuneError {
    let words = match error {
        mysql::Error::MySqlError(told) => told.message.clone(),
        other => other.to_string(),
    };
    let message = words.split(" (os error").next().unwrap_or_default().to_owned();
    TuneError::Server { context: context.to_owned(), message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_no_password_in_it() {
        let name = |url: &str| options(&MariadbAddress::Url(url.to_owned())).unwrap().1;
        assert_eq!(name("mysql://me:secret@localhost:3307"), "localhost:3307");
        let told = options(&MariadbAddress::Url("http://x".to_owned())).unwrap_err().to_string();
        assert!(told.starts_with("--dsn: ") && told.contains("mysql://me@db:3306"), "{told}");
    }

    #[test]
    fn nobody_at_a_socket_is_told_in_the_systems_words() {
        let told = Server::connect(&at_socket(Path::new("/no/such/socket"), "root")).err().unwrap().to_string();
        assert!(told.starts_with("/no/such/socket: ") && !told.contains("os error"), "{told}");
    }
}
