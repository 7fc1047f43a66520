//! Real drives: measurements by their own counters and by the host's clock, beside the presets that stand for them.
//!
//! - [`bed`]: a drive made smaller, a workload, the cliff;
//! - [`load`]: latencies under load;
//! - [`published`]: the measurements, and which of them a preset was fitted to;
//! - [`claims`]: what is claimed of single drives.

mod bed;
mod claims;
mod load;
mod published;
#[cfg(test)]
mod varied;

use flashwise_report::study::{Measured, StudyCell, StudyChart, StudyPoint, StudySection, StudySeries, StudyTable};
use flashwise_ssd::{DeviceConfig, PRESETS};

use crate::{Findings, Progress, StudyError, StudyOptions, parallel};
use bed::{Case, Preparation, Run, Work};
use load::Point;
use published::Row;

/// Pages of the smaller drives: of each a run takes seconds.
const PAGES: u64 = 2_000_000;
const PAGES_QUICK: u64 = 400_000;
/// A superblock has at least so many rows: with four, uniform writes to half of a Micron 7450 MAX have a write
/// amplification of 1.180, with eight 1.124, with 16 and 32 1.107.
const ROWS_LEAST: u32 = 8;
/// Where few pages take most of the writes, at least so many: with 8, 95 % of the writes to 5 % of a Micron 7450 MAX
/// slow down after 3.8 drive writes, with 16 after 4.5, with 22 after 4.7; Zipf 1.0 has 615 MB/s with 8, 588 with 22.
const ROWS_LEAST_SKEWED: u32 = 16;
/// Under load, at least so many: with fewer, chance uses up the free superblocks of a saturated SK hynix PE8110. Of its
/// writes, 99 % took 15.8 ms with 8 rows, 31 with 16, 6.8 with 24, 32 and 64, on the real drive 6.9.
const ROWS_LEAST_LOADED: u32 = 24;

const MAX: &str = "micron-7450-max-800";
const P5520: &str = "solidigm-p5520-1920";
const PE8110: &str = "skhynix-pe8110-960";
const CM7R: &str = "kioxia-cm7r-3840";
const PM9A3: &str = "samsung-pm9a3-960";
/// Drives whose latencies under load are compared.
const LOADED: [&str; 4] = [MAX, P5520, PE8110, CM7R];

/// A published row and the run that stands for it.
struct Compared {
    row: Row,
    run: Run,
}

/// Rows of a superblock with which a drive has about so many pages.
fn rows_for(preset: &str, pages: u64) -> Result<u32, StudyError> {
    let config = DeviceConfig::preset(preset)?;
    let factor = (config.logical_pages() as f64 / pages as f64).max(1.0);
    Ok(((f64::from(config.flash.pages_per_block) / factor).round() as u32).max(ROWS_LEAST))
}

fn case_of(row: &Row, pages: u64) -> Result<Case, StudyError> {
    let Row { preset, fill, preparation, work, drive_writes, .. } = *row;
    let is_skewed = match work {
        Work::TwoZones { space, .. } => space < 0.1,
        Work::Zipf(exponent) => exponent > 0.9,
        _ => false,
    };
    let rows = rows_for(preset, pages)?.max(if is_skewed { ROWS_LEAST_SKEWED } else { 0 });
    Ok(Case { preset, fill, preparation, work, drive_writes, rows, change: |_| {} })
}

/// The latencies of a drive under load.
struct Loaded {
    preset: &'static str,
    real: Vec<Point>,
    here: Vec<Point>,
}

