//! What must hold of every simulation, whatever the drive and the workload; checked in every build.
//!
//! | name | what is compared with what |
//! |---|---|
//! | `every-request-completes` | requests issued and completed, flow by flow; none is left with the drive |
//! | `littles-law` | IOPS × mean response time, from the drive's own times, and the mean number of requests in flight, which the driver adds up over time |
//! | `queue-depth-is-kept` | a closed flow without pauses has its queue depth in flight from its start to its last submission |
//! | `valid-pages-are-mapped` | valid pages added up over the superblocks, and mapped logical pages |
//! | `nothing-written-is-lost` | bytes programmed, absorbed, still buffered and saved by data reduction, and bytes that the host wrote: where nothing is absorbed or buffered, write amplification is at least 1 |
//! | `members-write-what-they-are-told` | of an array: bytes of data, parity and rebuilding that its controller sent, and bytes that its members wrote |
//! | `every-page-is-zeros-duplicate-or-unique` | pages that a drive which reduces was given, and their sorts; physical bytes and their limit |
//!
//! Little's law: Little, "A Proof for the Queuing Formula: L = λW", Operations Research 9(3), 1961.

use flashwise_block::{DeviceCounters, FlashCounters};
use serde::{Deserialize, Serialize};

use super::recorder::{EndedFlow, Record};
use super::target::Target;
use super::{DataReduction, SimulationError};
use flashwise_array::ArrayActivity;

/// Relative difference of two figures that are computed in different ways.
const TOLERANCE: f64 = 0.01;

/// One thing that was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invariant {
    /// Its name.
    pub name: String,
    /// Whether it held.
    pub holds: bool,
    /// The figures that were compared.
    pub detail: String,
}

impl Invariant {
    fn new(name: impl Into<String>, holds: bool, detail: String) -> Self {
        Self { name: name.into(), holds, detail }
    }
}

/// Checks a run; all invariants that apply, each of which holds.
///
/// # Errors
/// With the first one that does not hold.
pub(super) fn check(
    drive: &impl Target,
    record: &Record,
    (counters, given_bytes): (&DeviceCounters, u64),
    reduction: Option<&DataReduction>,
    array: Option<&ArrayActivity>,
) -> Result<Vec<Invariant>, SimulationError> {
    let mut checked = vec![every_request_completes(&record.flows, record.outstanding)];
    for flow in &record.flows {
        checked.extend(littles_law(flow));
        checked.extend(queue_depth_is_kept(flow));
    }
    let (mapped, valid) = drive.mapped_and_valid_pages();
    checked.push(valid_pages_are_mapped(mapped, valid));
    let flash = counters.flash.unwrap_or_default();
    let saved = reduction.map_or(0, |it| it.bytes_of_zeros + it.bytes_duplicate + it.bytes_unique - it.bytes_stored);
    checked.push(nothing_written_is_lost(given_bytes, &flash, drive.buffered_bytes(), saved));
    checked.extend(reduction.map(every_page_is_of_one_kind));
    checked.extend(array.map(|array| members_write_what_they_are_told(array, given_bytes)));
    all_hold(checked)
}

fn all_hold(checked: Vec<Invariant>) -> Result<Vec<Invariant>, SimulationError> {
    match checked.iter().find(|invariant| !invariant.holds) {
        Some(Invariant { name, detail, .. }) => {
            Err(SimulationError::Invariant { name: name.clone(), detail: detail.clone() })
        }
        None => Ok(checked),
    }
}

fn every_request_completes(flows: &[EndedFlow], with_the_drive: u64) -> Invariant {
    let lost = |flow: &&EndedFlow| flow.outstanding > 0 || flow.submitted != flow.answered().0;
    let (issued, completed) = match flows.iter().find(lost) {
        Some(flow) => (flow.submitted, flow.answered().0),
        None => flows.iter().fold((0, 0), |sum, flow| (sum.0 + flow.submitted, sum.1 + flow.answered().0)),
    };
    let holds = !flows.iter().any(|flow| lost(&flow)) && with_the_drive == 0;
    let detail = format!("{issued} submitted, {completed} completed, {with_the_drive} still in flight");
    Invariant::new("every-request-completes", holds, detail)
}

/// `None` where a flow had no request, or all of its time was one moment.
fn littles_law(flow: &EndedFlow) -> Option<Invariant> {
    let elapsed_s = flow.elapsed_ns() as f64 / 1e9;
    let (count, sum_ns) = flow.answered();
    if count == 0 || elapsed_s == 0.0 {
        return None;
    }
    let (count, sum_s) = (count as f64, sum_ns as f64 / 1e9);
    let (iops, response_s) = (count / elapsed_s, sum_s / count);
    let in_flight = flow.area as f64 / 1e9 / elapsed_s;
    let detail = format!(
        "{iops:.1} requests/s × {:.3} µs = {:.4}, in flight {in_flight:.4}",
        response_s * 1e6,
        iops * response_s
    );
    Some(Invariant::new(named("littles-law", flow), agree(iops * response_s, in_flight), detail))
}

/// `None` where the flow keeps no depth, or never had to refill it.
fn queue_depth_is_kept(flow: &EndedFlow) -> Option<Invariant> {
    let depth = flow.queue_depth?;
    let filling_ns = flow.last_submission_ns - flow.start_ns;
    if filling_ns == 0 {
        return None;
    }
    let in_flight = flow.area_at_last_submission as f64 / filling_ns as f64;
    let detail = format!("queue depth {depth}, in flight {in_flight:.4} up to the last submission");
    Some(Invariant::new(named("queue-depth-is-kept", flow), agree(in_flight, f64::from(depth)), detail))
}

