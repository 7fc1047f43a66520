//! The power of an attached drive is cut while it works: what must be there afterwards, what may be, and what never.

use crate::support;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::{Duration, Instant};

use flashwise_attach::control::{Command, Reply};
use flashwise_attach::{AttachError, DataFile, Engine, HostCompletion, HostRequest, Pace, PowerCut, Wake};
use flashwise_block::{ByteSize, IoBuffer, Operation};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use flashwise_truth::random::random_device;
use support::{Client, FLUSH, FUA, READ, Served, WRITE};

/// Logical pages that are written again and again.
const PAGES: u64 = 40;

/// A drive whose power can be cut.
fn cuttable(config: DeviceConfig, pace: Pace, began: Instant) -> Engine {
    let mut drive = SimulatedSsd::new(config, 1).unwrap();
    drive.allow_power_cuts().unwrap();
    Engine::new(drive, pace, Duration::ZERO, None, began).unwrap()
}

/// The same with its bytes in a file.
fn cuttable_in(directory: &Path, config: DeviceConfig, pace: Pace, began: Instant) -> Engine {
    let mut file = DataFile::open(&directory.join("drive.img"), ByteSize(config.capacity_bytes)).unwrap();
    let new = || Ok::<_, AttachError>(SimulatedSsd::new(config.clone(), 1).unwrap());
    let (mut drive, _) = file.drive(&config, new).unwrap();
    drive.allow_power_cuts().unwrap();
    let mut engine = Engine::new(drive, pace, Duration::ZERO, None, began).unwrap();
    engine.store_content_in(file, true);
    engine
}

fn small_samsung() -> DeviceConfig {
    let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
    config.flash.blocks_per_plane = 40;
    config.capacity_bytes = 1 << 30;
    config
}

fn samsung(pace: Pace) -> Engine {
    cuttable(small_samsung(), pace, Instant::now())
}

/// Random numbers that are the same on every machine (Knuth's MMIX generator).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// What a page may be: the number of the write that it must have seen at least, and of the last one.
#[derive(Clone, Copy, Default)]
struct Versions {
    durable: u64,
    answered: u64,
    last: u64,
}

/// A drive in a host that remembers what it was promised.
struct Host {
    engine: Engine,
    page_bytes: u64,
    now: Instant,
    random: Random,
    pages: Vec<Versions>,
    /// Requests under way: what they are, first page, number of pages, whether FUA, number of the write; for a flush,
    /// what each page had been answered when it was asked.
    under_way: BTreeMap<u64, (Operation, u64, u64, bool, u64)>,
    at_flush: HashMap<u64, Vec<u64>>,
    next: u64,
    failed: u64,
}

impl Host {
    fn new(config: DeviceConfig, seed: u64, data: Option<&Path>) -> Self {
        let (page_bytes, now) = (config.ftl.logical_page_bytes, Instant::now());
        Self {
            engine: match data {
                Some(directory) => cuttable_in(directory, config, Pace::Scaled(1.0), now),
                None => cuttable(config, Pace::Scaled(1.0), now),
            },
            page_bytes,
            now,
            random: Random(seed),
            pages: vec![Versions::default(); PAGES as usize],
            under_way: BTreeMap::new(),
            at_flush: HashMap::new(),
            next: 1,
            failed: 0,
        }
    }

    fn submit(&mut self, operation: Operation, page: u64, pages: u64, fua: bool) {
        let (cookie, length) = (self.next, ByteSize(pages * self.page_bytes));
        self.next += 1;
        let payload = (operation == Operation::Write).then(|| {
            let mut bytes = IoBuffer::zeroed(length.0 as usize);
            bytes.chunks_mut(8).for_each(|word| word.copy_from_slice(&cookie.to_le_bytes()));
            bytes
        });
        let offset = ByteSize(page * self.page_bytes);
        let command = HostRequest { client: 1, cookie, process: None, operation, offset, length, fua, payload };
        self.under_way.insert(cookie, (operation, page, pages, fua, cookie));
        self.engine.submit(command, self.now).unwrap();
    }

    fn step(&mut self) {
        let (page, kind) = (self.random.below(PAGES), self.random.below(10));
        let pages = 1 + self.random.below(6).min(PAGES - page - 1);
        let meets = |(operation, first, count, ..): &(Operation, u64, u64, bool, u64)| {
            *operation == Operation::Write && page < first + count && *first < page + pages
        };
        if kind == 0 {
            self.at_flush.insert(self.next, self.pages.iter().map(|versions| versions.answered).collect());
            self.submit(Operation::Flush, 0, 0, false);
        } else if !self.under_way.values().any(meets) {
            for versions in &mut self.pages[page as usize..(page + pages) as usize] {
                versions.last = self.next;
            }
            self.submit(Operation::Write, page, pages, kind < 3);
        }
        self.now += Duration::from_nanos(self.random.below(300_000));
        self.poll();
    }

    fn poll(&mut self) -> Vec<HostCompletion> {
        let mut answers = Vec::new();
        self.engine.poll(self.now, &mut answers).unwrap();
        for answer in &answers {
            let Some((operation, first, count, fua, write)) = self.under_way.remove(&answer.cookie) else { continue };
            let asked = self.at_flush.remove(&answer.cookie);
            if answer.result.is_err() {
                self.failed += 1;
                continue;
            }
            match operation {
                Operation::Write => {
                    for versions in &mut self.pages[first as usize..(first + count) as usize] {
                        versions.answered = versions.answered.max(write);
                        versions.durable = if fua { versions.durable.max(write) } else { versions.durable };
                    }
                }
                Operation::Flush => {
                    for (versions, answered) in self.pages.iter_mut().zip(asked.unwrap()) {
                        versions.durable = versions.durable.max(answered);
                    }
                }
                _ => {}
            }
        }
        answers
    }

