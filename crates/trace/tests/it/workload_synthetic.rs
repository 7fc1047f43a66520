//! What the generator of a synthetic flow promises, whatever it is asked for.

use std::collections::HashMap;
use std::path::Path;

use flashwise_block::{ByteSize, Nanos, Operation};
use flashwise_trace::workload::{
    Access, Arrivals, Flow, FlowRequest, FlowSource, Pacing, Size, SourcePacing, Synthetic, WeightedSize,
    WorkloadError, Zone,
};
use proptest::prelude::*;

const CLOSED: Pacing = Pacing::Closed { queue_depth: 8, think_ns: 5 };
const BLOCK: ByteSize = ByteSize(512);
const MIB: u64 = 1 << 20;

fn open_on(flow: &Flow, index: usize, seed: u64, capacity: u64, block: ByteSize) -> Result<FlowSource, WorkloadError> {
    FlowSource::open(flow, index, seed, ByteSize(capacity), block, Path::new("."))
}

/// All requests of a flow of `requests` on a drive of `capacity` bytes.
fn generate(synthetic: Synthetic, requests: u64, capacity: u64) -> Vec<FlowRequest> {
    open_on(&Flow::synthetic("f", requests, synthetic), 0, 1, capacity, BLOCK).unwrap().collect()
}

fn refusal(synthetic: Synthetic, capacity: u64) -> String {
    open_on(&Flow::synthetic("f", 1, synthetic), 0, 1, capacity, BLOCK).unwrap_err().to_string()
}

fn writes(access: Access, bytes: u64) -> Synthetic {
    Synthetic::new(access, Size::fixed(bytes), CLOSED)
}

fn zone(size: f64, traffic: f64) -> Zone {
    Zone { size, traffic }
}

/// Whether a count of successes is one that `draws` draws of probability `p` may give.
fn plausible(count: usize, draws: usize, p: f64) -> bool {
    let deviation = (draws as f64 * p * (1.0 - p)).sqrt();
    (count as f64 - draws as f64 * p).abs() <= 5.0 * deviation + 1e-9
}

fn sizes() -> impl Strategy<Value = Size> {
    let bytes = || (1_u64..=64).prop_map(|blocks| blocks * 4096);
    prop_oneof![
        bytes().prop_map(Size::fixed),
        (bytes(), bytes()).prop_map(|(a, b)| Size::Uniform { min_bytes: a.min(b), max_bytes: a.max(b) }),
        (1_u64..100_000, 0_u64..30_000)
            .prop_map(|(mean_bytes, deviation_bytes)| Size::Normal { mean_bytes, deviation_bytes }),
        prop::collection::vec((bytes(), 0.1..10.0), 1..5).prop_map(|list| {
            Size::Weighted(list.into_iter().map(|(bytes, weight)| WeightedSize { bytes, weight }).collect())
        }),
    ]
}

fn accesses() -> impl Strategy<Value = Access> {
    prop_oneof![
        Just(Access::Random),
        Just(Access::Sequential),
        (0.1..3.0).prop_map(|theta| Access::Zipf { theta }),
        (0.1..3.0).prop_map(|theta| Access::Latest { theta }),
        (0.01..0.49).prop_map(|h| Access::Pareto { h }),
        (0.2..0.8, 0.0..=1.0, any::<bool>()).prop_map(|(s, t, shuffled)| {
            Access::HotCold { zones: vec![zone(s, t), zone(1.0 - s, 1.0 - t)], shuffled }
        }),
    ]
}

