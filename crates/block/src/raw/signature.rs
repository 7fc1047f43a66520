//! What a device carries, told by the magic numbers of file systems, partition tables, RAID, volume managers,
//! encryption and swap.
//!
//! ```text
//!   first 4 MiB + 64 KiB, last 1 MiB ──▶ table of magic numbers, and rules for what one number does not tell
//! ```
//!
//! A magic number alone counts: checksums are not verified, because what is damaged may still be wanted back. So this
//! finds rather too much than too little. It is no proof of emptiness: data without any of these formats (a database
//! on a raw device, what the firmware of a RAID controller hides) is not seen.
//!
//! Sources, by the lines of [`MAGICS`] and the functions below it: Linux `Documentation/filesystems/ext4` (super
//! block), `fs/xfs/libxfs/xfs_format.h`, `include/uapi/linux/btrfs_tree.h`, `include/linux/f2fs_fs.h`,
//! `include/linux/swap.h`, `kernel/power/swap.c`, `include/uapi/linux/raid/md_p.h`,
//! `drivers/md/bcache/bcache_ondisk.h`, `fs/erofs/erofs_fs.h`, `fs/squashfs/squashfs_fs.h`, `fs/jfs/jfs_superblock.h`,
//! `fs/nilfs2`, `fs/ocfs2/ocfs2_fs.h`, `include/uapi/linux/gfs2_ondisk.h`, `drivers/md/dm-integrity.c`,
//! `drivers/md/dm-vdo`; LVM2 `lib/format_text/layout.h`; the LUKS 1 and LUKS 2 on-disk format specifications; UEFI
//! 2.10, 5.3 (GPT) and 5.2.1 (MBR); Microsoft's FAT specification (2005), exFAT specification 3.1, NTFS boot sector;
//! BitLocker as in `dislocker`; ECMA-119, 8.1 and ECMA-167, part 2, 9.1; OpenZFS `include/sys/vdev_impl.h`,
//! `uberblock_impl.h`; Apple File System Reference (2020), `nx_superblock_t`; Apple TN1150; SNIA DDF 2.0, 4.1; Intel's
//! IMSM as in `mdadm` `super-intel.c`; Ceph `BlueStore.cc`; Oracle ASMLib.
//!
//! # Adding a signature
//!
//! A line in the table below, or a rule below it; its name in the list of `docs/guide/real-drives.md`, which a test
//! checks; its maker in the test `raw_device`.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::ByteSize;

/// Something that a device carries, by the name that `--allow-signature` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignatureKind(&'static str);

/// A signature that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Signature {
    /// Of what.
    pub kind: SignatureKind,
    /// Where its magic number begins, in bytes from the device's start.
    #[serde(rename = "offset_bytes")]
    pub offset: u64,
}

/// Kinds that rules find, beside those of the table.
const BY_RULE: [&str; 10] = ["ext2", "ext3", "ext4", "fat", "gpt", "jbd", "lvm2", "mbr", "md", "zfs"];

impl SignatureKind {
    /// Every name, in order.
    pub fn all() -> Vec<Self> {
        let mut all: Vec<Self> = MAGICS.iter().map(|magic| magic.kind).chain(BY_RULE).map(Self).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

impl fmt::Display for SignatureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Serialize for SignatureKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

impl FromStr for SignatureKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::all().into_iter().find(|kind| kind.0 == text).ok_or_else(|| {
            let names: Vec<_> = Self::all().iter().map(ToString::to_string).collect();
            format!("'{text}' is no signature that flashwise knows; there are {}", names.join(", "))
        })
    }
}

/// How much of the start is looked at: the last copy of a LUKS 2 header lies at 4 MiB.
pub(crate) const HEAD: ByteSize = ByteSize(4 * MIB + 64 * KIB);
/// How much of the end.
pub(crate) const TAIL: ByteSize = ByteSize(MIB);

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// The two ends of a device.
pub(crate) struct Ends<'a> {
    pub(crate) size: u64,
    /// The first bytes, at most [`HEAD`].
    pub(crate) head: &'a [u8],
    /// The last bytes, at most [`TAIL`].
    pub(crate) tail: &'a [u8],
}

