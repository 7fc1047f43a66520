//! Where each figure of a drive comes from: its curve, what the probe did, and what was read off.
//!
//! ```text
//!   Evidence of a figure ─▶ Source: a probe's curve, one of the profile's own lists, or the probe alone
//!   figures of a group with one source ─▶ Exhibit: charts, and beside them the figures with probe and reason
//!   curves that no figure names ─▶ exhibits of their own at the end: everything that was measured is drawn
//! ```

use flashwise_profile::{DeviceProfile, Entry, Evidence, LocationCurve};
use maud::{Markup, html};

use super::{plots, probe_plots, tables};
use crate::svg::LineChart;
use crate::text::findings::sentence;
use crate::text::parameters::{self, ParameterRow};
use crate::text::words::kept_together;

/// What a figure was read from.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Source<'a> {
    DurableWrite,
    ReadBack,
    Locations,
    Pages,
    /// Throughput of requests of this length, bytes.
    Throughput(u64),
    /// A curve among those of the probes, by its name.
    Probe(&'a str),
    /// No curve; what was done to the drive.
    Recipe(&'a str),
}

/// Figures with one source.
struct Exhibit<'a> {
    source: Source<'a>,
    figures: Vec<(&'a ParameterRow, Option<&'a Evidence>)>,
}

/// Every curve of the profile and every figure that somebody looked for.
pub(super) fn section(profile: &DeviceProfile) -> Markup {
    let groups = parameters::parameter_groups(profile);
    let told: Vec<_> = groups.iter().map(|(group, rows)| (group.title, exhibits(profile, rows))).collect();
    let shown: Vec<Source> = told.iter().flat_map(|(_, exhibits)| exhibits).map(|e| e.source).collect();
    let further: Vec<_> = sources(profile).into_iter().filter(|source| !shown.contains(source)).collect();
    let told: Vec<_> = told.into_iter().filter(|(_, exhibits)| !exhibits.is_empty()).collect();
    html! {
        @if !told.is_empty() || !further.is_empty() {
            section {
                h2 { "Evidence for each figure" }
                @for (title, exhibits) in &told {
                    h3 { (title) }
                    @for exhibit in exhibits { (draw(profile, exhibit)) }
                }
                @if !further.is_empty() {
                    h3 { "Other curves" }
                    div.charts {
                        @for chart in further.iter().flat_map(|source| charts(profile, *source, &[])) { (chart.render()) }
                    }
                }
            }
        }
    }
}

/// The figures of a group by their sources, those with a curve first.
fn exhibits<'a>(profile: &'a DeviceProfile, rows: &'a [ParameterRow]) -> Vec<Exhibit<'a>> {
    let mut exhibits: Vec<Exhibit> = Vec::new();
    for row in rows {
        let evidence = profile.evidence.iter().find(|evidence| evidence.figure == row.key);
        let Some(source) = source_of(profile, row.key, evidence) else { continue };
        match exhibits.iter_mut().find(|exhibit| exhibit.source == source) {
            Some(exhibit) => exhibit.figures.push((row, evidence)),
            None => exhibits.push(Exhibit { source, figures: vec![(row, evidence)] }),
        }
    }
    exhibits.sort_by_key(|exhibit| matches!(exhibit.source, Source::Recipe(_)));
    exhibits
}

/// The source of a figure; `None` where the profile says nothing of it.
fn source_of<'a>(profile: &'a DeviceProfile, key: &str, evidence: Option<&'a Evidence>) -> Option<Source<'a>> {
    let available = sources(profile);
    let own = match key {
        "write_unit_bytes" => Some(Source::DurableWrite),
        "stripe_bytes" => Some(Source::ReadBack),
        "chunk_bytes" | "hot_location" => Some(Source::Locations),
        "page_bytes" => Some(Source::Pages),
        "asymmetry_4k" | "read_concurrency_4k" | "write_concurrency_4k" => Some(Source::Throughput(4096)),
        "asymmetry_8k" | "read_concurrency_8k" | "write_concurrency_8k" => Some(Source::Throughput(8192)),
        _ => evidence.and_then(|evidence| probe_of(profile, evidence)).map(Source::Probe),
    };
    own.filter(|own| available.contains(own)).or_else(|| Some(Source::Recipe(&evidence?.recipe)))
}

/// The curve that a figure names, or that another figure of the same probe names.
fn probe_of<'a>(profile: &'a DeviceProfile, evidence: &'a Evidence) -> Option<&'a str> {
    let same = profile.evidence.iter().filter(|other| other.recipe == evidence.recipe);
    evidence.curve.as_deref().or_else(|| same.filter_map(|other| other.curve.as_deref()).next())
}

