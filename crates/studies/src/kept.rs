//! Finished runs of a study, kept in a file if one is given, so that a later call goes on with them.
//!
//! ```text
//!   HEADING                      the study, its version and its scale: a file of other runs is refused
//!   NAME ⇥ number ⇥ number …     a line a finished run
//! ```
//!
//! A line is written at once when its run is done. A run that was cut off leaves no whole line, and is run again.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use flashwise_block::ResultsFile;

use crate::StudyError;

/// A file with finished runs.
pub(crate) struct Kept {
    file: Option<Mutex<ResultsFile>>,
    finished: BTreeMap<String, Vec<f64>>,
}

/// Why a file is not read.
struct Refused(String);

impl From<std::io::Error> for Refused {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

impl Kept {
    /// The runs of a file, which is made where it does not exist; without a file, nothing is kept.
    ///
    /// # Errors
    /// When it cannot be used, is of other runs, or has a line that `is_run` refuses.
    pub(crate) fn open(
        path: Option<&Path>,
        heading: &str,
        is_run: impl Fn(&[f64]) -> bool,
    ) -> Result<Self, StudyError> {
        let Some(path) = path else { return Ok(Self { file: None, finished: BTreeMap::new() }) };
        let refused = |why: String| StudyError::Resume { path: path.to_owned(), why };
        let (mut finished, mut has_heading) = (BTreeMap::new(), false);
        let other = || format!("it does not start with '{heading}'; name a new file");
        let opened = ResultsFile::open(path, |line| {
            if has_heading {
                let (name, numbers) = parsed(line)
                    .filter(|(_, numbers)| is_run(numbers))
                    .ok_or_else(|| Refused(format!("'{line}' is no finished run; name a new file")))?;
                finished.insert(name, numbers);
            }
            has_heading = has_heading || line == heading;
            if has_heading { Ok(()) } else { Err(Refused(other())) }
        });
        let mut file = opened.map_err(|Refused(why)| refused(why))?;
        if !has_heading {
            if !file.is_empty() {
                return Err(refused(other()));
            }
            file.add(heading).map_err(|error| refused(error.to_string()))?;
        }
        Ok(Self { file: Some(Mutex::new(file)), finished })
    }

    /// The numbers of a run that was finished before.
    pub(crate) fn get(&self, name: &str) -> Option<&[f64]> {
        self.finished.get(name).map(Vec::as_slice)
    }

    /// Keeps a run.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn add(&self, name: &str, numbers: &[f64]) -> Result<(), StudyError> {
        let Some(file) = &self.file else { return Ok(()) };
        let numbers: String = numbers.iter().map(|number| format!("\t{number}")).collect();
        let mut file = file.lock().map_err(|_| StudyError::Lost)?;
        Ok(file.add(&format!("{name}{numbers}"))?)
    }
}

fn parsed(line: &str) -> Option<(String, Vec<f64>)> {
    let mut words = line.split('\t');
    let name = words.next()?.to_owned();
    let numbers: Vec<f64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
    Some((name, numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path, heading: &str) -> Result<Kept, StudyError> {
        Kept::open(Some(path), heading, |numbers| numbers.len() == 2)
    }

    #[test]
    fn finished_runs_are_found_again_and_one_that_was_cut_off_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs");
        let kept = open(&path, "ten keys").unwrap();
        kept.add("a, seed 1", &[1.0, 1.0 / 3.0]).unwrap();
        kept.add("b, seed 1", &[2.0, f64::NAN]).unwrap();
        drop(kept);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 2]).unwrap();
        let kept = open(&path, "ten keys").unwrap();
        let error = open(&path, "ten keys").err().unwrap().to_string();
        assert!(error.contains("another run is adding to it"), "{error}");
        assert_eq!(kept.get("a, seed 1"), Some(&[1.0, 1.0 / 3.0][..]));
        assert_eq!(kept.get("b, seed 1"), None);
        drop(kept);
        let kept = open(&path, "ten keys").unwrap();
        kept.add("b, seed 1", &[2.0, f64::NAN]).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn a_file_of_other_runs_is_refused_and_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs");
        open(&path, "ten keys").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let error = open(&path, "11 keys").err().unwrap().to_string();
        assert!(error.contains("11 keys") && error.contains("name a new file"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        for wrong in ["nonsense", "a\t1", "a\tone\ttwo"] {
            std::fs::write(&path, format!("{text}{wrong}\n")).unwrap();
            assert!(open(&path, "ten keys").is_err(), "{wrong}");
        }
        let error = open("/dev/zero".as_ref(), "ten keys").err().unwrap().to_string();
        assert!(error.contains("it is a character device"), "{error}");
    }

    #[test]
    fn without_a_file_nothing_is_kept() {
        let kept = Kept::open(None, "ten keys", |_| true).unwrap();
        kept.add("a", &[1.0]).unwrap();
        assert_eq!(kept.get("a"), None);
    }
}
