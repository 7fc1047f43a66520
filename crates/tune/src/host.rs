//! What stands between a database and a simulated drive.

use flashwise_block::{BlockDevice, ByteSize};
use flashwise_kernel::{FileSystemKind, KernelConfig};
use flashwise_sqlite::{Backend, FileSystem};

use crate::TuneError;

/// Where the files of a database on a simulated drive are.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Host {
    /// On the bare drive: requests go to it as the database makes them.
    #[default]
    Bare,
    /// In a file system, under Linux's page cache.
    Linux {
        /// The file system and the kernel.
        kernel: Box<KernelConfig>,
        /// How long the database's own code takes.
        program: ProgramTime,
    },
}

/// How long the code of the database and its program takes on a simulated machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProgramTime {
    /// So long for a statement and for each step of SQLite's virtual machine; a run has the same result each time.
    #[default]
    Modelled,
    /// As measured by this machine's CPU clock.
    Measured,
}

/// Names of [`ProgramTime`] on the command line.
pub const PROGRAM_TIMES: [(&str, ProgramTime); 2] =
    [("modelled", ProgramTime::Modelled), ("measured", ProgramTime::Measured)];

impl ProgramTime {
    /// By its name.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn named(name: &str) -> Result<Self, TuneError> {
        let found = PROGRAM_TIMES.iter().find(|(known, _)| *known == name).map(|&(_, time)| time);
        found.ok_or_else(|| {
            let known = flashwise_block::names::choices(name, PROGRAM_TIMES.iter().map(|&(known, _)| known));
            TuneError::Options(format!("--program-time {name}: unknown; {known}"))
        })
    }
}

/// The bare drive, where a file system is named.
const NO_FILE_SYSTEM: &str = "none";

impl Host {
    /// A machine with a file system of that name and so much memory for the page cache; `none` is the bare drive.
    ///
    /// # Errors
    /// When there is no file system of that name.
    pub fn named(file_system: &str, memory: ByteSize, program: ProgramTime) -> Result<Self, TuneError> {
        if file_system == NO_FILE_SYSTEM {
            return Ok(Self::Bare);
        }
        let file_system = FileSystemKind::named(file_system).map_err(|why| {
            TuneError::Options(format!("--file-system: {why}, or {NO_FILE_SYSTEM} for the bare drive"))
        })?;
        let kernel = Box::new(KernelConfig { file_system, memory, ..KernelConfig::default() });
        Ok(Self::Linux { kernel, program })
    }

    /// The place for a database's files on a drive.
    pub fn backend(&self, device: Box<dyn BlockDevice + Send>) -> Backend {
        match self {
            Self::Bare => Backend::Drive(device),
            Self::Linux { kernel, .. } => Backend::FileSystem(Box::new(FileSystem {
                device,
                kernel: (**kernel).clone(),
                measures_program: self.measures_program(),
            })),
        }
    }

    /// Whose CPU time is part of the times, in a sentence's words.
    pub fn describe_program(&self) -> &'static str {
        match self {
            Self::Bare => "no time of SQLite's own code",
            Self::Linux { program: ProgramTime::Modelled, .. } => "a model of the time that SQLite's own code takes",
            Self::Linux { program: ProgramTime::Measured, .. } => "SQLite's CPU time as measured on this machine",
        }
    }

    /// Whether SQLite's time on this machine is part of the times.
    pub(crate) fn measures_program(&self) -> bool {
        matches!(self, Self::Linux { program: ProgramTime::Measured, .. })
    }

    pub(crate) fn models_program(&self) -> bool {
        matches!(self, Self::Linux { program: ProgramTime::Modelled, .. })
    }

    /// In a sentence's words, such as `ext4 under a page cache of 4 GiB`.
    pub fn describe(&self) -> String {
        match self {
            Self::Bare => "the bare drive".to_owned(),
            Self::Linux { kernel, .. } => {
                let name = kernel.file_system.name();
                format!("{name} under a page cache of {}", kernel.memory)
            }
        }
    }
}

/// Memory of this machine that is free for a page cache; 4 GiB where that cannot be known.
pub fn free_memory() -> ByteSize {
    const UNKNOWN: ByteSize = ByteSize::gib(4);
    let Ok(text) = std::fs::read_to_string("/proc/meminfo") else { return UNKNOWN };
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.map_or(UNKNOWN, |kib| ByteSize(kib.saturating_mul(1024)))
}
