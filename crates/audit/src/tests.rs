//! The rules on small traces, and against naive definitions on random ones.

use flashwise_block::{ByteSize, Clock, Nanos, Operation};
use flashwise_profile::*;
use proptest::prelude::*;

use super::*;
use flashwise_trace::FileRole;

const KIB: u64 = 1024;

fn exactly<T: Copy>(value: T) -> Figure<T> {
    Figure::certain(value, value, value)
}

fn median(us: u64) -> MedianNs {
    MedianNs { median: us * 1000, low: us * 1000 - 500, high: us * 1000 + 500 }
}

fn profile(unit: u64, stripe: u64, chunk: u64, hot: (u64, u64), page: u64) -> DeviceProfile {
    let hot = HotLocation { period_bytes: hot.0, offset_bytes: hot.1 };
    DeviceProfile {
        schema: SCHEMA.to_owned(),
        schema_version: SCHEMA_VERSION,
        flashwise_version: "0.1.0".to_owned(),
        device: DeviceIdentity {
            target: "sim:test".to_owned(),
            name: "test".to_owned(),
            capacity_bytes: 1 << 30,
            logical_block_bytes: 512,
            clock: Clock::Virtual,
        },
        recipe: Recipe {
            seed: 0,
            region_bytes: 0,
            bytes_written: 0,
            bytes_read: 0,
            device_time_ns: 0,
            probes: Vec::new(),
        },
        parameters: Parameters {
            write_unit_bytes: exactly(unit),
            stripe_bytes: exactly(stripe),
            chunk_bytes: exactly(chunk),
            page_bytes: exactly(page),
            hot_location: exactly(hot),
            ..Parameters::default()
        },
        evidence: Vec::new(),
        curves: Curves::default(),
    }
}

/// Write unit 32 KiB, stripe and chunk 64 KiB, hot in the middle of the chunk; reads of 64 KiB take 300 µs at 0 and
/// 200 µs at 32 KiB, reads of 4 KiB 80 µs everywhere; a durable 4 KiB write takes 100 µs, one of 32 KiB 160 µs.
fn samsung() -> DeviceProfile {
    let mut p = profile(32 * KIB, 64 * KIB, 64 * KIB, (64 * KIB, 32 * KIB), 4 * KIB);
    let curve = |read_bytes, us: [u64; 4]| LocationCurve {
        read_bytes,
        step_bytes: 16 * KIB,
        latency_ns: us.into_iter().map(median).collect(),
    };
    p.curves.location = vec![curve(4 * KIB, [80; 4]), curve(64 * KIB, [300, 250, 200, 250])];
    let durable = |write_bytes, us| DurableWritePoint { write_bytes, latency_ns: median(us) };
    p.curves.durable_write = vec![durable(4 * KIB, 100), durable(32 * KIB, 160), durable(64 * KIB, 310)];
    p
}

fn record(operation: Operation, role: FileRole, offset: u64, length: u64) -> IoRecord {
    let (offset, length) = (ByteSize(offset), ByteSize(length));
    IoRecord { at: Nanos(0), operation, role, offset, length, latency: Nanos(0) }
}

fn read(offset_kib: u64, length_kib: u64) -> IoRecord {
    record(Operation::Read, FileRole::Database, offset_kib * KIB, length_kib * KIB)
}

fn write(offset_kib: u64, length_kib: u64) -> IoRecord {
    record(Operation::Write, FileRole::Database, offset_kib * KIB, length_kib * KIB)
}

fn flush() -> IoRecord {
    record(Operation::Flush, FileRole::Database, 0, 0)
}

fn finding(rule: Rule, profile: &DeviceProfile, records: &[IoRecord]) -> Finding {
    let findings = audit(&IoTrace { records: records.to_vec() }, profile);
    findings.into_iter().find(|f| f.rule == rule).unwrap()
}

/// A line of a table: requests, then violations, requests, and the three costs.
type Line<'a> = (&'a [IoRecord], u64, u64, Option<u64>, Option<u64>, Option<u64>);

