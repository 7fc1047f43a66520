//! `flashwise learn`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;

use flashwise_block::DiskConditions;
use flashwise_block::names::choices;
use flashwise_block::output::OutputFolder;
use flashwise_learn::drift::{Drift, drift};
use flashwise_learn::export::{ExportedFile, NotCertain, iocost_files, seastar_files};
use flashwise_learn::fio::job_files;
use flashwise_learn::score::{Score, score, score_card, score_limits};
use flashwise_learn::{Effort, Learned, RawSample, learn_step_by_step};
use flashwise_profile::{Card, DeviceProfile, Entry, Limits, Parameters};
use flashwise_report::{OwnFile, profile_page, render_drift, render_profile, render_score};
use flashwise_ssd::config::Mapping;
use flashwise_truth::{card, limits, truth};
use flashwise_tune::sqlite::LEARN_REGION;
use flashwise_tune::{Host, LearnRequest, ProgramTime, Target, TuneError, free_memory};
use serde::Serialize;

use super::counters::LearnCounters;
use super::read_profile;
use super::same_drive::check_same_drive;
use crate::arguments::LearnArguments;
use crate::failure::{Failure, INCONCLUSIVE, REFUSED, VIOLATIONS};
use crate::files::Wanted;
use crate::output::{Output, note};
use crate::progress::Bar;

/// Learns a drive and shows its profile.
pub fn run(options: &LearnArguments, output: &Output) -> Result<ExitCode, Failure> {
    let name = options.target_option.as_ref().unwrap_or(&options.target);
    let target = Target::parse_with_devices(name, &options.raw_device.options(options.max_write))?;
    let target = match (&options.file_system, &target) {
        (Some(name), Target::Simulated { .. }) => {
            target.with_host(Host::named(name, free_memory(), ProgramTime::Modelled)?)
        }
        (Some(name), _) => {
            return Err(Failure::usage(format!(
                "--file-system {name}: only for simulated drives; {target} is learned as it is mounted: leave the option \
                 out"
            )));
        }
        (None, _) => target,
    };
    let plan = target.plan(options.request()?.region(&target))?;
    if options.dry_run {
        output.print(&plan, |_| plan.to_string())?;
        return Ok(if plan.refusal().is_none() { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) });
    }
    if let Some(refusal) = plan.refusal() {
        return Err(Failure::refused(refusal));
    }
    let export = options.export.as_deref().map(Export::prepare).transpose()?;
    let export = match (export, options.resume.as_deref()) {
        (Some(export), _) if !export.format.needs_limits() => {
            return export.write(&target, None, options.seed, output);
        }
        (Some(export), Some(path)) => return export.write(&target, Some(&read_profile(path)?), options.seed, output),
        (export, _) => export,
    };
    let earlier = options.compare.as_deref().map(read_profile).transpose()?;
    let files = Files::prepare(options)?;
    let truth = options.score.then(|| Truth::of(&target)).transpose()?;
    if let Some(warning) = plan.warning() {
        note(&warning);
    }
    if let Some(conditions) = conditions(&target) {
        note(&conditions);
    }
    let counters = LearnCounters::begin(&options.counters)?;
    let mut learned = learn(&target, options, earlier.as_ref(), &files)?;
    if let Some(counters) = counters {
        counters.add_to(&mut learned.profile)?;
    }
    files.write(&learned)?;
    if let Some(why) = learned.stopped {
        return Err(TuneError::from(why).into());
    }
    let profile = learned.profile;
    if let Some(export) = export {
        return export.write(&target, Some(&profile), options.seed, output);
    }
    if let (Some(earlier), Some(path)) = (&earlier, &options.compare) {
        return compare(earlier, path, &profile, output);
    }
    match truth {
        Some(truth) => {
            let scored = Scored { score: truth.score(&profile), profile: &profile };
            output.print(&scored, |style| {
                render_profile(&profile, style).and("\n").and(render_score(&scored.score, style))
            })?;
        }
        None => output.print(&profile, |style| render_profile(&profile, style))?,
    }
    Ok(if profile.is_conclusive() { ExitCode::SUCCESS } else { ExitCode::from(INCONCLUSIVE) })
}

/// What blurs the latencies of a real drive, in a line.
pub fn conditions(target: &Target) -> Option<String> {
    let path = match target {
        Target::Simulated { .. } | Target::Volume { .. } => return None,
        Target::Directory(path) => path.as_path(),
        Target::Raw(raw) => raw.path(),
    };
    Some(DiskConditions::of(path).to_string()).filter(|line| !line.is_empty())
}

/// Files that were written for another program.
#[derive(Serialize)]
struct Exported {
    schema: &'static str,
    schema_version: u32,
    files: Vec<String>,
}

