//! Arrays against a model that is a plain string of bytes: every level, with every failure that it survives, before, in
//! the middle of and after rebuilding, with and without a write cache; and what requests cost.

use crate::support;

use flashwise_array::{ArrayCacheConfig, ArrayConfig, Level, MemberState, SimulatedArray};
use flashwise_block::{BlockDevice, BlockError, ByteSize, IoBuffer, Nanos, Operation, Request, execute};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const BLOCK: u64 = 512;
const CHUNK: u64 = 8192;

/// A drive of 16 chunks.
fn member() -> DeviceConfig {
    let mut config = support::tiny("micron-m500", ByteSize(16 * CHUNK), 8, 16);
    config.host.max_transfer_bytes = 32 << 10;
    config
}

/// A drive of that many bytes that has space for measurements.
fn larger(capacity: ByteSize) -> DeviceConfig {
    let mut config = support::tiny("micron-m500", capacity, 64, 64);
    config.flash.array_time_jitter = 0.0;
    config
}

fn array(level: Level, members: u32) -> ArrayConfig {
    let mut config = ArrayConfig::new(level, members, CHUNK);
    config.controller.max_transfer_bytes = Some(256 << 10);
    config
}

/// An array and what it should hold.
struct Tested {
    array: SimulatedArray,
    model: Vec<u8>,
    random: Pcg64Mcg,
    /// Ranges that requests on their way name, with what a read of them should give.
    pending: Vec<(u64, u64, u64, Option<Vec<u8>>)>,
    tag: u64,
    label: String,
}

impl Tested {
    fn new(config: ArrayConfig, seed: u64, label: String) -> Self {
        let array = SimulatedArray::new(config, member(), seed).unwrap();
        let model = vec![0; array.info().capacity.bytes() as usize];
        Self { array, model, random: Pcg64Mcg::seed_from_u64(seed), pending: Vec::new(), tag: 0, label }
    }

    /// A range of up to a few rows; short ones are as likely as long ones.
    fn range(&mut self) -> (u64, u64) {
        let blocks = self.model.len() as u64 / BLOCK;
        let most = [2, 16, 100, 400][self.random.random_range(0..4)];
        let length = self.random.random_range(1..=most).min(blocks);
        let start = self.random.random_range(0..=blocks - length);
        (start * BLOCK, (start + length) * BLOCK)
    }

    fn wait(&mut self) {
        let done = self.array.wait().unwrap().expect("something is outstanding");
        done.result.clone().unwrap_or_else(|e| panic!("{}: {e}", self.label));
        let place = self.pending.iter().position(|pending| pending.0 == done.tag).unwrap();
        let (_, start, _, expected) = self.pending.swap_remove(place);
        if let Some(expected) = expected {
            let differs = done.buffer.unwrap().iter().zip(&expected).position(|(a, b)| a != b);
            assert_eq!(differs, None, "{}: a read at {start} gave other bytes than were written", self.label);
        }
    }

    fn drain(&mut self) {
        while !self.pending.is_empty() {
            self.wait();
        }
    }

    /// One random request, submitted while others that it does not touch are on their way.
    fn request(&mut self) {
        let (start, end) = self.range();
        while self.pending.len() >= 6 || self.pending.iter().any(|&(_, from, to, _)| from < end && start < to) {
            self.wait();
        }
        self.tag += 1;
        let length = end - start;
        let (at, size) = (ByteSize(start), ByteSize(length));
        let place = start as usize..end as usize;
        let (request, expected) = match self.random.random_range(0..20) {
            0..8 => {
                let read = Request::read(at, size).with_buffer(IoBuffer::zeroed(length as usize));
                (read, Some(self.model[place].to_vec()))
            }
            8..17 => {
                let mut buffer = IoBuffer::zeroed(length as usize);
                self.random.fill(&mut buffer[..]);
                self.model[place].copy_from_slice(&buffer);
                let mut write = Request::write(at, size).with_buffer(buffer);
                write.fua = self.random.random_bool(0.2);
                (write, None)
            }
            17 => {
                self.model[place].fill(0);
                (Request::trim(at, size), None)
            }
            18 => {
                self.model[place].fill(0);
                (Request::write_zeroes(at, size), None)
            }
            _ => {
                self.tag += 1;
                self.array.submit(Request::flush().tagged(self.tag)).unwrap();
                return self.pending.push((self.tag, 0, 0, None));
            }
        };
        self.array.submit(request.tagged(self.tag)).unwrap();
        self.pending.push((self.tag, start, end, expected));
    }

