//! A private MariaDB server: instances in a new directory, reached over a socket in another; both are deleted at the
//! end.
//!
//! It listens at no port and reads no option file. As root it is run as the user `mysql`, or as `nobody` if that does
//! not exist.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use flashwise_block::Progress;
use mysql::{Conn, OptsBuilder};
use rustix::process::{Pid, Signal, kill_process};

use super::server::{MariadbAddress, Server, at_socket, failed, options};
use crate::TuneError;
use crate::servers::{PrivatePlace, User, folders_in_path, forget_below};

/// How long a server may take to start, or to end.
const PATIENCE: Duration = Duration::from_secs(120);
/// Prefix of the names of its directories.
const GUARDED: &str = "flashwise-mariadb";
/// The user who installs an instance has all rights in it.
const USER: &str = "root";
/// The programs that create an instance, and the server.
const NEEDED: [&str; 2] = ["mariadb-install-db", "mariadbd"];

/// Where the programs are.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    install: PathBuf,
    server: PathBuf,
}

impl Programs {
    /// Programs in a directory, or in PATH and the directories of system programs.
    ///
    /// # Errors
    /// When there are none; names the package.
    pub(super) fn find(folder: Option<&Path>) -> Result<Self, TuneError> {
        let folders: Vec<PathBuf> = match folder {
            Some(folder) => vec![folder.to_owned()],
            None => [folders_in_path(), vec![PathBuf::from("/usr/sbin"), PathBuf::from("/usr/bin")]].concat(),
        };
        let find = |name: &str| folders.iter().map(|folder| folder.join(name)).find(|program| program.is_file());
        match NEEDED.map(find) {
            [Some(install), Some(server)] => Ok(Self { install, server }),
            _ => {
                let place = folder.map(|folder| format!("{}: ", folder.display())).unwrap_or_default();
                Err(TuneError::Missing(format!(
                    "{place}no MariaDB server ({}) is installed; install the package mariadb-server-core (Debian, \
                     Ubuntu) or mariadb-server (Fedora, RHEL), or name its directory with --programs",
                    NEEDED.join(", ")
                )))
            }
        }
    }
}

/// One or more instances, of which at most one runs.
#[derive(Debug)]
pub struct PrivateMariadb {
    programs: Programs,
    running: Option<Child>,
    // Ends processes that still run.
    pub(super) place: PrivatePlace,
}

impl PrivateMariadb {
    /// A place for instances in a directory; in the one for temporary files where none is given.
    ///
    /// # Errors
    /// When no server is installed, or no directory can be made.
    pub fn new(programs: Option<&Path>, directory: Option<&Path>) -> Result<Self, TuneError> {
        Self::of(Programs::find(programs)?, directory)
    }

    /// The same with programs that have been found.
    pub(super) fn of(programs: Programs, directory: Option<&Path>) -> Result<Self, TuneError> {
        let place = PrivatePlace::new(GUARDED, directory, User::instead_of_root("mysql"))?;
        Ok(Self { programs, running: None, place })
    }

    /// The directory of the instances.
    pub fn directory(&self) -> &Path {
        self.place.directory()
    }

    /// How it is reached while it runs.
    pub fn place(&self) -> MariadbAddress {
        at_socket(&self.socket(), USER)
    }

    fn socket(&self) -> PathBuf {
        self.place.sockets().join("s")
    }

