//! A probe's curve as a plot: axes by what its titles say, a band for the intervals, a line for what was fitted.
//!
//! A title ends in its unit (`read so far, MiB`). Sizes and times are drawn in the unit that suits the largest of them;
//! where the first points double, the axis is logarithmic, as the probe meant it.

use flashwise_profile::{Entry, ProbeCurve, ProbePoint, Quantity, Verdict};

use super::plots::tick;
use crate::svg::{Axis, LineChart, Mark, Point, Series};
use crate::text::groups::short_name;
use crate::text::numbers::{bytes, significant, time};
use crate::text::parameters::value_in_words;

/// Nothing that is measured is larger, or smaller without being zero; what is, a file made up.
const LARGEST: f64 = 1e18;
const SMALLEST: f64 = 1e-9;
/// Successive points at least this far apart double.
const DOUBLES: f64 = 1.6;
/// Of that many points at the start.
const DOUBLING_POINTS: usize = 4;

/// What a title's unit counts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// With the bytes of one unit.
    Size(f64),
    /// With the nanoseconds of one unit.
    Time(f64),
    /// The share of the drive's addressable bytes.
    Drives,
    Other,
}

/// One axis: what it shows and what is to be multiplied to be drawn on it.
struct Scale<'a> {
    kind: Kind,
    what: &'a str,
    /// Unit as the probe wrote it; empty where it wrote none.
    unit: &'a str,
    /// Unit that is drawn.
    drawn_unit: &'static str,
    factor: f64,
}

/// The chart, with marks where a figure has a place on the x axis; `None` where nothing can be drawn.
pub(super) fn chart(curve: &ProbeCurve, figures: &[Entry]) -> Option<LineChart> {
    let mut points: Vec<ProbePoint> = curve.points.iter().copied().filter(is_drawable).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    let (first, last) = (points.first()?.x, points.last()?.x);
    let fit: Vec<_> = curve.fit.iter().copied().filter(|&(x, y)| can_be(x) && can_be(y)).collect();
    let highest_fit = fit.iter().map(|&(_, y)| y).fold(0.0, f64::max);
    let highest = points.iter().map(|p| p.high.max(p.y)).fold(highest_fit, f64::max);
    let lowest_fit = fit.iter().map(|&(_, y)| y).fold(f64::INFINITY, f64::min);
    let lowest = points.iter().map(|p| p.low.min(p.y)).fold(lowest_fit, f64::min);
    let (mut x, y) = (Scale::new(&curve.x, last), Scale::new(&curve.y, highest));
    let (low, high) = fit.iter().fold((first, last), |(low, high), &(x, _)| (low.min(x), high.max(x)));
    let axis = if doubles(&points) { x.logarithmic(first, high) } else { x.linear(low, high) };
    let line = points.iter().map(|point| drawn(point, &x, &y)).collect();
    Some(LineChart {
        title: capital(&curve.name),
        x: axis,
        y: Axis::around(y.label(), lowest * y.factor, highest * y.factor, tick),
        series: vec![Series { name: "measured".to_owned(), class: "s1", points: line }],
        fit: fit.into_iter().map(|(a, b)| (a * x.factor, b * y.factor)).collect(),
        marks: figures.iter().flat_map(|figure| marks(figure, &x)).collect(),
    })
}

fn can_be(value: f64) -> bool {
    value == 0.0 || (SMALLEST..LARGEST).contains(&value.abs())
}

fn is_drawable(point: &ProbePoint) -> bool {
    [point.x, point.y, point.low, point.high].into_iter().all(can_be)
}

/// Whether the first points double, as they do where a probe looks for the order of a size.
fn doubles(points: &[ProbePoint]) -> bool {
    let apart = |pair: &[ProbePoint]| pair[0].x > 0.0 && pair[1].x >= DOUBLES * pair[0].x;
    points.len() >= DOUBLING_POINTS && points[..DOUBLING_POINTS].windows(2).all(apart)
}

fn drawn(point: &ProbePoint, x: &Scale<'_>, y: &Scale<'_>) -> Point {
    let ProbePoint { x: at, y: value, low, high } = *point;
    let mut words = format!("{}: {}", x.words(at), y.words(value));
    if low < high {
        words += &format!(" ({}…{})", y.words(low), y.words(high));
    }
    Point { x: at * x.factor, y: value * y.factor, low: low * y.factor, high: high * y.factor, words }
}

