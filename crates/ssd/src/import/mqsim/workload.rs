//! MQSim's scenarios of flows, `workload.xml`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use flashwise_trace::workload::{
    Access, Arrivals, Flow, Pacing, Priority, Size, Synthetic, TraceFormat, TraceReplay, Workload, Zone,
};

use super::super::ImportError;
use super::super::section::{Section, parse};
use super::device::Ssd;
use super::{Caching, Notes, RequestsOf, SECTOR};

/// The scenarios of a workload file; a scenario's flows run side by side.
pub(super) struct Scenarios {
    file: String,
    scenarios: Vec<Vec<FlowTags>>,
}

/// The tags that say which part of the drive a flow is on, from channels down to planes.
const PART_TAGS: [&str; 4] = ["Channel_IDs", "Chip_IDs", "Die_IDs", "Plane_IDs"];

/// The part of a drive that a flow is on: the numbers at each level; `None` where the file leaves a level open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Part([Option<BTreeSet<u64>>; 4]);

impl Part {
    pub(super) fn read(flow: &Section<'_>) -> Result<Self, ImportError> {
        let mut part = Self::default();
        for (level, tag) in part.0.iter_mut().zip(PART_TAGS) {
            let Some(text) = flow.text(tag)?.filter(|text| !text.is_empty()) else { continue };
            let numbers = text.split(',').map(|number| number.trim().parse());
            let numbers: Result<BTreeSet<u64>, _> = numbers.collect();
            *level = Some(numbers.map_err(|_| flow.refused(tag, &text, "numbers from 0 on with commas between"))?);
        }
        Ok(part)
    }

    /// A number that is not below the count of its level, with the level's tag.
    fn beyond(&self, counts: [u64; 4]) -> Option<(&'static str, u64)> {
        let levels = self.0.iter().zip(counts).zip(PART_TAGS);
        let mut last = levels.filter_map(|((level, count), tag)| Some((tag, *level.as_ref()?.last()?, count)));
        last.find(|&(_, last, count)| last >= count).map(|(tag, last, _)| (tag, last))
    }

    /// How many there are at each level, where a level that is left open has `counts`.
    pub(super) fn counts(&self, counts: [u64; 4]) -> [u64; 4] {
        let mut kept = counts;
        let levels = kept.iter_mut().zip(&self.0);
        levels.for_each(|(kept, level)| *kept = level.as_ref().map_or(*kept, |level| level.len() as u64));
        kept
    }

    /// The same part with every level named.
    fn named(&self, counts: [u64; 4]) -> [BTreeSet<u64>; 4] {
        std::array::from_fn(|n| self.0[n].clone().unwrap_or_else(|| (0..counts[n]).collect()))
    }
}

/// A flow as the file has it.
struct FlowTags {
    /// Its line, for messages.
    line: u32,
    pub(super) part: Part,
    priority: Priority,
    pub(super) caching: Caching,
    seed: u64,
    kind: FlowKind,
}

enum FlowKind {
    Synthetic(SyntheticTags),
    Trace { path: PathBuf, repeat: u32, requests: Option<u64> },
}

struct SyntheticTags {
    working_set_percent: f64,
    read_percent: f64,
    access: Access,
    size: Size,
    align_bytes: u64,
    pacing: Pacing,
    duration_ns: Option<u64>,
    requests: Option<u64>,
}

impl Scenarios {
    pub(super) fn read(
        file: &str,
        text: &str,
        requests_of: RequestsOf<'_>,
        notes: &mut Notes,
    ) -> Result<Self, ImportError> {
        let document = parse(text, file)?;
        let root = Section::root(file, &document, "MQSim_IO_Scenarios")?;
        let mut scenarios = Vec::new();
        for scenario in root.children() {
            if scenario.name() != "IO_Scenario" {
                return Err(scenario.wrong(format!("<{}> is unknown here; is <IO_Scenario> meant?", scenario.name())));
            }
            let flows = scenario.children().map(|flow| FlowTags::read(&flow, requests_of, notes));
            let flows = flows.collect::<Result<Vec<_>, _>>()?;
            if flows.is_empty() {
                return Err(scenario.wrong("a scenario without a flow".to_owned()));
            }
            if flows.len() > 1 && flows.iter().any(|flow| matches!(flow.kind, FlowKind::Trace { .. })) {
                notes.tell("a trace beside other flows: its places are those of the drive; in MQSim they are those of the flow's share");
            }
            scenarios.push(flows);
        }
        if scenarios.len() > 1 {
            notes.tell("the scenarios, which MQSim runs one after the other, are a workload each");
        }
        Ok(Self { file: file.to_owned(), scenarios })
    }

