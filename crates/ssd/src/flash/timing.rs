//! How long the medium and its buses take.
//!
//! Array times may differ by page type. A cell of *b* bits holds *b* pages, whose reads compare the cell's charge with
//! different numbers of thresholds and whose programs set different numbers of levels, so that they take different
//! times. Which row of a block is of which type is the die's *shared-page order*; makers do not publish theirs, and
//! they differ in where the first and last rows fall. Two orders are offered:
//!
//! ```text
//!   in-turn   row mod b: LSB MSB LSB MSB …, LSB CSB MSB LSB CSB MSB …    the plain mean of the times at any length
//!   shadow    b = 3: 6 × LSB, 2 × CSB, then pairs LSB LSB CSB CSB MSB MSB …    as MQSim has it; else as in-turn
//! ```
//!
//! Source of the second: a word line's later pages are programmed only after its neighbours' first ones, so that the
//! neighbours disturb them less (Cai et al., Proc. IEEE 105(9), 2017, section II-D).

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::command::{FlashOp, FlashOpKind};
use crate::config::{CommandTimes, FlashConfig, PageOrder};

/// Array and transfer times, with their jitter.
pub(crate) struct Timing {
    /// By page type.
    read_ns: [u64; 4],
    program_ns: [u64; 4],
    erase_ns: u64,
    /// The type of each row; empty where all are alike.
    page_type: Box<[u8]>,
    command: CommandTimes,
    /// Time of 2¹⁰ bytes on the channel, in 2⁻²⁰ ns, so that no division is on the path of a command.
    byte_time: u64,
    /// Half-width of the jitter in 2⁻³² of the time.
    jitter: u64,
    random: Pcg64Mcg,
}

const BYTE_TIME_SHIFT: u32 = 24;

impl Timing {
    /// The times of a medium; `seed` drives the jitter alone.
    pub(crate) fn new(flash: &FlashConfig, seed: u64) -> Self {
        let bits = flash.cell.map_or(1, |cell| cell.bits());
        let times = |listed: &[u64], single_ns: u64| {
            std::array::from_fn(|n| listed.get(n.min(listed.len().saturating_sub(1))).copied().unwrap_or(single_ns))
        };
        let types = if bits == 1 { 0 } else { flash.pages_per_block };
        Self {
            read_ns: times(&flash.read_ns_by_page_type, flash.read_ns),
            program_ns: times(&flash.program_ns_by_page_type, flash.program_ns),
            erase_ns: flash.erase_ns,
            page_type: (0..types).map(|row| page_type(flash.page_order, bits, row)).collect(),
            command: flash.command,
            byte_time: byte_time(flash.channel_bytes_per_s),
            jitter: (flash.array_time_jitter * 2f64.powi(32)) as u64,
            random: Pcg64Mcg::seed_from_u64(seed),
        }
    }

    fn type_of(&self, row: u16) -> usize {
        self.page_type.get(row as usize).copied().map_or(0, usize::from)
    }

    /// What the array takes for a command.
    #[inline(always)]
    pub(crate) fn array_ns(&mut self, op: &FlashOp) -> u64 {
        let of_page = self.type_of(op.at.row);
        match op.kind {
            FlashOpKind::Read => self.jittered(self.read_ns[of_page]),
            FlashOpKind::Program => self.jittered(self.program_ns[of_page] * u64::from(op.array_steps)),
            FlashOpKind::Erase => self.erase_ns,
        }
    }

    /// What command and address take on the channel, for a command that names `planes` planes.
    #[inline]
    pub(crate) fn command_ns(&self, kind: FlashOpKind, planes: u32) -> u64 {
        let (first_ns, further_ns) = match kind {
            FlashOpKind::Read => (self.command.read_ns, self.command.read_further_plane_ns),
            FlashOpKind::Program => (self.command.program_ns, self.command.program_further_plane_ns),
            FlashOpKind::Erase => (self.command.erase_ns, self.command.erase_further_plane_ns),
        };
        first_ns + further_ns * u64::from(planes - 1)
    }

    /// Moving bytes over a channel.
    #[inline]
    pub(crate) fn transfer_ns(&self, bytes: u32) -> u64 {
        (u64::from(bytes) * self.byte_time) >> BYTE_TIME_SHIFT
    }

