//! Rule 3: writes start on a stripe boundary.
//!
//! Cost: the stripes that such writes touch more than their length needs. Neither time nor flash bytes are told for
//! them: no curve of the profile was measured off the boundary.

use flashwise_block::ByteSize;
use flashwise_profile::DeviceProfile;
use flashwise_trace::{IoRecord, IoTrace};

use super::{Check, is_write, known_size, units_touched_in_vain};
use crate::Cost;

struct StartWritesOnStripes {
    stripe: u64,
}

pub(super) fn prepare(profile: &DeviceProfile) -> Result<Box<dyn Check + '_>, String> {
    let stripe = known_size(&profile.parameters.stripe_bytes, "stripe")?;
    Ok(Box::new(StartWritesOnStripes { stripe }))
}

impl Check for StartWritesOnStripes {
    fn applies(&self, record: &IoRecord) -> bool {
        is_write(record)
    }

    fn obeys(&self, record: &IoRecord) -> bool {
        record.offset.0.is_multiple_of(self.stripe)
    }

    fn cost(&self, trace: &IoTrace) -> Cost {
        let broken = trace.records.iter().filter(|r| self.breaks(r));
        let stripes = broken.fold(0_u64, |sum, r| sum.saturating_add(units_touched_in_vain(r, self.stripe)));
        Cost { stripes: Some(stripes), ..Cost::default() }
    }

    fn statement(&self) -> String {
        format!("writes should start at a multiple of {}", ByteSize(self.stripe))
    }

    fn remedy(&self) -> String {
        let stripe = ByteSize(self.stripe);
        format!("start the log's page images, and runs of pages, at multiples of {stripe}")
    }
}
