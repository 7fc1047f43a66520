//! The audit of the real SQLite, captured by the VFS as it runs: rollback journal and write-ahead log.

use flashwise_audit::{Audit, AuditOptions, Finding, Place, Rule, audit};
use flashwise_profile::DeviceProfile;
use flashwise_sqlite::{Backend, Vfs, VfsOptions};
use flashwise_trace::{FileRole, IoTrace};
use rusqlite::{Connection, OpenFlags};

/// Header of a write-ahead log, and of each of its frames (SQLite file format, section 4.1).
const LOG_HEADER: u64 = 32;
const FRAME_HEADER: u64 = 24;
const PAGE: u64 = 4096;

fn toshiba() -> DeviceProfile {
    DeviceProfile::from_toml(include_str!("../../../audit/tests/toshiba.toml"), "toshiba.toml").unwrap()
}

/// 300 small transactions in a journal mode, as SQLite asks a file system for them.
fn traced(journal_mode: &str) -> IoTrace {
    let directory = tempfile::tempdir().unwrap();
    let options = VfsOptions { record: true, ..VfsOptions::PLAIN };
    let vfs =
        Vfs::register(&format!("audit-{journal_mode}-{:?}", std::thread::current().id()), Backend::Directory, options)
            .unwrap();
    let path = directory.path().join("a.db");
    let db = Connection::open_with_flags_and_vfs(&path, OpenFlags::default(), vfs.name()).unwrap();
    let mode: String = db.query_row(&format!("PRAGMA journal_mode = {journal_mode}"), [], |row| row.get(0)).unwrap();
    assert_eq!(mode, journal_mode);
    db.execute_batch("PRAGMA synchronous = FULL; CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT)").unwrap();
    for k in 0..300 {
        db.execute("INSERT INTO t VALUES (?1, hex(randomblob(400)))", [k * 7919 % 1009]).unwrap();
    }
    vfs.take_trace()
}

fn found(audit: &Audit, rule: Rule) -> &Finding {
    audit.findings.iter().find(|finding| finding.rule == rule).unwrap()
}

/// Violations of a rule in a file of some role.
fn of(finding: &Finding, role: FileRole) -> u64 {
    let is_meant = |place: &Place| *place == Place::Role(role);
    finding.places.iter().filter(|share| is_meant(&share.place)).map(|share| share.violations).sum()
}

#[test]
fn the_frames_of_stock_sqlites_log_start_off_every_stripe_because_of_their_headers() {
    let trace = traced("wal");
    let frames: Vec<_> = trace
        .records
        .iter()
        .filter(|r| r.role == FileRole::WriteAheadLog && r.operation == flashwise_block::Operation::Write)
        .filter(|r| r.offset.0 >= LOG_HEADER)
        .collect();
    assert!(frames.len() >= 300);
    // SQLite writes the header of a frame and its page one after the other.
    let part = |offset: u64| (offset - LOG_HEADER) % (PAGE + FRAME_HEADER);
    let of_frames = frames.iter().filter(|r| [0, FRAME_HEADER].contains(&part(r.offset.0))).count();
    assert!(of_frames * 10 >= frames.len() * 9, "{of_frames} of {} writes are of frames", frames.len());

    let audit = audit(&trace, &toshiba(), &AuditOptions::default());
    let stripes = found(&audit, Rule::StartWritesOnStripes);
    let off = of(stripes, FileRole::WriteAheadLog);
    assert!(off * 100 >= frames.len() as u64 * 99, "hardly a frame starts on a stripe: {off} of {}", frames.len());
    assert!(stripes.remedy.contains("write-aligned-stripes"), "{}", stripes.remedy);
    assert!(stripes.cost.time_ns.is_some(), "{:?}", audit.not_simulated);
}

#[test]
fn a_rollback_journal_is_found_to_write_twice_and_to_flush_too_often() {
    let audit = audit(&traced("delete"), &toshiba(), &AuditOptions::default());
    let twice = found(&audit, Rule::WriteOnce);
    assert!(of(twice, FileRole::Journal) > 200, "{twice:?}");
    let storms = found(&audit, Rule::SyncLessOften);
    assert!(storms.violations > 600, "a transaction flushes the journal and the database: {storms:?}");
    assert!(storms.cost.time_ns.unwrap() > 0);
    // As long as every flush pads a unit, the images' own bytes are hidden in the padding.
    assert!(storms.cost.flash_bytes.unwrap() > twice.cost.flash_bytes.unwrap());
    assert_eq!(audit.findings[0].rule, audit.findings.iter().max_by_key(|f| f.cost.time_ns).unwrap().rule);
}

#[test]
fn a_log_flushes_less_and_writes_less_twice_than_a_rollback_journal() {
    let [log, journal] = ["wal", "delete"].map(|mode| audit(&traced(mode), &toshiba(), &AuditOptions::default()));
    for rule in [Rule::WriteOnce, Rule::SyncLessOften] {
        let [log, journal] = [&log, &journal].map(|audit| found(audit, rule).violations);
        assert!(log < journal, "{rule:?}: {log} and {journal}");
    }
    let [log, journal] = [log, journal].map(|audit| audit.simulated.unwrap().time_ns);
    assert!(log < journal);
}
