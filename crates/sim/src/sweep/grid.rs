//! A grid: a drive, a workload, and the values that are tried.
//!
//! ```toml
//! name = "policies and depths"
//! device = "samsung-960-evo"          # a preset, or a file beside the grid
//! workload = "mix.toml"               # a file beside the grid
//! precondition = "steady"             # default: empty
//! seeds = [1, 2, 3]                   # default: the workload's own
//!
//! [vary]                              # every value with every other one
//! "ftl.gc.policy" = ["greedy", "fifo"]
//! "workload.flows.0.synthetic.pacing.closed.queue_depth" = [1, 4, 16]
//!
//! [[together]]                        # the first values, the second values, …
//! "flash.channels" = [4, 8]
//! "flash.blocks_per_plane" = [4096, 2048]
//! ```
//!
//! A key path names a value of the drive's file, or behind `workload.` one of the workload's; a number in it is a place
//! in a list. Where the drive is an array, a key path names a value of the array's file, and behind `member.` one of
//! the file of its members. Axes are in the order of their first keys' names, seeds last; the last axis changes
//! fastest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use flashwise_block::BlockError;
use flashwise_block::names::with_suggestion;
use flashwise_trace::workload::{FlowSource, Workload, WorkloadError};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};
use xxhash_rust::xxh3::Xxh3;

use crate::Precondition;
use crate::machine::Machine;
use flashwise_array::ArrayConfig;
use flashwise_ssd::Preset;
use flashwise_ssd::SsdError;
use flashwise_ssd::config::{DeviceConfig, is_of_array};

/// Most cells of a grid.
const MOST_CELLS: usize = 1_000_000;

/// Why a sweep cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SweepError {
    /// A file cannot be read or written.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: String,
        /// The system's words, or ours.
        reason: String,
    },
    /// The grid makes no sense.
    #[error("{path}: {reason}")]
    Grid {
        /// The grid.
        path: String,
        /// What is wrong and what would be right.
        reason: String,
    },
    /// Cells that no shard has finished.
    #[error("{missing} of {cells} cells are in none of the files: finish their shards, then merge again")]
    Missing {
        /// How many.
        missing: usize,
        /// Cells of the grid.
        cells: usize,
    },
    /// The results file is somebody else's.
    #[error("{0}: exists and is not a file of sweep results, so it is not overwritten: choose another path")]
    NotResults(String),
    /// The drive cannot be.
    #[error(transparent)]
    Device(#[from] SsdError),
    /// The workload cannot be.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The user stopped it.
    #[error(transparent)]
    Stopped(#[from] BlockError),
}

impl SweepError {
    pub(super) fn file(path: &Path, error: &std::io::Error) -> Self {
        let words = error.to_string();
        let words = words.split(" (os error").next().unwrap_or_default();
        Self::File { path: path.display().to_string(), reason: words.to_owned() }
    }
}

/// What varies together: at each step, a value for each of a few keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Key paths, in the order of their names.
    pub keys: Vec<String>,
    /// Values of these keys, step by step.
    pub steps: Vec<Vec<Value>>,
}

/// One combination of values. It can be sent to another process, whose result is the same to the bit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Its place in the grid, from 0.
    pub index: u64,
    /// The values that make it, by key path.
    pub values: BTreeMap<String, Value>,
    /// The drive, or the array.
    pub machine: Machine,
    /// The workload, with the cell's seed.
    pub workload: Workload,
    /// What is on the drive before.
    pub precondition: Precondition,
    /// Hash of all that decides the result.
    pub key: String,
}

/// All cells of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Its name.
    pub name: String,
    /// The folder that traces are relative to.
    pub base: PathBuf,
    /// The axes, the last of which changes fastest.
    pub axes: Vec<Axis>,
    /// The cells.
    pub cells: Vec<Cell>,
}

/// A grid as its file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GridFile {
    #[serde(default)]
    name: String,
    device: String,
    workload: PathBuf,
    #[serde(default)]
    precondition: Precondition,
    #[serde(default)]
    seeds: Vec<u32>,
    #[serde(default)]
    vary: Table,
    #[serde(default)]
    together: Vec<Table>,
}

