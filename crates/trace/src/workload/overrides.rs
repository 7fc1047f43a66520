//! What a command line changes of a workload that is given by name, by file or as a trace.

use std::path::Path;

use flashwise_block::Nanos;

use super::{Content, Flow, TraceReplay, Workload, WorkloadError};
use crate::{ReadOptions, TraceError, TraceReader};

/// Values that take the place of a workload's own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Overrides {
    /// Seed of every random choice.
    pub seed: Option<u64>,
    /// Most requests of each flow.
    pub requests: Option<u64>,
    /// Most time of each flow, on the drive's clock.
    pub runtime: Option<Nanos>,
    /// Percentage that compression saves.
    pub compress_percentage: Option<u8>,
    /// Percentage of written pages that are equal to earlier ones.
    pub dedupe_percentage: Option<u8>,
}

impl Workload {
    /// A workload of one trace, and the reader that detected its format; `name` is the file's own.
    ///
    /// # Errors
    /// When the trace cannot be opened, or its format is not recognised.
    pub fn of_trace(path: &Path, reading: &ReadOptions) -> Result<(Self, TraceReader), TraceError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let reader = TraceReader::open(path, reading)?;
        let mut trace = TraceReplay::new(path, reader.detection().format);
        trace.layout = reading.layout.as_deref().map(str::to_owned);
        Ok((Self { name: name.clone(), seed: 1, content: None, flows: vec![Flow::replay(name, trace)] }, reader))
    }

    /// The workload with other values.
    ///
    /// # Errors
    /// When they make no sense.
    pub fn with(mut self, overrides: &Overrides) -> Result<Self, WorkloadError> {
        self.seed = overrides.seed.unwrap_or(self.seed);
        for flow in &mut self.flows {
            flow.requests = overrides.requests.or(flow.requests);
            flow.duration_ns = overrides.runtime.map(|runtime| runtime.0).or(flow.duration_ns);
        }
        self.content = overrides.content(self.content);
        self.check()?;
        Ok(self)
    }
}

impl Overrides {
    /// Properties of the written data, as far as they are given.
    fn content(&self, own: Option<Content>) -> Option<Content> {
        let (compress, dedupe) = (self.compress_percentage, self.dedupe_percentage);
        if compress.is_none() && dedupe.is_none() {
            return own;
        }
        let own = own.unwrap_or_default();
        Some(Content {
            compress_percentage: compress.map_or(own.compress_percentage, f64::from),
            dedupe_percentage: dedupe.map_or(own.dedupe_percentage, f64::from),
            ..own
        })
    }
}
