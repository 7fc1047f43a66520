//! How a target is learned whole, from what a user says of it.

use flashwise_block::{ByteSize, DeviceInfo, Nanos};
use flashwise_learn::{CARD_REGION, Effort, LearnOptions, QuickLimits, Scope};
use flashwise_profile::DeviceProfile;
use flashwise_ssd::config::Mapping;

use crate::Target;
use crate::sqlite::{LEARN_REGION, learn_options};

/// What a user says of a run of learning; the rest follows from the target.
#[derive(Clone, Debug, Default)]
pub struct LearnRequest {
    /// Seed of every random choice.
    pub seed: u64,
    /// How many samples; what suits the target's clock if nothing is said.
    pub effort: Option<Effort>,
    /// Start nothing that would write more than this.
    pub max_write: Option<ByteSize>,
    /// Start no probe after this time on the device's clock.
    pub time_budget: Option<Nanos>,
    /// Further sizes of requests for asymmetry and concurrency.
    pub request_sizes: Vec<ByteSize>,
    /// A profile to continue from.
    pub resume: Option<Box<DeviceProfile>>,
    /// Keep each sample.
    pub keep_raw: bool,
    /// Learn the limits in front of the drive, and not the drive: what a volume is learned for unless an effort is
    /// given, which is one of the drive's probes.
    pub limits: bool,
    /// Learn in which units a memory card works, and not the drive: what a simulated card is learned for unless an
    /// effort is given.
    pub card: bool,
}

/// The region of a file on a card: room for the units of most cards, in minutes.
const CARD_FILE_REGION: ByteSize = ByteSize::mib(512);

/// Whether a target is a simulated drive that maps whole units.
pub(crate) fn is_simulated_card(target: &Target) -> bool {
    matches!(target, Target::Simulated { config, .. } if config.ftl.mapping == Mapping::Block)
}

impl LearnRequest {
    /// Which figures are learned of a target.
    fn scope(&self, target: &Target) -> Scope {
        let maps_blocks = is_simulated_card(target);
        let is_volume = matches!(target, Target::Volume { .. });
        match self.effort {
            _ if self.limits => Scope::Limits,
            _ if self.card => Scope::Card,
            None if is_volume => Scope::Limits,
            None if maps_blocks => Scope::Card,
            _ => Scope::Complete,
        }
    }

    /// Bytes of the target that learning uses.
    pub fn region(&self, target: &Target) -> ByteSize {
        match self.scope(target) {
            Scope::Card if target.is_simulated() && !target.is_file() => CARD_REGION,
            Scope::Card => CARD_FILE_REGION,
            _ => LEARN_REGION,
        }
    }

    /// The options for an open target: every figure, within the limits of a quick run and those that the user agreed
    /// to.
    pub fn options(self, target: &Target, device: &DeviceInfo) -> LearnOptions {
        let usual = learn_options(target, self.seed, device.clock);
        let is_quick = self.effort == Some(Effort::Quick);
        let quick = if is_quick { target.quick_limits(device.capacity) } else { None };
        let (quick_write, quick_time) = quick.unzip();
        let quick_limits = QuickLimits {
            write: self.max_write.is_none()
                && quick_write.is_some_and(|quick| target.write_limit().is_none_or(|limit| quick <= limit)),
            time: self.time_budget.is_none() && quick_time.is_some(),
        };
        LearnOptions {
            scope: self.scope(target),
            region: self.region(target),
            effort: self.effort.unwrap_or(usual.effort),
            max_write: self.max_write.or(quick_write).into_iter().chain(target.write_limit()).min(),
            time_budget: self.time_budget.or(quick_time),
            quick_limits,
            request_sizes: self.request_sizes,
            resume: self.resume,
            keep_raw: self.keep_raw,
            ..usual
        }
    }
}
