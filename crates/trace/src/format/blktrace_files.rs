//! The files that `blktrace` leaves, one for each CPU, as one trace: merged by time while they are read.
//!
//! ```text
//!   sda.blktrace.0 ─▶ its next event ─┐
//!   sda.blktrace.1 ─▶ its next event ─┼─▶ the earliest of them ─▶ Paired ─▶ requests
//!   sda.blktrace.2 ─▶ its next event ─┘
//! ```
//!
//! A request may be issued on one CPU and complete on another: its two halves are then in two files, and no file alone
//! tells its latency. The times of all files are of one clock, and each file is in the order of time, so one event of
//! each in memory is enough. Among events of one time the file of the lower CPU comes first.
//!
//! A folder stands for all such files in it, also of several devices; a file of the set for all of its device. Source:
//! blktrace(8), `-D`, `-o` (the names `DEVICE.blktrace.CPU`), and blkparse(1), which merges them the same way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use flashwise_block::Nanos;

use super::blktrace::{Blktrace, Counts, stage};
use super::source::{Event, EventSource, Failure};
use crate::error::Place;
use crate::input::{Compression, Input};

/// The files of one recording, in the order of devices and CPUs.
#[derive(Debug)]
pub(crate) struct CpuFiles {
    paths: Vec<PathBuf>,
}

/// What the name of such a file tells.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    device: String,
    cpu: u32,
}

impl Name {
    /// `sda.blktrace.3`, also packed.
    fn of(path: &Path) -> Option<Self> {
        let (_, plain) = Compression::of_name(path.file_name()?.to_str()?);
        let (device, cpu) = plain.rsplit_once('.')?;
        let device = device.strip_suffix(".blktrace")?.to_owned();
        let is_number = !cpu.is_empty() && cpu.bytes().all(|byte| byte.is_ascii_digit());
        Some(Self { device, cpu: cpu.parse().ok().filter(|_| is_number)? })
    }
}

impl CpuFiles {
    /// What a path stands for, where that is more than the file itself.
    pub(crate) fn of(path: &Path) -> io::Result<Option<Self>> {
        if path.is_dir() {
            let files = Self::within(path, |_| true)?;
            let why = "a directory without blktrace files (sda.blktrace.0, sda.blktrace.1, …)";
            return if files.paths.is_empty() { Err(io::Error::other(why)) } else { Ok(Some(files)) };
        }
        let Some(name) = Name::of(path) else { return Ok(None) };
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let files = Self::within(folder, |other| other.device == name.device)?;
        Ok(Some(files).filter(|files| files.paths.len() > 1))
    }

    fn within(folder: &Path, is_wanted: impl Fn(&Name) -> bool) -> io::Result<Self> {
        let mut found: Vec<(Name, PathBuf)> = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if let Some(name) = Name::of(&path).filter(|name| is_wanted(name) && path.is_file()) {
                found.push((name, path));
            }
        }
        found.sort();
        if let Some(pair) = found.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let (one, other) = (pair[0].1.display(), pair[1].1.display());
            return Err(io::Error::other(format!("{one} and {other} are of the same CPU: move one of them away")));
        }
        Ok(Self { paths: found.into_iter().map(|(_, path)| path).collect() })
    }

    /// Starts to read all of them.
    pub(crate) fn open(&self) -> Result<Merged, String> {
        let mut inputs = Vec::with_capacity(self.paths.len());
        for path in &self.paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let told = |reason: String| format!("{name}: {reason}");
            let input = Input::open(path).map_err(|error| told(error.to_string()))?;
            // A CPU on which nothing happened leaves an empty file.
            if !input.head.is_empty() {
                let cpu = Name::of(path).map_or(0, |name| name.cpu);
                inputs.push((name, cpu, input));
            }
        }
        // A CPU may have issued nothing, so that all of them decide what stands for the request.
        let stage = stage(inputs.iter().map(|(_, _, input)| &input.head[..]));
        let mut files = Vec::with_capacity(inputs.len());
        for (name, cpu, input) in inputs {
            let events = Blktrace::new(input, stage).map_err(|reason| format!("{name}: {reason}"))?;
            files.push(File { name, cpu, events });
        }
        if files.is_empty() {
            return Err(format!("all of its {} files are empty: nothing was traced", self.paths.len()));
        }
        Ok(Merged::new(files, self.paths.len()))
    }
}

/// The file of one CPU.
struct File {
    name: String,
    cpu: u32,
    events: Blktrace,
}

/// The events of all files by time.
pub(crate) struct Merged {
    files: Vec<File>,
    /// Times of the events that wait, one of each file that has not ended, with the number of the file.
    times: BinaryHeap<Reverse<(Nanos, usize)>>,
    waiting: Vec<Option<(Event, Place)>>,
    /// Files whose next event is not known.
    unread: Vec<usize>,
    /// Where the event stands that was given last, or what could not be read.
    last: Place,
    found: usize,
}

impl Merged {
    fn new(files: Vec<File>, found: usize) -> Self {
        let (waiting, unread) = (vec![None; files.len()], (0..files.len()).collect());
        Self { files, times: BinaryHeap::new(), waiting, unread, last: Place::Record(0), found }
    }

    /// Reads until one event of each file waits. A bad one is told and passed over the next time.
    fn fill(&mut self) -> Result<(), Failure> {
        while let Some(&index) = self.unread.last() {
            let file = &mut self.files[index];
            let event = file.events.next();
            let place = Place::CpuRecord { cpu: file.cpu, number: file.events.place().number() };
            let event = event.map_err(|failure| {
                self.last = place;
                failure.within(&file.name)
            })?;
            self.unread.pop();
            if let Some(event) = event {
                self.times.push(Reverse((event.at(), index)));
                self.waiting[index] = Some((event, place));
            }
        }
        Ok(())
    }
}

impl EventSource for Merged {
    fn next(&mut self) -> Result<Option<Event>, Failure> {
        self.fill()?;
        let Some(Reverse((_, index))) = self.times.pop() else { return Ok(None) };
        self.unread.push(index);
        let Some((event, place)) = self.waiting[index].take() else { return Ok(None) };
        self.last = place;
        Ok(Some(event))
    }

    fn place(&self) -> Place {
        self.last
    }

    fn remarks(&self) -> Vec<String> {
        let names: Vec<_> = self.files.iter().map(|file| file.name.as_str()).collect();
        let shown = match names.as_slice() {
            [first, .., last] => format!("{first} to {last}"),
            names => names.concat(),
        };
        let empty = match self.found - self.files.len() {
            0 => String::new(),
            count => format!(", and {count} that are empty"),
        };
        let merged = format!("merged by time from {} files, one per CPU: {shown}{empty}", names.len());
        let mut counts = Counts::default();
        self.files.iter().for_each(|file| counts.add(file.events.counts()));
        std::iter::once(merged).chain(counts.remarks()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_device_and_cpu_and_everything_else_is_no_such_file() {
        let name = |text: &str| Name::of(Path::new(text)).map(|name| (name.device, name.cpu));
        assert_eq!(name("t/nvme0n1.blktrace.12"), Some(("nvme0n1".to_owned(), 12)));
        assert_eq!(name("sda.blktrace.0.gz"), Some(("sda".to_owned(), 0)));
        for other in ["sda.blktrace", "sda.blktrace.", "sda.blktrace.x", "sda.blktrace.+1", "sda.0", "sda.bin", ".."] {
            assert_eq!(name(other), None, "{other}");
        }
    }
}
