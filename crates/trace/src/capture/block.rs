//! Through the kernel's block events: what one drive gets, of every process, with root.
//!
//! A buffer of its own (`instances/`) is made below tracefs, so that nobody else's tracing is disturbed; its events
//! `block_rq_issue` and `block_rq_complete` are filtered to the one drive, turned on while the command runs, and read
//! out of its `trace_pipe` all the time. At the end the events are turned off and the buffer is removed, also after a
//! failure. What is still dirty in the page cache then has not reached the drive, and is not in the trace.
//!
//! Source: the kernel's documentation, `trace/ftrace.rst` (instances, `trace_pipe`) and `trace/events.rst` (filters);
//! the device number in a filter is major × 2^20 + minor.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use flashwise_block::process::is_absent;
use flashwise_block::whole_drive;

use super::ending::Started;
use super::{CaptureError, TracedCommand};

/// Where tracefs is mounted, newest place first.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// KiB of a core's buffer: some 100,000 events.
const BUFFER_KIB: &str = "8192";
/// Names of our instances start so; the numbers of the process and of the instance follow.
const PREFIX: &str = "flashwise-";
/// How long an empty buffer is left alone.
const PAUSE: Duration = Duration::from_millis(20);

/// A drive by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drive {
    /// Number of the driver.
    pub major: u32,
    /// Number of the drive.
    pub minor: u32,
}

impl Drive {
    /// The drive that a device node or a file is on: the whole one, also of a partition.
    ///
    /// # Errors
    /// When it is on none.
    pub fn of(path: &Path) -> Result<Self, CaptureError> {
        let failed = |reason: String| CaptureError::NoDrive { path: path.to_owned(), reason };
        let whole = whole_drive(path).map_err(|error| failed(error.to_string()))?;
        let text = fs::read_to_string(whole.join("dev")).map_err(|error| failed(error.to_string()))?;
        let parsed = text.trim().split_once(':').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        let (major, minor) =
            parsed.ok_or_else(|| failed(format!("the kernel reports an invalid device number '{}'", text.trim())))?;
        Ok(Self { major, minor })
    }

    fn filter(self) -> String {
        format!("dev == {}", (u64::from(self.major) << 20) + u64::from(self.minor))
    }
}

/// A buffer of our own below tracefs; it is removed when dropped.
struct Instance {
    path: PathBuf,
}

impl Instance {
    #[allow(
        clippy::disallowed_methods,
        reason = "an instance of the kernel's tracing file system, and a file in a directory of the caller's own"
    )]
    fn create() -> Result<Self, CaptureError> {
        let has_events = |place: &&&str| Path::new(place).join("events/block").is_dir();
        let missing = |path: &Path, error| CaptureError::NoEvents { path: path.to_owned(), error };
        let place = PLACES.iter().find(has_events).map(Path::new);
        let place = place.ok_or_else(|| missing(Path::new(PLACES[0]), io::ErrorKind::NotFound.into()))?;
        Self::create_in(&place.join("instances"))
    }

    #[allow(clippy::disallowed_methods, reason = "an instance of the kernel's tracing file system")]
    fn create_in(instances: &Path) -> Result<Self, CaptureError> {
        sweep(instances);
        // A name is taken by another capture of this process, or by a dead process that had its number.
        let mut number = 0_u32;
        loop {
            let path = instances.join(format!("{PREFIX}{}.{number}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(CaptureError::NoEvents { path, error }),
            }
        }
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "an instance of the kernel's tracing file system, and a file in a directory of the caller's own"
    )]
    fn set(&self, name: &str, value: &str) -> Result<(), CaptureError> {
        let path = self.path.join(name);
        fs::write(&path, value).map_err(|error| CaptureError::NoEvents { path, error })
    }

    fn switch(&self, on: bool) -> Result<(), CaptureError> {
        let value = if on { "1" } else { "0" };
        for event in ["block_rq_issue", "block_rq_complete"] {
            self.set(&format!("events/block/{event}/enable"), value)?;
        }
        Ok(())
    }

    /// The events, without waiting for more of them.
    fn pipe(&self) -> Result<File, CaptureError> {
        let path = self.path.join("trace_pipe");
        let mut options = fs::OpenOptions::new();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, rustix::fs::OFlags::NONBLOCK.bits() as i32);
        options.read(true).open(&path).map_err(|error| CaptureError::NoEvents { path, error })
    }
}

