//! Notes for interpreting the numbers.

use std::sync::atomic::Ordering;

use flashwise_block::{ByteSize, Nanos, grouped};
use flashwise_profile::DeviceProfile;
use flashwise_sqlite::VfsOptions;

use super::run::Workload;
use super::user::{Statements, UserWorkload};
use crate::{Comparison, Host, Target};

/// The notes of a comparison.
pub(super) fn notes(c: &Comparison, workload: &Workload, vfs: &VfsOptions) -> Vec<String> {
    let mut notes = Vec::new();
    if let Workload::User(user) = workload
        && matches!(user.sql, Statements::Made(_))
    {
        notes.push(
            "The statements are generated: point SELECTs of random rows, with an UPDATE after every fourth. Give your \
             own with --sql: the gains depend on them."
                .to_owned(),
        );
    }
    if let Workload::User(user) = workload {
        notes.extend(sessions(user));
    }
    if c.search.workload_is_cut {
        notes.push(format!(
            "A run does the first {} statements only; a larger --time-budget allows more.",
            grouped(c.search.statements)
        ));
    }
    if c.search.is_cut_short {
        notes
            .push("The search ended before all combinations were tried; a larger --time-budget tries more.".to_owned());
    }
    if c.default.select_latency.count > 0 && c.default.select_latency.p99_ns == 0 {
        notes.push(
            "At least 99 % of the SELECTs were served from SQLite's page cache and did not reach the drive.".into(),
        );
    }
    if vfs.is_converting() {
        notes.push(
            "A database in a layout of flashwise can be opened only through its VFS; plain SQLite refuses it."
                .to_owned(),
        );
    }
    notes.extend(of_card(&c.profile));
    notes
}

/// What a memory card needs that is no setting of SQLite, and what would change a guarantee: named, never set.
fn of_card(profile: &DeviceProfile) -> Vec<String> {
    let card = &profile.card;
    let (Some(unit), Some(open), Some(merge)) =
        (card.allocation_unit_bytes.known(), card.open_units_linear.known(), card.merge_ns.known())
    else {
        return Vec::new();
    };
    vec![
        format!(
            "The drive is a memory card: it keeps {} units of {} open, and a write to another one takes {}. A checkpoint \
             writes pages in the order of the file, so a longer log changes units less often.",
            grouped(open),
            ByteSize(unit),
            Nanos(merge)
        ),
        "Fewer commits wear a card less. Longer transactions, or with PRAGMA synchronous = NORMAL in WAL mode a sync at \
         checkpoints only, lose the last transactions at a power cut: that is for you to decide, and is not tried."
            .to_owned(),
        format!(
            "Only an administrator can change the rest, and flashwise does not: F2FS instead of ext4, a partition that \
             starts at a multiple of {}, the mount options noatime and lazytime, and commit=SECONDS, which lets writes \
             that no program syncs be lost for longer.",
            ByteSize(unit)
        ),
    ]
}

/// How several sessions were run.
fn sessions(user: &UserWorkload) -> Option<String> {
    let script = user.script().ok().filter(|script| script.sessions.len() > 1)?;
    let restarts = user.restarts.load(Ordering::Relaxed);
    let restarted = match restarts {
        0 => String::new(),
        _ => format!(
            " In all runs together, {} transactions were rolled back and started again, because another session wrote \
             meanwhile; that time is included.",
            grouped(restarts)
        ),
    };
    Some(format!(
        "{} sessions are interleaved: their transactions overlap, and wait for one another's locks, but one statement \
         runs to its end before the next one starts. Think times are not counted.{restarted}",
        script.sessions.len()
    ))
}

/// What is in front of a simulated drive.
pub(super) fn machine(target: &Target) -> Option<String> {
    target.host().filter(|host| !matches!(host, Host::Bare)).map(Host::describe)
}

/// What the times are of.
pub(super) fn clock(target: &Target) -> String {
    match target.host() {
        Some(Host::Bare) => "Times are on the simulated drive's clock, without SQLite's CPU \
                                                       time. The log is written back at the end, and that time is \
                                                       included."
            .to_owned(),
        Some(host) => format!(
            "The database is in a simulated machine: on {}, which is empty at first. Times are on its clock, with {}. \
             The log is written back at the end, and that time is included.",
            host.describe(),
            host.describe_program()
        ),
        None => {
            "Times are wall-clock time on this machine. Each run starts with nothing of the database in the system's \
              page cache, and then reads what that holds from it. The log is written back at the end, and that time is \
              included."
                .to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_an_administrator_can_change_is_named_for_a_card_and_for_no_other_drive() {
        let mut profile = crate::servers::tests::profile();
        assert_eq!(of_card(&profile), Vec::<String>::new());
        let exactly = |value: u64| flashwise_profile::Figure::certain(value, value, value);
        let card = &mut profile.card;
        (card.allocation_unit_bytes, card.open_units_linear) = (exactly(4 << 20), exactly(3));
        card.merge_ns = exactly(430_000_000);
        let notes = of_card(&profile);
        assert!(notes[0].contains("keeps 3 units of 4 MiB open") && notes[0].contains("430 ms"), "{notes:?}");
        assert!(notes[1].contains("is not tried") && notes[2].contains("F2FS"), "{notes:?}");
        assert!(notes[2].contains("a multiple of 4 MiB"), "{notes:?}");
    }
}
