//! A golden trace for each rule: one that breaks it and what that costs, and the same work done as the rule wants it.

use super::*;

/// The rule's finding with its cost, and that of the clean trace.
pub(crate) fn golden(rule: Rule, profile: &DeviceProfile, broken: &[TraceRecord], clean: &[TraceRecord]) -> Finding {
    let of = |records: &[TraceRecord]| {
        let audit = audited(profile, records, AuditOptions::WINDOW);
        assert_eq!(audit.not_simulated.filter(|why| why != "no rule is violated"), None);
        audit.findings.into_iter().find(|f| f.rule == rule).unwrap()
    };
    assert_eq!(of(clean).violations, 0, "{rule:?}");
    let found = of(broken);
    assert!(found.violations > 0, "{rule:?}");
    found
}

/// What is saved, ns and flash bytes.
pub(crate) fn saved(finding: &Finding) -> (i64, i64) {
    (finding.cost.time_ns.unwrap(), finding.cost.flash_bytes.unwrap())
}

/// 200 commits, each of what `commit` asks for.
pub(crate) fn commits(commit: impl Fn(u64) -> Vec<TraceRecord>) -> Vec<TraceRecord> {
    let all = (0..200).flat_map(|n| commit(n).into_iter().chain([flush()]));
    one_by_one(&all.collect::<Vec<_>>())
}

#[test]
fn short_durable_writes_cost_the_rest_of_a_unit_each() {
    let found = golden(
        Rule::WriteWholeUnits,
        &samsung(),
        &commits(|n| vec![write(n * 4, 4)]),
        &commits(|n| vec![write(n * 32, 32)]),
    );
    // 200 flushes each close 4 KiB in a unit of 32 KiB; the same data is 25 units.
    assert_eq!(saved(&found).1, (200 - 25) * 32 * 1024);
    // Each durable write takes some 750 µs on this drive.
    assert!((100_000_000..160_000_000).contains(&saved(&found).0), "{found:?}");
}

#[test]
fn chunks_read_off_the_hot_location_cost_what_the_learned_curve_says() {
    let reads =
        |shift: u64| one_by_one(&(0..200).map(|n: u64| read((n * 37 % 200) * 64 + shift, 64)).collect::<Vec<_>>());
    let found = golden(Rule::ReadChunksAtHotLocations, &samsung(), &reads(0), &reads(32));
    // The curve: 222 µs at the start of a chunk, 141 µs in its middle.
    let each = saved(&found).0 / 200;
    assert!((60_000..100_000).contains(&each), "{each} ns a read");
}

#[test]
fn frames_of_a_log_off_the_stripe_cost_flash_that_is_read_and_written_again() {
    let found = golden(
        Rule::StartWritesOnStripes,
        &toshiba(),
        &commits(|n| vec![log(32 + n * (64 * KIB + 24), 64 * KIB + 24)]),
        &commits(|n| vec![log(n * 64 * KIB, 64 * KIB)]),
    );
    assert_eq!((found.violations, found.requests), (200, 200));
}

#[test]
fn a_chunk_written_off_alignment_costs_the_reads_that_come_after_it() {
    let work = |shift: u64| {
        let writes = (0..100).map(|n: u64| write(n * 64 + shift, 64));
        let reads = (0..400).map(|n: u64| read((n * 37 % 100) * 64 + 32, 64));
        one_by_one(&writes.chain([flush()]).chain(reads).collect::<Vec<_>>())
    };
    let found = golden(Rule::KeepHotLocations, &samsung(), &work(32), &work(0));
    assert!(saved(&found).0 > 400 * 30_000, "{found:?}");
}

#[test]
fn records_that_straddle_a_page_cost_a_page_each() {
    let found = golden(
        Rule::TouchFewPages,
        &toshiba(),
        &commits(|n| vec![log(n * 4 * KIB + 2 * KIB, 4 * KIB)]),
        &commits(|n| vec![log(n * 4 * KIB, 4 * KIB)]),
    );
    assert!(saved(&found).0 > 0, "{found:?}");
}

