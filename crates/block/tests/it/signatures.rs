//! What lies on a raw device is recognised: put there by the real tools, or crafted as libblkid knows it.

use crate::raw_device::{consent_to, directory, must_refuse, refusals};
use crate::support;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use flashwise_block::{FileDevice, RawPlan, Refusal};
use support::{LoopDevice, run};

/// Makers of what a device can carry: program, its options, and by what name it is found.
const MAKERS: [(&str, &[&str], &str); 26] = [
    ("mkfs.ext2", &["-q"], "ext2"),
    ("mkfs.ext3", &["-q"], "ext3"),
    ("mkfs.ext4", &["-q"], "ext4"),
    ("mke2fs", &["-q", "-O", "journal_dev"], "jbd"),
    ("mkfs.xfs", &["-q", "-f"], "xfs"),
    ("mkfs.btrfs", &["-q", "-f"], "btrfs"),
    ("mkfs.f2fs", &["-q", "-f"], "f2fs"),
    ("mkfs.ntfs", &["-q", "-F", "-f"], "ntfs"),
    ("mkfs.vfat", &["-I", "-F", "12"], "fat"),
    ("mkfs.vfat", &["-I", "-F", "16"], "fat"),
    ("mkfs.vfat", &["-I", "-F", "32"], "fat"),
    ("mkfs.exfat", &[], "exfat"),
    ("mkswap", &[], "swap"),
    ("mkswap", &["--pagesize", "65536"], "swap"),
    ("pvcreate", &["--yes", "--config", "devices/use_devicesfile=0"], "lvm2"),
    ("make-bcache", &["--wipe-bcache", "-B"], "bcache"),
    (
        "cryptsetup",
        &[
            "luksFormat",
            "--batch-mode",
            "--type",
            "luks1",
            "--pbkdf-force-iterations",
            "1000",
            "--key-file",
            "/proc/version",
        ],
        "luks",
    ),
    (
        "cryptsetup",
        &[
            "luksFormat",
            "--batch-mode",
            "--type",
            "luks2",
            "--pbkdf",
            "pbkdf2",
            "--pbkdf-force-iterations",
            "1000",
            "--key-file",
            "/proc/version",
        ],
        "luks",
    ),
    ("mkfs.nilfs2", &["-q", "-f"], "nilfs2"),
    ("mkfs.minix", &[], "minix"),
    ("mkfs.minix", &["-2"], "minix"),
    ("mkfs.minix", &["-3"], "minix"),
    ("mkfs.bfs", &[], "bfs"),
    ("mkfs.jfs", &["-q"], "jfs"),
    ("mkfs.reiserfs", &["-q", "-ff"], "reiserfs"),
    ("mkudffs", &["--media-type=hd", "--blocksize=512"], "udf"),
];

/// A file is enough for most of them; the kernel's part is the same for all and tested above.
#[test]
fn what_the_usual_tools_put_on_a_device_is_found_and_refused_until_its_kind_is_allowed() {
    let directory = directory();
    let mut tested = Vec::new();
    for (index, (program, options, kind)) in MAKERS.iter().enumerate() {
        let image = directory.path().join(format!("{index}"));
        let Some(device) = LoopDevice::new(&image, if *kind == "xfs" { 320 } else { 128 }) else { return };
        let mut arguments: Vec<&dyn AsRef<std::ffi::OsStr>> = options.iter().map(|option| option as _).collect();
        let path = device.path();
        arguments.push(&path);
        if let Err(why) = run(program, &arguments) {
            eprintln!("NOT TESTED, {kind}: {why}");
            continue;
        }
        let mut consent = consent_to(&image);
        let found = refusals(path, &consent);
        let kinds: Vec<_> = RawPlan::of(path, None).unwrap().signatures.iter().map(|s| s.kind.to_string()).collect();
        assert_eq!(kinds, [*kind], "after {program}");
        assert!(matches!(&found[..], [Refusal::Signature { .. }]), "{found:?}");
        assert!(FileDevice::raw_destructive(path, &consent).is_err());
        consent.allowed_signatures = vec![kind.parse().unwrap()];
        assert_eq!(refusals(path, &consent), [], "{kind} is allowed");
        tested.push(*kind);
        fs::remove_file(&image).unwrap();
    }
    eprintln!("tested: {}", tested.join(", "));
}

