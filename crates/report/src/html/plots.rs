//! A drive's curves as plots.

use flashwise_block::Operation;
use flashwise_profile::{DeviceProfile, Figure, HotLocation, LocationCurve, MedianNs, ThroughputCurve, Verdict};
use maud::{Markup, html};

use crate::svg::{Axis, LineChart, Mark, Point, Series};
use crate::text::numbers::{bytes, significant, time};

/// More hot locations than this are not marked one by one.
const MOST_MARKS: u64 = 8;

/// Every plot that the profile has curves for.
pub(super) fn curves(profile: &DeviceProfile) -> Markup {
    let size = [durable_write(profile), read_back(profile)];
    let curves = &profile.curves;
    let location: Vec<_> = curves.location.iter().filter(|c| !c.latency_ns.is_empty()).collect();
    html! {
        @if size.iter().any(Option::is_some) {
            section {
                h3 { "Request-size profile" }
                div.charts { @for chart in size.iter().flatten() { (chart.render()) } }
            }
        }
        @if !location.is_empty() {
            section {
                h3 { "Location profile" }
                div.charts { @for curve in location { (location_chart(profile, curve).render()) } }
            }
        }
        @if !curves.throughput.is_empty() {
            section {
                h3 { "Throughput by requests in flight" }
                div.charts { @for chart in throughput_charts(profile) { (chart.render()) } }
            }
        }
    }
}

/// `64K`, as short as a tick has to be.
fn short_bytes(value: f64) -> String {
    bytes(value.round() as u64).replace("iB", "").replace(' ', "")
}

pub(super) fn short_number(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{}M", v / 1e6),
        v if v >= 1e3 => format!("{}k", v / 1e3),
        v => v.to_string(),
    }
}

/// An axis of latencies from zero, in µs or ms, with the factor from ns.
fn latency_axis(what: &str, highest_ns: u64) -> (Axis, f64) {
    let (unit, factor) = if highest_ns >= 10_000_000 { ("ms", 1e-6) } else { ("µs", 1e-3) };
    let number = |v: f64| if v >= 1000.0 { crate::text::numbers::grouped(v as u64) } else { v.to_string() };
    (Axis::from_zero(format!("{what}, {unit}"), highest_ns as f64 * factor, number), factor)
}

fn latency_point(x: f64, latency: &MedianNs, factor: f64, where_: &str) -> Point {
    let scaled = |ns: u64| ns as f64 * factor;
    let MedianNs { median, low, high } = *latency;
    let words = format!("{where_}: {} ({}…{})", time(median), time(low), time(high));
    Point { x, y: scaled(median), low: scaled(low), high: scaled(high), words }
}

/// The write unit and the stripe, where there is a value.
fn size_marks(profile: &DeviceProfile) -> Vec<Mark> {
    let mark = |name: &str, figure: &Figure<u64>, class| {
        let value = figure.value.filter(|_| figure.verdict != Verdict::Absent)?;
        let about = if figure.verdict == Verdict::Certain { "" } else { "≈ " };
        Some(Mark { x: value as f64, label: format!("{name} {about}{}", bytes(value)), class })
    };
    let p = &profile.parameters;
    let marks = [mark("write unit", &p.write_unit_bytes, "m1"), mark("stripe", &p.stripe_bytes, "m2")];
    marks.into_iter().flatten().collect()
}

/// A chart of latencies by write size; `None` without points.
fn size_chart(
    profile: &DeviceProfile,
    title: String,
    y: &str,
    series: Vec<(String, Vec<(u64, MedianNs)>)>,
) -> Option<LineChart> {
    const CLASSES: [&str; 4] = ["s1", "s2", "s3", "s4"];
    let all = || series.iter().flat_map(|(_, points)| points);
    let sizes = || all().map(|(size, _)| *size);
    let (low, high) = (sizes().min()? as f64, sizes().max()? as f64);
    let (y, factor) = latency_axis(y, all().map(|(_, latency)| latency.high).max()?);
    let draw = |(i, (name, points)): (usize, (String, Vec<(u64, MedianNs)>))| Series {
        name,
        class: CLASSES[i % CLASSES.len()],
        points: points.iter().map(|(s, l)| latency_point(*s as f64, l, factor, &bytes(*s))).collect(),
    };
    Some(LineChart {
        title,
        x: Axis::log2("write size", low, high, short_bytes),
        y,
        series: series.into_iter().enumerate().map(draw).collect(),
        marks: size_marks(profile),
    })
}

fn durable_write(profile: &DeviceProfile) -> Option<LineChart> {
    let points = profile.curves.durable_write.iter().map(|p| (p.write_bytes, p.latency_ns)).collect();
    let series = vec![("durable write".to_owned(), points)];
    size_chart(profile, "Latency of one durable write by its size".to_owned(), "median latency", series)
}

