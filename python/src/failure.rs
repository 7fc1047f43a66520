//! Failures, as exceptions of the package with the words of the command line.

use flashwise_block::{BlockError, shown};
use flashwise_bufferpool::PoolError;
use flashwise_profile::ProfileError;
use flashwise_report::ReportError;
use flashwise_sim::SimulationError;
use flashwise_sim::sweep::SweepError;
use flashwise_ssd::SsdError;
use flashwise_studies::StudyError;
use flashwise_trace::TraceError;
use flashwise_trace::workload::WorkloadError;
use flashwise_tune::TuneError;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

/// Why a call gives no result.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
}

/// The exception that is raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `flashwise.Error`.
    Error,
    /// `flashwise.UsageError`: the arguments make no sense.
    Usage,
    /// `flashwise.RefusedError`: it could lose data.
    Refused,
    /// `KeyboardInterrupt`.
    Interrupted,
}

impl Failure {
    pub(crate) fn error(message: impl ToString) -> Self {
        Self { kind: Kind::Error, message: message.to_string() }
    }

    pub(crate) fn usage(message: impl ToString) -> Self {
        Self { kind: Kind::Usage, message: message.to_string() }
    }

    pub(crate) fn refused(message: impl ToString) -> Self {
        Self { kind: Kind::Refused, message: message.to_string() }
    }

    fn interrupted() -> Self {
        Self { kind: Kind::Interrupted, message: "interrupted".to_owned() }
    }

    /// A file that cannot be read.
    pub(crate) fn file(path: &str, error: &std::io::Error) -> Self {
        let words = error.to_string();
        let words = words.split(" (os error").next().unwrap_or_default();
        Self::error(format!("{path}: {words}"))
    }

    /// The exception.
    pub(crate) fn raise(self, py: Python<'_>) -> PyErr {
        let class = match self.kind {
            Kind::Error => "Error",
            Kind::Usage => "UsageError",
            Kind::Refused => "RefusedError",
            Kind::Interrupted => return PyKeyboardInterrupt::new_err(()),
        };
        let message = shown::line(self.message.trim()).into_owned();
        let raised = py.import("flashwise._errors").and_then(|module| module.getattr(class)?.call1((message,)));
        match raised {
            Ok(exception) => PyErr::from_value(exception),
            Err(error) => error,
        }
    }
}

impl From<TuneError> for Failure {
    fn from(error: TuneError) -> Self {
        match &error {
            error if error.is_interrupt() => Self::interrupted(),
            error if error.is_refusal() => Self::refused(error),
            TuneError::Options(_) | TuneError::Target(_) | TuneError::Drive(SsdError::UnknownPreset { .. }) => {
                Self::usage(error)
            }
            _ => Self::error(error),
        }
    }
}

impl From<BlockError> for Failure {
    fn from(error: BlockError) -> Self {
        TuneError::from(error).into()
    }
}

impl From<SsdError> for Failure {
    fn from(error: SsdError) -> Self {
        TuneError::from(error).into()
    }
}

impl From<SimulationError> for Failure {
    fn from(error: SimulationError) -> Self {
        match &error {
            error if error.is_interrupt() => Self::interrupted(),
            SimulationError::Interval { .. } | SimulationError::Precondition(_) => Self::usage(error),
            _ => Self::error(error),
        }
    }
}

impl From<SweepError> for Failure {
    fn from(error: SweepError) -> Self {
        match error {
            SweepError::NotResults(_) => Self::refused(error),
            SweepError::Device(error) => error.into(),
            SweepError::Stopped(error) => error.into(),
            error => Self::error(error),
        }
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Self {
        if matches!(error, TraceError::Interrupted) { Self::interrupted() } else { Self::error(error) }
    }
}

impl From<PoolError> for Failure {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Interrupted => Self::interrupted(),
            PoolError::Trace(error) => error.into(),
            PoolError::Policy(_) | PoolError::NoFrames => Self::usage(error),
            error => Self::error(error),
        }
    }
}

impl From<StudyError> for Failure {
    fn from(error: StudyError) -> Self {
        if matches!(error, StudyError::Unknown { .. }) { Self::usage(error) } else { Self::error(error) }
    }
}

impl From<WorkloadError> for Failure {
    fn from(error: WorkloadError) -> Self {
        Self::error(error)
    }
}

impl From<ProfileError> for Failure {
    fn from(error: ProfileError) -> Self {
        Self::error(error)
    }
}

impl From<ReportError> for Failure {
    fn from(error: ReportError) -> Self {
        Self::error(error)
    }
}

/// A request that the package itself wrote: what is wrong with it is wrong with the arguments.
impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        let message = flashwise_block::names::with_suggestion(error.to_string());
        Self::usage(message.split(" at line ").next().unwrap_or_default())
    }
}
