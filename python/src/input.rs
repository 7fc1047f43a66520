//! What the package's Python half asks for, as JSON: drives, workloads, traces, profiles, sizes and times.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use flashwise_array::FailureConfig;
use flashwise_block::{ByteSize, Nanos};
use flashwise_profile::DeviceProfile;
use flashwise_sim::Machine;
use flashwise_ssd::DeviceConfig;
use flashwise_trace::workload::{Access, Arrivals, FioJob, Overrides, Rw, Size, Workload};
use flashwise_trace::{ReadOptions, TraceFormat};
use serde::{Deserialize, Deserializer, de};

use crate::failure::Failure;

/// A number in the base unit, or a text with a unit: bytes or `64k`, nanoseconds or `10ms`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amount<T>(pub(crate) T);

#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(u64),
    Text(String),
}

impl<'de, T: FromStr + From<Base>> Deserialize<'de> for Amount<T>
where
    T::Err: std::fmt::Display,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match NumberOrText::deserialize(deserializer)? {
            NumberOrText::Number(number) => Base(number).into(),
            NumberOrText::Text(text) => text.parse().map_err(de::Error::custom)?,
        }))
    }
}

/// A number in the base unit.
pub(crate) struct Base(u64);

impl From<Base> for ByteSize {
    fn from(base: Base) -> Self {
        Self(base.0)
    }
}

impl From<Base> for Nanos {
    fn from(base: Base) -> Self {
        Self(base.0)
    }
}

/// A text, and the file that it is of or stands for.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) path: String,
}

impl Text {
    pub(crate) fn machine(&self) -> Result<Machine, Failure> {
        Machine::from_toml(&self.text, &self.path).map_err(Failure::error)
    }

    pub(crate) fn drive(&self) -> Result<DeviceConfig, Failure> {
        DeviceConfig::from_toml(&self.text, &self.path).map_err(Failure::error)
    }

    pub(crate) fn profile(&self) -> Result<DeviceProfile, Failure> {
        Ok(DeviceProfile::from_toml(&self.text, &self.path)?)
    }
}

/// A trace, and how it is read.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TraceInput {
    pub(crate) path: PathBuf,
    /// A format's name, with the layout of its lines behind a colon.
    pub(crate) format: String,
    pub(crate) skip_bad_lines: u64,
    pub(crate) sector_size: Amount<ByteSize>,
    pub(crate) page_size: Amount<ByteSize>,
}

impl TraceInput {
    pub(crate) fn reading(&self) -> Result<ReadOptions, Failure> {
        let names = || std::iter::once(TraceFormat::Auto).chain(TraceFormat::all()).map(TraceFormat::name);
        let unknown = || {
            let names = flashwise_block::names::choices(&self.format, names());
            Failure::usage(format!("unknown trace format '{}': {names}", self.format))
        };
        let (format, layout) = TraceFormat::with_layout(&self.format).ok_or_else(unknown)?;
        Ok(ReadOptions {
            format,
            layout: layout.map(Into::into),
            skip_bad_lines: self.skip_bad_lines,
            sector_bytes: self.sector_size.0.0.max(1),
            page_bytes: self.page_size.0.0.max(1),
            object_ids: false,
        })
    }
}

/// A workload, in any of the forms that there are.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkloadInput {
    /// A name, or a file: TOML or a trace.
    Named(PathBuf),
    /// The content of a file, with traces relative to the current folder.
    Toml(String),
    /// Options as fio has them.
    Fio(Box<Fio>),
}

/// Options as fio has them; what is missing has fio's default.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fio {
    rw: String,
    bs: Option<Amount<ByteSize>>,
    bssplit: Option<String>,
    size: Option<Amount<ByteSize>>,
    iodepth: Option<u32>,
    rwmixread: Option<u8>,
    random_distribution: Option<String>,
    thinktime: Option<Amount<Nanos>>,
    rate_iops: Option<u32>,
    rate_process: Option<String>,
}

