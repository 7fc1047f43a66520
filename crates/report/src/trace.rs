//! The results of the `trace` verbs.

use flashwise_trace::replay::ReplayReport;
use flashwise_trace::{Conversion, Losses, TraceClock, TraceFormat, TraceReader, TraceSummary};
use flashwise_tune::sqlite::{TableTraffic, TpccRun, TpccTransaction};
use serde::Serialize;
use std::collections::BTreeMap;

/// Where a trace comes from, and what was decided about it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceOrigin {
    /// The file, or `standard input`.
    pub trace: String,
    /// How it is written.
    pub format: TraceFormat,
    /// Why it is taken for that.
    pub format_reason: String,
    /// How it is packed, the outermost first: none, or such as gzip, tar.
    pub compression: String,
    /// What its times count from.
    pub clock: TraceClock,
    /// Bad lines that were passed over.
    pub skipped_lines: u64,
    /// Remarks on contents of the trace that the requests do not show, a sentence each.
    pub remarks: Vec<String>,
}

impl TraceOrigin {
    /// Of a reader that has come to its end.
    pub fn of(reader: &TraceReader) -> Self {
        let detection = reader.detection();
        Self {
            trace: reader.name().to_owned(),
            format: detection.format,
            format_reason: detection.reason.to_owned(),
            compression: reader.packing(),
            clock: reader.clock(),
            skipped_lines: reader.skipped(),
            remarks: reader.remarks(),
        }
    }
}

/// What `trace info` gives.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceInfo {
    /// `flashwise.trace-info`.
    pub schema: &'static str,
    /// 1.
    pub schema_version: u32,
    /// The trace.
    #[serde(flatten)]
    pub origin: TraceOrigin,
    /// Files or disks that it names, the first 100.
    pub files: Vec<String>,
    /// Its requests in numbers.
    pub summary: TraceSummary,
}

/// Files that are listed.
const TOLD_FILES: usize = 100;

impl TraceInfo {
    /// Of a reader that has come to its end.
    pub fn new(reader: &TraceReader, summary: TraceSummary) -> Self {
        let files = reader.files().iter().take(TOLD_FILES).cloned().collect();
        Self { schema: "flashwise.trace-info", schema_version: 1, origin: TraceOrigin::of(reader), files, summary }
    }
}

/// What `trace convert` and `trace generate` give.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceConversion {
    /// `flashwise.trace-conversion`.
    pub schema: &'static str,
    /// 1.
    pub schema_version: u32,
    /// The trace that was read; none where it was generated.
    #[serde(flatten)]
    pub origin: Option<TraceOrigin>,
    /// The file that was written.
    pub output: String,
    /// How it is written.
    pub output_format: TraceFormat,
    /// Requests that were written.
    pub written: u64,
    /// Requests earlier than the first one: times count from the earliest.
    pub early: u64,
    /// What the format cannot hold.
    pub losses: TraceLosses,
}

/// What did not fit the format that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TraceLosses {
    /// Trims and writes of zeros that were left out.
    pub trims_left_out: u64,
    /// Flushes that were left out.
    pub flushes_left_out: u64,
    /// Requests of 0 bytes that were left out.
    pub empty_left_out: u64,
    /// Requests that were widened to whole sectors.
    pub widened: u64,
    /// Files that were written as devices, each as its number.
    pub files_as_devices: u64,
    /// Devices and files that are laid over one another, where the format has none.
    pub merged: u64,
}

impl TraceConversion {
    /// Of a trace that was written.
    pub fn new(origin: Option<TraceOrigin>, output: String, output_format: TraceFormat, told: Conversion) -> Self {
        let Losses { trims_left_out, flushes_left_out, widened, empty_left_out, files_as_devices, merged } =
            told.losses;
        Self {
            schema: "flashwise.trace-conversion",
            schema_version: 1,
            origin,
            output,
            output_format,
            written: told.written,
            early: told.early,
            losses: TraceLosses { trims_left_out, flushes_left_out, empty_left_out, widened, files_as_devices, merged },
        }
    }
}

/// What `trace tpcc` gives.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceTpcc {
    /// The trace that was written; its schema is `flashwise.trace-tpcc`.
    #[serde(flatten)]
    pub conversion: TraceConversion,
    /// Transactions of each kind.
    pub transactions: BTreeMap<TpccTransaction, u64>,
    /// New-Orders among them that were undone.
    pub undone: u64,
    /// Pages of the database at the end.
    pub pages: u64,
    /// By table and index, most accessed pages first.
    pub tables: Vec<TableTraffic>,
}

impl TraceTpcc {
    /// Of a run whose trace was written.
    pub fn new(conversion: TraceConversion, run: TpccRun) -> Self {
        let TpccRun { transactions, rolled_back: undone, pages, tables, .. } = run;
        let conversion = TraceConversion { schema: "flashwise.trace-tpcc", ..conversion };
        Self { conversion, transactions, undone, pages, tables }
    }
}

/// What `trace replay` gives.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceReplayed {
    /// `flashwise.trace-replay`.
    pub schema: &'static str,
    /// 1.
    pub schema_version: u32,
    /// The trace or the workload.
    pub trace: String,
    /// The drive, as the user named it.
    pub target: String,
    /// The clock: virtual or wall.
    pub clock: flashwise_block::Clock,
    /// Requests in flight, in a closed loop.
    pub queue_depth: Option<u32>,
    /// How it went.
    #[serde(flatten)]
    pub report: ReplayReport,
}
