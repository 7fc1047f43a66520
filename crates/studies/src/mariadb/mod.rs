//! MariaDB fitted to a drive without a patch: pages at hot locations, and a binary log that stays within flash pages.
//!
//! ```text
//!   client of our own ─▶ a private MariaDB, small buffer pool ─▶ ext4 ─▶ flashwise attach ─▶ Samsung 960 EVO, smaller
//!     key-value workload, YCSB A to F             │                          └─▶ trace: what the client waited for
//!   inserts, one a transaction ─▶ binary log ─────┴─▶ Toshiba XG5 ─▶ trace ─▶ as it was, and padded ─▶ flash programs
//! ```
//!
//! - [`placement`]: page size, where the file system begins, how pages are written; looked up in the extents;
//! - [`bench`]: a database on a drive; [`key_value`], [`ycsb`]: what is asked of it; [`waits`]: what it waited for;
//! - [`drives`]: the text's drives, smaller;
//! - [`claims`], [`sections`]: what comes out.
//!
//! **Time.** A drive answers when it would, its world slowed down, so that a busy machine answers late by little on the drive's
//! clock. SELECTs are judged by the time during which the drive had a read of theirs, from the trace: that does not depend on
//! the machine. The server's time on a processor is measured beside it.
//!
//! Source: A. Kakaraparthy, J. M. Patel, K. Park, B. P. Kroth, PVLDB 13(4), 2019.

mod bench;
mod binlog;
mod drives;
mod key_value;
mod placement;
mod waits;
mod ycsb;
