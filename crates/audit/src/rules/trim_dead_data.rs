//! Rule 12: dead data is trimmed.
//!
//! The drive keeps moving dead data until it is overwritten or trimmed. A trace shows dead data of journals, logs and
//! temporary files, which die as a whole. Writes to them violate the rule in a trace without a single trim; a trace
//! with one is assumed to trim all dead data. The rule needs a drive that gains from trim: its write amplification
//! drops (the figure *gain from trim*).

use flashwise_profile::DeviceProfile;
use flashwise_trace::FileRole;

use super::{Check, known};
use crate::fix::trim_before_reuse;
use crate::play::Step;
use crate::request::{Facts, ObservedRequest};
use crate::system::{DatabaseSystem, JournalMode, Shown};
use crate::tally::Tally;

/// Below this gain nothing of trim is to be seen above the noise of its own figure: 2 %.
const GAIN_MIN: f64 = 1.02;

struct TrimDeadData {
    gain: f64,
    seen: Tally,
    trims: u64,
}

pub(super) fn prepare(profile: &DeviceProfile) -> Result<Box<dyn Check>, String> {
    let gain = known(&profile.parameters.trim_gain, "gain from trim")?;
    if gain.is_nan() || gain < GAIN_MIN {
        return Err("the drive gains nothing from trim".to_owned());
    }
    Ok(Box::new(TrimDeadData { gain, seen: Tally::new(0), trims: 0 }))
}

impl Check for TrimDeadData {
    fn observe(&mut self, seen: &ObservedRequest, tally: &mut Tally) {
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
                Some("the trace was taken above the file system, which sends the trims".to_owned())
            }
            () if facts.roles == 0 => Some("the trace does not show which data is dead".to_owned()),
            () => None,
        }
    }

    fn statement(&self) -> String {
        format!(
            "journals, logs and temporary files should be trimmed when deleted (lowers write amplification by a \
             factor of {:.2})",
            self.gain
        )
    }

    fn remedy(&self, shown: &Shown) -> String {
        let frees = match shown.sqlite.journal {
            _ if shown.is_sqlite_in_wal_mode() => "journal_size_limit shortens the log after a checkpoint",
            // The journal's space is free after each commit.
            Some(JournalMode::Delete | JournalMode::Truncate) => "",
            _ => "journal_mode=DELETE or TRUNCATE frees the space in the file system, PERSIST does not",
        };
        let settings = shown.settings([
            (DatabaseSystem::Sqlite, frees),
            (DatabaseSystem::Postgres, ""),
            (DatabaseSystem::MariaDb, ""),
        ]);
        let settings = if settings.is_empty() { settings } else { format!(". {settings}") };
        format!("mount with discard, or enable fstrim.timer{settings}")
    }

    fn fix(&self, steps: &[Step]) -> Vec<Step> {
        trim_before_reuse(steps)
    }

    fn is_paid_in_collection(&self) -> bool {
        true
    }
}
