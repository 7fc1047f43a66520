//! The server as its clients see it: bytes over a socket.

use crate::support;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use flashwise_attach::{Capture, Pace};
use flashwise_block::Operation;
use flashwise_ssd::DeviceConfig;
use flashwise_trace::{ReadOptions, TraceFormat, TraceReader};
use support::{
    BLOCK_STATUS, Client, DISCONNECT, FLUSH, FUA, READ, Served, TRIM, WRITE, WRITE_ZEROES, bound, engine, engine_of,
};

fn pattern(seed: u8, length: usize) -> Vec<u8> {
    (0..length).map(|n| seed.wrapping_add((n / 512) as u8).wrapping_mul(31) ^ n as u8).collect()
}

#[test]
fn what_one_connection_writes_another_one_reads() {
    let served = Served::start(Pace::Free, None);
    let (mut writer, mut reader) = (Client::connect(&served.socket), Client::connect(&served.socket));
    for (seed, offset, length) in [(1, 0, 4096), (2, 512, 512), (3, 1 << 20, 3 << 20), (4, writer.capacity - 512, 512)]
    {
        let bytes = pattern(seed, length);
        writer.write(offset, &bytes);
        assert!(reader.read(offset, length as u32) == bytes, "{length} bytes at {offset}");
    }
    assert_eq!(writer.execute(0, FLUSH, 0, 0, &[]), 0);
    assert_eq!(writer.execute(FUA, WRITE, 0, 512, &pattern(9, 512)), 0);
    let report = served.end();
    assert_eq!(
        (report.counters.flushes, report.counters.host_bytes_written.0),
        (1, 4096 + 512 + (3 << 20) + 512 + 512)
    );
}

#[test]
fn trimmed_and_zeroed_bytes_read_as_zeros_and_no_others() {
    let served = Served::start(Pace::Free, None);
    let mut client = Client::connect(&served.socket);
    let bytes = pattern(7, 64 << 10);
    client.write(0, &bytes);
    assert_eq!(client.execute(0, TRIM, 16 << 10, 16 << 10, &[]), 0);
    assert_eq!(client.execute(FUA, WRITE_ZEROES, 48 << 10, 4096, &[]), 0);
    let mut expected = bytes;
    expected[16 << 10..32 << 10].fill(0);
    expected[48 << 10..52 << 10].fill(0);
    assert!(client.read(0, 64 << 10) == expected);
    let report = served.end();
    assert_eq!((report.counters.trims, report.counters.zero_writes), (1, 1));
}

/// What compresses well is stored in less, and a drive that offers more than it has room for says when that is used up.
#[test]
fn a_drive_that_compresses_tells_what_it_stores_and_when_it_is_full() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/compressing.toml")).unwrap();
    let mut config = DeviceConfig::from_toml(&text, "compressing.toml").unwrap();
    config.reduction.as_mut().unwrap().physical_bytes = Some(1 << 20);
    let served = Served::of(engine_of(config, Pace::Free, None));
    let mut client = Client::connect(&served.socket);
    let mut random = 1_u64;
    let mut noise = |length: usize| -> Vec<u8> {
        let next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 56) as u8
        };
        std::iter::repeat_with(next).take(length).collect()
    };
    let mut compressible = noise(512);
    compressible.resize(4096, 0);
    // 4 MiB of blocks that are alike, then as much noise as there is room for beside the one that is stored of them.
    for n in 0..1024 {
        client.write(n * 4096, &compressible);
    }
    for n in 0..255 {
        client.write((4 << 20) + n * 4096, &noise(4096));
    }
    let refused = client.execute(0, WRITE, 8 << 20, 4096, &noise(4096));
    assert_eq!(refused, 28, "ENOSPC");
    assert_eq!(client.execute(0, TRIM, 4 << 20, 4096, &[]), 0);
    assert_eq!(client.execute(0, WRITE, 8 << 20, 4096, &noise(4096)), 0);
    assert!(client.read(77 * 4096, 4096) == compressible);
    let space = served.end().space.unwrap();
    assert_eq!(space.logical_bytes, (1024 + 255) * 4096);
    // Of all the compressible ones one is stored, 512 bytes of it noise.
    assert!((255 * 4096 + 512..=255 * 4096 + 640).contains(&space.physical_bytes), "{space:?}");
}

