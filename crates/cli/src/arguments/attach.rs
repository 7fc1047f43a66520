//! Options of `attach`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use flashwise_attach::{FileSystem, Range};
use flashwise_block::{ByteSize, Nanos};
use flashwise_trace::TraceFormat;

use super::PreconditionName;
use super::trace::written_format_parser;

/// `attach`: a drive to attach, or what is to be done to one that is attached.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, disable_help_subcommand = true)]
#[command(after_help = "\
  flashwise attach samsung-960-evo --nbd unix:/tmp/ssd.sock
  fio --ioengine=nbd --uri='nbd+unix:///disk?socket=/tmp/ssd.sock' --name=job --rw=randread --bs=4k --iodepth=8
  flashwise attach intel-p4510 --nbd unix:/tmp/ssd.sock --capture run.csv -- sh -c 'nbdcopy disk.img $FLASHWISE_NBD'
  flashwise audit run.csv --profile profile.toml
  flashwise attach intel-p4510 --mount /mnt/ssd                              # as root: ext4 on the drive
  flashwise attach intel-p4510 --mount /mnt/ssd --fs xfs -- sh -c 'pgbench -i -D $FLASHWISE_MOUNT/db'
  flashwise attach intel-p4510 --fuse /run/ssd                               # the drive as the file /run/ssd/disk
  flashwise attach intel-p4510 --mount /mnt/ssd --data drive.img             # goes on from there the next time
  flashwise device stat /mnt/ssd --watch
  flashwise attach fault /mnt/ssd --latency-spike 50ms --for 2s")]
pub struct AttachArguments {
    /// What is to be done to a drive that is attached
    #[command(subcommand)]
    pub action: Option<AttachAction>,
    /// The drive to attach
    #[command(flatten)]
    pub serve: Option<ServeArguments>,
}

/// What can be done to a drive that is attached.
#[derive(Debug, Subcommand)]
pub enum AttachAction {
    /// Cut the power of a drive that was attached with --power-cuts; it comes up again at once
    #[command(after_help = "\
What was not durable is lost as on the drive: pages are as they became durable last. Requests under way get I/O errors;
connections and the file stay.")]
    Cut {
        /// Its socket, its directory, or its control socket
        #[arg(value_name = "WHERE")]
        place: String,
    },
    /// Let an attached drive be slow, or fail
    Fault(FaultArguments),
}

/// Options of `attach fault`.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("fault").required(true).multiple(true)))]
#[command(after_help = "\
  flashwise attach fault /tmp/ssd.sock --latency-spike 50ms --for 2s
  flashwise attach fault /mnt/ssd --unreadable 1m:4k
  flashwise attach fault /mnt/ssd --clear

Times are those of the drive's clock. Faults stay over a power cut; `device stat` tells them.")]
pub struct FaultArguments {
    /// Its socket, its directory, or its control socket
    #[arg(value_name = "WHERE")]
    pub place: String,
    /// Every request takes so much longer
    #[arg(long, value_name = "TIME", group = "fault")]
    pub latency_spike: Option<Nanos>,
    /// … for so long
    #[arg(long = "for", value_name = "TIME", requires = "latency_spike", conflicts_with = "requests")]
    pub duration: Option<Nanos>,
    /// … for so many requests
    #[arg(long, value_name = "N", requires = "latency_spike", value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: Option<u64>,
    /// These bytes cannot be read (EIO) until they are written again; may be given several times
    #[arg(long, value_name = "OFFSET:LENGTH", group = "fault", value_parser = range)]
    pub unreadable: Vec<Range>,
    /// The drive takes no more writes
    #[arg(long, group = "fault")]
    pub read_only: bool,
    /// End all faults there are, before any others begin
    #[arg(long, group = "fault")]
    pub clear: bool,
}

fn range(text: &str) -> Result<Range, String> {
    let (offset, length) = text.split_once(':').ok_or("it must be OFFSET:LENGTH, such as 1m:4k")?;
    let size = |text: &str| text.parse::<ByteSize>().map(|size| size.0).map_err(|error| error.to_string());
    Ok(Range { offset_bytes: size(offset)?, length_bytes: size(length)? })
}

/// Where the content of a drive is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// In memory, and gone at the end.
    Memory,
    /// In a file.
    File(PathBuf),
}

fn data(text: &str) -> Result<Data, String> {
    match text {
        "memory" => Ok(Data::Memory),
        "" => Err("it must be memory, or a file such as drive.img".to_owned()),
        path => Ok(Data::File(path.into())),
    }
}

/// An address of this machine: with a port alone, the loopback one.
fn address(text: &str) -> Result<SocketAddr, String> {
    let loopback = |port: &str| port.parse().map(|port: u16| SocketAddr::from(([127, 0, 0, 1], port))).ok();
    let port = text.strip_prefix("localhost").unwrap_or(text);
    let known = text.parse().ok().or_else(|| loopback(port.strip_prefix(':').unwrap_or(port)));
    known.ok_or_else(|| "it must be ADDRESS:PORT or PORT, such as 127.0.0.1:9750 or [::1]:9750".to_owned())
}

