//! The long calls: simulations, pools, audits, learning.

use std::path::PathBuf;

use flashwise_audit::{AuditOptions, audit_trace};
use flashwise_block::{ByteSize, Nanos};
use flashwise_bufferpool::cost::DriveModel;
use flashwise_bufferpool::simulate::{PoolPlan, simulate as simulate_pools};
use flashwise_bufferpool::traces::PoolSize;
use flashwise_bufferpool::{AceRequest, PageTrace, PolicySpec, Prefetch, TraceOptions, Unit};
use flashwise_learn::score::score;
use flashwise_learn::{Effort, learn as learn_device};
use flashwise_report::audit::AuditDocument;
use flashwise_sim::{Precondition, SimulationOptions};
use flashwise_trace::{TraceFormat, TraceReader};
use flashwise_truth::truth;
use flashwise_tune::{Host, LearnRequest, ProgramTime, RawOptions, Target, free_memory};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::document::{Content, Document};
use crate::failure::Failure;
use crate::input::{Amount, Limits, Text, TraceInput, WorkloadInput, with_failures};
use crate::policy::{Fault, policy_of};
use crate::running;

pub(crate) fn parsed<'a, T: Deserialize<'a>>(py: Python<'_>, request: &'a str) -> PyResult<T> {
    serde_json::from_str(request).map_err(|error| Failure::from(error).raise(py))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SimulateRequest {
    device: Text,
    workload: WorkloadInput,
    limits: Limits,
    precondition: Precondition,
    interval: Option<Amount<Nanos>>,
    fail: Vec<(u32, Amount<Nanos>)>,
}

/// A workload on a simulated drive or array.
#[pyfunction]
#[pyo3(signature = (request, listener = None))]
pub(crate) fn simulate(py: Python<'_>, request: &str, listener: Option<&Bound<'_, PyAny>>) -> PyResult<Document> {
    let request: SimulateRequest = parsed(py, request)?;
    running::run(py, listener, move |mut reporter| {
        let machine = with_failures(request.device.machine()?, &request.device.path, &request.fail)?;
        let (workload, base) = request.workload.workload(&machine, &request.limits)?;
        let options = SimulationOptions {
            precondition: request.precondition,
            interval: request.interval.map(|interval| interval.0),
        };
        let simulation = machine.simulate(&workload, &base, &options, &mut reporter)?;
        Ok(Document(Content::Simulation(Box::new(simulation))))
    })
}

/// Where a pool's accesses come from.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Accesses {
    Trace(TraceInput),
    /// Numbers of pages, each with whether it is written.
    Pages(Vec<(u64, bool)>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PoolRequest {
    accesses: Accesses,
    most_accesses: Option<u64>,
    unit: String,
    /// Names; none where the next policy in Python stands.
    policies: Vec<Option<String>>,
    frames: Vec<u64>,
    pool_sizes: Vec<Amount<ByteSize>>,
    ace: bool,
    compare: bool,
    write_back_batch: Option<u32>,
    near: bool,
    evict: Option<u32>,
    prefetch: String,
    alpha: Option<f64>,
    kr: Option<u64>,
    kw: Option<u64>,
    profile: Option<Text>,
    drive: Option<Text>,
    jobs: usize,
}

fn chosen<T>(what: &str, name: &str, values: &[(&str, T)]) -> Result<T, Failure>
where
    T: Copy,
{
    let names = || flashwise_block::names::choices(name, values.iter().map(|(known, _)| *known));
    let found = values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    found.ok_or_else(|| Failure::usage(format!("unknown {what} '{name}': {}", names())))
}

impl PoolRequest {
    fn trace(&self) -> Result<PageTrace, Failure> {
        let units = [("auto", Unit::Auto), ("page", Unit::Page), ("request", Unit::Request)];
        let unit = chosen("unit", &self.unit, &units)?;
        match &self.accesses {
            Accesses::Trace(trace) => {
                let options = TraceOptions { reading: trace.reading()?, unit, accesses: self.most_accesses };
                Ok(PageTrace::open(&trace.path, &options)?.0)
            }
            Accesses::Pages(pages) => {
                let most = self.most_accesses.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
                Ok(PageTrace::of_pages("pages", pages.iter().copied().take(most))?)
            }
        }
    }

    fn model(&self, page_bytes: u64) -> Result<Option<DriveModel>, Failure> {
        match (self.alpha, self.kr, self.kw, &self.profile) {
            (Some(asymmetry), Some(read_concurrency), Some(write_concurrency), None) => {
                if !(asymmetry.is_finite() && asymmetry > 0.0) || read_concurrency == 0 || write_concurrency == 0 {
                    return Err(Failure::usage("alpha must be a number above 0, kr and kw at least 1"));
                }
                Ok(Some(DriveModel { asymmetry, read_concurrency, write_concurrency }))
            }
            (None, None, None, None) => Ok(None),
            (None, None, None, Some(profile)) => {
                let missing = || {
                    let path = &profile.path;
                    let words = "α, k_r or k_w is missing; learn the drive again, or give alpha, kr and kw";
                    Failure::error(format!("{path}: {words}"))
                };
                DriveModel::of_profile(&profile.profile()?, page_bytes).map(Some).ok_or_else(missing)
            }
            _ => Err(Failure::usage("give alpha, kr and kw together, or a profile instead")),
        }
    }
}

/// Buffer pools on a trace; `own` are policies in Python.
#[pyfunction]
#[pyo3(signature = (request, own, listener = None))]
pub(crate) fn pool(
    py: Python<'_>,
    request: &str,
    own: Vec<Bound<'_, PyAny>>,
    listener: Option<&Bound<'_, PyAny>>,
) -> PyResult<Document> {
    let request: PoolRequest = parsed(py, request)?;
    let fault = Fault::default();
    let own = own.iter().map(|object| policy_of(object, &fault)).collect::<PyResult<Vec<_>>>()?;
    let ended = running::run(py, listener, move |reporter| {
        reporter.note("reading the trace", 0.0);
        let mut trace = request.trace()?;
        let prefetches = [
            ("none", Prefetch::None),
            ("sequential", Prefetch::Sequential),
            ("history", Prefetch::History),
            ("both", Prefetch::Both),
        ];
        let prefetch = chosen("prefetch", &request.prefetch, &prefetches)?;
        let model = request.model(trace.page_bytes())?;
        let PoolRequest { ace, compare, write_back_batch, near, evict, .. } = request;
        let asked = AceRequest { ace, compare, write_back_batch, near, evict };
        let write_backs = asked.write_backs(model, prefetch);
        if !own.is_empty() && write_backs.iter().any(|ace| *ace != flashwise_bufferpool::Ace::CLASSIC) {
            return Err(Failure::usage("a policy in Python names one victim at a time; ACE needs a built-in policy"));
        }
        let mut own = own.into_iter();
        let mut policies = Vec::new();
        for name in &request.policies {
            match name {
                Some(name) => policies.extend(PolicySpec::parse_all(name).map_err(Failure::usage)?),
                None => policies.extend(own.next()),
            }
        }
        let (pages, page_bytes) = (trace.pages() as u64, trace.page_bytes());
        let of_size = request.pool_sizes.iter().map(|size| PoolSize::Bytes(size.0.0).frames(pages, page_bytes));
        let plan = PoolPlan {
            policies,
            frames: request.frames.iter().copied().chain(of_size).collect(),
            write_backs,
            prefetch,
            model,
            drive: request.drive.as_ref().map(Text::drive).transpose()?,
            jobs: request.jobs,
        };
        reporter.note("simulating pools", 0.0);
        let report = simulate_pools(&mut trace, &plan, &|fraction| reporter.note("simulating pools", fraction))?;
        Ok(Document(Content::Pool(Box::new(report))))
    });
    match fault.take() {
        Some(error) => Err(error),
        None => ended,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AuditRequest {
    trace: TraceInput,
    profile: Text,
    window: usize,
}

/// A trace against a profile.
#[pyfunction]
#[pyo3(signature = (request, listener = None))]
pub(crate) fn audit(py: Python<'_>, request: &str, listener: Option<&Bound<'_, PyAny>>) -> PyResult<Document> {
    let AuditRequest { trace, profile, window } = parsed(py, request)?;
    running::run(py, listener, move |_| {
        let profile = profile.profile()?;
        let mut reader = TraceReader::open(&trace.path, &trace.reading()?)?;
        let is_above_page_cache = reader.detection().format == TraceFormat::Strace;
        let options = AuditOptions { window_requests: window, is_above_page_cache, ..AuditOptions::default() };
        let audit = audit_trace(&mut reader, &profile, &options, None)?;
        let name = trace.path.display().to_string();
        let document = AuditDocument::new(name, reader.remarks(), &profile, audit);
        Ok(Document(Content::Audit(Box::new(document))))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LearnCall {
    target: String,
    /// The file of a simulated drive that is in no file.
    device: Option<Text>,
    file_system: Option<String>,
    seed: u64,
    effort: Option<String>,
    max_write: Option<Amount<ByteSize>>,
    time_budget: Option<Amount<Nanos>>,
    request_sizes: Vec<Amount<ByteSize>>,
    resume: Option<Text>,
    limits: bool,
    card: bool,
    score: bool,
}

impl LearnCall {
    fn target(&self) -> Result<Target, Failure> {
        let target = match &self.device {
            Some(device) => Target::Simulated {
                name: self.target.clone(),
                config: Box::new(device.drive()?),
                host: Host::default(),
            },
            None => Target::parse_with_devices(&self.target, &RawOptions::default())?,
        };
        match (&self.file_system, &target) {
            (None, _) => Ok(target),
            (Some(name), Target::Simulated { .. }) => {
                let host = Host::named(name, free_memory(), ProgramTime::Modelled)?;
                Ok(target.with_host(host))
            }
            (Some(_), _) => Err(Failure::usage(format!("file_system is for simulated drives, and this is {target}"))),
        }
    }
}

/// Learns a drive.
#[pyfunction]
#[pyo3(signature = (request, listener = None))]
pub(crate) fn learn(py: Python<'_>, request: &str, listener: Option<&Bound<'_, PyAny>>) -> PyResult<Document> {
    let request: LearnCall = parsed(py, request)?;
    running::run(py, listener, move |mut reporter| {
        let target = request.target()?;
        let truth = match (request.score, &target) {
            (false, _) => None,
            (true, Target::Simulated { config, .. }) => Some(truth(config)?.parameters),
            (true, _) => return Err(Failure::usage("score needs a simulated drive, whose truth is known")),
        };
        let efforts = [("quick", Effort::Quick), ("thorough", Effort::Thorough)];
        let effort = request.effort.as_deref().map(|name| chosen("effort", name, &efforts)).transpose()?;
        let learn_request = LearnRequest {
            seed: request.seed,
            effort,
            max_write: request.max_write.map(|size| size.0),
            time_budget: request.time_budget.map(|time| time.0),
            request_sizes: request.request_sizes.iter().map(|size| size.0).collect(),
            resume: request.resume.as_ref().map(Text::profile).transpose()?.map(Box::new),
            keep_raw: false,
            limits: request.limits,
            card: request.card,
        };
        if let Some(refusal) = target.plan(learn_request.region(&target))?.refusal() {
            return Err(Failure::refused(refusal));
        }
        let mut device = target.open_as_file(request.seed, learn_request.region(&target))?;
        let options = learn_request.options(&target, device.info());
        let profile = learn_device(&mut *device, &options, &mut reporter).map_err(flashwise_tune::TuneError::from)?;
        let score = truth.map(|truth| Box::new(score(&profile, &truth)));
        Ok(Document(Content::Profile(Box::new(profile), score)))
    })
}

/// Reads a profile.
#[pyfunction]
pub(crate) fn profile(py: Python<'_>, path: PathBuf) -> PyResult<Document> {
    let name = path.display().to_string();
    let read = || {
        let text = flashwise_block::input::read_text(&path).map_err(|error| Failure::file(&name, &error))?;
        Text { text, path: name.clone() }.profile()
    };
    let profile = read().map_err(|failure| failure.raise(py))?;
    Ok(Document(Content::Profile(Box::new(profile), None)))
}
