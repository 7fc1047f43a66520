//! A folder that contains a set of files of one kind, and a list of them.
//!
//! ```text
//!   DIR/.flashwise.json    {"schema":"flashwise.folder","schema_version":1,"kind":"raw samples",
//!                           "files":[["reads.csv","89b5f6c8b0e5f2a1"],…]}
//!   DIR/reads.csv …        the listed files, each with the FNV-1a of its bytes
//! ```
//!
//! A folder is written to only if it is new, empty, or contains nothing but the files of its list, unmodified. So a
//! file that somebody else put there or edited is never replaced, and never read as a part of the set. Files that an
//! earlier run listed and this one did not write are deleted at the end.
//!
//! The list is written before each file, with the old and the new entries, so the next run recognises a folder after a
//! kill.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Access, OutputFile, Replaceable, create_directories, remove_directories};

/// The list's own name.
const LIST: &str = ".flashwise.json";
const SCHEMA: &str = "flashwise.folder";
/// Limit of a list's length.
const LONGEST_LIST: u64 = 1 << 20;

/// A folder that is being written.
#[derive(Debug)]
pub struct OutputFolder {
    path: PathBuf,
    kind: &'static str,
    /// Files of runs before.
    earlier: BTreeSet<Entry>,
    /// Files of this run.
    written: BTreeSet<Entry>,
    /// Directories that were made for these files.
    made: Vec<PathBuf>,
}

/// A file's name, and its checksum.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
struct Entry(String, String);

#[derive(Deserialize, Serialize)]
struct List {
    schema: String,
    schema_version: u32,
    kind: String,
    files: BTreeSet<Entry>,
}

impl OutputFolder {
    /// Opens a folder for files of a kind; creates it if needed.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] with the file that is not of the set; otherwise the system's error.
    pub fn open(path: &Path, kind: &'static str) -> io::Result<Self> {
        let made = create_directories(path)?;
        let earlier = list(path, kind)?;
        for entry in fs::read_dir(path)? {
            let name = entry?.file_name();
            if name != LIST {
                // The list has text: another name is of a file that is not listed.
                let is_ours = |file| name.to_str().map_or(Ok(false), |name| is_listed(&earlier, name, file));
                Replaceable::recognise(&path.join(&name), is_ours)
                    .map_err(|error| foreign(&name.to_string_lossy(), kind, error))?;
            }
        }
        Ok(Self { path: path.to_owned(), kind, earlier, written: BTreeSet::new(), made })
    }

    /// Writes one file of the set.
    ///
    /// # Errors
    /// As [`OutputFile::replace`].
    pub fn write(&mut self, name: &str, content: &[u8]) -> io::Result<PathBuf> {
        self.written.insert(Entry(name.to_owned(), checksum(content)));
        let known: BTreeSet<Entry> = self.earlier.union(&self.written).cloned().collect();
        self.write_list(&known)?;
        let path = self.path.join(name);
        place(&path, content, |file| is_listed(&known, name, file)).map_err(|error| foreign(name, self.kind, error))?;
        Ok(path)
    }

    /// Ends the set: files of an earlier one that this one does not have are removed.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn finish(self) -> io::Result<()> {
        let names: BTreeSet<&str> = self.written.iter().map(|entry| &*entry.0).collect();
        for Entry(name, _) in self.earlier.iter().filter(|entry| !names.contains(&*entry.0)) {
            remove_listed(&self.path.join(name), |file| is_listed(&self.earlier, name, file))?;
        }
        self.write_list(&self.written)
    }

    fn write_list(&self, files: &BTreeSet<Entry>) -> io::Result<()> {
        let files = files.clone();
        let list = List { schema: SCHEMA.into(), schema_version: 1, kind: self.kind.into(), files };
        let text = serde_json::to_string(&list).map_err(io::Error::from)? + "\n";
        place(&self.path.join(LIST), text.as_bytes(), |file| Ok(read_list(file, self.kind).is_some()))
    }
}

/// A folder that was made for files of which none came is removed.
impl Drop for OutputFolder {
    fn drop(&mut self) {
        if self.written.is_empty() {
            remove_directories(&self.made);
        }
    }
}

fn foreign(name: &str, kind: &str, error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let why = format!(
                "{name}: exists and is not one of the {kind} written by flashwise, or was changed since; it is not \
                 replaced; give a new or an empty directory"
            );
            io::Error::new(io::ErrorKind::AlreadyExists, why)
        }
        _ => error,
    }
}

/// Whether a file is as a list has it.
fn is_listed(list: &BTreeSet<Entry>, name: &str, mut file: File) -> io::Result<bool> {
    if !list.iter().any(|entry| entry.0 == name) {
        return Ok(false);
    }
    let (mut sum, mut piece) = (Checksum::default(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(list.contains(&Entry(name.to_owned(), sum.text()))),
            read => sum.add(&piece[..read]),
        }
    }
}

/// FNV-1a, 64 bits: detects edits, not forgery.
struct Checksum(u64);

impl Default for Checksum {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Checksum {
    fn add(&mut self, bytes: &[u8]) {
        let fold = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        self.0 = bytes.iter().fold(self.0, fold);
    }

    fn text(&self) -> String {
        format!("{:016x}", self.0)
    }
}

fn checksum(content: &[u8]) -> String {
    let mut sum = Checksum::default();
    sum.add(content);
    sum.text()
}

/// The entries of a folder's list; none if it has no list.
fn list(folder: &Path, kind: &str) -> io::Result<BTreeSet<Entry>> {
    let mut read = None;
    let is_list = |file| {
        read = read_list(file, kind);
        Ok(read.is_some())
    };
    Replaceable::recognise(&folder.join(LIST), is_list).map_err(|error| foreign(LIST, kind, error))?;
    Ok(read.unwrap_or_default())
}

fn read_list(file: File, kind: &str) -> Option<BTreeSet<Entry>> {
    let text = io::read_to_string(file.take(LONGEST_LIST)).ok()?;
    let list: List = serde_json::from_str(&text).ok()?;
    // Only a name in this folder is accepted, whatever the list contains.
    let is_plain = |entry: &Entry| !entry.0.contains('/') && entry.0 != "." && entry.0 != "..";
    let is_ours = list.schema == SCHEMA && list.kind == kind;
    is_ours.then(|| list.files.into_iter().filter(is_plain).collect())
}

/// Writes a file, over an earlier one where that is known.
fn place(path: &Path, content: &[u8], is_known: impl FnOnce(File) -> io::Result<bool>) -> io::Result<()> {
    let earlier = Replaceable::recognise(path, is_known)?;
    let mut new = OutputFile::create(path, if earlier.is_some() { Access::of(path)? } else { Access::Usual })?;
    io::Write::write_all(new.file(), content)?;
    match earlier {
        Some(earlier) => new.replace(&earlier)?,
        None => new.publish()?,
    };
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "a file that is as the folder's own list has it")]
fn remove_listed(path: &Path, is_known: impl FnOnce(File) -> io::Result<bool>) -> io::Result<()> {
    match Replaceable::recognise(path, is_known) {
        Ok(Some(_)) => fs::remove_file(path),
        // Deleted, or replaced by another file, which is kept.
        Ok(None) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}