impl Fio {
    fn job(&self, limits: &Limits) -> Result<FioJob, Failure> {
        let usual = FioJob::new(self.rw.parse::<Rw>().map_err(Failure::usage)?);
        if self.iodepth == Some(0) || self.rate_iops == Some(0) || self.rwmixread.is_some_and(|share| share > 100) {
            return Err(Failure::usage("iodepth and rate_iops are at least 1, rwmixread is from 0 to 100"));
        }
        let arrivals = match self.rate_process.as_deref() {
            None | Some("linear") => Arrivals::Constant,
            Some("poisson") => Arrivals::Poisson,
            Some(other) => {
                return Err(Failure::usage(format!("unknown rate_process '{other}': choose linear or poisson")));
            }
        };
        Ok(FioJob {
            bs: self.bs.map_or(usual.bs, |size| size.0),
            bssplit: self.bssplit.as_deref().map(Size::of_fio).transpose().map_err(Failure::usage)?,
            size: self.size.map(|size| size.0),
            iodepth: self.iodepth.unwrap_or(usual.iodepth),
            rwmixread: self.rwmixread.unwrap_or(usual.rwmixread),
            random_distribution: self
                .random_distribution
                .as_deref()
                .map(Access::of_fio)
                .transpose()
                .map_err(Failure::usage)?,
            thinktime: self.thinktime.map_or(Nanos(0), |time| time.0),
            rate_iops: self.rate_iops,
            rate_process: arrivals,
            requests: limits.requests,
            runtime: limits.runtime.map(|time| time.0),
            ..usual
        })
    }
}

/// What is changed of a workload.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    seed: Option<u64>,
    requests: Option<u64>,
    runtime: Option<Amount<Nanos>>,
    buffer_compress_percentage: Option<u8>,
    dedupe_percentage: Option<u8>,
    fold: bool,
    widen: bool,
}

impl WorkloadInput {
    /// The workload on a machine, and the folder that its traces are relative to.
    pub(crate) fn workload(&self, machine: &Machine, limits: &Limits) -> Result<(Workload, PathBuf), Failure> {
        let mut base = PathBuf::new();
        let mut workload = match self {
            Self::Toml(text) => Workload::from_toml(text, "workload")?,
            Self::Fio(fio) => fio.job(limits)?.workload(machine.capacity()).map_err(Failure::usage)?,
            Self::Named(path) if path.extension().is_some_and(|extension| extension == "toml") => {
                path.parent().unwrap_or(Path::new("")).clone_into(&mut base);
                Workload::read(path)?
            }
            Self::Named(path) => {
                let requests = limits.requests.unwrap_or(Workload::NAMED_REQUESTS);
                let name = path.to_str().filter(|_| !path.exists());
                match name.and_then(|name| Workload::named(name, requests)) {
                    Some(workload) => workload,
                    None => Workload::of_trace(path, &ReadOptions::default())?.0,
                }
            }
        };
        for trace in workload.flows.iter_mut().filter_map(|flow| flow.trace.as_mut()) {
            (trace.fold, trace.widen) = (trace.fold || limits.fold, trace.widen || limits.widen);
        }
        let workload = workload.with(&Overrides {
            seed: limits.seed,
            requests: limits.requests,
            runtime: limits.runtime.map(|time| time.0),
            compress_percentage: limits.buffer_compress_percentage,
            dedupe_percentage: limits.dedupe_percentage,
        })?;
        Ok((workload, base))
    }
}

/// Lets members of an array fail, beside those that its file lets fail.
pub(crate) fn with_failures(
    machine: Machine,
    name: &str,
    failures: &[(u32, Amount<Nanos>)],
) -> Result<Machine, Failure> {
    match machine {
        Machine::Array(mut array) => {
            let failure = |&(member, at): &(u32, Amount<Nanos>)| FailureConfig { member, at_ns: at.0.0 };
            array.config.failures.extend(failures.iter().map(failure));
            array.config.check(&array.member, name)?;
            Ok(Machine::Array(array))
        }
        Machine::Drive(_) if !failures.is_empty() => {
            Err(Failure::usage(format!("{name}: fail is for arrays, and this is a single drive")))
        }
        Machine::Volume(_) if !failures.is_empty() => {
            Err(Failure::usage(format!("{name}: fail is for arrays, and this is a volume")))
        }
        drive => Ok(drive),
    }
}
