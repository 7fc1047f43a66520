//! What was measured on real drives, in numbers.
//!
//! Source: G. Haas et al., *SSD-iq: Uncovering the Hidden Side of SSD Performance*, PVLDB 18(11), 2025, the data in
//! the authors' repository `gabriel-haas/ssdiq-pub` (@8a0a3f4); derived figures. Rows that its readers found suspect
//! are left out: half of a drive never written again, which equals uniform writes to 0.1 %, and the PM9A3, whose rate
//! is a cap of its firmware.

use super::bed::{Preparation, Work};
use super::load::Point;
use crate::StudyError;

/// Rates and write amplification, repeats as a range.
const ROWS: &str = include_str!("rows.csv");
/// Rates over what was written.
const HISTORIES: &str = include_str!("histories.csv");

/// Latencies under load.
const LATENCIES: &str = include_str!("latencies.csv");
/// Preset, GiB used; GiB used and written, the dip as a share of the steady rate, each least and most of the repeats.
pub(super) type PublishedCliff = (&'static str, f64, (f64, f64), (f64, f64));

/// Where random writes after a fill slow down: GiB that are used and written by then, its dip as a share of the steady
/// rate.
pub(super) const CLIFFS: [PublishedCliff; 8] = [
    ("micron-7450-max-800", 745.2, (1_070.0, 1_082.0), (0.70, 0.71)),
    ("micron-7450-max-800", 596.2, (1_073.0, 1_073.0), (0.77, 0.77)),
    ("micron-7450-max-800", 447.1, (1_074.0, 1_074.0), (0.85, 0.85)),
    ("micron-7450-max-800", 372.6, (1_074.0, 1_080.0), (0.83, 0.89)),
    ("solidigm-p5520-1920", 1_788.5, (2_108.0, 2_166.0), (0.55, 0.64)),
    ("skhynix-pe8110-960", 894.2, (1_011.0, 1_011.0), (0.63, 0.63)),
    ("kioxia-cm7r-3840", 3_577.0, (4_221.0, 4_225.0), (0.72, 0.72)),
    ("wd-dc-960", 894.2, (1_017.0, 1_017.0), (0.59, 0.59)),
];

/// One workload on one drive.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) preset: &'static str,
    pub(super) fill: f64,
    pub(super) preparation: Preparation,
    pub(super) work: Work,
    /// Multiples of the used capacity that were written; the window is 60 to 99 % of them.
    pub(super) drive_writes: f64,
    /// The host's rate, MB/s; least and most of the repeats.
    pub(super) rate: (f64, f64),
    /// By the drive's own counters.
    pub(super) amplification: Option<(f64, f64)>,
}

fn wrong(line: &str) -> StudyError {
    StudyError::Missing(format!("a row of the published measurements: {line}"))
}

fn number(text: Option<&str>, line: &str) -> Result<f64, StudyError> {
    text.and_then(|text| text.parse().ok()).ok_or_else(|| wrong(line))
}

fn work(text: &str, line: &str) -> Result<Work, StudyError> {
    let mut parts = text.split(':');
    let name = parts.next();
    let mut next = || number(parts.next(), line);
    Ok(match name {
        Some("sequential") => Work::Sequential,
        Some("uniform") => Work::Uniform,
        Some("zipf") => Work::Zipf(next()?),
        Some("two-zones") => Work::TwoZones { space: next()?, traffic: next()? },
        Some("never") => Work::Never(next()?),
        Some("zones") => Work::Zones { open: next()? as usize, mib: next()? },
        _ => return Err(wrong(line)),
    })
}

