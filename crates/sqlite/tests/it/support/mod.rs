//! A drive in memory for tests: dead simple, in virtual time, with faults on demand.
#![allow(dead_code, reason = "each test file uses its share")]

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use flashwise_block::{
    BlockDevice, BlockError, ByteSize, Clock, Completion, DeviceCounters, DeviceInfo, Nanos, Operation, Request,
};
use rusqlite::{Connection, OpenFlags};

/// One request as the drive saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub operation: Operation,
    pub offset: u64,
    pub length: u64,
    /// Requests in flight when it came.
    pub in_flight: usize,
}

/// What a test can look at and change while the VFS owns the drive.
#[derive(Default)]
pub struct Control {
    pub log: Vec<Seen>,
    /// Number of the request (1 is the next) that fails; 0 for none.
    pub fail_at: u64,
    /// Whether every request after that one fails too.
    pub fail_forever: bool,
    failing: bool,
    /// Number of the write (1 is the next) from which on the drive has no space; 0 for never.
    pub full_at: u64,
    full: bool,
    /// A flush since the last of which everything is volatile.
    pending: Vec<(u64, Vec<u8>)>,
    durable: Bytes,
    current: Bytes,
}

/// The bytes of a drive, of which most were never written.
#[derive(Clone, Default)]
struct Bytes {
    blocks: BTreeMap<usize, Box<[u8; 4096]>>,
}

impl Bytes {
    /// Pieces of a span that lie in one block: its number, the first byte in it, and the first byte of the span.
    fn pieces(at: usize, length: usize) -> impl Iterator<Item = (usize, usize, std::ops::Range<usize>)> {
        let mut done = 0;
        std::iter::from_fn(move || {
            let (block, within) = ((at + done) / 4096, (at + done) % 4096);
            let range = done..length.min(done + 4096 - within);
            done = range.end;
            (!range.is_empty()).then_some((block, within, range))
        })
    }

    fn read(&self, at: usize, into: &mut [u8]) {
        for (block, within, range) in Self::pieces(at, into.len()) {
            let piece = &mut into[range];
            match self.blocks.get(&block) {
                Some(bytes) => piece.copy_from_slice(&bytes[within..within + piece.len()]),
                None => piece.fill(0),
            }
        }
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        for (block, within, range) in Self::pieces(at, bytes.len()) {
            let all = self.blocks.entry(block).or_insert_with(|| Box::new([0; 4096]));
            all[within..within + range.len()].copy_from_slice(&bytes[range]);
        }
    }

    fn clear(&mut self, at: usize, length: usize) {
        for (block, within, range) in Self::pieces(at, length) {
            match self.blocks.get_mut(&block) {
                Some(_) if range.len() == 4096 => _ = self.blocks.remove(&block),
                Some(all) => all[within..within + range.len()].fill(0),
                None => {}
            }
        }
    }
}

impl Control {
    /// Power fails and comes back: of what was written since the last flush, arbitrary parts are there, torn at any
    /// sector in one cut and at blocks of 4 KiB in the next.
    pub fn power_cut(&mut self, seed: u64) {
        self.fail_at = 0;
        self.failing = false;
        let mut random = Random(seed);
        let unit = if seed.is_multiple_of(2) { 512 } else { 4096 };
        for (offset, bytes) in std::mem::take(&mut self.pending) {
            for (n, block) in bytes.chunks(unit).enumerate() {
                let at = offset as usize + n * unit;
                if random.next().is_multiple_of(2) {
                    self.durable.write(at, block);
                }
            }
        }
        self.current.clone_from(&self.durable);
    }

    /// A trim is durable at once: a file system shows no file what another one left in its extents, not even after a
    /// power cut, and SQLite relies on that.
    fn trim(&mut self, range: std::ops::Range<usize>) {
        self.current.clear(range.start, range.len());
        self.durable.clear(range.start, range.len());
        for (offset, bytes) in &mut self.pending {
            let at = *offset as usize;
            let (start, end) = (range.start.max(at), range.end.min(at + bytes.len()));
            if start < end {
                bytes[start - at..end - at].fill(0);
            }
        }
    }

    pub fn heal(&mut self) {
        self.fail_at = 0;
        self.failing = false;
        self.full_at = 0;
        self.full = false;
    }

    fn is_full_for(&mut self, operation: Operation) -> bool {
        if !matches!(operation, Operation::Write | Operation::WriteZeroes) {
            return false;
        }
        self.full |= self.full_at == 1;
        self.full_at = self.full_at.saturating_sub(1);
        self.full
    }

    fn fails(&mut self) -> bool {
        if self.failing {
            return true;
        }
        if self.fail_at > 0 {
            self.fail_at -= 1;
            let now = self.fail_at == 0;
            self.failing = now && self.fail_forever;
            return now;
        }
        false
    }
}

/// A linear congruential generator: what tests need of chance.
pub struct Random(pub u64);

