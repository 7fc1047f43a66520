//! Magic numbers at fixed places, and the names that libblkid has for the same kinds.

use super::{KIB, MIB};

/// One magic number.
pub(super) struct Magic {
    pub(super) kind: &'static str,
    pub(super) at: At,
    pub(super) bytes: &'static [u8],
}

/// The place of a magic number, in bytes.
pub(super) enum At {
    Start(u64),
    BeforeEnd(u64),
    /// From the start of the sector of 512 bytes that is the n-th from the end.
    LastSectors(u64, u64),
}

const fn start(kind: &'static str, offset: u64, bytes: &'static [u8]) -> Magic {
    Magic { kind, at: At::Start(offset), bytes }
}

const fn end(kind: &'static str, offset: u64, bytes: &'static [u8]) -> Magic {
    Magic { kind, at: At::BeforeEnd(offset), bytes }
}

const fn sector_from_end(kind: &'static str, sector: u64, offset: u64, bytes: &'static [u8]) -> Magic {
    Magic { kind, at: At::LastSectors(sector, offset), bytes }
}

impl At {
    /// The place on a device of a size.
    pub(super) fn on(&self, size: u64) -> Option<u64> {
        match *self {
            Self::Start(offset) => Some(offset),
            Self::BeforeEnd(offset) => size.checked_sub(offset),
            Self::LastSectors(sector, offset) => Some((size / 512).checked_sub(sector)? * 512 + offset),
        }
    }
}

const BCACHEFS: &[u8] =
    &[0xc6, 0x85, 0x73, 0xf6, 0x66, 0xce, 0x90, 0xa9, 0xd9, 0x6a, 0x60, 0xcf, 0x80, 0x3d, 0xf7, 0xef];
const STRATIS: &[u8] = b"!Stra0tis\x86\xff\x02^\x41rh";

