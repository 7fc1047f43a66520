//! A cloud volume and its limits in sentences and rows.

use flashwise_sim::{Simulation, VolumeActivity};
use flashwise_volume::LimitActivity;

use super::numbers::{bytes, grouped, significant, time};

/// What the volume is, in a sentence, and which limit delayed its requests most.
pub(crate) fn sentence(it: &VolumeActivity, s: &Simulation) -> String {
    let size = match it.config.instance.volumes.len() {
        0 => bytes(it.config.capacity_bytes),
        others => format!("{} and {others} more of its instance", bytes(it.config.capacity_bytes)),
    };
    let most = it.limits.iter().max_by_key(|limit| limit.waited).filter(|limit| limit.delayed > 0);
    match most {
        None => format!("{size}; no limit delayed a request."),
        Some(limit) => format!(
            "{size}; \"{}\" of the {} delayed requests most: for {} % of the time, at least one waited for it.",
            limit.name,
            owner(limit),
            significant(100.0 * limit.exceeded.0 as f64 / s.elapsed_ns.max(1) as f64),
        ),
    }
}

fn owner(limit: &LimitActivity) -> &'static str {
    if limit.of_instance { "instance" } else { "volume" }
}

/// Names of the columns of [`limit_rows`].
pub(crate) const LIMIT_COLUMNS: [&str; 5] = ["limit", "requests", "delayed", "mean wait", "exceeded"];

/// What each limit did.
pub(crate) fn limit_rows(it: &VolumeActivity) -> Vec<[String; 5]> {
    let row = |limit: &LimitActivity| {
        let mean = limit.waited.0.checked_div(limit.delayed).map_or_else(|| "–".to_owned(), time);
        let name = format!("{}: {}", owner(limit), limit.name);
        [name, grouped(limit.requests), grouped(limit.delayed), mean, time(limit.exceeded.0)]
    };
    it.limits.iter().map(row).collect()
}
