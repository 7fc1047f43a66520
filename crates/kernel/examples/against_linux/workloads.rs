//! Workloads that run on Linux and on the model: the same calls in the same order with the same random numbers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a page.
const PAGE: u64 = 4096;
/// Bytes of the file `a` that most workloads use.
const FILE: u64 = 256 << 20;

/// How a file is opened; always for reading and writing, and made where it is missing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct How {
    pub(crate) truncate: bool,
    pub(crate) direct: bool,
    pub(crate) dsync: bool,
    pub(crate) sync: bool,
}

/// `posix_fadvise`
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hint {
    Random,
    WillNeed,
    DontNeed,
}

/// The calls of a program. Files and maps have the numbers that `open` and `map` gave. A call that fails panics.
pub(crate) trait Calls {
    fn open(&mut self, name: &str, how: How) -> usize;
    fn close(&mut self, file: usize);
    fn read(&mut self, file: usize, offset: u64, bytes: u64);
    fn write(&mut self, file: usize, offset: u64, bytes: u64);
    fn fsync(&mut self, file: usize);
    fn fdatasync(&mut self, file: usize);
    /// `SYNC_FILE_RANGE_WRITE`, and with `wait` all three flags.
    fn sync_range(&mut self, file: usize, offset: u64, bytes: u64, wait: bool);
    fn allocate(&mut self, file: usize, offset: u64, bytes: u64);
    fn truncate(&mut self, file: usize, bytes: u64);
    fn unlink(&mut self, name: &str);
    fn rename(&mut self, from: &str, to: &str);
    fn sync_directory(&mut self);
    fn advise(&mut self, file: usize, offset: u64, bytes: u64, hint: Hint);
    fn map(&mut self, file: usize, bytes: u64) -> usize;
    fn unmap(&mut self, map: usize);
    fn load(&mut self, map: usize, offset: u64);
    fn store(&mut self, map: usize, offset: u64);
    /// `msync(MS_SYNC)`
    fn msync(&mut self, map: usize, offset: u64, bytes: u64);
    fn sync(&mut self);
    /// `sync`, `echo 3 > drop_caches`, and 300 ms.
    fn quiet(&mut self);
}

/// Workloads are cut to one part in so many, for drives that are slowed down.
static SHARE: AtomicU64 = AtomicU64::new(1);

/// Cuts all workloads that use the drive to one part in `share`.
pub(crate) fn cut_to(share: u64) {
    SHARE.store(share, Ordering::Relaxed);
}

/// So many of `count` operations.
fn part(count: u64) -> u64 {
    count.div_ceil(SHARE.load(Ordering::Relaxed))
}

/// Numbers that are the same on both sides (xorshift64*).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) * limit) >> 32
    }
}

/// A workload: what is done before the clock and the counters start, and what is measured.
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    operations: u64,
    prepare: fn(&mut dyn Calls),
    run: fn(&mut dyn Calls),
}

impl Workload {
    /// How many operations it is.
    pub(crate) fn operations(&self) -> u64 {
        if self.name.starts_with("warm") { self.operations } else { part(self.operations) }
    }

    pub(crate) fn prepare(&self, calls: &mut dyn Calls) {
        (self.prepare)(calls);
    }

    pub(crate) fn run(&self, calls: &mut dyn Calls) {
        (self.run)(calls);
    }
}

/// Makes the file `a` of 256 MiB.
pub(crate) fn make_file(calls: &mut dyn Calls) {
    let file = calls.open("a", How::default());
    (0..FILE >> 20).for_each(|number| calls.write(file, number << 20, 1 << 20));
    calls.fsync(file);
    calls.close(file);
}

fn cold(calls: &mut dyn Calls) {
    calls.quiet();
}

/// The file `a` is in the page cache.
fn warm(calls: &mut dyn Calls) {
    calls.quiet();
    let file = calls.open("a", How::default());
    (0..FILE >> 20).for_each(|number| calls.read(file, number << 20, 1 << 20));
    calls.close(file);
}

