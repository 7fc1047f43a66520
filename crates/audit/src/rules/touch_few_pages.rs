//! Rule 5: a write touches as few flash pages as its length allows.
//!
//! Cost: each page touched in vain is programmed once more than needed.

use flashwise_block::ByteSize;
use flashwise_profile::DeviceProfile;
use flashwise_trace::{IoRecord, IoTrace};

use super::{Check, is_write, known_size, units_touched_in_vain};
use crate::Cost;

struct TouchFewPages {
    page: u64,
}

pub(super) fn prepare(profile: &DeviceProfile) -> Result<Box<dyn Check + '_>, String> {
    let page = known_size(&profile.parameters.page_bytes, "flash page")?;
    Ok(Box::new(TouchFewPages { page }))
}

impl Check for TouchFewPages {
    fn applies(&self, record: &IoRecord) -> bool {
        is_write(record)
    }

    fn obeys(&self, record: &IoRecord) -> bool {
        units_touched_in_vain(record, self.page) == 0
    }

    fn cost(&self, trace: &IoTrace) -> Cost {
        let broken = trace.records.iter().filter(|r| self.breaks(r));
        let pages = broken.fold(0_u64, |sum, r| sum.saturating_add(units_touched_in_vain(r, self.page)));
        Cost { flash_bytes: Some(pages.saturating_mul(self.page)), ..Cost::default() }
    }

    fn statement(&self) -> String {
        format!("writes should touch as few pages of {} as their length allows", ByteSize(self.page))
    }

    fn remedy(&self) -> String {
        format!("start a write at the next multiple of {} where it would straddle one", ByteSize(self.page))
    }
}
