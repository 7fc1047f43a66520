//! One mechanism at a time: the two tables of "Latencies under load: what was varied" in `docs/studies/real-drives.md`,
//! each a preset with keys of its own.
//!
//! ```text
//! cargo test --release -p flashwise-studies --lib varied -- --ignored --nocapture
//! ```

use flashwise_ssd::DeviceConfig;
use flashwise_ssd::config::Suspend;

use super::load::{self, Latencies, Point};
use super::{MAX, PE8110, ROWS_LEAST};

/// What is kept of a preset.
#[derive(Clone, Copy)]
struct Mechanisms {
    words: &'static str,
    /// GC at the host's pace.
    pace: bool,
    suspension: bool,
    /// Few commands wait inside, the others in the host's queue.
    waiting: bool,
}

const FAST: Mechanisms =
    Mechanisms { words: "GC as fast as the flash allows", pace: false, suspension: false, waiting: false };
const PACED: Mechanisms = Mechanisms { words: "GC at the host's pace", pace: true, ..FAST };

fn drive(preset: &str, kept: Mechanisms) -> DeviceConfig {
    let mut config = DeviceConfig::preset(preset).unwrap();
    // Exactly what the host needs.
    config.ftl.gc.pace = kept.pace.then_some(1.0);
    if !kept.pace {
        config.ftl.gc.free_superblocks = None;
    }
    if !kept.suspension {
        config.flash.suspension.suspend = Suspend::None;
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
        let points = load::run(drive(preset, kept), ROWS_LEAST, &targets, 1).unwrap();
        let text = |of: Latencies| of.map(|us| format!("{us:.0}")).join(", ");
        let line = points.iter().map(|at| format!("reads {}; writes {}", text(at.reads), text(at.writes)));
        println!("| {} | {} |", kept.words, line.collect::<Vec<_>>().join(" | "));
        points.try_into().unwrap()
    })
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
fn writes_that_wait_in_the_host_s_queue_make_a_pe8110_s_reads_wait_as_the_real_ones_do() {
    let waiting =
        Mechanisms { words: "and 40 writes wait inside, the others in the host's queue", waiting: true, ..PACED };
    let all = Mechanisms { words: "and reads suspend programs and erases", suspension: true, ..waiting };
    let rows = table(PE8110, [70_000.0, 250_000.0], [FAST, PACED, waiting, all]);
    let [fast, paced, ..] = rows.map(|[near, _]| near.writes[2]);
    assert!(fast > 1_000.0 && paced < 30.0, "99.9 % of writes: {rows:?}");
    let medians = rows.map(|[_, full]| full.reads[0]);
    assert!(medians[1] < 1_000.0, "{medians:?}");
    assert!(medians[2..].iter().all(|us| (4_000.0..6_000.0).contains(us)), "the real drive has 4,791 µs: {medians:?}");
}
