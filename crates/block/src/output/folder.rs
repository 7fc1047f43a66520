//! A folder that holds a set of files of one kind, and a list of them.
//!
//! ```text
//!   DIR/flashwise.json     {"schema":"flashwise.folder","schema_version":1,"kind":"raw samples","files":["reads.csv",…]}
//!   DIR/reads.csv …        what the list names
//! ```
//!
//! A folder is written to when it is new, empty, or holds nothing but what its list names. So a file that somebody
//! else put there is never replaced, and never taken for a part of the set by whoever reads the whole folder. What an
//! earlier run listed and this one did not write is removed at the end.
//!
//! The list is written first, with the old and the new names: a run that is killed leaves a folder that the next one
//! knows.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Access, OutputFile, Replaceable, create_directories};

/// The list's own name.
const LIST: &str = "flashwise.json";
const SCHEMA: &str = "flashwise.folder";
/// A list is short; what is longer is none.
const LONGEST_LIST: u64 = 1 << 20;

/// A folder that is being written.
#[derive(Debug)]
pub struct OutputFolder {
    path: PathBuf,
    kind: &'static str,
    /// Files of the run before.
    earlier: BTreeSet<String>,
    /// Files of this run.
    written: BTreeSet<String>,
}

#[derive(Deserialize, Serialize)]
struct List {
    schema: String,
    schema_version: u32,
    kind: String,
    files: BTreeSet<String>,
}

impl OutputFolder {
    /// A folder for files of a kind, made where it is missing.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] with the file that is not of the set; whatever the system refuses.
    pub fn open(path: &Path, kind: &'static str) -> io::Result<Self> {
        create_directories(path)?;
        let earlier = list(path, kind)?.unwrap_or_default();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let name = entry.file_name();
            let is_of_the_set = name.to_str().is_some_and(|name| name == LIST || earlier.contains(name));
            if !is_of_the_set || !entry.file_type()?.is_file() {
                let name = Path::new(&name).display();
                let why = format!(
                    "{name} in it is not of an earlier set of {kind} of flashwise; nothing there is replaced or \
                     removed: give a new or an empty folder"
                );
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
            }
        }
        Ok(Self { path: path.to_owned(), kind, earlier, written: BTreeSet::new() })
    }

    /// Writes one file of the set.
    ///
    /// # Errors
    /// As [`OutputFile::replace`].
    pub fn write(&mut self, name: &str, content: &[u8]) -> io::Result<PathBuf> {
        if self.written.insert(name.to_owned()) {
            self.write_list(self.earlier.union(&self.written).cloned().collect())?;
        }
        let path = self.path.join(name);
        place(&path, content, self.earlier.contains(name) || fs::symlink_metadata(&path).is_err())?;
        self.earlier.insert(name.to_owned());
        Ok(path)
    }

    /// Ends the set: files of an earlier one that this one does not have are removed.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn finish(self) -> io::Result<()> {
        for name in self.earlier.difference(&self.written) {
            remove_listed(&self.path.join(name))?;
        }
        self.write_list(self.written.clone())
    }

    fn write_list(&self, files: BTreeSet<String>) -> io::Result<()> {
        let list = List { schema: SCHEMA.into(), schema_version: 1, kind: self.kind.into(), files };
        let text = serde_json::to_string(&list).map_err(io::Error::from)? + "\n";
        place(&self.path.join(LIST), text.as_bytes(), true)
    }
}

/// The names that a folder's list has; `None` where it has no list.
fn list(folder: &Path, kind: &str) -> io::Result<Option<BTreeSet<String>>> {
    let path = folder.join(LIST);
    let mut read = None;
    Replaceable::recognise(&path, |file| {
        let text = io::read_to_string(io::Read::take(file, LONGEST_LIST)).unwrap_or_default();
        read = serde_json::from_str::<List>(&text).ok();
        Ok(read.as_ref().is_some_and(|list| list.schema == SCHEMA && list.kind == kind))
    })
    .map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => io::Error::new(
            error.kind(),
            format!("{LIST} in it is no list of {kind} of flashwise; give a new or an empty folder"),
        ),
        _ => error,
    })?;
    // A name is a name in this folder, whatever somebody wrote into the list.
    let is_plain = |name: &String| !name.contains('/') && name != "." && name != "..";
    Ok(read.map(|list| list.files.into_iter().filter(is_plain).collect()))
}

/// Writes a file, over an earlier one where that is known to be of the set.
fn place(path: &Path, content: &[u8], is_known: bool) -> io::Result<()> {
    let earlier = Replaceable::recognise(path, |_| Ok(is_known))?;
    let mut new = OutputFile::create(path, Access::Usual)?;
    io::Write::write_all(new.file(), content)?;
    match earlier {
        Some(earlier) => new.replace(&earlier)?,
        None => new.publish()?,
    };
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "a file that the folder's own list names")]
fn remove_listed(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
