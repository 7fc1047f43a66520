//! The steady state of a drive, computed and laid out at once.

use flashwise_ssd::config::{GcPolicy, Mapping};
use flashwise_ssd::{SimulatedSsd, SsdError};
use flashwise_theory::{Policy, valid_count_distribution};

/// What errors call it.
const STATE: &str = "steady state";

/// Puts a drive into the state that a long overwrite with uniformly random logical pages would leave, by the mean
/// field of its garbage collection ([`flashwise_theory::mean_field`]), in no time and without counting it. `seed` draws
/// which logical pages are where. Gives the write amplification that the theory promises.
///
/// # Errors
/// When something was written before, when no theory covers the drive's garbage collection or how it tells streams
/// apart, or when the drive leaves garbage collection no space.
pub fn enter_steady_state(drive: &mut SimulatedSsd, seed: u64) -> Result<f64, SsdError> {
    drive.require_empty(STATE)?;
    let policy = theory_policy(drive)?;
    let slots = drive.config().slots_per_superblock();
    let (mut amplification, mut weight) = (0.0, 0.0);
    let mut failure = None;
    let laid_out = drive.lay_out(seed, &mut |sealed, valid| {
        let fill = valid as f64 / (f64::from(sealed) * f64::from(slots));
        match valid_count_distribution(fill, slots, policy) {
            Ok(distribution) => {
                amplification += distribution.write_amplification * valid as f64;
                weight += valid as f64;
                distribution.counts(sealed, valid)
            }
            Err(error) => {
                failure = Some(error.to_string());
                None
            }
        }
    });
    if !laid_out {
        let reason = failure.unwrap_or_else(|| "the sealed superblocks are too few for all logical pages".into());
        return Err(SsdError::Precondition { state: STATE, reason });
    }
    Ok(amplification / weight)
}

fn theory_policy(drive: &SimulatedSsd) -> Result<Policy, SsdError> {
    let config = drive.config();
    let gc = &config.ftl.gc;
    let refused = |reason: &str| Err(SsdError::Precondition { state: STATE, reason: reason.to_owned() });
    match gc.policy {
        _ if config.ftl.mapping != Mapping::Page => {
            refused("it is defined for page mapping only: use --precondition steady")
        }
        _ if drive.has_own_victim_policy() => {
            refused("there is no analytic model of a custom policy: use --precondition steady")
        }
        // Streams that the host names are one and the same to an overwrite that names none.
        _ if config.ftl.streams.policy.infers() => refused(
            "there is no analytic model of this ftl.streams.policy: use --precondition steady, or set it to \"one\" \
             or \"hint\"",
        ),
        GcPolicy::Greedy | GcPolicy::DisksimGreedy => Ok(Policy::Greedy),
        GcPolicy::RandomGreedy => Ok(Policy::RandomGreedy { d: gc.choices }),
        GcPolicy::Random => Ok(Policy::Random),
        GcPolicy::Fifo => Ok(Policy::Fifo),
        GcPolicy::WindowedGreedy => Ok(Policy::WindowedGreedy { share: gc.window_share }),
        _ => refused("there is no analytic model of this garbage-collection policy: use --precondition steady"),
    }
}