#[test]
fn a_packed_log_costs_reading_what_it_rewrites() {
    let found = golden(
        Rule::AppendInFreshPages,
        &toshiba(),
        &commits(|n| vec![log(n * 512, 512)]),
        &commits(|n| vec![log(n * 4096, 512)]),
    );
    assert_eq!(found.violations, 200 - 25);
    assert!(saved(&found).0 > 0, "{found:?}");
}

#[test]
fn images_that_are_written_twice_cost_their_own_bytes() {
    let double = |n: u64| [log(n % 2 * 64 * KIB, 64 * KIB), flush(), write(n * 64, 64)].to_vec();
    let found = golden(Rule::WriteOnce, &toshiba(), &commits(double), &commits(|n| vec![write(n * 64, 64)]));
    assert_eq!((found.violations, found.bytes), (200, 200 * 64 * KIB));
    assert_eq!(saved(&found).1, 200 * 64 * 1024);
}

#[test]
fn pages_written_back_one_by_one_cost_the_time_that_others_could_have_shared() {
    let pages: Vec<_> = (0..400).map(|n: u64| write(n * 1700 % 4000 * 4, 4)).collect();
    let found = golden(Rule::WriteBackInParallel, &toshiba(), &one_by_one(&pages), &together(&pages));
    assert!(saved(&found).0 > 0 && found.violations == 399, "{found:?}");
}

#[test]
fn a_scan_read_one_by_one_costs_the_time_that_read_ahead_saves() {
    let scan: Vec<_> = (0..400).map(|n: u64| read(n * 4, 4)).collect();
    let found = golden(Rule::ReadInParallel, &toshiba(), &one_by_one(&scan), &together(&scan));
    // 400 reads of 85 µs one by one; 30 at a time take a small part of that.
    assert!(saved(&found).0 > 400 * 60_000, "{found:?}");
    let jumps: Vec<_> = (0..400).map(|n: u64| read(n * n * 7919 % 4001 * 4, 4)).collect();
    let found = golden(Rule::ReadInParallel, &toshiba(), &one_by_one(&jumps), &together(&jumps));
    assert!(saved(&found).0 < 400 * 2_000, "nobody can foresee these: {found:?}");
}

#[test]
fn pages_below_the_unit_cost_nothing_where_longer_ones_would_cost_more() {
    let found = golden(
        Rule::PagesOfWriteUnit,
        &toshiba(),
        &one_by_one(&(0..400).map(|n: u64| read(n * n * 7919 % 4001 * 4, 4)).chain([write(0, 4)]).collect::<Vec<_>>()),
        &commits(|n| vec![write(n * 64, 64)]),
    );
    assert!(saved(&found).0 < 0, "point lookups of longer pages take longer: {found:?}");
    assert_eq!(found.judgement, Judgement::LeaveIt);
}

#[test]
fn a_storm_of_flushes_costs_a_program_each() {
    let storm = commits(|n| vec![write(n * 4, 4)]);
    let found = golden(Rule::SyncLessOften, &toshiba(), &storm, &commits(|n| vec![write(n * 64, 64)]));
    assert_eq!(found.violations, 199);
    // 200 flushes of some 280 µs become 13.
    assert!(saved(&found).0 > 180 * 200_000, "{found:?}");
}

#[test]
fn a_log_that_is_never_trimmed_is_found_where_trim_helps() {
    let trim = |n: u64| {
        if n.is_multiple_of(4) { Some(record(Operation::Trim, FileRole::WriteAheadLog, 0, 16 * KIB)) } else { None }
    };
    golden(
        Rule::TrimDeadData,
        &whole_toshiba(),
        &commits(|n| vec![log(n % 4 * 4 * KIB, 4 * KIB)]),
        &commits(|n| trim(n).into_iter().chain([log(n % 4 * 4 * KIB, 4 * KIB)]).collect()),
    );
}

/// Places all over the database, the same for every run.
fn scattered(n: u64) -> u64 {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40
}

