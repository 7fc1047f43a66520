//! The name of a device over files, made and taken apart again.

/// What stands between the number of threads and the reason for them.
const NO_RING: &str = " threads, no io_uring: ";

/// The parts of such a name, as a profile has it, such as `/mnt/ssd (ext4)` or
/// `/mnt/ssd (ext4, 64 threads, no io_uring: Function not implemented)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileTitle<'a> {
    /// Directory, file, or block device with its model.
    pub place: &'a str,
    /// The kind of the file system that a directory or a file is on.
    pub file_system: Option<&'a str>,
    /// Whether requests go through io_uring.
    pub has_io_uring: bool,
}

impl<'a> FileTitle<'a> {
    /// Takes a name of a directory or a file apart.
    pub fn of_file(name: &'a str) -> Self {
        let device = Self::of_device(name.strip_suffix(')').unwrap_or(name));
        match device.place.rsplit_once(" (") {
            Some((place, file_system)) => Self { place, file_system: Some(file_system), ..device },
            None => Self { place: name, ..device },
        }
    }

    /// Takes a name of a block device apart; a name of any other drive is its place.
    pub fn of_device(name: &'a str) -> Self {
        let (place, has_io_uring) = match name.find(NO_RING) {
            Some(at) => (name[..at].trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches(", "), false),
            None => (name, true),
        };
        Self { place, file_system: None, has_io_uring }
    }
}

/// The words for an engine of threads.
pub(super) fn threads_instead_of_ring(threads: usize, why: &std::io::Error) -> String {
    format!("{threads}{NO_RING}{why}")
}

/// The name of a directory or a file.
pub(super) fn file_title(place: &std::path::Path, file_system: &str, note: Option<&str>) -> String {
    let details = [Some(file_system), note].into_iter().flatten().collect::<Vec<_>>().join(", ");
    format!("{} ({details})", place.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_name_is_taken_apart_into_what_it_was_made_of() {
        let note = threads_instead_of_ring(64, &std::io::Error::from_raw_os_error(1));
        for place in ["/mnt/ssd", "/mnt/my disk (2)"] {
            let with = |note| file_title(Path::new(place), "ext4", note);
            let expected = FileTitle { place, file_system: Some("ext4"), has_io_uring: true };
            assert_eq!(FileTitle::of_file(&with(None)), expected);
            assert_eq!(FileTitle::of_file(&with(Some(&note))), FileTitle { has_io_uring: false, ..expected });
        }
        let device = FileTitle { place: "/dev/sda (X 1)", file_system: None, has_io_uring: true };
        assert_eq!(FileTitle::of_device("/dev/sda (X 1)"), device);
        let without = format!("/dev/sda (X 1), {note}");
        assert_eq!(FileTitle::of_device(&without), FileTitle { has_io_uring: false, ..device });
    }
}