impl Ends<'_> {
    fn bytes(&self, offset: u64, length: usize) -> Option<&[u8]> {
        let part = |part: &'_ [u8], start: u64| {
            let from = usize::try_from(offset.checked_sub(start)?).ok()?;
            let until = from.checked_add(length)?;
            (until <= part.len()).then_some((from, until))
        };
        if let Some((from, until)) = part(self.head, 0) {
            return self.head.get(from..until);
        }
        let (from, until) = part(self.tail, self.size.checked_sub(self.tail.len() as u64)?)?;
        self.tail.get(from..until)
    }

    fn has(&self, offset: u64, magic: &[u8]) -> bool {
        self.bytes(offset, magic.len()) == Some(magic)
    }

    fn u32_le(&self, offset: u64) -> Option<u32> {
        self.bytes(offset, 4)?.try_into().ok().map(u32::from_le_bytes)
    }
}

/// One magic number.
struct Magic {
    kind: &'static str,
    at: At,
    bytes: &'static [u8],
}

/// Where a magic number lies, in bytes.
enum At {
    Start(u64),
    BeforeEnd(u64),
}

const fn start(kind: &'static str, offset: u64, bytes: &'static [u8]) -> Magic {
    Magic { kind, at: At::Start(offset), bytes }
}

const fn end(kind: &'static str, offset: u64, bytes: &'static [u8]) -> Magic {
    Magic { kind, at: At::BeforeEnd(offset), bytes }
}

/// A swap area ends its first page with the magic number; pages are of 4 to 64 KiB.
macro_rules! in_first_page {
    ($kind:literal, $bytes:literal) => {
        [
            start($kind, 4 * KIB - 10, $bytes),
            start($kind, 8 * KIB - 10, $bytes),
            start($kind, 16 * KIB - 10, $bytes),
            start($kind, 32 * KIB - 10, $bytes),
            start($kind, 64 * KIB - 10, $bytes),
        ]
    };
}

/// Magic numbers at fixed places.
#[rustfmt::skip]
static MAGICS: [Magic; 67] = {
    let [s0, s1, s2, s3, s4] = in_first_page!("swap", b"SWAPSPACE2");
    let [o0, o1, o2, o3, o4] = in_first_page!("swap", b"SWAP-SPACE");
    // A suspended system: its memory lies here.
    let [h0, h1, h2, h3, h4] = in_first_page!("hibernation", b"S1SUSPEND\0");
    let [u0, u1, u2, u3, u4] = in_first_page!("hibernation", b"ULSUSPEND\0");
    [
        s0, s1, s2, s3, s4, o0, o1, o2, o3, o4, h0, h1, h2, h3, h4, u0, u1, u2, u3, u4,
        start("hibernation", 0, b"LINHIB0001"),
        start("xfs", 0, b"XFSB"),
        start("btrfs", 64 * KIB + 64, b"_BHRfS_M"),
        start("f2fs", KIB, &0xf2f5_2010_u32.to_le_bytes()),
        start("f2fs", 5 * KIB, &0xf2f5_2010_u32.to_le_bytes()),
        start("ntfs", 3, b"NTFS    "),
        start("exfat", 3, b"EXFAT   "),
        start("bitlocker", 3, b"-FVE-FS-"),
        // BitLocker To Go looks like FAT, but for this GUID.
        start("bitlocker", 424, &[0x3b, 0xd6, 0x67, 0x49, 0x29, 0x2e, 0xd8, 0x4a, 0x83, 0x99, 0xf6, 0xa3, 0x39, 0xe3, 0xd0, 0x01]),
        start("luks", 0, b"LUKS\xba\xbe"),
        start("luks", 0x4000, b"SKUL\xba\xbe"),
        start("luks", 0x8000, b"SKUL\xba\xbe"),
        start("luks", 0x1_0000, b"SKUL\xba\xbe"),
        start("luks", 0x2_0000, b"SKUL\xba\xbe"),
        start("luks", 0x4_0000, b"SKUL\xba\xbe"),
        start("luks", 0x8_0000, b"SKUL\xba\xbe"),
        start("luks", 0x10_0000, b"SKUL\xba\xbe"),
        start("luks", 0x20_0000, b"SKUL\xba\xbe"),
        start("luks", 0x40_0000, b"SKUL\xba\xbe"),
        start("bcache", 4 * KIB + 24, &[0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba, 0x6d, 0x81]),
        start("bcachefs", 4 * KIB + 24, &[0xc6, 0x85, 0x73, 0xf6, 0x66, 0xce, 0x90, 0xa9, 0xd9, 0x6a, 0x60, 0xcf, 0x80, 0x3d, 0xf7, 0xef]),
        start("iso9660", 32 * KIB + 1, b"CD001"),
        start("udf", 32 * KIB + 1, b"BEA01"),
        start("hfs", KIB, b"BD"),
        start("hfsplus", KIB, b"H+"),
        start("hfsplus", KIB, b"HX"),
        start("apfs", 32, b"NXSB"),
        start("squashfs", 0, b"hsqs"),
        start("erofs", KIB, &0xe0f5_e1e2_u32.to_le_bytes()),
        start("jfs", 32 * KIB, b"JFS1"),
        start("reiserfs", 64 * KIB + 52, b"ReIsEr"),
        start("nilfs2", KIB + 6, &0x3434_u16.to_le_bytes()),
        start("ocfs2", KIB, b"OCFSV2"),
        start("ocfs2", 2 * KIB, b"OCFSV2"),
        start("ocfs2", 4 * KIB, b"OCFSV2"),
        start("ocfs2", 8 * KIB, b"OCFSV2"),
        start("gfs2", 64 * KIB, &0x0116_1970_u32.to_be_bytes()),
        start("vmfs", MIB, &0xc001_d00d_u32.to_le_bytes()),
        start("bluestore", 0, b"bluestore block device"),
        start("oracle-asm", 32, b"ORCLDISK"),
        start("dm-integrity", 0, b"integrt\0"),
        start("dm-verity", 0, b"verity\0\0"),
        start("vdo", 0, b"dmvdo001"),
        end("ddf", 512, &0xde11_de11_u32.to_be_bytes()),
        end("ddf", 257 * 512, &0xde11_de11_u32.to_be_bytes()),
        end("imsm", 1024, b"Intel Raid ISM Cfg Sig. "),
        end("imsm", 2 * 4096, b"Intel Raid ISM Cfg Sig. "),
    ]
};