fn read_back(profile: &DeviceProfile) -> Option<LineChart> {
    let curve = &profile.curves.read_back;
    let mut reads: Vec<u64> = curve.iter().map(|p| p.read_bytes).collect();
    reads.sort_unstable();
    reads.dedup();
    let title = match reads.as_slice() {
        [one] => format!("Latency of reading {} by the size of the writes that wrote it", bytes(*one)),
        _ => "Latency of a read by the size of the writes that wrote the data".to_owned(),
    };
    let points = |read: u64| curve.iter().filter(move |p| p.read_bytes == read).map(|p| (p.write_bytes, p.latency_ns));
    let series = reads.iter().map(|&read| (format!("reads of {}", bytes(read)), points(read).collect())).collect();
    size_chart(profile, title, "median read latency", series)
}

fn location_chart(profile: &DeviceProfile, curve: &LocationCurve) -> LineChart {
    let highest = curve.latency_ns.iter().map(|l| l.high).max().unwrap_or(0);
    let (y, factor) = latency_axis("median latency", highest);
    let point = |(i, latency): (usize, &MedianNs)| {
        let offset = i as u64 * curve.step_bytes;
        latency_point(offset as f64, latency, factor, &format!("offset {}", bytes(offset)))
    };
    let window = curve.latency_ns.len() as u64 * curve.step_bytes;
    let points = curve.latency_ns.iter().enumerate().map(point).collect();
    LineChart {
        title: format!("Reads of {} by where they start", bytes(curve.read_bytes)),
        x: Axis::of_offsets("offset, KiB", window as f64, |offset| significant_kib(offset / 1024.0)),
        y,
        series: vec![Series { name: "median".to_owned(), class: "s1", points }],
        marks: hot_marks(profile, window),
    }
}

fn significant_kib(kib: f64) -> String {
    if kib.fract() == 0.0 { kib.to_string() } else { significant(kib) }
}

fn hot_marks(profile: &DeviceProfile, window: u64) -> Vec<Mark> {
    let figure = &profile.parameters.hot_location;
    let Some(HotLocation { period_bytes, offset_bytes }) = figure.value else { return Vec::new() };
    if period_bytes == 0 || offset_bytes >= period_bytes || window / period_bytes > MOST_MARKS {
        return Vec::new();
    }
    let label = if figure.verdict == Verdict::Certain { "hot" } else { "hot?" };
    let places = (offset_bytes..window).step_by(period_bytes as usize);
    places.map(|place| Mark { x: place as f64, label: label.to_owned(), class: "m1" }).collect()
}

/// One chart for each request size, reads and writes in it.
fn throughput_charts(profile: &DeviceProfile) -> Vec<LineChart> {
    let curves = &profile.curves.throughput;
    let mut sizes: Vec<u64> = curves.iter().map(|c| c.request_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let of = |size| curves.iter().filter(move |c| c.request_bytes == size && !c.points.is_empty()).collect::<Vec<_>>();
    sizes.into_iter().filter_map(|size| throughput_chart(profile, size, &of(size))).collect()
}

fn throughput_chart(profile: &DeviceProfile, size: u64, curves: &[&ThroughputCurve]) -> Option<LineChart> {
    let points = || curves.iter().flat_map(|c| &c.points);
    let depths = || points().map(|p| p.in_flight);
    let highest = points().map(|p| p.high).fold(0.0, f64::max);
    Some(LineChart {
        title: format!("Random requests of {}", bytes(size)),
        x: Axis::log2("requests in flight", f64::from(depths().min()?), f64::from(depths().max()?), |v| v.to_string()),
        y: Axis::from_zero("requests a second", highest, short_number),
        series: curves.iter().map(|curve| throughput_series(curve)).collect(),
        marks: knee_marks(profile, size),
    })
}

fn throughput_series(curve: &ThroughputCurve) -> Series {
    let (name, class) = match curve.operation {
        Operation::Write => ("writes", "s2"),
        _ => ("reads", "s1"),
    };
    let point = |p: &flashwise_profile::ThroughputPoint| Point {
        x: f64::from(p.in_flight),
        y: p.iops,
        low: p.low,
        high: p.high,
        words: format!(
            "{} in flight: {} ({}…{})",
            p.in_flight,
            significant(p.iops),
            significant(p.low),
            significant(p.high)
        ),
    };
    Series { name: name.to_owned(), class, points: curve.points.iter().map(point).collect() }
}

fn knee_marks(profile: &DeviceProfile, size: u64) -> Vec<Mark> {
    let p = &profile.parameters;
    let knees = match size {
        4096 => [("k_r", p.read_concurrency_4k, "m1"), ("k_w", p.write_concurrency_4k, "m2")],
        8192 => [("k_r", p.read_concurrency_8k, "m1"), ("k_w", p.write_concurrency_8k, "m2")],
        _ => return Vec::new(),
    };
    let mark = |(name, figure, class): (&str, Figure<u64>, _)| {
        let value = figure.value?;
        let equals = if figure.verdict == Verdict::Certain { "=" } else { "≈" };
        Some(Mark { x: value as f64, label: format!("{name} {equals} {value}"), class })
    };
    knees.into_iter().filter_map(mark).collect()
}
