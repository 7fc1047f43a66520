//! Where the bytes of a device are on the drive below it.
//!
//! A probe finds periods of the drive: chunks, stripes, hot locations. Through a scratch file it finds them relative to
//! the file, which starts anywhere on the drive. The extents of the file say where:
//!
//! ```text
//!   offset in the file ──▶ extent ──▶ offset in the partition ── + start of the partition ──▶ offset on the drive
//! ```
//!
//! Callers rely on the result, so any doubt is a [`PlacementUnknown`] with its reason.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ByteSize;

/// Consecutive bytes of a device that are consecutive on the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// First byte on the device.
    #[serde(rename = "offset_bytes")]
    pub offset: ByteSize,
    /// First byte on the drive.
    #[serde(rename = "drive_offset_bytes")]
    pub drive_offset: ByteSize,
    /// How many bytes.
    #[serde(rename = "length_bytes")]
    pub length: ByteSize,
}

/// The extents of a device, in the order of its bytes, without holes and without overlaps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtentMap {
    /// The drive, by the kernel's name.
    drive: String,
    extents: Vec<Extent>,
}

/// Why the place of a device on its drive is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{0}")]
pub struct PlacementUnknown(pub String);

/// How the positions on a device and those on its drive are shifted against each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Alignment {
    /// A position on the drive is the position on the device plus this, modulo the requested value, everywhere on the
    /// device.
    Known(ByteSize),
    /// It is not the same everywhere, or not known, and why.
    Unknown(String),
}

impl ExtentMap {
    /// A device that is the drive itself, or starts `start` bytes into it.
    pub fn whole(drive: impl Into<String>, start: ByteSize, capacity: ByteSize) -> Self {
        let extent = Extent { offset: ByteSize(0), drive_offset: start, length: capacity };
        Self { drive: drive.into(), extents: vec![extent] }
    }

    /// Extents that cover `capacity` bytes in order.
    ///
    /// # Errors
    /// When they do not: holes, overlaps, an end before `capacity`.
    pub fn new(drive: impl Into<String>, extents: Vec<Extent>, capacity: ByteSize) -> Result<Self, PlacementUnknown> {
        let mut next = 0;
        for Extent { offset, drive_offset, length } in &extents {
            let fits = offset.0.checked_add(length.0).is_some() && drive_offset.0.checked_add(length.0).is_some();
            if offset.0 != next || length.0 == 0 || !fits {
                return Err(PlacementUnknown(format!("its extents do not cover byte {next}")));
            }
            next += length.0;
        }
        if next < capacity.0 {
            return Err(PlacementUnknown(format!("its extents end at byte {next} of {}", capacity.0)));
        }
        Ok(Self { drive: drive.into(), extents })
    }

    /// The drive, by the kernel's name.
    pub fn drive(&self) -> &str {
        &self.drive
    }

    /// The extents, in the order of the device's bytes.
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Where a byte of the device is on the drive; `None` beyond the end.
    pub fn to_drive(&self, offset: ByteSize) -> Option<ByteSize> {
        let index = self.extents.partition_point(|extent| extent.offset <= offset).checked_sub(1)?;
        let extent = self.extents[index];
        let inside = offset - extent.offset;
        (inside < extent.length).then(|| extent.drive_offset + inside)
    }

    /// Which byte of the device is there on the drive; `None` if none is.
    pub fn to_device(&self, drive_offset: ByteSize) -> Option<ByteSize> {
        self.extents.iter().find_map(|extent| {
            let inside = ByteSize(drive_offset.0.checked_sub(extent.drive_offset.0)?);
            (inside < extent.length).then(|| extent.offset + inside)
        })
    }

    /// How device and drive are shifted against each other modulo `modulus`, where that is the same everywhere on the
    /// device.
    pub fn alignment(&self, modulus: ByteSize) -> Alignment {
        if modulus.0 == 0 {
            return Alignment::Unknown("an alignment to 0 bytes is not possible".into());
        }
        let shift = |extent: &Extent| {
            let (drive, device) = (extent.drive_offset.0 % modulus.0, extent.offset.0 % modulus.0);
            ByteSize((drive + (modulus.0 - device)) % modulus.0)
        };
        let Some(first) = self.extents.first() else { return Alignment::Known(ByteSize(0)) };
        match self.extents.iter().find(|extent| shift(extent) != shift(first)) {
            None => Alignment::Known(shift(first)),
            Some(other) => Alignment::Unknown(format!(
                "of its {} extents, the one at byte {} is shifted by {} modulo {modulus} and the first by {}",
                self.extents.len(),
                other.offset.0,
                shift(other),
                shift(first)
            )),
        }
    }
}