/// Removes instances of processes that were killed: each takes memory, and its events slow down every request. The
/// kernel refuses to remove one that somebody reads, such as that of a process of another container.
#[allow(clippy::disallowed_methods, reason = "an instance of the kernel's tracing file system, left by a dead process")]
fn sweep(instances: &Path) {
    for entry in fs::read_dir(instances).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('.').next()?.parse::<u32>().ok());
        if process.is_some_and(is_absent) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

impl Drop for Instance {
    #[allow(
        clippy::disallowed_methods,
        reason = "an instance of the kernel's tracing file system, and a file in a directory of the caller's own"
    )]
    fn drop(&mut self) {
        // Where it cannot be removed it is turned off, and costs its buffer until the machine is restarted.
        let _ = self.switch(false);
        let _ = fs::remove_dir(&self.path);
    }
}

/// Runs a command and leaves what a drive was asked meanwhile, by anybody, in `output`; gives how the command ended.
///
/// # Errors
/// When there are no block events, or the command cannot be started.
#[allow(
    clippy::disallowed_methods,
    reason = "an instance of the kernel's tracing file system, and a file in a directory of the caller's own"
)]
pub fn capture(traced: &TracedCommand, drive: Drive, output: &Path) -> Result<ExitStatus, CaptureError> {
    traced.program()?;
    let failed = |error| CaptureError::Output { path: output.to_owned(), error };
    let mut file = io::BufWriter::new(File::create(output).map_err(failed)?);
    // A trace without events is a trace too.
    writeln!(file, "# tracer: nop").map_err(failed)?;
    let instance = Instance::create()?;
    instance.set("buffer_size_kb", BUFFER_KIB)?;
    for event in ["block_rq_issue", "block_rq_complete"] {
        instance.set(&format!("events/block/{event}/filter"), &drive.filter())?;
    }
    let pipe = instance.pipe()?;
    instance.switch(true)?;
    let ended = Arc::new(AtomicBool::new(false));
    let reader = thread::spawn({
        let ended = Arc::clone(&ended);
        move || drain(pipe, file, &ended)
    });
    let mut command = Command::new(&traced.command[0]);
    command.args(&traced.command[1..]);
    let status = traced.run(command, Started::Command);
    let _ = instance.switch(false);
    ended.store(true, Ordering::Release);
    let drained = reader.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
    let status = status?;
    drained.map_err(failed)?;
    Ok(status)
}

/// Copies events until there are no more and the command has ended.
fn drain(mut pipe: File, mut file: impl Write, ended: &AtomicBool) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let is_last = ended.load(Ordering::Acquire);
        match pipe.read(&mut buffer) {
            Ok(0) if is_last => break,
            Ok(0) => thread::sleep(PAUSE),
            Ok(count) => file.write_all(&buffer[..count])?,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && is_last => break,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(PAUSE),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_filtered_by_the_number_of_the_drive() {
        assert_eq!(Drive { major: 259, minor: 3 }.filter(), format!("dev == {}", 259 * 1_048_576 + 3));
    }

    #[test]
    fn instances_of_dead_processes_are_swept_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let own = format!("{PREFIX}{}", std::process::id());
        // No process has a number above 2^22.
        for name in ["flashwise-4294967295", "flashwise-4294967295.1", &own, "flashwise-mine", "other"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        sweep(folder.path());
        let left = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut left: Vec<_> = left.collect();
        left.sort();
        let mut expected = vec![own, "flashwise-mine".to_owned(), "other".to_owned()];
        expected.sort();
        assert_eq!(left, expected);
    }

    #[test]
    fn captures_of_one_process_and_of_a_dead_one_with_its_number_have_instances_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join(format!("{PREFIX}{}.0", std::process::id()));
        fs::create_dir(&left).unwrap();
        let (one, two) = (Instance::create_in(folder.path()).unwrap(), Instance::create_in(folder.path()).unwrap());
        assert!(one.path != two.path && one.path != left && left.exists());
        drop((one, two));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let error = Instance::create_in(&folder.path().join("none")).err().unwrap().to_string();
        assert!(error.contains("none"), "{error}");
    }

    #[test]
    fn what_is_on_no_drive_is_told_with_its_name() {
        let error = Drive::of(Path::new("/proc/self/status")).unwrap_err().to_string();
        assert!(error.starts_with("/proc/self/status: neither a block device nor a file on one"), "{error}");
    }
}
