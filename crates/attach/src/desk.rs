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

use crate::control::{Order, Told};
use crate::engine::{Engine, Look, Times};
use crate::event::Bell;
use crate::fault::FaultOrder;
use crate::{AttachError, DeviceStat, FaultState, PowerCut};

/// How long who orders waits between two orders at least.
const REST: Duration = Duration::from_millis(10);

/// An order, with where its answer goes.
pub(crate) struct Call {
    what: What,
    answer: SyncSender<Result<Got, String>>,
}

enum What {
    Look(Box<Times>),
    Cut,
    Fault(FaultOrder),
}

enum Got {
    Look(Box<Look>),
    Cut(PowerCut),
    Fault(FaultState),
}

impl Got {
    /// What is said of it; a look is told in full by who has looked.
    fn told(self) -> Told {
        match self {
            Self::Cut(cut) => Told::Cut(cut),
            Self::Fault(state) => Told::Fault(state),
            Self::Look(_) => Told::Ending,
        }
    }
}

/// Where the server finds what it is to do.
pub(crate) struct Desk {
    calls: Receiver<Call>,
    bell: Arc<Bell>,
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
        let bell = Arc::new(Bell::new()?);
        let rest = Arc::new(Mutex::new(Instant::now()));
        let caller = Caller { calls: sender, bell: Arc::clone(&bell), looked_at: engine.looked_at(), rest };
        Ok(Self { calls, bell, caller })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Somebody who may order.
    pub(crate) fn caller(&self) -> Caller {
        self.caller.clone()
    }

    /// Does what has been ordered since the last look.
    ///
    /// # Errors
    /// When the drive is lost as a whole.
    pub(crate) fn serve(&self, engine: &mut Engine, at: Instant) -> Result<(), AttachError> {
        self.bell.rings();
        self.calls.try_iter().try_for_each(|call| call.serve(engine, at))
    }
}

impl Call {
    fn serve(self, engine: &mut Engine, at: Instant) -> Result<(), AttachError> {
        let got = match self.what {
            What::Look(empty) => engine.look(empty, at).map(|look| Got::Look(Box::new(look))),
            What::Cut => engine.power_cut(at).map(Got::Cut),
            What::Fault(order) => engine.fault(&order, at).map(Got::Fault),
        };
        let got = match got {
            Err(error @ (AttachError::NoPowerCuts | AttachError::Order(_))) => Err(error.to_string()),
            got => Ok(got?),
        };
        if let Err(unsent) = self.answer.send(got)
            && let Ok(Got::Look(look)) = unsent.0
        {
            engine.take_back(&look.times);
        }
        Ok(())
    }
}

/// Orders something of the drive, from another thread.
#[derive(Clone)]
pub(crate) struct Caller {
    calls: Sender<Call>,
    bell: Arc<Bell>,
    /// All times up to the last look.
    looked_at: Arc<Mutex<Times>>,
    /// When the next order may come.
    rest: Arc<Mutex<Instant>>,
}

impl Caller {
    /// Does what is ordered, as soon as the drive comes to it.
    pub(crate) fn order(&self, order: Order) -> Told {
        let told = match order {
            Order::Stat => self.stat().map(|stat| Told::Stat(Box::new(stat))),
            Order::Cut => self.call(What::Cut).map(Got::told),
            Order::Fault(order) => self.call(What::Fault(order)).map(Got::told),
        };
        told.unwrap_or_else(|told| told)
    }

    /// What the drive is doing; or what is said instead.
    pub(crate) fn stat(&self) -> Result<DeviceStat, Told> {
        let Got::Look(look) = self.call(What::Look(Box::default()))? else { return Err(Told::Ending) };
        let mut times = self.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
        times.merge(&look.times);
        Ok(DeviceStat::new(*look, &times))
    }

    fn call(&self, what: What) -> Result<Got, Told> {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        std::thread::sleep(rest.saturating_duration_since(Instant::now()));
        let (answer, answered) = sync_channel(1);
        self.calls.send(Call { what, answer }).map_err(|_| Told::Ending)?;
        self.bell.ring();
        let got = answered.recv().map_err(|_| Told::Ending)?;
        *rest = Instant::now() + REST;
        got.map_err(Told::Error)
    }
}
