//! The measurements as tables and pictures.

use flashwise_report::study::{Measured, StudyCell, StudyChart, StudyPoint, StudySection, StudySeries, StudyTable};

use super::bench::{Filled, Outcome, Round, Work};
use super::drives::Drive;
use super::{FULL, ROOM, Results};
use crate::StudyError;
use crate::attached::answers_were_late;

/// All sections; `load` is the machine's before the study.
pub(super) fn all(results: &Results, load: &str) -> Result<Vec<StudySection>, StudyError> {
    Ok(vec![
        transactions(results)?,
        costs(results),
        age(results)?,
        space(results),
        varied(results)?,
        time(results, load),
    ])
}

fn columns<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

fn number(value: f64, digits: usize) -> StudyCell {
    StudyCell::text(format!("{value:.digits$}"))
}

/// A ratio as per cent beyond 1.
fn beyond(ratio: Measured) -> Measured {
    let percent = |value: f64| 100.0 * (value - 1.0);
    Measured { value: percent(ratio.value), low: percent(ratio.low), high: percent(ratio.high) }
}

fn outcomes(results: &Results) -> impl Iterator<Item = (&'static str, &Outcome)> {
    Drive::BOTH.iter().map(|drive| drive.name()).zip(&results.drives)
}

fn transactions(results: &Results) -> Result<StudySection, StudyError> {
    let (mut rows, mut series) = (Vec::new(), Vec::new());
    for (name, outcome) in outcomes(results) {
        let mut points = Vec::new();
        for filled in &outcome.fills {
            let gain = beyond(outcome.gain(filled.fill, FULL)?);
            rows.push(vec![
                StudyCell::text(name),
                StudyCell::text(filled.fill.to_string()),
                filled.mean(|round| round.rate).into(),
                gain.into(),
                number(100.0 * filled.hot_share(), 1),
            ]);
            points.push(StudyPoint { x: f64::from(filled.fill), y: outcome.gain(filled.fill, FULL)? });
        }
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        series.push(StudySeries { name: name.to_owned(), points });
    }
    let conditions = &results.conditions;
    Ok(StudySection {
        title: "Transaction rate by fill factor".to_owned(),
        text: vec![format!(
            "{} rounds of {} transactions of {} sessions, each round with a cold cache and a checkpoint at its end; \
             the fill factors alternate. Gains compare rounds of the same age.",
            conditions.rounds, conditions.transactions, conditions.sessions
        )],
        tables: vec![StudyTable {
            caption: "Transactions a second of drive time, gain over full pages, updates on the same page (HOT):"
                .to_owned(),
            columns: columns(["drive", "fill factor", "a second", "gain, %", "on page, %"]),
            rows,
        }],
        charts: vec![StudyChart {
            title: "Transactions a second relative to full pages".to_owned(),
            x_label: "fill factor, %".to_owned(),
            x_is_bytes: false,
            y_label: "transactions a second ÷ those at 100".to_owned(),
            series,
        }],
    })
}

fn costs(results: &Results) -> StudySection {
    type Cost = fn(&Round) -> f64;
    let costs: [Cost; 6] = [
        |round| 1e3 * round.processor_s,
        |round| round.log_bytes / 1024.0,
        |round| round.reads,
        |round| round.written_bytes / 1024.0,
        |round| round.flash_bytes / 1024.0,
        |round| 100.0 * round.again,
    ];
    let row = |name: &str, filled: &Filled| {
        let cells = costs.iter().map(|&cost| StudyCell::from(filled.mean(cost)));
        [StudyCell::text(name), StudyCell::text(filled.fill.to_string())].into_iter().chain(cells).collect()
    };
    let rows = outcomes(results).flat_map(|(name, outcome)| outcome.fills.iter().map(move |filled| row(name, filled)));
    StudySection {
        title: "Cost of a transaction".to_owned(),
        text: vec![
            "CPU time of the server's processes, log bytes, read requests and bytes that reached the drive, and bytes \
             that it programmed; including checkpoints."
                .to_owned(),
        ],
        tables: vec![StudyTable {
            caption: "Per transaction: CPU time in ms, KiB of log, reads, KiB written and programmed; restarted, %:"
                .to_owned(),
            columns: columns(["drive", "fill factor", "ms", "log", "reads", "written", "flash", "again"]),
            rows: rows.collect(),
        }],
        charts: Vec::new(),
    }
}

fn age(results: &Results) -> Result<StudySection, StudyError> {
    let stock_rows = match results.conditions.work {
        Work::Tpcc(tables) => f64::from(tables.warehouses * tables.items),
        Work::Pgbench { .. } => return Err(StudyError::Lost),
    };
    let mut rows = Vec::new();
    for (name, outcome) in outcomes(results) {
        let (full, room) = (outcome.of(FULL)?, outcome.of(ROOM)?);
        let mut updates = 0.0;
        for (n, (of_full, of_room)) in full.rounds.iter().zip(&room.rounds).enumerate() {
            let share = |round: &Round| number(100.0 * round.hot_updates / round.updates.max(1.0), 1);
            updates += of_full.updates;
            rows.push(vec![
                StudyCell::text(name),
                StudyCell::text((n + 1).to_string()),
                number(updates / stock_rows, 2),
                share(of_full),
                share(of_room),
                number(of_room.log_bytes / of_full.log_bytes, 2),
                number(of_room.written_bytes / of_full.written_bytes, 2),
                number(100.0 * (of_room.rate / of_full.rate - 1.0), 1),
            ]);
        }
    }
    Ok(StudySection {
        title: "Does the gain last?".to_owned(),
        text: vec![
            "By round since the tables were loaded, with the number of updates so far per row of STOCK. An update \
             that leaves a full page makes space on it for the next one."
                .to_owned(),
        ],
        tables: vec![StudyTable {
            caption: "Updates on the same page (HOT) with fill factors of 100 and 75, %; log and bytes written, 75 ÷ \
                      100; gain, %:"
                .to_owned(),
            columns: columns(["drive", "round", "updates per row", "at 100", "at 75", "log", "written", "gain, %"]),
            rows,
        }],
        charts: Vec::new(),
    })
}

