//! The learned limits in the formats of programs that schedule I/O by them: Seastar's `io-properties`, and the kernel's
//! `io.cost`.
//!
//! Each of them needs four figures: IOPS and bandwidth, of reads and of writes. All four must be certain: a scheduler
//! that takes a burst for a limit, or a guess for a fact, is worse than one that is not configured.

mod iocost;
mod seastar;

use std::fmt;

use flashwise_profile::{DeviceProfile, Figure, Verdict};

pub use iocost::iocost_files;
pub use seastar::seastar_files;

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedFile {
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub text: String,
}

/// The limits that such a program asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveLimits {
    /// Reads of 4 KiB a second.
    pub read_iops: u64,
    /// Bytes read a second.
    pub read_bandwidth: u64,
    /// Writes of 4 KiB a second.
    pub write_iops: u64,
    /// Bytes written a second.
    pub write_bandwidth: u64,
}

/// Why limits are not exported: each figure that is not certain, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct NotCertain(pub Vec<String>);

impl fmt::Display for NotCertain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the profile does not have every limit as certain, so nothing is exported: {}; learn the volume with more \
             time (--limits --time-budget 3h)",
            self.0.join("; ")
        )
    }
}

impl DriveLimits {
    /// The long-run limits of a profile. Where reads and writes share a budget, each is what it gets alone, which is
    /// how these programs account for a shared budget.
    ///
    /// # Errors
    /// [`NotCertain`], with every figure that is missing.
    pub fn of_profile(profile: &DeviceProfile) -> Result<Self, NotCertain> {
        let limits = &profile.limits;
        let shared = limits.shared_iops_limit.known();
        let charged = |cost: Option<f64>| cost.filter(|&cost| cost > 0.0);
        let shared_writes = shared.zip(charged(limits.shared_write_cost.known()));
        let shared_written = shared.zip(charged(limits.shared_write_cost_per_mib.known()));
        let shared_bandwidth = limits.shared_bandwidth_limit.known();
        let mut missing = Vec::new();
        let mut figure = |key: &str, own: &Figure<u64>, shared: Option<u64>| {
            let value = own.known().or(shared).filter(|&value| value > 0);
            if value.is_none() {
                missing.push(format!("{key} {}", why_not(own)));
            }
            value.unwrap_or_default()
        };
        let of_cost = |(budget, cost): (u64, f64)| (budget as f64 / cost) as u64;
        let limits = Self {
            read_iops: figure("read_iops_limit", &limits.read_iops_limit, shared),
            read_bandwidth: figure("read_bandwidth_limit", &limits.read_bandwidth_limit, shared_bandwidth),
            write_iops: figure("write_iops_limit", &limits.write_iops_limit, shared_writes.map(of_cost)),
            write_bandwidth: figure(
                "write_bandwidth_limit",
                &limits.write_bandwidth_limit,
                shared_bandwidth.or(shared_written.map(|(budget, cost)| (budget as f64 / cost * 1_048_576.0) as u64)),
            ),
        };
        if missing.is_empty() { Ok(limits) } else { Err(NotCertain(missing)) }
    }
}

fn why_not<T>(figure: &Figure<T>) -> &'static str {
    match (figure.verdict, &figure.value) {
        (Verdict::Absent, _) => "is absent: the drive itself is the limit",
        (_, Some(_)) => "is inconclusive",
        (_, None) => "was not learned",
    }
}

/// The head of a file as comment lines: what it is of, and how to use it.
fn head(profile: &DeviceProfile, lines: &[&str]) -> String {
    let target = flashwise_block::shown::line(&profile.device.target);
    let learned = format!("Limits of {target}, learned by flashwise {}.", profile.flashwise_version);
    std::iter::once(learned.as_str()).chain(lines.iter().copied()).map(|line| format!("# {line}\n")).collect()
}

#[cfg(test)]
mod tests;
