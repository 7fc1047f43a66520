//! Every format of the field: a file each, and a line each in [`REGISTRY`].
//!
//! A format has three things: what speaks for it in the first bytes of a file, a reader, and for some a writer. Nothing
//! else of the crate knows any of them by name. `docs/guide/traces.md` has the table of them with their sources.
//!
//! # Adding a format
//!
//! 1. A file here with `recognise` and `open`; its `mod`, its line in [`REGISTRY`] and its variant of [`TraceFormat`].
//! 2. A sample in `crates/trace/tests/`, which the tests of formats and of hostile input take up.
//! 3. Its rows in `docs/guide/traces.md` and `docs/formats/workload.md`.
//!
//! To write it, a type behind `RecordWriter` in `output/`.

pub(crate) mod fields;
pub(crate) mod source;

pub(crate) mod alibaba;
pub(crate) mod arc;
pub(crate) mod baleen;
pub(crate) mod biosnoop;
pub(crate) mod blkparse;
pub(crate) mod blkparse_layout;
pub(crate) mod blktrace;
pub(crate) mod blktrace_files;
pub(crate) mod columns;
pub(crate) mod csv;
pub(crate) mod detect;
pub(crate) mod disksim;
pub(crate) mod etw;
pub(crate) mod fio_iolog;
pub(crate) mod fio_log;
pub(crate) mod fiu;
pub(crate) mod k5cloud;
pub(crate) mod lcs;
pub(crate) mod mqsim;
pub(crate) mod msr;
pub(crate) mod objects;
pub(crate) mod oracle_general;
pub(crate) mod pages;
pub(crate) mod parquet;
pub(crate) mod rwbs;
pub(crate) mod simplessd;
pub(crate) mod spc;
pub(crate) mod strace;
pub(crate) mod systor;
pub(crate) mod table;
pub(crate) mod tencent;
pub(crate) mod thesios;
pub(crate) mod tracefs;
pub(crate) mod u32_be;
pub(crate) mod u32_le;
pub(crate) mod vscsi;
pub(crate) mod vscsi_csv;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::input::Input;
use crate::record::TraceClock;
use detect::Head;
use source::RecordSource;

/// How a trace is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TraceFormat {
    /// Whatever the file's first bytes speak for.
    #[default]
    Auto,
    /// flashwise's own CSV, as captured by the SQLite VFS: a header with names, sizes in bytes, times in ns.
    Csv,
    /// flashwise's own columns in an Apache Parquet file.
    Parquet,
    /// MSR Cambridge CSV: filetime, host, disk, Read or Write, offset, size, response time.
    Msr,
    /// FIU: time, process, sector, sectors, W or R, device, MD5 of the content.
    Fiu,
    /// SPC: application storage unit, block, bytes, r or w, seconds.
    Spc,
    /// DiskSim ASCII: `time_ms device first_sector sectors flags`; time with decimals, flags hexadecimal, bit 0 set is
    /// a read.
    Disksim,
    /// MQSim ASCII: `time_ns device first_sector sectors op`; op 0 is a write, 1 a read.
    Mqsim,
    /// Alibaba 2020: `device,R or W,offset,length,µs`.
    Alibaba,
    /// Tencent CBS: `seconds,sector,sectors,type,volume`; type 0 is a read, 1 a write.
    Tencent,
    /// fio's iolog, version 2 or 3.
    FioIolog,
    /// fio's latency log, written with `log_offset=1`.
    FioLog,
    /// What `blkparse` prints.
    Blkparse,
    /// What `blktrace` records: its binary events.
    Blktrace,
    /// What bcc's `biosnoop` prints.
    Biosnoop,
    /// VMware's vscsiStats, binary, version 1 or 2.
    Vscsi,
    /// The same as text: `version,time,op,size,lbn`.
    VscsiCsv,
    /// libCacheSim's oracleGeneral: packed records of 24 bytes, no operation.
    OracleGeneral,
    /// libCacheSim's lcs, of any version.
    Lcs,
    /// Block events as tracefs or `perf script` prints them.
    Tracefs,
    /// System calls as `strace` prints them: offsets in files.
    Strace,
    /// A page number a line, with or without R or W before it.
    Pages,
    /// Page numbers as little-endian words of 4 bytes.
    U32Le,
    /// Page numbers as big-endian words of 4 bytes.
    U32Be,
    /// SYSTOR '17: seconds, response time, R or W, LUN, offset, size.
    Systor,
    /// Fujitsu K5: `volume,seconds,R or W,offset,length`.
    K5cloud,
    /// Google's Thesios: 17 columns with a header.
    Thesios,
    /// Meta's Tectonic, as Baleen's authors published it.
    Baleen,
    /// Windows's disk events as xperf prints them.
    Etw,
    /// The .lis files of ARC's authors: `first_block blocks 0 number`.
    Arc,
    /// `milliseconds first_sector sectors R or W`, as users of SimpleSSD write it.
    Simplessd,
    /// Any text of columns, by a layout.
    Columns,
}

