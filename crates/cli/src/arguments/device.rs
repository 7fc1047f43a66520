//! Options of `device`.

use std::path::PathBuf;

use clap::Subcommand;

use super::StatArguments;

/// What can be done with simulated drives.
#[derive(Debug, Subcommand)]
pub enum DeviceAction {
    /// List the presets
    List,
    /// Print a preset's configuration, with the source of each figure
    Show {
        /// Name of the preset
        preset: String,
    },
    /// Check the configuration of a drive or of an array
    Check {
        /// The TOML file
        file: PathBuf,
    },
    /// Print the JSON Schema of a configuration
    Schema,
    /// Print a random, plausible drive of 1 to 8 GiB; the same for the same seed
    Random {
        /// Which one
        #[arg(long, value_name = "N")]
        seed: u64,
    },
    /// Print what is true of a drive, figure by figure: what `learn` should find; takes seconds
    Truth {
        /// A preset, sim:PRESET, or a TOML file
        device: String,
    },
    /// Tell what an attached drive is doing: traffic, write amplification, how busy its parts are, latencies
    Stat(StatArguments),
    /// Turn the configuration of another simulator into a drive and a workload
    Import {
        /// MQSim's ssdconfig.xml and, where there is one, its workload.xml
        #[arg(long, value_name = "XML", num_args = 1..=2, required_unless_present = "disksim", conflicts_with = "disksim")]
        mqsim: Vec<PathBuf>,
        /// DiskSim's parameter file with an SSD
        #[arg(long, value_name = "PARV")]
        disksim: Option<PathBuf>,
        /// The directory that device.toml and workload.toml go to; made where there is none
        #[arg(long, value_name = "DIR", alias = "dir")]
        directory: PathBuf,
    },
}