    /// Makes an instance.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(&self, name: &str, progress: &mut dyn Progress) -> Result<(), TuneError> {
        self.create_with(name, &[], progress)
    }

    /// Makes an instance with settings, such as a page size, which the server has to be started with ever after.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create_with(
        &self,
        name: &str,
        settings: &[(String, String)],
        progress: &mut dyn Progress,
    ) -> Result<(), TuneError> {
        let mut command = self.program(&self.programs.install);
        command.args(["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"]);
        command.arg(format!("--datadir={}", self.data(name).display()));
        command.args(settings.iter().map(|(name, value)| format!("--{name}={value}")));
        self.place.run(&mut command, progress).map(drop)
    }

    /// Copies an instance that is not running.
    ///
    /// # Errors
    /// When there is no space, or another I/O error.
    pub fn copy(&self, from: &str, to: &str, progress: &mut dyn Progress) -> Result<(), TuneError> {
        self.copy_from(self, from, to, progress)
    }

    /// Copies an instance of another place that is not running there.
    ///
    /// # Errors
    /// When there is no space, or another I/O error.
    pub fn copy_from(&self, other: &Self, from: &str, to: &str, progress: &mut dyn Progress) -> Result<(), TuneError> {
        self.place.copy(&other.data(from), to, progress)
    }

    /// Starts an instance with settings; another one is stopped before.
    ///
    /// # Errors
    /// When it does not start; with the last complaint of its log.
    #[allow(clippy::disallowed_methods, reason = "a file of a private server's directory")]
    pub fn start(
        &mut self,
        name: &str,
        settings: &[(String, String)],
        progress: &mut dyn Progress,
    ) -> Result<(), TuneError> {
        self.stop(progress)?;
        let log = self.place.directory().join("log");
        // Errors of an earlier start must not be reported for this one.
        let _ = std::fs::remove_file(&log);
        let mut command = self.program(&self.programs.server);
        command.args(["--no-defaults", "--skip-networking", "--skip-log-bin"]);
        for (option, path) in [
            ("datadir", self.data(name)),
            ("socket", self.socket()),
            ("pid-file", self.place.sockets().join("pid")),
            ("log-error", log.clone()),
        ] {
            command.arg(format!("--{option}={}", path.display()));
        }
        command.args(settings.iter().map(|(name, value)| format!("--{name}={value}")));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let failed = |message: String| TuneError::Server { context: "mariadbd".to_owned(), message };
        self.running = Some(command.spawn().map_err(|e| failed(self.place.explain(&e)))?);
        let started = Instant::now();
        loop {
            let told = Server::connect(&self.place());
            let ended = match &mut self.running {
                Some(child) => child.try_wait().map_err(|e| failed(e.to_string()))?,
                None => None,
            };
            match (told, ended) {
                (Ok(_), None) => return Ok(()),
                (_, Some(status)) => {
                    self.running = None;
                    return Err(failed(complaint(&log).unwrap_or_else(|| status.to_string())));
                }
                // A server that is not known never becomes one.
                (Err(error @ TuneError::Options(_)), None) => return Err(error),
                (Err(error), None) if started.elapsed() > PATIENCE => return Err(error),
                (Err(_), None) => self.place.wait(progress)?,
            }
        }
    }

    /// Stops the instance that runs, everything written back.
    ///
    /// # Errors
    /// When it does not stop, or not in order.
    pub fn stop(&mut self, progress: &mut dyn Progress) -> Result<(), TuneError> {
        let Some(mut child) = self.running.take() else { return Ok(()) };
        let failed = |message: String| TuneError::Server { context: "mariadbd".to_owned(), message };
        kill_process(Pid::from_child(&child), Signal::TERM).map_err(|e| failed(e.to_string()))?;
        let began = Instant::now();
        loop {
            match child.try_wait().map_err(|e| failed(e.to_string()))? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(failed(format!("it did not shut down cleanly: {status}"))),
                None if began.elapsed() > PATIENCE => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(failed(format!("it did not stop within {} s", PATIENCE.as_secs())));
                }
                None => self.place.wait(progress)?,
            }
        }
    }

    /// Drops an instance from the system's page cache, so that requests reach the drive.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn drop_page_cache(&self, name: &str) -> Result<(), TuneError> {
        forget_below(&self.data(name))
    }

    /// Where an instance has its files.
    pub fn data(&self, name: &str) -> PathBuf {
        self.place.instance(name)
    }

    /// A connection to the running instance.
    ///
    /// # Errors
    /// When it does not respond.
    pub fn connect(&self) -> Result<Conn, TuneError> {
        let (options, name) = options(&self.place())?;
        Conn::new(options).map_err(|error| failed(&name, &error))
    }

    /// How a connection to the running instance is made.
    ///
    /// # Errors
    /// When the address is invalid.
    pub(super) fn options(&self) -> Result<OptsBuilder, TuneError> {
        options(&self.place()).map(|(options, _)| OptsBuilder::from_opts(options))
    }

    /// The number of the server's process, where one runs.
    pub fn process(&self) -> Option<u32> {
        self.running.as_ref().map(Child::id)
    }

    fn program(&self, program: &Path) -> Command {
        let mut command = self.place.program(program, &["MYSQL_HOME", "MYSQL_UNIX_PORT"]);
        // A server that starts clears temporary tables out of this directory, whosever they are.
        command.env("TMPDIR", self.place.sockets());
        command
    }
}

impl Drop for PrivateMariadb {
    fn drop(&mut self) {
        // The guard would end it too; without a wait, the child would remain as a zombie.
        if let Some(mut child) = self.running.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The first error of a log.
fn complaint(log: &Path) -> Option<String> {
    let text = std::fs::read_to_string(log).ok()?;
    let line = text.lines().find(|line| line.contains("[ERROR]"))?;
    Some(line.split("[ERROR]").nth(1)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_server_is_told_with_the_package() {
        let told = PrivateMariadb::new(Some(Path::new("/no/such/folder")), None).unwrap_err().to_string();
        assert!(told.starts_with("/no/such/folder: ") && told.contains("install the package mariadb-server-core"));
        assert!(!told.contains('\n'));
    }

    #[test]
    fn the_first_error_of_a_log_is_the_complaint() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "1 [Note] fine\n2 [ERROR] unknown variable 'x'\n3 [ERROR] Aborting\n").unwrap();
        assert_eq!(complaint(file.path()).unwrap(), "unknown variable 'x'");
    }
}
