//! The command line: one file a verb, with the options that several verbs share in `raw_device.rs` and `trace.rs`.
//!
//! # Adding a verb
//!
//! A variant below, a file here for its options, a file in `verbs/` that calls a crate; no logic there.

use std::ffi::OsString;

use clap::{Parser, Subcommand, ValueEnum};
use flashwise_block::ByteSize;

use crate::output::Format;

mod attach;
mod audit;
mod counters;
mod device;
mod device_stat;
mod fit;
mod fit_mariadb;
mod fit_postgres;
mod generate;
mod kernel;
mod learn;
mod pool;
mod raw_device;
mod simulate;
mod sqlite;
mod store;
mod study;
mod sweep;
mod trace;

pub use attach::{AttachAction, AttachArguments, Data, FaultArguments, ServeArguments, Time};
pub use audit::{AuditArguments, FailOn, LeastCost};
pub use counters::CountersArguments;
pub use device::DeviceAction;
pub use device_stat::StatArguments;
pub use fit::{FitDatabase, FitSqlite, ServerDrive, WorkloadSize};
pub use fit_mariadb::FitMariadb;
pub use fit_postgres::FitPostgres;
pub use generate::Generated;
pub use kernel::{CalibrateArguments, KernelAction};
pub use learn::LearnArguments;
pub use pool::PoolArguments;
pub use raw_device::RawDevice;
pub use simulate::{PreconditionName, RateProcess, SimulateArguments};
pub use sqlite::SqliteAction;
pub use store::StoreAction;
pub use study::StudyArguments;
pub use sweep::SweepArguments;
pub use trace::{ReplayArguments, TpccArguments, TraceAction, TraceReading};

/// Fit a database to the SSD it runs on
///
/// flashwise measures the hidden parameters of a drive, checks a database's I/O against them, recommends and applies
/// settings, and measures before and after. Without a drive of yours it uses a simulated one. It never writes to
/// existing files; to block devices it writes only with --destructive and --confirm-device.
#[derive(Debug, Parser)]
#[command(name = "flashwise", version, long_version = crate::version::LONG.as_str(), max_term_width = 80, arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  flashwise fit sqlite
  flashwise learn /mnt/ssd --profile ssd.toml
  flashwise fit sqlite app.db --sql queries.sql --profile ssd.toml

Exit codes: 0 success, 1 error, 2 usage, 3 an audit found violations or a drive
has changed, 4 inconclusive, 5 refused for safety, 130 interrupted")]
pub struct Arguments {
    /// The command
    #[command(subcommand)]
    pub verb: Verb,
    /// Format of the result on stdout
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Text, alias = "output-format", display_order = 100)]
    pub output: Format,
}

/// The commands, each described in one line of the short screen.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Find the best settings of a database for a drive
    ///
    /// Each recommendation comes with its reason, the gain, and how to undo it.
    #[command(subcommand, visible_alias = "tune", after_help = FIT_EXAMPLES)]
    Fit(FitDatabase),
    /// Measure the hidden parameters of a drive
    ///
    /// They are the write unit, stripe, chunk, flash page, hot locations, read/write asymmetry, concurrency, caches and
    /// over-provisioning. Each is reported as certain, absent or inconclusive.
    Learn(LearnArguments),
    /// Check a database's I/O against the parameters of its drive
    ///
    /// The I/O comes from a trace, from a command, or from SQL on a SQLite database. Each violated rule is reported
    /// with its cost and its remedy.
    Audit(AuditArguments),
    /// Run a workload or a trace on a simulated drive
    Simulate(Box<SimulateArguments>),
    /// Let other programs use a simulated drive, with its timing
    ///
    /// The drive is served at a Unix socket (NBD), as a file (FUSE), or as a mounted file system, until Ctrl-C, the end
    /// of --runtime or the end of COMMAND.
    Attach(Box<AttachArguments>),
    /// Run many simulations: every combination of some values
    Sweep(SweepArguments),
    /// Compare buffer-pool policies on a trace
    ///
    /// Each policy runs as published, with batched write-back (ACE), or both.
    Pool(Box<PoolArguments>),
    /// Repeat a published study and compare the results
    Study(StudyArguments),
    /// Inspect and convert database files of the flashwise VFS
    #[command(subcommand, after_help = SQLITE_EXAMPLES)]
    Sqlite(SqliteAction),
    /// Inspect, check, dump and try out flashwise's key-value stores
    #[command(subcommand, after_help = STORE_EXAMPLES)]
    Store(StoreAction),
    /// List, show, check and import simulated drives
    #[command(subcommand, after_help = DEVICE_EXAMPLES)]
    Device(DeviceAction),
    /// Inspect, convert, generate and replay I/O traces
    #[command(subcommand, after_help = TRACE_EXAMPLES, after_long_help = trace::formats_page(TRACE_EXAMPLES))]
    Trace(TraceAction),
    /// Measure the costs of this machine's kernel, for simulated runs
    #[command(subcommand, after_help = KERNEL_EXAMPLES)]
    Kernel(KernelAction),
    /// Write man pages and shell completions
    #[command(subcommand, after_help = GENERATE_EXAMPLES)]
    Generate(Generated),
}

