//! Requirements for both engines, and the device's behaviour with an engine that fails.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use super::*;
use crate::execute;

const MIB: ByteSize = ByteSize::mib(1);

/// A small scratch file, or `None` with a message if the machine does not support one.
fn scratch() -> Option<ScratchFile> {
    let scratch = ScratchFile::create(&std::env::temp_dir(), ByteSize::mib(64));
    match scratch.and_then(|scratch| scratch.logical_block().map(|_| scratch)) {
        Ok(scratch) => Some(scratch),
        Err(BlockError::Refused(why)) => {
            eprintln!("SKIPPED, set TMPDIR to a directory that works: {why}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The device on each engine that this machine has.
fn devices() -> Vec<FileDevice> {
    let why = io::Error::from_raw_os_error(libc::EPERM);
    let ring = scratch().map(|scratch| FileDevice::on_scratch_file(scratch).unwrap());
    let threads = scratch().map(|scratch| FileDevice::over_threads(Medium::Scratch(scratch), &why).unwrap());
    if ring.as_ref().is_some_and(|device| device.info().name.contains("no io_uring")) {
        eprintln!("io_uring itself is NOT TESTED: {}", ring.as_ref().unwrap().info().name);
    }
    ring.into_iter().chain(threads).collect()
}

fn drain(device: &mut FileDevice) -> Vec<Completion> {
    std::iter::from_fn(|| device.wait().unwrap()).collect()
}

/// One step of the random test, in blocks of 4 KiB within the first MiB.
#[derive(Clone, Debug)]
enum Step {
    Write { block: usize, blocks: usize, value: u8, fua: bool },
    Trim { block: usize, blocks: usize },
    Read { block: usize, blocks: usize },
    Flush,
}

const BLOCKS: usize = 256;

fn step() -> impl Strategy<Value = Step> {
    let place = || (0..BLOCKS, 1..=16usize).prop_map(|(block, blocks)| (block, blocks.min(BLOCKS - block)));
    prop_oneof![
        4 => (place(), any::<u8>(), any::<bool>())
            .prop_map(|((block, blocks), value, fua)| Step::Write { block, blocks, value, fua }),
        1 => place().prop_map(|(block, blocks)| Step::Trim { block, blocks }),
        4 => place().prop_map(|(block, blocks)| Step::Read { block, blocks }),
        1 => Just(Step::Flush),
    ]
}

/// Runs batches with everything in a batch in flight at once; a step that would race with an earlier one of its batch
/// is left out.
fn reads_return_what_was_written(device: &mut FileDevice, batches: &[Vec<Step>]) {
    let at = |block: usize| ByteSize(block as u64 * 4096);
    // Each block holds one repeated value and its own number, so that a misplaced one is noticed.
    let content = |block: usize, value: u8| -> Vec<u8> {
        (0..4096).map(|i| if i % 2 == 0 { value } else { block as u8 }).collect()
    };
    let mut model: Vec<Option<u8>> = vec![None; BLOCKS];
    execute(device, Request::trim(ByteSize(0), at(BLOCKS))).unwrap();
    for batch in batches {
        let before = model.clone();
        let mut busy = [false; BLOCKS];
        let mut expected = VecDeque::new();
        for (tag, step) in batch.iter().enumerate() {
            let (block, blocks) = match *step {
                Step::Write { block, blocks, .. } | Step::Trim { block, blocks } | Step::Read { block, blocks } => {
                    (block, blocks)
                }
                Step::Flush => (0, 0),
            };
            let range = block..block + blocks;
            if busy[range.clone()].contains(&true) {
                continue;
            }
            busy[range.clone()].fill(true);
            let mut data = None;
            let request = match *step {
                Step::Write { value, fua, .. } => {
                    model[range.clone()].fill(Some(value));
                    let payload: Vec<u8> = range.flat_map(|block| content(block, value)).collect();
                    let request = Request::write(at(block), at(blocks)).with_buffer(IoBuffer::copy_of(&payload));
                    data = Some(payload);
                    if fua { request.with_fua() } else { request }
                }
                Step::Trim { .. } => {
                    model[range].fill(None);
                    Request::trim(at(block), at(blocks))
                }
                Step::Read { .. } => {
                    let stored = |block: usize| before[block].map_or(vec![0; 4096], |value| content(block, value));
                    data = Some(range.flat_map(stored).collect());
                    Request::read(at(block), at(blocks)).with_buffer(IoBuffer::zeroed(blocks * 4096))
                }
                Step::Flush => Request::flush(),
            };
            device.submit(request.tagged(tag as u64)).unwrap();
            expected.push_back((tag as u64, data));
        }
        assert_eq!(device.outstanding(), expected.len());
        let mut completions = drain(device);
        completions.sort_by_key(|completion| completion.tag);
        for (completion, (tag, data)) in completions.into_iter().zip(expected) {
            assert_eq!(completion.tag, tag);
            assert_eq!(completion.result, Ok(()));
            assert!(completion.buffer.as_deref() == data.as_deref(), "wrong data in {completion:?}");
        }
        assert_eq!(device.outstanding(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_batches_read_back_what_was_written_on_both_engines(
        batches in prop::collection::vec(prop::collection::vec(step(), 1..24), 1..6),
    ) {
        for mut device in devices() {
            reads_return_what_was_written(&mut device, &batches);
        }
    }
}

#[test]
fn io_goes_past_the_page_cache() {
    let Some(scratch) = scratch() else { return };
    let flags = rustix::fs::fcntl_getfl(scratch.file()).unwrap();
    assert!(flags.contains(rustix::fs::OFlags::DIRECT | rustix::fs::OFlags::RDWR), "{flags:?}");
}

#[test]
fn both_engines_take_more_requests_than_they_have_slots() {
    for mut device in devices() {
        let depth = device.info().queue_depth as u64;
        for tag in 0..3 * depth {
            device.submit(Request::write(ByteSize::kib(4) * tag, ByteSize::kib(4)).tagged(tag)).unwrap();
        }
        assert_eq!(device.outstanding() as u64, 3 * depth);
        let mut tags: Vec<_> = drain(&mut device).iter().map(|completion| completion.tag).collect();
        tags.sort_unstable();
        assert_eq!(tags, (0..3 * depth).collect::<Vec<_>>());
        assert_eq!(device.counters().host_bytes_written, ByteSize::kib(4) * (3 * depth));
    }
}

#[test]
fn a_pause_lasts_as_asked_and_completions_within_it_are_not_stamped_at_its_end() {
    for mut device in devices() {
        let pause = Nanos::millis(400);
        let before = device.now();
        device.pause(Nanos::millis(5)).unwrap();
        assert!(device.now().since(before) >= Nanos::millis(5));
        device.submit(Request::read(ByteSize(0), ByteSize::kib(4))).unwrap();
        device.pause(pause).unwrap();
        let paused_until = device.now();
        let completion = device.wait().unwrap().unwrap();
        assert!(paused_until.since(completion.submitted_at) >= pause);
        assert!(completion.latency() < pause, "{} on {}", completion.latency(), device.info().name);
    }
}

#[test]
fn dropping_a_busy_device_leaves_no_writes_to_memory_behind() {
    for _ in 0..10 {
        for mut device in devices() {
            for block in 0..100 {
                device.submit(Request::write(ByteSize::kib(64) * block, ByteSize::kib(64))).unwrap();
            }
            drain(&mut device);
            for block in 0..100 {
                let read = Request::read(ByteSize::kib(64) * block, ByteSize::kib(64));
                let read = if block % 2 == 0 { read.with_buffer(IoBuffer::zeroed(64 << 10)) } else { read };
                device.submit(read).unwrap();
            }
            drop(device);
            // Very likely the same memory again.
            let mut buffers: Vec<_> = (0..100).map(|_| IoBuffer::zeroed(64 << 10)).collect();
            buffers.iter_mut().for_each(|buffer| buffer.fill(0xa5));
            std::thread::sleep(Duration::from_millis(2));
            assert!(buffers.iter().all(|buffer| buffer.iter().all(|&byte| byte == 0xa5)));
        }
    }
}

/// An engine that does nothing and completes as configured, when it is waited for.
struct Scripted {
    answer: Box<dyn FnMut(&Job) -> i32 + Send>,
    under_way: Arc<Mutex<Vec<(usize, Job)>>>,
    broken: Arc<AtomicBool>,
}

impl Engine for Scripted {
    fn depth(&self) -> usize {
        8
    }

    unsafe fn start(&mut self, slot: usize, job: Job) -> io::Result<()> {
        self.under_way.lock().unwrap().push((slot, job));
        Ok(())
    }

    fn reap(&mut self, patience: Patience, done: &mut Vec<Done>) -> io::Result<()> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(io::Error::from_raw_os_error(libc::EBADF));
        }
        if patience != Patience::Now {
            for (slot, job) in self.under_way.lock().unwrap().drain(..) {
                done.push(Done { slot, result: (self.answer)(&job), at: Instant::now() });
            }
        }
        if let (Patience::Until(until), true) = (patience, done.is_empty()) {
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
        }
        Ok(())
    }
}

type UnderWay = Arc<Mutex<Vec<(usize, Job)>>>;

fn scripted(answer: impl FnMut(&Job) -> i32 + Send + 'static) -> Option<(FileDevice, UnderWay, Arc<AtomicBool>)> {
    let (under_way, broken) = (UnderWay::default(), Arc::<AtomicBool>::default());
    let engine = Scripted { answer: Box::new(answer), under_way: Arc::clone(&under_way), broken: Arc::clone(&broken) };
    Some((FileDevice::with_engine(Medium::Scratch(scratch()?), Box::new(engine), None).unwrap(), under_way, broken))
}

fn all_well(job: &Job) -> i32 {
    match job {
        Job::Read { length, .. } | Job::Write { length, .. } => *length as i32,
        Job::Punch { .. } | Job::Sync => 0,
    }
}

#[test]
fn the_engine_has_as_many_requests_at_once_as_it_has_slots_and_the_rest_waits_in_the_host_queue() {
    let Some((mut device, under_way, _)) = scripted(all_well) else { return };
    for block in 0..20 {
        device.submit(Request::read(ByteSize::kib(4) * block, ByteSize::kib(4)).tagged(block)).unwrap();
        assert_eq!(under_way.lock().unwrap().len() as u64, (block + 1).min(8));
    }
    assert_eq!(device.outstanding(), 20);
    assert_eq!(device.wait().unwrap().unwrap().tag, 0);
    assert_eq!(under_way.lock().unwrap().len(), 8);
    assert_eq!(device.outstanding(), 19);
    let tags: Vec<_> = drain(&mut device).iter().map(|completion| completion.tag).collect();
    assert_eq!(tags, (1..20).collect::<Vec<_>>());
}

#[test]
fn a_short_transfer_is_an_error_that_says_where_and_is_not_counted() {
    let Some((mut device, ..)) = scripted(|_| 512) else { return };
    device.submit(Request::read(MIB, ByteSize::kib(4)).with_buffer(IoBuffer::zeroed(4096))).unwrap();
    let completion = device.wait().unwrap().unwrap();
    let error = completion.result.unwrap_err().to_string();
    assert!(error.starts_with("read of 4 KiB at byte 1048576 of the scratch file in "), "{error}");
    assert!(error.contains("only 512 of 4096 bytes"), "{error}");
    assert_eq!(completion.buffer.unwrap().len(), 4096);
    assert_eq!(device.counters(), DeviceCounters::default());
}

#[test]
fn what_the_kernel_reports_reaches_the_completion_with_its_number() {
    for errno in [libc::EIO, libc::ENOSPC, libc::EOPNOTSUPP] {
        let Some((mut device, ..)) = scripted(move |_| -errno) else { return };
        for request in [Request::trim(MIB, MIB), Request::write(MIB, MIB)] {
            match execute(&mut device, request) {
                Err(BlockError::Os { errno: told, .. }) => assert_eq!(told, errno),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn after_a_failed_flush_no_later_flush_or_fua_write_claims_success() {
    let mut first = true;
    let fail_the_first_flush = move |job: &Job| match job {
        Job::Sync if mem::take(&mut first) => -libc::EIO,
        job => all_well(job),
    };
    let Some((mut device, ..)) = scripted(fail_the_first_flush) else { return };
    let write = || Request::write(MIB, MIB);
    execute(&mut device, write().with_fua()).unwrap();
    for request in [Request::flush(), Request::flush(), write().with_fua()] {
        let error = execute(&mut device, request).unwrap_err();
        assert!(matches!(error, BlockError::Os { errno: libc::EIO, .. }), "{error:?}");
    }
    execute(&mut device, write()).unwrap();
    execute(&mut device, Request::read(MIB, MIB)).unwrap();
}

#[test]
fn a_lost_device_says_so_to_every_call_and_can_be_dropped() {
    let Some((mut device, _, broken)) = scripted(all_well) else { return };
    device.submit(Request::write(ByteSize(0), MIB)).unwrap();
    device.submit(Request::read(ByteSize(0), MIB)).unwrap();
    broken.store(true, Ordering::Relaxed);
    let lost = device.wait().unwrap_err();
    assert!(lost.to_string().contains("open the device again"), "{lost}");
    broken.store(false, Ordering::Relaxed);
    assert_eq!(device.wait().unwrap_err(), lost);
    assert_eq!(device.submit(Request::flush()).unwrap_err(), lost);
    assert_eq!(device.pause(Nanos(1_000_000)).unwrap_err(), lost);
    broken.store(true, Ordering::Relaxed);
}

#[test]
fn a_request_that_never_comes_back_ends_the_device_after_the_time_limit_and_not_the_program() {
    let limit = Nanos::millis(50);
    let Some((device, under_way, _)) = scripted(all_well) else { return };
    let mut device = device.with_time_limit(limit);
    device.submit(Request::read(ByteSize(0), MIB).tagged(1)).unwrap();
    device.submit(Request::write(MIB, MIB).tagged(2)).unwrap();
    // The read is forgotten, the write completes.
    under_way.lock().unwrap().retain(|(_, job)| matches!(job, Job::Write { .. }));
    assert_eq!(device.wait().unwrap().unwrap().tag, 2);
    let before = device.now();
    let lost = device.wait().unwrap_err();
    assert!(matches!(lost, BlockError::TimedOut { limit: told, .. } if told == limit), "{lost:?}");
    assert!(lost.to_string().contains("did not complete within 50 ms"), "{lost}");
    assert!(device.now().since(before) < Nanos::secs(20));
    for later in [device.submit(Request::flush()), device.wait().map(drop), device.pause(Nanos(1))] {
        assert_eq!(later, Err(lost.clone()));
    }
    drop(device);
}

#[test]
fn one_request_that_hangs_is_noticed_although_others_complete_all_the_time() {
    let Some((device, under_way, _)) = scripted(all_well) else { return };
    let mut device = device.with_time_limit(Nanos::millis(30));
    device.submit(Request::read(ByteSize(0), MIB).tagged(7)).unwrap();
    under_way.lock().unwrap().clear();
    let mut completed = 0;
    let lost = loop {
        let answer = device.submit(Request::read(MIB, MIB)).and_then(|()| device.wait());
        match answer {
            Ok(completion) => assert_eq!(completion.unwrap().tag, 0),
            Err(lost) => break lost,
        }
        completed += 1;
        assert!(device.now() < Nanos::secs(20), "not noticed");
    };
    assert!(matches!(lost, BlockError::TimedOut { .. }), "{lost:?}");
    assert!(completed > 0);
}

#[test]
fn a_thread_whose_system_call_hangs_does_not_hold_up_the_drop() {
    let Some(scratch) = scratch() else { return };
    let mut threads = Threads::new(scratch.file());
    // Read from a pipe without a writer.
    let (reader, _writer) = io::pipe().unwrap();
    let mut stuck = Threads::new(Arc::new(reader.into()));
    let memory = IoBuffer::zeroed(4096);
    let start = memory.as_ptr().cast_mut();
    // SAFETY: the memory is leaked below.
    unsafe { stuck.start(0, Job::Read { start, length: 4096, offset: 0 }).unwrap() };
    mem::forget(memory);
    let mut done = Vec::new();
    stuck.reap(Patience::Until(Instant::now() + Duration::from_millis(20)), &mut done).unwrap();
    drop(stuck);
    // SAFETY: a flush has no memory.
    unsafe { threads.start(0, Job::Sync).unwrap() };
    while done.is_empty() {
        threads.reap(Patience::Until(Instant::now() + Duration::from_secs(1)), &mut done).unwrap();
    }
    drop(threads);
}

#[test]
fn a_file_that_shrinks_is_told_as_that() {
    for mut device in devices() {
        rustix::fs::ftruncate(device.medium.file(), MIB.0).unwrap();
        let error = execute(&mut device, Request::read(MIB * 2, MIB)).unwrap_err().to_string();
        assert!(error.contains("it has shrunk from 64 MiB to 1 MiB"), "{error}");
        execute(&mut device, Request::read(ByteSize(0), MIB)).unwrap();
    }
}

#[test]
fn a_file_that_is_there_is_placed_or_told_why_not_and_stays_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    std::fs::write(&path, vec![7; 100_000]).unwrap();
    match crate::file_extents(&path) {
        Ok(map) => assert!(map.to_drive(ByteSize(99_999)).is_some()),
        Err(why) => assert!(!why.to_string().is_empty()),
    }
    assert_eq!(std::fs::read(&path).unwrap(), vec![7; 100_000]);
    assert!(crate::file_extents(directory.path()).unwrap_err().to_string().ends_with("it is not a regular file"));
    assert!(crate::file_extents(&path.with_extension("none")).is_err());
}
