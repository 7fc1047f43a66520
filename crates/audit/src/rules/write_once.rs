//! Rule 7: data is written once, not first to a log or double-write area and then in place.
//!
//! Recognised by content if the trace has hashes: the same content at two places. Otherwise by files: page images in a
//! rollback journal, a write-ahead log or InnoDB's double-write files, and later writes of as many bytes to the
//! database; the images violate the rule. Short records of a log are not images and are left out. Images of pages that
//! were never written to the database in the trace are not counted either.
//!
//! It needs no figure of the drive: any drive programs the data twice. Fixed: the images are left out, which is what a
//! drive that writes a page atomically allows.

use std::collections::{BTreeMap, VecDeque};

use flashwise_profile::DeviceProfile;

use super::Check;
use crate::fix::drop_broken;
use crate::play::Step;
use crate::request::{Facts, ObservedRequest};
use crate::system::{DatabaseSystem, Shown};
use crate::tally::Tally;

/// The smallest page of any database here; what is shorter is a record, not an image. SQLite's frames are 24 bytes
/// longer.
const IMAGE_MIN: u64 = 4096;
/// An image, or several that were written at once, is longer than its pages by headers: 8 or 24 bytes for each in
/// SQLite, and up to a page for a journal. No more than one part in so many is taken for them.
const HEADERS_SHARE: u64 = 16;
/// Images that wait for their second writing; older ones are forgotten.
const WAITING_MAX: usize = 1 << 16;

#[derive(Default)]
struct WriteOnce {
    /// Images that were not yet seen a second time.
    images: VecDeque<ObservedRequest>,
    /// Bytes of the first image that were.
    consumed: u64,
    by_content: BTreeMap<u64, ObservedRequest>,
}

pub(super) fn prepare(_: &DeviceProfile) -> Result<Box<dyn Check>, String> {
    Ok(Box::new(WriteOnce::default()))
}

impl WriteOnce {
    fn look_at_content(&mut self, content: u64, seen: &ObservedRequest, tally: &mut Tally) {
        tally.speaks();
        if let Some(first) = self.by_content.remove(&content) {
            if (first.space(), first.record.offset) != (seen.space(), seen.record.offset) {
                tally.breaks(&first);
            }
        } else if self.by_content.len() < WAITING_MAX {
            self.by_content.insert(content, *seen);
        }
    }

    /// The database is written: as many bytes of images as that have now been written twice.
    fn consume(&mut self, bytes: u64, tally: &mut Tally) {
        self.consumed = self.consumed.saturating_add(bytes);
        while let Some(image) = self.images.front() {
            let length = image.record.length.0;
            if self.consumed < length - length / HEADERS_SHARE {
                return;
            }
            self.consumed = self.consumed.saturating_sub(length);
            tally.breaks(image);
            self.images.pop_front();
        }
        self.consumed = 0;
    }
}

impl Check for WriteOnce {
    fn observe(&mut self, seen: &ObservedRequest, tally: &mut Tally) {
        if !seen.is_write() {
            return;
        }
        if let Some(content) = seen.record.content {
            self.look_at_content(content, seen, tally);
        } else if seen.is_of_log() && seen.record.length.0 >= IMAGE_MIN {
            tally.speaks();
            if self.images.len() == WAITING_MAX {
                self.images.pop_front();
            }
            self.images.push_back(*seen);
        } else if seen.is_of_database() {
            self.consume(seen.record.length.0, tally);
        }
    }

    fn hidden(&self, facts: &Facts) -> Option<String> {
        let is_known = facts.roles > 0 || facts.contents > 0;
        (!is_known).then(|| "the trace has neither file names nor content hashes".to_owned())
    }

    fn statement(&self) -> String {
        "pages should be written once, not first to a journal, log or double-write area and then in place".to_owned()
    }

    fn remedy(&self, shown: &Shown) -> String {
        let sqlite = match shown.is_sqlite_in_wal_mode() {
            true => "a larger wal_autocheckpoint, so that a checkpoint writes a page once for many commits",
            false => {
                "journal_mode=WAL and a larger wal_autocheckpoint, so that many commits write a page to the database \
                 only once"
            }
        };
        shown.settings([
            (DatabaseSystem::Sqlite, sqlite),
            (DatabaseSystem::Postgres, "a longer checkpoint_timeout and a larger max_wal_size, or wal_compression"),
            (DatabaseSystem::MariaDb, "innodb_doublewrite=OFF if drive and file system write a page atomically"),
        ])
    }

    fn fix(&self, steps: &[Step]) -> Vec<Step> {
        drop_broken(steps)
    }
}
