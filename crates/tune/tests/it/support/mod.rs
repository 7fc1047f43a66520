//! Small workloads, learned profiles and looks at directories, for the tests of `fit`.

#![allow(dead_code, reason = "each test file uses its share")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use flashwise_block::{ByteSize, Silent};
use flashwise_profile::DeviceProfile;
use flashwise_tune::sqlite::{FitOptions, KeyValueWorkload, TimeBudget, Workload, fit, learn_target};
use flashwise_tune::{Comparison, DEFAULT_TARGET, Target};

/// Runs in a moment, and does not fit into its page cache.
pub const SMALL: KeyValueWorkload = KeyValueWorkload {
    rows: 10_000,
    rounds: 4,
    inserts_per_round: 400,
    selects_per_round: 400,
    inserts_per_transaction: 500,
    page_cache: ByteSize::kib(128),
};

/// Just enough to go through every stage.
pub const TINY: KeyValueWorkload = KeyValueWorkload {
    rows: 300,
    rounds: 2,
    inserts_per_round: 20,
    selects_per_round: 70,
    inserts_per_transaction: 10,
    page_cache: ByteSize::kib(16),
};

pub fn target(name: &str) -> Target {
    Target::parse(name).unwrap()
}

/// The default drive's profile, learned once a test program.
pub fn samsung() -> DeviceProfile {
    static PROFILE: OnceLock<DeviceProfile> = OnceLock::new();
    PROFILE.get_or_init(|| learn_target(&target(DEFAULT_TARGET), 1, None, &mut Silent).unwrap()).clone()
}

/// A fit to the default drive, whose profile is known, with time for all of the search.
pub fn options(workload: Workload) -> FitOptions {
    FitOptions {
        profile: Some(samsung()),
        time_budget: Some(TimeBudget::Clock(Duration::from_secs(300))),
        ..FitOptions::new(target(DEFAULT_TARGET), workload)
    }
}

/// A comparison without what differs from run to run: times of this machine.
pub fn run(options: &FitOptions) -> Comparison {
    let mut comparison = fit(options, &mut Silent).unwrap();
    let Comparison { default, checklist, best, default_page_size, before, after, search, .. } = &mut comparison;
    for run in [default, checklist, best, default_page_size, before, after] {
        run.cpu_time_ns = 0;
    }
    search.time_ns = 0;
    comparison
}

/// Every file of a directory with its bytes and the time of its last change. Of a WAL's index, which is the memory that
/// its readers share, only that it is there.
pub fn contents(directory: &Path) -> BTreeMap<String, (Vec<u8>, SystemTime)> {
    let entries = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            if name.ends_with("-shm") {
                return (name, (Vec::new(), SystemTime::UNIX_EPOCH));
            }
            (name, (std::fs::read(entry.path()).unwrap(), entry.metadata().unwrap().modified().unwrap()))
        })
        .collect()
}

pub fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}
