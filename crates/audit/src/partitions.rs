//! Alignment of a drive's partitions to its flash page, write unit and stripe, and to a card's allocation unit.
//!
//! A file system reads and writes whole blocks, counted from the start of its partition. If that start is off the flash
//! page, each block straddles two pages; if it is off the write unit or the stripe, no write of the file system starts
//! on one. That is rule 13 seen from the partition table instead of from a trace: it is judged before anything was
//! written.

use flashwise_block::{ByteSize, Partition, PartitionTable, TableKind};
use flashwise_profile::{DeviceProfile, Figure};
use serde::{Deserialize, Serialize};

/// The partitions of one drive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionAudit {
    /// The drive or the image, as the user named it.
    pub drive: String,
    /// The form of its partition table.
    pub table: TableKind,
    /// Figures of the drive that a start was checked against, such as `flash page`, with their bytes; none if the
    /// profile has none that is certain.
    pub figures: Vec<AlignmentFigure>,
    /// The partitions, in the order of the table.
    pub partitions: Vec<PartitionAlignment>,
    /// What would help.
    pub remedy: String,
}

/// A figure of the drive that partitions should start at multiples of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlignmentFigure {
    /// Its name.
    pub figure: String,
    /// Its bytes.
    pub figure_bytes: u64,
}

/// One partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionAlignment {
    /// Its number.
    pub number: u32,
    /// Its first byte.
    pub start_bytes: u64,
    /// How long it is.
    pub length_bytes: u64,
    /// What its start is off.
    pub misplaced: Vec<Misalignment>,
}

/// A figure that a start is no multiple of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Misalignment {
    /// The figure's name.
    pub figure: String,
    /// Its bytes.
    pub figure_bytes: u64,
    /// How far behind a multiple of it the partition starts.
    pub remainder_bytes: u64,
}

impl PartitionAudit {
    /// Holds a table against a drive.
    pub fn new(drive: String, table: &PartitionTable, profile: &DeviceProfile) -> Self {
        let p = &profile.parameters;
        let known = |(name, figure): (&str, &Figure<u64>)| {
            figure
                .known()
                .filter(|&bytes| bytes > 1)
                .map(|figure_bytes| AlignmentFigure { figure: name.to_owned(), figure_bytes })
        };
        let unit = &profile.card.allocation_unit_bytes;
        let figures = [
            ("flash page", &p.page_bytes),
            ("write unit", &p.write_unit_bytes),
            ("stripe", &p.stripe_bytes),
            ("allocation unit", unit),
        ];
        let figures: Vec<AlignmentFigure> = figures.into_iter().filter_map(known).collect();
        let place = |partition: &Partition| placed(partition, &figures);
        let partitions = table.partitions.iter().map(place).collect();
        let remedy = match unit.known() {
            Some(unit) if !(1_u64 << 20).is_multiple_of(unit.max(1)) => {
                format!("recreate the partition at a multiple of {}", ByteSize(unit))
            }
            _ => "recreate the partition at a multiple of 1 MiB, the default of parted and fdisk".to_owned(),
        };
        Self { drive, table: table.kind, partitions, figures, remedy }
    }

    /// Whether a partition is misaligned to one of the figures.
    pub fn is_violated(&self) -> bool {
        self.partitions.iter().any(|partition| !partition.misplaced.is_empty())
    }
}

fn placed(partition: &Partition, figures: &[AlignmentFigure]) -> PartitionAlignment {
    let &Partition { number, start: ByteSize(start_bytes), length: ByteSize(length_bytes) } = partition;
    let off = |held: &AlignmentFigure| Misalignment {
        figure: held.figure.clone(),
        figure_bytes: held.figure_bytes,
        remainder_bytes: start_bytes % held.figure_bytes,
    };
    let misplaced = figures.iter().map(off).filter(|off| off.remainder_bytes > 0).collect();
    PartitionAlignment { number, start_bytes, length_bytes, misplaced }
}
