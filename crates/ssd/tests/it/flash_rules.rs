//! Whole drives under every rule by which flash takes, orders and interrupts its commands.
use crate::support;

use flashwise_block::{BlockDevice, BlockError, ByteSize, IoBuffer, Nanos, Request, execute};
use flashwise_ssd::config::{CellType, CommandScope, Placement, ReliabilityConfig, Scheduling, Suspend};
use flashwise_ssd::flash::OpClass;
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use proptest::prelude::*;
use support::{fill, tiny};

/// A drive of four chips of two dies of two planes, each plane on its own.
fn small_drive() -> DeviceConfig {
    let mut config = tiny("samsung-960-evo", ByteSize::mib(14), 16, 8);
    let flash = &mut config.flash;
    (flash.channels, flash.chips_per_channel, flash.dies_per_chip) = (2, 2, 2);
    (flash.page_bytes, flash.array_time_jitter) = (16_384, 0.0);
    (config.ftl.superpage_planes, config.ftl.placement) = (Some(1), Placement::Static);
    config.ftl.logical_page_bytes = 16_384;
    config.check("small").unwrap();
    config
}

/// Writes four times as many random pages as the drive has, with reads between, 16 in flight; every request ends, no
/// read gives other bytes than were written, and the drive's books balance.
fn exercise(config: DeviceConfig) -> SimulatedSsd {
    let mut drive = SimulatedSsd::new(config, 5).unwrap();
    let pages = drive.info().capacity.bytes() / 16_384;
    let mut written = vec![0_u8; pages as usize];
    let (mut answered, mut state) = (0, 1_u64);
    for n in 0..4 * pages {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let page = (state >> 33) % pages;
        let (offset, length) = (ByteSize(page * 16_384), ByteSize(16_384));
        written[page as usize] = (n % 251) as u8;
        let mut buffer = IoBuffer::zeroed(16_384);
        buffer.fill(written[page as usize]);
        drive.submit(Request::write(offset, length).with_buffer(buffer)).unwrap();
        drive.submit(Request::read(ByteSize(n * 577 % pages * 16_384), ByteSize(4096))).unwrap();
        while drive.outstanding() > 16 {
            answered += u64::from(drive.wait().unwrap().is_some());
        }
    }
    while drive.wait().unwrap().is_some() {
        answered += 1;
    }
    assert_eq!(answered, 8 * pages, "every request is answered once");
    drive.check_invariants().unwrap();
    for page in 0..pages {
        let read = Request::read(ByteSize(page * 16_384), ByteSize(16_384)).with_buffer(IoBuffer::zeroed(16_384));
        let bytes = execute(&mut drive, read).unwrap().buffer.unwrap();
        assert!(bytes.iter().all(|&byte| byte == written[page as usize]), "page {page}");
    }
    drive
}

fn any_rules() -> impl Strategy<Value = DeviceConfig> {
    let scheduling = prop::sample::select(&Scheduling::ALL[..]);
    let suspend = prop::sample::select(&Suspend::ALL[..]);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (scheduling, suspend, flags).prop_map(|(scheduling, suspend, (chip, multi_plane, interleave, tlc))| {
        let mut config = small_drive();
        let flash = &mut config.flash;
        (flash.scheduling, flash.multi_plane) = (scheduling, multi_plane);
        if chip {
            (flash.command_scope, flash.interleave) = (CommandScope::Chip, interleave);
        } else if scheduling != Scheduling::Fcfs {
            flash.suspension.suspend = suspend;
        }
        if tlc {
            flash.cell = Some(CellType::Tlc);
            flash.program_ns_by_page_type = vec![400_000, 700_000, 1_000_000];
        }
        (flash.command.read_ns, flash.command.program_ns, flash.command.erase_ns) = (290, 361, 220);
        config
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn under_all_rules_a_drive_collects_garbage_and_keeps_its_data(config in any_rules()) {
        let drive = exercise(config);
        let statistics = drive.flash_statistics();
        let flash = drive.counters().flash.unwrap();
        prop_assert!(flash.erases > 0 && statistics.class(OpClass::GcProgram).commands > 0);
        prop_assert_eq!(statistics.class(OpClass::Erase).commands, flash.erases);
        prop_assert_eq!(statistics.pages_programmed * 16_384, flash.bytes_programmed.bytes());
        let bytes: u64 = statistics.channels.iter().map(|channel| channel.bytes).sum();
        prop_assert_eq!(bytes, flash.bytes_programmed.bytes() + flash.bytes_read.bytes());
        prop_assert!(statistics.channels.iter().all(|channel| channel.busy_ns <= drive.now().0));
        prop_assert!(statistics.dies.iter().all(|die| die.array_ns <= drive.now().0));
    }
}

#[test]
fn planes_that_program_together_make_a_drive_of_single_planes_write_faster() {
    let time = |multi_plane| {
        let mut config = small_drive();
        config.flash.multi_plane = multi_plane;
        let mut drive = SimulatedSsd::new(config, 1).unwrap();
        fill(&mut drive, 0, 8 << 20);
        (drive.now(), drive.flash_statistics().joined_commands)
    };
    let ((alone, none), (together, joined)) = (time(false), time(true));
    assert_eq!(none, 0);
    assert!(joined > 100, "{joined}");
    assert!(together.0 as f64 * 1.5 < alone.0 as f64, "{together} {alone}");
}

#[test]
fn reads_wait_less_where_they_may_interrupt_programs() {
    let wait = |suspend| {
        let mut config = small_drive();
        config.flash.suspension.suspend = suspend;
        let drive = exercise(config);
        drive.flash_statistics().class(OpClass::HostRead).mean_waiting_ns()
    };
    let [never, erases, always] = [Suspend::None, Suspend::Erase, Suspend::ProgramErase].map(wait);
    assert!(always < 0.7 * never && erases < never, "{never} {erases} {always}");
}

#[test]
fn a_worn_drive_that_lay_on_a_shelf_reads_slower_and_at_last_not_at_all() {
    let read = |initial_pe_cycles, retention_hours| {
        let mut config = small_drive();
        config.flash.reliability =
            Some(ReliabilityConfig { initial_pe_cycles, retention_hours, ..ReliabilityConfig::default() });
        let mut drive = SimulatedSsd::new(config, 1).unwrap();
        fill(&mut drive, 0, 1 << 20);
        let done = execute(&mut drive, Request::read(ByteSize(0), ByteSize(16_384)));
        (done.map(|completion| completion.latency()), drive.flash_statistics().clone())
    };
    let (new, statistics) = read(0, 0.0);
    assert_eq!(statistics.read_retries, 0);
    let (worn, statistics) = read(3_000, 24.0 * 365.0);
    assert!(statistics.read_retries > 0 && statistics.uncorrectable_reads == 0, "{statistics:?}");
    assert!(worn.unwrap() >= new.unwrap() + Nanos::micros(45));
    let (lost, statistics) = read(1_000_000, 24.0 * 3650.0);
    assert!(matches!(lost, Err(BlockError::Uncorrectable { .. })), "{lost:?}");
    assert_eq!(statistics.uncorrectable_reads, 1);
}
