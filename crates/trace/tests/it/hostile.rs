//! No bytes end the program: every parser is fed with mutations of good samples, and with what was made to hurt.
//!
//! The mutations are seeded: a failure names the sample and the seed, and happens again. `FLASHWISE_FUZZ_CASES` sets
//! their number a sample, 300 by default: a few seconds altogether.

use std::io::{Cursor, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use flashwise_block::{ByteSize, Nanos, Operation};
use flashwise_trace::{ReadOptions, TraceFormat, TraceReader, TraceRecord, TraceSummary, TraceWriter};

/// xorshift64* (Vigna 2016): enough for choosing bytes.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound.max(1)
    }
}

/// What parsers trip over.
const NASTY: [&[u8]; 16] = [
    b"18446744073709551615",
    b"18446744073709551616",
    b"-1",
    b"9223372036854775808",
    b"",
    b"\n",
    b",",
    b" ",
    b"\0",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"1e308",
    b"0x",
    b"<unfinished ...>",
    b"(",
    b"\xf0\x9f\x92\xa5",
];

fn mutated(sample: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = sample.to_vec();
    for _ in 0..=random.below(6) {
        let at = random.below(bytes.len() + 1);
        match random.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => bytes[at] = random.below(256) as u8,
            2 => bytes.truncate(at),
            3 => drop(bytes.splice(at..at, NASTY[random.below(NASTY.len())].iter().copied())),
            4 => {
                let end = (at + random.below(24)).min(bytes.len());
                bytes.splice(at..end, NASTY[random.below(NASTY.len())].iter().copied());
            }
            5 => {
                let end = (at + random.below(200)).min(bytes.len());
                let part = bytes[at..end].to_vec();
                let to = random.below(bytes.len() + 1);
                bytes.splice(to..to, part);
            }
            _ => {
                let end = (at + random.below(40)).min(bytes.len());
                drop(bytes.drain(at..end));
            }
        }
    }
    bytes
}

fn samples() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
        .iter()
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(path).unwrap()))
        .collect()
}

fn cases() -> u64 {
    std::env::var("FLASHWISE_FUZZ_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(300)
}

/// Reads to the end, whatever comes.
fn exhaust(reader: Result<TraceReader, flashwise_trace::TraceError>) {
    if let Ok(mut reader) = reader {
        let _ = TraceSummary::of(&mut reader);
        assert!(matches!(reader.next_record(), Ok(None)), "a reader that ended goes on");
        let _ = (reader.remarks(), reader.place());
    }
}

fn survives(name: &str, seed: u64, read: impl FnOnce()) {
    let outcome = catch_unwind(AssertUnwindSafe(read));
    assert!(outcome.is_ok(), "{name} panics with seed {seed}");
}

#[test]
fn no_mutation_of_a_sample_panics_its_parser_or_the_detection() {
    for (name, sample) in samples() {
        let detected = TraceReader::read(Cursor::new(sample.clone()), &name, &ReadOptions::default()).unwrap();
        let format = detected.detection().format;
        for seed in 1..=cases() {
            let bytes = mutated(&sample, &mut Random(seed));
            let skipping = ReadOptions { skip_bad_lines: u64::MAX, ..ReadOptions::of(format) };
            for options in [ReadOptions::default(), ReadOptions::of(format), skipping] {
                let input = Cursor::new(bytes.clone());
                survives(&name, seed, || exhaust(TraceReader::read(input, &name, &options)));
            }
        }
    }
}

#[test]
fn every_parser_takes_every_sample_without_a_panic() {
    for (name, sample) in samples() {
        for format in TraceFormat::all() {
            let options = ReadOptions { skip_bad_lines: 5, ..ReadOptions::of(format) };
            survives(&name, 0, || exhaust(TraceReader::read(Cursor::new(sample.clone()), &name, &options)));
        }
    }
}

#[test]
fn no_mutation_of_a_parquet_file_ends_the_program() {
    let mut bytes = Vec::new();
    let mut writer = TraceWriter::new(TraceFormat::Parquet, &mut bytes, "out").unwrap();
    for number in 0..300 {
        let record = TraceRecord::new(Nanos(number), Operation::Write, ByteSize(number * 4096), ByteSize(4096));
        writer.write(&TraceRecord { content: Some(number % 7), ..record }).unwrap();
    }
    writer.finish().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    // The parser's panics are caught where it is called; their messages would fill the screen.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    for seed in 1..=cases() {
        std::fs::write(&path, mutated(&bytes, &mut Random(seed))).unwrap();
        survives("Parquet", seed, || exhaust(TraceReader::open(&path, &ReadOptions::of(TraceFormat::Parquet))));
    }
    std::panic::set_hook(hook);
}

