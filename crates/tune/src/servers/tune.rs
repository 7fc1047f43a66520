//! From rulings to a document, and measuring and applying it on request: the same for every server.

use flashwise_profile::DeviceProfile;

use super::{
    AppliedSettings, AttachedPlace, Change, LeftAlone, MeasuredSettings, Ruling, ServerTuning, SettingProposal,
};
use crate::TuneError;

/// Verdict of a setting that was proposed, measured, and brought no gain.
const NOT_CONFIRMED: &str = "not-confirmed";

/// The decisions of the rules.
#[derive(Default)]
pub(crate) struct Judged {
    pub(crate) proposals: Vec<SettingProposal>,
    pub(crate) left_alone: Vec<LeftAlone>,
}

/// A change of a setting: its new value, when it takes effect, and the statements that apply and undo it.
pub(crate) struct Statements {
    pub(crate) new_value: String,
    pub(crate) takes_effect: &'static str,
    pub(crate) apply: String,
    pub(crate) undo: String,
}

/// Which server was judged.
pub(crate) struct Judgement<'a> {
    pub(crate) schema: &'static str,
    pub(crate) schema_version: u32,
    pub(crate) profile: &'a DeviceProfile,
    /// Version of the server, or that whose defaults were judged.
    pub(crate) program: String,
    /// Where the server is; `None` without one.
    pub(crate) place: Option<String>,
}

impl Judged {
    pub(crate) fn leave(&mut self, name: &str, value: &str, verdict: &str, reason: &str) {
        let [name, value, verdict, reason] = [name, value, verdict, reason].map(str::to_owned);
        self.left_alone.push(LeftAlone { name, value, verdict, reason });
    }

    /// A setting that the user excluded.
    pub(crate) fn skip(&mut self, name: &str, value: &str) {
        self.leave(name, value, "skipped", "excluded by --skip");
    }

    /// Adds the decision of a rule about a setting; for a change, `statements` is called with the new value.
    pub(crate) fn judge(
        &mut self,
        name: &str,
        old_value: &str,
        ruling: Result<Ruling, String>,
        statements: impl FnOnce(&str) -> Statements,
    ) {
        let Change { value, reason, evidence, expected, expected_gain } = match ruling {
            Err(why) => return self.leave(name, old_value, "cannot-tell", &why),
            Ok(Ruling::Fits(why)) => return self.leave(name, old_value, "fits", &why),
            Ok(Ruling::Change(change)) => change,
        };
        let Statements { new_value, takes_effect, apply, undo } = statements(&value);
        self.proposals.push(SettingProposal {
            name: name.to_owned(),
            old_value: old_value.to_owned(),
            new_value,
            base_value: value,
            reason,
            evidence,
            expected,
            expected_gain,
            takes_effect: takes_effect.to_owned(),
            apply,
            undo,
        });
    }

    /// The document, with statements that do all of it and that take it back.
    pub(crate) fn document(
        self,
        of: Judgement<'_>,
        statements: fn(&[SettingProposal]) -> [Vec<String>; 2],
        notes: Vec<String>,
    ) -> ServerTuning {
        let [sql, undo_sql] = statements(&self.proposals);
        ServerTuning {
            schema: of.schema.to_owned(),
            schema_version: of.schema_version,
            flashwise_version: env!("CARGO_PKG_VERSION").to_owned(),
            program: of.program,
            server: of.place,
            drive: of.profile.device.name.clone(),
            proposals: self.proposals,
            left_alone: self.left_alone,
            sql,
            undo_sql,
            option_file: None,
            eviction: None,
            measured: None,
            applied: None,
            notes,
        }
    }
}

/// Measures proposals, or applies them.
type Act<'a, T> = &'a mut dyn FnMut(&[SettingProposal]) -> Result<T, TuneError>;

