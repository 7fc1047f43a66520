//! The report on disk: `report.html` and `report.json`, both or neither.
//!
//! Both files are written under other names and made durable first. Then each takes its place by a rename; a report
//! that stood there before is put aside until the second rename is through, and comes back when it fails.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flashwise_sim::Simulation;
use flashwise_tune::Comparison;
use tempfile::{NamedTempFile, TempPath};

use crate::{ReportError, comparison_page, simulation_page, to_json};

/// Name of the page within the report's directory.
pub const HTML_FILE: &str = "report.html";
/// Name of the document within the report's directory.
pub const JSON_FILE: &str = "report.json";

/// Where a report was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportFiles {
    /// The page for people.
    pub html: PathBuf,
    /// The same for programs.
    pub json: PathBuf,
}

/// Writes `report.html` and `report.json` into `dir`, which is created where it is missing.
///
/// # Errors
/// When a file cannot be written; then `dir` is as it was before, and gone if it was not there.
pub fn write_report(dir: &Path, comparison: &Comparison) -> Result<ReportFiles, ReportError> {
    write_files(dir, &comparison_page(comparison), &to_json(comparison)?)
}

/// The same for a simulation.
///
/// # Errors
/// As [`write_report`].
pub fn write_simulation_report(dir: &Path, simulation: &Simulation) -> Result<ReportFiles, ReportError> {
    write_files(dir, &simulation_page(simulation), &to_json(simulation)?)
}

fn write_files(dir: &Path, page: &str, document: &str) -> Result<ReportFiles, ReportError> {
    let created = CreatedDirs::create(dir)?;
    let files = ReportFiles { html: dir.join(HTML_FILE), json: dir.join(JSON_FILE) };
    let html = staged(dir, &files.html, page)?;
    let json = staged(dir, &files.json, document)?;
    let html = Placed::place(html, &files.html)?;
    let json = Placed::place(json, &files.json)?;
    html.keep();
    json.keep();
    created.keep();
    Ok(files)
}

/// Tries whether a report could be written into `dir`, and leaves nothing behind.
///
/// # Errors
/// When it could not.
pub fn check_writable(dir: &Path) -> Result<(), ReportError> {
    let _created = CreatedDirs::create(dir)?;
    for name in [HTML_FILE, JSON_FILE] {
        let path = dir.join(name);
        if path.is_dir() {
            return Err(ReportError::at(&path)(std::io::ErrorKind::IsADirectory.into()));
        }
        drop(staged(dir, &path, "trial\n")?);
    }
    Ok(())
}

/// The directories that had to be made for a report, outermost first; removed again unless kept.
struct CreatedDirs {
    made: Vec<PathBuf>,
}

impl CreatedDirs {
    fn create(dir: &Path) -> Result<Self, ReportError> {
        let missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let mut wanted: Vec<_> = dir.ancestors().take_while(missing).map(Path::to_owned).collect();
        wanted.reverse();
        let mut created = Self { made: Vec::new() };
        for path in wanted {
            fs::create_dir(&path).map_err(ReportError::at(&path))?;
            created.made.push(path);
        }
        if !dir.as_os_str().is_empty() && !dir.is_dir() {
            return Err(ReportError::at(dir)(std::io::ErrorKind::NotADirectory.into()));
        }
        Ok(created)
    }

    fn keep(mut self) {
        self.made.clear();
    }
}

impl Drop for CreatedDirs {
    fn drop(&mut self) {
        // A directory into which somebody else has put something meanwhile stays.
        self.made.iter().rev().for_each(|path| _ = fs::remove_dir(path));
    }
}

/// `text` in a durable file of another name beside `target`; removed when dropped.
fn staged(dir: &Path, target: &Path, text: &str) -> Result<NamedTempFile, ReportError> {
    let write = || {
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let here = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        let mut file = builder.prefix(".report-").tempfile_in(here)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        Ok(file)
    };
    write().map_err(ReportError::at(target))
}

/// A file that took its place; gives it back unless kept.
struct Placed {
    target: PathBuf,
    /// What stood there before.
    aside: Option<TempPath>,
    kept: bool,
}

