//! What a trace asks for, in a page: `flashwise trace info`.
//!
//! One pass, and memory that does not grow: counts, the extremes of times and addresses, a histogram of latencies
//! (three exact digits), the most frequent lengths of the first 4,096 distinct ones, and the number of distinct pages
//! and contents as HyperLogLog estimates them (Flajolet et al., AofA 2007), with 2^14 registers: a standard error of
//! 0.8 %.

use std::collections::{BTreeMap, BTreeSet};

use flashwise_block::{ByteSize, Nanos, Operation};
use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::Serialize;

use crate::record::TraceRecord;

/// Pages whose number is estimated, bytes.
const PAGE: u64 = 4096;
/// Distinct lengths that are counted one by one.
const MAX_LENGTHS: usize = 4096;
/// Lengths that are told.
const TOLD_LENGTHS: usize = 6;
/// Pages of one request that are counted at most: 64 MiB. What a larger trim touches is not worth the time.
const MAX_PAGES: u64 = 1 << 14;
/// Devices and processes that are counted one by one.
const MAX_NUMBERS: usize = 65_536;
/// Longest latency of the histogram: 292 years.
const MAX_LATENCY_NS: u64 = i64::MAX as u64;

/// What a trace asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct TraceSummary {
    /// Requests of any kind.
    pub requests: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Trims.
    pub trims: u64,
    /// Writes of zeros.
    pub zero_writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Writes with force unit access.
    pub fua_writes: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written, without zeros.
    pub bytes_written: u64,
    /// From the first submission to the last, ns.
    pub duration_ns: u64,
    /// Whether no time is earlier than the one before.
    pub is_in_order: bool,
    /// Lowest and highest byte that is asked for.
    pub addresses: Option<Extremes>,
    /// Distinct pages of 4 KiB that are read or written, as estimated, times 4 KiB.
    pub footprint_bytes: u64,
    /// Share of reads and writes that start where the one before ended, on the same device and file.
    pub sequential_share: f64,
    /// Share of reads and writes that start and end at a multiple of 4 KiB.
    pub aligned_share: f64,
    /// The most frequent lengths of reads and writes, the most frequent first.
    pub lengths: Vec<SizeShare>,
    /// Latencies, where the trace tells any.
    pub latency: Option<Percentiles>,
    /// Mean number of requests in flight: latencies added up over the duration (Little's law).
    pub mean_queue_depth: Option<f64>,
    /// Distinct devices, where the trace tells them.
    pub devices: u64,
    /// Distinct processes, where the trace tells them.
    pub processes: u64,
    /// Of requests with a content, the share whose content was there before: what deduplication could save, as
    /// estimated.
    pub duplicate_share: Option<f64>,
}

/// Lowest and highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Extremes {
    /// First byte.
    pub first_byte: u64,
    /// First byte behind the last one.
    pub end_byte: u64,
}

/// A length, and how often it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SizeShare {
    /// The length, bytes.
    pub bytes: u64,
    /// Share of reads and writes.
    pub share: f64,
}

/// A distribution of times, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Percentiles {
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// Longest.
    pub max_ns: u64,
}

/// Adds up a trace.
#[derive(Debug)]
pub(crate) struct Counting {
    summary: TraceSummary,
    first: u64,
    last: u64,
    newest: u64,
    sequential: u64,
    aligned: u64,
    ends: BTreeMap<(Option<u32>, Option<u32>), u64>,
    lengths: BTreeMap<u64, u64>,
    latencies: Option<Histogram<u64>>,
    latency_sum: u128,
    pages: Distinct,
    contents: Distinct,
    with_content: u64,
    devices: BTreeSet<u32>,
    processes: BTreeSet<u32>,
}

impl TraceSummary {
    /// Reads a trace to its end.
    ///
    /// # Errors
    /// As [`TraceReader::next_record`](crate::TraceReader::next_record).
    pub fn of(reader: &mut crate::TraceReader) -> Result<Self, crate::TraceError> {
        let mut counting = Counting::new();
        while let Some(record) = reader.next_record()? {
            counting.add(&record);
        }
        Ok(counting.summary())
    }
}

