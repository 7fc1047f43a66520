//! MQSim's scenarios of flows, `workload.xml`.

use std::path::{Path, PathBuf};

use flashwise_trace::workload::{
    Access, Arrivals, Flow, Pacing, Priority, Size, Synthetic, TraceFormat, TraceReplay, Workload, Zone,
};

use super::super::ImportError;
use super::super::figure::floor;
use super::super::section::{COUNT_MAX, Section, Xml, readable};
use super::device::Ssd;
use super::parts::{Part, Share, Shares};
use super::{Caching, Notes, RequestsOf, SECTOR, no_effect};

/// Most planes of a drive that is divided among flows.
const PLANES_MAX: u64 = 1 << 20;

/// Most flows of a scenario; MQSim's own limit is below.
const FLOWS_MAX: usize = 4096;

/// The scenarios of a workload file; a scenario's flows run side by side.
pub(super) struct Scenarios {
    file: String,
    scenarios: Vec<Vec<FlowTags>>,
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
        let text = readable(text, file, notes)?;
        let xml = Xml::parse(&text, file)?;
        let root = Section::root(file, &xml, "MQSim_IO_Scenarios")?;
        let mut scenarios = Vec::new();
        for scenario in root.children() {
            if scenario.name() != "IO_Scenario" {
                return Err(
                    scenario.wrong(format!("<{}> is unknown here; did you mean <IO_Scenario>?", scenario.name()))
                );
            }
            let mut flows = Vec::new();
            for child in scenario.children() {
                flows.extend(FlowTags::read(&child, requests_of, notes)?);
            }
            if flows.len() > FLOWS_MAX {
                return Err(
                    scenario.wrong(format!("a scenario has {} flows; at most {FLOWS_MAX} are supported", flows.len()))
                );
            }
            if flows.is_empty() {
                return Err(scenario.wrong("a scenario without a flow".to_owned()));
            }
            scenarios.push(flows);
        }
        if scenarios.len() > 1 {
            notes.add("each scenario, which MQSim runs one after the other, becomes a workload");
        }
        Ok(Self { file: file.to_owned(), scenarios })
    }

    /// Where the flows are, in the order of the scenario that has most of them. A part that all of them are on is the
    /// drive, and the rest of it is left out.
    pub(super) fn shares(&self, ssd: &mut Ssd, notes: &mut Notes) -> Result<Shares, ImportError> {
        let (counts, most) = (ssd.counts(), self.most_flows());
        let mut flows = self.scenarios.iter().flatten();
        if !ssd.interface_is_nvme {
            // MQSim's SATA drive does not ask its flows.
            if flows.any(|flow| flow.part.counts(counts) != counts) {
                notes.add("<Channel_IDs> etc.: MQSim ignores them if <HostInterface_Type> is SATA");
            }
            return Ok(Shares::even(ssd, most));
        }
        for flow in flows {
            if let Some((tag, number)) = flow.part.beyond(counts) {
                return Err(self.refused(flow, format!("<{tag}> names {number}, which the drive does not have")));
            }
        }
        let Some(longest) = self.scenarios.iter().find(|flows| flows.len() as u64 == most) else {
            return Ok(Shares::even(ssd, most));
        };
        for (flow, same) in self.scenarios.iter().flat_map(|flows| flows.iter().zip(longest)) {
            if !flow.part.is_same(&same.part, counts) {
                notes.add(format!(
                    "<Channel_IDs> etc.: the flows of line {} and of line {} in another scenario use different parts \
                     of the drive, but a drive has one partition into domains; here all flows use the whole drive. \
                     Import the scenarios one by one to get a drive for each",
                    flow.line, same.line
                ));
                return Ok(Shares::even(ssd, most));
            }
        }
        if let [first, others @ ..] = &longest[..]
            && others.iter().all(|flow| flow.part.is_same(&first.part, counts))
        {
            ssd.keep_part(&first.part, notes);
            return Ok(Shares::even(ssd, most));
        }
        if ssd.planes_in_all() > PLANES_MAX {
            let reason = format!("a drive of more than {PLANES_MAX} planes is not divided among flows");
            return Err(self.refused(&longest[0], reason));
        }
        let parts: Vec<(&Part, f64)> = longest.iter().map(|flow| (&flow.part, flow.used_share())).collect();
        Ok(Shares::apart(ssd, &parts, notes))
    }

    fn refused(&self, flow: &FlowTags, reason: String) -> ImportError {
        ImportError::Syntax { file: self.file.clone(), line: flow.line, reason }
    }

    /// The flows of the scenario that has most.
    pub(super) fn most_flows(&self) -> u64 {
        self.scenarios.iter().map(|flows| flows.len() as u64).max().unwrap_or(1)
    }

    /// How the drive caches: as its first flow wants it.
    pub(super) fn caching(&self) -> Option<Caching> {
        self.scenarios.iter().flatten().map(|flow| flow.caching).next()
    }

    pub(super) fn workloads(self, ssd: &Ssd, shares: &Shares) -> Result<Vec<Workload>, ImportError> {
        let several = self.scenarios.len() > 1;
        let workload = |(index, flows): (usize, Vec<FlowTags>)| {
            // Flows that are all over the drive share it among those of their scenario.
            let even = shares.domains.is_empty().then(|| Shares::even(ssd, flows.len() as u64));
            let shares = even.as_ref().unwrap_or(shares);
            let seed = flows.first().map_or(ssd.seed, |flow| flow.seed) & COUNT_MAX;
            let flows = flows.into_iter().zip(&shares.of_flows).enumerate();
            let flows = flows.map(|(n, (flow, &share))| flow.flow(n.saturating_add(1), share)).collect();
            let number = if several { format!(", scenario {}", index.saturating_add(1)) } else { String::new() };
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
    ) -> Result<Option<Self>, ImportError> {
        let is_synthetic = match flow.name() {
            "IO_Flow_Parameter_Set_Synthetic" => true,
            "IO_Flow_Parameter_Set_Trace_Based" => false,
            _ => {
                notes.add(flow.is_unknown_in("IO_Scenario"));
                return Ok(None);
            }
        };
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
        let why = "only used for preconditioning; flashwise fills the whole drive";
        no_effect(notes, flow, &["Initial_Occupancy_Percentage"], why)?;
        let (kind, seed) = if is_synthetic {
            (FlowKind::Synthetic(SyntheticTags::read(flow, notes)?), flow.count("Seed", 1)?)
        } else {
            (Self::read_trace(flow, requests_of, notes)?, 1)
        };
        flow.finish(notes);
        Ok(Some(Self { line: flow.line(), part, priority, caching, seed, kind }))
    }

    fn read_trace(flow: &Section<'_>, requests_of: RequestsOf<'_>, notes: &mut Notes) -> Result<FlowKind, ImportError> {
        let Some(path) = flow.text("File_Path")? else { return Err(flow.wrong("<File_Path> is missing".to_owned())) };
        let path = PathBuf::from(path);
        let repeat = notes.within("<Relay_Count>", flow.value("Relay_Count", 1, "a number of times")?, 1, u32::MAX);
        let percent = flow.number("Percentage_To_Be_Executed", 100.0)?;
        let requests = match (percent < 100.0, repeat) {
            (true, 1) => Self::share_of_trace(flow, &path, percent, requests_of, notes)?,
            (true, _) => {
                notes.add("<Percentage_To_Be_Executed>: MQSim ignores it if a trace is replayed more than once");
                None
            }
            (false, _) => None,
        };
        no_effect(notes, flow, &["Time_Unit"], "MQSim reads the times of a trace as ns, whatever this is set to")?;
        notes.add(
            "traces: addresses past the end of the flow's range are taken modulo its size, as in MQSim (trace.fold)",
        );
        Ok(FlowKind::Trace { path, repeat, requests })
    }

    /// How many requests a share of a trace is.
    fn share_of_trace(
        flow: &Section<'_>,
        path: &Path,
        percent: f64,
        requests_of: RequestsOf<'_>,
        notes: &mut Notes,
    ) -> Result<Option<u64>, ImportError> {
        let tag = format!("<Percentage_To_Be_Executed> = {percent}");
        let all = match requests_of(path) {
            Ok(all) => all,
            Err(reason) => {
                notes.add(format!(
                    "{tag}: the number of requests needs the trace; all are replayed unless the flow's 'requests' is set; {}: \
                     {reason}",
                    path.display()
                ));
                return Ok(None);
            }
        };
        match floor(percent / 100.0 * all as f64).unwrap_or(all) {
            0 => Err(flow.wrong(format!("{tag}: that is none of the {all} requests of {}", path.display()))),
            requests => Ok(Some(requests)),
        }
    }

    /// The part of its share that it may come to use.
    fn used_share(&self) -> f64 {
        match &self.kind {
            FlowKind::Synthetic(tags) => tags.working_set_percent / 100.0,
            FlowKind::Trace { .. } => 1.0,
        }
    }

    fn flow(self, number: usize, share: Share) -> Flow {
        let mut flow = match self.kind {
            FlowKind::Trace { path, repeat, requests } => {
                let mut trace = TraceReplay::new(path, TraceFormat::Mqsim);
                (trace.repeat, trace.fold) = (repeat, true);
                if !share.is_all {
                    (trace.region_start_bytes, trace.region_bytes) = (share.start, Some(share.own));
                }
                Flow { requests, ..Flow::replay("", trace) }
            }
            FlowKind::Synthetic(tags) => tags.flow(share.start, share.own),
        };
        (flow.name, flow.priority) = (format!("flow-{number}"), self.priority);
        flow
    }
}

