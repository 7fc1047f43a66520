//! Drives that carry something, or whose bytes somebody else has: none is written. They take root and loop devices.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use crate::loops::{LoopDevice, Mounted, run};
use crate::support::Place;

/// What puts something on the image `c.img` or on the device `$1` over it, and what that is called.
const MAKERS: [(&str, &str); 8] = [
    ("mkfs.minix c.img", "minix"),
    ("mkfs.minix -3 c.img", "minix"),
    ("mkfs.bfs c.img", "bfs"),
    ("parted -s c.img mklabel mac", "mac"),
    ("parted -s c.img mklabel sun", "sun"),
    ("parted -s c.img mklabel dvh", "sgi"),
    ("drbdmeta --force 0 v08 \"$1\" internal create-md", "drbd"),
    ("mkfs.ext4 -q -F c.img && dd if=/dev/zero of=c.img bs=4096 count=1 conv=notrunc", "ext4"),
];

#[test]
fn what_a_drive_carries_is_refused_by_its_name() {
    let mut tested = Vec::new();
    for (maker, kind) in MAKERS {
        let place = Place::new();
        let image = place.path("c.img");
        let Some(device) = LoopDevice::new(&image, 320) else { return };
        let name = device.path().to_str().unwrap();
        let script = format!("PATH=$PATH:/usr/sbin:/sbin; {maker}");
        let mut shell = Command::new("sh");
        let made = shell.current_dir(place.path(".")).args(["-c", &script, "maker", name]).output().unwrap();
        if !made.status.success() {
            eprintln!("NOT TESTED, {maker}: {}", String::from_utf8_lossy(&made.stderr).trim());
            continue;
        }
        let confirmed = image.canonicalize().unwrap().display().to_string();
        let learn = ["learn", name, "--destructive", "--confirm-device", &confirmed];
        let plan = place.run(&[&learn[..], &["--dry-run"]].concat()).expect(5).stdout;
        let words = [format!("contains     {kind} at byte "), format!("refused      it contains {kind} (")];
        assert!(words.iter().all(|words| plan.contains(words)), "{maker}: {plan}");
        let before = fs::read(&image).unwrap();
        let line = place.fails(5, &learn);
        assert!(line.contains(&format!("it contains {kind}")), "{maker}: {line}");
        assert!(fs::read(&image).unwrap() == before, "{maker}");
        tested.push(kind);
    }
    eprintln!("tested: {}", tested.join(", "));
}

/// A file system is mounted through a second loop device over the same file, whose name is gone or means another one.
#[test]
fn a_mounted_file_system_is_not_overwritten_through_another_device_over_its_bytes() {
    let place = Place::new();
    let image = place.path("a.img");
    let Some(free) = LoopDevice::new(&image, 320) else { return };
    let Some(taken) = LoopDevice::over(&image) else { return };
    let mounted =
        run("mkfs.ext4", &[&"-q", &taken.path()]).and_then(|_| Mounted::new(taken.path(), &place.path("mnt")));
    let mounted = match mounted {
        Ok(mounted) => mounted,
        Err(why) => return eprintln!("SKIPPED: {why}"),
    };
    let precious: Vec<u8> = (0_u32..1 << 20).flat_map(|n| (n.wrapping_mul(2_654_435_761)).to_le_bytes()).collect();
    fs::write(place.path("mnt/precious"), &precious).unwrap();
    run("sync", &[&"--file-system", &place.path("mnt/precious")]).unwrap();
    let confirmed = image.canonicalize().unwrap().display().to_string();
    let refused = |confirmed: &str| {
        let name = free.path().to_str().unwrap();
        let learn = ["learn", name, "--destructive", "--confirm-device", confirmed, "--allow-signature", "ext4"];
        let line = place.fails(5, &[&learn[..], &["--quick", "--max-write", "64m"]].concat());
        assert!(line.contains("nothing is written: ") && line.contains("is mounted at "), "{line}");
    };
    refused(&confirmed);
    let kept = fs::metadata(&image).unwrap().ino();
    fs::remove_file(&image).unwrap();
    refused(&format!("{confirmed} (deleted)"));
    fs::write(&image, "another file of that name").unwrap();
    assert_ne!(fs::metadata(&image).unwrap().ino(), kept);
    refused(&confirmed);
    drop(mounted);
    let mounted = Mounted::new(taken.path(), &place.path("mnt")).unwrap();
    assert!(fs::read(place.path("mnt/precious")).unwrap() == precious);
    drop(mounted);
}
