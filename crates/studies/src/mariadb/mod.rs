//! MariaDB fitted to a drive without a patch: pages at hot locations, and a binary log that stays within flash pages.
//!
//! ```text
//!   client of our own ─▶ a private MariaDB, small buffer pool ─▶ ext4 ─▶ flashwise attach ─▶ Samsung 960 EVO, smaller
//!     key-value workload, YCSB A to F             │                          └─▶ trace: what the client waited for
//!   inserts, one a transaction ─▶ binary log ─────┴─▶ Toshiba XG5 ─▶ trace ─▶ as it was, and padded ─▶ flash programs
//! ```
//!
//! - [`placement`]: page size, where the file system starts, how pages are written; looked up in the extents;
//! - [`bench`]: a database on a drive; [`key_value`], [`ycsb`]: what is asked of it; [`waits`]: what it waited for;
//! - [`reads`]: all of that alternately; [`logs`], [`binlog`]: the binary log;
//! - [`drives`]: the text's drives, smaller;
//! - [`claims`], [`sections`]: what comes out.
//!
//! **Time.** A drive answers when it would, its world slowed down, so that a busy machine answers late by little on the
//! drive's clock. SELECTs are judged by the time during which the drive had a read of theirs, from the trace: that does
//! not depend on the machine. The server's time on a processor is measured beside it.
//!
//! Source: A. Kakaraparthy, J. M. Patel, K. Park, B. P. Kroth, PVLDB 13(4), 2019.

mod bench;
mod binlog;
mod claims;
mod drives;
mod key_value;
mod logs;
mod placement;
mod reads;
mod sections;
mod waits;
mod ycsb;

use flashwise_tune::TuneError;
use flashwise_tune::mariadb::PrivateMariadb;

use crate::attached::{self, Cores, load_average};
use crate::{Findings, Progress, StudyError, StudyOptions};
use drives::Hidden;
use key_value::KeyValue;
use logs::Logs;
use reads::Reads;

/// How much is run.
#[derive(Clone, Copy, Debug)]
struct Scale {
    work: KeyValue,
    /// Rows of YCSB's table.
    ycsb_rows: u64,
    /// Operations of a piece of a mix.
    operations: u32,
    /// How often each mix is run.
    repetitions: u32,
    /// Transactions of each binary log.
    commits: u32,
    /// Seconds of the machine for one of the drive's.
    time_scale: f64,
}

impl Scale {
    fn of(options: &StudyOptions) -> Self {
        let work = KeyValue { rows: 600_000, rounds: 3, inserts: 500, per_transaction: 50, selects: 700 };
        let small = Self { work, ycsb_rows: 50_000, operations: 120, repetitions: 3, commits: 1_000, time_scale: 10.0 };
        match options.quick {
            true => small,
            false => Self {
                work: KeyValue { rows: 2_000_000, rounds: 10, inserts: 5_000, selects: 5_000, ..work },
                ycsb_rows: 160_000,
                operations: 1_000,
                repetitions: 8,
                commits: 5_000,
                ..small
            },
        }
    }
}

/// All that was measured.
struct Results {
    scale: Scale,
    hidden: Hidden,
    reads: Reads,
    logs: Logs,
}

/// Runs the study.
pub(crate) fn run(options: &StudyOptions, progress: Progress<'_>) -> Result<Findings, StudyError> {
    look_for_server()?;
    let load = load_average();
    let scale = Scale::of(options);
    let cores = Cores::share()?;
    progress("learning the drive", 0.0);
    let hidden = drives::learn(options.seed)?;
    let logs = logs::measure(&scale, options, &cores, progress)?;
    let reads = reads::measure(&scale, hidden, options, &cores, progress)?;
    let results = Results { scale, hidden, reads, logs };
    Ok(Findings { claims: claims::all(&results)?, sections: sections::all(&results, &load)?, limits: limits(&results) })
}

/// What is missing is told before a drive is made.
fn look_for_server() -> Result<(), StudyError> {
    match PrivateMariadb::new(None, None) {
        Ok(_) => Ok(()),
        Err(TuneError::Missing(_)) => Err(StudyError::Missing(
            "no MariaDB server is installed: install the package mariadb-server-core (Debian, Ubuntu) or \
             mariadb-server (Fedora, RHEL)"
                .to_owned(),
        )),
        Err(error) => Err(error.into()),
    }
}

fn limits(results: &Results) -> Vec<String> {
    let work = &results.scale.work;
    let mut limits = vec![
        format!(
            "{}. The paper's server is patched; its buffer pool, log and transactions are unknown. Its 10 million \
             rows are {} here, its 100 rounds {}.",
            results.reads.version, work.rows, work.rounds
        ),
        "One client. With many clients, reads overlap, and a page on two channels occupies both: this was not measured."
            .to_owned(),
        "One load with one seed; intervals are over rounds and repetitions. The drives are new, and garbage \
         collection does not run."
            .to_owned(),
        "How the paper measured wear is unknown. Here it is the bytes programmed by the simulated flash.".to_owned(),
    ];
    limits.extend(results.reads.not_apart.as_deref().map(attached::behind_flushes));
    limits
}