fn with(calls: &mut dyn Calls, name: &str, how: How, run: impl FnOnce(&mut dyn Calls, usize)) {
    let file = calls.open(name, how);
    run(calls, file);
    calls.close(file);
}

const PLAIN: How = How { truncate: false, direct: false, dsync: false, sync: false };
const DIRECT: How = How { direct: true, ..PLAIN };
const DSYNC: How = How { dsync: true, ..PLAIN };
const SYNC: How = How { sync: true, ..PLAIN };
const TRUNCATE: How = How { truncate: true, ..PLAIN };

fn read_sequential(calls: &mut dyn Calls, how: How, bytes: u64, count: u64) {
    with(calls, "a", how, |calls, file| (0..count).for_each(|number| calls.read(file, number * bytes, bytes)));
}

fn read_random(calls: &mut dyn Calls, how: How, bytes: u64, count: u64, hint: Option<Hint>) {
    with(calls, "a", how, |calls, file| {
        if let Some(hint) = hint {
            calls.advise(file, 0, 0, hint);
        }
        let mut random = Random::new(5);
        (0..count).for_each(|_| calls.read(file, random.below(FILE / bytes) * bytes, bytes));
    });
}

fn map_random(calls: &mut dyn Calls, count: u64) {
    with(calls, "a", PLAIN, |calls, file| {
        let map = calls.map(file, FILE);
        let mut random = Random::new(11);
        (0..count).for_each(|_| calls.load(map, random.below(FILE / PAGE) * PAGE));
        calls.unmap(map);
    });
}

#[derive(Clone, Copy, PartialEq)]
enum Sync {
    None,
    All,
    Data,
}

fn sync(calls: &mut dyn Calls, file: usize, how: Sync) {
    match how {
        Sync::None => {}
        Sync::All => calls.fsync(file),
        Sync::Data => calls.fdatasync(file),
    }
}

fn append(calls: &mut dyn Calls, name: &str, how: How, bytes: u64, count: u64, each: Sync) {
    with(calls, name, how, |calls, file| {
        for number in 0..part(count) {
            calls.write(file, number * bytes, bytes);
            sync(calls, file, each);
        }
    });
}

fn overwrite(calls: &mut dyn Calls, how: How, bytes: u64, count: u64, each: Sync) {
    with(calls, "a", how, |calls, file| {
        let mut random = Random::new(7);
        for _ in 0..part(count) {
            calls.write(file, random.below(FILE / bytes) * bytes, bytes);
            sync(calls, file, each);
        }
    });
}

fn small_files(calls: &mut dyn Calls, count: u64, bytes: u64, each: Sync) {
    let count = part(count);
    for number in 0..count {
        let file = calls.open(&format!("n{number}"), PLAIN);
        calls.write(file, 0, bytes);
        sync(calls, file, each);
        calls.close(file);
    }
    if each == Sync::None {
        calls.sync();
    }
    (0..count).for_each(|number| calls.unlink(&format!("n{number}")));
}

/// Makes the calls that were recorded of a program, one a line: a letter for the call with the file's name behind it,
/// length and offset. o is open, O open with `O_DIRECT`, r pread, p pwrite, y fdatasync, f fsync, g sync_file_range, t
/// ftruncate, a fallocate, c close, u unlink. Those in front of a line "-" only make what was there before.
fn replay(calls: &mut dyn Calls, name: &str, packed: &[u8], is_before: bool) {
    let text = String::from_utf8(zstd::decode_all(packed).expect("zstd")).expect("text");
    let (before, during) = text.split_once("-\n").unwrap_or(("", &text));
    let mut open_files = BTreeMap::new();
    if is_before {
        before.lines().for_each(|call| replay_call(calls, name, call, &mut open_files));
    } else {
        let opened = before.lines().filter(|call| call.starts_with(['o', 'O']));
        let most = part(during.lines().count() as u64) as usize;
        opened.chain(during.lines().take(most)).for_each(|call| replay_call(calls, name, call, &mut open_files));
    }
    open_files.into_values().for_each(|file| calls.close(file));
}

