//! A drive that runs is asked, and told what to do.

use crate::support;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use flashwise_attach::control::{self, Command, control_path};
use flashwise_attach::{AttachError, Pace, Server};
use flashwise_block::Percentiles;
use flashwise_ssd::DeviceConfig;
use support::{Client, FLUSH, FUA, READ, Served, TRIM, WRITE, engine, engine_of};

/// Says something to a control socket as it is; the line that comes back, if one does.
fn say(served: &Served, words: &[u8]) -> String {
    let mut stream = UnixStream::connect(&served.control).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // The other side may have hung up before all of it was sent.
    let _ = stream.write_all(words);
    let mut line = String::new();
    let _ = BufReader::new(stream).read_line(&mut line);
    line
}

#[test]
fn a_running_drive_tells_what_its_report_tells_at_the_end() {
    let served = Served::start(Pace::Scaled(1.0), None);
    let mut client = Client::connect(&served.socket);
    assert_eq!(served.stat().counters.host_writes, 0);
    for n in 0..40 {
        client.write(n << 16, &[n as u8; 65_536]);
        if n % 10 == 0 {
            assert_eq!(served.stat().counters.host_writes, n + 1, "a look changes nothing");
        }
    }
    client.read(0, 4096);
    assert_eq!(client.execute(0, FLUSH, 0, 0, &[]), 0);
    assert_eq!(client.execute(0, TRIM, 0, 4096, &[]), 0);
    let told = served.stat();
    let report = served.end();
    assert_eq!((told.schema.as_str(), told.schema_version), ("flashwise.device_stat", 1));
    assert_eq!((&told.device, told.capacity_bytes), (&report.device, report.capacity_bytes));
    assert_eq!(told.counters.host_bytes_written, report.counters.host_bytes_written);
    assert_eq!(told.write_amplification, report.write_amplification);
    let parts = told.write_amplification_by_cause.unwrap();
    let sum = parts.host + parts.gc + parts.wear_levelling + parts.retirement + parts.mapping + parts.padding;
    assert!((sum - told.write_amplification.unwrap()).abs() < 1e-9, "{parts:?}");
    let same = |kind: flashwise_attach::KindLatency, percentiles: Percentiles| {
        assert_eq!(
            (kind.requests, kind.p50_ns, kind.p99_ns, kind.max_ns),
            (percentiles.count, percentiles.p50_ns, percentiles.p99_ns, percentiles.max_ns)
        );
        assert!(kind.sum_ns >= kind.requests * kind.p50_ns / 2 && kind.p90_ns <= kind.p99_9_ns);
    };
    same(told.latency.reads, report.latency.reads);
    same(told.latency.writes, report.latency.writes);
    same(told.latency.flushes, report.latency.flushes);
    same(told.latency.trims, report.latency.trims);
    assert_eq!(told.pacing, report.pacing);
    assert!(told.simulated_ns <= report.simulated_ns && told.simulated_ns > 0);
    let busy = &told.utilisation;
    assert!(busy.channels.max > 0.0 && busy.chips.max > 0.0 && busy.dies.max > 0.0 && busy.planes.max > 0.0);
    assert_eq!((told.time_scale, told.in_flight, told.failed, told.space), (Some(1.0), 0, 0, None));
    assert_eq!((told.state.read_only, told.state.end_of_life), (None, None));
}

#[test]
fn requests_that_are_under_way_are_told() {
    // A million times slower than real: no request is done before the test is.
    let served = Served::start(Pace::Scaled(1e6), None);
    let mut client = Client::connect(&served.socket);
    for n in 0..5 {
        client.ask(FUA, WRITE, n << 12, 4096, &[1; 4096]);
    }
    client.ask(0, READ, 1, 1, &[]);
    // What makes no sense is answered at once, after the others have been taken.
    assert_eq!(client.reply().0, 22);
    assert_eq!(served.stat().in_flight, 5);
    drop(client);
    served.end();
}

#[test]
fn a_drive_that_compresses_tells_logical_and_physical_bytes() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/compressing.toml")).unwrap();
    let config = DeviceConfig::from_toml(&text, "compressing.toml").unwrap();
    let served = Served::of(engine_of(config, Pace::Free, None));
    let mut client = Client::connect(&served.socket);
    client.write(0, &[7; 64 << 10]);
    let told = served.stat();
    let space = served.end().space.unwrap();
    assert_eq!((told.space, told.time_scale, told.pacing), (Some(space), None, None));
    assert!(space.physical_bytes < space.logical_bytes);
}

#[test]
fn the_control_socket_is_for_its_owner_alone_and_found_by_where_the_drive_is() {
    let served = Served::start(Pace::Free, None);
    let mode = served.control.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{mode:o}");
    for place in [&served.socket, &served.control] {
        assert_eq!(control::find(place.to_str().unwrap()).unwrap(), served.control);
    }
    let error = control::send(&served.socket, &Command::Stat).unwrap_err().to_string();
    assert!(error.contains("this is the drive's NBD socket"), "{error}");
    let control = served.control.clone();
    served.end();
    let error = control::find(control.to_str().unwrap()).unwrap_err().to_string();
    assert!(error.contains("no drive is attached here"), "{error}");
}