#[rustfmt::skip]
pub(super) static MAGICS: &[Magic] = &[
    // The mark of a suspended system at the start; its other marks are at the end of the first page.
    start("hibernation", 0, b"LINHIB0001"),
    start("hibernation", 0, &[0xed, 0xc3, 0x02, 0xe9, 0x98, 0x56, 0xe5, 0x0c]),
    start("xfs", 0, b"XFSB"),
    start("exfs", 0, b"EXFS"),
    // A super block, its copies at 64 MiB and 256 GiB, and that of a zoned device.
    start("btrfs", 64 * KIB + 64, b"_BHRfS_M"),
    start("btrfs", 64 * MIB + 64, b"_BHRfS_M"),
    start("btrfs", (256 << 30) + 64, b"_BHRfS_M"),
    start("btrfs", 64, b"_BHRfS_M"),
    start("f2fs", KIB, &0xf2f5_2010_u32.to_le_bytes()),
    start("f2fs", 5 * KIB, &0xf2f5_2010_u32.to_le_bytes()),
    start("ntfs", 3, b"NTFS    "),
    sector_from_end("ntfs", 1, 3, b"NTFS    "),
    start("refs", 0, b"\0\0\0ReFS\0"),
    start("exfat", 3, b"EXFAT   "),
    start("exfat", 12 * 512 + 3, b"EXFAT   "),
    start("exfat", 12 * 4096 + 3, b"EXFAT   "),
    // The copy of FAT32's boot sector.
    start("fat", 6 * 512 + 82, b"FAT32   "),
    start("fat", 6 * 4096 + 82, b"FAT32   "),
    start("bitlocker", 3, b"-FVE-FS-"),
    // BitLocker To Go looks like FAT, but for this GUID.
    start("bitlocker", 424, &[0x3b, 0xd6, 0x67, 0x49, 0x29, 0x2e, 0xd8, 0x4a, 0x83, 0x99, 0xf6, 0xa3, 0x39, 0xe3, 0xd0, 0x01]),
    start("corestorage", 88, b"CS"),
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
    start("bcachefs", 4 * KIB + 24, BCACHEFS),
    start("bcachefs", 2 * MIB + 24, BCACHEFS),
    end("bcachefs", MIB - 24, BCACHEFS),
    start("iso9660", 32 * KIB + 1, b"CD001"),
    start("iso9660", 32 * KIB + 9, b"CDROM"),
    start("udf", 32 * KIB + 1, b"BEA01"),
    start("udf", 32 * KIB + 1, b"BOOT2"),
    start("udf", 32 * KIB + 1, b"CDW02"),
    start("udf", 32 * KIB + 1, b"NSR02"),
    start("udf", 32 * KIB + 1, b"NSR03"),
    start("udf", 32 * KIB + 1, b"TEA01"),
    start("hfs", KIB, b"BD"),
    start("hfsplus", KIB, b"H+"),
    start("hfsplus", KIB, b"HX"),
    // The alternate volume header, and HFS's field there.
    end("hfs", KIB, b"BD"),
    end("hfsplus", KIB, b"H+\0\x04"),
    end("hfsplus", KIB, b"HX\0\x05"),
    start("squashfs", 0, b"hsqs"),
    start("squashfs", 0, b"sqsh"),
    start("erofs", KIB, &0xe0f5_e1e2_u32.to_le_bytes()),
    start("cramfs", 0, &0x28cd_3d45_u32.to_le_bytes()),
    start("cramfs", 0, &0x28cd_3d45_u32.to_be_bytes()),
    start("romfs", 0, b"-rom1fs-"),
    start("zonefs", 0, b"SFOZ"),
    start("ubi", 0, b"UBI#"),
    start("ubifs", 0, &0x0610_1831_u32.to_le_bytes()),
    start("jfs", 32 * KIB, b"JFS1"),
    start("jfs", 60 * KIB, b"JFS1"),
    start("reiserfs", 64 * KIB + 52, b"ReIsEr"),
    start("reiserfs", 8 * KIB + 52, b"ReIsErFs"),
    start("reiserfs", 8 * KIB + 20, b"ReIsErFs"),
    start("reiser4", 64 * KIB, b"ReIsEr4"),
    start("nilfs2", KIB + 6, &0x3434_u16.to_le_bytes()),
    sector_from_end("nilfs2", 8, 6, &0x3434_u16.to_le_bytes()),
    start("ocfs", 8 * KIB, b"OracleCFS"),
    start("ocfs2", KIB, b"OCFSV2"),
    start("ocfs2", 2 * KIB, b"OCFSV2"),
    start("ocfs2", 4 * KIB, b"OCFSV2"),
    start("ocfs2", 8 * KIB, b"OCFSV2"),
    start("ocfs2", 1 << 30, b"OCFSV2"),
    start("ocfs2", 4 << 30, b"OCFSV2"),
    start("ocfs2", 16 << 30, b"OCFSV2"),
    start("ocfs2", 64 << 30, b"OCFSV2"),
    start("ocfs2", 256 << 30, b"OCFSV2"),
    start("ocfs2", 1 << 40, b"OCFSV2"),
    start("gfs2", 64 * KIB, &0x0116_1970_u32.to_be_bytes()),
    start("scoutfs", 64 * KIB + 4, &[0x8b, 0x42, 0x3c, 0x10]),
    start("befs", 32, b"BFS1"),
    start("befs", 32, b"1SFB"),
    start("befs", 512 + 32, b"BFS1"),
    start("befs", 512 + 32, b"1SFB"),
    start("bfs", 0, &0x1bad_face_u32.to_le_bytes()),
    start("hpfs", 8 * KIB, &[0x49, 0xe8, 0x95, 0xf9]),
    start("vxfs", KIB, &0xa501_fcf5_u32.to_le_bytes()),
    start("vxfs", 8 * KIB, &0xa501_fcf5_u32.to_be_bytes()),
    start("xenix", 2 * KIB, &[0x2b, 0x55, 0x44]),
    start("xenix", 2 * KIB, &[0x44, 0x55, 0x2b]),
    start("netware", 4 * KIB, b"SPB5"),
    start("mpool", 0, b"mpoolDev"),
    start("vmfs", MIB, &0xc001_d00d_u32.to_le_bytes()),
    start("vmfs", 2 * MIB, &0x2fab_f15e_u32.to_le_bytes()),
    start("bluestore", 0, b"bluestore block device"),
    start("spdk-blob", 0, b"SPDKBLOB"),
    start("oracle-asm", 32, b"ORCLDISK"),
    start("lvm1", 0, b"HM"),
    // The header of a metadata area, which outlives the label.
    start("lvm2", 4 * KIB + 4, b" LVM2 x[5A%r0N*>"),
    start("dm-snapshot", 0, b"SnAp"),
    start("dm-integrity", 0, b"integrt\0"),
    start("dm-verity", 0, b"verity\0\0"),
    start("vdo", 0, b"dmvdo001"),
    start("stratis", 512 + 4, STRATIS),
    start("stratis", 9 * 512 + 4, STRATIS),
    start("drbd", 0, b"$DRBDmgr=q"),
    start("drbd", 0, b"DRBDdlh*"),
    start("sgi", 0, &0x0be5_a941_u32.to_be_bytes()),
    start("sun", 508, &0xdabe_u16.to_be_bytes()),
    start("aix", 0, &[0xc9, 0xc2, 0xd4, 0xc1]),
    start("bsd", 64, &0x8256_4557_u32.to_le_bytes()),
    start("bsd", 128, &0x8256_4557_u32.to_le_bytes()),
    start("bsd", 512, &0x8256_4557_u32.to_le_bytes()),
    start("solaris", 512 + 12, &0x600d_deee_u32.to_le_bytes()),
    start("unixware", 29 * 512 + 4, &0xca5e_600d_u32.to_le_bytes()),
    start("ultrix", 16 * KIB - 72, &0x0003_2957_u32.to_le_bytes()),
    start("ldm", 6 * 512, b"PRIVHEAD"),
    end("ddf", 512, &0xde11_de11_u32.to_be_bytes()),
    end("ddf", 257 * 512, &0xde11_de11_u32.to_be_bytes()),
    end("imsm", 1024, b"Intel Raid ISM Cfg Sig. "),
    end("imsm", 2 * 4096, b"Intel Raid ISM Cfg Sig. "),
    sector_from_end("adaptec", 1, 0, &0x37fc_4d1e_u32.to_be_bytes()),
    sector_from_end("adaptec", 1, 256, b"DPTM"),
    sector_from_end("adaptec", 1, 32, b"DPTM"),
    sector_from_end("lsi", 1, 0, b"$XIDE$"),
    sector_from_end("jmicron", 1, 0, b"JM"),
    sector_from_end("silicon", 1, 0x60, &0x2f00_0000_u32.to_le_bytes()),
    sector_from_end("nvidia", 2, 0, b"NVIDIA  "),
    sector_from_end("highpoint", 11, 0, &0x5a78_16f3_u32.to_le_bytes()),
    sector_from_end("highpoint", 11, 0, &0x5a78_16fd_u32.to_le_bytes()),
    start("highpoint", 9 * 512 + 32, &0x5a78_16f0_u32.to_le_bytes()),
    start("highpoint", 9 * 512 + 32, &0x5a78_16fd_u32.to_le_bytes()),
];

