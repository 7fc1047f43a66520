//! The page of one simulation.

use flashwise_sim::{Interval, Responses, Simulation};
use maud::{Markup, html};

use super::plots::{latency_unit, tick};
use super::{shell, tables};
use crate::svg::{Axis, Bar, BarChart, BarGroup, LineChart, Point, Series};
use crate::text::numbers::{bytes, grouped, significant, time, two_decimals};
use crate::text::words::kept_together;
use crate::text::{array, headings, life, simulation as say, volume};

/// Most bars of the histogram of P/E cycles; more cycles than these are put together.
const MOST_BARS: usize = 16;

/// The page of one simulation: the figures, then how they came about over time.
pub fn simulation_page(s: &Simulation) -> String {
    let title = format!("{} on {}", s.workload.name, s.target_name());
    let body = html! {
        header {
            p.kicker { "flashwise simulate · seed " (s.seed) }
            h1 { (title) }
            p.headline { (kept_together(&say::headline(s))) }
            p.lead { (kept_together(&say::state_sentence(s))) }
        }
        section {
            h2 { (headings::FLOWS) }
            (flows(s))
            div.charts { (distribution(s).render()) }
        }
        section {
            h2 { "Over time" }
            div.charts { @for chart in over_time(s) { (chart.render()) } }
        }
        @if let Some(it) = &s.array {
            section {
                h2 { (headings::ARRAY) }
                p { (kept_together(&array::sentence(s, it))) }
                (pairs(&array::rows(it)))
                (tables::numbers(&array::MEMBER_COLUMNS, &array::member_rows(it)))
            }
        }
        @if let Some(it) = &s.volume {
            section {
                h2 { (headings::VOLUME) }
                p { (kept_together(&volume::sentence(it, s))) }
                (tables::numbers(&volume::LIMIT_COLUMNS, &volume::limit_rows(it)))
            }
        }
        section {
            h2 { (say::drive_heading(s)) }
            (tables::numbers(&["write amplification by cause", "factor", "share"], &say::amplification_rows(s)))
            (pairs(&say::device_rows(s)))
            (tables::numbers(&say::COMMAND_COLUMNS, &say::command_rows(s)))
            @if let Some(chart) = wear(s) { div.charts { (chart.render()) } }
        }
        @if let Some(sentence) = life::sentence(s) {
            section {
                h2 { (headings::LIFE) }
                p { (kept_together(&sentence)) }
                (pairs(&life::rows(s)))
                (tables::numbers(&life::FACTOR_COLUMNS, &life::factor_rows(s)))
            }
        }
        section {
            h2 { "Invariants" }
            div.scroll { table {
                thead { tr { th { "invariant" } th { "held" } th { "figures" } } }
                tbody { @for i in &s.invariants {
                    tr { th scope="row" { (i.name) } td { (if i.holds { "yes" } else { "NO" }) } td.words { (i.detail) } }
                } }
            } }
            p.small { (kept_together(&say::process_sentence(s))) }
        }
    };
    shell::page(&title, &s.flashwise_version, &body)
}

fn flows(s: &Simulation) -> Markup {
    html! {
        div.scroll { table.numbers {
            thead { tr { @for name in say::FLOW_COLUMNS { th { (name) } } } }
            tbody { @for row in say::flow_rows(s) {
                tr class=(if row.is_part { "absent" } else { "certain" }) {
                    th scope="row" { (row.name) }
                    @for cell in &row.cells { td { (cell) } }
                }
            } }
        } }
    }
}

fn pairs(pairs: &[(&str, String)]) -> Markup {
    html! {
        div.scroll { table { tbody { @for (name, value) in pairs {
            tr { th scope="row" { (name) } td.words { (kept_together(value)) } }
        } } } }
    }
}

fn point(x: f64, y: f64, words: String) -> Point {
    Point { x, y, low: y, high: y, words }
}

