//! Agreement with DiskSim 4.0's SSD model: closed forms, the published tables, long runs.
//!
//! What the model printed is in three places: `shared/reference/disksim` beside the repository, read where it lies and
//! skipped with a message where it is absent; `tests/data/disksim-4gb-grid.csv`; and the tables in here, measured like
//! that file.
mod driver;
mod workload;

use std::path::{Path, PathBuf};

use driver::{Outcome, run};
use flashwise_block::{ByteSize, Operation, Request, execute};
use flashwise_ssd::config::{AllocationPool, BlockOrder, CleaningMode, CleaningPolicy};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use workload::{PageWrites, Size, Synthetic, mixed};

/// A full drive.
fn drive(preset: &str) -> SimulatedSsd {
    let mut drive = SimulatedSsd::new(DeviceConfig::preset(preset).unwrap(), 1).unwrap();
    drive.fill_at_once().unwrap();
    drive
}

fn latency_ns(drive: &mut SimulatedSsd, request: Request) -> u64 {
    execute(drive, request).unwrap().latency().0
}

fn policy(name: &str) -> CleaningPolicy {
    if name == "greedy" { CleaningPolicy::Greedy } else { CleaningPolicy::WearAware }
}

/// A drive with pages of 64 KiB, 4 a block, as the poster has it.
fn machado(blocks: u32, policy: CleaningPolicy, min_free_percent: u32, reserve_percent: u32) -> DeviceConfig {
    let mut config = DeviceConfig::preset("machado-32g").unwrap();
    config.flash.blocks_per_plane = blocks;
    config.ftl.element.cleaning_policy = policy;
    config.ftl.element.min_free_share = f64::from(min_free_percent) / 100.0;
    let rows = u64::from(blocks - blocks * reserve_percent / 100);
    config.capacity_bytes = rows * config.ftl.element.row_bytes(&config);
    config
}

#[test]
fn a_single_request_takes_what_the_closed_forms_say_to_the_nanosecond() {
    let sector = 512_000_000_000_f64 / 2_147_651_007.0;
    for (kib, pages) in [(8, 1), (64, 1), (256, 1), (1024, 2), (4096, 8)] {
        let length = ByteSize::kib(kib);
        let bus = kib as f64 * 2.0 * sector;
        let read = latency_ns(&mut drive("machado-32g"), Request::read(ByteSize(0), length));
        assert_eq!(read, (f64::from(pages) * (25_000.0 + 1_689_600.0) + bus) as u64, "read of {kib} KiB");
        let write = latency_ns(&mut drive("machado-32g"), Request::write(ByteSize(0), length));
        assert_eq!(write, (f64::from(pages) * (200_000.0 + 1_689_600.0) + bus) as u64, "write of {kib} KiB");
    }
    let mut small = drive("disksim-msr");
    assert_eq!(latency_ns(&mut small, Request::read(ByteSize(0), ByteSize(4096))), 25_000 + 105_600 + 1_907);
    assert_eq!(latency_ns(&mut small, Request::write(ByteSize(0), ByteSize(4096))), 200_000 + 105_600 + 1_907);
}

#[test]
fn a_request_across_two_pages_is_two_operations_side_by_side_on_two_elements_and_in_turn_on_one() {
    let across = || Request::read(ByteSize(2048), ByteSize(4096));
    assert_eq!(latency_ns(&mut drive("disksim-msr"), across()), 130_600 + 1_907);
    let mut config = DeviceConfig::preset("disksim-msr").unwrap();
    config.flash.channels = 1;
    config.capacity_bytes /= 8;
    let mut one = SimulatedSsd::new(config, 1).unwrap();
    one.fill_at_once().unwrap();
    assert_eq!(latency_ns(&mut one, across()), 2 * 130_600 + 1_907);
}

#[test]
fn the_last_data_page_of_a_block_pays_for_the_summary_page() {
    let mut drive = drive("machado-32g");
    // The same page again and again climbs through the active blocks of the 8 planes and then fills the youngest one.
    let mut cost = || latency_ns(&mut drive, Request::write(ByteSize(0), ByteSize::kib(64))) - 1_920_115;
    let costs: Vec<u64> = (0..13).map(|_| cost()).collect();
    let summary = 200_000 + 13_200;
    assert_eq!(costs, [0, 0, 0, 0, 0, 0, 0, 0, 0, summary, 0, 0, summary]);
}

/// A grid cell as the model printed it.
struct Cell {
    pattern: String,
    kib: u64,
    blocks: u32,
    policy: String,
    min_free: u32,
    reserve: u32,
    /// The address range, where the file tells it.
    range: Option<u64>,
    mean_ms: f64,
    /// Cleans and moved pages, where the file tells them.
    cleaning: Option<(u64, u64)>,
}

