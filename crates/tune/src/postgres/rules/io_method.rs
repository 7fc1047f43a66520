//! `io_method` (from 18 on): who reads ahead of a session.
//!
//! ```text
//!   worker     workers, one read each (io_workers.rs)
//!   io_uring   the session itself, where the server was built with it
//!   sync       nobody: hints to the kernel's read-ahead, as before 18; with direct I/O one read at a time
//! ```
//!
//! Only the last with direct I/O is changed: a drive that serves more than one read at once stands idle.
//!
//! Source: PostgreSQL documentation, "Asynchronous Behavior"; `src/backend/storage/aio/read_stream.c` for the hints.

use super::super::settings::Setting;
use super::{Change, Facts, Ruling, debug_io_direct};
use crate::servers::figures::certain;

pub(super) fn judge(facts: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    match now.value.as_str() {
        "worker" => {
            return Ok(Ruling::Fits("workers read ahead of sessions; how many is their own setting".to_owned()));
        }
        "sync" => {}
        _ => return Ok(Ruling::Fits("each session has its reads in flight itself".to_owned())),
    }
    if !debug_io_direct::is_direct(facts.settings) {
        return Ok(Ruling::Fits("reads ahead are hints to the kernel, as before version 18".to_owned()));
    }
    let k = certain(&facts.profile.parameters.read_concurrency_8k, "k_r at 8 KiB")?;
    let reason = format!("the drive serves k_r = {} reads of 8 KiB concurrently ({} to {})", k.value, k.low, k.high);
    if k.low <= 1.0 {
        return Ok(Ruling::Fits(reason));
    }
    Ok(Ruling::Change(Change::unmeasured(
        "worker".to_owned(),
        format!("{reason}, and without the page cache a session has one read in flight"),
        vec![k.evidence("read_concurrency_8k", "reads in flight")],
    )))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, changed, fits};
    use super::*;

    #[test]
    fn only_synchronous_reads_past_the_page_cache_are_changed() {
        let mut bench = Bench::of(18);
        let judged = |bench: &Bench| judge(&bench.facts(), bench.setting("io_method"));
        assert!(fits(judged(&bench)).contains("workers"));
        bench.set("io_method", "io_uring");
        assert!(fits(judged(&bench)).contains("each session"));
        bench.set("io_method", "sync");
        assert!(fits(judged(&bench)).contains("hints to the kernel"));
        bench.set("debug_io_direct", "data, wal");
        assert_eq!(changed(judged(&bench)).value, "worker");
    }
}
