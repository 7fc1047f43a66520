//! Rule 12: what is dead is trimmed.
//!
//! The drive goes on moving data that nobody needs until it is overwritten. Which data that is, a trace tells of
//! journals, logs and temporary files: all of them die as a whole. Writes to them break the rule in a trace without a
//! single trim; a trace with one is believed to trim what it should. It needs a drive on which trim brings something:
//! write amplification falls by it (the figure *gain by trim*).

use flashwise_profile::DeviceProfile;
use flashwise_trace::FileRole;

use super::{Check, known};
use crate::mend::trim_before_reuse;
use crate::play::Step;
use crate::request::{Facts, Seen};
use crate::tally::Tally;

/// Below this gain nothing of trim is to be seen above the noise of its own figure: 2 %.
const GAIN_MIN: f64 = 1.02;

struct TrimDeadData {
    gain: f64,
    seen: Tally,
    trims: u64,
}

pub(super) fn prepare(profile: &DeviceProfile) -> Result<Box<dyn Check>, String> {
    let gain = known(&profile.parameters.trim_gain, "gain by trim")?;
    if gain.is_nan() || gain < GAIN_MIN {
        return Err("trim brings nothing on this drive".to_owned());
    }
    Ok(Box::new(TrimDeadData { gain, seen: Tally::new(0), trims: 0 }))
}

impl Check for TrimDeadData {
    fn observe(&mut self, seen: &Seen, tally: &mut Tally) {
        self.trims += u64::from(seen.record.operation == flashwise_block::Operation::Trim);
        let role = seen.record.role;
        let dies = matches!(role, FileRole::Journal | FileRole::WriteAheadLog | FileRole::Temporary);
        if !seen.is_write() || !dies {
            return;
        }
        if self.seen.requests == 0 && tally.requests == 0 {
            self.seen = tally.clone();
        }
        self.seen.speaks();
        self.seen.breaks(seen);
    }

    fn finish(&mut self, tally: &mut Tally) {
        let requests = self.seen.requests;
        if self.trims == 0 {
            *tally = std::mem::take(&mut self.seen);
        }
        tally.requests = requests;
    }

    fn hidden(&self, facts: &Facts) -> Option<String> {
        match () {
            () if facts.is_above_page_cache => {
                Some("the trace is above the file system, which sends the trims".to_owned())
            }
            () if facts.roles == 0 => Some("the trace does not tell which data is dead".to_owned()),
            () => None,
        }
    }

    fn statement(&self) -> String {
        format!(
            "journals, logs and temporary files should be trimmed when they end (worth a factor of {:.2})",
            self.gain
        )
    }

    fn remedy(&self) -> String {
        "mount with discard, or run fstrim by its timer; in SQLite journal_mode=DELETE or TRUNCATE gives the room back to \
         the file system, PERSIST does not"
            .to_owned()
    }

    fn mend(&self, steps: &[Step]) -> Vec<Step> {
        trim_before_reuse(steps)
    }

    fn is_paid_in_collection(&self) -> bool {
        true
    }
}
