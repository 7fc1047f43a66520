//! Real traces, used where they lie; a test whose trace is absent says so.

use crate::support;
use std::path::Path;

use flashwise_trace::{Compression, ReadOptions, TraceFormat, TraceReader, TraceSummary};
use support::shared;

fn summary(path: &Path) -> (TraceFormat, Compression, TraceSummary) {
    let mut reader = TraceReader::open(path, &ReadOptions::default()).unwrap();
    let summary = TraceSummary::of(&mut reader).unwrap();
    (reader.detection().format, reader.compression(), summary)
}

/// The two files are of one recording, but 13,671 requests of it differ in their length.
#[test]
fn cloudphysics_is_recognised_as_text_and_as_binary() {
    let (Some(text), Some(binary)) = (shared("cloudPhysicsIO.csv.gz"), shared("cloudPhysicsIO.oracleGeneral.bin"))
    else {
        return;
    };
    let (format, compression, told) = summary(&text);
    assert_eq!((format, compression), (TraceFormat::VscsiCsv, Compression::Gzip));
    assert_eq!((told.requests, told.reads, told.writes), (113_872, 46_974, 66_898));
    assert_eq!(told.bytes_read + told.bytes_written, 4_205_978_112);
    // Counted exactly, 1,102,684,160 bytes of pages.
    assert!((told.footprint_bytes as f64 / 1_102_684_160.0 - 1.0).abs() < 0.02, "{}", told.footprint_bytes);
    let (format, compression, blind) = summary(&binary);
    assert_eq!((format, compression), (TraceFormat::OracleGeneral, Compression::None));
    assert_eq!((blind.requests, blind.reads, blind.bytes_read), (113_872, 113_872, 4_368_040_448));
    assert_eq!((blind.addresses, blind.duration_ns), (told.addresses, told.duration_ns));
    assert_eq!(told.duration_ns, 7_200_000_000_000, "two hours");
}

#[test]
fn the_traces_of_mqsim_are_recognised() {
    for (name, requests, reads) in
        [("mqsim/tpcc-small.trace.gz", 6_999, 4_381), ("mqsim/wsrch-small.trace.gz", 24_783, 24_779)]
    {
        let Some(path) = shared(name) else { continue };
        let (format, _, told) = summary(&path);
        assert_eq!((format, told.requests, told.reads), (TraceFormat::Mqsim, requests, reads), "{name}");
    }
}

/// Of the second one it is said that its words are big-endian; 38 % of them follow the one before as little-endian
/// ones, and none as big-endian ones.
#[test]
fn packed_page_numbers_are_recognised_with_their_order_of_bytes() {
    for (name, compression, requests, addresses) in [
        ("zipf_a0.9_n100k_r1M_s42.u32.gz", Compression::Gzip, 1_000_000, 100_000),
        ("cloudphysics_w106.trace.xz", Compression::Xz, 5_292_456, 1_197_770),
    ] {
        let Some(path) = shared(name) else { continue };
        let (format, packed, told) = summary(&path);
        assert_eq!(
            (format, packed, told.requests, told.writes),
            (TraceFormat::U32Le, compression, requests, 0),
            "{name}"
        );
        let end = told.addresses.unwrap().end_byte;
        assert_eq!(end, addresses * 4096, "{name}");
    }
}

#[test]
fn page_numbers_are_recognised_with_and_without_operations() {
    for (name, requests, writes) in
        [("lirs/2_pools.trace.gz", 100_000, 0), ("ace_ref_b1000_n20480_s90d10_rw50.txt", 100_000, 50_109)]
    {
        let Some(path) = shared(name) else { continue };
        let (format, _, told) = summary(&path);
        assert_eq!((format, told.requests, told.writes), (TraceFormat::Pages, requests, writes), "{name}");
    }
}