#[test]
fn a_control_socket_left_by_a_process_that_is_gone_is_replaced_and_nothing_else_is() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let serve = |name: &str| {
        let mut server = Server::new(engine(Pace::Free, None)).unwrap();
        server.control(&at(name)).map(|()| server).map_err(|error| error.to_string())
    };
    support::leave_socket(&at("stale"));
    let server = serve("stale").unwrap();
    assert!(serve("stale").unwrap_err().contains("another server listens here"));
    drop(server);
    assert!(!at("stale").exists());
    std::fs::write(at("file"), "mine").unwrap();
    assert!(serve("file").unwrap_err().contains("this is not a socket and is not replaced"));
    assert_eq!(std::fs::read(at("file")).unwrap(), b"mine");
    assert!(serve("missing/x").unwrap_err().contains("a socket cannot be created here"));
    assert!(serve(&"x".repeat(200)).unwrap_err().contains("a socket cannot be created here"));
}

#[test]
fn who_makes_no_sense_is_told_so_and_the_drive_goes_on() {
    let served = Served::start(Pace::Free, None);
    let mut client = Client::connect(&served.socket);
    client.write(0, &[5; 512]);
    assert!(say(&served, b"GET / HTTP/1.1\r\n\r\n").contains("this is not a valid command"));
    assert!(say(&served, b"{\"version\":9,\"order\":\"stat\"}\n").contains(
        "the other side uses version 9 of the \
                                                                            protocol"
    ));
    assert!(say(&served, b"\xff\xfe\n").contains("this is not a valid command"));
    assert!(say(&served, "[".repeat(60_000).as_bytes()).is_empty(), "there is no end of the line");
    // It hangs up on what is too long; the answer may be lost with the connection.
    let told = say(&served, &vec![b' '; 1 << 20]);
    assert!(told.is_empty() || told.contains("at most 65536 bytes"), "{told}");
    // Who says nothing, or half of it, is sent away.
    for words in [&b""[..], b"{\"version\":1,"] {
        let mut silent = UnixStream::connect(&served.control).unwrap();
        silent.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        silent.write_all(words).unwrap();
        assert_eq!(client.read(0, 512), [5; 512], "requests do not wait for it");
        assert_eq!(silent.read_to_end(&mut Vec::new()).unwrap(), 0);
    }
    assert_eq!(served.stat().counters.host_reads, 2);
    served.end();
}

/// As many as a listener serves at once.
const CONNECTIONS: usize = 8;

#[test]
fn idle_clients_keep_nobody_waiting_and_lose_their_places_to_further_ones() {
    let served = Served::start(Pace::Free, None);
    let idle = |n| -> Vec<_> { (0..n).map(|_| UnixStream::connect(&served.control).unwrap()).collect() };
    let is_open = |stream: &UnixStream| {
        stream.set_nonblocking(true).unwrap();
        (&mut &*stream).read(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    };
    // On a busy machine a second may pass before the answer.
    let answers_meanwhile = (0..20).any(|_| {
        let idle = idle(CONNECTIONS - 1);
        served.stat();
        idle.iter().all(is_open)
    });
    assert!(answers_meanwhile, "one command and the idle clients are served side by side");
    let idle_of_metrics: Vec<_> = (0..CONNECTIONS).map(|_| TcpStream::connect(served.metrics).unwrap()).collect();
    served.stat();
    let idle = idle(2 * CONNECTIONS);
    // Not a second passes: a new client takes the place of the one that has said nothing for longest.
    let begun = Instant::now();
    for _ in 0..20 {
        served.stat();
    }
    assert!(begun.elapsed() < Duration::from_secs(15), "20 answers beside idle clients: {:?}", begun.elapsed());
    assert!(!is_open(&idle[0]), "its place is another's by now");
    drop((idle, idle_of_metrics));
    served.end();
}

#[test]
fn a_client_that_sends_a_byte_now_and_then_is_sent_away_after_a_second() {
    let served = Served::start(Pace::Free, None);
    let mut slow = UnixStream::connect(&served.control).unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    for byte in b"{\"version\":1,\"ord" {
        if slow.write_all(&[*byte]).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(slow.read(&mut [0]).unwrap_or(0), 0, "it had a second");
    served.stat();
    served.end();
}

#[test]
fn a_drive_that_has_ended_is_told_as_gone() {
    let served = Served::start(Pace::Free, None);
    let control = served.control.clone();
    served.end();
    let error = control::send(&control, &Command::Stat).unwrap_err();
    assert!(
        matches!(error, AttachError::Ended { .. }) && error.to_string().contains("the drive was detached or killed"),
        "{error}"
    );
    assert_eq!(control, control_path(&control.with_extension("")));
}

#[test]
fn statistics_of_a_drive_that_does_not_answer_are_an_error_within_seconds() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("control");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let timed = || {
        let begun = Instant::now();
        let error = flashwise_attach::control::stat(&path).unwrap_err().to_string();
        assert!(error.contains("the drive did not reply within 5 s"), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    };
    timed();
    // One that says a byte now and then.
    let trickle = std::thread::spawn({
        let listener = listener.try_clone().unwrap();
        move || {
            let _first = listener.accept().unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            while stream.write_all(b" ").is_ok() {
                std::thread::sleep(Duration::from_millis(200));
            }
        }
    });
    timed();
    trickle.join().unwrap();
    // One whose backlog is full.
    let waiting: Vec<_> = (0..300)
        .map_while(|_| {
            let socket = rustix::net::socket(rustix::net::AddressFamily::UNIX, rustix::net::SocketType::STREAM, None);
            let socket = socket.unwrap();
            rustix::io::ioctl_fionbio(&socket, true).unwrap();
            let address = rustix::net::SocketAddrUnix::new(&path).unwrap();
            rustix::net::connect(&socket, &address).ok().map(|()| socket)
        })
        .collect();
    timed();
    drop((waiting, listener));
}