impl Placed {
    fn place(file: NamedTempFile, target: &Path) -> Result<Self, ReportError> {
        let aside = put_aside(target).map_err(ReportError::at(target))?;
        let mut placed = Self { target: target.to_owned(), aside, kept: true };
        match file.persist(target) {
            Ok(_) => {
                placed.kept = false;
                Ok(placed)
            }
            Err(failed) => {
                placed.restore();
                Err(ReportError::at(target)(failed.error))
            }
        }
    }

    fn restore(&mut self) {
        if let Some(aside) = self.aside.take() {
            _ = aside.persist(&self.target);
        }
    }

    fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        if !self.kept {
            _ = fs::remove_file(&self.target);
            self.restore();
        }
    }
}

/// Renames what stands at `path` to a new name beside it, which is removed when dropped.
fn put_aside(path: &Path) -> std::io::Result<Option<TempPath>> {
    if path.is_dir() {
        return Err(std::io::ErrorKind::IsADirectory.into());
    }
    if !path.exists() {
        return Ok(None);
    }
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let aside = tempfile::Builder::new().prefix(".report-old-").tempfile_in(parent)?.into_temp_path();
    fs::rename(path, &aside)?;
    Ok(Some(aside))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_report_is_two_files_in_a_directory_that_is_made_for_it() {
        let base = tempfile::tempdir().unwrap();
        let dir = base.path().join("a/b");
        let files = write_report(&dir, &sample::samsung()).unwrap();
        assert_eq!(names(&dir), [HTML_FILE, JSON_FILE]);
        assert!(fs::read_to_string(files.html).unwrap().starts_with("<!DOCTYPE html>"));
        assert!(fs::read_to_string(files.json).unwrap().contains("\"flashwise.comparison\""));
    }

    #[test]
    fn a_second_report_takes_the_place_of_the_first() {
        let base = tempfile::tempdir().unwrap();
        write_report(base.path(), &sample::samsung()).unwrap();
        let files = write_report(base.path(), &sample::optane()).unwrap();
        assert_eq!(names(base.path()), [HTML_FILE, JSON_FILE]);
        assert!(fs::read_to_string(files.json).unwrap().contains("optane"));
    }

    #[test]
    fn when_the_second_file_cannot_take_its_place_the_directory_is_as_it_was() {
        let base = tempfile::tempdir().unwrap();
        fs::write(base.path().join(HTML_FILE), "old").unwrap();
        fs::create_dir(base.path().join(JSON_FILE)).unwrap();
        let error = write_report(base.path(), &sample::samsung()).unwrap_err().to_string();
        assert!(error.contains("report.json: the report cannot be written: is a directory"), "{error}");
        assert_eq!(names(base.path()), [HTML_FILE, JSON_FILE]);
        assert_eq!(fs::read_to_string(base.path().join(HTML_FILE)).unwrap(), "old");
        assert!(check_writable(base.path()).is_err());
    }

    #[test]
    fn a_place_that_cannot_be_written_is_told_with_its_path_and_nothing_stays_behind() {
        let base = tempfile::tempdir().unwrap();
        let file = base.path().join("file");
        fs::write(&file, "mine").unwrap();
        for dir in [file.clone(), file.join("below")] {
            for error in [write_report(&dir, &sample::optane()).map(drop), check_writable(&dir)] {
                let error = error.unwrap_err().to_string();
                assert!(error.starts_with(dir.to_str().unwrap()), "{error}");
            }
        }
        assert_eq!(names(base.path()), ["file"]);
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    }

    #[test]
    fn a_trial_leaves_nothing_behind() {
        let base = tempfile::tempdir().unwrap();
        check_writable(&base.path().join("new/deep")).unwrap();
        assert!(names(base.path()).is_empty());
        write_report(base.path(), &sample::samsung()).unwrap();
        check_writable(base.path()).unwrap();
        assert_eq!(names(base.path()), [HTML_FILE, JSON_FILE]);
    }
}
