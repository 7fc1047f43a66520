//! Output files named by the user: they are complete or absent, and never replace a file of another kind.
//!
//! All files are written through `flashwise_block::output`. This module decides which earlier file may be replaced
//! ([`OwnFile`], recognised by its content), and refuses an output that is also an input of the same command.

use std::any::TypeId;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap::parser::ValueSource;
use flashwise_block::output::{Access, OutputFile, OutputPath, Replaceable, create_growing, directory_of, publish_all};
use flashwise_report::OwnFile;
use flashwise_trace::workload::Workload;

use crate::arguments::{Arguments, command_line};
use crate::failure::Failure;

/// A file to be written at the end of long work; known from the start to be writable.
#[derive(Debug)]
pub struct Wanted {
    /// As the user gave it, for messages.
    named: PathBuf,
    /// With links resolved.
    path: PathBuf,
    place: Place,
}

/// Where it goes.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// A pipe or a terminal, which is written to directly.
    Stream,
    /// A file is replaced as a whole, an earlier one of this kind.
    File(OwnFile),
}

impl Wanted {
    /// Checks that the file can be written, that nothing but an earlier one of its kind is lost by that, and that the
    /// command does not read it.
    pub fn prepare(path: &Path, kind: OwnFile) -> Result<Self, Failure> {
        let wanted = Self::prepare_updated(path, kind)?;
        if matches!(wanted.place, Place::File(_)) && named_arguments(&wanted.path) > 1 {
            return Err(Failure::refused(format!(
                "{}: this command names it twice and would overwrite its own input; name another file",
                path.display()
            )));
        }
        Ok(wanted)
    }

    /// The same for a file that the command may read and then replace with an updated version.
    pub fn prepare_updated(path: &Path, kind: OwnFile) -> Result<Self, Failure> {
        let failed = |e: io::Error| Failure::file(path, &e);
        let existing = match fs::metadata(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            other => Some(other.map_err(failed)?),
        };
        match existing.map(|metadata| metadata.file_type()) {
            Some(file) if file.is_dir() => return Err(failed(ErrorKind::IsADirectory.into())),
            Some(device) if device.is_block_device() => {
                return Err(Failure::refused(format!("{}: a raw device is never written to", path.display())));
            }
            Some(file) if !file.is_file() => return Ok(Self::stream(path)),
            _ => {}
        }
        // Through a link, its target is replaced.
        let behind = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let wanted = Self { named: path.to_owned(), path: behind, place: Place::File(kind) };
        wanted.stage(kind).map(drop)?;
        Ok(wanted)
    }

    fn stream(path: &Path) -> Self {
        Self { named: path.to_owned(), path: path.to_owned(), place: Place::Stream }
    }

    /// Writes the file.
    pub fn write(&self, content: impl AsRef<[u8]>) -> Result<(), Failure> {
        let content = content.as_ref();
        let failed = |e: io::Error| Failure::file(&self.named, &e);
        let Place::File(kind) = self.place else {
            let stream = fs::OpenOptions::new().write(true).open(&self.path);
            return stream.and_then(|mut stream| stream.write_all(content)).map_err(failed);
        };
        let (mut new, old) = self.stage(kind)?;
        new.file().write_all(content).map_err(failed)?;
        let placed = match old {
            Some(old) => new.replace(&old),
            None => new.publish(),
        };
        placed.map(drop).map_err(|e| not_replaced(&self.named, kind, &e))
    }

    /// A new file, and the earlier one that it may replace.
    fn stage(&self, kind: OwnFile) -> Result<(OutputFile, Option<Replaceable>), Failure> {
        let path = &self.path;
        // An empty file, such as mktemp makes, holds nothing that could be lost.
        let is_ours = |file: File| Ok(file.metadata()?.len() == 0 || kind.recognises(file)?);
        let old = Replaceable::recognise(path, is_ours).map_err(|e| not_replaced(&self.named, kind, &e))?;
        let stage = || OutputFile::create(path, if old.is_some() { Access::of(path)? } else { Access::Usual });
        stage().map(|new| (new, old)).map_err(|e| Failure::file(&self.named, &e))
    }
}

fn not_replaced(path: &Path, kind: OwnFile, error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::AlreadyExists => {
            let (path, kind) = (path.display(), kind.name());
            Failure::refused(format!("{path}: exists and is not a flashwise {kind}; it is not replaced"))
        }
        _ => Failure::file(path, error),
    }
}

/// How many values on the command line name this file, in any form. The type of an option or argument shows whether its
/// values are files. The name of a preset is not a file, even if a file has that name; the name of a workload is a file
/// only if that exists.
fn named_arguments(file: &Path) -> usize {
    let mut command = Arguments::command();
    let Ok(mut matches) = command.try_get_matches_from_mut(command_line()) else { return 0 };
    let mut command = &command;
    while let Some((name, below)) = matches.remove_subcommand() {
        let Some(verb) = command.find_subcommand(name) else { break };
        (command, matches) = (verb, below);
    }
    let wanted = Identity::of(file);
    let given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let options = command.get_arguments().filter(|option| given(option.get_id().as_str()));
    let values = options.flat_map(|option| {
        let values = matches.get_raw(option.get_id().as_str()).unwrap_or_default();
        values.filter_map(|value| named_file(option, value))
    });
    values.filter(|path| Identity::of(path) == wanted).count()
}

