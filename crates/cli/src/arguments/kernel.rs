//! Options of `kernel`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Commands for the model of Linux's page cache and file systems.
#[derive(Debug, Subcommand)]
pub enum KernelAction {
    /// Measure what system calls, copies, faults and wake-ups cost on this machine
    ///
    /// The constants are the processor's part of a database's I/O in simulated runs. They are printed beside the stored
    /// defaults. It takes a few seconds; let the machine do nothing else meanwhile.
    #[command(after_help = "\
Examples:
  flashwise kernel calibrate
  flashwise kernel calibrate --directory /mnt/ssd --costs costs.toml")]
    Calibrate(CalibrateArguments),
}

/// Options of `kernel calibrate`.
#[derive(Args, Debug)]
pub struct CalibrateArguments {
    /// Measure in a file in this directory; it should be on ext4 or XFS [default: the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Write the constants to this TOML file; must be new
    #[arg(long, value_name = "FILE")]
    pub costs: Option<PathBuf>,
}
