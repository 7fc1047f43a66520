//! "Une nouvelle génération de SSD" (StorIQ, 2011): eight SLC drives of 2010 against eight MLC drives of 2011, whose
//! controller reduces data, behind one RAID controller, with Bonnie++.
//!
//! - [`sequential`]: a large file;
//! - [`small_files`]: many files;
//! - [`threads`]: a database, in four organisations;
//! - [`drives`]: the generations and the arrays.

mod drives;
mod sequential;
mod small_files;
mod threads;

use flashwise_array::Level;
use flashwise_report::study::{StudyClaim, StudyVerdict};

use crate::verdict::verdict;
use crate::{Findings, Progress, StudyError, StudyOptions};
use drives::{CONTROLLER_IOPS, Generation, State};
use threads::Line;

/// Runs the study.
pub(crate) fn run(options: &StudyOptions, progress: Progress<'_>) -> Result<Findings, StudyError> {
    let large = sequential::measure(options, progress)?;
    let small = small_files::measure(options, progress)?;
    let lines = threads::measure(options, progress)?;
    let claims = vec![
        sequential_claim(&large, 0, "write", (200.0, 590.0)),
        sequential_claim(&large, 2, "read", (600.0, 1_150.0)),
        parity_claim(&lines),
        mirror_claim(&lines),
        controller_claim(&lines),
        random_write_claim(&lines),
    ];
    let sections = vec![sequential::section(&large), small_files::section(&small), threads::section(&lines)];
    let limits = vec![
        "How DuraWrite works is not published; compression and deduplication model it, with the share of the data as \
         the only variable. How well it reduces Bonnie++'s buffers is unknown. The maps of the drive with data \
         reduction are protected, so its flushes cost nothing."
            .to_owned(),
        "The text's figures exist as images only; the comparison uses its words. It names neither firmware, file \
         system and controller cache, nor the history of the drives."
            .to_owned(),
        "The text gives 14,700 operations of 8 KiB a second as 47 MB/s; they would be 120 MB/s. 47 MB/s are 14,700 \
         operations of 3.2 KB."
            .to_owned(),
        "The drives are fitted to their makers' figures from memory, and have a sixteenth of their blocks. The \
         controller's 45,000 operations a second are the text's estimate and an input here: reproducing them is not a \
         finding."
            .to_owned(),
    ];
    Ok(Findings { claims, sections, limits })
}

/// Whether a value is within a quarter of what is claimed.
fn is_near(value: f64, claimed: f64) -> bool {
    (value / claimed - 1.0).abs() <= 0.25
}

fn sequential_claim(all: &[sequential::Rates], pass: usize, name: &str, (slc, mlc): (f64, f64)) -> StudyClaim {
    let rate = |generation: Generation, state: State| {
        let found = all.iter().find(|rates| rates.generation == generation && rates.state == state);
        found.map_or(0.0, |rates| rates.mb_per_s[pass].value)
    };
    let filled = (rate(Generation::Slc, State::Filled), rate(Generation::Mlc, State::Filled));
    let steady = (rate(Generation::Slc, State::Steady), rate(Generation::Mlc, State::Steady));
    let matches = |(a, b): (f64, f64)| is_near(a, slc) && is_near(b, mlc);
    let mixed = (steady.0, filled.1);
    let reducing = [Generation::MlcHalf, Generation::MlcTenth].map(|generation| rate(generation, State::Filled));
    let reduced = reducing.into_iter().min_by(|a, b| (a - mlc).abs().total_cmp(&(b - mlc).abs())).unwrap_or(0.0);
    let (verdict, because) = match () {
        () if matches(filled) || matches(steady) => {
            (StudyVerdict::Reproduced, "Both generations are within a quarter of it in the same state.".to_owned())
        }
        () if matches((steady.0, reduced)) => (
            StudyVerdict::Partly,
            "It is reproduced if the newer drives store reducible data and the older ones had been overwritten; \
             neither is stated in the text."
                .to_owned(),
        ),
        () if matches(mixed) => (
            StudyVerdict::Partly,
            "Only if the older drives had been overwritten and the newer ones had not, as in a comparison of \
             one-year-old drives with new ones; the text does not say."
                .to_owned(),
        ),
        () if filled.1 > 1.1 * filled.0 || steady.1 > 1.1 * steady.0 => (
            StudyVerdict::Partly,
            "The newer drives are ahead, but by a different amount: the table shows the effect of the drives' state."
                .to_owned(),
        ),
        () => (
            StudyVerdict::NotReproduced,
            "Drives with their makers' figures differ less than that; what limited those of 2010 is not in the text."
                .to_owned(),
        ),
    };
    StudyClaim {
        claim: format!("Sequential {name}: {slc:.0} MB/s with the drives of 2010, {mlc:.0} MB/s with those of 2011."),
        measured: format!(
            "{:.0} and {:.0} MB/s on sequentially filled drives, {:.0} and {:.0} MB/s on drives overwritten at \
             random. The newer drives with data that compresses to a half: {:.0} MB/s, to a tenth: {:.0} MB/s.",
            filled.0, filled.1, steady.0, steady.1, reducing[0], reducing[1]
        ),
        verdict,
        because,
    }
}

