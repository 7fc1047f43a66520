//! Whether a place in a database's file is a place on the drive, and what lies between.
//!
//! Hot locations, stripes and flash pages are places on the drive. On a file system that moves its files, or on a
//! volume that spreads its bytes, a place in the file is none of these, so that what rests on places is not tried.

use flashwise_block::Placement;

use super::knobs::HOT_LOCATIONS;
use crate::Target;

/// Techniques that put bytes at places of the drive.
const REST_ON_PLACES: [&str; 3] = [HOT_LOCATIONS, "write-aligned-stripes", "contain-write-in-flash-page"];

/// What is known of the places of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Places {
    /// On a simulated drive, they are the simulation's.
    Simulated,
    /// On a real drive, through these layers.
    Known(Placement),
    /// They cannot be tied to places on a drive, and why.
    Unknown(String),
}

impl Places {
    /// Finds them for a target: in a directory, by a small file that is gone at once.
    pub(crate) fn of(target: &Target) -> Self {
        match target {
            Target::Directory(directory) => match Placement::of(directory) {
                Ok(placement) => Self::Known(placement),
                Err(why) => Self::Unknown(why.to_string()),
            },
            Target::Simulated { .. } | Target::Volume { .. } | Target::Raw(_) => Self::Simulated,
        }
    }

    /// Whether a technique does here what it is for.
    pub(crate) fn allow(&self, technique: &str) -> bool {
        !matches!(self, Self::Unknown(_)) || !REST_ON_PLACES.contains(&technique)
    }

    /// What lies between file and drive, where that is worth a note.
    pub(crate) fn note(&self) -> Option<String> {
        match self {
            Self::Known(placement) if !placement.layers.is_empty() => Some(format!(
                "Places in the database's file are counted on the drive itself, through what lies between: {placement}."
            )),
            Self::Unknown(why) => Some(format!(
                "A place in the database's file cannot be tied to a place on the drive: {why}. So {} are not tried.",
                REST_ON_PLACES.join(", ")
            )),
            Self::Simulated | Self::Known(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwise_block::ByteSize;

    #[test]
    fn what_rests_on_places_is_left_out_where_they_are_unknown_and_the_reason_is_noted() {
        let unknown = Places::Unknown("btrfs does not keep a file at a fixed place on the drive".into());
        assert!(REST_ON_PLACES.iter().all(|technique| !unknown.allow(technique)));
        assert!(unknown.allow("concurrent-write-back") && unknown.allow("sparse-log"));
        let note = unknown.note().unwrap();
        assert!(
            note.contains("btrfs does not keep") && note.contains("use-hot-locations, write-aligned-stripes"),
            "{note}"
        );
        assert!(Places::Simulated.allow(HOT_LOCATIONS) && Places::Simulated.note().is_none());
    }

    #[test]
    fn what_lies_between_is_noted_and_nothing_where_there_is_nothing() {
        let mut placement = Placement {
            file_system: "ext4".into(),
            drive: "nvme0n1".into(),
            start: ByteSize::mib(17),
            layers: vec!["LVM volume vg-data from 16 MiB on".into(), "partition nvme0n1p1 from 1 MiB on".into()],
        };
        let known = Places::Known(placement.clone());
        assert!(known.allow(HOT_LOCATIONS));
        let note = known.note().unwrap();
        let words = "ext4 on nvme0n1, from 17 MiB on, through LVM volume vg-data from 16 MiB on, partition nvme0n1p1";
        assert!(note.contains(words), "{note}");
        placement.layers.clear();
        assert_eq!(Places::Known(placement).note(), None);
    }

    #[test]
    fn a_directory_is_tried_and_left_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        assert_ne!(Places::of(&Target::Directory(directory.path().to_owned())), Places::Simulated);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