fn packed(kind: &str, bytes: &[u8]) -> Vec<u8> {
    match kind {
        "gzip" => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        "zstd" => zstd::encode_all(bytes, 1).unwrap(),
        "bzip2" => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        _ => {
            let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
    }
}

#[test]
fn a_compressed_trace_is_the_same_trace_and_a_damaged_one_is_an_error_or_shorter() {
    let sample =
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples/msr.csv")).unwrap().repeat(2000);
    let read = |bytes: Vec<u8>| -> Result<Vec<TraceRecord>, String> {
        let reader = TraceReader::read(Cursor::new(bytes), "t", &ReadOptions::default()).map_err(|e| e.to_string())?;
        reader.map(|record| record.map_err(|e| e.to_string())).collect()
    };
    let plain = read(sample.clone()).unwrap();
    assert_eq!(plain.len(), 6000);
    for kind in ["gzip", "zstd", "xz", "bzip2"] {
        let bytes = packed(kind, &sample);
        let reader = TraceReader::read(Cursor::new(bytes.clone()), "t", &ReadOptions::default()).unwrap();
        assert_eq!(reader.compression().name(), kind);
        assert_eq!(read(bytes.clone()).unwrap(), plain, "{kind}");
        let twice = [packed(kind, &sample[..100]), packed(kind, &sample[100..])].concat();
        assert_eq!(read(twice).unwrap(), plain, "{kind} of two parts");
        assert!(read(bytes[..bytes.len() - 20].to_vec()).is_err(), "{kind} that was cut off");
        for seed in 1..=cases().min(100) {
            let damaged = mutated(&bytes, &mut Random(seed));
            survives(kind, seed, || drop(read(damaged)));
        }
    }
}

#[test]
fn a_bomb_fills_neither_memory_nor_time_with_one_line() {
    for kind in ["gzip", "zstd", "xz", "bzip2"] {
        let bomb = packed(kind, &vec![b'7'; 64 << 20]);
        let options = ReadOptions::of(TraceFormat::Msr);
        let mut reader = TraceReader::read(Cursor::new(bomb), "bomb", &options).unwrap();
        let told = reader.next_record().unwrap_err().to_string();
        assert_eq!(told, "bomb: line 1: a line is longer than 64 KiB: not a trace", "{kind}");
    }
}

#[test]
fn a_bad_line_is_told_with_its_number_and_its_text_and_as_many_are_skipped_as_was_asked() {
    let text = "1,W,0,4096,10\ngarbage \u{1b}[31m\n1,W,0,4096\n1,W,18446744073709551615,4096,10\n1,R,0,512,20\n";
    let read = |skip_bad_lines| {
        let options = ReadOptions { skip_bad_lines, ..ReadOptions::of(TraceFormat::Alibaba) };
        let mut reader = TraceReader::read(Cursor::new(text), "a.csv", &options).unwrap();
        let outcome: Result<Vec<_>, _> = reader.by_ref().collect();
        (outcome.map(|records| records.len()).map_err(|e| e.to_string()), reader.skipped())
    };
    let told = [read(0), read(1), read(2)].map(|(outcome, _)| outcome.unwrap_err());
    insta::assert_snapshot!(told.join("\n"), @r#"
        a.csv: line 2: it has 1 of five fields: device_id,opcode,offset,length,timestamp; it reads 'garbage \u{1b}[31m'
        a.csv: line 3: it has 4 of five fields: device_id,opcode,offset,length,timestamp; it reads '1,W,0,4096'
        a.csv: line 4: 4096 bytes at byte 18446744073709551615 exceed 2^64 bytes
    "#);
    assert_eq!(read(3), (Ok(2), 3));
    assert_eq!(read(u64::MAX), (Ok(2), 3));
}

#[test]
fn what_no_format_fits_is_told_with_the_way_out() {
    let told = |bytes: &'static [u8]| TraceReader::read(bytes, "t", &ReadOptions::default()).unwrap_err().to_string();
    insta::assert_snapshot!([told(b""), told(b"# Read me\n\nHello.\n")].join("\n"), @r#"
        t: the file is empty: name its format with --trace-format, one of parquet, lcs, blktrace, vscsi, oracle-general, csv, fio-iolog, vscsi-csv, thesios, baleen, etw, msr, alibaba, systor, k5cloud, spc, tencent, fio-log, fiu, mqsim, disksim, simplessd, arc, blkparse, biosnoop, tracefs, strace, pages, u32-le, u32-be, columns; for text in columns use --trace-format columns:'time=1:s,op=2,offset=3:bytes,length=4:bytes'
        t: its first lines match no known format: name its format with --trace-format, one of parquet, lcs, blktrace, vscsi, oracle-general, csv, fio-iolog, vscsi-csv, thesios, baleen, etw, msr, alibaba, systor, k5cloud, spc, tencent, fio-log, fiu, mqsim, disksim, simplessd, arc, blkparse, biosnoop, tracefs, strace, pages, u32-le, u32-be, columns; for text in columns use --trace-format columns:'time=1:s,op=2,offset=3:bytes,length=4:bytes'
    "#);
    let missing = TraceReader::open(Path::new("/no/such"), &ReadOptions::default()).unwrap_err().to_string();
    assert!(missing.starts_with("/no/such: No such file"), "{missing}");
    let folder = TraceReader::open(Path::new("/"), &ReadOptions::default()).unwrap_err().to_string();
    assert_eq!(folder, "/: a directory without blktrace files (sda.blktrace.0, sda.blktrace.1, …)");
}
