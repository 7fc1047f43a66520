//! `checkpoint_completion_target`: the part of a checkpoint's interval over which its pages are written.
//!
//! ```text
//!   value    0.9, where the volume has a limit of writes that binds
//! ```
//!
//! A checkpoint that is written in half of the interval needs twice the rate, which a volume with limits does not have
//! beside the queries. Never lowered.
//!
//! Source: PostgreSQL documentation, "WAL Configuration": "the default of 0.9 … spreads the checkpoint across almost
//! all of the available interval, providing fairly consistent I/O load"; 0.5 before version 14.

use flashwise_block::Operation;

use super::super::settings::{PAGE, Setting};
use super::{Change, Facts, Ruling};
use crate::servers::granted::granted;

const WANTED: f64 = 0.9;

pub(super) fn judge(facts: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    let granted =
        granted(facts.profile, Operation::Write, PAGE)?.ok_or("the profile has no limit of a volume's writes")?;
    let present = now.value.parse::<f64>().map_err(|_| format!("{} is not a number", now.value))?;
    let budget = if granted.is_shared { ", which reads share" } else { "" };
    let reason = format!(
        "the volume grants {:.0} page writes per second in the long run{budget}; a checkpoint in {:.0} % of its \
         interval leaves the more of them to queries, the longer it takes",
        granted.rate.value,
        present * 100.0
    );
    if present >= WANTED {
        return Ok(Ruling::Fits(reason));
    }
    Ok(Ruling::Change(Change::unmeasured(WANTED.to_string(), reason, vec![granted.evidence])))
}

#[cfg(test)]
mod tests {
    use flashwise_profile::Figure;

    use super::super::tests::{Bench, changed, fits, untold};
    use super::*;

    #[test]
    fn a_checkpoint_is_spread_on_a_volume_with_a_limit_only() {
        let mut bench = Bench::of(13);
        let name = "checkpoint_completion_target";
        assert!(untold(judge(&bench.facts(), bench.setting(name))).contains("no limit"));
        bench.profile.limits.write_iops_limit = Figure::certain(3_000, 2_990, 3_010);
        let change = changed(judge(&bench.facts(), bench.setting(name)));
        assert_eq!((change.value.as_str(), change.evidence[0].figure.as_str()), ("0.9", "write_iops_limit"));
        bench.set(name, "0.95");
        assert!(fits(judge(&bench.facts(), bench.setting(name))).contains("3000 page writes"));
    }
}
