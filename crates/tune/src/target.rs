//! The names of drives on the command line.
//!
//! `sim:PRESET`, `sim:FILE.toml`, a directory of a real file system, or, for learning and replays, a block device. A
//! file is never opened for writing; a block device only with [`RawOptions::destructive`] and a confirmation.

use std::fmt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use flashwise_block::{BlockDevice, ByteSize, FileDevice, Nanos, RawPlan, ScratchFile, SignatureKind, WriteConsent};
use flashwise_kernel::{Kernel, KernelConfig, KernelFile, PAGE};
use flashwise_sim::Machine;
use flashwise_ssd::{DeviceConfig, SimulatedSsd, SsdError};
use flashwise_volume::{SimulatedVolume, Volume};

use crate::{Host, TargetPlan, TuneError};

/// A drive to work on.
#[derive(Clone, Debug)]
pub enum Target {
    /// A simulated drive, new and empty each time it is opened.
    Simulated {
        /// As the user named it.
        name: String,
        /// Its configuration.
        config: Box<DeviceConfig>,
        /// Where a database's files on it are.
        host: Host,
    },
    /// A simulated cloud volume, new each time it is opened.
    Volume {
        /// As the user named it.
        name: String,
        /// What it is made of.
        volume: Box<Volume>,
        /// Where a database's files on it are.
        host: Host,
    },
    /// A directory; new scratch files in it stand for the drive below.
    Directory(PathBuf),
    /// A block device.
    Raw(RawTarget),
}

/// A block device, and whether it may be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawTarget {
    path: PathBuf,
    /// `None`: it is only read.
    consent: Option<Consent>,
}

/// The user's consent, except for the region, which depends on the probes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Consent {
    confirmation: Option<String>,
    allowed_signatures: Vec<SignatureKind>,
    max_write: ByteSize,
}

/// The user's consent to writing to a raw device. It comes only from the command line, never from an environment
/// variable or a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawOptions {
    /// The device may be overwritten.
    pub destructive: bool,
    /// Its serial number or its name in `/dev/disk/by-id`.
    pub confirmation: Option<String>,
    /// Signatures that may be overwritten.
    pub allowed_signatures: Vec<SignatureKind>,
    /// Most bytes to write in all; [`RAW_MAX_WRITE`] by default.
    pub max_write: Option<ByteSize>,
}

/// Default limit of bytes written to a raw device.
pub const RAW_MAX_WRITE: ByteSize = ByteSize::gib(4);

/// The default target.
pub const DEFAULT_TARGET: &str = "sim:samsung-960-evo";

impl Target {
    /// Reads a target's name and checks that it can be opened without harm.
    ///
    /// # Errors
    /// When there is no such preset, file or directory, or when it is a file or a raw device.
    pub fn parse(name: &str) -> Result<Self, TuneError> {
        match name.strip_prefix("sim:") {
            Some(drive) => Self::simulated(name, drive),
            None => Self::directory(Path::new(name)),
        }
    }

    /// The same drive, with a database's files elsewhere on it. Only what is simulated has a choice.
    pub fn with_host(self, host: Host) -> Self {
        match self {
            Self::Simulated { name, config, .. } => Self::Simulated { name, config, host },
            Self::Volume { name, volume, .. } => Self::Volume { name, volume, host },
            other => other,
        }
    }

    /// Where a database's files on a simulated drive or volume are.
    pub(crate) fn host(&self) -> Option<&Host> {
        match self {
            Self::Simulated { host, .. } | Self::Volume { host, .. } => Some(host),
            _ => None,
        }
    }

