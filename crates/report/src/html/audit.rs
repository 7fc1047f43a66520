//! The page of one audit.

use flashwise_audit::{Picture, Rule};
use maud::{Markup, html};

use super::{shell, tables};
use crate::audit::AuditDocument;
use crate::svg::{Field, FieldBand, FieldChart};
use crate::text::findings;
use crate::text::headings;
use crate::text::numbers::{bytes, grouped, time};
use crate::text::words::kept_together;

/// Rules that get a colour of their own; the rest share one.
const COLOURS: [&str; 5] = ["s2", "s1", "s3", "s4", "s5"];
const OTHER: &str = "s6";
const CLEAN: &str = "host";

/// The page of one audit: what was found, then the requests by time and address.
pub fn audit_page(document: &AuditDocument) -> String {
    let audit = &document.audit;
    let title = format!("Audit of {}", document.trace);
    let body = html! {
        header {
            p.kicker { "flashwise audit · " (document.device) " · " (document.target) }
            h1 { (title) }
            p.headline { (kept_together(&findings::headline(audit))) }
            @if let Some(sentence) = findings::simulated_sentence(audit) { p.lead { (kept_together(&sentence)) } }
        }
        @if !audit.picture.marks.is_empty() {
            section {
                h2 { "Requests over time" }
                div.charts.wide { (chart(document).render()) }
                p.small { (kept_together(&scale_sentence(&audit.picture))) }
            }
        }
        section {
            h2 { (headings::AUDIT_FOUND) }
            @if let Some(partitions) = &audit.partitions {
                @for sentence in findings::partition_sentences(partitions) { p { (kept_together(&sentence)) } }
            }
            @if !audit.is_partitions_only() {
                (tables::finding_list(&audit.findings, None, audit.simulated.as_ref(), &|_| None))
            }
            (ends(document))
        }
    };
    shell::page(&title, document.flashwise_version, &body)
}

fn ends(document: &AuditDocument) -> Markup {
    let audit = &document.audit;
    let remarks = document.remarks.iter().map(|remark| findings::sentence(remark));
    let ends = [findings::kept_sentence(&audit.findings), findings::unjudged_sentence(&audit.unjudged)];
    html! { @for end in ends.into_iter().flatten().chain(remarks) { p.small { (kept_together(&end)) } } }
}

/// Colour and name of each rule that the picture shows, the costliest first.
fn legend(document: &AuditDocument) -> Vec<(Rule, &'static str)> {
    let shown = |rule: Rule| document.audit.picture.marks.iter().any(|mark| mark.rule == Some(rule));
    let rules = document.audit.findings.iter().map(|finding| finding.rule).filter(|&rule| shown(rule));
    rules.enumerate().map(|(i, rule)| (rule, COLOURS.get(i).copied().unwrap_or(OTHER))).collect()
}

fn chart(document: &AuditDocument) -> FieldChart {
    let picture = &document.audit.picture;
    let legend = legend(document);
    let class = |rule: Option<Rule>| {
        let colour = |rule| legend.iter().find(|(known, _)| *known == rule).map_or(OTHER, |(_, class)| *class);
        rule.map_or(CLEAN, colour)
    };
    let field = |mark: &flashwise_audit::Mark| {
        let rule = mark.rule.map_or("no violation".to_owned(), |rule| rule.name().to_owned());
        let words = format!("{} requests: {rule}", grouped(u64::from(mark.requests)));
        Field { x: mark.x, y: mark.y, class: class(mark.rule), words }
    };
    let band = |band: &flashwise_audit::Band| FieldBand {
        name: findings::place(&band.place),
        first_row: band.first_row,
        end_row: band.end_row,
    };
    let name = |(rule, class): &(Rule, &'static str)| (*class, rule.name().to_owned());
    let broken = legend.iter().map(name);
    FieldChart {
        title: "Requests by time and address, coloured by the costliest rule violated".to_owned(),
        legend: broken.chain([(CLEAN, "no violation".to_owned())]).collect(),
        columns: picture.columns,
        rows: picture.rows,
        x: match picture.duration_ns {
            Some(ns) => format!("time, {} in all", time(ns)),
            None => format!("requests, {} in all", grouped(picture.requests)),
        },
        y: "address".to_owned(),
        bands: picture.bands.iter().map(band).collect(),
        fields: picture.marks.iter().map(field).collect(),
    }
}

fn scale_sentence(picture: &Picture) -> String {
    let column = match picture.duration_ns {
        Some(ns) => time(ns / u64::from(picture.columns.max(1))),
        None => format!("{} requests", grouped(picture.requests.div_ceil(u64::from(picture.columns.max(1))))),
    };
    format!(
        "{} requests. One cell is {column} wide and {} high; addresses without requests are left out.",
        grouped(picture.requests),
        bytes(picture.row_bytes)
    )
}
