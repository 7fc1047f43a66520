//! Serving a request takes no memory from the system: a drive that has to wait for memory may wait for itself.
//!
//! Counted are the allocations of all threads but those of the clients, the one that runs this test and the harness's.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should panic where it fails")]
#![allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own")]

#[path = "it/support/mod.rs"]
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::Cell;
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use flashwise_attach::{Capture, DataFile, Engine, Pace, Server};
use flashwise_block::{ByteSize, IoBuffer};
use flashwise_ssd::config::{CacheFlush, CachePolicy, CompressionConfig, ReductionConfig, WriteCacheConfig};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use flashwise_trace::TraceFormat;
use rustix::fs::{FallocateFlags, OFlags, fallocate};
use support::{Client, FLUSH, FUA, READ, TRIM, WRITE, WRITE_ZEROES};

/// Counts what threads that are not spared ask of the system, while it is told to.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;
static COUNTS: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicU64 = AtomicU64::new(0);
/// Where the first of them were made.
static PLACES: Mutex<Vec<String>> = Mutex::new(Vec::new());

thread_local! {
    static IS_SPARED: Cell<bool> = const { Cell::new(false) };
}

fn count() {
    if !COUNTS.load(SeqCst) || IS_SPARED.replace(true) {
        return;
    }
    if COUNT.fetch_add(1, SeqCst) < 3 {
        PLACES.lock().unwrap().push(Backtrace::force_capture().to_string());
    }
    IS_SPARED.set(false);
}

// SAFETY: everything is done by the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as the caller's.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller's.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// This thread is a client's.
fn spare() {
    IS_SPARED.set(true);
}

/// Allocations of everybody else's while something is done, and where the first ones were.
fn counted(work: impl FnOnce()) -> (u64, String) {
    COUNT.store(0, SeqCst);
    COUNTS.store(true, SeqCst);
    work();
    COUNTS.store(false, SeqCst);
    let places = std::mem::take(&mut *PLACES.lock().unwrap());
    (COUNT.load(SeqCst), places.join("\n\n"))
}

/// Bytes that are worked on; of them, 16 KiB pieces.
const BYTES: u64 = 32 << 20;
const PIECE: u64 = 16 << 10;
/// Requests under way.
const DEPTH: u64 = 32;
const REQUESTS: u64 = 20_000;

/// Pieces in an order that looks like none.
fn place(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (BYTES / PIECE) * PIECE
}

/// What the n-th request is: command, length.
fn request(n: u64) -> (u16, u32) {
    match n % 16 {
        0 => (FLUSH, 0),
        1 => (TRIM, 4096),
        2 => (WRITE_ZEROES, 4096),
        3 => (READ, 512),
        4 => (WRITE, 512),
        5 => (WRITE, PIECE as u32),
        6 => (READ, 12 << 10),
        n if n % 2 == 0 => (READ, 4096),
        _ => (WRITE, 4096),
    }
}

/// Works through requests, always as many under way, without memory of its own for each.
struct Worker {
    stream: UnixStream,
    out: Vec<u8>,
    bytes: Vec<u8>,
    n: u64,
}

impl Worker {
    fn connect(socket: &Path) -> Self {
        let stream = Client::connect(socket).stream;
        Self { stream, out: vec![7; 28 + PIECE as usize], bytes: vec![0; PIECE as usize], n: 0 }
    }

    fn ask(&mut self) {
        let (command, length) = request(self.n);
        let flags = if self.n % 64 == 9 { FUA } else { 0 };
        let offset = if command == FLUSH { 0 } else { place(self.n) };
        self.out[..4].copy_from_slice(&0x2560_9513_u32.to_be_bytes());
        self.out[4..6].copy_from_slice(&flags.to_be_bytes());
        self.out[6..8].copy_from_slice(&command.to_be_bytes());
        self.out[8..16].copy_from_slice(&self.n.to_be_bytes());
        self.out[16..24].copy_from_slice(&offset.to_be_bytes());
        self.out[24..28].copy_from_slice(&length.to_be_bytes());
        let payload = if command == WRITE { length as usize } else { 0 };
        // No two pages are alike.
        self.out[28..36].copy_from_slice(&self.n.to_le_bytes());
        self.stream.write_all(&self.out[..28 + payload]).unwrap();
        self.n += 1;
    }

