//! A simulated drive with a file system on it, for as long as a value lives; whose processors and memory are whose.
//!
//! ```text
//!   study ── pipe ──▶ flashwise attach DRIVE --mount DIR -- sh: tells that it is there, waits for the end of the pipe
//!         ── control socket ──▶ what the drive has done until now
//!         ◀── the trace of all requests, once it has ended
//! ```
//!
//! [`cores`]: one half of the processors for the drive. A server's reads and writes have a way of their own to the
//! drive, and its memory may have a bound, by control groups; where these cannot be had that is told, and measured
//! without.
//!
//! The drive is a process of its own, so that what the study waits for is not served by the study, and its time on a
//! processor is not counted as the database's. It ends with its command, and that with the pipe: the kernel closes it
//! whatever ends the study.

mod cores;

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use flashwise_attach::{Cgroup, DeviceStat, FileSystem, control};
use flashwise_block::ByteSize;
use flashwise_ssd::DeviceConfig;
use flashwise_trace::{ReadOptions, TraceError, TraceFormat, TraceReader, TraceRecord};
use flashwise_tune::DirectoryGuard;
use rustix::fs::{major, minor};

use crate::StudyError;
pub use cores::Cores;
use cores::family;
pub(crate) use cores::processor_seconds;

/// What the drive's command says once it is mounted.
const MOUNTED: &str = "mounted";
/// How long a drive may take to write back and end.
const PATIENCE: Duration = Duration::from_secs(120);

/// How a drive is attached.
#[derive(Clone, Copy, Debug)]
pub struct Attachment {
    /// Seconds of the machine for one of the drive's; `None`: every request is answered at once, where only what
    /// reaches the drive counts.
    pub time_scale: Option<f64>,
    /// The file system on it.
    pub file_system: FileSystem,
    /// How far behind the drive's start the file system starts.
    pub offset: ByteSize,
    /// Whether every request is kept, for [`Attached::trace`].
    pub is_captured: bool,
}

impl Default for Attachment {
    fn default() -> Self {
        Self { time_scale: Some(1.0), file_system: FileSystem::Ext4, offset: ByteSize(0), is_captured: false }
    }
}

/// Whether this user may mount drives. The machine may lack what else it takes.
pub fn may_mount() -> bool {
    rustix::process::geteuid().is_root()
}

/// A drive that is mounted.
#[derive(Debug)]
pub struct Attached {
    process: Child,
    /// For servers on it, where they need one; why there is none.
    apart: Result<Option<Cgroup>, String>,
    /// Closed, it ends the drive.
    life: Option<ChildStdin>,
    // Last, so that nothing is taken away below a mount.
    place: DirectoryGuard,
}

