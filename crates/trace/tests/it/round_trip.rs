//! What every writer promises: read back, a trace is the same, but for what its format cannot tell.

use std::io::Cursor;

use flashwise_block::{ByteSize, Nanos, Operation};
use flashwise_trace::{
    Conversion, FileRole, Losses, ReadOptions, TraceClock, TraceFormat, TraceReader, TraceRecord, TraceWriter, convert,
};
use proptest::prelude::*;

fn written(format: TraceFormat, records: &[TraceRecord]) -> (Vec<u8>, u64, Losses) {
    let mut bytes = Vec::new();
    let mut writer = TraceWriter::new(format, &mut bytes, "out").unwrap();
    records.iter().for_each(|record| writer.write(record).unwrap());
    let (count, losses) = writer.finish().unwrap();
    (bytes, count, losses)
}

/// Reads what was written. Parquet needs a file.
fn read(bytes: Vec<u8>, options: &ReadOptions) -> Vec<TraceRecord> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    std::fs::write(&path, bytes).unwrap();
    TraceReader::open(&path, options).unwrap().map(|record| record.unwrap()).collect()
}

/// What a format keeps of a record; `None` where it cannot tell it at all.
fn kept(format: TraceFormat, record: &TraceRecord) -> Option<TraceRecord> {
    use Operation::{Flush, Read, Write};
    let transfers = matches!(record.operation, Read | Write);
    let plain = TraceRecord::new(record.at, record.operation, record.offset, record.length);
    let coarse = |time: Nanos, unit: u64| Nanos(time.0 / unit * unit);
    let device = Some(record.device.unwrap_or(0));
    let sectors = |record: TraceRecord| {
        let (start, end) = (record.offset.0 / 512 * 512, (record.offset.0 + record.length.0).next_multiple_of(512));
        TraceRecord { offset: ByteSize(start), length: ByteSize(end - start), ..record }
    };
    match format {
        TraceFormat::Csv | TraceFormat::Parquet => Some(TraceRecord { file: None, ..*record }),
        TraceFormat::Msr => transfers.then(|| {
            let latency = record.latency.map(|latency| coarse(latency, 100)).filter(|&latency| latency > Nanos(0));
            TraceRecord { at: coarse(record.at, 100), latency, device, ..plain }
        }),
        TraceFormat::Mqsim | TraceFormat::Disksim => {
            (transfers && record.length.0 > 0).then(|| sectors(TraceRecord { device, ..plain }))
        }
        TraceFormat::FioIolog => {
            let plain = TraceRecord { at: coarse(record.at, 1000), file: Some(0), ..plain };
            match record.operation {
                Operation::WriteZeroes => None,
                Flush => Some(TraceRecord { offset: ByteSize(0), length: ByteSize(0), ..plain }),
                _ => Some(plain),
            }
        }
        TraceFormat::Blkparse => {
            let process = Some(record.process.unwrap_or(0));
            let fua = record.fua && record.operation == Write;
            let plain = TraceRecord { device, process, latency: record.latency, fua, ..plain };
            match record.operation {
                Flush => Some(TraceRecord { offset: ByteSize(0), length: ByteSize(0), ..plain }),
                _ => (record.length.0 > 0).then(|| sectors(plain)),
            }
        }
        TraceFormat::OracleGeneral => (transfers && record.length.0 > 0).then(|| {
            let plain = TraceRecord { at: coarse(record.at, 1_000_000_000), operation: Read, ..plain };
            sectors(plain)
        }),
        other => panic!("{} is not written", other.name()),
    }
}

fn operations() -> impl Strategy<Value = Operation> {
    use Operation::{Flush, Read, Trim, Write, WriteZeroes};
    prop::sample::select(vec![Read, Write, Trim, WriteZeroes, Flush])
}

fn roles() -> impl Strategy<Value = FileRole> {
    use FileRole::{Database, Journal, Temporary, Unknown, WriteAheadLog};
    prop::sample::select(vec![Database, Journal, WriteAheadLog, Temporary, Unknown])
}