/// The file that a value means.
fn named_file<'a>(option: &clap::Arg, value: &'a OsStr) -> Option<&'a Path> {
    let kind = option.get_value_parser().type_id();
    let text = value.to_str().unwrap_or_default();
    if kind == TypeId::of::<String>() {
        // A drive or a workload: sim:FILE.toml, FILE.toml, or the name of one that is built in.
        let name = text.strip_prefix("sim:").unwrap_or(text);
        return (name.ends_with(".toml") || name.contains('/')).then_some(Path::new(name));
    }
    let path = Path::new(value);
    let is_workload = option.is_positional() && Workload::NAMES.contains(&text) && !path.exists();
    (kind == TypeId::of::<PathBuf>() && !is_workload).then_some(path)
}

/// Identity of a path: device and inode of an existing file; directory and name otherwise.
#[derive(PartialEq, Eq)]
enum Identity {
    File(u64, u64),
    Free(Option<(u64, u64)>, Option<std::ffi::OsString>),
}

impl Identity {
    fn of(path: &Path) -> Self {
        let numbers = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        match fs::metadata(path).map(numbers) {
            Ok((device, inode)) => Self::File(device, inode),
            Err(_) => Self::Free(fs::metadata(directory_of(path)).ok().map(numbers), path.file_name().map(Into::into)),
        }
    }
}

/// Checks that a new file can be created, and leaves nothing behind.
pub fn check_new(path: &Path) -> Result<(), Failure> {
    if fs::symlink_metadata(path).is_ok() {
        return Err(exists(path));
    }
    OutputFile::create(path, Access::Usual).map(drop).map_err(|e| Failure::file(path, &e))
}

fn exists(path: &Path) -> Failure {
    Failure::refused(format!("{}: exists; existing files are never written to", path.display()))
}

fn not_published(path: &Path, error: &io::Error) -> Failure {
    if error.kind() == ErrorKind::AlreadyExists { exists(path) } else { Failure::file(path, error) }
}

/// Lets `write` fill a new file, which gets its name when it is complete.
pub fn create<T>(path: &Path, write: impl FnOnce(&mut File) -> Result<T, Failure>) -> Result<T, Failure> {
    check_new(path)?;
    let mut new = OutputFile::create(path, Access::Usual).map_err(|e| Failure::file(path, &e))?;
    let written = write(new.file())?;
    new.publish().map_err(|e| not_published(path, &e))?;
    Ok(written)
}

/// The same for a file that is made from `source`, whose owner and mode it gets.
pub fn create_as<T>(
    source: &Path,
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<T, Failure>,
) -> Result<T, Failure> {
    check_new(path)?;
    let mut new = OutputFile::create(path, access_of(source)?).map_err(|e| Failure::file(path, &e))?;
    let written = write(new.file())?;
    new.publish().map_err(|e| not_published(path, &e))?;
    Ok(written)
}

/// The access that a file made from `source` gets; an absent source is reported by the code that opens it.
fn access_of(source: &Path) -> Result<Access, Failure> {
    match Access::of(source) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(Access::Usual),
        access => access.map_err(|e| Failure::file(source, &e)),
    }
}

/// Lets `write` create a file under a temporary name, as SQLite needs it; the file gets the owner and mode of `source`,
/// and its final name when it is complete. After Ctrl-C nothing is left.
pub fn create_from<T>(
    source: &Path,
    path: &Path,
    write: impl FnOnce(&Path) -> Result<T, Failure>,
) -> Result<T, Failure> {
    check_new(path)?;
    let new = OutputPath::create(path, access_of(source)?).map_err(|e| Failure::file(path, &e))?;
    let written = write(&new.path())?;
    new.publish().map_err(|e| not_published(path, &e))?;
    Ok(written)
}

/// Writes a new file whole.
pub fn write_new(path: &Path, content: &[u8]) -> Result<(), Failure> {
    flashwise_block::output::write_new(path, content).map(drop).map_err(|e| not_published(path, &e))
}

/// Writes new files, all of them or none.
pub fn write_all_new(files: &[(PathBuf, String)]) -> Result<(), Failure> {
    let staged = files.iter().map(|(path, text)| {
        check_new(path)?;
        let write = || {
            let mut new = OutputFile::create(path, Access::Usual)?;
            new.file().write_all(text.as_bytes())?;
            Ok(new)
        };
        write().map(|new| (new, None)).map_err(|e| Failure::file(path, &e))
    });
    publish_all(staged.collect::<Result<_, _>>()?).map_err(|(path, e)| not_published(&path, &e))
}

/// Copies a file to a new one.
pub fn copy_new(from: &Path, to: &Path) -> Result<(), Failure> {
    let mut new = OutputFile::create(to, Access::Usual).map_err(|e| Failure::file(to, &e))?;
    let mut source = File::open(from).map_err(|e| Failure::file(from, &e))?;
    io::copy(&mut source, new.file()).map_err(|e| Failure::file(to, &e))?;
    new.publish().map(drop).map_err(|e| not_published(to, &e))
}

/// A new file that is written incrementally: written data is kept if the program is interrupted.
pub fn grow(path: &Path) -> Result<File, Failure> {
    create_growing(path).map_err(|e| not_published(path, &e))
}
