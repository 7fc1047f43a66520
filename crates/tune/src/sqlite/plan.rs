//! The plan for a SQLite database from a drive's profile.
//!
//! One technique so far, *use-hot-locations* (Kakaraparthy et al., PVLDB 13(4), 2019, section on SQLite3): the page is
//! as long as the drive's chunk, and every page starts at a hot location. It gains only if SQLite's pages are not at
//! hot locations anyway.

use flashwise_block::ByteSize;
use flashwise_profile::{DeviceProfile, Verdict};
use flashwise_sqlite::Layout;

use super::settings::DEFAULT_PAGE;
use crate::Applied;

/// SQLite's largest page.
const LARGEST_PAGE: ByteSize = ByteSize::kib(64);

/// The techniques to apply, or the reason for none.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) page: ByteSize,
    pub(crate) layout: Layout,
    /// Empty where the drive leaves nothing to gain.
    pub(crate) applied: Vec<Applied>,
    /// Why nothing is applied.
    pub(crate) obstacle: Option<Obstacle>,
}

/// Why nothing is applied.
#[derive(Clone, Debug)]
pub(crate) enum Obstacle {
    /// The drive leaves nothing to gain.
    NothingToGain(String),
    /// The parameters of the drive are inconclusive.
    NotCertain(String),
}

/// Makes a plan for a database with pages of `page_now`.
pub(crate) fn plan(profile: &DeviceProfile, page_now: ByteSize) -> Plan {
    let parameters = &profile.parameters;
    let known = (parameters.chunk_bytes.known(), parameters.hot_location.known());
    let (Some(chunk), Some(hot)) = known else {
        return nothing(page_now, without_figures(profile));
    };
    let (chunk, offset) = (ByteSize(chunk), ByteSize(hot.offset_bytes));
    if offset == ByteSize(0) {
        let reason = format!(
            "The hot locations of this drive are at multiples of {chunk}, where SQLite's pages of {page_now} are \
             already"
        );
        return nothing(page_now, Obstacle::NothingToGain(reason));
    }
    let layout = Layout::HotLocations { chunk, offset };
    let fits = chunk.bytes().is_power_of_two() && (DEFAULT_PAGE..=LARGEST_PAGE).contains(&chunk);
    if !fits || hot.period_bytes != chunk.bytes() || layout.check().is_err() {
        let reason = format!("SQLite's pages cannot be as large as this drive's chunk of {chunk}");
        return nothing(page_now, Obstacle::NothingToGain(reason));
    }
    let longer = (page_now != chunk).then(|| page_size(page_now, chunk));
    let applied = longer.into_iter().chain([hot_locations(chunk, offset)]).collect();
    Plan { page: chunk, layout, applied, obstacle: None }
}

fn nothing(page: ByteSize, obstacle: Obstacle) -> Plan {
    Plan { page, layout: Layout::Plain, applied: Vec::new(), obstacle: Some(obstacle) }
}

/// Chunk or hot locations are absent, or not certain.
fn without_figures(profile: &DeviceProfile) -> Obstacle {
    let (chunk, hot) = (&profile.parameters.chunk_bytes, &profile.parameters.hot_location);
    if chunk.verdict == Verdict::Absent || hot.verdict == Verdict::Absent {
        return Obstacle::NothingToGain("This drive has no chunks, so no location is better than another".into());
    }
    Obstacle::NotCertain("The chunk or the hot locations of this drive are inconclusive".into())
}

fn page_size(old: ByteSize, chunk: ByteSize) -> Applied {
    Applied {
        name: "page_size".into(),
        old_value: old.to_string(),
        new_value: chunk.to_string(),
        reason: format!("this drive can serve a read of one chunk, {chunk}, with two channels"),
        undo: format!("PRAGMA page_size = {}; VACUUM", old.bytes()),
    }
}

fn hot_locations(chunk: ByteSize, offset: ByteSize) -> Applied {
    Applied {
        name: "use-hot-locations".into(),
        old_value: format!("pages at {chunk}·i"),
        new_value: format!("pages at {chunk}·i + {offset}"),
        reason: format!(
            "reads that start at {chunk}·i + {offset} are the fastest; writes are split at {chunk} boundaries to keep \
             them so"
        ),
        undo: "flashwise sqlite export FILE PLAIN".into(),
    }
}
