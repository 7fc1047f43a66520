//! Rule 3: writes start on a stripe boundary.
//!
//! SQLite's write-ahead log violates it by its format: a header of 32 bytes, then frames of a header of 24 bytes and a
//! page, so that no page image is aligned to anything (<https://www.sqlite.org/fileformat2.html#walformat>). Fixed:
//! each write starts at the next free stripe, as write-aligned-stripes does by storing the headers separately.

use flashwise_block::ByteSize;
use flashwise_profile::DeviceProfile;
use flashwise_trace::TraceRecord;

use super::{Check, Each, PerRequest, known_size, with_vfs};
use crate::fix::relocate;
use crate::play::Step;
use crate::request::ObservedRequest;
use crate::system::{Shown, Technique};

struct StartWritesOnStripes {
    stripe: u64,
}

pub(super) fn prepare(profile: &DeviceProfile) -> Result<Box<dyn Check>, String> {
    let stripe = known_size(&profile.parameters.stripe_bytes, "stripe")?;
    Ok(Box::new(Each(StartWritesOnStripes { stripe })))
}

impl PerRequest for StartWritesOnStripes {
    fn applies(&self, seen: &ObservedRequest) -> bool {
        seen.is_write()
    }

    fn obeys(&self, record: &TraceRecord) -> bool {
        record.offset.0.is_multiple_of(self.stripe)
    }

    fn statement(&self) -> String {
        format!("writes should start at a multiple of {}", ByteSize(self.stripe))
    }

    fn remedy(&self, shown: &Shown) -> String {
        let stripe = ByteSize(self.stripe);
        with_vfs(
            shown,
            Technique::WriteAlignedStripes,
            format!(
                "start the log's page images and runs of pages at multiples of {stripe} with the technique \
             write-aligned-stripes, which stores the log's frame headers separately"
            ),
        )
    }

    fn can_change(&self, shown: &Shown) -> bool {
        shown.can_use(Technique::WriteAlignedStripes)
    }

    fn fix(&self, steps: &[Step]) -> Vec<Step> {
        relocate(steps, self.stripe, false)
    }
}