impl Random {
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

pub struct TestDrive {
    info: DeviceInfo,
    now: Nanos,
    queue: VecDeque<Completion>,
    counters: DeviceCounters,
    control: Arc<Mutex<Control>>,
}

pub type SharedControl = Arc<Mutex<Control>>;

impl TestDrive {
    pub fn new(capacity_mib: u64, logical_block: u64) -> (Box<Self>, SharedControl) {
        let control = Arc::new(Mutex::new(Control::default()));
        let info = DeviceInfo {
            name: "test drive".into(),
            capacity: ByteSize::mib(capacity_mib),
            logical_block: ByteSize(logical_block),
            max_transfer: ByteSize::kib(256),
            queue_depth: 32,
            clock: Clock::Virtual,
            atomic_write: None,
        };
        let (queue, counters) = (VecDeque::new(), DeviceCounters::default());
        (Box::new(Self { info, now: Nanos(0), queue, counters, control: Arc::clone(&control) }), control)
    }
}

impl BlockDevice for TestDrive {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn submit(&mut self, mut request: Request) -> Result<(), BlockError> {
        self.info.check(&request)?;
        let control = &mut *self.control.lock().unwrap();
        let Request { operation, offset, length, tag, .. } = request;
        control.log.push(Seen { operation, offset: offset.0, length: length.0, in_flight: self.queue.len() });
        let failure =
            |message: &str, errno| Err(BlockError::Os { context: "test drive".into(), message: message.into(), errno });
        let result = match () {
            () if control.fails() => failure("injected fault", 5),
            () if control.is_full_for(operation) => failure("told to be full", 28),
            () => Ok(()),
        };
        if result.is_ok() {
            let range = offset.0 as usize..(offset.0 + length.0) as usize;
            match (operation, request.buffer.as_mut()) {
                (Operation::Read, Some(buffer)) => {
                    control.current.read(range.start, buffer);
                    self.counters.host_reads += 1;
                    self.counters.host_bytes_read += length;
                }
                (Operation::Write, Some(buffer)) => {
                    control.current.write(range.start, buffer);
                    control.pending.push((offset.0, buffer.to_vec()));
                    self.counters.host_writes += 1;
                    self.counters.host_bytes_written += length;
                }
                (Operation::Trim, _) => {
                    control.trim(range);
                    self.counters.trims += 1;
                }
                (Operation::WriteZeroes, _) => {
                    control.current.clear(range.start, range.len());
                    control.pending.push((offset.0, vec![0; length.0 as usize]));
                    self.counters.zero_writes += 1;
                    self.counters.bytes_zeroed += length;
                }
                (Operation::Flush, _) => {
                    for (at, bytes) in std::mem::take(&mut control.pending) {
                        control.durable.write(at as usize, &bytes);
                    }
                    self.counters.flushes += 1;
                }
                (_, None) => panic!("a request without data"),
            }
        }
        let completed_at = Nanos(self.now.0 + 10_000 + length.0);
        let buffer = request.buffer;
        self.queue.push_back(Completion {
            tag,
            operation,
            submitted_at: self.now,
            started_at: self.now,
            completed_at,
            result,
            buffer,
        });
        Ok(())
    }

    fn wait(&mut self) -> Result<Option<Completion>, BlockError> {
        let done = self.queue.pop_back();
        if let Some(done) = &done {
            self.now = self.now.max(done.completed_at);
        }
        Ok(done)
    }

    fn poll(&mut self) -> Result<Option<Completion>, BlockError> {
        let at = self.queue.iter().rposition(|done| done.completed_at <= self.now);
        Ok(at.and_then(|at| self.queue.remove(at)))
    }

    fn outstanding(&self) -> usize {
        self.queue.len()
    }

    fn pause(&mut self, duration: Nanos) -> Result<(), BlockError> {
        self.now += duration;
        Ok(())
    }

    fn counters(&self) -> DeviceCounters {
        self.counters
    }
}

/// A name that no other test of the process uses.
pub fn unique(name: &str) -> String {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    format!("{name}-{}", NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
}

pub fn open(path: &str, vfs: &str) -> Connection {
    Connection::open_with_flags_and_vfs(path, OpenFlags::default(), vfs).unwrap()
}

/// A Python that loads extensions of SQLite: some builds cannot, the system's own can.
pub fn python() -> Option<&'static str> {
    let can_load = |python: &&str| {
        let asked = "import sqlite3; sqlite3.connect(':memory:').enable_load_extension(True)";
        std::process::Command::new(python).args(["-c", asked]).output().is_ok_and(|output| output.status.success())
    };
    let found = ["python3", "/usr/bin/python3"].into_iter().find(can_load);
    if found.is_none() {
        println!("skipped: this machine has no Python that loads extensions of SQLite");
    }
    found
}

/// Everything in a database, as text.
pub fn dump(db: &Connection) -> Vec<String> {
    try_dump(db).unwrap()
}

pub fn try_dump(db: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut lines = Vec::new();
    let mut schema = db.prepare("SELECT type, name, coalesce(sql, '') FROM sqlite_schema ORDER BY type, name")?;
    let objects: Vec<(String, String, String)> =
        schema.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect::<Result<_, _>>()?;
    for (kind, name, sql) in objects {
        lines.push(format!("{kind} {name} {sql}"));
        if kind == "table" {
            let mut rows = db.prepare(&format!("SELECT rowid, * FROM \"{name}\" ORDER BY rowid"))?;
            let columns = rows.column_count();
            let mut rows = rows.query([])?;
            while let Some(row) = rows.next()? {
                let values: Vec<String> = (0..columns)
                    .map(|n| row.get::<_, rusqlite::types::Value>(n).map(|value| format!("{value:?}")))
                    .collect::<Result<_, _>>()?;
                lines.push(values.join("|"));
            }
        }
    }
    Ok(lines)
}

pub fn integrity(db: &Connection) -> String {
    db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap()
}
