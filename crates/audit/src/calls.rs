//! A window of system calls, played above the page cache: what the program waits for.
//!
//! A trace that was taken above the page cache shows what a program asked of the kernel, and a program waits for the
//! drive only where the kernel does: a write goes to memory, a read may come from there or be read ahead, and a sync
//! takes what the file system's journal makes of it. So such a window is played on a file system on the drive of the
//! profile, through the model of Linux ([`flashwise_kernel`]).
//!
//! ```text
//!   steps ──▶ a file for each space ──▶ pread, pwrite, fdatasync, fallocate ──▶ Kernel ──▶ drive
//!             time: of the calls                       flash bytes: until everything is written back
//! ```
//!
//! **Files** are as long as what the window touches. A file whose first call is a write at its start is new, and grows;
//! the others are there, and not in memory. **Calls** are made one after another, as the model takes them. A sync is
//! `fdatasync`, since both are one kind of request in a trace; a durable write is one with `O_DSYNC`.

use std::collections::BTreeSet;

use flashwise_block::{BlockDevice, ByteSize, Operation, Request};
use flashwise_kernel::{Allocate, FileHandle, Kernel, KernelConfig, OpenOptions};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

use crate::finding::Machine;
use crate::play::{AREA, Map, PlayError, Played, Step, programmed};
use crate::request::Space;

/// What a file system takes beside the files: a quarter of them, and the least that it needs.
const FILE_SYSTEM_SHARE: u64 = 4;
const FILE_SYSTEM_MIN: u64 = 256 << 20;

/// A file system on the drive of a profile.
pub(crate) struct CallPlayer {
    config: DeviceConfig,
    kernel: KernelConfig,
    /// Files that the window makes.
    new: BTreeSet<Space>,
}

/// The drive's size for files of so many bytes.
pub(crate) fn drive_bytes(files: u64) -> u64 {
    files + files / FILE_SYSTEM_SHARE + FILE_SYSTEM_MIN
}

/// Files whose first call is a write at their start.
fn new_files(steps: &[Step]) -> BTreeSet<Space> {
    let (mut seen, mut new) = (BTreeSet::new(), BTreeSet::new());
    for step in steps.iter().filter(|step| !step.is_flush()) {
        if seen.insert(step.space) && step.is_write() && step.offset == 0 {
            new.insert(step.space);
        }
    }
    new
}

impl CallPlayer {
    /// For windows that are this one, as it is or with something fixed.
    pub(crate) fn new(config: DeviceConfig, as_is: &[Step]) -> Self {
        Self { config, kernel: KernelConfig::default(), new: new_files(as_is) }
    }

    /// What is between the program and the drive.
    pub(crate) fn machine(&self) -> Machine {
        Machine { file_system: self.kernel.file_system.name().to_owned(), memory_bytes: self.kernel.memory.0 }
    }

    /// Plays a window on files that are not in memory.
    pub(crate) fn play(&self, steps: &[Step], map: &Map) -> Result<Played, PlayError> {
        let mut drive = SimulatedSsd::new(self.config.clone(), 1)?;
        drive.fill_at_once()?;
        let mut kernel = Kernel::new(drive, self.kernel.clone())?;
        let files = self.lay_out(&mut kernel, map)?;
        let mut program = CallingProgram { kernel, files, map };
        let (before, start) = (program.kernel.device_counters(), program.kernel.now());
        steps.iter().try_for_each(|step| program.call(step))?;
        let CallingProgram { mut kernel, .. } = program;
        let time_ns = kernel.now().since(start).0;
        // What is still in memory or in the drive's buffer is flash bytes of this work too, but not its time.
        kernel.sync()?;
        let mut drive = kernel.into_device();
        drive.submit(Request::flush())?;
        while drive.wait()?.is_some() {}
        let counters = drive.counters().since(&before);
        Ok(Played { time_ns, flash_bytes: programmed(&counters), host_bytes: counters.host_bytes_written.0 })
    }

    fn lay_out(&self, kernel: &mut Kernel<SimulatedSsd>, map: &Map) -> Result<Vec<PlayedFile>, PlayError> {
        let mut files = Vec::new();
        for (number, ((_, space), first, end)) in map.spaces().into_iter().enumerate() {
            let name = number.to_string();
            let is_new = self.new.contains(&space);
            if !is_new {
                kernel.lay_out(&name, ByteSize((end - first) * AREA))?;
            }
            files.push((name, is_new, space, first, end));
        }
        kernel.sync()?;
        kernel.drop_caches()?;
        let mut opened = Vec::new();
        for (name, is_new, space, first, end) in files {
            let options = OpenOptions::read_write().create(is_new);
            let (file, durable) = (kernel.open(&name, options)?, kernel.open(&name, options.dsync(true))?);
            opened.push(PlayedFile { space, start: first * AREA, end: end * AREA, file, durable, is_dirty: false });
        }
        Ok(opened)
    }
}

/// A file, and which places of the map are its own.
struct PlayedFile {
    space: Space,
    start: u64,
    end: u64,
    file: FileHandle,
    /// The same, opened with `O_DSYNC`.
    durable: FileHandle,
    /// Whether it was written since its last sync.
    is_dirty: bool,
}

/// Who makes the calls.
struct CallingProgram<'a> {
    kernel: Kernel<SimulatedSsd>,
    /// In the order of their places.
    files: Vec<PlayedFile>,
    map: &'a Map,
}

