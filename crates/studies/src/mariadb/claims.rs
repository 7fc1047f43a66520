//! What the text claims, beside what is measured, and why it differs.

use flashwise_report::study::{Measured, StudyClaim, StudyVerdict};

use super::Results;
use super::reads::{BULK, DEFAULT, HALVED, ONLY_HALVED, PLACED, PLAIN};
use super::ycsb::MIXES;
use crate::StudyError;

/// The text's gain in SELECTs a second.
const SELECT_GAIN: f64 = 0.27;
/// The text's gains with YCSB, least and most.
const YCSB_GAINS: [f64; 2] = [0.01, 0.22];
/// What the text saves of the wear by the binary log, %.
const WEAR: f64 = -6.7;
/// A gain is the claimed one within so much, and wear within so many percentage points.
const NEAR_GAIN: f64 = 0.05;
const NEAR_WEAR: f64 = 1.0;

/// All claims.
pub(super) fn all(results: &Results) -> Result<Vec<StudyClaim>, StudyError> {
    Ok(vec![selects(results)?, mixes(results)?, binary_log(results)?])
}

/// `+6.1 ± 0.3 %` of a ratio.
pub(super) fn percent(ratio: Measured) -> String {
    let half = 50.0 * (ratio.high - ratio.low);
    format!("{:+.1} ± {half:.1} %", 100.0 * (ratio.value - 1.0)).replace('-', "−")
}

fn is_near(gain: &Measured) -> bool {
    (gain.value - 1.0 - SELECT_GAIN).abs() <= NEAR_GAIN
}

/// What a verdict on SELECTs goes by.
struct SelectGains {
    /// The placement alone, and the best of what goes with it, by the drive's time and with that of processors.
    placed: Measured,
    best: Measured,
    best_with_processor: Measured,
}

impl SelectGains {
    fn verdict(&self) -> StudyVerdict {
        match () {
            () if is_near(&self.placed) => StudyVerdict::Reproduced,
            () if self.placed.low > 1.0 || self.best.low > 1.0 || is_near(&self.best_with_processor) => {
                StudyVerdict::Partly
            }
            () => StudyVerdict::NotReproduced,
        }
    }
}

fn selects(results: &Results) -> Result<StudyClaim, StudyError> {
    let reads = &results.reads;
    let gains = SelectGains {
        placed: reads.gain(PLACED, PLAIN)?,
        best: reads.gain(HALVED, PLAIN)?,
        best_with_processor: reads.gain_with_processor(HALVED, PLAIN)?,
    };
    let bulk = reads.of(BULK)?;
    let plain = reads.of(PLAIN)?;
    let of_round = |at: Option<(&super::bench::Piece, &super::bench::Piece)>| {
        at.map_or(1.0, |(piece, other)| plain.ended.waited_s(other) / bulk.ended.waited_s(piece))
    };
    let first = of_round(bulk.selects.first().zip(plain.selects.first()));
    let last = of_round(bulk.selects.last().zip(plain.selects.last()));
    let each = f64::from(results.scale.work.selects);
    // What would have to come to both for the claimed gain.
    let waited = |name: &str| {
        let shown = reads.of(name)?;
        Ok::<_, StudyError>(1e6 * shown.select_mean(|piece| shown.ended.waited_s(piece)).value / each)
    };
    let (cold, hot) = (waited(PLAIN)?, waited(HALVED)?);
    let beside = (cold - (1.0 + SELECT_GAIN) * hot) / SELECT_GAIN;
    let one = |ratio: f64| percent(Measured { value: ratio, low: ratio, high: ratio }).replace(" ± 0.0", "");
    Ok(StudyClaim {
        claim: "use-hot-locations: SELECT throughput of MariaDB +27 % on the Samsung 960 EVO.".to_owned(),
        measured: format!(
            "A file system that starts at a hot location: {}. The same with the kernel splitting pages into two \
             writes: {} in drive time, {} including {:.0} µs of the server's CPU time. Split writes without \
             placement: {}. A placed table that was written in bulk: {} in the first round, {} in the last.",
            percent(gains.placed),
            percent(gains.best),
            percent(gains.best_with_processor),
            1e6 * reads.processor_s()? / each,
            percent(reads.gain(ONLY_HALVED, PLAIN)?),
            one(first),
            one(last),
        ),
        verdict: gains.verdict(),
        because: format!(
            "According to its extents, {} pages of the placed table start at hot locations. But InnoDB writes a page \
             in one request, and the drive cuts a write from its start: the page is on one channel wherever it is. \
             This is rule 4 of the paper, and its own plots show the same for a hot location written in one 64 KiB \
             request. Data written with another alignment is hot until InnoDB writes it again. The kernel can be set \
             to split requests at half a chunk: then a page is on two channels, placed or not. A SELECT waits \
             {cold:.0} µs for the drive without and {hot:.0} µs with it; {beside:.0} µs more in both cases would give \
             the published gain. Compared with MariaDB's default 16 KiB pages the best result is {}.",
            reads.of(PLACED)?.placed_words(),
            percent(reads.gain(HALVED, DEFAULT)?)
        ),
    })
}