    fn take(&mut self) {
        let mut head = [0; 16];
        self.stream.read_exact(&mut head).unwrap();
        assert_eq!(head[4..8], [0; 4], "it is done");
        let (command, length) = request(u64::from_be_bytes(head[8..].try_into().unwrap()));
        if command == READ {
            self.stream.read_exact(&mut self.bytes[..length as usize]).unwrap();
        }
    }

    fn work(&mut self, requests: u64, depth: u64) {
        (0..depth).for_each(|_| self.ask());
        for _ in depth..requests {
            self.take();
            self.ask();
        }
        (0..depth).for_each(|_| self.take());
    }

    /// Every byte that is worked on.
    fn fill(&mut self) {
        let mut client = Client { stream: self.stream.try_clone().unwrap(), capacity: 0, cookie: 0 };
        (0..BYTES / PIECE).for_each(|n| client.write(n * PIECE, &[1; PIECE as usize]));
    }
}

/// The drive of the other tests, which compresses.
fn compressing() -> DeviceConfig {
    let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
    config.controller.power_loss_protection = true;
    let compression = CompressionConfig { granule_bytes: 512, ..CompressionConfig::default() };
    config.reduction = Some(ReductionConfig { compression: Some(compression), ..ReductionConfig::default() });
    config
}

fn engine(pace: Pace, capture: Option<Capture>) -> Engine {
    serve(SimulatedSsd::new(DeviceConfig::preset("samsung-960-evo").unwrap(), 1).unwrap(), pace, capture)
}

fn serve(drive: SimulatedSsd, pace: Pace, capture: Option<Capture>) -> Engine {
    let mut engine = Engine::new(drive, pace, Duration::ZERO, capture, Instant::now()).unwrap();
    engine.reserve(ByteSize(2 * BYTES), 2 * DEPTH as usize);
    engine
}

/// A drive whose data is in a file, and whose power may be cut.
fn in_file(image: &Path, config: &DeviceConfig, has_power_cuts: bool) -> Engine {
    let mut data = DataFile::open(image, ByteSize(config.capacity_bytes)).unwrap();
    let new = || Ok::<_, flashwise_attach::AttachError>(SimulatedSsd::new(config.clone(), 1).unwrap());
    let (drive, _) = data.drive(config, new).unwrap();
    let mut engine = Engine::new(drive, Pace::Free, Duration::ZERO, None, Instant::now()).unwrap();
    engine.store_content_in(data, has_power_cuts);
    engine.reserve(ByteSize(2 * BYTES), 2 * DEPTH as usize);
    engine
}

/// Serves what `work` asks for through a socket.
fn over_nbd(what: &str, engine: Engine) {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("ssd.sock");
    let mut server = Server::new(engine).unwrap();
    server.listen(&socket).unwrap();
    let stop = server.stop();
    let serving = std::thread::spawn(move || server.run().unwrap());
    let mut worker = Worker::connect(&socket);
    worker.fill();
    // At twice the depth, so that as much is in use at once as ever will be.
    worker.work(2 * REQUESTS, 2 * DEPTH);
    let (count, places) = counted(|| worker.work(REQUESTS, DEPTH));
    assert_eq!(count, 0, "{what}:\n{places}");
    stop.request();
    let mut engine = serving.join().unwrap();
    engine.detach().unwrap();
    assert!(engine.finish().unwrap().counters.host_writes > REQUESTS / 4);
}