    fn requests(&mut self, count: u32) {
        (0..count).for_each(|_| self.request());
    }

    /// Everything reads as it should, and parity is right.
    fn verify(&mut self) {
        self.drain();
        let step = 128 << 10;
        for start in (0..self.model.len()).step_by(step) {
            let length = step.min(self.model.len() - start);
            let read = Request::read(ByteSize(start as u64), ByteSize(length as u64));
            let done = execute(&mut self.array, read.with_buffer(IoBuffer::zeroed(length))).unwrap();
            let differs = done.buffer.unwrap().iter().zip(&self.model[start..]).position(|(a, b)| a != b);
            assert_eq!(differs.map(|at| at + start), None, "{}: wrong bytes", self.label);
        }
        self.array.check_parity().unwrap_or_else(|e| panic!("{}: {e}", self.label));
    }

    fn rebuilds(&self) -> bool {
        self.array.member_states().iter().any(|state| matches!(state, MemberState::Rebuilding { .. }))
    }

    /// Members fail one after the other in the middle of requests, and are rebuilt in the middle of others.
    fn fail_and_rebuild(&mut self, failing: &[usize]) {
        self.requests(40);
        self.verify();
        for &member in failing {
            self.requests(15);
            self.array.fail_drive(member);
            self.requests(15);
        }
        self.verify();
        self.requests(20);
        for &member in failing {
            assert!(self.array.replace_drive(member));
            self.requests(10);
        }
        if self.array.config().rebuild_bytes_per_s > 0 && !failing.is_empty() {
            assert!(self.rebuilds(), "{}: the checks come in the middle", self.label);
        }
        self.verify();
        while self.rebuilds() {
            self.requests(3);
            self.drain();
            self.array.pause(Nanos::millis(1)).unwrap();
        }
        self.verify();
        assert!(self.array.member_states().iter().all(|&state| state == MemberState::Whole));
        assert!(self.array.check_parity().unwrap() == self.array.rows() || failing.is_empty());
    }
}

/// Every set of members that a level survives the loss of.
fn survived(level: Level, members: usize) -> Vec<Vec<usize>> {
    let mut sets = vec![Vec::new()];
    if level != Level::Raid0 {
        sets.extend((0..members).map(|member| vec![member]));
    }
    let pair_is_survived = |a: usize, b: usize| match level {
        Level::Raid6 | Level::Raid1 => a != b,
        Level::Raid10 => a / 2 != b / 2,
        Level::Raid0 | Level::Raid5 => false,
    };
    let pairs = (0..members).flat_map(|a| (0..members).map(move |b| (a, b)));
    sets.extend(pairs.filter(|&(a, b)| pair_is_survived(a, b)).map(|(a, b)| vec![a, b]));
    sets
}

fn every_failure(level: Level, members: u32, has_cache: bool) {
    for (number, failing) in survived(level, members as usize).into_iter().enumerate() {
        let mut config = array(level, members);
        // One row takes 8 ms: rebuilding lasts longer than a whole check.
        config.rebuild_bytes_per_s = if number % 2 == 0 { 1 << 18 } else { 0 };
        if has_cache {
            config.controller.write_cache =
                Some(ArrayCacheConfig { bytes: 512 << 10, destage_from_bytes: Some(number as u64 % 3 * (16 << 10)) });
        }
        let seed = 100 + number as u64;
        let label = format!("{level:?} of {members}, cache {has_cache}, {failing:?} fail, seed {seed}");
        Tested::new(config, seed, label).fail_and_rebuild(&failing);
    }
}

#[test]
fn every_level_gives_back_what_was_written_through_every_failure_that_it_survives() {
    for (level, members) in
        [(Level::Raid0, 3), (Level::Raid1, 3), (Level::Raid10, 4), (Level::Raid5, 4), (Level::Raid5, 3)]
    {
        every_failure(level, members, false);
    }
}