prop_compose! {
    /// Flows that fit a drive of 64 MiB with logical blocks of 4 KiB.
    fn flows()(
        size in sizes(), access in accesses(), reads in 0.0..=1.0, trims in 0.0..=1.0, fua: bool,
        start in 0_u64..MIB, bytes in prop::option::of(8 * MIB..60 * MIB),
        align in prop::option::of((1_u64..=16).prop_map(|blocks| blocks * 4096)),
        flush_every in prop::option::of(1_u64..10), open in prop::option::of(1_u64..100_000), poisson: bool,
    ) -> Flow {
        let arrivals = if poisson { Arrivals::Poisson } else { Arrivals::Constant };
        let pacing = open.map_or(CLOSED, |interarrival_ns| Pacing::Open { interarrival_ns, arrivals });
        Flow::synthetic("f", 500, Synthetic {
            read_share: reads, trim_share: trims * (1.0 - reads), flush_every, fua,
            region_start_bytes: start, region_bytes: bytes, align_bytes: align,
            ..Synthetic::new(access, size, pacing)
        })
    }
}

proptest! {
    #[test]
    fn requests_lie_inside_the_region_and_are_aligned(flow in flows(), seed: u32) {
        let it = flow.synthetic.clone().unwrap();
        let requests: Vec<_> =
            open_on(&flow, 0, seed.into(), 64 * MIB, ByteSize(4096)).unwrap().collect();
        prop_assert_eq!(requests.len(), 500);
        let align = match (it.align_bytes, it.size) {
            (Some(align), _) => align,
            (None, Size::Fixed { bytes }) => bytes,
            (None, _) => 4096,
        };
        let end = it.region_bytes.map_or(64 * MIB, |bytes| it.region_start_bytes + bytes);
        for request in &requests {
            let (FlowRequest { operation, offset, length, fua, .. }, start) = (*request, it.region_start_bytes);
            if operation == Operation::Flush {
                prop_assert_eq!((offset.0, length.0, fua), (0, 0, false));
                continue;
            }
            prop_assert!(offset.0 >= start && offset.0 + length.0 <= end, "{:?} in {}..{}", request, start, end);
            prop_assert!(offset.0.is_multiple_of(align), "{:?} by {}", request, align);
            prop_assert!(length.0 > 0 && length.0.is_multiple_of(4096), "{:?}", request);
            prop_assert_eq!(fua, it.fua && operation == Operation::Write);
        }
        prop_assert!(requests.is_sorted_by_key(|request| request.at));
    }

    #[test]
    fn the_same_seed_gives_the_same_requests_and_another_flow_gives_others(flow in flows(), seed: u32) {
        let run = |index| -> Vec<_> {
            open_on(&flow, index, seed.into(), 64 * MIB, ByteSize(4096)).unwrap().collect()
        };
        prop_assert_eq!(run(0), run(0));
        if matches!(flow.synthetic.as_ref().unwrap().access, Access::Random) {
            prop_assert_ne!(run(0), run(1));
        }
    }

    #[test]
    fn shares_are_kept(reads in 0.0..=1.0, rest in 0.0..=1.0) {
        let trims = (1.0 - reads) * rest;
        let flow = Synthetic { read_share: reads, trim_share: trims, ..writes(Access::Random, 4096) };
        let requests = generate(flow, 20_000, 64 * MIB);
        let count = |operation| requests.iter().filter(|request| request.operation == operation).count();
        prop_assert!(plausible(count(Operation::Read), 20_000, reads));
        prop_assert!(plausible(count(Operation::Trim), 20_000, trims));
    }
}

#[test]
fn the_requests_of_a_seed_never_change() {
    let zones = vec![zone(0.1, 0.9), zone(0.9, 0.1)];
    let pacing = Pacing::Open { interarrival_ns: 10_000, arrivals: Arrivals::Poisson };
    let kinds = [
        Synthetic { read_share: 0.5, ..writes(Access::Random, 4096) },
        writes(Access::Zipf { theta: 0.99 }, 4096),
        Synthetic::new(
            Access::HotCold { zones, shuffled: false },
            Size::Normal { mean_bytes: 65_536, deviation_bytes: 8192 },
            pacing,
        ),
    ];
    let lines: Vec<String> = kinds
        .into_iter()
        .flat_map(|kind| generate(kind, 4, 1 << 30))
        .map(|r| format!("{:?} {} + {} at {}", r.operation, r.offset.0, r.length.0, r.at.0))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
        Write 219426816 + 4096 at 0
        Write 198574080 + 4096 at 0
        Read 586039296 + 4096 at 0
        Write 514686976 + 4096 at 0
        Write 467300352 + 4096 at 0
        Write 556490752 + 4096 at 0
        Write 726482944 + 4096 at 0
        Write 1054142464 + 4096 at 0
        Write 19841024 + 70656 at 13360
        Write 949776384 + 57344 at 20713
        Write 31973376 + 56320 at 24965
        Write 21975040 + 75776 at 36573
    "#);
}

