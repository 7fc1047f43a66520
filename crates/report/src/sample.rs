//! Two comparisons as a run would make them: a drive with much to gain, and one with nothing.

use flashwise_audit::{Cost, Example, Finding, Judgement, Place, PlaceShare, Rule};
use flashwise_block::{Clock, Operation, Percentiles};
use flashwise_profile::*;
use flashwise_trace::FileRole;
use flashwise_tune::sqlite::Objective;
use flashwise_tune::*;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

fn exactly<T: Copy>(value: T) -> Figure<T> {
    Figure::certain(value, value, value)
}

fn median(us: f64) -> MedianNs {
    let ns = |factor: f64| (us * 1000.0 * factor) as u64;
    MedianNs { median: ns(1.0), low: ns(0.97), high: ns(1.04) }
}

/// Points at 1, 2, 4, … 512 KiB.
fn by_size(us: [f64; 10]) -> impl Iterator<Item = (u64, MedianNs)> {
    us.into_iter().enumerate().map(|(i, us)| ((1 << i) * KIB, median(us)))
}

fn throughput(operation: Operation, request_kib: u64, peak: f64, knee: f64) -> ThroughputCurve {
    let point = |i: u32| {
        let (in_flight, jitter) = (1_u32 << i, 1.0 + f64::from(i % 3) * 0.01);
        let iops = (peak * (1.0 - (-2.4 * f64::from(in_flight) / knee).exp()) * jitter).round();
        ThroughputPoint { in_flight, iops, low: (iops * 0.96).round(), high: (iops * 1.03).round() }
    };
    ThroughputCurve { operation, request_bytes: request_kib * KIB, points: (0..9).map(point).collect() }
}

fn location(read_kib: u64, us: impl Fn(f64) -> f64) -> LocationCurve {
    let latency_ns = (0..32).map(|i| median(us((i % 16) as f64 / 16.0))).collect();
    LocationCurve { read_bytes: read_kib * KIB, step_bytes: 4 * KIB, latency_ns }
}

fn device(target: &str, name: &str, capacity_bytes: u64) -> DeviceIdentity {
    let (target, name) = (target.to_owned(), name.to_owned());
    DeviceIdentity {
        target,
        name,
        capacity_bytes,
        logical_block_bytes: 512,
        clock: Clock::Virtual,
        promised_atomic_write_bytes: None,
    }
}

fn recipe() -> Recipe {
    Recipe {
        seed: 0,
        region_bytes: GIB,
        bytes_written: 14 * GIB,
        bytes_read: 39 * GIB + 400 * MIB,
        device_time_ns: 182_400_000_000,
        probes: Vec::new(),
    }
}

fn samsung_profile() -> DeviceProfile {
    let valley = |depth: f64, floor: f64| move |x: f64| floor + depth * (2.0 * (x - 0.5)).abs();
    DeviceProfile {
        schema: SCHEMA.to_owned(),
        schema_version: SCHEMA_VERSION,
        flashwise_version: "0.1.0".to_owned(),
        device: device("sim:samsung-960-evo", "Samsung 960 EVO (simulated)", 512 * GIB),
        recipe: recipe(),
        limits: Default::default(),
        card: Default::default(),
        wear: Default::default(),
        at_sizes: vec![AtSize {
            request_bytes: 16 * KIB,
            asymmetry: Figure::certain(1.35, 1.29, 1.41),
            latency_asymmetry: Figure::certain(0.27, 0.26, 0.28),
            read_concurrency: Figure::certain(18, 17, 19),
            write_concurrency: Figure::inconclusive(6, 4, 9),
        }],
        parameters: Parameters {
            write_unit_bytes: exactly(32 * KIB),
            stripe_bytes: exactly(64 * KIB),
            chunk_bytes: exactly(64 * KIB),
            page_bytes: Figure::absent(),
            hot_location: exactly(HotLocation { period_bytes: 64 * KIB, offset_bytes: 32 * KIB }),
            asymmetry_4k: Figure::certain(2.84, 2.79, 2.90),
            read_concurrency_4k: Figure::certain(64, 64, 80),
            write_concurrency_4k: Figure::inconclusive(8, 4, 16),
            asymmetry_8k: Figure::certain(1.93, 1.88, 1.97),
            read_concurrency_8k: Figure::certain(32, 32, 48),
            write_concurrency_8k: Figure::unknown(),
            ..Parameters::default()
        },
        evidence: vec![Evidence {
            figure: "write_concurrency_8k".to_owned(),
            recipe: "random 8 KiB writes, 1 to 256 in flight".to_owned(),
            reason: "throughput still grew at the largest depth".to_owned(),
            left_out: false,
            not_tried: false,
            curve: None,
        }],
        curves: Curves {
            probes: Vec::new(),
            durable_write: by_size([118., 118., 119., 126., 139., 164., 316., 622., 1234., 2460.])
                .map(|(write_bytes, latency_ns)| DurableWritePoint { write_bytes, latency_ns })
                .collect(),
            read_back: by_size([905., 905., 902., 880., 790., 610., 402., 401., 403., 401.])
                .map(|(write_bytes, latency_ns)| ReadBackPoint { write_bytes, read_bytes: 512 * KIB, latency_ns })
                .collect(),
            location: vec![
                location(4, |_| 82.0),
                location(16, valley(24.0, 104.0)),
                location(32, valley(62.0, 131.0)),
                location(64, valley(128.0, 186.0)),
            ],
            throughput: vec![
                throughput(Operation::Read, 4, 330_000.0, 64.0),
                throughput(Operation::Write, 4, 116_000.0, 8.0),
                throughput(Operation::Read, 8, 205_000.0, 32.0),
                throughput(Operation::Write, 8, 106_000.0, 7.0),
            ],
        },
    }
}

