//! The drive as a file, as the programs that open it see it.

use crate::support;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use flashwise_attach::control::{self, Command, Reply, control_path};
use flashwise_attach::{
    AttachError, AttachReport, Capture, Engine, FaultCommand, LatencySpike, Pace, Range, Server, Stop,
};
use flashwise_block::{IoBuffer, Operation};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use flashwise_trace::{ReadOptions, TraceFormat, TraceReader};
use support::engine;
use tempfile::TempDir;

/// A mounted drive.
struct Mounted {
    directory: TempDir,
    control: PathBuf,
    stop: Stop,
    serving: JoinHandle<Result<AttachReport, AttachError>>,
}

impl Mounted {
    /// `None`, and why, where this machine mounts nothing for us.
    fn start(pace: Pace, capture: Option<Capture>) -> Option<Self> {
        Self::of(engine(pace, capture))
    }

    fn of(engine: Engine) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mut server = Server::new(engine).unwrap();
        if let Err(error) = server.mount(directory.path()) {
            eprintln!("{error}: not tested");
            return None;
        }
        let control = control_path(directory.path());
        server.control(&control).unwrap();
        let stop = server.stop();
        let serving = std::thread::spawn(move || server.run()?.finish());
        Some(Self { directory, control, stop, serving })
    }

    fn order(&self, order: &Command) -> Reply {
        control::send(&self.control, order).unwrap()
    }

    fn fault(&self, order: FaultCommand) {
        self.order(&Command::Fault(order));
    }

    fn open(&self, flags: i32) -> File {
        let path = self.directory.path().join("disk");
        OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).unwrap()
    }

    fn end(self) -> AttachReport {
        self.stop.request();
        let report = self.serving.join().unwrap().unwrap();
        assert_eq!(self.directory.path().read_dir().unwrap().count(), 0, "nothing is mounted any more");
        report
    }
}

fn page(seed: u8) -> IoBuffer {
    IoBuffer::copy_of(&(0..4096).map(|n| (n as u8).wrapping_mul(seed)).collect::<Vec<_>>())
}

#[test]
fn the_file_is_as_long_as_the_drive_and_keeps_what_is_written() {
    let Some(mounted) = Mounted::start(Pace::Free, None) else { return };
    let disk = mounted.open(0);
    let metadata = disk.metadata().unwrap();
    let capacity = metadata.size();
    assert!(metadata.is_file() && capacity > 1 << 30);
    let names: Vec<_> = mounted.directory.path().read_dir().unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["disk"]);
    for (seed, offset) in [(3, 0), (5, 1 << 20), (7, capacity - 4096)] {
        disk.write_all_at(&page(seed), offset).unwrap();
        let mut read = page(0);
        disk.read_exact_at(&mut read, offset).unwrap();
        assert!(read[..] == page(seed)[..], "at {offset}");
    }
    assert_eq!(disk.read_at(&mut [0; 512], capacity).unwrap(), 0, "behind the end there is nothing");
    assert_eq!(disk.write_at(&[0; 512], capacity).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(disk.write_at(&[0; 100], 0).unwrap_err().kind(), ErrorKind::InvalidInput, "no whole block");
    assert!(disk.set_len(0).is_err(), "a drive does not change its size");
    drop(disk);
    let report = mounted.end();
    assert_eq!((report.counters.host_writes, report.counters.host_reads), (3, 3));
}

#[test]
fn syncs_are_flushes_and_holes_are_trims() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let capture = Capture::start(TraceFormat::Csv, file.reopen().unwrap(), "run.csv").unwrap();
    let Some(mounted) = Mounted::start(Pace::Scaled(1.0), Some(capture)) else { return };
    let disk = mounted.open(0);
    disk.write_all_at(&page(3), 4096).unwrap();
    disk.sync_data().unwrap();
    use rustix::fs::{FallocateFlags, fallocate};
    fallocate(&disk, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 4096, 4096).unwrap();
    fallocate(&disk, FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE, 8192, 4096).unwrap();
    let mut read = page(9);
    disk.read_exact_at(&mut read, 4096).unwrap();
    assert!(read.iter().all(|&byte| byte == 0));
    drop(disk);
    mounted.end();

    let mut reader = TraceReader::open(file.path(), &ReadOptions::of(TraceFormat::Csv)).unwrap();
    let mut told = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        assert!(record.process.is_some() && record.latency.is_some());
        told.push((record.operation, record.offset.0, record.length.0));
    }
    use Operation::{Flush, Read, Trim, Write, WriteZeroes};
    let expected =
        [(Write, 4096, 4096), (Flush, 0, 0), (Trim, 4096, 4096), (WriteZeroes, 8192, 4096), (Read, 4096, 4096)];
    assert_eq!(told, expected);
}