impl Grid {
    /// Reads a grid with its drive and its workload, and checks every cell.
    ///
    /// # Errors
    /// At the first thing that is wrong; an impossible cell is told with its values.
    pub fn read(path: &Path) -> Result<Self, SweepError> {
        let text = read(path)?;
        let wrong = |reason: String| SweepError::Grid { path: path.display().to_string(), reason };
        let file: GridFile = toml::from_str(&text).map_err(|e| wrong(in_one_line(&text, &e)))?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let device = BaseDevice::read(&file.device, &folder)?;
        let workload_path = folder.join(&file.workload);
        let workload = table(&read(&workload_path)?, &workload_path)?;
        let axes = axes(&file).map_err(wrong)?;
        let count = axes.iter().try_fold(1_usize, |n, axis| n.checked_mul(axis.steps.len()));
        let count = count.filter(|&count| count <= MOST_CELLS);
        let count = count.ok_or_else(|| wrong(format!("the grid has more than {MOST_CELLS} cells")))?;
        let base = workload_path.parent().unwrap_or(Path::new("")).to_owned();
        let builder = CellBuilder { axes: &axes, device, workload, file: &file, base: &base };
        let cells = (0..count).map(|index| builder.cell(index)).collect::<Result<Vec<_>, _>>()?;
        let name = match file.name.is_empty() {
            true => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            false => file.name.clone(),
        };
        Ok(Self { name, base, axes, cells })
    }
}

fn read(path: &Path) -> Result<String, SweepError> {
    flashwise_block::input::read_text(path).map_err(|e| SweepError::file(path, &e))
}

fn table(text: &str, path: &Path) -> Result<Table, SweepError> {
    let wrong =
        |e: toml::de::Error| SweepError::Grid { path: path.display().to_string(), reason: in_one_line(text, &e) };
    toml::from_str(text).map_err(wrong)
}

fn in_one_line(text: &str, error: &toml::de::Error) -> String {
    let message = with_suggestion(error.message().trim().replace('\n', " "));
    let line = error.span().and_then(|span| text.get(..span.start)).map(|before| 1 + before.matches('\n').count());
    line.map_or_else(|| message.clone(), |line| format!("line {line}: {message}"))
}

/// The file of the drive, or of the array and of its members, before values are set.
#[derive(Clone)]
struct BaseDevice {
    device: Table,
    /// The folder that the device's file is in.
    folder: PathBuf,
    /// The drive that each member of an array is; `None` for a single drive.
    member: Option<Table>,
}

impl BaseDevice {
    fn read(name: &str, folder: &Path) -> Result<Self, SweepError> {
        let (device, folder) = drive_table(name, folder)?;
        let is_array = is_of_array(&device.to_string());
        let member = if is_array { Some(member_table(&device, &folder)?) } else { None };
        Ok(Self { device, folder, member })
    }

    /// Sets the value at a key path.
    fn set(&mut self, path: &str, value: Value) -> Result<(), String> {
        match (path.strip_prefix("member."), &mut self.member) {
            (Some(path), Some(member)) => set_value(member, path, value),
            (None, Some(member)) if path == "member" => {
                set_value(&mut self.device, path, value)?;
                *member = member_table(&self.device, &self.folder).map_err(|error| error.to_string())?;
                Ok(())
            }
            _ => set_value(&mut self.device, path, value),
        }
    }

    fn machine(&self) -> Result<Machine, SsdError> {
        let device = text(&self.device);
        let Some(member) = &self.member else {
            // The folder is where a volume's drive is looked for.
            return Machine::from_toml(&device, &self.folder.join("device").display().to_string());
        };
        let member = DeviceConfig::from_toml(&text(member), "member")?;
        let array = ArrayConfig::parse(&device, "device")?;
        array.check(&member, "device")?;
        Ok(Machine::array(array, member))
    }
}

/// The drive that an array names as its member.
fn member_table(array: &Table, folder: &Path) -> Result<Table, SweepError> {
    let name = array.get("member").and_then(Value::as_str).unwrap_or_default();
    Ok(drive_table(name, folder)?.0)
}

