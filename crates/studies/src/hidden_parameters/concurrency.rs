//! The five drives of Papon and Athanassoulis: asymmetry α, and how many reads and writes are served at once.

use flashwise_block::Operation;
use flashwise_profile::{
    DeviceProfile, Figure, Parameters, PublishedAsymmetry, PublishedConcurrency, PublishedThroughput, ThroughputCurve,
    ThroughputPoint, published_asymmetries,
};
use flashwise_report::study::{
    Measured, StudyCell, StudyChart, StudyClaim, StudyPoint, StudySection, StudySeries, StudyTable,
};

use super::learned::{LearnedDrive, LearnedDrives, cells, verdict};
use crate::StudyError;

/// Keys of the figures at 4 and at 8 KiB.
const KEYS: [[&str; 3]; 2] = [
    ["asymmetry_4k", "read_concurrency_4k", "write_concurrency_4k"],
    ["asymmetry_8k", "read_concurrency_8k", "write_concurrency_8k"],
];

/// α, `k_r` and `k_w`.
type Triple = (Figure<f64>, Figure<u64>, Figure<u64>);

fn learned(parameters: &Parameters) -> [Triple; 2] {
    let p = parameters;
    [
        (p.asymmetry_4k, p.read_concurrency_4k, p.write_concurrency_4k),
        (p.asymmetry_8k, p.read_concurrency_8k, p.write_concurrency_8k),
    ]
}

fn published(drive: &PublishedAsymmetry) -> [PublishedThroughput; 2] {
    [drive.at_4k, drive.at_8k]
}

/// How many of the six figures agree, whatever their verdict.
fn agreeing(drive: &PublishedAsymmetry, parameters: &Parameters) -> usize {
    let of_length = |(published, (alpha, reads, writes)): (PublishedThroughput, Triple)| {
        [
            alpha.value.is_some_and(|alpha| published.asymmetry_agrees(alpha)),
            reads.value.is_some_and(|k| published.reads.agrees(k)),
            writes.value.is_some_and(|k| published.writes.agrees(k)),
        ]
    };
    published(drive).into_iter().zip(learned(parameters)).flat_map(of_length).filter(|&agrees| agrees).count()
}

fn count(k: PublishedConcurrency) -> String {
    match k {
        PublishedConcurrency::About(k) => k.to_string(),
        PublishedConcurrency::MoreThan(k) => format!("> {k}"),
    }
}

fn claimed(at: PublishedThroughput) -> [String; 3] {
    [format!("{:.1}", at.asymmetry), count(at.reads), count(at.writes)]
}

/// Why the structure of a drive leads to its row, and where it cannot.
fn because(preset: &str) -> &'static str {
    match preset {
        "intel-optane-p4800x" => {
            "Commands per second limit 4 KiB requests and bytes per second 8 KiB requests, for reads and writes \
             alike: on a medium written in place writes are not slower, so α is 1.0 at 4 KiB too. The published 1.1 \
             is the ratio of the maker's two figures, 550,000 and 500,000."
        }
        "intel-p4510-fs" => {
            "Throughput is that of the raw drive, but latency is not: kernel and file system add to each command, and \
             the pages of a file are written, so each read senses flash. k is throughput × latency, so k_r is five \
             times as large."
        }
        "intel-p4510" => {
            "A k_r of 16 at 465,000 reads a second means 34 µs per read, less than its flash takes to sense; the \
             preset senses in 19 µs to reproduce it. The published reads were served from elsewhere (unwritten pages \
             or a cache), or there were fewer of them a second."
        }
        "intel-s4610" => {
            "With these asymmetries, a k_w of 9 at 4 KiB and of 5 at 8 KiB would require 8 KiB writes to complete \
             sooner than 4 KiB writes. Here they take slightly longer, so k_w is between the two."
        }
        _ => {
            "The volume is rate-limited in commands and bytes, with the latency of a network. The paper gives bounds; \
             a fitted knee above them agrees."
        }
    }
}

/// One claim a drive.
pub(super) fn claims(drives: &LearnedDrives) -> Result<Vec<StudyClaim>, StudyError> {
    published_asymmetries().iter().map(|published| claim(published, drives.of(published.preset)?)).collect()
}

fn claim(drive: &PublishedAsymmetry, of: &LearnedDrive) -> Result<StudyClaim, StudyError> {
    let sum: usize = of.parameters().map(|parameters| agreeing(drive, parameters)).sum();
    let all = 6 * of.seeds();
    let [at_4k, at_8k] = published(drive).map(|at| {
        let [alpha, reads, writes] = claimed(at);
        format!("α {alpha}, k_r {reads}, k_w {writes}")
    });
    let [learned_4k, learned_8k] = learned(&of.first()?.parameters).map(in_words);
    Ok(StudyClaim {
        claim: format!("{} ({}): {at_4k} at 4 KiB; {at_8k} at 8 KiB.", drive.name, of.name()),
        measured: format!(
            "{learned_4k}; {learned_8k}. {sum} of {all} figures ({} seeds) agree: α within 10 %, k within 15 % or 1.",
            of.seeds()
        ),
        verdict: verdict(sum, all),
        because: because(drive.preset).to_owned(),
    })
}

fn in_words((alpha, reads, writes): Triple) -> String {
    let ratio = alpha.value.map_or("?".to_owned(), |alpha| format!("{alpha:.2}"));
    let count = |k: Figure<u64>| k.value.map_or("?".to_owned(), |k| k.to_string());
    format!("α {ratio}, k_r {}, k_w {}", count(reads), count(writes))
}

