//! `bgwriter_flush_after`, `checkpoint_flush_after`, `backend_flush_after`: how much is written before the kernel is
//! told to start write-back.
//!
//! ```text
//!   least    k_w pages of 8 KiB, rounded up to whole stripes (write units if there is no stripe)
//!   value    max(present, least), rounded up to whole stripes, at most 2 MiB
//! ```
//!
//! Scattered pages need k_w of them at once to keep the drive busy; adjacent ones become large writes, which waste
//! nothing if they are whole stripes. A present value of 0 is kept: that of the first two was disabled on purpose. That
//! of backends is 0 by default, and no figure of a drive shows whether another one pays.
//!
//! Source: PostgreSQL documentation, "Background Writer", "Checkpoints", "Asynchronous Behavior": 0 to 2 MB, in pages.
//! Of `backend_flush_after` it says that performance can degrade if the work fits the system's page cache but not
//! `shared_buffers`.

use super::super::settings::{PAGE, Setting};
use super::{Change, Facts, Ruling};
use crate::servers::figures::{Measure, certain};

/// 2 MiB, in pages.
const MOST: u64 = 256;

pub(super) fn judge(facts: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    if now.value == "0" {
        return Ok(Ruling::Fits("it is disabled".to_owned()));
    }
    proposal(facts, now)
}

pub(super) fn of_backends(facts: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    if now.value == "0" {
        return Err(
            "it is off by default, and a loss if the data fits the system's page cache but not shared_buffers: \
                    change it only if your own measurement shows a gain"
                .to_owned(),
        );
    }
    proposal(facts, now)
}

fn proposal(facts: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    let drive = &facts.profile.parameters;
    let k = certain(&drive.write_concurrency_8k, "k_w at 8 KiB")?;
    let (key, name, unit) = match (drive.stripe_bytes.known(), drive.write_unit_bytes.known()) {
        (Some(_), _) => ("stripe_bytes", "stripe", certain(&drive.stripe_bytes, "stripe")?),
        (None, Some(_)) => ("write_unit_bytes", "write unit", certain(&drive.write_unit_bytes, "write unit")?),
        (None, None) => return Err("the profile has neither a certain stripe nor a certain write unit".to_owned()),
    };
    let present = now.value.parse::<u64>().map_err(|_| format!("{} is not a number", now.value))?;
    let wanted = pages(present, k.value as u64, unit.value as u64).ok_or_else(|| too_long(name, unit))?;
    let reason = format!(
        "k_w = {} ({} to {}) concurrent writes of 8 KiB keep the drive busy; writes of whole multiples of its {name}, \
         {} KiB, waste nothing",
        k.value,
        k.low,
        k.high,
        unit.value / 1024.0
    );
    if wanted == present {
        return Ok(Ruling::Fits(reason));
    }
    Ok(Ruling::Change(Change::unmeasured(
        wanted.to_string(),
        reason,
        vec![k.evidence("write_concurrency_8k", "writes in flight"), unit.evidence(key, "bytes")],
    )))
}

/// Pages to write before a flush; `None` where a unit is longer than may be set.
fn pages(present: u64, k: u64, unit_bytes: u64) -> Option<u64> {
    let step = unit_bytes.div_ceil(PAGE).max(1);
    let wanted = present.max(k).max(1).next_multiple_of(step);
    let most = MOST / step * step;
    (most > 0).then(|| wanted.min(most))
}

fn too_long(name: &str, unit: Measure) -> String {
    format!("the {name} of {} KiB is longer than the limit of the setting, 2 MiB", unit.value / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, changed, fits, untold};
    use super::*;

    #[test]
    fn it_is_whole_stripes_of_at_least_k_w_pages() {
        assert_eq!(pages(0, 1, 65536), Some(8), "one stripe holds 8 pages");
        assert_eq!(pages(0, 9, 65536), Some(16));
        assert_eq!(pages(64, 2, 65536), Some(64), "whole stripes already");
        assert_eq!(pages(32, 2, 3 * 32768), Some(36), "three times 32 KiB are 12 pages");
        assert_eq!(pages(0, 300, 8192), Some(256));
        assert_eq!(pages(0, 300, 3 * 32768), Some(252), "whole stripes below 2 MiB");
        assert_eq!(pages(5, 2, 512), Some(5), "a page is several units");
        assert_eq!(pages(0, 1, 4 << 20), None);
    }

    #[test]
    fn what_is_off_stays_off() {
        let mut bench = Bench::new();
        assert!(fits(judge(&bench.facts(), bench.setting("bgwriter_flush_after"))).contains("64 KiB"));
        bench.set("bgwriter_flush_after", "0");
        assert!(fits(judge(&bench.facts(), bench.setting("bgwriter_flush_after"))).contains("disabled"));
        let left = untold(of_backends(&bench.facts(), bench.setting("backend_flush_after")));
        assert!(left.contains("a loss"), "{left}");
        bench.set("backend_flush_after", "3");
        let change = changed(of_backends(&bench.facts(), bench.setting("backend_flush_after")));
        assert_eq!((change.value.as_str(), change.evidence[1].figure.as_str()), ("8", "stripe_bytes"));
    }

    #[test]
    fn the_write_unit_stands_in_for_a_stripe() {
        let mut bench = Bench::new();
        bench.profile.parameters.stripe_bytes = flashwise_profile::Figure::absent();
        bench.set("backend_flush_after", "3");
        assert_eq!(changed(of_backends(&bench.facts(), bench.setting("backend_flush_after"))).value, "4");
        bench.profile.parameters.doubt("write_unit_bytes");
        assert!(untold(of_backends(&bench.facts(), bench.setting("backend_flush_after"))).contains("neither"));
    }
}
