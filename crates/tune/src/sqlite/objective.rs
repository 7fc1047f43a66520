//! What a fit makes better.

use std::str::FromStr;

use flashwise_block::names::choices;
use serde::{Deserialize, Serialize};

use super::run::Run;

/// What is to be improved, by the name of `--objective`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// Statements a second over the whole run, with the time of writing a log back at the end.
    Throughput,
    /// The 99th percentile of the latency of a statement; a transaction with its commit counts as one.
    P99,
    /// Flash bytes programmed for the workload; host bytes written where the drive does not report them.
    FlashBytes,
}

impl Objective {
    /// Every objective.
    pub const ALL: [Self; 3] = [Self::Throughput, Self::P99, Self::FlashBytes];

    /// The name on the command line and in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::P99 => "p99",
            Self::FlashBytes => "flash-bytes",
        }
    }

    /// The metric of its gains.
    pub const fn metric(self) -> &'static str {
        match self {
            Self::Throughput => "statements_per_s",
            Self::P99 => "p99_latency",
            Self::FlashBytes => "flash_bytes",
        }
    }

    /// The cost of a run, lower is better.
    pub(super) fn cost(self, run: &Run) -> f64 {
        match self {
            Self::Throughput => run.time_ns(),
            Self::P99 => {
                let mut all = run.rounds.select_latency.clone();
                all.merge(&run.rounds.transaction_latency);
                all.percentile(99.0).0 as f64
            }
            Self::FlashBytes => {
                let measured = &run.measurement;
                measured.flash_bytes_programmed.unwrap_or(measured.host_bytes_written) as f64
            }
        }
    }
}

impl FromStr for Objective {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|objective| objective.name() == text);
        known.ok_or_else(|| format!("unknown objective; {}", choices(text, Self::ALL.map(Self::name).into_iter())))
    }
}
