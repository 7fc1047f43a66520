//! `flashwise device`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use flashwise_array::ArrayConfig;
use flashwise_block::ByteSize;
use flashwise_block::names::choices;
use flashwise_block::output::create_directories;
use flashwise_block::shown;
use flashwise_import::{ImportError, Imported, disksim, mqsim};
use flashwise_profile::{Entry, Parameters, Quantity, Verdict};
use flashwise_sim::{ArrayMachine, Machine};
use flashwise_ssd::{Class, DeviceConfig, Evidence, Preset, SsdError, device_schema};
use flashwise_trace::workload::TraceFormat;
use flashwise_trace::{ReadOptions, TraceReader};
use flashwise_truth::random::{
    random_card, random_card_toml, random_device, random_toml, random_volume, random_volume_toml,
};
use flashwise_truth::{Truth, truth};
use flashwise_volume::{Volume, VolumeConfig};
use serde::Serialize;

use crate::arguments::DeviceAction;
use crate::failure::{Failure, USAGE};
use crate::files::write_all_new;
use crate::output::Output;

/// JSON document of one drive.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    schema_version: u32,
    preset: Option<&'a str>,
    device: &'a DeviceConfig,
}

/// JSON document of all presets.
#[derive(Serialize)]
struct List {
    schema: &'static str,
    schema_version: u32,
    presets: Vec<Listed>,
    /// Cloud volumes and rotating disks.
    volumes: Vec<Listed>,
}

#[derive(Serialize)]
struct Listed {
    name: &'static str,
    year: u16,
    class: &'static str,
    evidence: &'static str,
    summary: &'static str,
}

