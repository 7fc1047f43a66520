//! A drive with round figures, for the tests of the rules.

use flashwise_profile::DeviceProfile;

use super::super::defaults::defaults;
use super::super::settings::{Setting, Settings};
use super::*;
use crate::servers::tests::profile;
pub(in super::super) use crate::servers::tests::{changed, fits, untold};

/// A drive, and a server of version 15 with default settings.
pub(in super::super) struct Bench {
    pub(in super::super) profile: DeviceProfile,
    pub(in super::super) settings: Settings,
}

impl Bench {
    pub(in super::super) fn new() -> Self {
        Self::of(15)
    }

    /// One of another version.
    pub(super) fn of(version: u32) -> Self {
        Self { profile: profile(), settings: defaults(version).unwrap() }
    }

    pub(in super::super) fn facts(&self) -> Facts<'_> {
        Facts {
            profile: &self.profile,
            settings: &self.settings,
            activity: None,
            sessions: 1,
            depth: None,
            eviction: None,
        }
    }

    pub(in super::super) fn setting(&self, name: &str) -> &Setting {
        self.settings.get(name).unwrap()
    }

    pub(in super::super) fn set(&mut self, name: &str, value: &str) {
        self.settings.0.get_mut(name).unwrap().value = value.to_owned();
    }
}
