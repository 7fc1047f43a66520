//! Rule 13: partition and file system start on a flash page.
//!
//! A file system reads and writes whole blocks, at multiples of a block from its own start. If the partition is not
//! aligned to the drive's page, as those at sector 63 of old partition tables, each block straddles two pages. In a
//! trace of a device that shows as one remainder that nearly all requests have: of those that are whole pages long at
//! least 90 %, a share that no mixture of programs with their own offsets reaches, on a remainder that is not 0.
//!
//! In a trace of files it is checked if the files' extents were looked up: then the start of the partition, from the
//! partition table, and of the extent, from the file system, are in the offsets.

use std::collections::BTreeMap;

use flashwise_block::{ByteSize, Operation, grouped};
use flashwise_profile::DeviceProfile;

use super::{Check, known_size};
use crate::fix::shift_down;
use crate::play::Step;
use crate::request::{Facts, ObservedRequest};
use crate::system::Shown;
use crate::tally::Tally;

/// Share of the requests that must have the same remainder, in percent.
const SHARE: u64 = 90;
/// Remainders are counted in sectors.
const SECTOR: u64 = 512;
/// Remainders that are counted, at most: pages up to 64 KiB.
const REMAINDERS: usize = 128;
/// Requests below which a share says nothing.
const LEAST: u64 = 20;

struct AlignPartition {
    page: u64,
    by_remainder: BTreeMap<u64, Tally>,
    requests: u64,
    found: u64,
}

pub(super) fn prepare(profile: &DeviceProfile) -> Result<Box<dyn Check>, String> {
    let page = known_size(&profile.parameters.page_bytes, "flash page")?;
    if page <= SECTOR {
        return Err("the drive's flash page is no longer than a sector, so everything is aligned".to_owned());
    }
    Ok(Box::new(AlignPartition { page, by_remainder: BTreeMap::new(), requests: 0, found: 0 }))
}

impl Check for AlignPartition {
    fn observe(&mut self, seen: &ObservedRequest, tally: &mut Tally) {
        let moves = matches!(seen.record.operation, Operation::Read | Operation::Write);
        let length = seen.record.length.0;
        let is_whole = length > 0 && length.is_multiple_of(self.page);
        let Some(offset) = seen.on_drive().filter(|_| moves && is_whole) else { return };
        self.requests += 1;
        let remainder = offset % self.page;
        if self.by_remainder.len() < REMAINDERS || self.by_remainder.contains_key(&remainder) {
            self.by_remainder.entry(remainder).or_insert_with(|| tally.clone()).breaks(seen);
        }
    }

    fn finish(&mut self, tally: &mut Tally) {
        let most = self.by_remainder.iter().max_by_key(|(_, tally)| tally.violations);
        let found = most.filter(|(remainder, of)| {
            let share = u128::from(of.violations) * 100 >= u128::from(self.requests) * u128::from(SHARE);
            **remainder != 0 && share && self.requests >= LEAST
        });
        if let Some((&remainder, found)) = found {
            (*tally, self.found) = (found.clone(), remainder);
        }
        tally.requests = self.requests;
        self.by_remainder.clear();
    }

    fn hidden(&self, facts: &Facts) -> Option<String> {
        (facts.requests > 0 && facts.unplaced == facts.requests)
            .then(|| "the trace has file offsets, not drive offsets".to_owned())
    }

    fn statement(&self) -> String {
        format!("partition and file system should start at a multiple of {}", ByteSize(self.page))
    }

    fn remedy(&self, _: &Shown) -> String {
        let start = match self.found {
            0 => String::new(),
            remainder => format!("; it starts {} bytes past one", grouped(remainder)),
        };
        format!("recreate the partition at a multiple of 1 MiB, the default of parted and fdisk{start}")
    }

    fn fix(&self, steps: &[Step]) -> Vec<Step> {
        shift_down(steps, self.found)
    }
}
