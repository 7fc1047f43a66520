//! MQSim's runs: its input files imported and simulated here, its results read.
//!
//! A case is a folder with `ssdconfig.xml`, `workload.xml` and `result.json`; the reference results are in
//! `shared/reference/mqsim` beside the workspace.
#![allow(dead_code, reason = "the test and the table use a part each")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a case that cannot be read should panic where it fails")]
use std::path::{Path, PathBuf};

use flashwise_block::Silent;
use flashwise_import::{Imported, mqsim};
use flashwise_sim::{SimulationOptions, simulate};
use flashwise_ssd::SimulatedSsd;
use serde_json::Value;

/// The reference results; beside the workspace, and not part of it.
pub fn reference_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference/mqsim")
}

/// What a run did, in MQSim or here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Requests of each flow.
    pub requests: Vec<u64>,
    /// Mean response time of each flow, µs.
    pub response_us: Vec<f64>,
    /// Pages sensed for any reason, those of the map included.
    pub pages_read: u64,
    pub pages_programmed: u64,
    pub erases: u64,
    pub mapping_reads: u64,
    /// CPU time of the whole process, user and system, s; 0 where it is not known.
    pub cpu_s: f64,
    /// To the last completion, ns; 0 where it is not known.
    pub elapsed_ns: u64,
}

impl Outcome {
    /// Requests of all flows.
    pub fn all_requests(&self) -> u64 {
        self.requests.iter().sum()
    }

    /// Mean response time over all requests, µs.
    pub fn mean_us(&self) -> f64 {
        let sum: f64 = self.requests.iter().zip(&self.response_us).map(|(&n, us)| n as f64 * us).sum();
        sum / self.all_requests().max(1) as f64
    }
}

/// Where the reference results' traces are.
pub fn traces_folder() -> PathBuf {
    reference_folder().join("../../traces/mqsim")
}

/// Reads MQSim's result of a case.
pub fn expected(case: &Path) -> Outcome {
    let text = std::fs::read_to_string(case.join("result.json")).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    let flows = json.get("host_flows").or_else(|| json.get("flows")).and_then(Value::as_array).unwrap();
    let exact = exact_flows(&json);
    let (planes, ftl) = (planes(case), &json["ftl"]);
    let pages = |single: &str, joined: &str| number(&ftl[single]) as u64 + planes * number(&ftl[joined]) as u64;
    Outcome {
        requests: flows.iter().map(|flow| number(&flow["Request_Count"]) as u64).collect(),
        // The report cuts to whole microseconds: on average half of one is missing.
        response_us: match exact.len() {
            0 => flows.iter().map(|flow| number(&flow["Device_Response_Time"]) + 0.5).collect(),
            _ => exact.iter().map(|flow| flow.0 / 1e3).collect(),
        },
        pages_read: pages("Issued_Flash_Read_CMD", "Issued_Flash_Multiplane_Read_CMD"),
        pages_programmed: pages("Issued_Flash_Program_CMD", "Issued_Flash_Multiplane_Program_CMD"),
        erases: number(&ftl["Issued_Flash_Erase_CMD"]) as u64,
        mapping_reads: number(&ftl["Issued_Flash_Read_CMD_For_Mapping"]) as u64,
        cpu_s: ["user_s", "sys_s"].iter().filter_map(|name| json["process"][name].as_f64()).sum(),
        elapsed_ns: exact.first().map_or(0, |flow| flow.1),
    }
}

/// Mean response and end of each flow, ns, of runs that were made with a report in nanoseconds.
fn exact_flows(json: &Value) -> Vec<(f64, u64)> {
    let lines = json["dbg"].as_array().map_or(&[][..], Vec::as_slice);
    let flow = |line: &Value| {
        let field =
            |name: &str| line.as_str()?.split_whitespace().find_map(|word| word.strip_prefix(name)?.parse().ok());
        Some((field("avg_ns=")?, field("t_end=").map_or(0, |ns: f64| ns as u64)))
    };
    lines.iter().filter_map(flow).collect()
}

fn number(value: &Value) -> f64 {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

/// Planes of a multi-plane command.
fn planes(case: &Path) -> u64 {
    let text = std::fs::read_to_string(case.join("ssdconfig.xml")).unwrap();
    let (_, rest) = text.split_once("<Plane_No_Per_Die>").unwrap();
    rest.split_once('<').unwrap().0.parse().unwrap()
}

/// A case's two input files.
pub fn inputs(case: &Path) -> [String; 2] {
    ["ssdconfig.xml", "workload.xml"].map(|name| std::fs::read_to_string(case.join(name)).unwrap())
}

/// Imports and simulates a case; its traces are looked for in `traces`, compressed.
pub fn measured(case: &Path, traces: &Path) -> Outcome {
    simulated(&inputs(case), traces)
}

/// The same for the texts of the files.
pub fn simulated([device, workload]: &[String; 2], traces: &Path) -> Outcome {
    let imported = mqsim::import(("ssdconfig.xml", device), Some(("workload.xml", workload))).unwrap();
    let Imported { device, mut workloads, .. } = imported;
    let mut workload = workloads.remove(0);
    for trace in workload.flows.iter_mut().filter_map(|flow| flow.trace.as_mut()) {
        trace.path = trace.path.with_added_extension("gz");
    }
    let mut drive = SimulatedSsd::new(device, workload.seed).unwrap();
    let result = simulate(&mut drive, &workload, traces, &SimulationOptions::default(), &mut Silent).unwrap();
    let flash = drive.flash_statistics();
    Outcome {
        requests: result.flows.iter().map(|flow| flow.all.requests).collect(),
        response_us: result.flows.iter().map(|flow| flow.all.mean_response_ns.unwrap_or(0.0) / 1e3).collect(),
        pages_read: flash.pages_sensed,
        pages_programmed: flash.pages_programmed,
        erases: flash.blocks_erased,
        mapping_reads: flash.class(flashwise_ssd::flash::OpClass::MappingRead).commands,
        cpu_s: cpu_s(),
        elapsed_ns: result.elapsed_ns,
    }
}

/// CPU time of this process so far, user and system, s.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// The cases of a folder, by name.
pub fn cases(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut cases: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    let has_result = |path: &PathBuf| {
        let text = std::fs::read_to_string(path.join("result.json")).unwrap_or_default();
        text.contains("\"Request_Count\"")
    };
    cases.retain(has_result);
    cases.sort();
    cases
}

impl Outcome {
    /// One line that [`Self::from_line`] reads.
    pub fn to_line(&self) -> String {
        let list = |numbers: Vec<String>| numbers.join(",");
        format!(
            "{} {} {} {} {} {} {} {}",
            list(self.requests.iter().map(u64::to_string).collect()),
            list(self.response_us.iter().map(f64::to_string).collect()),
            self.pages_read,
            self.pages_programmed,
            self.erases,
            self.mapping_reads,
            self.cpu_s,
            self.elapsed_ns
        )
    }

    /// Reads a line of [`Self::to_line`].
    pub fn from_line(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        Some(Self {
            requests: words.next()?.split(',').map(|n| n.parse().ok()).collect::<Option<_>>()?,
            response_us: words.next()?.split(',').map(|n| n.parse().ok()).collect::<Option<_>>()?,
            pages_read: words.next()?.parse().ok()?,
            pages_programmed: words.next()?.parse().ok()?,
            erases: words.next()?.parse().ok()?,
            mapping_reads: words.next()?.parse().ok()?,
            cpu_s: words.next()?.parse().ok()?,
            elapsed_ns: words.next()?.parse().ok()?,
        })
    }
}
