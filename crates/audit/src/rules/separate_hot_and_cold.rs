//! Rule 14: short-lived and long-lived data are written to different superblocks.
//!
//! Data that dies at one time should share a superblock, which is then erased without moving anything. Hot here is a
//! page that the trace has written before; cold is one that it writes for the first time. In each superblock's worth of
//! writes the smaller of the two parts violates the rule, from a tenth on: below that, GC of a whole superblock costs
//! less than a tenth more, and no drive's figure is as exact as that. It needs the superblock, if only about, and a
//! drive that does not separate the two itself: one whose write amplification under skewed writes is not below that of
//! uniform ones.
//!
//! Source: the streams of NVMe and multi-stream SSDs, Kang et al., HotStorage 2014.

use std::collections::BTreeSet;

use flashwise_block::ByteSize;
use flashwise_profile::DeviceProfile;

use super::{Check, about, known};
use crate::fix::keep_apart_what_stays;
use crate::play::Step;
use crate::request::{ObservedRequest, Space};
use crate::system::Shown;
use crate::tally::Tally;

/// Pages that are remembered; later ones count as cold.
const PAGES_MAX: usize = 1 << 20;
const PAGE: u64 = 4096;
/// The smaller part, from which on a superblock is mixed: one in so many.
const MIXED: u64 = 10;
/// Writes of a superblock that are remembered until it is full.
const WRITES_MAX: usize = 1 << 16;

struct SeparateHotAndCold {
    superblock: u64,
    pages: BTreeSet<(Space, u64)>,
    hot: Vec<ObservedRequest>,
    hot_bytes: u64,
    bytes: u64,
}

pub(super) fn prepare(profile: &DeviceProfile) -> Result<Box<dyn Check>, String> {
    let p = &profile.parameters;
    let superblock = about(&p.superblock_bytes, "superblock")?.clamp(1, 1 << 40);
    let skewed = known(&p.write_amplification_skewed, "write amplification under skewed writes")?;
    let uniform = known(&p.write_amplification_uniform, "write amplification under uniform writes")?;
    if skewed < uniform {
        return Err("the drive separates hot and cold data itself".to_owned());
    }
    let (pages, hot) = (BTreeSet::new(), Vec::new());
    Ok(Box::new(SeparateHotAndCold { superblock, pages, hot, hot_bytes: 0, bytes: 0 }))
}

impl SeparateHotAndCold {
    /// A superblock is full: its hot writes break the rule if it is mixed.
    fn close(&mut self, tally: &mut Tally) {
        let smaller = self.hot_bytes.min(self.bytes - self.hot_bytes);
        if smaller * MIXED >= self.bytes {
            self.hot.iter().for_each(|seen| tally.breaks(seen));
        }
        self.hot.clear();
        (self.bytes, self.hot_bytes) = (0, 0);
    }
}

impl Check for SeparateHotAndCold {
    fn observe(&mut self, seen: &ObservedRequest, tally: &mut Tally) {
        if !seen.is_write() {
            return;
        }
        tally.speaks();
        let page = (seen.space(), seen.record.offset.0 / PAGE);
        let is_hot = self.pages.contains(&page);
        if !is_hot && self.pages.len() < PAGES_MAX {
            self.pages.insert(page);
        }
        let length = seen.record.length.0.min(self.superblock);
        self.bytes += length;
        if is_hot {
            self.hot_bytes += length;
            if self.hot.len() < WRITES_MAX {
                self.hot.push(*seen);
            }
        }
        if self.bytes >= self.superblock {
            self.close(tally);
        }
    }

    fn statement(&self) -> String {
        let superblock = ByteSize(self.superblock);
        format!("short-lived data should not share a superblock of {superblock} with long-lived data")
    }

    fn remedy(&self, _: &Shown) -> String {
        "put the log and frequently updated data on a separate namespace or partition, or write them with a lifetime \
         hint (fcntl F_SET_RW_HINT) if the drive supports streams or placement handles"
            .to_owned()
    }

    fn fix(&self, steps: &[Step]) -> Vec<Step> {
        keep_apart_what_stays(steps)
    }

    fn is_paid_in_collection(&self) -> bool {
        true
    }
}