#[test]
fn raid_6_survives_every_pair_of_failures() {
    every_failure(Level::Raid6, 5, false);
    every_failure(Level::Raid6, 4, false);
}

#[test]
fn a_write_cache_changes_no_byte() {
    for (level, members) in [(Level::Raid0, 3), (Level::Raid10, 4), (Level::Raid5, 4), (Level::Raid6, 5)] {
        every_failure(level, members, true);
    }
}

#[test]
fn a_spare_takes_the_place_of_a_failed_drive_by_itself() {
    let mut config = array(Level::Raid5, 4);
    config.spares = 1;
    let mut tested = Tested::new(config, 5, "a spare".into());
    tested.requests(60);
    tested.array.fail_drive(2);
    assert!(tested.rebuilds());
    tested.requests(60);
    while tested.rebuilds() {
        tested.array.pause(Nanos::millis(1)).unwrap();
    }
    tested.array.fail_drive(0);
    tested.requests(20);
    tested.verify();
    assert_eq!(tested.array.member_states()[0], MemberState::Failed, "there was one spare");
}

#[test]
fn what_is_beyond_survival_is_an_error_and_never_other_bytes() {
    for (level, members, failing) in [
        (Level::Raid0, 3, vec![1]),
        (Level::Raid1, 2, vec![0, 1]),
        (Level::Raid10, 4, vec![2, 3]),
        (Level::Raid5, 4, vec![0, 3]),
        (Level::Raid6, 5, vec![0, 1, 4]),
    ] {
        let mut tested = Tested::new(array(level, members), 9, format!("{level:?}"));
        tested.requests(60);
        tested.drain();
        failing.iter().for_each(|&member| tested.array.fail_drive(member));
        let (mut given, mut refused) = (0, 0);
        for start in (0..tested.model.len()).step_by(BLOCK as usize) {
            let read = Request::read(ByteSize(start as u64), ByteSize(BLOCK));
            match execute(&mut tested.array, read.with_buffer(IoBuffer::zeroed(BLOCK as usize))) {
                Ok(done) => {
                    given += 1;
                    assert!(
                        done.buffer.unwrap()[..] == tested.model[start..start + BLOCK as usize],
                        "{level:?}, {start}"
                    );
                }
                Err(error) => {
                    refused += 1;
                    assert!(matches!(error, BlockError::ArrayFailed { operation: Operation::Read, .. }), "{error}");
                }
            }
        }
        assert!(refused > 0 && (given > 0 || level == Level::Raid1), "{level:?}: {given} given, {refused} refused");
        let whole = Request::write(ByteSize(0), ByteSize(CHUNK * u64::from(members)));
        assert!(matches!(execute(&mut tested.array, whole), Err(BlockError::ArrayFailed { .. })), "{level:?}");
    }
}

#[test]
fn parity_that_was_never_written_is_found() {
    let mut array = SimulatedArray::new(array(Level::Raid5, 4), member(), 1).unwrap();
    let data = |byte| IoBuffer::copy_of(&vec![byte; 3 * CHUNK as usize]);
    execute(&mut array, Request::write(ByteSize(0), ByteSize(1)).with_buffer(data(1))).unwrap();
    assert_eq!(array.check_parity(), Ok(16));
    // Drives that hold bytes already are told from those of an array by their parity.
    let drives: Vec<SimulatedSsd> = (0..4)
        .map(|seed| {
            let mut drive = SimulatedSsd::new(member(), seed).unwrap();
            let bytes = IoBuffer::copy_of(&[seed as u8; 512]);
            execute(&mut drive, Request::write(ByteSize(CHUNK), ByteSize(512)).with_buffer(bytes)).unwrap();
            drive
        })
        .collect();
    let config = ArrayConfig::new(Level::Raid6, 4, CHUNK);
    let mut array = SimulatedArray::of_drives(config, drives, 1).unwrap();
    assert!(array.check_parity().unwrap_err().to_string().starts_with("stripe 1: the data of member"));
}