#[test]
fn a_log_that_is_never_trimmed_costs_what_collection_moves_of_it() {
    // A log of 64 MiB that is written twice over, among updates of a database of 800 MiB.
    let work = |trims: bool| {
        let step = move |n: u64| {
            let begins_again = trims && n == 1024;
            let trim = begins_again.then(|| record(Operation::Trim, FileRole::WriteAheadLog, 0, 64 << 20));
            let log = log(n % 1024 * 64 * KIB, 64 * KIB);
            let update = move |k| write(scattered(8 * n + k) % (200 << 10) * 4, 4);
            trim.into_iter().chain([log]).chain((0..4).map(update))
        };
        together(&(0..2048).flat_map(step).collect::<Vec<_>>())
    };
    let found = golden(Rule::TrimDeadData, &whole_toshiba(), &work(false), &work(true));
    assert!(found.cost.is_in_steady_state);
    assert!(saved(&found).1 > 0 && saved(&found).0 > 0, "{found:?}");
}

#[test]
fn only_costs_of_collection_are_those_of_the_steady_state_and_a_share_of_it() {
    let mixed = commits(|n| vec![write(1000 + n * 4, 4), write(0, 4), log(n % 4 * 4 * KIB, 4 * KIB)]);
    let audit = audited(&whole_toshiba(), &mixed, AuditOptions::WINDOW);
    let simulated = audit.simulated.unwrap();
    let aged = simulated.steady_state.unwrap();
    assert!(aged.flash_bytes > simulated.flash_bytes, "collection moves something: {aged:?}, {simulated:?}");
    for finding in audit.findings.iter().filter(|finding| finding.violations > 0) {
        let is_of_collection = [Rule::TrimDeadData, Rule::SeparateHotAndCold].contains(&finding.rule);
        assert_eq!(finding.cost.is_in_steady_state, is_of_collection, "{finding:?}");
        let whole = if is_of_collection { aged.time_ns } else { simulated.time_ns };
        assert_eq!(simulated.window_totals(&finding.cost).0, whole);
    }
    // Where nobody breaks such a rule it is not played.
    let short = audited(&toshiba(), &mixed, AuditOptions::WINDOW);
    assert_eq!(short.simulated.unwrap().steady_state, None);
}

#[test]
fn a_drive_that_is_written_in_place_has_no_steady_state() {
    let mut optane = DeviceProfile::from_toml(include_str!("../../tests/optane.toml"), "optane.toml").unwrap();
    optane.parameters.trim_gain = exactly(1.4);
    let audit = audited(&optane, &commits(|n| vec![log(n % 4 * 4 * KIB, 4 * KIB)]), AuditOptions::WINDOW);
    let found = audit.findings.iter().find(|f| f.rule == Rule::TrimDeadData).unwrap();
    assert!(found.violations > 0 && !found.cost.is_in_steady_state && found.cost.time_ns.is_some(), "{found:?}");
    assert_eq!(audit.simulated.unwrap().steady_state, None);
}

#[test]
fn a_partition_at_sector_63_costs_a_page_for_each_block() {
    let from = |start: u64| {
        let at =
            move |n: u64| record(Operation::Write, FileRole::Unknown, start * 512 + n * 37 % 500 * 4 * KIB, 4 * KIB);
        commits(move |n| vec![at(n)])
    };
    let found = golden(Rule::AlignPartition, &toshiba(), &from(63), &from(2048));
    assert_eq!((found.violations, found.requests), (200, 200));
    assert!(saved(&found).0 > 0, "{found:?}");
}

#[test]
fn hot_pages_among_rows_that_stay_cost_what_collection_moves_of_the_rows() {
    // Each commit writes a row that stays and a counter, one of 512 far apart.
    let mut profile = whole_toshiba();
    profile.parameters.superblock_bytes = exactly(4096 * KIB);
    let row = |n: u64| write((1 << 20) + 4 * n, 4);
    let counter = |n: u64| write(scattered(n) % 512 * 4, 4);
    let work = (0..8192).flat_map(|n| [row(n), counter(n)]).collect::<Vec<_>>();
    let rows = (0..8192).map(row).collect::<Vec<_>>();
    let found = golden(Rule::SeparateHotAndCold, &profile, &together(&work), &together(&rows));
    assert!(found.cost.is_in_steady_state);
    let aged = audited(&profile, &together(&work), AuditOptions::WINDOW).simulated.unwrap().steady_state.unwrap();
    let moved = (aged.flash_bytes - aged.host_bytes) as i64;
    // Kept apart, superblocks of either kind die as a whole, and next to nothing has to be moved.
    assert!(moved as u64 > aged.host_bytes / 2, "{aged:?}");
    assert!(saved(&found).1 > moved * 9 / 10 && saved(&found).0 > 0, "{found:?}, {aged:?}");
}

