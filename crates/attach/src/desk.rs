//! Where orders from elsewhere reach the one thread that owns the drive.
//!
//! ```text
//!   control, metrics: threads of their own ── Call: order, where the answer goes ──▶ Desk, waited for with the clients
//!                                         ◀── what the engine tells ──────────────┘
//! ```
//!
//! An order is one more message between those of the clients; what takes long, percentiles and text, is done by who
//! ordered it. Nobody orders more often than every [`REST`].

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::control::{Command, Reply};
use crate::engine::{Engine, Snapshot, Times};
use crate::event_fd::EventFd;
use crate::fault::FaultCommand;
use crate::{AttachError, DeviceStat, FaultState, PowerCut};

/// How long who orders waits between two orders at least.
const REST: Duration = Duration::from_millis(10);

/// An order, with where its answer goes.
pub(crate) struct Call {
    what: What,
    answer: SyncSender<Result<Got, String>>,
}

enum What {
    Snapshot(Box<Times>),
    Cut,
    Fault(FaultCommand),
}

enum Got {
    Snapshot(Box<Snapshot>),
    Cut(PowerCut),
    Fault(FaultState),
}

impl Got {
    /// What is said of it; a look is told in full by who has looked.
    fn told(self) -> Reply {
        match self {
            Self::Cut(cut) => Reply::Cut(cut),
            Self::Fault(state) => Reply::Fault(state),
            Self::Snapshot(_) => Reply::Ending,
        }
    }
}

/// Where the server finds what it is to do.
pub(crate) struct Desk {
    calls: Receiver<Call>,
    bell: Arc<EventFd>,
    caller: Caller,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Desk")
    }
}

impl Desk {
    /// The desk of an engine.
    pub(crate) fn new(engine: &Engine) -> Result<Self, AttachError> {
        let (sender, calls) = channel();
        let bell = Arc::new(EventFd::new()?);
        let rest = Arc::new(Mutex::new(Instant::now()));
        let caller = Caller { calls: sender, bell: Arc::clone(&bell), reported_times: engine.reported_times(), rest };
        Ok(Self { calls, bell, caller })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Somebody who may order.
    pub(crate) fn caller(&self) -> Caller {
        self.caller.clone()
    }

    /// Does what has been ordered since the last snapshot.
    ///
    /// # Errors
    /// When the drive is lost as a whole.
    pub(crate) fn serve(&self, engine: &mut Engine, at: Instant) -> Result<(), AttachError> {
        self.bell.take();
        self.calls.try_iter().try_for_each(|call| call.serve(engine, at))
    }
}

impl Call {
    fn serve(self, engine: &mut Engine, at: Instant) -> Result<(), AttachError> {
        let got = match self.what {
            What::Snapshot(empty) => engine.snapshot(empty, at).map(|snapshot| Got::Snapshot(Box::new(snapshot))),
            What::Cut => engine.power_cut(at).map(Got::Cut),
            What::Fault(order) => engine.fault(&order, at).map(Got::Fault),
        };
        let got = match got {
            Err(error @ (AttachError::NoPowerCuts | AttachError::Refused(_))) => Err(error.to_string()),
            got => Ok(got?),
        };
        if let Err(unsent) = self.answer.send(got)
            && let Ok(Got::Snapshot(snapshot)) = unsent.0
        {
            engine.restore_times(&snapshot.times);
        }
        Ok(())
    }
}

/// Orders something of the drive, from another thread.
#[derive(Clone)]
pub(crate) struct Caller {
    calls: Sender<Call>,
    bell: Arc<EventFd>,
    /// All times up to the last snapshot.
    reported_times: Arc<Mutex<Times>>,
    /// When the next order may come.
    rest: Arc<Mutex<Instant>>,
}

impl Caller {
    /// Does what is ordered, as soon as the drive comes to it.
    pub(crate) fn order(&self, order: Command) -> Reply {
        let told = match order {
            Command::Stat => self.stat().map(|stat| Reply::Stat(Box::new(stat))),
            Command::Cut => self.call(What::Cut).map(Got::told),
            Command::Fault(order) => self.call(What::Fault(order)).map(Got::told),
        };
        told.unwrap_or_else(|told| told)
    }

    /// What the drive is doing; or what is said instead.
    pub(crate) fn stat(&self) -> Result<DeviceStat, Reply> {
        let Got::Snapshot(snapshot) = self.call(What::Snapshot(Box::default()))? else { return Err(Reply::Ending) };
        let mut times = self.reported_times.lock().unwrap_or_else(PoisonError::into_inner);
        times.merge(&snapshot.times);
        Ok(DeviceStat::new(*snapshot, &times))
    }

    fn call(&self, what: What) -> Result<Got, Reply> {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        std::thread::sleep(rest.saturating_duration_since(Instant::now()));
        let (answer, answered) = sync_channel(1);
        self.calls.send(Call { what, answer }).map_err(|_| Reply::Ending)?;
        self.bell.notify();
        let got = answered.recv().map_err(|_| Reply::Ending)?;
        *rest = Instant::now() + REST;
        got.map_err(Reply::Error)
    }
}
