//! Applies proposals to a server: all that take effect at once, or none.
//!
//! `SET GLOBAL` lasts until the server stops; the option file makes it permanent. Afterwards the values are read back.
//! If a statement fails, or a value differs from the one set, the earlier statements are undone.

use super::server::Server;
use super::settings::Effect;
use crate::TuneError;
use crate::servers::{AppliedSettings, SettingProposal};

/// Proposals whose change acts so.
pub(super) fn acting(proposals: &[SettingProposal], effect: Effect) -> impl Iterator<Item = &SettingProposal> {
    proposals.iter().filter(move |proposal| proposal.takes_effect == effect.name())
}

/// Applies every proposal that acts at once.
///
/// # Errors
/// When a statement fails or a value is another one afterwards, with nothing applied.
pub(super) fn apply(server: &mut Server, proposals: &[SettingProposal]) -> Result<AppliedSettings, TuneError> {
    let mut done: Vec<&SettingProposal> = Vec::new();
    for proposal in acting(proposals, Effect::AtOnce) {
        // One that fails may have changed something: the server mends values that it does not like.
        done.push(proposal);
        if let Err(error) = server.execute(&proposal.apply) {
            take_back(server, &done)?;
            return Err(error);
        }
    }
    for proposal in acting(proposals, Effect::AtOnce) {
        let value = server.value(&proposal.name)?;
        if value != proposal.new_value {
            take_back(server, &done)?;
            let message = format!("{} is {value}, not {}; nothing was changed", proposal.name, proposal.new_value);
            return Err(TuneError::Server { context: server.facts.place.clone(), message });
        }
    }
    let names = |effect| acting(proposals, effect).map(|proposal| proposal.name.clone()).collect();
    let [statements, undo] = statements(proposals);
    let (needs_restart, needs_instance) = (names(Effect::Restart), Some(names(Effect::NewInstance)));
    Ok(AppliedSettings { statements, undo, needs_restart, needs_instance })
}

fn take_back(server: &mut Server, done: &[&SettingProposal]) -> Result<(), TuneError> {
    done.iter().rev().try_for_each(|proposal| server.execute(&proposal.undo))
}

/// The statements for all proposals that take effect at once, and those that undo them, in reverse order, since a
/// maximum may not be less than the value it limits.
pub(super) fn statements(proposals: &[SettingProposal]) -> [Vec<String>; 2] {
    let of = |statement: fn(&SettingProposal) -> &String| acting(proposals, Effect::AtOnce).map(statement).cloned();
    let mut undo: Vec<String> = of(|proposal| &proposal.undo).collect();
    undo.reverse();
    [of(|proposal| &proposal.apply).collect(), undo]
}
