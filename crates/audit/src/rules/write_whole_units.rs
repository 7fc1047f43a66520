//! Rule 1: write lengths are multiples of the write unit.
//!
//! Cost: a drive gathers what is written until a flush closes the last unit, half full or not. Between two flushes
//! the lengths that break the rule are therefore added up, and what is missing to the next whole unit is the padding
//! in flash. In a trace without a flush each write counts as durable at completion, and is closed on its own.
//!
//! Time: the durable write of such a last part, less its share of a whole unit's.

use flashwise_block::{ByteSize, Operation};
use flashwise_profile::{DeviceProfile, DurableWritePoint};
use flashwise_trace::{IoRecord, IoTrace};

use super::{Check, is_write, known_size};
use crate::Cost;
use crate::curves::durable_write_ns;

struct WriteWholeUnits<'a> {
    unit: u64,
    durable: &'a [DurableWritePoint],
}

pub(super) fn prepare(profile: &DeviceProfile) -> Result<Box<dyn Check + '_>, String> {
    let unit = known_size(&profile.parameters.write_unit_bytes, "write unit")?;
    Ok(Box::new(WriteWholeUnits { unit, durable: &profile.curves.durable_write }))
}

impl WriteWholeUnits<'_> {
    /// Bytes that stand in a unit that is not full, for each time that the drive had to close one.
    fn closed_parts(&self, trace: &IoTrace) -> Vec<u64> {
        let flushes = trace.records.iter().any(|r| r.operation == Operation::Flush);
        let (mut parts, mut filled) = (Vec::new(), 0);
        for record in &trace.records {
            if self.breaks(record) {
                filled = ((u128::from(filled) + u128::from(record.length.0)) % u128::from(self.unit)) as u64;
            }
            if record.operation == Operation::Flush || !flushes {
                parts.push(std::mem::take(&mut filled));
            }
        }
        parts.push(filled);
        parts.retain(|&part| part > 0);
        parts
    }

    fn time_lost_ns(&self, part: u64) -> Option<u64> {
        let whole = u128::from(durable_write_ns(self.durable, self.unit)?);
        let share = whole * u128::from(part) / u128::from(self.unit);
        Some(durable_write_ns(self.durable, part)?.saturating_sub(share as u64))
    }
}

impl Check for WriteWholeUnits<'_> {
    fn applies(&self, record: &IoRecord) -> bool {
        is_write(record)
    }

    fn obeys(&self, record: &IoRecord) -> bool {
        record.length.0.is_multiple_of(self.unit)
    }

    fn cost(&self, trace: &IoTrace) -> Cost {
        let parts = self.closed_parts(trace);
        let padding = parts.iter().fold(0_u64, |sum, part| sum.saturating_add(self.unit - part));
        let time = durable_write_ns(self.durable, self.unit)
            .and_then(|_| parts.iter().map(|&part| self.time_lost_ns(part)).sum());
        Cost { time_ns: time, flash_bytes: Some(padding), ..Cost::default() }
    }

    fn statement(&self) -> String {
        format!("writes should be a whole multiple of {} long", ByteSize(self.unit))
    }

    fn remedy(&self) -> String {
        let unit = ByteSize(self.unit);
        format!("use a page size that is a multiple of {unit}, and put more changes into one transaction")
    }
}