prop_compose! {
    fn records()(
        at in 0_u64..1 << 60, operation in operations(), offset in 0_u64..1 << 50, length in 0_u64..1 << 30,
        latency in prop::option::of(1_u64..1 << 40), device in prop::option::of(0_u32..u32::MAX),
        process: Option<u32>, role in roles(), fua: bool, content: Option<u64>,
    ) -> TraceRecord {
        TraceRecord {
            latency: latency.map(Nanos), device, process, role, fua, content,
            ..TraceRecord::new(Nanos(at), operation, ByteSize(offset), ByteSize(length))
        }
    }
}

/// Records in the order of their times, at distinct addresses: the kernel never has two requests at one place in
/// flight, and pairs them by it.
fn traces() -> impl Strategy<Value = Vec<TraceRecord>> {
    prop::collection::vec(records(), 1..60).prop_map(|mut records| {
        records.sort_by_key(|record| record.at);
        records.dedup_by_key(|record| record.operation == Operation::Flush);
        records.iter_mut().zip(1..).for_each(|(record, number): (_, u64)| record.offset.0 += number << 52);
        records
    })
}

/// Those that write a request as one; page numbers are below.
fn formats_of_requests() -> impl Strategy<Value = TraceFormat> {
    let formats = TraceWriter::FORMATS.into_iter().filter(|&format| format != TraceFormat::Pages);
    prop::sample::select(formats.collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn page_numbers_name_every_page_that_a_request_touches_in_order(
        requests in prop::collection::vec((operations(), 0_u64..1 << 40, 0_u64..40_000), 1..40),
    ) {
        let record = |&(operation, offset, length): &_| TraceRecord::new(Nanos(5), operation, ByteSize(offset), ByteSize(length));
        let records: Vec<TraceRecord> = requests.iter().map(record).collect();
        let (bytes, count, losses) = written(TraceFormat::Pages, &records);
        let is_told = |record: &&TraceRecord| matches!(record.operation, Operation::Read | Operation::Write) && record.length.0 > 0;
        let kept: Vec<_> = records.iter().filter(is_told).collect();
        let pages = kept.iter().flat_map(|record| {
            let touched = (record.offset.0..record.offset.0 + record.length.0).step_by(512);
            let last = record.offset.0 + record.length.0 - 1;
            let mut pages: Vec<u64> = touched.chain([last]).map(|byte| byte / 4096).collect();
            pages.dedup();
            pages.into_iter().map(|page| (record.operation, page))
        });
        let expected: Vec<_> = (0..).zip(pages).map(|(at, (operation, page))| {
            TraceRecord::new(Nanos(at), operation, ByteSize(page * 4096), ByteSize(4096))
        }).collect();
        prop_assert_eq!(count, kept.len() as u64);
        prop_assert_eq!(losses.trims_left_out + losses.flushes_left_out + losses.empty_left_out, records.len() as u64 - count);
        prop_assert_eq!(read(bytes, &ReadOptions::of(TraceFormat::Pages)), expected);
    }

    #[test]
    fn every_format_survives_a_round_trip(records in traces(), format in formats_of_requests()) {
        let mut records = records;
        if format == TraceFormat::OracleGeneral {
            // 32 bits of seconds.
            records.iter_mut().for_each(|record| record.at.0 >>= 4);
        }
        let (bytes, count, losses) = written(format, &records);
        let expected: Vec<_> = records.iter().filter_map(|record| kept(format, record)).collect();
        prop_assert_eq!(count, expected.len() as u64);
        prop_assert_eq!(losses.trims_left_out + losses.flushes_left_out + losses.empty_left_out, records.len() as u64 - count);
        prop_assert_eq!(read(bytes, &ReadOptions::of(format)), expected);
    }

    #[test]
    fn next_accesses_are_those_of_a_naive_search(objects in prop::collection::vec(0_u64..9, 1..60)) {
        let record = |&object: &u64| TraceRecord::new(Nanos(0), Operation::Write, ByteSize(object * 512), ByteSize(512));
        let (bytes, ..) = written(TraceFormat::OracleGeneral, &objects.iter().map(record).collect::<Vec<_>>());
        for (index, bytes) in bytes.chunks(24).enumerate() {
            let behind = objects[index + 1..].iter().position(|&object| object == objects[index]);
            let expected = behind.map_or(-1, |distance| (index + 1 + distance + 1) as i64);
            prop_assert_eq!(i64::from_le_bytes(bytes[16..].try_into().unwrap()), expected);
        }
    }
}

#[test]
fn a_written_trace_is_recognised_as_what_it_is() {
    let record = |number: u64| TraceRecord {
        latency: Some(Nanos::micros(80)),
        ..TraceRecord::new(Nanos(number * 1_500_000), Operation::Write, ByteSize(number * 4096), ByteSize(4096))
    };
    let records: Vec<_> = (0..100).map(record).collect();
    for format in TraceWriter::FORMATS {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("t"), written(format, &records).0).unwrap();
        let reader = TraceReader::open(&folder.path().join("t"), &ReadOptions::default()).unwrap();
        assert_eq!(reader.detection().format, format);
    }
}

