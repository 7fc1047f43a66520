//! Lines with the band of their intervals, and vertical marks.

use maud::{Markup, html};

use super::{Axis, at, figure};

/// Text of 12 units is then about 12 pixels in a column of a page.
const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 270.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = WIDTH - 14.0;
const BOTTOM: f64 = HEIGHT - 40.0;
/// Height of one row of the marks' labels above the plot.
const MARK_ROW: f64 = 15.0;
/// A line of more points than this is drawn without a dot for each.
const MOST_DOTS: usize = 100;
/// About the width of one letter of a label.
const LETTER: f64 = 6.3;

/// One chart.
pub(crate) struct LineChart {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
    /// What was fitted to the points, as a line; empty where there is none.
    pub(crate) fit: Vec<(f64, f64)>,
    pub(crate) marks: Vec<Mark>,
}

/// One line.
pub(crate) struct Series {
    pub(crate) name: String,
    /// Class that colours it.
    pub(crate) class: &'static str,
    pub(crate) points: Vec<Point>,
}

/// One point with its interval and its numbers in words.
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) words: String,
}

/// A vertical line at a place that means something; without a label it is explained elsewhere.
pub(crate) struct Mark {
    pub(crate) x: f64,
    pub(crate) label: String,
    /// Class that colours it.
    pub(crate) class: &'static str,
}

/// A mark's label with the row that it is in.
struct Placed<'a> {
    mark: &'a Mark,
    row: usize,
    middle: f64,
}

impl LineChart {
    pub(crate) fn render(&self) -> Markup {
        let marks = self.place_marks();
        let rows = marks.iter().map(|m| m.row + usize::from(!m.mark.label.is_empty())).max().unwrap_or(0);
        let top = 8.0 + rows as f64 * MARK_ROW;
        let fitted = (!self.fit.is_empty()).then_some(("fit", "fitted"));
        let legend: Vec<_> = self.series.iter().map(|s| (s.class, s.name.as_str())).chain(fitted).collect();
        let drawing = html! {
            (self.y_axis(top))
            (self.x_axis())
            @for mark in &marks { (self.mark(mark, top)) }
            @for series in &self.series { (self.series(series, top)) }
            (self.fitted(top))
        };
        figure(&self.title, &legend, &self.description(), (WIDTH, HEIGHT), &drawing)
    }

    /// What somebody hears who does not see the chart.
    fn description(&self) -> String {
        let marks: Vec<_> = self.marks.iter().filter(|m| !m.label.is_empty()).map(|m| m.label.as_str()).collect();
        let mut text = format!("{} by {}", self.y.label, self.x.label);
        if !marks.is_empty() {
            text += &format!("; marked: {}", marks.join(", "));
        }
        text
    }

    fn px(&self, x: f64) -> f64 {
        LEFT + self.x.place(x) * (RIGHT - LEFT)
    }

    fn py(&self, y: f64, top: f64) -> f64 {
        BOTTOM - self.y.place(y).clamp(0.0, 1.0) * (BOTTOM - top)
    }

