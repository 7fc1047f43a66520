//! Published studies.

use std::path::PathBuf;

use flashwise_studies::{STUDIES, Study, StudyOptions};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::document::{Content, Document};
use crate::running;
use crate::runs::parsed;

/// The studies, each with its title.
#[pyfunction]
pub(crate) fn studies() -> Vec<(&'static str, &'static str)> {
    STUDIES.iter().map(|study| (study.name, study.title)).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StudyCall {
    name: String,
    quick: bool,
    seed: u64,
    file_system: String,
    program: Option<PathBuf>,
    resume: Option<PathBuf>,
}

/// Runs a study.
#[pyfunction]
#[pyo3(signature = (request, listener = None))]
pub(crate) fn study(py: Python<'_>, request: &str, listener: Option<&Bound<'_, PyAny>>) -> PyResult<Document> {
    let StudyCall { name, quick, seed, file_system, program, resume } = parsed(py, request)?;
    running::run(py, listener, move |reporter| {
        let host = StudyOptions::machine(&file_system)?;
        let options = StudyOptions { quick, seed, program, host, peers: None, programs: None, resume };
        let document = Study::find(&name)?.run(&options, &|stage, fraction| reporter.note(stage, fraction))?;
        Ok(Document(Content::Study(Box::new(document))))
    })
}