const FIT_EXAMPLES: &str = "\
Examples:
  flashwise fit sqlite
  flashwise fit sqlite app.db --sql queries.sql
  flashwise fit postgres dbname=shop --profile ssd.toml
  flashwise fit mariadb /run/mysqld/mysqld.sock --profile ssd.toml";

const SQLITE_EXAMPLES: &str = "\
Examples:
  flashwise sqlite import app.db app.fw.db --profile ssd.toml
  flashwise sqlite info app.fw.db
  flashwise sqlite export app.fw.db copy.db";

const STORE_EXAMPLES: &str = "\
Examples:
  flashwise store info app.store
  flashwise store check app.store
  flashwise store dump app.store app.dump";

const DEVICE_EXAMPLES: &str = "\
Examples:
  flashwise device list
  flashwise device show samsung-960-evo > mine.toml
  flashwise device check mine.toml";

const TRACE_EXAMPLES: &str = "\
Examples:
  flashwise trace info app.csv
  flashwise trace convert prxy_0.csv.gz prxy_0.parquet
  flashwise trace replay prxy_0.parquet /mnt/ssd --fold";

const KERNEL_EXAMPLES: &str = "\
Examples:
  flashwise kernel calibrate
  flashwise kernel calibrate --directory /mnt/ssd --costs costs.toml";

const GENERATE_EXAMPLES: &str = "\
Examples:
  flashwise generate man ~/.local/share/man/man1
  flashwise generate completions bash > /etc/bash_completion.d/flashwise";

/// The arguments of this process, for [`Arguments`].
pub fn command_line() -> Vec<OsString> {
    with_directory(std::env::args_os().collect())
}

/// Turns `device import --output DIR` into `--directory DIR`: unlike other commands, it writes several files, and many
/// programs take the directory for them as `--output`. An output format and a second directory are left to clap.
fn with_directory(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let word = |n: usize| arguments.get(n).and_then(|argument| argument.to_str()).unwrap_or_default();
    let has_directory = |n: usize| ["--directory", "--dir"].contains(&word(n).split('=').next().unwrap_or_default());
    if (word(1), word(2)) != ("device", "import") || (3..arguments.len()).any(has_directory) {
        return arguments;
    }
    let is_directory = |value: &str| !value.starts_with('-') && Format::from_str(value, false).is_err();
    let named = (3..arguments.len()).find_map(|n| match word(n).strip_prefix("--output") {
        Some("") if n + 1 < arguments.len() && is_directory(word(n + 1)) => Some((n, "--directory".to_owned())),
        Some(rest) => {
            rest.strip_prefix('=').filter(|value| is_directory(value)).map(|dir| (n, format!("--directory={dir}")))
        }
        None => None,
    });
    if let Some((place, option)) = named {
        arguments[place] = option.into();
    }
    arguments
}

/// The size of a page cache: with a unit, as a number alone may be meant as pages or as MiB.
fn cache_size(text: &str) -> Result<ByteSize, String> {
    match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => Err(format!("give a unit, such as {text}k or {text}m")),
        false => positive_size(text),
    }
}

