//! The curves that every profile has, as plots; those of single probes are in `probe_plots`.

use flashwise_block::Operation;
use flashwise_profile::{DeviceProfile, Figure, HotLocation, LocationCurve, MedianNs, ThroughputCurve, Verdict};

use crate::svg::{Axis, LineChart, Mark, Point, Series};
use crate::text::numbers::{bytes, grouped, significant, time};
use crate::text::parameters::location as location_in_words;

/// More hot locations than this would hide the curve.
const MOST_MARKS: u64 = 32;

/// A number as short as a tick has to be: `0.3`, `1,500`, `20k`, `3M`.
pub(super) fn tick(value: f64) -> String {
    let trimmed = |v: f64| {
        let text = format!("{v:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match value {
        v if v >= 1e6 => format!("{}M", trimmed(v / 1e6)),
        v if v >= 1e4 => format!("{}k", trimmed(v / 1e3)),
        v if v >= 1e3 && v.fract() == 0.0 => grouped(v as u64),
        v => trimmed(v),
    }
}

/// The unit of latencies up to `highest_ns`, and the factor from ns: ms where µs would need five digits.
pub(super) fn latency_unit(highest_ns: f64) -> (&'static str, f64) {
    if highest_ns >= 1e7 { ("ms", 1e-6) } else { ("µs", 1e-3) }
}

/// An axis of these latencies, in µs or ms, with the factor from ns.
fn latency_axis<'a>(what: &str, latencies: impl Iterator<Item = &'a MedianNs> + Clone) -> (Axis, f64) {
    let highest = latencies.clone().map(|latency| latency.high).max().unwrap_or(0) as f64;
    let lowest = latencies.map(|latency| latency.low).min().unwrap_or(0) as f64;
    let (unit, factor) = latency_unit(highest);
    (Axis::around(format!("{what}, {unit}"), lowest * factor, highest * factor, tick), factor)
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
    let (y, factor) = latency_axis(y, series.iter().flat_map(|(_, points)| points).map(|(_, latency)| latency));
    let draw = |(i, (name, points)): (usize, (String, Vec<(u64, MedianNs)>))| Series {
        name,
        class: CLASSES[i % CLASSES.len()],
        points: points.iter().map(|(s, l)| latency_point(*s as f64, l, factor, &bytes(*s))).collect(),
    };
    Some(LineChart {
        title,
        x: Axis::log2("write size", low, high, |v| bytes(v.round() as u64)),
        y,
        series: series.into_iter().enumerate().map(draw).collect(),
        fit: Vec::new(),
        marks: size_marks(profile),
    })
}

/// How long a durable write takes.
pub(super) fn durable_write(profile: &DeviceProfile) -> Option<LineChart> {
    let points = profile.curves.durable_write.iter().map(|p| (p.write_bytes, p.latency_ns)).collect();
    let series = vec![("durable write".to_owned(), points)];
    size_chart(profile, "Latency of one durable write by size".to_owned(), "median latency", series)
}

/// How fast data reads back.
pub(super) fn read_back(profile: &DeviceProfile) -> Option<LineChart> {
    let curve = &profile.curves.read_back;
    let mut reads: Vec<u64> = curve.iter().map(|p| p.read_bytes).collect();
    reads.sort_unstable();
    reads.dedup();
    let title = match reads.as_slice() {
        [one] => format!("Latency of reading {} by the size of the writes that stored it", bytes(*one)),
        _ => "Read latency by the size of the writes that stored the data".to_owned(),
    };
    let points = |read: u64| curve.iter().filter(move |p| p.read_bytes == read).map(|p| (p.write_bytes, p.latency_ns));
    let series = reads.iter().map(|&read| (format!("reads of {}", bytes(read)), points(read).collect())).collect();
    size_chart(profile, title, "median read latency", series)
}

