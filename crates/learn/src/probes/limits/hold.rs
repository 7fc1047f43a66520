//! How long a request beyond the limit is held.
//!
//! Just above the limit, with little more in flight than the rate requires, a limiter that queues delays all requests a
//! little. One that holds what finds no token for a fixed time lets most pass at once, and the rest are late by that
//! time or a multiple of it, at any depth.

use flashwise_block::Nanos;
use flashwise_profile::Figure;

use super::caps::{Cap, Nature};
use super::{Kind, Probe};
use crate::LearnError;
use crate::draft::{Because, ProfileDraft, limit};
use crate::stats::median;

/// Depths of both loads, as multiples of what the rate requires.
const DEPTHS: [f64; 2] = [1.3, 1.8];
/// Latencies that are examined of each.
const KEEP: usize = 50_000;
/// Share of the requests that must be late, and that must not.
const SHARE_MIN: f64 = 0.004;
/// Share of the late ones that must be late by a multiple of the hold, within [`NEAR_SHARE`] of it.
const ON_MULTIPLE: f64 = 0.8;
const NEAR_SHARE: f64 = 0.2;
/// Late ones that make the first cluster: as a share of all late ones, and at least; many are held several times.
const FIRST_SHARE: f64 = 0.003;
const FIRST_MIN: usize = 2;
/// Both loads agree within this share.
const AGREE_SHARE: f64 = 0.05;

/// Where requests wait for their turn, nearly all take this much longer than a lone one at the second depth; where they
/// are held, most pass at once. And the share that may pass as fast.
const QUEUED_FACTOR: f64 = 1.3;
const FAST_SHARE: f64 = 0.1;

/// Requests that the limit grants during a hold, at least: one that takes what flows in during several holds is late by
/// the time of that, and not by one hold (reads of 1 MiB at 73 MB/s: 27.6 ms, twice the 14 ms of one of them, where the
/// hold was 1.1 ms).
const GRANTS_MIN: f64 = 4.0;

/// A hold, ns, as both loads show it.
pub(super) type Hold = Option<[f64; 2]>;

/// Loads small requests a little beyond the limit, and large writes where those are not held.
///
/// Also whether requests of every limit were seen to wait for their turn.
pub(super) fn measure(probe: &mut Probe<'_, '_>, caps: &[Cap]) -> Result<(Hold, bool), LearnError> {
    let mut do_all_queue = true;
    for kind in [Kind::Reads, Kind::Writes, Kind::LargeWrites, Kind::LargeReads] {
        let Some(cap) = caps.iter().find(|cap| cap.kind == kind && cap.nature != Nature::Drive) else {
            continue;
        };
        probe.spend(&[cap])?;
        let mut found = Vec::new();
        for factor in DEPTHS {
            let depth = (factor * cap.rate * cap.latency).ceil() as usize + 1;
            let stream = cap.stream.at_depth(depth.min(probe.queue_depth()));
            let Some((_, latencies)) = probe.rates_and_latencies(&[stream], KEEP, "held requests")? else {
                return Ok((None, false));
            };
            found.extend(held(&latencies, cap.latency * 1e9));
            do_all_queue &= factor < DEPTHS[1] || !cap.is_limit() || is_queued(&latencies, cap.latency * 1e9);
        }
        if let [first, second] = found[..]
            && (first - second).abs() <= AGREE_SHARE * first
        {
            if is_longer_than_grants(first, cap.rate) {
                return Ok((Some([first, second]), false));
            }
            do_all_queue = false;
        }
    }
    Ok((None, do_all_queue))
}

/// Whether a limit of so many requests a second grants several of them during a hold, ns.
fn is_longer_than_grants(hold: f64, rate: f64) -> bool {
    hold * 1e-9 * rate >= GRANTS_MIN
}

/// Whether even the fastest requests wait.
fn is_queued(latencies: &[f64], lone: f64) -> bool {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get((FAST_SHARE * sorted.len() as f64) as usize).is_some_and(|fast| *fast >= lone * QUEUED_FACTOR)
}

/// The time by which late requests are late, if there are two kinds; ns.
fn held(latencies: &[f64], lone: f64) -> Option<f64> {
    let mut delays: Vec<f64> = latencies.iter().map(|latency| latency - lone).collect();
    delays.sort_unstable_by(f64::total_cmp);
    held_among(&delays, lone)
}

