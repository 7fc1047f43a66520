//! Files that the user asked for by name: complete or not there, and never in the place of something else.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use flashwise_block::temporary::TemporaryFolder;
use tempfile::{NamedTempFile, TempPath};

use crate::failure::Failure;

/// How flashwise knows again what it wrote itself.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A profile, TOML.
    Profile,
    /// A page with curves.
    Page,
    /// A table as CSV, whose first column has this name.
    Csv(&'static str),
    /// A table as Parquet.
    Parquet,
    /// Jobs for fio.
    Jobs,
}

/// A file to be written at the end of long work; known from the start to be writable.
#[derive(Debug)]
pub struct Wanted {
    path: PathBuf,
    /// A pipe or a terminal is written to as it is; a file is replaced as a whole.
    is_stream: bool,
}

impl Wanted {
    /// Checks that the file can be written, and that nothing but an earlier one of its kind is lost by that.
    pub fn prepare(path: &Path, kind: Kind) -> Result<Self, Failure> {
        let failed = |e: std::io::Error| Failure::file(path, &e);
        let existing = match fs::metadata(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            other => Some(other.map_err(failed)?),
        };
        match existing.map(|metadata| metadata.file_type()) {
            Some(file) if file.is_dir() => return Err(failed(ErrorKind::IsADirectory.into())),
            Some(device) if device.is_block_device() => {
                return Err(Failure::refused(format!("{}: a raw device is never written to", path.display())));
            }
            Some(file) if file.is_file() => kind.check_replaceable(path)?,
            Some(_) => return Ok(Self { path: path.to_owned(), is_stream: true }),
            None => {}
        }
        // Behind a link, the file that it means is replaced.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let wanted = Self { path, is_stream: false };
        drop(wanted.stage(b"")?);
        Ok(wanted)
    }

    /// Writes the file.
    pub fn write(&self, content: impl AsRef<[u8]>) -> Result<(), Failure> {
        let content = content.as_ref();
        let failed = |e: std::io::Error| Failure::file(&self.path, &e);
        if self.is_stream {
            return fs::OpenOptions::new()
                .write(true)
                .open(&self.path)
                .and_then(|mut stream| stream.write_all(content))
                .map_err(failed);
        }
        self.stage(content)?.persist(&self.path).map(drop).map_err(|e| failed(e.error))
    }

    /// The content under another name beside the file.
    fn stage(&self, content: &[u8]) -> Result<NamedTempFile, Failure> {
        let write = || {
            let mut builder = tempfile::Builder::new();
            let mut file = builder
                .prefix(".flashwise-")
                .permissions(fs::Permissions::from_mode(0o666))
                .tempfile_in(parent(&self.path))?;
            file.write_all(content)?;
            file.as_file().sync_all()?;
            Ok(file)
        };
        write().map_err(|e| Failure::file(&self.path, &e))
    }
}

impl Kind {
    fn check_replaceable(self, path: &Path) -> Result<(), Failure> {
        let (mark, what) = match self {
            Self::Profile => ("schema = \"flashwise.profile\"", "profile"),
            Self::Page => ("Written by flashwise", "page"),
            Self::Csv(first) => (first, "table"),
            Self::Parquet => ("flashwise", "table"),
            Self::Jobs => ("# flashwise: ", "job file"),
        };
        let bytes = fs::read(path).map_err(|e| Failure::file(path, &e))?;
        let has_mark = match self {
            Self::Csv(_) => bytes.starts_with(mark.as_bytes()),
            _ => bytes.windows(mark.len()).any(|window| window == mark.as_bytes()),
        };
        if bytes.is_empty() || has_mark {
            return Ok(());
        }
        Err(Failure::refused(format!("{}: exists and is no {what} of flashwise; it is not replaced", path.display())))
    }
}

/// Checks that a new file can be created, and leaves nothing behind.
pub fn check_new(path: &Path) -> Result<(), Failure> {
    if fs::symlink_metadata(path).is_ok() {
        return Err(Failure::refused(format!("{}: exists; existing files are never written to", path.display())));
    }
    tempfile::tempfile_in(parent(path)).map(drop).map_err(|e| Failure::file(path, &e))
}

/// Lets `write` make a new file under another name and gives it its own when it is complete; Ctrl-C meanwhile leaves
/// nothing behind.
pub fn create<T>(path: &Path, write: impl FnOnce(&Path) -> Result<T, Failure>) -> Result<T, Failure> {
    check_new(path)?;
    let failed = |e: std::io::Error| Failure::file(path, &e);
    let directory = TemporaryFolder::create_in(parent(path), ".flashwise-").map_err(failed)?;
    let file = directory.path().join("new");
    let written = write(&file)?;
    let file = TempPath::try_from_path(file).map_err(failed)?;
    file.persist_noclobber(path).map_err(|e| failed(e.error))?;
    Ok(written)
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