impl LearnArguments {
    /// What is asked of the learner.
    fn request(&self) -> Result<LearnRequest, Failure> {
        let resume = self.resume.as_deref().map(read_profile).transpose()?;
        Ok(LearnRequest {
            seed: self.seed,
            effort: match (self.quick, self.thorough) {
                (true, _) => Some(Effort::Quick),
                (_, true) => Some(Effort::Thorough),
                _ => None,
            },
            max_write: self.max_write,
            time_budget: self.time_budget,
            request_sizes: self.request_size.clone(),
            resume: resume.map(Box::new),
            keep_raw: self.raw.is_some(),
            limits: self.limits || self.needs_limits(),
            card: self.card,
        })
    }

    /// Whether the files of `--export` are of limits.
    fn needs_limits(&self) -> bool {
        let format = self.export.as_deref().and_then(|words| words.first());
        format.and_then(|name| ExportFormat::find(name)).is_some_and(ExportFormat::needs_limits)
    }
}

/// Which program the files are for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExportFormat {
    Fio,
    Seastar,
    IoCost,
}

impl ExportFormat {
    const ALL: [(&str, Self); 3] = [("fio", Self::Fio), ("seastar", Self::Seastar), ("iocost", Self::IoCost)];

    fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, format)| format)
    }

    fn needs_limits(self) -> bool {
        self != Self::Fio
    }
}

/// The two words of `--export`.
struct Export<'a> {
    format: ExportFormat,
    directory: &'a Path,
    folder: OutputFolder,
}

impl<'a> Export<'a> {
    /// Before anything is learned, so that the files can be written afterwards.
    fn prepare(words: &'a [String]) -> Result<Self, Failure> {
        let [format, directory] = words else { return Err(Failure::usage("--export takes a format and a directory")) };
        let unknown = || {
            let names = ExportFormat::ALL.map(|(name, _)| name);
            Failure::usage(format!("--export {format}: unknown format: {}", choices(format, names)))
        };
        let format = ExportFormat::find(format).ok_or_else(unknown)?;
        let directory = Path::new(directory);
        let kind = match format {
            ExportFormat::Fio => "jobs for fio",
            ExportFormat::Seastar => "limits for Seastar",
            ExportFormat::IoCost => "limits for io.cost",
        };
        Ok(Self { format, directory, folder: open_folder(directory, kind)? })
    }

    /// Writes the files, the probes as jobs or the limits of a profile, and lists them.
    fn write(
        mut self,
        target: &Target,
        profile: Option<&DeviceProfile>,
        seed: u64,
        output: &Output,
    ) -> Result<ExitCode, Failure> {
        let limits = |make: LimitFiles| {
            let files = profile.map_or(Ok(Vec::new()), make).map_err(Failure::inconclusive)?;
            Ok::<_, Failure>(files.into_iter().map(|file| (file.name, file.text)).collect())
        };
        let contents: Vec<(&str, String)> = match self.format {
            ExportFormat::Fio => {
                let jobs = job_files(&file_of(target), LEARN_REGION, seed);
                jobs.into_iter().map(|file| (file.name, file.text)).collect()
            }
            ExportFormat::Seastar => limits(seastar_files)?,
            ExportFormat::IoCost => limits(iocost_files)?,
        };
        let mut files = Vec::new();
        for (name, text) in contents {
            let path = self.folder.write(name, text.as_bytes()).map_err(|e| in_folder(self.directory, &e))?;
            files.push(path.display().to_string());
        }
        self.folder.finish().map_err(|e| in_folder(self.directory, &e))?;
        let exported = Exported { schema: "flashwise.export", schema_version: 1, files };
        output.print(&exported, |_| exported.files.iter().map(|file| format!("{file}\n")).collect::<String>())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Makes the files of a profile's limits.
type LimitFiles = fn(&DeviceProfile) -> Result<Vec<ExportedFile>, NotCertain>;

/// The file that fio's jobs are for.
fn file_of(target: &Target) -> String {
    match target {
        Target::Simulated { .. } | Target::Volume { .. } => "/path/to/a/new/file".to_owned(),
        Target::Directory(path) => path.join("flashwise-fio").display().to_string(),
        Target::Raw(_) => target.to_string(),
    }
}

/// A profile and its score, as one document.
#[derive(Serialize)]
struct Scored<'a> {
    #[serde(flatten)]
    profile: &'a DeviceProfile,
    score: Score,
}

/// A profile and how it differs from an earlier one, as one document.
#[derive(Serialize)]
struct Compared<'a> {
    #[serde(flatten)]
    profile: &'a DeviceProfile,
    drift: Drift,
}

/// Prints what has changed since an earlier profile.
fn compare(earlier: &DeviceProfile, path: &Path, now: &DeviceProfile, output: &Output) -> Result<ExitCode, Failure> {
    let compared = Compared { drift: drift(earlier, now), profile: now };
    let since = path.display().to_string();
    output.print(&compared, |style| {
        render_profile(now, style).and("\n").and(render_drift(&compared.drift, &since, style))
    })?;
    Ok(if compared.drift.changed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(VIOLATIONS) })
}

