//! The drives: those of the text as presets, and one that is built as the text argues.

use flashwise_profile::{PublishedAsymmetry, PublishedConcurrency, published_asymmetries};
use flashwise_ssd::DeviceConfig;
use flashwise_ssd::config::{Placement, WritePolicy};

use crate::StudyError;

/// A drive of the text.
pub(super) struct Drive {
    /// As it is called in the tables.
    pub(super) name: &'static str,
    pub(super) config: DeviceConfig,
    /// Pages that are written together: the text's k_w.
    pub(super) batch: usize,
    /// What was published of it.
    pub(super) published: &'static PublishedAsymmetry,
}

/// Names, presets, and the text's k_w; the least that it allows where it gives a bound.
///
/// Its NVMe drive, "α = 3, k_w = 8", has its α from the row of the raw drive (3.0, 16, 6) and its k_w from that of the
/// drive behind a file system (2.8, 80, 8), so both stand here.
const DRIVES: [(&str, &str, usize); 4] = [
    ("P4510 raw", "intel-p4510", 8),
    ("P4510 with FS", "intel-p4510-fs", 8),
    ("SATA", "intel-s4610", 8),
    ("virtual", "virtual-ssd", 20),
];

/// The place of the raw P4510 in [`text`]; what is varied is varied on it.
pub(super) const RAW: usize = 0;
/// The place of the P4510 behind a file system.
pub(super) const WITH_FS: usize = 1;
/// The place of the SATA drive.
pub(super) const SATA: usize = 2;
/// The place of the virtual one.
pub(super) const VIRTUAL: usize = 3;

/// The text's drives.
pub(super) fn text() -> Result<Vec<Drive>, StudyError> {
    let drive = |&(name, preset, batch): &(&'static str, &str, usize)| {
        let published = published_asymmetries().iter().find(|row| row.preset == preset).ok_or(StudyError::Lost)?;
        Ok(Drive { name, config: DeviceConfig::preset(preset)?, batch, published })
    };
    DRIVES.iter().map(drive).collect()
}

impl Drive {
    /// α · k_w ÷ k_r of the published row at 4 KiB: what one write takes ÷ what one read takes, each alone, since a
    /// drive that serves k requests at once at a rate needs k ÷ rate for each. Bounds are taken as they stand.
    pub(super) fn published_latency_ratio(&self) -> f64 {
        let k = |k: PublishedConcurrency| match k {
            PublishedConcurrency::About(k) | PublishedConcurrency::MoreThan(k) => k as f64,
        };
        let row = self.published.at_4k;
        row.asymmetry * k(row.writes) / k(row.reads)
    }
}

/// Time of a read on the drive of [`as_argued`]: that of the published runs is near it.
const SENSE_NS: u64 = 100_000;
/// Requests that it serves at once.
pub(super) const LANES: u32 = 8;

/// The drive on which the text's argument is exact: a write takes α reads, eight writes take no longer than one, and as
/// many reads are served at once as writes, so that α is the same by latency and by throughput.
///
/// Eight dies of one channel each; a write is done when it is programmed, which takes α times as long as to sense;
/// pages go to the dies in turn. Link, firmware and memory take no time to speak of, and there is so much spare flash
/// that nothing is collected.
pub(super) fn as_argued(alpha: f64) -> Result<DeviceConfig, StudyError> {
    let mut config = DeviceConfig::preset("intel-p4510")?;
    config.name = format!("eight dies, α {alpha}");
    config.capacity_bytes = 16 << 30;
    let host = &mut config.host;
    (host.command_latency_ns, host.command_issue_ns, host.data_request_ns) = (0, 1, 0);
    host.link_bytes_per_s = Some(100_000_000_000);
    let controller = &mut config.controller;
    controller.write_policy = WritePolicy::Through;
    (controller.dispatch_ns, controller.dram_ns_per_access, controller.dram_bytes_per_s) = (0, 0, 0);
    config.ftl.placement = Placement::RoundRobin;
    let flash = &mut config.flash;
    (flash.channels, flash.chips_per_channel, flash.dies_per_chip) = (LANES, 1, 1);
    flash.channel_bytes_per_s = 100_000_000_000;
    flash.array_time_jitter = 0.0;
    flash.read_ns = SENSE_NS;
    flash.program_ns = (SENSE_NS as f64 * alpha).round() as u64;
    config.check("the drive as argued")?;
    Ok(config)
}

/// A drive whose writes are taken over so many times more slowly. Its α grows by as much; its k_w falls.
pub(super) fn with_slower_writes(config: &DeviceConfig, factor: f64) -> Result<DeviceConfig, StudyError> {
    let mut slower = config.clone();
    let controller = &mut slower.controller;
    controller.dram_ns_per_access = (controller.dram_ns_per_access as f64 * factor).round() as u64;
    controller.dram_bytes_per_s = (controller.dram_bytes_per_s as f64 / factor).round() as u64;
    slower.check("a drive with slower writes")?;
    Ok(slower)
}

/// The same drive with so little flash that a file of so many pages fills it, and a quarter more to collect garbage in.
///
/// The flash of the preset in smaller blocks: as many channels and dies, so that nothing but the space changes.
pub(super) fn filled_by(config: &DeviceConfig, pages: usize) -> Result<DeviceConfig, StudyError> {
    let mut small = config.clone();
    let dies = u64::from(small.flash.channels * small.flash.chips_per_channel * small.flash.dies_per_chip);
    let slots = pages as u64 * 5 / 4;
    let (blocks, row) = (64, dies * 64);
    small.flash.blocks_per_plane = blocks;
    small.flash.pages_per_block = u32::try_from(slots.div_ceil(row)).unwrap_or(u32::MAX).max(1);
    small.capacity_bytes = pages as u64 * small.ftl.logical_page_bytes;
    small.check("a drive filled by the file")?;
    Ok(small)
}

/// A drive as the text argues, and the text's own raw and behind a file system, with their names.
pub(super) fn beside_argued<'a>(argued: &'a DeviceConfig, drives: &'a [Drive]) -> [(&'a str, &'a DeviceConfig); 3] {
    let of = |place: usize| (drives[place].name, &drives[place].config);
    [("as argued", argued), of(RAW), of(WITH_FS)]
}

#[cfg(test)]
mod tests {
    use super::super::one_request::waits;
    use super::*;

    #[test]
    fn on_the_drive_as_argued_a_write_takes_alpha_reads_and_eight_writes_no_longer_than_one() {
        for alpha in [1.0, 3.0, 8.0] {
            let drive = as_argued(alpha).unwrap();
            let [eight, nine] = [8, 9].map(|batch| waits(&drive, batch, 1).unwrap());
            assert!((eight.write_in_reads() / alpha - 1.0).abs() < 0.02, "{alpha}: {eight:?}");
            assert!((eight.batch_in_writes() - 1.0).abs() < 0.02, "{alpha}: {eight:?}");
            assert!((nine.batch_in_writes() - 2.0).abs() < 0.04, "{alpha}: {nine:?}");
        }
    }

    #[test]
    fn one_write_against_one_read_follows_from_the_published_row() {
        let drives = text().unwrap();
        let ratio = |place: usize| (100.0 * drives[place].published_latency_ratio()).round() / 100.0;
        assert_eq!([RAW, WITH_FS, SATA].map(ratio), [1.13, 0.28, 0.54]);
    }
}
