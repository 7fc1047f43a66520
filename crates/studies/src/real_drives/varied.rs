//! One mechanism at a time: the tables of "Latencies under load: what was varied" in `docs/studies/real-drives.md`,
//! each a preset with keys of its own.
//!
//! ```text
//! cargo test --release -p flashwise-studies --lib varied -- --ignored --nocapture
//! ```

use flashwise_ssd::DeviceConfig;
use flashwise_ssd::config::{Suspend, SuspensionConfig};

use super::load::{self, Latencies, Point};
use super::{MAX, P5520, PE8110, ROWS_LEAST, ROWS_LEAST_LOADED};

/// Rows of a victim that GC reads at a time, where the preset's number is not kept.
const MANY_ROWS: u32 = 8;

/// What is kept of a preset.
#[derive(Clone, Copy)]
struct Mechanisms {
    words: &'static str,
    /// GC at the host's pace.
    pace: bool,
    /// Reads suspend programs and erases, at the default time.
    suspension: bool,
    /// Suspending a program takes the time that was fitted.
    time: bool,
    /// GC reads few rows at a time.
    few_rows: bool,
    /// Few commands wait inside, the others in the host's queue.
    waiting: bool,
    rows: u32,
}

const FAST: Mechanisms = Mechanisms {
    words: "GC as fast as the flash allows",
    pace: false,
    suspension: false,
    time: false,
    few_rows: false,
    waiting: false,
    rows: ROWS_LEAST_LOADED,
};
const PACED: Mechanisms = Mechanisms { words: "GC at the host's pace", pace: true, ..FAST };

fn drive(preset: &str, kept: Mechanisms) -> DeviceConfig {
    let mut config = DeviceConfig::preset(preset).unwrap();
    let suspension = &mut config.flash.suspension;
    if !kept.pace {
        (config.ftl.gc.pace, config.ftl.gc.free_superblocks) = (None, None);
    }
    if !kept.suspension {
        suspension.suspend = Suspend::None;
    }
    if !kept.time {
        suspension.program_ns = SuspensionConfig::default().program_ns;
    }
    if !kept.few_rows {
        config.ftl.gc.reads_in_flight = MANY_ROWS;
    }
    if !kept.waiting {
        config.controller.waiting_writes = None;
    }
    config
}

/// Writes a second that are aimed at: one rate below saturation, and more than the drive serves.
fn table<const N: usize>(preset: &str, targets: [f64; 2], rows: [Mechanisms; N]) -> [[Point; 2]; N] {
    println!("{preset}: at {} writes a second; at {}", targets[0], targets[1]);
    rows.map(|kept| {
        let points = load::run(drive(preset, kept), kept.rows, &targets, 1).unwrap();
        let text = |of: Latencies| of.map(|us| format!("{us:.0}")).join(", ");
        let line = points
            .iter()
            .map(|at| format!("reads {}; writes {}; {:.1} k", text(at.reads), text(at.writes), at.writes_per_s / 1e3));
        println!("| {} | {} |", kept.words, line.collect::<Vec<_>>().join(" | "));
        points.try_into().unwrap()
    })
}

/// Reads suspend, at the default time and at the preset's.
fn suspending() -> [Mechanisms; 2] {
    let both = Mechanisms { words: "and reads suspend programs and erases, after 20 µs", suspension: true, ..PACED };
    [both, Mechanisms { words: "and after the time that is fitted", time: true, ..both }]
}

#[test]
#[ignore = "half a minute, optimised: make test-full runs it"]
fn pace_and_suspension_shorten_a_micron_s_reads_and_only_both_come_close_to_the_real_ones() {
    let suspended = Mechanisms { words: "reads suspend programs and erases", suspension: true, ..FAST };
    let both = Mechanisms { words: "both", suspension: true, ..PACED };
    let rows = table(MAX, [80_000.0, 250_000.0], [FAST, PACED, suspended, both]);
    let [fast, paced, suspended, both] = rows.map(|[near, _]| near.reads[1]);
    assert!(paced < 0.7 * fast && suspended < fast && both < paced && both < suspended, "99 %: {rows:?}");
    assert!((both / 424.0 - 1.0).abs() < 0.15, "the real drive has 424 µs: {both}");
}

#[test]
#[ignore = "half a minute, optimised: make test-full runs it"]
fn a_p5520_s_reads_wait_for_a_suspension_and_for_the_rows_that_garbage_collection_reads_at_a_time() {
    let [both, time] = suspending();
    let few = Mechanisms { words: "and GC reads two rows at a time", few_rows: true, ..time };
    let rows = table(P5520, [100_000.0, 250_000.0], [FAST, PACED, both, time, few]);
    let [.., both, time, few] = rows.map(|[near, _]| near.reads);
    assert!((time[0] / 141.0 - 1.0).abs() < 0.1 && both[0] < 100.0, "median, the real drive has 141 µs: {rows:?}");
    assert!(few[1] < 0.7 * time[1], "99 %, the real drive has 467 µs: {rows:?}");
}

#[test]
#[ignore = "half a minute, optimised: make test-full runs it"]
fn a_pe8110_delays_writes_and_reads_alike_and_evenly_where_superblocks_are_not_too_short() {
    let waiting =
        Mechanisms { words: "and 40 writes wait inside, the others in the host's queue", waiting: true, ..PACED };
    let [both, time] = suspending().map(|kept| Mechanisms { waiting: true, ..kept });
    let short = Mechanisms { words: "the same with superblocks of 8 rows", rows: ROWS_LEAST, ..time };
    let rows = table(PE8110, [70_000.0, 250_000.0], [FAST, PACED, waiting, both, time, short]);
    let [fast, paced, ..] = rows.map(|[near, _]| near.writes[2]);
    assert!(fast > 1_000.0 && paced < 30.0, "99.9 % of writes: {rows:?}");
    let medians = rows.map(|[_, full]| full.reads[0]);
    assert!(medians[1] < 1_000.0, "{medians:?}");
    assert!(medians[2..].iter().all(|us| (3_500.0..6_000.0).contains(us)), "the real drive has 4,791 µs: {medians:?}");
    let writes = rows.map(|[_, full]| full.writes[1]);
    assert!((writes[4] / 6_903.0 - 1.0).abs() < 0.1, "99 %, the real drive has 6,903 µs: {writes:?}");
    assert!(writes[5] > 1.5 * writes[4], "chance uses up the free superblocks: {writes:?}");
}