/// What is true of a simulated target. The learner does not see it.
enum Truth {
    Drive(Box<Parameters>),
    Card(Box<Card>),
    Volume(Box<Limits>),
}

impl Truth {
    fn of(target: &Target) -> Result<Self, Failure> {
        match target {
            Target::Simulated { config, .. } if config.ftl.mapping == Mapping::Block => {
                Ok(Self::Card(Box::new(card(config)?)))
            }
            Target::Simulated { config, .. } => Ok(Self::Drive(Box::new(truth(config)?.parameters))),
            Target::Volume { volume, .. } => Ok(Self::Volume(Box::new(limits(volume)))),
            Target::Directory(_) | Target::Raw(_) => Err(Failure::usage(format!(
                "{target}: --score needs a simulated drive or volume, whose truth is known"
            ))),
        }
    }

    fn score(&self, profile: &DeviceProfile) -> Score {
        match self {
            Self::Drive(parameters) => score(profile, parameters),
            Self::Card(card) => score_card(profile, card),
            Self::Volume(limits) => score_limits(profile, limits),
        }
    }
}

/// Learns the target; the profile's file is updated after each probe.
fn learn(
    target: &Target,
    options: &LearnArguments,
    earlier: Option<&DeviceProfile>,
    files: &Files,
) -> Result<Learned, Failure> {
    let request = options.request()?;
    // Before the scratch file is made, so that Ctrl-C is heard from then on.
    let mut bar = Bar::new();
    let mut device = target.open_as_file(options.seed, request.region(target))?;
    earlier.map_or(Ok(()), |earlier| check_same_drive(earlier, target, &device.info().name))?;
    let learn_options = request.options(target, device.info());
    let mut unwritten = Ok(());
    let learned = learn_step_by_step(&mut *device, &learn_options, &mut bar, &mut |profile| {
        unwritten = files.checkpoint(profile);
        if unwritten.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    let learned = learned.map_err(TuneError::from)?;
    unwritten.map(|()| learned)
}

/// The output files.
struct Files<'a> {
    profile: Option<Wanted>,
    page: Option<Wanted>,
    raw: Option<(&'a Path, OutputFolder)>,
}

impl<'a> Files<'a> {
    fn prepare(options: &'a LearnArguments) -> Result<Self, Failure> {
        // With `--resume`, the profile that was read may be replaced.
        let prepare = if options.resume.is_some() { Wanted::prepare_updated } else { Wanted::prepare };
        let profile = options.profile.as_deref().map(|path| prepare(path, OwnFile::Profile)).transpose()?;
        let page = options.html.as_deref().map(|path| Wanted::prepare(path, OwnFile::Page)).transpose()?;
        let folder =
            |path: &'a std::path::PathBuf| open_folder(path, RAW_SAMPLES).map(|folder| (path.as_path(), folder));
        Ok(Self { profile, page, raw: options.raw.as_ref().map(folder).transpose()? })
    }

    fn checkpoint(&self, profile: &DeviceProfile) -> Result<(), Failure> {
        match &self.profile {
            Some(file) if says_something(profile) => file.write(profile.to_toml().map_err(Failure::error)?),
            _ => Ok(()),
        }
    }

    fn write(self, learned: &Learned) -> Result<(), Failure> {
        self.checkpoint(&learned.profile)?;
        if let Some(file) = self.page.as_ref().filter(|_| says_something(&learned.profile)) {
            file.write(profile_page(&learned.profile))?;
        }
        self.raw.map_or(Ok(()), |(path, folder)| write_raw(folder, &learned.raw).map_err(|e| in_folder(path, &e)))
    }
}

/// Whether a profile may replace an earlier one: one that ended before its first probe did has no result.
fn says_something(profile: &DeviceProfile) -> bool {
    !profile.recipe.probes.is_empty() || profile.entries().iter().any(Entry::has_result)
}

/// One CSV file per probe: the varied and the measured value, in the order of measurement.
fn write_raw(mut folder: OutputFolder, samples: &[RawSample]) -> std::io::Result<()> {
    let mut tables: BTreeMap<&str, String> = BTreeMap::new();
    for sample in samples {
        let table = tables.entry(sample.probe).or_insert_with(|| "varied,measured\n".to_owned());
        // Writing to a string does not fail.
        let _ = writeln!(table, "{},{}", sample.x, sample.y);
    }
    for (probe, table) in tables {
        folder.write(&format!("{}.csv", probe.replace(' ', "-")), table.as_bytes())?;
    }
    folder.finish()
}

/// The kind of such a folder in its own list.
const RAW_SAMPLES: &str = "raw samples";

/// A folder for files of a kind, which holds nothing else.
fn open_folder(path: &Path, kind: &'static str) -> Result<OutputFolder, Failure> {
    OutputFolder::open(path, kind).map_err(|e| in_folder(path, &e))
}

fn in_folder(path: &Path, error: &std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::AlreadyExists => Failure::refused(format!("{}: {error}", path.display())),
        _ => Failure::file(path, error),
    }
}
