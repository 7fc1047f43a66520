//! The rules on small traces, and against naive definitions on random ones.

use flashwise_block::{ByteSize, Nanos, Operation};
use flashwise_profile::{DeviceProfile, Figure, HotLocation, Parameters, Verdict};
use flashwise_trace::{FileRole, TraceRecord};
use proptest::prelude::*;

use crate::*;

pub(crate) mod golden;

const KIB: u64 = 1024;

pub(crate) fn exactly<T: Copy>(value: T) -> Figure<T> {
    Figure::certain(value, value, value)
}

/// Write unit 32 KiB, stripe and chunk 64 KiB, hot in the middle of the chunk; no flash page.
pub(crate) fn samsung() -> DeviceProfile {
    DeviceProfile::from_toml(include_str!("../tests/samsung.toml"), "samsung.toml").unwrap()
}

/// Write unit and stripe 64 KiB, chunk and page 4 KiB, hot everywhere.
pub(crate) fn toshiba() -> DeviceProfile {
    DeviceProfile::from_toml(include_str!("../tests/toshiba.toml"), "toshiba.toml").unwrap()
}

/// The Toshiba with the figures that only a long probe tells.
pub(crate) fn whole_toshiba() -> DeviceProfile {
    let mut profile = toshiba();
    let p = &mut profile.parameters;
    p.trim_gain = exactly(1.4);
    p.superblock_bytes = exactly(256 * KIB);
    (p.write_amplification_uniform, p.write_amplification_skewed) = (exactly(3.0), exactly(3.2));
    profile
}

/// The Toshiba's other figures with the units of the Kingston card.
pub(crate) fn card() -> DeviceProfile {
    let mut profile = toshiba();
    let card = &mut profile.card;
    (card.allocation_unit_bytes, card.merge_ns) = (exactly(4 << 20), exactly(430_000_000));
    (card.open_units_linear, card.open_units_random) = (exactly(3), exactly(3));
    card.special_first_unit = exactly(false);
    profile
}

/// A write whose offset is on the device.
pub(crate) fn on_device(offset: u64, length: u64) -> TraceRecord {
    record(Operation::Write, FileRole::Unknown, offset, length)
}

pub(crate) fn record(operation: Operation, role: FileRole, offset: u64, length: u64) -> TraceRecord {
    TraceRecord { role, ..TraceRecord::new(Nanos(0), operation, ByteSize(offset), ByteSize(length)) }
}

pub(crate) fn read(offset_kib: u64, length_kib: u64) -> TraceRecord {
    record(Operation::Read, FileRole::Database, offset_kib * KIB, length_kib * KIB)
}

pub(crate) fn write(offset_kib: u64, length_kib: u64) -> TraceRecord {
    record(Operation::Write, FileRole::Database, offset_kib * KIB, length_kib * KIB)
}

pub(crate) fn log(offset: u64, length: u64) -> TraceRecord {
    record(Operation::Write, FileRole::WriteAheadLog, offset, length)
}

pub(crate) fn flush() -> TraceRecord {
    record(Operation::Flush, FileRole::Database, 0, 0)
}

/// One after the other, each 100 µs long, so that one is in flight at a time.
pub(crate) fn one_by_one(records: &[TraceRecord]) -> Vec<TraceRecord> {
    let at = |(n, record): (usize, &TraceRecord)| TraceRecord {
        at: Nanos::micros(200 * n as u64),
        latency: Some(Nanos::micros(100)),
        ..*record
    };
    records.iter().enumerate().map(at).collect()
}

/// All at once.
pub(crate) fn together(records: &[TraceRecord]) -> Vec<TraceRecord> {
    records.iter().map(|record| TraceRecord { latency: Some(Nanos::micros(100)), ..*record }).collect()
}

pub(crate) fn audited(profile: &DeviceProfile, records: &[TraceRecord], window_requests: usize) -> Audit {
    let options = AuditOptions { window_requests, ..AuditOptions::default() };
    let mut auditor = Auditor::new(profile, &options);
    records.iter().for_each(|record| auditor.observe(record, &[]));
    auditor.finish(&[])
}

pub(crate) fn finding(rule: Rule, profile: &DeviceProfile, records: &[TraceRecord]) -> Finding {
    audited(profile, records, 0).findings.into_iter().find(|f| f.rule == rule).unwrap()
}

pub(crate) fn why_open(rule: Rule, profile: &DeviceProfile, records: &[TraceRecord]) -> String {
    audited(profile, records, 0).unjudged.into_iter().find(|open| open.rule == rule).unwrap().reason
}

/// Lines of a table: requests, then how many break the rule of how many that it speaks about.
pub(crate) fn check(rule: Rule, profile: &DeviceProfile, lines: &[(&[TraceRecord], u64, u64)]) {
    for (records, violations, requests) in lines {
        let f = finding(rule, profile, records);
        assert_eq!((f.violations, f.requests), (*violations, *requests), "{rule:?} of {records:?}");
        assert_eq!(f.examples.len() as u64, f.violations.min(3));
    }
}

