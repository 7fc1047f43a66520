//! Options of `device`.

use std::path::PathBuf;

use clap::Subcommand;

use super::{CountersArguments, StatArguments};

/// Commands for simulated drives.
#[derive(Debug, Subcommand)]
pub enum DeviceAction {
    /// List the presets
    #[command(after_help = "\
Examples:
  flashwise device list
  flashwise device list -o json")]
    List,
    /// Print the configuration of a preset, with the source of each figure
    #[command(after_help = "\
Examples:
  flashwise device show samsung-960-evo
  flashwise device show samsung-960-evo > mine.toml    # to edit
  flashwise device show gp3")]
    Show {
        /// Name of the preset, see `flashwise device list`
        preset: String,
    },
    /// Check the configuration file of a drive, an array or a cloud volume
    #[command(after_help = "\
Examples:
  flashwise device check mine.toml")]
    Check {
        /// The TOML file
        file: PathBuf,
    },
    /// Print the JSON Schema of a drive's configuration
    #[command(after_help = "\
Examples:
  flashwise device schema > device.schema.json")]
    Schema,
    /// Print a random, plausible drive, cloud volume or memory card
    #[command(after_help = "\
Examples:
  flashwise device random --seed 7 > random.toml
  flashwise learn sim:random.toml --score
  flashwise device random --cloud --seed 7 > volume.toml
  flashwise device random --card --seed 7 > card.toml")]
    Random {
        /// Seed; the same seed gives the same drive
        #[arg(long, value_name = "N")]
        seed: u64,
        /// A cloud volume instead of a drive: limits, bursts, a network
        #[arg(long)]
        cloud: bool,
        /// A memory card instead of a drive: allocation units, few of them open
        #[arg(long, conflicts_with = "cloud")]
        card: bool,
    },
    /// Print the true parameters of a simulated drive, which `learn` should find
    #[command(after_help = "\
Examples:
  flashwise device truth samsung-960-evo")]
    Truth {
        /// The drive: a preset, sim:PRESET, or a TOML file
        device: String,
    },
    /// Show the activity of an attached drive: traffic, write amplification, latencies
    Stat(StatArguments),
    /// Show a drive's own counters: write amplification, years left
    Counters(CountersArguments),
    /// Import the configuration of MQSim or DiskSim as a drive and a workload
    #[command(override_usage = "flashwise device import --mqsim <XML>... --directory <DIR>\n       \
                                flashwise device import --disksim <PARV> --directory <DIR>")]
    #[command(after_help = "\
Examples:
  flashwise device import --mqsim ssd.xml workload.xml --directory imported
  flashwise device import --disksim ssd.parv --directory imported
  flashwise simulate imported/device.toml imported/workload.toml")]
    Import {
        /// MQSim's ssdconfig.xml, optionally followed by its workload.xml
        #[arg(long, value_name = "XML", num_args = 1..=2, required_unless_present = "disksim", conflicts_with = "disksim")]
        mqsim: Vec<PathBuf>,
        /// DiskSim's parameter file of an SSD
        #[arg(long, value_name = "PARV")]
        disksim: Option<PathBuf>,
        /// Directory for device.toml and workload.toml; is created if needed
        #[arg(long, value_name = "DIR", alias = "dir")]
        directory: PathBuf,
    },
}
