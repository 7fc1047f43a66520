//! Tells a drive that goes by it which pages a workload will write.
//!
//! The requests of a flow do not depend on what the drive does, and are the same every time; so the flow is opened once
//! more, read to its end, and every page that its writes touch is noted in order. Of several flows, which request comes
//! when depends on the drive, and nothing is known beforehand.

use std::path::Path;

use flashwise_block::Operation;
use flashwise_trace::workload::{FlowSource, Workload};

use super::SimulationError;
use super::target::Target;
use flashwise_ssd::FORETOLD_WRITES_MAX;

/// Tells the drive, if its configuration asks for it.
pub(super) fn tell<D: Target>(target: &mut D, workload: &Workload, base: &Path) -> Result<(), SimulationError> {
    let Some(config) = target.drive_config() else { return Ok(()) };
    if config.ftl.streams.foresight_error.is_none() {
        return Ok(());
    }
    let refused = |reason: &str| Err(SimulationError::Foresight { reason: reason.to_owned() });
    let [flow] = workload.flows.as_slice() else {
        return refused("the order of requests of several flows is unknown in advance: use one flow");
    };
    if flow.requests.is_none() && flow.trace.is_none() {
        return refused("the flow's end is unknown in advance: set its number of requests");
    }
    let (page, info) = (config.ftl.logical_page_bytes, target.info());
    let source = FlowSource::open(flow, 0, workload.seed, info.capacity, info.logical_block, base)?;
    let writes = source.filter(|request| request.operation == Operation::Write);
    let pages = writes.flat_map(|write| {
        let (from, length) = (write.offset.bytes(), write.length.bytes());
        (from / page) as u32..(from + length).div_ceil(page) as u32
    });
    let pages: Vec<u32> = pages.take(FORETOLD_WRITES_MAX + 1).collect();
    Ok(target.set_future_writes(&pages)?)
}
