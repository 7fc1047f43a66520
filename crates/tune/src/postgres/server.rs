//! Facts read from a server: version, settings, writes of its processes, updates of its tables.
//!
//! Only catalogues and statistics are read. The connection is one of the crate `postgres`, without TLS.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use postgres::{Client, Config, NoTls};

use super::defaults::{check_version, names};
use super::eviction::BackendTime;
use super::log::weights::Calls;
use super::rules::debug_io_direct::is_direct;
use super::settings::{Effect, PAGE, Setting, Settings};
use crate::TuneError;
use crate::servers::ServerData;

/// Timeout for connecting to a server.
const CONNECT: Duration = Duration::from_secs(10);

/// A connection to a server, with the facts read from it.
pub(super) struct Server {
    client: Client,
    config: Config,
    pub(super) facts: ServerFacts,
}

/// Facts read from a server.
#[derive(Clone, Debug)]
pub(super) struct ServerFacts {
    /// Such as `PostgreSQL 15.18`.
    pub(super) program: String,
    /// Its major version.
    pub(super) version: u32,
    /// Where it is, without the password.
    pub(super) place: String,
    pub(super) settings: Settings,
    pub(super) activity: Activity,
    /// `None` before version 14.
    pub(super) backend_time: Option<BackendTime>,
    pub(super) tables: Vec<Table>,
    /// The directory of its data; `None` where the user may not see it.
    pub(super) data_directory: Option<PathBuf>,
    /// Whether it was reached by a socket of this machine.
    pub(super) is_here: bool,
}

impl ServerFacts {
    /// Where its data are.
    pub(super) fn data(&self) -> ServerData<'_> {
        ServerData { server: &self.place, directory: self.data_directory.as_deref(), is_here: self.is_here }
    }
}

/// Writes of its processes since the statistics were reset.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Activity {
    /// Rounds of the background writer that ended at `bgwriter_lru_maxpages`.
    pub(super) limited_rounds: u64,
    /// Pages that the background writer wrote.
    pub(super) by_background_writer: u64,
    /// Pages that backends wrote.
    pub(super) by_backends: u64,
    /// Seconds in which the background writer's pages, and those of backends, were counted; `None` where the server
    /// does not have them.
    pub(super) seconds: [Option<f64>; 2],
    pub(super) checkpoints: CheckpointCounters,
    /// Bytes of the log a second; `None` before version 14.
    pub(super) log_per_s: Option<f64>,
    /// Pages a second that were not in the server's buffers, of all databases; `None` before version 14.
    pub(super) reads_per_s: Option<f64>,
    /// Pages of all databases; `None` where the user may not see the size of each.
    pub(super) data_pages: Option<u64>,
}

/// Checkpoints since the statistics were reset.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct CheckpointCounters {
    /// Those that started by time.
    pub(super) timed: u64,
    /// Those that started because the log was full, or by hand.
    pub(super) requested: u64,
    /// Pages that all of them wrote.
    pub(super) pages: u64,
    /// Seconds in which they were counted; `None` where the server does not have them.
    pub(super) seconds: Option<f64>,
}

/// How a table is updated, since the statistics were reset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    /// With its schema, quoted where that is needed.
    pub(super) name: String,
    pub(super) rows: u64,
    pub(super) updates: u64,
    pub(super) hot_updates: u64,
    /// Updates whose new version went to another page; `None` before version 16.
    pub(super) moved: Option<u64>,
    /// By hand and by autovacuum.
    pub(super) vacuums: u64,
    /// 100 by default.
    pub(super) fill_factor: u32,
    /// Whether it was set.
    pub(super) has_fill_factor: bool,
}

impl Server {
    /// Connects and reads the facts. A password that the DSN lacks is taken from `PGPASSWORD`.
    ///
    /// # Errors
    /// When the DSN is invalid, the server does not respond, or its version or page size is not supported.
    pub(super) fn connect(dsn: &str) -> Result<Self, TuneError> {
        let mut config = Config::from_str(dsn).map_err(|e| TuneError::Options(format!("--dsn: {}", words(&e))))?;
        if config.get_hosts().is_empty() {
            return Err(TuneError::Options(
                "--dsn: it names no host; give one, such as host=/var/run/postgresql dbname=postgres, or postgresql://…"
                    .to_owned(),
            ));
        }
        if let (None, Ok(password)) = (config.get_password(), std::env::var("PGPASSWORD")) {
            config.password(password);
        }
        config.application_name("flashwise").connect_timeout(CONNECT);
        let place = place(&config);
        let mut client = config.connect(NoTls).map_err(|e| failed(&place, &e))?;
        let is_here = config.get_hosts().iter().all(|host| matches!(host, postgres::config::Host::Unix(_)));
        let facts = read(&mut client, place, is_here)?;
        Ok(Self { client, config, facts })
    }

    /// A new connection to the same server, which sees the new settings.
    ///
    /// # Errors
    /// When the server does not respond.
    pub(super) fn reconnect(&self) -> Result<Client, TuneError> {
        self.config.connect(NoTls).map_err(|e| failed(&self.facts.place, &e))
    }