fn optane_profile() -> DeviceProfile {
    let samsung = samsung_profile();
    DeviceProfile {
        device: device("sim:intel-optane-905p", "Intel Optane 905P (simulated)", 480 * GIB),
        limits: Default::default(),
        card: Default::default(),
        wear: Default::default(),
        at_sizes: Vec::new(),
        parameters: Parameters {
            write_unit_bytes: exactly(KIB),
            stripe_bytes: Figure::absent(),
            chunk_bytes: exactly(4 * KIB),
            page_bytes: exactly(4 * KIB),
            hot_location: exactly(HotLocation { period_bytes: 4 * KIB, offset_bytes: 0 }),
            asymmetry_4k: Figure::certain(1.08, 1.05, 1.10),
            read_concurrency_4k: exactly(6),
            write_concurrency_4k: exactly(5),
            asymmetry_8k: Figure::certain(1.02, 0.99, 1.04),
            read_concurrency_8k: exactly(4),
            write_concurrency_8k: exactly(4),
            ..Parameters::default()
        },
        evidence: Vec::new(),
        curves: Curves {
            probes: Vec::new(),
            durable_write: by_size([11., 11., 12., 15., 21., 34., 60., 110., 212., 415.])
                .map(|(write_bytes, latency_ns)| DurableWritePoint { write_bytes, latency_ns })
                .collect(),
            read_back: Vec::new(),
            location: vec![location(4, |_| 10.5)],
            throughput: vec![
                throughput(Operation::Read, 4, 560_000.0, 6.0),
                throughput(Operation::Write, 4, 520_000.0, 5.0),
            ],
        },
        ..samsung
    }
}

fn finding(
    rule: Rule,
    statement: &str,
    count: (u64, u64),
    example: Option<Example>,
    cost: Cost,
    remedy: &str,
) -> Finding {
    let (statement, remedy, (violations, requests)) = (statement.to_owned(), remedy.to_owned(), count);
    let bytes = violations * example.as_ref().map_or(0, |example| example.length_bytes);
    let place = example.as_ref().map(|example| PlaceShare { place: Place::Role(example.role), violations, bytes });
    Finding {
        rule,
        judgement: if violations == 0 { Judgement::Kept } else { Judgement::Violation },
        statement,
        violations,
        requests,
        bytes,
        examples: example.into_iter().collect(),
        places: place.into_iter().collect(),
        processes: Vec::new(),
        cost,
        remedy,
    }
}

fn example(operation: Operation, role: FileRole, offset_bytes: u64, length_bytes: u64) -> Option<Example> {
    Some(Example { operation, role, file: None, offset_bytes, length_bytes, request: 1 })
}

