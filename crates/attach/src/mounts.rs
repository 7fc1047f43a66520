//! The mounts of this machine, from the kernel's table, never from the file systems, which may not respond.
//!
//! Source of the form of `/proc/self/mountinfo`: `proc_pid_mountinfo(5)`.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// Major and minor number of its device.
    pub(crate) device: (u32, u32),
    pub(crate) point: PathBuf,
    /// The file system's type, such as `ext4` or `fuse.flashwise`.
    pub(crate) kind: String,
    pub(crate) source: String,
}

/// All mounts of this process's, the latest last.
pub(crate) fn mounts() -> io::Result<Vec<Mount>> {
    std::fs::read("/proc/self/mountinfo").map(|table| parse(&String::from_utf8_lossy(&table)))
}

/// Reads the table; a line in another form is left out.
pub(crate) fn parse(table: &str) -> Vec<Mount> {
    table.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Mount> {
    let (place, kind) = line.split_once(" - ")?;
    let place: Vec<_> = place.split(' ').collect();
    let mut kind = kind.split(' ');
    Some(Mount {
        device: device(place.get(2)?)?,
        point: unescaped(place.get(4)?).into(),
        kind: kind.next()?.to_owned(),
        source: kind.next()?.to_owned(),
    })
}

/// `7:3`.
pub(crate) fn device(numbers: &str) -> Option<(u32, u32)> {
    let (major, minor) = numbers.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// A path without the escapes of blanks (`\040`) and the like.
fn unescaped(text: &str) -> OsString {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, behind @ ..] = rest {
        let digits = behind.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            bytes.push(byte);
            rest = &behind[3..];
        } else {
            bytes.push(*first);
            rest = behind;
        }
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_with_its_optional_fields_and_its_blanks() {
        let table = "\
22 1 0:21 / / rw - ext4 /dev/vda rw
91 22 7:3 / /mnt/with\\040blank rw shared:7 master:2 - xfs /dev/loop3 rw
broken
";
        let mounts = parse(table);
        assert_eq!(mounts.len(), 2);
        let expected = Mount {
            device: (7, 3),
            point: "/mnt/with blank".into(),
            kind: "xfs".to_owned(),
            source: "/dev/loop3".to_owned(),
        };
        assert_eq!(mounts[1], expected);
        assert!(!super::mounts().unwrap().is_empty(), "this machine has some");
    }
}