/// A random load at a queue depth, without bytes; when each request was completed.
fn times(device: &mut dyn BlockDevice, seed: u64, requests: u32, depth: usize) -> Vec<(u64, u64)> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let pages = device.info().capacity.bytes() / 4096;
    let mut times = Vec::new();
    for tag in 0..requests {
        let length = random.random_range(1..=8_u64);
        let at = ByteSize(random.random_range(0..=pages - length) * 4096);
        let request = match random.random_range(0..20) {
            0..9 => Request::read(at, ByteSize(length * 4096)),
            9..18 => Request::write(at, ByteSize(length * 4096)),
            18 => Request::trim(at, ByteSize(length * 4096)),
            _ => Request::flush(),
        };
        device.submit(request.tagged(tag.into())).unwrap();
        while device.outstanding() >= depth {
            let done = device.wait().unwrap().unwrap();
            times.push((done.tag, done.completed_at.0));
        }
        // A pause comes when all is given back: a drive counts as busy while anything is not.
        if tag % 100 == 99 {
            while let Some(done) = device.wait().unwrap() {
                times.push((done.tag, done.completed_at.0));
            }
            device.pause(Nanos::millis(2)).unwrap();
        }
    }
    while let Some(done) = device.wait().unwrap() {
        times.push((done.tag, done.completed_at.0));
    }
    times
}

#[test]
fn an_array_of_one_drive_takes_the_same_time_as_the_drive() {
    let config = support::tiny("micron-m500", ByteSize::mib(40), 24, 40);
    for depth in [1, 7, 64] {
        let mut drive = SimulatedSsd::new(config.clone(), 3).unwrap();
        let alone = times(&mut drive, 1, 6_000, depth);
        let one = ArrayConfig::new(Level::Raid0, 1, 16 << 10);
        let mut array = SimulatedArray::new(one, config.clone(), 3).unwrap();
        let differs = times(&mut array, 1, 6_000, depth).into_iter().zip(alone).find(|(array, drive)| array != drive);
        assert_eq!(differs, None, "depth {depth}");
        assert!(drive.counters().flash.unwrap().gc_runs > 0, "collection is part of the comparison");
        assert_eq!(array.counters(), drive.counters());
    }
}

#[test]
fn a_run_is_the_same_to_the_bit_every_time() {
    let run = || {
        let mut config = array(Level::Raid6, 6);
        config.rebuild_bytes_per_s = 20 << 20;
        config.controller.iops_max = 30_000;
        config.controller.bandwidth_bytes_per_s = 800_000_000;
        config.controller.write_cache = Some(ArrayCacheConfig { bytes: 1 << 20, destage_from_bytes: None });
        let mut array = SimulatedArray::new(config, larger(ByteSize::mib(4)), 1).unwrap();
        let mut all = times(&mut array, 1, 500, 16);
        array.fail_drive(1);
        array.replace_drive(1);
        all.extend(times(&mut array, 2, 500, 16));
        (all, array.counters(), array.now())
    };
    assert_eq!(run(), run());
}

#[test]
fn what_has_completed_is_polled_and_the_clock_stands_still() {
    let mut array = SimulatedArray::new(array(Level::Raid0, 2), larger(ByteSize::mib(4)), 1).unwrap();
    for tag in 0..4 {
        array.submit(Request::write(ByteSize(tag * CHUNK), ByteSize(CHUNK)).tagged(tag)).unwrap();
    }
    assert_eq!(array.poll().unwrap().map(|done| done.tag), None);
    array.pause(Nanos::secs(1)).unwrap();
    let now = array.now();
    let mut tags: Vec<u64> = std::iter::from_fn(|| array.poll().unwrap()).map(|done| done.tag).collect();
    tags.sort_unstable();
    assert_eq!((tags, array.now(), array.outstanding()), (vec![0, 1, 2, 3], now, 0));
    assert!(array.wait().unwrap().is_none());
}

