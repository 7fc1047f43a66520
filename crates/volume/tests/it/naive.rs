//! Volumes beside a model that knows nothing of buckets: it keeps a list of what has left, and computes from all of it
//! when the next request may.

use flashwise_block::{BlockDevice, ByteSize, Nanos, Request};
use flashwise_volume::SimulatedVolume;
use proptest::prelude::*;

use super::instance::instance;
use super::volume::volume;

/// One limit of whole tokens: a request takes one, or its bytes.
#[derive(Clone, Debug)]
struct Limit {
    counts_bytes: bool,
    /// 0 reads, 1 writes, 2 both.
    direction: u8,
    rate: u64,
    size: u64,
    /// The volume that it is of; none for the instance's.
    of: Option<u8>,
}

#[derive(Clone, Debug)]
struct Arrival {
    volume: u8,
    gap_ns: u64,
    is_write: bool,
    kib: u64,
}

impl Limit {
    fn toml(&self, number: usize) -> String {
        format!(
            "{{ name = \"{number}\", counts = \"{}\", direction = \"{}\", rate_per_s = {}, size = {} }}",
            if self.counts_bytes { "bytes" } else { "requests" },
            ["read", "write", "joint"][usize::from(self.direction)],
            self.rate,
            self.size
        )
    }

    fn covers(&self, arrival: &Arrival) -> bool {
        let counts = self.direction == 2 || (self.direction == 1) == arrival.is_write;
        counts && self.of.is_none_or(|volume| volume == arrival.volume)
    }

    fn cost(&self, arrival: &Arrival) -> i128 {
        if self.counts_bytes { i128::from(arrival.kib) * 1024 } else { 1 }
    }

    /// Billionths of a token at a time after what has left, computed from the start.
    fn level(&self, left: &[(u64, i128)], at_ns: u64) -> i128 {
        let (rate, full) = (i128::from(self.rate), i128::from(self.size) * 1_000_000_000);
        let (mut level, mut since_ns) = (full, 0);
        for &(left_ns, cost) in left {
            level = (level + i128::from(left_ns - since_ns) * rate).min(full + rate) - cost * 1_000_000_000;
            since_ns = left_ns;
        }
        (level + i128::from(at_ns - since_ns) * rate).min(full + rate)
    }

    /// The first nanosecond from an arrival on, and behind all that came before, at which enough is there: found by
    /// halving, because levels only grow while nothing leaves.
    fn leaves(&self, left: &[(u64, i128)], arrived_ns: u64, cost: i128) -> u64 {
        let needed = cost.min(i128::from(self.size)) * 1_000_000_000;
        let first = left.last().map_or(arrived_ns, |&(left_ns, _)| left_ns.max(arrived_ns));
        let (mut low, mut high) = (first, first + (1 << 50));
        while low < high {
            let middle = low + (high - low) / 2;
            if self.level(left, middle) >= needed { high = middle } else { low = middle + 1 }
        }
        low
    }
}

/// When each arrival leaves the last limit: limits one after the other, each first come first served.
fn naive(limits: &[Limit], arrivals: &[Arrival]) -> Vec<u64> {
    let mut now_ns = 0;
    // When, in which order, which arrival, before which limit.
    let mut pending: Vec<(u64, u64, usize, usize)> = Vec::new();
    for (index, arrival) in arrivals.iter().enumerate() {
        now_ns += arrival.gap_ns;
        pending.push((now_ns, index as u64, index, 0));
    }
    let mut number = arrivals.len() as u64;
    let (mut left, mut ends) = (vec![Vec::new(); limits.len()], vec![0; arrivals.len()]);
    while let Some(first) = (0..pending.len()).min_by_key(|&i| {
        let (at_ns, number, ..) = pending[i];
        // Arrivals come behind what happens inside at the same time.
        (at_ns, number < arrivals.len() as u64, number)
    }) {
        let (at_ns, _, index, mut limit) = pending.remove(first);
        loop {
            if limit == limits.len() {
                ends[index] = at_ns;
                break;
            }
            if limits[limit].covers(&arrivals[index]) {
                let cost = limits[limit].cost(&arrivals[index]);
                let leaves = limits[limit].leaves(&left[limit], at_ns, cost);
                left[limit].push((leaves, cost));
                if leaves > at_ns {
                    pending.push((leaves, number, index, limit + 1));
                    number += 1;
                    break;
                }
            }
            limit += 1;
        }
    }
    ends
}

const MEDIUM: &str = "medium.plain = { read_ns = 0, write_ns = 0 }";

fn array<'a>(limits: impl Iterator<Item = &'a Limit>) -> String {
    let limits: Vec<String> = limits.enumerate().map(|(number, limit)| limit.toml(number)).collect();
    format!("[{}]", limits.join(", "))
}

/// When each request was let through, in the order of their arrival.
fn simulated(limits: &[Limit], arrivals: &[Arrival]) -> Vec<u64> {
    departures(volume(&format!("limits = {}\n{MEDIUM}", array(limits.iter()))), arrivals)
}