/// A size of at least one byte.
fn positive_size(text: &str) -> Result<ByteSize, String> {
    match text.parse::<ByteSize>() {
        Ok(ByteSize(0)) => Err("give at least one byte".to_owned()),
        Ok(size) => Ok(size),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::{Command, CommandFactory};

    use super::*;

    /// Every option of a command and its subcommands, with the names of its values.
    fn options(command: &Command, found: &mut BTreeMap<String, Vec<String>>) {
        for option in command.get_arguments().filter(|option| !option.is_positional()) {
            let names = option.get_value_names().filter(|_| option.get_action().takes_values()).unwrap_or_default();
            let takes = names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            let known = found.entry(option.get_long().unwrap_or_default().to_owned()).or_default();
            if !known.contains(&takes) {
                known.push(takes);
            }
        }
        command.get_subcommands().for_each(|verb| options(verb, found));
    }

    /// Calls `visit` with each command that a user can run or read about, and with its help page of 80 columns.
    fn each_page(command: &Command, visit: &mut impl FnMut(&Command, &str)) {
        let page = command.clone().term_width(80).render_long_help().to_string();
        visit(command, &page);
        let is_own = |verb: &&Command| !verb.is_hide_set() && verb.get_name() != "help";
        command.get_subcommands().filter(is_own).for_each(|verb| each_page(verb, visit));
    }

    /// The commands of this program in the examples of a page, with lines that end in a backslash joined.
    fn examples(page: &str) -> Vec<String> {
        let (_, section) = page.split_once("\nExamples:\n").unwrap_or_default();
        let joined = section.replace("\\\n", " ");
        let lines = joined.lines().map(str::trim).filter(|line| line.starts_with("flashwise "));
        lines.map(str::to_owned).collect()
    }

    /// The words of a line up to a comment, a pipe or a redirection, as a shell splits them.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut quoted) = (Vec::new(), false);
        for part in line.split('\'') {
            if quoted {
                words.push(part.to_owned());
            } else {
                let plain = part.split_whitespace().take_while(|word| !["#", ">", "|", "&"].contains(word));
                words.extend(plain.map(str::to_owned));
            }
            quoted = !quoted;
        }
        words
    }

    #[test]
    fn each_help_page_has_an_example_of_its_command_and_all_examples_parse() {
        let mut command = Arguments::command();
        command.build();
        let mut pages = 0;
        each_page(&command, &mut |command, page| {
            let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
            let examples = examples(page);
            assert!(examples.iter().any(|line| line.starts_with(name)), "{name}: no example:\n{page}");
            for example in &examples {
                let parsed = Arguments::command().try_get_matches_from(words(example));
                assert!(parsed.is_ok(), "{name}: {example}: {}", parsed.unwrap_err());
            }
            pages += 1;
        });
        assert!(pages > 30, "{pages} pages");
    }

    #[test]
    fn no_line_of_a_help_page_is_wider_than_80_columns() {
        let mut command = Arguments::command();
        command.build();
        each_page(&command, &mut |command, page| {
            // What stands after the options is checked before it is wrapped, as an example must stay in its lines.
            let after = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string);
            let lines = page.lines().chain(after.as_deref().unwrap_or_default().lines());
            let wide: Vec<_> = lines.filter(|line| line.chars().count() > 80).collect();
            assert!(wide.is_empty(), "{}", wide.join("\n"));
        });
    }

    #[test]
    fn each_command_is_described_in_one_line_of_the_short_help() {
        let mut command = Arguments::command();
        command.build();
        each_page(&command, &mut |command, _| {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!about.is_empty() && about.chars().count() <= 80, "{}: {about}", command.get_name());
        });
    }

    #[test]
    fn the_output_of_an_import_that_is_no_form_is_its_directory() {
        let taken = |line: &str| {
            let line = with_directory(line.split(' ').map(Into::into).collect());
            line.join(" ".as_ref()).into_string().unwrap()
        };
        let import = "flashwise device import --mqsim a.xml";
        assert_eq!(taken(&format!("{import} --output out")), format!("{import} --directory out"));
        assert_eq!(taken(&format!("{import} --output=out -o json")), format!("{import} --directory=out -o json"));
        assert_eq!(
            taken(&format!("{import} --output json --output out")),
            format!("{import} --output json --directory out")
        );
        for same in ["--output text", "--output=json", "--output", "--directory a --output b", "--dir=a --output b"] {
            assert_eq!(taken(&format!("{import} {same}")), format!("{import} {same}"));
        }
        assert_eq!(taken("flashwise device list --output out"), "flashwise device list --output out");
    }

    #[test]
    fn an_option_takes_the_same_wherever_it_stands() {
        let mut found = BTreeMap::new();
        options(&Arguments::command(), &mut found);
        found.retain(|_, takes| takes.len() > 1);
        // The seed of each verb, libpq's and MariaDB's names of a server, the scales of two benchmarks, and what drives
        // and policies are compared with.
        let known = ["compare", "dsn", "scale", "seed"];
        assert!(found.keys().all(|name| known.contains(&name.as_str())), "{found:?}");
    }
}
