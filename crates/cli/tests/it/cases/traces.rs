//! Traces as tools, spreadsheets and data frames write them.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::input;
use crate::support::Place;

fn trace(name: &str) -> PathBuf {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/tests/tools").join(name);
    if tools.exists() { tools } else { input("traces").join(name) }
}

fn info(name: &str, options: &[&str]) -> Value {
    let path = trace(name);
    let arguments = [&["trace", "info", path.to_str().unwrap(), "-o", "json"], options].concat();
    Place::new().run(&arguments).expect(0).document()
}

fn refusal(name: &str, verb: &[&str]) -> String {
    let path = trace(name);
    Place::new().fails(1, &[verb, &[path.to_str().unwrap()]].concat())
}

/// What a trace is.
struct Expected {
    name: &'static str,
    format: &'static str,
    reads: u64,
    read_bytes: u64,
    writes: u64,
    written_bytes: u64,
    /// The median; `None` where no request has a latency.
    latency_us: Option<u64>,
    /// A remark on what was lost or left out, if one is due.
    remark: &'static str,
}

const fn expect(
    (name, format): (&'static str, &'static str),
    (reads, read_bytes): (u64, u64),
    (writes, written_bytes): (u64, u64),
    latency_us: Option<u64>,
    remark: &'static str,
) -> Expected {
    Expected { name, format, reads, read_bytes, writes, written_bytes, latency_us, remark }
}

const KIB: u64 = 1024;

const EXPECTED: [Expected; 31] = [
    // blkparse -q: its input file is named behind the events.
    expect(("blkparse-quiet.txt", "blkparse"), (0, 0), (5, 20 * KIB), Some(89), "names of blkparse's input files (1)"),
    // Letters that kernels added to the flags.
    expect(("atomic-blkparse.txt", "blkparse"), (6, 24 * KIB), (2, 32 * KIB), Some(100), ""),
    expect(("atomic-tracefs.txt", "tracefs"), (1, 16 * KIB), (1, 16 * KIB), Some(100), ""),
    expect(("zone-append.txt", "blkparse"), (1, 16 * KIB), (2, 32 * KIB), Some(100), "zone resets (ZR) (1)"),
    expect(("zone-open.txt", "blkparse"), (1, 16 * KIB), (2, 32 * KIB), Some(100), "zone opens (ZO) (1)"),
    // A control group's number in each event; the records of 64 bytes.
    expect(("blktrace-cgroup.bin", "blktrace"), (0, 0), (5, 20 * KIB), Some(89), ""),
    expect(("blktrace-version-8.bin", "blktrace"), (0, 0), (5, 20 * KIB), Some(89), ""),
    // trace-cmd's own lines.
    expect(("trace-cmd.txt", "tracefs"), (1, 4 * KIB), (1, 8 * KIB), Some(100), "lines that are not events (1)"),
    expect(
        ("trace-cmd-empty-cpu.txt", "tracefs"),
        (1, 4 * KIB),
        (1, 8 * KIB),
        Some(100),
        "lines that are not events (2)",
    ),
    expect(("trace-cmd-dropped.txt", "tracefs"), (1, 4 * KIB), (1, 8 * KIB), Some(100), "the kernel lost 5 events"),
    // biosnoop's columns by its line of names, and what a terminal keeps beside them.
    expect(("biosnoop-pattern.txt", "biosnoop"), (1, 208 * KIB), (2, 424 * KIB), Some(6680), ""),
    expect(("biosnoop-pattern-queue.txt", "biosnoop"), (0, 0), (2, 424 * KIB), Some(5490), ""),
    expect(("biosnoop-clock.txt", "biosnoop"), (1, 512 * KIB), (2, 1024 * KIB), Some(1429), ""),
    expect(("biosnoop-no-disk.txt", "biosnoop"), (1, 8), (2, 16 * KIB), Some(2000), ""),
    expect(("biosnoop-banner.txt", "biosnoop"), (0, 0), (2, 16 * KIB), Some(1000), "banners (1)"),
    // A mark of the order of bytes, a line of names, quotes.
    expect(("bom.csv", "msr"), (6, 24 * KIB), (6, 24 * KIB), Some(40), ""),
    expect(("header.csv", "msr"), (6, 24 * KIB), (6, 24 * KIB), Some(40), ""),
    expect(("alibaba-header.csv", "alibaba"), (12, 48 * KIB), (0, 0), None, ""),
    expect(("quoted.csv", "alibaba"), (12, 48 * KIB), (0, 0), None, ""),
    expect(("vscsi-bom.csv", "vscsi-csv"), (1, 4 * KIB), (1, 512), None, ""),
    // A request that the driver gave back was asked for once.
    expect(("requeued-blkparse.txt", "blkparse"), (0, 0), (1, 4 * KIB), Some(70), "1 requests were requeued"),
    expect(("requeued-tracefs.txt", "tracefs"), (1, 4 * KIB), (0, 0), Some(91), "1 requests were requeued"),
    expect(("sync-file-range.iolog", "fio-iolog"), (0, 0), (3, 12 * KIB), None, "actions sync_file_range (1)"),
    expect(("perf-call-chains.txt", "tracefs"), (0, 0), (1, 4 * KIB), Some(100), "frames of call chains (4)"),
    expect(("blkparse-queue-only.txt", "blkparse"), (1, 32 * KIB), (1, 4 * KIB), None, "it has no issue events (D)"),
    expect(("copies.txt", "strace"), (2, 1_500_000), (2, 1_500_000), Some(476), "msync (1)"),
    expect(("systor17.csv", "systor"), (2, 36 * KIB), (1, 4 * KIB), Some(100), ""),
    expect(("arc.lis", "arc"), (2, 5 * 4 * KIB), (0, 0), None, ""),
    expect(("thesios.csv", "thesios"), (1, 4 * KIB), (0, 0), Some(3000), ""),
    expect(("baleen.trace", "baleen"), (1, 128 * KIB), (1, 4 * KIB), None, ""),
    expect(("simplessd.txt", "simplessd"), (1, 4 * KIB), (2, 28 * KIB), None, ""),
];