#[test]
fn hot_pages_among_pages_anywhere_cost_what_collection_moves_of_these() {
    // Half of the writes go to 64 pages, half anywhere in 800 MiB.
    let cold = |n: u64| write(1024 + scattered(n) % (200 << 10) * 4, 4);
    let mixed: Vec<_> = (0..8_000).flat_map(|n| [cold(n), write(n % 64 * 4, 4)]).collect();
    let apart: Vec<_> = (0..8_000).map(cold).collect();
    let found = golden(Rule::SeparateHotAndCold, &whole_toshiba(), &together(&mixed), &together(&apart));
    assert!(found.cost.is_in_steady_state);
    assert!(saved(&found).1 > 0 && saved(&found).0 > 0, "{found:?}");
}

#[test]
fn a_counter_among_rows_that_stay_is_found() {
    let mixed = commits(|n| vec![write(1000 + n * 4, 4), write(0, 4)]);
    let rows = commits(|n| vec![write(1000 + n * 4, 4)]);
    golden(Rule::SeparateHotAndCold, &whole_toshiba(), &mixed, &rows);
}

#[test]
fn findings_are_in_the_order_of_what_they_cost() {
    let audit = audited(&toshiba(), &commits(|n| vec![log(n * 512, 512), write(n * 8, 4)]), AuditOptions::WINDOW);
    let is_violation = |f: &&Finding| f.judgement == Judgement::Violation;
    let costs: Vec<i64> = audit.findings.iter().filter(is_violation).map(|f| f.cost.time_ns.unwrap()).collect();
    assert!(costs.len() > 3 && costs.is_sorted_by(|a, b| a >= b), "{costs:?}");
    assert!(audit.findings.is_sorted_by_key(|f| f.judgement), "violations, rules better left broken, kept rules");
    assert!(audit.findings.iter().all(|f| (f.violations == 0) == (f.judgement == Judgement::Kept)));
}

#[test]
fn rules_that_are_better_left_broken_are_no_violation() {
    // Point lookups of 4 KiB, far apart and one by one: on the Samsung, each would become a read of 64 KiB.
    let lookups: Vec<_> = (0..400).map(|n: u64| read(n * n * 7919 % 40_001 * 4, 4)).collect();
    let audit = audited(&samsung(), &one_by_one(&lookups), AuditOptions::WINDOW);
    let found = audit.findings.iter().find(|f| f.rule == Rule::ReadChunksAtHotLocations).unwrap();
    assert_eq!((found.violations, found.judgement), (400, Judgement::LeaveIt), "{found:?}");
    let violated = audit.findings.iter().filter(|f| f.judgement == Judgement::Violation).count();
    assert_eq!(audit.is_violated(), violated > 0);
    // Nobody knows what is better where nothing was simulated.
    let unknown = finding(Rule::ReadChunksAtHotLocations, &samsung(), &lookups);
    assert_eq!(unknown.judgement, Judgement::Violation);
}

#[test]
fn time_and_flash_bytes_are_weighed_as_shares_of_the_window() {
    let simulated = audited(&toshiba(), &commits(|n| vec![write(n * 4, 4)]), 100).simulated.unwrap();
    let (time, bytes) = (simulated.time_ns as i64, simulated.flash_bytes as i64);
    let of = |time_ns: i64, flash_bytes: i64| {
        let cost = Cost { time_ns: Some(time_ns), flash_bytes: Some(flash_bytes), ..Cost::default() };
        Judgement::of(1, true, &cost, Some(&simulated))
    };
    assert_eq!(of(-time / 20, bytes / 10), Judgement::Violation);
    assert_eq!(of(-time / 10, bytes / 20), Judgement::LeaveIt);
    assert_eq!(of(0, 0), Judgement::LeaveIt, "nothing is gained");
    assert_eq!(Judgement::of(0, true, &Cost::default(), Some(&simulated)), Judgement::Kept);
    assert_eq!(Judgement::of(1, true, &Cost::default(), None), Judgement::Violation);
}

