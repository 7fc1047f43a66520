//! `io_max_concurrency` (from 18 on): the most requests that one process may have in flight.
//!
//! It limits `effective_io_concurrency` and `maintenance_io_concurrency`, so it is at least as large as what is right
//! for them (`io_concurrency.rs`). The server chooses it at its start: 64, or fewer where `shared_buffers` is small.
//!
//! Source: PostgreSQL documentation, "Asynchronous Behavior": from 1 to 1024.

use super::super::settings::Setting;
use super::io_concurrency::enough;
use super::{Change, Facts, Ruling};

const MOST: f64 = 1024.0;

pub(super) fn judge(facts: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    let present = now.value.parse::<f64>().map_err(|_| format!("{} is not a number", now.value))?;
    let (enough, k) = enough(facts)?;
    let wanted = enough.ceil().min(MOST);
    if present >= wanted || present < 0.0 {
        return Ok(Ruling::Fits(format!("{wanted} reads in flight are enough for the drive")));
    }
    Ok(Ruling::Change(Change::unmeasured(
        format!("{wanted}"),
        format!("{wanted} reads in flight are enough for the drive, and a process may have {present}"),
        vec![k.evidence("read_concurrency_8k", "reads in flight")],
    )))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, changed, fits};
    use super::*;

    #[test]
    fn a_process_may_have_as_many_reads_in_flight_as_the_drive_needs() {
        let mut bench = Bench::of(18);
        let judged = |bench: &Bench| judge(&bench.facts(), bench.setting("io_max_concurrency"));
        assert!(fits(judged(&bench)).contains("16 reads in flight"));
        bench.set("io_max_concurrency", "8");
        assert_eq!(changed(judged(&bench)).value, "16");
        bench.set("io_max_concurrency", "-1");
        fits(judged(&bench));
    }
}
