//! An audit of the first sample comparison's drive, as `flashwise audit` would make it.

use flashwise_audit::{Audit, Band, Mark, Picture, Place, ProcessShare, Rule, Simulated, UncheckedRule};
use flashwise_trace::FileRole;
use flashwise_truth::learned::Calibrated;

use crate::audit::AuditDocument;
use crate::sample::samsung;

const MIB: u64 = 1 << 20;

/// An audit with something broken, something kept and something open.
pub(crate) fn audit() -> AuditDocument {
    let comparison = samsung();
    let mut findings = comparison.findings;
    findings[0].processes = vec![ProcessShare { process: 1234, violations: 16_533, bytes: 64 * MIB }];
    findings[1].examples[0].file = Some("/var/lib/shop/<shop>.db".to_owned());
    findings[1].places[0].place = Place::File("/var/lib/shop/<shop>.db".to_owned());
    findings.sort_by_key(|finding| (finding.violations == 0, -finding.cost.time_ns.unwrap_or(0)));
    let near = |what: &str, profile_ns, drive_ns| Calibrated { what: what.to_owned(), profile_ns, drive_ns };
    let calibrated = vec![near("read of 4 KiB", 68_400, 68_390), near("durable write of 32 KiB", 764_000, 764_000)];
    let mark = |n: u16| Mark {
        x: n % 96,
        y: n / 4 % 48,
        rule: [None, Some(Rule::WriteWholeUnits), Some(Rule::StartWritesOnStripes)][usize::from(n % 3)],
        requests: 1 + u32::from(n),
    };
    let band = |place, first_row, end_row| Band { place, first_row, end_row };
    let audit = Audit {
        findings,
        unjudged: vec![
            UncheckedRule { rule: Rule::TouchFewPages, reason: "the drive has no flash page size".to_owned() },
            UncheckedRule { rule: Rule::AppendInFreshPages, reason: "the drive has no flash page size".to_owned() },
            UncheckedRule { rule: Rule::TrimDeadData, reason: "the drive's gain from trim is inconclusive".to_owned() },
        ],
        simulated: Some(Simulated {
            machine: None,
            window_requests: 20_000,
            trace_requests: 74_631,
            time_ns: 9_800_000_000,
            flash_bytes: 900 * MIB,
            host_bytes: 500 * MIB,
            steady_state: None,
            calibrated,
        }),
        not_simulated: None,
        picture: Picture {
            columns: 96,
            rows: 48,
            duration_ns: Some(12_000_000_000),
            requests: 20_000,
            row_bytes: 4 * MIB,
            bands: vec![
                band(Place::Role(FileRole::Database), 0, 40),
                band(Place::File("/a/very/long/path/to/a/file/of/the/log".to_owned()), 40, 48),
            ],
            marks: (0..400).map(|n| mark(n * 7 % 401)).collect(),
        },
        partitions: None,
    };
    let remarks = vec!["offsets are file offsets, before page cache and file system".to_owned()];
    let mut document = AuditDocument::new("shop.strace".to_owned(), remarks, &comparison.profile, audit);
    document.flashwise_version = "0.1.0";
    document
}
