//! A private PostgreSQL server: a cluster in a new directory, reached over a socket in another; both are deleted at the
//! end.
//!
//! It listens at no port. As root it is run as the user `postgres`, or as `nobody` if that does not exist.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use flashwise_block::Progress;

use super::programs::Programs;
use crate::TuneError;
use crate::servers::{PrivatePlace, User, forget_below};

/// Prefix of the names of its directories.
const GUARDED: &str = "flashwise-postgres";
/// Settings of a cluster, beside its own file.
const SETTINGS: &str = "flashwise.conf";

/// One or more clusters, of which at most one runs.
pub struct PrivatePostgres {
    programs: Programs,
    running: Option<PathBuf>,
    // Ends processes that still run.
    pub(super) place: PrivatePlace,
}

impl PrivatePostgres {
    /// A place for clusters in a directory; in the one for temporary files where none is given.
    ///
    /// # Errors
    /// When no server is installed, or no directory can be made.
    pub fn new(programs: Option<&Path>, directory: Option<&Path>) -> Result<Self, TuneError> {
        Self::of(Programs::find(programs)?, directory)
    }

    /// The same with programs that have been found.
    pub(super) fn of(programs: Programs, directory: Option<&Path>) -> Result<Self, TuneError> {
        let place = PrivatePlace::new(GUARDED, directory, User::instead_of_root("postgres"))?;
        Ok(Self { programs, running: None, place })
    }

    /// The directory of the clusters.
    pub fn directory(&self) -> &Path {
        self.place.directory()
    }

    /// How it is reached while it runs.
    pub fn dsn(&self) -> String {
        // A path in quotes: ' and \ are escaped.
        let path = self.place.sockets().display().to_string().replace('\\', "\\\\").replace('\'', "\\'");
        format!("host='{path}' user=postgres dbname=postgres")
    }

    /// The version as the server's program prints it, such as `PostgreSQL 15.18`.
    ///
    /// # Errors
    /// When it cannot be run.
    pub fn version(&self, progress: &mut dyn Progress) -> Result<String, TuneError> {
        let mut command = self.server_program("postgres");
        let told = self.run(command.arg("--version"), progress)?;
        let number = told.split_whitespace().nth(2).unwrap_or_default().to_owned();
        Ok(format!("PostgreSQL {number}"))
    }

    /// The server's first process, the parent of all others; `None` if none runs.
    ///
    /// # Errors
    /// When its PID file cannot be read.
    pub fn process(&self) -> Result<Option<u32>, TuneError> {
        let Some(data) = &self.running else { return Ok(None) };
        let file = data.join("postmaster.pid");
        let told = std::fs::read_to_string(&file).map_err(|e| TuneError::file(&file, &e))?;
        Ok(told.lines().next().and_then(|line| line.trim().parse().ok()))
    }

    /// Makes a cluster.
    ///
    /// # Errors
    /// When `initdb` fails.
    pub fn create(&self, name: &str, progress: &mut dyn Progress) -> Result<(), TuneError> {
        self.create_with(name, &[], progress)
    }

    /// Makes a cluster with options of `initdb`, such as the length of a log segment.
    ///
    /// # Errors
    /// When `initdb` fails.
    #[allow(clippy::disallowed_methods, reason = "a file of a private server's directory")]
    pub fn create_with(&self, name: &str, options: &[&str], progress: &mut dyn Progress) -> Result<(), TuneError> {
        let mut command = self.server_program("initdb");
        command.args(options);
        command.args("-A trust -U postgres -E UTF8 --locale=C --no-sync -D".split(' ')).arg(self.place.instance(name));
        self.run(&mut command, progress)?;
        let own = self.place.instance(name).join("postgresql.conf");
        let sockets = self.place.sockets().display().to_string().replace('\'', "''");
        let settings =
            format!("listen_addresses = ''\nunix_socket_directories = '{sockets}'\ninclude_if_exists '{SETTINGS}'\n");
        let known = std::fs::read_to_string(&own).map_err(|e| TuneError::file(&own, &e))?;
        std::fs::write(&own, known + &settings).map_err(|e| TuneError::file(&own, &e))
    }

