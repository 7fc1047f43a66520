//! What the tests of the learner share: a drive that counts, a listener that takes notes and can stop the work, and
//! small simulated drives.

#![allow(dead_code, reason = "each test file uses its share")]

pub mod limiter;
pub mod model;

use std::ops::ControlFlow;

use flashwise_block::{BlockDevice, BlockError, ByteSize, Completion, Operation, Progress, Request};
use flashwise_learn::{Effort, LearnError, LearnOptions, Learned, Scope, learn_step_by_step};
use flashwise_profile::{DeviceProfile, Entry, Verdict};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

/// Bytes that the probes of a fresh drive use here.
pub const REGION: ByteSize = ByteSize::mib(64);

/// A SATA drive of 96 MiB with every part that the probes look for, small enough to be overwritten many times over.
pub fn small_config() -> DeviceConfig {
    let mut config = DeviceConfig::preset("micron-m500").unwrap();
    config.name = "small".to_owned();
    config.capacity_bytes = ByteSize::mib(96).bytes();
    config.flash.pages_per_block = 64;
    config.flash.blocks_per_plane = 32;
    config
}

/// The drive of [`small_config`], by default.
pub fn small_drive() -> SimulatedSsd {
    SimulatedSsd::new(small_config(), 1).unwrap()
}

/// Few samples of what decides how a database is laid out.
pub fn layout() -> LearnOptions {
    LearnOptions { region: REGION, effort: Effort::Quick, ..LearnOptions::new("sim:small") }
}

/// Few samples of every figure.
pub fn complete() -> LearnOptions {
    LearnOptions { scope: Scope::Complete, ..layout() }
}

/// Learns, and keeps the profile after each step.
pub fn learn_with_checkpoints(
    device: &mut dyn BlockDevice,
    options: &LearnOptions,
    progress: &mut dyn Progress,
) -> (Result<Learned, LearnError>, Vec<DeviceProfile>) {
    let mut checkpoints = Vec::new();
    let learned = learn_step_by_step(device, options, progress, &mut |profile| {
        checkpoints.push(profile.clone());
        ControlFlow::Continue(())
    });
    (learned, checkpoints)
}

/// The figure with this key.
pub fn entry(profile: &DeviceProfile, key: &str) -> Entry {
    profile.parameters.entries().into_iter().find(|entry| entry.key == key).unwrap_or_else(|| panic!("no {key}"))
}

/// Whether a figure has a value or is told as absent.
pub fn is_told(entry: &Entry) -> bool {
    entry.figure.value.is_some() || entry.figure.verdict == Verdict::Absent
}

/// What the profile says of how a figure came about.
pub fn reason<'a>(profile: &'a DeviceProfile, key: &str) -> Option<&'a str> {
    profile.evidence.iter().find(|evidence| evidence.figure == key).map(|evidence| &*evidence.reason)
}

/// The profile by default back from its file.
pub fn through_toml(profile: &DeviceProfile) -> DeviceProfile {
    DeviceProfile::from_toml(&profile.to_toml().unwrap(), "p.toml").unwrap()
}

/// A listener that notes what is started, and stops the work where it is told to.
#[derive(Debug, Default)]
pub struct Notes {
    /// Each stage once for each time it was started or gone on with, neighbours joined.
    pub stages: Vec<String>,
    calls: u64,
    stop_at_stage: Option<String>,
    stop_at_call: Option<u64>,
}

impl Notes {
    /// Stops when this stage is told for the first time.
    pub fn stopping_at(stage: &str) -> Self {
        Self { stop_at_stage: Some(stage.to_owned()), ..Self::default() }
    }

    /// Stops at the n-th call, counted from 1.
    pub fn stopping_at_call(n: u64) -> Self {
        Self { stop_at_call: Some(n), ..Self::default() }
    }

    /// How often it was told anything.
    pub fn calls(&self) -> u64 {
        self.calls
    }
}

impl Progress for Notes {
    fn advance(&mut self, stage: &str, fraction: f64) -> Result<(), BlockError> {
        assert!((0.0..=1.0).contains(&fraction), "{stage} is {fraction} done");
        self.calls += 1;
        if self.stages.last().is_none_or(|last| last != stage) {
            self.stages.push(stage.to_owned());
        }
        let stops = self.stop_at_stage.as_deref() == Some(stage) || self.stop_at_call == Some(self.calls);
        if stops { Err(BlockError::Interrupted) } else { Ok(()) }
    }
}

/// A drive that counts what it is asked for.
pub struct Counting<D> {
    pub drive: D,
    /// Requests of each operation, by its number.
    pub requests: [u64; 5],
    pub bytes_written: u64,
    pub bytes_read: u64,
    /// Waits that gave the failure of the drive as a whole.
    pub lost: bool,
}

impl<D: BlockDevice> Counting<D> {
    pub fn new(drive: D) -> Self {
        Self { drive, requests: [0; 5], bytes_written: 0, bytes_read: 0, lost: false }
    }

    pub fn of(&self, operation: Operation) -> u64 {
        self.requests[operation as usize]
    }

    pub fn all(&self) -> u64 {
        self.requests.iter().sum()
    }
}

impl<D: BlockDevice> BlockDevice for Counting<D> {
    flashwise_block::forward!(drive: info now outstanding pause counters writable);

    fn submit(&mut self, request: Request) -> Result<(), BlockError> {
        let (operation, length) = (request.operation, request.length.bytes());
        self.requests[operation as usize] += 1;
        match operation {
            Operation::Write | Operation::WriteZeroes => self.bytes_written += length,
            Operation::Read => self.bytes_read += length,
            Operation::Trim | Operation::Flush => {}
        }
        self.drive.submit(request)
    }

    fn wait(&mut self) -> Result<Option<Completion>, BlockError> {
        let completion = self.drive.wait();
        self.lost |= completion.is_err();
        completion
    }
}
