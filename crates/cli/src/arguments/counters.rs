//! Options of `device counters`.

use std::path::PathBuf;

use clap::Args;
use flashwise_block::{ByteSize, Nanos};

/// Options of `device counters`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sudo flashwise device counters /dev/nvme0            # since it was new
  sudo flashwise device counters /dev/nvme0 --over 10m # at today's workload
  sudo flashwise device counters /dev/nvme0 --trace run.csv --tbw 1400
  sudo flashwise device counters /dev/nvme0 -o json > monday.json
  sudo flashwise device counters /dev/nvme0 --before monday.json
  nvme smart-log /dev/nvme0 -o json > smart.json
  nvme ocp smart-add-log /dev/nvme0 -o json > ocp.json
  flashwise device counters smart.json ocp.json
  flashwise device counters /tmp/ssd.sock --save pages # an attached drive

Devices are only read (NVMe Get Log Page). Exit code 4: a figure is
inconclusive.")]
pub struct CountersArguments {
    /// An NVMe device, an attached drive, or files with the output of nvme-cli, smartctl or this command
    #[arg(value_name = "SOURCE", required = true)]
    pub sources: Vec<PathBuf>,
    /// The same at an earlier time; what was counted since is shown; can be repeated
    #[arg(long, value_name = "SOURCE")]
    pub before: Vec<PathBuf>,
    /// Time between both, for files that do not have it
    #[arg(long, value_name = "TIME", requires = "before")]
    pub elapsed: Option<Nanos>,
    /// Read the source twice, this time apart
    #[arg(long, value_name = "TIME", conflicts_with_all = ["before", "elapsed"])]
    pub over: Option<Nanos>,
    /// Compute the years left for the rate at which this trace writes
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Writes that the drive is rated for, TB, as its data sheet has them
    #[arg(long, value_name = "TB", value_parser = terabytes)]
    pub tbw: Option<ByteSize>,
    /// Save the log pages in this directory, as `nvme get-log --raw-binary` does
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
}

/// Terabytes as data sheets count them, of 10¹² bytes.
fn terabytes(text: &str) -> Result<ByteSize, String> {
    const TB: f64 = 1e12;
    // More than any drive endures, and what a size can hold.
    const MOST: f64 = 1e6;
    match text.parse::<f64>() {
        Ok(count) if count > 0.0 && count <= MOST => Ok(ByteSize((count * TB) as u64)),
        _ => Err("give a number of terabytes, such as 1400".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terabytes_are_those_of_data_sheets() {
        assert_eq!(terabytes("1.5"), Ok(ByteSize(1_500_000_000_000)));
        for wrong in ["", "0", "-1", "1400T", "nan", "1e9"] {
            assert!(terabytes(wrong).is_err(), "{wrong}");
        }
    }
}
