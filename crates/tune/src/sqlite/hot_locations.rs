//! The published experiment: the same page size, plain and at hot locations.
//!
//! Up to three runs of one workload, each on a fresh drive: SQLite with default settings; with pages of the drive's
//! chunk; with these pages at hot locations. So the effect of the place is apart from that of the page size.
//!
//! Source: Kakaraparthy et al., PVLDB 13(4), 2019, section on SQLite3: 29 % more SELECTs a second.

use flashwise_block::{ByteSize, Progress};
use flashwise_profile::DeviceProfile;
use flashwise_sqlite::{Layout, TECHNIQUES, VfsOptions};

use super::knobs::HOT_LOCATIONS;
use super::run::{RunConfig, Workload, run};
use super::settings::{DEFAULT_PAGE, Settings};
use crate::{RunMeasurement, Target, TuneError};

/// SQLite's largest page.
const LARGEST_PAGE: ByteSize = ByteSize::kib(64);

/// The runs of the experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct HotLocationRuns {
    /// SQLite with default settings.
    pub default: RunMeasurement,
    /// Pages as long as the drive's chunk.
    pub before: RunMeasurement,
    /// The same at hot locations.
    pub after: RunMeasurement,
}

/// Runs the experiment; `None` on a drive whose hot locations are uncertain, absent, or where pages are anyway.
///
/// # Errors
/// When the target, the workload or the database fails.
pub fn hot_locations(
    target: &Target,
    workload: &Workload,
    profile: &DeviceProfile,
    seed: u64,
    progress: &mut dyn Progress,
) -> Result<Option<HotLocationRuns>, TuneError> {
    workload.check()?;
    let Some((page, hot)) = hot_pages(profile) else { return Ok(None) };
    let mut run = |label: String, page: ByteSize, vfs: VfsOptions| {
        let settings = Settings { vfs, ..workload.settings(page) };
        let config = RunConfig { label, techniques: settings.techniques(), settings, is_checked: true };
        Ok::<_, TuneError>(run(target, &config, (workload, None), seed, None, progress)?.measurement)
    };
    Ok(Some(HotLocationRuns {
        default: run(format!("{DEFAULT_PAGE} pages, plain"), DEFAULT_PAGE, VfsOptions::PLAIN)?,
        before: run(format!("{page} pages, plain"), page, VfsOptions::PLAIN)?,
        after: run(format!("{page} pages, hot locations"), page, hot)?,
    }))
}

/// The page size and the layout at the hot locations of a drive, as the technique chooses it.
fn hot_pages(profile: &DeviceProfile) -> Option<(ByteSize, VfsOptions)> {
    let technique = TECHNIQUES.iter().find(|technique| technique.name == HOT_LOCATIONS)?;
    let vfs = technique.recommended(&profile.parameters, &VfsOptions::PLAIN)?;
    let Layout::HotLocations { chunk, .. } = vfs.layout else { return None };
    let is_a_page = chunk.bytes().is_power_of_two() && (DEFAULT_PAGE..=LARGEST_PAGE).contains(&chunk);
    // A place in every chunk is hot only if the hot locations come once a chunk.
    let is_in_every_chunk = profile.parameters.hot_location.known()?.period_bytes == chunk.bytes();
    (is_a_page && is_in_every_chunk).then_some((chunk, vfs))
}