/// What is found on a file.
fn carried(image: &Path) -> Option<Vec<String>> {
    let device = LoopDevice::over(image)?;
    Some(RawPlan::of(device.path(), None).unwrap().signatures.iter().map(|found| found.kind.to_string()).collect())
}

#[test]
fn a_file_system_is_found_by_its_copies_when_the_first_super_block_is_gone() {
    for (maker, options, kind, mib, wiped) in [
        ("mkfs.ext4", &["-q"][..], "ext4", 64, 4096),
        ("mkfs.ext4", &["-q", "-b", "4096"], "ext4", 300, 1 << 20),
        ("mkfs.ext2", &["-q", "-b", "2048"], "ext2", 80, 1 << 20),
        ("mkfs.xfs", &["-q", "-f"], "xfs", 320, 4096),
        ("mkfs.xfs", &["-q", "-f"], "xfs", 320, 1 << 20),
        ("mkfs.btrfs", &["-q"], "btrfs", 300, 1 << 20),
        ("mkfs.ntfs", &["-q", "-F", "-f"], "ntfs", 64, 4096),
        ("mkfs.vfat", &["-F", "32"], "fat", 64, 512),
        ("mkfs.exfat", &[], "exfat", 64, 4096),
        ("mkfs.nilfs2", &["-q"], "nilfs2", 128, 1 << 20),
        ("mkfs.f2fs", &["-q"], "f2fs", 64, 4096),
    ] {
        let directory = directory();
        let image = directory.path().join("image");
        File::create(&image).unwrap().set_len(mib << 20).unwrap();
        let mut arguments: Vec<&dyn AsRef<std::ffi::OsStr>> = options.iter().map(|option| option as _).collect();
        arguments.push(&image);
        if let Err(why) = run(maker, &arguments) {
            eprintln!("NOT TESTED, {kind}: {why}");
            continue;
        }
        OpenOptions::new().write(true).open(&image).unwrap().write_all_at(&vec![0; wiped], 0).unwrap();
        let Some(found) = carried(&image) else { return };
        assert!(found.contains(&kind.to_owned()), "{maker} {options:?}, {wiped} bytes wiped: {found:?}");
    }
}

/// Everything that the installed libblkid knows has a name here that `--allow-signature` takes.
#[test]
fn every_kind_that_libblkid_lists_has_a_name() {
    let Ok(list) = run("blkid", &[&"-k"]) else { return eprintln!("SKIPPED: no blkid") };
    for name in list.lines() {
        assert!(name.parse::<flashwise_block::SignatureKind>().is_ok(), "{name}");
    }
}

