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

/// `attach`: a drive to attach, or a command for an attached one.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, disable_help_subcommand = true)]
#[command(override_usage = "flashwise attach [OPTIONS] <DEVICE> [-- <COMMAND>...]\n       flashwise attach <COMMAND>")]
#[command(after_help = "\
Examples:
  flashwise attach samsung-960-evo --nbd unix:/tmp/ssd.sock
  flashwise attach intel-p4510 --nbd unix:/tmp/ssd.sock --capture run.csv \\
    -- sh -c 'nbdcopy disk.img $FLASHWISE_NBD'
  flashwise attach intel-p4510 --fuse /run/ssd     # as the file /run/ssd/disk
  flashwise attach intel-p4510 --mount /mnt/ssd    # as root: with ext4
  flashwise attach intel-p4510 --mount /mnt/ssd --fs xfs \\
    -- sh -c 'sqlite3 $FLASHWISE_MOUNT/app.db < queries.sql'
  flashwise attach intel-p4510 --mount /mnt/ssd --data d.img    # in a file

With the first one running, in another terminal:
  fio --ioengine=nbd --uri='nbd+unix:///disk?socket=/tmp/ssd.sock' \\
    --name=job --rw=randread --bs=4k --iodepth=8
  flashwise device stat /tmp/ssd.sock --watch
  flashwise attach fault /tmp/ssd.sock --latency-spike 50ms --for 2s")]
pub struct AttachArguments {
    /// Command for an attached drive
    #[command(subcommand)]
    pub action: Option<AttachAction>,
    /// The drive to attach
    #[command(flatten)]
    pub serve: Option<ServeArguments>,
}

/// Commands for an attached drive.
#[derive(Debug, Subcommand)]
pub enum AttachAction {
    /// Cut the power of an attached drive, and restore it at once
    ///
    /// The drive must be attached with --power-cuts. Writes that were not yet durable are lost; each page has the
    /// content that last became durable. Requests in flight fail with I/O errors. Connections stay open, and the
    /// drive's file stays.
    #[command(after_help = "\
Examples:
  flashwise attach intel-p4510 --nbd unix:/tmp/ssd.sock --power-cuts &
  flashwise attach cut /tmp/ssd.sock")]
    Cut {
        /// The drive's socket, its directory, or its control socket
        #[arg(value_name = "WHERE")]
        place: String,
    },
    /// Slow an attached drive down, or let its requests fail
    ///
    /// Times are on the drive's clock. Faults last through a power cut; `flashwise device stat` shows them.
    Fault(FaultArguments),
}

/// Options of `attach fault`.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("fault").required(true).multiple(true)))]
#[command(override_usage = "flashwise attach fault [OPTIONS] <WHERE>")]
#[command(after_help = "\
Give at least one of --latency-spike, --unreadable, --read-only and --clear.

Examples:
  flashwise attach fault /tmp/ssd.sock --latency-spike 50ms --for 2s
  flashwise attach fault /mnt/ssd --unreadable 1m:4k
  flashwise attach fault /mnt/ssd --clear")]
pub struct FaultArguments {
    /// The drive's socket, its directory, or its control socket
    #[arg(value_name = "WHERE")]
    pub place: String,
    /// Add this time to the latency of every request
    #[arg(long, value_name = "TIME", group = "fault")]
    pub latency_spike: Option<Nanos>,
    /// End the latency spike after this time
    #[arg(long = "for", value_name = "TIME", requires = "latency_spike", conflicts_with = "requests")]
    pub duration: Option<Nanos>,
    /// End the latency spike after this many requests
    #[arg(long, value_name = "N", requires = "latency_spike", value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: Option<u64>,
    /// Fail reads of these bytes (EIO) until they are written again; can be repeated
    #[arg(long, value_name = "OFFSET:LENGTH", group = "fault", value_parser = range)]
    pub unreadable: Vec<Range>,
    /// Refuse writes and trims
    #[arg(long, group = "fault")]
    pub read_only: bool,
    /// Remove all faults, before new ones are added
    #[arg(long, group = "fault")]
    pub clear: bool,
}

fn range(text: &str) -> Result<Range, String> {
    let (offset, length) = text.split_once(':').ok_or("give OFFSET:LENGTH, such as 1m:4k")?;
    let size = |text: &str| text.parse::<ByteSize>().map(|size| size.0).map_err(|error| error.to_string());
    Ok(Range { offset_bytes: size(offset)?, length_bytes: size(length)? })
}

/// Where the content of a drive is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// In memory, and lost at the end.
    Memory,
    /// In a file.
    File(PathBuf),
}

fn data(text: &str) -> Result<Data, String> {
    match text {
        "memory" => Ok(Data::Memory),
        "" => Err("give memory, or a file such as drive.img".to_owned()),
        path => Ok(Data::File(path.into())),
    }
}

