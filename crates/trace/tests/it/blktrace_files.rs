//! The files that blktrace leaves, one for each CPU, are one trace. Every byte of them is written here.

use std::io::Write;
use std::path::Path;

use flashwise_block::{ByteSize, Nanos, Operation};
use flashwise_trace::{ReadOptions, TraceError, TraceFormat, TraceReader, TraceRecord};
use proptest::prelude::*;
use tempfile::TempDir;

const WRITE_ISSUED: u32 = 7 | 2 << 16;
const READ_ISSUED: u32 = 7 | 1 << 16;
const COMPLETED: u32 = 8;
const SDA: u32 = 8 << 20;
const SDB: u32 = 8 << 20 | 16;

/// One event as `blktrace_api.h` lays it out, with a payload of so many bytes.
fn event(at: u64, action: u32, sector: u64, device: u32, payload: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(0x6561_7407_u32.to_le_bytes());
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(at.to_le_bytes());
    bytes.extend(sector.to_le_bytes());
    bytes.extend(4096_u32.to_le_bytes());
    bytes.extend(action.to_le_bytes());
    bytes.extend(77_u32.to_le_bytes());
    bytes.extend(device.to_le_bytes());
    bytes.extend(0_u32.to_le_bytes());
    bytes.extend(0_u16.to_le_bytes());
    bytes.extend(payload.to_le_bytes());
    assert_eq!(bytes.len(), 48);
    bytes.resize(48 + usize::from(payload), 0xAB);
    bytes
}

/// Three CPUs: the first issues, the second completes, the third does neither.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let issued = [event(1_000, WRITE_ISSUED, 8, SDA, 0), event(3_000, READ_ISSUED, 64, SDA, 9)].concat();
    let completed =
        [event(2_000, READ_ISSUED, 0, SDA, 5), event(2_500, COMPLETED, 8, SDA, 0), event(9_000, COMPLETED, 64, SDA, 0)];
    std::fs::write(folder.path().join("sda.blktrace.0"), issued).unwrap();
    std::fs::write(folder.path().join("sda.blktrace.1"), completed.concat()).unwrap();
    std::fs::write(folder.path().join("sda.blktrace.2"), b"").unwrap();
    std::fs::write(folder.path().join("notes.txt"), b"not of blktrace").unwrap();
    folder
}

fn open(path: &Path) -> TraceReader {
    TraceReader::open(path, &ReadOptions::default()).unwrap()
}

fn records(path: &Path) -> Vec<TraceRecord> {
    open(path).map(|record| record.unwrap()).collect()
}

fn error(path: &Path) -> String {
    let told = |error: TraceError| error.to_string();
    let outcome = TraceReader::open(path, &ReadOptions::default()).map_err(told);
    outcome.and_then(|reader| reader.collect::<Result<Vec<_>, _>>().map_err(told)).unwrap_err()
}

#[test]
fn a_request_that_completes_on_another_cpu_has_its_latency_and_all_are_in_order() {
    let folder = folder();
    let told: Vec<_> = records(folder.path())
        .iter()
        .map(|record| (record.at.0, record.operation, record.offset.0, record.latency.map(|latency| latency.0)))
        .collect();
    let (write, read) = (Operation::Write, Operation::Read);
    let expected = [(1_000, write, 4_096, Some(1_500)), (2_000, read, 0, None), (3_000, read, 32_768, Some(6_000))];
    assert_eq!(told, expected);
}

#[test]
fn the_folder_and_each_of_its_files_are_the_same_trace_and_say_what_was_merged() {
    let folder = folder();
    let whole = records(folder.path());
    for name in ["sda.blktrace.0", "sda.blktrace.1", "sda.blktrace.2"] {
        assert_eq!(records(&folder.path().join(name)), whole, "{name}");
    }
    let mut reader = open(folder.path());
    assert_eq!(reader.detection().format, TraceFormat::Blktrace);
    assert_eq!(reader.detection().reason, "blktrace files, one per CPU, merged by time");
    assert_eq!(reader.by_ref().count(), 3);
    let merged = "merged by time from 2 files, one per CPU: sda.blktrace.0 to sda.blktrace.1, and 1 that are empty";
    assert_eq!(reader.remarks(), [merged, "1 of 3 requests have no completion in it, and therefore no latency"]);
}

#[test]
fn a_folder_of_several_devices_is_one_trace_and_a_file_of_it_is_of_its_device() {
    let folder = folder();
    std::fs::write(folder.path().join("sdb.blktrace.0"), event(1_500, WRITE_ISSUED, 0, SDB, 0)).unwrap();
    std::fs::write(folder.path().join("sdb.blktrace.1"), event(1_600, COMPLETED, 0, SDB, 0)).unwrap();
    let devices: Vec<_> = records(folder.path()).iter().map(|record| record.device.unwrap()).collect();
    assert_eq!(devices, [SDA, SDB, SDA, SDA]);
    let of_one = records(&folder.path().join("sdb.blktrace.0"));
    assert_eq!(of_one.len(), 1);
    assert_eq!((of_one[0].device, of_one[0].latency), (Some(SDB), Some(Nanos(100))));
}