/// A preset's text, or that of a file beside the grid, and the folder that it is in.
fn drive_table(name: &str, folder: &Path) -> Result<(Table, PathBuf), SweepError> {
    let plain = name.strip_prefix("sim:").unwrap_or(name);
    match plain.ends_with(".toml") || plain.contains('/') {
        true => {
            let path = folder.join(plain);
            let folder = path.parent().unwrap_or(Path::new("")).to_owned();
            Ok((table(&read(&path)?, &path)?, folder))
        }
        false => {
            let preset = flashwise_volume::preset::find(plain).map_or_else(|| Preset::find(plain), Ok)?;
            Ok((table(preset.toml, Path::new(plain))?, folder.to_owned()))
        }
    }
}

fn axes(file: &GridFile) -> Result<Vec<Axis>, String> {
    let single = file.vary.iter().map(|(key, values)| Axis::new([(key, values)]));
    let groups = file.together.iter().map(|group| Axis::new(group.iter()));
    let mut axes = single.chain(groups).collect::<Result<Vec<_>, _>>()?;
    axes.sort_by(|a, b| a.keys.cmp(&b.keys));
    let mut keys: Vec<_> = axes.iter().flat_map(|axis| &axis.keys).collect();
    keys.sort();
    if let Some(pair) = keys.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("\"{}\" is varied twice", pair[0]));
    }
    if !file.seeds.is_empty() {
        let steps = file.seeds.iter().map(|&seed| vec![Value::Integer(i64::from(seed))]).collect();
        axes.push(Axis { keys: vec!["seed".to_owned()], steps });
    }
    Ok(axes)
}

impl Axis {
    fn new<'a>(entries: impl IntoIterator<Item = (&'a String, &'a Value)>) -> Result<Self, String> {
        let (mut keys, mut columns) = (Vec::new(), Vec::new());
        for (key, values) in entries {
            let Value::Array(values) = values else { return Err(format!("\"{key}\" should be a list of values")) };
            if values.is_empty() {
                return Err(format!("\"{key}\" has no value"));
            }
            if columns.first().is_some_and(|first: &&Vec<Value>| first.len() != values.len()) {
                return Err(format!(
                    "\"{key}\" has {} values, but others of its group have a different number",
                    values.len()
                ));
            }
            keys.push(key.clone());
            columns.push(values);
        }
        let Some(first) = columns.first() else { return Err("a group of [[together]] is empty".to_owned()) };
        let steps = (0..first.len()).map(|step| columns.iter().map(|column| column[step].clone()).collect()).collect();
        Ok(Self { keys, steps })
    }
}

struct CellBuilder<'a> {
    axes: &'a [Axis],
    device: BaseDevice,
    workload: Table,
    file: &'a GridFile,
    base: &'a Path,
}

