//! The page of buffer pools: a line a policy over the sizes of the pool, and the table of the terminal.

use flashwise_bufferpool::simulate::{PoolReport, PoolResult};
use maud::html;

use super::shell;
use crate::svg::{Axis, Bar, BarChart, BarGroup, LineChart, Point, Series};
use crate::text::numbers::{grouped, percentage, significant, time};
use crate::text::pool as say;
use crate::text::words::kept_together;

/// Lines in a chart; more policies are in further ones, on the same axes.
const MOST_LINES: usize = 6;
const CLASSES: [&str; MOST_LINES] = ["s1", "s2", "s3", "s4", "s5", "s6"];

/// A measure that is drawn for each pool.
struct Measure {
    title: &'static str,
    axis: &'static str,
    value: fn(&PoolResult) -> Option<f64>,
    words: fn(f64) -> String,
    tick: fn(f64) -> String,
}

fn whole(value: f64) -> String {
    grouped(value as u64)
}

const MEASURES: [Measure; 5] = [
    Measure {
        title: "Misses",
        axis: "of the accesses",
        value: |r| Some(r.miss_ratio),
        words: percentage,
        tick: |v| format!("{:.0} %", v * 100.0),
    },
    Measure {
        title: "Write-back operations",
        axis: "batches",
        value: |r| Some(r.write_back_operations as f64),
        words: whole,
        tick: whole,
    },
    Measure {
        title: "Pages written back",
        axis: "pages",
        value: |r| Some(r.pages_written as f64),
        words: whole,
        tick: whole,
    },
    Measure {
        title: "Modelled cost",
        axis: "page reads",
        value: |r| r.model_cost.map(|cost| cost.total_reads),
        words: significant,
        tick: significant,
    },
    Measure {
        title: "Time on the simulated drive",
        axis: "s",
        value: |r| r.drive_cost.as_ref().map(|cost| cost.elapsed_ns as f64 / 1e9),
        words: |s| time((s * 1e9) as u64),
        tick: significant,
    },
];

/// One policy with one way to write back, over the sizes.
type Curve<'a> = (String, Vec<&'a PoolResult>);

/// The page of buffer pools: misses, write-backs and costs over the sizes of the pool.
pub fn pool_page(report: &PoolReport) -> String {
    let title = format!("Buffer pools on {}", report.trace);
    let curves = curves(report);
    let told = MEASURES.iter().filter(|measure| {
        let is_there = |result: &PoolResult| (measure.value)(result).is_some_and(|value| value > 0.0);
        report.results.iter().any(is_there)
    });
    let body = html! {
        header {
            p.kicker { "flashwise pool" }
            h1 { (title) }
            p.lead { (kept_together(&say::counts(report))) }
        }
        @for measure in told {
            section {
                h2 { (measure.title) }
                div.charts { @for chart in charts(measure, &curves) { (chart) } }
            }
        }
        section {
            h2 { "All pools" }
            div.scroll { table.numbers {
                thead { tr { @for column in say::columns(report) { th { (column.title) } } } }
                tbody { @for result in &report.results {
                    tr { @for (n, column) in say::columns(report).iter().enumerate() {
                        @if n == 0 { th scope="row" { ((column.cell)(result)) } } @else { td { ((column.cell)(result)) } }
                    } }
                } }
            } }
            p.small { (kept_together(&say::explanation(report))) }
        }
    };
    shell::page(&title, env!("CARGO_PKG_VERSION"), &body)
}

fn curves(report: &PoolReport) -> Vec<Curve<'_>> {
    let both = report.results.iter().any(|r| r.ace) && report.results.iter().any(|r| !r.ace);
    let name = |result: &PoolResult| match (&result.variant, both) {
        (Some(variant), true) => format!("{}, {variant}", result.policy),
        _ => result.policy.clone(),
    };
    let mut curves: Vec<Curve<'_>> = Vec::new();
    for result in &report.results {
        match curves.iter_mut().find(|(known, _)| *known == name(result)) {
            Some((_, results)) => results.push(result),
            None => curves.push((name(result), vec![result])),
        }
    }
    curves.iter_mut().for_each(|(_, results)| results.sort_by_key(|result| result.frames));
    curves
}

/// Lines where there are several sizes, bars where there is one.
fn charts(measure: &Measure, curves: &[Curve<'_>]) -> Vec<maud::Markup> {
    let values = || curves.iter().flat_map(|(_, results)| results.iter().filter_map(|result| (measure.value)(result)));
    let highest = values().fold(0.0, f64::max);
    let frames = || curves.iter().flat_map(|(_, results)| results.iter().map(|result| result.frames));
    let (least, most) = (frames().min().unwrap_or(1), frames().max().unwrap_or(1));
    if least == most {
        return vec![bars(measure, curves).render()];
    }
    let parts: Vec<&[Curve<'_>]> = curves.chunks(MOST_LINES).collect();
    let line = |(n, part): (usize, &&[Curve<'_>])| {
        let title = match parts.len() {
            1 => measure.title.to_owned(),
            all => format!("{} ({} of {all})", measure.title, n + 1),
        };
        let series = part.iter().zip(CLASSES).map(|(curve, class)| series(measure, curve, class)).collect();
        let x = Axis::log2("frames", least as f64, most as f64, |frames| grouped(frames as u64));
        let y = Axis::from_zero(measure.axis, highest, measure.tick);
        LineChart { title, x, y, series, fit: Vec::new(), marks: Vec::new() }.render()
    };
    parts.iter().enumerate().map(line).collect()
}

fn series(measure: &Measure, (name, results): &Curve<'_>, class: &'static str) -> Series {
    let point = |result: &&PoolResult| {
        let y = (measure.value)(result)?;
        let words = format!("{name}, {} frames: {}", grouped(result.frames), (measure.words)(y));
        Some(Point { x: result.frames as f64, y, low: y, high: y, words })
    };
    Series { name: name.clone(), class, points: results.iter().filter_map(point).collect() }
}

fn bars(measure: &Measure, curves: &[Curve<'_>]) -> BarChart {
    let group = |(name, results): &Curve<'_>| {
        let value = results.first().and_then(|result| (measure.value)(result))?;
        let bar = Bar { value, interval: None, words: (measure.words)(value), class: "s1" };
        Some(BarGroup { name: name.clone(), bars: vec![bar] })
    };
    let groups = curves.iter().filter_map(group).collect();
    BarChart { title: format!("{}, {}", measure.title, measure.axis), legend: Vec::new(), groups }
}