/// How many requests took no longer than how long.
fn distribution(s: &Simulation) -> LineChart {
    let kinds: Vec<_> = s
        .flows
        .iter()
        .flat_map(|flow| {
            let named = |kind: &str| if s.flows.len() > 1 { format!("{}: {kind}", flow.name) } else { kind.to_owned() };
            let read = flow.read.as_ref().map(|r| (named("reads"), r));
            let write = flow.write.as_ref().map(|r| (named("writes"), r));
            [read, write].into_iter().flatten().collect::<Vec<_>>()
        })
        .collect();
    const CLASSES: [&str; 4] = ["s1", "s2", "s3", "s4"];
    let shown = &kinds[..kinds.len().min(CLASSES.len())];
    let times = || shown.iter().flat_map(|(_, r)| &r.distribution).map(|p| p.response_ns.max(1) as f64);
    let (low, high) = times().fold((f64::INFINITY, 0.0_f64), |(low, high), ns| (low.min(ns), high.max(ns)));
    let (unit, factor) = latency_unit(high);
    let series = |(i, (name, responses)): (usize, &(String, &Responses))| Series {
        name: name.clone(),
        class: CLASSES[i],
        points: responses
            .distribution
            .iter()
            .map(|p| {
                let words = format!("{} % within {}", p.percent, time(p.response_ns));
                point(p.response_ns.max(1) as f64 * factor, p.percent, words)
            })
            .collect(),
    };
    LineChart {
        title: "Response time distribution".to_owned(),
        x: Axis::log10(
            format!("response time, {unit}"),
            if low.is_finite() { low * factor } else { 1.0 },
            high * factor,
            tick,
        ),
        y: Axis::from_zero("percent of requests", 100.0, |v| v.to_string()),
        series: shown.iter().enumerate().map(series).collect(),
        fit: Vec::new(),
        marks: Vec::new(),
    }
}

/// IOPS, bytes, response time and write amplification by time; of those, what there is.
fn over_time(s: &Simulation) -> Vec<LineChart> {
    let slowest = s.time_series.intervals.iter().filter_map(|i| i.mean_response_ns).fold(0.0, f64::max);
    let (latency_unit, latency_factor) = latency_unit(slowest);
    let mean = format!("mean, {latency_unit}");
    let chart = |title: &str, y: &str, scale: f64, value: fn(&Interval) -> Option<f64>, words: fn(f64) -> String| {
        let points: Vec<_> = s.time_series.intervals.iter().filter_map(|i| Some((i.start_ns, value(i)?))).collect();
        if points.is_empty() {
            return None;
        }
        let (unit, factor) = time_unit(s.elapsed_ns);
        let highest = points.iter().map(|&(_, y)| y).fold(0.0, f64::max);
        let lowest = points.iter().map(|&(_, y)| y).fold(f64::INFINITY, f64::min);
        let draw = |&(at, y): &(u64, f64)| point(at as f64 * factor, y * scale, format!("{}: {}", time(at), words(y)));
        Some(LineChart {
            title: title.to_owned(),
            x: Axis::between(format!("time, {unit}"), 0.0, s.elapsed_ns as f64 * factor, significant),
            y: Axis::around(y, lowest * scale, highest * scale, tick),
            series: vec![Series { name: title.to_owned(), class: "s1", points: points.iter().map(draw).collect() }],
            fit: Vec::new(),
            marks: Vec::new(),
        })
    };
    let charts = [
        chart("Requests a second", "requests a second", 1.0, |i| Some(i.iops), significant),
        chart("MiB a second", "MiB a second", 1.0, |i| Some(i.bytes_per_s / f64::from(1 << 20)), significant),
        chart("Mean response time", &mean, latency_factor, |i| i.mean_response_ns, |ns| time(ns as u64)),
        chart("Write amplification", "programmed ÷ written", 1.0, |i| i.write_amplification, two_decimals),
    ];
    charts.into_iter().flatten().collect()
}

/// A unit in which a run's length is a number of few digits, and the factor from ns.
fn time_unit(ns: u64) -> (&'static str, f64) {
    match ns {
        0..10_000 => ("ns", 1.0),
        10_000..10_000_000 => ("µs", 1e-3),
        10_000_000..10_000_000_000 => ("ms", 1e-6),
        _ => ("s", 1e-9),
    }
}

/// How many superblocks have gone through how many P/E cycles.
fn wear(s: &Simulation) -> Option<BarChart> {
    let wear = s.erase_counts.as_ref().filter(|wear| wear.max > 0)?;
    let step = (wear.max - wear.min) / MOST_BARS as u32 + 1;
    let groups = (wear.min..=wear.max).step_by(step as usize).map(|first| {
        let last = first + (step - 1);
        let within = wear.distribution.iter().filter(|count| (first..=last).contains(&count.erases));
        let superblocks: u64 = within.map(|count| count.superblocks).sum();
        let name = if step == 1 { format!("{first} P/E cycles") } else { format!("{first} to {last} P/E cycles") };
        let bar = Bar { value: superblocks as f64, interval: None, words: grouped(superblocks), class: "s1" };
        BarGroup { name, bars: vec![bar] }
    });
    let device = s.device.as_ref()?;
    let size = bytes(device.superpage_bytes() * u64::from(device.flash.pages_per_block));
    Some(BarChart { title: format!("Superblocks ({size}) by wear"), legend: Vec::new(), groups: groups.collect() })
}