#[test]
fn many_requests_at_once_are_each_answered_once() {
    let served = Served::start(Pace::Scaled(0.1), None);
    let mut client = Client::connect(&served.socket);
    let pages = 3000;
    let mut asked = HashMap::new();
    // More than are taken at a time: the rest waits in the socket, which a thread of its own fills.
    let mut sender = client.stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        for n in 0..pages {
            let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
            request.extend([0, 0, 0, WRITE as u8]);
            request.extend((n as u64).to_be_bytes());
            request.extend((n as u64 * 4096).to_be_bytes());
            request.extend(4096_u32.to_be_bytes());
            request.extend(pattern(n as u8, 4096));
            sender.write_all(&request).unwrap();
        }
    });
    for _ in 0..pages {
        let (error, cookie) = client.reply();
        assert_eq!((error, asked.insert(cookie, ())), (0, None));
    }
    sending.join().unwrap();
    for n in [0, 1, pages / 2, pages - 1] {
        assert!(client.read(n as u64 * 4096, 4096) == pattern(n as u8, 4096));
    }
    assert_eq!(served.end().counters.host_writes, pages as u64);
}

#[test]
fn answers_do_not_come_before_the_drive_gives_them() {
    // A thousand times slower than real, so that no machine is too slow for it.
    let served = Served::start(Pace::Scaled(1000.0), None);
    let mut client = Client::connect(&served.socket);
    let began = Instant::now();
    assert_eq!(client.execute(FUA, WRITE, 0, 4096, &pattern(1, 4096)), 0);
    let took = began.elapsed();
    let report = served.end();
    let simulated = Duration::from_nanos(report.latency.writes.p50_ns);
    assert!(took >= simulated * 999, "{took:?} for a write of {simulated:?}");
    assert!(report.pacing.unwrap().error.count == 1);
}

#[test]
fn what_makes_no_sense_is_an_error_of_that_request_alone() {
    let served = Served::start(Pace::Free, None);
    let mut client = Client::connect(&served.socket);
    let behind = client.capacity;
    assert_eq!(client.execute(0, READ, 100, 512, &[]), 22, "not a whole block");
    assert_eq!(client.execute(0, READ, behind, 512, &[]), 22, "a read beyond the end");
    assert_eq!(client.execute(0, WRITE, behind, 512, &[0; 512]), 28, "a write behind the end");
    assert_eq!(client.execute(0, READ, 0, 33 << 20, &[]), 75, "a read that is too long");
    assert_eq!(client.execute(0, 7, 0, 0, &[]), 22, "a command that nobody negotiated");
    client.write(0, &[1; 512]);
    assert_eq!(client.read(0, 512), [1; 512]);
    served.end();
}

#[test]
fn a_client_that_makes_no_sense_is_sent_away_and_others_are_served_on() {
    let served = Served::start(Pace::Free, None);
    let mut sane = Client::connect(&served.socket);
    sane.write(0, &[5; 512]);

    let mut mad = Client::connect(&served.socket);
    mad.stream.write_all(&[0xff; 28]).unwrap();
    assert_eq!(mad.stream.read(&mut [0; 16]).unwrap(), 0, "no request begins like that");
    let mut long = Client::connect(&served.socket);
    long.ask(0, WRITE, 0, u32::MAX, &[]);
    assert_eq!(long.stream.read(&mut [0; 16]).unwrap(), 0, "a write of 4 GiB");
    let mut cut = Client::connect(&served.socket);
    cut.ask(0, WRITE, 0, 4096, &[9; 100]);
    drop(cut);
    let mut hello = UnixStream::connect(&served.socket).unwrap();
    hello.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    hello.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    assert_eq!(hello.read_to_end(&mut Vec::new()).unwrap(), 18, "it gets the greeting alone");

    assert_eq!(sane.read(0, 512), [5; 512]);
    served.end();
}

#[test]
fn a_client_that_says_goodbye_gets_what_it_asked_for_first() {
    let served = Served::start(Pace::Scaled(1.0), None);
    let mut client = Client::connect(&served.socket);
    let cookie = client.ask(FUA, WRITE, 0, 512, &[3; 512]);
    client.ask(0, DISCONNECT, 0, 0, &[]);
    assert_eq!(client.reply(), (0, cookie));
    assert_eq!(client.stream.read(&mut [0; 1]).unwrap(), 0);
    served.end();
}

