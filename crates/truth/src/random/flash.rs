//! The medium of a random drive.
//!
//! Flash: array times in the ranges that the configurations shipped with simulators and the presets span for the kind
//! of cell (the Samsung preset's TLC 45 and 660 µs, the Toshiba's 60 and 240, the Micron's MLC 90 and 450, MQSim's MLC
//! 75 and 750 with 3.8 ms of erase, DiskSim's SLC 25 and 200 with 1.5 ms), evenly in their logarithms. Where page types
//! differ, later ones are slower; their mean is the single time. What all planes hold of one row is at most 1 MiB, so
//! that a small drive has many superblocks in each unit.
//!
//! Media in place: some µs for a read or a granule's write, no erase, after the Optane preset.

use super::draw::{Draws, rounded};
use flashwise_ssd::config::{
    CellType, CommandScope, CommandTimes, EnergyConfig, FlashConfig, Interface, PageOrder, Placement,
    ReliabilityConfig, Scheduling, Suspend, SuspensionConfig,
};

/// Share of drives whose array times do not vary.
pub(super) const NO_JITTER: f64 = 0.15;
/// Share of the cells with several bits whose page types take different times.
pub(super) const PAGE_TYPES: f64 = 0.3;
/// Share of drives of flash whose chips, not dies, take commands.
pub(super) const CHIPS_TAKE_COMMANDS: f64 = 0.06;
/// Share of those drives with a scheduler that tells reads apart on which reads interrupt programs or erases.
pub(super) const SUSPENSION: f64 = 0.3;
/// Share of drives of flash that model errors; their correction takes time and nearly never a second read.
pub(super) const ERRORS: f64 = 0.08;
/// What all planes hold of one row, at most.
const ROW_BYTES_MAX: u64 = 1 << 20;

pub(super) fn nand(draws: &Draws, interface: Interface, logical_page_bytes: u64) -> FlashConfig {
    let cell = draws
        .weighted("flash.cell", &[(CellType::Slc, 12), (CellType::Mlc, 30), (CellType::Tlc, 43), (CellType::Qlc, 15)]);
    let base = base(draws, logical_page_bytes);
    let page_bytes = base.page_bytes.max(logical_page_bytes);
    let mut flash = FlashConfig {
        channels: channels(draws, interface),
        chips_per_channel: draws.weighted("flash.chips_per_channel", &[(1, 45), (2, 30), (3, 5), (4, 20)]),
        dies_per_chip: draws.weighted("flash.dies_per_chip", &[(1, 40), (2, 40), (4, 20)]),
        planes_per_die: draws.weighted("flash.planes_per_die", &[(1, 30), (2, 45), (4, 25)]),
        page_bytes,
        cell: Some(cell),
        ..base
    };
    set_times(draws, cell, &mut flash);
    set_rules(draws, &mut flash);
    shrink(&mut flash, row_bytes, ROW_BYTES_MAX);
    if super::ftl::placement(draws) == Placement::Stripe {
        shrink(&mut flash, channel_row_bytes, super::ftl::LONGEST);
    }
    flash
}

/// What needs no other decision.
fn base(draws: &Draws, logical_page_bytes: u64) -> FlashConfig {
    let unit = draws.weighted("flash.transfer_unit_bytes", &[(512, 25), (1024, 15), (2048, 20), (4096, 40)]);
    let jitter = draws.share("flash.array_time_jitter", 0.001, 0.08);
    FlashConfig {
        channels: 1,
        chips_per_channel: 1,
        dies_per_chip: 1,
        planes_per_die: 1,
        blocks_per_plane: 1,
        pages_per_block: 1,
        page_bytes: draws.weighted("flash.page_bytes", &[(4 << 10, 25), (8 << 10, 25), (16 << 10, 50)]),
        transfer_unit_bytes: unit,
        write_granule_bytes: logical_page_bytes.min(4096),
        channel_bytes_per_s: 0,
        read_ns: 0,
        program_ns: 0,
        erase_ns: 0,
        array_time_jitter: if draws.chance("flash.no_jitter", NO_JITTER) { 0.0 } else { jitter },
        command_scope: CommandScope::Die,
        multi_plane: false,
        programs_in_order: true,
        interleave: true,
        slc_mode: None,
        scheduling: Scheduling::ReadFirst,
        cell: None,
        page_order: PageOrder::InTurn,
        read_ns_by_page_type: Vec::new(),
        program_ns_by_page_type: Vec::new(),
        command: CommandTimes::default(),
        suspension: SuspensionConfig::default(),
        energy: EnergyConfig::default(),
        reliability: None,
        endurance: None,
    }
}

fn channels(draws: &Draws, interface: Interface) -> u32 {
    match interface {
        Interface::Nvme => {
            draws.weighted("flash.channels", &[(2, 8), (4, 30), (6, 5), (8, 40), (10, 3), (12, 4), (16, 10)])
        }
        Interface::Sata => draws.weighted("flash.channels", &[(1, 6), (2, 12), (4, 36), (6, 5), (8, 33), (10, 8)]),
    }
}

