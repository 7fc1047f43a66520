//! Simulated drives that are attached to this machine, so that a file system on one is where a database's client works.
//!
//! Serving a drive takes another process, so whoever calls this crate attaches it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use flashwise_ssd::DeviceConfig;

use crate::TuneError;

/// Attaches simulated drives to this machine.
pub trait AttachDrive: fmt::Debug + Send + Sync {
    /// Attaches a new drive, so many times as slow, and mounts a file system of that name on it.
    ///
    /// # Errors
    /// Where the machine does not allow it.
    fn attach(
        &self,
        config: &DeviceConfig,
        slower: u32,
        file_system: &str,
    ) -> Result<Box<dyn AttachedDrive>, TuneError>;
}

/// Whether a recommendation for a simulated drive is measured again on it, attached to this machine.
#[derive(Clone, Debug, Default)]
pub enum Attaching {
    /// It is not.
    #[default]
    Never,
    /// Where the target can be attached, the machine allows it and the search leaves the time.
    IfItCan(Arc<dyn AttachDrive>),
    /// It is; where it cannot be, that is an error.
    Always(Arc<dyn AttachDrive>),
}

/// A drive that is attached until this is dropped.
pub trait AttachedDrive {
    /// Where its file system is.
    fn directory(&self) -> PathBuf;

    /// Whether this machine was too busy to answer in time.
    fn was_late(&self) -> bool;
}
