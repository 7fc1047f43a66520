//! From rulings to a document, which is measured and applied where that is asked for: the same for every server.

use flashwise_profile::DeviceProfile;

use super::{AppliedSettings, Change, LeftAlone, MeasuredSettings, Ruling, ServerTuning, SettingProposal};
use crate::TuneError;

/// What the rules say.
#[derive(Default)]
pub(crate) struct Judged {
    pub(crate) proposals: Vec<SettingProposal>,
    pub(crate) left_alone: Vec<LeftAlone>,
}

/// A change of a setting: what it becomes, when that acts, and the statements that do it and take it back.
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

    /// What was to be left as it is.
    pub(crate) fn skip(&mut self, name: &str, value: &str) {
        self.leave(name, value, "skipped", "it was to be left as it is");
    }

    /// Takes what a rule says of a setting; `statements` are asked for where it is to be changed, with its new value.
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
            measured: None,
            applied: None,
            notes,
        }
    }
}

/// Measures proposals, or applies them.
type Act<'a, T> = &'a mut dyn FnMut(&[SettingProposal]) -> Result<T, TuneError>;

impl ServerTuning {
    /// Measures the proposals that a private server can be started with, and applies all of them, each where it is
    /// given how. What was measured is applied only if it pays.
    ///
    /// # Errors
    /// When the measurement fails, or the server refuses a statement.
    pub(crate) fn concluded(
        mut self,
        startable: fn(&SettingProposal) -> bool,
        measure: Option<Act<'_, MeasuredSettings>>,
        apply: Option<Act<'_, AppliedSettings>>,
    ) -> Result<Self, TuneError> {
        let mut pays = true;
        if let Some(measure) = measure {
            let startable: Vec<SettingProposal> = self.proposals.iter().filter(|p| startable(p)).cloned().collect();
            pays = !startable.is_empty() && self.measure(measure, &startable)?;
            if startable.is_empty() {
                self.notes.push("Nothing was measured, as no setting of the server is to be changed.".to_owned());
            }
        }
        match apply.filter(|_| !self.proposals.is_empty()) {
            Some(apply) if pays => self.applied = Some(apply(&self.proposals)?),
            Some(_) => self.notes.push("Nothing was applied, as no gain was measured.".to_owned()),
            None => {}
        }
        Ok(self)
    }

    /// Gives whether it pays.
    fn measure(
        &mut self,
        measure: Act<'_, MeasuredSettings>,
        proposals: &[SettingProposal],
    ) -> Result<bool, TuneError> {
        self.notes.push(
            "Measured on a private server whose other settings are the defaults, all proposed settings together. Rates \
             are wall-clock time on this machine, and tell of the profile's drive only where the data lay on it."
                .to_owned(),
        );
        let measured = measure(proposals)?;
        if measured.program != self.program && self.server.is_some() {
            self.notes.push(format!("{} was measured; the server itself is {}.", measured.program, self.program));
        }
        let pays = measured.verdict == "pays";
        self.measured = Some(measured);
        Ok(pays)
    }
}
