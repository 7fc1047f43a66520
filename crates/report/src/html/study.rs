//! The page of one study.

use maud::{Markup, html};

use super::plots::tick;
use super::shell;
use crate::study::{StudyChart, StudyDocument, StudySection, StudyTable};
use crate::svg::{Axis, LineChart, Point, Series};
use crate::text::headings;
use crate::text::numbers::{bytes, significant};
use crate::text::words::kept_together;

/// Classes that colour the lines of a chart.
const LINES: [&str; 4] = ["s1", "s2", "s3", "s4"];

/// The page of one study: claims, then measurements.
pub fn study_page(study: &StudyDocument) -> String {
    let body = html! {
        header {
            p.kicker { "flashwise study " (study.name) " · seed " (study.seed) @if study.quick { " · quick" } }
            h1 { (study.title) }
            p.lead { (study.source) }
        }
        section {
            h2 { (headings::CLAIMED_AND_MEASURED) }
            div.scroll { table {
                thead { tr { th { "claim" } th { "measured" } th { "verdict" } th { "because" } } }
                tbody { @for claim in &study.claims {
                    tr {
                        td.words { (claim.claim) }
                        td.words { (kept_together(&claim.measured)) }
                        td { (claim.verdict.words()) }
                        td.words { (claim.because) }
                    }
                } }
            } }
        }
        @for section in &study.sections { (one_section(section)) }
        @if !study.limits.is_empty() {
            section {
                h2 { (headings::LIMITS) }
                ul { @for limit in &study.limits { li { (limit) } } }
            }
        }
    };
    shell::page(&study.title, &study.flashwise_version, &body)
}

fn one_section(section: &StudySection) -> Markup {
    html! {
        section {
            h2 { (section.title) }
            @for text in &section.text { p { (kept_together(text)) } }
            @if !section.charts.is_empty() {
                div.charts { @for chart in &section.charts { (line_chart(chart).render()) } }
            }
            @for table in &section.tables { (one_table(table)) }
        }
    }
}

fn one_table(table: &StudyTable) -> Markup {
    html! {
        p.small { (table.caption) }
        div.scroll { table.numbers {
            thead { tr { @for name in &table.columns { th { (name) } } } }
            tbody { @for row in &table.rows {
                tr { @for (n, cell) in row.iter().enumerate() {
                    @if n == 0 { th scope="row" { (cell.words()) } } @else { td { (kept_together(&cell.words())) } }
                } }
            } }
        } }
    }
}

fn short_bytes(value: f64) -> String {
    bytes(value.round() as u64).replace("iB", "").replace(' ', "")
}

fn line_chart(chart: &StudyChart) -> LineChart {
    let points = || chart.series.iter().flat_map(|series| &series.points);
    let low = points().map(|point| point.x).fold(f64::INFINITY, f64::min);
    let high = points().map(|point| point.x).fold(0.0, f64::max);
    let top = points().map(|point| point.y.high).fold(0.0, f64::max);
    let bottom = points().map(|point| point.y.low).fold(f64::INFINITY, f64::min);
    let x_write = if chart.x_is_bytes { short_bytes } else { short_count };
    let series = chart.series.iter().zip(LINES).map(|(series, class)| Series {
        name: series.name.clone(),
        class,
        points: series
            .points
            .iter()
            .map(|point| {
                let words = format!("{}: {}", x_write(point.x), point.y.words());
                Point { x: point.x, y: point.y.value, low: point.y.low, high: point.y.high, words }
            })
            .collect(),
    });
    LineChart {
        title: chart.title.clone(),
        x: Axis::log2(chart.x_label.clone(), low, high, x_write),
        y: Axis::around(chart.y_label.clone(), bottom, top, significant),
        series: series.collect(),
        fit: Vec::new(),
        marks: Vec::new(),
    }
}

fn short_count(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{:.0}M", v / 1e6),
        v if v >= 1e3 => format!("{:.0}k", v / 1e3),
        v if v < 10.0 => tick(v),
        v => format!("{v:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_keep_their_decimals_and_large_counts_are_short() {
        let counts = [1.0 / 32.0, 0.25, 1.5, 8.0, 64.0, 20_000.0, 3e6].map(short_count);
        assert_eq!(counts, ["0.031", "0.25", "1.5", "8", "64", "20k", "3M"]);
    }
}