impl CallingProgram<'_> {
    fn call(&mut self, step: &Step) -> Result<(), PlayError> {
        if step.is_flush() {
            return self.sync(step.space);
        }
        let place = self.map.place(step, step.offset);
        let index = self.files.partition_point(|file| file.end <= place);
        let Some(file) = self.files.get_mut(index).filter(|_| step.length > 0) else { return Ok(()) };
        let (offset, length) = (ByteSize(place - file.start), ByteSize(step.length));
        match step.operation {
            Operation::Read => _ = self.kernel.pread(file.file, offset, length)?,
            Operation::Write | Operation::WriteZeroes if step.fua => {
                self.kernel.pwrite(file.durable, offset, length)?;
            }
            Operation::Write | Operation::WriteZeroes => {
                file.is_dirty = true;
                self.kernel.pwrite(file.file, offset, length)?;
            }
            Operation::Trim => self.kernel.fallocate(file.file, offset, length, Allocate::PunchHole)?,
            Operation::Flush => {}
        }
        Ok(())
    }

    /// Syncs the file that the trace names, whatever a fix has written of it elsewhere; without a name, all that was
    /// written. A file of which the window has nothing else is a directory.
    fn sync(&mut self, space: Space) -> Result<(), PlayError> {
        let is_named = self.files.iter().any(|file| file.space == space);
        if !is_named && matches!(space, Space::File(_)) {
            return Ok(self.kernel.sync_directory()?);
        }
        for file in &mut self.files {
            if file.space == space || (!is_named && file.is_dirty) {
                file.is_dirty = false;
                self.kernel.fdatasync(file.file)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flashwise_trace::FileRole;

    use super::*;
    use crate::play::play;
    use crate::tests::samsung;

    const KIB: u64 = 1024;

    fn step(operation: Operation, file: u32, offset: u64, length: u64) -> Step {
        Step {
            at: flashwise_block::Nanos(0),
            operation,
            space: Space::File(file),
            is_moved: false,
            offset,
            length,
            fua: false,
            depth: 1,
            role: FileRole::Unknown,
            stream: 0,
            stays: false,
            is_broken: false,
        }
    }

    fn sync(file: u32) -> Step {
        step(Operation::Flush, file, 0, 0)
    }

    /// Through the kernel, and on the bare drive.
    fn both(steps: &[Step]) -> [Played; 2] {
        let map = Map::of(steps);
        let learned = |bytes| flashwise_truth::learned::learned(&samsung(), ByteSize(bytes)).unwrap().config;
        let caller = CallPlayer::new(learned(drive_bytes(map.bytes())), steps);
        [caller.play(steps, &map).unwrap(), play(steps, &map, &learned(map.bytes())).unwrap()]
    }

    #[test]
    fn a_write_that_nobody_syncs_costs_flash_bytes_and_no_time_of_the_drive() {
        // Not from the start: the file is there.
        let writes: Vec<Step> = (1..=64).map(|n| step(Operation::Write, 0, n * 64 * KIB, 4 * KIB)).collect();
        let [calls, drive] = both(&writes);
        assert!(calls.time_ns * 4 < drive.time_ns, "{calls:?} {drive:?}");
        assert!(calls.flash_bytes >= 64 * 4 * KIB && calls.host_bytes >= 64 * 4 * KIB, "{calls:?}");
    }

    #[test]
    fn a_sync_waits_for_the_drive_and_one_of_a_growing_file_for_the_journal_too() {
        let commits = |from: u64| -> Vec<Step> {
            (0..50).flat_map(|n| [step(Operation::Write, 0, from + n * 4 * KIB, 4 * KIB), sync(0)]).collect()
        };
        let ([grows, _], [overwrites, drive]) = (both(&commits(0)), both(&commits(4 * KIB)));
        assert!(overwrites.time_ns > drive.time_ns * 9 / 10, "{overwrites:?} {drive:?}");
        assert!(grows.time_ns > overwrites.time_ns * 3 / 2, "{grows:?} {overwrites:?}");
        assert!(grows.host_bytes > overwrites.host_bytes * 2, "{grows:?} {overwrites:?}");
    }

    #[test]
    fn a_durable_write_waits_as_a_sync_does() {
        let durable = |n: u64| Step { fua: true, ..step(Operation::Write, 0, (n + 1) * 4 * KIB, 4 * KIB) };
        let [durable, _] = both(&(0..50).map(durable).collect::<Vec<_>>());
        let pair = |n: u64| [step(Operation::Write, 0, (n + 1) * 4 * KIB, 4 * KIB), sync(0)];
        let [synced, _] = both(&(0..50).flat_map(pair).collect::<Vec<_>>());
        assert!(durable.time_ns * 2 > synced.time_ns && durable.time_ns < synced.time_ns * 2, "{durable:?} {synced:?}");
    }

    #[test]
    fn what_is_read_again_comes_from_memory_and_what_is_next_was_read_ahead() {
        let read = |at: u64| step(Operation::Read, 0, at * 4 * KIB, 4 * KIB);
        let [once, drive] = both(&(0..512).map(read).collect::<Vec<_>>());
        assert!(once.time_ns * 2 < drive.time_ns, "{once:?} {drive:?}");
        let [twice, _] = both(&(0..512).chain(0..512).map(read).collect::<Vec<_>>());
        assert!(twice.time_ns < once.time_ns * 3 / 2, "{twice:?} {once:?}");
    }

    #[test]
    fn a_sync_without_a_name_is_of_all_that_was_written() {
        let device = |operation, length| Step { space: Space::Device(None), ..step(operation, 0, 8 * KIB, length) };
        let [synced, _] = both(&[device(Operation::Write, 4 * KIB), device(Operation::Flush, 0)]);
        let [not, _] = both(&[device(Operation::Write, 4 * KIB)]);
        assert!(synced.time_ns > not.time_ns * 10, "{synced:?} {not:?}");
        // A directory's.
        let [directory, _] = both(&[step(Operation::Write, 0, 0, 4 * KIB), sync(1)]);
        assert!(directory.time_ns > not.time_ns * 10, "{directory:?}");
    }
}