/// The four rules that the drive allows to be judged, `broken` times each.
fn samsung_findings(broken: [u64; 4], cost: [Cost; 4]) -> Vec<Finding> {
    let some = |i: usize, e: Option<Example>| e.filter(|_| broken[i] > 0);
    let mut findings = vec![
        finding(
            Rule::WriteWholeUnits,
            "writes should be a whole multiple of 32 KiB long",
            (broken[0], 26_410),
            some(0, example(Operation::Write, FileRole::WriteAheadLog, 65_592, 4096)),
            cost[0],
            "use a page size that is a multiple of 32 KiB, and put more changes into one transaction",
        ),
        finding(
            Rule::ReadChunksAtHotLocations,
            "reads of the database should be 64 KiB long and start at 64 KiB·i + 32 KiB",
            (broken[1], 48_221),
            some(1, example(Operation::Read, FileRole::Database, 1_245_184, 64 * KIB)),
            cost[1],
            "set 64 KiB pages and let use-hot-locations place each one at 64 KiB·i + 32 KiB",
        ),
        finding(
            Rule::StartWritesOnStripes,
            "writes should start at a multiple of 64 KiB",
            (broken[2], 26_410),
            some(2, example(Operation::Write, FileRole::WriteAheadLog, 65_592, 4096)),
            cost[2],
            "let write-aligned-stripes start the log's page images, and runs of pages, at multiples of 64 KiB",
        ),
        finding(
            Rule::KeepHotLocations,
            "writes of 64 KiB or more should start at a multiple of 64 KiB, or they wipe out hot locations",
            (broken[3], 9_877),
            some(3, example(Operation::Write, FileRole::Database, 32 * KIB, 64 * KIB)),
            cost[3],
            "write a page at a hot location in pieces of 32 KiB, as use-hot-locations does",
        ),
    ];
    // As an audit has them, the costliest first.
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.cost.time_ns));
    findings
}

fn rate(per_s: f64) -> Rate {
    Rate { per_s, low: per_s * 0.985, high: per_s * 1.012 }
}

/// A run by its label, page size, SELECTs and INSERTs a second, and WA.
fn run(label: &str, page_bytes: u64, selects: f64, inserts: f64, wa: f64) -> RunMeasurement {
    let latency = |per_s: f64, n| Percentiles {
        count: n,
        p50_ns: (0.96e9 / per_s) as u64,
        p99_ns: (2.7e9 / per_s) as u64,
        max_ns: (6.1e9 / per_s) as u64,
    };
    let host = (1_900_000_000.0 * (page_bytes as f64 / 4096.0).sqrt()) as u64;
    RunMeasurement {
        label: label.to_owned(),
        page_bytes,
        techniques: Vec::new(),
        select_per_s: selects,
        select_rate: rate(selects),
        insert_per_s: inserts,
        insert_rate: rate(inserts),
        select_latency: latency(selects, 100_000),
        transaction_latency: latency(inserts / 500.0, 200),
        host_bytes_written: host,
        flash_bytes_programmed: Some((host as f64 * wa) as u64),
        write_amplification: Some(wa),
        drive_time_ns: ((100_000.0 / selects + 100_000.0 / inserts) * 1e9) as u64,
        cpu_time_ns: 3_412_000_000,
        database_bytes: 1_284 * MIB + page_bytes,
        integrity_check: "ok".to_owned(),
    }
}

fn gain(from: &str, to: &str, ratio: f64) -> Gain {
    let [metric, from, to] = ["statements_per_s", from, to].map(str::to_owned);
    Gain { metric, from, to, ratio, low: ratio * 0.986, high: ratio * 1.013 }
}

fn proposal(
    kind: ChangeKind,
    [name, old, new]: [&str; 3],
    reason: &str,
    gain: f64,
    [apply, undo]: [&str; 2],
) -> Proposal {
    let [name, old_value, new_value, reason, apply, undo] = [name, old, new, reason, apply, undo].map(str::to_owned);
    let gain = Some(self::gain("without", "with", gain));
    let is_memory = name == "cache_size";
    Proposal { name, old_value, new_value, reason, findings: Vec::new(), kind, is_memory, gain, apply, undo }
}