#[test]
fn rule_1_wants_whole_units() {
    check(
        Rule::WriteWholeUnits,
        &samsung(),
        &[(&[], 0, 0), (&[write(0, 32), write(32, 64), flush()], 0, 2), (&[write(0, 4), flush(), write(0, 36)], 2, 2)],
    );
}

#[test]
fn rule_2_wants_chunks_at_hot_locations() {
    check(
        Rule::ReadChunksAtHotLocations,
        &samsung(),
        &[
            (&[read(32, 64), read(160, 64)], 0, 2),
            (&[read(0, 64), read(8, 64), read(4, 4)], 3, 3),
            (&[record(Operation::Read, FileRole::WriteAheadLog, 0, 4096)], 0, 0),
        ],
    );
}

#[test]
fn rule_3_wants_writes_on_stripe_boundaries() {
    check(
        Rule::StartWritesOnStripes,
        &samsung(),
        &[(&[write(0, 4), write(64, 128)], 0, 2), (&[write(4, 4), write(32, 64)], 2, 2)],
    );
}

#[test]
fn rule_4_wants_chunks_kept_whole() {
    check(
        Rule::KeepHotLocations,
        &samsung(),
        &[(&[write(32, 32), write(4, 4)], 0, 0), (&[write(0, 64), write(64, 128)], 0, 2), (&[write(32, 64)], 1, 1)],
    );
}

#[test]
fn rule_5_wants_few_pages() {
    check(
        Rule::TouchFewPages,
        &toshiba(),
        &[(&[write(0, 4), write(4, 64), log(2 * KIB, 2 * KIB)], 0, 3), (&[log(2 * KIB, 4 * KIB)], 1, 1)],
    );
}

#[test]
fn rule_6_wants_appends_in_pages_of_their_own_once_the_last_was_flushed() {
    let durable = |offset| TraceRecord { fua: true, ..log(offset, 512) };
    check(
        Rule::AppendInFreshPages,
        &toshiba(),
        &[
            (&[log(0, 512), flush(), log(512, 512), flush(), log(1024, 512)], 2, 3),
            (&[log(0, 512), log(512, 512), flush()], 0, 2),
            (&[log(0, 512), flush(), log(4096, 512)], 0, 2),
            (&[log(0, 4096), flush(), log(0, 4096)], 0, 0),
            (&[durable(0), durable(512)], 1, 2),
        ],
    );
}

#[test]
fn rule_7_wants_no_image_before_the_page() {
    let content = |offset, content| TraceRecord { content: Some(content), ..write(offset, 4) };
    check(
        Rule::WriteOnce,
        &toshiba(),
        &[
            (&[log(0, 4096), log(4096, 4096), flush(), write(0, 4)], 1, 2),
            (&[log(0, 4120), write(0, 4)], 1, 1),
            (&[log(0, 512), write(0, 4), write(4, 4)], 0, 0),
            (&[write(0, 4), log(0, 4096)], 0, 1),
            (&[content(0, 7), content(8, 7), content(8, 9), content(8, 9)], 1, 4),
        ],
    );
    let unknown = [record(Operation::Write, FileRole::Unknown, 0, 4096)];
    assert_eq!(why_open(Rule::WriteOnce, &toshiba(), &unknown), "the trace has neither file names nor content hashes");
}

/// The remedy of a rule for a trace of these files.
fn remedy(rule: Rule, records: &[TraceRecord], files: &[&str]) -> String {
    let files: Vec<String> = files.iter().map(|name| (*name).to_owned()).collect();
    let profile = toshiba();
    let mut auditor = Auditor::new(&profile, &AuditOptions { window_requests: 0, ..AuditOptions::default() });
    records.iter().for_each(|record| auditor.observe(record, &files));
    auditor.finish(&files).findings.into_iter().find(|f| f.rule == rule).unwrap().remedy
}

#[test]
fn a_database_in_wal_mode_is_not_advised_to_use_wal() {
    let frame = |n: u64| log(32 + n * 4120, 4120);
    let wal = remedy(Rule::WriteOnce, &[frame(0), frame(1), flush(), write(0, 4), write(4, 4)], &[]);
    assert_eq!(wal, "SQLite: a larger wal_autocheckpoint, so that a checkpoint writes a page once for many commits");
    let sync = remedy(Rule::SyncLessOften, &[frame(0), flush(), frame(1), flush()], &[]);
    assert!(sync.contains("synchronous=NORMAL") && !sync.contains("journal_mode"), "{sync}");
    let journal = record(Operation::Write, FileRole::Journal, 512, 4096);
    let rollback = remedy(Rule::WriteOnce, &[journal, flush(), write(0, 4)], &[]);
    assert!(rollback.starts_with("SQLite: journal_mode=WAL") && !rollback.contains("PostgreSQL"), "{rollback}");
}

