//! The report on disk: `report.html` and `report.json`, both or neither.
//!
//! Both files are complete and on the medium before either has its name. An earlier report is replaced; a file of one
//! of these names that is none of flashwise's stays, and the report is refused.

use std::path::{Path, PathBuf};

use flashwise_block::output::{self, Access, OutputFile, Replaceable};
use flashwise_sim::Simulation;
use flashwise_tune::Comparison;

use crate::{OwnFile, ReportError, comparison_page, simulation_page, to_json};

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
/// When a file cannot be written; then `dir` is unchanged, or removed if it did not exist.
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
    let html = staged(&files.html, page, OwnFile::Page)?;
    let json = staged(&files.json, document, OwnFile::Document)?;
    output::publish_all(vec![html, json]).map_err(|(path, error)| ReportError::at(&path)(error))?;
    created.keep();
    Ok(files)
}

/// Tries whether a report could be written into `dir`, and leaves nothing behind.
///
/// # Errors
/// When it could not.
pub fn check_writable(dir: &Path) -> Result<(), ReportError> {
    let _created = CreatedDirs::create(dir)?;
    for (name, kind) in [(HTML_FILE, OwnFile::Page), (JSON_FILE, OwnFile::Document)] {
        drop(staged(&dir.join(name), "trial\n", kind)?);
    }
    Ok(())
}

/// The directories that had to be made for a report, outermost first; removed again unless kept.
struct CreatedDirs {
    made: Vec<PathBuf>,
}

impl CreatedDirs {
    fn create(dir: &Path) -> Result<Self, ReportError> {
        output::create_directories(dir).map(|made| Self { made }).map_err(ReportError::at(dir))
    }

    fn keep(mut self) {
        self.made.clear();
    }
}

impl Drop for CreatedDirs {
    fn drop(&mut self) {
        output::remove_directories(&self.made);
    }
}

/// `text` in a file that is to be `target`, and the earlier one that it may replace.
fn staged(target: &Path, text: &str, kind: OwnFile) -> Result<(OutputFile, Option<Replaceable>), ReportError> {
    if target.is_dir() {
        return Err(ReportError::at(target)(std::io::ErrorKind::IsADirectory.into()));
    }
    let old = Replaceable::recognise(target, |file| kind.recognises(file)).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => ReportError::Foreign { path: target.to_owned(), kind: kind.name() },
        _ => ReportError::at(target)(error),
    })?;
    let write = || {
        let access = if old.is_some() { Access::of(target)? } else { Access::Usual };
        let mut file = OutputFile::create(target, access)?;
        std::io::Write::write_all(file.file(), text.as_bytes())?;
        Ok(file)
    };
    write().map(|file| (file, old)).map_err(ReportError::at(target))
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        let old = comparison_page(&sample::optane());
        fs::write(base.path().join(HTML_FILE), &old).unwrap();
        fs::create_dir(base.path().join(JSON_FILE)).unwrap();
        let error = write_report(base.path(), &sample::samsung()).unwrap_err().to_string();
        assert!(error.contains("report.json: cannot write the report: is a directory"), "{error}");
        assert_eq!(names(base.path()), [HTML_FILE, JSON_FILE]);
        assert_eq!(fs::read_to_string(base.path().join(HTML_FILE)).unwrap(), old);
        assert!(check_writable(base.path()).is_err());
    }

    #[test]
    fn a_file_of_the_report_s_name_that_is_not_flashwise_s_stays_and_is_named() {
        for name in [HTML_FILE, JSON_FILE] {
            let base = tempfile::tempdir().unwrap();
            let path = base.path().join(name);
            fs::write(&path, "Written by flashwise, I believe").unwrap();
            for error in [write_report(base.path(), &sample::optane()).map(drop), check_writable(base.path())] {
                let error = error.unwrap_err();
                assert!(matches!(&error, ReportError::Foreign { path: found, .. } if *found == path), "{error}");
            }
            assert_eq!(names(base.path()), [name]);
            assert_eq!(fs::read_to_string(&path).unwrap(), "Written by flashwise, I believe");
        }
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