    /// Copies a cluster that is not running.
    ///
    /// # Errors
    /// When there is no space, or another I/O error.
    pub fn copy(&self, from: &str, to: &str, progress: &mut dyn Progress) -> Result<(), TuneError> {
        self.place.copy(&self.place.instance(from), to, progress)
    }

    /// Starts a cluster with settings, in the file's form; another one is stopped before.
    ///
    /// # Errors
    /// When it does not start; with the last line of its log.
    #[allow(clippy::disallowed_methods, reason = "a file of a private server's directory")]
    pub fn start(
        &mut self,
        name: &str,
        settings: &[(String, String)],
        progress: &mut dyn Progress,
    ) -> Result<(), TuneError> {
        self.stop(progress)?;
        let data = self.place.instance(name);
        let line = |(name, value): &(String, String)| format!("{name} = '{}'\n", value.replace('\'', "''"));
        let file = data.join(SETTINGS);
        std::fs::write(&file, settings.iter().map(line).collect::<String>()).map_err(|e| TuneError::file(&file, &e))?;
        self.place.give(&file)?;
        let log = self.place.directory().join("log");
        let mut command = self.server_program("pg_ctl");
        command.arg("-D").arg(&data).arg("-l").arg(&log).args("-s -w -t 120 start".split(' '));
        self.running = Some(data);
        self.run(&mut command, progress).map(drop).map_err(|error| with_log(error, &log))
    }

    /// Stops the cluster that runs, everything written back.
    ///
    /// # Errors
    /// When it does not stop.
    pub fn stop(&mut self, progress: &mut dyn Progress) -> Result<(), TuneError> {
        let Some(data) = self.running.take() else { return Ok(()) };
        let mut command = self.server_program("pg_ctl");
        command.arg("-D").arg(&data).args("-s -m fast -w -t 120 stop".split(' '));
        self.run(&mut command, progress).map(drop)
    }

    /// Drops a cluster's tables from the system's page cache, so that requests reach the drive.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn drop_page_cache(&self, name: &str) -> Result<(), TuneError> {
        forget_below(&self.place.instance(name).join("base"))
    }

    /// Puts a file into the place, readable for the server's user.
    ///
    /// # Errors
    /// When it cannot be read or written.
    #[allow(clippy::disallowed_methods, reason = "a file of a private server's directory")]
    pub(super) fn bring(&self, file: &Path, name: &str) -> Result<PathBuf, TuneError> {
        let brought = self.place.directory().join(name);
        std::fs::copy(file, &brought).map_err(|e| TuneError::file(file, &e))?;
        let permissions = Permissions::from_mode(0o600);
        std::fs::set_permissions(&brought, permissions).map_err(|e| TuneError::file(&brought, &e))?;
        self.place.give(&brought)?;
        Ok(brought)
    }

    /// The command `pgbench`, with the server's address.
    ///
    /// # Errors
    /// When it is not installed.
    pub(super) fn pgbench(&self) -> Result<Command, TuneError> {
        let mut command = self.program(self.programs.pgbench()?);
        command.arg("-h").arg(self.place.sockets()).args(["-U", "postgres"]).env("PGDATABASE", "postgres");
        Ok(command)
    }

    /// Runs a program to its end and returns its output; Ctrl-C ends it.
    ///
    /// # Errors
    /// When it fails, with its last error message.
    pub(super) fn run(&self, command: &mut Command, progress: &mut dyn Progress) -> Result<String, TuneError> {
        self.place.run(command, progress)
    }

    fn server_program(&self, name: &str) -> Command {
        self.program(&self.programs.server.join(name))
    }

    fn program(&self, program: &Path) -> Command {
        self.place.program(program, &["PGDATA", "PGOPTIONS", "PGPORT"])
    }
}

/// The last line of a server's log is more useful than the message that it did not start.
fn with_log(error: TuneError, log: &Path) -> TuneError {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let last = text.lines().rfind(|line| line.contains("FATAL:") || line.contains("ERROR:"));
    match (last, &error) {
        (Some(line), TuneError::Server { context, .. }) => {
            TuneError::Server { context: context.clone(), message: line.to_owned() }
        }
        _ => error,
    }
}