/// Profiles that each rule can be judged with: a drive with everything learned, one with hot locations of its own, a
/// card, and a volume with limits.
fn all_profiles() -> [DeviceProfile; 4] {
    let mut whole = whole_toshiba();
    whole.parameters.page_bytes = exactly(16 * KIB);
    let mut volume = samsung();
    let limits = &mut volume.limits;
    (limits.burst_operations, limits.write_iops_limit) = (exactly(1_000), exactly(10));
    (limits.read_iops_limit, limits.request_unit_bytes) = (exactly(10), exactly(64 * KIB));
    (limits.shared_budget, limits.shared_iops_limit) = (exactly(true), exactly(100));
    limits.shared_write_cost = exactly(2.0);
    let mut card = card();
    card.card.special_first_unit = exactly(true);
    [whole, samsung(), card, volume]
}

#[test]
fn no_remedy_names_what_is_set_already() {
    let journal = |mode| SqliteSettings { journal: Some(mode), ..SqliteSettings::default() };
    let pages = |kib| SqliteSettings { page: Some(ByteSize::kib(kib)), ..SqliteSettings::default() };
    let mut set: Vec<(SqliteSettings, Vec<&str>)> = vec![
        (journal(JournalMode::Wal), vec!["journal_mode=WAL"]),
        (journal(JournalMode::Delete), vec!["journal_mode=DELETE"]),
        (journal(JournalMode::Truncate), vec!["TRUNCATE"]),
        (pages(64), vec!["set 64 KiB pages", "page size of 64 KiB", "larger page_size"]),
        (pages(32), vec!["page size of 32 KiB"]),
        (pages(4), vec!["set 4 KiB pages"]),
    ];
    set.extend(
        Technique::ALL
            .map(|technique| (SqliteSettings::default().with_technique(technique.name()), vec![technique.name()])),
    );
    let scan = [read(0, 4), read(4, 4), read(8, 4), write(0, 4), flush(), write(8, 4)];
    let on_card: Vec<TraceRecord> = (0..4).map(|n| on_device(n << 22, 16 * KIB)).collect();
    let (mut judged, mut named) = (Vec::new(), Vec::new());
    for (profile, records) in all_profiles().iter().flat_map(|profile| [(profile, &scan[..]), (profile, &on_card)]) {
        let remedies = |sqlite: SqliteSettings| {
            let system = Some(DatabaseSystem::Sqlite);
            let options = AuditOptions { window_requests: 0, system, sqlite, ..AuditOptions::default() };
            let mut auditor = Auditor::new(profile, &options);
            one_by_one(records).iter().for_each(|record| auditor.observe(record, &[]));
            auditor.finish(&[]).findings.into_iter().map(|found| (found.rule, found.remedy))
        };
        for (settings, words) in &set {
            for (rule, remedy) in remedies(*settings) {
                assert!(!words.iter().any(|word| remedy.contains(word)), "{rule:?} with {settings:?}: {remedy}");
                assert!(!remedy.contains("()"), "{rule:?} with {settings:?}: {remedy}");
                judged.push(rule);
            }
            let of_nothing =
                |word: &&str| remedies(SqliteSettings::default()).any(|(_, remedy)| remedy.contains(*word));
            named.extend(words.iter().copied().filter(of_nothing));
        }
    }
    assert!(Rule::ALL.iter().all(|rule| judged.contains(rule)), "{judged:?}");
    // The table would prove nothing with words that no remedy has.
    let never: Vec<&str> =
        set.iter().flat_map(|(_, words)| words).copied().filter(|word| !named.contains(word)).collect();
    assert_eq!(never, Vec::<&str>::new());
}

#[test]
fn a_rule_whose_remedies_are_all_set_is_an_observation() {
    let of = |sqlite: SqliteSettings, rule: Rule| {
        let system = Some(DatabaseSystem::Sqlite);
        let profile = toshiba();
        let mut auditor =
            Auditor::new(&profile, &AuditOptions { window_requests: 0, system, sqlite, ..Default::default() });
        one_by_one(&[write(1, 4), write(40, 4), write(80, 4)]).iter().for_each(|record| auditor.observe(record, &[]));
        auditor.finish(&[]).findings.into_iter().find(|found| found.rule == rule).unwrap().judgement
    };
    for (rule, technique) in [
        (Rule::WriteBackInParallel, Technique::ConcurrentWriteBack),
        (Rule::StartWritesOnStripes, Technique::WriteAlignedStripes),
    ] {
        assert_eq!(of(SqliteSettings::default(), rule), Judgement::Violation);
        assert_eq!(of(SqliteSettings::default().with_technique(technique.name()), rule), Judgement::Observation);
    }
}

