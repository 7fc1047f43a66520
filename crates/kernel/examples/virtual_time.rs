//! What virtual time costs: processor time of a run through the kernel's model, beside that of the drive alone with the
//! same requests at the same times.
//!
//! ```text
//! cargo run --release -p flashwise-kernel --example virtual_time
//!                           by the clock: the fastest of five runs
//! valgrind --tool=callgrind --toggle-collect='*measured_drive*' --toggle-collect='*measured_kernel*' \
//!     target/release/examples/virtual_time drive|kernel PART OF A WORKLOAD'S NAME
//!                           in instructions, which other work on the machine does not change
//! ```

#![allow(clippy::expect_used, reason = "a call that fails ends the run")]

use std::time::{Duration, Instant};

use flashwise_block::{BlockDevice, BlockError, ByteSize, Completion, Nanos, Operation, Request};
use flashwise_kernel::{FileHandle, Kernel, KernelConfig, OpenOptions};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

/// Runs of which the fastest counts.
const ROUNDS: usize = 5;

/// A call of the drive.
enum DriveCall {
    Submit { operation: Operation, offset: ByteSize, length: ByteSize, fua: bool },
    Wait,
    Poll,
    Pause(Nanos),
}

/// A drive that records its calls.
struct Recording {
    drive: SimulatedSsd,
    calls: Option<Vec<DriveCall>>,
}

impl Recording {
    fn record(&mut self, call: impl FnOnce() -> DriveCall) {
        if let Some(calls) = &mut self.calls {
            calls.push(call());
        }
    }
}

impl BlockDevice for Recording {
    flashwise_block::forward!(drive: info now outstanding counters);

    fn submit(&mut self, request: Request) -> Result<(), BlockError> {
        let Request { operation, offset, length, fua, .. } = request;
        self.record(|| DriveCall::Submit { operation, offset, length, fua });
        self.drive.submit(request)
    }
    fn wait(&mut self) -> Result<Option<Completion>, BlockError> {
        self.record(|| DriveCall::Wait);
        self.drive.wait()
    }
    fn poll(&mut self) -> Result<Option<Completion>, BlockError> {
        let polled = self.drive.poll()?;
        if polled.is_some() {
            self.record(|| DriveCall::Poll);
        }
        Ok(polled)
    }
    fn pause(&mut self, duration: Nanos) -> Result<(), BlockError> {
        self.record(|| DriveCall::Pause(duration));
        self.drive.pause(duration)
    }
}

type Machine = Kernel<Recording>;
type Workload = (&'static str, fn(&mut Machine, FileHandle));

const PAGE: u64 = 4096;
/// Pages of the file.
const PAGES: u64 = 65536;

fn pages(count: u64) -> impl Iterator<Item = ByteSize> {
    let mut state = 7u64;
    (0..count).map(move |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ByteSize((state >> 33) % PAGES * PAGE)
    })
}

const WORKLOADS: [Workload; 5] = [
    ("random reads of 4 KiB", |kernel, file| {
        pages(20_000).for_each(|at| {
            kernel.pread(file, at, ByteSize(PAGE)).expect("pread");
        });
    }),
    ("sequential reads of 64 KiB", |kernel, file| {
        (0..PAGES / 16).for_each(|number| {
            kernel.pread(file, ByteSize(number << 16), ByteSize::kib(64)).expect("pread");
        });
    }),
    ("overwrites of 4 KiB with fdatasync", |kernel, file| {
        pages(10_000).for_each(|at| {
            kernel.pwrite(file, at, ByteSize(PAGE)).expect("pwrite");
            kernel.fdatasync(file).expect("fdatasync");
        });
    }),
    ("overwrites of 4 KiB with fsync", |kernel, file| {
        pages(10_000).for_each(|at| {
            kernel.pwrite(file, at, ByteSize(PAGE)).expect("pwrite");
            kernel.fsync(file).expect("fsync");
        });
    }),
    ("appends of 4 KiB with fdatasync", |kernel, file| {
        for number in 0..5_000 {
            kernel.pwrite(file, ByteSize((PAGES + number) * PAGE), ByteSize(PAGE)).expect("pwrite");
            kernel.fdatasync(file).expect("fdatasync");
        }
    }),
];