/// Reads of one length by where they start; with the hot locations where the reads are of the length that these are of.
pub(super) fn location(profile: &DeviceProfile, curve: &LocationCurve) -> LineChart {
    LineChart { marks: hot_marks(profile, curve), ..unmarked_location(curve) }
}

fn window(curve: &LocationCurve) -> u64 {
    (curve.latency_ns.len() as u64).saturating_mul(curve.step_bytes)
}

/// The same without marks.
pub(super) fn unmarked_location(curve: &LocationCurve) -> LineChart {
    let (y, factor) = latency_axis("median latency", curve.latency_ns.iter());
    let point = |(i, latency): (usize, &MedianNs)| {
        let offset = (i as u64).saturating_mul(curve.step_bytes);
        latency_point(offset as f64, latency, factor, &format!("offset {}", bytes(offset)))
    };
    let points = curve.latency_ns.iter().enumerate().map(point).collect();
    LineChart {
        title: format!("{} reads by start offset", bytes(curve.read_bytes)),
        x: Axis::of_offsets("offset, KiB", window(curve) as f64, |offset| tick(offset / 1024.0)),
        y,
        series: vec![Series { name: "median".to_owned(), class: "s1", points }],
        fit: Vec::new(),
        marks: Vec::new(),
    }
}

/// The hot locations, the first with a label.
fn hot_marks(profile: &DeviceProfile, curve: &LocationCurve) -> Vec<Mark> {
    let window = window(curve);
    let figure = &profile.parameters.hot_location;
    let Some(hot @ HotLocation { period_bytes, offset_bytes }) = figure.value else { return Vec::new() };
    let is_of_these = period_bytes > 0 && offset_bytes < period_bytes && curve.read_bytes == period_bytes;
    if !is_of_these || window / period_bytes > MOST_MARKS {
        return Vec::new();
    }
    let about = if figure.verdict == Verdict::Certain { "" } else { "≈ " };
    let label = format!("hot: {about}{}", location_in_words(hot));
    let labels = std::iter::once(label).chain(std::iter::repeat(String::new()));
    let places = (offset_bytes..window).step_by(period_bytes as usize);
    places.zip(labels).map(|(place, label)| Mark { x: place as f64, label, class: "m1" }).collect()
}

/// Requests of one length, reads and writes; `None` without points.
pub(super) fn throughput(profile: &DeviceProfile, size: u64) -> Option<LineChart> {
    let of_size = |curve: &&ThroughputCurve| curve.request_bytes == size && !curve.points.is_empty();
    let curves: Vec<_> = profile.curves.throughput.iter().filter(of_size).collect();
    let points = || curves.iter().flat_map(|c| &c.points);
    let depths = || points().map(|p| p.in_flight);
    let highest = points().map(|p| p.high).fold(0.0, f64::max);
    Some(LineChart {
        title: format!("Random {} requests", bytes(size)),
        x: Axis::log2("requests in flight", f64::from(depths().min()?), f64::from(depths().max()?), tick),
        y: Axis::from_zero("requests a second", highest, tick),
        series: curves.iter().map(|curve| throughput_series(curve)).collect(),
        fit: Vec::new(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn hot_locations_are_marked_on_reads_of_their_length_alone_and_labelled_once() {
        let profile = sample::samsung().profile;
        let labels =
            |curve: &LocationCurve| location(&profile, curve).marks.into_iter().map(|mark| mark.label).collect();
        let told: Vec<Vec<String>> = profile.curves.location.iter().map(labels).collect();
        assert_eq!(told[..3], [vec![], vec![], vec![]] as [Vec<String>; 3]);
        assert_eq!(told[3], ["hot: 64 KiB·i + 32 KiB", ""]);
    }

    #[test]
    fn ticks_are_short_and_free_of_rounding() {
        let ticks = [0.0, 0.1 * 3.0, 2.0, 999.0, 1500.0, 20_000.0, 2.5e6].map(tick);
        assert_eq!(ticks, ["0", "0.3", "2", "999", "1,500", "20k", "2.5M"]);
    }
}