#[test]
fn a_file_alone_and_one_that_was_renamed_are_read_by_themselves() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["sda.blktrace.0", "renamed.bin"] {
        std::fs::write(folder.path().join(name), event(5, READ_ISSUED, 16, SDA, 0)).unwrap();
        let mut reader = open(&folder.path().join(name));
        assert_eq!(reader.detection().reason, "blktrace's magic number, 0x65617407", "{name}");
        assert_eq!(reader.by_ref().count(), 1);
    }
}

#[test]
fn packed_files_are_merged_too_and_a_cpu_that_is_there_twice_is_refused() {
    let folder = folder();
    let plain = records(folder.path());
    let path = folder.path().join("sda.blktrace.1");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&std::fs::read(&path).unwrap()).unwrap();
    std::fs::write(folder.path().join("sda.blktrace.1.gz"), packed.finish().unwrap()).unwrap();
    assert!(error(folder.path()).ends_with("are of the same CPU: move one of them away"), "{}", error(folder.path()));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(records(folder.path()), plain);
}

#[test]
fn what_is_wrong_is_told_with_the_file_that_it_is_in() {
    let folder = folder();
    let second = folder.path().join("sda.blktrace.1");
    let bytes = std::fs::read(&second).unwrap();
    let name = folder.path().display();
    std::fs::write(&second, &bytes[..bytes.len() - 10]).unwrap();
    let cut = "incomplete record: 38 of 48 bytes; the file is truncated";
    assert_eq!(error(folder.path()), format!("{name}: record 3 of CPU 1: sda.blktrace.1: {cut}"));
    std::fs::write(&second, b"something else altogether").unwrap();
    let no_magic = "it does not start with blktrace's magic number, version 7 or 8";
    assert_eq!(error(folder.path()), format!("{name}: sda.blktrace.1: {no_magic}"));
    for path in ["sda.blktrace.0", "sda.blktrace.1"] {
        std::fs::write(folder.path().join(path), b"").unwrap();
    }
    assert_eq!(error(folder.path()), format!("{name}: all of its 3 files are empty: nothing was traced"));
}

#[test]
fn a_bad_event_of_one_file_is_passed_over_and_counted_and_the_others_go_on() {
    let folder = folder();
    let second = folder.path().join("sda.blktrace.1");
    let beyond = event(2_100, READ_ISSUED, u64::MAX, SDA, 0);
    let bytes = std::fs::read(&second).unwrap();
    std::fs::write(&second, [&beyond[..], &bytes].concat()).unwrap();
    let options = ReadOptions { skip_bad_lines: 1, ..ReadOptions::default() };
    let mut reader = TraceReader::open(folder.path(), &options).unwrap();
    assert_eq!((reader.by_ref().filter(Result::is_ok).count(), reader.skipped()), (3, 1));
    assert!(error(folder.path()).contains("record 1 of CPU 1: sda.blktrace.1: "), "{}", error(folder.path()));
}

proptest! {
    #[test]
    fn events_spread_over_cpus_are_the_same_trace_as_in_one_file(
        steps in prop::collection::vec((0_u64..4, any::<bool>(), 0_u64..6, 0_usize..4, 0_u16..70), 1..60),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (mut whole, mut parts, mut at) = (Vec::new(), vec![Vec::new(); 4], 0);
        for (wait, issues, block, cpu, payload) in steps {
            // Times differ: among equal ones the CPU decides, which one file does not know.
            at += wait + 1;
            let bytes = event(at, if issues { WRITE_ISSUED } else { COMPLETED }, block * 8, SDA, payload);
            whole.extend(&bytes);
            parts[cpu].extend(bytes);
        }
        for (cpu, bytes) in parts.iter().enumerate() {
            std::fs::write(folder.path().join(format!("sda.blktrace.{cpu}")), bytes).unwrap();
        }
        let single = folder.path().join("whole.bin");
        std::fs::write(&single, whole).unwrap();
        prop_assert_eq!(records(folder.path()), records(&single));
    }
}

#[test]
fn the_memory_holds_one_event_of_each_file_however_long_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let half = 200_000_u64;
    for cpu in 0..2 {
        let file = std::fs::File::create(folder.path().join(format!("sda.blktrace.{cpu}"))).unwrap();
        let mut file = std::io::BufWriter::new(file);
        for number in 0..half {
            let (action, at) = if cpu == 0 { (WRITE_ISSUED, number * 10) } else { (COMPLETED, number * 10 + 5) };
            file.write_all(&event(at, action, number * 8, SDA, 0)).unwrap();
        }
    }
    let mut reader = open(folder.path());
    let mut expected = (0..half).map(|number| (Nanos(number * 10), ByteSize(number * 4096), Some(Nanos(5))));
    while let Some(record) = reader.next_record().unwrap() {
        assert_eq!(Some((record.at, record.offset, record.latency)), expected.next());
    }
    assert_eq!(expected.next(), None);
    assert_eq!(reader.place().number(), half);
}
