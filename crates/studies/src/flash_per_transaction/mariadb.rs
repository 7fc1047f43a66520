//! MariaDB: a private server on the drive, one session.

use std::path::Path;
use std::time::{Duration, Instant};

use flashwise_block::Silent;
use flashwise_tune::mariadb::PrivateMariadb;
use mysql::prelude::Queryable;
use mysql::{Conn, Statement};

use super::Scale;
use super::cases::Change;
use super::database::{Database, Kind, changed};
use super::work::{FIELD_BYTES, FIELDS, Update, Work, columns};
use crate::StudyError;

const INSTANCE: &str = "data";
const DATABASE: &str = "w";
/// The file of its table.
const TABLE: &str = "t.ibd";
/// Rows of a statement while the table is loaded.
const ROWS_AT_ONCE: u32 = 200;
/// How often it is examined whether all pages are written back, and how long that may take.
const POLL: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(120);
/// Where the doublewrite buffer is in the system tablespace: the second and the third extent of 1 MiB.
const COPIES: std::ops::Range<u64> = 1 << 20..3 << 20;

/// A running server.
pub(super) struct Mariadb {
    connection: Conn,
    updates: Vec<Statement>,
    // Ended after the session.
    _server: PrivateMariadb,
}

fn settings() -> Vec<(&'static str, String)> {
    [
        ("innodb-page-size", "16384".to_owned()),
        ("innodb-buffer-pool-size", POOL.to_owned()),
        ("innodb-log-file-size", "4M".to_owned()),
        // By default as many pages are to be kept free as so small a pool has.
        ("innodb-lru-scan-depth", "100".to_owned()),
        ("innodb-stats-auto-recalc", "OFF".to_owned()),
        ("innodb-buffer-pool-dump-at-shutdown", "OFF".to_owned()),
        ("innodb-buffer-pool-load-at-startup", "OFF".to_owned()),
    ]
    .to_vec()
}

/// It holds the table, as the kernel's page cache does for the other systems. With 6 MiB, the server's least, the two
/// or three pages that each of its 128 rollback segments changes in turn are evicted again and again: 32 KiB of undo
/// log for a transaction.
const POOL: &str = "24M";

impl Mariadb {
    pub(super) fn create(change: Change, scale: &Scale, directory: &Path, work: &mut Work) -> Result<Self, StudyError> {
        let mut all = changed(&settings(), change);
        if let Change::FillFactor(percent) = change {
            all.push(("innodb-fill-factor".to_owned(), percent.to_string()));
        }
        let page = all.iter().filter(|(name, _)| name == "innodb-page-size").cloned().collect::<Vec<_>>();
        let mut server = PrivateMariadb::new(None, Some(directory))?;
        server.create_with(INSTANCE, &page, &mut Silent)?;
        server.start(INSTANCE, &all, &mut Silent)?;
        let mut connection = server.connect()?;
        connection.query_drop(format!("CREATE DATABASE {DATABASE}"))?;
        connection.query_drop(format!(
            "CREATE TABLE {DATABASE}.t (id INT PRIMARY KEY, {}) ENGINE = InnoDB",
            columns(&format!("CHAR({FIELD_BYTES}) CHARACTER SET latin1"))
        ))?;
        let mut next = 1;
        while next <= scale.rows {
            let last = scale.rows.min(next + ROWS_AT_ONCE - 1);
            let rows: Vec<String> = (next..=last).map(|id| format!("({id},'{}')", work.fields().join("','"))).collect();
            connection.query_drop(format!("INSERT INTO {DATABASE}.t VALUES {}", rows.join(",")))?;
            next = last + 1;
        }
        if let Change::FillFactor(_) = change {
            // The setting applies where a table is built in the order of its key.
            connection.query_drop(format!("ALTER TABLE {DATABASE}.t FORCE"))?;
        }
        let updates =
            (0..FIELDS).map(|n| connection.prep(format!("UPDATE {DATABASE}.t SET field{n} = ? WHERE id = ?")));
        let updates = updates.collect::<Result<_, _>>()?;
        Ok(Self { connection, updates, _server: server })
    }
}

impl Database for Mariadb {
    fn update(&mut self, update: &Update) -> Result<(), StudyError> {
        Ok(self.connection.exec_drop(&self.updates[update.field], (&update.value, update.row))?)
    }

    fn write_back(&mut self) -> Result<(), StudyError> {
        let connection = &mut self.connection;
        let limits = "SELECT @@GLOBAL.innodb_max_dirty_pages_pct, @@GLOBAL.innodb_max_dirty_pages_pct_lwm";
        let (most, low): (f64, f64) = connection.query_first(limits)?.ok_or(StudyError::Lost)?;
        connection
            .query_drop("SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0, GLOBAL innodb_max_dirty_pages_pct = 0")?;
        let dirty = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS \
                     WHERE VARIABLE_NAME = 'INNODB_BUFFER_POOL_PAGES_DIRTY'";
        let began = Instant::now();
        while connection.query_first::<u64, _>(dirty)?.unwrap_or_default() > 0 {
            if began.elapsed() > PATIENCE {
                return Err(StudyError::Attach("the server does not write back its dirty pages".to_owned()));
            }
            std::thread::sleep(POLL);
        }
        let reset =
            format!("SET GLOBAL innodb_max_dirty_pages_pct = {most}, GLOBAL innodb_max_dirty_pages_pct_lwm = {low}");
        Ok(connection.query_drop(reset)?)
    }

    fn kind(&self, file: &Path, offset: u64) -> Kind {
        match file.file_name().and_then(|name| name.to_str()) {
            Some("ib_logfile0") => Kind::Log,
            Some("ibdata1") if COPIES.contains(&offset) => Kind::Copies,
            Some("ibdata1") => Kind::Undo,
            Some(TABLE) => Kind::Pages,
            _ => Kind::Other,
        }
    }
}
