//! The partitions of a drive or of a disk image, which is only read.
//!
//! ```text
//!   block 0   boot record: 4 entries of 16 bytes at byte 446, 55 AA at byte 510
//!             entry: 0 flag · 4 type · 8 first block u32 · 12 blocks u32, little-endian
//!             type 5, F, 85: a chain of such records, whose entries count from the record and from the chain's start
//!             type EE: the drive has a GUID partition table, and this entry only says so
//!   block 1   "EFI PART" · 72 first block of the entries u64 · 80 their number u32 · 84 bytes of each u32
//!             entry: 0 type, 16 bytes, 0 for none · 32 first block u64 · 40 last block u64
//! ```
//!
//! The records are trusted only within bounds: a partition must be on the drive, and a chain has at most [`LINKS_MAX`]
//! links. Checksums are not checked, since the start of a partition is also useful in a table that needs repair.
//! Source: UEFI Specification 2.10, chapter 5; for chains, the layout used by fdisk(8) and the kernel.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::ByteSize;

/// Logical blocks that a table may count in, smallest first.
const BLOCKS: [u64; 2] = [512, 4096];
/// Bytes of a boot record.
const RECORD: usize = 512;
/// Records of a chain, at most.
const LINKS_MAX: usize = 128;
/// Entries of a GUID partition table that are read, at most; 128 are usual.
const ENTRIES_MAX: u32 = 4096;
/// Bytes of such an entry: at least those that the specification names, at most a block.
const ENTRY_BYTES: std::ops::RangeInclusive<u32> = 128..=4096;

/// How a drive is divided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionTable {
    /// In which form.
    pub kind: TableKind,
    /// The partitions, in the order of the table.
    pub partitions: Vec<Partition>,
}

/// The form of a partition table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TableKind {
    /// A boot record with four entries, and chains of more.
    Mbr,
    /// A GUID partition table.
    Gpt,
}

/// One partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Partition {
    /// Its number, as the kernel counts.
    pub number: u32,
    /// Its first byte on the drive.
    #[serde(rename = "start_bytes")]
    pub start: ByteSize,
    /// How many bytes.
    #[serde(rename = "length_bytes")]
    pub length: ByteSize,
}

/// The partition table of a block device or of a disk image; `None` if it has none.
///
/// # Errors
/// When it is neither, or cannot be read.
pub fn partition_table(path: &Path) -> io::Result<Option<PartitionTable>> {
    let mut file = File::open(path)?;
    let kind = file.metadata()?.file_type();
    if !kind.is_file() && !kind.is_block_device() {
        return Err(io::Error::other("it is neither a disk image nor a block device"));
    }
    read_partitions(&mut file)
}

/// The partition table in these bytes.
///
/// # Errors
/// When they cannot be read.
pub fn read_partitions(drive: &mut (impl Read + Seek)) -> io::Result<Option<PartitionTable>> {
    let size = drive.seek(SeekFrom::End(0))?;
    let Some(record) = bytes_at::<RECORD>(drive, 0)? else { return Ok(None) };
    let Some(entries) = Entry::all(&record) else { return Ok(None) };
    if entries.iter().any(|entry| entry.kind == Entry::PROTECTIVE) {
        for block in BLOCKS {
            if let Some(partitions) = guid_table(drive, block, size)? {
                return Ok(Some(PartitionTable { kind: TableKind::Gpt, partitions }));
            }
        }
    }
    let partitions = boot_record(drive, &entries, size)?;
    Ok((!partitions.is_empty()).then_some(PartitionTable { kind: TableKind::Mbr, partitions }))
}

