//! How its user makes the changes and takes them back without flashwise's `--apply`, by the names of their files.
//!
//! What belongs to a connection stays a statement. What the file keeps becomes a command of SQLite's shell. A layout
//! goes into a new file, as `apply.rs` makes it: a copy with the wanted pages first, the import of it, and the journal
//! mode of the new file. The database itself stays, so that taking it back is an export for what was written since.

use std::path::{Path, PathBuf};

use flashwise_sqlite::VfsOptions;

use super::apply::{FITTED, beside};
use super::knobs::{Change, Knob, set_page_size};
use super::record::shell_word;
use super::settings::{Settings, journal_pragma};
use crate::ChangeKind;

/// Stands for a file of the user where the workload is the built-in one.
const SOME_FILE: &str = "app.db";

/// The files that the changes are made to.
pub(super) struct ByHand<'a> {
    database: PathBuf,
    stock: &'a Settings,
    wanted: &'a Settings,
}

impl<'a> ByHand<'a> {
    /// Of the user's database, if there is one.
    pub(super) fn of(database: Option<&str>, stock: &'a Settings, wanted: &'a Settings) -> Self {
        Self { database: database.unwrap_or(SOME_FILE).into(), stock, wanted }
    }

    /// The file that has all of the changes.
    pub(super) fn opened(&self) -> String {
        match self.wanted.vfs.is_converting() {
            true => beside(&self.database, FITTED).display().to_string(),
            false => self.database.display().to_string(),
        }
    }

    /// The changes with the commands that make them and take them back.
    pub(super) fn named(&self, changes: Vec<Change>) -> Vec<Change> {
        let mut is_imported = false;
        let named = |change: Change| match change.kind {
            ChangeKind::File => self.of_file(change),
            ChangeKind::Conversion => self.of_layout(change, std::mem::replace(&mut is_imported, true)),
            _ => change,
        };
        changes.into_iter().map(named).collect()
    }

    fn of_file(&self, change: Change) -> Change {
        if !self.wanted.vfs.is_converting() {
            let [apply, undo] = [&change.apply, &change.undo].map(|statement| command(&self.database, statement));
            return Change { apply, undo, ..change };
        }
        if change.knob == Knob::PageSize {
            let copy = self.copy();
            let copied = format!("VACUUM INTO '{}'", copy.display().to_string().replace('\'', "''"));
            let paged = command(&copy, &set_page_size(self.stock, self.wanted.page));
            let apply = format!("{} && {paged}", command(&self.database, &copied));
            return Change { apply, undo: format!("rm {}", shell_word(&copy)), ..change };
        }
        let at = format!("in one connection to {}: ", self.opened());
        let [apply, undo] = [self.wanted, self.stock].map(|of| format!("{at}{}", journal_pragma(of.journal.of_file())));
        Change { apply: format!("after the import, {apply}"), undo, ..change }
    }

    /// One import makes every layout.
    fn of_layout(&self, change: Change, is_imported: bool) -> Change {
        if is_imported {
            let [apply, undo] = ["the same import makes it", "the same export takes it back"].map(str::to_owned);
            return Change { apply, undo, ..change };
        }
        let is_copied = self.wanted.page != self.stock.page;
        let plain = if is_copied { self.copy() } else { self.database.clone() };
        let [plain, laid_out, again] =
            [plain, self.opened().into(), beside(&self.database, "plain")].map(|path| shell_word(&path));
        let is_layout = |value: &String| VfsOptions::from_text(value).is_ok_and(|options| options.is_converting());
        let techniques: Vec<String> = self.wanted.techniques().into_iter().filter(is_layout).collect();
        let techniques = techniques.join("&");
        Change {
            apply: format!("flashwise sqlite import {plain} {laid_out} --techniques '{techniques}'"),
            undo: format!("flashwise sqlite export {laid_out} {again}"),
            ..change
        }
    }

    /// The copy that gets the pages.
    fn copy(&self) -> PathBuf {
        beside(&self.database, "copy")
    }
}

/// The command that has SQLite's shell run statements on a database.
fn command(database: &Path, statements: &str) -> String {
    let database = shell_word(database);
    if !statements.contains('\'') {
        return format!("sqlite3 {database} '{statements}'");
    }
    let escaped = |letter: char| if "\\\"$`".contains(letter) { format!("\\{letter}") } else { letter.to_string() };
    format!("sqlite3 {database} \"{}\"", statements.chars().map(escaped).collect::<String>())
}