impl SyntheticTags {
    pub(super) fn read(flow: &Section<'_>, notes: &mut Notes) -> Result<Self, ImportError> {
        let hot_percent = flow.number("Percentage_of_Hot_Region", 0.0)?;
        if hot_percent > 100.0 {
            return Err(flow.refused("Percentage_of_Hot_Region", &hot_percent, "at most 100"));
        }
        let hot = hot_percent / 100.0;
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
        let bytes = |tag: &'static str, sectors: u64| {
            let bytes = sectors.checked_mul(SECTOR).filter(|&bytes| bytes <= COUNT_MAX);
            bytes.ok_or_else(|| flow.refused(tag, &sectors, "a number of sectors of less than 2^63 bytes"))
        };
        let size = match flow.choice("Request_Size_Distribution", false, &[("FIXED", false), ("NORMAL", true)])? {
            false => Size::fixed(bytes("Average_Request_Size", sectors)?),
            true => {
                notes.add("<Variance_Request_Size> is used as the standard deviation, in sectors");
                Size::Normal {
                    mean_bytes: bytes("Average_Request_Size", sectors)?,
                    deviation_bytes: bytes("Variance_Request_Size", variance)?,
                }
            }
        };
        let aligned = flow.flag("Generated_Aligned_Addresses", true)?;
        let unit = flow.count("Address_Alignment_Unit", 16)?;
        let pacing = Self::read_pacing(flow, sectors)?;
        let (stop_ns, total) = (flow.count("Stop_Time", 0)?, flow.count("Total_Requests_To_Generate", 0)?);
        if stop_ns > 0 && total > 0 {
            notes.add("<Total_Requests_To_Generate>: MQSim ignores it if there is a <Stop_Time>");
        }
        no_effect(notes, flow, &["Intensity"], "MQSim ignores it and uses <Bandwidth>")?;
        let unit = if aligned { notes.within("<Address_Alignment_Unit>", unit, 1, u64::MAX) } else { unit };
        let mut percent = |tag: &'static str, default: f64| {
            flow.number(tag, default).map(|given| notes.within(&format!("<{tag}>"), given, 0.0, 100.0))
        };
        Ok(Self {
            working_set_percent: percent("Working_Set_Percentage", 100.0)?,
            read_percent: percent("Read_Percentage", 0.0)?,
            access,
            size,
            align_bytes: if aligned { bytes("Address_Alignment_Unit", unit)? } else { SECTOR },
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
        let per_s = (bandwidth / SECTOR).checked_div(sectors.max(1)).unwrap_or_default();
        match 1_000_000_000_u64.checked_div(per_s) {
            Some(interarrival_ns) => Ok(Pacing::Open { interarrival_ns, arrivals: Arrivals::Poisson }),
            None => Err(flow.refused("Bandwidth", &bandwidth, "bytes a second, at least one request a second")),
        }
    }

    fn flow(self, start: u64, own: u64) -> Flow {
        let mut synthetic = Synthetic::new(self.access, self.size, self.pacing);
        synthetic.read_share = self.read_percent / 100.0;
        synthetic.region_start_bytes = start;
        let region = floor(own as f64 * self.working_set_percent / 100.0).unwrap_or(own);
        synthetic.region_bytes = Some((region / SECTOR).max(1).saturating_mul(SECTOR));
        synthetic.align_bytes = Some(self.align_bytes);
        Flow { duration_ns: self.duration_ns, requests: self.requests, synthetic: Some(synthetic), ..Flow::default() }
    }
}
