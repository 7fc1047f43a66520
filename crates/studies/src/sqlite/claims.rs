//! What the texts claim, beside what is measured, and why it differs.

use flashwise_report::study::{Measured, StudyClaim};

use super::compare::percent;
use super::{Measurements, aligned, hot, small_pages};
use crate::verdict::verdict;

/// A saving of flash bytes is the claimed one within so many percentage points.
const NEAR_WEAR: f64 = 1.0;
/// The same of a gain in throughput.
const NEAR_GAIN: f64 = 3.0;
/// A checkpoint is as many times as fast as argued within this share.
const NEAR_TIMES: f64 = 0.1;
/// Runs that are written together.
const K_W: f64 = 8.0;

/// All claims.
pub(super) fn all(m: &Measurements) -> Vec<StudyClaim> {
    vec![hot_locations(m), aligned_stripes(m), contained(m), write_back(m)]
}

fn hot_locations(m: &Measurements) -> StudyClaim {
    let gains = m.hot.gains();
    let near = |gain: &Measured| (gain.value - hot::CLAIMED).abs() <= NEAR_GAIN;
    let [cold, hot] = m.hot.select_times();
    StudyClaim {
        claim: format!("use-hot-locations: SELECT throughput of SQLite +{:.0} % on the Samsung 960 EVO.", hot::CLAIMED),
        measured: format!(
            "{} with 1, 500, 5,000 and 50,000 inserts per transaction, scaled.",
            gains.iter().map(|&gain| percent(gain)).collect::<Vec<_>>().join(", ")
        ),
        verdict: verdict(gains.iter().all(near), gains.iter().any(|gain| gain.low > 0.0)),
        because: format!(
            "With one insert per transaction a SELECT takes {cold:.0} µs without and {hot:.0} µs with it; with {:.0} µs \
             more in both cases it would be the published gain. {}Compared with SQLite's default 4 KiB pages it is {}.",
            m.hot.time_beside(),
            m.hot.what_is_lost(),
            format!("{:+.0} %", m.hot.against_default()).replace('-', "−")
        ),
    }
}

/// `name: −1.0 ± 0.1 %, …`.
fn listed(all: &[(String, Measured)]) -> String {
    all.iter().map(|(name, value)| format!("{name}: {}", percent(*value))).collect::<Vec<_>>().join("; ")
}

fn saves(value: &Measured) -> bool {
    value.high < 0.0
}

fn aligned_stripes(m: &Measurements) -> StudyClaim {
    let (inserts, drives) = (m.aligned.by_inserts(), m.aligned.by_drive());
    let near = |(_, value): &(String, Measured)| (value.value - aligned::CLAIMED).abs() <= NEAR_WEAR;
    let some = inserts.iter().chain(&drives).any(|(_, value)| saves(value));
    StudyClaim {
        claim: format!("write-aligned-stripes: wear by SQLite's log −{:.1} % on the Toshiba XG5.", -aligned::CLAIMED),
        measured: format!(
            "Flash bytes of the log by inserts per transaction, {}. With one insert, by drive, {}.",
            listed(&inserts),
            listed(&drives)
        ),
        verdict: verdict(inserts.iter().all(near), some),
        because: format!(
            "A page and its header are nine 4 KiB blocks in either form. If a flush pads to a stripe, the block of \
             headers, which is elsewhere, is padded as well, and that costs more than occasionally crossing a stripe \
             boundary. Alignment saves if the drive maps units longer than a block and does not pad. The paper's \
             prototype did not sync its headers: without their block the host's bytes are {}.",
            percent(m.aligned.of_the_prototype())
        ),
    }
}

fn contained(m: &Measurements) -> StudyClaim {
    let all = m.small_pages.contained();
    let near = |(_, value): &(String, Measured)| (value.value - small_pages::CLAIMED).abs() <= NEAR_WEAR;
    StudyClaim {
        claim: format!(
            "contain-write-in-flash-page: wear by MariaDB's binary log −{:.1} % on the Toshiba XG5.",
            -small_pages::CLAIMED
        ),
        measured: format!("With SQLite's log, by drive, page and inserts per transaction, {}.", listed(&all)),
        verdict: verdict(all.iter().all(near), all.iter().any(|(_, value)| saves(value))),
        because: "This is a different log: one frame of SQLite is a page, but a record of the binary log may be much \
                  shorter. The technique saves the second flash page of a write that spans two, which matters only if \
                  a flush programs single pages; if it closes a 64 KiB stripe, one page more or less is padding."
            .to_owned(),
    }
}

fn write_back(m: &Measurements) -> StudyClaim {
    let (times, more) = (m.checkpoints.speedups(), m.checkpoints.more_inserts());
    let near = |(_, value): &(String, Measured)| value.value >= K_W * (1.0 - NEAR_TIMES);
    let words: Vec<String> = times.iter().map(|(name, value)| format!("{name}: {:.1} times", value.value)).collect();
    StudyClaim {
        claim: format!("Concurrent write-back: k_w = {K_W:.0} pages are written in the time of one (ACE's argument)."),
        measured: format!("Speedup of a checkpoint: {}. Inserts a second, {}.", words.join("; "), listed(&more)),
        verdict: verdict(times.iter().all(near), times.iter().any(|(_, value)| value.low > 1.0)),
        because: m.checkpoints.because().to_owned(),
    }
}
