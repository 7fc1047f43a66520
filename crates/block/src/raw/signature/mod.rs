//! The known formats on a device, found by the magic numbers of file systems, partition tables, RAID, volume managers,
//! encryption and swap.
//!
//! ```text
//!   first 4 MiB + 64 KiB, last 2 MiB ──┬──▶ table of magic numbers
//!   blocks where copies are ───────────┴──▶ rules for formats that one number at one place does not identify
//! ```
//!
//! | file | what it is |
//! |---|---|
//! | `table.rs` | magic numbers at fixed places; the names that libblkid has |
//! | `rules.rs` | places that depend on the size, copies, numbers that formats share |
//! | `view.rs` | the device as the rules read it |
//!
//! Every kind that libblkid knows is found, and some more; the test `raw_device` compares with the list of the
//! installed one. A magic number is sufficient: checksums are not verified, because damaged data may still be wanted.
//! If a super block has copies, a copy is sufficient. So there may be false positives. No signature does not mean
//! empty: data without any of these formats (a database on a raw device, data hidden by the firmware of a RAID
//! controller) is not found.
//!
//! Sources, by the lines of the table and the functions of the rules: Linux `Documentation/filesystems/ext4` (super
//! block), `fs/xfs/libxfs/xfs_format.h`, `include/uapi/linux/btrfs_tree.h`, `include/linux/f2fs_fs.h`,
//! `include/linux/swap.h`, `kernel/power/swap.c`, `include/uapi/linux/raid/md_p.h`,
//! `drivers/md/bcache/bcache_ondisk.h`, `fs/erofs/erofs_fs.h`, `fs/squashfs/squashfs_fs.h`, `fs/jfs/jfs_superblock.h`,
//! `fs/nilfs2`, `fs/ocfs2/ocfs2_fs.h`, `include/uapi/linux/gfs2_ondisk.h`, `drivers/md/dm-integrity.c`,
//! `drivers/md/dm-vdo`, `fs/ufs/ufs_fs.h`, `fs/minix`, `fs/hpfs/hpfs.h`, `include/uapi/linux/cramfs_fs.h`,
//! `block/partitions`; LVM2 `lib/format_text/layout.h`; the LUKS 1 and LUKS 2 on-disk format specifications; UEFI
//! 2.10, 5.3 (GPT) and 5.2.1 (MBR); Microsoft's FAT specification (2005), exFAT specification 3.1, NTFS boot sector;
//! BitLocker as in `dislocker`; ECMA-119, 8.1 and ECMA-167, part 2, 9.1 and part 3, 10.2; OpenZFS
//! `include/sys/vdev_impl.h`, `uberblock_impl.h`; Apple File System Reference (2020), `nx_superblock_t`; Apple TN1150;
//! SNIA DDF 2.0, 4.1; Intel's IMSM as in `mdadm` `super-intel.c`; controllers as in util-linux `libblkid`; DRBD
//! `drbd_meta_data.h`; Stratis' design document; Ceph `BlueStore.cc`; Oracle ASMLib; SPDK `blobstore.h`.
//!
//! # Adding a signature
//!
//! A line in the table, or a rule; its name in the list of `docs/guide/real-drives.md`, which a test checks; its maker
//! in the test `raw_device`.

mod rules;
mod table;
mod view;

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use table::{BLKID_NAMES, MAGICS};
pub(crate) use view::View;

use crate::names::choices;

/// Something that a device carries, by the name that `--allow-signature` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignatureKind(&'static str);

/// A signature that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Signature {
    /// The kind.
    pub kind: SignatureKind,
    /// Where its magic number starts, in bytes from the device's start.
    #[serde(rename = "offset_bytes")]
    pub offset: u64,
}