#[test]
fn random_positions_are_all_reached_evenly() {
    let flow = Synthetic { region_start_bytes: 1000, region_bytes: Some(40_960), ..writes(Access::Random, 4096) };
    let requests = generate(flow, 90_000, MIB);
    let mut counts: HashMap<u64, usize> = HashMap::new();
    requests.iter().for_each(|request| *counts.entry(request.offset.0).or_default() += 1);
    // From 1000 to 41,960: 4096, 8192, … 36,864.
    assert_eq!(counts.len(), 9);
    assert!(counts.values().all(|&count| plausible(count, 90_000, 1.0 / 9.0)), "{counts:?}");
}

#[test]
fn sequential_requests_follow_each_other_and_wrap_where_the_next_one_has_no_room() {
    let flow = Synthetic { region_start_bytes: 4096, region_bytes: Some(14_000), ..writes(Access::Sequential, 4096) };
    let offsets: Vec<u64> = generate(flow, 5, MIB).iter().map(|request| request.offset.0).collect();
    assert_eq!(offsets, [4096, 8192, 12_288, 4096, 8192]);
    let wide = Synthetic { align_bytes: Some(65_536), ..writes(Access::Sequential, 4096) };
    let offsets: Vec<u64> = generate(wide, 4, 196_608).iter().map(|request| request.offset.0).collect();
    assert_eq!(offsets, [0, 65_536, 131_072, 0]);
}

#[test]
fn sequential_requests_of_varying_length_never_overlap_before_they_wrap() {
    let size = Size::Uniform { min_bytes: 512, max_bytes: 65_536 };
    let flow = Synthetic { align_bytes: Some(512), ..Synthetic::new(Access::Sequential, size, CLOSED) };
    let requests = generate(flow, 2000, 16 * MIB);
    let wraps = requests.windows(2).filter(|pair| match pair[1].offset.0 {
        0 => true,
        offset => {
            assert_eq!(offset, pair[0].offset.0 + pair[0].length.0);
            false
        }
    });
    assert!(wraps.count() >= 2);
}

#[test]
fn popularity_falls_by_zipfs_law_and_is_scattered() {
    let (theta, positions, draws) = (0.9, 4096_u64, 400_000);
    let requests = generate(writes(Access::Zipf { theta }, 4096), draws, positions * 4096);
    let mut counts: HashMap<u64, usize> = HashMap::new();
    requests.iter().for_each(|request| *counts.entry(request.offset.0 / 4096).or_default() += 1);
    let mut ranked: Vec<(usize, u64)> = counts.into_iter().map(|(position, count)| (count, position)).collect();
    ranked.sort_unstable_by(|a, b| b.cmp(a));
    let sum: f64 = (1..=positions).map(|k| (k as f64).powf(-theta)).sum();
    for (rank, (count, _)) in ranked.iter().enumerate().take(20) {
        let expected = draws as f64 * ((rank + 1) as f64).powf(-theta) / sum;
        assert!((*count as f64 / expected - 1.0).abs() < 0.06, "rank {rank}: {count} for {expected}");
    }
    let upper = ranked.iter().take(400).filter(|(_, position)| *position >= positions / 2).count();
    assert!(plausible(upper, 400, 0.5), "{upper} of the 400 most popular positions in the upper half");
}