/// Bytes at a place; `None` where the drive ends before.
fn bytes_at<const N: usize>(drive: &mut (impl Read + Seek), at: u64) -> io::Result<Option<[u8; N]>> {
    let mut bytes = [0; N];
    drive.seek(SeekFrom::Start(at))?;
    match drive.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// A little-endian number at a place that is known to be there.
fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes.iter().skip(at).take(length).rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// An entry of a boot record, in blocks.
#[derive(Clone, Copy, Debug)]
struct Entry {
    kind: u8,
    first: u64,
    blocks: u64,
}

impl Entry {
    const PROTECTIVE: u8 = 0xEE;
    const CHAINS: [u8; 3] = [0x05, 0x0F, 0x85];

    /// The four of a record, if it is one: boot sectors of file systems end with the same two bytes.
    fn all(record: &[u8; RECORD]) -> Option<[Self; 4]> {
        let entries = [446, 462, 478, 494].map(|at| &record[at..at + 16]);
        let is_record = record[510..] == [0x55, 0xAA] && entries.iter().all(|entry| entry[0] & 0x7F == 0);
        is_record.then(|| {
            entries.map(|bytes| Self { kind: bytes[4], first: number(bytes, 8, 4), blocks: number(bytes, 12, 4) })
        })
    }

    fn is_used(&self) -> bool {
        self.kind != 0 && self.blocks > 0
    }

    fn is_chain(&self) -> bool {
        Self::CHAINS.contains(&self.kind)
    }
}

/// The partition with that many blocks, if it is on the drive.
fn partition(number: u32, first: u64, blocks: u64, block: u64, size: u64) -> Option<Partition> {
    let (start, length) = (first.checked_mul(block)?, blocks.checked_mul(block)?);
    let is_there = start > 0 && length > 0 && start.checked_add(length)? <= size;
    is_there.then_some(Partition { number, start: ByteSize(start), length: ByteSize(length) })
}

/// Partitions of a boot record and of the chains that start there. Its blocks have 512 bytes: larger ones come with a
/// GUID partition table.
fn boot_record(drive: &mut (impl Read + Seek), entries: &[Entry; 4], size: u64) -> io::Result<Vec<Partition>> {
    let block = BLOCKS[0];
    let of = |number: u32, entry: &Entry| partition(number, entry.first, entry.blocks, block, size);
    let is_own = |entry: &Entry| entry.is_used() && !entry.is_chain() && entry.kind != Entry::PROTECTIVE;
    let mut partitions: Vec<Partition> =
        (1..).zip(entries).filter(|(_, entry)| is_own(entry)).filter_map(|(number, entry)| of(number, entry)).collect();
    let mut logical = 5;
    for chain in entries.iter().filter(|entry| entry.is_used() && entry.is_chain()) {
        let mut at = chain.first;
        for _ in 0..LINKS_MAX {
            let Some(record) = bytes_at::<RECORD>(drive, at.saturating_mul(block))? else { break };
            let Some([own, next, ..]) = Entry::all(&record) else { break };
            if own.is_used() {
                partitions.extend(of(logical, &Entry { first: at.saturating_add(own.first), ..own }));
                logical += 1;
            }
            if !next.is_used() || !next.is_chain() {
                break;
            }
            at = chain.first.saturating_add(next.first);
        }
    }
    Ok(partitions)
}

/// Partitions of a GUID partition table of such blocks, if there is one.
fn guid_table(drive: &mut (impl Read + Seek), block: u64, size: u64) -> io::Result<Option<Vec<Partition>>> {
    let Some(header) = bytes_at::<92>(drive, block)? else { return Ok(None) };
    let (first, count, bytes) = (number(&header, 72, 8), number(&header, 80, 4) as u32, number(&header, 84, 4) as u32);
    if header[..8] != *b"EFI PART" || !ENTRY_BYTES.contains(&bytes) {
        return Ok(None);
    }
    let Some(start) = first.checked_mul(block) else { return Ok(None) };
    let mut partitions = Vec::new();
    for index in 0..count.min(ENTRIES_MAX) {
        let Some(at) = start.checked_add(u64::from(index) * u64::from(bytes)) else { break };
        let Some(entry) = bytes_at::<48>(drive, at)? else { break };
        let (first, last) = (number(&entry, 32, 8), number(&entry, 40, 8));
        let blocks = last.checked_sub(first).and_then(|blocks| blocks.checked_add(1));
        let is_used = entry[..16].iter().any(|&byte| byte != 0);
        if let Some(blocks) = blocks.filter(|_| is_used) {
            partitions.extend(partition(index + 1, first, blocks, block, size));
        }
    }
    Ok(Some(partitions))
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};
    use std::process::{Command, Stdio};

    use proptest::prelude::*;

    use super::*;

    const MIB: usize = 1 << 20;

    fn entry(kind: u8, first: u32, blocks: u32) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[4] = kind;
        bytes[8..12].copy_from_slice(&first.to_le_bytes());
        bytes[12..].copy_from_slice(&blocks.to_le_bytes());
        bytes
    }

    fn record(drive: &mut [u8], block: usize, entries: &[[u8; 16]]) {
        let record = &mut drive[block * 512..][..512];
        record[510..].copy_from_slice(&[0x55, 0xAA]);
        for (at, entry) in entries.iter().enumerate() {
            record[446 + at * 16..][..16].copy_from_slice(entry);
        }
    }

    fn table(drive: &[u8]) -> Option<PartitionTable> {
        read_partitions(&mut Cursor::new(drive)).unwrap()
    }

    /// Number, first byte and length of each.
    fn places(drive: &[u8]) -> Vec<(u32, u64, u64)> {
        let partitions = table(drive).map_or_else(Vec::new, |table| table.partitions);
        partitions.iter().map(|of| (of.number, of.start.0, of.length.0)).collect()
    }

    #[test]
    fn a_boot_record_has_primary_partitions_and_a_chain_of_logical_ones() {
        let mut drive = vec![0; 4 * MIB];
        record(&mut drive, 0, &[entry(0x83, 63, 100), [0; 16], entry(0x05, 1000, 3000)]);
        record(&mut drive, 1000, &[entry(0x83, 63, 200), entry(0x05, 500, 600)]);
        record(&mut drive, 1500, &[entry(0x82, 8, 300)]);
        let expected = [(1, 63 * 512, 100 * 512), (5, 1063 * 512, 200 * 512), (6, 1508 * 512, 300 * 512)];
        assert_eq!(places(&drive), expected);
        assert_eq!(table(&drive).unwrap().kind, TableKind::Mbr);
    }

    #[test]
    fn a_guid_table_is_read_in_blocks_of_either_size_and_unused_entries_are_none() {
        for block in [512, 4096] {
            let mut drive = vec![0; 4 * MIB];
            record(&mut drive, 0, &[entry(0xEE, 1, u32::MAX)]);
            let header = &mut drive[block..][..92];
            header[..8].copy_from_slice(b"EFI PART");
            header[72..80].copy_from_slice(&2_u64.to_le_bytes());
            header[80..84].copy_from_slice(&128_u32.to_le_bytes());
            header[84..88].copy_from_slice(&128_u32.to_le_bytes());
            let third = &mut drive[2 * block + 2 * 128..][..48];
            third[..16].fill(7);
            third[32..40].copy_from_slice(&40_u64.to_le_bytes());
            third[40..48].copy_from_slice(&49_u64.to_le_bytes());
            assert_eq!(places(&drive), [(3, 40 * block as u64, 10 * block as u64)], "{block}");
            assert_eq!(table(&drive).unwrap().kind, TableKind::Gpt);
        }
    }

    #[test]
    fn what_is_no_table_is_none_and_what_lies_beyond_the_drive_is_no_partition() {
        assert_eq!(table(&[]), None);
        assert_eq!(table(&vec![0; MIB]), None);
        // A boot sector of a file system: the same end, and code where entries would be.
        let mut boot = vec![0x90; MIB];
        boot[510..512].copy_from_slice(&[0x55, 0xAA]);
        assert_eq!(table(&boot), None);
        let mut beyond = vec![0; MIB];
        record(&mut beyond, 0, &[entry(0x83, 63, u32::MAX), entry(0x83, 0, 5)]);
        assert_eq!(table(&beyond), None);
    }

    #[test]
    fn a_chain_that_bites_its_tail_ends() {
        let mut drive = vec![0; MIB];
        record(&mut drive, 0, &[entry(0x05, 10, 1000)]);
        record(&mut drive, 10, &[entry(0x83, 1, 1), entry(0x05, 0, 1000)]);
        assert_eq!(places(&drive).len(), LINKS_MAX);
    }

    #[test]
    fn what_sfdisk_writes_is_what_it_was_asked_for() {
        let scripts = [
            ("label: gpt\nstart=2048, size=8192\nstart=20001, size=4096\n", TableKind::Gpt),
            (
                "label: dos\nstart=63, size=8192, type=83\nstart=16384, size=40000, type=5\nstart=16447, size=100, type=83\n",
                TableKind::Mbr,
            ),
        ];
        for (script, kind) in scripts {
            let image = tempfile::NamedTempFile::new().unwrap();
            image.as_file().set_len(32 << 20).unwrap();
            let child = Command::new("sfdisk")
                .args(["--quiet", "--no-reread"])
                .arg(image.path())
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            let Ok(mut child) = child else { return eprintln!("SKIPPED: sfdisk is not installed") };
            child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
            assert!(child.wait().unwrap().success(), "{script}");
            let found = partition_table(image.path()).unwrap().unwrap();
            let starts: Vec<u64> = found.partitions.iter().map(|partition| partition.start.0 / 512).collect();
            let expected: &[u64] = if kind == TableKind::Gpt { &[2048, 20001] } else { &[63, 16447] };
            assert_eq!((found.kind, starts.as_slice()), (kind, expected));
        }
    }

    #[test]
    fn neither_folders_nor_pipes_have_partitions() {
        assert!(partition_table(Path::new("/")).is_err());
        assert!(partition_table(Path::new("/dev/null")).unwrap_err().to_string().contains("neither a disk image"));
        assert_eq!(partition_table(Path::new("/no/such")).unwrap_err().kind(), ErrorKind::NotFound);
    }

    fn hostile() -> impl Strategy<Value = Vec<u8>> {
        let bytes = prop::collection::vec(any::<u8>(), 0..6000);
        (bytes, prop::collection::vec((0_usize..4, any::<[u8; 16]>(), any::<bool>()), 0..4), any::<bool>()).prop_map(
            |(mut bytes, entries, is_guid)| {
                if bytes.len() < 1024 {
                    return bytes;
                }
                record(&mut bytes, 0, &[[0; 16]; 4]);
                for (at, mut entry, is_plain) in entries {
                    entry[0] = 0x80;
                    entry[4] = if is_plain { entry[4] } else { 0x05 };
                    entry[9..12].fill(0);
                    bytes[446 + at * 16..][..16].copy_from_slice(&entry);
                }
                if is_guid {
                    bytes[450] = 0xEE;
                    bytes[512..520].copy_from_slice(b"EFI PART");
                    bytes[512 + 84..512 + 88].copy_from_slice(&128_u32.to_le_bytes());
                }
                bytes
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn no_bytes_end_the_program_and_all_partitions_lie_on_the_drive(drive in hostile()) {
            for (_, start, length) in places(&drive) {
                prop_assert!(start > 0 && length > 0 && start + length <= drive.len() as u64);
            }
        }
    }
}