fn cells(path: &Path) -> Vec<Cell> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column = |name: &str| header.iter().position(|&column| column == name);
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            let field = |name: &str| column(name).map(|at| fields[at]);
            let number = |name: &str| field(name).and_then(|text| text.parse::<u64>().ok());
            Cell {
                pattern: field("pattern").unwrap().to_owned(),
                kib: number("request_kib").unwrap(),
                blocks: number("blocks_per_plane").unwrap() as u32,
                policy: field("cleaning_policy").unwrap().to_owned(),
                min_free: number("min_free_percent").unwrap() as u32,
                reserve: number("reserve_percent").unwrap() as u32,
                range: number("address_range_sectors"),
                mean_ms: field("mean_response_ms").unwrap().parse().unwrap(),
                cleaning: number("cleans").zip(number("pages_moved")),
            }
        })
        .collect()
}

impl Cell {
    fn workload(&self) -> Synthetic {
        let block_sectors = self.kib * 2;
        Synthetic {
            capacity_sectors: self.range.unwrap_or(4_000_000_u64.next_multiple_of(block_sectors)),
            block_sectors,
            size: Size::Block,
            gap_ms: 2000.0,
            fixed_gap: true,
            sequential: self.pattern.starts_with('s'),
            operation: if self.pattern.ends_with('r') { Operation::Read } else { Operation::Write },
            requests: 300,
        }
    }

    fn config(&self) -> DeviceConfig {
        machado(self.blocks, policy(&self.policy), self.min_free, self.reserve)
    }

    /// Whether the workload asks for nothing behind the drive, of which the model says nothing sensible.
    fn is_defined(&self) -> bool {
        let capacity = self.config().capacity_bytes / 512;
        self.workload().arrivals().all(|arrival| arrival.sector + arrival.sectors <= capacity)
    }

    fn name(&self) -> String {
        let Self { pattern, kib, blocks, policy, min_free, reserve, range, .. } = self;
        format!("{pattern} {kib} KiB, {blocks} blocks, {policy}, {min_free}/{reserve} %, range {range:?}")
    }

    /// Runs it; gives how far the mean is off, as a share.
    fn error(&self) -> f64 {
        let outcome = run(self.config(), self.workload().arrivals());
        assert_eq!(outcome.completed, 299, "{}", self.name());
        if let Some(cleaning) = self.cleaning {
            assert_eq!((outcome.cleaning.cleans, outcome.cleaning.pages_moved), cleaning, "{}", self.name());
        }
        (outcome.mean_ms / self.mean_ms - 1.0).abs()
    }
}

/// The files with what DiskSim printed, beside the repository.
fn reference(file: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference/disksim").join(file);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: {} is not there", path.display());
    None
}

/// Half of a unit of the sixth decimal of a mean, and what rounding each time to nanoseconds adds.
const TO_THE_DIGIT_MS: f64 = 2.0e-6;

#[test]
fn the_grid_of_the_32_gb_drive_is_that_of_disksim() {
    let Some(path) = reference("seed-grid-32GB.csv") else { return };
    let cells = cells(&path);
    let (defined, undefined): (Vec<_>, Vec<_>) = cells.iter().partition(|cell| cell.is_defined());
    for cell in &undefined {
        println!("not compared, it asks for addresses behind the drive: {}", cell.name());
    }
    assert_eq!(defined.len() + undefined.len(), 77);
    let worst = defined.iter().map(|cell| (cell.error(), cell.name())).max_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
    println!("{} cells, worst {:.7} ({})", defined.len(), worst.0, worst.1);
    defined.iter().for_each(|cell| assert!(cell.error() * cell.mean_ms < TO_THE_DIGIT_MS, "{}", cell.name()));
}

