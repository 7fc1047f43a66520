//! What the text claims, beside what is measured, and why it differs.

use flashwise_report::study::{Measured, StudyClaim};

use super::absorption::Absorption;
use super::drives::Drive;
use super::fill_factor::{FillFactor, SEVENTY_FIVE, Source, Tables, ZLIB};
use super::log::{Logs, Pair, Record};
use super::rows::Content;
use crate::verdict::verdict;

/// The text's sizes with fill factors of 100 and 75, GB: addressed, and stored by the drive that compresses.
const ADDRESSED: [f64; 2] = [740.0, 905.0];
const STORED: [f64; 2] = [178.0, 189.0];

/// Flash bytes ÷ bytes that are there at the end, from which on a log is written again and again. Of the sixteen blocks
/// of a superpage the last is written twice wherever the others are absorbed: 1.06.
const AGAIN: f64 = 1.2;

/// `+6.1 ± 0.2 %`.
fn percent(measured: Measured) -> String {
    let half = (measured.high - measured.low) / 2.0;
    format!("{:+.1} ± {half:.1} %", measured.value).replace('-', "−")
}

/// How many physical bytes the text has for each logical one that is added, per cent.
fn text_price() -> f64 {
    100.0 * (STORED[1] - STORED[0]) / (ADDRESSED[1] - ADDRESSED[0])
}

pub(super) fn fill_factor(fill: &FillFactor) -> StudyClaim {
    let best = fill.source();
    let words = |tables: &Tables| {
        format!(
            "{}, {}: logical {}, physical {}, ratio {:.2} and {:.2}; {:.1} physical bytes per 100 added logical bytes",
            tables.source.name(),
            tables.content.name(),
            percent(tables.more_logical(SEVENTY_FIVE)),
            percent(tables.more_physical(SEVENTY_FIVE, ZLIB)),
            tables.ratio(0, ZLIB).value,
            tables.ratio(SEVENTY_FIVE, ZLIB).value,
            tables.price(SEVENTY_FIVE, ZLIB).value
        )
    };
    let kinds = [(best, Content::Words), (best, Content::Strings), (Source::SqliteOldBytes, Content::Words)];
    let tables: Vec<&Tables> = kinds.iter().filter_map(|&(source, content)| fill.find(source, content)).collect();
    // It is cheap if it costs less than the text says; how the text's data compress is not known.
    let cheap = |tables: &&&Tables| {
        tables.source != Source::SqliteOldBytes && tables.price(SEVENTY_FIVE, ZLIB).high <= text_price()
    };
    let zeros = tables.iter().filter(|tables| tables.source != Source::SqliteOldBytes).count();
    let cheap = tables.iter().filter(cheap).count();
    let verdict = verdict(cheap > 0 && cheap == zeros, cheap > 0);
    // Of what is addressed, the part that grows by a third and the part that does not.
    let growing = (ADDRESSED[1] - ADDRESSED[0]) * 3.0;
    StudyClaim {
        claim: format!(
            "PostgreSQL under TPC-C, fill factor 100 and 75: an ordinary drive stores {:.0} and {:.0} GB ({:+.0} %), \
             the CSD 2000 {:.0} and {:.0} GB ({:+.0} %), a ratio of {:.1} and {:.1}; {:.1} bytes per 100 added.",
            ADDRESSED[0],
            ADDRESSED[1],
            100.0 * (ADDRESSED[1] / ADDRESSED[0] - 1.0),
            STORED[0],
            STORED[1],
            100.0 * (STORED[1] / STORED[0] - 1.0),
            ADDRESSED[0] / STORED[0],
            ADDRESSED[1] / STORED[1],
            text_price()
        ),
        measured: format!("{}.", tables.iter().map(|&tables| words(tables)).collect::<Vec<_>>().join("; ")),
        verdict,
        because: format!(
            "Zeros cost next to nothing; what remains is that each block is compressed separately and rounded up. A \
             table with pages three quarters full grows by a third, the text's data by 22 %: so {growing:.0} of the \
             {:.0} GB have the fill factor, and {:.0} are indexes and tables without it. TPC-C's random strings do \
             not compress to a quarter, but the text's data did. Space of deleted rows costs as much as rows.",
            ADDRESSED[0],
            ADDRESSED[0] - growing
        ),
    }
}

