//! The simulator beside MQSim, on MQSim's own input files: CPU time of whole processes, in turn, in one run.
//!
//! ```console
//! $ cargo bench -p flashwise-benches --bench beside_mqsim -- PATH/TO/MQSim [--rounds N] [--cases FOLDER] [CASE]
//! ```
//!
//! MQSim is not part of this project: build it with its own makefile (<https://github.com/CMU-SAFARI/MQSim>). FOLDER
//! holds one folder a case with `ssdconfig.xml` and `workload.xml`; CASE is a part of a case's name. A round runs MQSim
//! once and flashwise three times; of each the least user and system time counts, as what else a machine does only adds
//! to it.

#![allow(clippy::disallowed_methods, reason = "it measures on files of its own")]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::resource::{Usage, UsageWho, getrusage};

#[path = "../crates/sim/tests/it/support/mqsim.rs"]
mod mqsim;

/// Runs of flashwise for one of MQSim.
const RUNS_A_ROUND: u32 = 3;

struct Arguments {
    mqsim: Option<PathBuf>,
    cases: PathBuf,
    rounds: u32,
    only: String,
}

impl Arguments {
    fn parse() -> Result<Self, Box<dyn Error>> {
        let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/reference/mqsim");
        let mut arguments = Self { mqsim: None, cases, rounds: 3, only: String::new() };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--rounds" => arguments.rounds = value()?.parse::<u32>()?.max(1),
                "--cases" => arguments.cases = fs::canonicalize(value()?)?,
                "--bench" => {}
                // All benches at once: there is no peer.
                "--test" => arguments.mqsim = None,
                path if arguments.mqsim.is_none() => arguments.mqsim = Some(fs::canonicalize(path)?),
                case => case.clone_into(&mut arguments.only),
            }
        }
        Ok(arguments)
    }

    /// Beside the cases, as in the reference results.
    fn traces(&self) -> PathBuf {
        self.cases.join("../../traces/mqsim")
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().collect();
    if let [_, flag, case, traces] = &words[..]
        && flag == "--alone"
    {
        std::hint::black_box(mqsim::measured(Path::new(case), Path::new(traces)));
        return Ok(());
    }
    let arguments = Arguments::parse()?;
    let Some(program) = &arguments.mqsim else {
        println!("not run: name the program MQSim, built from https://github.com/CMU-SAFARI/MQSim");
        return Ok(());
    };
    if !arguments.cases.is_dir() {
        println!("not run: {} has no cases; name a folder with --cases", arguments.cases.display());
        return Ok(());
    }
    println!("{:<32} {:>11} {:>14} {:>9}", "case", "MQSim, ms", "flashwise, ms", "times");
    let mut logarithms = Vec::new();
    for case in mqsim::cases(&arguments.cases) {
        let name = case.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.contains(&arguments.only) {
            continue;
        }
        let (theirs, ours) = least_times(program, &case, &arguments)?;
        println!("{name:<32} {theirs:>11.1} {ours:>14.2} {:>9.1}", theirs / ours);
        logarithms.push((theirs / ours).ln());
    }
    if !logarithms.is_empty() {
        let mean = logarithms.iter().sum::<f64>() / logarithms.len() as f64;
        println!("{:<32} {:>36.1}", "geometric mean", mean.exp());
    }
    Ok(())
}

/// The least CPU times of both programs on a case, ms.
fn least_times(program: &Path, case: &Path, arguments: &Arguments) -> Result<(f64, f64), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    for name in ["ssdconfig.xml", "workload.xml"] {
        fs::copy(case.join(name), folder.path().join(name))?;
    }
    unpack_traces(&arguments.traces(), folder.path())?;
    let (mut theirs, mut ours) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..arguments.rounds {
        let mut mqsim = Command::new(program);
        mqsim.args(["-i", "ssdconfig.xml", "-w", "workload.xml"]).current_dir(folder.path());
        theirs = theirs.min(cpu_ms(&mut mqsim)?);
        for _ in 0..RUNS_A_ROUND {
            let mut flashwise = Command::new(std::env::current_exe()?);
            flashwise.arg("--alone").arg(case).arg(arguments.traces());
            ours = ours.min(cpu_ms(&mut flashwise)?);
        }
    }
    Ok((theirs, ours))
}

/// MQSim reads traces as text only.
fn unpack_traces(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(from).into_iter().flatten() {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "gz") {
            let mut text = flate2::read::MultiGzDecoder::new(fs::File::open(&path)?);
            let name = path.file_stem().unwrap_or_default();
            std::io::copy(&mut text, &mut fs::File::create(to.join(name))?)?;
        }
    }
    Ok(())
}

/// User and system time of a process from its start to its end, ms.
fn cpu_ms(command: &mut Command) -> Result<f64, Box<dyn Error>> {
    let so_far = || getrusage(UsageWho::RUSAGE_CHILDREN).map(|usage| total_ms(&usage));
    let before = so_far()?;
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if !status.success() {
        return Err(format!("{command:?} ended with {status}").into());
    }
    Ok(so_far()? - before)
}

fn total_ms(usage: &Usage) -> f64 {
    let ms = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 * 1e3 + time.tv_usec() as f64 / 1e3;
    ms(usage.user_time()) + ms(usage.system_time())
}