/// What the reader of a format is given.
pub(crate) struct Units<'a> {
    /// The name of the file, without what packing adds to it.
    pub(crate) name: &'a str,
    /// Bytes of a sector, where the format counts in sectors.
    pub(crate) sector: u64,
    /// Bytes of a page, where it counts in pages.
    pub(crate) page: u64,
    /// Whether objects' numbers are wanted as they are.
    pub(crate) object_ids: bool,
    /// How a line is laid out, for formats that a user describes.
    pub(crate) layout: Option<&'a str>,
}

/// Starts to read; an error says what is wrong with the start of the file.
type Open = fn(Input, &Units<'_>) -> Result<Box<dyn RecordSource>, String>;

/// One format.
pub(crate) struct Entry {
    pub(crate) format: TraceFormat,
    pub(crate) name: &'static str,
    /// In a few words.
    pub(crate) title: &'static str,
    /// What its times count from.
    pub(crate) clock: TraceClock,
    /// What speaks for it, in a sentence.
    pub(crate) recognise: fn(&Head<'_>) -> Option<&'static str>,
    pub(crate) open: Open,
}

macro_rules! registry {
    ($($format:ident $module:ident $name:literal $clock:ident $title:literal,)*) => {
        /// Every format. The first whose mark a file bears is taken, so binary ones with a magic number come first.
        pub(crate) const REGISTRY: &[Entry] = &[$(Entry {
            format: TraceFormat::$format,
            name: $name,
            title: $title,
            clock: TraceClock::$clock,
            recognise: $module::recognise,
            open: $module::open,
        }),*];
    };
}

registry! {
    Parquet       parquet        "parquet"        Start    "flashwise's columns in Apache Parquet",
    Lcs           lcs            "lcs"            Unknown  "libCacheSim lcs",
    Blktrace      blktrace       "blktrace"       Unknown  "blktrace, binary",
    Vscsi         vscsi          "vscsi"          Unknown  "VMware vscsiStats, binary",
    OracleGeneral oracle_general "oracle-general" Unknown  "libCacheSim oracleGeneral",
    Csv           csv            "csv"            Start    "flashwise CSV",
    FioIolog      fio_iolog      "fio-iolog"      Start    "fio iolog, version 2 or 3",
    VscsiCsv      vscsi_csv      "vscsi-csv"      Unknown  "VMware vscsiStats as CSV",
    Thesios       thesios        "thesios"        Unix     "Google Thesios",
    Baleen        baleen         "baleen"         Unix     "Meta Tectonic, of Baleen",
    Etw           etw            "etw"            Start    "Windows disk events of xperf",
    Msr           msr            "msr"            Filetime "MSR Cambridge CSV",
    Alibaba       alibaba        "alibaba"        Unix     "Alibaba block traces 2020",
    Systor        systor         "systor"         Unix     "SYSTOR '17",
    K5cloud       k5cloud        "k5cloud"        Unix     "Fujitsu K5 cloud",
    Spc           spc            "spc"            Start    "SPC",
    Tencent       tencent        "tencent"        Unix     "Tencent CBS",
    FioLog        fio_log        "fio-log"        Start    "fio latency log",
    Fiu           fiu            "fiu"            Unknown  "FIU, with hashes of the content",
    Mqsim         mqsim          "mqsim"          Start    "MQSim ASCII",
    Disksim       disksim        "disksim"        Start    "DiskSim ASCII",
    Simplessd     simplessd      "simplessd"      Start    "ms, sector, sectors, R or W",
    Arc           arc            "arc"            Start    "ARC .lis",
    Blkparse      blkparse       "blkparse"       Start    "blkparse text",
    Biosnoop      biosnoop       "biosnoop"       Start    "bcc biosnoop",
    Tracefs       tracefs        "tracefs"        Unknown  "block events of tracefs or perf script",
    Strace        strace         "strace"         Unknown  "system calls",
    Pages         pages          "pages"          Start    "page numbers, one per line",
    U32Le         u32_le         "u32-le"         Start    "page numbers, little-endian words",
    U32Be         u32_be         "u32-be"         Start    "page numbers, big-endian words",
    Columns       columns        "columns"        Unknown  "columns by a layout, columns:LAYOUT",
}

impl TraceFormat {
    /// Every format that can be read, without `auto`.
    pub fn all() -> impl Iterator<Item = Self> {
        REGISTRY.iter().map(|entry| entry.format)
    }

    /// What it is called in options, workloads and documents.
    pub fn name(self) -> &'static str {
        self.entry().map_or("auto", |entry| entry.name)
    }

    /// In a few words, for people.
    pub fn title(self) -> &'static str {
        self.entry().map_or("detected from the file's first bytes", |entry| entry.title)
    }

    /// What its times count from.
    pub fn clock(self) -> TraceClock {
        self.entry().map_or(TraceClock::Start, |entry| entry.clock)
    }

    /// The format of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        let auto = (name == "auto").then_some(Self::Auto);
        auto.or_else(|| REGISTRY.iter().find(|entry| entry.name == name).map(|entry| entry.format))
    }

    /// The format of a name, and the layout behind it: `columns:offset=1:bytes`, `blkparse:%T.%9t %D %a %d %S %n`.
    pub fn with_layout(text: &str) -> Option<(Self, Option<&str>)> {
        let (name, layout) = text.split_once(':').map_or((text, None), |(name, layout)| (name, Some(layout)));
        let format = Self::of_name(name)?;
        let takes_one = matches!(format, Self::Columns | Self::Blkparse);
        (layout.is_none() || takes_one).then_some((format, layout))
    }

    pub(crate) fn entry(self) -> Option<&'static Entry> {
        REGISTRY.iter().find(|entry| entry.format == self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_one_line_in_the_registry_and_one_name() {
        let schema = schemars::schema_for!(TraceFormat).to_value().to_string();
        for (index, entry) in REGISTRY.iter().enumerate() {
            assert_eq!(serde_json::to_value(entry.format).unwrap(), entry.name);
            assert_eq!(TraceFormat::of_name(entry.name), Some(entry.format));
            assert!(REGISTRY[..index].iter().all(|other| other.format != entry.format), "{}", entry.name);
        }
        assert_eq!(schema.matches("\"const\"").count(), REGISTRY.len() + 1);
        assert_eq!(TraceFormat::of_name("auto"), Some(TraceFormat::Auto));
        assert_eq!(TraceFormat::of_name("spcc"), None);
        assert_eq!(
            TraceFormat::with_layout("columns:offset=1:bytes"),
            Some((TraceFormat::Columns, Some("offset=1:bytes")))
        );
        assert_eq!(TraceFormat::with_layout("msr"), Some((TraceFormat::Msr, None)));
        assert_eq!(TraceFormat::with_layout("msr:x"), None);
    }
}
