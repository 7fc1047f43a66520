//! `fit sqlite --record DB -- COMMAND`: the workload is what a program does.

use std::path::Path;
use std::sync::Arc;

use flashwise_trace::capture::TracedCommand;
use flashwise_tune::sqlite::{DatabaseBefore, Recording, Workload, record};

use crate::arguments::FitSqlite;
use crate::failure::Failure;
use crate::interrupt::{self, Listener};
use crate::output::{Output, note};

/// Runs the command and records its statements; keeps them where the user wants that.
pub fn recorded(options: &FitSqlite, database: &Path, output: &Output) -> Result<Workload, Failure> {
    let kept = options.save_recording.as_deref();
    kept.map(Recording::check_files).transpose()?;
    let before = DatabaseBefore::copy(database)?;
    let listener = Listener::start();
    let interrupted = Arc::clone(&listener.interrupted);
    let command = TracedCommand { command: options.command.clone(), output_to_stderr: output.is_json(), interrupted };
    let recorded = record(database, before, &command);
    let was_interrupted = listener.was_interrupted();
    let recording = match recorded {
        Err(_) if was_interrupted => {
            return Err(interrupt::failure("interrupted; no statement was recorded until then"));
        }
        recorded => recorded?,
    };
    recording.recorded.remarks().iter().for_each(|remark| note(remark));
    if !recording.status.success() {
        note(&format!("the command ended with {}", recording.status));
    }
    if let Some(name) = kept {
        recording.save(name)?;
        let [sql, db] = Recording::files(name).map(|file| file.display().to_string());
        note(&format!("saved; to use it again: flashwise fit sqlite {db} --sql {sql}"));
    }
    if was_interrupted {
        let message = match kept {
            Some(_) => "interrupted; the recording is kept".to_owned(),
            None => "interrupted; the recording is discarded (--save-recording NAME would keep it)".to_owned(),
        };
        return Err(interrupt::failure(&message));
    }
    let mut workload = recording.workload(database, options.page_cache)?;
    workload.think_limit = options.think_limit;
    workload.check()?;
    Ok(Workload::User(workload))
}