fn candidate(label: &str, stage: &str, page_kib: u64, ratio: f64) -> Candidate {
    let is_known = stage != "screened";
    Candidate {
        label: label.to_owned(),
        stage: stage.to_owned(),
        kind: Some(ChangeKind::File),
        page_bytes: page_kib * KIB,
        page_cache_bytes: 64 * MIB,
        journal_mode: "wal".to_owned(),
        wal_autocheckpoint: 1000,
        techniques: Vec::new(),
        ratios: vec![ratio],
        low: is_known.then_some(ratio * 0.986),
        high: is_known.then_some(ratio * 1.013),
        is_on_front: false,
    }
}

fn workload() -> WorkloadDescription {
    WorkloadDescription {
        summary: "the published key-value load: 1,000,000 rows, then 20 rounds of inserts and point SELECTs".to_owned(),
        rows: 1_000_000,
        rounds: 20,
        inserts_per_round: 5_000,
        selects_per_round: 5_000,
        inserts_per_transaction: 500,
        page_cache_bytes: 16 * MIB,
        seed: 0,
    }
}

fn applied(proposal: &Proposal) -> Applied {
    let Proposal { name, old_value, new_value, reason, undo, .. } = proposal.clone();
    Applied { name, old_value, new_value, reason, undo }
}

/// The Samsung 960 EVO's case: much to gain for SELECTs, nothing for INSERTs.
pub fn samsung() -> Comparison {
    let cost =
        |time_ns, flash_bytes| Cost { time_ns: Some(time_ns), flash_bytes: Some(flash_bytes), ..Cost::default() };
    let none = [cost(0, 0); 4];
    let before_cost = [cost(1_284_000_000, 412 << 20), cost(4_733_000_000, 0), cost(-2_000_000, 14 << 20), cost(0, 0)];
    let best_label = "64 KiB pages, wal, 64 MiB cache, use-hot-locations";
    let default = run("default", 4 * KIB, 4_105.0, 6_120.0, 1.94);
    let checklist = run("wal, 64 MiB cache", 4 * KIB, 9_574.0, 12_801.0, 1.22);
    let techniques = vec!["use-hot-locations=65536+32768".to_owned()];
    let best = RunMeasurement { techniques, ..run(best_label, 64 * KIB, 13_612.0, 18_790.0, 1.07) };
    let mut proposals = vec![
        proposal(
            ChangeKind::File,
            ["page_size", "4 KiB", "64 KiB"],
            "the fastest size that was tried, as long as this drive's chunk",
            1.31,
            [
                "sqlite3 app.db \"VACUUM INTO 'app-copy.db'\" && sqlite3 app-copy.db 'PRAGMA page_size = 65536; VACUUM'",
                "rm app-copy.db",
            ],
        ),
        proposal(
            ChangeKind::File,
            ["journal_mode", "delete", "wal"],
            "a commit with a rollback journal waits for several flushes in sequence; with a log, for one",
            1.72,
            [
                "after the import, in one connection to app-fitted.db: PRAGMA journal_mode = wal",
                "in one connection to app-fitted.db: PRAGMA journal_mode = delete",
            ],
        ),
        proposal(
            ChangeKind::Connection,
            ["cache_size", "1.95 MiB", "64 MiB"],
            "holds a larger part of the database of 1.25 GiB",
            1.18,
            ["in each connection: PRAGMA cache_size = -65536", "in each connection: PRAGMA cache_size = -2000"],
        ),
        proposal(
            ChangeKind::Conversion,
            ["use-hot-locations", "off", "use-hot-locations=65536+32768"],
            "pages of one chunk start at hot locations",
            1.29,
            [
                "flashwise sqlite import app-copy.db app-fitted.db --techniques 'use-hot-locations=65536+32768'",
                "flashwise sqlite export app-fitted.db app-plain.db",
            ],
        ),
    ];
    for name in ["page_size", "use-hot-locations"] {
        let named = proposals.iter_mut().filter(|proposal| proposal.name == name);
        named.for_each(|proposal| proposal.findings.push(Rule::ReadChunksAtHotLocations));
    }
    Comparison {
        schema: COMPARISON_SCHEMA.to_owned(),
        schema_version: COMPARISON_SCHEMA_VERSION,
        flashwise_version: "0.1.0".to_owned(),
        target: "sim:samsung-960-evo".to_owned(),
        database: "SQLite 3.51.0".to_owned(),
        file: None,
        workload: workload(),
        profile: samsung_profile(),
        findings: samsung_findings([16_533, 48_221, 18_902, 0], before_cost),
        unjudged: flashwise_audit::unchecked_rules(&samsung_profile()),
        findings_after: samsung_findings([0, 0, 12, 0], none),
        applied: proposals.iter().map(applied).collect(),
        default_page_size: default.clone(),
        before: default.clone(),
        after: best.clone(),
        default,
        checklist,
        best,
        objectives: vec![Objective::Throughput],
        gains: vec![gain("default", "best", 3.21), gain("default", "checklist", 2.31), gain("checklist", "best", 1.39)],
        gain: Some(gain("default", "best", 3.21)),
        seen: None,
        resolution: Some(3.25),
        recommendation: Recommendation {
            run: "after".to_owned(),
            reason: "Apply page_size, journal_mode, cache_size, use-hot-locations.".to_owned(),
        },
        proposals,
        declined: vec![Declined {
            name: "concurrent-write-back".to_owned(),
            new_value: "concurrent-write-back=8".to_owned(),
            kind: ChangeKind::Vfs,
            gain: gain("without", "with", 1.02),
            price: 1.05,
        }],
        candidates: vec![
            candidate(best_label, "confirmed", 64, 3.21),
            candidate("wal, 64 MiB cache", "confirmed", 4, 2.31),
            candidate("16 KiB pages, wal", "raced", 16, 1.9),
            candidate("wal", "screened", 4, 1.7),
        ],
        guarantees: Guarantees {
            statement: "a transaction that was committed survives a crash and a power cut".to_owned(),
            of_default: "a transaction that was committed survives a crash; a power cut may undo the last one, since \
                         SQLite does not sync the deletion of its journal"
                .to_owned(),
            synchronous: "full".to_owned(),
            weaker: vec![WeakerGuarantee {
                name: "synchronous=normal".to_owned(),
                with: best_label.to_owned(),
                ratio: 1.4,
                low: Some(1.38),
                high: Some(1.42),
                loses: "the last commits before a power cut".to_owned(),
            }],
        },
        search: SearchSummary {
            time_budget_ns: 50_000_000_000,
            time_ns: 41_000_000_000,
            screened: 41,
            screened_on: "sim:samsung-960-evo".to_owned(),
            raced: 9,
            confirmation_runs: 8,
            confidence: 0.99,
            statements: 200_000,
            workload_is_cut: false,
            is_cut_short: false,
            conversion_threshold: 1.1,
            machine: Some("ext4 under a page cache of 4 GiB".to_owned()),
            times:
                "Times are the simulated drive's; SQLite's own CPU time is measured apart and not part of the rates."
                    .to_owned(),
        },
        uri: Some("file:app-fitted.db?vfs=flashwise".to_owned()),
        at_open: vec!["PRAGMA cache_size = -65536".to_owned()],
        changed: None,
        notes: vec!["A larger --time-budget may find a better configuration.".to_owned()],
    }
}