/// `64 B: 1200 and 100` for each.
fn listed(pairs: &[&Pair], words: impl Fn(&Pair) -> String) -> String {
    pairs.iter().map(|pair| format!("{} B: {}", pair.record_bytes, words(pair))).collect::<Vec<_>>().join("; ")
}

pub(super) fn written_again(logs: &Logs, absorption: &Absorption) -> StudyClaim {
    let share = |pair: &Pair| pair.packed.mean(|cost| cost.flash / cost.physical);
    let on = |drive| logs.on(drive, Record::HalfZeros).collect::<Vec<&Pair>>();
    let (compressing, protected) = (on(Drive::COMPRESSES), on(Drive::Protected));
    let several = |pairs: &[&Pair]| pairs.iter().all(|pair| share(pair).low > AGAIN);
    let (on_compressing, on_protected) = (several(&compressing), several(&protected));
    let verdict = verdict(on_compressing && on_protected, on_compressing || on_protected);
    let times = |pair: &Pair| format!("{:.1}", share(pair).value);
    let beside = |drive| [0, 64 << 10].map(|traffic| absorption.flash(drive, traffic).value);
    let ([alone, busy], [alone_compressing, busy_compressing]) = (beside(Drive::Protected), beside(Drive::COMPRESSES));
    StudyClaim {
        claim: "A packed log is written to flash several times: each commit rewrites the block that it shares with \
                earlier ones."
            .to_owned(),
        measured: format!(
            "Flash bytes ÷ bytes of the finished log, nothing else written: on the compressing drive, {}; on the \
             plain one, {}.",
            listed(&compressing, times),
            listed(&protected, times)
        ),
        verdict,
        because: format!(
            "A buffer that survives a power cut replaces a rewritten block as long as its superpage is open. The more \
             others write between two commits, the less it absorbs: {alone:.0} flash bytes per commit become \
             {busy:.0} with 64 KiB of theirs (records of 128 bytes). On the compressing drive, a block that grows \
             does not fit in its old place, and is written again even alone: {alone_compressing:.0} and \
             {busy_compressing:.0}."
        ),
    }
}

pub(super) fn sparse(logs: &Logs) -> StudyClaim {
    let on = |drive, record| logs.on(drive, record).collect::<Vec<&Pair>>();
    let times = |pair: &Pair| format!("{:.2}", pair.times().value);
    let half = on(Drive::COMPRESSES, Record::HalfZeros);
    let noise = on(Drive::COMPRESSES, Record::Noise);
    let gains = |pairs: &[&Pair]| pairs.iter().filter(|pair| pair.times().low > 1.0).count();
    let gaining = gains(&half) + gains(&noise);
    let verdict = verdict(gaining > 0 && gaining == half.len() + noise.len(), gaining > 0);
    StudyClaim {
        claim: "On a compressing drive, a sparse log, with each commit in a fresh block, is written once and \
                amplifies writes less."
            .to_owned(),
        measured: format!(
            "Flash bytes of the packed log ÷ those of the sparse one, by record: half zeros, {}; noise, {}; on the \
             same drive without compression, {}.",
            listed(&half, times),
            listed(&noise, times),
            listed(&on(Drive::Protected, Record::HalfZeros), times)
        ),
        verdict,
        because: "It is a sum, Σ C(jL) compared with m·C(L): between (m + 1) ÷ 2 and 1, with m records per block, \
                  minus the rounding to granules and what the buffer absorbs. Without compression, each record costs \
                  a block."
            .to_owned(),
    }
}