#[test]
fn requests_of_many_threads_reach_the_drive_together() {
    // A thousand times slower than real: the threads' requests are all there long before the first is done.
    let Some(mounted) = Mounted::start(Pace::Scaled(1000.0), None) else { return };
    let disk = mounted.open(rustix::fs::OFlags::DIRECT.bits() as i32);
    std::thread::scope(|scope| {
        for n in 0..16_u64 {
            let disk = &disk;
            scope.spawn(move || disk.write_all_at(&page(n as u8), n << 20).unwrap());
        }
    });
    drop(disk);
    let report = mounted.end();
    let one = report.latency.writes.p50_ns;
    assert_eq!(report.latency.writes.count, 16);
    assert!(report.simulated_ns < 10 * one.max(1), "{} ns for 16 writes of {one} ns", report.simulated_ns);
}

#[test]
fn the_file_is_served_until_nobody_has_it_open() {
    let Some(mounted) = Mounted::start(Pace::Free, None) else { return };
    let disk = mounted.open(0);
    mounted.stop.request();
    // The file is gone from the directory, and whoever has it reads and writes on.
    let end = std::time::Instant::now() + Duration::from_secs(60);
    while mounted.directory.path().join("disk").exists() && std::time::Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    disk.write_all_at(&page(3), 0).unwrap();
    disk.sync_all().unwrap();
    drop(disk);
    let report = mounted.serving.join().unwrap().unwrap();
    assert_eq!((report.counters.host_writes, report.counters.flushes), (1, 1));
}

#[test]
fn only_an_empty_directory_is_mounted() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("mine"), "mine").unwrap();
    let mut server = Server::new(engine(Pace::Free, None)).unwrap();
    let error = server.mount(directory.path()).unwrap_err().to_string();
    assert!(error.contains("it is not empty"), "{error}");
    let error = server.mount(&directory.path().join("none")).unwrap_err().to_string();
    assert!(error.contains("give an empty directory"), "{error}");
}

#[test]
fn faults_on_demand_reach_who_reads_and_writes_the_file() {
    let Some(mounted) = Mounted::start(Pace::Scaled(1.0), None) else { return };
    let disk = mounted.open(0);
    disk.write_all_at(&page(3), 4096).unwrap();
    mounted.fault(FaultCommand {
        unreadable: vec![Range { offset_bytes: 4096, length_bytes: 4096 }],
        ..FaultCommand::default()
    });
    let mut read = page(0);
    let errno = |result: std::io::Result<usize>| result.unwrap_err().raw_os_error().unwrap();
    assert_eq!(errno(disk.read_at(&mut read, 4096)), 5, "EIO");
    disk.read_exact_at(&mut read, 0).unwrap();
    disk.write_all_at(&page(5), 4096).unwrap();
    disk.read_exact_at(&mut read, 4096).unwrap();
    assert!(read[..] == page(5)[..]);

    mounted.fault(FaultCommand { read_only: true, ..FaultCommand::default() });
    assert_eq!(errno(disk.write_at(&page(7), 4096)), 30, "EROFS");
    use rustix::fs::{FallocateFlags, fallocate};
    let punched = fallocate(&disk, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 4096, 4096);
    assert_eq!(punched, Err(rustix::io::Errno::ROFS));
    disk.sync_all().unwrap();
    disk.read_exact_at(&mut read, 4096).unwrap();
    assert!(read[..] == page(5)[..]);

    let extra = Duration::from_millis(80);
    let spike = LatencySpike { extra_ns: 80_000_000, for_ns: None, requests: None };
    mounted.fault(FaultCommand { clear: true, latency_spike: Some(spike), ..FaultCommand::default() });
    let began = Instant::now();
    disk.write_all_at(&page(9), 4096).unwrap();
    assert!(began.elapsed() >= extra, "{:?}", began.elapsed());
    mounted.fault(FaultCommand { clear: true, ..FaultCommand::default() });
    drop(disk);
    mounted.end();
}

#[test]
fn a_power_cut_takes_what_was_not_synced_and_the_file_stays() {
    let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
    (config.flash.blocks_per_plane, config.capacity_bytes) = (40, 1 << 30);
    let mut drive = SimulatedSsd::new(config, 1).unwrap();
    drive.allow_power_cuts().unwrap();
    let engine = Engine::new(drive, Pace::Free, Duration::ZERO, None, Instant::now()).unwrap();
    let Some(mounted) = Mounted::of(engine) else { return };
    let disk = mounted.open(0);
    disk.write_all_at(&page(3), 0).unwrap();
    disk.sync_data().unwrap();
    disk.write_all_at(&page(5), 1 << 20).unwrap();
    assert!(matches!(mounted.order(&Command::Cut), Reply::Cut(cut) if cut.power_cuts == 1));
    let mut read = page(0);
    disk.read_exact_at(&mut read, 0).unwrap();
    assert!(read[..] == page(3)[..], "what was synced is there");
    disk.read_exact_at(&mut read, 1 << 20).unwrap();
    assert!(read.iter().all(|&byte| byte == 0), "what was not is gone");
    drop(disk);
    mounted.end();
}