#[test]
fn a_remedy_names_the_settings_of_the_system_that_made_the_trace() {
    let scan = |file| {
        let reads: Vec<_> = (0..9).map(|n: u64| read(n * 4, 4)).collect();
        let of = |record: &TraceRecord| TraceRecord { file, ..*record };
        one_by_one(&reads.iter().map(of).collect::<Vec<_>>())
    };
    let of = |files: &[&str]| remedy(Rule::ReadInParallel, &scan(Some(0)), files);
    let sqlite = of(&["/srv/shop.sqlite3"]);
    assert!(sqlite.contains("(SQLite: the technique concurrent-read-ahead=30 of flashwise's VFS)"), "{sqlite}");
    let mariadb = of(&["/var/lib/mysql/shop/t.ibd"]);
    assert!(mariadb.contains("(MariaDB: innodb_read_ahead_threshold)"), "{mariadb}");
    let any = of(&["/srv/shop.db"]);
    assert!(["SQLite: ", "PostgreSQL: ", "MariaDB: "].iter().all(|name| any.contains(name)), "{any}");
}

#[test]
fn what_no_setting_of_the_system_changes_is_an_observation() {
    let of = |file: &str| {
        let files = [file.to_owned()];
        let profile = samsung();
        let mut auditor = Auditor::new(&profile, &AuditOptions { window_requests: 0, ..AuditOptions::default() });
        auditor.observe(&TraceRecord { file: Some(0), ..write(4, 4) }, &files);
        auditor.finish(&files).findings.into_iter().find(|f| f.rule == Rule::StartWritesOnStripes).unwrap()
    };
    let (postgres, sqlite) = (of("/var/lib/postgresql/17/main/pg_wal/000000010000000000000001"), of("a.sqlite3"));
    assert_eq!((postgres.judgement, sqlite.judgement), (Judgement::Observation, Judgement::Violation));
    assert!(postgres.remedy.starts_with("no setting of this database system"), "{}", postgres.remedy);
    assert!(sqlite.remedy.contains("write-aligned-stripes"), "{}", sqlite.remedy);
}

#[test]
fn a_double_write_file_of_innodb_is_known_by_its_name() {
    let files = ["/data/#ib_16384_0.dblwr".to_owned(), "/data/t.ibd".to_owned()];
    let of = |file, role| TraceRecord { file: Some(file), ..record(Operation::Write, role, 0, 16 * KIB) };
    let profile = toshiba();
    let mut auditor = Auditor::new(&profile, &AuditOptions { window_requests: 0, ..AuditOptions::default() });
    auditor.observe(&of(0, FileRole::Unknown), &files);
    auditor.observe(&of(1, FileRole::Database), &files);
    let audit = auditor.finish(&files);
    let found = audit.findings.iter().find(|f| f.rule == Rule::WriteOnce).unwrap();
    assert_eq!((found.violations, found.bytes), (1, 16 * KIB));
    assert_eq!(found.places[0].place, Place::File(files[0].clone()));
    assert_eq!(found.examples[0].file.as_deref(), Some(files[0].as_str()));
}

#[test]
fn rule_8_wants_k_w_writes_in_flight_where_a_run_has_as_many() {
    let pages = [write(0, 4), write(40, 4), write(80, 4)];
    let apart = [write(0, 4), flush(), write(40, 4), flush(), write(80, 4), read(0, 4), write(0, 4)];
    check(
        Rule::WriteBackInParallel,
        &toshiba(),
        &[(&one_by_one(&pages), 2, 3), (&together(&pages), 0, 3), (&one_by_one(&apart), 0, 4)],
    );
}

#[test]
fn rule_9_wants_k_r_reads_in_flight_and_tells_those_that_were_to_be_foreseen() {
    let scan = [read(0, 4), read(4, 4), read(8, 4)];
    let jumps = [read(0, 4), read(400, 4), read(40, 4)];
    check(
        Rule::ReadInParallel,
        &toshiba(),
        &[(&one_by_one(&scan), 2, 3), (&together(&scan), 0, 3), (&one_by_one(&jumps), 2, 3)],
    );
    assert!(finding(Rule::ReadInParallel, &toshiba(), &one_by_one(&scan)).remedy.contains("to which 2 of these"));
    assert!(finding(Rule::ReadInParallel, &toshiba(), &one_by_one(&jumps)).remedy.contains("read-ahead does not help"));
}

