//! The directories of private servers of one database: one for their data and one for their sockets, both deleted at
//! the end.
//!
//! As root they are run as a user of their own.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;

use flashwise_block::Progress;

use super::process::{LOOK, give, run, spawn_words};
use super::{DirectoryGuard, User};
use crate::TuneError;

/// The directories, and the user who works in them.
#[derive(Debug)]
pub(crate) struct PrivatePlace {
    user: Option<User>,
    /// The current stage of the work, and its progress.
    stage: (String, f64),
    // The guards end processes that still run.
    data: DirectoryGuard,
    sockets: DirectoryGuard,
}

impl PrivatePlace {
    /// In `directory`, or by default in the directory for temporary files. Sockets are always in the latter, as their
    /// paths must be short. `name` is the prefix of both names.
    ///
    /// # Errors
    /// When no directory can be created.
    pub(crate) fn new(name: &str, directory: Option<&Path>, user: Option<User>) -> Result<Self, TuneError> {
        let temporary = std::env::temp_dir();
        let data = DirectoryGuard::new(directory.unwrap_or(&temporary), name)?;
        let sockets = DirectoryGuard::new(&temporary, name)?;
        let this = Self { user, stage: ("creating a private server".to_owned(), 0.0), data, sockets };
        [this.directory(), this.sockets()].into_iter().try_for_each(|path| this.give(path))?;
        Ok(this)
    }

    /// Sets the current stage of the work, and its progress.
    pub(crate) fn at(&mut self, stage: String, fraction: f64) {
        self.stage = (stage, fraction);
    }

    pub(crate) fn directory(&self) -> &Path {
        self.data.path()
    }

    pub(crate) fn sockets(&self) -> &Path {
        self.sockets.path()
    }

    /// Where an instance has its files.
    pub(crate) fn instance(&self, name: &str) -> PathBuf {
        self.directory().join(name)
    }

    /// A program that is run here, by the servers' user.
    pub(crate) fn program(&self, program: &Path, unset: &[&str]) -> Command {
        let mut command = Command::new(program);
        // Its guard knows a process by its working directory.
        command.current_dir(self.directory()).process_group(0).env("LC_ALL", "C");
        for name in unset {
            command.env_remove(name);
        }
        if let Some(user) = self.user {
            command.uid(user.id).gid(user.group);
        }
        command
    }

    /// Runs a program to its end and returns its output; Ctrl-C ends it.
    ///
    /// # Errors
    /// When it fails, with its last error message.
    pub(crate) fn run(&self, command: &mut Command, progress: &mut dyn Progress) -> Result<String, TuneError> {
        run(command, (&self.stage.0, self.stage.1), progress, &|error| self.explain(error))
    }

    /// Copies an instance that does not run, of this place or another one.
    ///
    /// # Errors
    /// When there is no space, or the like.
    pub(crate) fn copy(&self, from: &Path, to: &str, progress: &mut dyn Progress) -> Result<(), TuneError> {
        let mut command = self.program(Path::new("cp"), &[]);
        self.run(command.args(["-a", "--"]).arg(from).arg(self.instance(to)), progress).map(drop)
    }

    /// Why a program could not be started here.
    pub(crate) fn explain(&self, error: &io::Error) -> String {
        spawn_words(error, self.user, self.directory())
    }

    /// Gives a file to the servers' user.
    ///
    /// # Errors
    /// When it cannot be given.
    pub(crate) fn give(&self, path: &Path) -> Result<(), TuneError> {
        give(path, self.user)
    }

    /// Waits a moment for a server; Ctrl-C ends it.
    ///
    /// # Errors
    /// When `progress` wants to stop.
    pub(crate) fn wait(&self, progress: &mut dyn Progress) -> Result<(), TuneError> {
        progress.advance(&self.stage.0, self.stage.1)?;
        sleep(LOOK);
        Ok(())
    }
}

/// The folders of `PATH`.
pub(crate) fn folders_in_path() -> Vec<PathBuf> {
    std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}
