//! Files of results that take hours: a line for each finished part, so that an interrupted run goes on from there.
//!
//! ```text
//!   open ─▶ a regular file, or a new one ─▶ locked ─▶ each whole line is read ─▶ add ─▶ cut behind the last whole
//!                                                                               line ─▶ line ─▶ fdatasync ─▶ …
//! ```
//!
//! The reader of the lines recognises its own file by the first one: a file that it refuses is not written to. A last
//! line without its end is of a part that was cut off; it is cut off when the next line is added. After a failed write
//! nothing more is added, because a line behind a part of one would be read as one with it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::input::{Links, TEXT_MAX, open_regular_as};
use crate::locked::LockedFile;

/// An open file of results; while it is, no other run adds to it.
#[derive(Debug)]
pub struct ResultsFile {
    file: LockedFile,
    /// Bytes up to the end of the last whole line.
    whole: u64,
    /// The file may have more than that.
    is_torn: bool,
    has_failed: bool,
}

impl ResultsFile {
    /// Opens one or starts one, and reads its whole lines, the first of which is the reader's own heading. A file that
    /// the reader refuses, or that has no whole line, stays as it is.
    ///
    /// # Errors
    /// Those of the reader; of the file when it is no regular one, another run adds to it, it is not UTF-8, or a line
    /// of it is longer than [`TEXT_MAX`].
    pub fn open<E: From<io::Error>>(path: &Path, mut read: impl FnMut(&str) -> Result<(), E>) -> Result<Self, E> {
        let file = LockedFile::where_possible(open_or_create(path)?)
            .map_err(|_| io::Error::other("another run is adding to it"))?;
        let (mut whole, mut reader, mut line) = (0, BufReader::new(&*file), Vec::new());
        let is_torn = loop {
            line.clear();
            let length = (&mut reader).take(TEXT_MAX).read_until(b'\n', &mut line)? as u64;
            match line.split_last() {
                None => break false,
                Some((b'\n', text)) => read(std::str::from_utf8(text).map_err(|_| not_text())?)?,
                Some(_) if length < TEXT_MAX => break true,
                Some(_) => return Err(too_long().into()),
            }
            whole += length;
        };
        Ok(Self { file, whole, is_torn, has_failed: false })
    }

    /// Whether it has no byte, and needs its heading.
    pub fn is_empty(&self) -> bool {
        self.whole == 0 && !self.is_torn
    }

    /// Adds a line, without its end; it is on the medium when this returns.
    ///
    /// # Errors
    /// When it cannot be written, as after an earlier such error, or when it is none.
    pub fn add(&mut self, line: &str) -> io::Result<()> {
        if self.has_failed {
            return Err(io::Error::other("an earlier line could not be written"));
        }
        if line.contains('\n') || line.len() as u64 >= TEXT_MAX {
            return Err(too_long());
        }
        let line = format!("{line}\n");
        self.has_failed = true;
        if self.is_torn {
            self.cut()?;
        }
        self.file.seek(SeekFrom::Start(self.whole))?;
        self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data())?;
        self.whole += line.len() as u64;
        self.has_failed = false;
        Ok(())
    }

    #[allow(clippy::disallowed_methods, reason = "part of a line, behind lines that the reader knew for its own")]
    fn cut(&mut self) -> io::Result<()> {
        self.file.set_len(self.whole)?;
        self.is_torn = false;
        Ok(())
    }
}

/// The file that is read is the one that is written, whatever has its name meanwhile.
#[allow(clippy::disallowed_methods, reason = "a new file, and no other")]
fn open_or_create(path: &Path) -> io::Result<File> {
    match open_regular_as(path, Links::Follow, true) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        opened => return opened,
    }
    match File::options().read(true).write(true).create_new(true).open(path) {
        // Another run has started one.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => open_regular_as(path, Links::Follow, true),
        created => created,
    }
}

fn not_text() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "it is not UTF-8 text")
}

fn too_long() -> io::Error {
    let words = format!("a line of it is longer than {} MiB, the limit for text", TEXT_MAX >> 20);
    io::Error::new(ErrorKind::InvalidData, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &Path) -> io::Result<(ResultsFile, Vec<String>)> {
        let mut lines = Vec::new();
        let file = ResultsFile::open(path, |line| {
            lines.push(line.to_owned());
            if line == "foreign" { Err(io::Error::other("foreign")) } else { Ok(()) }
        })?;
        Ok((file, lines))
    }

    #[test]
    fn what_was_cut_off_is_written_again_and_what_was_refused_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r");
        let (mut file, read) = lines(&path).unwrap();
        assert!(file.is_empty() && read.is_empty());
        file.add("heading").unwrap();
        file.add("one").unwrap();
        drop(file);
        std::fs::write(&path, "heading\none\ntw").unwrap();
        let (mut file, read) = lines(&path).unwrap();
        assert_eq!(read, ["heading", "one"]);
        file.add("3").unwrap();
        drop(file);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "heading\none\n3\n");
        for text in ["foreign\ncut", "cut", "heading\n\u{ff}"] {
            std::fs::write(&path, text).unwrap();
            let opened = lines(&path);
            assert!(opened.is_err() || text != "foreign\ncut");
            drop(opened);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        std::fs::write(&path, b"\xff\n").unwrap();
        assert_eq!(lines(&path).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn two_runs_do_not_add_to_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r");
        let first = lines(&path).unwrap();
        assert_eq!(lines(&path).unwrap_err().to_string(), "another run is adding to it");
        drop(first);
        lines(&path).unwrap();
    }

    #[test]
    fn only_a_regular_file_with_lines_of_bounded_length_is_read_and_nothing_waits() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, long) = (folder.path().join("p"), folder.path().join("l"));
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
        assert_eq!(lines(&pipe).unwrap_err().to_string(), "it is a named pipe; give a regular file");
        let words = lines(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(words, "it is a character device; give a regular file");
        File::create(&long).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(lines(&long).unwrap_err().to_string(), "a line of it is longer than 256 MiB, the limit for text");
        let (mut file, _) = lines(&folder.path().join("new")).unwrap();
        assert!(file.add("two\nlines").is_err() && file.is_empty());
    }

    #[test]
    fn behind_part_of_a_line_nothing_is_added() {
        // A full disk.
        let mut file = ResultsFile {
            file: LockedFile::where_possible(File::options().write(true).open("/dev/full").unwrap()).unwrap(),
            whole: 0,
            is_torn: false,
            has_failed: false,
        };
        assert_eq!(file.add("one").unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(file.add("two").unwrap_err().to_string(), "an earlier line could not be written");
    }
}