#[test]
fn without_latencies_or_above_the_page_cache_nothing_is_said_of_queues() {
    assert_eq!(why_open(Rule::ReadInParallel, &toshiba(), &[read(0, 4)]), "the trace has no completion times");
    let options = AuditOptions { window_requests: 0, is_above_page_cache: true, ..AuditOptions::default() };
    let profile = toshiba();
    let mut auditor = Auditor::new(&profile, &options);
    one_by_one(&[read(0, 4), read(8, 4)]).iter().for_each(|record| auditor.observe(record, &[]));
    let open: Vec<Rule> = auditor.finish(&[]).unjudged.iter().map(|open| open.rule).collect();
    assert!(open.contains(&Rule::ReadInParallel) && open.contains(&Rule::WriteBackInParallel), "{open:?}");
}

#[test]
fn above_the_page_cache_a_cost_is_what_the_program_waits_for() {
    let writes: Vec<TraceRecord> = (1..200).map(|n| write(n * 8, 4)).collect();
    let simulated = |is_above_page_cache| {
        let options = AuditOptions { is_above_page_cache, ..AuditOptions::default() };
        let profile = toshiba();
        let mut auditor = Auditor::new(&profile, &options);
        writes.iter().for_each(|record| auditor.observe(record, &[]));
        auditor.finish(&[]).simulated.unwrap()
    };
    let (calls, drive) = (simulated(true), simulated(false));
    let machine = calls.machine.unwrap();
    assert_eq!((machine.file_system.as_str(), machine.memory_bytes, drive.machine), ("ext4", 4 << 30, None));
    assert!(calls.time_ns * 4 < drive.time_ns, "{} {}", calls.time_ns, drive.time_ns);
}

#[test]
fn rule_10_wants_pages_of_a_unit_where_the_database_is_known() {
    check(Rule::PagesOfWriteUnit, &toshiba(), &[(&[write(0, 4), write(64, 64), log(0, 512), read(0, 4)], 1, 2)]);
    let unknown = [record(Operation::Write, FileRole::Unknown, 0, 4096)];
    assert!(why_open(Rule::PagesOfWriteUnit, &toshiba(), &unknown).contains("which file is the database"));
}

#[test]
fn rule_11_wants_a_unit_between_two_flushes() {
    let durable = TraceRecord { fua: true, ..write(0, 4) };
    check(
        Rule::SyncLessOften,
        &toshiba(),
        &[
            (&[write(0, 4), flush()], 0, 0),
            (&[flush(), write(0, 4), flush(), flush()], 2, 2),
            (&[flush(), write(0, 64), flush()], 0, 1),
            (&[durable, durable], 1, 1),
        ],
    );
    let mut quick = toshiba();
    quick.parameters.flush_ns = Figure::absent();
    assert_eq!(why_open(Rule::SyncLessOften, &quick, &[]), "the drive has no time of a flush");
}

#[test]
fn rule_12_wants_trims_of_what_dies_as_a_whole() {
    let trim = record(Operation::Trim, FileRole::WriteAheadLog, 0, 4096);
    check(
        Rule::TrimDeadData,
        &whole_toshiba(),
        &[
            (&[log(0, 4096), write(0, 4), log(0, 4096)], 2, 2),
            (&[log(0, 4096), trim, log(0, 4096)], 0, 2),
            (&[write(0, 4), record(Operation::Write, FileRole::Temporary, 0, 9)], 1, 1),
        ],
    );
    let mut deaf = whole_toshiba();
    deaf.parameters.trim_gain = exactly(1.0);
    assert_eq!(why_open(Rule::TrimDeadData, &deaf, &[]), "the drive gains nothing from trim");
}

#[test]
fn rule_13_wants_no_remainder_that_nearly_all_requests_have() {
    let at = |offset| record(Operation::Write, FileRole::Unknown, offset, 4096);
    let old: Vec<_> = (0..40).map(|n| at(63 * 512 + n * 4096)).collect();
    let new: Vec<_> = (0..40).map(|n| at(2048 * 512 + n * 4096)).collect();
    let mixed: Vec<_> = (0..40).map(|n| at(n * 4608)).collect();
    check(Rule::AlignPartition, &toshiba(), &[(&old, 40, 40), (&new, 0, 40), (&mixed, 0, 40), (&old[..19], 0, 19)]);
    assert!(finding(Rule::AlignPartition, &toshiba(), &old).remedy.contains("it starts 3,584 bytes past one"));
    assert!(why_open(Rule::AlignPartition, &toshiba(), &[write(0, 4)]).starts_with("the trace has file offsets"));
}

#[test]
fn a_file_counts_from_where_its_extents_begin_on_the_drive() {
    let profile = toshiba();
    let of = |start: u64| {
        let mut auditor = Auditor::new(&profile, &AuditOptions { window_requests: 0, ..AuditOptions::default() });
        auditor.place(0, ByteSize(start));
        for n in 0..40 {
            auditor.observe(&TraceRecord { file: Some(0), ..write(n * 4, 4) }, &[]);
        }
        let audit = auditor.finish(&[]);
        audit.findings.iter().find(|found| found.rule == Rule::AlignPartition).unwrap().violations
    };
    assert_eq!((of(0), of(512)), (0, 40));
}

