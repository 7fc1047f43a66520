//! Injected faults of an attached drive: slow requests, unreadable bytes, refused writes.
//!
//! | fault | what clients see | until |
//! |---|---|---|
//! | latency spike | every request takes longer on the drive's clock | after a time or a number of requests, or cleared |
//! | unreadable bytes | reads that touch them get I/O errors | they are written, zeroed or trimmed, or cleared |
//! | read-only | writes, writes of zeros and trims are refused; reads and flushes are not | cleared |
//!
//! They are injected between the clients and the drive: the drive has done a delayed request before it completes, and
//! has the unreadable bytes. So faults do not change the drive's own counters.
//!
//! **Limits.** A power cut that undoes the write that made bytes readable leaves them readable, with their earlier
//! content.

use std::collections::BTreeMap;

use flashwise_block::{BlockError, ByteSize, DeviceInfo, Nanos, Operation};
use serde::{Deserialize, Serialize};

/// Longest latency that is added, ns: an hour.
const MAX_EXTRA_NS: u64 = 3_600_000_000_000;
/// Ranges that one order makes unreadable at most.
const MAX_RANGES: usize = 256;

/// Faults to inject.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FaultCommand {
    /// First end all faults that there are.
    pub clear: bool,
    /// Requests take longer; takes the place of an earlier one.
    pub latency_spike: Option<LatencySpike>,
    /// These bytes cannot be read, besides those that cannot be already.
    pub unreadable: Vec<Range>,
    /// The drive takes no more writes.
    pub read_only: bool,
}

/// Requests take longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencySpike {
    /// Extra latency, on the drive's clock.
    pub extra_ns: u64,
    /// Duration on the drive's clock; `None` for no such end.
    pub for_ns: Option<u64>,
    /// Number of requests; `None` for no such end.
    pub requests: Option<u64>,
}

/// Bytes of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// The first one.
    pub offset_bytes: u64,
    /// How many.
    pub length_bytes: u64,
}

/// The faults that there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultState {
    /// Requests take longer: by how much, and for how much longer; `null` where they do not.
    pub latency_spike: Option<LatencySpike>,
    /// Bytes that cannot be read.
    pub unreadable_bytes: u64,
    /// The drive refuses writes.
    pub read_only: bool,
}

/// The faults of a drive.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    spike: Option<Spike>,
    unreadable: Ranges,
    is_read_only: bool,
}

#[derive(Clone, Copy, Debug)]
struct Spike {
    extra: Nanos,
    until: Option<Nanos>,
    requests: Option<u64>,
}

impl Spike {
    fn is_over(&self, now: Nanos) -> bool {
        self.until.is_some_and(|until| now >= until) || self.requests == Some(0)
    }
}

impl FaultCommand {
    /// Checks whether a drive supports the command.
    ///
    /// # Errors
    /// In words: what is wrong, and what to do.
    pub fn check(&self, info: &DeviceInfo) -> Result<(), String> {
        if self.latency_spike.is_some_and(|spike| spike.extra_ns == 0 || spike.extra_ns > MAX_EXTRA_NS) {
            return Err("a latency spike must be more than 0 and at most an hour".to_owned());
        }
        if self.unreadable.len() > MAX_RANGES {
            return Err(format!("at most {MAX_RANGES} unreadable ranges can be given at once"));
        }
        let (block, capacity) = (info.logical_block.0, info.capacity.0);
        for Range { offset_bytes, length_bytes } in &self.unreadable {
            let is_whole = offset_bytes.is_multiple_of(block) && length_bytes.is_multiple_of(block);
            let is_inside = offset_bytes.checked_add(*length_bytes).is_some_and(|end| end <= capacity);
            if !is_whole || *length_bytes == 0 || !is_inside {
                return Err(format!(
                    "{offset_bytes}:{length_bytes} is not a range of this drive: give whole logical blocks of {block} \
                     bytes below byte {capacity}"
                ));
            }
        }
        Ok(())
    }
}

impl Faults {
    /// Applies a checked command.
    pub(crate) fn apply(&mut self, order: &FaultCommand, now: Nanos) {
        if order.clear {
            *self = Self::default();
        }
        if let Some(LatencySpike { extra_ns, for_ns, requests }) = order.latency_spike {
            let until = for_ns.map(|ns| Nanos(now.0.saturating_add(ns)));
            self.spike = Some(Spike { extra: Nanos(extra_ns), until, requests });
        }
        order.unreadable.iter().for_each(|range| self.unreadable.insert(range.offset_bytes, range.length_bytes));
        self.is_read_only |= order.read_only;
    }

    /// How much longer a request takes that comes now.
    pub(crate) fn delay(&mut self, now: Nanos) -> Nanos {
        let Some(spike) = &mut self.spike else { return Nanos(0) };
        if spike.is_over(now) {
            self.spike = None;
            return Nanos(0);
        }
        spike.requests = spike.requests.map(|left| left - 1);
        spike.extra
    }

    /// Whether a request is not taken at all.
    #[inline]
    pub(crate) fn refuses(&self, operation: Operation) -> bool {
        self.is_read_only && (operation.writes() || operation == Operation::Trim)
    }