/// A report with as much of everything as a fit finds: six changes of all kinds, two objectives with a front, what an
/// attached drive showed, changes that were left out, notes.
pub fn longest() -> Comparison {
    let mut c = samsung();
    c.file = Some("/srv/shop/data/orders.db".to_owned());
    c.workload.rows = 0;
    (c.workload.inserts_per_round, c.workload.selects_per_round) = (0, 0);
    c.workload.summary =
        "the statements of /srv/shop/queries.sql on a copy of /srv/shop/data/orders.db, with 4 sessions".to_owned();
    c.objectives = vec![Objective::Throughput, Objective::P99];
    let mut other = gain("default", "best", 1.62);
    other.metric = Objective::P99.metric().to_owned();
    c.gains.push(other);
    let seen = vec![gain("default", "best", 2.87)];
    c.seen = Some(Seen { file_system: "ext4".to_owned(), slower: 20, runs: 3, gains: seen, was_late: true });
    c.proposals.insert(
        3,
        proposal(
            ChangeKind::Connection,
            ["wal_autocheckpoint", "1000 pages", "16000 pages"],
            "a page that changes often is written back once per 16000 pages of log instead of 1000",
            1.07,
            [
                "in each connection: PRAGMA wal_autocheckpoint = 16000",
                "in each connection: PRAGMA wal_autocheckpoint = 1000",
            ],
        ),
    );
    c.proposals.push(proposal(
        ChangeKind::Vfs,
        ["concurrent-write-back", "off", "concurrent-write-back=8"],
        "pages of a checkpoint are written with as many requests in flight as the drive serves",
        1.11,
        ["in the URI: &concurrent-write-back=8", "in the URI: &concurrent-write-back=off"],
    ));
    let left_out = c.declined[0].clone();
    c.declined = ["atomic-batch=on", "write-aligned-stripes=65536", "discard=on"]
        .map(|value| Declined {
            name: value.split('=').next().unwrap_or_default().to_owned(),
            new_value: value.to_owned(),
            ..left_out.clone()
        })
        .to_vec();
    let label = |first: &str| format!("{first}, wal, checkpoint 16000, 64 MiB cache, use-hot-locations");
    let front = [3.21, 3.1, 2.9, 2.4].into_iter().zip([1.62, 1.8, 2.1, 2.3]).enumerate();
    let of_front = front.map(|(n, (ratio, p99))| Candidate {
        ratios: vec![ratio, p99],
        is_on_front: true,
        ..candidate(
            &label(["64 KiB pages", "32 KiB pages", "16 KiB pages", "8 KiB pages"][n]),
            if n == 0 { "confirmed" } else { "raced" },
            64,
            ratio,
        )
    });
    let others = c.candidates.split_off(1).into_iter().map(|one| Candidate { ratios: vec![one.ratios[0], 1.1], ..one });
    c.candidates = of_front.chain(others).collect();
    c.notes = ["generated statements", "think times", "the budget", "the layout", "restarted transactions"]
        .map(|what| {
            format!(
                "A note on {what}, which takes as many words as such a note usually does: more than a line of them."
            )
        })
        .to_vec();
    c
}