/// Names of `blkid` and of flashwise for the same kind; `--allow-signature` accepts both.
#[rustfmt::skip]
pub(super) static BLKID_NAMES: &[(&str, &str)] = &[
    ("linux_raid_member", "md"), ("ddf_raid_member", "ddf"), ("isw_raid_member", "imsm"),
    ("lsi_mega_raid_member", "lsi"), ("via_raid_member", "via"), ("silicon_medley_raid_member", "silicon"),
    ("nvidia_raid_member", "nvidia"), ("promise_fasttrack_raid_member", "promise"),
    ("hpt45x_raid_member", "highpoint"), ("hpt37x_raid_member", "highpoint"),
    ("adaptec_raid_member", "adaptec"), ("jmicron_raid_member", "jmicron"), ("ceph_bluestore", "bluestore"),
    ("drbdmanage_control_volume", "drbd"), ("drbdproxy_datalog", "drbd"), ("LVM2_member", "lvm2"),
    ("LVM1_member", "lvm1"), ("DM_snapshot_cow", "dm-snapshot"), ("DM_verity_hash", "dm-verity"),
    ("DM_integrity", "dm-integrity"), ("crypto_LUKS", "luks"), ("VMFS_volume_member", "vmfs"), ("VMFS", "vmfs"),
    ("BitLocker", "bitlocker"), ("cs_fvault2", "corestorage"), ("vfat", "fat"), ("msdos", "fat"),
    ("swsuspend", "hibernation"), ("swap_tuxonice", "hibernation"), ("xfs_external_log", "xfs-log"),
    ("ext4dev", "ext4"), ("zfs_member", "zfs"), ("ReFS", "refs"), ("gfs", "gfs2"), ("oracleasm", "oracle-asm"),
    ("squashfs3", "squashfs"), ("nss", "netware"), ("scoutfs_meta", "scoutfs"), ("scoutfs_data", "scoutfs"),
    ("dos", "mbr"), ("PMBR", "mbr"),
];