/// An address; a port alone means the loopback address.
fn address(text: &str) -> Result<SocketAddr, String> {
    let loopback = |port: &str| port.parse().map(|port: u16| SocketAddr::from(([127, 0, 0, 1], port))).ok();
    let port = text.strip_prefix("localhost").unwrap_or(text);
    let known = text.parse().ok().or_else(|| loopback(port.strip_prefix(':').unwrap_or(port)));
    known.ok_or_else(|| "give PORT or ADDRESS:PORT, such as 127.0.0.1:9750 or [::1]:9750".to_owned())
}

/// Options of attaching a drive.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// The drive: a preset (`flashwise device list`), sim:PRESET, or a TOML file
    pub device: String,
    /// Serve the drive at this Unix socket over NBD, the network block device protocol
    #[arg(long, value_name = "unix:PATH", value_parser = socket_path)]
    pub nbd: Option<PathBuf>,
    /// Show the drive in this empty directory, as the file `disk`
    #[arg(long, value_name = "DIR", conflicts_with = "mount")]
    pub fuse: Option<PathBuf>,
    /// Make a file system on the drive and mount it at this empty directory; needs root
    #[arg(long, value_name = "DIR")]
    pub mount: Option<PathBuf>,
    /// File system for --mount
    #[arg(long, value_enum, default_value_t = MountedAs::Ext4, requires = "mount")]
    pub fs: MountedAs,
    /// Start the file system at this offset, as in a partition that starts there
    #[arg(long, value_name = "SIZE", default_value = "0", requires = "mount")]
    pub offset: ByteSize,
    /// Store the drive's content in memory, or in a sparse FILE
    ///
    /// With a FILE, the drive's state is stored beside it, and a later `flashwise attach` with the same FILE continues
    /// from there.
    #[arg(long, value_name = "memory|FILE", default_value = "memory", value_parser = data)]
    pub data: Data,
    /// With --data FILE: sync the file at each flush, so that flushed data survives a crash of
    /// this machine
    #[arg(long)]
    pub data_sync: bool,
    /// Most memory for written data; further writes fail [default with --mount: half of the free
    /// memory]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<ByteSize>,
    /// Fail all I/O of a mounted drive that makes no progress for this time, 1s to 3600s
    #[arg(long, value_name = "TIME", default_value = "20s", requires = "mount", value_parser = patience)]
    pub watchdog: Nanos,
    /// Path of the control socket [default: beside the drive, SOCKET.control or DIR.control]
    #[arg(long, value_name = "PATH")]
    pub control: Option<PathBuf>,
    /// Serve metrics for Prometheus at http://ADDR/metrics; a port alone means 127.0.0.1:PORT
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub metrics: Option<SocketAddr>,
    /// Allow --metrics an address that other machines can reach
    #[arg(long, requires = "metrics")]
    pub metrics_anywhere: bool,
    /// Allow `flashwise attach cut`; needs memory for a second copy of the written data
    #[arg(long)]
    pub power_cuts: bool,
    /// When requests complete
    #[arg(long, value_enum, default_value_t = Time::Real)]
    pub time: Time,
    /// Slow the drive down by this factor, for a machine that cannot keep up; CPUs and timers are
    /// not slowed down
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    pub time_scale: f64,
    /// Time from the server to the client and back, subtracted from each latency [default:
    /// measured]
    #[arg(long, value_name = "TIME")]
    pub round_trip: Option<Nanos>,
    /// Content of the drive at the start
    #[arg(long, value_enum, default_value_t = PreconditionName::Empty)]
    pub precondition: PreconditionName,
    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write every request to this trace file; must be new
    #[arg(long, value_name = "FILE")]
    pub capture: Option<PathBuf>,
    /// Format of the trace [default: by the extension of its name, .csv or .parquet]
    #[arg(long, value_name = "FORMAT", requires = "capture", value_parser = written_format_parser())]
    pub capture_format: Option<TraceFormat>,
    /// Stop after this time on the machine's clock
    #[arg(long, value_name = "TIME")]
    pub runtime: Option<Nanos>,
    /// Run this command, and stop when it ends
    ///
    /// The command finds the drive in these variables: $FLASHWISE_NBD (a URI), $FLASHWISE_DISK (the file of --fuse),
    /// $FLASHWISE_MOUNT (the directory of --mount), $FLASHWISE_DEVICE (the block device below it), $FLASHWISE_CONTROL
    /// (the control socket, for `flashwise device stat`) and $FLASHWISE_METRICS (a URL).
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "runtime")]
    pub command: Vec<OsString>,
}

/// How time passes on an attached drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Time {
    /// After the latency of the simulated drive
    Real,
    /// At once; only the drive's clock advances
    None,
}

fn patience(text: &str) -> Result<Nanos, String> {
    let patience: Nanos = text.parse().map_err(|error: flashwise_block::ParseUnitError| error.to_string())?;
    let possible = Nanos(1_000_000_000)..=Nanos(3_600_000_000_000);
    if possible.contains(&patience) { Ok(patience) } else { Err("give a time from 1s to 3600s".to_owned()) }
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
        _ => Err("give unix:PATH, such as unix:/tmp/ssd.sock".to_owned()),
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