/// Where a figure is on the x axis, if the axis shows its kind.
fn marks(figure: &Entry, x: &Scale<'_>) -> Vec<Mark> {
    let Some(value) = figure.figure.value.filter(|_| figure.figure.verdict != Verdict::Absent) else {
        return Vec::new();
    };
    let label = format!("{} {}", short_name(figure.key), value_in_words(figure.figure.verdict, Some(value)));
    let mark = |at: f64, label: String| Mark { x: at, label, class: "m2" };
    match (value, x.kind) {
        (Quantity::Bytes(size), Kind::Size(unit)) => vec![mark(size as f64 / unit * x.factor, label)],
        (Quantity::Share(share), Kind::Drives) => vec![mark(share, label)],
        (Quantity::AddressBits(mask), Kind::Other) if x.what.starts_with("bit ") => {
            let bits = (0..u64::BITS).filter(|bit| mask >> bit & 1 == 1);
            bits.map(|bit| mark(f64::from(bit), format!("bit {bit}"))).collect()
        }
        _ => Vec::new(),
    }
}

impl<'a> Scale<'a> {
    /// The scale of a title, for values up to `highest`.
    fn new(title: &'a str, highest: f64) -> Self {
        let (what, unit) = title.rsplit_once(", ").unwrap_or((title, ""));
        let kind = kind_of(unit);
        let (drawn_unit, factor) = match kind {
            Kind::Size(of) => suiting(of, highest, 1.0, &SIZES),
            Kind::Time(of) => suiting(of, highest, 10.0, &TIMES),
            _ => ("", 1.0),
        };
        Self { kind, what, unit, drawn_unit, factor }
    }

    fn label(&self) -> String {
        match (self.drawn_unit, self.unit) {
            ("", "") => self.what.to_owned(),
            ("", unit) => format!("{}, {unit}", self.what),
            (unit, _) => format!("{}, {unit}", self.what),
        }
    }

    /// A value with its unit, as people write it.
    fn words(&self, value: f64) -> String {
        match self.kind {
            Kind::Size(of) => bytes((value * of).round() as u64),
            Kind::Time(of) => time((value * of).round() as u64),
            Kind::Other if self.unit == "%" => format!("{} %", significant(value)),
            _ => significant(value),
        }
    }

    /// Equal steps for equal differences; from zero unless that would leave a third of the plot empty.
    fn linear(&self, low: f64, high: f64) -> Axis {
        let (low, high) = (low * self.factor, high * self.factor);
        let low = if low > 0.0 && low < high / 3.0 { 0.0 } else { low };
        match self.kind {
            Kind::Size(_) if low == 0.0 => Axis::of_offsets(self.label(), high, tick),
            _ => Axis::between(self.label(), low, high, tick),
        }
    }

    /// Equal steps for equal factors; sizes with their units, as the ends are of different orders.
    fn logarithmic(&mut self, low: f64, high: f64) -> Axis {
        match self.kind {
            Kind::Size(of) => {
                self.factor = of;
                Axis::log2(self.what, low * of, high * of, |v| bytes(v.round() as u64))
            }
            Kind::Time(_) => Axis::log10(self.label(), low * self.factor, high * self.factor, tick),
            _ => Axis::log2(self.label(), low * self.factor, high * self.factor, tick),
        }
    }
}

const SIZES: [(&str, f64); 5] =
    [("TiB", 1_099_511_627_776.0), ("GiB", 1_073_741_824.0), ("MiB", 1_048_576.0), ("KiB", 1024.0), ("B", 1.0)];