/// Everything that has a curve.
fn sources(profile: &DeviceProfile) -> Vec<Source<'_>> {
    let curves = &profile.curves;
    let pages = page_curve(profile);
    let locations = (0..curves.location.len()).any(|i| Some(i) != pages);
    let mut lengths: Vec<u64> = curves.throughput.iter().map(|curve| curve.request_bytes).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let own = [
        (!curves.durable_write.is_empty(), Source::DurableWrite),
        (!curves.read_back.is_empty(), Source::ReadBack),
        (locations, Source::Locations),
        (pages.is_some(), Source::Pages),
    ];
    let own = own.into_iter().filter(|(is_there, _)| *is_there).map(|(_, source)| source);
    let throughput = lengths.into_iter().map(Source::Throughput);
    own.chain(throughput).chain(curves.probes.iter().map(|curve| Source::Probe(&curve.name))).collect()
}

/// Where the page's curve is among the locations: reads of two blocks, moved block by block, after the longer reads.
fn page_curve(profile: &DeviceProfile) -> Option<usize> {
    profile.evidence.iter().find(|evidence| evidence.figure == "page_bytes")?;
    let block = profile.device.logical_block_bytes;
    let is_of_pages = |curve: &LocationCurve| {
        curve.step_bytes == block && Some(curve.read_bytes) == block.checked_mul(2) && !curve.latency_ns.is_empty()
    };
    profile.curves.location.iter().rposition(is_of_pages)
}

fn charts(profile: &DeviceProfile, source: Source<'_>, figures: &[Entry]) -> Vec<LineChart> {
    let curves = &profile.curves;
    let pages = page_curve(profile);
    match source {
        Source::DurableWrite => plots::durable_write(profile).into_iter().collect(),
        Source::ReadBack => plots::read_back(profile).into_iter().collect(),
        Source::Locations => {
            let others = curves.location.iter().enumerate().filter(|(i, _)| Some(*i) != pages);
            let drawn = others.filter(|(_, curve)| !curve.latency_ns.is_empty());
            drawn.map(|(_, curve)| plots::location(profile, curve)).collect()
        }
        Source::Pages => pages.into_iter().map(|i| plots::unmarked_location(&curves.location[i])).collect(),
        Source::Throughput(length) => plots::throughput(profile, length).into_iter().collect(),
        Source::Probe(name) => {
            let curve = curves.probes.iter().find(|curve| curve.name == name);
            curve.and_then(|curve| probe_plots::chart(curve, figures)).into_iter().collect()
        }
        Source::Recipe(_) => Vec::new(),
    }
}

fn draw(profile: &DeviceProfile, exhibit: &Exhibit<'_>) -> Markup {
    let keys: Vec<_> = exhibit.figures.iter().map(|(row, _)| row.key).collect();
    let entries: Vec<Entry> = profile.probed_entries().filter(|entry| keys.contains(&entry.key)).collect();
    let charts = charts(profile, exhibit.source, &entries);
    let form = match charts.len() {
        0 => "bare",
        1 => "beside",
        _ => "below",
    };
    html! {
        div class={ "exhibit " (form) } {
            @if !charts.is_empty() { div.charts { @for chart in &charts { (chart.render()) } } }
            (read_off(exhibit))
        }
    }
}

/// The figures of an exhibit with their reasons and their probe; a reason or probe that all share appears once.
fn read_off(exhibit: &Exhibit<'_>) -> Markup {
    let reasons: Vec<&str> = exhibit.figures.iter().filter_map(|(_, e)| e.map(|e| e.reason.as_str())).collect();
    let recipes = distinct(exhibit.figures.iter().filter_map(|(_, e)| e.map(|e| e.recipe.as_str())));
    let common = distinct(reasons.iter().copied()).len() == 1 && reasons.len() == exhibit.figures.len();
    html! {
        div.evidence {
            dl {
                @for (row, evidence) in &exhibit.figures {
                    dt { (row.name) }
                    dd class=(tables::verdict_class(row.verdict)) {
                        b { (row.value) } " " span.interval { (row.interval) } " " span.verdict { (row.verdict_text) }
                        @if let Some(evidence) = evidence.filter(|_| !common) { p { (told(&evidence.reason)) } }
                    }
                }
            }
            @if let Some(reason) = reasons.first().filter(|_| common) { p { (told(reason)) } }
            @for recipe in recipes { p.how { b { "Probe" } " " (told(recipe)) } }
        }
    }
}

fn told(text: &str) -> String {
    kept_together(&sentence(text))
}

fn distinct<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    texts.for_each(|text| {
        if !seen.contains(&text) {
            seen.push(text);
        }
    });
    seen
}
