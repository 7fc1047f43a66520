//! Where a PostgreSQL server is installed, and which user runs it.

use std::path::{Path, PathBuf};

use crate::TuneError;
use crate::servers::folders_in_path;

/// The programs of a server's package.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    /// Folder of `initdb`, `pg_ctl` and `postgres`.
    pub(super) server: PathBuf,
    /// The `pgbench` beside them, or in the path.
    pgbench: Option<PathBuf>,
}

const NEEDED: [&str; 3] = ["initdb", "pg_ctl", "postgres"];

impl Programs {
    /// Programs in a directory, or the newest that are installed.
    ///
    /// # Errors
    /// When there are none; names the package.
    pub(super) fn find(folder: Option<&Path>) -> Result<Self, TuneError> {
        let has_all = |folder: &Path| NEEDED.iter().all(|name| folder.join(name).is_file());
        let path = folders_in_path();
        let server = match folder {
            Some(folder) => Some(folder.to_owned()).filter(|folder| has_all(folder)),
            None => packaged().into_iter().chain(path.iter().cloned()).find(|folder| has_all(folder)),
        };
        let Some(server) = server else {
            let place = folder.map(|folder| format!("{}: ", folder.display())).unwrap_or_default();
            return Err(TuneError::Missing(format!(
                "{place}no PostgreSQL server ({}) is installed; install the package postgresql (Debian, Ubuntu) or \
                 postgresql-server (Fedora, RHEL), or name its directory with --programs",
                NEEDED.join(", ")
            )));
        };
        let pgbench = std::iter::once(server.clone()).chain(path).map(|folder| folder.join("pgbench"));
        let pgbench = pgbench.into_iter().find(|program| program.is_file());
        Ok(Self { server, pgbench })
    }

    /// The program that runs transactions.
    ///
    /// # Errors
    /// When it is missing; names the package.
    pub(super) fn pgbench(&self) -> Result<&Path, TuneError> {
        let missing = || {
            let words = "pgbench is neither beside the server nor in PATH; install the package postgresql-contrib";
            TuneError::Missing(words.to_owned())
        };
        self.pgbench.as_deref().ok_or_else(missing)
    }
}

/// Debian's folders, the newest version first.
fn packaged() -> Vec<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let version = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    let mut folders: Vec<PathBuf> = versions.map(|entry| entry.path()).collect();
    folders.sort_by_key(|path| std::cmp::Reverse(version(path)));
    folders.into_iter().map(|path| path.join("bin")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_server_is_told_with_the_package() {
        let told = Programs::find(Some(Path::new("/no/such/folder"))).unwrap_err().to_string();
        assert!(told.starts_with("/no/such/folder: ") && told.contains("install the package postgresql"), "{told}");
        assert!(!told.contains('\n'));
    }
}
