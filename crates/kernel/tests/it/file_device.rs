//! A file as a device.

use flashwise_block::{BlockDevice, ByteSize, Completion, IoBuffer, Nanos, Operation, Request};
use flashwise_kernel::{FileSystemKind, Kernel, KernelConfig, KernelFile, OpenOptions, QueueLimits};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

use crate::naive::{KINDS, Kind, any_kind};
use crate::support::{Dice, Seen, TestDrive};
use proptest::prelude::*;

const PAGE: u64 = 4096;

fn on_test_drive((file_system, fast_commit): Kind) -> KernelFile<TestDrive> {
    let config =
        KernelConfig { file_system, fast_commit, data: true, memory: ByteSize::mib(1), ..KernelConfig::default() };
    let kernel = Kernel::new(TestDrive::new(ByteSize::mib(400)), config).unwrap();
    KernelFile::create(kernel, ByteSize::mib(4)).unwrap()
}

fn drain(device: &mut impl BlockDevice) -> Vec<Completion> {
    std::iter::from_fn(|| device.wait().unwrap()).collect()
}

#[test]
fn its_bytes_are_on_the_drive_where_its_extents_say() {
    for file_system in [FileSystemKind::Ext4, FileSystemKind::Xfs] {
        let file = on_test_drive((file_system, false));
        let extents = file.extents().unwrap();
        assert!(!extents.extents().is_empty());
        for block in 0..1024 {
            assert!(extents.to_drive(ByteSize(block * PAGE)).unwrap().0.is_multiple_of(PAGE));
        }
        assert_eq!(file.info().capacity, ByteSize::mib(4));
    }
}

#[test]
fn reads_overlap_on_the_drive_and_take_what_the_drive_takes() {
    let drive = SimulatedSsd::new(DeviceConfig::preset("samsung-960-evo").unwrap(), 1).unwrap();
    let kernel = Kernel::new(drive, KernelConfig::default()).unwrap();
    let mut file = KernelFile::create(kernel, ByteSize::mib(64)).unwrap();
    let longest = file.info().max_transfer;
    assert_eq!(longest, ByteSize::kib(256), "127 pages, as a power of two");
    let places = (0..256).map(|number| ByteSize(number * longest.0));
    places.for_each(|place| file.submit(Request::write(place, longest)).unwrap());
    file.submit(Request::flush()).unwrap();
    assert!(drain(&mut file).iter().all(|done| done.result.is_ok()));
    let mut dice = Dice(3);
    let mut time = |depth: u64| {
        let began = file.now();
        let mut left = 512;
        while left > 0 || file.outstanding() > 0 {
            while left > 0 && (file.outstanding() as u64) < depth {
                let place = ByteSize(dice.below(16384) * PAGE);
                file.submit(Request::read(place, ByteSize(PAGE)).tagged(left)).unwrap();
                left -= 1;
            }
            file.wait().unwrap();
        }
        file.now().since(began)
    };
    let (one, sixteen) = (time(1), time(16));
    assert!(sixteen.0 * 6 < one.0, "{one} and {sixteen}");
    // 68 µs by the drive, and the kernel's part of a call.
    assert!((Nanos::micros(512 * 60)..Nanos::micros(512 * 90)).contains(&one), "{one}");
}

#[test]
fn a_flush_makes_durable_and_a_trim_makes_a_hole() {
    let mut file = on_test_drive(KINDS[0]);
    let ones = IoBuffer::copy_of(&[1; 8192]);
    file.submit(Request::write(ByteSize(0), ByteSize(8192)).with_buffer(ones)).unwrap();
    drain(&mut file);
    let before = file.kernel().device_counters().flushes;
    file.submit(Request::flush()).unwrap();
    drain(&mut file);
    assert!(file.kernel().device_counters().flushes > before);
    file.submit(Request::trim(ByteSize(0), ByteSize(4096))).unwrap();
    file.submit(Request::read(ByteSize(0), ByteSize(8192)).with_buffer(IoBuffer::zeroed(8192))).unwrap();
    let read = drain(&mut file).pop().unwrap().buffer.unwrap();
    assert!(read[..4096].iter().all(|&byte| byte == 0) && read[4096..].iter().all(|&byte| byte == 1));
}

/// What is under a name after the power went and the drive lost all that was in its cache.
fn after_power_cut(file: KernelFile<TestDrive>) -> Vec<u8> {
    let drive = file.kernel().device().again();
    drive.medium.borrow_mut().cut(|| false);
    let mut kernel = file.into_kernel().remount_after_power_cut(drive).unwrap();
    let file = kernel.open("scratch", OpenOptions::read()).unwrap();
    let mut bytes = vec![0; 64 << 10];
    let read = kernel.pread(file, ByteSize(0), bytes.as_mut_slice()).unwrap();
    bytes.truncate(read as usize);
    bytes
}

