//! The page of one `fit`.

use flashwise_tune::{Comparison, Rate, RunMeasurement};
use maud::{Markup, html};

use super::{exhibits, shell, tables};
use crate::svg::{Bar, BarChart, BarGroup};
use crate::text::numbers::{bytes, significant};
use crate::text::words::kept_together;
use crate::text::{connect, gains, headings, runs};

/// Classes of the three runs: default, checklist, best.
const RUN_CLASSES: [&str; 3] = ["run-default", "run-before", "run-after"];

/// The page of one `fit`: the result first, then how it came about.
pub fn comparison_page(c: &Comparison) -> String {
    let title = gains::title(c);
    let body = html! {
        header {
            p.kicker { "flashwise fit · " (c.database) " · " (c.target) }
            h1 { (title) }
            @for (i, sentence) in gains::headline(c, usize::MAX, true).iter().enumerate() {
                p class=(if i == 0 { "headline" } else { "lead" }) { (kept_together(sentence)) }
            }
        }
        (tiles(c))
        (tables::changes(c))
        section {
            h2 { (headings::THREE_RUNS) }
            p { (kept_together(&format!("{} {}", gains::work_sentences(c), gains::place_sentence(c)))) }
            (charts(c))
            (tables::three_runs(c))
            p { (kept_together(&gains::guarantee_sentence(c))) }
        }
        (tables::candidates(c))
        (tables::audit(c))
        (how_to_open(c))
        (was_done(c))
        (tables::parameters(&c.profile))
        (exhibits::section(&c.profile))
        (notes(c))
    };
    shell::page(&title, &c.flashwise_version, &body)
}

/// The numbers to take home: those of the recommendation, confirmed.
fn tiles(c: &Comparison) -> Markup {
    let tile = |name: &str, from: &str, to: &str| {
        let confirmed = runs::confirmed_interval(c, from, to)?;
        Some((name.to_owned(), confirmed))
    };
    let best = if c.best.label == c.checklist.label { headings::RUNS[1] } else { headings::RUNS[2] };
    let tiles = match c.gain {
        // Figures that nothing is to be done about are no cards.
        None => Vec::new(),
        Some(_) => [
            tile("best, over the present settings", headings::RUNS[0], best),
            tile("the usual checklist, over the present settings", headings::RUNS[0], headings::RUNS[1]),
            tile("best, over the checklist", headings::RUNS[1], best),
        ]
        .into_iter()
        .flatten()
        .collect(),
    };
    html! {
        @if !tiles.is_empty() {
            div.tiles {
                @for (n, (name, (value, interval))) in tiles.iter().enumerate() {
                    div.tile {
                        p.name { (name) }
                        p class={ "change " (if n == 0 { "good" } else { "" }) } { (value) }
                        p.small { (kept_together(&format!("{} interval {interval}", gains::confidence(c)))) }
                    }
                }
            }
        }
    }
}

fn how_to_open(c: &Comparison) -> Markup {
    let snippets = connect::snippets(c);
    html! {
        @if !snippets.is_empty() {
            section {
                h2 { (headings::OPEN) }
                div.scroll { table { tbody {
                    @for (language, text) in &snippets {
                        tr { th scope="row" { (language) } td.words { code { (text) } } }
                    }
                } } }
            }
        }
    }
}

fn was_done(c: &Comparison) -> Markup {
    html! {
        @if let Some(changed) = &c.changed {
            section {
                h2 { (headings::WAS_DONE) }
                p { (kept_together(&gains::changed_sentence(changed))) }
                ul { @for step in &changed.steps { li { code { (step) } } } }
            }
        }
    }
}

fn charts(c: &Comparison) -> Markup {
    html! {
        div.charts.three {
            (rate_chart(c, "SELECTs a second", |r| r.select_rate).render())
            (rate_chart(c, "INSERTs a second", |r| r.insert_rate).render())
            (bytes_chart(c).render())
        }
    }
}

fn group_name(name: &str, run: &RunMeasurement) -> String {
    format!("{name} · {}", run.label)
}

fn rate_chart(c: &Comparison, title: &str, rate: impl Fn(&RunMeasurement) -> Rate) -> BarChart {
    let group = |((name, run), class): ((&str, &RunMeasurement), &'static str)| {
        let Rate { per_s, low, high } = rate(run);
        let bar = Bar { value: per_s, interval: Some((low, high)), words: significant(per_s), class };
        BarGroup { name: group_name(name, run), bars: vec![bar] }
    };
    let names = headings::RUNS.into_iter().zip(runs::runs(c));
    let title = format!("{title}, with 95 % intervals");
    BarChart { title, legend: Vec::new(), groups: names.zip(RUN_CLASSES).map(group).collect() }
}

fn bytes_chart(c: &Comparison) -> BarChart {
    let bar = |value: u64, class| Bar { value: value as f64, interval: None, words: bytes(value), class };
    let group = |(name, run): (&str, &RunMeasurement)| {
        let host = bar(run.host_bytes_written, "host");
        let flash = run.flash_bytes_programmed.map(|b| bar(b, "flash"));
        BarGroup { name: group_name(name, run), bars: [host].into_iter().chain(flash).collect() }
    };
    let groups: Vec<_> = headings::RUNS.into_iter().zip(runs::runs(c)).map(group).collect();
    let is_reported = c.best.flash_bytes_programmed.is_some();
    let (title, legend) = match is_reported {
        true => ("Bytes written by the host and programmed into flash", vec![("host", "host"), ("flash", "flash")]),
        false => ("Bytes written by the host (the drive does not report what its flash programmed)", Vec::new()),
    };
    BarChart { title: title.to_owned(), legend, groups }
}

fn notes(c: &Comparison) -> Markup {
    html! {
        section {
            h2 { (headings::NOTES) }
            ul {
                @for note in c.notes.iter().chain([&c.search.times]) { li { (kept_together(note)) } }
                li { (gains::WHERE_IT_PAYS) }
            }
        }
    }
}
