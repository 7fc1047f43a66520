//! Charts as SVG, written by hand: small, without script, coloured by the page's own style sheet.
//!
//! A chart is a `<figure>`: a caption, a legend where there is more than one series, and an `<svg>` of a fixed shape
//! that scales with its column. Each point carries its numbers as a `<title>`, which browsers show on hover and
//! screen readers read.

mod bars;
mod fields;
mod line;
mod scale;

pub(crate) use bars::{Bar, BarChart, BarGroup};
pub(crate) use fields::{Field, FieldBand, FieldChart};
pub(crate) use line::{LineChart, Mark, Point, Series};
pub(crate) use scale::Axis;

use maud::{Markup, html};

/// A number with a tenth of a unit, which is as fine as anybody sees.
fn at(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// A figure around the drawing: caption, legend, and the frame that scales.
fn figure(title: &str, legend: &[(&str, &str)], description: &str, size: (f64, f64), drawing: &Markup) -> Markup {
    html! {
        figure.chart {
            figcaption { (title) }
            @if legend.len() > 1 {
                ul.legend {
                    @for (class, name) in legend {
                        li { span class={ "swatch " (class) } {} (name) }
                    }
                }
            }
            svg viewBox={ "0 0 " (at(size.0)) " " (at(size.1)) } role="img" aria-label={ (title) ": " (description) } {
                (drawing)
            }
        }
    }
}

#[cfg(test)]
mod tests;
