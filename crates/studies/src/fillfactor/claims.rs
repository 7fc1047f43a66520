//! What the text claims, beside what is measured, and why it differs.

use flashwise_report::study::{Measured, StudyClaim};

use super::drives::Drive;
use super::{FULL, ROOM, Results};
use crate::StudyError;
use crate::attached::answers_were_late;
use crate::verdict::verdict;

/// The text's gain in transactions a second, from 100 to 75.
const GAIN: f64 = 0.33;
/// The text's sizes with fill factors of 100 and 75, GB: addressed, and stored by the drive that compresses.
const ADDRESSED: [f64; 2] = [740.0, 905.0];
const STORED: [f64; 2] = [178.0, 189.0];

/// What one drive showed of both fill factors.
struct Shown {
    name: &'static str,
    gain: Measured,
    /// With fill factors of 100 and 75.
    logical: [f64; 2],
    physical: [f64; 2],
    table: [f64; 2],
    hot: [f64; 2],
    rate: [f64; 2],
    /// Programmed for a transaction with 100, and the median read.
    flash_kib: f64,
    read_us: f64,
}

impl Shown {
    fn of(results: &Results) -> Result<[Self; 2], StudyError> {
        let one = |index: usize| {
            let outcome = &results.drives[index];
            let (full, room) = (outcome.of(FULL)?, outcome.of(ROOM)?);
            Ok::<_, StudyError>(Self {
                name: Drive::BOTH[index].name(),
                gain: outcome.gain(ROOM, FULL)?,
                logical: [full.logical_bytes, room.logical_bytes],
                physical: [full.physical_bytes, room.physical_bytes],
                table: [full.table_bytes, room.table_bytes],
                hot: [full.hot_share(), room.hot_share()],
                rate: [full.mean(|round| round.rate).value, room.mean(|round| round.rate).value],
                flash_kib: full.mean(|round| round.flash_bytes).value / 1024.0,
                read_us: outcome.stat.latency.reads.p50_ns as f64 / 1e3,
            })
        };
        Ok([one(0)?, one(1)?])
    }
}

/// `+6.1 %`.
fn percent(ratio: f64) -> String {
    format!("{:+.1} %", 100.0 * (ratio - 1.0)).replace('-', "−")
}

/// The same with half of its interval.
fn with_interval(ratio: Measured) -> String {
    let half = 50.0 * (ratio.high - ratio.low);
    format!("{:+.1} ± {half:.1} %", 100.0 * (ratio.value - 1.0)).replace('-', "−")
}

fn growth([before, after]: [f64; 2]) -> f64 {
    after / before
}

/// Whether a share is within a quarter of what is claimed.
fn is_near(value: f64, claimed: f64) -> bool {
    (value / claimed - 1.0).abs() <= 0.25
}

/// All claims.
pub(super) fn all(results: &Results) -> Result<Vec<StudyClaim>, StudyError> {
    let shown = Shown::of(results)?;
    Ok(vec![faster(results, &shown)?, alike(&shown), larger(&shown), smaller(&shown)])
}

fn faster(results: &Results, shown: &[Shown; 2]) -> Result<StudyClaim, StudyError> {
    let words = shown.iter().map(|shown| {
        let [full, room] = shown.hot.map(|share| 100.0 * share);
        format!(
            "{}: {}, with {full:.0} and {room:.0} % of the updates on the same page (HOT)",
            shown.name,
            with_interval(shown.gain)
        )
    });
    let words: Vec<String> = words.collect();
    let gains = shown.iter().map(|shown| shown.gain);
    let all = gains.clone().all(|gain| gain.low > 1.0 && is_near(gain.value - 1.0, GAIN));
    let verdict = verdict(all, gains.clone().any(|gain| gain.low > 1.0));
    let varied = results.varied.iter().map(|(name, outcome)| {
        let gain = outcome.gain(ROOM, FULL)?;
        Ok::<_, StudyError>(format!("{name}: {}", with_interval(gain)))
    });
    let varied: Vec<String> = varied.collect::<Result<_, _>>()?;
    let spoilt = match results.drives.iter().any(|outcome| answers_were_late(&outcome.stat)) {
        true => {
            " The machine was too busy to complete requests in time (last table), so rates are uncertain; bytes are \
             not."
        }
        false => "",
    };
    Ok(StudyClaim {
        claim: "A fill factor of 75 instead of 100 gives about 33 % more transactions a second, on an ordinary drive \
                and on the CSD 2000."
            .to_owned(),
        measured: format!("{}. With one condition changed: {}.", words.join("; "), varied.join("; ")),
        verdict,
        because: format!(
            "An update that finds space on its page changes one page and no index; one that does not changes two \
             pages of the table and a leaf of each index, each logged in full once between two checkpoints. The \
             tables below show the effect on log bytes, pages read and written, and CPU time. A page that an update \
             has left has space for the next one: with full pages only the first update of each page is expensive, so \
             the gain shrinks with age.{spoilt}"
        ),
    })
}

