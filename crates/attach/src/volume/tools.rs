//! External programs that a mounted drive needs: their paths, and their errors.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where programs of the administrator are, which are not in everybody's `PATH`.
const ADMINISTRATOR: [&str; 4] = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin"];

/// Finds a program.
///
/// # Errors
/// In words that name the package where it is missing.
pub(super) fn find(program: &str, package: &str) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(ADMINISTRATOR.map(PathBuf::from));
    let found = places.map(|place| place.join(program)).find(|program| is_program(program));
    found.ok_or_else(|| format!("{program} is missing; install the package {package}"))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Runs a program to its end; returns its output.
///
/// # Errors
/// Its error output on failure.
pub(super) fn run(program: &Path, arguments: &[&std::ffi::OsStr]) -> Result<String, String> {
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let ended = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let ended = ended.map_err(|error| format!("{name}: {error}"))?;
    if ended.status.success() {
        return Ok(String::from_utf8_lossy(&ended.stdout).trim().to_owned());
    }
    let words = String::from_utf8_lossy(&ended.stderr);
    let words = words.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    let words = words.strip_prefix(&*format!("{name}: ")).unwrap_or(&words);
    Err(if words.is_empty() { format!("{name}: {}", ended.status) } else { format!("{name}: {words}") })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn what_is_missing_is_named_with_its_package() {
        assert!(find("sh", "dash").unwrap().ends_with("sh"));
        let error = find("mkfs.of-no-system", "nofs-utils").unwrap_err();
        assert_eq!(error, "mkfs.of-no-system is missing; install the package nofs-utils");
    }

    #[test]
    fn a_program_that_fails_is_told_in_its_own_words_on_one_line() {
        let shell = find("sh", "dash").unwrap();
        let run = |script: &str| run(&shell, &[OsStr::new("-c"), OsStr::new(script)]);
        assert_eq!(run("echo ' /dev/loop3'").unwrap(), "/dev/loop3");
        assert_eq!(
            run("echo 'sh: no room' >&2; echo >&2; echo ' try less' >&2; exit 3").unwrap_err(),
            "sh: no room; try less"
        );
        assert_eq!(run("exit 3").unwrap_err(), "sh: exit status: 3");
    }
}