#[test]
fn flows_on_one_region_share_their_hot_positions() {
    let hottest = |index, seed| {
        let flow = Flow::synthetic("f", 20_000, writes(Access::Zipf { theta: 1.0 }, 4096));
        let mut counts: HashMap<u64, usize> = HashMap::new();
        let source = open_on(&flow, index, seed, 64 * MIB, BLOCK).unwrap();
        source.for_each(|request| *counts.entry(request.offset.0).or_default() += 1);
        counts.into_iter().max_by_key(|&(_, count)| count).unwrap().0
    };
    assert_eq!(hottest(0, 1), hottest(1, 1));
    assert_eq!(hottest(0, 1), hottest(0, 2));
}

#[test]
fn zones_get_their_traffic_and_tile_the_region() {
    let zones = vec![zone(0.1, 0.6), zone(0.2, 0.3), zone(0.3, 0.0), zone(0.4, 0.1)];
    let requests = generate(writes(Access::HotCold { zones, shuffled: false }, 4096), 100_000, 4096 * 1000);
    let share = |from: u64, to: u64| requests.iter().filter(|r| (from..to).contains(&(r.offset.0 / 4096))).count();
    assert!(plausible(share(0, 100), 100_000, 0.6));
    assert!(plausible(share(100, 300), 100_000, 0.3));
    assert_eq!(share(300, 600), 0);
    assert!(plausible(share(600, 1000), 100_000, 0.1));
    let positions: std::collections::HashSet<u64> = requests.iter().map(|r| r.offset.0).collect();
    assert_eq!(positions.len(), 700, "every position of a zone with traffic is reached");
}

#[test]
fn pareto_gives_a_fifth_of_the_positions_four_fifths_of_the_requests() {
    for h in [0.1, 0.2, 0.4] {
        let requests = generate(writes(Access::Pareto { h }, 4096), 100_000, 4096 * 1000);
        let mut counts = vec![0_u32; 1000];
        requests.iter().for_each(|request| counts[(request.offset.0 / 4096) as usize] += 1);
        counts.sort_unstable_by_key(|&count| std::cmp::Reverse(count));
        let most: u32 = counts[..(h * 1000.0) as usize].iter().sum();
        assert!((f64::from(most) / 100_000.0 - (1.0 - h)).abs() < 0.01, "{h}: {most}");
    }
}

#[test]
fn a_flush_follows_each_so_many_writes_with_their_arrival_time() {
    let pacing = Pacing::Open { interarrival_ns: 100, arrivals: Arrivals::Constant };
    let flow = Synthetic { flush_every: Some(2), ..Synthetic::new(Access::Sequential, Size::fixed(4096), pacing) };
    let told: Vec<_> = generate(flow, 7, MIB).iter().map(|request| (request.operation, request.at.0)).collect();
    let (write, flush) = (Operation::Write, Operation::Flush);
    assert_eq!(told, [(write, 0), (write, 100), (flush, 100), (write, 200), (write, 300), (flush, 300), (write, 400)]);
}

#[test]
fn a_timed_flow_ends_with_its_duration_and_a_closed_one_leaves_that_to_the_runner() {
    let pacing = Pacing::Open { interarrival_ns: 100, arrivals: Arrivals::Constant };
    let timed = Synthetic::new(Access::Random, Size::fixed(4096), pacing);
    let of = |synthetic| Flow { duration_ns: Some(1000), requests: None, ..Flow::synthetic("f", 1, synthetic) };
    let mut source = open_on(&of(timed), 0, 1, MIB, BLOCK).unwrap();
    assert_eq!(source.pacing(), SourcePacing::Timed);
    assert_eq!(source.by_ref().count(), 10);
    assert_eq!(source.next(), None, "what has ended stays ended");
    assert_eq!(source.failure(), None);
    let mut source = open_on(&of(writes(Access::Random, 4096)), 0, 1, MIB, BLOCK).unwrap();
    assert_eq!(source.pacing(), SourcePacing::Closed { queue_depth: 8, think: Nanos(5) });
    assert!(source.by_ref().take(10_000).all(|request| request.at == Nanos(0)));
}

