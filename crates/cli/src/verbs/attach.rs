//! `flashwise attach`.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use flashwise_attach::control::control_path;
use flashwise_attach::nbd::measure_round_trip;
use flashwise_attach::{
    AttachError, Attached, Capture, Cgroup, Continuation, DataFile, Engine, FileSystem, MountedAt, Pace, Server, Stop,
    available_memory,
};
use flashwise_block::{ByteSize, Request, execute};
use flashwise_report::render_attach;
use flashwise_sim::{Machine, precondition};
use flashwise_ssd::{DeviceConfig, SimulatedSsd, SsdError};
use flashwise_volume::{SimulatedVolume, Volume};

use super::attach_interrupt::Listener;
use super::{attach_command, attach_watchdog, read_machine};
use crate::arguments::{AttachArguments, Data, PreconditionName, ServeArguments, Time};
use crate::failure::Failure;
use crate::files;
use crate::output::{Output, note};
use crate::progress::Bar;
use crate::traces::written_format;

/// Where a command finds the drive: its URI, and its file.
const URI: &str = "FLASHWISE_NBD";
const DISK: &str = "FLASHWISE_DISK";
/// And where its file system is, and the block device below that.
const MOUNT: &str = "FLASHWISE_MOUNT";
const DEVICE: &str = "FLASHWISE_DEVICE";
/// And its control socket.
const CONTROL: &str = "FLASHWISE_CONTROL";
/// And where Prometheus finds it.
const METRICS: &str = "FLASHWISE_METRICS";
/// The error if nothing says how the drive is to be reached.
const NO_PLACE: &str = "say where the drive is to appear: --mount DIR (a file system, as root), --fuse DIR (a file) or \
                        --nbd unix:PATH (a socket)";
/// What an empty drive means for whoever measures it as a block device. A file system reads only what it wrote.
const EMPTY: &str = "the drive is empty: reads of pages that were never written do not reach the flash and are faster \
                     than on a drive with data; --precondition fill writes every page first";
/// The drive with which the way to the client is measured, where a volume is attached: the way is not the drive's.
const WAY: &str = "samsung-960-evo";
/// How often it is looked whether a command has ended.
const LOOK: Duration = Duration::from_millis(10);

/// Attaches a drive, or does something to one that is attached.
pub fn run(arguments: &AttachArguments, output: &Output) -> Result<ExitCode, Failure> {
    match (&arguments.action, &arguments.serve) {
        (Some(action), _) => attach_command::run(action, output),
        (None, Some(options)) => serve(options, output),
        (None, None) => Err(Failure::usage("give a drive; see 'flashwise attach --help'")),
    }
}