/// Runs the study.
pub(crate) fn run(options: &StudyOptions, progress: Progress<'_>) -> Result<Findings, StudyError> {
    let pages = if options.quick { PAGES_QUICK } else { PAGES };
    // The rows that the claims are about.
    let is_quick = |row: &Row| match (row.preset, row.work) {
        (MAX, Work::Sequential | Work::Uniform | Work::Zipf(_)) => true,
        (MAX, Work::TwoZones { space, .. }) => space < 0.1 && row.drive_writes < 9.0,
        (MAX, Work::Zones { mib, .. }) => (mib - 8192.0).abs() < 0.5,
        (P5520, Work::Uniform) => row.preparation != Preparation::New,
        (P5520, Work::Zipf(_)) => row.amplification.is_some(),
        (PE8110, Work::Uniform) => true,
        (PE8110, Work::Zipf(exponent)) => exponent > 0.7,
        (CM7R, Work::Never(share)) => share > 0.85,
        _ => false,
    };
    let rows: Vec<Row> = published::rows()?.into_iter().filter(|row| !options.quick || is_quick(row)).collect();
    let runs = parallel::map("rows", &rows, progress, |row| bed::run(&case_of(row, pages)?, options.seed))?;
    let compared: Vec<Compared> = rows.into_iter().zip(runs).map(|(row, run)| Compared { row, run }).collect();
    let loaded = parallel::map("latencies", &LOADED, progress, |&preset| {
        let real = published::latencies(preset)?;
        let targets: Vec<f64> = real.iter().map(|point| point.target).collect();
        let rows = rows_for(preset, pages)?.max(ROWS_LEAST_LOADED);
        let here = load::run(DeviceConfig::preset(preset)?, rows, &targets, options.seed)?;
        Ok(Loaded { preset, here, real })
    })?;
    let in_place = in_place(options, pages, progress)?;
    let sections = PRESETS.iter().filter_map(|preset| section(preset.name, &compared, &loaded).transpose());
    let mut sections = sections.collect::<Result<Vec<_>, _>>()?;
    sections.push(in_place_section(&in_place));
    if !options.quick {
        sections.push(scale_section(options, pages, progress)?);
    }
    let limits = vec![
        "Firmware, temperature, flash and raw capacity of the real drives are not known; what a preset has of them is \
         of their class, or fitted."
            .to_owned(),
        "The P5520's rows are of two campaigns, five months apart, between which uniform writes differ by 8 %. Zipf 0.8 \
         is 506 MB/s in one and 463 in the other: one preset cannot give both."
            .to_owned(),
        "The drives are smaller, by as many times as their superblocks have fewer pages; the full form's last section has \
         the effect of this. Tails of latencies are those of the smaller drive, whose victims are smaller too."
            .to_owned(),
    ];
    Ok(Findings { claims: claims::claims(&compared, &loaded, &in_place), sections, limits })
}

/// A database that writes in place, and its flash per page of 4 KiB.
struct InPlace {
    words: &'static str,
    kib: f64,
}

fn in_place(options: &StudyOptions, pages: u64, progress: Progress<'_>) -> Result<Vec<InPlace>, StudyError> {
    let cases = [
        ("each page written twice", Work::ZipfTwice(0.8), Preparation::InOrder, 2.0),
        ("each page written once", Work::Zipf(0.8), Preparation::InOrder, 1.0),
        ("twice, and the last tenth holds data too", Work::ZipfTwice(0.8), Preparation::Whole, 2.0),
        ("once, and the last tenth holds data too", Work::Zipf(0.8), Preparation::Whole, 1.0),
    ];
    parallel::map("in place", &cases, progress, |&(words, work, preparation, writes)| {
        // After four drive writes the published rows of Zipf 0.8 are steady.
        let case = Case {
            preset: PM9A3,
            fill: 0.9,
            preparation,
            work,
            drive_writes: 4.0,
            rows: rows_for(PM9A3, pages)?,
            change: |_| {},
        };
        Ok(InPlace { words, kib: 4.0 * writes * bed::run(&case, options.seed)?.window.amplification })
    })
}

fn in_place_section(cases: &[InPlace]) -> StudySection {
    let line = |case: &InPlace| [case.words.to_owned(), format!("{:.2}", case.kib)].map(StudyCell::text).to_vec();
    StudySection {
        title: "A database that writes in place".to_owned(),
        text: vec![
            "Samsung PM9A3, 90 % of it used, pages of 4 KiB by Zipf 0.8, scattered. Twice: first to an area of 2 MiB behind \
             the data, as a doublewrite buffer. Published: 18.85 KiB, for MySQL and PostgreSQL alike."
                .to_owned(),
        ],
        tables: vec![StudyTable {
            caption: "Flash programmed per page:".to_owned(),
            columns: ["", "KiB"].map(str::to_owned).to_vec(),
            rows: cases.iter().map(line).collect(),
        }],
        charts: Vec::new(),
    }
}

fn exactly(value: f64) -> Measured {
    Measured { value, low: value, high: value }
}

fn range((low, high): (f64, f64), digits: usize) -> String {
    match (high - low).abs() < 1e-9 {
        true => format!("{low:.digits$}"),
        false => format!("{low:.digits$} to {high:.digits$}"),
    }
}