/// Writes with FUA: whole blocks and a part of one, never written before, then over them; by drives with and without
/// FUA.
#[test]
fn a_write_with_fua_outlives_a_power_cut_at_once() {
    let places = [(0, 8192), (8192, 512), (0, 8192), (8192, 512)];
    for ((file_system, fast_commit), has_fua, writes) in KINDS.into_iter().flat_map(|kind| {
        [true, false].into_iter().flat_map(move |has_fua| (1..=4).map(move |writes| (kind, has_fua, writes)))
    }) {
        let queue = QueueLimits { fua: has_fua, ..QueueLimits::default() };
        let usual = KernelConfig { file_system, fast_commit, queue, ..KernelConfig::default() };
        let config = KernelConfig { data: true, power_cuts: true, ..usual };
        let kernel = Kernel::new(TestDrive::new(ByteSize::mib(400)), config).unwrap();
        let mut file = KernelFile::create(kernel, ByteSize::mib(4)).unwrap();
        let mut expected = vec![0; 64 << 10];
        for (number, &(at, length)) in places[..writes].iter().enumerate() {
            let bytes = vec![number as u8 + 1; length];
            expected[at..at + length].copy_from_slice(&bytes);
            let request = Request::write(ByteSize(at as u64), ByteSize(length as u64)).with_fua();
            file.submit(request.with_buffer(IoBuffer::copy_of(&bytes))).unwrap();
            assert!(drain(&mut file).iter().all(|done| done.result.is_ok()));
        }
        let sent = file.kernel().device().seen.borrow().iter().any(|seen| seen.fua);
        assert!(has_fua || !sent, "FUA to a drive that has none");
        assert!(
            after_power_cut(file) == expected,
            "{file_system:?}, fast commits {fast_commit}, FUA {has_fua}, {writes} writes"
        );
    }
}

#[test]
fn a_write_with_fua_over_committed_blocks_is_one_request() {
    let mut file = on_test_drive(KINDS[0]);
    for _ in 0..2 {
        let request = Request::write(ByteSize(0), ByteSize(PAGE)).with_fua();
        file.kernel().device().seen.borrow_mut().clear();
        file.submit(request.with_buffer(IoBuffer::zeroed(PAGE as usize))).unwrap();
        drain(&mut file);
    }
    let seen = file.kernel().device().seen.borrow().clone();
    assert!(matches!(seen[..], [Seen { operation: Operation::Write, fua: true, .. }]), "{seen:?}");
}

/// Otherwise the blocks that it punches out could belong to another file before the write reaches them.
#[test]
fn a_trim_waits_for_writes_that_are_under_way() {
    for kind in KINDS {
        let mut file = on_test_drive(kind);
        for number in 0..8 {
            file.submit(Request::write(ByteSize(number * PAGE), ByteSize(PAGE)).tagged(number)).unwrap();
        }
        file.submit(Request::trim(ByteSize(0), ByteSize(16 * PAGE)).tagged(8)).unwrap();
        let tags: Vec<u64> = drain(&mut file).iter().map(|done| done.tag).collect();
        assert_eq!(tags, Vec::from_iter(0..=8), "{kind:?}");
        let mut read = IoBuffer::zeroed(16 * PAGE as usize);
        read.fill(1);
        file.submit(Request::read(ByteSize(0), ByteSize(16 * PAGE)).with_buffer(read)).unwrap();
        assert!(drain(&mut file)[0].buffer.as_deref().unwrap().iter().all(|&byte| byte == 0));
    }
}

/// Of what lies in holes, unwritten and written blocks, in a request that starts and ends within a block.
#[test]
fn a_read_over_holes_gives_zeros_there_and_nowhere_else() {
    let mut file = on_test_drive(KINDS[0]);
    let mut expected = vec![0; 64 << 10];
    for (number, at) in [1, 4, 5, 9].into_iter().enumerate() {
        let bytes = vec![number as u8 + 1; PAGE as usize];
        expected[at * PAGE as usize..][..bytes.len()].copy_from_slice(&bytes);
        let request = Request::write(ByteSize(at as u64 * PAGE), ByteSize(PAGE));
        file.submit(request.with_buffer(IoBuffer::copy_of(&bytes))).unwrap();
    }
    file.submit(Request::trim(ByteSize(5 * PAGE), ByteSize(PAGE))).unwrap();
    expected[5 * PAGE as usize..][..PAGE as usize].fill(0);
    drain(&mut file);
    for (from, to) in [(0, 65_536), (512, 40_960), (4608, 20_992), (20_480, 24_576)] {
        let mut read = IoBuffer::zeroed(to - from);
        read.fill(0xaa);
        file.submit(Request::read(ByteSize(from as u64), ByteSize((to - from) as u64)).with_buffer(read)).unwrap();
        assert!(*drain(&mut file)[0].buffer.as_deref().unwrap() == expected[from..to], "{from} to {to}");
    }
}

#[test]
fn a_file_that_has_no_space_is_refused() {
    let kernel = Kernel::new(TestDrive::new(ByteSize::mib(40)), KernelConfig::default()).unwrap();
    assert!(KernelFile::create(kernel, ByteSize::gib(1)).unwrap_err().to_string().contains("no space left"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_is_read_is_what_was_written_last(
        calls in prop::collection::vec((0u64..8000, 1u64..64, any::<bool>()), 1..80),
        kind in any_kind(),
    ) {
        let mut file = on_test_drive(kind);
        let mut whole = vec![0_u8; 4 << 20];
        for (number, &(sector, sectors, writes)) in calls.iter().enumerate() {
            let (offset, length) = ((sector * 512) as usize, (sectors * 512) as usize);
            let length = length.min(whole.len() - offset);
            let (at, bytes) = (ByteSize(offset as u64), ByteSize(length as u64));
            let request = if writes {
                whole[offset..offset + length].fill(number as u8 + 1);
                Request::write(at, bytes).with_buffer(IoBuffer::copy_of(&whole[offset..offset + length]))
            } else {
                Request::read(at, bytes).with_buffer(IoBuffer::zeroed(length))
            };
            file.submit(request).unwrap();
            let done = drain(&mut file).pop().unwrap();
            prop_assert!(done.result.is_ok());
            if !writes {
                prop_assert!(done.buffer.unwrap()[..] == whole[offset..offset + length]);
            }
            prop_assert!(file.kernel().check_invariants().is_ok());
        }
    }
}
