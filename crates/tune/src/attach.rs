//! Simulated drives that are attached to this machine, so that a file system on one is where a database's client works.
//!
//! Serving a drive takes another process, so whoever calls this crate attaches it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use flashwise_block::ByteSize;
use flashwise_ssd::DeviceConfig;
use serde::{Deserialize, Serialize};

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

    /// What was written to it until now; `None` where it does not say.
    fn written(&self) -> Option<Written>;
}

/// What was written to a drive, and what that cost its flash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Bytes of the host's writes.
    pub host_bytes: ByteSize,
    /// Bytes that were programmed into flash for any reason.
    pub flash_bytes: ByteSize,
}

impl Written {
    /// What was written since then.
    pub(crate) fn since(self, earlier: Self) -> Self {
        self.by_field(earlier, u64::saturating_sub)
    }

    pub(crate) fn plus(self, more: Self) -> Self {
        self.by_field(more, u64::saturating_add)
    }

    /// The part of one of so many transactions; `None` of none.
    pub(crate) fn of_each(self, transactions: u64) -> Option<Self> {
        let each = |bytes: ByteSize| bytes.bytes().checked_div(transactions).map(ByteSize);
        Some(Self { host_bytes: each(self.host_bytes)?, flash_bytes: each(self.flash_bytes)? })
    }

    fn by_field(self, other: Self, sum: fn(u64, u64) -> u64) -> Self {
        let of = |one: ByteSize, other: ByteSize| ByteSize(sum(one.bytes(), other.bytes()));
        Self { host_bytes: of(self.host_bytes, other.host_bytes), flash_bytes: of(self.flash_bytes, other.flash_bytes) }
    }
}