fn drive() -> SimulatedSsd {
    SimulatedSsd::new(DeviceConfig::preset("samsung-960-evo").expect("a preset"), 1).expect("a drive")
}

/// A file of 256 MiB that is on the drive and not in memory.
fn prepared(records: bool) -> (Machine, FileHandle) {
    let drive = Recording { drive: drive(), calls: records.then(Vec::new) };
    let mut kernel = Kernel::new(drive, KernelConfig::default()).expect("a file system");
    let file = kernel.open("f", OpenOptions::read_write().create(true)).expect("open");
    for number in 0..PAGES / 256 {
        kernel.pwrite(file, ByteSize(number << 20), ByteSize::mib(1)).expect("pwrite");
    }
    kernel.sync().expect("sync");
    kernel.drop_caches().expect("drop_caches");
    kernel.pause(Nanos::secs(1)).expect("a pause");
    (kernel, file)
}

fn fastest(mut one: impl FnMut() -> Duration) -> Duration {
    (0..ROUNDS).map(|_| one()).min().unwrap_or_default()
}

fn play(drive: &mut SimulatedSsd, calls: &[DriveCall]) {
    for call in calls {
        match call {
            DriveCall::Submit { operation, offset, length, fua } => {
                let mut request = match operation {
                    Operation::Read => Request::read(*offset, *length),
                    Operation::Write => Request::write(*offset, *length),
                    Operation::Trim => Request::trim(*offset, *length),
                    Operation::WriteZeroes => Request::write_zeroes(*offset, *length),
                    Operation::Flush => Request::flush(),
                };
                request.fua = *fua;
                drive.submit(request).expect("submit");
            }
            DriveCall::Wait => drop(drive.wait().expect("wait")),
            DriveCall::Poll => drop(drive.poll().expect("poll")),
            DriveCall::Pause(time) => drive.pause(*time).expect("pause"),
        }
    }
}

/// The drive's calls, before the workload and of it.
fn recorded(workload: fn(&mut Machine, FileHandle)) -> (Vec<DriveCall>, Vec<DriveCall>) {
    let (mut kernel, file) = prepared(true);
    let before = kernel.device().calls.as_ref().map_or(0, Vec::len);
    workload(&mut kernel, file);
    let mut calls = kernel.into_device().calls.unwrap_or_default();
    let during = calls.split_off(before);
    (calls, during)
}

#[inline(never)]
fn measured_drive(drive: &mut SimulatedSsd, calls: &[DriveCall]) -> Duration {
    let began = Instant::now();
    play(drive, calls);
    began.elapsed()
}

#[inline(never)]
fn measured_kernel(kernel: &mut Machine, file: FileHandle, workload: fn(&mut Machine, FileHandle)) -> Duration {
    let began = Instant::now();
    workload(kernel, file);
    began.elapsed()
}

fn drive_alone(before: &[DriveCall], during: &[DriveCall]) -> Duration {
    let mut drive = drive();
    play(&mut drive, before);
    measured_drive(&mut drive, during)
}

fn through_kernel(workload: fn(&mut Machine, FileHandle)) -> Duration {
    let (mut kernel, file) = prepared(false);
    measured_kernel(&mut kernel, file, workload)
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    if let Some(what) = arguments.next() {
        let part = arguments.next().expect("a part of a workload's name");
        let (_, workload) = WORKLOADS.into_iter().find(|(name, _)| name.contains(&part)).expect("no such workload");
        match what.as_str() {
            "drive" => {
                let (before, during) = recorded(workload);
                drive_alone(&before, &during);
            }
            _ => _ = through_kernel(workload),
        }
        return;
    }
    println!("{:<38}{:>10}{:>14}{:>14}{:>8}", "", "requests", "drive, µs", "kernel, µs", "ratio");
    for (name, workload) in WORKLOADS {
        let (before, during) = recorded(workload);
        let requests = during.iter().filter(|call| matches!(call, DriveCall::Submit { .. })).count();
        let alone = fastest(|| drive_alone(&before, &during));
        let through = fastest(|| through_kernel(workload));
        let each = |time: Duration| time.as_secs_f64() * 1e6 / requests.max(1) as f64;
        let ratio = through.as_secs_f64() / alone.as_secs_f64();
        println!("{name:<38}{requests:>10}{:>14.2}{:>14.2}{ratio:>8.2}", each(alone), each(through));
    }
}
