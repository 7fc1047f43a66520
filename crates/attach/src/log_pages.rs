//! The counters of an attached drive as NVMe's log pages have them, so that tools for real drives read a simulated one.
//!
//! | page | field | of the simulated drive |
//! |---|---|---|
//! | 02h | data units, commands | what the host read and wrote |
//! | | percentage used | P/E cycles of the mean superblock ÷ those that it endures |
//! | | available spare | superblocks of the reserve that are left |
//! | | power-on hours | its clock |
//! | C0h | physical media units | bytes programmed into and sensed from flash |
//! | | erase counts, bad blocks | of superblocks |
//!
//! They count since the drive is new, preconditioning included, as those of a real drive do; the other statistics count
//! since it was attached.

use flashwise_block::DeviceCounters;
use flashwise_block::nvme::{Counters, DATA_UNIT_BYTES, OcpLog, SmartLog};
use flashwise_sim::life::life_used;
use flashwise_ssd::SimulatedSsd;
use serde::{Deserialize, Serialize};

/// 25 °C in K: a simulated drive has none of its own.
const TEMPERATURE_K: u16 = 298;
/// Spare blocks below which a drive warns, %: that of most drives.
const SPARE_THRESHOLD: u8 = 10;

/// What the log pages are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LifeCounters {
    /// The drive's clock, ns.
    pub now_ns: u64,
    /// Counters since the drive is new.
    pub counters: DeviceCounters,
    /// P/E cycles of the mean superblock ÷ those that it endures; `null` for a drive without a limit.
    pub used_share: Option<f64>,
    /// Superblocks of the reserve ÷ those of a new drive.
    pub spare_share: f64,
    /// Fewest and most P/E cycles of a superblock.
    pub erase_counts: (u32, u32),
}

impl LifeCounters {
    /// Of a drive.
    pub(crate) fn of(drive: &SimulatedSsd, now_ns: u64, counters: DeviceCounters) -> Self {
        let reserve = f64::from(drive.spare_superblocks()) * f64::from(drive.unit_of_superblock(0).1);
        let retired = counters.flash.map_or(0, |flash| flash.retired_superblocks) as f64;
        let spare_share = match (drive.is_read_only(), reserve > 0.0) {
            (true, _) => 0.0,
            (false, true) => (1.0 - retired / reserve).max(0.0),
            (false, false) => 1.0,
        };
        let used_share = life_used(drive).map(|(_, mean)| mean);
        Self { now_ns, counters, used_share, spare_share, erase_counts: drive.erase_counts() }
    }

    /// SMART / Health Information, page 02h.
    pub fn smart(&self) -> SmartLog {
        let units = |bytes: u64| u128::from(bytes.div_ceil(DATA_UNIT_BYTES));
        // What is rounded here stays below what the field holds.
        let percent = |share: f64, most: f64| (100.0 * share).clamp(0.0, most) as u8;
        let Self { now_ns, counters, used_share, spare_share, .. } = *self;
        let spare_low = u8::from(percent(spare_share, 100.0) < SPARE_THRESHOLD);
        SmartLog {
            critical_warning: spare_low | u8::from(spare_share == 0.0) << 3,
            temperature: TEMPERATURE_K,
            avail_spare: percent(spare_share, 100.0),
            spare_thresh: SPARE_THRESHOLD,
            percent_used: percent(used_share.unwrap_or(0.0), 255.0),
            data_units_read: units(counters.host_bytes_read.0),
            data_units_written: units(counters.host_bytes_written.0),
            host_read_commands: counters.host_reads.into(),
            host_write_commands: counters.host_writes.into(),
            power_cycles: 1,
            power_on_hours: (now_ns / 3_600_000_000_000).into(),
            ..SmartLog::default()
        }
    }

    /// OCP's SMART / Health Information Extended, page C0h; `None` for a drive that does not count what it programs.
    pub fn ocp(&self) -> Option<OcpLog> {
        let flash = self.counters.flash?;
        Some(OcpLog {
            physical_media_units_written: flash.bytes_programmed.0.into(),
            physical_media_units_read: flash.bytes_read.0.into(),
            bad_user_nand_blocks_raw: flash.retired_superblocks,
            max_user_data_erase_counts: self.erase_counts.1.into(),
            min_user_data_erase_counts: self.erase_counts.0.into(),
            percent_free_blocks: 0,
        })
    }

    /// Both, as read at the drive's time.
    pub fn pages(&self) -> Counters {
        let time_s = Some(self.now_ns as f64 / 1e9);
        Counters { time_s, smart: Some(self.smart()), ocp: self.ocp(), ..Counters::default() }
    }
}

#[cfg(test)]
mod tests {
    use flashwise_block::{ByteSize, FlashCounters};

    use super::*;

    #[test]
    fn a_worn_out_drive_warns_and_counts_are_rounded_up_to_units() {
        let flash = FlashCounters { bytes_programmed: ByteSize(7), retired_superblocks: 3, ..FlashCounters::default() };
        let counters =
            DeviceCounters { host_bytes_written: ByteSize(512_001), flash: Some(flash), ..DeviceCounters::default() };
        let life = LifeCounters { counters, used_share: Some(3.7), erase_counts: (5, 9), ..LifeCounters::default() };
        let (smart, ocp) = (life.smart(), life.ocp().unwrap());
        assert_eq!((smart.data_units_written, smart.percent_used, smart.avail_spare), (2, 255, 0));
        assert_eq!(smart.critical_warning, 0b1001);
        assert_eq!((ocp.physical_media_units_written, ocp.bad_user_nand_blocks_raw), (7, 3));
        assert_eq!(Counters::parse(&smart.to_bytes()).unwrap().smart, Some(smart));
        assert_eq!(Counters::parse(&ocp.to_bytes()).unwrap().ocp, Some(ocp));
    }
}
