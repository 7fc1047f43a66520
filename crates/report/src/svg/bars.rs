//! Lying bars with whiskers, their names above them and their values at their ends.

use maud::{Markup, html};

use super::{at, figure};

/// Narrower than other charts: three are in a row.
const WIDTH: f64 = 320.0;
const BAR: f64 = 18.0;
const NAME: f64 = 18.0;
const GAP: f64 = 10.0;
/// Letters of a name that the width has space for, at the size of the style sheet.
const NAME_LETTERS: usize = 46;
/// Where the longest bar or whisker ends; the values are behind it.
const LONGEST: f64 = WIDTH - 86.0;

/// One chart.
pub(crate) struct BarChart {
    pub(crate) title: String,
    /// Class and name of each kind of bar, where there is more than one.
    pub(crate) legend: Vec<(&'static str, &'static str)>,
    pub(crate) groups: Vec<BarGroup>,
}

/// Bars that belong together.
pub(crate) struct BarGroup {
    pub(crate) name: String,
    pub(crate) bars: Vec<Bar>,
}

/// One bar.
pub(crate) struct Bar {
    pub(crate) value: f64,
    /// The ends of its interval, where it has one.
    pub(crate) interval: Option<(f64, f64)>,
    /// The value in words.
    pub(crate) words: String,
    /// Class that colours it.
    pub(crate) class: &'static str,
}

impl BarChart {
    pub(crate) fn render(&self) -> Markup {
        let bars = || self.groups.iter().flat_map(|g| &g.bars);
        let longest = bars().map(|b| b.interval.map_or(b.value, |(_, high)| high.max(b.value))).fold(0.0, f64::max);
        let scale = if longest > 0.0 { LONGEST / longest } else { 0.0 };
        let height = self.groups.iter().map(height_of).sum::<f64>();
        let words: Vec<_> = self.groups.iter().map(group_words).collect();
        let tops = self.groups.iter().scan(0.0, |next, group| {
            let top = *next;
            *next += height_of(group);
            Some(top)
        });
        let drawing = html! {
            @for (group, top) in self.groups.iter().zip(tops) { (draw_group(group, top, scale)) }
            line.base x1="0.5" x2="0.5" y1="0" y2=(at(height - GAP)) {}
        };
        figure(&self.title, &self.legend, &words.join("; "), (WIDTH, height), &drawing)
    }
}

fn height_of(group: &BarGroup) -> f64 {
    NAME + group.bars.len() as f64 * (BAR + 2.0) + GAP
}

fn group_words(group: &BarGroup) -> String {
    let words: Vec<_> = group.bars.iter().map(|b| b.words.as_str()).collect();
    format!("{}: {}", group.name, words.join(", "))
}

fn draw_group(group: &BarGroup, top: f64, scale: f64) -> Markup {
    html! {
        g.bars {
            text x="6" y=(at(top + NAME - 5.0)) { (shortened(&group.name)) }
            @for (i, bar) in group.bars.iter().enumerate() {
                (draw_bar(bar, top + NAME + i as f64 * (BAR + 2.0), scale))
            }
        }
    }
}

/// A name that ends within the chart; a longer one is whole in the chart's description and in the table.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(NAME_LETTERS) {
        Some(_) => name.chars().take(NAME_LETTERS - 1).chain(['…']).collect(),
        None => name.to_owned(),
    }
}

fn draw_bar(bar: &Bar, top: f64, scale: f64) -> Markup {
    let (length, middle) = (bar.value * scale, top + BAR / 2.0);
    let end = bar.interval.map_or(length, |(_, high)| length.max(high * scale));
    html! {
        rect class={ "bar " (bar.class) } x="0.5" y=(at(top)) width=(at(length)) height=(at(BAR)) rx="2" {
            title { (bar.words) }
        }
        @if let Some((low, high)) = bar.interval {
            @let (low, high, above, below) = (at(low * scale), at(high * scale), at(middle - 4.0), at(middle + 4.0));
            g.whisker {
                line x1=(low) x2=(high) y1=(at(middle)) y2=(at(middle)) {}
                line x1=(low) x2=(low) y1=(above) y2=(below) {}
                line x1=(high) x2=(high) y1=(above) y2=(below) {}
            }
        }
        text.value x=(at(end + 8.0)) y=(at(middle + 4.5)) { (bar.words) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_ends_within_the_chart_and_is_whole_in_its_description() {
        let name = "best · wal, checkpoint 16000, 30 MiB cache, concurrent-write-back, concurrent-read-ahead";
        let bar = Bar { value: 1.0, interval: None, words: "1".into(), class: "best" };
        let groups = vec![BarGroup { name: name.into(), bars: vec![bar] }];
        let chart = BarChart { title: "Rates".into(), legend: Vec::new(), groups }.render().into_string();
        assert!(chart.contains(">best · wal, checkpoint 16000, 30 MiB cache, c…<"), "{chart}");
        assert_eq!(chart.matches(name).count(), 1, "{chart}");
        assert_eq!(shortened("checklist"), "checklist");
    }
}
