//! The page cache against a naive reference: what is read is what was written, whatever the memory, the order of calls
//! and the file system.

use std::collections::BTreeMap;

use flashwise_block::{ByteSize, Nanos};
use flashwise_kernel::{
    Advice, Allocate, FileHandle, FileSystemKind, Kernel, KernelConfig, KernelError, MapHandle, OpenOptions, SyncRange,
};
use proptest::prelude::*;

use crate::support::{Dice, TestDrive};

const LARGEST: u64 = 200 << 10;

#[derive(Clone, Debug)]
pub(crate) enum Call {
    Read { file: u8, offset: u32, length: u32 },
    Write { file: u8, offset: u32, length: u32 },
    Sync { file: u8, data: bool },
    Truncate { file: u8, size: u32 },
    Punch { file: u8, offset: u32, length: u32 },
    Allocate { file: u8, offset: u32, length: u32, keep: bool },
    Unlink { file: u8 },
    Reopen { file: u8, direct: bool, dsync: bool },
    MapRead { file: u8, offset: u32, length: u32 },
    MapWrite { file: u8, offset: u32, length: u32 },
    Range { file: u8, offset: u32, length: u32 },
    Advise { file: u8, advice: u8 },
    DropCaches,
    SyncAll,
    Pause { milliseconds: u16 },
}

pub(crate) fn calls(most: usize) -> impl Strategy<Value = Vec<Call>> {
    let file = 0u8..4;
    let offset = 0u32..(100 << 10);
    // Whole pages as often as parts of them.
    let length = prop_oneof![1u32..5000, (1u32..20).prop_map(|pages| pages * 4096), 1u32..50_000];
    let place = (file.clone(), prop_oneof![offset.clone(), (0u32..25).prop_map(|page| page * 4096)], length);
    let call = prop_oneof![
        6 => place.clone().prop_map(|(file, offset, length)| Call::Read { file, offset, length }),
        8 => place.clone().prop_map(|(file, offset, length)| Call::Write { file, offset, length }),
        3 => (file.clone(), any::<bool>()).prop_map(|(file, data)| Call::Sync { file, data }),
        2 => (file.clone(), offset).prop_map(|(file, size)| Call::Truncate { file, size }),
        1 => place.clone().prop_map(|(file, offset, length)| Call::Punch { file, offset, length }),
        1 => (place.clone(), any::<bool>())
            .prop_map(|((file, offset, length), keep)| Call::Allocate { file, offset, length, keep }),
        1 => file.clone().prop_map(|file| Call::Unlink { file }),
        1 => (file.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(file, direct, dsync)| Call::Reopen { file, direct, dsync }),
        2 => place.clone().prop_map(|(file, offset, length)| Call::MapRead { file, offset, length }),
        2 => place.clone().prop_map(|(file, offset, length)| Call::MapWrite { file, offset, length }),
        1 => place.prop_map(|(file, offset, length)| Call::Range { file, offset, length }),
        1 => (file, 0u8..5).prop_map(|(file, advice)| Call::Advise { file, advice }),
        1 => Just(Call::DropCaches),
        1 => Just(Call::SyncAll),
        1 => (0u16..20_000).prop_map(|milliseconds| Call::Pause { milliseconds }),
    ];
    prop::collection::vec(call, 1..most)
}

/// An open file and its map.
#[derive(Debug)]
struct Open {
    handle: FileHandle,
    map: Option<MapHandle>,
    direct: bool,
}

/// A kernel beside what its files should be.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) kernel: Kernel<TestDrive>,
    pub(crate) files: BTreeMap<u8, Vec<u8>>,
    open: BTreeMap<u8, Open>,
    dice: Dice,
}

pub(crate) fn name(file: u8) -> String {
    format!("file{file}")
}

impl Pair {
    pub(crate) fn new(drive: TestDrive, config: KernelConfig) -> Self {
        let kernel = Kernel::new(drive, config).unwrap();
        Self { kernel, files: BTreeMap::new(), open: BTreeMap::new(), dice: Dice(1) }
    }

    fn handle(&mut self, file: u8) -> Result<FileHandle, KernelError> {
        if let Some(open) = self.open.get(&file) {
            return Ok(open.handle);
        }
        let handle = self.kernel.open(&name(file), OpenOptions::read_write().create(true))?;
        self.files.entry(file).or_default();
        self.open.insert(file, Open { handle, map: None, direct: false });
        Ok(handle)
    }