/// Bytes, each with its place.
type Writes<'a> = &'a [(u64, &'a [u8])];

/// Images with little more than a magic number; where libblkid sees something, so must we.
#[test]
fn what_libblkid_recognises_in_a_crafted_image_is_found() {
    const SIZE: u64 = 64 << 20;
    let boot = b"\xeb\x3c\x90mkfs.fat\0\x02\x04\x01\0\x02\0\x02\0\0\xf8\x20\0\x20\0\x40\0";
    let writes: [(&str, Writes<'_>); 36] = [
        ("cramfs", &[(0, b"\x45\x3d\xcd\x28")]),
        ("romfs", &[(0, b"-rom1fs-\0\x10\0\0")]),
        ("squashfs", &[(0, b"hsqs"), (28, b"\x04\0\0\0")]),
        ("squashfs", &[(0, b"sqsh"), (28, b"\0\x03\0\0")]),
        ("befs", &[(32, b"BFS1")]),
        ("hpfs", &[(8192, b"\x49\xe8\x95\xf9"), (8704, b"\x49\x18\x91\xf9")]),
        ("vxfs", &[(1024, b"\xf5\xfc\x01\xa5\x04\0\0\0")]),
        ("sysv", &[(512 + 0x1f8, b"\x20\x7e\x18\xfd")]),
        ("xenix", &[(2048, b"\x2b\x55\x44")]),
        ("ufs", &[(65_536 + 1372, b"\x19\x01\x54\x19")]),
        ("ufs", &[(8192 + 1372, b"\x54\x19\x01\0")]),
        ("bfs", &[(0, b"\xce\xfa\xad\x1b")]),
        ("zonefs", &[(0, b"SFOZ")]),
        ("ubifs", &[(0, b"\x31\x18\x10\x06")]),
        ("ubi", &[(0, b"UBI#\x01")]),
        ("netware", &[(4096, b"SPB5")]),
        ("exfs", &[(0, b"EXFS")]),
        ("refs", &[(0, b"\0\0\0ReFS\0")]),
        ("ocfs", &[(8192, b"OracleCFS")]),
        ("reiser4", &[(65_536, b"ReIsEr4")]),
        ("oracle-asm", &[(32, b"ORCLDISK")]),
        ("vmfs", &[(2 << 20, b"\x5e\xf1\xab\x2f")]),
        ("lvm1", &[(0, b"HM\x01\0")]),
        ("dm-snapshot", &[(0, b"SnAp")]),
        ("drbd", &[(0, b"$DRBDmgr=q")]),
        ("drbd", &[(SIZE - 4096 + 60, b"\x83\x74\x02\x6b"), (SIZE - 4096 + 84, b"\0\0\x10\0")]),
        ("sgi", &[(0, b"\x0b\xe5\xa9\x41")]),
        ("aix", &[(0, b"\xc9\xc2\xd4\xc1")]),
        ("mac", &[(0, b"ER\x02\0"), (512, b"PM\0\0\0\0\0\x01")]),
        ("promise", &[(SIZE - 63 * 512, b"Promise Technology, Inc.")]),
        ("highpoint", &[(9 * 512 + 32, b"\xf0\x16\x78\x5a")]),
        ("highpoint", &[(SIZE - 11 * 512, b"\xf3\x16\x78\x5a")]),
        ("lsi", &[(SIZE - 512, b"$XIDE$")]),
        ("adaptec", &[(SIZE - 512, b"\x37\xfc\x4d\x1e"), (SIZE - 256, b"DPTM")]),
        ("hibernation", &[(4086, b"S2SUSPEND")]),
        ("fat", &[(0, boot)]),
    ];
    let mut seen = 0;
    for (kind, writes) in writes {
        let directory = directory();
        let image = directory.path().join("image");
        let file = File::create(&image).unwrap();
        file.set_len(SIZE).unwrap();
        writes.iter().for_each(|&(at, bytes)| file.write_all_at(bytes, at).unwrap());
        let Some(device) = LoopDevice::over(&image) else { return };
        let theirs = run("blkid", &[&"-p", &"-o", &"value", &"-s", &"TYPE", &"-s", &"PTTYPE", &device.path()]);
        let found = RawPlan::of(device.path(), None).unwrap().signatures;
        assert!(found.iter().any(|found| found.kind.to_string() == kind), "{kind}: {found:?}, blkid: {theirs:?}");
        for name in theirs.unwrap_or_default().lines() {
            seen += 1;
            let theirs = name.parse::<flashwise_block::SignatureKind>();
            assert!(theirs.is_ok_and(|theirs| found.iter().any(|found| found.kind == theirs)), "{name}: {found:?}");
        }
    }
    eprintln!("libblkid sees {seen} of them");
}

#[test]
fn partition_tables_are_found_and_refused() {
    for (label, expected) in [("gpt", "gpt"), ("dos", "mbr"), ("sun", "sun"), ("sgi", "sgi")] {
        let directory = directory();
        let image = directory.path().join("image");
        File::create(&image).unwrap().set_len(64 << 20).unwrap();
        let script = directory.path().join("script");
        fs::write(&script, format!("label: {label}\n16065,32130\n")).unwrap();
        let command = format!("sfdisk --quiet {} < {}", image.display(), script.display());
        if let Err(why) = run("sh", &[&"-c", &command]) {
            return eprintln!("SKIPPED: {why}");
        }
        let Some(device) = LoopDevice::over(&image) else { return };
        let found = must_refuse(device.path(), &consent_to(&image), &image);
        let kinds: Vec<_> = RawPlan::of(device.path(), None).unwrap().signatures;
        assert!(kinds.iter().any(|found| found.kind.to_string() == expected), "{found:?}");
        // The copy of a GPT at the end is enough.
        if label == "gpt" {
            OpenOptions::new().write(true).open(device.path()).unwrap().write_all_at(&[0; 8192], 0).unwrap();
            let left = RawPlan::of(device.path(), None).unwrap().signatures;
            assert!(left.iter().any(|found| found.kind.to_string() == "gpt"), "{left:?}");
        }
    }
}