    /// The part of the drive that all flows are on.
    pub(super) fn part(&self, ssd: &Ssd, notes: &mut Notes) -> Result<Part, ImportError> {
        let counts = ssd.counts();
        let whole = Part::default();
        let mut flows = self.scenarios.iter().flatten();
        let first = flows.next().map_or(&whole, |flow| &flow.part);
        if !ssd.interface_is_nvme {
            // MQSim's SATA drive does not ask its flows.
            if self.scenarios.iter().flatten().any(|flow| flow.part.counts(counts) != counts) {
                notes.tell("<Channel_IDs> and the like: MQSim ignores them where <HostInterface_Type> is SATA");
            }
            return Ok(whole);
        }
        for flow in self.scenarios.iter().flatten() {
            let refused = |reason| ImportError::Syntax { file: self.file.clone(), line: flow.line, reason };
            if let Some((tag, number)) = flow.part.beyond(counts) {
                return Err(refused(format!("<{tag}> names {number}, which the drive does not have")));
            }
            if flow.part.named(counts) != first.named(counts) {
                let reason = "the flows are on different parts of the drive (<Channel_IDs>, <Chip_IDs>, <Die_IDs>, \
                              <Plane_IDs>), and here every flow is on all of it; give them the same numbers, or import \
                              a workload for each part by itself";
                return Err(refused(reason.to_owned()));
            }
        }
        Ok(first.clone())
    }

    /// The flows of the scenario that has most.
    pub(super) fn most_flows(&self) -> u64 {
        self.scenarios.iter().map(|flows| flows.len() as u64).max().unwrap_or(1)
    }

    /// How the drive caches: as its first flow wants it.
    pub(super) fn caching(&self) -> Option<Caching> {
        self.scenarios.iter().flatten().map(|flow| flow.caching).next()
    }

    pub(super) fn workloads(self, ssd: &Ssd) -> Result<Vec<Workload>, ImportError> {
        let several = self.scenarios.len() > 1;
        let workload = |(index, flows): (usize, Vec<FlowTags>)| {
            let count = flows.len() as u64;
            let seed = flows.first().map_or(ssd.seed, |flow| flow.seed) & i64::MAX as u64;
            let flows = flows.into_iter().enumerate().map(|(n, flow)| flow.flow(n as u64, count, ssd)).collect();
            let number = if several { format!(", scenario {}", index + 1) } else { String::new() };
            let workload = Workload { name: format!("MQSim: {}{number}", self.file), seed, content: None, flows };
            workload.check()?;
            Ok(workload)
        };
        self.scenarios.into_iter().enumerate().map(workload).collect()
    }
}

impl FlowTags {
    pub(super) fn read(
        flow: &Section<'_>,
        requests_of: RequestsOf<'_>,
        notes: &mut Notes,
    ) -> Result<Self, ImportError> {
        let priorities = [
            ("URGENT", Priority::Urgent),
            ("HIGH", Priority::High),
            ("MEDIUM", Priority::Medium),
            ("LOW", Priority::Low),
        ];
        let cachings = [
            ("TURNED_OFF", Caching::Off),
            ("WRITE_CACHE", Caching::Write),
            ("READ_CACHE", Caching::Read),
            ("WRITE_READ_CACHE", Caching::Both),
        ];
        let priority = flow.choice("Priority_Class", Priority::High, &priorities)?;
        let caching = flow.choice("Device_Level_Data_Caching_Mode", Caching::Write, &cachings)?;
        let part = Part::read(flow)?;
        let why = "it counts only for preconditioning; flashwise fills the whole drive";
        notes.no_effect(flow, &["Initial_Occupancy_Percentage"], why)?;
        let (kind, seed) = match flow.name() {
            "IO_Flow_Parameter_Set_Synthetic" => {
                (FlowKind::Synthetic(SyntheticTags::read(flow, notes)?), flow.count("Seed", 1)?)
            }
            "IO_Flow_Parameter_Set_Trace_Based" => (Self::read_trace(flow, requests_of, notes)?, 1),
            other => return Err(flow.wrong(format!("<{other}> is unknown in <IO_Scenario>"))),
        };
        flow.finish()?;
        Ok(Self { line: flow.line(), part, priority, caching, seed, kind })
    }

    fn read_trace(flow: &Section<'_>, requests_of: RequestsOf<'_>, notes: &mut Notes) -> Result<FlowKind, ImportError> {
        let Some(path) = flow.text("File_Path")? else { return Err(flow.wrong("<File_Path> is missing".to_owned())) };
        let path = PathBuf::from(path);
        let repeat = flow.value("Relay_Count", 1_u32, "a number of times")?.max(1);
        let percent = flow.number("Percentage_To_Be_Executed", 100.0)?;
        let requests = match (percent < 100.0, repeat) {
            (true, 1) => Some(Self::share_of_trace(flow, &path, percent, requests_of)?),
            (true, _) => {
                notes.tell("<Percentage_To_Be_Executed>: MQSim ignores it where a trace is replayed more than once");
                None
            }
            (false, _) => None,
        };
        notes.no_effect(flow, &["Time_Unit"], "MQSim takes the times of a trace as ns, whatever this says")?;
        notes.tell("traces: a place behind the drive's end is taken modulo its size, as in MQSim (trace.fold)");
        Ok(FlowKind::Trace { path, repeat, requests })
    }

