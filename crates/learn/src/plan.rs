//! The steps of learning, in the order in which they run: what others need comes first, what wears the drive last.
//!
//! The order follows from the types: a probe takes the evidence of those before it. What the types leave free is chosen
//! here. What is read, and the buffer, come first: small writes that are forced to flash leave pages that are half
//! full, and from then on what belongs together may are on two of them. What small writes program is measured while the
//! drive may still be new, before garbage collection runs.
//!
//! A real drive is never new, and its budgets may end the run early. There the cost of durability comes first: it takes
//! a few megabytes, and a database needs it more than any other figure.

use crate::probes::{
    buffer, cache, card, collection, content, latency, limits, location, page, request_size, small_writes, throughput,
    units, volumes,
};
use crate::session::{Ended, Session};

/// Runs every step.
///
/// # Errors
/// When learning ends early.
pub(crate) fn run(session: &mut Session<'_, '_>) -> Result<(), Ended> {
    session.step(&limits::LIMITS, limits::probe)?;
    session.step(&card::CARD, card::probe)?;
    if session.is_on_real_drive() {
        session.step(&latency::DURABILITY, latency::probe_durability)?;
    }
    let sizes = session.sizes_to_measure();
    let mut reads = session
        .step(&throughput::READS, |prober, draft, progress| throughput::probe_reads(prober, &sizes, draft, progress))?;
    let locations = session.step(&location::LOCATIONS, location::probe_locations)?;
    let layout =
        session.step(&page::PAGES, |prober, draft, progress| page::probe_page(prober, locations, draft, progress))?;
    let padding =
        session.step(&small_writes::SMALL_WRITES, |prober, _, progress| small_writes::probe(prober, progress))?;
    let buffer = session.step(&buffer::WRITE_BURST, buffer::probe)?;
    let write_unit = session.step(&request_size::DURABLE_WRITES, |prober, draft, progress| {
        request_size::probe_durable_writes(prober, (&reads, buffer), draft, progress)
    })?;
    session.step(&request_size::READING_BACK, |prober, draft, progress| {
        request_size::probe_read_back(prober, (buffer, write_unit), draft, progress)
    })?;
    let writes = session.step(&throughput::WRITES, |prober, draft, progress| {
        reads.complete(prober, &sizes, progress)?;
        throughput::probe_writes(prober, (&reads, buffer, padding), draft, progress)
    })?;
    session.step(&latency::LATENCY, |prober, draft, progress| {
        latency::probe_asymmetry(prober, (&reads, buffer), draft, progress)
    })?;
    session.step(&throughput::OTHER_SIZES, |prober, draft, progress| {
        throughput::probe_other_sizes(prober, (&reads, buffer), &sizes, draft, progress)
    })?;
    let durability = session.step(&latency::DURABILITY, latency::probe_durability)?;
    session.step(&location::SURVIVAL, |prober, draft, progress| {
        location::probe_survival(prober, &layout, draft, progress)
    })?;
    let cached = session.step(&cache::CACHES, cache::probe)?;
    let units = session.step(&units::PARALLEL_UNITS, |prober, draft, progress| {
        units::probe(prober, (padding, cached), draft, progress)
    })?;
    let units = session.step(&volumes::INTERNAL_VOLUMES, |prober, draft, progress| {
        volumes::probe(prober, (&reads, buffer, units), draft, progress)
    })?;
    session.step(&content::CONTENT, |prober, draft, progress| content::probe(prober, buffer, draft, progress))?;
    session.step(&collection::COLLECTION, |prober, draft, progress| {
        let fresh = collection::FreshDrive { buffer, padding, writes, units, durability };
        collection::probe(prober, fresh, draft, progress)
    })?;
    session.step(&collection::cliff::CLIFF, |prober, draft, progress| {
        collection::cliff::probe(prober, buffer, draft, progress)
    })
}