fn alike(shown: &[Shown; 2]) -> StudyClaim {
    let [plain, compressing] = shown;
    let ratios = [compressing.rate[0] / plain.rate[0], compressing.rate[1] / plain.rate[1]];
    let within = |bound: f64| ratios.iter().all(|ratio| (ratio - 1.0).abs() <= bound);
    StudyClaim {
        claim: "With the same fill factor both drives give the same transactions a second.".to_owned(),
        measured: format!(
            "The compressing drive compared with the plain one: {} with a fill factor of 100, {} with 75.",
            percent(ratios[0]),
            percent(ratios[1])
        ),
        verdict: verdict(within(0.1), within(0.25)),
        because: format!(
            "A compressing drive programs less, {:.0} KiB per transaction where the plain one programs {:.0}, so \
             reads wait less: {:.0} and {:.0} µs (median). Its engine adds microseconds to a read. (The drives were \
             measured one after the other, not round by round, so other load on the machine affects the comparison.)",
            compressing.flash_kib, plain.flash_kib, compressing.read_us, plain.read_us
        ),
    }
}

fn larger([plain, _]: &[Shown; 2]) -> StudyClaim {
    let (claimed, grown) = (growth(ADDRESSED), growth(plain.physical));
    StudyClaim {
        claim: format!("An ordinary drive stores 740 and 905 GB: {}.", percent(claimed)),
        measured: format!(
            "{:.0} and {:.0} MB: {}; the tables alone {}.",
            plain.physical[0] / 1e6,
            plain.physical[1] / 1e6,
            percent(grown),
            percent(growth(plain.table))
        ),
        verdict: verdict(is_near(grown - 1.0, claimed - 1.0), grown > 1.0),
        because: "Tables with a fill factor of three quarters grow by a third; indexes keep a fill factor of their \
                  own. The rest depends on the share of indexes in the database."
            .to_owned(),
    }
}

fn smaller([_, compressing]: &[Shown; 2]) -> StudyClaim {
    let (claimed, grown) = (growth(STORED), growth(compressing.physical));
    let claimed_ratios = [ADDRESSED[0] / STORED[0], ADDRESSED[1] / STORED[1]];
    let ratios = [0, 1].map(|at| compressing.logical[at] / compressing.physical[at]);
    // Bytes stored for each one that is addressed in addition.
    let price = |[full, room]: [f64; 2], [less, more]: [f64; 2]| (room - full) / (more - less);
    let (text, measured) = (price(STORED, ADDRESSED), price(compressing.physical, compressing.logical));
    let is_like = is_near(ratios[0], claimed_ratios[0]) && is_near(ratios[1], claimed_ratios[1]);
    StudyClaim {
        claim: format!(
            "The CSD 2000 stores 178 and 189 GB: {}, a ratio of {:.1} and {:.1}; {:.1} physical bytes per 100 added \
             logical bytes.",
            percent(claimed),
            claimed_ratios[0],
            claimed_ratios[1],
            100.0 * text
        ),
        measured: format!(
            "{:.1} and {:.1} MB: {}, a ratio of {:.1} and {:.1}; {:.1} physical bytes per 100 added logical bytes.",
            compressing.physical[0] / 1e6,
            compressing.physical[1] / 1e6,
            percent(grown),
            ratios[0],
            ratios[1],
            100.0 * measured
        ),
        verdict: verdict(is_like && measured <= 1.25 * text, measured < 0.5),
        because: "Free space in a page is zeros, which cost next to nothing. The ratio is that of sysbench-tpcc's \
                  strings, most of which repeat one letter; random strings as in the specification compress by a \
                  third."
            .to_owned(),
    }
}
