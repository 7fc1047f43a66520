//! Pages are well-formed, complete, and nobody else's markup.

use super::*;
use crate::sample;
use crate::sample_simulation::simulation;

/// The page as XML: its only void elements are those of the head.
fn as_xml(page: &str) -> String {
    let mut xml = page.strip_prefix("<!DOCTYPE html>").unwrap().to_owned();
    for meta in ["charset=\"utf-8\">", "initial-scale=1\">", "content=\"light dark\">"] {
        xml = xml.replace(meta, &meta.replace('>', "/>"));
    }
    xml
}

fn pages() -> Vec<String> {
    let (samsung, optane) = (sample::samsung(), sample::optane());
    vec![
        comparison_page(&samsung),
        comparison_page(&optane),
        profile_page(&samsung.profile),
        profile_page(&optane.profile),
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
    c.applied[0].reason = evil.to_owned();
    c.after.label = evil.to_owned();
    c.after.integrity_check = evil.to_owned();
    c.gains[0].metric = evil.to_owned();
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
    c.after.select_rate = flashwise_tune::Rate { per_s: 0.0, low: 0.0, high: 0.0 };
    c.before.insert_rate = c.after.select_rate;
    let page = comparison_page(&c);
    roxmltree::Document::parse(&as_xml(&page)).unwrap();
    assert!(!page.contains("NaN") && !page.contains("inf\""));
}