impl SignatureKind {
    /// Every name, in order.
    pub fn all() -> Vec<Self> {
        let mut all: Vec<Self> = MAGICS.iter().map(|magic| magic.kind).chain(rules::KINDS).map(Self).collect();
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
        let by_blkid = BLKID_NAMES.iter().find(|(name, _)| *name == text).map(|&(_, kind)| kind);
        let wanted = by_blkid.unwrap_or(text);
        Self::all().into_iter().find(|kind| kind.0 == wanted).ok_or_else(|| {
            let names = choices(text, Self::all().iter().map(|kind| kind.0));
            format!("unknown signature '{text}': {names}")
        })
    }
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Everything that is found, in the order of kinds and places, each kind once.
pub(crate) fn signatures(view: &View<'_>) -> Vec<Signature> {
    let by_table = MAGICS.iter().filter_map(|magic| {
        let offset = magic.at.on(view.size)?;
        view.has(offset, magic.bytes).then_some((magic.kind, offset))
    });
    let by_rule = rules::RULES.iter().flat_map(|rule| rule(view));
    let mut found: Vec<Signature> =
        by_table.chain(by_rule).map(|(kind, offset)| Signature { kind: SignatureKind(kind), offset }).collect();
    found.sort_unstable();
    found.dedup_by_key(|signature| signature.kind);
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZE: u64 = 16 * MIB;

    /// The signatures found on a device of zeros with `writes` on it.
    fn found_on(size: u64, writes: &[(u64, &[u8])]) -> Vec<(String, u64)> {
        let mut image = vec![0; size as usize];
        for &(offset, bytes) in writes {
            image[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
        }
        found_in(&image)
    }

    fn found_in(image: &[u8]) -> Vec<(String, u64)> {
        let mut read = |from: u64, bytes: &mut [u8]| {
            bytes.copy_from_slice(&image[from as usize..][..bytes.len()]);
            Ok(())
        };
        found(&View::new(image.len() as u64, &mut read))
    }

    /// The same on a device that is too large to be held.
    fn found_sparse(size: u64, writes: &[(u64, &[u8])]) -> Vec<(String, u64)> {
        let mut read = |from: u64, bytes: &mut [u8]| {
            for &(offset, written) in writes {
                for (at, byte) in (offset..).zip(written) {
                    if let Some(place) = at.checked_sub(from).and_then(|n| bytes.get_mut(n as usize)) {
                        *place = *byte;
                    }
                }
            }
            Ok(())
        };
        found(&View::new(size, &mut read))
    }

    fn found(view: &View<'_>) -> Vec<(String, u64)> {
        signatures(view).into_iter().map(|found| (found.kind.to_string(), found.offset)).collect()
    }

    fn kinds(writes: &[(u64, &[u8])]) -> Vec<String> {
        found_on(SIZE, writes).into_iter().map(|(kind, _)| kind).collect()
    }

    #[test]
    fn every_magic_number_of_the_table_is_found_where_it_stands_and_not_elsewhere() {
        for magic in MAGICS {
            let offset = magic.at.on(SIZE).unwrap();
            let size = if offset < SIZE { SIZE } else { offset + 8 * MIB };
            let found = found_sparse(size, &[(offset, magic.bytes)]);
            assert!(found.contains(&(magic.kind.to_owned(), offset)), "{} at {offset}: {found:?}", magic.kind);
            assert!(found_sparse(SIZE, &[(7 * MIB + 2051, magic.bytes)]).is_empty(), "{}", magic.kind);
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
    fn a_copy_is_enough_where_the_super_block_is_gone() {
        let ext = |log: u32, group: u16, offset: u64| {
            let fields = [
                (56, 0xef53_u16.to_le_bytes().to_vec()),
                (24, log.to_le_bytes().to_vec()),
                (90, group.to_le_bytes().to_vec()),
            ];
            fields.map(|(at, bytes)| (offset + at, bytes))
        };
        for (log, group, offset) in
            [(0, 1, 8193 * KIB), (1, 1, 32 * MIB), (2, 1, 128 * MIB), (2, 3, 384 * MIB), (6, 1, 32 << 30)]
        {
            let fields = ext(log, group, offset);
            let writes: Vec<(u64, &[u8])> = fields.iter().map(|(at, bytes)| (*at, &bytes[..])).collect();
            assert_eq!(found_sparse(offset + MIB, &writes), [("ext2".to_owned(), offset + 56)]);
        }
        // The number alone, somewhere, is none.
        assert!(found_sparse(256 * MIB, &[(128 * MIB + 56, &[0x53, 0xef])]).is_empty());
        // Four groups; the header of a free-space tree of the first one.
        assert_eq!(found_sparse(320 * MIB, &[(80 * MIB, b"XFSB\0\0\x10\0")])[0].0, "xfs");
        assert_eq!(kinds(&[(4096, b"AB3B\0\0")]), ["xfs"]);
        assert_eq!(kinds(&[(SIZE - 512 + 3, b"NTFS    ")]), ["ntfs"]);
        assert_eq!(kinds(&[(6 * 512 + 82, b"FAT32   ")]), ["fat"]);
        assert_eq!(kinds(&[(12 * 512 + 3, b"EXFAT   ")]), ["exfat"]);
        assert_eq!(kinds(&[(SIZE - KIB, b"H+\0\x04")]), ["hfsplus"]);
    }

    #[test]
    fn what_has_no_number_of_its_own_is_found_by_what_makes_sense() {
        let boot = [0xeb, 0x3c, 0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 4, 1, 0, 2, 0, 2, 0, 0, 0xf8];
        let mut boot = boot;
        (boot[11], boot[12]) = (0, 2);
        (boot[13], boot[14], boot[15], boot[16]) = (4, 1, 0, 2);
        assert_eq!(kinds(&[(0, &boot)]), ["fat"]);
        boot[13] = 3;
        assert!(kinds(&[(0, &boot)]).is_empty());
        let entry = [&[1_u8][..], b"GEM", &2_u32.to_be_bytes(), &1000_u32.to_be_bytes()].concat();
        assert_eq!(kinds(&[(0x1c2, &30_000_u32.to_be_bytes()), (0x1c6, &entry)]), ["atari"]);
        assert!(kinds(&[(0x1c2, &900_u32.to_be_bytes()), (0x1c6, &entry)]).is_empty());
        let mut via = [0; 51];
        (via[0], via[1], via[3], via[50]) = (0x55, 0xaa, 7, 0x55_u8.wrapping_add(0xaa).wrapping_add(7));
        assert_eq!(kinds(&[(SIZE - 512, &via)]), ["via"]);
        via[50] ^= 1;
        assert!(kinds(&[(SIZE - 512, &via)]).is_empty());
    }

    #[test]
    fn a_part_that_cannot_be_read_is_an_error_and_not_an_empty_place() {
        let mut read = |from: u64, _: &mut [u8]| {
            if from == 128 * MIB { Err(std::io::ErrorKind::Other.into()) } else { Ok(()) }
        };
        let view = View::new(1 << 30, &mut read);
        assert!(signatures(&view).is_empty());
        assert!(view.failure().is_err());
    }

    #[test]
    fn the_names_of_blkid_are_taken_too() {
        for (name, kind) in BLKID_NAMES {
            assert_eq!(name.parse::<SignatureKind>().map(|found| found.0), Ok(*kind));
        }
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
