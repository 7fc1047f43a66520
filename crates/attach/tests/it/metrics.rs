//! What Prometheus sees of a running drive.

use crate::support;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use flashwise_attach::control::Command;
use flashwise_attach::{AttachError, FaultCommand, Pace, Server};
use flashwise_ssd::DeviceConfig;
use support::{Client, FLUSH, FUA, Served, TRIM, WRITE, WRITE_ZEROES, engine, engine_of};

/// Sends something as it is; everything that comes back.
fn exchange(served: &Served, words: &[u8]) -> String {
    let mut stream = TcpStream::connect(served.metrics).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // The other side may have hung up before all of it was sent.
    let _ = stream.write_all(words);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

/// What is served, held against the rules of the form: samples by name and labels, and the type of each name.
struct Page {
    samples: BTreeMap<String, f64>,
    types: BTreeMap<String, String>,
}

impl Page {
    fn of(served: &Served) -> Self {
        let answer = exchange(served, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain\r\n\r\n");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
        Self::parse(body)
    }

    fn parse(body: &str) -> Self {
        assert!(body.ends_with('\n'), "the last line has an end too");
        let (mut samples, mut types, mut helped) = (BTreeMap::new(), BTreeMap::new(), String::new());
        let mut current = String::new();
        for line in body.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                helped = help.split_once(' ').unwrap().0.to_owned();
                continue;
            }
            if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').unwrap();
                assert_eq!(name, helped, "each name has its help first");
                assert!(["counter", "gauge", "summary"].contains(&kind), "{line}");
                assert_eq!(types.insert(name.to_owned(), kind.to_owned()), None, "{name} comes once");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
                current = name.to_owned();
                continue;
            }
            let (sample, value) = line.rsplit_once(' ').unwrap();
            let name = sample.split('{').next().unwrap();
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'), "{name}");
            let base = match types[&current].as_str() {
                "summary" => name.strip_suffix("_sum").or(name.strip_suffix("_count")).unwrap_or(name),
                _ => name,
            };
            assert_eq!(base, current, "samples stand below their type");
            assert!(sample.len() == name.len() || sample.ends_with("\"}"), "{line}");
            let value: f64 = value.parse().unwrap();
            assert!(value.is_finite() && value >= 0.0, "{line}");
            assert_eq!(samples.insert(sample.to_owned(), value), None, "{sample} comes once");
        }
        Self { samples, types }
    }

    fn of_name(&self, name: &str) -> f64 {
        self.samples[&format!("flashwise_{name}")]
    }

    /// Samples that never fall.
    fn counters(&self) -> impl Iterator<Item = (&String, f64)> {
        let is_counter = |sample: &str| {
            let name = sample.split('{').next().unwrap();
            self.types.get(name).is_some_and(|kind| kind == "counter")
                || name.ends_with("_seconds_sum")
                || name.ends_with("_seconds_count")
        };
        self.samples.iter().filter(move |(sample, _)| is_counter(sample)).map(|(sample, &value)| (sample, value))
    }
}