fn replay_call<'a>(calls: &mut dyn Calls, name: &str, call: &'a str, open_files: &mut BTreeMap<&'a str, usize>) {
    let mut words = call.split(' ');
    let (what, of) = words.next().expect("a call").split_at(1);
    let mut next = || words.next().and_then(|word| word.parse().ok()).expect("a number");
    let path = format!("{name}-{of}");
    let file: Option<usize> = open_files.get(of).copied();
    match (what, file) {
        ("o" | "O", _) => {
            open_files.insert(of, calls.open(&path, if what == "O" { DIRECT } else { PLAIN }));
        }
        ("y" | "f", None) => calls.sync_directory(),
        ("r", Some(file)) => {
            let (length, offset) = (next(), next());
            calls.read(file, offset, length);
        }
        ("p", Some(file)) => {
            let (length, offset) = (next(), next());
            calls.write(file, offset, length);
        }
        ("y", Some(file)) => calls.fdatasync(file),
        ("f", Some(file)) => calls.fsync(file),
        ("g", Some(file)) => {
            let (length, offset) = (next(), next());
            calls.sync_range(file, offset, length, false);
        }
        ("t", Some(file)) => calls.truncate(file, next()),
        ("a", Some(file)) => {
            let (length, offset) = (next(), next());
            calls.allocate(file, offset, length);
        }
        ("c", Some(file)) => {
            calls.close(file);
            open_files.remove(of);
        }
        ("u", _) => calls.unlink(&path),
        _ => panic!("call {call:?} of {name}"),
    }
}

macro_rules! recorded {
    ($calls:expr, $name:literal) => {
        recorded!($calls, $name, false)
    };
    ($calls:expr, $name:literal, $is_before:literal) => {
        replay($calls, $name, include_bytes!(concat!("../../tests/it/calls/", $name, ".calls.zst")), $is_before)
    };
}

/// InnoDB of MariaDB 10.11 under transactions like sysbench's `oltp_read_write`, with a buffer pool of 8 MiB.
fn oltp_files(calls: &mut dyn Calls) {
    recorded!(calls, "mariadb_oltp", true);
    calls.quiet();
}

/// `pgbench` of PostgreSQL 15, one client, with a checkpoint: the files of the database are there and cold.
fn pgbench_files(calls: &mut dyn Calls) {
    recorded!(calls, "postgres_pgbench", true);
    calls.quiet();
}

/// A segment of PostgreSQL's WAL: 16 MiB of zeros, renamed, then written in pages of 8 KiB.
fn wal_segment(calls: &mut dyn Calls, how: How, each: Sync) {
    with(calls, "wal.tmp", PLAIN, |calls, file| {
        (0..64).for_each(|number| calls.write(file, number << 18, 1 << 18));
        calls.fsync(file);
    });
    calls.rename("wal.tmp", "wal");
    calls.sync_directory();
    with(calls, "wal", how, |calls, file| {
        for number in 0..part(500) {
            calls.write(file, number * 8192, 8192);
            sync(calls, file, each);
        }
    });
    calls.unlink("wal");
}

/// InnoDB: 64 pages of 16 KiB go to the doublewrite area, then to their places.
fn doublewrite(calls: &mut dyn Calls) {
    with(calls, "dblwr", DIRECT, |calls, area| {
        calls.write(area, 0, 1 << 20);
        calls.fsync(area);
        with(calls, "a", DIRECT, |calls, data| {
            let mut random = Random::new(17);
            for _ in 0..part(20) {
                calls.write(area, 0, 1 << 20);
                calls.fdatasync(area);
                (0..64).for_each(|_| calls.write(data, random.below(FILE >> 14) << 14, 1 << 14));
                calls.fdatasync(data);
            }
        });
    });
}

