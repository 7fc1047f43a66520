//! Checks files beside a database whose names the user did not choose.
//!
//! A database may come from anywhere, and its directory may be writable for others. A companion is therefore used only
//! if it could have been written by somebody who may write the database itself:
//!
//! - a regular file ([`open_regular`]): no symbolic link, pipe or device;
//! - owned by the owner of the database, by the user of this process, or by root; by anybody if others than the owner
//!   may write the database.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use flashwise_block::input::{Links, open_regular_as};
use libsqlite3_sys as sqlite;

use crate::error::{Failure, display};

/// Group or everybody.
const OTHERS_WRITE: u32 = 0o022;

/// Checks a companion; `why` it is refused.
fn check(companion: &Metadata, database: &Metadata) -> Result<(), String> {
    if companion.file_type().is_symlink() {
        return Err("it is a symbolic link, which is not followed".to_owned());
    }
    if !companion.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let owner = companion.uid();
    let is_trusted = [0, database.uid(), rustix::process::geteuid().as_raw()].contains(&owner);
    if !is_trusted && database.permissions().mode() & OTHERS_WRITE == 0 {
        return Err(format!("it belongs to user {owner}, who may not write the database"));
    }
    Ok(())
}

/// Opens an existing regular file for reading, or for writing too. A symbolic link is not followed, and anything else
/// is refused without waiting.
pub(crate) fn open_regular(path: &Path, writes: bool) -> io::Result<File> {
    open_regular_as(path, Links::Refuse, writes)
}

fn refused(path: &Path, why: &str) -> Failure {
    let text = format!("{}: {why}; move it away if it is not there on purpose", display(path));
    Failure::new(sqlite::SQLITE_CANTOPEN, text)
}

/// Checks an existing companion that other code is about to open by its name.
pub(crate) fn examine(companion: &Path, database: &Path) -> Result<(), Failure> {
    let found = match std::fs::symlink_metadata(companion) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(refused(companion, &format!("it cannot be examined: {error}"))),
    };
    // A deleted database has no owner to compare with.
    let database = std::fs::metadata(database).unwrap_or_else(|_| found.clone());
    check(&found, &database).map_err(|why| refused(companion, &why))
}

/// Opens an existing companion; `None` if there is none.
pub(crate) fn open(companion: &Path, database: &Path, writes: bool) -> Result<Option<File>, Failure> {
    let file = match open_regular(companion, writes) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            // It may be one that must not be opened.
            examine(companion, database)?;
            return Err(refused(companion, &format!("it cannot be opened: {error}")));
        }
    };
    let metadata = |file: io::Result<Metadata>| {
        file.map_err(|error| refused(companion, &format!("it cannot be examined: {error}")))
    };
    let (found, database) = (metadata(file.metadata())?, metadata(std::fs::metadata(database))?);
    check(&found, &database).map_err(|why| refused(companion, &why))?;
    Ok(Some(file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{chown, symlink};

    #[test]
    fn a_companion_is_a_regular_file_of_somebody_who_may_write_the_database() {
        let dir = tempfile::tempdir().unwrap();
        let [database, companion, victim] = ["a.db", "a.db-fwbatch", "victim"].map(|name| dir.path().join(name));
        std::fs::write(&database, b"a database").unwrap();
        std::fs::set_permissions(&database, PermissionsExt::from_mode(0o644)).unwrap();
        assert!(open(&companion, &database, true).unwrap().is_none());
        examine(&companion, &database).unwrap();
        let refuses = |words: &str| {
            for told in [examine(&companion, &database).unwrap_err(), open(&companion, &database, false).unwrap_err()] {
                assert!(told.message.contains(words) && told.code == sqlite::SQLITE_CANTOPEN, "{}", told.message);
            }
            std::fs::remove_file(&companion).unwrap();
        };
        std::fs::write(&victim, b"a text of the user's").unwrap();
        symlink(&victim, &companion).unwrap();
        refuses("symbolic link");
        symlink(dir.path().join("nothing"), &companion).unwrap();
        refuses("symbolic link");
        nix::unistd::mkfifo(&companion, nix::sys::stat::Mode::S_IRUSR).unwrap();
        refuses("not a regular file");
        std::fs::write(&companion, b"").unwrap();
        assert!(open(&companion, &database, true).unwrap().is_some());
        if chown(&companion, Some(4242), None).is_err() {
            return println!("skipped: only root gives files away");
        }
        refuses("user 4242");
        std::fs::write(&companion, b"").unwrap();
        chown(&companion, Some(4242), None).unwrap();
        std::fs::set_permissions(&database, PermissionsExt::from_mode(0o664)).unwrap();
        assert!(open(&companion, &database, true).unwrap().is_some(), "its group writes the database");
        std::fs::set_permissions(&database, PermissionsExt::from_mode(0o644)).unwrap();
        chown(&database, Some(4242), None).unwrap();
        assert!(open(&companion, &database, true).unwrap().is_some(), "the owner of the database");
    }
}
