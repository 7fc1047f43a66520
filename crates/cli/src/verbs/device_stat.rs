//! `flashwise device stat`.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use flashwise_attach::{AttachError, DeviceStat, control};
use flashwise_report::{Printed, render_device_stat};

use crate::arguments::StatArguments;
use crate::failure::Failure;
use crate::output::{Output, note};

/// Brings the cursor to the top left corner, and clears all that is below it.
const REDRAW: &str = "\x1b[H\x1b[J";

/// Prints the statistics of an attached drive, once or repeatedly.
pub fn run(options: &StatArguments, output: &Output) -> Result<ExitCode, Failure> {
    let control = control::find(&options.place)?;
    let first = control::stat(&control)?;
    match options.watch {
        None => output.print(&first, |style| render_device_stat(&first, None, style))?,
        Some(interval) => watch(&control, first, Duration::from_nanos(interval.0), output)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Repeats until the drive is detached or the reader has gone. A terminal is redrawn; otherwise each result follows the
/// one before.
fn watch(control: &Path, first: DeviceStat, interval: Duration, output: &Output) -> Result<(), Failure> {
    let (mut now, mut before) = (first, None);
    loop {
        let is_read = output.print_look(&now, |style| {
            let text = render_device_stat(&now, before.as_ref(), style);
            if io::stdout().is_terminal() { text.behind(Printed::own(REDRAW)) } else { text.and("\n") }
        })?;
        if !is_read {
            return Ok(());
        }
        thread::sleep(interval);
        let next = match control::stat(control) {
            Ok(next) => next,
            Err(AttachError::Ended { .. }) => {
                note("the drive was detached");
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        before = Some(std::mem::replace(&mut now, next));
    }
}
