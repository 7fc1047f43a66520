//! A server on a thread, and a client that speaks the protocol byte by byte.

#![allow(dead_code, reason = "each test file uses its share")]

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use flashwise_attach::control::{self, Command, Reply, control_path};
use flashwise_attach::{AttachError, AttachReport, Capture, DeviceStat, Engine, Pace, Server, Stop};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use tempfile::TempDir;

/// Commands by their numbers.
pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const DISCONNECT: u16 = 2;
pub const FLUSH: u16 = 3;
pub const TRIM: u16 = 4;
pub const WRITE_ZEROES: u16 = 6;
pub const BLOCK_STATUS: u16 = 7;
/// The flag for FUA.
pub const FUA: u16 = 1;

/// A server and where it listens.
pub struct Served {
    pub socket: PathBuf,
    pub control: PathBuf,
    pub metrics: SocketAddr,
    pub stop: Stop,
    serving: JoinHandle<Result<AttachReport, AttachError>>,
    _directory: TempDir,
}

impl Served {
    pub fn start(pace: Pace, capture: Option<Capture>) -> Self {
        Self::of(engine(pace, capture))
    }

    pub fn of(engine: Engine) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("ssd.sock");
        let mut server = bound(&socket, engine).unwrap();
        let control = control_path(&socket);
        server.control(&control).unwrap();
        let metrics = server.metrics("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let stop = server.stop();
        let serving = std::thread::spawn(move || {
            let mut engine = server.run()?;
            engine.detach()?;
            engine.finish()
        });
        Self { socket, control, metrics, stop, serving, _directory: directory }
    }

    /// What the drive says to an order.
    pub fn order(&self, order: &Command) -> Result<Reply, AttachError> {
        control::send(&self.control, order)
    }

    /// What the drive is doing.
    pub fn stat(&self) -> DeviceStat {
        match self.order(&Command::Stat).unwrap() {
            Reply::Stat(stat) => *stat,
            told => panic!("{told:?}"),
        }
    }

    /// Ends the server: what it did.
    pub fn end(self) -> AttachReport {
        self.stop.request();
        let report = self.serving.join().unwrap().unwrap();
        assert!(!self.socket.exists() && !self.control.exists(), "the sockets are gone with their server");
        report
    }
}

/// A server at a socket.
pub fn bound(socket: &Path, engine: Engine) -> Result<Server, AttachError> {
    let mut server = Server::new(engine)?;
    server.listen(socket)?;
    Ok(server)
}

pub fn engine(pace: Pace, capture: Option<Capture>) -> Engine {
    engine_of(DeviceConfig::preset("samsung-960-evo").unwrap(), pace, capture)
}

pub fn engine_of(config: DeviceConfig, pace: Pace, capture: Option<Capture>) -> Engine {
    let drive = SimulatedSsd::new(config, 1).unwrap();
    Engine::new(drive, pace, Duration::ZERO, capture, Instant::now()).unwrap()
}

/// A client behind the negotiation.
pub struct Client {
    pub stream: UnixStream,
    pub capacity: u64,
    pub cookie: u64,
}

