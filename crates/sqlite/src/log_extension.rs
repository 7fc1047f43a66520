//! Zeros ahead of the frames of a write-ahead log, so that most commits overwrite space that was written before: their
//! sync changes nothing of the file but bytes.
//!
//! ```text
//!   │ header │ frame │ frame │ frame │ zeros ahead │        recovery ends at the zeros, as at an old frame:
//!                            └ the next commit     └ size   no frame has page number 0 (SQLite, `walDecodeFrame`)
//! ```
//!
//! A rollback journal is never extended: SQLite finds the name of a super-journal at its end.
//!
//! **Zeros are written during a write of SQLite's**, never during a sync: every writer of a log holds the write lock of
//! its index, but a checkpoint syncs the log while another process may be appending to it. The end of the file is read
//! again each time, since another process may have moved it.
//!
//! **Zeros fail no commit.** They take a sixteenth of the free space at most, and stay below the process' limit for the
//! size of a file. If they fail all the same the log is cut back to its frames.

use rustix::process::{Resource, getrlimit};

use crate::log_layout::LogLayout;

/// A log grows by as much as it has, from the first to the second of these.
const STEPS: std::ops::RangeInclusive<u64> = 64 << 10..=1 << 20;
/// Logs with fewer bytes of frames are those of connections that commit once or twice and close: zeros would be written
/// for nothing.
const SHORTEST: u64 = 16 << 10;
/// The part of the free space that zeros may take.
const FREE_SPACE_PART: u64 = 16;

/// The file of a log, as it is now.
pub(crate) trait LogFile {
    /// Bytes; `None` where that cannot be found out.
    fn size(&mut self) -> Option<u64>;
    /// Bytes that everybody may still take.
    fn free_space(&mut self) -> u64;
    /// The longest that the file may become.
    fn longest(&self) -> u64;
    /// Writes zeros; whether that could be done.
    fn write(&mut self, at: u64, zeros: &[u8]) -> bool;
    /// Cuts the file.
    fn truncate(&mut self, size: u64);
}

/// Zeros that are to be written behind the frames of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Zeros {
    start: u64,
    end: u64,
}

impl Zeros {
    /// The writes that they take: where, and what.
    fn writes(self) -> impl Iterator<Item = (u64, &'static [u8])> {
        static ZEROS: [u8; *STEPS.start() as usize] = [0; *STEPS.start() as usize];
        let starts = (self.start..self.end).step_by(ZEROS.len());
        starts.map(move |at| (at, &ZEROS[..(self.end - at).min(ZEROS.len() as u64) as usize]))
    }
}

/// When and how far one open log is extended.
#[derive(Debug)]
pub(crate) struct LogExtension {
    /// Of that length at least.
    shortest: u64,
    /// Whether the log was not extended since the last sync. One that is not synced needs no zeros, and one that takes
    /// a long transaction needs them once.
    is_due: bool,
    /// Whether zeros could not be written: it is not tried again.
    failed: bool,
    /// The end of the file as far as it is known since the last sync.
    end: Option<u64>,
}

impl LogExtension {
    /// Of a log in that layout.
    pub(crate) fn new(layout: LogLayout) -> Self {
        Self { shortest: SHORTEST + layout.before_pages(), is_due: false, failed: false, end: None }
    }

    /// SQLite is about to write.
    pub(crate) fn before_write(&mut self, file: &mut impl LogFile) {
        if !self.failed && self.end.is_none() {
            self.end = file.size();
        }
    }

    /// SQLite has written up to `end`: writes the zeros that are to follow. What cannot be written whole is taken back.
    pub(crate) fn after_write(&mut self, end: u64, file: &mut impl LogFile) {
        let Some(zeros) = self.due(end, file) else { return };
        let is_done = zeros.writes().all(|(at, bytes)| file.write(at, bytes));
        if !is_done {
            file.truncate(zeros.start);
        }
        self.end = Some(if is_done { zeros.end } else { zeros.start });
        self.failed |= !is_done;
    }

    fn due(&mut self, end: u64, file: &mut impl LogFile) -> Option<Zeros> {
        if self.failed || !self.is_due || self.end.is_none_or(|before| end <= before) {
            return None;
        }
        let size = file.size()?;
        self.end = Some(size);
        // What is behind belongs to another writer, or is a part of this write.
        if size != end || end < self.shortest {
            return None;
        }
        self.is_due = false;
        let zeros = Zeros { start: end, end: extended(end).min(file.longest()) };
        let length = zeros.end.checked_sub(zeros.start).filter(|&length| length > 0)?;
        (length <= file.free_space() / FREE_SPACE_PART).then_some(zeros)
    }

    /// The file has another size.
    pub(crate) fn truncated(&mut self) {
        self.end = None;
    }

    /// The file is about to be synced.
    pub(crate) fn synced(&mut self) {
        (self.is_due, self.end) = (true, None);
    }
}

/// The size of a log of that length with zeros behind it.
fn extended(end: u64) -> u64 {
    (end + end.clamp(*STEPS.start(), *STEPS.end())).next_multiple_of(*STEPS.start())
}

/// The longest file that this process may write: a write beyond it raises SIGXFSZ.
pub(crate) fn size_limit() -> u64 {
    getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_grows_by_as_much_as_it_has_and_by_1_mib_at_most() {
        let sizes = [16 << 10, 70_000, 200_000, 5 << 20].map(extended);
        assert_eq!(sizes, [128 << 10, 192 << 10, 448 << 10, 6 << 20]);
    }

    #[test]
    fn zeros_are_written_in_steps() {
        let writes =
            |start, end| Zeros { start, end }.writes().map(|(at, bytes)| (at, bytes.len())).collect::<Vec<_>>();
        assert_eq!(writes(100, 65_636), [(100, 65_536)]);
        assert_eq!(writes(54_096, 128 << 10), [(54_096, 65_536), (119_632, 11_440)]);
        assert_eq!(writes(5, 5), []);
    }
}
