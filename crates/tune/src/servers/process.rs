//! Runs a server's programs to their end, as another user if needed, and returns their output.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use flashwise_block::Progress;
use rustix::fs::{Advice, fadvise};

use super::User;
use crate::TuneError;

/// How often it is looked whether a program has ended.
pub(super) const LOOK: Duration = Duration::from_millis(10);

/// Runs a program to its end and returns its output; Ctrl-C ends it. `stage` is the current stage of the work, and its
/// progress.
///
/// # Errors
/// When it fails, with its last error message; if it cannot be started, with the message of `explain`.
pub(super) fn run(
    command: &mut Command,
    stage: (&str, f64),
    progress: &mut dyn Progress,
    explain: &dyn Fn(&io::Error) -> String,
) -> Result<String, TuneError> {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let failed = |message: String| TuneError::Server { context: program.clone(), message };
    // Into files: a pipe would have to be emptied meanwhile, and a server that was started would keep it open.
    let (mut told, mut complaints) = (unnamed()?, unnamed()?);
    command.stdin(Stdio::null()).stdout(clone(&told)?).stderr(clone(&complaints)?);
    let mut child = command.spawn().map_err(|e| failed(explain(&e)))?;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => sleep(LOOK),
            Err(error) => return Err(failed(error.to_string())),
        }
        if let Err(interrupt) = progress.advance(stage.0, stage.1) {
            let _ = child.kill();
            let _ = child.wait();
            return Err(interrupt.into());
        }
    };
    let (told, complaints) = (read_again(&mut told)?, read_again(&mut complaints)?);
    match status.success() {
        true => Ok(told),
        false => Err(failed(complaint(&complaints).unwrap_or_else(|| status.to_string()))),
    }
}

/// Why a program could not be started in a place.
pub(super) fn spawn_words(error: &io::Error, user: Option<User>, place: &Path) -> String {
    let words = error.to_string();
    let words = words.split(" (os error").next().unwrap_or_default();
    match (user, error.kind()) {
        (Some(user), io::ErrorKind::PermissionDenied) => {
            format!(
                "{words}: started by root, it runs as user {}, who must be able to reach {}",
                user.id,
                place.display()
            )
        }
        _ => words.to_owned(),
    }
}

/// Gives a file to a server's user, where it has one of its own.
pub(super) fn give(path: &Path, user: Option<User>) -> Result<(), TuneError> {
    let Some(user) = user else { return Ok(()) };
    chown(path, Some(user.id), Some(user.group)).map_err(|e| TuneError::file(path, &e))
}

/// The last line of a program's errors, or the one with the actual error.
fn complaint(text: &str) -> Option<String> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines().find(|line| ["error:", "ERROR:", "FATAL:"].iter().any(|mark| line.contains(mark)));
    error.or_else(|| lines().next_back()).map(str::to_owned)
}

fn temporary_error(error: &io::Error) -> TuneError {
    TuneError::file(std::env::temp_dir(), error)
}

fn unnamed() -> Result<File, TuneError> {
    tempfile::tempfile().map_err(|e| temporary_error(&e))
}

fn clone(file: &File) -> Result<File, TuneError> {
    file.try_clone().map_err(|e| temporary_error(&e))
}

fn read_again(file: &mut File) -> Result<String, TuneError> {
    let mut text = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut text)).map_err(|e| temporary_error(&e))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Drops the files below a directory from the system's page cache.
pub(crate) fn forget_below(directory: &Path) -> Result<(), TuneError> {
    let failed = |e: io::Error| TuneError::file(directory, &e);
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            forget_below(&path)?;
            continue;
        }
        let file = File::open(&path).map_err(|e| TuneError::file(&path, &e))?;
        // Dirty pages cannot be dropped.
        file.sync_data().map_err(|e| TuneError::file(&path, &e))?;
        fadvise(&file, 0, None, Advice::DontNeed).map_err(|e| TuneError::file(&path, &e.into()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_tells_an_error_is_the_complaint() {
        let told = "pgbench (15)\npgbench: error: no such file\ndetail\n";
        assert_eq!(complaint(told).unwrap(), "pgbench: error: no such file");
        assert_eq!(complaint("first\n\nlast\n\n").unwrap(), "last");
        assert_eq!(complaint("\n"), None);
    }
}