/// Array times and rates.
fn set_times(draws: &Draws, cell: CellType, flash: &mut FlashConfig) {
    let (read, program, erase) = match cell {
        CellType::Slc | CellType::Xpoint => ((20_000, 35_000), (100_000, 300_000), (1_000_000, 2_500_000)),
        CellType::Mlc => ((40_000, 90_000), (300_000, 900_000), (2_000_000, 4_000_000)),
        CellType::Tlc => ((45_000, 95_000), (400_000, 1_200_000), (3_000_000, 6_000_000)),
        CellType::Qlc => ((80_000, 150_000), (1_200_000, 2_500_000), (5_000_000, 12_000_000)),
    };
    flash.read_ns = draws.between("flash.read_ns", read.0, read.1);
    flash.program_ns = draws.between("flash.program_ns", program.0, program.1);
    flash.erase_ns = draws.between("flash.erase_ns", erase.0, erase.1);
    flash.channel_bytes_per_s = draws.between("flash.channel_bytes_per_s", 160_000_000, 1_200_000_000);
    let bits = u64::from(cell.bits());
    if bits > 1 && draws.chance("flash.page_types", PAGE_TYPES) {
        // Around the mean: reads from -25 to +25 %, programs from -45 to +45 %.
        let spread = |mean_ns: u64, percent: u64| {
            let share = |n: u64| 100 - percent + 2 * percent * n / (bits - 1);
            (0..bits).map(|n| rounded(mean_ns * share(n) / 100)).collect()
        };
        flash.read_ns_by_page_type = spread(flash.read_ns, 25);
        flash.program_ns_by_page_type = spread(flash.program_ns, 45);
    }
    if draws.chance("flash.command", 0.4) {
        // ONFI's cycles, as the key's documentation counts them.
        flash.command = CommandTimes {
            read_ns: 315,
            read_further_plane_ns: 675,
            program_ns: 361,
            program_further_plane_ns: 816,
            erase_ns: 245,
            erase_further_plane_ns: 625,
        };
    }
}

/// Who takes commands, and in which order.
fn set_rules(draws: &Draws, flash: &mut FlashConfig) {
    flash.scheduling = draws.weighted(
        "flash.scheduling",
        &[(Scheduling::ReadFirst, 70), (Scheduling::Fcfs, 20), (Scheduling::OutOfOrder, 10)],
    );
    if draws.chance("flash.command_scope", CHIPS_TAKE_COMMANDS) {
        flash.command_scope = CommandScope::Chip;
        flash.interleave = draws.chance("flash.interleave", 0.5);
    } else if flash.scheduling != Scheduling::Fcfs && draws.chance("flash.suspension", SUSPENSION) {
        flash.suspension.suspend = draws.any("flash.suspension.suspend", &[Suspend::Erase, Suspend::ProgramErase]);
        flash.suspension.program_ns = draws.between("flash.suspension.program_ns", 5_000, 30_000);
        flash.suspension.erase_ns = draws.between("flash.suspension.erase_ns", 20_000, 80_000);
    }
    if draws.chance("flash.reliability", ERRORS) {
        flash.reliability = Some(ReliabilityConfig {
            ecc_decode_ns: draws.between("flash.reliability.ecc_decode_ns", 500, 5_000),
            initial_pe_cycles: draws.any("flash.reliability.initial_pe_cycles", &[0, 300, 1_000]),
            retention_hours: draws.any("flash.reliability.retention_hours", &[0.0, 24.0, 100.0]),
            ..ReliabilityConfig::default()
        });
    }
}

/// Fewer chips, dies and planes until a row is short enough.
fn shrink(flash: &mut FlashConfig, row: fn(&FlashConfig) -> u64, most: u64) {
    while row(flash) > most {
        let count = [&mut flash.chips_per_channel, &mut flash.dies_per_chip, &mut flash.planes_per_die]
            .into_iter()
            .find(|count| **count > 1);
        match count {
            Some(count) => *count = (*count / 2).max(1),
            None => return,
        }
    }
}

/// What all planes hold of one row.
pub(super) fn row_bytes(flash: &FlashConfig) -> u64 {
    let planes = [flash.channels, flash.chips_per_channel, flash.dies_per_chip, flash.planes_per_die];
    planes.iter().map(|&n| u64::from(n)).product::<u64>() * flash.page_bytes
}

/// What all planes of one channel hold of one row.
fn channel_row_bytes(flash: &FlashConfig) -> u64 {
    row_bytes(flash) / u64::from(flash.channels)
}

/// A medium without erase.
pub(super) fn in_place(draws: &Draws) -> FlashConfig {
    let base = base(draws, 4096);
    FlashConfig {
        channels: draws.any("in_place.channels", &[3, 4, 5, 7, 8]),
        chips_per_channel: draws.any("in_place.chips_per_channel", &[1, 2, 3, 4, 5]),
        page_bytes: 4096,
        pages_per_block: 256,
        write_granule_bytes: draws.any("in_place.write_granule_bytes", &[512, 1024, 2048, 4096]),
        channel_bytes_per_s: draws.between("in_place.channel_bytes_per_s", 500_000_000, 1_600_000_000),
        read_ns: draws.between("in_place.read_ns", 800, 5_000),
        program_ns: draws.between("in_place.program_ns", 1_000, 8_000),
        ..base
    }
}
