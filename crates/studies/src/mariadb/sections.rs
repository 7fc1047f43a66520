//! The measurements as tables and pictures.

use flashwise_block::grouped;
use flashwise_report::study::{Measured, StudyCell, StudyChart, StudyPoint, StudySection, StudySeries, StudyTable};

use super::Results;
use super::bench::Piece;
use super::binlog::written_pages;
use super::reads::{BULK, DEFAULT, HALVED, PLACED, PLAIN, Shown};
use super::ycsb::MIXES;
use crate::StudyError;
use crate::attached::answers_were_late;
use crate::statistics::mean;

/// All sections; `load` is the machine's before the study.
pub(super) fn all(results: &Results, load: &str) -> Result<Vec<StudySection>, StudyError> {
    Ok(vec![
        places(results),
        selects(results)?,
        mixes(results)?,
        transactions(results),
        wear(results),
        time(results, load),
    ])
}

fn table<const N: usize>(caption: &str, columns: [&str; N], rows: Vec<Vec<StudyCell>>) -> StudyTable {
    StudyTable { caption: caption.to_owned(), columns: columns.map(str::to_owned).to_vec(), rows }
}

fn number(value: f64, digits: usize) -> StudyCell {
    StudyCell::text(format!("{value:.digits$}"))
}

/// A ratio as per cent beyond 1.
fn beyond(ratio: Measured) -> StudyCell {
    let percent = |value: f64| 100.0 * (value - 1.0);
    Measured { value: percent(ratio.value), low: percent(ratio.low), high: percent(ratio.high) }.into()
}

fn places(results: &Results) -> StudySection {
    let (hidden, reads) = (results.hidden, &results.reads);
    let row = |shown: &Shown| {
        vec![
            StudyCell::text(shown.variant.name),
            StudyCell::text(shown.page.to_string()),
            StudyCell::text(if shown.variant.is_placed { hidden.hot.offset_bytes >> 10 } else { 0 }.to_string()),
            StudyCell::text(shown.placed_words()),
            StudyCell::text(shown.placed.extents.to_string()),
        ]
    };
    StudySection {
        title: "Placement of the table's pages".to_owned(),
        text: vec![
            format!(
                "Learned from the drive: chunks of {} KiB, hot locations at {} KiB·i + {} KiB. The file system starts \
                 at the drive's start, or at the first hot location (attach --offset; otherwise a partition or a loop \
                 device).",
                hidden.chunk_bytes >> 10,
                hidden.hot.period_bytes >> 10,
                hidden.hot.offset_bytes >> 10
            ),
            "From the extents of the table's file (FIEMAP), page by page. A page is torn if it spans more than one \
             extent."
                .to_owned(),
        ],
        tables: vec![table(
            "Page; KiB before the file system; pages at hot locations; extents of the file:",
            ["variant", "page", "offset", "at hot locations", "extents"],
            reads.variants.iter().map(row).collect(),
        )],
        charts: Vec::new(),
    }
}

