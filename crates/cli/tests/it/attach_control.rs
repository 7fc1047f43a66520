//! `flashwise device stat`, `attach cut` and `attach fault`: a drive that is attached is asked, and told what to do.

use crate::support;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::{Ended, Place};

/// A drive that is attached until it is told to end.
struct Attached {
    child: Option<Child>,
    /// What it said when it was there.
    words: String,
}

impl Attached {
    fn start(place: &Place, arguments: &[&str]) -> Self {
        let fixed = ["attach", "samsung-960-evo", "--time", "none", "-o", "json"];
        let mut child = place.command(&[&fixed[..], arguments].concat()).spawn().unwrap();
        let mut words = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut words).unwrap();
        Self { child: Some(child), words }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(self.child.as_ref().unwrap()), signal).unwrap();
    }

    fn end(mut self) -> Value {
        self.signal(Signal::INT);
        Ended::of(self.child.take().unwrap()).expect(0).document()
    }

    fn kill(mut self) {
        self.signal(Signal::KILL);
        self.child.take().unwrap().wait().unwrap();
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The network block device protocol, as far as a test needs it: one request at a time.
struct Client(UnixStream);

impl Client {
    fn connect(place: &Place) -> Self {
        let mut stream = UnixStream::connect(place.path("ssd.sock")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.read_exact(&mut [0; 18]).unwrap();
        stream.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\x04disk").unwrap();
        stream.read_exact(&mut [0; 10]).unwrap();
        Self(stream)
    }

    /// 0 reads, 1 writes 4 KiB at the start of the drive, 3 flushes; the error.
    fn execute(&mut self, command: u8) -> u32 {
        let length: u32 = if command == 3 { 0 } else { 4096 };
        let mut request = [&0x2560_9513_u32.to_be_bytes()[..], &[0, 0, 0, command], &[0; 16]].concat();
        request.extend(length.to_be_bytes());
        request.extend(vec![7; if command == 1 { 4096 } else { 0 }]);
        self.0.write_all(&request).unwrap();
        let mut head = [0; 16];
        self.0.read_exact(&mut head).unwrap();
        let error = u32::from_be_bytes(head[4..8].try_into().unwrap());
        if command == 0 && error == 0 {
            self.0.read_exact(&mut [0; 4096]).unwrap();
        }
        error
    }
}

/// A drive at `ssd.sock`.
fn attach(place: &Place, more: &[&str]) -> Attached {
    Attached::start(place, &[&["--nbd", "unix:ssd.sock"], more].concat())
}

#[test]
fn a_drive_is_found_by_whatever_names_it_and_tells_what_it_is_doing() {
    let place = Place::new();
    let drive = attach(&place, &[]);
    let mut client = Client::connect(&place);
    assert_eq!((client.execute(1), client.execute(3), client.execute(0)), (0, 0, 0));
    let uri = drive.words.split(" is at ").nth(1).unwrap().split(';').next().unwrap().to_owned();
    assert!(uri.starts_with("nbd+unix:///disk?socket="), "{uri}");
    for at in ["ssd.sock", "unix:ssd.sock", "./ssd.sock", "ssd.sock.control", &uri] {
        let document = place.run(&["device", "stat", at, "-o", "json"]).expect(0).document();
        assert_eq!((&document["schema"], &document["schema_version"]), (&"flashwise.device_stat".into(), &1.into()));
        assert_eq!(document["counters"]["host_writes"], 1, "{at}: {document}");
        assert_eq!(document["latency"]["flushes"]["requests"], 1);
    }
    let text = place.run(&["device", "stat", "ssd.sock"]).expect(0).stdout;
    assert!(text.starts_with("Samsung SSD 960 EVO 500GB after "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    drop(client);
    let report = drive.end();
    assert_eq!(report["counters"]["host_reads"], 1);
    assert_eq!(place.names(), Vec::<String>::new(), "both sockets are gone");
    let line = place.fails(1, &["device", "stat", "ssd.sock"]);
    assert!(line.contains("no drive is attached here") && line.contains("ssd.sock.control"), "{line}");
}

#[test]
fn the_log_pages_of_a_drive_are_read_like_those_of_a_real_one() {
    let place = Place::new();
    let drive = attach(&place, &[]);
    let mut client = Client::connect(&place);
    let before = place.run(&["device", "counters", "ssd.sock", "-o", "json"]).expect(4).document();
    place.write("before.json", &before.to_string());
    for _ in 0..200 {
        assert_eq!((client.execute(1), client.execute(3)), (0, 0));
    }
    let since = ["device", "counters", "ssd.sock", "--before", "before.json", "--save", "pages", "-o", "json"];
    // Of simulated milliseconds no rate is certain.
    let live = place.run(&since).expect(4).document();
    assert_eq!(live["counters"]["smart"]["host_write_commands"], 200);
    let stat = place.run(&["device", "stat", "ssd.sock", "-o", "json"]).expect(0).document();
    let programmed = &stat["counters"]["flash"]["bytes_programmed"];
    assert_eq!(&live["counters"]["ocp"]["physical_media_units_written"], programmed);
    let (low, high) =
        (&live["wear"]["write_amplification_counted"]["low"], &live["wear"]["write_amplification_counted"]["high"]);
    let real = stat["write_amplification"].as_f64().unwrap();
    assert!(low.as_f64().unwrap() <= real && real <= high.as_f64().unwrap(), "{real}: {low} {high}");
    let pages = ["device", "counters", "pages/smart-02.bin", "pages/ocp-c0.bin", "-o", "json"];
    let saved = place.run(&pages).expect(4).document();
    for page in ["smart", "ocp"] {
        assert_eq!(saved["counters"][page], live["counters"][page]);
    }
    drop(client);
    drive.end();
}

#[test]
fn a_watch_tells_a_block_at_each_interval_until_the_drive_ends() {
    let place = Place::new();
    let drive = attach(&place, &[]);
    let watch = |more: &[&str]| {
        let mut child = place.command(&[&["device", "stat", "ssd.sock", "--watch=50ms"], more].concat());
        child.spawn().unwrap()
    };
    let (text, json, mut left) = (watch(&[]), watch(&["-o", "json"]), watch(&[]));
    // Three looks of each, and one that nobody reads any more.
    drop(left.stdout.take());
    assert_eq!(left.wait().unwrap().code(), Some(0));
    let mut lines = json;
    let mut reader = BufReader::new(lines.stdout.take().unwrap());
    for _ in 0..3 {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let document: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(document["schema"], "flashwise.device_stat");
    }
    drive.end();
    let mut told = String::new();
    lines.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    reader.read_to_string(&mut String::new()).unwrap();
    assert_eq!((told.as_str(), lines.wait().unwrap().code()), ("flashwise: the drive was detached\n", Some(0)));
    let text = Ended::of(text).expect(0);
    let blocks = text.stdout.matches("Samsung SSD 960 EVO 500GB after").count();
    assert!(blocks >= 2 && !text.stdout.contains('\x1b'), "{}", text.stdout);
    assert_eq!(text.stdout.matches("since the last sample").count(), blocks - 1, "{}", text.stdout);
}

#[test]
fn a_watch_on_a_terminal_is_drawn_again_at_the_same_place() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let place = Place::new();
    let drive = attach(&place, &[]);
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let stdout = File::options().write(true).open(name).unwrap();
    let mut command = place.command(&["device", "stat", "ssd.sock", "--watch=50ms"]);
    let mut child = command.stdout(Stdio::from(stdout)).stderr(Stdio::null()).spawn().unwrap();
    drop(command);
    let (mut terminal, mut drawn) = (File::from(terminal), String::new());
    let end = Instant::now() + Duration::from_secs(60);
    while drawn.matches("\x1b[H\x1b[J").count() < 3 && Instant::now() < end {
        let mut bytes = [0; 4096];
        let count = terminal.read(&mut bytes).unwrap();
        drawn += &String::from_utf8_lossy(&bytes[..count]);
    }
    let frames: Vec<_> = drawn.split("\x1b[H\x1b[J").collect();
    assert!(frames.len() >= 4 && frames[0].is_empty() && frames[1].contains("reads and writes"), "{drawn:?}");
    drive.end();
    // What it still draws must go somewhere, or it would wait for ever.
    let drain = std::thread::spawn(move || while terminal.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {});
    assert_eq!(child.wait().unwrap().code(), Some(0));
    drain.join().unwrap();
}

#[test]
fn metrics_are_served_where_it_says() {
    let place = Place::new();
    let drive = attach(&place, &["--metrics", "0"]);
    let mut client = Client::connect(&place);
    assert_eq!(client.execute(1), 0);
    let address = drive.words.split("its metrics at http://").nth(1).unwrap().split('/').next().unwrap();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let mut scrape = TcpStream::connect(address).unwrap();
    scrape.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut page = String::new();
    scrape.read_to_string(&mut page).unwrap();
    assert!(page.contains("\nflashwise_host_written_bytes_total 4096\n"), "{page}");
    drop(client);
    drive.end();
}

#[test]
fn the_power_is_cut_where_the_drive_was_attached_for_it() {
    let place = Place::new();
    let drive = attach(&place, &["--power-cuts"]);
    let mut client = Client::connect(&place);
    assert_eq!(client.execute(1), 0);
    let document = place.run(&["attach", "cut", "ssd.sock", "-o", "json"]).expect(0).document();
    assert_eq!((&document["schema"], &document["lost_requests"]), (&"flashwise.attach-cut".into(), &0.into()));
    let text = place.run(&["attach", "cut", "ssd.sock"]).expect(0).stdout;
    assert!(text.contains("The power was cut after") && text.contains("No request was in flight."), "{text}");
    assert_eq!(client.execute(0), 0, "it serves on");
    let stat = place.run(&["device", "stat", "ssd.sock", "-o", "json"]).expect(0).document();
    assert_eq!(stat["power_cuts"], 2);
    drop(client);
    drive.end();
    let drive = attach(&place, &[]);
    let cut = place.run(&["attach", "cut", "ssd.sock"]).expect(1);
    assert!(cut.stderr.contains("attach it with --power-cuts"), "{}", cut.stderr);
    drive.end();
}

#[test]
fn faults_begin_and_end_on_demand() {
    let place = Place::new();
    let drive = attach(&place, &[]);
    let mut client = Client::connect(&place);
    let fault = |more: &[&str]| place.run(&[&["attach", "fault", "ssd.sock"], more].concat());
    assert_eq!(client.execute(1), 0);
    let text = fault(&["--unreadable", "0:4k", "--latency-spike", "5ms", "--for", "2s"]).expect(0).stdout;
    assert!(text.contains("Every request takes 5 ms longer, for 2 s more of simulated time."), "{text}");
    assert!(text.contains("4 KiB cannot be read until written again."), "{text}");
    assert_eq!(client.execute(0), 5, "EIO");
    let document = fault(&["--read-only", "-o", "json"]).expect(0).document();
    assert_eq!(
        (&document["schema"], &document["faults"]["read_only"]),
        (&"flashwise.attach-fault".into(), &true.into())
    );
    assert_eq!(document["faults"]["unreadable_bytes"], 4096, "what was wrong stays wrong");
    assert_eq!(client.execute(1), 1, "EPERM");
    let stat = place.run(&["device", "stat", "ssd.sock"]).expect(0).stdout;
    assert!(stat.contains("read-only: injected fault") && stat.contains("4 KiB cannot be read"), "{stat}");
    assert!(fault(&["--clear"]).expect(0).stdout.contains("No fault is injected."));
    assert_eq!((client.execute(0), client.execute(1)), (0, 0));
    for (more, words) in [
        (&["--unreadable", "1:4k"][..], "whole logical blocks"),
        (&["--unreadable", "0:900g"], "not a range of this drive"),
    ] {
        let refused = fault(more).expect(1);
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
    for wrong in [&[][..], &["--for", "2s"], &["--unreadable", "4k"], &["--latency-spike", "1s", "--requests", "0"]] {
        fault(wrong).expect(2);
    }
    drop(client);
    drive.end();
}

#[test]
fn a_drive_takes_no_orders_where_something_else_is_and_says_so() {
    let place = Place::new();
    place.write("ssd.sock.control", "mine");
    let mut drive = attach(&place, &[]);
    assert!(drive.words.contains("this is not a socket and is not replaced"), "{}", drive.words);
    assert!(drive.words.contains("--control PATH sets another path"), "{}", drive.words);
    drive.signal(Signal::INT);
    Ended::of(drive.child.take().unwrap()).expect(0);
    assert_eq!(place.read("ssd.sock.control"), "mine");
    let drive = attach(&place, &["--control", "orders"]);
    assert_eq!(place.run(&["device", "stat", "orders", "-o", "json"]).expect(0).document()["power_cuts"], 0);
    drive.end();
    assert_eq!(place.names(), ["ssd.sock.control"]);
}

#[test]
fn what_a_killed_drive_leaves_is_taken_away_by_the_next_one() {
    if !Path::new("/dev/fuse").exists() {
        return eprintln!("there is no /dev/fuse: not tested");
    }
    let place = Place::new();
    std::fs::create_dir(place.path("mnt")).unwrap();
    let arguments = ["--fuse", "mnt", "--nbd", "unix:ssd.sock"];
    let drive = Attached::start(&place, &arguments);
    if !place.path("mnt/disk").exists() {
        return eprintln!("{}: not tested", drive.words);
    }
    drive.kill();
    let dead = std::fs::read_dir(place.path("mnt")).unwrap_err();
    assert_eq!(dead.raw_os_error(), Some(107), "a dead mount is left");
    assert_eq!(place.names(), ["mnt", "mnt.control", "ssd.sock", "ssd.sock.control"]);
    let line = place.run(&["device", "stat", "mnt"]).expect(1).stderr;
    assert!(line.contains("the drive was detached or killed"), "{line}");
    let drive = Attached::start(&place, &arguments);
    assert!(drive.words.contains(" is at "), "{}", drive.words);
    for at in ["mnt", "mnt/", "mnt/disk"] {
        let document = place.run(&["device", "stat", at, "-o", "json"]).expect(0).document();
        assert_eq!(document["counters"]["host_reads"], 0, "the self-test is not the drive's");
    }
    drive.end();
    assert_eq!(place.names(), ["mnt"]);
    assert_eq!(place.path("mnt").read_dir().unwrap().count(), 0);
}