/// Bytes a second of large sequential requests, several at once.
fn sequential(array: &mut SimulatedArray, operation: Operation) -> f64 {
    let (step, capacity) = (array.info().max_transfer.bytes(), array.info().capacity.bytes());
    let start = array.now();
    let mut bytes = 0;
    for at in (0..capacity / step).map(|n| n * step) {
        let at = ByteSize(at);
        let request = match operation {
            Operation::Read => Request::read(at, ByteSize(step)),
            _ => Request::write(at, ByteSize(step)),
        };
        array.submit(request).unwrap();
        bytes += step;
        if array.outstanding() >= 4 {
            array.wait().unwrap();
        }
    }
    while array.wait().unwrap().is_some() {}
    bytes as f64 / array.now().since(start).as_secs_f64()
}

#[test]
fn sequential_reads_of_raid_0_grow_with_the_members() {
    let rate = |members| {
        let mut config = ArrayConfig::new(Level::Raid0, members, 64 << 10);
        config.controller.max_transfer_bytes = Some(u64::from(members) * (512 << 10));
        let mut array = SimulatedArray::new(config, larger(ByteSize::mib(32)), 1).unwrap();
        sequential(&mut array, Operation::Write);
        array.pause(Nanos::secs(1)).unwrap();
        sequential(&mut array, Operation::Read)
    };
    let one = rate(1);
    for members in [2, 4, 8] {
        // Each member sends its own share over its own link; what is lost is the wait for the last at the end.
        let gain = rate(members) / one;
        assert!((0.9 * f64::from(members)..=1.05 * f64::from(members)).contains(&gain), "{members}: {gain}");
    }
}

/// What a request makes the members do: reads, writes.
fn member_requests(config: ArrayConfig, prepare: impl FnOnce(&mut SimulatedArray), request: Request) -> (u64, u64) {
    let mut array = SimulatedArray::new(config, member(), 1).unwrap();
    prepare(&mut array);
    let count = |array: &SimulatedArray| {
        let members = (0..array.config().members as usize).filter_map(|member| array.member_counters(member));
        members.fold((0, 0), |(reads, writes), of| (reads + of.host_reads, writes + of.host_writes))
    };
    let before = count(&array);
    execute(&mut array, request).unwrap();
    let after = count(&array);
    (after.0 - before.0, after.1 - before.1)
}

#[test]
fn writes_read_and_write_what_their_level_needs() {
    let small = || Request::write(ByteSize(CHUNK), ByteSize(4096));
    let on = |level, members, request| member_requests(array(level, members), |_| {}, request);
    assert_eq!(on(Level::Raid5, 8, small()), (2, 2), "old data and parity, new data and parity");
    assert_eq!(on(Level::Raid6, 8, small()), (3, 3));
    assert_eq!(on(Level::Raid10, 8, small()), (0, 2));
    assert_eq!(on(Level::Raid1, 3, small()), (0, 3));
    assert_eq!(on(Level::Raid5, 3, small()), (1, 2), "the one other chunk is less than data and parity");
    let row = |columns| Request::write(ByteSize(columns * CHUNK), ByteSize(columns * CHUNK));
    assert_eq!(on(Level::Raid5, 8, row(7)), (0, 8), "a whole row is written without reading");
    assert_eq!(on(Level::Raid6, 8, row(6)), (0, 8));
    let most = Request::write(ByteSize(7 * CHUNK), ByteSize(6 * CHUNK));
    assert_eq!(on(Level::Raid5, 8, most), (1, 7), "the one chunk that stays is read");
    // Column 1 of row 0 of eight is on member 1.
    let degraded =
        |member: usize, request| member_requests(array(Level::Raid5, 8), |array| array.fail_drive(member), request);
    assert_eq!(degraded(1, small()), (6, 1), "the six others, and the parity alone is written");
    assert_eq!(degraded(7, small()), (0, 1), "without parity, the data alone is written");
    assert_eq!(degraded(2, small()), (2, 2), "another's loss does not matter");
    assert_eq!(degraded(1, Request::read(ByteSize(CHUNK), ByteSize(4096))), (7, 0));
    assert_eq!(degraded(2, Request::read(ByteSize(CHUNK), ByteSize(4096))), (1, 0));
}

