//! Measures what the processor's part of a call takes on this machine.
//!
//! Each constant of [`ProcessorCosts`] is the difference of calls that have it and calls that do not, each the best of
//! [`ROUNDS`] means: other work on the machine only ever adds time. The file is in the page cache, so no drive takes
//! part, and it has 256 MiB, so its pages come from memory and not from the processor's caches, as a database's do. The
//! constants are those of the kernel with what it is configured with: mitigations, the processor's frequency, a virtual
//! machine.

use std::hint::black_box;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Instant;

use flashwise_block::{ByteSize, Nanos};
use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::mm::{MapFlags, ProtFlags};

use crate::PAGE;
use crate::costs::ProcessorCosts;

/// Means of which the best is taken.
pub const ROUNDS: u32 = 11;
/// Bytes of the file that is read, written and mapped.
const FILE: u64 = 256 << 20;
const PAGES: u64 = FILE / PAGE;
/// Files of the measurement take at most this share of the free space, as all scratch files do.
const SPACE_SHARE: u64 = 10;
/// Pages that a read fault of a cached file maps (`fault_around_bytes`).
const FAULT_AROUND: u64 = 16;

/// What one call takes.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredCall {
    /// The call, as a person reads it.
    pub call: &'static str,
    /// The best of the means.
    pub best_ns: f64,
    /// The middle one: how far it is from the best shows how busy the machine was.
    pub median_ns: f64,
}

/// What was measured, and what follows from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The constants.
    pub costs: ProcessorCosts,
    /// The calls that they come from.
    pub calls: Vec<MeasuredCall>,
}

/// Measures in a directory, in a file that has no name. A few seconds; call it on a machine that does nothing else.
///
/// # Errors
/// When the file would take too much of the free space, or cannot be made, written or mapped.
pub fn measure(directory: &Path) -> io::Result<Calibration> {
    let space = rustix::fs::statvfs(directory)?;
    check_space(ByteSize(space.f_bavail.saturating_mul(space.f_frsize)))?;
    let file: OwnedFd = tempfile::tempfile_in(directory)?.into();
    let mut buffer = vec![1u8; 1 << 16];
    for at in (0..FILE).step_by(buffer.len()) {
        rustix::io::pwrite(&file, &buffer, at)?;
    }
    let seek = best("lseek", 20_000, |_| rustix::fs::seek(&file, SeekFrom::Current(0)).map(drop))?;
    let byte = best("pread, 1 byte", PAGES, |_| rustix::io::pread(&file, &mut buffer[..1], 0).map(drop))?;
    let pages16 =
        best("pread, 64 KiB", PAGES / 16, |number| rustix::io::pread(&file, &mut buffer[..], number << 16).map(drop))?;
    let page = &vec![2u8; PAGE as usize];
    let write1 = best("pwrite, 4 KiB over cached pages", PAGES, |number| {
        rustix::io::pwrite(&file, page, number * PAGE).map(drop)
    })?;
    let write16 = best("pwrite, 64 KiB over cached pages", PAGES / 16, |number| {
        rustix::io::pwrite(&file, &buffer, number << 16).map(drop)
    })?;
    let new = new_pages(directory, page)?;
    let fault = faults(&file)?;
    let round = rounds_of_two_threads()?;

    let calls = [seek, byte, pages16, write1, write16, new, fault, round];
    Ok(Calibration { costs: costs(calls.each_ref().map(|call| call.best_ns)), calls: calls.into() })
}

