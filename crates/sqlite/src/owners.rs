//! Whose bytes are where on a drive.
//!
//! A request is recorded when it completes; by then its file may be gone, and a discard of a file's blocks always comes
//! later. A place therefore stays its last owner's until it is trimmed or another file takes it.

use std::collections::BTreeMap;

use flashwise_trace::FileRole;

/// Ranges of the drive and the role of the file that has them.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    /// By first byte: the byte behind the last one, and the role. They do not overlap.
    ranges: BTreeMap<u64, (u64, FileRole)>,
}

impl Owners {
    /// A file takes a range.
    pub(crate) fn claim(&mut self, start: u64, end: u64, role: FileRole) {
        if start < end {
            self.release(start, end);
            self.ranges.insert(start, (end, role));
        }
    }

    /// A range has no owner.
    pub(crate) fn release(&mut self, start: u64, end: u64) {
        let first = self.ranges.range(..=start).next_back().map_or(start, |(&first, _)| first);
        let overlapping = self.ranges.range(first..end).filter(|&(_, &(behind, _))| behind > start);
        let overlapping: Vec<_> = overlapping.map(|(&first, &(behind, role))| (first, behind, role)).collect();
        for (first, behind, role) in overlapping {
            self.ranges.remove(&first);
            if first < start {
                self.ranges.insert(first, (start, role));
            }
            if behind > end {
                self.ranges.insert(end, (behind, role));
            }
        }
    }

    /// The role of the file that a byte belongs to.
    pub(crate) fn role_at(&self, at: u64) -> Option<FileRole> {
        let (_, &(end, role)) = self.ranges.range(..=at).next_back()?;
        (at < end).then_some(role)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FileRole::{Database, Journal, WriteAheadLog};

    #[test]
    fn a_place_is_its_last_owners_until_it_is_taken_or_released() {
        let mut owners = Owners::default();
        owners.claim(100, 200, Database);
        owners.claim(200, 300, Journal);
        owners.claim(150, 250, WriteAheadLog);
        let roles = |owners: &Owners| [99, 100, 149, 150, 249, 250, 299, 300].map(|at| owners.role_at(at));
        let log = Some(WriteAheadLog);
        let [database, journal] = [Some(Database), Some(Journal)];
        assert_eq!(roles(&owners), [None, database, database, log, log, journal, journal, None]);
        owners.claim(120, 130, Journal);
        assert_eq!([119, 120, 129, 130].map(|at| owners.role_at(at)), [database, journal, journal, database]);
        owners.release(0, 1000);
        assert_eq!(roles(&owners), [None; 8]);
        owners.claim(5, 5, Database);
        assert!(owners.ranges.is_empty());
    }
}
