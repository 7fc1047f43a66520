//! Agreement with what other programs count on the same traces.
//!
//! Traces and counts are in `shared` beside the repository, read where they lie; a test says so where they are absent.
use std::path::{Path, PathBuf};

use flashwise_bufferpool::simulate::{PoolPlan, PoolReport, simulate};
use flashwise_bufferpool::{
    Access, Ace, Page, PageTrace, PolicySpec, PoolOptions, Prefetch, Shape, Storage, TraceOptions, Unit,
};
use flashwise_trace::ReadOptions;

/// A file of the shared folder, or `None`, said aloud.
fn shared(path: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(path);
    let is_there = path.exists();
    if !is_there {
        eprintln!("SKIPPED: {} is not there", path.display());
    }
    is_there.then_some(path)
}

fn trace(file: &str) -> Option<PageTrace> {
    trace_as(file, &TraceOptions::default())
}

fn trace_as(file: &str, options: &TraceOptions) -> Option<PageTrace> {
    let path = shared(&format!("traces/{file}"))?;
    Some(PageTrace::open(&path, options).unwrap().0)
}

fn run(trace: &mut PageTrace, policy: &str, frames: u64, ace: Ace) -> PoolReport {
    let plan = PoolPlan {
        policies: vec![PolicySpec::parse(policy).unwrap()],
        frames: vec![frames],
        write_backs: vec![ace],
        prefetch: Prefetch::None,
        model: None,
        drive: None,
        jobs: 1,
    };
    simulate(trace, &plan, &|_| {}).unwrap()
}

/// Rows of a table without its header.
fn rows(file: &str) -> Option<Vec<Vec<String>>> {
    let text = std::fs::read_to_string(shared(&format!("reference/{file}"))?).unwrap();
    Some(text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect())
}

/// The trace of a name in the table.
fn trace_file(name: &str) -> &str {
    match name {
        "zipf1M.og.bin" => "zipf_a0.9_n100k_r1M_s42.u32.gz",
        "cloudPhysicsIO.oracleGeneral.bin" => "cloudPhysicsIO.oracleGeneral.bin",
        "2_pools.txt" => "lirs/2_pools.trace.gz",
        "cpp.txt" => "lirs/cpp.trace.gz",
        "cs.txt" => "lirs/cs.trace.gz",
        "loop.txt" => "lirs/loop.trace.gz",
        other => panic!("no trace for {other}"),
    }
}

#[test]
fn misses_are_those_of_libcachesim() {
    let Some(rows) = rows("policies-libcachesim.csv") else { return };
    let mut compared = 0;
    let (mut last, mut pages) = (String::new(), None);
    let mut sorted = rows;
    sorted.sort();
    for row in sorted {
        let [name, frames, policy, requests, _, misses] = &row[..] else { panic!("{row:?}") };
        // Its slru and belady are not among the policies here.
        let Ok(spec) = PolicySpec::parse(policy) else { continue };
        if *name != last {
            (last, pages) = (name.clone(), trace(trace_file(name)));
        }
        let Some(pages) = &mut pages else { continue };
        let report = run(pages, spec.name(), frames.parse().unwrap(), Ace::CLASSIC);
        let told = (report.results[0].accesses.to_string(), report.results[0].misses.to_string());
        assert_eq!(told, (requests.clone(), misses.clone()), "{name}, {frames} frames, {policy}");
        compared += 1;
    }
    assert!(compared % 8 == 0, "{compared} of eight policies");
    eprintln!("{compared} counts of libCacheSim are the same");
}

/// PyPI's libcachesim 0.3.5, with the same shares and threshold (0.1, 0.9, 2), by `S3FIFOv0_init` and by `S3FIFO`: they
/// differ in where new pages go while frames are empty and in nothing else.
#[test]
fn both_ways_to_fill_s3_fifo_miss_as_often_as_libcachesims() {
    let Some(mut pages) = trace("cloudPhysicsIO.oracleGeneral.bin") else { return };
    for (frames, small, main) in [(500, 94_551, 94_559), (5_000, 85_382, 85_689), (20_000, 70_417, 59_311)] {
        for (policy, misses) in [("s3-fifo:fill=small", small), ("s3-fifo:fill=main", main)] {
            let told = run(&mut pages, policy, frames, Ace::CLASSIC).results[0].misses;
            assert_eq!(told, misses, "{policy}, {frames} frames");
        }
    }
}

/// An eviction that starts in the small list ends there, as in the paper and in libCacheSim; otherwise 28,312.
#[test]
fn s3_fifo_misses_on_the_sprite_trace_as_often_as_libcachesims() {
    let Some(mut pages) = trace("lirs/sprite.trace.gz") else { return };
    assert_eq!(run(&mut pages, "s3-fifo", 500, Ace::CLASSIC).results[0].misses, 28_217);
}

/// What a name of the table is here.
fn policy_of(name: &str) -> &str {
    match name {
        "SecondChance" => "second-chance",
        "Clock1" => "clock:bit=1",
        "LFU" => "lfu:order=counts",
        "LFU_window" => "lfu",
        "TwoQ" => "2q:ghost=late",
        "TwoQ_naive_order" => "2q:ghost=late,order=lists",
        "TwoQ_lcs" => "2q",
        "ARC_naive_order" => "arc:order=lists",
        "LRU_WSR_sim" => "lru-wsr:as-simulator=1",
        other => other,
    }
}