#[test]
fn a_long_trace_is_cut_to_the_window_and_says_so() {
    let long = commits(|n| vec![write(n * 4, 4)]);
    let audit = audited(&toshiba(), &long, 100);
    let simulated = audit.simulated.unwrap();
    assert_eq!((simulated.window_requests, simulated.trace_requests), (100, 400));
    let whole = audit.findings.iter().find(|f| f.rule == Rule::WriteWholeUnits).unwrap();
    assert_eq!(whole.violations, 200, "counts are of the whole trace");
    assert_eq!(audit.picture.requests, 100);
}

/// The Samsung drive behind the limits of a volume.
fn behind_limits() -> DeviceProfile {
    let mut profile = samsung();
    let limits = &mut profile.limits;
    (limits.burst_operations, limits.write_iops_limit) = (exactly(100_000), exactly(100));
    (limits.request_unit_bytes, limits.read_iops_limit) = (exactly(16 * KIB), exactly(100));
    (limits.shared_budget, limits.shared_iops_limit, limits.shared_write_cost) =
        (exactly(true), exactly(100), exactly(2.0));
    profile
}

fn every(gap: Nanos, records: &[TraceRecord]) -> Vec<TraceRecord> {
    let at = |(n, record): (usize, &TraceRecord)| TraceRecord { at: Nanos(n as u64 * gap.0), ..*record };
    records.iter().enumerate().map(at).collect()
}

#[test]
fn a_storm_of_commits_costs_the_operations_that_fewer_flushes_would_not_take() {
    let storm: Vec<_> = (0..400).flat_map(|n| [log(n * 4 * KIB, 4 * KIB), flush()]).collect();
    let found = golden(
        Rule::KeepBurstCredits,
        &behind_limits(),
        &every(Nanos::millis(1), &storm),
        &every(Nanos::millis(20), &storm),
    );
    // Four commits of 4 KiB are one operation of 16 KiB: 300 of 400 are saved, at 100 a second.
    assert_eq!((found.cost.time_ns, found.cost.flash_bytes), (Some(3_000_000_000), None));
    assert!(found.cost.is_of_budget && found.judgement == Judgement::Violation, "{found:?}");
}

#[test]
fn a_scan_in_short_reads_costs_the_operations_that_longer_ones_would_not_take() {
    let scan = |kib: u64| one_by_one(&(0..400).map(|n| read(n * 16, kib)).collect::<Vec<_>>());
    let short: Vec<_> = (0..400).map(|n| read(n * 4, 4)).collect();
    let found = golden(Rule::FillRequestUnits, &behind_limits(), &one_by_one(&short), &scan(16));
    assert_eq!((found.violations, found.cost.time_ns), (300, Some(3_000_000_000)));
}

#[test]
fn a_checkpoint_at_once_costs_the_time_that_reads_wait_for_the_budget() {
    let work = |checkpoint: Nanos| {
        let reads = every(Nanos::millis(20), &(0..250).map(|n| read(n * 40, 8)).collect::<Vec<_>>());
        let writes = every(checkpoint, &(0..100).map(|n| write(n * 8, 8)).collect::<Vec<_>>());
        let mut all = [reads, writes].concat();
        all.sort_by_key(|record| record.at);
        all
    };
    let found = golden(Rule::PaceCheckpoints, &behind_limits(), &work(Nanos::millis(1)), &work(Nanos::millis(45)));
    assert!(saved_time(&found) > 20_000_000_000, "{found:?}");
}

fn saved_time(finding: &Finding) -> i64 {
    finding.cost.time_ns.unwrap()
}