impl fmt::Display for Alignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(shift) => write!(f, "shifted by {shift}"),
            Self::Unknown(why) => write!(f, "unknown: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn extent(offset: u64, drive_offset: u64, length: u64) -> Extent {
        Extent { offset: ByteSize(offset), drive_offset: ByteSize(drive_offset), length: ByteSize(length) }
    }

    #[test]
    fn a_whole_drive_is_aligned_to_everything_and_a_partition_by_its_start() {
        let start = ByteSize(2048 * 512 + 4096);
        let partition = ExtentMap::whole("sda", start, ByteSize::mib(64));
        assert_eq!(partition.alignment(ByteSize::mib(1)), Alignment::Known(ByteSize(4096)));
        assert_eq!(partition.alignment(ByteSize(4096)), Alignment::Known(ByteSize(0)));
        assert_eq!(partition.to_drive(ByteSize(5)), Some(start + ByteSize(5)));
        let drive = ExtentMap::whole("sda", ByteSize(0), ByteSize::mib(64));
        assert_eq!(drive.alignment(ByteSize(12_345)), Alignment::Known(ByteSize(0)));
        assert!(matches!(drive.alignment(ByteSize(0)), Alignment::Unknown(_)));
    }

    #[test]
    fn extents_that_are_shifted_differently_have_no_common_alignment_but_for_smaller_units() {
        let extents = vec![extent(0, 1 << 20, 65_536), extent(65_536, (9 << 20) + 4096, 65_536)];
        let map = ExtentMap::new("sda", extents, ByteSize(131_072)).unwrap();
        assert_eq!(map.alignment(ByteSize(4096)), Alignment::Known(ByteSize(0)));
        let Alignment::Unknown(why) = map.alignment(ByteSize(65_536)) else { panic!("known") };
        assert!(why.contains("the one at byte 65536 is shifted by 4 KiB"), "{why}");
    }

    #[test]
    fn holes_overlaps_and_an_early_end_are_no_map() {
        let size = ByteSize(8192);
        for extents in [
            vec![],
            vec![extent(0, 0, 4096)],
            vec![extent(4096, 0, 4096)],
            vec![extent(0, 0, 4096), extent(8192, 8192, 4096)],
            vec![extent(0, 0, 8192), extent(4096, 0, 8192)],
            vec![extent(0, 0, 0), extent(0, 0, 8192)],
            vec![extent(0, u64::MAX, 8192)],
        ] {
            assert!(ExtentMap::new("sda", extents.clone(), size).is_err(), "{extents:?}");
        }
    }

    proptest! {
        #[test]
        fn a_map_agrees_with_a_table_of_single_blocks(
            lengths in prop::collection::vec(1..20u64, 1..12),
            gaps in prop::collection::vec(0..50u64, 12),
            reversed in any::<bool>(),
            modulus in 1..100u64,
        ) {
            // Consecutive places on the drive, assigned to the extents in order or backwards.
            let mut places = Vec::new();
            let mut free = 7;
            for (length, gap) in lengths.iter().zip(&gaps) {
                free += gap;
                places.push(free);
                free += 20;
                prop_assert!(*length < 20);
            }
            if reversed {
                places.reverse();
            }
            let mut extents = Vec::new();
            let mut table = Vec::new();
            for (&length, &place) in lengths.iter().zip(&places) {
                extents.push(extent(table.len() as u64, place, length));
                table.extend(place..place + length);
            }
            let map = ExtentMap::new("x", extents, ByteSize(table.len() as u64)).unwrap();
            for (offset, &place) in table.iter().enumerate() {
                prop_assert_eq!(map.to_drive(ByteSize(offset as u64)), Some(ByteSize(place)));
                prop_assert_eq!(map.to_device(ByteSize(place)), Some(ByteSize(offset as u64)));
            }
            prop_assert_eq!(map.to_drive(ByteSize(table.len() as u64)), None);
            prop_assert_eq!(map.to_device(ByteSize(0)), None);
            let shifts: std::collections::BTreeSet<_> = table
                .iter()
                .enumerate()
                .map(|(offset, &place)| (place + modulus * 100 - offset as u64 % modulus) % modulus)
                .collect();
            match map.alignment(ByteSize(modulus)) {
                Alignment::Known(shift) => prop_assert_eq!(Vec::from_iter(shifts), vec![shift.0]),
                Alignment::Unknown(_) => prop_assert!(shifts.len() > 1),
            }
        }
    }
}
