//! The drive below a server: learned where no profile of it is given.

use flashwise_block::{ByteSize, Progress};
use flashwise_learn::{LearnOptions, learn};
use flashwise_profile::DeviceProfile;

use crate::sqlite::{LEARN_REGION, learn_options};
use crate::{Target, TuneError};

/// Seed of the probes.
const SEED: u64 = 1;

/// Learns the drive of a target for the rules of a server, which also look at requests of these sizes.
///
/// # Errors
/// When the target cannot be opened or learned.
pub fn learn_drive(
    target: &Target,
    request_sizes: &[ByteSize],
    progress: &mut dyn Progress,
) -> Result<DeviceProfile, TuneError> {
    let mut device = target.open(SEED, LEARN_REGION)?;
    let options = LearnOptions {
        max_write: target.write_limit(),
        request_sizes: request_sizes.to_vec(),
        ..learn_options(target, SEED, device.info().clock)
    };
    Ok(learn(&mut *device, &options, progress)?)
}
