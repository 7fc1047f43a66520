//! The audit of real traces, used where they lie; a test whose trace is absent says so.

use crate::support;
use std::path::Path;

use flashwise_audit::{Audit, AuditOptions, Rule, audit_trace};
use flashwise_profile::DeviceProfile;
use flashwise_trace::{ReadOptions, TraceReader};
use support::shared;

fn audited(path: &Path) -> Audit {
    let profile = DeviceProfile::from_toml(include_str!("../toshiba.toml"), "toshiba.toml").unwrap();
    let mut reader = TraceReader::open(path, &ReadOptions::default()).unwrap();
    let options = AuditOptions { window_requests: 5_000, ..AuditOptions::default() };
    audit_trace(&mut reader, &profile, &options, None).unwrap()
}

fn counts(audit: &Audit, rule: Rule) -> (u64, u64) {
    let found = audit.findings.iter().find(|finding| finding.rule == rule).unwrap();
    (found.violations, found.requests)
}

fn why_open(audit: &Audit, rule: Rule) -> &str {
    &audit.unjudged.iter().find(|open| open.rule == rule).unwrap().reason
}

#[test]
fn a_virtual_machine_writes_mostly_off_the_unit_and_its_costs_are_of_the_window() {
    let Some(path) = shared("cloudPhysicsIO.csv.gz") else { return };
    let audit = audited(&path);
    assert_eq!(counts(&audit, Rule::WriteWholeUnits), (50_345, 66_898));
    let simulated = audit.simulated.as_ref().unwrap();
    assert_eq!((simulated.window_requests, simulated.trace_requests), (5_000, 113_872));
    assert!(why_open(&audit, Rule::WriteOnce).contains("neither file names nor content hashes"));
    assert!(why_open(&audit, Rule::ReadInParallel).contains("no completion times"));
}

#[test]
fn the_traces_of_mqsim_are_judged_as_traces_of_a_device() {
    // What a search engine reads is judged, and no setting of its system would change it.
    let traces = [("mqsim/tpcc-small.trace.gz", 6_999, true), ("mqsim/wsrch-small.trace.gz", 24_783, false)];
    for (name, requests, is_violated) in traces {
        let Some(path) = shared(name) else { continue };
        let audit = audited(&path);
        assert_eq!(audit.simulated.as_ref().unwrap().trace_requests, requests, "{name}");
        assert_eq!(audit.is_violated(), is_violated, "{name}");
        assert!(audit.findings.iter().any(|finding| finding.violations > 0), "{name}");
        assert!(why_open(&audit, Rule::PagesOfWriteUnit).contains("which file is the database"), "{name}");
    }
}

#[test]
fn a_trace_of_reads_breaks_no_rule_of_writes() {
    let Some(path) = shared("lirs/2_pools.trace.gz") else { return };
    let audit = audited(&path);
    for rule in [Rule::WriteWholeUnits, Rule::StartWritesOnStripes, Rule::TouchFewPages, Rule::SyncLessOften] {
        assert_eq!(counts(&audit, rule), (0, 0), "{rule:?}");
    }
    assert_eq!(counts(&audit, Rule::ReadChunksAtHotLocations), (0, 100_000), "pages of 4 KiB are chunks of this drive");
}
