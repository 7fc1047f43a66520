//! Rule 10: a page of the database is no shorter than the write unit.
//!
//! A shorter page that is written back alone leaves the rest of the unit as padding, or makes the drive gather others
//! for it. Fixed: the database has pages of one unit, with all consequences: a small change writes a unit, a point
//! lookup reads one. If that is slower, the cost is negative.

use flashwise_block::{ByteSize, Operation};
use flashwise_profile::DeviceProfile;
use flashwise_trace::{FileRole, TraceRecord};

use super::{Check, Each, PerRequest, SET_ALREADY, known_size};
use crate::fix::enlarge;
use crate::play::Step;
use crate::request::{Facts, ObservedRequest};
use crate::system::{DatabaseSystem, Shown};
use crate::tally::Tally;

struct PagesOfWriteUnit {
    unit: u64,
}

pub(super) fn prepare(profile: &DeviceProfile) -> Result<Box<dyn Check>, String> {
    let unit = known_size(&profile.parameters.write_unit_bytes, "write unit")?;
    Ok(Box::new(OfDatabases(Each(PagesOfWriteUnit { unit }))))
}

/// The same, where the trace knows which files are databases.
struct OfDatabases(Each<PagesOfWriteUnit>);

impl Check for OfDatabases {
    fn observe(&mut self, seen: &ObservedRequest, tally: &mut Tally) {
        self.0.observe(seen, tally);
    }

    fn hidden(&self, facts: &Facts) -> Option<String> {
        (facts.roles == 0).then(|| "the trace does not show which file is the database".to_owned())
    }

    fn statement(&self) -> String {
        self.0.statement()
    }

    fn remedy(&self, shown: &Shown) -> String {
        self.0.remedy(shown)
    }

    fn can_change(&self, shown: &Shown) -> bool {
        self.0.can_change(shown)
    }

    fn fix(&self, steps: &[Step]) -> Vec<Step> {
        self.0.fix(steps)
    }
}

impl PerRequest for PagesOfWriteUnit {
    fn applies(&self, seen: &ObservedRequest) -> bool {
        seen.record.operation == Operation::Write && seen.record.length.0 > 0 && seen.record.role == FileRole::Database
    }

    fn obeys(&self, record: &TraceRecord) -> bool {
        record.length.0 >= self.unit
    }

    fn statement(&self) -> String {
        format!("database pages should be at least {} long", ByteSize(self.unit))
    }

    fn remedy(&self, shown: &Shown) -> String {
        if shown.has_pages_of(self.unit) {
            return SET_ALREADY.to_owned();
        }
        let unit = ByteSize(self.unit);
        let settings = shown.settings([
            (DatabaseSystem::Sqlite, "PRAGMA page_size and VACUUM"),
            (DatabaseSystem::Postgres, "--with-blocksize"),
            (DatabaseSystem::MariaDb, "innodb_page_size"),
        ]);
        format!("set a page size of {unit} or the nearest supported one ({settings})")
    }

    fn can_change(&self, shown: &Shown) -> bool {
        !shown.has_pages_of(self.unit)
    }

    fn fix(&self, steps: &[Step]) -> Vec<Step> {
        enlarge(steps, self.unit)
    }
}