    /// `time_ns` times a factor drawn uniformly from 1 − jitter to 1 + jitter.
    #[inline(always)]
    pub(crate) fn jittered(&mut self, time_ns: u64) -> u64 {
        if self.jitter == 0 { time_ns } else { self.drawn(time_ns) }
    }

    #[inline(never)]
    fn drawn(&mut self, time_ns: u64) -> u64 {
        let share = u64::from(self.random.random::<u32>());
        let width = (time_ns * 2 * self.jitter) >> 32;
        time_ns - width / 2 + ((width * share) >> 32)
    }
}

/// The type of a row's pages: 0 for LSB.
fn page_type(order: PageOrder, bits: u32, row: u32) -> u8 {
    let of_row = match (order, bits, row) {
        (PageOrder::Shadow, 3, 0..=5) => 0,
        (PageOrder::Shadow, 3, 6..=7) => 1,
        (PageOrder::Shadow, 3, _) => (row - 8) / 2 % 3,
        _ => row % bits,
    };
    of_row as u8
}

/// Nanoseconds a byte in 2⁻²⁴ ns; 64 MiB at 1 MB/s still fits 64 bits.
fn byte_time(bytes_per_s: u64) -> u64 {
    ((1_000_000_000_u128 << BYTE_TIME_SHIFT).div_ceil(u128::from(bytes_per_s))) as u64
}

crate::state::state! {
    Timing {
        saved { random }
        built { read_ns, program_ns, erase_ns, page_type, command, byte_time, jitter }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceConfig;
    use crate::config::CellType;
    use crate::flash::{FlashAddress, Owner};

    fn timing(change: impl FnOnce(&mut FlashConfig)) -> Timing {
        let mut flash = DeviceConfig::preset("samsung-960-evo").unwrap().flash;
        flash.array_time_jitter = 0.0;
        change(&mut flash);
        Timing::new(&flash, 0)
    }

    fn at_row(kind: FlashOpKind, row: u16) -> FlashOp {
        FlashOp::new(kind, Owner::None, FlashAddress { row, planes: 1, ..FlashAddress::default() }, 0)
    }

    #[test]
    fn a_transfer_takes_bytes_over_rate_to_the_nanosecond() {
        let timing = timing(|flash| flash.channel_bytes_per_s = 400_000_000);
        assert_eq!(timing.transfer_ns(4096), 10_240);
        assert_eq!(timing.transfer_ns(64 << 20), 167_772_160);
    }

    #[test]
    fn jitter_stays_inside_its_share_and_centres_on_the_time() {
        let mut timing = timing(|flash| (flash.read_ns, flash.array_time_jitter) = (10_000, 0.1));
        let times: Vec<u64> = (0..10_000).map(|_| timing.array_ns(&at_row(FlashOpKind::Read, 0))).collect();
        assert!(times.iter().all(|t| (9_000..=11_000).contains(t)));
        let mean = times.iter().sum::<u64>() / 10_000;
        assert!((9_970..=10_030).contains(&mean), "{mean}");
    }

    #[test]
    fn command_and_address_cycles_grow_with_the_planes_named() {
        let timing = timing(|flash| (flash.command.read_ns, flash.command.read_further_plane_ns) = (290, 650));
        assert_eq!([1, 2, 3, 4].map(|planes| timing.command_ns(FlashOpKind::Read, planes)), [290, 940, 1590, 2240]);
        assert_eq!(timing.command_ns(FlashOpKind::Erase, 2), 0);
    }

    #[test]
    fn page_types_of_a_cell_have_their_own_times_in_turn() {
        let mut timing = timing(|flash| {
            flash.cell = Some(CellType::Tlc);
            flash.read_ns_by_page_type = vec![50, 60, 70];
            flash.program_ns_by_page_type = vec![500, 600, 700];
        });
        let mut times = |kind| [0, 1, 2, 3, 4].map(|row| timing.array_ns(&at_row(kind, row)));
        assert_eq!(times(FlashOpKind::Read), [50, 60, 70, 50, 60]);
        assert_eq!(times(FlashOpKind::Program), [500, 600, 700, 500, 600]);
    }

    #[test]
    fn in_shadow_order_a_word_line_s_later_pages_come_after_its_neighbours_first_ones() {
        let types: Vec<u8> = (0..14).map(|row| page_type(PageOrder::Shadow, 3, row)).collect();
        assert_eq!(types, [0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 2, 2]);
    }
}