/// What follows from the calls, in the order of [`measure`], ns.
fn costs([seek, byte, pages16, write1, write16, new, fault, round]: [f64; 8]) -> ProcessorCosts {
    let nanoseconds = |value: f64| Nanos(value.max(0.0).round() as u64);
    let over = |value: f64, base: f64, parts: f64| (value - base).max(0.0) / parts;
    let read_page = over(pages16, byte, 16.0);
    let write_page = over(write16, write1, 15.0);
    ProcessorCosts {
        system_call: nanoseconds(seek),
        read: nanoseconds(over(byte, seek, 1.0)),
        read_page: nanoseconds(read_page),
        write: nanoseconds(over(write1, seek + write_page, 1.0)),
        write_page: nanoseconds(write_page),
        new_page: nanoseconds(over(new, write1, 1.0)),
        fault: nanoseconds(fault),
        wake_up: nanoseconds(round / 2.0),
    }
}

fn check_space(free: ByteSize) -> io::Result<()> {
    if free.0 / SPACE_SHARE >= FILE {
        return Ok(());
    }
    let (file, least) = (ByteSize(FILE), ByteSize(FILE * SPACE_SHARE));
    Err(io::Error::other(format!(
        "the measurement writes a file of {file} and may take at most 10 % of the free space, so {least} must be free \
         here, but only {free} are; give --directory on another file system"
    )))
}

/// The best of the means of `count` calls.
fn best(
    call: &'static str,
    count: u64,
    mut one: impl FnMut(u64) -> rustix::io::Result<()>,
) -> io::Result<MeasuredCall> {
    let mut means = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        for number in 0..count {
            one(number)?;
        }
        means.push(began.elapsed().as_nanos() as f64 / count as f64);
    }
    Ok(summary(call, means))
}

fn summary(call: &'static str, mut means: Vec<f64>) -> MeasuredCall {
    means.sort_by(f64::total_cmp);
    let best_ns = means.first().copied().unwrap_or(0.0);
    MeasuredCall { call, best_ns, median_ns: means.get(means.len() / 2).copied().unwrap_or(best_ns) }
}

/// `pwrite` to a file that has no pages yet.
fn new_pages(directory: &Path, page: &[u8]) -> io::Result<MeasuredCall> {
    const COUNT: u64 = 4096;
    let mut means = Vec::new();
    for _ in 0..ROUNDS {
        let file = tempfile::tempfile_in(directory)?;
        let began = Instant::now();
        for number in 0..COUNT {
            rustix::io::pwrite(&file, page, number * PAGE)?;
        }
        means.push(began.elapsed().as_nanos() as f64 / COUNT as f64);
    }
    Ok(summary("pwrite, 4 KiB to a new file", means))
}

/// Loads from a mapped, cached file, far enough from each other that each is a fault.
fn faults(file: &OwnedFd) -> io::Result<MeasuredCall> {
    let step = (FAULT_AROUND * PAGE) as usize;
    let mut means = Vec::new();
    for _ in 0..ROUNDS {
        // SAFETY: a new map at an address of the kernel's choice, of a file that nobody else has.
        let start = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), FILE as usize, ProtFlags::READ, MapFlags::SHARED, file.as_fd(), 0)
        }?;
        let began = Instant::now();
        for at in (0..FILE as usize).step_by(step) {
            // SAFETY: the address is within the map.
            black_box(unsafe { start.cast::<u8>().add(at).read_volatile() });
        }
        let elapsed = began.elapsed();
        // SAFETY: the map was made with this length, and no reference into it exists.
        unsafe { rustix::mm::munmap(start, FILE as usize) }?;
        means.push(elapsed.as_nanos() as f64 / (FILE as usize / step) as f64);
    }
    Ok(summary("a read fault of a cached, mapped file", means))
}

/// A byte through a pipe to another thread, and one back: two wake-ups.
fn rounds_of_two_threads() -> io::Result<MeasuredCall> {
    const COUNT: u64 = 1000;
    let (there_out, there_in) = rustix::pipe::pipe()?;
    let (back_out, back_in) = rustix::pipe::pipe()?;
    let echo = std::thread::spawn(move || -> rustix::io::Result<()> {
        let mut byte = [0u8];
        while rustix::io::read(&there_out, &mut byte)? == 1 {
            rustix::io::write(&back_in, &byte)?;
        }
        Ok(())
    });
    let result = best("a byte to another thread and back", COUNT, |_| {
        let mut byte = [3u8];
        rustix::io::write(&there_in, &byte)?;
        rustix::io::read(&back_out, &mut byte).map(drop)
    });
    drop(there_in);
    // What it found wrong, the other end has reported.
    let _ = echo.join();
    result
}

