//! The end of a drive's life.

use serde::{Deserialize, Serialize};

/// The moment from which a drive takes no more writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndOfLife {
    /// On the drive's clock, ns.
    pub at_ns: u64,
    /// Bytes that the host had written since the drive was new.
    pub host_bytes_written: u64,
}

crate::state::state! { EndOfLife { saved { at_ns, host_bytes_written } } }

crate::state::optional_values!(EndOfLife);