fn valid_pages_are_mapped(mapped: u64, valid: u64) -> Invariant {
    Invariant::new("valid-pages-are-mapped", mapped == valid, format!("{mapped} mapped, {valid} valid"))
}

fn nothing_written_is_lost(written: u64, flash: &FlashCounters, buffered: u64, saved: u64) -> Invariant {
    let (programmed, absorbed) = (flash.bytes_programmed.0, flash.absorbed_bytes.0);
    let reduced = if saved > 0 { format!(", {saved} saved by data reduction") } else { String::new() };
    let detail =
        format!("{written} bytes written; {programmed} programmed, {absorbed} absorbed, {buffered} buffered{reduced}");
    Invariant::new("nothing-written-is-lost", programmed + absorbed + buffered + saved >= written, detail)
}

/// What a drive has not completed when it fails, or at the end, it was told and has not written.
fn members_write_what_they_are_told(array: &ArrayActivity, given_bytes: u64) -> Invariant {
    let told = array.accesses.bytes_written();
    let may_lack = !array.failures.is_empty() || array.controller.cached_bytes.is_some() || !array.rebuilds.is_empty();
    let holds = if may_lack { given_bytes <= told } else { given_bytes == told };
    let detail = format!("{told} bytes of data, parity and rebuild sent to members, {given_bytes} written by them");
    Invariant::new("members-write-what-they-are-told", holds, detail)
}

fn every_page_is_of_one_kind(it: &DataReduction) -> Invariant {
    let DataReduction { bytes_written, bytes_of_zeros, bytes_duplicate, bytes_unique, .. } = *it;
    let detail = format!(
        "{bytes_written} bytes of pages written: {bytes_of_zeros} zeros, {bytes_duplicate} duplicate, {bytes_unique} unique"
    );
    let holds = bytes_written == bytes_of_zeros + bytes_duplicate + bytes_unique
        && it.physical_bytes <= it.physical_capacity_bytes;
    Invariant::new("every-page-is-zeros-duplicate-or-unique", holds, detail)
}

fn named(name: &str, flow: &EndedFlow) -> String {
    format!("{name}: {}", flow.name)
}

fn agree(a: f64, b: f64) -> bool {
    (a - b).abs() <= TOLERANCE * a.abs().max(b.abs())
}

#[cfg(test)]
mod tests {
    use flashwise_block::{ByteSize, Operation};

    use super::*;
    use crate::recorder::FlowRecord;

    /// Two requests in flight for as long as there are any: 100 ns each, one after the other on two places.
    fn flow(completed: u64, response_ns: u64) -> EndedFlow {
        let mut record = FlowRecord::default();
        record.start(0);
        record.submitted(0);
        record.submitted(0);
        for n in 0..completed {
            let now = (n / 2 + 1) * 100;
            record.completed(Operation::Read, ByteSize(4096), response_ns, now);
            if n + 2 < completed {
                record.submitted(now);
            }
        }
        record.end("f".to_owned(), Some(2))
    }

    #[test]
    fn a_sound_run_passes() {
        let sound = flow(1_000, 100);
        assert!(every_request_completes(std::slice::from_ref(&sound), 0).holds);
        assert!(littles_law(&sound).unwrap().holds && queue_depth_is_kept(&sound).unwrap().holds);
    }

    #[test]
    fn a_lost_request_is_found() {
        let lost = flow(1, 100);
        let found = every_request_completes(&[lost], 1);
        assert!(!found.holds && found.detail.starts_with("2 submitted, 1 completed"), "{}", found.detail);
        assert!(!every_request_completes(&[flow(10, 100)], 1).holds);
    }

    #[test]
    fn response_times_that_do_not_fit_the_load_are_found() {
        assert!(!littles_law(&flow(1_000, 103)).unwrap().holds);
    }

    #[test]
    fn a_queue_that_runs_dry_is_found() {
        let mut record = FlowRecord::default();
        record.start(0);
        (0..10).for_each(|n| {
            record.submitted(n * 100);
            record.completed(Operation::Write, ByteSize(512), 50, n * 100 + 50);
        });
        let found = queue_depth_is_kept(&record.end("f".to_owned(), Some(1))).unwrap();
        assert!(!found.holds, "{}", found.detail);
    }

    #[test]
    fn bytes_that_are_nowhere_are_found() {
        let flash = FlashCounters { bytes_programmed: ByteSize(4096), ..FlashCounters::default() };
        assert!(nothing_written_is_lost(8192, &flash, 4096, 0).holds);
        assert!(nothing_written_is_lost(8192, &flash, 0, 4096).holds);
        assert!(!nothing_written_is_lost(8192, &flash, 0, 0).holds);
        assert!(!valid_pages_are_mapped(3, 4).holds);
    }

    #[test]
    fn a_broken_invariant_is_an_error_that_names_it() {
        let error = all_hold(vec![valid_pages_are_mapped(3, 3), valid_pages_are_mapped(3, 4)]).unwrap_err();
        assert!(error.to_string().contains("valid-pages-are-mapped: 3 mapped, 4 valid"), "{error}");
    }
}