fn mixes(results: &Results) -> Result<StudyClaim, StudyError> {
    let gains = |name: &str, is_real: bool| {
        (0..MIXES.len()).map(|mix| results.reads.mix_gain(mix, name, PLAIN, is_real)).collect::<Result<Vec<_>, _>>()
    };
    let (placed, best, real) = (gains(PLACED, false)?, gains(HALVED, false)?, gains(HALVED, true)?);
    let listed = |gains: &[Measured]| {
        let each = MIXES.iter().zip(gains).map(|(mix, gain)| format!("{} {}", mix.name, percent(*gain)));
        each.collect::<Vec<_>>().join(", ")
    };
    Ok(StudyClaim {
        claim: "YCSB on MariaDB +1 to +22 %, by mix.".to_owned(),
        measured: format!(
            "Placed, with split writes: {} in drive time; with processors as fast as here {}. Placed alone: {}.",
            listed(&best),
            listed(&real),
            listed(&placed)
        ),
        verdict: of_mixes(&placed, &real),
        because: "The technique shortens only the wait for table pages, not for the log, buffer-pool hits or the \
                  server's own work. The paper's number of clients and the share of its table in the buffer pool are \
                  unknown."
            .to_owned(),
    })
}

/// Reproduced where the placement alone gives all mixes what is claimed; in part where some mix gains in either way.
fn of_mixes(placed: &[Measured], best: &[Measured]) -> StudyVerdict {
    let [least, most] = YCSB_GAINS.map(|gain| 1.0 + gain);
    let within = |gain: &Measured| gain.high >= least && gain.low <= most && gain.low > 1.0;
    match () {
        () if placed.iter().all(within) => StudyVerdict::Reproduced,
        () if placed.iter().chain(best).any(|gain| gain.low > 1.0) => StudyVerdict::Partly,
        () => StudyVerdict::NotReproduced,
    }
}

fn binary_log(results: &Results) -> Result<StudyClaim, StudyError> {
    let logs = &results.logs;
    let saved: Vec<Measured> = logs.logs.iter().map(|log| log.saved(logs.page)).collect();
    let listed = logs.logs.iter().zip(&saved).map(|(log, saved)| {
        let half = (saved.high - saved.low) / 2.0;
        format!("{} ({:.0} bytes): {:.1} ± {half:.1} %", log.name, log.length().value, saved.value).replace('-', "−")
    });
    let first = logs.logs.first().ok_or(StudyError::Lost)?;
    let by_drive = first.wear.iter().map(|(name, wear)| {
        let less = |[plain, padded]: [f64; 2]| 100.0 * (padded / plain.max(1.0) - 1.0);
        format!("{name}: {:+.1} % of the log's, {:+.1} % of all", less(wear.alone), less(wear.all)).replace('-', "−")
    });
    Ok(StudyClaim {
        claim: format!("contain-write-in-flash-page: wear by the binary log −{:.1} % on the Toshiba XG5.", -WEAR),
        measured: format!(
            "Flash pages into which the log is written, padded compared with plain: {}. Flash programs of the first, \
             by drive, {}.",
            listed.collect::<Vec<_>>().join("; "),
            by_drive.collect::<Vec<_>>().join("; ")
        ),
        verdict: of_wear(&saved),
        because: "No setting pads the log: the effect of padding is computed from the trace. A transaction of n bytes \
                  crosses a 4 KiB page boundary once in 4,096 ÷ n times, and then costs two pages: −6.7 % corresponds \
                  to transactions of 294 bytes. Settings only change n. On a drive whose flush programs a whole \
                  stripe, one page more or less is the drive's own padding, unless it crosses the stripe's end."
            .to_owned(),
    })
}

/// Reproduced where the log by default saves what is claimed; in part where any saves something.
fn of_wear(saved: &[Measured]) -> StudyVerdict {
    match () {
        () if saved.first().is_some_and(|saved| (saved.value - WEAR).abs() <= NEAR_WEAR) => StudyVerdict::Reproduced,
        () if saved.iter().any(|saved| saved.high < 0.0) => StudyVerdict::Partly,
        () => StudyVerdict::NotReproduced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(value: f64, half: f64) -> Measured {
        Measured { value, low: value - half, high: value + half }
    }

    #[test]
    fn selects_are_judged_by_the_placement_first_and_by_what_goes_with_it_then() {
        let verdict = |placed, best, with| {
            let [placed, best, best_with_processor] = [placed, best, with].map(|value| measured(value, 0.01));
            SelectGains { placed, best, best_with_processor }.verdict()
        };
        assert_eq!(verdict(1.25, 1.5, 1.3), StudyVerdict::Reproduced);
        assert_eq!(verdict(1.0, 1.5, 1.3), StudyVerdict::Partly);
        assert_eq!(verdict(1.1, 1.0, 1.0), StudyVerdict::Partly);
        assert_eq!(verdict(1.005, 1.0, 0.9), StudyVerdict::NotReproduced);
    }

    #[test]
    fn mixes_are_judged_one_by_one_and_wear_by_the_log_as_it_comes() {
        let of = |values: [f64; 2]| values.map(|value| measured(value, 0.005));
        assert_eq!(of_mixes(&of([1.02, 1.2]), &[]), StudyVerdict::Reproduced);
        assert_eq!(of_mixes(&of([1.0, 1.2]), &[]), StudyVerdict::Partly);
        assert_eq!(of_mixes(&of([1.0, 1.0]), &of([1.0, 1.3])), StudyVerdict::Partly);
        assert_eq!(of_mixes(&of([1.0, 1.0]), &of([0.9, 1.0])), StudyVerdict::NotReproduced);
        assert_eq!(of_wear(&[measured(-7.1, 0.2)]), StudyVerdict::Reproduced);
        assert_eq!(of_wear(&[measured(-9.0, 0.2), measured(-6.5, 0.2)]), StudyVerdict::Partly);
        assert_eq!(of_wear(&[measured(-0.1, 0.2)]), StudyVerdict::NotReproduced);
    }

    #[test]
    fn a_ratio_is_told_beyond_one() {
        assert_eq!(percent(measured(1.27, 0.01)), "+27.0 ± 1.0 %");
        assert_eq!(percent(measured(0.94, 0.02)), "−6.0 ± 2.0 %");
    }
}