#[test]
fn the_end_of_the_server_completes_what_is_under_way() {
    let served = Served::start(Pace::Scaled(200.0), None);
    let mut client = Client::connect(&served.socket);
    let cookie = client.ask(FUA, WRITE, 0, 4096, &[3; 4096]);
    // The server has to have taken the request: a read that it answers tells.
    let mut other = Client::connect(&served.socket);
    other.read(1 << 20, 512);
    served.stop.request();
    assert_eq!(client.reply(), (0, cookie));
    assert_eq!(served.end().counters.host_writes, 1);
}

#[test]
fn a_socket_left_by_a_server_that_is_gone_is_replaced_and_nothing_else_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ssd.sock");
    support::leave_socket(&path);
    assert!(path.exists(), "left behind");
    let server = bound(&path, engine(Pace::Free, None)).unwrap();
    let error = bound(&path, engine(Pace::Free, None)).unwrap_err().to_string();
    assert!(error.ends_with("another server listens here; stop it, or give another path"), "{error}");
    drop(server);
    assert!(!path.exists());
    std::fs::write(&path, "mine").unwrap();
    let error = bound(&path, engine(Pace::Free, None)).unwrap_err().to_string();
    assert!(error.contains("this is not a socket and is not replaced"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
}

#[test]
fn what_somebody_puts_in_the_place_of_a_socket_stays_when_the_server_ends() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ssd.sock");
    let server = bound(&path, engine(Pace::Free, None)).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "mine").unwrap();
    drop(server);
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
}

#[test]
fn everything_that_reached_the_drive_is_captured_with_both_stamps_and_the_client_s_process() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let capture = Capture::start(TraceFormat::Csv, file.reopen().unwrap(), "run.csv").unwrap();
    let served = Served::start(Pace::Scaled(1.0), Some(capture));
    let mut client = Client::connect(&served.socket);
    client.write(8192, &pattern(1, 4096));
    assert_eq!(client.execute(FUA, WRITE, 0, 512, &[1; 512]), 0);
    client.read(8192, 4096);
    assert_eq!(client.execute(0, FLUSH, 0, 0, &[]), 0);
    assert_eq!(client.execute(0, TRIM, 0, 4096, &[]), 0);
    assert_eq!(client.execute(0, WRITE_ZEROES, 0, 4096, &[]), 0);
    let report = served.end();
    assert_eq!(report.capture.as_ref().unwrap().requests, 6);

    let mut reader = TraceReader::open(file.path(), &ReadOptions::of(TraceFormat::Csv)).unwrap();
    let mut told = Vec::new();
    let mut last = 0;
    while let Some(record) = reader.next_record().unwrap() {
        assert!(record.at.0 >= last && record.latency.is_some());
        assert_eq!(record.process, Some(std::process::id()));
        last = record.at.0;
        told.push((record.operation, record.offset.0, record.length.0, record.fua));
    }
    use Operation::{Flush, Read, Trim, Write, WriteZeroes};
    let expected = [
        (Write, 8192, 4096, false),
        (Write, 0, 512, true),
        (Read, 8192, 4096, false),
        (Flush, 0, 0, false),
        (Trim, 0, 4096, false),
        (WriteZeroes, 0, 4096, false),
    ];
    assert_eq!(told, expected);
}

#[test]
fn clients_that_stop_in_the_middle_of_the_negotiation_keep_nobody_out() {
    let served = Served::start(Pace::Free, None);
    let half = |words: &[u8]| {
        let mut stream = UnixStream::connect(&served.socket).unwrap();
        stream.write_all(words).unwrap();
        stream
    };
    let mut client = Client::connect(&served.socket);
    let silent: Vec<_> = (0..100).map(|n| half(&b"\0\0\0\x03IHAVE"[..n % 10])).collect();
    let begun = Instant::now();
    let mut another = Client::connect(&served.socket);
    another.write(0, &[3; 512]);
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    assert_eq!(client.read(0, 512), [3; 512], "who was there stays");
    // Each is sent away after its time, whether somebody comes or not.
    let mut last = silent.into_iter().next_back().unwrap();
    last.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    last.read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(client.read(0, 512), [3; 512], "who has agreed on an export may be idle as long as it wants");
    served.end();
}