#[test]
fn rule_14_wants_superblocks_of_one_kind() {
    let cold = |n: u64| write(1000 + 4 * n, 4);
    let warm: Vec<_> = (0..64).map(cold).collect();
    let hot: Vec<_> = (0..64).map(|_| write(1000, 4)).collect();
    let mixed: Vec<_> = warm.iter().chain(&hot).copied().collect();
    let blended: Vec<_> = (0..64).map(|n| if n % 2 == 0 { cold(64 + n) } else { write(1000, 4) }).collect();
    let all: Vec<_> = mixed.iter().chain(&blended).copied().collect();
    check(Rule::SeparateHotAndCold, &whole_toshiba(), &[(&mixed, 0, 128), (&all, 32, 192)]);
    let mut guessed = whole_toshiba();
    let guess = |low: u64, high: u64| Figure {
        verdict: Verdict::Inconclusive,
        value: Some(256 * KIB),
        low: Some(low * KIB),
        high: Some(high * KIB),
    };
    guessed.parameters.superblock_bytes = guess(240, 260);
    check(Rule::SeparateHotAndCold, &guessed, &[(&all, 32, 192)]);
    guessed.parameters.superblock_bytes = guess(128, 260);
    let why = "the drive's superblock is inconclusive";
    assert_eq!(why_open(Rule::SeparateHotAndCold, &guessed, &[]), why);
    let mut clever = whole_toshiba();
    clever.parameters.write_amplification_skewed = exactly(2.0);
    assert_eq!(why_open(Rule::SeparateHotAndCold, &clever, &[]), "the drive separates hot and cold data itself");
}

#[test]
fn trims_and_flushes_and_empty_requests_break_none_of_the_papers_rules() {
    let trim = record(Operation::Trim, FileRole::Database, 1, 3);
    let records = [trim, flush(), record(Operation::Write, FileRole::Database, 1, 0)];
    for found in audited(&samsung(), &records, 10).findings.iter().filter(|found| found.rule.number() <= 5) {
        assert_eq!((found.requests, found.violations), (0, 0), "{found:?}");
    }
}