#[test]
fn misses_write_backs_and_pages_written_are_those_of_the_models_of_reads_and_writes() {
    let Some(rows) = rows("policies-rw-model.csv") else { return };
    let Some(mut pages) = trace("ace_ref_b1000_n20480_s90d10_rw50.txt") else { return };
    let mut differences = Vec::new();
    for row in &rows {
        let [_, frames, batch, policy, misses, operations, written] = &row[..] else { panic!("{row:?}") };
        let ace = match batch.as_str() {
            "1" => Ace::CLASSIC,
            batch => Ace::of(batch.parse().unwrap()),
        };
        let report = run(&mut pages, policy_of(policy), frames.parse().unwrap(), ace);
        let told = &report.results[0];
        let told = [told.misses, told.write_back_operations, told.pages_written].map(|count| count.to_string());
        if told != [misses.clone(), operations.clone(), written.clone()] {
            differences.push(format!("{policy}, batches of {batch}: {told:?}, not {misses}, {operations}, {written}"));
        }
    }
    assert_eq!(differences, [""; 0]);
    assert_eq!(rows.len(), 38);
}

/// Those models leave out of ARC's order that new pages make T1 longer while pages of T2 are evicted. The counts are
/// those of a list model with either order, outside this crate.
#[test]
fn arcs_batches_write_few_pages_that_would_stay_only_if_its_order_counts_new_pages() {
    let options = TraceOptions {
        reading: ReadOptions { page_bytes: 512, ..ReadOptions::default() },
        unit: Unit::Request,
        ..TraceOptions::default()
    };
    let Some(mut pages) = trace_as("cloudPhysicsIO.csv.gz", &options) else { return };
    let mut run = |policy, ace| {
        let told = run(&mut pages, policy, 500, ace).results.remove(0);
        (told.misses, told.write_back_operations, told.pages_written)
    };
    assert_eq!(run("arc", Ace::CLASSIC), (94_218, 48_168, 48_168));
    assert_eq!(run("arc:order=miss", Ace::of(8)), (94_218, 6_057, 48_456));
    assert_eq!(run("arc", Ace::of(8)), (94_218, 7_055, 56_118));
}

/// What a pool did with one request.
#[derive(Default)]
struct Deeds {
    written: Vec<Page>,
    fallen: Option<Page>,
    has_read: bool,
}

impl Storage for Deeds {
    fn write(&mut self, pages: &[Page]) -> Result<(), String> {
        self.written.extend_from_slice(pages);
        Ok(())
    }

    fn read(&mut self, _: &[Page]) -> Result<(), String> {
        self.has_read = true;
        Ok(())
    }

    fn evicted(&mut self, page: Page) {
        self.fallen = Some(page);
    }
}

/// A line a request: what was asked, hit or miss, the page that was evicted, the pages that were written, dirty pages
/// afterwards. Gives the checksum of all lines and their number.
fn log_of(requests: &str, policy: &str, frames: usize, ace: Ace) -> (u32, usize) {
    let shape = Shape { frames, pages: 20_480, blocks: [].into() };
    let options = PoolOptions { ace, ..PoolOptions::default() };
    let mut pool = PolicySpec::parse(policy).unwrap().pool(&shape, &options).unwrap();
    let mut checksum = flate2::Crc::new();
    let told = |pages: Vec<String>| if pages.is_empty() { "-".to_owned() } else { pages.join(",") };
    let mut lines = 0;
    for request in requests.lines() {
        let (operation, page) = request.split_once(' ').unwrap();
        let mut deeds = Deeds::default();
        let access = Access::new(Page(page.parse().unwrap()), operation == "W");
        pool.access_on(access, &mut deeds).unwrap();
        let found = if deeds.has_read { "M" } else { "H" };
        let fallen = told(deeds.fallen.iter().map(|page| page.0.to_string()).collect());
        let written = told(deeds.written.iter().map(|page| page.0.to_string()).collect());
        let dirty = pool.directory().dirty();
        checksum.update(format!("{operation} {page} {found} {fallen} {written} {dirty}\n").as_bytes());
        lines += 1;
    }
    (checksum.sum(), lines)
}

/// The simulator of ACE's authors (BU-DiSC/ACE-codebase 46f65a8, `Simulation/`), run as it is with
/// `-b 100|1000 -x 100000 -e 50 -s 90 -d 10 -r 1 -w 3 -k 8 -a 1|5 -v 2`, tells hits, batches and the whole pool after
/// each request. The lines above were made of that, and these are their checksums. The pages of a batch of LRU-WSR,
/// which it does not name, are the victim and those that are clean once the batch is written, the oldest first.
#[test]
fn every_request_is_served_as_by_the_simulator_of_the_authors_of_ace() {
    let Some(path) = shared("traces/ace_ref_b1000_n20480_s90d10_rw50.txt") else { return };
    let requests = std::fs::read_to_string(path).unwrap();
    let mut differences = Vec::new();
    for (policy, frames, classic, batches) in [
        ("lru", 100, 0xe3c2_9f6b, 0x231f_7ebc),
        ("lru", 1_000, 0xfdd2_b3d2, 0x86d5_57ec),
        ("cflru", 100, 0xd744_5417, 0xc00a_5acc),
        ("cflru", 1_000, 0xa030_d70b, 0x068c_449f),
        ("lru-wsr:as-simulator=1", 100, 0x8cf8_5d3f, 0xcf5b_8720),
        ("lru-wsr:as-simulator=1", 1_000, 0xbb3e_ddaf, 0x3772_ac51),
    ] {
        for (ace, expected) in [(Ace::CLASSIC, classic), (Ace::of(8), batches)] {
            let (checksum, lines) = log_of(&requests, policy, frames, ace);
            if (checksum, lines) != (expected, 100_000) {
                let variant = ace.name();
                differences.push(format!("{policy}, {frames} frames, {variant}: {checksum:08x} of {lines} requests"));
            }
        }
    }
    assert_eq!(differences, [""; 0]);
}