/// The lines of the MLC drives behind the limited controller, or behind one without.
fn line(lines: &[Line], level: Level, chunk_kib: u64, is_limited: bool, is_write_only: bool) -> f64 {
    let found = lines.iter().find(|line| {
        let organisation = line.organisation;
        line.generation == Generation::Mlc
            && (organisation.level, organisation.chunk_bytes) == (level, chunk_kib << 10)
            && (line.is_limited, line.is_write_only) == (is_limited, is_write_only)
    });
    found.map_or(0.0, Line::saturated)
}

fn parity_claim(lines: &[Line]) -> StudyClaim {
    let ratio = |limited, write_only| {
        line(lines, Level::Raid5, 16, limited, write_only) / line(lines, Level::Raid6, 64, limited, write_only)
    };
    let (mixed, writes) = (ratio(true, false), ratio(true, true));
    let tells = |level| {
        lines.iter().any(|line| {
            let is_it = line.generation == Generation::Mlc && line.organisation.level == level;
            is_it && line.is_limited && line.is_write_only && line.is_sharp()
        })
    };
    let is_known = tells(Level::Raid5) && tells(Level::Raid6);
    let near = |ratio: f64| (0.9..=1.1).contains(&ratio);
    StudyClaim {
        claim: "RAID-5 and RAID-6 do not differ much.".to_owned(),
        measured: format!(
            "At 256 threads RAID-5 serves {mixed:.2} times as much as RAID-6 mixed ({:.2} times behind a controller \
             without limit) and {writes:.2} times write-only.",
            ratio(false, false)
        ),
        // Intervals that are wider than a tenth cannot tell such a difference from chance.
        verdict: verdict(is_known && near(mixed) && near(writes), near(mixed) || near(writes)),
        because:
            "A small write is two reads and two writes with one parity, three and three with two: write-only, the \
             drives receive half as much again, so the small difference is not explained. Reads cost the same, and a \
             controller at its limit hides the rest."
                .to_owned(),
    }
}

fn mirror_claim(lines: &[Line]) -> StudyClaim {
    let ahead = |limited, write_only| {
        let parity = line(lines, Level::Raid5, 16, limited, write_only);
        line(lines, Level::Raid10, 16, limited, write_only) / parity - 1.0
    };
    let (mixed, writes) = (ahead(true, false), ahead(true, true));
    StudyClaim {
        claim: "RAID-10 is at most 10 % ahead.".to_owned(),
        measured: format!(
            "At 256 threads RAID-10 serves {:+.0} % against RAID-5 mixed ({:+.0} % behind a controller without limit) and \
             {:+.0} % write-only.",
            100.0 * mixed,
            100.0 * ahead(false, false),
            100.0 * writes
        ),
        verdict: verdict(mixed <= 0.1 && writes <= 0.1, mixed <= 0.1 || writes <= 0.1),
        because:
            "It holds if the controller limits both; a small write is two writes on a mirror, and two reads and two \
             writes with a parity."
                .to_owned(),
    }
}

fn controller_claim(lines: &[Line]) -> StudyClaim {
    let (limited, free) = (line(lines, Level::Raid10, 16, true, false), line(lines, Level::Raid10, 16, false, false));
    let is_limit = is_near(limited, CONTROLLER_IOPS as f64) && free > 1.1 * limited;
    StudyClaim {
        claim: "The controller is near its peak of about 45,000 IOPS, which these drives saturate.".to_owned(),
        measured: format!(
            "Eight MLC drives as RAID-10 serve {limited:.0} mixed operations a second at 256 threads behind a controller of \
             45,000, and {free:.0} behind one without limit."
        ),
        verdict: verdict(is_limit, false),
        because: "The limit is an input; the measurement shows whether the drives reach it.".to_owned(),
    }
}

fn random_write_claim(lines: &[Line]) -> StudyClaim {
    let of = |level, chunk| line(lines, level, chunk, true, true);
    let all = [of(Level::Raid10, 16), of(Level::Raid5, 16), of(Level::Raid6, 64), of(Level::Raid10, 256)];
    let nearest = all.into_iter().min_by(|a, b| (a - 14_700.0).abs().total_cmp(&(b - 14_700.0).abs())).unwrap_or(0.0);
    StudyClaim {
        claim: "14,700 random writes a second.".to_owned(),
        measured: format!(
            "At 256 threads {:.0} (RAID-10, 16 KiB), {:.0} (RAID-5), {:.0} (RAID-6) and {:.0} (RAID-10, 256 KiB) \
             writes of 8 KiB a second, on drives overwritten at random.",
            all[0], all[1], all[2], all[3]
        ),
        verdict: if is_near(nearest, 14_700.0) { StudyVerdict::Partly } else { StudyVerdict::NotReproduced },
        because:
            "The text does not say which RAID level this is, nor how far its drives reduced the data; without data \
             reduction a drive writes all of it, and moves more the fuller it is."
                .to_owned(),
    }
}