fn mixed(calls: &mut dyn Calls, how: How) {
    with(calls, "a", how, |calls, file| {
        let mut random = Random::new(19);
        for number in 0..part(2000) {
            let at = random.below(FILE / PAGE) * PAGE;
            if random.below(10) < 7 {
                calls.read(file, at, PAGE);
            } else {
                calls.write(file, at, PAGE);
            }
            if number % 50 == 49 {
                calls.fdatasync(file);
            }
        }
    });
}

fn rewrite(calls: &mut dyn Calls) {
    for _ in 0..part(100) {
        with(calls, "cut", TRUNCATE, |calls, file| {
            calls.write(file, 0, 65536);
            calls.fsync(file);
        });
    }
    calls.unlink("cut");
}

fn replace(calls: &mut dyn Calls) {
    for _ in 0..part(100) {
        with(calls, "new", PLAIN, |calls, file| {
            calls.write(file, 0, 16384);
            calls.fsync(file);
        });
        calls.rename("new", "old");
        calls.sync_directory();
    }
    calls.unlink("old");
}

fn store_random(calls: &mut dyn Calls, each: bool) {
    with(calls, "a", PLAIN, |calls, file| {
        let map = calls.map(file, FILE);
        let mut random = Random::new(23);
        for _ in 0..part(300) {
            let at = random.below(FILE / PAGE) * PAGE;
            calls.store(map, at);
            if each {
                calls.msync(map, at, PAGE);
            }
        }
        calls.msync(map, 0, FILE);
        calls.unmap(map);
    });
}

fn stream(calls: &mut dyn Calls, name: &str, bytes: u64, count: u64, ranges: bool) {
    with(calls, name, PLAIN, |calls, file| {
        for number in 0..part(count) {
            calls.write(file, number * bytes, bytes);
            if ranges {
                calls.sync_range(file, number * bytes, bytes, false);
                if number >= 8 {
                    calls.sync_range(file, (number - 8) * bytes, bytes, true);
                }
            }
        }
        calls.fdatasync(file);
    });
    calls.unlink(name);
}

fn two_streams(calls: &mut dyn Calls) {
    with(calls, "a", PLAIN, |calls, file| {
        for number in 0..part(2048) {
            calls.read(file, number * 8192, 8192);
            calls.read(file, FILE / 2 + number * 8192, 8192);
        }
    });
}

fn backwards(calls: &mut dyn Calls) {
    with(calls, "a", PLAIN, |calls, file| {
        (4096 - part(4096)..4096).rev().for_each(|number| calls.read(file, number * 4096, 4096));
    });
}

fn fill(calls: &mut dyn Calls) {
    with(calls, "filled", PLAIN, |calls, file| {
        calls.allocate(file, 0, 8 << 20);
        calls.fsync(file);
        for number in 0..part(500) {
            calls.write(file, number * 8192, 8192);
            calls.fdatasync(file);
        }
    });
    calls.unlink("filled");
}

fn lines(calls: &mut dyn Calls) {
    with(calls, "lines", PLAIN, |calls, file| {
        for number in 0..part(500) {
            calls.write(file, number * 100, 100);
            calls.fdatasync(file);
        }
    });
    calls.unlink("lines");
}

fn large_file_goes(calls: &mut dyn Calls) {
    with(calls, "large", PLAIN, |calls, file| {
        (0..part(128)).for_each(|number| calls.write(file, number << 20, 1 << 20));
        calls.fsync(file);
    });
    calls.unlink("large");
    calls.sync();
}

fn prefetch(calls: &mut dyn Calls) {
    with(calls, "a", PLAIN, |calls, file| {
        let mut random = Random::new(29);
        for _ in 0..part(500) {
            let at = random.below(FILE >> 16) << 16;
            calls.advise(file, at, 65536, Hint::WillNeed);
            (0..4).for_each(|number| calls.read(file, at + number * 16384, 16384));
            calls.advise(file, at, 65536, Hint::DontNeed);
        }
    });
}

