//! Options of `device stat`.

use clap::Args;
use flashwise_block::Nanos;

/// Shortest and longest interval of --watch.
const SHORTEST: Nanos = Nanos::millis(50);
const LONGEST: Nanos = Nanos::secs(86_400);

/// Options of `device stat`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  flashwise attach samsung-960-evo --nbd unix:/tmp/ssd.sock &
  flashwise device stat /tmp/ssd.sock --watch=500ms
  flashwise device stat /tmp/ssd.sock -o json | jq .write_amplification

With --watch and -o json, each line of the output is one document.")]
pub struct StatArguments {
    /// The drive's socket (unix:PATH, PATH or URI), its directory, or its control socket
    #[arg(value_name = "WHERE")]
    pub place: String,
    /// Repeat at this interval until the drive is detached
    #[arg(long, value_name = "INTERVAL", num_args = 0..=1, require_equals = true, default_missing_value = "1s")]
    #[arg(value_parser = interval)]
    pub watch: Option<Nanos>,
}

fn interval(text: &str) -> Result<Nanos, String> {
    let interval: Nanos = text.parse().map_err(|error| format!("{error}"))?;
    if (SHORTEST..=LONGEST).contains(&interval) {
        return Ok(interval);
    }
    Err(format!("give an interval from {SHORTEST} to {LONGEST}"))
}