fn check(rule: Rule, lines: &[Line<'_>]) {
    for (records, violations, requests, time_us, flash_kib, stripes) in lines {
        let f = finding(rule, &samsung(), records);
        assert_eq!((f.violations, f.requests), (*violations, *requests), "{rule:?} of {records:?}");
        let cost =
            Cost { time_ns: time_us.map(|t| t * 1000), flash_bytes: flash_kib.map(|b| b * KIB), stripes: *stripes };
        assert_eq!(f.cost, cost, "{rule:?} of {records:?}");
        assert_eq!(f.example.is_some(), *violations > 0);
    }
}

#[test]
fn rule_1_wants_whole_units_and_charges_what_a_flush_has_to_pad() {
    let eight = [write(0, 4); 8];
    let eight_and_flush: Vec<_> = eight.into_iter().chain([flush()]).collect();
    check(
        Rule::WriteWholeUnits,
        &[
            (&[], 0, 0, Some(0), Some(0), None),
            (&[write(0, 32), write(32, 64), flush()], 0, 2, Some(0), Some(0), None),
            (&[write(0, 4), flush()], 1, 1, Some(80), Some(28), None),
            (&[write(0, 4), write(8, 4)], 2, 2, Some(160), Some(56), None),
            (&eight_and_flush, 8, 8, Some(0), Some(0), None),
            (&[write(0, 36), flush(), flush(), write(0, 32)], 1, 2, Some(80), Some(28), None),
        ],
    );
}

#[test]
fn rule_2_wants_chunks_at_hot_locations_and_charges_only_what_the_curves_show() {
    check(
        Rule::ReadChunksAtHotLocations,
        &[
            (&[read(32, 64), read(160, 64)], 0, 2, Some(0), None, None),
            (&[read(0, 64), read(64, 64)], 2, 2, Some(200), None, None),
            (&[read(8, 64)], 1, 1, Some(75), None, None),
            (&[read(4, 4)], 1, 1, Some(0), None, None),
            (&[read(0, 16)], 1, 1, None, None, None),
            (&[read(0, 16), read(0, 64)], 2, 2, Some(100), None, None),
            (&[record(Operation::Read, FileRole::WriteAheadLog, 0, 4096)], 0, 0, Some(0), None, None),
        ],
    );
}

#[test]
fn rule_3_wants_writes_on_stripe_boundaries_and_counts_stripes_touched_in_vain() {
    check(
        Rule::StartWritesOnStripes,
        &[
            (&[write(0, 4), write(64, 128)], 0, 2, None, None, Some(0)),
            (&[write(4, 4)], 1, 1, None, None, Some(0)),
            (&[write(32, 64), write(60, 8), write(32, 128)], 3, 3, None, None, Some(3)),
        ],
    );
}

#[test]
fn rule_4_wants_chunks_kept_whole_and_charges_only_what_is_read_again() {
    check(
        Rule::KeepHotLocations,
        &[
            (&[write(32, 32), write(4, 4)], 0, 0, Some(0), None, None),
            (&[write(0, 64), write(64, 128)], 0, 2, Some(0), None, None),
            (&[write(32, 64)], 1, 1, Some(0), None, None),
            (&[write(32, 64), read(32, 64), read(32, 64)], 1, 1, Some(100), None, None),
            (&[write(32, 64), write(32, 32), read(32, 64)], 1, 1, Some(0), None, None),
            (&[write(96, 128), read(32, 64), read(96, 64), read(160, 64)], 1, 1, Some(200), None, None),
            (&[read(32, 64), write(32, 64)], 1, 1, Some(0), None, None),
        ],
    );
}

#[test]
fn rule_5_wants_few_pages_and_charges_each_one_touched_in_vain() {
    let half = record(Operation::Write, FileRole::WriteAheadLog, 2 * KIB, 4 * KIB);
    let within = record(Operation::Write, FileRole::WriteAheadLog, 2 * KIB, 2 * KIB);
    check(
        Rule::TouchFewPages,
        &[
            (&[write(0, 4), write(4, 64), within], 0, 3, None, Some(0), None),
            (&[half, half], 2, 2, None, Some(8), None),
        ],
    );
}

#[test]
fn trims_and_flushes_and_empty_requests_are_nobodys_violation() {
    let trim = record(Operation::Trim, FileRole::Database, 1, 3);
    let records = vec![trim, flush(), record(Operation::Write, FileRole::Database, 1, 0)];
    let findings = audit(&IoTrace { records }, &samsung());
    assert_eq!(findings.len(), 5);
    assert!(findings.iter().all(|f| f.requests == 0 && f.violations == 0));
}

#[test]
fn a_finding_speaks_with_the_drives_own_figures() {
    let texts: Vec<_> = audit(&IoTrace::default(), &samsung()).into_iter().map(|f| f.statement).collect();
    let expected = [
        "writes should be a whole multiple of 32 KiB long",
        "reads of the database should be 64 KiB long and start at 64 KiB·i + 32 KiB",
        "writes should start at a multiple of 64 KiB",
        "writes of 64 KiB or more should start at a multiple of 64 KiB, or they wipe out hot locations",
        "writes should touch as few pages of 4 KiB as their length allows",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn the_example_is_the_first_request_that_breaks_the_rule() {
    let f = finding(Rule::StartWritesOnStripes, &samsung(), &[write(0, 4), write(12, 4), write(20, 4)]);
    let example = f.example.unwrap();
    assert_eq!((example.offset_bytes, example.length_bytes), (12 * KIB, 4 * KIB));
}

#[test]
fn a_rule_without_its_figure_is_not_judged_and_says_why() {
    let mut p = samsung();
    p.parameters.page_bytes = Figure::absent();
    p.parameters.stripe_bytes = Figure::inconclusive(64 * KIB, 32 * KIB, 64 * KIB);
    let judged: Vec<_> = audit(&IoTrace::default(), &p).iter().map(|f| f.rule.number()).collect();
    assert_eq!(judged, [1, 2, 4]);
    let reasons = unjudged(&p);
    assert_eq!(reasons[0].0, Rule::StartWritesOnStripes);
    assert_eq!(reasons[0].1, "the evidence does not settle the drive's stripe");
    assert_eq!(reasons[1], (Rule::TouchFewPages, "the drive shows no flash page".to_owned()));
}

#[test]
fn where_chunks_are_hot_at_their_start_rule_4_has_nothing_to_keep() {
    let p = profile(KIB, 64 * KIB, 4 * KIB, (4 * KIB, 0), 4 * KIB);
    assert_eq!(unjudged(&p).iter().map(|(rule, _)| rule.number()).collect::<Vec<_>>(), [4]);
}

#[test]
fn impossible_profiles_are_told_and_never_divide_by_zero() {
    let p = profile(0, 0, 0, (0, 0), 0);
    assert!(audit(&IoTrace { records: vec![write(0, 4), read(0, 4)] }, &p).is_empty());
    assert_eq!(unjudged(&p).len(), 5);
    let mut p = samsung();
    p.curves.location[1].step_bytes = 0;
    p.curves.durable_write.clear();
    let records = vec![write(0, 4), record(Operation::Write, FileRole::Unknown, u64::MAX - 3, u64::MAX), read(0, 64)];
    let findings = audit(&IoTrace { records }, &p);
    assert_eq!(findings[0].cost.time_ns, None);
    assert_eq!(findings[1].cost.time_ns, None);
}

fn naive_breaks(rule: Rule, p: &Parameters, r: &IoRecord) -> Option<bool> {
    let (offset, length) = (u128::from(r.offset.0), u128::from(r.length.0));
    let figure = |f: &Figure<u64>| u128::from(f.value.unwrap());
    let hot = p.hot_location.value.unwrap();
    let writes = r.operation == Operation::Write && length > 0;
    let reads = r.operation == Operation::Read && length > 0;
    let reads = reads && (r.role == FileRole::Database || r.role == FileRole::Unknown);
    let touched = |unit: u128| (offset..offset + length).map(|b| b / unit).collect::<std::collections::BTreeSet<_>>();
    match rule {
        Rule::WriteWholeUnits => writes.then(|| length % figure(&p.write_unit_bytes) != 0),
        Rule::ReadChunksAtHotLocations => reads.then(|| {
            let hot_here = offset % u128::from(hot.period_bytes) == u128::from(hot.offset_bytes);
            !(length == figure(&p.chunk_bytes) && hot_here)
        }),
        Rule::StartWritesOnStripes => writes.then(|| offset % figure(&p.stripe_bytes) != 0),
        Rule::KeepHotLocations => {
            (writes && length >= figure(&p.chunk_bytes)).then(|| offset % figure(&p.chunk_bytes) != 0)
        }
        Rule::TouchFewPages => writes.then(|| {
            let page = figure(&p.page_bytes);
            touched(page).len() as u128 > length.div_ceil(page)
        }),
    }
}

fn any_record() -> impl Strategy<Value = IoRecord> {
    let operation = prop_oneof![
        4 => Just(Operation::Write), 4 => Just(Operation::Read), 1 => Just(Operation::Trim), 1 => Just(Operation::Flush)
    ];
    let role = prop_oneof![Just(FileRole::Database), Just(FileRole::WriteAheadLog), Just(FileRole::Unknown)];
    (operation, role, 0_u64..400, 0_u64..90).prop_map(|(op, role, at, len)| record(op, role, at, len))
}

proptest! {
    #[test]
    fn every_rule_counts_as_its_naive_definition(
        records in prop::collection::vec(any_record(), 0..60),
        (unit, stripe, chunk, page) in (1_u64..20, 1_u64..40, 1_u64..40, 1_u64..20),
        (period, offset) in (2_u64..40).prop_flat_map(|p| (Just(p), 1..p)),
    ) {
        let p = profile(unit, stripe, chunk, (period, offset), page);
        let findings = audit(&IoTrace { records: records.clone() }, &p);
        prop_assert_eq!(findings.len(), 5);
        for f in &findings {
            let judged: Vec<bool> = records.iter().filter_map(|r| naive_breaks(f.rule, &p.parameters, r)).collect();
            prop_assert_eq!(f.requests, judged.len() as u64, "{:?}", f.rule);
            prop_assert_eq!(f.violations, judged.iter().filter(|&&b| b).count() as u64, "{:?}", f.rule);
        }
    }

    #[test]
    fn padding_is_what_rounding_each_flushed_group_up_to_whole_units_takes(
        groups in prop::collection::vec(prop::collection::vec(1_u64..90, 0..6), 1..10), unit in 1_u64..40,
    ) {
        let mut records = Vec::new();
        for group in &groups {
            records.extend(group.iter().map(|&length| record(Operation::Write, FileRole::Database, 0, length)));
            records.push(flush());
        }
        let naive: u64 = groups.iter().map(|g| g.iter().sum::<u64>()).map(|n| n.div_ceil(unit) * unit - n).sum();
        let p = profile(unit, 1, 1, (2, 1), 1);
        let f = finding(Rule::WriteWholeUnits, &p, &records);
        prop_assert_eq!(f.cost.flash_bytes, Some(naive));
    }
}
