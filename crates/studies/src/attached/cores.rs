//! Which processors are whose: one half is the database's and its sessions', the other the drive's.
//!
//! A drive that compresses takes more of a processor than one that does not. On processors of its own that costs the
//! database nothing, and what is measured is what a drive does that has an engine for it.

use std::path::Path;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::StudyError;

/// Processors shared out for as long as this lives; all of them are everybody's where there is one.
///
/// The thread that shares them is on the database's, and so is all that it starts, but for [`Self::for_drive`].
#[derive(Debug)]
pub struct Cores {
    all: CpuSet,
    database: CpuSet,
    drive: CpuSet,
    /// Of the database.
    pub(crate) count: u32,
}

impl Cores {
    /// Those that this thread may use.
    ///
    /// # Errors
    /// Where the system does not tell.
    pub fn share() -> Result<Self, StudyError> {
        let all = sched_getaffinity(None).map_err(std::io::Error::from)?;
        let numbers: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&number| all.is_set(number)).collect();
        let (first, rest) = numbers.split_at(numbers.len() / 2);
        let set = |numbers: &[usize]| {
            let mut set = CpuSet::new();
            numbers.iter().for_each(|&number| set.set(number));
            set
        };
        let cores = match first.is_empty() {
            true => Self { all, database: all, drive: all, count: 1 },
            false => Self { all, database: set(first), drive: set(rest), count: first.len() as u32 },
        };
        put(&cores.database);
        Ok(cores)
    }

    /// Starts something on the drive's.
    pub(crate) fn for_drive<T>(&self, start: impl FnOnce() -> T) -> T {
        put(&self.drive);
        let started = start();
        put(&self.database);
        started
    }
}

impl Drop for Cores {
    fn drop(&mut self) {
        put(&self.all);
    }
}

/// Puts the calling thread on some.
fn put(set: &CpuSet) {
    // Where it is not allowed it stays where it is: slower, not wrong.
    let _ = sched_setaffinity(None, set);
}

/// A process and its children.
pub(super) fn family(parent: u32) -> Result<Vec<u32>, StudyError> {
    let mut all = vec![parent];
    for entry in std::fs::read_dir("/proc")? {
        let Some(process) = entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if fields(process).is_some_and(|fields| fields.parent == parent) {
            all.push(process);
        }
    }
    Ok(all)
}

/// A process's time on a processor, and that of its children that have ended, s; 0 where it is gone.
pub(crate) fn processor_seconds(process: u32) -> f64 {
    fields(process).map_or(0.0, |fields| fields.ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// What `/proc/N/stat` tells.
struct ProcessFields {
    parent: u32,
    /// Ticks of its own time on a processor, and of its children's that have ended.
    ticks: u64,
}

/// `None` where the process is gone.
fn fields(process: u32) -> Option<ProcessFields> {
    let text = std::fs::read_to_string(Path::new("/proc").join(process.to_string()).join("stat")).ok()?;
    parse(&text)
}

/// The program's name is in brackets and may have any letters in it.
fn parse(text: &str) -> Option<ProcessFields> {
    let behind: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |at: usize| behind.get(at)?.parse::<u64>().ok();
    let ticks = (11..15).map(number).sum::<Option<u64>>()?;
    Some(ProcessFields { parent: u32::try_from(number(1)?).ok()?, ticks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_program_is_called() {
        let text = "42 (a) S 9 (b)) S 7 42 42 0 -1 4194304 10 20 30 40 100 20 3 4 20 0 1 0 99 0 0";
        let told = parse(text).unwrap();
        assert_eq!((told.parent, told.ticks), (7, 127));
        assert!(parse("42 (cut").is_none() && parse("42 (x) S").is_none());
    }

    #[test]
    fn a_child_belongs_to_its_parents_family() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let all = family(std::process::id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(all.contains(&child.id()) && all.contains(&std::process::id()));
    }

    #[test]
    fn the_halves_are_all_there_is_and_share_nothing() {
        let all = sched_getaffinity(None).unwrap();
        let cores = Cores::share().unwrap();
        for number in 0..CpuSet::MAX_CPU {
            let either = cores.database.is_set(number) || cores.drive.is_set(number);
            assert_eq!(either, all.is_set(number));
            assert!(all.count() == 1 || !(cores.database.is_set(number) && cores.drive.is_set(number)));
        }
        let now = || sched_getaffinity(None).unwrap();
        assert_eq!((now(), cores.for_drive(now), now()), (cores.database, cores.drive, cores.database));
        drop(cores);
        assert_eq!(now(), all);
    }
}
