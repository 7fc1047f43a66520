//! Input files of the user. A file that must be regular is checked before anything waits for it, and text files have a
//! limit.
//!
//! Opening a named pipe without a writer blocks, and some devices never end. A text that is read once, such as a
//! profile, may come through a pipe; a database, an image or a table that is read in several places may not.
//!
//! Source: `open(2)` on `O_NONBLOCK`, `fifo(7)`.

use std::fs::{File, FileType};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// The longest configuration, profile or list of statements that is read, bytes.
pub const TEXT_MAX: u64 = 256 << 20;

/// Whether a symbolic link is followed to a file; those in directories of its path always are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Also a file that a link names.
    Follow,
    /// A link is refused: the user did not choose the name.
    Refuse,
}

/// Opens a regular file for reading; also through a link.
///
/// # Errors
/// As [`open_regular_as`].
pub fn open_regular(path: &Path) -> io::Result<File> {
    open_regular_as(path, Links::Follow, false)
}

/// Opens a regular file that exists for reading, or for writing too.
///
/// # Errors
/// When it is not a regular file, with its kind in the message, or cannot be opened. Neither case blocks.
pub fn open_regular_as(path: &Path, links: Links, writes: bool) -> io::Result<File> {
    // Without waiting for a writer of a pipe or for a terminal's line; of no meaning for a regular file.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    // Opening some devices has side effects: the name is checked first, then the opened file.
    let (named, flags) = match links {
        Links::Follow => (std::fs::metadata(path)?, flags),
        Links::Refuse => (std::fs::symlink_metadata(path)?, flags | OFlags::NOFOLLOW),
    };
    check_kind(named.file_type())?;
    let file = File::options().read(true).write(writes).custom_flags(flags.bits().cast_signed()).open(path)?;
    check_kind(file.metadata()?.file_type())?;
    Ok(file)
}

/// Fails if a path is not a regular file, for a file that other code opens by name.
///
/// # Errors
/// When it is not a regular file, with its kind in the message, or does not exist.
pub fn check_regular(path: &Path) -> io::Result<()> {
    check_kind(std::fs::metadata(path)?.file_type())
}

fn check_kind(found: FileType) -> io::Result<()> {
    match kind(found) {
        None => Ok(()),
        Some(what) => Err(not_regular(what)),
    }
}

fn not_regular(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("it is {what}; give a regular file"))
}

/// The kind of a file that is not regular.
fn kind(kind: FileType) -> Option<&'static str> {
    match kind {
        _ if kind.is_file() => None,
        _ if kind.is_symlink() => Some("a symbolic link"),
        _ if kind.is_dir() => Some("a directory"),
        _ if kind.is_fifo() => Some("a named pipe"),
        _ if kind.is_char_device() => Some("a character device"),
        _ if kind.is_block_device() => Some("a block device"),
        _ if kind.is_socket() => Some("a socket"),
        _ => Some("no file"),
    }
}

/// Reads a text of at most [`TEXT_MAX`] bytes, from a file or a pipe.
///
/// # Errors
/// When it cannot be read, is a block device, a directory or a socket, is too long or is not UTF-8.
pub fn read_text(path: impl AsRef<Path>) -> io::Result<String> {
    read_text_of(path.as_ref(), TEXT_MAX)
}

fn read_text_of(path: &Path, most: u64) -> io::Result<String> {
    let found = std::fs::metadata(path)?.file_type();
    if found.is_block_device() || found.is_dir() || found.is_socket() {
        return Err(not_regular(kind(found).unwrap_or_default()));
    }
    let mut text = Vec::new();
    File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut text)?;
    if text.len() as u64 > most {
        let message = format!("it is longer than {} MiB, the limit for text files", most >> 20);
        return Err(io::Error::new(ErrorKind::InvalidData, message));
    }
    String::from_utf8(text).map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_is_opened_and_nothing_waits() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link, pipe) = (folder.path().join("f"), folder.path().join("l"), folder.path().join("p"));
        std::fs::write(&file, "text").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
        assert!(open_regular(&file).is_ok() && open_regular(&link).is_ok());
        assert!(open_regular_as(&file, Links::Refuse, true).unwrap().set_len(3).is_ok());
        let words = open_regular_as(&link, Links::Refuse, true).unwrap_err().to_string();
        assert_eq!(words, "it is a symbolic link; give a regular file");
        for (path, what) in [
            (pipe.as_path(), "a named pipe"),
            (Path::new("/dev/zero"), "a character device"),
            (folder.path(), "a directory"),
        ] {
            for refused in [open_regular(path).map(drop), check_regular(path)] {
                let words = refused.unwrap_err().to_string();
                assert_eq!(words, format!("it is {what}; give a regular file"));
            }
        }
        assert_eq!(open_regular(&folder.path().join("none")).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_text_comes_through_a_pipe_and_has_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("p");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::write(pipe, "a profile").unwrap()
        });
        assert_eq!(read_text(&pipe).unwrap(), "a profile");
        writer.join().unwrap();
        let endless = read_text_of(Path::new("/dev/zero"), 1 << 20).unwrap_err().to_string();
        assert_eq!(endless, "it is longer than 1 MiB, the limit for text files");
    }
}