    fn cut(&mut self) -> PowerCut {
        let cut = self.engine.power_cut(self.now).unwrap();
        let under_way = self.under_way.len() as u64;
        self.failed = 0;
        self.poll();
        assert!(self.under_way.is_empty(), "everything is answered, one way or the other");
        assert_eq!(cut.lost_requests, self.failed, "what was not done is an error, of {under_way}");
        cut
    }

    /// Reads everything: each page is one of the writes to it from the last durable one on.
    fn check(&mut self) {
        for page in 0..PAGES {
            self.submit(Operation::Read, page, 1, false);
            let bytes = loop {
                if let Some(answer) = self.poll().into_iter().next() {
                    answer.result.unwrap();
                    break answer.payload.unwrap();
                }
                match self.engine.next_wake() {
                    Wake::At(at) => self.now = self.now.max(at),
                    wake => assert_eq!(wake, Wake::Now),
                }
            };
            let found = u64::from_le_bytes(bytes[..8].try_into().unwrap());
            assert!(bytes.chunks(8).all(|word| word == found.to_le_bytes()), "page {page} is a mixture");
            let versions = &mut self.pages[page as usize];
            let possible = versions.durable..=versions.last;
            assert!(possible.contains(&found), "page {page} is {found}, and was promised to be in {possible:?}");
            *versions = Versions { durable: found, answered: found, last: found };
        }
    }
}

#[test]
fn what_was_flushed_or_fua_survives_every_cut_and_pages_are_whole() {
    survives_every_cut(None);
}

#[test]
fn so_it_does_in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    survives_every_cut(Some(directory.path()));
}

fn survives_every_cut(data: Option<&Path>) {
    let (mut lost, mut cuts) = (0, 0);
    for seed in 0..24 {
        let config = random_device(seed).unwrap();
        let own = data.map(|data| data.join(seed.to_string()));
        own.iter().for_each(|own| std::fs::create_dir(own).unwrap());
        let mut host = Host::new(config, seed, own.as_deref());
        for step in 0..300 {
            host.step();
            if host.random.below(15) == 0 {
                let cut = host.cut();
                (lost, cuts) = (lost + cut.lost_requests, cuts + 1);
                assert!(step < 300 && cut.power_cuts > 0);
                host.check();
            }
        }
        host.cut();
        host.check();
    }
    assert!(cuts > 300 && lost > cuts, "{lost} requests were under way in {cuts} cuts");
}

#[test]
fn what_was_not_flushed_is_lost_where_nothing_protects_it_and_the_connection_stays() {
    loses_what_was_not_flushed(samsung(Pace::Free));
    let directory = tempfile::tempdir().unwrap();
    loses_what_was_not_flushed(cuttable_in(directory.path(), small_samsung(), Pace::Free, Instant::now()));
}

fn loses_what_was_not_flushed(engine: Engine) {
    let served = Served::of(engine);
    let mut client = Client::connect(&served.socket);
    let old = vec![1; 32 << 10];
    client.write(0, &old);
    assert_eq!(client.execute(0, FLUSH, 0, 0, &[]), 0);
    assert_eq!(client.execute(FUA, WRITE, 1 << 20, 512, &[2; 512]), 0);
    client.write(0, &[3; 512]);
    client.write(2 << 20, &[4; 512]);
    assert_eq!(client.read(0, 512), [3; 512]);
    let Reply::Cut(cut) = served.order(&Command::Cut).unwrap() else { panic!("something else is told") };
    assert_eq!((cut.power_cuts, cut.lost_requests), (1, 0));
    assert_eq!(client.read(0, 32 << 10), old, "it is as it was flushed");
    assert_eq!(client.read(1 << 20, 512), [2; 512], "what was FUA is there");
    assert_eq!(client.read(2 << 20, 512), [0; 512], "what was not flushed is gone");
    client.write(0, &[5; 512]);
    assert_eq!(Client::connect(&served.socket).read(0, 512), [5; 512], "it serves as before");
    assert_eq!(served.stat().power_cuts, 1);
    served.end();
}

#[test]
fn requests_under_way_get_an_error_and_what_was_answered_before_does_not() {
    // A million times slower than real: nothing is done by itself before the power is cut.
    let served = Served::of(samsung(Pace::Scaled(1e6)));
    let mut client = Client::connect(&served.socket);
    for n in 0..4 {
        client.ask(FUA, WRITE, n << 20, 4096, &[9; 4096]);
    }
    client.ask(0, READ, 1, 1, &[]);
    assert_eq!(client.reply().0, 22, "the drive has them by now");
    let Reply::Cut(cut) = served.order(&Command::Cut).unwrap() else { panic!("something else is told") };
    assert_eq!(cut.lost_requests, 4);
    for _ in 0..4 {
        assert_eq!(client.reply().0, 5, "EIO");
    }
    assert_eq!(served.stat().failed, 4);
    served.end();
}

#[test]
fn a_drive_that_does_not_keep_what_a_cut_would_leave_says_so_and_goes_on() {
    let served = Served::start(Pace::Free, None);
    let mut client = Client::connect(&served.socket);
    client.write(0, &[1; 512]);
    let error = served.order(&Command::Cut).unwrap_err();
    assert!(matches!(&error, AttachError::Refused(words) if words.contains("--power-cuts")), "{error}");
    assert_eq!(client.read(0, 512), [1; 512]);
    served.end();
}
