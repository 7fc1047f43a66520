//! Recorded system calls of SQLite 3.40, made again.
//!
//! `calls/sqlite_*.calls.zst` has one call a line: a letter for the call (o open, r pread, p pwrite, y fdatasync, t
//! ftruncate, c close, u unlink), one for the file (b database, j journal, w WAL, s WAL index, d directory), length and
//! offset. Where a recording has a line with m, that is where its preparation ends.

use std::collections::BTreeMap;

use flashwise_block::{BlockDevice, ByteSize};
use flashwise_kernel::{Kernel, OpenOptions};

/// 300 commits each.
pub const DELETE: &[u8] = include_bytes!("calls/sqlite_delete_full.calls.zst");
pub const TRUNCATE: &[u8] = include_bytes!("calls/sqlite_truncate_full.calls.zst");
/// 2,500 commits each.
pub const LOG: &[u8] = include_bytes!("calls/sqlite_wal_full.calls.zst");
pub const LOG_NORMAL: &[u8] = include_bytes!("calls/sqlite_wal_normal.calls.zst");

/// Updates of random rows of a table of 2,000 rows of 100 bytes with an index on them, a transaction each: 300 with a
/// rollback journal, 1,500 with a log of 100 and of 1,000 pages. Prepared by 150 updates without syncs.
pub const INDEXED_DELETE: &[u8] = include_bytes!("calls/sqlite_indexed_delete.calls.zst");
pub const INDEXED_PERSIST: &[u8] = include_bytes!("calls/sqlite_indexed_persist.calls.zst");
pub const INDEXED_LOG_100: &[u8] = include_bytes!("calls/sqlite_indexed_wal_100.calls.zst");
pub const INDEXED_LOG_1000: &[u8] = include_bytes!("calls/sqlite_indexed_wal_1000.calls.zst");

/// Makes the calls on files whose names start so; a sync is an `fdatasync`, or an `fsync` as of a SQLite that was
/// compiled without.
pub fn make<D: BlockDevice>(kernel: &mut Kernel<D>, packed: &[u8], names: &str, uses_fdatasync: bool) {
    make_prepared(kernel, packed, names, uses_fdatasync, |_| {});
}

/// The same; calls `prepared` where the preparation ends.
pub fn make_prepared<D: BlockDevice>(
    kernel: &mut Kernel<D>,
    packed: &[u8],
    names: &str,
    uses_fdatasync: bool,
    mut prepared: impl FnMut(&mut Kernel<D>),
) {
    let calls = String::from_utf8(zstd::decode_all(packed).unwrap()).unwrap();
    let mut open_files = BTreeMap::new();
    for call in calls.lines() {
        let mut words = call.split(' ');
        let (what, of) = words.next().unwrap().split_at(1);
        if what == "m" {
            prepared(kernel);
            continue;
        }
        let mut numbers = words.map(|word| ByteSize(word.parse().unwrap()));
        let path = format!("{names}{of}");
        match (what, open_files.get(of).copied()) {
            ("o", _) => {
                let file = kernel.open(&path, OpenOptions::read_write().create(true)).unwrap();
                open_files.insert(of, file);
            }
            // A directory's sync commits what is running.
            ("y", None) => kernel.sync_directory().unwrap(),
            ("r", Some(file)) => {
                let (length, offset) = (numbers.next().unwrap(), numbers.next().unwrap());
                kernel.pread(file, offset, length).unwrap();
            }
            ("p", Some(file)) => {
                let (length, offset) = (numbers.next().unwrap(), numbers.next().unwrap());
                kernel.pwrite(file, offset, length).unwrap();
            }
            ("y", Some(file)) if uses_fdatasync => kernel.fdatasync(file).unwrap(),
            ("y", Some(file)) => kernel.fsync(file).unwrap(),
            ("t", Some(file)) => kernel.ftruncate(file, numbers.next().unwrap()).unwrap(),
            ("c", Some(file)) => {
                kernel.close(file).unwrap();
                open_files.remove(of);
            }
            ("u", _) => kernel.unlink(&path).unwrap(),
            _ => panic!("{call}"),
        }
    }
}
