//! Rule 5: a write touches as few flash pages as its length allows.
//!
//! A page touched in part is read, changed and programmed again. Fixed: a write that would straddle a page starts at
//! the next one, as the technique contain-write-in-flash-page does.

use flashwise_block::ByteSize;
use flashwise_profile::DeviceProfile;
use flashwise_trace::TraceRecord;

use super::{Check, Each, PerRequest, known_size, units_touched_in_vain, with_vfs};
use crate::fix::relocate;
use crate::play::Step;
use crate::request::ObservedRequest;
use crate::system::{Shown, Technique};

struct TouchFewPages {
    page: u64,
}

pub(super) fn prepare(profile: &DeviceProfile) -> Result<Box<dyn Check>, String> {
    let page = known_size(&profile.parameters.page_bytes, "flash page")?;
    Ok(Box::new(Each(TouchFewPages { page })))
}

impl PerRequest for TouchFewPages {
    fn applies(&self, seen: &ObservedRequest) -> bool {
        seen.is_write()
    }

    fn obeys(&self, record: &TraceRecord) -> bool {
        units_touched_in_vain(record, self.page) == 0
    }

    fn statement(&self) -> String {
        format!("writes should touch as few {} pages as their length allows", ByteSize(self.page))
    }

    fn remedy(&self, shown: &Shown) -> String {
        let page = ByteSize(self.page);
        with_vfs(
            shown,
            Technique::ContainWriteInFlashPage,
            format!(
                "start a write that would straddle a multiple of {page} at that multiple, with the technique \
             contain-write-in-flash-page"
            ),
        )
    }

    fn can_change(&self, shown: &Shown) -> bool {
        shown.can_use(Technique::ContainWriteInFlashPage)
    }

    fn fix(&self, steps: &[Step]) -> Vec<Step> {
        relocate(steps, self.page, false)
    }
}