#[test]
fn the_page_is_well_formed_and_tells_what_device_stat_tells() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/compressing.toml")).unwrap();
    let config = DeviceConfig::from_toml(&text, "compressing.toml").unwrap();
    let served = Served::of(engine_of(config, Pace::Scaled(1.0), None));
    let mut client = Client::connect(&served.socket);
    for n in 0..8 {
        client.write(n << 14, &[n as u8; 16 << 10]);
    }
    client.read(0, 4096);
    assert_eq!(client.execute(0, FLUSH, 0, 0, &[]), 0);
    assert_eq!(client.execute(0, TRIM, 0, 4096, &[]), 0);
    assert_eq!(client.execute(FUA, WRITE_ZEROES, 4096, 4096, &[]), 0);
    assert_eq!(client.execute(0, WRITE, 1, 4096, &[0; 4096]), 22);
    // Nothing goes on by itself any more: what is told twice is the same.
    let (stat, page) = loop {
        let (before, page, after) = (served.stat(), Page::of(&served), served.stat());
        if before.counters == after.counters {
            break (after, page);
        }
    };
    let flash = stat.counters.flash.unwrap();
    let space = stat.space.unwrap();
    for (name, value) in [
        ("capacity_bytes", stat.capacity_bytes),
        ("host_read_bytes_total", 4096),
        ("host_written_bytes_total", 8 << 14),
        ("host_zeroed_bytes_total", 4096),
        ("host_requests_total{operation=\"read\"}", 1),
        ("host_requests_total{operation=\"write\"}", 8),
        ("host_requests_total{operation=\"flush\"}", 1),
        ("host_requests_total{operation=\"trim\"}", 1),
        ("host_requests_total{operation=\"write_zeroes\"}", 1),
        ("flash_programmed_bytes_total", flash.bytes_programmed.0),
        ("flash_padding_bytes_total", flash.padding_bytes.0),
        ("flash_gc_moved_bytes_total", flash.gc_bytes_moved.0),
        ("gc_runs_total", flash.gc_runs),
        ("gc_moved_pages_total", flash.gc_pages_moved),
        ("logical_bytes", space.logical_bytes),
        ("physical_bytes", space.physical_bytes),
        ("failed_requests_total", stat.failed),
        ("request_duration_seconds_count{operation=\"write\"}", stat.latency.writes.requests),
        ("requests_in_flight", 0),
        ("read_only", 0),
        ("nvme_smart_host_write_commands_total", 8),
        ("nvme_smart_data_units_written_total", 1),
        ("nvme_ocp_physical_media_units_written_total", flash.bytes_programmed.0),
    ] {
        assert_eq!(page.of_name(name), value as f64, "{name}");
    }
    assert_eq!(page.of_name("write_amplification_ratio"), stat.write_amplification.unwrap());
    let p99 = "request_duration_seconds{operation=\"flush\",quantile=\"0.99\"}";
    assert_eq!(page.of_name(p99), stat.latency.flushes.p99_ns as f64 / 1e9);
    let sum = page.of_name("request_duration_seconds_sum{operation=\"read\"}");
    assert_eq!(sum, stat.latency.reads.sum_ns as f64 / 1e9);
    assert_eq!(page.of_name("pacing_error_p99_seconds"), stat.pacing.unwrap().error.p99_ns as f64 / 1e9);
    assert!(page.samples.keys().any(|sample| sample.starts_with("flashwise_device_info{device=\"")));
    served.end();
}

#[test]
fn counters_never_fall() {
    let served = Served::start(Pace::Free, None);
    let mut client = Client::connect(&served.socket);
    let mut before = Page::of(&served);
    for round in 0..6_u64 {
        for n in 0..20 {
            client.write((round * 7 + n) << 15, &[3; 32 << 10]);
        }
        client.read(round << 15, 4096);
        assert_eq!(client.execute(0, FLUSH, 0, 0, &[]), 0);
        let now = Page::of(&served);
        for (sample, value) in before.counters() {
            assert!(now.samples[sample] >= value, "{sample} was {value}, is {}", now.samples[sample]);
        }
        let written = "host_written_bytes_total";
        assert!(now.of_name(written) > before.of_name(written));
        before = now;
    }
    served.order(&Command::Fault(FaultCommand { read_only: true, ..FaultCommand::default() })).unwrap();
    assert_eq!(Page::of(&served).of_name("read_only"), 1.0);
    served.end();
}

#[test]
fn who_makes_no_sense_is_told_so_and_the_drive_goes_on() {
    let served = Served::start(Pace::Free, None);
    let mut client = Client::connect(&served.socket);
    client.write(0, &[5; 512]);
    for (words, status) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "404"),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "405"),
        (b"\x16\x03\x01\r\n\r\n", "400"),
        (b"GET /metrics HTTP/3\r\n\r\n", "505"),
    ] {
        let answer = exchange(&served, words);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{words:?}: {answer}");
    }
    let long = [b"GET /metrics HTTP/1.1\r\n".to_vec(), vec![b'a'; 64 << 10]].concat();
    let answer = exchange(&served, &long);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
    // Who says nothing, or half of it, is sent away.
    for words in [&b""[..], b"GET /metrics HTTP/1.1\r\nHost:"] {
        assert_eq!(exchange(&served, words), "");
        assert_eq!(client.read(0, 512), [5; 512]);
    }
    Page::of(&served);
    served.end();
}

#[test]
fn a_hundred_idle_visitors_keep_nobody_waiting() {
    let served = Served::start(Pace::Free, None);
    let idle: Vec<_> = (0..100).map(|_| TcpStream::connect(served.metrics).unwrap()).collect();
    let begun = Instant::now();
    for _ in 0..10 {
        Page::of(&served);
    }
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    drop(idle);
    served.end();
}

#[test]
fn other_machines_are_told_nothing_unless_that_is_asked_for() {
    let mut server = Server::new(engine(Pace::Free, None)).unwrap();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:9000"] {
        let error = server.metrics(address.parse().unwrap(), false).unwrap_err();
        assert!(matches!(error, AttachError::NotLoopback(_)), "{address}");
        assert!(error.to_string().contains("--metrics-anywhere"), "{error}");
    }
    let at = server.metrics("127.0.0.2:0".parse().unwrap(), false).unwrap();
    assert!(server.metrics(at, false).unwrap_err().to_string().contains("metrics cannot be served here"));
}
