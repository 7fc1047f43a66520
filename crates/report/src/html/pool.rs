//! The page of buffer pools: a line a policy over the sizes of the pool, and the table of the terminal.

use flashwise_bufferpool::simulate::{PoolReport, PoolResult};
use maud::html;

use super::plots::tick;
use super::shell;
use crate::svg::{Axis, Bar, BarChart, BarGroup, LineChart, Point, Series};
use crate::text::numbers::{grouped, percentage, significant, time};
use crate::text::pool as say;
use crate::text::words::kept_together;

/// Policies in a chart; more are in further ones, on the same axes.
const MOST_POLICIES: usize = 6;
/// The colour of a policy; where it runs both ways, the classic line is whole and that of ACE dashed.
const CLASSIC: [&str; MOST_POLICIES] = ["s1", "s2", "s3", "s4", "s5", "s6"];
const ACE: [&str; MOST_POLICIES] = ["s1 dashed", "s2 dashed", "s3 dashed", "s4 dashed", "s5 dashed", "s6 dashed"];

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
        tick: |v| format!("{} %", tick(v * 100.0)),
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
struct Curve<'a> {
    name: String,
    policy: &'a str,
    /// Whether it is drawn as ACE: where the policy runs both ways.
    is_ace: bool,
    results: Vec<&'a PoolResult>,
}

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
            @for verdict in say::verdicts(report) { p { (kept_together(&verdict)) } }
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
                tbody { @for result in say::sorted(report) {
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
        let (name, policy, is_ace) = (name(result), result.policy.as_str(), both && result.ace);
        match curves.iter_mut().find(|curve| curve.name == name) {
            Some(curve) => curve.results.push(result),
            None => curves.push(Curve { name, policy, is_ace, results: vec![result] }),
        }
    }
    curves.iter_mut().for_each(|curve| curve.results.sort_by_key(|result| result.frames));
    curves
}

/// The curves of each policy, which belong into one chart.
fn by_policy<'a, 'r>(curves: &'a [Curve<'r>]) -> Vec<Vec<&'a Curve<'r>>> {
    let mut policies: Vec<Vec<&Curve<'_>>> = Vec::new();
    for curve in curves {
        match policies.iter_mut().find(|of| of[0].policy == curve.policy) {
            Some(of) => of.push(curve),
            None => policies.push(vec![curve]),
        }
    }
    policies
}

/// Lines where there are several sizes, bars where there is one.
fn charts(measure: &Measure, curves: &[Curve<'_>]) -> Vec<maud::Markup> {
    let all = || curves.iter().flat_map(|curve| &curve.results);
    let values = || all().filter_map(|result| (measure.value)(result));
    let highest = values().fold(0.0, f64::max);
    let lowest = values().fold(f64::INFINITY, f64::min);
    let frames = || all().map(|result| result.frames);
    let (least, most) = (frames().min().unwrap_or(1), frames().max().unwrap_or(1));
    if least == most {
        return vec![bars(measure, curves).render()];
    }
    let policies = by_policy(curves);
    let parts: Vec<&[Vec<&Curve<'_>>]> = policies.chunks(MOST_POLICIES).collect();
    let line = |(n, part): (usize, &&[Vec<&Curve<'_>>])| {
        let title = match parts.len() {
            1 => measure.title.to_owned(),
            all => format!("{} ({} of {all})", measure.title, n + 1),
        };
        let of_policy = |(n, curves): (usize, &Vec<&Curve<'_>>)| {
            let class = |curve: &Curve<'_>| if curve.is_ace { ACE[n] } else { CLASSIC[n] };
            curves.iter().map(|curve| series(measure, curve, class(curve))).collect::<Vec<_>>()
        };
        let series = part.iter().enumerate().flat_map(of_policy).collect();
        let x = Axis::log2("frames", least as f64, most as f64, |frames| grouped(frames as u64));
        let y = Axis::around(measure.axis, lowest, highest, measure.tick);
        LineChart { title, x, y, series, fit: Vec::new(), marks: Vec::new() }.render()
    };
    parts.iter().enumerate().map(line).collect()
}

fn series(measure: &Measure, curve: &Curve<'_>, class: &'static str) -> Series {
    let point = |result: &&PoolResult| {
        let y = (measure.value)(result)?;
        let words = format!("{}, {} frames: {}", curve.name, grouped(result.frames), (measure.words)(y));
        Some(Point { x: result.frames as f64, y, low: y, high: y, words })
    };
    Series { name: curve.name.clone(), class, points: curve.results.iter().filter_map(point).collect() }
}

/// A group for each policy, with a bar for each way to write back.
fn bars(measure: &Measure, curves: &[Curve<'_>]) -> BarChart {
    let both = curves.iter().any(|curve| curve.is_ace);
    let bar = |curve: &&Curve<'_>| {
        let value = curve.results.first().and_then(|result| (measure.value)(result))?;
        let class = if curve.is_ace { "s2" } else { "s1" };
        Some(Bar { value, interval: None, words: (measure.words)(value), class })
    };
    let group = |of: Vec<&Curve<'_>>| {
        let bars: Vec<Bar> = of.iter().filter_map(bar).collect();
        (!bars.is_empty()).then(|| BarGroup { name: of[0].policy.to_owned(), bars })
    };
    let groups = by_policy(curves).into_iter().filter_map(group).collect();
    let legend = if both { vec![("s1", "classic"), ("s2", "ACE")] } else { Vec::new() };
    BarChart { title: format!("{}, {}", measure.title, measure.axis), legend, groups }
}