/// Lists, shows or checks.
pub fn run(action: &DeviceAction, output: &Output) -> Result<ExitCode, Failure> {
    match action {
        DeviceAction::List => list(output)?,
        DeviceAction::Show { preset } => {
            let name = preset.trim_start_matches("sim:");
            if let Some(found) = flashwise_volume::preset::find(name) {
                let volume = Volume::preset(name)?;
                output.print(&volume_document(Some(found.name), &volume), |_| found.toml.to_owned())?;
                return Ok(ExitCode::SUCCESS);
            }
            let found = Preset::find(name).map_err(|_| unknown_preset(name))?;
            let device = DeviceConfig::preset(found.name).map_err(Failure::error)?;
            let document = document(Some(found.name), &device);
            output.print(&document, |_| found.toml.to_owned())?;
        }
        DeviceAction::Check { file } => {
            let text = flashwise_block::input::read_text(file).map_err(|e| Failure::file(file, &e))?;
            let path = file.display().to_string();
            match Machine::from_toml(&text, &path).map_err(Failure::error)? {
                Machine::Drive(device) => output.print(&document(None, &device), |_| sound(&path, &device))?,
                Machine::Array(array) => {
                    output.print(&array_document(&array), |_| sound_array(&path, &array))?;
                }
                Machine::Volume(volume) => {
                    output.print(&volume_document(None, &volume), |_| sound_volume(&path, &volume))?;
                }
            }
        }
        DeviceAction::Schema => output.print_json_schema(&device_schema())?,
        DeviceAction::Random { seed, cloud: true, .. } => {
            let (volume, text) = (random_volume(*seed)?, random_volume_toml(*seed)?);
            output.print(&volume_document(None, &volume), |_| text)?;
        }
        DeviceAction::Random { seed, card: true, .. } => {
            let (card, text) = (random_card(*seed)?, random_card_toml(*seed)?);
            output.print(&document(None, &card), |_| text)?;
        }
        DeviceAction::Random { seed, .. } => {
            let (device, text) =
                (random_device(*seed).map_err(Failure::error)?, random_toml(*seed).map_err(Failure::error)?);
            output.print(&document(None, &device), |_| text)?;
        }
        DeviceAction::Truth { device } => {
            let config = super::read_device(device)?;
            let found = truth(&config).map_err(Failure::error)?;
            output.print(&truth_document(&config, &found), |_| truth_lines(&config, &found))?;
        }
        DeviceAction::Counters(options) => return super::counters::run(options, output),
        DeviceAction::Stat(options) => return super::device_stat::run(options, output),
        DeviceAction::Import { mqsim, disksim, directory } => import(mqsim, disksim.as_deref(), directory, output)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Of drives and volumes: the user need not know which of both a name would be.
fn unknown_preset(name: &str) -> Failure {
    let all = Preset::all().chain(&flashwise_volume::PRESETS).map(|preset| preset.name);
    let error = SsdError::UnknownPreset { name: name.to_owned(), known: choices(name, all) };
    Failure { message: error.to_string(), code: USAGE }
}

fn document<'a>(preset: Option<&'a str>, device: &'a DeviceConfig) -> Document<'a> {
    Document { schema: "flashwise.device", schema_version: 1, preset, device }
}

/// JSON document of the true parameters of a drive.
#[derive(Serialize)]
struct TruthDocument<'a> {
    schema: &'static str,
    schema_version: u32,
    device: &'a str,
    truth: &'a Parameters,
    /// Why a figure has no truth, by its key.
    reasons: &'a BTreeMap<&'static str, String>,
}

fn truth_document<'a>(device: &'a DeviceConfig, found: &'a Truth) -> TruthDocument<'a> {
    let (truth, reasons) = (&found.parameters, &found.reasons);
    TruthDocument { schema: "flashwise.truth", schema_version: 1, device: &device.name, truth, reasons }
}

/// One line a figure: its key, which ends in its unit, and its value.
fn truth_lines(device: &DeviceConfig, found: &Truth) -> String {
    let line = |entry: Entry| {
        let value = match (entry.figure.value, entry.figure.verdict) {
            (Some(value), _) => plain(value),
            (None, Verdict::Absent) => "absent".to_owned(),
            (None, _) => {
                format!("unknown: {}", found.reasons.get(entry.key).map_or("not computed", String::as_str))
            }
        };
        format!("{:<34} {value}\n", entry.key)
    };
    let lines: String = found.parameters.entries().into_iter().map(line).collect();
    format!("{}\n\n{lines}", shown::line(&device.name))
}

fn plain(value: Quantity) -> String {
    match value {
        Quantity::Bytes(n)
        | Quantity::Count(n)
        | Quantity::Nanos(n)
        | Quantity::BytesPerSecond(n)
        | Quantity::PerSecond(n) => n.to_string(),
        Quantity::Ratio(ratio) | Quantity::Share(ratio) | Quantity::Years(ratio) => format!("{ratio:.4}"),
        Quantity::AddressBits(mask) => format!("{mask:#x}"),
        Quantity::Flag(flag) => flag.to_string(),
        Quantity::Location(hot) => format!("i * {} + {}", hot.period_bytes, hot.offset_bytes),
    }
}

/// By class, the newest first.
fn list(output: &Output) -> Result<(), Failure> {
    let (presets, volumes) = (listed(Preset::all()), listed(&flashwise_volume::PRESETS));
    let mut text = String::new();
    for class in Class::ALL {
        let title = match class {
            Class::DataCentre => "Data-centre drives",
            Class::Client => "Client drives",
            Class::Card => "Memory cards and eMMC",
            Class::Model => "Models from simulators and papers",
            Class::Cloud => "Cloud volumes",
            Class::Disk => "Rotating disks",
        };
        text += &format!("{}{title}\n", if text.is_empty() { "" } else { "\n" });
        for preset in presets.iter().chain(&volumes).filter(|preset| preset.class == class.words()) {
            text += &format!("  {} {:<20} {:<10} {}\n", preset.year, preset.name, preset.evidence, preset.summary);
        }
    }
    text += "\nCompared with\n";
    for evidence in Evidence::ALL {
        text += &format!("  {:<10} {}\n", evidence.words(), evidence.meaning());
    }
    output.print(&List { schema: "flashwise.devices", schema_version: 1, presets, volumes }, |_| text)
}

fn listed(presets: impl IntoIterator<Item = &'static Preset>) -> Vec<Listed> {
    let mut sorted: Vec<&Preset> = presets.into_iter().collect();
    let place = |class| Class::ALL.iter().position(|&other| other == class);
    sorted.sort_by_key(|preset| (place(preset.class), std::cmp::Reverse(preset.year)));
    let listed = |preset: &&'static Preset| {
        let &&Preset { name, year, class, evidence, summary, .. } = preset;
        Listed { name, year, class: class.words(), evidence: evidence.words(), summary }
    };
    sorted.iter().map(listed).collect()
}