impl ServerTuning {
    /// Measures the proposals that a private server can be started with, and applies all of them, as far as requested.
    /// Without a measured gain nothing is applied, and what was measured is no proposal any more: `restate` writes the
    /// statements of those that are left.
    ///
    /// # Errors
    /// When the measurement fails, or the server refuses a statement.
    pub(crate) fn concluded(
        mut self,
        startable: fn(&SettingProposal) -> bool,
        restate: fn(&mut Self),
        measure: Option<Act<'_, MeasuredSettings>>,
        apply: Option<Act<'_, AppliedSettings>>,
    ) -> Result<Self, TuneError> {
        let mut pays = true;
        let has_proposals = !self.proposals.is_empty();
        if let Some(measure) = measure {
            let startable: Vec<SettingProposal> = self.proposals.iter().filter(|p| startable(p)).cloned().collect();
            pays = !startable.is_empty() && self.measure(measure, &startable)?;
            if !pays && !startable.is_empty() {
                self.withdraw(&startable);
                restate(&mut self);
            }
            if startable.is_empty() {
                self.notes.push("Nothing was measured: no change of a server setting is proposed.".to_owned());
            }
        }
        match apply.filter(|_| has_proposals) {
            Some(apply) if pays => self.applied = Some(apply(&self.proposals)?),
            Some(_) => self.notes.push("Nothing was applied: no gain was measured.".to_owned()),
            None => {}
        }
        Ok(self)
    }

    /// Moves what was measured without a gain to the settings that stay.
    fn withdraw(&mut self, measured: &[SettingProposal]) {
        self.proposals.retain(|proposal| !measured.contains(proposal));
        let withdrawn = measured.iter().map(|SettingProposal { name, old_value, new_value, reason, .. }| LeftAlone {
            name: name.clone(),
            value: old_value.clone(),
            verdict: NOT_CONFIRMED.to_owned(),
            reason: format!(
                "{new_value} was measured with the others, and no gain was seen; proposed because {reason}"
            ),
        });
        self.left_alone.splice(0..0, withdrawn);
    }

    /// Gives whether it pays.
    fn measure(
        &mut self,
        measure: Act<'_, MeasuredSettings>,
        proposals: &[SettingProposal],
    ) -> Result<bool, TuneError> {
        let measured = measure(proposals)?;
        self.notes.push(format!(
            "Measured on a private server with default settings otherwise, all proposed settings together. {}",
            where_rates_apply(measured.attached.as_ref())
        ));
        if measured.program != self.program && self.server.is_some() {
            self.notes.push(format!("The measurement used {}; your server is {}.", measured.program, self.program));
        }
        let pays = measured.verdict == "pays";
        self.measured = Some(measured);
        Ok(pays)
    }
}

/// What the rates of a measurement are rates of.
fn where_rates_apply(attached: Option<&AttachedPlace>) -> String {
    let Some(AttachedPlace { slower, was_late, .. }) = attached else {
        return "Rates are wall-clock rates on this machine; they apply to the profile's drive only if the data was on \
                it."
            .to_owned();
    };
    let speed = match slower {
        1 => {
            "at its own speed. The way of a request to it and back adds 40 to 270 µs to each on this machine, so gains \
              come out smaller than they are."
                .to_owned()
        }
        n => format!(
            "{n} times as slow, so rates are about a {n}th; the server's computing and its timers, such as commit_delay, \
             count a {n}th, too."
        ),
    };
    let late = if *was_late { " This machine was too busy to answer all requests in time." } else { "" };
    format!("The server was on the simulated drive, attached to this machine, {speed}{late}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_the_machine_the_attached_drive_or_a_slower_one() {
        let place = |slower, was_late| AttachedPlace {
            file_system: "ext4".to_owned(),
            slower,
            was_late,
            before: None,
            after: None,
        };
        assert!(where_rates_apply(None).contains("only if the data was on it"));
        let own_speed = where_rates_apply(Some(&place(1, false)));
        assert!(own_speed.contains("at its own speed") && !own_speed.contains("too busy"), "{own_speed}");
        let slow = where_rates_apply(Some(&place(10, true)));
        assert!(slow.contains("10 times as slow") && slow.ends_with("answer all requests in time."), "{slow}");
    }
}