    /// Calls of each statement, as `pg_stat_statements` counts them.
    ///
    /// # Errors
    /// When this database does not have it.
    pub(super) fn statement_calls(&mut self) -> Result<Calls, TuneError> {
        Calls::ask(&mut self.client)
    }

    /// Runs one statement.
    ///
    /// # Errors
    /// With the statement and the server's words.
    pub(super) fn execute(&mut self, statement: &str) -> Result<(), TuneError> {
        self.execute_named(statement, statement)
    }

    /// Runs statements that are called something.
    ///
    /// # Errors
    /// With the name and the server's words.
    pub(super) fn execute_named(&mut self, statements: &str, name: &str) -> Result<(), TuneError> {
        self.client.batch_execute(statements).map_err(|e| failed(name, &e))
    }
}

fn read(client: &mut Client, place: String, is_here: bool) -> Result<ServerFacts, TuneError> {
    let fail = |e: postgres::Error| failed(&place, &e);
    let row = client.query_one(VERSION, &[]).map_err(fail)?;
    let (number, name, page): (i32, String, i32) = (row.get(0), row.get(1), row.get(2));
    let version = number.unsigned_abs() / 10_000;
    check_version(version)?;
    if u64::from(page.unsigned_abs()) != PAGE {
        let message = format!("{place}: pages of {page} bytes; only pages of {PAGE} bytes are supported");
        return Err(TuneError::Options(message));
    }
    let settings = read_settings(client).map_err(fail)?;
    Ok(ServerFacts {
        // Debian and others append the package's version.
        program: format!("PostgreSQL {}", name.split(' ').next().unwrap_or_default()),
        backend_time: match version {
            14.. => Some(read_backend_time(client, is_direct(&settings)).map_err(fail)?),
            _ => None,
        },
        settings,
        version,
        activity: read_activity(client, version).map_err(fail)?,
        tables: read_tables(client, version).map_err(fail)?,
        data_directory: client.query_opt(DATA_DIRECTORY, &[]).map_err(fail)?.map(|row| row.get::<_, String>(0).into()),
        is_here,
        place,
    })
}

/// No row for a user who may not see it.
const DATA_DIRECTORY: &str = "SELECT setting FROM pg_settings WHERE name = 'data_directory' AND setting <> ''";

const VERSION: &str = "SELECT current_setting('server_version_num')::int, current_setting('server_version'),
    current_setting('block_size')::int";

/// An unreadable file name may be that of ALTER SYSTEM's file.
const SETTINGS: &str = "SELECT name, setting, unit, context, source,
    source = 'configuration file' AND coalesce(sourcefile LIKE '%/postgresql.auto.conf', true)
    FROM pg_settings WHERE name = ANY($1)";

fn read_settings(client: &mut Client) -> Result<Settings, postgres::Error> {
    let rows = client.query(SETTINGS, &[&names()])?;
    let setting = |row: &postgres::Row| {
        let context: String = row.get(3);
        let effect = if context == "postmaster" { Effect::Restart } else { Effect::Reload };
        let setting =
            Setting { value: row.get(1), unit: row.get(2), effect, source: row.get(4), is_altered: row.get(5) };
        (row.get(0), setting)
    };
    Ok(Settings(rows.iter().map(setting).collect()))
}

fn read_activity(client: &mut Client, version: u32) -> Result<Activity, postgres::Error> {
    let row = client.query_one(if version >= 17 { ACTIVITY_17 } else { ACTIVITY }, &[])?;
    let count = |column: usize| row.get::<_, i64>(column).unsigned_abs();
    let (log_per_s, reads_per_s) = match version {
        14.. => (client.query_one(LOG, &[])?.get(0), client.query_one(READS, &[])?.get(0)),
        _ => (None, None),
    };
    let data_pages: Option<i64> = client.query_one(DATA_PAGES, &[])?.get(0);
    Ok(Activity {
        limited_rounds: count(0),
        by_background_writer: count(1),
        by_backends: count(2),
        seconds: [row.get(6), row.get(7)],
        checkpoints: CheckpointCounters { timed: count(3), requested: count(4), pages: count(5), seconds: row.get(8) },
        log_per_s,
        reads_per_s,
        data_pages: data_pages.map(i64::unsigned_abs),
    })
}

const ACTIVITY: &str = "SELECT maxwritten_clean, buffers_clean, buffers_backend, checkpoints_timed, checkpoints_req,
    buffers_checkpoint, seconds, seconds, seconds
    FROM pg_stat_bgwriter, LATERAL (SELECT extract(epoch FROM now() - stats_reset)::float8 AS seconds) s";

/// From 17 on, checkpoints and the writes of backends have views of their own.
const ACTIVITY_17: &str = "SELECT maxwritten_clean, buffers_clean, writes, num_timed, num_requested, buffers_written,
    extract(epoch FROM now() - b.stats_reset)::float8, seconds, extract(epoch FROM now() - c.stats_reset)::float8
    FROM pg_stat_bgwriter b, pg_stat_checkpointer c,
        (SELECT coalesce(sum(writes), 0)::bigint AS writes,
            extract(epoch FROM now() - max(stats_reset))::float8 AS seconds
         FROM pg_stat_io WHERE backend_type = 'client backend' AND object = 'relation') io";