#[test]
fn what_does_not_fit_the_drive_is_refused_with_its_key() {
    let random = |bytes| writes(Access::Random, bytes);
    let uniform = Size::Uniform { min_bytes: 512, max_bytes: 1000 };
    let weighted = Size::Weighted(vec![WeightedSize { bytes: 700, weight: 1.0 }]);
    let narrow = Access::HotCold { zones: vec![zone(0.001, 0.5), zone(0.999, 0.5)], shuffled: false };
    let told = [
        refusal(random(1000), MIB),
        refusal(Synthetic::new(Access::Random, uniform, CLOSED), MIB),
        refusal(Synthetic::new(Access::Random, weighted, CLOSED), MIB),
        refusal(Synthetic { align_bytes: Some(100), ..random(4096) }, MIB),
        refusal(Synthetic { region_start_bytes: MIB, ..random(4096) }, MIB),
        refusal(Synthetic { region_start_bytes: 4096, region_bytes: Some(MIB), ..random(4096) }, MIB),
        refusal(Synthetic { region_start_bytes: 1, region_bytes: Some(8000), ..random(4096) }, MIB),
        refusal(random(4096), 2048),
        refusal(writes(narrow, 4096), MIB),
        refusal(random(4096), 100),
        open_on(&Flow::synthetic("f", 1, random(512)), 0, 1, MIB, ByteSize(0)).unwrap_err().to_string(),
        open_on(&Flow::default(), 0, 1, MIB, BLOCK).unwrap_err().to_string(),
    ];
    insta::assert_snapshot!(told.join("\n"), @r#"
        workload: flow 'f': synthetic.size.fixed.bytes = 1000: must be a multiple of the drive's logical block, 512 bytes
        workload: flow 'f': synthetic.size.uniform.max_bytes = 1000: must be a multiple of the drive's logical block, 512 bytes
        workload: flow 'f': synthetic.size.weighted[0].bytes = 700: must be a multiple of the drive's logical block, 512 bytes
        workload: flow 'f': synthetic.align_bytes = 100: must be a multiple of the drive's logical block, 512 bytes
        workload: flow 'f': synthetic.region_start_bytes = 1048576: the drive ends at byte 1048576
        workload: flow 'f': synthetic.region_bytes = 1048576: the drive has only 1044480 bytes from byte 4096 on
        workload: flow 'f': synthetic.region_bytes = 8000: no request of 4096 bytes at a multiple of 4096 fits between byte 1 and byte 8001
        workload: flow 'f': synthetic.region_bytes = 2048: no request of 4096 bytes at a multiple of 4096 fits between byte 0 and byte 2048
        workload: flow 'f': synthetic.access.hot-cold.zones[0].size = 0.001: this zone of 0 bytes is too small for requests of 4096 bytes
        workload: drive: capacity = 100: must be at least one logical block of 512 B
        workload: drive: logical block = 0: must be at least 1 byte
        workload: flow '': has neither synthetic nor trace: give one
    "#);
}

#[test]
fn the_largest_drive_and_the_largest_numbers_overflow_nothing() {
    for access in [Access::Random, Access::Sequential, Access::Zipf { theta: 0.5 }] {
        let flow = Synthetic { region_start_bytes: u64::MAX - (1 << 40), ..writes(access, 512) };
        let requests = generate(flow, 1000, u64::MAX);
        assert!(requests.iter().all(|request| request.offset.0.checked_add(512).is_some()));
    }
    let vast = Synthetic { align_bytes: Some(1 << 63), ..writes(Access::Random, 512) };
    assert_eq!(generate(vast, 100, u64::MAX).len(), 100);
    let long = Size::Normal { mean_bytes: u64::MAX / 8, deviation_bytes: u64::MAX / 8 };
    assert!(refusal(Synthetic::new(Access::Random, long, CLOSED), u64::MAX / 4).contains("at a multiple of 4096"));
}

#[test]
fn a_source_can_be_sent_to_another_thread() {
    fn sent<T: Send>() {}
    sent::<FlowSource>();
}