#[test]
fn writes_to_parts_of_one_row_come_one_after_the_other_and_those_to_others_side_by_side() {
    let elapsed = |row_apart: u64| {
        let mut array = SimulatedArray::new(array(Level::Raid5, 4), larger(ByteSize::mib(4)), 1).unwrap();
        sequential(&mut array, Operation::Write);
        array.pause(Nanos::secs(1)).unwrap();
        let start = array.now();
        for n in 0..3 {
            array.submit(Request::write(ByteSize(n * CHUNK + n * row_apart * 3 * CHUNK), ByteSize(4096))).unwrap();
        }
        while array.wait().unwrap().is_some() {}
        array.now().since(start).0
    };
    let (same, apart) = (elapsed(0), elapsed(5));
    assert!(same as f64 > 1.8 * apart as f64, "{same} ns in one row, {apart} ns in three");
}

#[test]
fn the_controller_limits_requests_and_bytes_a_second() {
    let run = |iops_max, bandwidth_bytes_per_s, length: u64| {
        let mut config = ArrayConfig::new(Level::Raid0, 4, 64 << 10);
        (config.controller.iops_max, config.controller.bandwidth_bytes_per_s) = (iops_max, bandwidth_bytes_per_s);
        let mut array = SimulatedArray::new(config, larger(ByteSize::mib(8)), 1).unwrap();
        for n in 0..2_000 {
            array.submit(Request::read(ByteSize(n * length % (16 << 20)), ByteSize(length))).unwrap();
            if array.outstanding() >= 64 {
                array.wait().unwrap();
            }
        }
        while array.wait().unwrap().is_some() {}
        2_000.0 / array.now().as_secs_f64()
    };
    // Unwritten pages need no flash, so that nothing but the limit is left.
    let requests = run(20_000, 0, 4096);
    assert!((19_500.0..=20_000.1).contains(&requests), "{requests}");
    let bytes = run(0, 200_000_000, 65_536) * 65_536.0;
    assert!((195e6..=200.1e6).contains(&bytes), "{bytes}");
    assert!(run(0, 0, 4096) > 60_000.0);
}

#[test]
fn a_write_cache_answers_at_once_and_writes_whole_rows() {
    let mut config = array(Level::Raid5, 5);
    config.controller.write_cache = Some(ArrayCacheConfig { bytes: 1 << 20, destage_from_bytes: None });
    let mut array = SimulatedArray::new(config, member(), 1).unwrap();
    // Four rows in small pieces, in order.
    for n in 0..4 * 4 * CHUNK / 1024 {
        let done = execute(&mut array, Request::write(ByteSize(n * 1024), ByteSize(1024))).unwrap();
        assert_eq!(done.latency(), Nanos(0), "the controller itself costs nothing here");
    }
    array.pause(Nanos::secs(1)).unwrap();
    assert_eq!(array.cached_bytes(), 0);
    let of = |member| array.member_counters(member).unwrap();
    assert_eq!((0..5).map(|member| of(member).host_reads).sum::<u64>(), 0, "whole rows need no reads");
    assert_eq!((0..5).map(|member| of(member).host_bytes_written.0).sum::<u64>(), 4 * 5 * CHUNK);
    // What is held comes from the cache, and stays through a flush.
    execute(&mut array, Request::write(ByteSize(0), ByteSize(1024))).unwrap();
    execute(&mut array, Request::flush()).unwrap();
    assert_eq!(array.cached_bytes(), 1024);
    let read = execute(&mut array, Request::read(ByteSize(512), ByteSize(512))).unwrap();
    assert_eq!(read.latency(), Nanos(0));
}

#[test]
fn rebuilding_keeps_to_its_rate() {
    let seconds = |rate| {
        let mut config = array(Level::Raid5, 4);
        config.rebuild_bytes_per_s = rate;
        let mut array = SimulatedArray::new(config, larger(ByteSize::mib(8)), 1).unwrap();
        array.fail_drive(3);
        array.replace_drive(3);
        let start = array.now();
        while array.member_states()[3] != MemberState::Whole {
            array.pause(Nanos::millis(1)).unwrap();
        }
        array.now().since(start).as_secs_f64()
    };
    let limited = seconds(16 << 20);
    assert!((0.5..0.51).contains(&limited), "8 MiB at 16 MiB a second took {limited} s");
    assert!(seconds(0) < 0.25, "without a rate, it is the drive's own");
}