/// The two tables, and the curves that the figures were read from.
pub(super) fn section(drives: &LearnedDrives) -> Result<StudySection, StudyError> {
    let mut tables = vec![table(drives, "4 KiB", 0)?, table(drives, "8 KiB", 1)?];
    tables.extend(seeds_table(drives)?);
    let of = |drive: &PublishedAsymmetry| Ok(chart(drive.name, drives.of(drive.preset)?.first()?));
    let charts: Result<Vec<StudyChart>, StudyError> = published_asymmetries().iter().map(of).collect();
    Ok(StudySection {
        title: "Five drives: asymmetry and concurrency".to_owned(),
        text: vec![
            "α is saturated reads a second ÷ saturated writes a second; k_r and k_w are the number of requests in \
             flight at which the fitted segments of throughput meet, up to 256 in flight. Each with its 95 % \
             interval; \"≈\" marks a best guess, \"?\" an inconclusive figure, all others are certain."
                .to_owned(),
            "In the paper, 1 to 300 jobs have one request each in flight, and k is read by eye where throughput stops \
             growing. At 8 KiB, the slides give 1.9 in words where their table has 2.0 (with FS)."
                .to_owned(),
        ],
        tables,
        charts: charts?,
    })
}

fn table(drives: &LearnedDrives, length: &str, at: usize) -> Result<StudyTable, StudyError> {
    let mut rows = Vec::new();
    for drive in published_asymmetries() {
        let mut row = vec![StudyCell::text(format!("{}, published", drive.name))];
        row.extend(claimed(published(drive)[at]).map(StudyCell::text));
        rows.push(row);
        let mut row = vec![StudyCell::text("learned")];
        row.extend(cells(drives.of(drive.preset)?.first()?, &KEYS[at]));
        rows.push(row);
    }
    let columns = ["", "α", "k_r", "k_w"].map(str::to_owned).to_vec();
    Ok(StudyTable { caption: format!("Papon and Athanassoulis, DaMoN 2021, {length}:"), columns, rows })
}

/// Lowest and highest value over the seeds; `None` where there is but one.
fn seeds_table(drives: &LearnedDrives) -> Result<Option<StudyTable>, StudyError> {
    let (mut rows, mut seeds) = (Vec::new(), 0);
    for drive in published_asymmetries() {
        let of = drives.of(drive.preset)?;
        seeds = of.seeds();
        let learned: Vec<[Triple; 2]> = of.parameters().map(learned).collect();
        let mut row = vec![StudyCell::text(drive.name)];
        for at in 0..2 {
            row.push(StudyCell::text(range(learned.iter().map(|triples| triples[at].0.value), 2)));
            let count = |k: Figure<u64>| k.value.map(|k| k as f64);
            row.push(StudyCell::text(range(learned.iter().map(|triples| count(triples[at].1)), 0)));
            row.push(StudyCell::text(range(learned.iter().map(|triples| count(triples[at].2)), 0)));
        }
        rows.push(row);
    }
    let columns = ["", "α 4K", "k_r", "k_w", "α 8K", "k_r", "k_w"].map(str::to_owned).to_vec();
    let caption = format!("Lowest and highest value learned with {seeds} seeds:");
    Ok((seeds > 1).then_some(StudyTable { caption, columns, rows }))
}

/// `2.80…2.81`, or one of them where both are printed alike.
fn range(values: impl Iterator<Item = Option<f64>>, digits: usize) -> String {
    let values: Vec<f64> = values.flatten().collect();
    let (low, high) = values.iter().fold((f64::MAX, f64::MIN), |(low, high), &x| (low.min(x), high.max(x)));
    if values.is_empty() {
        return "?".to_owned();
    }
    let (low, high) = (format!("{low:.digits$}"), format!("{high:.digits$}"));
    if low == high { low } else { format!("{low}…{high}") }
}

fn chart(name: &str, profile: &DeviceProfile) -> StudyChart {
    let point = |p: &ThroughputPoint| {
        let y = Measured { value: p.iops / 1e3, low: p.low / 1e3, high: p.high / 1e3 };
        StudyPoint { x: f64::from(p.in_flight), y }
    };
    let series = |curve: &ThroughputCurve| StudySeries {
        name: curve_name(curve),
        points: curve.points.iter().map(point).collect(),
    };
    StudyChart {
        title: name.to_owned(),
        x_label: "requests in flight".to_owned(),
        x_is_bytes: false,
        y_label: "thousand requests a second".to_owned(),
        series: profile.curves.throughput.iter().map(series).collect(),
    }
}

/// `4 KiB reads`.
pub(super) fn curve_name(curve: &ThroughputCurve) -> String {
    let operation = if curve.operation == Operation::Read { "reads" } else { "writes" };
    format!("{} KiB {operation}", curve.request_bytes >> 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_names_both_ends_where_they_are_printed_differently() {
        assert_eq!(range([Some(2.801), None, Some(2.812)].into_iter(), 2), "2.80…2.81");
        assert_eq!(range([Some(14.0), Some(14.0)].into_iter(), 0), "14");
        assert_eq!(range(std::iter::empty(), 0), "?");
    }

    #[test]
    fn a_drive_agrees_in_as_many_figures_as_are_within_the_tolerance() {
        let raw = &published_asymmetries()[2];
        let parameters = Parameters {
            asymmetry_4k: Figure::certain(3.2, 3.1, 3.3),
            read_concurrency_4k: Figure::certain(18, 17, 19),
            write_concurrency_4k: Figure::inconclusive(8, 5, 9),
            asymmetry_8k: Figure::certain(2.6, 2.5, 2.7),
            read_concurrency_8k: Figure::certain(13, 12, 14),
            ..Parameters::default()
        };
        assert_eq!(agreeing(raw, &parameters), 3, "α 3.2, k_r 18 and 13 are near; k_w 8, α 2.6 and nothing are not");
    }
}