#[test]
fn a_finding_speaks_with_the_drives_own_figures() {
    let mut findings = audited(&samsung(), &[], 0).findings;
    findings.sort_by_key(|finding| finding.rule);
    let texts: Vec<_> = findings.into_iter().take(4).map(|f| f.statement).collect();
    let expected = [
        "writes should be a whole multiple of 32 KiB long",
        "database reads should be 64 KiB long and start at 64 KiB·i + 32 KiB",
        "writes should start at a multiple of 64 KiB",
        "writes of 64 KiB or more should start at a multiple of 64 KiB: others destroy hot locations",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn a_rule_without_its_figure_is_not_judged_and_says_why() {
    let mut p = toshiba();
    p.parameters.page_bytes = Figure::absent();
    p.parameters.stripe_bytes = Figure::inconclusive(64 * KIB, 32 * KIB, 64 * KIB);
    assert_eq!(why_open(Rule::StartWritesOnStripes, &p, &[]), "the drive's stripe is inconclusive");
    assert_eq!(why_open(Rule::TouchFewPages, &p, &[]), "the drive has no flash page");
    p.parameters.flush_ns = Figure::unknown();
    assert_eq!(why_open(Rule::SyncLessOften, &p, &[]), "the profile has no time of a flush");
    assert_eq!(
        why_open(Rule::KeepHotLocations, &p, &[]),
        "the hot locations of this drive are at chunk starts, so writes cannot destroy them"
    );
    let (all, open) = (audited(&p, &[], 0), unchecked_rules(&p));
    assert_eq!(all.findings.len() + all.unjudged.len(), Rule::ALL.len());
    assert!(open.iter().all(|open| all.unjudged.contains(open)));
}

#[test]
fn each_finding_tells_three_examples_with_their_places_and_processes() {
    let of = |n: u64, process| TraceRecord {
        process: Some(process),
        ..record(Operation::Write, FileRole::Unknown, (n << 30) + 512, 4096)
    };
    let records: Vec<_> = (0..9).map(|n| of(n / 3, if n < 7 { 17 } else { 4 })).collect();
    let f = finding(Rule::StartWritesOnStripes, &samsung(), &records);
    assert_eq!(
        f.examples.iter().map(|e| (e.request, e.offset_bytes)).collect::<Vec<_>>(),
        [(1, 512), (2, 512), (3, 512)]
    );
    assert_eq!(f.processes.iter().map(|p| (p.process, p.violations)).collect::<Vec<_>>(), [(17, 7), (4, 2)]);
    assert_eq!(f.places.len(), 3);
    let first = Place::Region { device: None, start_bytes: 0, end_bytes: 1 << 30 };
    assert_eq!((&f.places[0].place, f.places[0].violations, f.places[0].bytes), (&first, 3, 3 * 4096));
}

#[test]
fn names_and_numbers_lead_to_every_rule() {
    for (index, rule) in Rule::ALL.into_iter().enumerate() {
        assert_eq!(rule.number() as usize, index + 1);
        assert_eq!(Rule::of_name(rule.name()), Some(rule));
        assert_eq!(Rule::of_name(&rule.number().to_string()), Some(rule));
    }
    assert_eq!(Rule::of_name("nonsense"), None);
}

#[test]
fn every_rule_has_a_golden_trace_and_a_row_in_the_guide() {
    let (golden, guide) = (include_str!("tests/golden.rs"), include_str!("../../../docs/guide/audit.md"));
    for (rule, source) in crate::rules::SOURCES {
        let variant = format!("Rule::{rule:?},");
        let is_golden = |text: &str| text.contains("golden(") && text.contains(&variant);
        assert!(is_golden(golden) || is_golden(source), "{rule:?} has no golden trace");
        let row = format!("| {} | `{}` |", rule.number(), rule.name());
        assert!(guide.contains(&row), "{rule:?} has no row in docs/guide/audit.md");
    }
}

#[test]
fn a_picture_puts_files_above_each_other_and_marks_the_costliest_rule() {
    let records: Vec<_> = (0..50).flat_map(|n| [write(n * 64, 64), log(n * 512, 512), flush()]).collect();
    let audit = audited(&toshiba(), &one_by_one(&records), 1000);
    let picture = &audit.picture;
    assert_eq!(picture.requests, 150);
    assert_eq!(picture.bands.len(), 2);
    assert_eq!(picture.bands[0].place, Place::Role(FileRole::Database));
    let database = picture.bands[0].end_row;
    assert_eq!(picture.bands[1].first_row, database);
    assert!(picture.marks.iter().all(|mark| mark.x < picture.columns && mark.y < picture.rows));
    assert_eq!(picture.marks.iter().map(|mark| mark.requests).sum::<u32>(), 100, "flushes have no address");
    assert!(picture.marks.iter().any(|mark| mark.y >= database && mark.rule.is_some()));
}

fn naive_breaks(rule: Rule, p: &Parameters, r: &TraceRecord) -> Option<bool> {
    let (offset, length) = (u128::from(r.offset.0), u128::from(r.length.0));
    let figure = |f: &Figure<u64>| u128::from(f.value.unwrap());
    let hot = p.hot_location.value.unwrap();
    let writes = r.operation == Operation::Write && length > 0;
    let reads = r.operation == Operation::Read && length > 0;
    let reads = reads && (r.role == FileRole::Database || r.role == FileRole::Unknown);
    let touched = |unit: u128| (offset..offset + length).map(|b| b / unit).collect::<std::collections::BTreeSet<_>>();
    match rule {
        Rule::WriteWholeUnits => writes.then(|| length % figure(&p.write_unit_bytes) != 0),
        Rule::ReadChunksAtHotLocations => reads.then(|| {
            let hot_here = offset % u128::from(hot.period_bytes) == u128::from(hot.offset_bytes);
            !(length == figure(&p.chunk_bytes) && hot_here)
        }),
        Rule::StartWritesOnStripes => writes.then(|| offset % figure(&p.stripe_bytes) != 0),
        Rule::KeepHotLocations => {
            (writes && length >= figure(&p.chunk_bytes)).then(|| offset % figure(&p.chunk_bytes) != 0)
        }
        _ => writes.then(|| {
            let page = figure(&p.page_bytes);
            touched(page).len() as u128 > length.div_ceil(page)
        }),
    }
}

fn any_record() -> impl Strategy<Value = TraceRecord> {
    let operation = prop_oneof![
        4 => Just(Operation::Write), 4 => Just(Operation::Read), 1 => Just(Operation::Trim), 1 => Just(Operation::Flush)
    ];
    let role = prop_oneof![Just(FileRole::Database), Just(FileRole::WriteAheadLog), Just(FileRole::Unknown)];
    (operation, role, 0_u64..400, 0_u64..90).prop_map(|(op, role, at, len)| record(op, role, at, len))
}

/// Any request at all, as a hostile trace may have it.
fn hostile_record() -> impl Strategy<Value = TraceRecord> {
    let number = || prop_oneof![Just(0), Just(u64::MAX), Just(1 << 40), 0_u64..1 << 24, any::<u64>()];
    (any_record(), number(), number(), number(), any::<Option<u32>>(), any::<bool>()).prop_map(
        |(record, offset, length, at, device, fua)| {
            let length = length.min(u64::MAX - offset);
            let latency = Some(Nanos(at));
            let (offset, length) = (ByteSize(offset), ByteSize(length));
            TraceRecord { offset, length, at: Nanos(at), latency, device, process: device, fua, ..record }
        },
    )
}

proptest! {
    #[test]
    fn the_papers_rules_count_as_their_naive_definitions(
        records in prop::collection::vec(any_record(), 0..60),
        (unit, stripe, chunk, page) in (1_u64..20, 1_u64..40, 1_u64..40, 1_u64..20),
        (period, offset) in (2_u64..40).prop_flat_map(|p| (Just(p), 1..p)),
    ) {
        let mut profile = samsung();
        let p = &mut profile.parameters;
        (p.write_unit_bytes, p.stripe_bytes, p.chunk_bytes) = (exactly(unit), exactly(stripe), exactly(chunk));
        p.page_bytes = exactly(page);
        p.hot_location = exactly(HotLocation { period_bytes: period, offset_bytes: offset });
        let audit = audited(&profile, &records, 0);
        let judged: Vec<_> = audit.findings.iter().filter(|f| f.rule.number() <= 5).collect();
        prop_assert_eq!(judged.len(), 5);
        for f in judged {
            let breaks = |r: &TraceRecord| naive_breaks(f.rule, &profile.parameters, r);
            let judged: Vec<bool> = records.iter().filter_map(breaks).collect();
            prop_assert_eq!(f.requests, judged.len() as u64, "{:?}", f.rule);
            prop_assert_eq!(f.violations, judged.iter().filter(|&&b| b).count() as u64, "{:?}", f.rule);
        }
    }

    #[test]
    fn in_flight_is_what_was_submitted_and_is_not_done(spans in prop::collection::vec((0_u64..50, 0_u64..50), 1..60)) {
        let mut spans = spans;
        spans.sort_unstable_by_key(|span| span.0);
        let mut in_flight = crate::request::InFlight::default();
        for (index, &(at, latency)) in spans.iter().enumerate() {
            let naive = 1 + spans[..index].iter().filter(|(start, length)| start + length > at).count();
            let record = TraceRecord { at: Nanos(at), latency: Some(Nanos(latency)), ..write(0, 4) };
            prop_assert_eq!(in_flight.submit(&record), Some(naive as u32));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn no_trace_makes_an_audit_fail_and_the_same_trace_gives_the_same_audit(
        records in prop::collection::vec(prop_oneof![3 => any_record(), 1 => hostile_record()], 0..40), which in 0..2,
    ) {
        let profile = if which == 0 { samsung() } else { whole_toshiba() };
        let audit = audited(&profile, &records, 30);
        prop_assert!(audit.findings.iter().all(|f| f.violations <= f.requests || f.rule == Rule::WriteOnce));
        prop_assert!(audit.picture.marks.len() <= 4608);
        prop_assert_eq!(audited(&profile, &records, 30), audit);
    }
}

#[test]
fn a_partition_is_held_against_every_figure_that_is_known() {
    use flashwise_block::{Partition, PartitionTable, TableKind};
    let starts = [63 * 512, 1 << 20, (1 << 20) + 4096];
    let partition =
        |(number, start): (u32, u64)| Partition { number, start: ByteSize(start), length: ByteSize(1 << 20) };
    let table = PartitionTable { kind: TableKind::Gpt, partitions: (1..).zip(starts).map(partition).collect() };
    let off = |audit: &PartitionAudit| -> Vec<Vec<(String, u64)>> {
        let told = |m: &Misalignment| (m.figure.clone(), m.remainder_bytes);
        audit.partitions.iter().map(|partition| partition.misplaced.iter().map(told).collect()).collect()
    };
    let audit = PartitionAudit::new("sda".to_owned(), &table, &toshiba());
    let named = |name: &str, bytes| (name.to_owned(), bytes);
    let sector_63 = vec![named("flash page", 3584), named("write unit", 32_256), named("stripe", 32_256)];
    let one_page = vec![named("write unit", 4096), named("stripe", 4096)];
    assert_eq!(off(&audit), [sector_63, vec![], one_page]);
    assert!(audit.is_violated() && Audit::from_partitions(audit).is_violated());
    // A card's units count from its start, and so does a partition.
    let audit = PartitionAudit::new("mmcblk0".to_owned(), &table, &card());
    assert_eq!(off(&audit)[1], [named("allocation unit", 1 << 20)]);
    assert_eq!(audit.remedy, "recreate the partition at a multiple of 4 MiB");
    // The Samsung shows no page.
    let clean = PartitionTable { partitions: vec![table.partitions[1]], ..table };
    let audit = PartitionAudit::new("sda".to_owned(), &clean, &samsung());
    assert_eq!(audit.figures.iter().map(|held| held.figure.as_str()).collect::<Vec<_>>(), ["write unit", "stripe"]);
    assert!(!Audit::from_partitions(audit).is_violated());
}