impl Counting {
    pub(crate) fn new() -> Self {
        Self {
            summary: TraceSummary { is_in_order: true, ..TraceSummary::default() },
            first: u64::MAX,
            last: 0,
            newest: 0,
            sequential: 0,
            aligned: 0,
            ends: BTreeMap::new(),
            lengths: BTreeMap::new(),
            latencies: Histogram::new_with_bounds(1, MAX_LATENCY_NS, 3).ok(),
            latency_sum: 0,
            pages: Distinct::new(),
            contents: Distinct::new(),
            with_content: 0,
            devices: BTreeSet::new(),
            processes: BTreeSet::new(),
        }
    }

    pub(crate) fn add(&mut self, record: &TraceRecord) {
        let summary = &mut self.summary;
        summary.requests += 1;
        match record.operation {
            Operation::Read => {
                summary.reads += 1;
                summary.bytes_read = summary.bytes_read.saturating_add(record.length.0);
            }
            Operation::Write => {
                summary.writes += 1;
                summary.bytes_written = summary.bytes_written.saturating_add(record.length.0);
            }
            Operation::Trim => summary.trims += 1,
            Operation::WriteZeroes => summary.zero_writes += 1,
            Operation::Flush => summary.flushes += 1,
        }
        summary.fua_writes += u64::from(record.fua);
        summary.is_in_order &= record.at.0 >= self.newest || summary.requests == 1;
        self.newest = record.at.0;
        (self.first, self.last) = (self.first.min(record.at.0), self.last.max(record.at.0));
        self.latency(record.latency);
        self.content(record.content);
        note(&mut self.devices, record.device);
        note(&mut self.processes, record.process);
        if record.operation != Operation::Flush {
            self.place(record.offset, record.length);
        }
        if matches!(record.operation, Operation::Read | Operation::Write) {
            self.transfer(record);
        }
    }

    fn latency(&mut self, latency: Option<Nanos>) {
        if let (Some(latency), Some(histogram)) = (latency, &mut self.latencies) {
            histogram.saturating_record(latency.0.max(1));
            self.latency_sum += u128::from(latency.0);
        }
    }

    fn content(&mut self, content: Option<u64>) {
        if let Some(content) = content {
            self.with_content += 1;
            self.contents.add(content);
        }
    }

    fn place(&mut self, offset: ByteSize, length: ByteSize) {
        let end = offset.0.saturating_add(length.0);
        let known = self.summary.addresses.get_or_insert(Extremes { first_byte: offset.0, end_byte: end });
        (known.first_byte, known.end_byte) = (known.first_byte.min(offset.0), known.end_byte.max(end));
    }

    fn transfer(&mut self, record: &TraceRecord) {
        let (offset, length) = (record.offset.0, record.length.0);
        let end = offset.saturating_add(length);
        let (whose, fits) = ((record.device, record.file), self.ends.len() < MAX_NUMBERS);
        match self.ends.get_mut(&whose) {
            Some(before) => {
                self.sequential += u64::from(*before == offset);
                *before = end;
            }
            None if fits => drop(self.ends.insert(whose, end)),
            None => {}
        }
        self.aligned += u64::from(offset.is_multiple_of(PAGE) && length.is_multiple_of(PAGE) && length > 0);
        if let Some(count) = self.lengths.get_mut(&length) {
            *count += 1;
        } else if self.lengths.len() < MAX_LENGTHS {
            self.lengths.insert(length, 1);
        }
        let owner = u64::from(record.device.unwrap_or(0)) << 32 | u64::from(record.file.unwrap_or(0));
        let pages = (end.div_ceil(PAGE) - offset / PAGE).min(MAX_PAGES);
        for page in offset / PAGE..offset / PAGE + pages {
            self.pages.add(page ^ mixed(owner));
        }
    }