/// All rows.
pub(super) fn rows() -> Result<Vec<Row>, StudyError> {
    let row = |line: &'static str| {
        let fields: Vec<&'static str> = line.split(',').collect();
        let [preset, fill, preparation, workload, drive_writes, low, high, wa_low, wa_high] = fields[..] else {
            return Err(wrong(line));
        };
        let preparation = match preparation {
            "new" => Preparation::New,
            "in-order" => Preparation::InOrder,
            "shuffled" => Preparation::Shuffled,
            _ => return Err(wrong(line)),
        };
        let amplification = match wa_low {
            "" => None,
            _ => Some((number(Some(wa_low), line)?, number(Some(wa_high), line)?)),
        };
        Ok(Row {
            preset,
            fill: number(Some(fill), line)?,
            preparation,
            work: work(workload, line)?,
            drive_writes: number(Some(drive_writes), line)?,
            rate: (number(Some(low), line)?, number(Some(high), line)?),
            amplification,
        })
    };
    ROWS.lines().skip(1).map(row).collect()
}

/// The rates of a drive over the multiples of its capacity that were written to it.
pub(super) fn history(preset: &str, workload: &str) -> Result<Vec<(f64, f64)>, StudyError> {
    let mut points = Vec::new();
    for line in HISTORIES.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [drive, work, drive_writes, rate] = fields[..] else { return Err(wrong(line)) };
        if (drive, work) == (preset, workload) {
            points.push((number(Some(drive_writes), line)?, number(Some(rate), line)?));
        }
    }
    Ok(points)
}

/// What a drive had under load.
pub(super) fn latencies(preset: &str) -> Result<Vec<Point>, StudyError> {
    let mut points = Vec::new();
    for line in LATENCIES.lines().skip(1) {
        let Some((drive, numbers)) = line.split_once(',') else { return Err(wrong(line)) };
        let numbers: Vec<f64> =
            numbers.split(',').map(|text| number(Some(text), line)).collect::<Result<_, StudyError>>()?;
        let [target, writes_per_s, w50, w99, w999, r50, r99, r999] = numbers[..] else { return Err(wrong(line)) };
        if drive == preset {
            points.push(Point { target, writes_per_s, writes: [w50, w99, w999], reads: [r50, r99, r999] });
        }
    }
    Ok(points)
}

impl Row {
    /// In words.
    pub(super) fn words(&self) -> String {
        let work = match self.work {
            Work::Sequential => "sequential".to_owned(),
            Work::Uniform => "uniform".to_owned(),
            Work::Zipf(exponent) => format!("Zipf {exponent}"),
            Work::ZipfTwice(exponent) => format!("Zipf {exponent}, written twice"),
            Work::TwoZones { space, traffic } => {
                format!("{:.0} % of writes to {:.0} % of pages", 100.0 * traffic, 100.0 * space)
            }
            Work::Never(share) => format!("{:.0} % never written again", 100.0 * share),
            Work::Zones { open, mib } => format!("{open} open zones of {mib} MiB"),
        };
        let fill = if self.fill < 0.999 { format!(", {:.0} % of the drive", 100.0 * self.fill) } else { String::new() };
        let preparation = match self.preparation {
            Preparation::New if self.work != Work::Sequential => ", never filled",
            Preparation::Shuffled => ", filled in random order",
            Preparation::Whole => ", the whole drive filled",
            _ => "",
        };
        format!("{work}{fill}{preparation}, {:.0} drive writes", self.drive_writes)
    }

    /// What of the preset was fitted to this row.
    pub(super) fn fitted(&self) -> Option<&'static str> {
        let whole = self.fill > 0.999 && self.preparation == Preparation::InOrder && self.work == Work::Uniform;
        match self.work {
            Work::Sequential if self.preset.starts_with("micron") || self.preset.starts_with("solidigm") => {
                Some("program time, parity")
            }
            Work::Sequential => Some("program time"),
            _ if !whole => None,
            _ if self.amplification.is_some() => Some("spare flash, read time"),
            _ => Some("read time"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_read_and_the_fitted_ones_are_two_a_drive() {
        let rows = rows().unwrap();
        assert_eq!(rows.len(), ROWS.lines().count() - 1);
        let fitted = rows.iter().filter(|row| row.fitted().is_some()).count();
        assert!(fitted <= 10, "{fitted} fitted rows of {}", rows.len());
        assert!(!history("micron-7450-max-800", "uniform").unwrap().is_empty());
    }
}
