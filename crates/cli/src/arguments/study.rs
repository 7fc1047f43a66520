//! Options of `study`.

use std::path::PathBuf;

use clap::Args;
use flashwise_studies::DEFAULT_FILE_SYSTEM;

/// Options of `study`.
#[derive(Debug, Args)]
#[command(override_usage = "flashwise study [OPTIONS] <NAME>\n       \
                            flashwise study [OPTIONS] --all\n       flashwise study --list")]
#[command(after_help = "\
Examples:
  flashwise study --list
  flashwise study ace --quick
  flashwise study ace --html ace.html
  flashwise study sqlite --quick --file-system none
  flashwise study stores --resume stores.runs
  flashwise study --all -o json > studies.json")]
pub struct StudyArguments {
    /// Name of the study, see --list
    #[arg(value_name = "NAME", conflicts_with_all = ["all", "list"])]
    pub name: Option<String>,
    /// Run all studies
    #[arg(long, conflicts_with = "list")]
    pub all: bool,
    /// List the names and titles of the studies
    #[arg(long)]
    pub list: bool,
    /// Run fewer points and repetitions: less than a minute, except ace-postgres, fillfactor, flash-per-transaction and
    /// mariadb
    #[arg(long)]
    pub quick: bool,
    /// File system of SQLite's databases in the studies fit, sqlite, stores and transparent-compression: ext4, xfs, or
    /// none for the bare drive
    #[arg(long, value_name = "NAME", default_value = DEFAULT_FILE_SYSTEM)]
    pub file_system: String,
    /// Program that runs other stores in the study stores: build it in benches/stores-beside
    #[arg(long, value_name = "PROGRAM")]
    pub peers: Option<PathBuf>,
    /// Folder of PostgreSQL's programs for the study ace-postgres, in whose server the extension flashwise_ace is
    /// installed [default: the newest]
    #[arg(long, value_name = "DIR")]
    pub programs: Option<PathBuf>,
    /// Keep the finished runs of the study ace-postgres, flash-per-transaction or stores in this file, and do not
    /// repeat those that it has
    #[arg(long, value_name = "FILE")]
    pub resume: Option<PathBuf>,
    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write a page with plots to this HTML file
    #[arg(long, value_name = "FILE", alias = "report")]
    pub html: Option<PathBuf>,
}