    pub(crate) fn summary(self) -> TraceSummary {
        let mut summary = self.summary;
        let transfers = (summary.reads + summary.writes).max(1) as f64;
        summary.duration_ns = self.last.saturating_sub(self.first.min(self.last));
        summary.footprint_bytes = self.pages.estimate().saturating_mul(PAGE);
        summary.sequential_share = self.sequential as f64 / transfers;
        summary.aligned_share = self.aligned as f64 / transfers;
        let mut lengths: Vec<_> = self.lengths.into_iter().collect();
        lengths.sort_by_key(|&(length, count)| (std::cmp::Reverse(count), length));
        let told = |&(bytes, count): &(u64, u64)| SizeShare { bytes, share: count as f64 / transfers };
        summary.lengths = lengths.iter().take(TOLD_LENGTHS).map(told).collect();
        summary.latency = self.latencies.filter(|histogram| !histogram.is_empty()).map(|histogram| Percentiles {
            p50_ns: histogram.value_at_quantile(0.5),
            p99_ns: histogram.value_at_quantile(0.99),
            p999_ns: histogram.value_at_quantile(0.999),
            max_ns: histogram.max(),
        });
        let depth = self.latency_sum as f64 / summary.duration_ns as f64;
        summary.mean_queue_depth = summary.latency.and(depth.is_finite().then_some(depth));
        (summary.devices, summary.processes) = (self.devices.len() as u64, self.processes.len() as u64);
        let fresh = self.contents.estimate().min(self.with_content) as f64;
        summary.duplicate_share = (self.with_content > 0).then(|| 1.0 - fresh / self.with_content as f64);
        summary
    }
}

fn note(numbers: &mut BTreeSet<u32>, number: Option<u32>) {
    if let Some(number) = number
        && numbers.len() < MAX_NUMBERS
    {
        numbers.insert(number);
    }
}

/// Spreads a number over 64 bits (the finalizer of SplitMix64; Steele et al., OOPSLA 2014).
fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ number >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ number >> 31
}

/// Estimates how many distinct numbers there are.
#[derive(Debug)]
struct Distinct {
    /// For each of 2^14 parts the longest run of zeros, and one more.
    registers: Box<[u8]>,
}

const REGISTER_BITS: u32 = 14;
/// A hash without a one behind the bits that name its register.
const LONGEST_RUN: usize = 64 - REGISTER_BITS as usize + 1;

impl Distinct {
    fn new() -> Self {
        Self { registers: vec![0; 1 << REGISTER_BITS].into() }
    }

    fn add(&mut self, number: u64) {
        let hash = mixed(number.wrapping_add(0x9E37_79B9_7F4A_7C15));
        let register = &mut self.registers[(hash >> (64 - REGISTER_BITS)) as usize];
        let run = (hash << REGISTER_BITS | 1 << (REGISTER_BITS - 1)).leading_zeros() as u8 + 1;
        *register = (*register).max(run);
    }

    /// The estimate of Ertl ("New cardinality estimation algorithms for HyperLogLog sketches", 2017, algorithm 6).
    ///
    /// Flajolet's own, which changes from counting empty registers to the mean of all, is up to 5 % too high where
    /// it changes. This one is one formula for every count.
    fn estimate(&self) -> u64 {
        let mut with_run = [0_u32; LONGEST_RUN + 1];
        for &run in &self.registers {
            with_run[usize::from(run)] += 1;
        }
        let registers = self.registers.len() as f64;
        let share_with = |run: usize| f64::from(with_run[run]) / registers;
        let of_runs = (1..LONGEST_RUN)
            .rev()
            .fold(of_full_registers(1.0 - share_with(LONGEST_RUN)), |sum, run| (sum + share_with(run)) / 2.0);
        let harmonic = of_runs + of_empty_registers(share_with(0));
        (registers / (2.0 * core::f64::consts::LN_2 * harmonic)).round() as u64
    }
}

/// What registers without a number add to the harmonic mean; `share` of all are empty. Endless when all are (sigma).
fn of_empty_registers(share: f64) -> f64 {
    if share >= 1.0 {
        return f64::INFINITY;
    }
    let (mut power, mut weight, mut sum) = (share, 1.0, share);
    loop {
        power *= power;
        let before = sum;
        sum += power * weight;
        weight *= 2.0;
        if sum == before {
            return sum;
        }
    }
}

