//! Long calls: the interpreter's lock is released, progress is passed on, and Ctrl-C ends them.
//!
//! ```text
//!   caller's thread   waits without the lock ─▶ every TICK: signals? progress? ─▶ returns or raises
//!   a thread of its own                  work ─▶ Reporter: how far; ends once an interrupt is requested
//! ```
//!
//! The request to end is one for the process (`flashwise_block::interrupt`), as it is for the program: Ctrl-C ends
//! every call that is running, whichever thread made it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flashwise_block::{BlockError, Progress, interrupt};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::failure::Failure;

/// How soon Ctrl-C is noticed, and how often progress is passed on. A call that is over sooner is not delayed by it.
const TICK: Duration = Duration::from_millis(50);

/// Calls that are running.
static RUNNING: Mutex<usize> = Mutex::new(0);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One of the running calls. The last one that ends after an interrupt lets later ones run again.
struct Call;

impl Call {
    fn start(py: Python<'_>) -> Self {
        loop {
            {
                let mut running = lock(&RUNNING);
                if *running == 0 || !interrupt::is_requested() {
                    *running += 1;
                    return Self;
                }
            }
            // Others are still ending because of an interrupt that came before this call.
            py.detach(|| std::thread::sleep(Duration::from_millis(1)));
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut running = lock(&RUNNING);
        *running -= 1;
        if *running == 0 {
            interrupt::clear();
        }
    }
}

/// How far the work is.
#[derive(Default)]
pub(crate) struct Reporter {
    at: Mutex<(String, f64)>,
    is_done: Mutex<bool>,
    done: Condvar,
}

impl Reporter {
    /// Notes how far a stage is, 0 to 1.
    pub(crate) fn note(&self, stage: &str, fraction: f64) {
        let mut at = lock(&self.at);
        if at.0 != stage {
            stage.clone_into(&mut at.0);
        }
        at.1 = fraction;
    }

    fn finish(&self) {
        *lock(&self.is_done) = true;
        self.done.notify_all();
    }

    /// Waits for the end; `false` after one tick without it.
    fn wait(&self) -> bool {
        let is_done = lock(&self.is_done);
        let waited = self.done.wait_timeout_while(is_done, TICK, |is_done| !*is_done);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Progress for &Reporter {
    fn advance(&mut self, stage: &str, fraction: f64) -> Result<(), BlockError> {
        interrupt::check()?;
        self.note(stage, fraction);
        Ok(())
    }
}

/// Says that the work is over, however it ended.
struct Finish<'a>(&'a Reporter);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.finish();
    }
}

/// Runs `work` on a thread of its own; `listener` is called as `listener(stage, fraction)`.
///
/// # Errors
/// What the work failed with, what a signal handler raised, or what the listener raised.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    listener: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Reporter) -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let _call = Call::start(py);
    let reporter = Reporter::default();
    let shared = &reporter;
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            let _finish = Finish(shared);
            work(shared)
        });
        let mut raised = None;
        while !py.detach(|| shared.wait()) {
            if raised.is_some() {
                continue;
            }
            let heard = py.check_signals().and_then(|()| match listener {
                Some(listener) => {
                    let (stage, fraction) = lock(&shared.at).clone();
                    listener.call1((stage, fraction)).map(drop)
                }
                None => Ok(()),
            });
            if let Err(error) = heard {
                interrupt::request();
                raised = Some(error);
            }
        }
        let ended = py.detach(|| worker.join());
        match (raised, ended) {
            (_, Err(panic)) => std::panic::resume_unwind(panic),
            (Some(error), _) => Err(error),
            // Whatever the interrupt met in the work, its error is not the reason.
            (None, Ok(Err(_))) if interrupt::is_requested() => Err(PyKeyboardInterrupt::new_err(())),
            (None, Ok(ended)) => ended.map_err(|failure| failure.raise(py)),
        }
    })
}
