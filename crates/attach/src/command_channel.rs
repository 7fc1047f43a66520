//! Commands to the one thread that owns the drive, from the [management thread](crate::management).
//!
//! ```text
//!   CommandSender ── Job: work on the engine ──▶ CommandChannel, polled by the server with its clients
//!                 ◀── its result, over a channel of its own ──┘
//! ```
//!
//! A command is one more event between those of the clients. The sender does the slow work, percentiles and text. It
//! sends at most one command per [`INTERVAL`], so that frequent queries do not take the drive's time.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::control::protocol::{Command, Reply};
use crate::engine::{Engine, Times};
use crate::event_fd::EventFd;
use crate::{AttachError, DeviceStat};

/// From the end of a command to the start of the next one at least.
const INTERVAL: Duration = Duration::from_millis(10);

/// Runs on the thread that owns the engine; fails where the drive is lost as a whole.
type Job = Box<dyn FnOnce(&mut Engine, Instant) -> Result<(), AttachError> + Send>;

/// The receiving end, which the server polls.
pub(crate) struct CommandChannel {
    jobs: Receiver<Job>,
    sender: CommandSender,
}

impl CommandChannel {
    /// The channel to an engine.
    pub(crate) fn new(engine: &Engine) -> Result<Self, AttachError> {
        let (sender, jobs) = channel();
        let event_fd = Arc::new(EventFd::new()?);
        let reported_times = engine.reported_times();
        Ok(Self { jobs, sender: CommandSender { jobs: sender, event_fd, reported_times, not_before: Instant::now() } })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.sender.event_fd.as_fd()
    }

    /// The sending end.
    pub(crate) fn sender(&self) -> CommandSender {
        self.sender.clone()
    }

    /// Executes the commands that have come since the last call.
    ///
    /// # Errors
    /// When the drive is lost as a whole.
    pub(crate) fn execute(&self, engine: &mut Engine, at: Instant) -> Result<(), AttachError> {
        self.sender.event_fd.take();
        self.jobs.try_iter().try_for_each(|job| job(engine, at))
    }
}

/// The sending end.
#[derive(Clone)]
pub(crate) struct CommandSender {
    jobs: Sender<Job>,
    event_fd: Arc<EventFd>,
    /// All times up to the last snapshot.
    reported_times: Arc<Mutex<Times>>,
    /// When the next command may be sent.
    not_before: Instant,
}

impl CommandSender {
    /// Has a command executed, and waits for that.
    pub(crate) fn execute(&mut self, command: Command) -> Reply {
        let reply = match command {
            Command::Stat => self.stat().map(|stat| Reply::Stat(Box::new(stat))),
            Command::Cut => self.call(Engine::power_cut).map(Reply::Cut),
            Command::Fault(fault) => self.call(move |engine, at| engine.fault(&fault, at)).map(Reply::Fault),
        };
        reply.unwrap_or_else(|reply| reply)
    }

    /// The drive's statistics; or the error reply.
    pub(crate) fn stat(&mut self) -> Result<DeviceStat, Reply> {
        let empty = Box::default();
        let snapshot = self.call(move |engine, at| engine.snapshot(empty, at))?;
        let mut times = self.reported_times.lock().unwrap_or_else(PoisonError::into_inner);
        times.merge(&snapshot.times);
        Ok(snapshot.with_times(&times))
    }

    fn call<T: Send + 'static>(
        &mut self,
        job: impl FnOnce(&mut Engine, Instant) -> Result<T, AttachError> + Send + 'static,
    ) -> Result<T, Reply> {
        std::thread::sleep(self.not_before.saturating_duration_since(Instant::now()));
        let (sender, result) = sync_channel(1);
        let job = move |engine: &mut Engine, at: Instant| {
            let result = match job(engine, at) {
                Err(error @ (AttachError::NoPowerCuts | AttachError::Refused(_))) => Err(error.to_string()),
                result => Ok(result?),
            };
            // The sender waits until it has the result.
            let _ = sender.send(result);
            Ok(())
        };
        self.jobs.send(Box::new(job)).map_err(|_| Reply::Ending)?;
        self.event_fd.notify();
        let result = result.recv().map_err(|_| Reply::Ending)?;
        self.not_before = Instant::now() + INTERVAL;
        result.map_err(Reply::Error)
    }
}