#[test]
fn what_tools_and_spreadsheets_write_is_read_as_what_it_is() {
    for expected in &EXPECTED {
        let document = info(expected.name, &[]);
        let summary = &document["summary"];
        let told = format!("{}: {document:#}", expected.name);
        assert_eq!(document["format"], expected.format, "{told}");
        for (field, value) in [
            ("reads", expected.reads),
            ("bytes_read", expected.read_bytes),
            ("writes", expected.writes),
            ("bytes_written", expected.written_bytes),
        ] {
            assert_eq!(summary[field], value, "{field} of {told}");
        }
        // To the width of a class of the histogram.
        match (expected.latency_us, summary["latency"]["p50_ns"].as_u64()) {
            (Some(expected), Some(found)) => assert!((found / 10).abs_diff(expected * 100) <= expected * 2, "{told}"),
            (expected, found) => assert_eq!(expected, found, "{told}"),
        }
        let remarks: Vec<_> = document["remarks"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert!(remarks.iter().any(|remark| remark.contains(expected.remark)) || expected.remark.is_empty(), "{told}");
    }
}

#[test]
fn a_text_of_no_known_format_is_read_by_its_layout_and_the_refusal_names_the_way() {
    for (name, options, reads, writes) in [
        ("lba-size-time.csv", ["--trace-format", "columns:offset=1:sectors,length=2:bytes,time=3:s"], 3, 0),
        (
            "hfplayer.csv",
            [
                "--trace-format",
                "columns:time=ELAPSED_USECS.D:us,op=OP.S,offset=LBA.I:sectors,length=NBLKS.I:sectors,latency=LAT.I:us",
            ],
            1,
            0,
        ),
        ("blkparse-custom-format.txt", ["--blkparse-format", "%T.%9t %D %a %d %S %n %C\\n"], 0, 5),
    ] {
        let line = refusal(name, &["trace", "info"]);
        assert!(
            line.contains("its first lines match no known format") && line.contains("--trace-format columns:"),
            "{line}"
        );
        let summary = &info(name, &options)["summary"];
        assert_eq!((&summary["reads"], &summary["writes"]), (&reads.into(), &writes.into()), "{name}: {summary:#}");
    }
}

#[test]
fn logs_that_hold_no_requests_are_refused_by_every_verb_with_what_they_hold() {
    for (name, words) in [
        ("averaged_clat.1.log", "all of its sizes are 0: it contains averages (log_avg_msec) and no requests"),
        ("run_iops.1.log", "a log of rates (write_iops_log) of fio and contains no requests"),
    ] {
        for verb in [&["trace", "info"][..], &["simulate", "samsung-960-evo"], &["pool"], &["trace", "replay"]] {
            let more: &[&str] = if verb[0] == "pool" { &["--frames", "9"] } else { &[] };
            let line = refusal(name, &[verb, more].concat());
            assert!(line.contains(words), "{verb:?}: {line}");
        }
    }
}

#[test]
fn a_packed_trace_and_one_in_an_archive_are_read() {
    for name in ["Financial.spc.bz2", "part.tgz"] {
        let document = info(name, &[]);
        assert_eq!((&document["format"], &document["summary"]["requests"]), (&"spc".into(), &200.into()), "{name}");
    }
}

#[test]
fn an_archive_of_several_files_is_refused_with_a_command_that_takes_one() {
    let place = Place::new();
    place.write("a.csv", "1,R,0,4096,1577808000000000\n");
    place.write("b.csv", "1,W,0,4096,1577808000000000\n2,R,0,4096,1577808000000001\n");
    let tar = Command::new("tar").current_dir(place.path(".")).args(["-czf", "two.tgz", "a.csv", "b.csv"]).status();
    assert!(tar.unwrap().success());
    let line = place.fails(1, &["trace", "info", "two.tgz"]);
    let command = line.split("take one with ").nth(1).unwrap().replace("ARCHIVE", "two.tgz");
    assert!(line.contains("a.csv and b.csv") && command.ends_with("| flashwise trace info -"), "{line}");
    let program = place.command(&[]).get_program().to_str().unwrap().to_owned();
    let script = command.replace("flashwise", &program).replace("a.csv", "b.csv");
    let output = Command::new("sh").current_dir(place.path(".")).args(["-c", &script]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("requests                2"), "{told}{}", String::from_utf8_lossy(&output.stderr));
}

/// The first request is an hour late, as where two volumes were joined.
#[test]
fn a_first_request_from_later_makes_no_other_one_early() {
    let place = Place::new();
    let mut text = String::from("9,W,0,4096,1577811600000000\n");
    for number in 1..=1000_u64 {
        writeln!(text, "7,R,{},4096,{}", number % 100 * 8192, 1_577_808_000_000_000 + number * 10_000).unwrap();
    }
    place.write("late.csv", &text);
    for verb in [&["simulate", "samsung-960-evo", "late.csv"][..], &["trace", "replay", "late.csv"]] {
        let line = place.fails(1, verb);
        assert!(line.contains("time goes back to") && line.contains("sort the trace by time"), "{line}");
    }
    place.run(&["trace", "convert", "late.csv", "late.mqsim", "--to", "mqsim"]).expect(0);
    let converted = place.read("late.mqsim");
    let mut times: Vec<u64> = converted.lines().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect();
    times.sort_unstable();
    let requests = (0..1000).map(|number| number * 10_000_000);
    assert_eq!(times, requests.chain([3_599_990_000_000]).collect::<Vec<_>>());
}

#[test]
fn the_line_of_a_request_beyond_the_drive_is_its_own() {
    for (name, line) in [("beyond-the-drive.txt", 3), ("beyond-the-drive.csv", 2)] {
        let told = refusal(name, &["simulate", "samsung-960-evo"]);
        let place = format!("{name}: line {line}: 4096 bytes at byte 51199999999488: the drive ends at byte");
        assert!(told.contains(&place) && told.contains("--fold"), "{told}");
    }
}

/// A record of libCacheSim's: time, number, size, next access.
fn oracle_general(requests: impl IntoIterator<Item = (u32, u64, u32, i64)>) -> Vec<u8> {
    let bytes = |(at, id, size, next): (u32, u64, u32, i64)| {
        [&at.to_le_bytes()[..], &id.to_le_bytes(), &size.to_le_bytes(), &next.to_le_bytes()].concat()
    };
    requests.into_iter().flat_map(bytes).collect()
}

/// Misses of LRU, the accesses and pages of a pool of 50 frames.
fn pool(place: &Place, name: &str, options: &[&str]) -> [u64; 3] {
    let arguments = [&["pool", name, "--frames", "50", "--policy", "lru", "-o", "json"], options].concat();
    let document = place.run(&arguments).expect(0).document();
    [&document["results"][0]["misses"], &document["accesses"], &document["pages"]].map(|value| value.as_u64().unwrap())
}

#[test]
fn objects_that_are_named_by_hashes_of_64_bits_are_pages_of_a_pool_as_they_are() {
    let place = Place::new();
    let hash = |number: u64| (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let named = |name: fn(u64, &dyn Fn(u64) -> u64) -> u64| {
        oracle_general((0..3000_u32).map(|n| (n / 50, name(u64::from(n * n % 211), &hash), 100, -1)))
    };
    std::fs::write(place.path("hashed.oracleGeneral"), named(|n, hash| hash(n))).unwrap();
    std::fs::write(place.path("small.oracleGeneral"), named(|n, _| n + 1)).unwrap();
    let hashed = pool(&place, "hashed.oracleGeneral", &[]);
    assert_eq!(hashed, pool(&place, "small.oracleGeneral", &[]));
    assert_eq!(hashed[1..], [3000, 106]);
}

/// One object in ten is of no size, none is accessed for the last time early on, and the pipe has no name.
#[test]
fn objects_of_no_size_are_no_words_of_32_bits() {
    let place = Place::new();
    let record =
        |n: u32| (n / 50, u64::from(n * 7 % 200), if n.is_multiple_of(10) { 0 } else { 100 }, i64::from(n) + 90);
    for name in ["zero.oracleGeneral", "zero.bin"] {
        std::fs::write(place.path(name), oracle_general((0..5000).map(record))).unwrap();
        let found = pool(&place, name, &[]);
        assert_eq!(found[1..], [5000, 200], "{name}");
        assert_eq!(found, pool(&place, name, &["--trace-format", "oracle-general"]), "{name}");
    }
}

/// Each page of it would be a line of its own.
#[test]
fn a_request_of_2_63_bytes_is_a_bad_line_and_fills_no_disk() {
    let place = Place::new();
    place.write("huge.csv", "at_ns,operation,offset_bytes,length_bytes\n0,read,0,9223372036854771712\n");
    let line = place.fails(1, &["trace", "convert", "huge.csv", "out.pages", "--to", "pages"]);
    assert!(line.contains("huge.csv: line 2: ") && line.contains("9223372036854771712 bytes"), "{line}");
}
