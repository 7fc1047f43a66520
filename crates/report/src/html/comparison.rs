//! The page of one `fit`.

use flashwise_tune::{Comparison, Rate, RunMeasurement};
use maud::{Markup, html};

use super::{exhibits, shell, tables};
use crate::svg::{Bar, BarChart, BarGroup};
use crate::text::numbers::{bytes, significant};
use crate::text::words::kept_together;
use crate::text::{gains, headings, runs};

/// Classes of the three runs: default, before, after.
const RUN_CLASSES: [&str; 3] = ["run-default", "run-before", "run-after"];

/// The page of one `fit`: the result first, then how it came about.
pub fn comparison_page(c: &Comparison) -> String {
    let title = format!("{} on {}", c.database, c.profile.device.name);
    let body = html! {
        header {
            p.kicker { "flashwise fit · " (c.target) }
            h1 { (title) }
            @for (i, sentence) in gains::headline(c).iter().enumerate() {
                p class=(if i == 0 { "headline" } else { "lead" }) { (kept_together(sentence)) }
            }
        }
        (tiles(c))
        section {
            h2 { (headings::BEFORE_AND_AFTER) }
            p { (kept_together(&gains::work_sentences(c))) }
            (charts(c))
            (tables::before_and_after(c))
            ul { @for gain in &c.gains { li { (kept_together(&gains::gain_sentence(gain))) } } }
        }
        (tables::applied(c))
        (tables::parameters(&c.profile))
        (exhibits::section(&c.profile))
        (tables::audit(c))
        (notes(c))
    };
    shell::page(&title, &c.flashwise_version, &body)
}

/// The numbers to take home.
fn tiles(c: &Comparison) -> Markup {
    let rows = runs::run_rows(c);
    let told = ["SELECT/s", "INSERT/s", "write amplification"];
    html! {
        div.tiles {
            @for row in rows.iter().filter(|row| told.contains(&row.name) && row.cells[2].value != runs::NOT_TOLD) {
                div.tile {
                    p.name { (row.name) }
                    p class={ "change " (tables::better_class(row.change.better)) } { (row.change.text) }
                    p.values { (row.cells[1].value) " → " (row.cells[2].value) }
                    @if let Some(interval) = &row.change.interval { p.small { (kept_together(&format!("95 % interval {interval}"))) } }
                }
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
    let tells = c.after.flash_bytes_programmed.is_some();
    let (title, legend) = match tells {
        true => ("Bytes written by the host and programmed into flash", vec![("host", "host"), ("flash", "flash")]),
        false => ("Bytes written by the host (the drive does not report what its flash programmed)", Vec::new()),
    };
    BarChart { title: title.to_owned(), legend, groups }
}

fn notes(c: &Comparison) -> Markup {
    html! {
        @if !c.notes.is_empty() {
            section {
                h2 { (headings::NOTES) }
                ul { @for note in &c.notes { li { (kept_together(note)) } } }
            }
        }
    }
}