const LOG: &str = "SELECT wal_bytes::float8 / greatest(extract(epoch FROM now() - stats_reset)::float8, 1)
    FROM pg_stat_wal";

/// Those of a database that were never reset are as old as the server's own.
const READS: &str =
    "SELECT sum(blks_read / greatest(extract(epoch FROM now() - coalesce(d.stats_reset, b.stats_reset)), 1))
    ::float8 FROM pg_stat_database d, pg_stat_bgwriter b";

/// The size of a database is seen by those who may connect to it, and by monitoring roles.
const DATA_PAGES: &str = "SELECT CASE WHEN bool_and(size IS NOT NULL)
        THEN (sum(size) / current_setting('block_size')::int)::bigint END
    FROM (SELECT CASE WHEN has_database_privilege(oid, 'CONNECT') OR pg_has_role('pg_read_all_stats', 'MEMBER')
        THEN pg_database_size(oid) END AS size FROM pg_database) d";

const BACKEND_TIME: &str = "SELECT coalesce(sum(active_time), 0), coalesce(sum(blk_write_time), 0),
    current_setting('track_io_timing')::bool FROM pg_stat_database";

fn read_backend_time(client: &mut Client, is_direct: bool) -> Result<BackendTime, postgres::Error> {
    let row = client.query_one(BACKEND_TIME, &[])?;
    let (active_ms, write_ms, is_timed): (f64, f64, bool) = (row.get(0), row.get(1), row.get(2));
    Ok(BackendTime { active_ms, write_ms: is_timed.then_some(write_ms), is_direct })
}

fn read_tables(client: &mut Client, version: u32) -> Result<Vec<Table>, postgres::Error> {
    let moved = if version >= 16 { "s.n_tup_newpage_upd" } else { "NULL::bigint" };
    let query = format!(
        "SELECT quote_ident(s.schemaname) || '.' || quote_ident(s.relname), s.n_live_tup, s.n_tup_upd, s.n_tup_hot_upd,
            {moved}, s.vacuum_count + s.autovacuum_count,
            (SELECT option_value::int FROM pg_options_to_table(c.reloptions) WHERE option_name = 'fillfactor')
         FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid
         WHERE c.relkind = 'r' AND s.n_tup_upd > 0 ORDER BY s.n_tup_upd DESC, 1"
    );
    let rows = client.query(&query, &[])?;
    let table = |row: &postgres::Row| {
        let count = |column: usize| row.get::<_, i64>(column).unsigned_abs();
        let fill_factor: Option<i32> = row.get(6);
        Table {
            name: row.get(0),
            rows: count(1),
            updates: count(2),
            hot_updates: count(3),
            moved: row.get::<_, Option<i64>>(4).map(i64::unsigned_abs),
            vacuums: count(5),
            fill_factor: fill_factor.map_or(100, i32::unsigned_abs),
            has_fill_factor: fill_factor.is_some(),
        }
    };
    Ok(rows.iter().map(table).collect())
}

/// `host:port`, or the directory of the socket and the port.
fn place(config: &Config) -> String {
    let host = |host: &postgres::config::Host| match host {
        postgres::config::Host::Tcp(name) => name.clone(),
        postgres::config::Host::Unix(path) => path.display().to_string(),
    };
    let hosts: Vec<String> = config.get_hosts().iter().map(host).collect();
    let ports: Vec<String> = config.get_ports().iter().map(u16::to_string).collect();
    let ports = if ports.is_empty() { "5432".to_owned() } else { ports.join(",") };
    format!("{}:{ports}", hosts.join(","))
}

/// The failed operation, with the server's message.
pub(super) fn failed(context: &str, error: &postgres::Error) -> TuneError {
    TuneError::Server { context: context.to_owned(), message: words(error) }
}

fn words(error: &postgres::Error) -> String {
    if let Some(told) = error.as_db_error() {
        return told.message().to_owned();
    }
    let source = std::error::Error::source(error).map(|source| {
        let words = source.to_string();
        words.split(" (os error").next().unwrap_or_default().to_owned()
    });
    match source {
        Some(source) => format!("{error}").replace(&format!(": {source}"), "") + ": " + &source,
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_no_password_in_it() {
        let config = Config::from_str("postgresql://me:secret@localhost:5433/app").unwrap();
        assert_eq!(place(&config), "localhost:5433");
        assert_eq!(place(&Config::from_str("host=/run/postgresql").unwrap()), "/run/postgresql:5432");
    }

    #[test]
    fn a_dsn_that_makes_no_sense_is_told() {
        let told = |dsn: &str| Server::connect(dsn).err().unwrap();
        assert!(matches!(told("host"), TuneError::Options(why) if why.starts_with("--dsn: ")));
        assert!(matches!(told("user=me"), TuneError::Options(why) if why.contains("no host")));
        let nobody = told("host=/no/such/place").to_string();
        assert!(nobody.starts_with("/no/such/place:5432: ") && nobody.contains("No such file"), "{nobody}");
        assert!(!nobody.contains("os error"), "{nobody}");
    }
}