/// What the constants depend on, as the running kernel reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineNotes {
    /// `uname -r`
    pub kernel: String,
    /// The processor's model.
    pub processor: String,
    /// What `/proc/cpuinfo` gives as its frequency, MHz; a virtual machine's is the host's word.
    pub mhz: String,
    /// Mitigations that are on, each with what it does.
    pub mitigations: Vec<String>,
}

/// Reads the notes; what cannot be read stays empty.
pub fn machine_notes() -> MachineNotes {
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = text("/proc/cpuinfo");
    let field = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
    };
    let mut mitigations: Vec<String> = std::fs::read_dir("/sys/devices/system/cpu/vulnerabilities")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let state = std::fs::read_to_string(entry.path()).ok()?;
            let what = state.trim().strip_prefix("Mitigation: ")?;
            Some(format!("{}: {what}", entry.file_name().to_string_lossy()))
        })
        .collect();
    mitigations.sort_unstable();
    MachineNotes {
        kernel: text("/proc/sys/kernel/osrelease").trim().to_owned(),
        processor: field("model name"),
        mhz: field("cpu MHz"),
        mitigations,
    }
}

/// Whether a directory is on ext4 or XFS, whose calls are to be measured; a file system in memory takes other paths.
///
/// # Errors
/// When the directory cannot be opened.
pub fn is_on_disk_file_system(directory: &Path) -> io::Result<bool> {
    let directory = rustix::fs::open(directory, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    flashwise_block::is_on_ext_or_xfs(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_with_little_free_space_is_left_alone() {
        assert!(check_space(ByteSize(FILE * SPACE_SHARE)).is_ok());
        let error = check_space(ByteSize::mib(300)).unwrap_err().to_string();
        assert!(error.contains("so 2.5 GiB must be free here, but only 300 MiB are"), "{error}");
    }

    #[test]
    fn constants_are_what_calls_take_beyond_each_other_and_never_negative() {
        let found = costs([100.0, 150.0, 950.0, 400.0, 2_200.0, 900.0, 600.0, 8_000.0]);
        let expected = ProcessorCosts {
            system_call: Nanos(100),
            read: Nanos(50),
            read_page: Nanos(50),
            write: Nanos(180),
            write_page: Nanos(120),
            new_page: Nanos(500),
            fault: Nanos(600),
            wake_up: Nanos(4_000),
        };
        assert_eq!(found, expected);
        // On a machine where what does less took longer.
        let disturbed = costs([400.0, 300.0, 200.0, 200.0, 100.0, 100.0, 50.0, 60.0]);
        let none = Nanos(0);
        assert_eq!([disturbed.read, disturbed.read_page, disturbed.write, disturbed.write_page], [none; 4]);
        assert_eq!((disturbed.new_page, disturbed.wake_up), (none, Nanos(30)));
    }

    #[test]
    fn each_call_is_measured_and_the_file_of_constants_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let Calibration { costs: found, calls } = measure(directory.path()).unwrap();
        assert_eq!(calls.len(), 8);
        assert!(calls.iter().all(|call| call.best_ns > 0.0 && call.best_ns <= call.median_ns), "{calls:?}");
        let best: Vec<f64> = calls.iter().map(|call| call.best_ns).collect();
        assert_eq!(found, costs(best.try_into().unwrap()));
        assert!(found.system_call > Nanos(0) && found.wake_up > Nanos(0), "{found:?}");
        assert_eq!(ProcessorCosts::from_toml(&found.to_toml(), "costs.toml").unwrap(), found);
        assert!(!machine_notes().kernel.is_empty());
    }
}