/// The same of two volumes of an instance.
fn simulated_instance(limits: &[Limit], arrivals: &[Arrival]) -> Vec<u64> {
    let of = |volume: Option<u8>| array(limits.iter().filter(|limit| limit.of == volume));
    let first = format!("limits = {}\ninstance.limits = {}\n{MEDIUM}", of(Some(0)), of(None));
    departures(instance(&first, &[&format!("limits = {}\n{MEDIUM}", of(Some(1)))]), arrivals)
}

fn departures(mut volume: SimulatedVolume, arrivals: &[Arrival]) -> Vec<u64> {
    let mut ends = vec![0; arrivals.len()];
    for (index, arrival) in arrivals.iter().enumerate() {
        volume.pause(Nanos(arrival.gap_ns)).unwrap();
        let mib = 1024 * u64::from(arrival.volume) + index as u64;
        let (offset, length) = (ByteSize::mib(mib), ByteSize::kib(arrival.kib));
        let request = if arrival.is_write { Request::write(offset, length) } else { Request::read(offset, length) };
        volume.submit(request.tagged(index as u64)).unwrap();
    }
    while let Some(done) = volume.wait().unwrap() {
        ends[done.tag as usize] = done.completed_at.0;
        assert_eq!(done.started_at, done.completed_at);
    }
    ends
}

fn limit() -> impl Strategy<Value = Limit> {
    let requests = (1..20_000_u64, 0..50_u64);
    let bytes = (1_000_000..400_000_000_u64, 0..2_000_000_u64);
    let limit = |counts_bytes| {
        move |(direction, (rate, size)): (u8, (u64, u64))| Limit { counts_bytes, direction, rate, size, of: None }
    };
    prop_oneof![(0..3_u8, requests).prop_map(limit(false)), (0..3_u8, bytes).prop_map(limit(true))]
}

fn arrival() -> impl Strategy<Value = Arrival> {
    let gap = prop_oneof![3 => Just(0), 3 => 0..200_000_u64, 1 => 0..50_000_000_u64];
    let kib = prop_oneof![3 => Just(4), 1 => 1..=1024_u64];
    (gap, any::<bool>(), kib).prop_map(|(gap_ns, is_write, kib)| Arrival { volume: 0, gap_ns, is_write, kib })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn requests_leave_when_the_naive_model_says(
        limits in prop::collection::vec(limit(), 0..4),
        arrivals in prop::collection::vec(arrival(), 1..120),
    ) {
        prop_assert_eq!(simulated(&limits, &arrivals), naive(&limits, &arrivals));
    }

    #[test]
    fn requests_of_two_volumes_leave_when_the_naive_model_says(
        limits in prop::collection::vec(limit(), 3..5),
        arrivals in prop::collection::vec((arrival(), 0..2_u8), 1..120),
    ) {
        let of = [Some(0), Some(1), None, None];
        let limits: Vec<Limit> = limits.into_iter().zip(of).map(|(limit, of)| Limit { of, ..limit }).collect();
        let arrivals: Vec<Arrival> =
            arrivals.into_iter().map(|(arrival, volume)| Arrival { volume, ..arrival }).collect();
        prop_assert_eq!(simulated_instance(&limits, &arrivals), naive(&limits, &arrivals));
    }

    #[test]
    fn no_bucket_grants_more_than_its_size_and_its_rate_in_any_window(
        limit in limit(),
        arrivals in prop::collection::vec(arrival(), 1..120),
    ) {
        let limit = Limit { direction: 2, ..limit };
        let ends = simulated(std::slice::from_ref(&limit), &arrivals);
        prop_assert!(ends.is_sorted(), "first come, first served");
        let costs: Vec<i128> = arrivals.iter().map(|arrival| limit.cost(arrival)).collect();
        for first in 0..ends.len() {
            let mut taken = 0;
            for last in first..ends.len() {
                taken += costs[last];
                let refilled = i128::from(ends[last] - ends[first] + 1) * i128::from(limit.rate);
                // The last request may leave a debt where it is larger than the bucket.
                let allowed = i128::from(limit.size) * 1_000_000_000 + refilled;
                let debt = (costs[last] - i128::from(limit.size)).max(0) * 1_000_000_000;
                prop_assert!(taken * 1_000_000_000 <= allowed + debt);
            }
        }
    }

    #[test]
    fn where_no_limit_binds_nothing_waits(arrivals in prop::collection::vec(arrival(), 1..120)) {
        let wide = Limit { counts_bytes: false, direction: 2, rate: 1_000, size: 120, of: None };
        let mut now_ns = 0;
        let expected: Vec<u64> = arrivals.iter().map(|arrival| { now_ns += arrival.gap_ns; now_ns }).collect();
        prop_assert_eq!(simulated(&[wide], &arrivals), expected);
    }
}