#[cfg(test)]
mod tests {
    use flashwise_block::ByteSize;

    use super::*;
    use crate::sqlite::settings::{DEFAULT_PAGE, DEFAULT_PAGE_CACHE, Journal};

    fn stock() -> Settings {
        Settings::plain(DEFAULT_PAGE, DEFAULT_PAGE_CACHE)
    }

    fn change(knob: Knob, kind: ChangeKind, [apply, undo]: [&str; 2]) -> Change {
        let [old_value, new_value, reason] = ["old", "new", "why"].map(str::to_owned);
        Change { knob, kind, is_memory: false, old_value, new_value, reason, apply: apply.into(), undo: undo.into() }
    }

    fn commands(by_hand: &ByHand<'_>, changes: Vec<Change>) -> Vec<[String; 2]> {
        by_hand.named(changes).into_iter().map(|change| [change.apply, change.undo]).collect()
    }

    #[test]
    fn what_a_file_keeps_is_a_command_with_its_name_and_what_a_connection_sets_is_a_statement() {
        let wanted = Settings { journal: Journal::Log, ..stock() };
        let stock = stock();
        let by_hand = ByHand::of(Some("my $shop's.db"), &stock, &wanted);
        let changes = vec![
            change(Knob::JournalMode, ChangeKind::File, ["PRAGMA journal_mode = wal", "PRAGMA journal_mode = delete"]),
            change(Knob::PageCache, ChangeKind::Connection, ["in each connection: a", "in each connection: b"]),
        ];
        let file = r"'my $shop'\''s.db'";
        let of_file = ["wal", "delete"].map(|mode| format!("sqlite3 {file} 'PRAGMA journal_mode = {mode}'"));
        let of_connection = ["a", "b"].map(|statement| format!("in each connection: {statement}"));
        assert_eq!(commands(&by_hand, changes), [of_file, of_connection]);
        assert_eq!(by_hand.opened(), "my $shop's.db");
    }

    #[test]
    fn a_layout_is_imported_once_from_a_copy_with_the_wanted_pages() {
        let vfs = VfsOptions::from_text("use-hot-locations=64k+32k&write-aligned-stripes=64k&concurrent-write-back=8");
        let wanted = Settings { page: ByteSize::kib(64), journal: Journal::Log, vfs: vfs.unwrap(), ..stock() };
        let stock = stock();
        let by_hand = ByHand::of(Some("data/app.db"), &stock, &wanted);
        let of_layout = |name| change(Knob::Technique(name), ChangeKind::Conversion, ["", ""]);
        let changes = vec![
            change(Knob::PageSize, ChangeKind::File, ["", ""]),
            change(Knob::JournalMode, ChangeKind::File, ["", ""]),
            of_layout("use-hot-locations"),
            of_layout("write-aligned-stripes"),
        ];
        let expected = [
            [
                "sqlite3 data/app.db \"VACUUM INTO 'data/app-copy.db'\" && sqlite3 data/app-copy.db 'PRAGMA page_size = \
                 65536; VACUUM'",
                "rm data/app-copy.db",
            ],
            [
                "after the import, in one connection to data/app-fitted.db: PRAGMA journal_mode = wal",
                "in one connection to data/app-fitted.db: PRAGMA journal_mode = delete",
            ],
            [
                "flashwise sqlite import data/app-copy.db data/app-fitted.db --techniques \
                 'use-hot-locations=65536+32768&write-aligned-stripes=65536'",
                "flashwise sqlite export data/app-fitted.db data/app-plain.db",
            ],
            ["the same import makes it", "the same export takes it back"],
        ];
        assert_eq!(commands(&by_hand, changes), expected.map(|pair| pair.map(str::to_owned)));
        assert_eq!(by_hand.opened(), "data/app-fitted.db");
    }

    #[test]
    fn statements_with_quotes_reach_the_shell_of_sqlite_as_they_are() {
        let odd = r#"VACUUM INTO 'a$b"c`d\e'"#;
        let echoed = command(Path::new("x"), odd).replacen("sqlite3 x", "printf %s", 1);
        let output = std::process::Command::new("sh").args(["-c", &echoed]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), odd);
    }
}