    fn map(&mut self, file: u8) -> Result<MapHandle, KernelError> {
        let handle = self.handle(file)?;
        let open = self.open.get_mut(&file).unwrap();
        if let Some(map) = open.map {
            return Ok(map);
        }
        let map = self.kernel.mmap(handle, ByteSize(LARGEST))?;
        open.map = Some(map);
        Ok(map)
    }

    fn fresh(&mut self, length: u32) -> Vec<u8> {
        let mark = self.dice.below(255) as u8 + 1;
        (0..length).map(|at| mark.wrapping_add((at / 512) as u8)).collect()
    }

    fn close(&mut self, file: u8) -> Result<(), KernelError> {
        if let Some(open) = self.open.remove(&file) {
            if let Some(map) = open.map {
                self.kernel.munmap(map)?;
            }
            self.kernel.close(open.handle)?;
        }
        Ok(())
    }

    /// Makes a call of both. A read that differs is a panic.
    pub(crate) fn make(&mut self, call: &Call) -> Result<(), KernelError> {
        match *call {
            Call::Read { file, offset, length } => {
                let handle = self.handle(file)?;
                let direct = self.open[&file].direct;
                let (offset, length) = if direct { (offset / 512 * 512, length / 512 * 512) } else { (offset, length) };
                let mut bytes = vec![0xee; length as usize];
                let count = self.kernel.pread(handle, ByteSize(offset.into()), bytes.as_mut_slice())? as usize;
                let whole = &self.files[&file];
                let expected = whole.get(offset as usize..).unwrap_or_default();
                let expected = &expected[..expected.len().min(length as usize)];
                // After a write has failed its page may be dropped, as in Linux.
                let is_same = bytes[..count] == *expected;
                assert!(
                    is_same || self.kernel.device().is_off(),
                    "{call:?}: {count} bytes, {} expected",
                    expected.len()
                );
            }
            Call::Write { file, offset, length } => {
                let handle = self.handle(file)?;
                let direct = self.open[&file].direct;
                let (offset, length) = if direct { (offset / 512 * 512, length / 512 * 512) } else { (offset, length) };
                let bytes = self.fresh(length);
                let outcome = self.kernel.pwrite(handle, ByteSize(offset.into()), bytes.as_slice());
                let whole = self.files.get_mut(&file).unwrap();
                let end = offset as usize + length as usize;
                if length > 0 {
                    whole.resize(whole.len().max(end), 0);
                    whole[offset as usize..end].copy_from_slice(&bytes);
                }
                outcome?;
            }
            Call::Sync { file, data } => {
                let handle = self.handle(file)?;
                if data { self.kernel.fdatasync(handle)? } else { self.kernel.fsync(handle)? }
            }
            Call::Truncate { file, size } => {
                let handle = self.handle(file)?;
                self.files.get_mut(&file).unwrap().resize(size as usize, 0);
                self.kernel.ftruncate(handle, ByteSize(size.into()))?;
            }
            Call::Punch { file, offset, length } => {
                let handle = self.handle(file)?;
                let whole = self.files.get_mut(&file).unwrap();
                let end = (offset as usize + length as usize).min(whole.len());
                if let Some(hole) = whole.get_mut(offset as usize..end) {
                    hole.fill(0);
                }
                self.kernel.fallocate(handle, ByteSize(offset.into()), ByteSize(length.into()), Allocate::PunchHole)?;
            }
            Call::Allocate { file, offset, length, keep } => {
                let handle = self.handle(file)?;
                let how = if keep { Allocate::KeepSize } else { Allocate::Grow };
                let whole = self.files.get_mut(&file).unwrap();
                if !keep {
                    whole.resize(whole.len().max((offset + length) as usize), 0);
                }
                self.kernel.fallocate(handle, ByteSize(offset.into()), ByteSize(length.into()), how)?;
            }
            Call::Unlink { file } => {
                self.handle(file)?;
                self.close(file)?;
                self.files.remove(&file);
                self.kernel.unlink(&name(file))?;
            }
            Call::Reopen { file, direct, dsync } => {
                self.handle(file)?;
                self.close(file)?;
                let options = OpenOptions::read_write().direct(direct).dsync(dsync);
                let handle = self.kernel.open(&name(file), options)?;
                self.open.insert(file, Open { handle, map: None, direct });
            }
            Call::MapRead { file, offset, length } => {
                let map = self.map(file)?;
                let whole = &self.files[&file];
                let end = (offset as usize + length as usize).min(whole.len());
                if (offset as usize) < end {
                    let expected = whole[offset as usize..end].to_vec();
                    let mut bytes = vec![0xee; expected.len()];
                    self.kernel.map_read(map, ByteSize(offset.into()), bytes.as_mut_slice())?;
                    assert!(bytes == expected || self.kernel.device().is_off(), "{call:?}");
                }
            }
            Call::MapWrite { file, offset, length } => {
                let map = self.map(file)?;
                let end = (offset as usize + length as usize).min(self.files[&file].len());
                if (offset as usize) < end {
                    let bytes = self.fresh((end - offset as usize) as u32);
                    self.files.get_mut(&file).unwrap()[offset as usize..end].copy_from_slice(&bytes);
                    self.kernel.map_write(map, ByteSize(offset.into()), bytes.as_slice())?;
                }
            }
            Call::Range { file, offset, length } => {
                let handle = self.handle(file)?;
                let how = SyncRange { wait_before: offset % 2 == 0, write: true, wait_after: length % 2 == 0 };
                self.kernel.sync_file_range(handle, ByteSize(offset.into()), ByteSize(length.into()), how)?;
            }
            Call::Advise { file, advice } => {
                let handle = self.handle(file)?;
                let all = [Advice::Normal, Advice::Sequential, Advice::Random, Advice::WillNeed, Advice::DontNeed];
                self.kernel.fadvise(handle, ByteSize(0), ByteSize(0), all[usize::from(advice)])?;
            }
            Call::DropCaches => self.kernel.drop_caches()?,
            Call::SyncAll => self.kernel.sync()?,
            Call::Pause { milliseconds } => self.kernel.pause(Nanos::millis(milliseconds.into()))?,
        }
        Ok(())
    }
}

