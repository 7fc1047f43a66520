//! A workload written as a trace: `flashwise trace generate`.
//!
//! Flows run side by side, so their requests are merged by time, those of one time in the order of the flows. A timed
//! flow has the times of its arrivals. A closed flow has none before a drive answers: its request n is told as at n ns
//! after the flow's start, so that the order is kept; replay such a trace in a closed loop.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use flashwise_block::{ByteSize, Nanos};

use crate::TraceError;
use crate::output::{Conversion, TraceWriter};
use crate::record::TraceRecord;
use crate::workload::{FlowRequest, FlowSource, SourcePacing, Workload, WorkloadError};

/// Why a workload could not be written as a trace.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// The workload does not fit the drive.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The trace cannot be written.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A flow would never end here.
    #[error("flow '{flow}': duration_ns does not end a closed-loop flow without a drive: set requests")]
    Endless {
        /// Its name.
        flow: String,
    },
}

/// Writes the requests of a workload on a drive of `capacity` bytes in units of `logical_block`.
///
/// # Errors
/// When the workload does not fit the drive, would not end, or the output fails.
pub fn generate(
    workload: &Workload,
    capacity: ByteSize,
    logical_block: ByteSize,
    base: &Path,
    mut writer: TraceWriter<'_>,
) -> Result<Conversion, GenerateError> {
    let mut flows = Vec::new();
    for (index, flow) in workload.flows.iter().enumerate() {
        let source = FlowSource::open(flow, index, workload.seed, capacity, logical_block, base)?;
        let closed = source.pacing() != SourcePacing::Timed;
        if closed && flow.trace.is_none() && flow.requests.is_none() {
            return Err(GenerateError::Endless { flow: flow.name.clone() });
        }
        flows.push(Numbered { source, start_ns: flow.start_ns, closed, count: 0 });
    }
    let mut due: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut next: Vec<Option<FlowRequest>> = vec![None; flows.len()];
    for index in 0..flows.len() {
        advance(&mut flows, &mut next, &mut due, index)?;
    }
    while let Some(Reverse((at, index))) = due.pop() {
        if let Some(request) = next[index].take() {
            let record = TraceRecord::new(Nanos(at), request.operation, request.offset, request.length);
            writer.write(&TraceRecord { fua: request.fua, ..record })?;
        }
        advance(&mut flows, &mut next, &mut due, index)?;
    }
    let (written, losses) = writer.finish()?;
    Ok(Conversion { written, losses, early: 0 })
}

/// A flow whose requests are counted.
struct Numbered {
    source: FlowSource,
    start_ns: u64,
    closed: bool,
    count: u64,
}

fn advance(
    flows: &mut [Numbered],
    next: &mut [Option<FlowRequest>],
    due: &mut BinaryHeap<Reverse<(u64, usize)>>,
    index: usize,
) -> Result<(), GenerateError> {
    let flow = &mut flows[index];
    match flow.source.next() {
        Some(request) => {
            let at = if flow.closed { flow.count } else { request.at.0 };
            flow.count += 1;
            due.push(Reverse((flow.start_ns.saturating_add(at), index)));
            next[index] = Some(request);
            Ok(())
        }
        None => flow.source.failure().map_or(Ok(()), |failure| Err(failure.clone().into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TraceFormat;

    fn written(toml: &str) -> Result<String, GenerateError> {
        let workload = Workload::from_toml(toml, "w.toml")?;
        let mut bytes = Vec::new();
        let writer = TraceWriter::new(TraceFormat::Mqsim, &mut bytes, "out")?;
        generate(&workload, ByteSize::mib(1), ByteSize(512), Path::new(""), writer)?;
        Ok(String::from_utf8(bytes).unwrap())
    }

    const OPEN: &str = "[[flows]]\nrequests = 2\nsynthetic.access = 'sequential'\nsynthetic.size.fixed.bytes = 4096\n\
                        synthetic.pacing.open = { interarrival_ns = 1000, arrivals = 'constant' }\n";
    const CLOSED: &str = "[[flows]]\nstart_ns = 500\nsynthetic.access = 'sequential'\nsynthetic.size.fixed.bytes = 512\n\
                          synthetic.read_share = 1.0\nsynthetic.pacing.closed.queue_depth = 4\n";

    #[test]
    fn flows_are_merged_by_time() {
        let text = written(&format!("name = 'w'\n{OPEN}{CLOSED}requests = 2\n")).unwrap();
        assert_eq!(text, "0 0 0 8 0\n500 0 0 1 1\n501 0 1 1 1\n1000 0 8 8 0\n");
    }

    #[test]
    fn a_closed_flow_without_a_number_of_requests_would_not_end() {
        let error = written(&format!("name = 'w'\n{CLOSED}duration_ns = 5\n")).unwrap_err().to_string();
        assert!(error.starts_with("flow 'flow-1': duration_ns does not end"), "{error}");
    }
}
