//! One request of any trace, and the clock that its time is on.

use flashwise_block::{ByteSize, Nanos, Operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{FileRole, IoRecord};

/// One request as a trace tells it; what the trace's format does not tell is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    /// When it was submitted, on the trace's [`TraceClock`].
    pub at: Nanos,
    /// What was asked.
    pub operation: Operation,
    /// First byte: on the device, or in the file where the format tells of files.
    pub offset: ByteSize,
    /// How many bytes.
    pub length: ByteSize,
    /// From submission to completion.
    pub latency: Option<Nanos>,
    /// Number of the device; in formats of the kernel, major × 2^20 + minor.
    pub device: Option<u32>,
    /// Number of the process.
    pub process: Option<u32>,
    /// Which of [`TraceReader::files`](crate::TraceReader::files).
    pub file: Option<u32>,
    /// What the file is to a database.
    pub role: FileRole,
    /// Force unit access: a write completes only when it is durable.
    pub fua: bool,
    /// What was written or read, as a number that is the same for the same content: the first eight bytes of its hash.
    pub content: Option<u64>,
}

impl TraceRecord {
    /// A request of which the format tells nothing else.
    #[inline]
    pub const fn new(at: Nanos, operation: Operation, offset: ByteSize, length: ByteSize) -> Self {
        Self {
            at,
            operation,
            offset,
            length,
            latency: None,
            device: None,
            process: None,
            file: None,
            role: FileRole::Unknown,
            fua: false,
            content: None,
        }
    }
}

impl From<IoRecord> for TraceRecord {
    fn from(record: IoRecord) -> Self {
        let IoRecord { at, operation, role, offset, length, latency } = record;
        Self { latency: Some(latency), role, ..Self::new(at, operation, offset, length) }
    }
}

impl From<TraceRecord> for IoRecord {
    /// A latency that is not known becomes 0.
    fn from(record: TraceRecord) -> Self {
        let TraceRecord { at, operation, role, offset, length, latency, .. } = record;
        Self { at, operation, role, offset, length, latency: latency.unwrap_or_default() }
    }
}

/// What the times of a trace count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TraceClock {
    /// The start of the recording.
    Start,
    /// Something unknown, such as when the machine came up.
    Unknown,
    /// 1970-01-01, UTC.
    Unix,
    /// 1601-01-01, UTC: Windows's filetime.
    Filetime,
}

/// From 1601-01-01 to 1970-01-01, ns.
const FILETIME_TO_UNIX_NS: u64 = 11_644_473_600 * 1_000_000_000;

impl TraceClock {
    /// A time of this clock on another one; `first` is what the trace counts from where the target counts from the
    /// start.
    ///
    /// # Errors
    /// When no such time exists: it is before the first, or no 64 bits hold it.
    pub fn convert(self, to: Self, at: Nanos, first: Nanos) -> Result<Nanos, String> {
        let moved = match (self, to) {
            (Self::Unknown | Self::Unix | Self::Filetime, Self::Start) => at.0.checked_sub(first.0).ok_or_else(|| {
                format!("time goes back to {} ns before the start of the trace: sort the trace by time", first.0 - at.0)
            }),
            (Self::Unix, Self::Filetime) => {
                at.0.checked_add(FILETIME_TO_UNIX_NS).ok_or_else(|| format!("{} ns since 1970 are out of range", at.0))
            }
            (Self::Filetime, Self::Unix) => {
                at.0.checked_sub(FILETIME_TO_UNIX_NS).ok_or_else(|| format!("{} ns since 1601 are before 1970", at.0))
            }
            _ => Ok(at.0),
        };
        moved.map(Nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_converted_where_both_are_known_and_counted_from_the_first_request_where_not() {
        let convert = |from: TraceClock, to, at| from.convert(to, Nanos(at), Nanos(100)).map(|at| at.0);
        use TraceClock::{Filetime, Start, Unix, Unknown};
        assert_eq!(convert(Unix, Filetime, 7), Ok(11_644_473_600_000_000_007));
        assert_eq!(convert(Filetime, Unix, 11_644_473_600_000_000_007), Ok(7));
        assert_eq!([convert(Unix, Start, 150), convert(Unknown, Start, 150)], [Ok(50), Ok(50)]);
        assert_eq!([convert(Start, Unix, 150), convert(Start, Start, 150)], [Ok(150), Ok(150)]);
    }

    #[test]
    fn a_time_that_another_clock_does_not_have_is_an_error_and_never_the_nearest() {
        let convert = |from: TraceClock, to, at| from.convert(to, Nanos(at), Nanos(100)).unwrap_err();
        use TraceClock::{Filetime, Start, Unix};
        let told = convert(Filetime, Start, 90);
        assert_eq!(told, "time goes back to 10 ns before the start of the trace: sort the trace by time");
        assert_eq!(convert(Filetime, Unix, 90), "90 ns since 1601 are before 1970");
        assert!(convert(Unix, Filetime, u64::MAX).ends_with("are out of range"));
    }
}