/// The Optane's case: nothing to gain, nothing applied.
pub fn optane() -> Comparison {
    let plain = run("default", 4 * KIB, 61_020.0, 48_100.0, 1.0);
    let plain = RunMeasurement { flash_bytes_programmed: None, write_amplification: None, ..plain };
    let findings = vec![
        finding(
            Rule::WriteWholeUnits,
            "writes should be a whole multiple of 1 KiB long",
            (0, 41_310),
            None,
            Cost { time_ns: Some(0), flash_bytes: Some(0), ..Cost::default() },
            "use a page size that is a multiple of 1 KiB, and put more changes into one transaction",
        ),
        finding(
            Rule::ReadChunksAtHotLocations,
            "reads of the database should be 4 KiB long and start at 4 KiB·i",
            (0, 90_017),
            None,
            Cost { time_ns: Some(0), ..Cost::default() },
            "set 4 KiB pages",
        ),
    ];
    Comparison {
        target: "sim:intel-optane-905p".to_owned(),
        profile: optane_profile(),
        findings: findings.clone(),
        unjudged: flashwise_audit::unchecked_rules(&optane_profile()),
        findings_after: findings,
        applied: Vec::new(),
        default_page_size: plain.clone(),
        before: plain.clone(),
        after: plain.clone(),
        default: plain.clone(),
        checklist: RunMeasurement { label: "wal, 64 MiB cache".to_owned(), ..plain.clone() },
        best: plain,
        gains: vec![
            gain("default", "candidate", 1.005),
            gain("default", "checklist", 0.998),
            gain("checklist", "candidate", 1.007),
        ],
        gain: None,
        seen: None,
        resolution: Some(1.02),
        recommendation: Recommendation {
            run: "default_page_size".to_owned(),
            reason:
                "Keep the present settings: of 4 configurations none was better by more than the 2.0 % that could be \
                     seen."
                    .to_owned(),
        },
        proposals: Vec::new(),
        declined: Vec::new(),
        candidates: vec![
            candidate("wal", "confirmed", 4, 1.005),
            candidate("wal, 64 MiB cache", "confirmed", 4, 0.998),
            candidate("8 KiB pages", "screened", 8, 0.8),
        ],
        guarantees: Guarantees {
            weaker: Vec::new(),
            statement: samsung().guarantees.of_default,
            ..samsung().guarantees
        },
        uri: None,
        at_open: Vec::new(),
        notes: Vec::new(),
        ..samsung()
    }
}