impl Client {
    pub fn connect(socket: &Path) -> Self {
        let mut stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).unwrap();
        assert_eq!(&greeting, b"NBDMAGICIHAVEOPT\0\x03");
        let mut words = 3_u32.to_be_bytes().to_vec();
        words.extend(b"IHAVEOPT\0\0\0\x01\0\0\0\x04disk");
        stream.write_all(&words).unwrap();
        let mut export = [0; 10];
        stream.read_exact(&mut export).unwrap();
        let capacity = u64::from_be_bytes(export[..8].try_into().unwrap());
        Self { stream, capacity, cookie: 0 }
    }

    /// One that has agreed on structured replies and on `base:allocation`.
    pub fn connect_structured(socket: &Path) -> Self {
        let mut stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.read_exact(&mut [0; 18]).unwrap();
        let text = |text: &[u8]| [&(text.len() as u32).to_be_bytes(), text].concat();
        let contexts = [text(b"disk"), 1_u32.to_be_bytes().to_vec(), text(b"base:allocation")].concat();
        let go = [text(b"disk"), vec![0; 2]].concat();
        stream.write_all(&3_u32.to_be_bytes()).unwrap();
        let mut capacity = 0;
        for (option, data) in [(8_u32, vec![]), (10, contexts), (7, go)] {
            let words = [b"IHAVEOPT".to_vec(), option.to_be_bytes().to_vec(), text(&data)].concat();
            stream.write_all(&words).unwrap();
            loop {
                let mut head = [0; 20];
                stream.read_exact(&mut head).unwrap();
                let number = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
                let mut data = vec![0; number(16) as usize];
                stream.read_exact(&mut data).unwrap();
                match number(12) {
                    1 => break,
                    3 if data[..2] == [0, 0] => capacity = u64::from_be_bytes(data[2..10].try_into().unwrap()),
                    kind => assert!(kind < 1 << 31, "option {option}: {kind:x}"),
                }
            }
        }
        Self { stream, capacity, cookie: 0 }
    }

    /// The next chunk, which is the whole of a structured reply: its kind, its cookie and its data.
    pub fn chunk(&mut self) -> (u16, u64, Vec<u8>) {
        let mut head = [0; 20];
        self.stream.read_exact(&mut head).unwrap();
        assert_eq!(head[..6], [0x66, 0x8e, 0x33, 0xef, 0, 1]);
        let mut data = vec![0; u32::from_be_bytes(head[16..].try_into().unwrap()) as usize];
        self.stream.read_exact(&mut data).unwrap();
        (u16::from_be_bytes([head[6], head[7]]), u64::from_be_bytes(head[8..16].try_into().unwrap()), data)
    }

    /// Sends a request; its cookie.
    pub fn ask(&mut self, flags: u16, command: u16, offset: u64, length: u32, payload: &[u8]) -> u64 {
        self.cookie += 1;
        let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
        bytes.extend(flags.to_be_bytes());
        bytes.extend(command.to_be_bytes());
        bytes.extend(self.cookie.to_be_bytes());
        bytes.extend(offset.to_be_bytes());
        bytes.extend(length.to_be_bytes());
        bytes.extend(payload);
        self.stream.write_all(&bytes).unwrap();
        self.cookie
    }

    /// The head of the next reply: error and cookie.
    pub fn reply(&mut self) -> (u32, u64) {
        let mut head = [0; 16];
        self.stream.read_exact(&mut head).unwrap();
        assert_eq!(head[..4], 0x6744_6698_u32.to_be_bytes());
        (u32::from_be_bytes(head[4..8].try_into().unwrap()), u64::from_be_bytes(head[8..].try_into().unwrap()))
    }

    /// A request at depth one: its error.
    pub fn execute(&mut self, flags: u16, command: u16, offset: u64, length: u32, payload: &[u8]) -> u32 {
        let cookie = self.ask(flags, command, offset, length, payload);
        let (error, answered) = self.reply();
        assert_eq!(answered, cookie);
        error
    }

    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        assert_eq!(self.execute(0, WRITE, offset, bytes.len() as u32, bytes), 0);
    }

    pub fn read(&mut self, offset: u64, length: u32) -> Vec<u8> {
        assert_eq!(self.execute(0, READ, offset, length, &[]), 0);
        self.data(length)
    }

    /// The bytes behind a reply.
    pub fn data(&mut self, length: u32) -> Vec<u8> {
        let mut bytes = vec![0; length as usize];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }
}

/// A socket whose listener is gone. A program that another test starts has a copy of its descriptor until it executes.
pub fn leave_socket(path: &Path) {
    drop(UnixListener::bind(path).unwrap());
    while UnixStream::connect(path).is_ok() {
        std::thread::sleep(Duration::from_millis(10));
    }
}