/// Options of attaching a drive.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// A preset, sim:PRESET, or a TOML file
    pub device: String,
    /// Serve the drive at this Unix socket, to whatever speaks the network block device protocol
    #[arg(long, value_name = "unix:PATH", value_parser = socket_path, required_unless_present_any = ["fuse", "mount"])]
    pub nbd: Option<PathBuf>,
    /// Put the drive into this empty directory, as the file `disk`
    #[arg(long, value_name = "DIR", conflicts_with = "mount")]
    pub fuse: Option<PathBuf>,
    /// Make a file system on the drive and mount it at this empty directory; needs root
    #[arg(long, value_name = "DIR")]
    pub mount: Option<PathBuf>,
    /// The file system for --mount
    #[arg(long, value_enum, default_value_t = MountedAs::Ext4, requires = "mount")]
    pub fs: MountedAs,
    /// Let the file system begin so far behind the drive's start, as in a partition that begins there
    #[arg(long, value_name = "SIZE", default_value = "0", requires = "mount")]
    pub offset: ByteSize,
    /// Keep what is on the drive in memory, or in this sparse file with the drive's state beside it, to go on from
    /// another time
    #[arg(long, value_name = "memory|FILE", default_value = "memory", value_parser = data)]
    pub data: Data,
    /// With --data FILE: a flush of a client also syncs the file, so that what it flushed survives this machine's crash
    #[arg(long)]
    pub data_sync: bool,
    /// How much memory may hold of what is written; further writes fail [default for --mount: half of what is free]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<ByteSize>,
    /// How long a mounted drive may show no sign of life, until what waits for it gets I/O errors; 1s at least
    #[arg(long, value_name = "TIME", default_value = "20s", requires = "mount", value_parser = patience)]
    pub watchdog: Nanos,
    /// Take orders at this Unix socket; by default beside the drive, as SOCKET.control or DIR.control
    #[arg(long, value_name = "PATH")]
    pub control: Option<PathBuf>,
    /// Tell Prometheus what the drive is doing, at http://ADDR/metrics; a port alone is one of this machine
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub metrics: Option<SocketAddr>,
    /// Let --metrics be an address that other machines reach too
    #[arg(long, requires = "metrics")]
    pub metrics_anywhere: bool,
    /// Keep what a power cut would leave, for `attach cut`; takes memory for a second copy of what is written
    #[arg(long)]
    pub power_cuts: bool,
    /// Whether answers come when the drive would give them
    #[arg(long, value_enum, default_value_t = Time::Real)]
    pub time: Time,
    /// Slow the drive down by this factor, where the machine cannot keep up; processors and timers are not slowed down
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    pub time_scale: f64,
    /// What the way to the client and back takes, and is taken off each answer; measured where it is not given
    #[arg(long, value_name = "TIME")]
    pub round_trip: Option<Nanos>,
    /// What is on the drive before: nothing, or what use has left
    #[arg(long, value_enum, default_value_t = PreconditionName::Empty)]
    pub precondition: PreconditionName,
    /// Seed of every random choice
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write every request that reaches the drive here, as a trace; must be new
    #[arg(long, value_name = "FILE")]
    pub capture: Option<PathBuf>,
    /// Form of the trace; by default its name tells (.csv, .parquet)
    #[arg(long, value_name = "FORMAT", requires = "capture", value_parser = written_format_parser())]
    pub capture_format: Option<TraceFormat>,
    /// End after this time of the machine's
    #[arg(long, value_name = "TIME")]
    pub runtime: Option<Nanos>,
    /// Run this command, and end with it; it finds the drive in $FLASHWISE_NBD (a URI), $FLASHWISE_DISK (the file) and
    /// $FLASHWISE_MOUNT (the directory; $FLASHWISE_DEVICE is the block device below it), and for `device stat` in
    /// $FLASHWISE_CONTROL
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "runtime")]
    pub command: Vec<OsString>,
}

/// How time passes on an attached drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Time {
    /// Answers come when the drive would give them
    Real,
    /// Answers come at once; the drive's time is accounted alone
    None,
}

fn patience(text: &str) -> Result<Nanos, String> {
    let patience: Nanos = text.parse().map_err(|error: flashwise_block::ParseUnitError| error.to_string())?;
    let possible = Nanos(1_000_000_000)..=Nanos(3_600_000_000_000);
    if possible.contains(&patience) { Ok(patience) } else { Err("it must be from 1s to 3600s".to_owned()) }
}

/// A file system that a drive can be mounted with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MountedAs {
    /// ext4 (package e2fsprogs)
    Ext4,
    /// XFS (package xfsprogs)
    Xfs,
}

impl From<MountedAs> for FileSystem {
    fn from(name: MountedAs) -> Self {
        match name {
            MountedAs::Ext4 => Self::Ext4,
            MountedAs::Xfs => Self::Xfs,
        }
    }
}

fn socket_path(text: &str) -> Result<PathBuf, String> {
    match text.strip_prefix("unix:") {
        Some(path) if !path.is_empty() => Ok(path.into()),
        _ => Err("it must be unix:PATH, such as unix:/tmp/ssd.sock".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_one_of_this_machine() {
        for text in ["9750", ":9750", "localhost:9750", "127.0.0.1:9750"] {
            assert_eq!(address(text).unwrap(), "127.0.0.1:9750".parse().unwrap(), "{text}");
        }
        assert!(address("[::1]:0").unwrap().ip().is_loopback());
        for wrong in ["", "localhost", "1.2.3.4", "65536", "example.org:1"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_range_is_an_offset_and_a_length() {
        assert_eq!(range("1m:4k").unwrap(), Range { offset_bytes: 1 << 20, length_bytes: 4096 });
        assert!(range("1m").is_err() && range("x:4k").is_err() && range("1m:").is_err());
    }
}
