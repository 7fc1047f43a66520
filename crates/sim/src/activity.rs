//! What channels, dies and commands did between two moments.

use flashwise_block::{DeviceCounters, FlashCounters};

use super::document::{Busy, CommandTimes, DataReduction, FlashActivity, SlcCache, Utilisation};
use super::target::Target;
use flashwise_ssd::SlcCacheCounters;
use flashwise_ssd::flash::{ClassStatistics, OpClass, Statistics};
use flashwise_ssd::reduction::ReductionCounters;

/// What a drive had counted when the workload started.
pub(super) struct Before {
    pub(super) counters: DeviceCounters,
    reduction: ReductionCounters,
    slc_cache: SlcCacheCounters,
    flash: Statistics,
    /// Bytes that drives had been given to write.
    given_bytes: u64,
}

impl Before {
    pub(super) fn of(drive: &impl Target) -> Self {
        let reduction = drive.reduction_counters().unwrap_or_default();
        let slc_cache = drive.slc_cache_counters().unwrap_or_default();
        let (flash, given_bytes) = (drive.flash_statistics(), drive.bytes_given_to_drives());
        Self { counters: drive.counters(), reduction, slc_cache, flash, given_bytes }
    }

    /// Bytes that drives were given to write.
    pub(super) fn given_bytes(&self, drive: &impl Target) -> u64 {
        drive.bytes_given_to_drives() - self.given_bytes
    }

    /// What the drive did to store less than it was given.
    pub(super) fn reduction(&self, drive: &impl Target) -> Option<DataReduction> {
        let (now, then, space) = (drive.reduction_counters()?, &self.reduction, drive.space_use()?);
        Some(DataReduction {
            bytes_written: now.written_bytes - then.written_bytes,
            bytes_of_zeros: now.zero_bytes - then.zero_bytes,
            bytes_duplicate: now.duplicate_bytes - then.duplicate_bytes,
            bytes_unique: now.unique_bytes - then.unique_bytes,
            bytes_stored: now.stored_bytes - then.stored_bytes,
            bytes_merged: now.merged_bytes - then.merged_bytes,
            lookups: now.lookups - then.lookups,
            logical_bytes: space.logical_bytes,
            physical_bytes: space.physical_bytes,
            physical_capacity_bytes: space.physical_capacity_bytes,
        })
    }

    /// What went through the SLC cache, where `flash` counts what the flash did.
    pub(super) fn slc_cache(&self, drive: &impl Target, flash: &FlashCounters) -> Option<SlcCache> {
        let (now, holds) = (drive.slc_cache_counters()?, drive.slc_cache_use()?);
        Some(SlcCache {
            capacity_bytes: holds.capacity_bytes,
            bytes_cached: flash.slc_bytes_programmed.0,
            bytes_bypassed: now.bypassed_bytes - self.slc_cache.bypassed_bytes,
            bytes_folded: flash.folding_bytes_moved.0,
            superblocks_folded: flash.folding_runs,
            superblocks: holds.superblocks,
            valid_bytes: holds.valid_bytes,
        })
    }

    /// How busy the parts were over `elapsed_ns`.
    pub(super) fn utilisation(&self, drive: &impl Target, elapsed_ns: u64) -> Utilisation {
        let dies_per_chip = drive.drive_config().map_or(1, |config| config.flash.dies_per_chip);
        Utilisation::between(&self.flash, &drive.flash_statistics(), dies_per_chip, elapsed_ns)
    }

    /// Waiting and service by class of command.
    pub(super) fn command_times(&self, drive: &impl Target) -> Vec<CommandTimes> {
        let now = drive.flash_statistics();
        let times = |class: OpClass| {
            let (now, then) = (now.class(class), self.flash.class(class));
            let span = ClassStatistics {
                commands: now.commands - then.commands,
                waiting_ns: now.waiting_ns - then.waiting_ns,
                service_ns: now.service_ns - then.service_ns,
            };
            CommandTimes {
                class: class.name().to_owned(),
                commands: span.commands,
                mean_waiting_ns: span.mean_waiting_ns(),
                mean_service_ns: span.mean_service_ns(),
            }
        };
        OpClass::ALL.into_iter().map(times).filter(|times| times.commands > 0).collect()
    }