impl CellBuilder<'_> {
    fn cell(&self, index: usize) -> Result<Cell, SweepError> {
        let values = self.values(index);
        let mut device = self.device.clone();
        let mut workload = self.workload.clone();
        for (path, value) in &values {
            let is_set = match path.strip_prefix("workload.") {
                Some(path) => set_value(&mut workload, path, value.clone()),
                None if path == "seed" => set_value(&mut workload, "seed", value.clone()),
                None => device.set(path, value.clone()),
            };
            is_set.map_err(|reason| self.wrong(index, &values, reason))?;
        }
        let at_cell = |error: &dyn std::fmt::Display| self.wrong(index, &values, error.to_string());
        let machine = device.machine().map_err(|e| at_cell(&e))?;
        let workload = Workload::from_toml(&text(&workload), "workload").map_err(|e| at_cell(&e))?;
        self.check_flows(&machine, &workload).map_err(|e| at_cell(&e))?;
        let key = self.key(&machine, &workload)?;
        Ok(Cell { index: index as u64, values, machine, workload, precondition: self.file.precondition, key })
    }

    /// The steps of the axes that make a cell; the last axis changes fastest.
    fn values(&self, mut index: usize) -> BTreeMap<String, Value> {
        let mut values = BTreeMap::new();
        for axis in self.axes.iter().rev() {
            let step = &axis.steps[index % axis.steps.len()];
            index /= axis.steps.len();
            values.extend(axis.keys.iter().cloned().zip(step.iter().cloned()));
        }
        values
    }

    /// Whether every flow fits the drive.
    fn check_flows(&self, machine: &Machine, workload: &Workload) -> Result<(), WorkloadError> {
        let (capacity, block) = (machine.capacity(), machine.logical_block());
        for (index, flow) in workload.flows.iter().enumerate().filter(|(_, flow)| flow.synthetic.is_some()) {
            FlowSource::open(flow, index, workload.seed, capacity, block, self.base)?;
        }
        Ok(())
    }

    fn wrong(&self, index: usize, values: &BTreeMap<String, Value>, reason: String) -> SweepError {
        let values: Vec<_> = values.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        let path = format!("cell {index} ({})", values.join(", "));
        SweepError::Grid { path, reason }
    }

    /// Hash of all that decides a cell's result.
    fn key(&self, machine: &Machine, workload: &Workload) -> Result<String, SweepError> {
        let mut hash = Xxh3::new();
        let (version, precondition) = (env!("CARGO_PKG_VERSION"), self.file.precondition);
        let configuration = match machine.drive_config() {
            Some(device) => format!("{:?}", (version, device, workload, precondition)),
            None => format!("{:?}", (version, workload, precondition)),
        };
        hash.update(configuration.as_bytes());
        match machine {
            Machine::Drive(_) => {}
            Machine::Array(array) => hash.update(format!("{:?}", array.config).as_bytes()),
            Machine::Volume(volume) => hash.update(format!("{:?}", volume.config).as_bytes()),
        }
        for trace in workload.flows.iter().filter_map(|flow| flow.trace.as_ref()) {
            let path = self.base.join(&trace.path);
            // Each cell reads it anew.
            let mut trace = flashwise_block::input::open_regular(&path).map_err(|e| SweepError::file(&path, &e))?;
            let mut piece = vec![0; 1 << 16];
            loop {
                match std::io::Read::read(&mut trace, &mut piece).map_err(|e| SweepError::file(&path, &e))? {
                    0 => break,
                    length => hash.update(&piece[..length]),
                }
            }
        }
        Ok(format!("{:032x}", hash.digest128()))
    }
}

fn text(table: &Table) -> String {
    table.to_string()
}

/// Sets the value at a key path; tables that are missing are made, lists are not.
///
/// # Errors
/// When the path leads through something that has no such place.
pub fn set_value(root: &mut Table, path: &str, value: Value) -> Result<(), String> {
    let mut names: Vec<&str> = path.split('.').collect();
    let Some(last) = names.pop() else { return Ok(()) };
    let mut place = root;
    let mut names = names.into_iter();
    while let Some(name) = names.next() {
        let mut entry = place.entry(name).or_insert_with(|| Value::Table(Table::new()));
        while let Value::Array(list) = entry {
            let index = names.next().and_then(|name| name.parse::<usize>().ok());
            let length = list.len();
            let reason = || format!("\"{path}\": {name} is a list of {length}: write {name}.0 for its first element");
            entry = index.and_then(|index| list.get_mut(index)).ok_or_else(reason)?;
        }
        place = match entry {
            Value::Table(table) => table,
            _ => return Err(format!("\"{path}\": {name} is not a table")),
        };
    }
    place.insert(last.to_owned(), value);
    Ok(())
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn a_path_goes_through_tables_and_lists() {
        let mut root: Table = toml::from_str("a = { b = 1 }\n[[flows]]\nx = 1\n[[flows]]\nx = 2\n").unwrap();
        set_value(&mut root, "a.c.d", Value::Integer(3)).unwrap();
        set_value(&mut root, "flows.1.x", Value::Integer(9)).unwrap();
        assert_eq!(root["a"]["c"]["d"].as_integer(), Some(3));
        assert_eq!(root["flows"][1]["x"].as_integer(), Some(9));
        assert!(set_value(&mut root, "flows.2.x", Value::Integer(9)).unwrap_err().contains("a list of 2"));
        assert!(set_value(&mut root, "a.b.c", Value::Integer(9)).unwrap_err().contains("not a table"));
    }
}
