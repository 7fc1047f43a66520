//! Over the simulated drive: bytes go through, and what goes on beside the task overlaps with it.

use flashwise_block::{ByteSize, Nanos};
use flashwise_kernel::{FileSystemKind, Kernel, KernelConfig, OpenOptions};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

use crate::support::Dice;

fn kernel(preset: &str, config: KernelConfig) -> Kernel<SimulatedSsd> {
    let drive = SimulatedSsd::new(DeviceConfig::preset(preset).unwrap(), 1).unwrap();
    Kernel::new(drive, config).unwrap()
}

#[test]
fn what_was_written_is_read_from_the_drive_again() {
    for (preset, file_system) in [
        ("samsung-960-evo", FileSystemKind::Ext4),
        ("micron-m500", FileSystemKind::Xfs),
        ("intel-optane-905p", FileSystemKind::Ext4),
    ] {
        let config = KernelConfig {
            file_system,
            data: true,
            memory: ByteSize::mib(1),
            discard: true,
            ..KernelConfig::default()
        };
        let mut kernel = kernel(preset, config);
        let file = kernel.open("f", OpenOptions::read_write().create(true)).unwrap();
        let mut expected = vec![0u8; 4 << 20];
        let mut dice = Dice(17);
        for round in 0..300u32 {
            let (at, length) = (dice.below(4 << 20) as usize, dice.below(40_000) as usize + 1);
            let end = (at + length).min(expected.len());
            expected[at..end].fill(round as u8);
            kernel.pwrite(file, ByteSize(at as u64), &expected[at..end]).unwrap();
            if round % 16 == 0 {
                kernel.fsync(file).unwrap();
            }
        }
        kernel.ftruncate(file, ByteSize::mib(4)).unwrap();
        kernel.sync().unwrap();
        kernel.drop_caches().unwrap();
        let mut bytes = vec![1; 4 << 20];
        assert_eq!(kernel.pread(file, ByteSize(0), bytes.as_mut_slice()).unwrap(), 4 << 20);
        assert!(bytes == expected, "{preset}");
        kernel.check_invariants().unwrap();
        kernel.device().check_invariants().unwrap();
    }
}

/// A program that works between its reads finds the next window there already.
#[test]
fn read_ahead_overlaps_with_the_program() {
    let elapsed = |read_ahead: ByteSize| {
        let mut kernel = kernel("samsung-960-evo", KernelConfig { read_ahead, ..KernelConfig::default() });
        let file = kernel.open("f", OpenOptions::read_write().create(true)).unwrap();
        kernel.pwrite(file, ByteSize(0), ByteSize::mib(16)).unwrap();
        kernel.sync().unwrap();
        kernel.drop_caches().unwrap();
        let began = kernel.now();
        for page in 0..4096 {
            kernel.pread(file, ByteSize(page * 4096), ByteSize::kib(4)).unwrap();
            kernel.pause(Nanos::micros(20)).unwrap();
        }
        kernel.now().since(began)
    };
    let (with, without) = (elapsed(ByteSize::kib(128)), elapsed(ByteSize(0)));
    let program = Nanos::micros(20 * 4096);
    assert!(with.0 < program.0 * 11 / 10, "{with}: the drive is waited for");
    assert!(without.0 > program.0 * 2, "{without}: a read of the drive for each page");
}
