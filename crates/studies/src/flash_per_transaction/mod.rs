//! Flash bytes programmed for a transaction: what the user changes × what the database makes of it × what the drive
//! makes of that.
//!
//! ```text
//!   transactions ─▶ PostgreSQL, MariaDB, SQLite ─▶ ext4 ─▶ flashwise attach ─▶ trace, kind of each page ─┐
//!    100 bytes each                                          (answers at once)                           │
//!   bytes of the user ──────▶ ÷ ──────▶ bytes written ◀───────────────────────────────────────────────────┤
//!                                            ÷ ─────────▶ flash bytes ◀── drive in steady state ◀── replay ┘
//! ```
//!
//! - [`cases`]: the databases, with one setting changed at a time; [`work`]: rows and transactions;
//! - [`database`] and a file for each system: what is asked of it;
//! - [`bench`]: a database on an attached drive, to its trace;
//! - [`drives`]: the trace on drives that are nearly full, until their write amplification stays;
//! - [`runs`], [`sections`], [`claims`]: what comes out.
//!
//! Nothing here depends on time: checkpoints come by the number of transactions, and the drive answers at once. What
//! the kernel writes back by its own timers is the exception.
//!
//! There is no paper behind it; the published figure that it starts from is that of the study `real-drives`.

mod bench;
mod cases;
mod claims;
mod database;
mod drives;
mod mariadb;
mod postgres;
mod runs;
mod sections;
mod sqlite;
mod work;

use flashwise_block::Silent;
use flashwise_tune::TuneError;
use flashwise_tune::mariadb::PrivateMariadb;
use flashwise_tune::postgres::PrivatePostgres;

use crate::{Findings, Progress, StudyError, StudyOptions};
use cases::System;
use runs::Runs;

/// How much is run.
#[derive(Clone, Copy, Debug)]
struct Scale {
    rows: u32,
    transactions: u32,
    /// Transactions between PostgreSQL's checkpoints.
    checkpoint_every: u32,
    /// How often each case is run, with another seed each time.
    runs: u64,
    /// About how long all of it takes on two idle processors.
    duration: &'static str,
}

impl Scale {
    const fn of(options: &StudyOptions) -> Self {
        let one = Self { rows: 10_000, transactions: 5_000, checkpoint_every: 1_250, runs: 1, duration: "two minutes" };
        match options.quick {
            true => one,
            false => Self { runs: 2, duration: "20 minutes", ..one },
        }
    }

    /// Of the database, a quarter of the rows.
    const fn cache_kib(&self) -> u32 {
        self.rows / 4
    }

    /// Transactions between two runs of VACUUM: a fifth of the rows, as autovacuum has it.
    const fn vacuum_every(&self) -> u32 {
        self.rows / 5
    }
}

/// Runs the study.
pub(crate) fn run(options: &StudyOptions, progress: Progress<'_>) -> Result<Findings, StudyError> {
    let scale = Scale::of(options);
    let (systems, mut limits) = installed()?;
    let runs = Runs::all(&systems, &scale, options, progress)?;
    limits.extend([
        "The database is small, and so are its cache and the distance of its checkpoints: what a transaction of a large \
         one writes depends on the same ratios."
            .to_owned(),
        "The transactions that were recorded are repeated until the drive is in steady state. It is smaller than real \
         ones by as many times as the database is, its superblocks less so."
            .to_owned(),
        "One session, so that every commit is a flush of its own; sessions that commit together share one.".to_owned(),
    ]);
    Ok(Findings { claims: claims::all(&runs), sections: sections::all(&runs, &scale, &systems), limits })
}

/// The systems that can be run here, and what is said of them and of the others.
fn installed() -> Result<(Vec<System>, Vec<String>), StudyError> {
    let (mut systems, mut notes) = (vec![System::Sqlite], Vec::new());
    let mut is_there = |system: System, made: Result<(), TuneError>| match made {
        Ok(()) => {
            systems.push(system);
            Ok(())
        }
        Err(TuneError::Missing(_)) => {
            notes.push(format!("{system} is not installed, and was not measured."));
            Ok(())
        }
        Err(error) => Err(error),
    };
    is_there(System::Mariadb, PrivateMariadb::new(None, None).map(drop))?;
    let postgres = PrivatePostgres::new(None, None);
    let version = postgres.as_ref().ok().map(|server| server.version(&mut Silent)).transpose()?;
    is_there(System::Postgres, postgres.map(drop))?;
    systems.reverse();
    notes.extend(version.map(|version| format!("{version}, SQLite {}.", rusqlite::version())));
    Ok((systems, notes))
}