    /// How many requests a share of a trace is.
    fn share_of_trace(
        flow: &Section<'_>,
        path: &Path,
        percent: f64,
        requests_of: RequestsOf<'_>,
    ) -> Result<u64, ImportError> {
        let tag = format!("<Percentage_To_Be_Executed> = {percent}");
        let all = requests_of(path).map_err(|reason| {
            flow.wrong(format!("{tag}: how many requests that is, only the trace tells; {}: {reason}", path.display()))
        })?;
        match (percent / 100.0 * all as f64) as u64 {
            0 => Err(flow.wrong(format!("{tag}: that is none of the {all} requests of {}", path.display()))),
            requests => Ok(requests),
        }
    }

    fn flow(self, index: u64, flows: u64, ssd: &Ssd) -> Flow {
        let (own, pitch) = (ssd.bytes_of_flow(flows), ssd.pitch_of_flow(flows));
        let mut flow = match self.kind {
            FlowKind::Trace { path, repeat, requests } => {
                let mut trace = TraceReplay::new(path, TraceFormat::Mqsim);
                (trace.repeat, trace.fold) = (repeat, true);
                Flow { requests, ..Flow::replay("", trace) }
            }
            FlowKind::Synthetic(tags) => tags.flow(index * pitch, own),
        };
        (flow.name, flow.priority) = (format!("flow-{}", index + 1), self.priority);
        flow
    }
}

impl SyntheticTags {
    pub(super) fn read(flow: &Section<'_>, notes: &mut Notes) -> Result<Self, ImportError> {
        let hot = flow.number("Percentage_of_Hot_Region", 0.0)? / 100.0;
        let access = match flow.choice(
            "Address_Distribution",
            0,
            &[("RANDOM_UNIFORM", 0), ("RANDOM_HOTCOLD", 1), ("STREAMING", 2)],
        )? {
            0 => Access::Random,
            1 => {
                let zones = [Zone { size: hot, traffic: 1.0 - hot }, Zone { size: 1.0 - hot, traffic: hot }];
                Access::HotCold { zones: zones.to_vec(), shuffled: false }
            }
            _ => Access::Sequential,
        };
        let sectors = flow.count("Average_Request_Size", 8)?;
        let variance = flow.count("Variance_Request_Size", 0)?;
        let bytes = |sectors: u64| sectors.saturating_mul(SECTOR);
        let size = match flow.choice("Request_Size_Distribution", false, &[("FIXED", false), ("NORMAL", true)])? {
            false => Size::fixed(bytes(sectors)),
            true => {
                notes.tell("<Variance_Request_Size> is taken as the standard deviation, in sectors");
                Size::Normal { mean_bytes: bytes(sectors), deviation_bytes: bytes(variance) }
            }
        };
        let aligned = flow.flag("Generated_Aligned_Addresses", true)?;
        let unit = flow.count("Address_Alignment_Unit", 16)?;
        let pacing = Self::read_pacing(flow, sectors)?;
        let (stop_ns, total) = (flow.count("Stop_Time", 0)?, flow.count("Total_Requests_To_Generate", 0)?);
        if stop_ns > 0 && total > 0 {
            notes.tell("<Total_Requests_To_Generate>: MQSim ignores it beside a <Stop_Time>");
        }
        notes.no_effect(flow, &["Intensity"], "MQSim ignores it; <Bandwidth> is read instead")?;
        Ok(Self {
            working_set_percent: flow.number("Working_Set_Percentage", 100.0)?.min(100.0),
            read_percent: flow.number("Read_Percentage", 0.0)?.min(100.0),
            access,
            size,
            align_bytes: if aligned { bytes(unit.max(1)) } else { SECTOR },
            pacing,
            duration_ns: (stop_ns > 0).then_some(stop_ns),
            requests: (stop_ns == 0).then_some(total),
        })
    }

    fn read_pacing(flow: &Section<'_>, sectors: u64) -> Result<Pacing, ImportError> {
        let depth = flow.value("Average_No_of_Reqs_in_Queue", 16_u32, "a number of requests")?;
        let bandwidth = flow.count("Bandwidth", 262_144)?;
        let kinds = [("QUEUE_DEPTH", true), ("BANDWIDTH", false)];
        if flow.choice("Synthetic_Generator_Type", true, &kinds)? {
            return Ok(Pacing::Closed { queue_depth: depth, think_ns: 0 });
        }
        let per_s = bandwidth / SECTOR / sectors.max(1);
        match 1_000_000_000_u64.checked_div(per_s) {
            Some(interarrival_ns) => Ok(Pacing::Open { interarrival_ns, arrivals: Arrivals::Poisson }),
            None => Err(flow.refused("Bandwidth", &bandwidth, "bytes a second, at least one request a second")),
        }
    }

    fn flow(self, start: u64, own: u64) -> Flow {
        let mut synthetic = Synthetic::new(self.access, self.size, self.pacing);
        synthetic.read_share = self.read_percent / 100.0;
        synthetic.region_start_bytes = start;
        let region = (own as f64 * self.working_set_percent / 100.0) as u64;
        synthetic.region_bytes = Some((region - region % SECTOR).max(SECTOR));
        synthetic.align_bytes = Some(self.align_bytes);
        Flow { duration_ns: self.duration_ns, requests: self.requests, synthetic: Some(synthetic), ..Flow::default() }
    }
}