    /// Puts each label into the first row where it touches no other.
    fn place_marks(&self) -> Vec<Placed<'_>> {
        let mut ends: Vec<f64> = Vec::new();
        let mut visible: Vec<_> = self.marks.iter().filter(|m| self.x.contains(m.x)).collect();
        visible.sort_by(|a, b| a.x.total_cmp(&b.x));
        let place = |mark| {
            let half = width_of(mark) / 2.0;
            let middle = self.px(mark.x).clamp(half, WIDTH - half);
            let row = ends.iter().position(|end| *end + 8.0 < middle - half).unwrap_or(ends.len());
            if !mark.label.is_empty() {
                ends.resize(ends.len().max(row + 1), 0.0);
                ends[row] = middle + half;
            }
            Placed { mark, row: if mark.label.is_empty() { 0 } else { row }, middle }
        };
        visible.into_iter().map(place).collect()
    }

    fn mark(&self, placed: &Placed<'_>, top: f64) -> Markup {
        let x = at(self.px(placed.mark.x));
        let label_y = 12.0 + placed.row as f64 * MARK_ROW;
        html! {
            g class={ "mark " (placed.mark.class) } {
                line x1=(x) x2=(x) y1=(at(top - 2.0)) y2=(at(BOTTOM)) {}
                @if !placed.mark.label.is_empty() {
                    text x=(at(placed.middle)) y=(at(label_y)) text-anchor="middle" { (placed.mark.label) }
                }
            }
        }
    }

    fn y_axis(&self, top: f64) -> Markup {
        html! {
            g.axis {
                @for tick in self.y.ticks() {
                    @let y = self.py(tick, top);
                    line.grid x1=(at(LEFT)) x2=(at(RIGHT)) y1=(at(y)) y2=(at(y)) {}
                    text x=(at(LEFT - 6.0)) y=(at(y + 4.0)) text-anchor="end" { (self.y.write(tick)) }
                }
                text.name transform={ "translate(10 " (at((top + BOTTOM) / 2.0)) ") rotate(-90)" } text-anchor="middle" {
                    (self.y.label)
                }
            }
        }
    }

    fn x_axis(&self) -> Markup {
        html! {
            g.axis {
                line.base x1=(at(LEFT)) x2=(at(RIGHT)) y1=(at(BOTTOM)) y2=(at(BOTTOM)) {}
                @for tick in self.readable_ticks() {
                    @let x = self.px(tick);
                    line.base x1=(at(x)) x2=(at(x)) y1=(at(BOTTOM)) y2=(at(BOTTOM + 4.0)) {}
                    text x=(at(x)) y=(at(BOTTOM + 16.0)) text-anchor="middle" { (self.x.write(tick)) }
                }
                text.name x=(at((LEFT + RIGHT) / 2.0)) y=(at(HEIGHT - 6.0)) text-anchor="middle" { (self.x.label) }
            }
        }
    }

    /// The ticks of the x axis, every second, third, … of them where their numbers would touch each other.
    fn readable_ticks(&self) -> Vec<f64> {
        let ticks = self.x.ticks();
        let half_width = |tick: f64| self.x.write(tick).chars().count() as f64 * LETTER / 2.0;
        let apart = |a: f64, b: f64| self.px(b) - self.px(a) > half_width(a) + half_width(b) + LETTER;
        let every = |n: usize| ticks.iter().copied().step_by(n).collect::<Vec<_>>();
        let fit = |ticks: &Vec<f64>| ticks.windows(2).all(|pair| apart(pair[0], pair[1]));
        (1..=ticks.len()).map(every).find(fit).unwrap_or_default()
    }

    fn fitted(&self, top: f64) -> Markup {
        let seen = self.fit.iter().filter(|(x, _)| self.x.contains(*x));
        let line: Vec<_> = seen.map(|&(x, y)| format!("{},{}", at(self.px(x)), at(self.py(y, top)))).collect();
        html! {
            @if line.len() > 1 { polyline.line.fit points=(line.join(" ")) {} }
        }
    }

    fn series(&self, series: &Series, top: f64) -> Markup {
        let place = |x: f64, y: f64| format!("{},{}", at(self.px(x)), at(self.py(y, top)));
        let line: Vec<_> = series.points.iter().map(|p| place(p.x, p.y)).collect();
        let above = series.points.iter().map(|p| place(p.x, p.high));
        let below = series.points.iter().rev().map(|p| place(p.x, p.low));
        let band: Vec<_> = above.chain(below).collect();
        html! {
            g class={ "series " (series.class) } {
                polygon.band points=(band.join(" ")) {}
                polyline.line points=(line.join(" ")) {}
                @for p in &series.points {
                    @let (x, y) = (at(self.px(p.x)), at(self.py(p.y, top)));
                    @if series.points.len() <= MOST_DOTS { circle.dot cx=(x) cy=(y) r="2.5" {} }
                    circle.touch cx=(x) cy=(y) r="9" { title { (p.words) } }
                }
            }
        }
    }
}

fn width_of(mark: &Mark) -> f64 {
    mark.label.chars().count() as f64 * LETTER
}