fn sound(path: &str, device: &DeviceConfig) -> String {
    format!(
        "{}: {}: valid drive, {} addressable, {:.0} % over-provisioning, superpages of {}\n",
        shown::line(path),
        shown::line(&device.name),
        ByteSize(device.capacity_bytes),
        100.0 * device.over_provisioning(),
        ByteSize(device.superpage_bytes())
    )
}

/// JSON document of an array.
#[derive(Serialize)]
struct ArrayDocument<'a> {
    schema: &'static str,
    schema_version: u32,
    array: &'a ArrayConfig,
    /// Configuration of each member.
    device: &'a DeviceConfig,
    capacity_bytes: u64,
    /// Bytes of data in a row.
    row_bytes: u64,
    /// Drives that may fail, whichever they are.
    survives: u32,
}

fn array_document(array: &ArrayMachine) -> ArrayDocument<'_> {
    let ArrayMachine { config, member } = array;
    ArrayDocument {
        schema: "flashwise.array",
        schema_version: 1,
        array: config,
        device: member,
        capacity_bytes: config.capacity_bytes(member),
        row_bytes: config.row_bytes(),
        survives: config.survives(),
    }
}

fn sound_array(path: &str, ArrayMachine { config, member }: &ArrayMachine) -> String {
    let survives = match config.survives() {
        0 => "no failure".to_owned(),
        1 => "any one failure".to_owned(),
        n => format!("any {n} failures"),
    };
    let spares = if config.spares > 0 {
        format!(" and {} hot spare{}", config.spares, if config.spares == 1 { "" } else { "s" })
    } else {
        String::new()
    };
    format!(
        "{}: {}: valid array, {} addressable on {} × {}{spares}, rows of {}, survives {survives}\n",
        shown::line(path),
        shown::line(&config.name),
        ByteSize(config.capacity_bytes(member)),
        config.members,
        shown::line(&member.name),
        ByteSize(config.row_bytes()),
    )
}

/// JSON document of a volume.
#[derive(Serialize)]
struct VolumeDocument<'a> {
    schema: &'static str,
    schema_version: u32,
    preset: Option<&'a str>,
    volume: &'a VolumeConfig,
    /// Configuration of the drive behind it, where there is one.
    device: Option<&'a DeviceConfig>,
}

fn volume_document<'a>(preset: Option<&'a str>, volume: &'a Volume) -> VolumeDocument<'a> {
    let Volume { config, drive, .. } = volume;
    VolumeDocument { schema: "flashwise.volume", schema_version: 1, preset, volume: config, device: drive.as_ref() }
}

fn sound_volume(path: &str, Volume { config, drive, others }: &Volume) -> String {
    let beside = match others.len() {
        0 => String::new(),
        1 => "; another volume of its instance beside it".to_owned(),
        n => format!("; {n} other volumes of its instance beside it"),
    };
    let limits = match config.limits.len() + config.instance.limits.len() {
        0 => "no limits".to_owned(),
        1 => "one limit".to_owned(),
        n => format!("{n} limits"),
    };
    let medium = match (drive, &config.medium.disk) {
        (Some(drive), _) => format!("on {}", shown::line(&drive.name)),
        (None, Some(disk)) => format!("on a disk of {} rpm", disk.rpm),
        (None, None) => "on a plain latency".to_owned(),
    };
    format!(
        "{}: {}: valid volume, {} addressable, {limits}, {medium}{beside}\n",
        shown::line(path),
        shown::line(&config.name),
        ByteSize(config.capacity_bytes),
    )
}

/// JSON document of an import.
#[derive(Serialize)]
struct ImportDocument<'a> {
    schema: &'static str,
    schema_version: u32,
    source: &'a str,
    device: &'a DeviceConfig,
    workloads: &'a [flashwise_trace::workload::Workload],
    notes: &'a [String],
    files: &'a [String],
}