#[test]
fn the_grid_of_the_4_gb_drive_is_that_of_disksim_and_so_are_its_cleanings() {
    let cells = cells(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/disksim-4gb-grid.csv"));
    assert_eq!(cells.len(), 160);
    for cell in &cells {
        let error = cell.error();
        assert!(error * cell.mean_ms < TO_THE_DIGIT_MS, "{}: {error}", cell.name());
    }
}

/// A row of the model's own validation: exponential sizes around 4 KiB, 2,000 requests a second.
fn synthetic_row(sequential: bool, operation: Operation, requests: u64) -> Outcome {
    let workload = Synthetic {
        capacity_sectors: 7_018_904,
        block_sectors: 8,
        size: Size::Exponential(8.0),
        gap_ms: 1.0,
        fixed_gap: false,
        sequential,
        operation,
        requests,
    };
    run(DeviceConfig::preset("disksim-msr").unwrap(), workload.arrivals())
}

fn assert_row(name: &str, outcome: &Outcome, mean_ms: f64, (cleans, moved): (u64, u64)) {
    println!("{name}: DiskSim {mean_ms:.6} ms, here {:.6} ms, {:?}", outcome.mean_ms, outcome.cleaning);
    assert!((outcome.mean_ms - mean_ms).abs() < TO_THE_DIGIT_MS, "{name}: {} ms", outcome.mean_ms);
    assert_eq!((outcome.cleaning.cleans, outcome.cleaning.pages_moved), (cleans, moved), "{name}");
}

#[test]
fn the_short_synthetic_rows_are_those_of_disksim() {
    assert_row("sr250k", &synthetic_row(true, Operation::Read, 250_000), 0.132511, (0, 0));
    assert_row("sw250k", &synthetic_row(true, Operation::Write, 250_000), 0.310895, (0, 0));
    assert_row("rr250k", &synthetic_row(false, Operation::Read, 250_000), 0.136118, (0, 0));
    assert_row("rw250k", &synthetic_row(false, Operation::Write, 250_000), 0.329458, (0, 0));
}

#[test]
#[ignore = "10 million requests"]
fn the_long_synthetic_rows_are_those_of_disksim() {
    assert_row("sw5m", &synthetic_row(true, Operation::Write, 5_000_000), 0.334365, (77_493, 0));
    assert_row("rw5m", &synthetic_row(false, Operation::Write, 5_000_000), 0.593438, (143_179, 1_929_239));
}

/// A long run on a small drive, and what the model printed: mean, cleans, moved pages, migrations, migrated pages,
/// life.
struct LongRun {
    name: &'static str,
    wear_aware: bool,
    mean_ms: f64,
    counts: [u64; 4],
    life: (u32, u32, f64, f64),
}

/// 4 elements of `planes` planes of `blocks` blocks of 32 pages of 4 KiB, a reserve of 15 %.
fn small_drive(planes: u32, blocks: u32) -> DeviceConfig {
    let mut config = DeviceConfig::preset("disksim-msr").unwrap();
    config.flash.channels = 4;
    (config.flash.planes_per_die, config.flash.blocks_per_plane, config.flash.pages_per_block) = (planes, blocks, 32);
    config.capacity_bytes = u64::from(blocks - blocks * 15 / 100) * config.ftl.element.row_bytes(&config);
    config
}

fn assert_long_run(run: &LongRun, outcome: &Outcome) {
    let LongRun { name, wear_aware, mean_ms, counts, life } = run;
    println!("{name}, wear-aware {wear_aware}: DiskSim {mean_ms:.6} ms, here {outcome:?}");
    let cleaning = outcome.cleaning;
    let measured = [cleaning.cleans, cleaning.pages_moved, cleaning.migrations, cleaning.pages_migrated];
    let migrates = counts[2] > 0;
    let tolerance = if migrates { SPARING_TOLERANCE } else { 0.0 };
    for (measured, printed) in measured.iter().zip(counts) {
        assert!(measured.abs_diff(*printed) as f64 <= tolerance * *printed as f64, "{name}: {measured} and {printed}");
    }
    assert!((outcome.mean_ms - mean_ms).abs() < tolerance * mean_ms + 2.0 * TO_THE_DIGIT_MS, "{name}: {outcome:?}");
    if migrates {
        assert!((outcome.life.mean / life.2 - 1.0).abs() < tolerance, "{name}");
        assert!((outcome.life.deviation / life.3 - 1.0).abs() < 10.0 * tolerance, "{name}");
        return;
    }
    assert_eq!((outcome.life.least, outcome.life.most), (life.0, life.1), "{name}");
    // The model prints variances element by element; their mean leaves out how far the elements' means are apart.
    assert!((outcome.life.mean - life.2).abs() < 1e-4, "{name}");
    assert!((outcome.life.deviation / life.3 - 1.0).abs() < 0.01, "{name}");
}

/// Where a victim is itself the coldest block, DiskSim draws whether to pass it over from the one generator of all its
/// random numbers, and an element here from its own. That is 4 of 2,709 migrations, and all after it is a little
/// different.
const SPARING_TOLERANCE: f64 = 0.01;

#[test]
#[ignore = "two million requests"]
#[rustfmt::skip]
fn long_runs_with_both_policies_are_those_of_disksim() {
    let skew = |part, share| Some((part, share));
    let cases = [
        ("s2", skew(0.1, 0.9), 1), ("s3", skew(0.05, 0.95), 7), ("s4", skew(0.2, 0.8), 7), ("s5", skew(0.5, 0.9), 7),
        ("r2", None, 1), ("k1", skew(0.1, 0.9), 1), ("k2", None, 1),
    ];
    let rows = [
        ("s2", false, 1.716283, [28966, 704145, 0, 0], (13, 50, 35.8564, 7.9207)),
        ("s2", true, 1.930964, [31196, 689294, 2709, 72811], (10, 45, 34.7676, 5.2121)),
        ("s3", false, 1.316648, [22343, 498831, 0, 0], (4, 50, 39.0903, 12.9841)),
        ("s3", true, 1.399518, [23270, 492078, 1145, 32140], (21, 50, 38.6377, 4.6322)),
        ("s4", false, 1.702290, [28794, 698808, 0, 0], (26, 50, 35.9404, 3.4964)),
        ("s4", true, 1.760031, [29473, 698002, 705, 18330], (9, 44, 35.6089, 3.9239)),
        ("s5", false, 1.629385, [27661, 663687, 0, 0], (26, 50, 36.4937, 3.4594)),
        ("s5", true, 1.648971, [27859, 662599, 233, 6064], (16, 49, 36.3970, 3.5456)),
        ("r2", false, 1.619039, [27425, 656364, 0, 0], (32, 50, 36.6089, 1.6515)),
        ("r2", true, 1.619039, [27425, 656364, 0, 0], (32, 50, 36.6089, 1.6515)),
        ("k1", false, 3.549817, [115895, 202494, 0, 0], (8, 50, 42.9263, 8.7056)),
        ("k1", true, 3.613615, [120665, 194972, 7277, 19966], (26, 50, 42.6352, 4.6943)),
        ("k2", false, 3.480522, [111543, 189435, 0, 0], (30, 50, 43.1920, 3.3879)),
        ("k2", true, 3.534116, [115506, 189647, 3893, 8892], (0, 50, 42.9501, 3.9749)),
    ];
    for (name, wear_aware, mean_ms, counts, life) in rows {
        let &(_, skew, seed) = cases.iter().find(|case| case.0 == name).unwrap();
        let large_pages = name.starts_with('k');
        let policy = if wear_aware { CleaningPolicy::WearAware } else { CleaningPolicy::Greedy };
        let mut config = if large_pages { machado(256, policy, 5, 15) } else { small_drive(2, 256) };
        config.ftl.element.cleaning_policy = policy;
        let workload = match large_pages {
            true => PageWrites { requests: 150_000, range: 41_856, skew, gap_ms: 6.0, seed, page_sectors: 128 },
            false => PageWrites { requests: 200_000, range: 53_816, skew, gap_ms: 2.0, seed, page_sectors: 8 },
        };
        let outcome = run(config, workload.arrivals());
        assert_long_run(&LongRun { name, wear_aware, mean_ms, counts, life }, &outcome);
    }
}

#[test]
fn other_pools_orders_and_times_of_cleaning_are_those_of_disksim() {
    let workload = PageWrites { requests: 60_000, range: 54_064, skew: None, gap_ms: 1.0, seed: 3, page_sectors: 8 };
    let case = |name, mean_ms, cleans, moved, life, change: fn(&mut flashwise_ssd::config::ElementConfig)| {
        let mut config = small_drive(4, 128);
        change(&mut config.ftl.element);
        let run_of = LongRun { name, wear_aware: false, mean_ms, counts: [cleans, moved, 0, 0], life };
        assert_long_run(&run_of, &run(config, workload.arrivals()));
    };
    case("as shipped", 2.091935, 8009, 194_223, (43, 50, 46.0894, 0.8381), |_| {});
    case("concatenated planes", 2.097966, 8007, 194_163, (43, 50, 46.0903, 0.8210), |element| {
        element.block_order = BlockOrder::Concatenated;
    });
    case("a pool a plane", 2.321106, 8060, 195_789, (43, 50, 46.0645, 0.8355), |element| {
        element.allocation_pool = AllocationPool::Plane;
    });
    case("in the background", 1.155804, 8009, 194_223, (43, 50, 46.0894, 0.8381), |element| {
        element.cleaning_mode = CleaningMode::Background;
    });
}

#[test]
fn reads_and_writes_of_many_pages_mixed_are_those_of_disksim() {
    let outcome = run(small_drive(4, 128), mixed(20_000));
    let life = (40, 50, 44.8057, 1.1488);
    let counts = [10_638, 249_992, 0, 0];
    let run_of = LongRun { name: "mix", wear_aware: false, mean_ms: 4.020983, counts, life };
    assert_long_run(&run_of, &outcome);
}
