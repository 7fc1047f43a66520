//! Real traces, used where they lie; a test whose trace is absent says so.

#![allow(clippy::unwrap_used, reason = "clippy does not count the helpers of an integration test as tests")]

use std::path::{Path, PathBuf};

use flashwise_trace::{Compression, ReadOptions, TraceFormat, TraceReader, TraceSummary};

fn shared(path: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces").join(path);
    // A clone elsewhere finds them through this.
    let elsewhere =
        std::env::var_os("FLASHWISE_TRACES").map(|folder| Path::new(&folder).join(path.file_name().unwrap()));
    let found = [Some(path.clone()), elsewhere].into_iter().flatten().find(|path| path.exists());
    if found.is_none() {
        eprintln!("SKIPPED: {} is not there", path.display());
    }
    found
}

fn summary(path: &Path) -> (TraceFormat, Compression, TraceSummary) {
    let mut reader = TraceReader::open(path, &ReadOptions::default()).unwrap();
    let summary = TraceSummary::of(&mut reader).unwrap();
    (reader.detection().format, reader.compression(), summary)
}

#[test]
fn cloudphysics_is_the_same_as_text_and_as_binary_but_for_the_operations() {
    let (Some(text), Some(binary)) = (shared("cloudPhysicsIO.csv.gz"), shared("cloudPhysicsIO.oracleGeneral.bin"))
    else {
        return;
    };
    let (format, compression, told) = summary(&text);
    assert_eq!((format, compression), (TraceFormat::VscsiCsv, Compression::Gzip));
    assert_eq!((told.requests, told.reads, told.writes), (113_872, 46_974, 66_898));
    let (format, compression, blind) = summary(&binary);
    assert_eq!((format, compression), (TraceFormat::OracleGeneral, Compression::None));
    assert_eq!((blind.requests, blind.reads), (113_872, 113_872));
    assert_eq!((blind.addresses, blind.footprint_bytes), (told.addresses, told.footprint_bytes));
    assert_eq!(blind.bytes_read, told.bytes_read + told.bytes_written);
}

#[test]
fn the_traces_of_mqsim_are_recognised() {
    for (name, requests, reads) in
        [("mqsim/tpcc-small.trace.gz", 6_999, 4_381), ("mqsim/wsrch-small.trace.gz", 15_000, 14_998)]
    {
        let Some(path) = shared(name) else { continue };
        let (format, _, told) = summary(&path);
        assert_eq!((format, told.requests, told.reads), (TraceFormat::Mqsim, requests, reads), "{name}");
    }
}

#[test]
fn page_numbers_are_recognised_with_and_without_operations() {
    for (name, requests, writes) in
        [("lirs/2_pools.trace.gz", 100_000, 0), ("ace_ref_b1000_n20480_s90d10_rw50.txt", 100_000, 50_000)]
    {
        let Some(path) = shared(name) else { continue };
        let (format, _, told) = summary(&path);
        assert_eq!((format, told.requests, told.writes), (TraceFormat::Pages, requests, writes), "{name}");
    }
}