/// What registers that can grow no more add; `share` of all can still grow (tau).
fn of_full_registers(share: f64) -> f64 {
    if share <= 0.0 || share >= 1.0 {
        return 0.0;
    }
    let (mut root, mut weight, mut sum) = (share, 1.0, 1.0 - share);
    loop {
        root = libm::sqrt(root);
        let before = sum;
        weight /= 2.0;
        sum -= (1.0 - root) * (1.0 - root) * weight;
        if sum == before {
            return sum / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(at: u64, operation: Operation, offset: u64, length: u64) -> TraceRecord {
        TraceRecord::new(Nanos(at), operation, ByteSize(offset), ByteSize(length))
    }

    #[test]
    fn a_trace_is_added_up() {
        let mut counting = Counting::new();
        let latency = Some(Nanos(50));
        counting.add(&TraceRecord { latency, device: Some(1), ..record(100, Operation::Read, 0, 4096) });
        counting.add(&TraceRecord { latency, device: Some(1), ..record(150, Operation::Write, 4096, 512) });
        counting.add(&record(300, Operation::Flush, 0, 0));
        let told = counting.summary();
        assert_eq!((told.requests, told.reads, told.writes, told.flushes), (3, 1, 1, 1));
        assert_eq!((told.bytes_read, told.bytes_written, told.duration_ns), (4096, 512, 200));
        assert_eq!((told.sequential_share, told.aligned_share), (0.5, 0.5));
        assert_eq!((told.footprint_bytes, told.devices, told.is_in_order), (8192, 1, true));
        assert_eq!(told.addresses, Some(Extremes { first_byte: 0, end_byte: 4608 }));
        assert_eq!(told.mean_queue_depth, Some(0.5));
        assert_eq!(told.latency.unwrap().p50_ns, 50);
    }

    #[test]
    fn what_was_written_before_is_a_duplicate() {
        let mut counting = Counting::new();
        for content in [1, 2, 1, 1] {
            counting.add(&TraceRecord { content: Some(content), ..record(0, Operation::Write, 0, 4096) });
        }
        assert_eq!(counting.summary().duplicate_share, Some(0.5));
        assert_eq!(Counting::new().summary().duplicate_share, None);
    }

    #[test]
    fn the_estimate_leans_to_no_side_at_any_count() {
        // 40,000 is where an estimate that changes its formula was 3 % too high in the mean.
        for count in [0, 1, 100, 10_000, 40_000, 80_000, 1_000_000] {
            let seeds = 1_u64..=50;
            let error = |seed: u64| {
                let mut distinct = Distinct::new();
                (0..count).for_each(|number| distinct.add(number ^ seed << 32));
                (distinct.estimate() as f64 - count as f64) / (count as f64).max(1.0)
            };
            let mean = seeds.clone().map(error).sum::<f64>() / seeds.count() as f64;
            assert!(mean.abs() <= 0.005, "{mean} of {count}");
        }
    }

    #[test]
    fn registers_at_their_end_are_still_an_estimate() {
        let full = Distinct { registers: vec![LONGEST_RUN as u8; 1 << REGISTER_BITS].into() };
        let nearly = Distinct { registers: vec![LONGEST_RUN as u8 - 1; 1 << REGISTER_BITS].into() };
        assert_eq!(full.estimate(), u64::MAX);
        assert!(nearly.estimate() > 1 << 62);
    }

    proptest! {
        #[test]
        fn distinct_numbers_are_estimated_within_five_standard_errors(count in 1_u64..200_000, seed: u64) {
            let mut distinct = Distinct::new();
            (0..count).chain(0..count / 2).for_each(|number| distinct.add(number ^ seed));
            let error = distinct.estimate() as f64 / count as f64 - 1.0;
            prop_assert!(error.abs() <= 5.0 * 1.04 / 128.0, "{error} of {count}");
        }
    }
}