/// The same of delays in order. Of several gaps the lowest counts: beyond the next one are requests that were held many
/// times. Two requests in flight that are held for the same time try again in the same order, so that one of them may
/// wait for many holds (holds of 1.3 ms at 1,500 a second: late by 1.3 or by 24.7 ms).
fn held_among(delays: &[f64], lone: f64) -> Option<f64> {
    let n = delays.len();
    if n < 100 {
        return None;
    }
    // The widest gap in relation to what is below it: between those that passed and those that were held.
    let least = SHARE_MIN * n as f64;
    let at = |i: usize| delays[i] + lone;
    let gap = (least as usize + 1..n - least as usize)
        .max_by(|&a, &b| (at(a) / at(a - 1)).total_cmp(&(at(b) / at(b - 1))))?;
    let (below, late) = delays.split_at(gap);
    if at(gap) < at(gap - 1) * (1.0 + NEAR_SHARE) {
        return None;
    }
    let hold = held_among(below, lone).or_else(|| first_cluster(late))?;
    let is_multiple = |delay: &&f64| {
        let times = (**delay / hold).round().max(1.0);
        (**delay - times * hold).abs() <= NEAR_SHARE * hold
    };
    let on = late.iter().filter(is_multiple).count() as f64;
    (hold > lone * NEAR_SHARE && on >= ON_MULTIPLE * late.len() as f64).then_some(hold)
}

/// The middle of the first cluster of late requests.
fn first_cluster(late: &[f64]) -> Option<f64> {
    let members = ((FIRST_SHARE * late.len() as f64) as usize).max(FIRST_MIN);
    let end = 1.0 + 2.0 * NEAR_SHARE;
    let is_first = |i: &usize| late.get(i + members - 1).is_some_and(|last| *last < late[*i] * end);
    let first = late[(0..late.len()).find(is_first)?];
    Some(median(late.iter().copied().filter(|delay| (first..first * end).contains(delay)).collect()))
}

/// Sets the figure.
pub(super) fn settle((hold, do_all_queue): (Hold, bool), caps: &[Cap], draft: &mut ProfileDraft) {
    let recipe = "a little more in flight than the limit requires, at two depths";
    let (figure, reason) = match hold {
        Some([first, second]) => {
            let value = (first + second) / 2.0;
            let (low, high) = (first.min(second) * 0.98, first.max(second) * 1.02);
            let reason =
                format!("late requests are late by {} or a multiple of it, at both depths", Nanos(value as u64));
            (Figure::certain(value.round() as u64, low.floor() as u64, high.ceil() as u64), reason)
        }
        None if caps.iter().any(Cap::is_limit) && do_all_queue => (
            Figure::absent(),
            "requests beyond the limit wait for their turn, longer where more are in flight".to_owned(),
        ),
        None if caps.iter().any(Cap::is_limit) => (
            Figure::unknown(),
            "requests beyond the limit do not all wait for their turn, and are late by no one time".to_owned(),
        ),
        None => (Figure::unknown(), "no limit was found".to_owned()),
    };
    draft.settle(limit!(throttle_hold_ns), figure, Because { recipe, reason, curve: None });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_are_late_by_multiples_of_one_time_were_held() {
        let latencies: Vec<f64> = (0..10_000_u32)
            .map(|n| 90_000.0 + f64::from(n % 100) * 200.0 + if n % 80 == 0 { 3e6 } else { 0.0 })
            .collect();
        let hold = held(&latencies, 90_000.0).unwrap();
        assert!((hold / 3e6 - 1.0).abs() < 0.05, "{hold}");
    }

    #[test]
    fn requests_that_wait_for_many_holds_do_not_hide_those_of_one() {
        let late = |n: u32| match n % 100 {
            0 => 24.7e6,
            1..5 => 1.3e6,
            _ => 0.0,
        };
        let latencies: Vec<f64> = (0..10_000_u32).map(|n| 150_000.0 + f64::from(n % 97) * 200.0 + late(n)).collect();
        let hold = held(&latencies, 150_000.0).unwrap();
        assert!((hold / 1.3e6 - 1.0).abs() < 0.05, "{hold}");
    }

    #[test]
    fn requests_that_wait_for_their_turn_were_not_held() {
        let latencies: Vec<f64> = (0..10_000_u32).map(|n| 130_000.0 + f64::from(n % 100) * 300.0).collect();
        assert_eq!(held(&latencies, 90_000.0), None);
        assert!(is_queued(&latencies, 90_000.0));
    }

    #[test]
    fn what_large_requests_wait_for_the_bytes_of_one_is_no_hold() {
        assert!(is_longer_than_grants(3.0e6, 4_000.0));
        assert!(!is_longer_than_grants(27.6e6, 73e6 / f64::from(1 << 20)));
    }

    #[test]
    fn a_hold_that_is_no_longer_than_the_way_is_not_excluded() {
        // A way of 0.8 to 1.6 ms, and a hold of 1.1 ms for every third.
        let way = |n: u32| 800_000.0 + f64::from(n % 101) * 8000.0;
        let latencies: Vec<f64> =
            (0..10_000_u32).map(|n| way(n) + if n % 3 == 0 { 1_100_000.0 } else { 0.0 }).collect();
        assert_eq!(held(&latencies, 800_000.0), None);
        assert!(!is_queued(&latencies, 800_000.0));
    }
}
