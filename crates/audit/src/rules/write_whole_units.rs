//! Rule 1: write lengths are multiples of the write unit.
//!
//! A drive programs whole units; what a flush closes before it is full is padded. Mended: short writes are gathered
//! until they make a unit, and what closed them earlier waits, which is what larger transactions do.

use flashwise_block::ByteSize;
use flashwise_profile::DeviceProfile;
use flashwise_trace::TraceRecord;

use super::{Check, Each, PerRequest, known_size};
use crate::mend::gather;
use crate::play::Step;
use crate::request::Seen;

struct WriteWholeUnits {
    unit: u64,
}

pub(super) fn prepare(profile: &DeviceProfile) -> Result<Box<dyn Check>, String> {
    let unit = known_size(&profile.parameters.write_unit_bytes, "write unit")?;
    Ok(Box::new(Each(WriteWholeUnits { unit })))
}

impl PerRequest for WriteWholeUnits {
    fn applies(&self, seen: &Seen) -> bool {
        seen.is_write()
    }

    fn obeys(&self, record: &TraceRecord) -> bool {
        record.length.0.is_multiple_of(self.unit)
    }

    fn statement(&self) -> String {
        format!("writes should be a whole multiple of {} long", ByteSize(self.unit))
    }

    fn remedy(&self) -> String {
        let unit = ByteSize(self.unit);
        format!(
            "put more changes into one transaction, so that a commit writes {unit} at once (in SQLite BEGIN … COMMIT, in \
             PostgreSQL commit_delay, in MariaDB binlog_commit_wait_count)"
        )
    }

    fn mend(&self, steps: &[Step]) -> Vec<Step> {
        gather(steps, self.unit)
    }
}