/// Turns another simulator's files into `device.toml` and `workload.toml`, both new.
fn import(mqsim_files: &[PathBuf], disksim_file: Option<&Path>, dir: &Path, output: &Output) -> Result<(), Failure> {
    let read = |path: &Path| flashwise_block::input::read_text(path).map_err(|e| Failure::file(path, &e));
    let name = |path: &Path| path.display().to_string();
    let mut imported = match (disksim_file, mqsim_files) {
        (Some(path), _) => disksim::import(&name(path), &read(path)?)?,
        (None, [device]) => mqsim::import((&name(device), &read(device)?), None)?,
        (None, [device, workload, ..]) => {
            let (device_text, workload_text) = (read(device)?, read(workload)?);
            let flows = (name(workload), workload_text);
            let requests_of = |trace: &Path| requests_of(trace, workload);
            mqsim::import_counting((&name(device), &device_text), Some((&flows.0, &flows.1)), &requests_of)?
        }
        (None, []) => return Err(Failure::usage("give --mqsim or --disksim")),
    };
    if let [_, workload, ..] = mqsim_files {
        find_traces(&mut imported, workload, dir)?;
    }
    let files = write_imported(&imported, dir)?;
    let document = ImportDocument {
        schema: "flashwise.import",
        schema_version: 1,
        source: &imported.source,
        device: &imported.device,
        workloads: &imported.workloads,
        notes: &imported.notes,
        files: &files,
    };
    output.print(&document, |_| {
        let notes: String = imported.notes.iter().map(|note| format!("note: {}\n", shown::line(note))).collect();
        format!("{}written: {}\n", notes, files.join(", "))
    })
}

/// Counts the requests of a trace that a workload file names.
fn requests_of(trace: &Path, workload: &Path) -> Result<u64, String> {
    let path = trace_beside(trace, workload).unwrap_or_else(|| trace.to_owned());
    let options = ReadOptions::of(TraceFormat::Mqsim);
    let mut reader = TraceReader::open(&path, &options).map_err(|e| e.to_string())?;
    let mut requests = 0;
    while reader.next_record().map_err(|e| e.to_string())?.is_some() {
        requests += 1;
    }
    Ok(requests)
}

/// The location of a trace named in a workload file: relative to the current directory, as MQSim looks for it, or
/// beside the file; also compressed.
fn trace_beside(trace: &Path, workload: &Path) -> Option<PathBuf> {
    let beside = workload.parent().unwrap_or(Path::new("")).join(trace);
    let packed = |path: &Path| ["gz", "zst", "xz"].map(|extension| path.with_added_extension(extension));
    let places =
        [trace.to_owned(), beside].into_iter().flat_map(|path| [path.clone()].into_iter().chain(packed(&path)));
    places.into_iter().find(|path| path.is_file())
}

/// Makes an imported workload name its traces so that they are found from the directory it is written to.
fn find_traces(imported: &mut Imported, workload: &Path, dir: &Path) -> Result<(), Failure> {
    let flows = imported.workloads.iter_mut().flat_map(|workload| &mut workload.flows);
    for trace in flows.filter_map(|flow| flow.trace.as_mut()) {
        if dir.join(&trace.path).is_file() {
            continue;
        }
        match trace_beside(&trace.path, workload) {
            Some(found) => trace.path = std::path::absolute(&found).map_err(|e| Failure::file(&found, &e))?,
            None => imported.notes.push(format!(
                "{}: no such file; put it beside workload.toml, or change its path there",
                trace.path.display()
            )),
        }
    }
    Ok(())
}

fn write_imported(imported: &Imported, dir: &Path) -> Result<Vec<String>, Failure> {
    let mut files = vec![(dir.join("device.toml"), imported.device_toml()?)];
    let workloads = imported.workload_tomls()?;
    let several = workloads.len() > 1;
    for (number, text) in (1..).zip(workloads) {
        let name = if several { format!("workload-{number}.toml") } else { "workload.toml".to_owned() };
        files.push((dir.join(name), text));
    }
    create_directories(dir).map_err(|e| Failure::file(dir, &e))?;
    write_all_new(&files)?;
    Ok(files.iter().map(|(path, _)| path.display().to_string()).collect())
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Self {
        Self::error(error)
    }
}