fn selects(results: &Results) -> Result<StudySection, StudyError> {
    let (reads, work) = (&results.reads, &results.scale.work);
    let each = f64::from(work.selects);
    let mut rows = Vec::new();
    for shown in &reads.variants {
        let ended = &shown.ended;
        let name = shown.variant.name;
        let processor = |piece: &Piece| 1e6 * piece.processor_s / each;
        rows.push(vec![
            StudyCell::text(name),
            shown.select_mean(|piece| ended.read_bytes(piece) / shown.page.0 as f64 / each).into(),
            shown.select_mean(|piece| shown.page_us(piece)).into(),
            shown.select_mean(|piece| each / ended.waited_s(piece)).into(),
            beyond(reads.gain(name, PLAIN)?),
            shown.select_mean(processor).into(),
            beyond(reads.gain_with_processor(name, PLAIN)?),
            beyond(reads.gain_seen(name, PLAIN)?),
        ]);
    }
    let line = |name: &str| {
        let shown = reads.of(name)?;
        let point =
            |(round, piece): (usize, &Piece)| StudyPoint { x: round as f64 + 1.0, y: mean(&[shown.page_us(piece)]) };
        Ok(StudySeries { name: name.to_owned(), points: shown.selects.iter().enumerate().map(point).collect() })
    };
    let inserts = |shown: &Shown| {
        let rates: Vec<f64> = shown.inserts.iter().map(|piece| f64::from(work.inserts) / piece.seconds).collect();
        let flash = |piece: &Piece| piece.flash_bytes / f64::from(work.inserts) / 1024.0;
        let written = |piece: &Piece| piece.written_bytes / f64::from(work.inserts) / 1024.0;
        let of = |each: &dyn Fn(&Piece) -> f64| mean(&shown.inserts.iter().map(each).collect::<Vec<_>>());
        vec![StudyCell::text(shown.variant.name), mean(&rates).into(), of(&written).into(), of(&flash).into()]
    };
    Ok(StudySection {
        title: "Gain for SELECTs".to_owned(),
        text: vec![
            format!(
                "{} rounds of {} inserts in transactions of {}, write-back of all pages, {} SELECTs of existing keys; \
                 {} rows at first, a buffer pool of 24 MiB. Variants alternate.",
                work.rounds,
                grouped(work.inserts.into()),
                work.per_transaction,
                grouped(work.selects.into()),
                grouped(work.rows.into())
            ),
            "Waiting for the drive is the time during which a read of the client was in flight, from the trace. The \
             client's own measurement also contains the server's and the kernel's time, on processors that are faster \
             relative to the slowed-down drive."
                .to_owned(),
        ],
        tables: vec![
            table(
                "Pages read per SELECT, µs per page, SELECTs a second of drive time, compared with 64 KiB pages (%); \
                 server CPU time in µs per SELECT, gain with its mean (%), gain measured by the client (%):",
                ["variant", "pages", "µs", "a second", "gain", "processor", "gain", "seen"],
                rows,
            ),
            table(
                "Inserts a second of drive time; KiB written by the host and programmed per insert:",
                ["variant", "a second", "written", "flash"],
                reads.variants.iter().map(inserts).collect(),
            ),
        ],
        charts: vec![StudyChart {
            title: "Time per page by round".to_owned(),
            x_label: "round".to_owned(),
            x_is_bytes: false,
            y_label: "drive time per page, µs".to_owned(),
            series: [PLAIN, PLACED, BULK, HALVED].into_iter().map(line).collect::<Result<_, StudyError>>()?,
        }],
    })
}

fn mixes(results: &Results) -> Result<StudySection, StudyError> {
    let (reads, scale) = (&results.reads, &results.scale);
    let mut rows = Vec::new();
    for (number, mix) in MIXES.iter().enumerate() {
        let rate = |name: &str| {
            let pieces = reads.of(name)?.mixes.get(number).ok_or(StudyError::Lost)?;
            let rates: Vec<f64> = pieces.iter().map(|piece| f64::from(scale.operations) / piece.seconds).collect();
            Ok::<_, StudyError>(StudyCell::from(mean(&rates)))
        };
        let gain =
            |name: &str, is_real: bool| Ok::<_, StudyError>(beyond(reads.mix_gain(number, name, PLAIN, is_real)?));
        rows.push(vec![
            StudyCell::text(format!("{}: {}", mix.name, mix.words)),
            rate(DEFAULT)?,
            rate(PLAIN)?,
            gain(PLACED, false)?,
            gain(HALVED, false)?,
            gain(HALVED, true)?,
        ]);
    }
    Ok(StudySection {
        title: "Gain for YCSB".to_owned(),
        text: vec![format!(
            "{} rows of 1 KiB, {} repetitions of {} operations of each mix, one client; all variants of a repetition \
             run the same operations. Operations a second of drive time.",
            grouped(scale.ycsb_rows),
            scale.repetitions,
            grouped(scale.operations.into())
        )],
        tables: vec![table(
            "Operations a second with 16 and with 64 KiB pages; compared with the latter, %: placed, placed with \
             split writes, the same with processors as fast as here:",
            ["mix", "16 KiB", "64 KiB", "placed", "halved", "processors"],
            rows,
        )],
        charts: Vec::new(),
    })
}