/// How far a value is from a range, as a share; 0 inside.
fn off(value: f64, (low, high): (f64, f64)) -> f64 {
    value / value.clamp(low, high) - 1.0
}

fn series(name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> StudySeries {
    let points = points.into_iter().map(|(x, y)| StudyPoint { x, y: exactly(y) }).collect();
    StudySeries { name: name.to_owned(), points }
}

fn chart(title: &str, x_label: &str, y_label: &str, series: Vec<StudySeries>) -> Option<StudyChart> {
    let series: Vec<StudySeries> = series.into_iter().filter(|it| it.points.len() > 1).collect();
    (!series.is_empty()).then(|| StudyChart {
        title: title.to_owned(),
        x_label: x_label.to_owned(),
        x_is_bytes: false,
        y_label: y_label.to_owned(),
        series,
    })
}

/// Rates and write amplification over a property of the workload.
fn over(of_drive: &[&Compared], what: &str, x_label: &str, x_of: impl Fn(&Row) -> Option<f64>) -> Vec<StudyChart> {
    let at = |y_of: &dyn Fn(&Compared) -> Option<f64>| {
        let points = of_drive.iter().filter_map(|it| Some((x_of(&it.row)?, y_of(it)?)));
        let mut points: Vec<(f64, f64)> = points.collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    let middle = |(low, high): (f64, f64)| low.midpoint(high);
    let rates = vec![
        series("real", at(&|it| Some(middle(it.row.rate)))),
        series("here", at(&|it| Some(it.run.window.host_mb_s))),
    ];
    let amplifications = vec![
        series("real", at(&|it| it.row.amplification.map(middle))),
        series("here", at(&|it| Some(it.run.window.amplification))),
    ];
    let wa = "write amplification";
    [
        chart(&format!("Rate over {what}"), x_label, "MB/s", rates),
        chart(&format!("WA over {what}"), x_label, wa, amplifications),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// From the fill to the steady state: the cliff and the dip.
fn cliffs(preset: &str, of_drive: &[&Compared]) -> Option<StudyTable> {
    let line = |&(_, used_gib, sum, dip): &published::PublishedCliff| {
        let is_it = |it: &&&Compared| {
            let Row { work, preparation, .. } = it.row;
            work == Work::Uniform
                && preparation == Preparation::InOrder
                && (it.run.used_gib / used_gib - 1.0).abs() < 0.01
        };
        let run = &of_drive.iter().find(is_it)?.run;
        let cliff = run.cliff()?;
        let cells = [
            format!("{used_gib:.0} GiB"),
            range(sum, 0),
            format!("{:.0}", run.used_gib + cliff.written_gib),
            format!("{:.0}", cliff.plateau_mb_s),
            range(dip, 2),
            format!("{:.2}", cliff.dip_mb_s / cliff.steady_mb_s),
        ];
        Some(cells.map(StudyCell::text).to_vec())
    };
    let rows: Vec<Vec<StudyCell>> =
        published::CLIFFS.iter().filter(|cliff| cliff.0 == preset).filter_map(line).collect();
    (!rows.is_empty()).then(|| StudyTable {
        caption: "The cliff of uniform writes after a fill in order; GiB used and written by then, its dip as a share of the \
                  steady rate:"
            .to_owned(),
        columns: ["used", "GiB, real", "here", "MB/s before, here", "dip, real", "here"].map(str::to_owned).to_vec(),
        rows,
    })
}

fn latencies(loaded: &Loaded) -> (StudyTable, Vec<StudyChart>) {
    let us = |[p50, p99, p999]: [f64; 3]| format!("{p50:.0}, {p99:.0}, {p999:.0}");
    let line = |(real, here): (&Point, &Point)| {
        let cells = [
            format!("{:.0} k", real.target / 1e3),
            format!("{:.1}", real.writes_per_s / 1e3),
            format!("{:.1}", here.writes_per_s / 1e3),
            us(real.writes),
            us(here.writes),
            us(real.reads),
            us(here.reads),
        ];
        cells.map(StudyCell::text).to_vec()
    };
    let columns = ["target", "k writes/s, real", "here", "writes, real", "here", "reads, real", "here"];
    let table = StudyTable {
        caption: "Latencies under load, median, 99 % and 99.9 %, µs:".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: loaded.real.iter().zip(&loaded.here).map(line).collect(),
    };
    let of = |points: &[Point], at: fn(&Point) -> f64| -> Vec<(f64, f64)> {
        points.iter().map(|point| (point.target, at(point))).collect()
    };
    let mut charts = Vec::new();
    for (title, median, tail) in [
        (
            "Writes under load",
            (|point| point.writes[0]) as fn(&Point) -> f64,
            (|point| point.writes[2]) as fn(&Point) -> f64,
        ),
        ("Reads under load", |point| point.reads[0], |point| point.reads[2]),
    ] {
        let lines = vec![
            series("median, real", of(&loaded.real, median)),
            series("median, here", of(&loaded.here, median)),
            series("99.9 %, real", of(&loaded.real, tail)),
            series("99.9 %, here", of(&loaded.here, tail)),
        ];
        charts.extend(chart(title, "writes a second", "µs", lines));
    }
    (table, charts)
}

/// A drive: all its rows, its rates over time, its latencies.
fn section(preset: &str, compared: &[Compared], loaded: &[Loaded]) -> Result<Option<StudySection>, StudyError> {
    let of_drive: Vec<&Compared> = compared.iter().filter(|it| it.row.preset == preset).collect();
    if of_drive.is_empty() {
        return Ok(None);
    }
    let line = |Compared { row, run }: &&Compared| {
        let part = run.window;
        let wa = row.amplification.map_or_else(|| "–".to_owned(), |wa| range(wa, 2));
        let cells = [
            row.words(),
            range(row.rate, 0),
            format!("{:.0}", part.host_mb_s),
            format!("{:+.1} %", 100.0 * off(part.host_mb_s, row.rate)),
            wa,
            format!("{:.2}", part.amplification),
            row.fitted().unwrap_or("").to_owned(),
        ];
        cells.map(StudyCell::text).to_vec()
    };
    let columns = ["workload", "MB/s, real", "here", "off by", "WA, real", "here", "fitted to this row"];
    let in_order = |row: &Row| row.preparation == Preparation::InOrder;
    let mut charts = over(&of_drive, "fill, uniform writes", "share of the drive that is used", |row| {
        (row.work == Work::Uniform && in_order(row)).then_some(row.fill)
    });
    charts.extend(over(&of_drive, "skew", "Zipf exponent", |row| match row.work {
        Work::Zipf(exponent) if in_order(row) => Some(exponent),
        _ => None,
    }));
    for (workload, title, is_of) in [
        (
            "uniform",
            "Uniform writes: from the fill to the steady state",
            (|row: &Row| row.work == Work::Uniform && row.fill > 0.999 && row.preparation == Preparation::InOrder)
                as fn(&Row) -> bool,
        ),
        (
            "two-zones",
            "95 % of writes to 5 % of pages: from the fill to the steady state",
            |row: &Row| matches!(row.work, Work::TwoZones { space, .. } if space < 0.1),
        ),
    ] {
        let history = published::history(preset, workload)?;
        let Some(here) = of_drive.iter().find(|it| is_of(&it.row)).filter(|_| !history.is_empty()) else { continue };
        let until = history.iter().fold(0.0_f64, |until, point| until.max(point.0));
        // As many points as a reader can distinguish.
        let parts: Vec<_> = here.run.parts.iter().filter(|part| part.drive_writes <= until).collect();
        let points = parts.iter().step_by((parts.len() / 80).max(1)).map(|part| (part.drive_writes, part.host_mb_s));
        charts.extend(chart(title, "drive writes", "MB/s", vec![series("real", history), series("here", points)]));
    }
    let table = StudyTable {
        caption: "Host's rate and write amplification (WA), 60 to 99 % of what was written:".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: of_drive.iter().map(line).collect(),
    };
    let counted: Vec<f64> = of_drive
        .iter()
        .filter(|it| it.row.fitted().is_none())
        .map(|it| off(it.run.window.host_mb_s, it.row.rate).abs())
        .collect();
    let within = |share: f64| counted.iter().filter(|&&off| off <= share).count();
    let mut tables: Vec<StudyTable> = std::iter::once(table).chain(cliffs(preset, &of_drive)).collect();
    if let Some(loaded) = loaded.iter().find(|it| it.preset == preset) {
        let (table, more) = latencies(loaded);
        tables.push(table);
        charts.extend(more);
    }
    Ok(Some(StudySection {
        title: DeviceConfig::preset(preset)?.name,
        text: vec![format!(
            "Of {} rows that nothing was fitted to, the rate is within 3 % in {} and within 10 % in {}.",
            counted.len(),
            within(0.03),
            within(0.10)
        )],
        tables,
        charts,
    }))
}

/// Does it matter that the drives are smaller?
fn scale_section(options: &StudyOptions, pages: u64, progress: Progress<'_>) -> Result<StudySection, StudyError> {
    let rows: Vec<Row> = published::rows()?
        .into_iter()
        .filter(|row| row.preset == MAX && row.fill > 0.999)
        .filter(|row| row.work == Work::Uniform || row.work == Work::Zipf(0.8))
        .collect();
    let sizes = [pages / 2, pages * 2];
    let inputs: Vec<(&Row, u64)> = rows.iter().flat_map(|row| sizes.map(|pages| (row, pages))).collect();
    let runs = parallel::map("scale", &inputs, progress, |&(row, pages)| {
        let mut case = case_of(row, pages)?;
        case.drive_writes = 3.0;
        bed::run(&case, options.seed)
    })?;
    let line = |(&(row, pages), run): (&(&Row, u64), &Run)| {
        let rows = rows_for(row.preset, pages).unwrap_or_default();
        let cells = [
            row.words(),
            rows.to_string(),
            format!("{:.0}", run.window.host_mb_s),
            format!("{:.3}", run.window.amplification),
        ];
        cells.map(StudyCell::text).to_vec()
    };
    Ok(StudySection {
        title: "Effect of the scale".to_owned(),
        text: vec![
            "The same drive with superblocks of more and of fewer rows; the real one has 2,112. Three drive writes."
                .to_owned(),
        ],
        tables: vec![StudyTable {
            caption: "Micron 7450 MAX:".to_owned(),
            columns: ["workload", "rows of a superblock", "MB/s", "WA"].map(str::to_owned).to_vec(),
            rows: inputs.iter().zip(&runs).map(line).collect(),
        }],
        charts: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amplification(preset: &'static str, fill: f64, work: Work, rows: u32) -> f64 {
        let (preparation, drive_writes) = (Preparation::InOrder, 4.0);
        let case = Case { preset, fill, preparation, work, drive_writes, rows, change: |_| {} };
        bed::run(&case, 1).unwrap().window.amplification
    }

    /// The small form of the study: what was not fitted, and is steady after few drive writes.
    #[test]
    fn the_micron_s_write_amplification_over_fill_and_the_p5520_s_under_skew_come_out() {
        let wa = [(0.8, 1.410), (0.6, 1.172)]
            .map(|(fill, real)| (amplification(MAX, fill, Work::Uniform, ROWS_LEAST), real));
        assert!(wa.iter().all(|(here, real)| (here - real).abs() <= 0.01), "{wa:?}");
        let zipf = amplification(P5520, 1.0, Work::Zipf(0.8), 4);
        assert!((3.31..=3.45).contains(&zipf), "{zipf}: not that of cost-benefit victims");
    }

    #[test]
    fn writes_take_microseconds_below_the_knee_and_wait_beyond_what_the_drive_serves() {
        let config = DeviceConfig::preset(PE8110).unwrap();
        let points = load::run(config, 4, &[20_000.0, 70_000.0, 200_000.0], 1).unwrap();
        let [idle, near, full] = points[..] else { unreachable!() };
        assert!((idle.writes_per_s / 19_950.0 - 1.0).abs() < 0.03 && idle.writes[0] < 30.0, "{idle:?}");
        // Garbage collection at the host's pace keeps writes waiting nowhere below the knee; a collection that empties
        // its victim at once has 15 ms here.
        assert!(near.writes[2] < 30.0, "{near:?}");
        // Uniform writes have 342 MB/s, which the reads lessen. Reads wait as writes do: commands are taken in order.
        assert!((70_000.0..84_000.0).contains(&full.writes_per_s) && full.writes[2] > 2_000.0, "{full:?}");
        assert!(full.reads[0] > 2_000.0, "{full:?}");
    }

    #[test]
    fn every_drive_of_the_published_latencies_and_cliffs_has_a_preset() {
        for preset in LOADED.iter().chain(published::CLIFFS.iter().map(|(preset, ..)| preset)) {
            assert!(DeviceConfig::preset(preset).is_ok(), "{preset}");
        }
        assert!(LOADED.iter().all(|preset| published::latencies(preset).unwrap().len() > 10));
    }
}
