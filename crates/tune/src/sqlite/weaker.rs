//! What a database would gain with weaker guarantees: measured for information, never applied.
//!
//! ```text
//!   the best configuration ── pairs of runs with and without the guarantee, side by side ── WeakerGuarantee
//! ```

use super::bench::SqliteBench;
use super::knobs::label;
use super::run::Run;
use super::settings::{Journal, Settings, Synchronous};
use crate::search::{Interval, Stage, likely, log_gain};
use crate::{Target, TuneError, WeakerGuarantee};

/// Pairs of runs with and without a guarantee where a run repeated is the same: they differ by their seeds alone.
const PAIRS_REPEATABLE: u64 = 2;
/// Otherwise: as many as a change of the winner is first measured by.
const PAIRS_NOISY: u64 = 3;

/// How many runs what weaker guarantees would bring takes.
pub(super) fn weaker_runs(target: &Target) -> usize {
    2 * weaker_pairs(target) as usize
}

fn weaker_pairs(target: &Target) -> u64 {
    if target.is_repeatable() { PAIRS_REPEATABLE } else { PAIRS_NOISY }
}

/// What commits that do not wait for the drive would bring. The search leaves the time for it, unless it overran.
pub(super) fn weaker_guarantee(
    bench: &mut SqliteBench<'_>,
    best: &Settings,
    seed: u64,
) -> Result<Vec<WeakerGuarantee>, TuneError> {
    let has_time = bench.budget.measure().is_none() || bench.budget.spent() < 1.0;
    if !bench.space.facts.writes || best.journal != Journal::Log || !has_time {
        return Ok(Vec::new());
    }
    let normal = Settings { synchronous: Synchronous::Normal, ..*best };
    let seeds = (0..weaker_pairs(&bench.full.target)).map(|n| seed.wrapping_add(n));
    let jobs: Vec<(Settings, u64)> = seeds.flat_map(|seed| [(*best, seed), (normal, seed)]).collect();
    let runs = bench.run_all(Stage::Prune, &jobs)?;
    let cost = |run: &Run| bench.objectives.map(|objective| objective.cost(run));
    let logs: Vec<f64> = runs.chunks(2).map(|pair| log_gain(cost(&pair[0]), cost(&pair[1]))[0]).collect();
    let Interval { ratio, low, high } = likely(&logs);
    Ok(vec![WeakerGuarantee {
        name: "synchronous=normal".to_owned(),
        with: label(&bench.space.stock, best),
        ratio,
        low: Some(low),
        high: Some(high).filter(|high| high.is_finite()),
        loses: "the last commits before a power cut".to_owned(),
    }])
}