/// The same through the kernel, each of as many threads one after the other.
fn over_fuse(engine: Engine) {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Server::new(engine).unwrap();
    if let Err(error) = server.mount(directory.path()) {
        assert!(error.to_string().contains("it cannot be mounted"), "{error}");
        return eprintln!("{error}: not tested");
    }
    let stop = server.stop();
    let serving = std::thread::spawn(move || server.run().unwrap());
    let disk = directory.path().join("disk");
    let disk = std::fs::OpenOptions::new().read(true).write(true).custom_flags(OFlags::DIRECT.bits() as i32).open(disk);
    let disk = disk.unwrap();
    let round = |first: u64, last: u64, buffer: &mut IoBuffer| {
        for n in first..last {
            let ((command, length), offset) = (request(n), place(n));
            let bytes = &mut buffer[..length as usize];
            let allocate = |flags| fallocate(&disk, flags | FallocateFlags::KEEP_SIZE, offset, length.into()).unwrap();
            match command {
                READ => disk.read_exact_at(bytes, offset).unwrap(),
                WRITE => disk.write_all_at(bytes, offset).unwrap(),
                FLUSH => disk.sync_data().unwrap(),
                TRIM => allocate(FallocateFlags::PUNCH_HOLE),
                _ => allocate(FallocateFlags::ZERO_RANGE),
            }
        }
    };
    let mut buffer = IoBuffer::zeroed(PIECE as usize);
    (0..BYTES / PIECE).for_each(|n| disk.write_all_at(&buffer, n * PIECE).unwrap());
    round(0, 2000, &mut buffer);
    // At twice the depth first, so that as much is in use at once as ever will be.
    let (ready, go) =
        (std::sync::Barrier::new(2 * DEPTH as usize + 1), std::sync::Barrier::new(2 * DEPTH as usize + 1));
    std::thread::scope(|scope| {
        for thread in 0..2 * DEPTH {
            let (ready, go, round) = (&ready, &go, &round);
            scope.spawn(move || {
                spare();
                let mut buffer = IoBuffer::zeroed(PIECE as usize);
                let each = REQUESTS / DEPTH;
                round(thread * each, (thread + 1) * each, &mut buffer);
                ready.wait();
                go.wait();
                if thread < DEPTH {
                    round(thread * each, (thread + 1) * each, &mut buffer);
                }
                ready.wait();
            });
        }
        ready.wait();
        let (count, places) = counted(|| {
            go.wait();
            ready.wait();
        });
        assert_eq!(count, 0, "FUSE:\n{places}");
    });
    drop(disk);
    stop.request();
    let engine = serving.join().unwrap();
    assert!(engine.finish().unwrap().counters.host_writes > REQUESTS / 4);
}

#[test]
fn requests_are_served_without_taking_memory() {
    spare();
    // What counts also counts: a thread that is not spared and takes memory is seen.
    let (count, places) = counted(|| drop(std::thread::spawn(|| vec![1; 9]).join()));
    assert!(count > 0 && places.contains("allocations"), "{count}: {places}");

    over_nbd("NBD", engine(Pace::Free, None));
    over_nbd("NBD, paced", engine(Pace::Scaled(0.05), None));
    let file = tempfile::NamedTempFile::new().unwrap();
    // A capture is written by a thread of its own, and what that takes nobody waits for.
    let out = Spared(file.reopen().unwrap());
    let capture = Capture::start(TraceFormat::Csv, out, "run.csv").unwrap();
    over_nbd("NBD, captured", engine(Pace::Free, Some(capture)));
    over_nbd("NBD, compressed", serve(SimulatedSsd::new(compressing(), 1).unwrap(), Pace::Free, None));
    let directory = tempfile::tempdir().unwrap();
    let config = DeviceConfig::preset("samsung-960-evo").unwrap();
    over_nbd("NBD, data in a file", in_file(&directory.path().join("db.img"), &config, false));
    over_nbd("NBD, compressed, data in a file", in_file(&directory.path().join("small.img"), &compressing(), false));
    let mut cached = config;
    cached.controller.write_cache = Some(WriteCacheConfig {
        bytes: 8 << 20,
        policy: CachePolicy::Lru,
        flush: CacheFlush::WhenFull,
        high_watermark: 0.8,
        low_watermark: 0.5,
        hot_window_ns: None,
    });
    over_nbd("NBD, power cuts", in_file(&directory.path().join("cut.img"), &cached, true));
    over_fuse(engine(Pace::Free, None));
    over_fuse(engine(Pace::Scaled(0.05), None));
}

/// A file whose writer is spared from its first byte on.
struct Spared(std::fs::File);

impl Write for Spared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        spare();
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}