/// Serves a drive until the user, the clock or the command ends it.
fn serve(options: &ServeArguments, output: &Output) -> Result<ExitCode, Failure> {
    if options.nbd.is_none() && options.fuse.is_none() && options.mount.is_none() {
        return Err(Failure::usage(NO_PLACE));
    }
    let machine = read_machine(&options.device)?;
    let pace = pace(options)?;
    let listener = Listener::start();
    let Subject { name, attached, data, is_thin, way } = match machine {
        Machine::Drive(config) => Subject::drive(options, *config)?,
        Machine::Volume(volume) => Subject::volume(options, *volume)?,
        Machine::Array(_) => return Err(SsdError::IsArray { path: options.device.clone() }.into()),
    };
    let is_new = data.as_ref().is_none_or(DataFile::is_new);
    let is_empty = is_new && options.precondition == PreconditionName::Empty && matches!(attached, Attached::Drive(_));
    let round_trip = round_trip(options, &way, pace)?;
    let capture = options.capture.as_deref().map(|path| capture(path, options)).transpose()?;
    let mut engine = Engine::new(attached, pace, round_trip, capture, Instant::now())?;
    if let Some(memory) = memory(options).filter(|_| data.is_none() || is_thin) {
        engine.limit_memory(memory, 1 + u64::from(options.power_cuts));
    }
    if let Some(data) = data {
        engine.store_content_in(data, options.power_cuts);
    }
    let mut server = Server::new(engine)?;
    server.on_message(note);
    if options.round_trip.is_none() && pace != Pace::Free {
        server.measures_round_trips();
    }
    server.set_watchdog(attach_watchdog::command, Duration::from_nanos(options.watchdog.0));
    // From here on, mounts, sockets and files are cleaned up before the end, however long that takes.
    listener.serves();
    let places = Places::open(options, &mut server)?;
    let stop = server.stop();
    listener.attached(stop.clone(), places.disk.clone());
    if options.command.is_empty() {
        let until = options.runtime.map_or_else(|| "Ctrl-C detaches it".to_owned(), |runtime| format!("for {runtime}"));
        note(&format!("{name} is at {places}; {until}"));
        // For a command, the report says how many such reads there were.
        if is_empty && options.mount.is_none() {
            note(EMPTY);
        }
    }
    if let Some(runtime) = options.runtime {
        let stop = stop.clone();
        thread::spawn(move || {
            thread::sleep(Duration::from_nanos(runtime.0));
            stop.request();
        });
    }
    // Removed at the end, when no process is in it.
    let apart = options.mount.as_ref().filter(|_| !options.command.is_empty()).and_then(|_| apart());
    let started = start(options, &places, apart.as_ref(), output)?;
    let ended = started.map(|child| thread::spawn(move || wait(child, &stop)));
    let mut engine = server.run()?;
    let detached = engine.detach();
    let report = engine.finish()?;
    output.print(&report, |style| render_attach(&report, style))?;
    detached?;
    match ended.map(thread::JoinHandle::join) {
        Some(Ok(Ok(status))) if !status.success() => {
            Err(Failure::error(format!("{}: {status}", options.command[0].to_string_lossy())))
        }
        Some(Ok(Err(error))) => Err(Failure::error(format!("{}: {error}", options.command[0].to_string_lossy()))),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// What is attached.
struct Subject {
    name: String,
    attached: Attached,
    data: Option<DataFile>,
    /// Whether what it holds depends on the content.
    is_thin: bool,
    /// A drive with which the way to the client is measured.
    way: DeviceConfig,
}

impl Subject {
    fn drive(options: &ServeArguments, config: DeviceConfig) -> Result<Self, Failure> {
        let (mut drive, data) = drive(options, &config)?;
        if options.power_cuts {
            execute(&mut drive, Request::flush())?;
            drive.allow_power_cuts()?;
        }
        let (name, is_thin) = (config.name.clone(), config.reduction.is_some());
        Ok(Self { name, attached: drive.into(), data, is_thin, way: config })
    }

    fn volume(options: &ServeArguments, volume: Volume) -> Result<Self, Failure> {
        let refused =
            |what: &str| Err(Failure::usage(format!("{}: {what} is for drives, and this is a volume", options.device)));
        if matches!(options.data, Data::File(_)) || options.data_sync {
            return refused("--data FILE");
        }
        if options.power_cuts {
            return refused("--power-cuts");
        }
        if !volume.others.is_empty() {
            // A file system's requests go over the end of a volume.
            let what = "attach serves one volume, and this file has several: leave out instance.volumes";
            return Err(Failure::usage(format!("{}: {what}", options.device)));
        }
        let name = volume.config.name.clone();
        let mut simulated = SimulatedVolume::new(volume, options.seed)?;
        if options.precondition != PreconditionName::Empty {
            let Some(drive) = simulated.drive_mut() else { return refused("--precondition") };
            precondition(drive, options.precondition.into(), options.seed, &mut Bar::new())?;
            simulated.follow_drive();
        }
        let way = DeviceConfig::preset(WAY)?;
        Ok(Self { name, attached: simulated.into(), data: None, is_thin: false, way })
    }
}

/// The drive, new or out of its files.
fn drive(options: &ServeArguments, config: &DeviceConfig) -> Result<(SimulatedSsd, Option<DataFile>), Failure> {
    let new = || {
        let mut drive = SimulatedSsd::new(config.clone(), options.seed)?;
        let mut bar = Bar::new();
        precondition(&mut drive, options.precondition.into(), options.seed, &mut bar)?;
        Ok::<_, Failure>(drive)
    };
    let Data::File(path) = &options.data else {
        if options.data_sync {
            return Err(Failure::usage("--data-sync needs a file; give one with --data FILE"));
        }
        return Ok((new()?, None));
    };
    if options.memory.is_some() && config.reduction.is_none() {
        return Err(Failure::usage(
            "--memory limits --data memory; with --data FILE, no written data is held in memory",
        ));
    }
    let mut data = DataFile::open(path, ByteSize(config.capacity_bytes))?;
    if !data.is_new() && options.precondition != PreconditionName::Empty {
        let words = "the file has a drive, which continues from its state; --precondition is for a new drive";
        return Err(Failure::usage(format!("{}: {words}", path.display())));
    }
    if options.data_sync {
        data.sync_at_flush();
    }
    let (drive, continuation) = data.drive(config, new)?;
    if continuation != Continuation::New {
        note(&format!("{}: {continuation}", path.display()));
    }
    Ok((drive, Some(data)))
}

/// Where the drive can be reached.
struct Places {
    uri: Option<String>,
    disk: Option<PathBuf>,
    mount: Option<Mount>,
    control: Option<PathBuf>,
    metrics: Option<String>,
}

/// Where its file system is.
struct Mount {
    directory: PathBuf,
    kind: FileSystem,
    at: MountedAt,
}

impl Places {
    /// Opens the requested front ends.
    fn open(options: &ServeArguments, server: &mut Server) -> Result<Self, Failure> {
        if let Some(path) = &options.nbd {
            server.listen(path)?;
        }
        if let Some(directory) = &options.fuse {
            server.mount(directory)?;
        }
        let mount = options.mount.as_deref().map(|directory| Mount::at(directory, options, server)).transpose()?;
        let control = open_control(options, server)?;
        let uri = options.nbd.as_deref().map(|path| format!("nbd+unix:///disk?socket={}", escaped(path)));
        let disk = options.fuse.as_deref().map(|directory| absolute(directory).join("disk"));
        let metrics = options.metrics.map(|at| server.metrics(at, options.metrics_anywhere)).transpose()?;
        let metrics = metrics.map(|at| format!("http://{at}/metrics"));
        Ok(Self { uri, disk, mount, control, metrics })
    }

    fn environment(&self) -> impl Iterator<Item = (&str, OsString)> {
        let uri = self.uri.iter().map(|uri| (URI, uri.into()));
        let disk = self.disk.iter().map(|disk| (DISK, disk.into()));
        let control = self.control.iter().map(|control| (CONTROL, control.into()));
        let mount = self.mount.iter();
        let mount =
            mount.flat_map(|mount| [(MOUNT, mount.directory.clone().into()), (DEVICE, mount.at.device.clone().into())]);
        uri.chain(disk).chain(mount).chain(control).chain(self.metrics.iter().map(|metrics| (METRICS, metrics.into())))
    }
}

impl Mount {
    fn at(directory: &Path, options: &ServeArguments, server: &mut Server) -> Result<Self, Failure> {
        let at = server.mount_as(directory, options.fs.into(), options.offset)?;
        Ok(Self { directory: absolute(directory), kind: at.kind, at })
    }
}

impl fmt::Display for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} on {}", self.directory.display(), self.kind.name(), self.at.device.display())?;
        self.at.locked_bytes.map_or(Ok(()), |bytes| write!(f, ", {} of memory locked", ByteSize(bytes)))?;
        f.write_str(")")
    }
}

impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let disk = self.disk.as_ref().map(|disk| disk.display().to_string());
        let mount = self.mount.as_ref().map(Mount::to_string);
        let places: Vec<_> = self.uri.iter().cloned().chain(disk).chain(mount).collect();
        f.write_str(&places.join(" and "))?;
        self.metrics.iter().try_for_each(|metrics| write!(f, ", its metrics at {metrics}"))
    }
}

/// Opens the control socket at the path of `--control`, or beside each place of the drive. A default path that cannot
/// be used is reported; only a path that the user gave is an error.
fn open_control(options: &ServeArguments, server: &mut Server) -> Result<Option<PathBuf>, Failure> {
    if let Some(path) = &options.control {
        server.control(path)?;
        return Ok(Some(absolute(path)));
    }
    let mut first = None;
    for place in options.nbd.iter().chain(&options.fuse).chain(&options.mount) {
        let path = control_path(place);
        match server.control(&path) {
            Ok(()) => first = first.or(Some(path)),
            Err(error) => {
                note(&format!("{error}; the drive has no control socket; --control PATH sets another path"));
            }
        }
    }
    Ok(first)
}

/// The limit of memory for written data. A mounted drive must not wait for memory, so by default half of the free
/// memory is left for other programs.
fn memory(options: &ServeArguments) -> Option<ByteSize> {
    let half = || available_memory().map(|free| ByteSize(free / 2));
    options.memory.or_else(|| options.mount.as_ref().and_then(|_| half()))
}

