//! Whether all that is held twice, or as parity, agrees: a scrub.

use super::SimulatedArray;
use super::parity::{Row, parity_of, restore};
use super::work::{Parent, RowWork, Work};

/// A row whose parts do not agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParityError {
    /// What a member holds is not what follows from the others.
    #[error("stripe {row}: the data of member {member} does not match the other members")]
    Differs {
        /// The row.
        row: u64,
        /// The member.
        member: usize,
    },
    /// The array could not be read.
    #[error("stripe {row} could not be read")]
    Unreadable {
        /// The row.
        row: u64,
    },
}

impl SimulatedArray {
    /// Reads all that the members hold, row by row, in virtual time, and compares it: copies with each other, parities
    /// with the columns, and, where something is missing, what is left with what follows from a part of it. What is in
    /// the write cache is not on the members and is no part of it. Gives the rows that held anything to compare.
    ///
    /// # Errors
    /// With the first row whose parts do not agree.
    pub fn check_parity(&mut self) -> Result<u64, ParityError> {
        let row_bytes = self.stripes.row_bytes();
        let mut compared = 0;
        for row in 0..self.stripes.rows {
            self.checked = Err(ParityError::Unreadable { row });
            let held = (0..self.members.len()).filter(|&member| self.members.get(member).holds(row)).count();
            compared += u64::from(held > self.stripes.columns);
            let job = self.next_number + 1;
            let work = Work::Check(RowWork { row, ..RowWork::default() });
            self.add_job(Parent::Check, (row * row_bytes, (row + 1) * row_bytes), 0, work);
            while self.jobs.contains_key(&job) {
                if !self.step(u64::MAX).unwrap_or(false) {
                    return Err(ParityError::Unreadable { row });
                }
            }
            self.checked?;
        }
        Ok(compared)
    }

    /// Compares what the members hold of a row.
    pub(super) fn compare(&self, work: &RowWork) -> Result<(), ParityError> {
        let row = work.row;
        let (columns, slots, length) = (self.stripes.columns, self.stripes.slots(), (work.to - work.from) as usize);
        let held = |member: usize| work.read.get(member).and_then(Option::as_ref);
        let mut by_slot = Row::new();
        by_slot.resize(slots, None);
        for (member, bytes) in (0..self.members.len()).filter_map(|member| Some((member, held(member)?))) {
            by_slot[self.stripes.slot_of(row, member)].get_or_insert_with(|| bytes.clone());
        }
        // A row of which too much is missing has nothing that could be compared, unless a copy has.
        let is_restored = restore(&mut by_slot, columns, length);
        for parity in 0..slots - columns {
            if is_restored {
                by_slot[columns + parity] = Some(parity_of(&by_slot, columns, parity, length));
            }
        }
        let differs = |member: &usize| {
            let bytes = held(*member);
            bytes.is_some() && bytes != by_slot[self.stripes.slot_of(row, *member)].as_ref()
        };
        (0..self.members.len()).find(differs).map_or(Ok(()), |member| Err(ParityError::Differs { row, member }))
    }
}
