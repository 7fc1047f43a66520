//! A file as a device.

use flashwise_block::{BlockDevice, ByteSize, Completion, IoBuffer, Nanos, Request};
use flashwise_kernel::{FileSystemKind, Kernel, KernelConfig, KernelFile};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

use crate::naive::either;
use crate::support::{Dice, TestDrive};
use proptest::prelude::*;

const PAGE: u64 = 4096;

fn on_test_drive(file_system: FileSystemKind) -> KernelFile<TestDrive> {
    let config = KernelConfig { file_system, data: true, memory: ByteSize::mib(1), ..KernelConfig::default() };
    let kernel = Kernel::new(TestDrive::new(ByteSize::mib(400)), config).unwrap();
    KernelFile::create(kernel, ByteSize::mib(4)).unwrap()
}

fn drain(device: &mut impl BlockDevice) -> Vec<Completion> {
    std::iter::from_fn(|| device.wait().unwrap()).collect()
}

#[test]
fn its_bytes_are_on_the_drive_where_its_extents_say() {
    for file_system in [FileSystemKind::Ext4, FileSystemKind::Xfs] {
        let file = on_test_drive(file_system);
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
    let mut file = on_test_drive(FileSystemKind::Ext4);
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

#[test]
fn a_file_that_has_no_room_is_refused() {
    let kernel = Kernel::new(TestDrive::new(ByteSize::mib(40)), KernelConfig::default()).unwrap();
    assert!(KernelFile::create(kernel, ByteSize::gib(1)).unwrap_err().to_string().contains("no space left"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_is_read_is_what_was_written_last(
        calls in prop::collection::vec((0u64..8000, 1u64..64, any::<bool>()), 1..80),
        kind in either(),
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
