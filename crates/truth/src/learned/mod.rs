//! A simulated drive made from what was learned about one: the way back from [`truth`](crate).
//!
//! ```text
//!   DeviceProfile ─┬─ figures ─▶ shape: what is programmed together, how places follow one another, how many dies
//!                  └─ curves ──▶ times: command, sensing, programming, channel, link  ◀─ calibrated against the shape
//! ```
//!
//! The shape is one of three, told apart by figures alone:
//!
//! | chunk and write unit | shape |
//! |---|---|
//! | protected against power loss, no stripe, unit of at most 4 KiB | written in place |
//! | chunk of at least a write unit | a die programs by itself, pieces of a chunk go from channel to channel |
//! | chunk shorter than the unit | all dies of a unit program together, neighbouring pages on different channels |
//!
//! Then the times are set so that the drive answers three questions as the profile's curves do: a read of 4 KiB, a
//! durable write of one unit, a long read; each alone, on a drive that was written in order. [`Calibrated`] tells how
//! near it came.
//!
//! What it is not: the drive. Caches, the policies of garbage collection and everything that no figure speaks of are
//! defaults. It is good for comparing two ways of doing the same work, as the audit does, and for no more.

mod calibrate;
mod shape;

use flashwise_block::ByteSize;
use flashwise_profile::DeviceProfile;
use serde::{Deserialize, Serialize};

use flashwise_sim::SimulationError;
use flashwise_ssd::SsdError;
use flashwise_ssd::config::DeviceConfig;

/// How near the drive comes to one question's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibrated {
    /// What was asked, such as `read of 4 KiB`.
    pub what: String,
    /// The profile's answer, ns.
    pub profile_ns: u64,
    /// The simulated drive's, ns.
    pub drive_ns: u64,
}

impl Calibrated {
    /// Difference of the two, as a share of the profile's.
    fn off(&self) -> f64 {
        self.profile_ns.abs_diff(self.drive_ns) as f64 / self.profile_ns.max(1) as f64
    }
}

/// A drive that answers as a profile does.
#[derive(Clone, Debug, PartialEq)]
pub struct LearnedDrive {
    /// The drive.
    pub config: DeviceConfig,
    /// How near it comes.
    pub calibrated: Vec<Calibrated>,
}

/// Why no drive can be made of a profile.
#[derive(Debug, thiserror::Error)]
pub enum LearnedError {
    /// A figure or a curve that the drive depends on is not there.
    #[error("the profile lacks {0}: learn the drive again, with more time (flashwise learn --thorough)")]
    Open(&'static str),
    /// The figures describe no drive that can be simulated.
    #[error("no simulated drive can be made from the profile's figures: {0}")]
    Impossible(#[from] SsdError),
    /// A simulated request failed.
    #[error("cannot calibrate the drive made from the profile: {0}")]
    Simulation(#[from] SimulationError),
}

/// Makes a drive of at least `capacity` that answers as the profile does.
///
/// # Errors
/// When the profile leaves open what the drive depends on, or describes none that can be simulated.
pub fn learned(profile: &DeviceProfile, capacity: ByteSize) -> Result<LearnedDrive, LearnedError> {
    let shape = shape::Shape::of(profile)?;
    let small = shape.config(profile, shape.smallest_capacity())?;
    let (times, calibrated) = calibrate::calibrate(&small, profile, &shape)?;
    let mut config = shape.config(profile, capacity.0.max(shape.smallest_capacity()))?;
    times.apply(&mut config);
    config.check(&config.name)?;
    Ok(LearnedDrive { config, calibrated })
}

#[cfg(test)]
mod tests {
    use flashwise_profile::{Figure, HotLocation, Parameters};

    use super::*;
    use crate::structure;

    #[test]
    fn a_profile_that_tells_nothing_makes_no_drive_and_says_what_is_missing() {
        let mut profile = shape::tests::samsung();
        profile.parameters.write_unit_bytes = Figure::unknown();
        let error = learned(&profile, ByteSize::mib(64)).unwrap_err().to_string();
        assert!(error.starts_with("the profile lacks the write unit"), "{error}");
        let mut profile = shape::tests::samsung();
        (profile.curves.location, profile.curves.throughput) = (Vec::new(), Vec::new());
        assert!(learned(&profile, ByteSize::mib(64)).unwrap_err().to_string().contains("read of 4 KiB"));
    }

    #[test]
    fn absurd_figures_are_refused_and_never_panic() {
        for absurd in [0, 1, 511, 4097, 1 << 40, u64::MAX] {
            let mut profile = shape::tests::samsung();
            let p = &mut profile.parameters;
            (p.write_unit_bytes, p.chunk_bytes) = (Figure::certain(absurd, absurd, absurd), p.write_unit_bytes);
            p.parallel_units = Figure::certain(absurd, absurd, absurd);
            let _ = learned(&profile, ByteSize::mib(64));
        }
    }

    #[test]
    fn the_drive_answers_as_the_profile_does_within_a_twentieth() {
        for profile in [shape::tests::samsung(), shape::tests::toshiba(), shape::tests::optane()] {
            let drive = learned(&profile, ByteSize::mib(256)).unwrap();
            assert!(drive.config.capacity_bytes >= 256 << 20);
            for c in &drive.calibrated {
                assert!(c.off() <= 0.05, "{}: {c:?}", profile.device.name);
            }
        }
    }

    #[test]
    fn the_drive_has_the_layout_that_the_profile_tells() {
        for profile in [shape::tests::samsung(), shape::tests::toshiba()] {
            let drive = learned(&profile, ByteSize::mib(256)).unwrap();
            let truth = structure(&drive.config).unwrap().parameters;
            let told = |p: &Parameters| -> (Option<u64>, Option<u64>, Option<HotLocation>) {
                (p.write_unit_bytes.known(), p.chunk_bytes.known(), p.hot_location.known())
            };
            assert_eq!(told(&truth), told(&profile.parameters), "{}", profile.device.name);
            // Where all channels program together, how data was written makes less of a difference than on the real
            // one.
            if profile.parameters.chunk_bytes == profile.parameters.stripe_bytes {
                assert_eq!(truth.stripe_bytes.known(), profile.parameters.stripe_bytes.known());
            }
        }
    }
}