const TIMES: [(&str, f64); 4] = [("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0)];

fn kind_of(unit: &str) -> Kind {
    let find = |units: &[(&str, f64)]| units.iter().find(|(name, _)| *name == unit).map(|(_, of)| *of);
    match (find(&SIZES), find(&TIMES)) {
        (Some(of), _) => Kind::Size(of),
        (_, Some(of)) => Kind::Time(of),
        _ if unit == "times the drive" => Kind::Drives,
        _ => Kind::Other,
    }
}

/// The largest unit of which `highest` has at least `least`, and the factor to it.
fn suiting(of: f64, highest: f64, least: f64, units: &[(&'static str, f64)]) -> (&'static str, f64) {
    let suits = |(_, unit): &&(&str, f64)| highest * of >= least * unit;
    let (name, unit) = units.iter().find(suits).or(units.last()).copied().unwrap_or(("", of));
    (name, of / unit)
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
    first + chars.as_str()
}

#[cfg(test)]
mod tests {
    use flashwise_profile::Figure;

    use super::*;

    fn curve(x: &str, y: &str, points: &[(f64, f64)]) -> ProbeCurve {
        let point = |&(x, y): &(f64, f64)| ProbePoint { x, y, low: y * 0.9, high: y * 1.1 };
        let points = points.iter().map(point).collect();
        ProbeCurve { name: "reading again".to_owned(), x: x.to_owned(), y: y.to_owned(), points, fit: Vec::new() }
    }

    fn figure(key: &'static str, value: Quantity) -> Entry {
        Entry { key, title: "", figure: Figure::certain(value, value, value) }
    }

    fn ticks(axis: &Axis) -> Vec<String> {
        axis.ticks().into_iter().map(|tick| axis.write(tick)).collect()
    }

    #[test]
    fn sizes_that_double_have_a_logarithmic_axis_with_their_units() {
        let points = [(0.25, 3e4), (0.5, 3e4), (1.0, 3e4), (2.0, 9e4), (1.75, 9e4)];
        let chart = chart(&curve("read so far, MiB", "latency, ns", &points), &[]).unwrap();
        assert_eq!(ticks(&chart.x), ["256 KiB", "512 KiB", "1 MiB", "2 MiB"]);
        assert_eq!(chart.x.place(1_048_576.0), 2.0 / 3.0);
        assert_eq!((chart.title.as_str(), chart.x.label.as_str()), ("Reading again", "read so far"));
        let words: Vec<_> = chart.series[0].points.iter().map(|point| point.words.as_str()).collect();
        assert_eq!(words[2..4], ["1 MiB: 30 µs (27 µs…33 µs)", "1.75 MiB: 90 µs (81 µs…99 µs)"]);
    }

    #[test]
    fn points_at_equal_distances_have_a_linear_axis_in_the_unit_that_suits() {
        let points: Vec<_> = (0..8).map(|i| (f64::from(i) * 0.0625, 210.0)).collect();
        let chart = chart(&curve("written, GiB", "MiB/s", &points), &[]).unwrap();
        assert_eq!((chart.x.label.as_str(), chart.x.low, chart.x.high), ("written, MiB", 0.0, 448.0));
        assert_eq!(chart.y.label, "MiB/s");
    }

    #[test]
    fn times_are_drawn_in_the_unit_that_suits_the_longest() {
        let label = |ns: f64| chart(&curve("bit", "latency, ns", &[(1.0, ns)]), &[]).unwrap().y.label;
        assert_eq!(
            [50.0, 120e3, 5e6, 30e6, 90e9].map(label),
            ["latency, ns", "latency, µs", "latency, µs", "latency, ms", "latency, s"]
        );
    }

    #[test]
    fn a_number_that_starts_far_from_zero_is_not_drawn_from_zero() {
        let points: Vec<_> = (12..28).map(|bit| (f64::from(bit), 11.0)).collect();
        let chart = chart(&curve("bit of the byte address", "pairs that wait, %", &points), &[]).unwrap();
        assert_eq!((chart.x.low, chart.x.high), (12.0, 27.0));
    }

    #[test]
    fn a_figure_is_marked_where_the_axis_shows_its_kind() {
        let marks = |x: &str, figure: Entry| {
            let points: Vec<_> = (0..40).map(|i| (f64::from(i), 1.0)).collect();
            let chart = chart(&curve(x, "y", &points), &[figure]).unwrap();
            chart.marks.into_iter().map(|mark| (mark.x, mark.label)).collect::<Vec<_>>()
        };
        let cache = || figure("read_cache_bytes", Quantity::Bytes(8 << 20));
        assert_eq!(marks("read so far, MiB", cache()), [(8.0, "read cache 8 MiB".to_owned())]);
        assert_eq!(marks("time, ms", cache()), []);
        let spare = figure("over_provisioning", Quantity::Share(0.275));
        assert_eq!(marks("overwritten, times the drive", spare), [(0.275, "over-provisioning 27.5 %".to_owned())]);
        let bits = figure("internal_volume_bits", Quantity::AddressBits(1 << 13 | 1 << 15));
        let expected = [(13.0, "bit 13".to_owned()), (15.0, "bit 15".to_owned())];
        assert_eq!(marks("bit of the byte address", bits), expected);
    }

    #[test]
    fn a_fitted_line_is_on_the_axes_from_end_to_end() {
        let mut burst = curve("time, ms", "acknowledged, MiB", &[(0.1, 0.1), (30.0, 9.0), (35.7, 16.0)]);
        burst.fit = vec![(0.0, 4.0), (35.8, 16.1)];
        let chart = chart(&burst, &[]).unwrap();
        assert!(chart.fit.iter().all(|&(x, y)| chart.x.contains(x) && chart.y.contains(y)));
        assert!(chart.render().0.contains("line fit"));
    }

    #[test]
    fn numbers_that_nothing_measures_are_left_out_and_never_break_a_plot() {
        let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300, -5.0, 0.0, 1e17, 1e-300];
        for x in odd {
            for y in odd {
                for titles in [("a, KiB", "b, ns"), ("a", "b"), ("times the drive", "%"), ("", "")] {
                    let mut odd = curve(titles.0, titles.1, &[(x, y), (1.0, 1.0), (y, x), (2.0, 2.0), (4.0, 4.0)]);
                    odd.fit = vec![(x, y), (y, x)];
                    let svg = chart(&odd, &[figure("over_provisioning", Quantity::Share(x))]).unwrap().render().0;
                    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{x} {y}: {svg}");
                }
            }
        }
        assert!(chart(&curve("a", "b", &[(f64::NAN, 1.0)]), &[]).is_none());
    }
}