/// All workloads: those of the recording first.
pub(crate) fn all() -> Vec<Workload> {
    let mut all = Vec::new();
    let mut add = |name, operations, prepare, run| all.push(Workload { name, operations, prepare, run });
    add("read_sequential_4k", 16384, cold, |c| read_sequential(c, PLAIN, 4096, part(16384)));
    add("read_sequential_64k", 1024, cold, |c| read_sequential(c, PLAIN, 65536, part(1024)));
    add("read_random_4k", 4000, cold, |c| read_random(c, PLAIN, 4096, part(4000), None));
    add("read_strided_16k_every_64k", 4000, cold, |c| {
        with(c, "a", PLAIN, |c, file| (0..part(4000)).for_each(|number| c.read(file, number << 16, 16384)));
    });
    add("read_random_4k_fadvise_random", 4000, cold, |c| read_random(c, PLAIN, 4096, part(4000), Some(Hint::Random)));
    add("mmap_random_4k", 3000, cold, |c| map_random(c, part(3000)));
    add("append_4k_fsync", 500, cold, |c| append(c, "ap", PLAIN, 4096, 500, Sync::All));
    add("append_4k_fdatasync", 500, cold, |c| append(c, "ap2", PLAIN, 4096, 500, Sync::Data));
    add("overwrite_4k_fsync", 500, cold, |c| overwrite(c, PLAIN, 4096, 500, Sync::All));
    add("overwrite_4k_fdatasync", 500, cold, |c| overwrite(c, PLAIN, 4096, 500, Sync::Data));
    add("overwrite_16k_odsync", 500, cold, |c| overwrite(c, DSYNC, 16384, 500, Sync::None));
    add("create_fsync_delete_200_files", 200, cold, |c| small_files(c, 200, 8192, Sync::All));
    add("sqlite_delete_300_commits", 300, cold, |c| recorded!(c, "sqlite_delete_full"));
    add("sqlite_truncate_300_commits", 300, cold, |c| recorded!(c, "sqlite_truncate_full"));
    add("sqlite_wal_full_2500_commits", 2500, cold, |c| recorded!(c, "sqlite_wal_full"));
    add("sqlite_wal_normal_2500_commits", 2500, cold, |c| recorded!(c, "sqlite_wal_normal"));

    add("warm_read_sequential_4k", 65536, warm, |c| read_sequential(c, PLAIN, 4096, 65536));
    add("warm_read_sequential_64k", 4096, warm, |c| read_sequential(c, PLAIN, 65536, 4096));
    add("warm_read_random_4k", 65536, warm, |c| read_random(c, PLAIN, 4096, 65536, None));
    add("warm_mmap_random_4k", 3000, warm, |c| map_random(c, 3000));
    add("read_sequential_1m", 256, cold, |c| read_sequential(c, PLAIN, 1 << 20, part(256)));
    add("read_random_16k", 3000, cold, |c| read_random(c, PLAIN, 16384, part(3000), None));
    add("read_random_64k", 2000, cold, |c| read_random(c, PLAIN, 65536, part(2000), None));
    add("read_two_streams_8k", 4096, cold, two_streams);
    add("read_backwards_4k", 4096, cold, backwards);
    add("prefetch_64k", 500, cold, prefetch);
    add("direct_read_random_4k", 2000, cold, |c| read_random(c, DIRECT, 4096, part(2000), None));
    add("direct_read_sequential_128k", 1024, cold, |c| read_sequential(c, DIRECT, 131_072, part(1024)));
    add("direct_write_random_4k", 2000, cold, |c| overwrite(c, DIRECT, 4096, 2000, Sync::None));
    add("direct_write_random_16k_fdatasync", 300, cold, |c| overwrite(c, DIRECT, 16384, 300, Sync::Data));
    add("direct_append_64k", 500, cold, |c| {
        append(c, "dap", DIRECT, 65536, 500, Sync::None);
        c.unlink("dap");
    });
    add("direct_odsync_4k", 500, cold, |c| {
        overwrite(c, How { dsync: true, ..DIRECT }, 4096, 500, Sync::None);
    });
    add("append_4k_osync", 500, cold, |c| append(c, "ap3", SYNC, 4096, 500, Sync::None));
    add("append_100_bytes_fdatasync", 500, cold, lines);
    add("overwrite_4k_batches_of_100_fdatasync", 4000, cold, |c| {
        with(c, "a", PLAIN, |c, file| {
            let mut random = Random::new(31);
            for number in 0..part(4000) {
                c.write(file, random.below(FILE / PAGE) * PAGE, PAGE);
                if number % 100 == 99 {
                    c.fdatasync(file);
                }
            }
        });
    });
    add("overwrite_1k_fdatasync", 500, cold, |c| overwrite(c, PLAIN, 1024, 500, Sync::Data));
    add("mixed_4k_70_30", 2000, cold, |c| mixed(c, PLAIN));
    add("mixed_direct_4k_70_30", 2000, cold, |c| mixed(c, DIRECT));
    add("fallocate_fill_8k_fdatasync", 500, cold, fill);
    add("truncate_rewrite_64k_fsync", 100, cold, rewrite);
    add("rename_replace_16k_fsync", 100, cold, replace);
    add("create_1000_files_sync", 1000, cold, |c| small_files(c, 1000, 16384, Sync::None));
    add("mmap_store_msync_each", 300, cold, |c| store_random(c, true));
    add("mmap_store_msync_once", 300, cold, |c| store_random(c, false));
    add("sync_file_range_stream_1m", 128, cold, |c| stream(c, "s1", 1 << 20, 128, true));
    add("write_stream_64k_fdatasync", 4096, cold, |c| stream(c, "s2", 65536, 4096, false));
    add("write_stream_4k_fdatasync", 16384, cold, |c| stream(c, "s3", 4096, 16384, false));
    add("unlink_128m", 128, cold, large_file_goes);
    add("wal_segment_8k_fdatasync", 500, cold, |c| wal_segment(c, PLAIN, Sync::Data));
    add("wal_segment_8k_odsync", 500, cold, |c| wal_segment(c, DSYNC, Sync::None));
    add("doublewrite_16k", 1280, cold, doublewrite);
    add("sqlite_persist_full_4096_150_commits", 150, cold, |c| recorded!(c, "sqlite_persist_full_4096"));
    add("sqlite_memory_full_4096_150_commits", 150, cold, |c| recorded!(c, "sqlite_memory_full_4096"));
    add("sqlite_off_off_4096_150_commits", 150, cold, |c| recorded!(c, "sqlite_off_off_4096"));
    add("sqlite_delete_full_1024_150_commits", 150, cold, |c| recorded!(c, "sqlite_delete_full_1024"));
    add("sqlite_delete_full_16384_150_commits", 150, cold, |c| recorded!(c, "sqlite_delete_full_16384"));
    add("sqlite_wal_full_1024_150_commits", 150, cold, |c| recorded!(c, "sqlite_wal_full_1024"));
    add("sqlite_wal_full_65536_150_commits", 150, cold, |c| recorded!(c, "sqlite_wal_full_65536"));
    add("sqlite_truncate_full_65536_150_commits", 150, cold, |c| recorded!(c, "sqlite_truncate_full_65536"));
    add("sqlite_delete_extra_4096_150_commits", 150, cold, |c| recorded!(c, "sqlite_delete_extra_4096"));
    add("postgres_pgbench_600_transactions", 600, pgbench_files, |c| recorded!(c, "postgres_pgbench"));
    add("mariadb_oltp_400_transactions", 400, oltp_files, |c| recorded!(c, "mariadb_oltp"));
    all
}
