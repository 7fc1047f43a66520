//! The path of a drive's control socket, and how it is found from the user's text.
//!
//! | the drive is at | its control socket |
//! |---|---|
//! | the Unix socket `/run/ssd.sock` | `/run/ssd.sock.control` |
//! | the directory `/mnt/ssd` | `/mnt/ssd.control` |
//!
//! A path consists of the directory's real path and the last part of the name, so that a mount need not respond for its
//! drive to be found.

use std::path::{Path, PathBuf};

/// Suffix of the path.
const SUFFIX: &str = "control";

/// Where the control socket of a drive is that is at `place`: a Unix socket, or a directory.
pub fn control_path(place: &Path) -> PathBuf {
    real_parent(place).with_added_extension(SUFFIX)
}

/// Possible paths of a drive's control socket, the likeliest first. `place` is the user's text: the drive's socket with
/// or without `unix:`, its URI, its directory or the file in it, or the control socket itself.
pub fn control_candidates(place: &str) -> Vec<PathBuf> {
    let place = match place.split_once("socket=") {
        Some((scheme, socket)) if scheme.starts_with("nbd") => unescaped(socket.split('&').next().unwrap_or_default()),
        _ => PathBuf::from(place.strip_prefix("unix:").unwrap_or(place)),
    };
    let mut candidates = vec![control_path(&place)];
    if let Ok(all_real) = place.canonicalize() {
        candidates.push(all_real.with_added_extension(SUFFIX));
    }
    if place.file_name().is_some_and(|name| name == crate::DISK)
        && let Some(directory) = absolute(&place).parent()
    {
        candidates.push(control_path(directory));
    }
    candidates.push(place);
    candidates.dedup();
    candidates
}

/// A path with its directories resolved; its last part is unmodified.
pub(crate) fn real_parent(path: &Path) -> PathBuf {
    let path = absolute(path);
    match (path.parent().and_then(|parent| parent.canonicalize().ok()), path.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => path,
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A path decoded from a URI.
fn unescaped(text: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, behind @ ..] = rest {
        let code = behind.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => (bytes.push(byte), rest = &behind[2..]).1,
            None => (bytes.push(*first), rest = behind).1,
        }
    }
    std::ffi::OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_name_a_drive_leads_to_its_control_socket() {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("mnt")).unwrap();
        std::os::unix::fs::symlink(&real, real.join("link")).unwrap();
        let at = |name: &str| real.join(name).display().to_string();
        let socket = real.join("a b.sock.control");
        for said in [
            at("a b.sock"),
            format!("unix:{}", at("a b.sock")),
            format!("nbd+unix:///disk?socket={}", at("a%20b.sock")),
            at("link/a b.sock"),
            at("a b.sock.control"),
        ] {
            assert!(control_candidates(&said).contains(&socket), "{said}");
        }
        assert_eq!(control_path(&real.join("link/a b.sock")), socket);
        for said in [at("mnt"), at("mnt/"), at("mnt/disk"), at("link/mnt"), at("link/mnt/disk")] {
            assert!(control_candidates(&said).contains(&real.join("mnt.control")), "{said}");
        }
    }
}