impl Attached {
    /// Attaches a drive, on the cores that are the drive's.
    ///
    /// # Errors
    /// Where there is no program to do it, or not what it takes: root, `/dev/fuse`, loop devices.
    #[allow(
        clippy::disallowed_methods,
        reason = "files of a directory of the study's own, and an attribute of the kernel's"
    )]
    pub fn start(
        program: Option<&Path>,
        config: &DeviceConfig,
        how: &Attachment,
        cores: &Cores,
    ) -> Result<Self, StudyError> {
        let Some(program) = program else {
            return Err(StudyError::Missing("this study attaches drives: run it as 'flashwise study'".to_owned()));
        };
        if !may_mount() {
            return Err(StudyError::Missing(
                "this mounts simulated drives, which requires root, /dev/fuse and loop devices: run it as root"
                    .to_owned(),
            ));
        }
        let place = DirectoryGuard::new(&std::env::temp_dir(), "flashwise-study")?;
        // The server's user has to come through, and sees nothing else here.
        std::fs::set_permissions(place.path(), Permissions::from_mode(0o711))?;
        let text = toml::to_string(config).map_err(|error| StudyError::Attach(error.to_string()))?;
        std::fs::write(place.path().join("drive.toml"), text)?;
        std::fs::create_dir(place.path().join("on"))?;
        let mut command = Command::new(program);
        command.current_dir("/").process_group(0).env_remove("FLASHWISE_OUTPUT");
        command.arg("attach").arg(place.path().join("drive.toml")).arg("--mount").arg(place.path().join("on"));
        command.arg("--control").arg(control_path(&place));
        match how.time_scale {
            Some(scale) => command.args(["--time-scale", &scale.to_string()]),
            None => command.args(["--time", "none"]),
        };
        command.args(["--fs", how.file_system.name(), "--offset", &how.offset.0.to_string()]);
        if how.is_captured {
            command.arg("--capture").arg(trace(&place)).args(["--capture-format", "csv"]);
        }
        command.args(["--", "/bin/sh", "-c", "echo mounted; while read -r _; do :; done"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = cores.for_drive(|| command.spawn())?;
        let (life, told, complaints) = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        let attached = Self { process, apart: Cgroup::of_io(), life, place };
        let complaints = complaints.map(|mut from| {
            thread::spawn(move || {
                let mut text = String::new();
                let _ = from.read_to_string(&mut text);
                text
            })
        });
        let mut told = told.map(BufReader::new);
        let mut line = String::new();
        if let Some(told) = &mut told {
            told.read_line(&mut line)?;
        }
        if line.trim_end() != MOUNTED {
            drop(attached);
            let text = complaints.and_then(|reader| reader.join().ok()).unwrap_or_default();
            let why = text.lines().next_back().unwrap_or("it ended without an error message");
            return Err(StudyError::Attach(why.trim_start_matches("flashwise: ").to_owned()));
        }
        // What it says at its end is to find somebody who listens.
        thread::spawn(move || told.map(|mut told| std::io::copy(&mut told, &mut std::io::sink())));
        Ok(attached)
    }

    /// Keeps a server's requests apart from flushes on their way to the drive, whose reads would wait for them
    /// otherwise; why that cannot be.
    ///
    /// # Errors
    /// Where the server is gone.
    pub(crate) fn keep_apart(&self, server: u32) -> Result<Option<String>, StudyError> {
        match &self.apart {
            Ok(Some(group)) => hold(group, server).map(|()| None),
            Ok(None) => Ok(None),
            Err(why) => Ok(Some(why.clone())),
        }
    }

    /// Where it is mounted.
    pub fn directory(&self) -> PathBuf {
        self.place.path().join("on")
    }

    /// What it has done since it was attached.
    ///
    /// # Errors
    /// Where it is gone.
    pub fn stat(&self) -> Result<DeviceStat, StudyError> {
        control::stat(&control_path(&self.place)).map_err(|error| StudyError::Attach(error.to_string()))
    }

    /// Bytes of the file system that are in use, everything written back.
    ///
    /// # Errors
    /// Where it cannot be asked.
    pub(crate) fn used_bytes(&self) -> Result<u64, StudyError> {
        let directory = std::fs::File::open(self.directory())?;
        rustix::fs::syncfs(&directory).map_err(std::io::Error::from)?;
        let told = rustix::fs::statvfs(self.directory()).map_err(std::io::Error::from)?;
        Ok((told.f_blocks - told.f_bfree) * told.f_frsize)
    }

    /// Lets no request to it be longer than this: the kernel cuts longer ones, from their start on.
    ///
    /// # Errors
    /// Where the kernel does not do it.
    #[allow(
        clippy::disallowed_methods,
        reason = "files of a directory of the study's own, and an attribute of the kernel's"
    )]
    pub(crate) fn cut_requests(&self, longest: ByteSize) -> Result<(), StudyError> {
        let device = rustix::fs::stat(self.directory()).map_err(std::io::Error::from)?.st_dev;
        let queue = format!("/sys/dev/block/{}:{}/queue/max_sectors_kb", major(device), minor(device));
        std::fs::write(&queue, (longest.0 >> 10).to_string())
            .map_err(|error| StudyError::Attach(format!("{queue}: {error}")))
    }

    /// Ends it, everything written back; gives all requests that reached it, in the order of their submission.
    ///
    /// # Errors
    /// Where they were not captured.
    pub(crate) fn trace(mut self) -> Result<Vec<TraceRecord>, StudyError> {
        self.end();
        let failed = |error: TraceError| StudyError::Attach(error.to_string());
        let mut reader = TraceReader::open(&trace(&self.place), &ReadOptions::of(TraceFormat::Csv)).map_err(failed)?;
        std::iter::from_fn(|| reader.next_record().map_err(failed).transpose()).collect()
    }

    fn end(&mut self) {
        drop(self.life.take());
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            match self.process.try_wait() {
                Ok(None) => thread::sleep(Duration::from_millis(10)),
                Ok(Some(_)) | Err(_) => return,
            }
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A bound on a server's memory, page cache included, for as long as this lives; why there is none.
///
/// # Errors
/// Where the server is gone.
pub(crate) fn bound_memory(server: u32, bytes: u64) -> Result<Result<Cgroup, String>, StudyError> {
    Cgroup::of_memory(bytes).map_or_else(|why| Ok(Err(why)), |group| hold(&group, server).map(|()| Ok(group)))
}

/// Puts a server in, with what it has started; what it starts later is in it too.
fn hold(group: &Cgroup, server: u32) -> Result<(), StudyError> {
    for process in family(server)? {
        let told = group.add_process(process);
        // Another one that has ended meanwhile needs none.
        if process == server {
            told.map_err(StudyError::Attach)?;
        }
    }
    Ok(())
}

fn control_path(place: &DirectoryGuard) -> PathBuf {
    place.path().join("control")
}

fn trace(place: &DirectoryGuard) -> PathBuf {
    place.path().join("trace.csv")
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.end();
    }
}

/// Whether answers were so late that what clients saw is the machine's rather than the drive's: the median by more than
/// a twentieth of the kind of request that takes least, or one in a hundred by more than half of it.
///
/// Servers think between an answer and their next request. So when the next one came says nothing here, unlike in
/// [`flashwise_attach::Pacing`], which has to judge clients that it does not know.
pub fn answers_were_late(stat: &DeviceStat) -> bool {
    let Some(pacing) = &stat.pacing else { return false };
    let scale = stat.time_scale.unwrap_or(1.0);
    let medians = [&stat.latency.reads, &stat.latency.writes].map(|kind| kind.p50_ns as f64 * scale);
    are_late([pacing.error.p50_ns as f64, pacing.error.p99_ns as f64], medians)
}

/// By the errors at the median and at 99 %, and the medians of the kinds of requests; 0 where there were none.
fn are_late([half, most]: [f64; 2], medians: [f64; 2]) -> bool {
    let shortest = medians.into_iter().filter(|&median| median > 0.0).fold(f64::INFINITY, f64::min);
    half > shortest / 20.0 || most > shortest / 2.0
}

/// What is told where a server could not be [kept apart](Attached::keep_apart).
pub(crate) fn behind_flushes(why: &str) -> String {
    format!("The server's reads and writes waited for its flushes in the kernel's loop driver: {why}.")
}

/// How busy the machine was with other work.
pub(crate) fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_late_by_the_kind_of_request_that_takes_least() {
        assert!(!are_late([10.0, 99.0], [1000.0, 200.0]));
        assert!(are_late([11.0, 99.0], [1000.0, 200.0]) && are_late([10.0, 101.0], [1000.0, 200.0]));
        assert!(!are_late([10.0, 101.0], [1000.0, 0.0]), "there were no writes");
        assert!(!are_late([0.0, 0.0], [0.0, 0.0]));
    }
}
