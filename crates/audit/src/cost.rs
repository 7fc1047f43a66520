//! The cost of violations: the window is replayed unmodified, and once for each violated rule with its violations
//! fixed.
//!
//! A trace of system calls is replayed through a file system and the page cache ([`crate::calls`]).
//!
//! All replays run on one drive, made from the profile ([`flashwise_truth::learned`]), as large as the largest of them
//! needs, and filled sequentially before; rules whose violations cost only during GC run on the same drive in its
//! steady state ([`crate::aged`]). The difference is the cost. It is that of the window, not of the whole trace; a
//! window longer than [`BYTES_MAX`] of writes is cut, because a simulation's time goes with its pages.

use std::collections::BTreeMap;

use flashwise_block::ByteSize;
use flashwise_profile::DeviceProfile;
use flashwise_truth::learned::learned;

use crate::Rule;
use crate::aged::AgedDrive;
use crate::calls::{CallPlayer, drive_bytes};
use crate::finding::{Cost, Simulated, SteadyState};
use crate::play::{Map, PlayError, Played, Step, mark_what_stays, play};
use crate::request::ObservedRequest;
use crate::rules::Check;

/// Bytes of the unmodified window, at most.
const BYTES_MAX: u64 = 8 << 30;
/// Bytes of a fixed window, at most: pages enlarged a hundred times are no remedy, and would take minutes to replay.
/// Beyond this the rule has no cost.
const FIXED_BYTES_MAX: u64 = 4 * BYTES_MAX;
/// Largest drive that is simulated; it bounds memory, by about 16 bytes for each page of 4 KiB.
const DRIVE_MAX: u64 = 256 << 30;

/// A rule that was broken.
pub(crate) struct Broken<'a> {
    pub(crate) rule: Rule,
    pub(crate) check: &'a dyn Check,
    /// For each request of the window, whether it breaks the rule.
    pub(crate) requests: Vec<bool>,
}

/// The steps of a window, up to the bytes that are played.
fn steps(window: &[ObservedRequest]) -> Vec<Step> {
    let mut bytes = 0_u64;
    let all = window.iter().map(Step::of);
    all.take_while(|step| {
        bytes = bytes.saturating_add(step.length);
        bytes <= BYTES_MAX
    })
    .collect()
}

/// The cost of each violated rule, or why it is unknown.
pub(crate) fn simulate(
    window: &[ObservedRequest],
    broken: &[Broken<'_>],
    profile: &DeviceProfile,
    trace_requests: u64,
    is_above_page_cache: bool,
) -> Result<(BTreeMap<Rule, Cost>, Simulated), String> {
    if broken.is_empty() {
        return Err("no rule is violated".to_owned());
    }
    let mut as_is = steps(window);
    mark_what_stays(&mut as_is);
    if as_is.is_empty() {
        return Err("the window contains no request".to_owned());
    }
    let fixed: Vec<(&Broken<'_>, Vec<Step>)> = broken
        .iter()
        .map(|of| {
            let marked = as_is.iter().zip(&of.requests).map(|(step, &is_broken)| Step { is_broken, ..*step });
            (of, of.check.fix(&marked.collect::<Vec<_>>()))
        })
        .filter(|(_, steps)| steps.iter().map(|step| step.length).fold(0, u64::saturating_add) <= FIXED_BYTES_MAX)
        .collect();
    let map = Map::of(&as_is);
    let maps: Vec<Map> = fixed.iter().map(|(_, steps)| Map::of(steps)).collect();
    let bytes = maps.iter().chain([&map]).map(Map::bytes).max().unwrap_or(0);
    if bytes > DRIVE_MAX {
        let (bytes, most) = (ByteSize(bytes), ByteSize(DRIVE_MAX));
        return Err(format!("the window touches {bytes}, more than the {most} that can be simulated: shorten it"));
    }
    let size = if is_above_page_cache { drive_bytes(bytes) } else { bytes };
    let drive = learned(profile, ByteSize(size)).map_err(|error| error.to_string())?;
    let caller = is_above_page_cache.then(|| CallPlayer::new(drive.config.clone(), &as_is));
    let failed = |error: PlayError| format!("the window cannot be replayed: {error}");
    let play = |steps: &[Step], map: &Map| match &caller {
        Some(caller) => caller.play(steps, map).map_err(failed),
        None => play(steps, map, &drive.config).map_err(failed),
    };
    let now = play(&as_is, &map)?;
    let is_aged = fixed.iter().any(|(of, _)| of.check.is_paid_in_collection());
    let aged_drive = if is_aged { AgedDrive::new(profile, &drive.config, &as_is, bytes) } else { None };
    let aged_now = aged_drive.as_ref().map(|drive| drive.play(&as_is, &map)).transpose().map_err(failed)?;
    let mut costs = BTreeMap::new();
    for ((of, steps), map) in fixed.iter().zip(&maps) {
        if let Some(cost) = of_budget(of.check, &as_is, steps) {
            costs.insert(of.rule, cost);
            continue;
        }
        let cost = match (of.check.is_paid_in_collection(), &aged_drive, &aged_now) {
            (true, Some(drive), Some(now)) => {
                let then = drive.play(steps, map).map_err(failed)?;
                Cost { is_in_steady_state: true, ..difference(now, &then) }
            }
            _ => Cost { is_of_calls: caller.is_some(), ..difference(&now, &play(steps, map)?) },
        };
        costs.insert(of.rule, cost);
    }
    let simulated = Simulated {
        window_requests: as_is.len() as u64,
        trace_requests,
        machine: caller.as_ref().map(CallPlayer::machine),
        time_ns: now.time_ns,
        flash_bytes: now.flash_bytes,
        host_bytes: now.host_bytes,
        steady_state: aged_now.map(|now| SteadyState {
            time_ns: now.time_ns,
            flash_bytes: now.flash_bytes,
            host_bytes: now.host_bytes,
        }),
        calibrated: drive.calibrated,
    };
    Ok((costs, simulated))
}

fn difference(now: &Played, then: &Played) -> Cost {
    let less = |now: u64, then: u64| i64::try_from(i128::from(now) - i128::from(then)).ok();
    Cost {
        time_ns: less(now.time_ns, then.time_ns),
        flash_bytes: less(now.flash_bytes, then.flash_bytes),
        ..Cost::default()
    }
}

/// Of a rule about a volume's limits or a card's units: the difference in time of its budget, or of merges.
fn of_budget(check: &dyn Check, now: &[Step], then: &[Step]) -> Option<Cost> {
    let (now, then) = (check.budget_time(now)?, check.budget_time(then)?);
    let time_ns = i64::try_from(i128::from(now.0) - i128::from(then.0)).ok();
    let is_of_merges = check.is_paid_in_merges();
    Some(Cost { time_ns, is_of_budget: !is_of_merges, is_of_merges, ..Cost::default() })
}
