//! Pages are well-formed and complete, and escape foreign markup.

use flashwise_profile::{Evidence, Figure, ProbeCurve, ProbePoint};

use super::*;
use crate::sample;
use crate::sample_audit::audit;
use crate::sample_simulation::{simulation, simulation_with_life};

/// The page as XML: its only void elements are those of the head.
fn as_xml(page: &str) -> String {
    let xml = page.strip_prefix("<!DOCTYPE html>").unwrap();
    let mut parts = xml.split("<meta ");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |xml, part| xml + "<meta " + &part.replacen('>', "/>", 1))
}

fn pages() -> Vec<String> {
    let (samsung, optane) = (sample::samsung(), sample::optane());
    vec![
        comparison_page(&samsung),
        comparison_page(&optane),
        profile_page(&samsung.profile),
        profile_page(&optane.profile),
        profile_page(&probed()),
        simulation_page(&simulation()),
    ]
}

/// The words of a page, an element a line.
fn words(page: &str) -> String {
    let xml = as_xml(page);
    let document = roxmltree::Document::parse(&xml).unwrap();
    let body = document.descendants().find(|n| n.has_tag_name("main")).unwrap();
    let texts = body.descendants().filter(|n| n.is_text() && !n.ancestors().any(|a| a.has_tag_name("svg")));
    texts.filter_map(|n| n.text()).collect::<Vec<_>>().join("\n").replace(crate::text::words::KEPT_SPACE, " ")
}

#[test]
fn every_page_is_well_formed_and_needs_nothing_from_elsewhere() {
    for page in pages() {
        let xml = as_xml(&page);
        roxmltree::Document::parse(&xml).unwrap();
        for foreign in ["http:", "https:", "<script", "<link", "<img", "url(", "@import", "javascript:"] {
            assert!(!page.contains(foreign), "{foreign}");
        }
        assert!(!page.contains("NaN") && !page.contains(">inf"));
    }
}

#[test]
fn the_page_of_a_fit_says_the_result_first() {
    insta::assert_snapshot!(words(&comparison_page(&sample::samsung())));
}

#[test]
fn the_page_of_a_fit_groups_the_changes_by_cost_marks_the_front_and_explains_the_parameters() {
    let page = words(&comparison_page(&sample::longest()));
    let groups =
        ["In each connection", "In the file", "Needs flashwise's VFS", "Needs a conversion", "Changes a guarantee"];
    let places: Vec<Option<usize>> = groups.iter().map(|group| page.find(&format!("\n{group}"))).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}: {page}");
    assert_eq!(page.matches("\nfront").count(), 4, "{page}");
    assert!(page.contains("α: reads a second ÷ writes a second"), "{page}");
    assert!(page.contains("/srv/shop/data/orders.db on Samsung 960 EVO"), "{page}");
    assert!(!page.contains("interval +"), "an interval has the unit of its value: {page}");
}

#[test]
fn the_page_of_a_simulation_has_its_figures_and_all_its_plots() {
    let page = simulation_page(&simulation());
    insta::assert_snapshot!(words(&page));
    assert_eq!(page.matches("<svg").count(), 1 + 4 + 1);
}

#[test]
fn the_page_of_a_drive_with_nothing_to_gain_says_so_first() {
    insta::assert_snapshot!(words(&comparison_page(&sample::optane())));
}

#[test]
fn a_fit_of_an_ordinary_drive_has_all_its_plots() {
    let plots = |page: &str| page.matches("<svg").count();
    let samsung = sample::samsung();
    assert_eq!(plots(&profile_page(&samsung.profile)), 2 + 4 + 2);
    assert_eq!(plots(&comparison_page(&samsung)), 3 + 2 + 4 + 2);
}

/// A drive with curves of single probes: one with a figure, one that a figure names by its probe, one that none names.
fn probed() -> DeviceProfile {
    let mut profile = sample::samsung().profile;
    let point =
        |i: u32| ProbePoint { x: f64::from(i), y: f64::from(i), low: f64::from(i) * 0.9, high: f64::from(i) * 1.1 };
    let curve = |name: &str, x: &str, y: &str| ProbeCurve {
        name: name.to_owned(),
        x: x.to_owned(),
        y: y.to_owned(),
        points: (0..20).map(point).collect(),
        fit: vec![(0.0, 4.0), (19.0, 19.5)],
    };
    profile.curves.probes = vec![
        curve("write burst", "time, ms", "acknowledged, MiB"),
        curve("random overwrites", "overwritten, times the drive", "write amplification"),
        curve("left over", "x", "y"),
    ];
    let evidence = |figure: &str, recipe: &str, reason: &str, curve: Option<&str>| Evidence {
        figure: figure.to_owned(),
        recipe: recipe.to_owned(),
        reason: reason.to_owned(),
        left_out: false,
        not_tried: false,
        curve: curve.map(str::to_owned),
    };
    profile.evidence.extend([
        evidence("write_unit_bytes", "durable writes", "multiples of 32 KiB waste nothing", None),
        evidence("write_buffer_bytes", "writes in order", "the line ends there", Some("write burst")),
        evidence("over_provisioning", "writes until steady", "the first change", Some("random overwrites")),
        evidence("write_amplification_uniform", "writes until steady", "no trend", None),
        evidence("flush_ns", "flushes of one block", "they take 754 µs", None),
    ]);
    profile.parameters.write_buffer_bytes = Figure::certain(4 << 20, 4 << 20, 5 << 20);
    profile.parameters.over_provisioning = Figure::certain(0.275, 0.261, 0.288);
    profile.parameters.write_amplification_uniform = Figure::inconclusive(2.5, 2.2, 2.8);
    profile.parameters.flush_ns = Figure::certain(742_000, 710_000, 775_000);
    profile
}