fn transactions(results: &Results) -> StudySection {
    let logs = &results.logs;
    let rows = logs.logs.iter().map(|log| {
        let [plain, padded] = log.pages_each(logs.page);
        let predicted = written_pages(&log.transactions, logs.page);
        vec![
            StudyCell::text(log.name),
            log.length().into(),
            StudyCell::text(format!("{} of {}", grouped(log.traced_pages), grouped(predicted))),
            number(plain, 3),
            number(padded, 3),
            log.saved(logs.page).into(),
            number(log.longer(logs.page), 1),
        ]
    });
    let aligned = match logs.is_aligned {
        true => "All extents of the log files are aligned to flash pages",
        false => "Not all extents of the log files are aligned to flash pages",
    };
    StudySection {
        title: "Effect of padding the binary log".to_owned(),
        text: vec![
            format!(
                "{} transactions per setting, sync_binlog = 1, ext4 on the Toshiba with flash pages of {} KiB. \
                 {aligned}: placement cannot improve this.",
                grouped(results.scale.commits.into()),
                logs.page >> 10
            ),
            "Positions are offsets in the log file. The trace is used to check that each transaction is written as \
             the pages that it spans: pages written for the log, of those expected from the positions."
                .to_owned(),
        ],
        tables: vec![table(
            "Setting; bytes per transaction; pages in the trace of those by position; pages per transaction, plain \
             and padded; pages written compared with plain, %; growth of the log, %:",
            ["setting", "bytes", "in the trace", "plain", "padded", "saved, %", "longer, %"],
            rows.collect(),
        )],
        charts: Vec::new(),
    }
}

fn wear(results: &Results) -> StudySection {
    let logs = &results.logs;
    let mut rows = Vec::new();
    for log in &logs.logs {
        let count = log.transactions.len().max(1) as f64;
        for (drive, wear) in &log.wear {
            let kib = |bytes: f64| number(bytes / count / 1024.0, 2);
            let less = |[plain, padded]: [f64; 2]| number(100.0 * (padded / plain.max(1.0) - 1.0), 1);
            rows.push(vec![
                StudyCell::text(log.name),
                StudyCell::text(*drive),
                kib(wear.alone[0]),
                kib(wear.alone[1]),
                less(wear.alone),
                kib(wear.all[0]),
                less(wear.all),
            ]);
        }
    }
    StudySection {
        title: "Effect on the drive's wear".to_owned(),
        text: vec![
            "The trace's writes and flushes on new drives, with the log plain and padded: the log alone, and all \
             writes of that period, including InnoDB's log and the file system's journal."
                .to_owned(),
        ],
        tables: vec![table(
            "Setting, drive; KiB programmed per transaction for the log, plain and padded, and the difference, %; KiB \
             for all writes, and the difference, %:",
            ["setting", "drive", "log", "padded", "%", "all", "%"],
            rows,
        )],
        charts: Vec::new(),
    }
}

fn time(results: &Results, load: &str) -> StudySection {
    let row = |shown: &Shown| {
        let stat = &shown.ended.stat;
        let (median, late) = stat.pacing.as_ref().map_or((0.0, 0.0), |pacing| {
            let micros = |ns: u64| ns as f64 / 1e3 / results.reads.time_scale;
            (micros(pacing.error.p50_ns), micros(pacing.error.p99_ns))
        });
        vec![
            StudyCell::text(shown.variant.name),
            number(stat.latency.reads.p50_ns as f64 / 1e3, 0),
            number(stat.latency.writes.p50_ns as f64 / 1e3, 0),
            number(median, 1),
            number(late, 1),
            StudyCell::text(if answers_were_late(stat) { "yes" } else { "no" }),
        ]
    };
    StudySection {
        title: "Do the times show the drive?".to_owned(),
        text: vec![format!(
            "Each drive is slowed down {} times; the machine's load was {load} at the start. The client's \
             measurements include late completions; waiting for the drive, from the trace, does not. They are spoiled \
             if the median lateness exceeds a twentieth of the fastest kind of request, or one completion in a \
             hundred is later than half of it.",
            results.reads.time_scale
        )],
        tables: vec![table(
            "Median read and write in drive time, µs; completions late by, median and 1 in 100, µs of drive time; \
             client measurements spoiled?",
            ["variant", "read", "write", "late", "1 in 100", "spoilt"],
            results.reads.variants.iter().map(row).collect(),
        )],
        charts: Vec::new(),
    }
}