    /// The same for commands that also accept block devices.
    ///
    /// # Errors
    /// As [`Target::parse`]; also when `raw` allows writing to something that is not a block device.
    pub fn parse_with_devices(name: &str, raw: &RawOptions) -> Result<Self, TuneError> {
        let path = Path::new(name);
        let is_raw = std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device());
        if is_raw {
            return Ok(Self::Raw(RawTarget::new(path, raw)));
        }
        let target = Self::parse(name)?;
        if raw.destructive {
            let message = format!(
                "{target} is not a block device; --destructive is only for block devices: leave it \
                                   out"
            );
            return Err(TuneError::Options(message));
        }
        Ok(target)
    }

    fn simulated(name: &str, drive: &str) -> Result<Self, TuneError> {
        let is_file = drive.ends_with(".toml") || drive.contains('/');
        let machine = if is_file {
            let text = flashwise_block::input::read_text(drive).map_err(|e| TuneError::file(drive, &e))?;
            Machine::from_toml(&text, drive)?
        } else {
            Machine::preset(drive)?
        };
        let name = name.to_owned();
        Ok(match machine {
            Machine::Drive(config) => Self::Simulated { name, config, host: Host::default() },
            Machine::Volume(volume) => Self::Volume { name, volume, host: Host::default() },
            Machine::Array(_) => return Err(SsdError::IsArray { path: drive.to_owned() }.into()),
        })
    }

    /// Whether its time is simulated.
    pub fn is_simulated(&self) -> bool {
        matches!(self, Self::Simulated { .. } | Self::Volume { .. })
    }

    /// Whether requests that are recorded on it are a program's calls, above the page cache: of a real file system
    /// nothing else is seen.
    pub fn records_calls(&self) -> bool {
        matches!(self, Self::Directory(_))
    }

    /// Whether the same run takes as long again: a simulated drive whose program's time is not that of this machine.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.host().is_some_and(|host| !host.measures_program())
    }

    fn directory(path: &Path) -> Result<Self, TuneError> {
        let kind = std::fs::metadata(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => TuneError::Target(no_such_directory(path)),
            _ => TuneError::file(path, &e),
        })?;
        if kind.is_dir() {
            return Ok(Self::Directory(path.to_owned()));
        }
        let why = if kind.file_type().is_block_device() {
            "block devices are only for `flashwise learn` and `flashwise trace replay`"
        } else {
            "an existing file is never written to"
        };
        Err(TuneError::Refused(format!("{}: {why}; give a directory on the drive, for a scratch file", path.display())))
    }

    /// Refuses a database of `needed` bytes that would take more than 10 % of a directory's free space.
    pub(crate) fn check_space(&self, needed: ByteSize) -> Result<(), TuneError> {
        let Self::Directory(path) = self else { return Ok(()) };
        let space = rustix::fs::statvfs(path).map_err(|e| TuneError::file(path, &e.into()))?;
        let free = ByteSize(space.f_bavail.saturating_mul(space.f_frsize));
        if needed.0 <= free.0 / 10 {
            return Ok(());
        }
        Err(TuneError::Refused(format!(
            "{}: this workload creates a database of up to {needed}, more than 10 % of the {free} that are free on \
             this file system; give a smaller workload or a directory on another disk",
            path.display()
        )))
    }

    /// What using the target would write, and the objections; writes nothing.
    ///
    /// # Errors
    /// When the target cannot be examined.
    pub fn plan(&self, wanted: ByteSize) -> Result<TargetPlan, TuneError> {
        Ok(match self {
            Self::Simulated { name, .. } | Self::Volume { name, .. } => TargetPlan::simulated(name),
            Self::Directory(path) => TargetPlan::scratch(path, ScratchFile::planned_size(path, wanted)?),
            Self::Raw(raw) => TargetPlan::raw(RawPlan::of(&raw.path, raw.consent(wanted).as_ref())?),
        })
    }

    /// Bytes that may be written in all, where that was agreed to.
    pub fn write_limit(&self) -> Option<ByteSize> {
        match self {
            Self::Raw(raw) => raw.consent.as_ref().map(|consent| consent.max_write),
            _ => None,
        }
    }

    /// Limits of writes and time for `--quick` on a real drive: a hundredth of the size of the file system or drive,
    /// and five minutes. A simulated drive has no such limits.
    pub fn quick_limits(&self, capacity: ByteSize) -> Option<(ByteSize, Nanos)> {
        let size = match self {
            Self::Simulated { .. } | Self::Volume { .. } => return None,
            Self::Directory(path) => rustix::fs::statvfs(path)
                .map_or(capacity, |space| ByteSize(space.f_blocks.saturating_mul(space.f_frsize))),
            Self::Raw(_) => capacity,
        };
        Some((ByteSize(size.0 / 100), Nanos(300_000_000_000)))
    }

    /// As [`Self::open`]; where a simulated drive has a file system, a new file in it of `wanted` bytes, or of half the
    /// drive if that is less, as a program sees it that goes around the page cache.
    ///
    /// # Errors
    /// As [`Self::open`], and when there is no space for the file.
    pub fn open_as_file(&self, seed: u64, wanted: ByteSize) -> Result<Box<dyn BlockDevice + Send>, TuneError> {
        match self {
            Self::Simulated { config, host: Host::Linux { kernel, .. }, .. } => {
                self.file_on(SimulatedSsd::new(*config.clone(), seed)?, kernel, wanted)
            }
            Self::Volume { volume, host: Host::Linux { kernel, .. }, .. } => {
                self.file_on(SimulatedVolume::new(*volume.clone(), seed)?, kernel, wanted)
            }
            _ => self.open(seed, wanted),
        }
    }

    fn file_on<D: BlockDevice + Send + 'static>(
        &self,
        device: D,
        kernel: &KernelConfig,
        wanted: ByteSize,
    ) -> Result<Box<dyn BlockDevice + Send>, TuneError> {
        let failed = |error: flashwise_kernel::KernelError| TuneError::Target(format!("{self}: {error}"));
        let half = ByteSize(device.info().capacity.bytes() / 2 / PAGE * PAGE);
        let kernel = Kernel::new(device, kernel.clone()).map_err(failed)?;
        Ok(Box::new(KernelFile::create(kernel, wanted.min(half)).map_err(failed)?))
    }

    /// Whether it is a file: in a directory, or in the file system of a simulated drive.
    pub fn is_file(&self) -> bool {
        matches!(self, Self::Directory(_)) || matches!(self.host(), Some(Host::Linux { .. }))
    }

    /// Opens the drive: a new simulated one, a new scratch file of at most `wanted` bytes that is deleted when the
    /// device is dropped, or a block device, of which at most the first `wanted` bytes are written.
    ///
    /// # Errors
    /// When the simulated drive is impossible, the directory cannot hold a scratch file, or there is an objection to
    /// writing to the block device.
    pub fn open(&self, seed: u64, wanted: ByteSize) -> Result<Box<dyn BlockDevice + Send>, TuneError> {
        Ok(match self {
            Self::Simulated { config, .. } => Box::new(SimulatedSsd::new(*config.clone(), seed)?),
            Self::Volume { volume, .. } => Box::new(SimulatedVolume::new(*volume.clone(), seed)?),
            Self::Directory(path) => Box::new(FileDevice::scratch(path, wanted)?),
            Self::Raw(raw) => Box::new(match raw.consent(wanted) {
                Some(consent) => FileDevice::raw_destructive(&raw.path, &consent)?,
                None => FileDevice::raw_read_only(&raw.path)?,
            }),
        })
    }
}

