//! The drive below a server: learned where no profile of it is given.

use flashwise_block::{ByteSize, Progress};
use flashwise_learn::{Effort, LearnOptions, QuickLimits, Scope, learn};
use flashwise_profile::DeviceProfile;

use crate::sqlite::{LEARN_REGION, learn_options};
use crate::{Target, TuneError};

/// Seed of the probes.
const SEED: u64 = 1;

/// The drive of a server's data.
#[derive(Clone, Debug)]
pub enum DataDrive {
    /// Its profile.
    Known(Box<DeviceProfile>),
    /// Where to learn it, which takes minutes on a real drive: the other options are checked first.
    Unlearned(Target),
}

impl From<DeviceProfile> for DataDrive {
    fn from(profile: DeviceProfile) -> Self {
        Self::Known(Box::new(profile))
    }
}

/// Learns the drive of a target for the rules of a server, as `learn --quick` does: they need the time of a flush and
/// the gain by compression, too, and requests of these sizes.
///
/// # Errors
/// When the target cannot be opened or learned.
pub(crate) fn learn_drive(
    target: &Target,
    request_sizes: &[ByteSize],
    progress: &mut dyn Progress,
) -> Result<DeviceProfile, TuneError> {
    let mut device = target.open(SEED, LEARN_REGION)?;
    let (write, time_budget) = target.quick_limits(device.info().capacity).unzip();
    let options = LearnOptions {
        scope: Scope::Complete,
        effort: Effort::Quick,
        max_write: write.into_iter().chain(target.write_limit()).min(),
        time_budget,
        quick_limits: QuickLimits { write: write.is_some(), time: time_budget.is_some() },
        request_sizes: request_sizes.to_vec(),
        ..learn_options(target, SEED, device.info().clock)
    };
    Ok(learn(&mut *device, &options, progress)?)
}