#[test]
fn one_client_too_many_is_sent_away_at_once_and_the_others_stay() {
    let served = Served::start(Pace::Free, None);
    let mut clients: Vec<_> = (0..32).map(|_| Client::connect(&served.socket)).collect();
    let mut one_more = UnixStream::connect(&served.socket).unwrap();
    one_more.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    assert_eq!(one_more.read_to_end(&mut Vec::new()).unwrap(), 0);
    assert!(clients.iter_mut().all(|client| client.read(0, 512) == [0; 512]));
    served.end();
}

/// A status as lengths, each with its flags.
fn status(client: &mut Client, flags: u16, offset: u64, length: u32) -> Result<Vec<(u32, u32)>, u32> {
    let cookie = client.ask(flags, BLOCK_STATUS, offset, length, &[]);
    let (kind, answered, data) = client.chunk();
    assert_eq!(answered, cookie);
    let number = |at: usize| u32::from_be_bytes(data[at..at + 4].try_into().unwrap());
    if kind == 0x8001 {
        return Err(number(0));
    }
    assert_eq!((kind, number(0)), (5, 1), "a status of the context that was set");
    Ok((4..data.len()).step_by(8).map(|at| (number(at), number(at + 4))).collect())
}

#[test]
fn the_allocation_is_what_was_written_and_not_trimmed_and_holes_read_as_zeros() {
    const HOLE: u32 = 3;
    let config = DeviceConfig::preset("samsung-960-evo").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let in_file = || {
        let image = directory.path().join("d.img");
        let mut data =
            flashwise_attach::DataFile::open(&image, flashwise_block::ByteSize(config.capacity_bytes)).unwrap();
        let new =
            || Ok::<_, flashwise_attach::AttachError>(flashwise_ssd::SimulatedSsd::new(config.clone(), 1).unwrap());
        let (drive, _) = data.drive(&config, new).unwrap();
        let mut engine =
            flashwise_attach::Engine::new(drive, Pace::Free, Duration::ZERO, None, Instant::now()).unwrap();
        engine.store_content_in(data, false);
        engine
    };
    for engine in [engine(Pace::Free, None), in_file()] {
        let served = Served::of(engine);
        let mut client = Client::connect_structured(&served.socket);
        let everything = status(&mut client, 0, 0, 64 << 20).unwrap();
        assert_eq!(everything, [(64 << 20, HOLE)]);
        client.write(1 << 20, &[7; 64 << 10]);
        client.write((1 << 20) + (96 << 10), &[8; 4096]);
        assert_eq!(client.execute(0, TRIM, (1 << 20) + (16 << 10), 16 << 10, &[]), 0);
        let expected = [(1 << 20, HOLE), (16 << 10, 0), (16 << 10, HOLE), (32 << 10, 0), (32 << 10, HOLE), (4096, 0)];
        let told = status(&mut client, 0, 0, 16 << 20).unwrap();
        assert_eq!(told[..6], expected);
        assert_eq!(told[6].1, HOLE);
        assert_eq!(status(&mut client, 8, (1 << 20) + 4096, 1 << 20).unwrap(), [(12 << 10, 0)], "the first part alone");
        // A structured read is one chunk: where it is, and the bytes.
        let cookie = client.ask(0, READ, 1 << 20, 64 << 10, &[]);
        let (kind, answered, data) = client.chunk();
        assert_eq!((kind, answered, &data[..8]), (1, cookie, &(1_u64 << 20).to_be_bytes()[..]));
        let mut expected = vec![7; 64 << 10];
        expected[16 << 10..32 << 10].fill(0);
        assert!(data[8..] == expected);
        let capacity = client.capacity;
        assert_eq!(status(&mut client, 0, capacity - 512, 1024), Err(22));
        assert_eq!(status(&mut client, 0, u64::MAX, u32::MAX), Err(22));
        assert_eq!(status(&mut client, 0, 0, 0), Err(22));
        client.ask(0, READ, capacity, 512, &[]);
        assert_eq!(client.chunk().0, 0x8001, "errors of reads are structured too");
        served.end();
    }
}

#[test]
fn who_has_not_set_the_context_gets_no_allocation() {
    let served = Served::start(Pace::Free, None);
    let mut client = Client::connect(&served.socket);
    assert_eq!(client.execute(0, BLOCK_STATUS, 0, 4096, &[]), 22);
    served.end();
}