impl RawTarget {
    fn new(path: &Path, options: &RawOptions) -> Self {
        let consent = options.destructive.then(|| Consent {
            confirmation: options.confirmation.clone(),
            allowed_signatures: options.allowed_signatures.clone(),
            max_write: options.max_write.unwrap_or(RAW_MAX_WRITE),
        });
        Self { path: path.to_owned(), consent }
    }

    /// Its path, as the user named it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn consent(&self, region: ByteSize) -> Option<WriteConsent> {
        self.consent.clone().map(|Consent { confirmation, allowed_signatures, max_write }| WriteConsent {
            confirmation,
            allowed_signatures,
            region,
            max_write,
        })
    }
}

fn no_such_directory(path: &Path) -> String {
    let name = path.display().to_string();
    if Machine::preset(&name).is_ok() {
        return format!("{name}: no such directory; the simulated drive of that name is sim:{name}");
    }
    let shown = if name.is_empty() { "''" } else { &name };
    format!("{shown}: no such directory; a target is sim:PRESET, sim:FILE.toml or a directory")
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simulated { name, .. } | Self::Volume { name, .. } => f.write_str(name),
            Self::Directory(path) | Self::Raw(RawTarget { path, .. }) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProgramTime;

    #[test]
    fn presets_files_and_directories_are_targets() {
        assert_eq!(Target::parse(DEFAULT_TARGET).unwrap().to_string(), DEFAULT_TARGET);
        assert!(matches!(Target::parse("/").unwrap(), Target::Directory(_)));
        let volume = Target::parse("sim:gp3").unwrap();
        assert!(matches!(volume, Target::Volume { .. }) && volume.is_simulated() && !volume.is_file());
        let opened = volume.open(1, ByteSize::mib(1)).unwrap();
        assert_eq!((opened.info().capacity, volume.to_string().as_str()), (ByteSize::gib(100), "sim:gp3"));
        let mounted = volume.with_host(Host::named("ext4", ByteSize::gib(1), ProgramTime::Modelled).unwrap());
        let file = mounted.open_as_file(1, ByteSize::mib(1)).unwrap();
        assert!(mounted.is_file() && file.info().capacity == ByteSize::mib(1), "{:?}", file.info());
    }

    #[test]
    fn what_is_no_target_is_told_and_what_could_lose_data_is_refused() {
        let unknown = Target::parse("sim:samsung").unwrap_err().to_string();
        assert!(unknown.contains("samsung-960-evo"), "{unknown}");
        assert!(Target::parse("/no/such/place").unwrap_err().to_string().contains("no such directory"));
        assert!(Target::parse("").unwrap_err().to_string().starts_with("'': no such directory"));
        assert!(Target::parse("toshiba-xg5").unwrap_err().to_string().ends_with("is sim:toshiba-xg5"));
        assert!(Target::parse("/proc/version").unwrap_err().is_refusal());
        assert!(Target::parse("sim:/no/such.toml").unwrap_err().to_string().starts_with("/no/such.toml: "));
    }

    #[test]
    fn destructive_means_a_block_device_and_nothing_else() {
        let raw = RawOptions { destructive: true, ..RawOptions::default() };
        for target in ["/", DEFAULT_TARGET] {
            let error = Target::parse_with_devices(target, &raw).unwrap_err();
            assert!(matches!(&error, TuneError::Options(why) if why.contains("is not a block device")), "{error}");
        }
        assert!(Target::parse_with_devices("/proc/version", &raw).unwrap_err().is_refusal());
        assert!(Target::parse_with_devices("/", &RawOptions::default()).is_ok());
    }

    #[test]
    fn a_raw_target_without_consent_has_nothing_to_write_and_with_it_a_limit() {
        let limit = |options: &RawOptions| Target::Raw(RawTarget::new(Path::new("/dev/x"), options)).write_limit();
        assert_eq!(limit(&RawOptions { max_write: Some(ByteSize(5)), ..RawOptions::default() }), None);
        let destructive = RawOptions { destructive: true, ..RawOptions::default() };
        assert_eq!(limit(&destructive), Some(RAW_MAX_WRITE));
        assert_eq!(limit(&RawOptions { max_write: Some(ByteSize(5)), ..destructive }), Some(ByteSize(5)));
    }

    #[test]
    fn a_plan_of_a_directory_or_a_simulated_drive_has_no_refusal() {
        let simulated = Target::parse(DEFAULT_TARGET).unwrap().plan(ByteSize::mib(64)).unwrap();
        assert!(simulated.refusal().is_none() && simulated.to_string().contains("nothing"), "{simulated}");
        let directory = Target::Directory(std::env::temp_dir());
        if let Ok(plan) = directory.plan(ByteSize::mib(64)) {
            assert!(plan.to_string().contains("a new scratch file of 64 MiB"), "{plan}");
        }
    }

    #[test]
    fn a_database_may_take_a_tenth_of_the_free_space_of_a_directory() {
        let directory = Target::Directory(std::env::temp_dir());
        assert!(directory.check_space(ByteSize(1)).is_ok());
        let refused = directory.check_space(ByteSize(u64::MAX)).unwrap_err();
        assert!(refused.is_refusal() && refused.to_string().contains("10 % of the"), "{refused}");
        assert!(Target::parse(DEFAULT_TARGET).unwrap().check_space(ByteSize(u64::MAX)).is_ok());
    }
}
