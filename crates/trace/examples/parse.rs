//! How fast traces are read: `cargo run --release -p flashwise-trace --example parse [REQUESTS]`.
//!
//! Writes a trace of each format that is written into memory, reads it to its end, and prints requests per second of
//! one core, the reader alone. With a single format's name behind the number it does nothing else, which is what an
//! instruction count wants: `valgrind --tool=callgrind target/release/examples/parse 200000 msr`.

use std::io::Cursor;
use std::time::Instant;

use flashwise_block::{ByteSize, Nanos, Operation};
use flashwise_trace::{ReadOptions, TraceFormat, TraceReader, TraceRecord, TraceWriter};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let requests = arguments.next().map_or(Ok(4_000_000), |number| number.parse::<u64>())?;
    let only = arguments.next().and_then(|name| TraceFormat::of_name(&name));
    println!("{requests} requests a format");
    // Parquet is read from a file only.
    for format in TraceWriter::FORMATS.into_iter().filter(|&format| format != TraceFormat::Parquet) {
        if only.is_none_or(|only| only == format) {
            measure(format, requests)?;
        }
    }
    Ok(())
}

fn measure(format: TraceFormat, requests: u64) -> Result<(), Box<dyn std::error::Error>> {
    let mut bytes = Vec::new();
    let mut writer = TraceWriter::new(format, &mut bytes, "memory")?;
    for number in 0..requests {
        writer.write(&record(number))?;
    }
    writer.finish()?;
    let size = bytes.len();
    let mut reader = TraceReader::read(Cursor::new(bytes), "memory", &ReadOptions::of(format))?;
    let start = Instant::now();
    let mut sum = 0_u64;
    while let Some(record) = reader.next_record()? {
        sum = sum.wrapping_add(record.offset.0 ^ record.length.0);
    }
    let seconds = start.elapsed().as_secs_f64();
    let (rate, bandwidth) = (requests as f64 / seconds / 1e6, size as f64 / seconds / f64::from(1 << 20));
    println!("{:<15} {rate:>7.1} million/s {bandwidth:>8.0} MiB/s   (checksum {sum:016x})", format.name());
    Ok(())
}

/// As a busy volume of MSR Cambridge: a filetime of 18 digits, offsets of 10 to 12, lengths of 4 to 6.
fn record(number: u64) -> TraceRecord {
    let place = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 36;
    let operation = if place.is_multiple_of(3) { Operation::Read } else { Operation::Write };
    let (offset, length) = (ByteSize(place * 4096), ByteSize(4096 << (place % 6)));
    let record = TraceRecord::new(Nanos((number << 20) + 1_000_000_000), operation, offset, length);
    TraceRecord { latency: Some(Nanos(80_000 + place % 1_000_000)), device: Some(0), ..record }
}