fn space(results: &Results) -> StudySection {
    let rows = outcomes(results).flat_map(|(name, outcome)| {
        let full = outcome.fills.iter().find(|filled| filled.fill == FULL);
        outcome.fills.iter().map(move |filled| {
            let growth = |of: fn(&Filled) -> f64| number(100.0 * (of(filled) / full.map_or(f64::NAN, of) - 1.0), 1);
            vec![
                StudyCell::text(name),
                StudyCell::text(filled.fill.to_string()),
                number(filled.logical_bytes / 1e6, 1),
                growth(|filled| filled.logical_bytes),
                number(filled.physical_bytes / 1e6, 1),
                growth(|filled| filled.physical_bytes),
                number(filled.logical_bytes / filled.physical_bytes, 2),
            ]
        })
    });
    StudySection {
        title: "Cost of free space".to_owned(),
        text: vec![
            "Growth by loading: of the file system (logical) and of the data stored by the drive (physical). Tables, \
             indexes and the small log of a load."
                .to_owned(),
        ],
        tables: vec![StudyTable {
            caption: "Logical and physical MB, each with the increase over full pages, %, and their ratio:".to_owned(),
            columns: columns(["drive", "fill factor", "logical", "%", "physical", "%", "ratio"]),
            rows: rows.collect(),
        }],
        charts: Vec::new(),
    }
}

fn varied(results: &Results) -> Result<StudySection, StudyError> {
    let as_above = std::iter::once(("as above", &results.drives[0]));
    let all = as_above.chain(results.varied.iter().map(|(name, outcome)| (*name, outcome)));
    let row = |(name, outcome): (&str, &Outcome)| {
        let (full, room) = (outcome.of(FULL)?, outcome.of(ROOM)?);
        let ratio = |of: fn(&Round) -> f64| number(room.mean(of).value / full.mean(of).value, 2);
        Ok(vec![
            StudyCell::text(name),
            full.mean(|round| round.rate).into(),
            beyond(outcome.gain(ROOM, FULL)?).into(),
            ratio(|round| round.processor_s),
            ratio(|round| round.log_bytes),
            ratio(|round| round.reads),
            ratio(|round| round.written_bytes),
        ])
    };
    let size = |(name, outcome): &(&str, Outcome)| {
        let (full, room) = (outcome.of(FULL)?, outcome.of(ROOM)?);
        let ratio = |of: fn(&Filled) -> f64| number(of(room) / of(full), 2);
        Ok(vec![StudyCell::text(*name), ratio(|filled| filled.logical_bytes), ratio(|filled| filled.physical_bytes)])
    };
    Ok(StudySection {
        title: "Where the gain comes from".to_owned(),
        text: vec![
            "The plain drive with one condition changed. A slower processor stands for fewer cores than the text's \
             32; with all data cached the drive only receives writes after the first access. pgbench has its own \
             tables and transactions, similar to TPC-B: each updates an account, a teller and a branch, whose indexes \
             change only if the row moves."
                .to_owned(),
        ],
        tables: vec![
            StudyTable {
                caption:
                    "Transactions a second at 100; gain of 75, %; and 75 ÷ 100 for the resources of a transaction:"
                        .to_owned(),
                columns: columns(["", "at 100", "gain, %", "processor", "log", "reads", "written"]),
                rows: all.map(row).collect::<Result<_, StudyError>>()?,
            },
            StudyTable {
                caption: "And of the loaded data:".to_owned(),
                columns: columns(["", "logical", "physical"]),
                rows: results.varied.iter().map(size).collect::<Result<_, StudyError>>()?,
            },
        ],
        charts: Vec::new(),
    })
}

fn time(results: &Results, load: &str) -> StudySection {
    let varied = results.varied.iter().map(|(name, outcome)| (*name, outcome));
    let rows = outcomes(results).chain(varied).map(|(name, outcome)| {
        let stat = &outcome.stat;
        let scale = stat.time_scale.unwrap_or(1.0);
        // Of the drive's clock, as the latencies beside it are.
        let late = |of: fn(&flashwise_block::Percentiles) -> u64| {
            number(stat.pacing.as_ref().map_or(0.0, |pacing| of(&pacing.error) as f64) / scale / 1e3, 1)
        };
        vec![
            StudyCell::text(name),
            number(scale, 0),
            late(|error| error.p50_ns),
            late(|error| error.p99_ns),
            number(stat.latency.reads.p50_ns as f64 / 1e3, 1),
            number(stat.latency.writes.p50_ns as f64 / 1e3, 1),
            StudyCell::text(if answers_were_late(stat) { "yes" } else { "no" }),
        ]
    });
    StudySection {
        title: "Do the times show the drive?".to_owned(),
        text: vec![format!(
            "The drive is slowed down by the time scale, so that the database's processors are to it what 32 are in \
             real time. Lateness of completions is in drive time, beside the latency of requests. It spoils the \
             result if its median exceeds a twentieth of the fastest kind of request, or one completion in a hundred \
             is later than half of it. The machine's load before the study was {load}."
        )],
        tables: vec![StudyTable {
            caption: "Time scale; completions late by, µs, median and 99 %; median read and write, µs; result spoiled?"
                .to_owned(),
            columns: columns(["drive", "scale", "late", "late, 99 %", "read", "write", "spoils"]),
            rows: rows.collect(),
        }],
        charts: Vec::new(),
    }
}
