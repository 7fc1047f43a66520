//! A program on a file, call after call.

use std::path::Path;

use flashwise_block::{ByteSize, Nanos, Silent};
use flashwise_kernel::job::{FileJob, FileRun, JobError, SyncEvery, run};
use flashwise_kernel::{FileSystemKind, Kernel, KernelConfig};
use flashwise_trace::workload::{Access, Flow, Pacing, Size, Synthetic};

use crate::support::TestDrive;

const KIB: u64 = 1024;

fn flow(access: Access, read_share: f64, requests: u64) -> Flow {
    let mut synthetic = Synthetic::new(access, Size::fixed(4 * KIB), Pacing::Closed { queue_depth: 1, think_ns: 0 });
    synthetic.read_share = read_share;
    Flow::synthetic("job", requests, synthetic)
}

fn run_on(memory: ByteSize, flow: &Flow, job: FileJob) -> Result<FileRun, JobError> {
    let drive = TestDrive::new(ByteSize::mib(400)).with_latencies(Nanos::micros(80), Nanos::micros(700));
    let config = KernelConfig { file_system: FileSystemKind::Ext4, memory, ..KernelConfig::default() };
    let mut kernel = Kernel::new(drive, config).unwrap();
    run(&mut kernel, &job, ("test", flow, 1), Path::new(""), &mut Silent)
}

const PLAIN: FileJob = FileJob { size: ByteSize::mib(8), direct: false, sync: None };

#[test]
fn a_file_that_fits_the_cache_is_read_from_the_drive_once() {
    let flow = flow(Access::Random, 1.0, 20_000);
    let large = run_on(ByteSize::mib(64), &flow, PLAIN).unwrap();
    assert!(large.kernel.pages_read <= 2048 && large.kernel.hits > 17_000, "{:?}", large.kernel);
    assert_eq!((large.reads.count, large.bytes_read), (20_000, 20_000 * 4 * KIB));
    let small = run_on(ByteSize::mib(2), &flow, PLAIN).unwrap();
    assert!(small.elapsed_ns > 5 * large.elapsed_ns, "{} and {}", small.elapsed_ns, large.elapsed_ns);
    assert!(small.kernel.evicted > 10_000);
}

#[test]
fn a_stream_is_read_in_long_requests_and_around_the_cache_in_its_own() {
    let flow = flow(Access::Sequential, 1.0, 2048);
    let buffered = run_on(ByteSize::mib(64), &flow, PLAIN).unwrap();
    assert!(buffered.drive.host_reads < 100, "{}", buffered.drive.host_reads);
    let direct = run_on(ByteSize::mib(64), &flow, FileJob { direct: true, ..PLAIN }).unwrap();
    assert_eq!((direct.drive.host_reads, direct.kernel.hits), (2048, 0));
    assert!(direct.elapsed_ns > 2 * buffered.elapsed_ns);
}

#[test]
fn each_sync_is_seen_and_flushes_the_drive() {
    let flow = flow(Access::Random, 0.0, 100);
    let synced = run_on(ByteSize::mib(64), &flow, FileJob { sync: Some(SyncEvery::Fdatasync(4)), ..PLAIN }).unwrap();
    assert_eq!((synced.writes.count, synced.syncs.count, synced.drive.flushes), (100, 25, 25));
    assert!(synced.syncs.p50_ns > 700_000 && synced.writes.p50_ns < 100_000);
    let unsynced = run_on(ByteSize::mib(64), &flow, PLAIN).unwrap();
    assert_eq!((unsynced.syncs.count, unsynced.drive.host_writes), (0, 0), "all is in the page cache");
}

#[test]
fn a_run_ends_at_its_time_and_is_the_same_each_time() {
    let mut flow = flow(Access::Random, 0.5, 1_000_000);
    flow.duration_ns = Some(Nanos::millis(20).0);
    let ended = run_on(ByteSize::mib(4), &flow, PLAIN).unwrap();
    assert!(ended.reads.count + ended.writes.count < 1_000_000);
    assert_eq!(ended, run_on(ByteSize::mib(4), &flow, PLAIN).unwrap());
}

#[test]
fn a_file_that_cannot_be_is_refused() {
    let flow = flow(Access::Random, 1.0, 10);
    for size in [ByteSize(0), ByteSize(5000)] {
        let refused = run_on(ByteSize::mib(4), &flow, FileJob { size, ..PLAIN }).unwrap_err().to_string();
        assert!(refused.contains("multiple of 4 KiB"), "{refused}");
    }
    let full = run_on(ByteSize::mib(4), &flow, FileJob { size: ByteSize::gib(1), ..PLAIN }).unwrap_err().to_string();
    assert!(full.contains("no space left"), "{full}");
}