    /// The completion for the client after the drive has done a request.
    pub(crate) fn done(&mut self, operation: Operation, offset: ByteSize, length: ByteSize) -> Result<(), BlockError> {
        if self.unreadable.is_empty() {
            return Ok(());
        }
        match operation {
            Operation::Flush => {}
            Operation::Read if self.unreadable.overlaps(offset.0, length.0) => {
                return Err(BlockError::Uncorrectable { operation, offset, length });
            }
            Operation::Read => {}
            Operation::Write | Operation::WriteZeroes | Operation::Trim => self.unreadable.remove(offset.0, length.0),
        }
        Ok(())
    }

    /// The faults that there are.
    pub(crate) fn state(&self, now: Nanos) -> FaultState {
        let spike = self.spike.filter(|spike| !spike.is_over(now));
        let told = |spike: Spike| LatencySpike {
            extra_ns: spike.extra.0,
            for_ns: spike.until.map(|until| until.since(now).0),
            requests: spike.requests,
        };
        FaultState {
            latency_spike: spike.map(told),
            unreadable_bytes: self.unreadable.bytes(),
            read_only: self.is_read_only,
        }
    }
}

/// A set of bytes: each start with its end, apart from one another.
#[derive(Debug, Default)]
struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn bytes(&self) -> u64 {
        self.0.iter().map(|(start, end)| end - start).sum()
    }

    fn overlaps(&self, offset: u64, length: u64) -> bool {
        self.0.range(..offset.saturating_add(length)).next_back().is_some_and(|(_, &end)| end > offset)
    }

    fn insert(&mut self, offset: u64, length: u64) {
        self.remove(offset, length);
        self.0.insert(offset, offset.saturating_add(length));
    }

    fn remove(&mut self, offset: u64, length: u64) {
        let until = offset.saturating_add(length);
        while let Some((&start, &end)) = self.0.range(..until).next_back().filter(|&(_, &end)| end > offset) {
            self.0.remove(&start);
            if end > until {
                self.0.insert(until, end);
            }
            if start < offset {
                self.0.insert(start, offset);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use flashwise_block::BlockDevice;
    use flashwise_ssd::{DeviceConfig, SimulatedSsd};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_spike_ends_with_its_time_or_its_requests_whichever_is_asked_for() {
        let order = |for_ns, requests| FaultCommand {
            latency_spike: Some(LatencySpike { extra_ns: 50, for_ns, requests }),
            ..FaultCommand::default()
        };
        let delays = |faults: &mut Faults, times: &[u64]| -> Vec<u64> {
            times.iter().map(|&now| faults.delay(Nanos(now)).0).collect()
        };
        let mut faults = Faults::default();
        faults.apply(&order(Some(100), None), Nanos(1000));
        assert_eq!(faults.state(Nanos(1040)).latency_spike.unwrap().for_ns, Some(60));
        assert_eq!(delays(&mut faults, &[1000, 1099, 1100, 1101]), [50, 50, 0, 0]);
        faults.apply(&order(None, Some(2)), Nanos(2000));
        assert_eq!(delays(&mut faults, &[2000, 9000, 9001]), [50, 50, 0]);
        assert_eq!(faults.state(Nanos(9001)), FaultState::default());
        faults.apply(&order(None, None), Nanos(0));
        assert_eq!(delays(&mut faults, &[1, u64::MAX]), [50, 50]);
        faults.apply(&FaultCommand { clear: true, ..FaultCommand::default() }, Nanos(0));
        assert_eq!(delays(&mut faults, &[1]), [0]);
    }

    #[test]
    fn only_what_a_drive_can_do_is_taken() {
        let drive = SimulatedSsd::new(DeviceConfig::preset("samsung-960-evo").unwrap(), 1).unwrap();
        let capacity = drive.info().capacity.0;
        let range = |offset_bytes, length_bytes| FaultCommand {
            unreadable: vec![Range { offset_bytes, length_bytes }],
            ..FaultCommand::default()
        };
        assert_eq!(range(capacity - 4096, 4096).check(drive.info()), Ok(()));
        for wrong in [range(1, 4096), range(0, 100), range(0, 0), range(capacity, 512), range(u64::MAX - 511, 512)] {
            assert!(wrong.check(drive.info()).unwrap_err().contains("not a range of this drive"), "{wrong:?}");
        }
        let many =
            FaultCommand { unreadable: vec![range(0, 512).unreadable[0]; MAX_RANGES + 1], ..FaultCommand::default() };
        assert!(many.check(drive.info()).is_err());
        for extra_ns in [0, MAX_EXTRA_NS + 1] {
            let spike = LatencySpike { extra_ns, for_ns: None, requests: None };
            assert!(
                FaultCommand { latency_spike: Some(spike), ..FaultCommand::default() }.check(drive.info()).is_err()
            );
        }
    }

    proptest! {
        #[test]
        fn ranges_are_what_a_row_of_flags_is(
            steps in prop::collection::vec((0_u8..3, 0_u64..60, 1_u64..20), 0..60)
        ) {
            let (mut ranges, mut flags) = (Ranges::default(), [false; 80]);
            for (kind, offset, length) in steps {
                let span = offset as usize..(offset + length) as usize;
                match kind {
                    0 => ranges.insert(offset, length),
                    1 => ranges.remove(offset, length),
                    _ => prop_assert_eq!(ranges.overlaps(offset, length), flags[span.clone()].contains(&true)),
                }
                if kind < 2 {
                    flags[span].fill(kind == 0);
                }
                prop_assert_eq!(ranges.bytes(), flags.iter().filter(|&&flag| flag).count() as u64);
                prop_assert_eq!(ranges.is_empty(), !flags.contains(&true));
            }
        }
    }
}