    /// Energy of all flash operations, mJ.
    pub(super) fn energy_mj(&self, drive: &impl Target) -> Option<f64> {
        let now = drive.flash_statistics().energy_nj();
        (now > 0.0).then(|| (now - self.flash.energy_nj()) / 1e6)
    }

    /// Pages, blocks and bytes; `counters` are those of the run.
    pub(super) fn flash_activity(&self, drive: &impl Target, counters: &FlashCounters) -> FlashActivity {
        let (now, then) = (drive.flash_statistics(), &self.flash);
        FlashActivity {
            reads: now.pages_sensed - then.pages_sensed,
            programs: now.pages_programmed - then.pages_programmed,
            erases: now.blocks_erased - then.blocks_erased,
            bytes_read: counters.bytes_read.0,
            bytes_programmed: counters.bytes_programmed.0,
            bytes_padded: counters.padding_bytes.0,
            program_suspensions: now.program_suspensions - then.program_suspensions,
            erase_suspensions: now.erase_suspensions - then.erase_suspensions,
            read_retries: now.read_retries - then.read_retries,
            uncorrectable_reads: now.uncorrectable_reads - then.uncorrectable_reads,
            failed_programs: now.failed_programs - then.failed_programs,
            failed_erases: now.failed_erases - then.failed_erases,
        }
    }
}

impl Utilisation {
    /// How busy the parts were between two looks at [`SimulatedSsd::flash_statistics`] that are `elapsed_ns` apart.
    pub fn between(then: &Statistics, now: &Statistics, dies_per_chip: u32, elapsed_ns: u64) -> Self {
        let channels = now.channels.iter().zip(&then.channels).map(|(now, then)| now.busy_ns - then.busy_ns);
        let dies = now.dies.iter().zip(&then.dies).map(|(now, then)| now.array_ns - then.array_ns);
        let planes = now.planes_ns.iter().zip(&then.planes_ns).map(|(now, then)| now - then);
        let dies = busy(dies, elapsed_ns);
        let chips = of_chips(&dies.each, dies_per_chip as usize);
        Self { channels: busy(channels, elapsed_ns), chips, dies, planes: busy(planes, elapsed_ns) }
    }
}

fn busy(busy_ns: impl Iterator<Item = u64>, elapsed_ns: u64) -> Busy {
    let share = |ns: u64| if elapsed_ns == 0 { 0.0 } else { (ns as f64 / elapsed_ns as f64).min(1.0) };
    of_shares(busy_ns.map(share).collect())
}

/// How busy chips were: each the mean of its dies.
fn of_chips(dies: &[f64], dies_per_chip: usize) -> Busy {
    let mean = |dies: &[f64]| dies.iter().sum::<f64>() / dies.len() as f64;
    of_shares(dies.chunks(dies_per_chip.max(1)).map(mean).collect())
}

fn of_shares(each: Vec<f64>) -> Busy {
    let (min, max) = each.iter().fold((1.0_f64, 0.0_f64), |(min, max), &one| (min.min(one), max.max(one)));
    let mean = each.iter().sum::<f64>() / each.len().max(1) as f64;
    Busy { mean, min, max, each }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn business_is_a_share_of_the_elapsed_time() {
        let found = busy([50, 100, 0, 110].into_iter(), 100);
        assert_eq!((found.min, found.max, found.each), (0.0, 1.0, vec![0.5, 1.0, 0.0, 1.0]));
        assert_eq!(found.mean, 0.625);
        assert_eq!(busy([5].into_iter(), 0).max, 0.0);
    }

    #[test]
    fn a_chip_is_as_busy_as_its_dies_are_in_the_mean() {
        let chips = of_chips(&[0.5, 1.0, 0.0, 0.25], 2);
        assert_eq!((chips.each, chips.mean), (vec![0.75, 0.125], 0.4375));
    }
}
