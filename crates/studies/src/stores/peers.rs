//! Other stores: a program runs one of them in a directory of an attached drive.
//!
//! ```text
//!   study ─▶ PROGRAM names                     ─▶ the names of its stores, a line each
//!         ─▶ PROGRAM run NAME --directory …    ─▶ "load USER COMMITS" ◀─ a line: go on
//!                                              ─▶ "uniform USER COMMITS" ◀─ a line: go on
//!                                              ─▶ "zipf USER COMMITS" ◀─ a line: go on
//!                                              ─▶ "verified": the last values are there
//!         ─▶ the drive's counters, before each phase and after it, everything written back
//! ```
//!
//! The program is `benches/stores-beside`: a crate of its own, so that other stores are no dependencies of flashwise.
//! It runs the same workload from the same seed.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use flashwise_block::DeviceCounters;

use super::Scale;
use super::case::{Case, Outcome, Phase};
use super::ours::live_bytes;
use crate::attached::{Attached, Attachment, Cores};
use crate::{StudyError, StudyOptions};

/// How long a phase may take. One store was seen to wait for ever under back pressure.
const PATIENCE: Duration = Duration::from_secs(1_800);

/// The names that the program knows.
pub(super) fn names(program: &Path) -> Result<Vec<String>, StudyError> {
    let failed = |why: String| StudyError::Peers(format!("--peers {}: {why}", program.display()));
    let told = Command::new(program).arg("names").output().map_err(|error| failed(error.to_string()))?;
    let names: Vec<String> = String::from_utf8_lossy(&told.stdout).split_whitespace().map(str::to_owned).collect();
    match told.status.success() && !names.is_empty() {
        true => Ok(names),
        false => Err(failed(format!("it names no stores; build it in benches/stores-beside ({})", told.status))),
    }
}

/// A store at work.
struct Peer {
    process: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    name: String,
}

impl Drop for Peer {
    fn drop(&mut self) {
        // What has ended already needs none.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Peer {
    fn start(mut command: Command, name: &str) -> Result<Self, StudyError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn()?;
        let (send, lines) = channel();
        let (input, output, complaints) = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        thread::spawn(move || {
            for line in output.map(BufReader::new).into_iter().flat_map(BufReader::lines).map_while(Result::ok) {
                let _ = send.send(line);
            }
            let mut text = String::new();
            let _ = complaints.map(|mut from| from.read_to_string(&mut text));
            let _ = send.send(format!("failed {}", text.trim().replace('\n', "; ")));
        });
        Ok(Self { process, input, lines, name: name.to_owned() })
    }

    /// The numbers behind a word, once it comes.
    fn said<const N: usize>(&self, word: &str) -> Result<[u64; N], StudyError> {
        let failed = |why: &str| StudyError::Peers(format!("{}, {word}: {why}", self.name));
        let line = self.lines.recv_timeout(PATIENCE).map_err(|_| failed("it is not done after half an hour"))?;
        let mut words = line.split_whitespace();
        let is_it = words.next() == Some(word);
        let numbers: Option<Vec<u64>> = words.map(|number| number.parse().ok()).collect();
        let numbers = numbers.filter(|_| is_it).and_then(|numbers| numbers.try_into().ok());
        numbers.ok_or_else(|| failed(line.strip_prefix("failed ").unwrap_or(&line)))
    }

    fn go_on(&mut self) -> Result<(), StudyError> {
        match &mut self.input {
            Some(input) => Ok(writeln!(input)?),
            None => Err(StudyError::Lost),
        }
    }
}

/// The drive's counters once everything is written back.
fn counters(drive: &Attached) -> Result<DeviceCounters, StudyError> {
    drive.used_bytes()?;
    Ok(drive.stat()?.counters)
}

/// Physical bytes on the drive.
fn physical(drive: &Attached) -> Result<Option<u64>, StudyError> {
    Ok(drive.stat()?.space.map(|space| space.physical_bytes))
}

/// Runs it.
pub(super) fn run(
    case: &Case,
    name: &str,
    scale: &Scale,
    options: &StudyOptions,
    seed: u64,
) -> Result<Outcome, StudyError> {
    let Some(program) = &options.peers else { return Err(StudyError::Lost) };
    let workload = case.workload(scale, seed);
    let how = Attachment { time_scale: None, ..Attachment::default() };
    let drive = Attached::start(options.program.as_deref(), &case.drive.config()?, &how, &Cores::share()?)?;
    drive.used_bytes()?;
    let empty = physical(&drive)?;
    let mut command = Command::new(program);
    command.arg("run").arg(name).arg("--directory").arg(drive.directory());
    let numbers = [
        ("--keys", scale.keys),
        ("--value-bytes", workload.value_bytes as u64),
        ("--random-bytes", workload.random_bytes as u64),
        ("--seed", seed),
        ("--updates", case.updates(scale)),
        ("--commit", case.commit),
        ("--cache", case.cache(&workload).0),
    ];
    numbers.iter().for_each(|(option, number)| {
        command.arg(option).arg(number.to_string());
    });
    let mut before = counters(&drive)?;
    let mut peer = Peer::start(command, name)?;
    let mut phases = [Phase::default(); 3];
    for (phase, name) in phases.iter_mut().zip(["load", "uniform", "zipf"]) {
        let [user, commits] = peer.said(name)?;
        let after = counters(&drive)?;
        *phase = Phase::new(user, commits, &before, &after);
        before = after;
        peer.go_on()?;
    }
    let [load, uniform, zipf] = phases;
    let stored = physical(&drive)?.zip(empty).map(|(full, empty)| full.saturating_sub(empty) as f64);
    let [] = peer.said("verified")?;
    drop(peer);
    let space = stored.map_or(Ok(0.0), |stored| Ok::<_, StudyError>(stored / live_bytes(case, &workload)?))?;
    Ok(Outcome { load, uniform, zipf, space })
}