/// Everything that is found, in the order of kinds and places, each kind once.
pub(crate) fn signatures(ends: &Ends<'_>) -> Vec<Signature> {
    let by_table = MAGICS.iter().filter_map(|magic| {
        let offset = match magic.at {
            At::Start(offset) => offset,
            At::BeforeEnd(offset) => ends.size.checked_sub(offset)?,
        };
        ends.has(offset, magic.bytes).then_some((magic.kind, offset))
    });
    let rules = [ext, fat_or_mbr, gpt, lvm2, md, zfs];
    let by_rule = rules.iter().flat_map(|rule| rule(ends));
    let mut found: Vec<Signature> =
        by_table.chain(by_rule).map(|(kind, offset)| Signature { kind: SignatureKind(kind), offset }).collect();
    found.sort_unstable();
    found.dedup_by_key(|signature| signature.kind);
    found
}

type Found = Vec<(&'static str, u64)>;

/// ext2, 3 and 4 share one number; features tell them apart. An external journal has the number too.
fn ext(ends: &Ends<'_>) -> Found {
    const SUPER_BLOCK: u64 = KIB;
    const MAGIC: u64 = SUPER_BLOCK + 56;
    const HAS_JOURNAL: u32 = 0x4;
    const JOURNAL_DEVICE: u32 = 0x8;
    // Incompatible and read-only compatible features that ext3 did not know.
    const ONLY_EXT4: u32 = !(0x2 | 0x4 | 0x8 | 0x10);
    const ONLY_EXT4_READ_ONLY: u32 = !(0x1 | 0x2 | 0x4);
    if !ends.has(MAGIC, &0xef53_u16.to_le_bytes()) {
        return Vec::new();
    }
    let feature = |offset| ends.u32_le(SUPER_BLOCK + offset).unwrap_or(0);
    let (compatible, incompatible, read_only) = (feature(92), feature(96), feature(100));
    let kind = if incompatible & JOURNAL_DEVICE != 0 {
        "jbd"
    } else if incompatible & ONLY_EXT4 != 0 || read_only & ONLY_EXT4_READ_ONLY != 0 {
        "ext4"
    } else if compatible & HAS_JOURNAL != 0 {
        "ext3"
    } else {
        "ext2"
    };
    vec![(kind, MAGIC)]
}

/// A boot sector: FAT where its parameter block says so, else a partition table or a boot loader. Those of NTFS, exFAT
/// and BitLocker are in the table of magic numbers.
fn fat_or_mbr(ends: &Ends<'_>) -> Found {
    const MARK: u64 = 510;
    let is_other = [&b"NTFS    "[..], b"EXFAT   ", b"-FVE-FS-"].iter().any(|name| ends.has(3, name));
    if !ends.has(MARK, &[0x55, 0xaa]) || is_other {
        return Vec::new();
    }
    let by_name = ends.has(54, b"FAT1") || ends.has(54, b"FAT ") || ends.has(82, b"FAT32");
    if by_name { vec![("fat", 0)] } else { vec![("mbr", MARK)] }
}

/// The header in the second block, or its copy in the last, for blocks of 512 bytes to 4 KiB.
fn gpt(ends: &Ends<'_>) -> Found {
    let blocks = [512, 1024, 2048, 4096];
    let places = blocks.iter().flat_map(|&block| [Some(block), ends.size.checked_sub(block)]).flatten();
    places.filter(|&place| ends.has(place, b"EFI PART")).map(|place| ("gpt", place)).collect()
}

/// A label in one of the first four sectors.
fn lvm2(ends: &Ends<'_>) -> Found {
    let sectors = (0..4).map(|sector| sector * 512);
    sectors.filter(|&at| ends.has(at, b"LABELONE") && ends.has(at + 24, b"LVM2 ")).map(|at| ("lvm2", at)).collect()
}

/// Super blocks of Linux RAID: 0.90 in the last 64 KiB block, in the byte order of the machine; 1.0 at the end, 1.1 at
/// the start, 1.2 at 4 KiB.
fn md(ends: &Ends<'_>) -> Found {
    const MAGIC: u32 = 0xa92b_4efc;
    const RESERVED: u64 = 64 * KIB;
    let version_0_90 = (ends.size / RESERVED * RESERVED).checked_sub(RESERVED);
    let version_1_0 = (ends.size / 512).checked_sub(16).map(|sector| sector / 8 * 8 * 512);
    let places = [version_0_90, version_1_0, Some(0), Some(4 * KIB)].into_iter().flatten();
    let is_there = |&at: &u64| ends.has(at, &MAGIC.to_le_bytes()) || ends.has(at, &MAGIC.to_be_bytes());
    places.filter(is_there).map(|at| ("md", at)).collect()
}

/// Four labels of 256 KiB, two at each end; in the second half of each a ring of uberblocks, 1 KiB or more apart, in
/// the byte order of the machine.
fn zfs(ends: &Ends<'_>) -> Found {
    const MAGIC: u64 = 0x00ba_b10c;
    const LABEL: u64 = 256 * KIB;
    let usable = ends.size / LABEL * LABEL;
    let labels = [Some(0), Some(LABEL), usable.checked_sub(2 * LABEL), usable.checked_sub(LABEL)];
    let uberblocks = labels.into_iter().flatten().flat_map(|label| (0..128).map(move |n| label + 128 * KIB + n * KIB));
    let is_there = |&at: &u64| ends.has(at, &MAGIC.to_le_bytes()) || ends.has(at, &MAGIC.to_be_bytes());
    uberblocks.filter(is_there).take(1).map(|at| ("zfs", at)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZE: u64 = 16 * MIB;

    /// What is found on a device of zeros with `writes` on it.
    fn found_on(size: u64, writes: &[(u64, &[u8])]) -> Vec<(String, u64)> {
        let mut image = vec![0; size as usize];
        for &(offset, bytes) in writes {
            image[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
        }
        found_in(&image)
    }

    fn found_in(image: &[u8]) -> Vec<(String, u64)> {
        let (head, tail) = (image.len().min(HEAD.0 as usize), image.len().min(TAIL.0 as usize));
        let ends = Ends { size: image.len() as u64, head: &image[..head], tail: &image[image.len() - tail..] };
        signatures(&ends).into_iter().map(|found| (found.kind.to_string(), found.offset)).collect()
    }

    fn kinds(writes: &[(u64, &[u8])]) -> Vec<String> {
        found_on(SIZE, writes).into_iter().map(|(kind, _)| kind).collect()
    }

    #[test]
    fn every_magic_number_of_the_table_is_found_where_it_stands_and_not_elsewhere() {
        for magic in &MAGICS {
            let offset = match magic.at {
                At::Start(offset) => offset,
                At::BeforeEnd(offset) => SIZE - offset,
            };
            assert_eq!(found_on(SIZE, &[(offset, magic.bytes)]), [(magic.kind.to_owned(), offset)]);
            assert!(kinds(&[(6 * MIB + offset, magic.bytes)].map(|(at, bytes)| (at.min(SIZE / 2), bytes))).is_empty());
        }
    }

    #[test]
    fn an_empty_device_of_any_size_carries_nothing() {
        for size in [0, 1, 511, 512, 4096, 65_536, MIB, SIZE] {
            assert!(found_on(size, &[]).is_empty(), "{size}");
        }
    }

    #[test]
    fn the_flavour_of_ext_is_told_by_its_features() {
        let magic: (u64, &[u8]) = (1080, &[0x53, 0xef]);
        let feature = |compatible: u8, incompatible: u8, read_only: u8| {
            kinds(&[magic, (1024 + 92, &[compatible]), (1024 + 96, &[incompatible]), (1024 + 100, &[read_only])])
        };
        assert_eq!(feature(0, 0x2, 0x1), ["ext2"]);
        assert_eq!(feature(0x4, 0x6, 0x3), ["ext3"]);
        assert_eq!(feature(0x4, 0x42, 0x3), ["ext4"]);
        assert_eq!(feature(0x4, 0x2, 0x8), ["ext4"]);
        assert_eq!(feature(0, 0x8, 0), ["jbd"]);
    }

    #[test]
    fn a_boot_sector_is_fat_by_its_own_words_and_else_a_partition_table() {
        let mark: (u64, &[u8]) = (510, &[0x55, 0xaa]);
        assert_eq!(kinds(&[mark]), ["mbr"]);
        assert_eq!(kinds(&[mark, (82, b"FAT32   ")]), ["fat"]);
        assert_eq!(kinds(&[mark, (54, b"FAT16   ")]), ["fat"]);
        assert_eq!(kinds(&[mark, (3, b"NTFS    ")]), ["ntfs"]);
        assert_eq!(kinds(&[mark, (3, b"EXFAT   ")]), ["exfat"]);
    }

    #[test]
    fn a_partition_table_is_found_by_its_copy_at_the_end_too() {
        for place in [512, 4096, SIZE - 512, SIZE - 4096] {
            assert_eq!(found_on(SIZE, &[(place, b"EFI PART")]), [("gpt".to_owned(), place)]);
        }
    }

    #[test]
    fn all_versions_of_a_raid_super_block_are_found() {
        let magic = 0xa92b_4efc_u32.to_le_bytes();
        // For 16 MiB and 20 KiB: 0.90 in the last whole block of 64 KiB but one, 1.0 at 8 KiB before the end.
        let size = SIZE + 20 * KIB;
        for place in [0, 4096, SIZE - 64 * KIB, SIZE + 12 * KIB] {
            assert_eq!(found_on(size, &[(place, &magic)]), [("md".to_owned(), place)]);
        }
        assert_eq!(found_on(size, &[(SIZE - 64 * KIB, &0xa92b_4efc_u32.to_be_bytes())]).len(), 1);
    }

    #[test]
    fn zfs_is_found_in_each_of_its_four_labels() {
        let magic = 0x00ba_b10c_u64.to_le_bytes();
        for label in [0, 256 * KIB, SIZE - 512 * KIB, SIZE - 256 * KIB] {
            let place = label + 132 * KIB;
            assert_eq!(found_on(SIZE + 4096, &[(place, &magic)]), [("zfs".to_owned(), place)]);
        }
    }

    #[test]
    fn a_volume_manager_s_label_may_be_in_any_of_four_sectors() {
        for sector in 0..4 {
            let at = sector * 512;
            assert_eq!(kinds(&[(at, b"LABELONE"), (at + 24, b"LVM2 001")]), ["lvm2"]);
            assert!(kinds(&[(at, b"LABELONE")]).is_empty());
        }
    }

    #[test]
    fn what_carries_several_things_is_told_with_all_of_them_each_once() {
        let both = kinds(&[(0, b"XFSB"), (1080, &[0x53, 0xef]), (512, b"EFI PART"), (SIZE - 512, b"EFI PART")]);
        assert_eq!(both, ["ext2", "gpt", "xfs"]);
    }

    #[test]
    fn a_name_is_read_back_and_a_wrong_one_gets_the_list() {
        for kind in SignatureKind::all() {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        let error = "ext5".parse::<SignatureKind>().unwrap_err();
        assert!(error.contains("'ext5'") && error.contains("ext4, f2fs"), "{error}");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_of_any_length_are_judged_without_a_panic(
            image in prop::collection::vec(any::<u8>(), 0..9000),
        ) {
            let found = found_in(&image);
            prop_assert!(found.iter().all(|&(_, offset)| offset < image.len() as u64));
        }
    }
}
