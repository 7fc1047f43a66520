//! Rule 1: write lengths are multiples of the write unit.
//!
//! A drive programs whole units; a flush pads a unit that is not full. Fixed: short writes are gathered until they make
//! a unit, and flushes in between wait, as larger transactions make them do.

use flashwise_block::ByteSize;
use flashwise_profile::DeviceProfile;
use flashwise_trace::TraceRecord;

use super::{Check, Each, PerRequest, known_size};
use crate::fix::gather;
use crate::play::Step;
use crate::request::ObservedRequest;
use crate::system::{DatabaseSystem, Shown};

struct WriteWholeUnits {
    unit: u64,
}

pub(super) fn prepare(profile: &DeviceProfile) -> Result<Box<dyn Check>, String> {
    let unit = known_size(&profile.parameters.write_unit_bytes, "write unit")?;
    Ok(Box::new(Each(WriteWholeUnits { unit })))
}

impl PerRequest for WriteWholeUnits {
    fn applies(&self, seen: &ObservedRequest) -> bool {
        seen.is_write()
    }

    fn obeys(&self, record: &TraceRecord) -> bool {
        record.length.0.is_multiple_of(self.unit)
    }

    fn statement(&self) -> String {
        format!("writes should be a whole multiple of {} long", ByteSize(self.unit))
    }

    fn remedy(&self, shown: &Shown) -> String {
        let unit = ByteSize(self.unit);
        let settings = shown.settings([
            (DatabaseSystem::Sqlite, "BEGIN … COMMIT"),
            (DatabaseSystem::Postgres, "commit_delay"),
            (DatabaseSystem::MariaDb, "binlog_commit_wait_count"),
        ]);
        format!("make transactions larger, so that a commit writes {unit} at once ({settings})")
    }

    fn fix(&self, steps: &[Step]) -> Vec<Step> {
        gather(steps, self.unit)
    }
}