fn pace(options: &ServeArguments) -> Result<Pace, Failure> {
    match options.time {
        Time::Real => Ok(Pace::scaled(options.time_scale)?),
        Time::None if options.time_scale != 1.0 => {
            Err(Failure::usage("--time-scale slows the drive down and has no effect with --time none"))
        }
        Time::None => Ok(Pace::Free),
    }
}

/// The time subtracted from each latency.
fn round_trip(options: &ServeArguments, config: &DeviceConfig, pace: Pace) -> Result<Duration, Failure> {
    match (options.round_trip, pace) {
        (Some(given), _) => Ok(Duration::from_nanos(given.0)),
        (None, Pace::Free) => Ok(Duration::ZERO),
        (None, Pace::Scaled(_)) => Ok(measure_round_trip(config, pace)?),
    }
}

/// The trace of all requests. It is written incrementally, so it is kept if the program is interrupted.
fn capture(path: &Path, options: &ServeArguments) -> Result<Capture, Failure> {
    let name = path.display().to_string();
    if flashwise_trace::Compression::of_name(&name).0 != flashwise_trace::Compression::None {
        return Err(Failure::usage(format!("{name}: a capture is written uncompressed; .parquet is compact")));
    }
    let format = written_format(path, options.capture_format)?;
    let file = files::grow(path)?;
    Ok(Capture::start(format, BufWriter::with_capacity(1 << 18, file), &name)?)
}

/// A path, percent-encoded for a URI.
fn escaped(path: &Path) -> String {
    let path = absolute(path);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    bytes.map(|&byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A cgroup whose I/O does not wait for flushes in the loop driver.
fn apart() -> Option<Cgroup> {
    let group = Cgroup::of_io().inspect_err(|why| {
        let words = "reads and writes of the command wait for its flushes in the kernel's loop driver";
        // It is not an error if stderr is closed.
        note(&format!("{words}, since it cannot have an I/O cgroup of its own: {why}"));
    });
    group.ok().flatten()
}

fn start(
    options: &ServeArguments,
    places: &Places,
    apart: Option<&Cgroup>,
    output: &Output,
) -> Result<Option<Child>, Failure> {
    use std::os::fd::AsFd;
    let Some((program, arguments)) = options.command.split_first() else { return Ok(None) };
    let mut command = Command::new(program);
    command.args(arguments).envs(places.environment());
    if output.is_json() {
        let stderr = io::stderr().as_fd().try_clone_to_owned();
        command.stdout(stderr.map_or_else(|_| Stdio::null(), Stdio::from));
    }
    let started = match apart {
        Some(group) => group.spawn(&mut command),
        None => command.spawn(),
    };
    Ok(Some(started.map_err(|error| Failure::file(program.as_ref(), &error))?))
}

/// Waits for the command, and ends the server with it.
fn wait(mut child: Child, stop: &Stop) -> io::Result<ExitStatus> {
    let ended = loop {
        match child.try_wait() {
            Ok(None) => thread::sleep(LOOK),
            Ok(Some(status)) => break Ok(status),
            Err(error) => break Err(error),
        }
    };
    stop.request();
    ended
}

impl From<AttachError> for Failure {
    fn from(error: AttachError) -> Self {
        match error {
            AttachError::TimeScale(_) => Self::usage(error.to_string()),
            AttachError::Place { .. } | AttachError::Data { .. } | AttachError::NotLoopback(_) => {
                Self::refused(error.to_string())
            }
            _ => Self::error(error),
        }
    }
}