#[test]
fn times_are_moved_to_the_clock_of_the_target() {
    let text = b"1,W,4096,4096,1577808144360767\n1,R,100,100,1577808144360700\n1,R,0,512,1577808144361767\n";
    let mut reader = TraceReader::read(&text[..], "in", &ReadOptions::default()).unwrap();
    assert_eq!(reader.clock(), TraceClock::Unix);
    let mut bytes = Vec::new();
    let told = convert(&mut reader, TraceWriter::new(TraceFormat::Mqsim, &mut bytes, "out").unwrap()).unwrap();
    assert_eq!(told, Conversion { written: 3, early: 1, losses: Losses { widened: 1, ..Losses::default() } });
    // Times count from the earliest, which is not the first.
    assert_eq!(String::from_utf8(bytes).unwrap(), "67000 1 8 8 0\n0 1 0 1 1\n1067000 1 0 1 1\n");
    let mut reader = TraceReader::read(&text[..], "in", &ReadOptions::default()).unwrap();
    let mut bytes = Vec::new();
    convert(&mut reader, TraceWriter::new(TraceFormat::Msr, &mut bytes, "out").unwrap()).unwrap();
    assert!(bytes.starts_with(b"132222817443607670,flashwise,1,Write,4096,4096,0\n"));
}

/// The format has no word for it: it must not come back as a latency of 0.
#[test]
fn a_latency_that_is_not_known_is_not_known_after_a_round_trip_through_msr() {
    let latencies = [None, Some(Nanos::micros(80))];
    let records = latencies.map(|latency| TraceRecord {
        latency,
        ..TraceRecord::new(Nanos(1000), Operation::Write, ByteSize(4096), ByteSize(4096))
    });
    let found = read(written(TraceFormat::Msr, &records).0, &ReadOptions::of(TraceFormat::Msr));
    assert_eq!(found.iter().map(|record| record.latency).collect::<Vec<_>>(), latencies);
}

#[test]
fn what_cannot_be_written_is_told() {
    let told = |format, record| {
        let mut writer = TraceWriter::new(format, Vec::new(), "out")?;
        writer.write(&record)
    };
    let record = TraceRecord::new(Nanos(u64::MAX), Operation::Write, ByteSize(u64::MAX - 600), ByteSize(512));
    let refusals = [
        told(TraceFormat::Spc, record).unwrap_err().to_string(),
        told(TraceFormat::OracleGeneral, record).unwrap_err().to_string(),
        told(TraceFormat::Parquet, record).unwrap_err().to_string(),
    ];
    insta::assert_snapshot!(refusals.join("\n"), @r#"
        out: spc cannot be written: use one of csv, parquet, msr, disksim, mqsim, fio-iolog, blkparse, oracle-general, pages
        out: request 1: its time exceeds 32 bits of seconds
        out: request 1: a number exceeds the 63 bits of a column
    "#);
    assert!(told(TraceFormat::Mqsim, record).is_ok());
}

#[test]
fn nothing_but_parquet_needs_a_file() {
    let record = TraceRecord::new(Nanos(0), Operation::Read, ByteSize(0), ByteSize(512));
    for format in TraceWriter::FORMATS {
        let reader = TraceReader::read(Cursor::new(written(format, &[record]).0), "stdin", &ReadOptions::of(format));
        assert_eq!(reader.is_ok(), format != TraceFormat::Parquet, "{}", format.name());
    }
}
