//! Ctrl-C while a command is captured: the command ends, what was captured stays as far as it was asked for.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::{Failure, INTERRUPTED};
use crate::output::Output;

/// Listens while a command is captured into a directory that is gone afterwards.
pub struct Listener {
    /// Set when the command is to end.
    pub interrupted: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
}

impl Listener {
    /// Begins to listen. Once the capture [is over](Self::is_over), Ctrl-C ends the program and removes the directory.
    pub fn start(directory: &Path, output: Output) -> Self {
        let listener = Self { interrupted: Arc::default(), is_over: Arc::default() };
        let (interrupted, is_over) = (Arc::clone(&listener.interrupted), Arc::clone(&listener.is_over));
        let directory = directory.to_owned();
        // Without a handler Ctrl-C still ends the program; only the cleaning up is then left to the system.
        let _ = ctrlc::set_handler(move || {
            if !is_over.load(Ordering::Acquire) {
                interrupted.store(true, Ordering::Relaxed);
                return;
            }
            let _ = fs::remove_dir_all(&directory);
            output.fail(&failure("interrupted"));
            std::process::exit(INTERRUPTED.into());
        });
        listener
    }

    /// The command has ended: an error if that was not by itself, with where the capture went.
    pub fn is_over(&self, kept: Option<&Path>) -> Result<(), Failure> {
        self.is_over.store(true, Ordering::Release);
        if !self.interrupted.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(failure(&match kept {
            Some(path) => format!("interrupted; what was captured until then is in {}", path.display()),
            None => "interrupted; what was captured until then is dropped, --save-trace FILE keeps it".to_owned(),
        }))
    }
}

fn failure(message: &str) -> Failure {
    Failure { message: message.to_owned(), code: INTERRUPTED }
}
