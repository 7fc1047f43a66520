//! Options of `study`.

use std::path::PathBuf;

use clap::Args;

/// Options of `study`.
#[derive(Debug, Args)]
pub struct StudyArguments {
    /// The study
    #[arg(value_name = "NAME", conflicts_with_all = ["all", "list"])]
    pub name: Option<String>,
    /// Every study
    #[arg(long, conflicts_with = "list")]
    pub all: bool,
    /// Names and titles of the studies
    #[arg(long)]
    pub list: bool,
    /// Fewer points and repetitions: less than a minute, but for fillfactor and mariadb, which take some
    #[arg(long)]
    pub quick: bool,
    /// Seed of every random choice
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write a page with plots here
    #[arg(long, value_name = "FILE", alias = "report")]
    pub html: Option<PathBuf>,
}