/// The words of the exhibit whose chart has a title.
fn exhibit_of(page: &str, title: &str) -> String {
    let xml = as_xml(page);
    let document = roxmltree::Document::parse(&xml).unwrap();
    let caption = document.descendants().find(|n| n.has_tag_name("figcaption") && n.text() == Some(title)).unwrap();
    let is_exhibit = |n: &roxmltree::Node| n.attribute("class").is_some_and(|class| class.starts_with("exhibit"));
    let exhibit = caption.ancestors().find(is_exhibit).unwrap();
    exhibit.descendants().filter_map(|n| n.text().filter(|_| n.is_text())).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_page_of_a_drive_tells_each_figure_with_its_curve() {
    insta::assert_snapshot!(words(&profile_page(&probed())));
}

#[test]
fn every_curve_of_a_drive_is_drawn_once() {
    let page = profile_page(&probed());
    assert_eq!(page.matches("<svg").count(), 2 + 4 + 2 + 3);
    assert_eq!(page.matches("line fit").count(), 3);
    assert!(page.contains("Other curves") && page.contains("Left over"));
}

#[test]
fn a_figure_stands_beside_the_curve_that_it_was_read_from() {
    let page = profile_page(&probed());
    let burst = exhibit_of(&page, "Write burst");
    assert!(
        burst.contains("write buffer") && burst.contains("The line ends there") && burst.contains("Writes in order")
    );
    assert!(!burst.contains("754"));
    let overwrites = exhibit_of(&page, "Random overwrites");
    assert!(overwrites.contains("WA, uniform writes"), "a figure of the same probe: {overwrites}");
    assert!(exhibit_of(&page, "Latency of one durable write by size").contains("write unit"));
}

#[test]
fn a_figure_without_a_curve_is_told_with_its_probe_and_its_reason() {
    let page = words(&profile_page(&probed()));
    assert!(page.contains("They take 754 µs.") && page.contains("Flushes of one block."), "{page}");
}

#[test]
fn the_page_of_an_audit_draws_the_requests_in_the_colours_of_the_rules() {
    let document = audit();
    let page = audit_page(&document);
    roxmltree::Document::parse(&as_xml(&page)).unwrap();
    assert!(!page.contains("<shop>"), "names of files are escaped");
    assert_eq!(page.matches("<rect").count(), document.audit.picture.marks.len());
    assert!(page.contains("…g/path/to/a/file/of/the/log"), "a long name keeps its end: {page}");
    let page = words(&page);
    assert!(page.contains("3 of the 4 rules that could be checked are violated, costliest first."), "{page}");
    assert!(page.contains("write-whole-units") && page.contains("no violation"), "{page}");
}

#[test]
fn everything_that_comes_from_outside_is_escaped() {
    let mut c = sample::samsung();
    let evil = "<script>alert('&\"')</script>";
    c.target = evil.to_owned();
    c.database = evil.to_owned();
    c.workload.summary = evil.to_owned();
    c.profile.device.name = evil.to_owned();
    c.profile.device.target = evil.to_owned();
    c.flashwise_version = evil.to_owned();
    c.notes = vec![evil.to_owned()];
    c.findings[0].statement = evil.to_owned();
    c.findings[0].remedy = evil.to_owned();
    c.proposals[0].reason = evil.to_owned();
    c.candidates[0].label = evil.to_owned();
    c.file = Some(evil.to_owned());
    c.uri = Some(evil.to_owned());
    c.best.label = evil.to_owned();
    c.best.integrity_check = evil.to_owned();
    c.gains[0].metric = evil.to_owned();
    c.profile.evidence[0].reason = evil.to_owned();
    c.profile.evidence[0].recipe = evil.to_owned();
    let ProbeCurve { points, fit, .. } = probed().curves.probes.remove(0);
    let [name, x, y] = [evil; 3].map(str::to_owned);
    c.profile.curves.probes.push(ProbeCurve { name, x, y, points, fit });
    for page in [comparison_page(&c), profile_page(&c.profile)] {
        assert!(!page.contains("<script"));
        roxmltree::Document::parse(&as_xml(&page)).unwrap();
    }
}

#[test]
fn odd_numbers_draw_odd_plots_but_never_break_a_page() {
    let mut c = sample::samsung();
    c.profile.curves.location[0].step_bytes = 0;
    c.profile.curves.location[1].latency_ns.clear();
    c.profile.curves.durable_write.truncate(1);
    c.profile.curves.throughput[0].points.clear();
    c.profile.curves.throughput[1].points.truncate(1);
    c.best.select_rate = flashwise_tune::Rate { per_s: 0.0, low: 0.0, high: 0.0 };
    c.checklist.insert_rate = c.best.select_rate;
    let page = comparison_page(&c);
    roxmltree::Document::parse(&as_xml(&page)).unwrap();
    assert!(!page.contains("NaN") && !page.contains("inf\""));
}

#[test]
fn the_page_of_a_drive_that_wears_out_has_its_life() {
    let page = simulation_page(&simulation_with_life());
    assert!(page.contains("<h2>Life</h2>") && page.contains("contribution"), "{page}");
    assert!(page.contains("garbage collection</th><td>× 0.50</td>"), "{page}");
    assert!(!simulation_page(&simulation()).contains("<h2>Life</h2>"));
}
