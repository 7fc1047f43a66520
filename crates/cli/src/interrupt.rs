//! Ctrl-C, SIGTERM and SIGHUP: the program ends within two seconds and leaves no temporary files.
//!
//! ```text
//!   signal ─▶ interrupt requested (flashwise_block::interrupt)   ─▶ it returns, destructors run, exit code 130
//!               └─ grace ─▶ or a second signal ─▶ temporary folders are removed, one error is printed, exit code 130
//! ```
//!
//! A command that must first end something of its own, such as a captured program or an attached drive, registers that
//! with [`handle_with`], and until when the program may not be ended.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use flashwise_block::{interrupt, temporary};

use crate::failure::{Failure, INTERRUPTED};
use crate::output::Output;

/// How long work has to end by itself.
const GRACE: Duration = Duration::from_millis(1500);
/// Most time that threads still writing to a temporary folder, or a reader that does not read, may delay the end.
const PATIENCE: Duration = Duration::from_millis(200);

/// What a command does at a signal, and whether the program may be ended without it.
struct Handler {
    on_signal: Box<dyn Fn() + Send>,
    may_end: Box<dyn Fn() -> bool + Send>,
}

static HANDLER: Mutex<Option<Handler>> = Mutex::new(None);

fn handler() -> MutexGuard<'static, Option<Handler>> {
    HANDLER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Listens for the rest of the program's life; a SIGHUP that is ignored, under `nohup`, stays so.
pub fn listen(output: Output) {
    let on_signal = move || {
        let may_end = match &*handler() {
            Some(handler) => {
                (handler.on_signal)();
                (handler.may_end)()
            }
            None => true,
        };
        if !may_end {
            return;
        }
        if interrupt::is_requested() {
            end_now(output);
        }
        interrupt::request();
        let watch = move || {
            thread::sleep(GRACE);
            if handler().as_ref().is_none_or(|handler| (handler.may_end)()) {
                end_now(output);
            }
        };
        // Without this thread, work that does not stop by itself would never end.
        if thread::Builder::new().spawn(watch).is_err() {
            end_now(output);
        }
    };
    // Without a handler a signal still ends the program; only the cleaning up is then left to the next run.
    interrupt::install_but_keep_nohup(|| drop(ctrlc::set_handler(on_signal)));
}

/// From now on a signal calls `on_signal`; the program ends by itself unless `may_end`.
pub fn handle_with(on_signal: impl Fn() + Send + 'static, may_end: impl Fn() -> bool + Send + 'static) {
    *handler() = Some(Handler { on_signal: Box::new(on_signal), may_end: Box::new(may_end) });
}

/// Ends the program from beside its work.
fn end_now(output: Output) -> ! {
    temporary::remove_all(PATIENCE);
    // In another thread: a full pipe may have no reader.
    let (done, printed) = mpsc::channel();
    let print = move || {
        output.fail_at_once(&failure("interrupted"));
        let _ = done.send(());
    };
    if thread::Builder::new().spawn(print).is_ok() {
        let _ = printed.recv_timeout(PATIENCE);
    }
    std::process::exit(INTERRUPTED.into());
}

/// Listens while a command is captured.
pub struct Listener {
    /// Set when the command is to end.
    pub interrupted: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
}

impl Listener {
    /// A signal ends the command, and once the capture [is over](Self::is_over) the program.
    pub fn start() -> Self {
        let listener = Self { interrupted: Arc::default(), is_over: Arc::default() };
        let (interrupted, is_over) = (Arc::clone(&listener.interrupted), Arc::clone(&listener.is_over));
        let on_signal = {
            let is_over = Arc::clone(&is_over);
            move || {
                if !is_over.load(Ordering::Acquire) {
                    interrupted.store(true, Ordering::Relaxed);
                }
            }
        };
        handle_with(on_signal, move || is_over.load(Ordering::Acquire));
        listener
    }

    /// The command has ended; whether that was because of a signal.
    pub fn was_interrupted(&self) -> bool {
        self.is_over.store(true, Ordering::Release);
        self.interrupted.load(Ordering::Relaxed)
    }

    /// The command has ended: an error if that was not by itself, with where the capture went.
    pub fn is_over(&self, kept: Option<&Path>) -> Result<(), Failure> {
        if !self.was_interrupted() {
            return Ok(());
        }
        Err(failure(&match kept {
            Some(path) => format!("interrupted; the trace captured so far is in {}", path.display()),
            None => "interrupted; the captured trace is discarded (--save-trace FILE would keep it)".to_owned(),
        }))
    }
}

/// The failure of a command that the user has interrupted.
pub fn failure(message: &str) -> Failure {
    Failure { message: message.to_owned(), code: INTERRUPTED }
}
