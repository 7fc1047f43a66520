//! `flashwise study`.

use std::process::ExitCode;

use flashwise_report::study::StudyDocument;
use flashwise_report::{OwnFile, render_study, study_page};
use flashwise_studies::{STUDIES, Study, StudyError, StudyOptions};
use serde::Serialize;

use crate::arguments::StudyArguments;
use crate::failure::Failure;
use crate::files::Wanted;
use crate::output::{Output, note};
use crate::progress::shared_bar;

/// JSON document of `--list`.
#[derive(Serialize)]
struct List {
    schema: &'static str,
    schema_version: u32,
    studies: Vec<Listed>,
}

#[derive(Serialize)]
struct Listed {
    name: &'static str,
    title: &'static str,
    source: &'static str,
}

/// JSON document of `--all`.
#[derive(Serialize)]
struct All<'a> {
    schema: &'static str,
    schema_version: u32,
    studies: &'a [StudyDocument],
}

/// Lists studies, or runs one or all.
pub fn run(options: &StudyArguments, output: &Output) -> Result<ExitCode, Failure> {
    if options.list {
        list(output)?;
        return Ok(ExitCode::SUCCESS);
    }
    let chosen: Vec<&Study> = match &options.name {
        Some(name) => vec![Study::find(name)?],
        None if options.all => STUDIES.iter().collect(),
        None => return Err(Failure::usage("give the name of a study; 'flashwise study --list' lists them")),
    };
    if options.html.is_some() && chosen.len() > 1 {
        return Err(Failure::usage("--html takes one study; name it instead of --all"));
    }
    let page = options.html.as_deref().map(|path| Wanted::prepare(path, OwnFile::Page)).transpose()?;
    let program = std::env::current_exe().ok();
    let host = StudyOptions::machine(&options.file_system)?;
    let how = StudyOptions {
        quick: options.quick,
        seed: options.seed,
        program,
        host,
        peers: options.peers.clone(),
        programs: options.programs.clone(),
        resume: options.resume.clone(),
    };
    let bar = shared_bar();
    let progress = |what: &str, done: f64| bar.show(what, done);
    let mut studies: Vec<StudyDocument> = Vec::new();
    for study in &chosen {
        match study.run(&how, &progress) {
            Ok(document) => studies.push(document),
            // With `--all`, a study that this machine cannot run is skipped with a note.
            Err(StudyError::Missing(why)) if options.all => {
                note(&format!("skipped {}: {why}", study.name));
            }
            Err(error) => return Err(error.into()),
        }
    }
    drop(bar);
    if let (Some(page), Some(study)) = (&page, studies.first()) {
        page.write(study_page(study))?;
    }
    let text = |style| {
        let mut rendered = studies.iter().map(|study| render_study(study, style));
        let first = rendered.next().unwrap_or_default();
        rendered.fold(first, |all, study| all.and("\n").and(study))
    };
    match (studies.as_slice(), options.all) {
        ([study], false) => output.print(study, text)?,
        (studies, _) => output.print(&All { schema: "flashwise.studies", schema_version: 1, studies }, text)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(output: &Output) -> Result<(), Failure> {
    let studies = STUDIES.iter().map(|s| Listed { name: s.name, title: s.title, source: s.source }).collect();
    output.print(&List { schema: "flashwise.study-list", schema_version: 1, studies }, |_| {
        let width = STUDIES.iter().map(|study| study.name.len()).max().unwrap_or(0);
        STUDIES.iter().map(|study| format!("{:<width$}  {}\n", study.name, study.title)).collect::<String>()
    })
}
