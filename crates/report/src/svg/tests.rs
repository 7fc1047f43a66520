//! Charts as they are written.

use super::*;

fn number(value: f64) -> String {
    value.to_string()
}

fn parse(markup: &Markup) -> usize {
    roxmltree::Document::parse(&markup.0).unwrap().descendants().count()
}

fn line_chart() -> LineChart {
    let point = |(x, y): (f64, f64)| Point { x, y, low: y - 5.0, high: y + 5.0, words: format!("{x} <&> {y}") };
    let mark = |x, label: &str| Mark { x, label: label.to_owned(), class: "s1" };
    LineChart {
        title: "Latency by <size>".to_owned(),
        x: Axis::log2("write size", 1.0, 16.0, number),
        y: Axis::from_zero("µs", 100.0, number),
        series: vec![Series {
            name: "reads".to_owned(),
            class: "s1",
            points: [(1.0, 80.0), (4.0, 50.0), (16.0, 20.0)].map(point).into(),
        }],
        fit: vec![(1.0, 82.0), (16.0, 18.0)],
        marks: vec![mark(4.0, "write unit"), mark(4.0, "stripe & chunk"), mark(8.0, ""), mark(999.0, "off the axis")],
    }
}

#[test]
fn a_line_chart_is_written_as_svg() {
    insta::assert_snapshot!(line_chart().render().0.replace("><", ">\n<"));
}

#[test]
fn a_bar_chart_is_written_as_svg() {
    let bar = |value, interval| Bar { value, interval, words: format!("{value} a second"), class: "s2" };
    let chart = BarChart {
        title: "SELECT/s".to_owned(),
        legend: Vec::new(),
        groups: vec![
            BarGroup { name: "before".to_owned(), bars: vec![bar(100.0, Some((90.0, 110.0)))] },
            BarGroup { name: "after".to_owned(), bars: vec![bar(129.0, Some((120.0, 140.0))), bar(0.0, None)] },
        ],
    };
    insta::assert_snapshot!(chart.render().0.replace("><", ">\n<"));
}

#[test]
fn every_chart_is_well_formed_and_escaped_even_when_it_is_empty() {
    assert!(parse(&line_chart().render()) > 40);
    let empty = LineChart { series: Vec::new(), marks: Vec::new(), ..line_chart() };
    assert!(parse(&empty.render()) > 10);
    let no_bars = BarChart { title: "a < b".to_owned(), legend: Vec::new(), groups: Vec::new() };
    assert!(parse(&no_bars.render()) > 2);
}

#[test]
fn labels_of_marks_at_one_place_stand_in_rows_of_their_own() {
    let markup = line_chart().render().0;
    let row = |label: &str| {
        let document = roxmltree::Document::parse(&markup).unwrap();
        let text = document.descendants().find(|n| n.has_tag_name("text") && n.text() == Some(label)).unwrap();
        text.attribute("y").unwrap().to_owned()
    };
    assert_ne!(row("write unit"), row("stripe & chunk"));
    assert!(!markup.contains("off the axis</text>"));
}
