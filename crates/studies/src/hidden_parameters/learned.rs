//! The drives of both tables, each learned blind with one or more seeds.

use flashwise_block::Silent;
use flashwise_learn::{LearnOptions, learn};
use flashwise_profile::{DeviceProfile, Parameters, published_asymmetries, published_drives};
use flashwise_report::study::{LearnedCell, StudyCell, StudyVerdict};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

use crate::{Progress, StudyError, StudyOptions, parallel, verdict};

/// Seeds of the full study; the quick one takes the first.
const SEEDS: u64 = 5;

/// A drive, learned with each seed.
pub(super) struct LearnedDrive {
    preset: &'static str,
    profiles: Vec<DeviceProfile>,
}

/// All drives.
pub(super) struct LearnedDrives(Vec<LearnedDrive>);

/// Learns the drives of both tables.
pub(super) fn all(options: &StudyOptions, progress: Progress<'_>) -> Result<LearnedDrives, StudyError> {
    let seeds = if options.quick { 1 } else { SEEDS };
    let presets = published_drives().iter().map(|drive| drive.preset);
    let presets: Vec<&str> = presets.chain(published_asymmetries().iter().map(|drive| drive.preset)).collect();
    let inputs: Vec<(&str, u64)> =
        presets.iter().flat_map(|&preset| (0..seeds).map(move |n| (preset, options.seed.wrapping_add(n)))).collect();
    let mut profiles =
        parallel::map("learning nine drives", &inputs, progress, |&(preset, seed)| one(preset, seed))?.into_iter();
    let drive =
        |&preset: &&'static str| LearnedDrive { preset, profiles: profiles.by_ref().take(seeds as usize).collect() };
    Ok(LearnedDrives(presets.iter().map(drive).collect()))
}

fn one(preset: &str, seed: u64) -> Result<DeviceProfile, StudyError> {
    let mut drive = SimulatedSsd::new(DeviceConfig::preset(preset)?, seed)?;
    let options = LearnOptions { seed, ..LearnOptions::new(format!("sim:{preset}")) };
    Ok(learn(&mut drive, &options, &mut Silent)?)
}

impl LearnedDrives {
    /// The drive of a preset.
    pub(super) fn of(&self, preset: &str) -> Result<&LearnedDrive, StudyError> {
        self.0.iter().find(|drive| drive.preset == preset).ok_or(StudyError::Lost)
    }
}

impl LearnedDrive {
    /// Its model.
    pub(super) fn name(&self) -> &str {
        self.profiles.first().map_or(self.preset, |profile| &profile.device.name)
    }

    /// With how many seeds it was learned.
    pub(super) fn seeds(&self) -> usize {
        self.profiles.len()
    }

    /// What was learned with the first seed.
    pub(super) fn first(&self) -> Result<&DeviceProfile, StudyError> {
        self.profiles.first().ok_or(StudyError::Lost)
    }

    /// What was learned with each seed.
    pub(super) fn parameters(&self) -> impl Iterator<Item = &Parameters> {
        self.profiles.iter().map(|profile| &profile.parameters)
    }
}

/// The figures of a profile with these keys, as cells.
pub(super) fn cells(profile: &DeviceProfile, keys: &[&str]) -> Vec<StudyCell> {
    let entries = profile.parameters.entries();
    let cell = |key: &&str| {
        let entry = entries.iter().find(|entry| entry.key == *key);
        entry.map_or(StudyCell::text("?"), |entry| StudyCell::Learned(LearnedCell::new(entry)))
    };
    keys.iter().map(cell).collect()
}

/// What so many figures of all that agree say of a claim: all of them reproduce it, half of them in part.
pub(super) fn verdict(agreeing: usize, all: usize) -> StudyVerdict {
    verdict::verdict(agreeing == all, 2 * agreeing >= all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_figures_reproduce_a_claim_and_half_of_them_a_part_of_it() {
        assert_eq!(verdict(6, 6), StudyVerdict::Reproduced);
        assert_eq!([verdict(5, 6), verdict(3, 6)], [StudyVerdict::Partly; 2]);
        assert_eq!([verdict(2, 6), verdict(0, 6)], [StudyVerdict::NotReproduced; 2]);
    }
}
