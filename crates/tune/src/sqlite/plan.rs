//! What a drive's profile says should be done to a SQLite database.
//!
//! One technique so far, *use-hot-locations* (Kakaraparthy et al., PVLDB 13(4), 2019, section on SQLite3): the page is
//! as long as the drive's chunk, and every page starts at a hot location. It is worth something only where the hot
//! locations are not where SQLite's pages are anyway.

use flashwise_block::ByteSize;
use flashwise_profile::{DeviceProfile, Verdict};
use flashwise_sqlite::Layout;

use super::settings::DEFAULT_PAGE;
use crate::Applied;

/// SQLite's largest page.
const LARGEST_PAGE: ByteSize = ByteSize::kib(64);

/// What is to be applied, or why nothing is.
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
    /// The drive could not be told well enough.
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
            "The hot locations of this drive are at every multiple of {chunk}, where SQLite's pages of {page_now} are \
             already"
        );
        return nothing(page_now, Obstacle::NothingToGain(reason));
    }
    let layout = Layout::HotLocations { chunk, offset };
    let fits = chunk.bytes().is_power_of_two() && (DEFAULT_PAGE..=LARGEST_PAGE).contains(&chunk);
    if !fits || hot.period_bytes != chunk.bytes() || layout.check().is_err() {
        let reason = format!("SQLite has no pages as long as this drive's chunk of {chunk}");
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
        return Obstacle::NothingToGain("This drive shows no chunks, so that no place is better than another".into());
    }
    Obstacle::NotCertain("The chunk or the hot locations of this drive are not certain".into())
}

fn page_size(old: ByteSize, chunk: ByteSize) -> Applied {
    Applied {
        name: "page_size".into(),
        old_value: old.to_string(),
        new_value: chunk.to_string(),
        reason: format!("a read of one chunk, {chunk}, is what this drive can share between two channels"),
        undo: format!("PRAGMA page_size = {}; VACUUM", old.bytes()),
    }
}

fn hot_locations(chunk: ByteSize, offset: ByteSize) -> Applied {
    Applied {
        name: "use-hot-locations".into(),
        old_value: format!("pages at {chunk}·i"),
        new_value: format!("pages at {chunk}·i + {offset}"),
        reason: format!(
            "reads that start at {chunk}·i + {offset} are the fastest; writes are cut at {chunk} boundaries so that they \
             stay so"
        ),
        undo: "flashwise sqlite export FILE PLAIN".into(),
    }
}