/// A file system, and whether it was made with fast commits.
pub(crate) type Kind = (FileSystemKind, bool);

pub(crate) const KINDS: [Kind; 3] =
    [(FileSystemKind::Ext4, false), (FileSystemKind::Ext4, true), (FileSystemKind::Xfs, false)];

pub(crate) fn config((file_system, fast_commit): Kind, pages: u64, ratio: u32) -> KernelConfig {
    KernelConfig {
        file_system,
        fast_commit,
        memory: ByteSize::kib(4 * pages),
        dirty_ratio: ratio,
        dirty_background_ratio: ratio / 2,
        data: true,
        power_cuts: true,
        discard: pages.is_multiple_of(2),
        ..KernelConfig::default()
    }
}

pub(crate) fn any_kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(&KINDS[..])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 375, max_shrink_iters: 400, ..ProptestConfig::default() })]

    #[test]
    fn what_is_read_is_what_was_written(
        calls in calls(60),
        kind in any_kind(),
        pages in prop_oneof![Just(1u64), 2u64..40, Just(10_000)],
        ratio in 1u32..100,
    ) {
        let mut pair = Pair::new(TestDrive::new(ByteSize::mib(400)), config(kind, pages, ratio));
        for call in &calls {
            pair.make(call).unwrap();
            let outcome = pair.kernel.check_invariants();
            prop_assert!(outcome.is_ok(), "{call:?}: {outcome:?}");
        }
    }
}

/// XFS gives a page a place before it is dirty: the page before it is written back for its memory, and gets space for
/// more behind the end of the file.
#[test]
fn a_page_that_gets_its_place_before_it_is_dirty_keeps_no_reservation() {
    let mut pair = Pair::new(TestDrive::new(ByteSize::mib(400)), config((FileSystemKind::Xfs, false), 4, 75));
    let calls = [
        Call::Read { file: 0, offset: 0, length: 1 },
        Call::Write { file: 1, offset: 20480, length: 1 },
        Call::Write { file: 0, offset: 0, length: 12288 },
        Call::Reopen { file: 0, direct: false, dsync: false },
        Call::MapRead { file: 1, offset: 15941, length: 4540 },
        Call::Write { file: 1, offset: 40961, length: 24576 },
        Call::Unlink { file: 1 },
    ];
    for call in &calls {
        pair.make(call).unwrap();
        pair.kernel.check_invariants().unwrap();
    }
}
