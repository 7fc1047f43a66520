//! The probes, in the order in which they are run: what is needed by others comes first, what wears the drive last.
//!
//! A probe is one line in [`STEPS`]: its name, the figures that it settles, and what it does.

pub(crate) mod buffer;
pub(crate) mod cache;
mod channels;
mod chunk;
pub(crate) mod collection;
pub(crate) mod content;
mod far;
pub(crate) mod latency;
pub(crate) mod location;
pub(crate) mod page;
pub(crate) mod request_size;
pub(crate) mod sweep;
pub(crate) mod throughput;
mod turns;
pub(crate) mod units;
pub(crate) mod volumes;

use flashwise_block::Progress;

use crate::LearnError;
use crate::findings::Findings;
use crate::prober::Prober;

/// One probe.
pub(crate) struct Step {
    /// Its name, in profiles and messages.
    pub(crate) name: &'static str,
    /// The figures that it settles.
    pub(crate) figures: &'static [&'static str],
    /// Whether it is among those that lay out a database.
    pub(crate) layout: bool,
    /// Whether it writes the whole drive many times.
    pub(crate) whole_drive: bool,
    /// Whether it finds something on a drive that may only be read.
    pub(crate) reads_alone: bool,
    /// Whether it is run only where other sizes of requests were asked for.
    pub(crate) at_sizes: bool,
    /// The probe whose figures it works on; without them it is not begun.
    pub(crate) after: Option<&'static str>,
    /// What it does.
    pub(crate) run: fn(&mut Prober<'_>, &mut Findings, &mut dyn Progress) -> Result<(), LearnError>,
}

const fn step(
    name: &'static str,
    figures: &'static [&'static str],
    run: fn(&mut Prober<'_>, &mut Findings, &mut dyn Progress) -> Result<(), LearnError>,
) -> Step {
    Step { name, figures, layout: false, whole_drive: false, reads_alone: false, at_sizes: false, after: None, run }
}

const fn layout(step: Step) -> Step {
    Step { layout: true, ..step }
}

const fn reads_alone(step: Step) -> Step {
    Step { reads_alone: true, ..step }
}

/// Every probe.
///
/// What is read, and the buffer, come first: small writes that are forced to flash leave pages that are half full, and from
/// then on what belongs together may lie on two of them. What small writes program is asked while the drive may still be
/// new and have nothing to collect.
pub(crate) const STEPS: &[Step] = &[
    reads_alone(layout(step("reads", &["read_concurrency_4k", "read_concurrency_8k"], throughput::probe_reads))),
    reads_alone(layout(step("locations", &["chunk_bytes", "hot_location"], location::probe_locations))),
    reads_alone(layout(step("pages", &["page_bytes"], page::probe_page))),
    Step { whole_drive: true, ..step("small writes", &[], collection::probe_small_writes) },
    step("write burst", &["write_buffer_bytes"], buffer::probe),
    layout(step("durable writes", &["write_unit_bytes"], request_size::probe_durable_writes)),
    layout(step("reading back", &["stripe_bytes"], request_size::probe_read_back)),
    layout(step(
        "writes",
        &["asymmetry_4k", "write_concurrency_4k", "asymmetry_8k", "write_concurrency_8k"],
        throughput::probe_writes,
    )),
    step("latency", &["latency_asymmetry_4k", "latency_asymmetry_8k"], latency::probe_asymmetry),
    Step { at_sizes: true, ..layout(step("other sizes", &[], throughput::probe_other_sizes)) },
    step("durability", &["flush_ns", "durable_write_ns", "power_loss_protected"], latency::probe_durability),
    Step {
        after: Some("locations"),
        ..step("hot locations after writes", &["hot_location_survives_writes"], location::probe_survival)
    },
    reads_alone(step("caches", &["read_cache_bytes", "read_ahead_bytes"], cache::probe)),
    reads_alone(step("parallel units", &["parallel_units"], units::probe)),
    step("internal volumes", &["internal_volumes", "internal_volume_bits"], volumes::probe),
    step("content", &["compression_gain", "deduplication_gain"], content::probe),
    Step { whole_drive: true, ..step("collection", &collection::FIGURES, collection::probe) },
];
