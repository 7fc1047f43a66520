//! What the processor's part of a call takes.
//!
//! The defaults were measured by `flashwise kernel calibrate` on a virtual machine with two processors (Intel Xeon,
//! Sapphire Rapids), Linux 6.18 with retpolines, ext4, a file of 256 MiB in the page cache, beside other work:
//!
//! | constant | ns | from |
//! |---|---|---|
//! | [`system_call`](ProcessorCosts::system_call) | 88 | `lseek`: 85 to 91 |
//! | [`read`](ProcessorCosts::read) | 135 | `pread` of 1 byte, again and again, less a system call |
//! | [`read_page`](ProcessorCosts::read_page) | 424 | `pread` of 64 KiB: 6900 to 7050, less `pread` of 1 byte, over 16 pages |
//! | [`write`](ProcessorCosts::write) | 365 | `pwrite` of 4 KiB: 909 to 925, less a system call and a page |
//! | [`write_page`](ProcessorCosts::write_page) | 461 | `pwrite` of 64 KiB: 7820 to 8075, less `pwrite` of 4 KiB, over 15 pages |
//! | [`new_page`](ProcessorCosts::new_page) | 180 | `pwrite` of 4 KiB to a new file: 1066 to 1218, less the same over cached pages |
//! | [`fault`](ProcessorCosts::fault) | 1020 | a read fault of a mapped, cached file that maps 16 pages: 966 to 1063 |
//! | [`wake_up`](ProcessorCosts::wake_up) | 900 | a byte through two pipes to a thread and back: half of 1690 to 1916 |
//!
//! On XFS a write takes longer and a new page nothing beside it, since XFS enters pages in larger folios: `flashwise
//! kernel calibrate --directory` measures all of them on a file system of that kind. What the block layer and the
//! driver take for a request is not in them: a drive's latency, as measured, has it.

use flashwise_block::Nanos;
use serde::{Deserialize, Serialize};

use crate::error::{KernelError, Result};

/// Processor time of the kernel's work.
///
/// In TOML, as `flashwise kernel calibrate` writes it, each key is a constant's name with `_ns` behind it; one that is
/// left out has its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProcessorCosts {
    /// Entering and leaving the kernel.
    #[serde(rename = "system_call_ns")]
    pub system_call: Nanos,
    /// A read, beyond that.
    #[serde(rename = "read_ns")]
    pub read: Nanos,
    /// Finding and copying a page of it.
    #[serde(rename = "read_page_ns")]
    pub read_page: Nanos,
    /// A write, beyond the system call.
    #[serde(rename = "write_ns")]
    pub write: Nanos,
    /// Finding and copying a page of it.
    #[serde(rename = "write_page_ns")]
    pub write_page: Nanos,
    /// A page that was not cached: getting memory, entering it, reserving space.
    #[serde(rename = "new_page_ns")]
    pub new_page: Nanos,
    /// A page fault that finds its page cached.
    #[serde(rename = "fault_ns")]
    pub fault: Nanos,
    /// From an event to the task that waits for it.
    #[serde(rename = "wake_up_ns")]
    pub wake_up: Nanos,
}

impl Default for ProcessorCosts {
    fn default() -> Self {
        Self {
            system_call: Nanos(88),
            read: Nanos(135),
            read_page: Nanos(424),
            write: Nanos(365),
            write_page: Nanos(461),
            new_page: Nanos(180),
            fault: Nanos(1020),
            wake_up: Nanos(900),
        }
    }
}

impl ProcessorCosts {
    /// Reads what [`Self::to_toml`] wrote; `source` is the file's name, for messages.
    ///
    /// # Errors
    /// [`KernelError::Config`] with the line, and what is wrong there.
    pub fn from_toml(text: &str, source: &str) -> Result<Self> {
        toml::from_str(text).map_err(|error| KernelError::Config(format!("{source}: {error}")))
    }

    /// As lines of TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }

    /// All of them times `factor`, for a processor that is slower or faster.
    pub fn scaled(self, factor: f64) -> Self {
        let scaled = |cost: Nanos| Nanos((cost.0 as f64 * factor).round() as u64);
        Self {
            system_call: scaled(self.system_call),
            read: scaled(self.read),
            read_page: scaled(self.read_page),
            write: scaled(self.write),
            write_page: scaled(self.write_page),
            new_page: scaled(self.new_page),
            fault: scaled(self.fault),
            wake_up: scaled(self.wake_up),
        }
    }

    /// A processor that takes no time.
    pub fn none() -> Self {
        let none = Nanos(0);
        Self {
            system_call: none,
            read: none,
            read_page: none,
            write: none,
            write_page: none,
            new_page: none,
            fault: none,
            wake_up: none,
        }
    }
}
