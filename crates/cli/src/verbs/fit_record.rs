//! `fit sqlite --record DB -- COMMAND`: the workload is what a program does.

use std::path::Path;
use std::sync::Arc;

use flashwise_trace::capture::TracedCommand;
use flashwise_tune::sqlite::{DatabaseBefore, Recording, Workload, record};

use crate::arguments::FitSqlite;
use crate::failure::Failure;
use crate::interrupt::{self, Listener};
use crate::output::{Output, note};

/// Runs the command and records its statements; keeps them where the user wants that. Files that cannot be kept are no
/// reason to give up the fit, because the program has run: that failure is left in `unsaved`.
pub fn recorded(
    options: &FitSqlite,
    database: &Path,
    output: &Output,
    unsaved: &mut Option<Failure>,
) -> Result<Workload, Failure> {
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
    let workload = recording.workload(database, options.page_cache).map(|mut workload| {
        workload.think_limit = options.think_limit;
        workload
    });
    if let Some(name) = kept {
        match recording.save(name) {
            Ok(()) => {
                let again = workload.as_ref().map(|workload| Recording::command_again(name, workload));
                let again = again.map(|command| format!("; to use it again: {command}")).unwrap_or_default();
                note(&format!("saved{again}"));
            }
            Err(error) => {
                note(&format!("not saved: {error}"));
                let failure = Failure::from(error);
                *unsaved =
                    Some(Failure { message: format!("the recording was not saved: {}", failure.message), ..failure });
            }
        }
    }
    if was_interrupted {
        let message = match (kept, unsaved) {
            (Some(_), None) => "interrupted; the recording is kept",
            (Some(_), Some(_)) => "interrupted; the recording is lost",
            (None, _) => "interrupted; the recording is discarded (--save-recording NAME would keep it)",
        };
        return Err(interrupt::failure(message));
    }
    let workload = workload?;
    workload.check()?;
    Ok(Workload::User(workload))
}
