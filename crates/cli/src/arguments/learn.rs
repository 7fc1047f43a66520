//! Options of `learn`.

use std::path::PathBuf;

use clap::Args;
use flashwise_block::{ByteSize, Nanos};
use flashwise_tune::DEFAULT_TARGET;

use super::RawDevice;

/// Options of `learn`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  flashwise learn                                # a simulated drive, seconds
  flashwise learn /mnt/ssd --profile ssd.toml    # the drive of this directory
  flashwise learn /mnt/ssd --quick --max-write 2g
  flashwise learn /mnt/ebs --limits --profile ebs.toml  # what a cloud grants
  sudo flashwise learn /mnt/ebs --limits --counters /dev/nvme1n1
  flashwise learn /dev/nvme0n1 --dry-run
  flashwise learn /mnt/sd --card --profile sd.toml      # an SD card
  flashwise learn sim:intel-p4510 --score --html learned.html
  flashwise learn /mnt/ssd --quick --compare ssd.toml   # has it changed?
  flashwise learn /mnt/ssd --resume ssd.toml --export seastar limits

On a directory, all writes go to a new scratch file in it, which is deleted
afterwards. A block device is only read, unless --destructive and
--confirm-device are given. Exit code 4: a parameter is inconclusive.")]
pub struct LearnArguments {
    /// The drive: sim:PRESET, sim:FILE.toml, a directory on a real drive, or a block device
    #[arg(default_value = DEFAULT_TARGET, value_name = "TARGET")]
    pub target: String,
    /// Same as TARGET
    #[arg(long = "target", value_name = "TARGET", conflicts_with = "target")]
    pub target_option: Option<String>,
    /// Learn a simulated drive through a file of this file system, ext4 or xfs, as on the directory of a real drive
    #[arg(long, value_name = "NAME")]
    pub file_system: Option<String>,
    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Take few samples: at most 5 minutes and 1 % of a real drive's capacity [default on real
    /// drives]
    #[arg(long, conflicts_with = "thorough")]
    pub quick: bool,
    /// Take every sample that narrows an interval [default on simulated drives]
    #[arg(long)]
    pub thorough: bool,
    /// Measure the limits of a cloud volume instead of the drive: IOPS and bandwidth, bursts, shared budgets, holds;
    /// reads and writes as fast as it can for 5 minutes or --time-budget [default on simulated volumes]
    #[arg(long, conflicts_with_all = ["quick", "thorough", "request_size"])]
    pub limits: bool,
    /// Measure in which units a memory card (SD, eMMC, USB stick) works instead of the drive: allocation unit, open
    /// units, merge time; each slow write wears the card by one unit [default on simulated cards]
    #[arg(long, conflicts_with_all = ["limits", "quick", "thorough", "request_size"])]
    pub card: bool,
    /// Stop before writing more than this in all, such as 2g [default on block devices: 4g]
    #[arg(long, value_name = "SIZE")]
    pub max_write: Option<ByteSize>,
    /// Start no probe after this time on the drive's clock, such as 5m
    #[arg(long, value_name = "TIME")]
    pub time_budget: Option<Nanos>,
    /// Also measure asymmetry and concurrency at this request size, such as 16K; can be repeated
    #[arg(long, value_name = "SIZE")]
    pub request_size: Vec<ByteSize>,
    /// Show what would be written and what prevents it; write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Consent to overwriting a block device.
    #[command(flatten)]
    pub raw_device: RawDevice,
    /// Write the profile to this TOML file, updated after each probe
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Continue from this profile of the same drive; finished probes are skipped
    #[arg(long, value_name = "FILE")]
    pub resume: Option<PathBuf>,
    /// Compare the result with this earlier profile of the same drive; exit code 3 if a parameter has changed
    /// beyond its interval, 0 if not
    #[arg(long, value_name = "FILE", conflicts_with_all = ["score", "resume"])]
    pub compare: Option<PathBuf>,
    /// Also read the drive's own counters: an NVMe device or an attached drive, before and after; or a file with the
    /// output of nvme-cli or smartctl, for its whole life; or two files, the earlier first
    ///
    /// They show the write amplification and the years left, and whether a cloud volume's limit is that of the
    /// instance.
    #[arg(long, value_name = "SOURCE", conflicts_with = "export")]
    pub counters: Vec<PathBuf>,
    /// Save every sample in this directory, one CSV file per probe
    #[arg(long, value_name = "DIR")]
    pub raw: Option<PathBuf>,
    /// Write files for another program into DIR (FORMAT: fio, seastar or iocost)
    ///
    /// fio: the probes as job files, to check them; nothing is measured. seastar: the limits as io-properties for
    /// ScyllaDB and Redpanda. iocost: the limits for the kernel's io.cost and systemd's hwdb. The limits are those of
    /// the profile of --resume, and nothing is measured; without one the target is learned first.
    #[arg(long, num_args = 2, value_names = ["FORMAT", "DIR"])]
    pub export: Option<Vec<String>>,
    /// Compare the result with the true parameters of the simulated drive
    #[arg(long)]
    pub score: bool,
    /// Write a page with every curve to this HTML file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}
