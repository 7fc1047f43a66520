//! What every format's reader makes of a small sample, written after the format's published layout.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use flashwise_trace::{FileRole, ReadOptions, TraceFormat, TraceReader, TraceRecord};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(name)
}

/// A record in a line: time, operation, bytes, and what else is known.
fn line(record: &TraceRecord, files: &[String]) -> String {
    let TraceRecord { at, operation, offset, length, latency, device, process, file, role, fua, content } = *record;
    let mut line = format!("{} {operation:?} {}+{}", at.0, offset.0, length.0);
    let mut tell = |name: &str, value: Option<String>| {
        value.into_iter().for_each(|value| write!(line, " {name}={value}").unwrap());
    };
    tell("latency", latency.map(|latency| latency.0.to_string()));
    tell("device", device.map(|device| device.to_string()));
    tell("process", process.map(|process| process.to_string()));
    tell("file", file.map(|file| files[file as usize].clone()));
    tell("role", (role != FileRole::Unknown).then(|| format!("{role:?}")));
    tell("fua", fua.then(|| "yes".to_owned()));
    tell("content", content.map(|content| format!("{content:x}")));
    line
}

/// Everything that is told of a sample.
fn told(name: &str) -> String {
    let mut reader = TraceReader::open(&sample(name), &ReadOptions::default()).unwrap();
    let detection = reader.detection();
    let mut text = format!("{}: {} ({:?})\n", detection.format.name(), detection.reason, reader.clock());
    while let Some(record) = reader.next_record().unwrap() {
        writeln!(text, "{}", line(&record, reader.files())).unwrap();
    }
    reader.remarks().iter().for_each(|remark| writeln!(text, "({remark})").unwrap());
    text
}

macro_rules! samples {
    ($($test:ident $file:literal,)*) => {
        $(#[test]
        fn $test() {
            insta::assert_snapshot!(told($file));
        })*

        #[test]
        fn every_format_has_a_sample() {
            let known = [$(TraceReader::open(&sample($file), &ReadOptions::default()).unwrap().detection().format),*];
            let missing: Vec<_> = TraceFormat::all().filter(|format| !known.contains(format)).collect();
            // A Parquet file is made by the writer, in the tests of the writers; columns need a layout.
            assert_eq!(missing, [TraceFormat::Parquet, TraceFormat::Columns]);
        }
    };
}

samples! {
    msr_cambridge_counts_in_100_ns_since_1601 "msr.csv",
    fiu_tells_the_hash_of_the_content "fiu.txt",
    spc_counts_in_seconds_and_blocks "spc.csv",
    disksim_has_decimals_and_bit_0_reads "disksim.txt",
    mqsim_has_none_and_1_reads "mqsim.txt",
    alibaba_says_r_or_w "alibaba.csv",
    tencent_says_1_for_a_write "tencent.csv",
    fio_iolog_version_2_adds_its_waits_up "fio-iolog-v2.txt",
    fio_iolog_version_3_has_times "fio-iolog-v3.txt",
    fio_log_is_put_into_the_order_of_submission "fio-log.txt",
    blkparse_pairs_issue_and_completion "blkparse.txt",
    blktrace_is_read_in_the_byte_order_of_its_machine "blktrace.bin",
    blktrace_of_a_big_endian_machine_is_the_same "blktrace-big-endian.bin",
    biosnoop_is_put_into_the_order_of_submission "biosnoop.txt",
    vscsi_version_1_has_no_latency "vscsi-v1.bin",
    vscsi_version_2_has_one "vscsi-v2.bin",
    vscsi_is_read_as_text_too "vscsi.csv",
    oracle_general_reads_everything "oracle-general.bin",
    lcs_describes_itself_in_its_early_form "lcs-early.bin",
    lcs_version_2_has_operations "lcs-v2.bin",
    lcs_version_4_has_a_long_header "lcs-v4.bin",
    tracefs_pairs_issue_and_completion_and_tells_what_was_lost "tracefs.txt",
    perf_script_is_read_as_tracefs_is "perf-script.txt",
    strace_follows_descriptors_and_interrupted_calls "strace.txt",
    systor_has_response_times_that_may_be_absent "systor.csv",
    k5cloud_counts_in_seconds_and_bytes "k5cloud.csv",
    thesios_is_read_by_its_header "thesios.csv",
    tectonic_gets_and_puts_in_blocks "baleen.txt",
    xperf_is_read_by_its_header_and_put_into_the_order_of_submission "etw.csv",
    arc_reads_runs_of_blocks "arc.lis",
    simplessd_counts_in_ms_and_sectors "simplessd.txt",
    flashwise_csv_finds_its_columns_by_name "flashwise.csv",
    pages_are_numbers_alone_or_behind_r_and_w "pages.txt",
    packed_pages_are_words "u32-le.bin",
    packed_pages_are_words_of_big_endian_machines_too "u32-be.bin",
}
